/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What bpf/dist.bpf.c and lib/engine_dist_bpf.c tell each other: what a node is, its counters, its open
 * starts. The maps that hold these are pinned, so a tool may find those of another release: version.
 */
#ifndef _UAPI_DIST_BPF_H
#define _UAPI_DIST_BPF_H

#include <linux/types.h>

#define DIST_BPF_VERSION 1
#define DIST_BPF_DIR	 "/sys/fs/bpf/statpage"
#define DIST_BPF_NEST	 8 /* open starts of one task; a power of two */

/* What a node is. Constant while it lives. */
struct dist_bpf_conf {
	__u32 version;
	__u32 bits;
	__u32 gap;
	__u32 by_cpu;
	__u32 tgid; /* only this process, as known in the pid namespace of that inode; 0: any */
	__u32 pid_ns;
	__s32 cpu;     /* calls that end on this CPU only; -1: any */
	__u32 by_comm; /* calls of tasks called comm only */
	char comm[16]; /* zeros behind the name */
	char name[64];
	char start[128], end[128]; /* end "": the function's return */
	char via[16];
	char note[128]; /* why it is not the usual mechanism */
};

/* What can be changed while a node lives. */
struct dist_bpf_ctl {
	__u32 stopped;
	__u32 gap_stopped;
};

struct dist_bpf_cell {
	__u64 count, sum;
};

/*
 * Counters, by CPU. Each program has a row of its own: a program does not run twice at once on a CPU,
 * so no add is lost, though none is atomic.
 */
enum dist_bpf_row {
	DIST_BPF_BEGIN,
	DIST_BPF_END,
	DIST_BPF_DIED, /* tasks that died between start and end */
	DIST_BPF_GAP,  /* of the gap's metric, by the program of BEGIN */
	DIST_BPF_ROWS,
};

/* ENTRY: calls, or starts. EXIT: those that have become a sample, or anything else. */
enum dist_bpf_event {
	DIST_BPF_ENTRY,
	DIST_BPF_EXIT,
	DIST_BPF_FILTERED,
	DIST_BPF_STOPPED,
	DIST_BPF_UNPAIRED,
	DIST_BPF_MISS_INSTANCE, /* no return was seen */
	DIST_BPF_MISS_TABLE,	/* no memory for a task's starts */
	DIST_BPF_MISS_NEST,	/* more than DIST_BPF_NEST open */
	DIST_BPF_MISS_DIED,
	DIST_BPF_MISS_CLOCK, /* two CPUs' clocks disagreed */
	DIST_BPF_MISS_BUSY,  /* came in an interrupt of another start or end of this CPU */
	DIST_BPF_EVENTS,
};

struct dist_bpf_tally {
	__u64 n[DIST_BPF_EVENTS];
};

/* Open starts of a task, or of a CPU in one kind of context. The newest is at top - 1. */
struct dist_bpf_stack {
	__u64 start[DIST_BPF_NEST];
	__u64 frame
		[DIST_BPF_NEST]; /* where the call's frame is; outer ones are higher; 0: no call */
	__u32 top;
	__u32 nr;
	__u64 busy; /* by cpu: somebody is at it */
};

#endif /* _UAPI_DIST_BPF_H */
