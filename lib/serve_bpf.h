/* SPDX-License-Identifier: MIT */
/*
 * Thread time without a module: the pages that bpf/threads.bpf.c fills in. They live in the kernel, pinned
 * below /sys/fs/bpf, so that a server which is killed loses nothing: the next one finds them. One user at
 * a time; not thread-safe.
 */
#ifndef LIB_SERVE_BPF_H
#define LIB_SERVE_BPF_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct serve_why {
	char text[300];
};

/*
 * Load and attach, or take over what is attached. max: pages at once, at most THREADS_MAX. 0, or -errno with
 * a line in `why` that fits "thread pages cannot be served: ...".
 */
int serve_open(unsigned int max, struct serve_why *why);

/*
 * The descriptor of a thread's page, for the caller to close. The thread has the number tid in its own pid
 * namespace, and belongs to the process pid (in ours) that began at start_ticks (/proc/PID/stat). -ESRCH: it
 * does not; -EPERM: a thread of the kernel's; -ENOSPC: all pages are taken; -ENOMEM.
 */
int serve_register(pid_t pid, uint64_t start_ticks, uint32_t tid);

/*
 * The page of any thread for a viewer, which begins at once. Both numbers are ours; viewers are numbered from 0 to
 * SERVE_VIEWERS - 1. As above; -ENOSPC: viewers have half of all pages; -EAGAIN: it executes another program.
 */
#define SERVE_VIEWERS 16
int serve_view(unsigned int viewer, pid_t pid, pid_t tid);

/* The viewer is gone: threads that did not ask for their page themselves, and that no other views, lose it. */
void serve_unview(unsigned int viewer);

/*
 * See that pages are ready for who comes next, and that those of viewers that are gone become so. To be called
 * now and then; it takes some 10 ms when there is something to do.
 */
void serve_upkeep(void);

/* Mark every page dead, detach, and leave nothing behind. */
void serve_end(void);

#endif /* LIB_SERVE_BPF_H */
