/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What bpf/run.bpf.c and lib/engine_bpf.c tell each other: state of a thread, rows of a life, events.
 *
 * A life is what a process does between two execs. Its number is unique in a run, unlike a pid; 0 is
 * the watcher itself while it measures its own cost.
 */
#ifndef _UAPI_RUN_BPF_H
#define _UAPI_RUN_BPF_H

#include <linux/types.h>

#define RUN_BITS     3
#define RUN_NR_SLOTS 368   /* of calls shorter than 2^48 ns, 3 days; longer ones are in the last */
#define RUN_NR_ERRS  6	   /* errnos a row tells apart */
#define RUN_TEXT     512   /* bytes of a command line in one event */
#define RUN_CHUNKS   128   /* such events at most */
#define RUN_THREADS  65536 /* watched at a time, and number 0 is none */
#define RUN_RECENT   256   /* rows that a CPU remembers */
#define RUN_PAGE     4096  /* bytes of a counters page */

/* In the order of enum rts_abi. */
enum run_abi { RUN_X86_64, RUN_I386, RUN_X32, RUN_OTHER };

/* What else a row may count: virtual CPUs. In a key they stand where an ABI does. */
enum run_kvm {
	RUN_KVM_EXIT = 4, /* run calls that came back, by KVM_EXIT_* */
	RUN_KVM_VMX,	  /* exits of the hardware, by its own number of a reason */
	RUN_KVM_SVM,
	RUN_KVM_VCPU, /* a virtual CPU that ran, by its descriptor */
};

/* Why a thread is not counted as others are. */
enum run_special {
	RUN_PLAIN,
	RUN_WINDOW,	/* its guest came back for an interrupt: is there one? */
	RUN_MAPS,	/* it has made a counters page, and will map it */
	RUN_ARMED,	/* the child that will execute the program: counts from its execve on */
	RUN_CALIBRATES, /* the watcher itself */
};

/* Of a call that has not returned yet: */
#define RUN_RETURN_EXEC	 1 /* its execve succeeded */
#define RUN_RETURN_MEMFD 2 /* it may make a counters page */
#define RUN_RETURN_MMAP	 4 /* it maps one */

/* The mark of a watched thread, in task storage: it goes with the task. */
struct run_mark {
	__u32 thread; /* its place among the threads; 0: none any more */
};

/* A watched thread. Its place is its own from its mark to its end. */
struct run_task {
	__u64 task; /* address of its task_struct; 0: not known yet, or free */
	__u64 enter_ns;
	__u64 waiting_ns; /* off CPU since enter_ns */
	__u64 off_since;  /* switched away from at, or 0 */
	__u64 on_ns;	  /* on CPU in all, but for the time since in_since */
	__u64 in_since;	  /* switched to at, or 0 */
	/* Of this life: */
	__u64 attempted;  /* calls */
	__u64 table_full; /* calls that found no room for a row */
	__u64 half_seen;  /* calls of which the begin or the return was missed */
	__u64 clock_back;
	__u32 life;
	__u32 nr;
	__s32 tid;
	__u8 abi;
	__u8 in_call;
	__u8 special;
	__u8 at_return;	 /* RUN_RETURN_*: what there is to do beside counting */
	__u8 first_exec; /* that of the program asked for: no life ends */
	__u8 adopting;	 /* a leader whose threads are to be marked */
	__u8 has_called; /* a return without a call is one whose begin was missed */
	__u8 root;	 /* the end of this thread is worth a wake-up */
	/* Of the run call of a virtual CPU that it is in: */
	__u64 guest_since; /* entered the guest at, or 0 */
	__u64 exit_since;  /* left it at, or 0 */
	__u64 guest_ns, halted_ns;
	__u32 page_fd;	   /* of RUN_MAPS */
	__u32 exit_reason; /* the hardware's */
	__u16 exit_isa;	   /* RUN_KVM_VMX, RUN_KVM_SVM, 0: not known */
	__u16 run_exit;	   /* KVM_EXIT_* + 1, 0: it is in none */
};

/*
 * A row is written on its CPU only, with preemption off: no atomics, and no rows for CPUs that a process
 * never runs on.
 */
struct run_key {
	__u32 life;
	__u32 nr;
	__u16 abi;
	__u16 cpu;
};

/*
 * What a CPU remembers, so that a call takes no look into task storage or a hash: the thread that was
 * found here last, and rows. Neither is believed without a look: a place knows its task, and a life's
 * number never comes again.
 */
struct run_recent {
	__u32 life, nr;
	__u32 abi;
	__u32 row; /* 0: nothing remembered */
};

struct run_here {
	__u32 thread;
	__u32 pad;
	struct run_recent recent[RUN_RECENT];
};

struct run_err {
	__u32 err; /* 0: free */
	__u32 pad;
	__u64 count;
};

struct run_row {
	__u64 count, errors, total_ns, min_ns, max_ns;
	__u64 unsplit_count,
		waiting_ns;	   /* calls of which we do not know how long they were off CPU */
	__u64 guest_ns, halted_ns; /* of RUN_KVM_EXIT; its errors are exits with nothing to do */
	struct run_err errs[RUN_NR_ERRS]; /* errors beyond are in the sum alone */
	__u64 slot[RUN_NR_SLOTS];
};

enum run_event_type {
	RUN_FORK = 1,
	RUN_EXEC,
	RUN_EXIT,
	RUN_COMM,
	RUN_MEMFD,
	RUN_ROW,
	RUN_ARGS,
	RUN_COUNTERS,
	RUN_MOVED
};

/* MEMFD: status is the descriptor. FORK: of the child. EXEC: life ends and new_life begins, where they differ. EXIT: of a thread. */
struct run_event {
	__u32 type;
	__u32 life;
	__u32 other_life;      /* FORK: the parent's; EXEC: the new one */
	__s32 tid, tgid, ppid; /* as the watcher sees them */
	__s32 ns_pid;	       /* of the process, as it sees itself */
	__s32 old_tid;	       /* EXEC: of the thread before it took over its leader's number */
	__u32 nr;	       /* EXIT: of the call that never returns */
	__u8 abi;
	__u8 in_call;
	__u8 group_exit; /* EXIT: status is that of the process, whichever thread this is */
	__u8 pad;
	__s32 status; /* as waitpid() gives it */
	__u32 pad2;
	__u64 time_ns;
	__u64 on_ns, user_ns, system_ns; /* of the thread: exact, and by ticks */
	__u64 attempted, table_full, half_seen, clock_back;
	char comm[16];
};

struct run_row_event {
	__u32 type;
	struct run_key key;
	__u32 row;
};

struct run_args_event {
	__u32 type;
	__u32 life;
	__u32 total; /* bytes of the command line */
	__u32 at, len;
	char text[RUN_TEXT];
};

/* The counters page of a process that is about to end, or to execute another program. */
struct run_counters_event {
	__u32 type;
	__u32 life;
	char page[RUN_PAGE];
};

/* A process that is not watched came to some cgroup. */
struct run_moved_event {
	__u32 type;
};

/* A live thread, as the iterators tell it. */
struct run_thread {
	__u64 enter_ns;
	__u64 request; /* second argument of the call */
	__u64 table_full, half_seen, clock_back;
	__u32 life;
	__s32 tid;
	__u32 nr;
	__u8 abi;
	__u8 in_call;
	__u16 pad;
};

#endif /* _UAPI_RUN_BPF_H */
