/* SPDX-License-Identifier: MIT */
/*
 * The processes of a watched tree and their threads: what an engine keeps per process, and how a
 * record is made of it. Not thread-safe.
 */
#ifndef STATPAGE_PROCS_H
#define STATPAGE_PROCS_H

#include "lib/calls.h"
#include "lib/engine.h"

struct kvm_watch;
struct counters_view;

/* A copy of a command line, shared by a process and the children it forks. */
struct cmdline {
	unsigned int refs;
	char **argv; /* into text */
	size_t argc;
	bool cut;
	char text[];
};

struct proc {
	struct proc *next; /* of the tree's list */
	pid_t pid, ppid, ns_pid;
	unsigned int threads, threads_seen;
	unsigned int exiting; /* of threads, those at their exit stop or past it */
	uint64_t seq, execs;
	uint64_t start_ns;
	char comm[16];
	bool was_there;	   /* before the watch: its end is no end of a forked child */
	bool exec_pending; /* its execve succeeded and has not returned yet */
	bool comm_stale;   /* /proc knows better */
	bool has_page;	   /* may have a counters page */
	bool exit_stop;	   /* its end is worth a stop: there is something to read then */
	bool final_look;   /* everything was read at its end */
	bool has_cpu;
	uint64_t user_ns, system_ns;	       /* when last read */
	uint64_t base_user_ns, base_system_ns; /* at the last exec */
	struct cmdline *cmd;
	struct calls calls;
	struct kvm_watch *kvm;
	struct counters_view *page; /* when last read; NULL: there is none */
};

struct task {
	struct task *next; /* of the hash chain */
	pid_t tid;
	struct proc *proc;
	int schedstat; /* descriptor of this thread's file; -1: none, NOT_OPEN: not yet */
	bool in_call;
	bool exiting;
	enum rts_abi abi;
	uint32_t nr;
	uint64_t args[2];
	uint64_t enter_ns, enter_cpu_ns;
	enum cpu_source {
		NO_CPU,
		BY_STOP,
		BY_CLOCK,
		BY_SCHEDSTAT
	} cpu_source;	/* of enter_cpu_ns */
	bool exit_stop; /* reports its exit before it happens */
	bool unclaimed; /* it reported before its parent told of it */
};

#define NOT_OPEN  (-2)
#define TREE_HASH 1024

struct tree {
	struct task *hash[TREE_HASH];
	struct proc *procs;
	size_t nr_tasks;
	pid_t root, root_ppid; /* 0: all processes of a cgroup */
	const char *cgroup;    /* its path */
	uint64_t start_ns;
	uint64_t at_ns; /* when what is told now happened; 0: now */
	uint32_t procs_seen, threads_seen;
	uint64_t seq, execs;
	uint64_t user_ns, system_ns; /* of processes that are gone */
	struct calls calls;	     /* of lives that are over */
	struct cmdline *cmd;
	struct kvm_watch *kvm;	  /* likewise */
	uint64_t unsplit_threads; /* found no descriptor for their schedstat */
	bool pid_namespaces;	  /* ns_pid may differ from pid */
	struct rts_engine engine;
	char split_absent[128];
	struct run_sink *sink;
};

uint64_t now_ns(void);

struct task *tree_task(const struct tree *t, pid_t tid);
/* A new thread of proc; NULL: no memory. */
struct task *tree_add_task(struct tree *t, struct proc *p, pid_t tid);
/* Forget a thread: an open call never returns. The process stays. */
void tree_del_task(struct tree *t, struct task *k);
/* Forget every thread of p but keep. */
void tree_keep_only(struct tree *t, struct proc *p, const struct task *keep);
struct proc *tree_proc(const struct tree *t, pid_t pid);
/* A new process that counts from zero. parent may be NULL: then /proc is asked. NULL: no memory. */
struct proc *tree_add_proc(struct tree *t, pid_t pid, const struct proc *parent);
/* The process is gone: hand out its last record, add it to the tree's sums, free it. */
void tree_end_proc(struct tree *t, struct proc *p, int wait_status);
/* It executed another program: hand out the record of the life that ends, start the next. */
void tree_exec_proc(struct tree *t, struct proc *p);
/* The same for an engine that has brought p's CPU times up to date, and names the next life itself. */
void tree_next_life(struct tree *t, struct proc *p);
/* Snapshots of every live process. */
void tree_snapshot(struct tree *t, enum rts_reason reason);
/* The record of the whole tree, the last one; wait_status of the root or -1. */
void tree_finish(struct tree *t, enum rts_reason reason, int wait_status);
/* Free everything. */
void tree_free(struct tree *t);

/* The tree's command is that of its root, now. */
void tree_set_command(struct tree *t, const struct proc *root);

/*
 * Read what is lost at exec: a name that has changed, and the counters page, if there is one. tid is a
 * thread that still has the process's memory: the leader may have left it behind.
 */
void proc_look(struct proc *p, pid_t tid);
/* The command line as a text of NUL-terminated words; cut: there was more. */
void proc_set_cmdline(struct proc *p, const char *text, size_t n, bool cut);
/* Read command line and name again. */
void proc_reread(struct proc *p);
/* Bring what /proc and the clocks know of a live process up to date. */
void proc_refresh(struct proc *p, pid_t tid);

#endif /* STATPAGE_PROCS_H */
