/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What bpf/threads.bpf.c and lib/serve_bpf.c tell each other. Maps and links of one version live together
 * in bpffs, in a folder of DIST_BPF_DIR; a server of another version leaves them alone.
 */
#ifndef _UAPI_THREADS_BPF_H
#define _UAPI_THREADS_BPF_H

#include <linux/types.h>

#define THREADS_VERSION "1"
#define THREADS_PIN_DIR "threads-" /* and the version; no node of distributions is called so */
#define THREADS_MAX	16384	   /* pages at once */

/* What is in a slot of the map of pages. A page that was handed out is never handed out again. */
enum threads_slot {
	THREADS_EMPTY,	 /* no page */
	THREADS_FRESH,	 /* a page that nobody has seen */
	THREADS_TAKEN,	 /* the page of a thread that lives */
	THREADS_ENDED,	 /* its thread exited, or executed another program */
	THREADS_VIEWED,	 /* as TAKEN, but it is viewers who asked for it, not the thread */
	THREADS_LEAVING, /* as VIEWED, and no viewer is left: its thread shall be parted from it */
	THREADS_LEFT,	 /* it is; a program that runs meanwhile may still write it */
};

/* In task storage: it goes with the task. */
struct threads_owner {
	__u32 slot;
	__u8 taken;   /* the slot is its */
	__u8 started; /* it was switched to since: the page is filled in */
	__u16 pad;
	__u64 mm; /* what it ran then; compared, never used */
	/* At its last switch off, and at the start: */
	__u64 run_delay, nivcsw;
	__u64 nvcsw_start, nivcsw_start;
};

/* A request to the iterator, and what came of it. */
struct threads_request {
	__u32 tid;	    /* in the thread's own pid namespace; not looked at for a viewer */
	__u32 slot;	    /* a fresh one */
	__u64 leader_ticks; /* when its process began, as in /proc/PID/stat */
	__u64 ticks_a_second;
	__s32 error;  /* answer: 0, or an errno */
	__u32 answer; /* the slot it has: the one above, or one of before */
	__u32 view;   /* for a viewer: the iterator is at the one thread */
	__u32 pad;
};

/* For the program that marks pages. */
struct threads_end {
	__u32 slot;
};

#endif /* _UAPI_THREADS_BPF_H */
