/* SPDX-License-Identifier: MIT */
/*
 * From what bpf/run.bpf.c tells to the tree of processes: events become forks, execs and ends, rows
 * become the calls of a life. The maps are given by descriptor; nothing here loads or attaches.
 */
#ifndef STATPAGE_BPF_TREE_H
#define STATPAGE_BPF_TREE_H

#include "include/uapi/run_bpf.h"
#include "lib/procs.h"

#define BPF_TREE_HASH 256

struct life;

struct bpf_tree {
	struct tree tree;
	struct life *hash[BPF_TREE_HASH];
	struct run_result *res;
	bool own_root; /* we started it, so we may wait for it */
	bool named;    /* the tree has its command */
	bool root_gone;
	bool moved;	       /* some process came to some cgroup */
	struct run_row *rows;  /* the map, as memory */
	int row_index;	       /* descriptors: of the map that leads there, */
	int free_rows;	       /* of the one of rows that are free again, */
	int pages;	       /* of the one of counters pages, */
	int threads;	       /* and of the iterator over live threads */
	uint64_t pages_missed; /* counters pages that nobody has read */
};

/* The root, counted from now on as life 1. 0 or -ENOMEM. */
int bpf_tree_root(struct bpf_tree *b, pid_t pid);
/* A process that was there before, counted from now on as that life. 0 or -ENOMEM. */
int bpf_tree_join(struct bpf_tree *b, pid_t pid, uint32_t life);
/* A thread of a process that was there before. */
void bpf_tree_adopt(struct bpf_tree *b, pid_t tid, uint32_t life);
/* One message of the ring. */
void bpf_tree_event(struct bpf_tree *b, const void *data);
/* Records of every live process. */
void bpf_tree_snapshot(struct bpf_tree *b, enum rts_reason reason);
/* The last records, while processes live. */
void bpf_tree_let_go(struct bpf_tree *b);
/* Whether the kernel shows the root to its iterator: some hide a process from it, or it has ended. */
bool bpf_tree_sees_root(struct bpf_tree *b);
/* Events were lost: forget threads that are gone. */
void bpf_tree_resync(struct bpf_tree *b);
/* Forget the rows that the watcher has made itself. */
void bpf_tree_drop_own(struct bpf_tree *b);
void bpf_tree_free(struct bpf_tree *b);

#endif /* STATPAGE_BPF_TREE_H */
