/* SPDX-License-Identifier: MIT */
/*
 * What the files of the ptrace engine share: engine_ptrace.c is the loop, ptrace_start.c the way in,
 * ptrace_calls.c what a stop at a call tells.
 */
#ifndef STATPAGE_PTRACE_ENGINE_H
#define STATPAGE_PTRACE_ENGINE_H

#include <sys/ptrace.h>

#include "lib/child.h"
#include "lib/procs.h"

/*
 * PTRACE_O_EXITKILL is not among them: when we are killed the program goes on, untraced.
 * PTRACE_O_TRACEEXIT costs a stop a thread and is set where the end has something to tell.
 */
#define PTRACE_OPTIONS                                                                            \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | \
	 PTRACE_O_TRACEEXEC)

struct session {
	const struct run_opts *opts;
	struct run_result *res;
	struct tree tree;
	bool root_runs; /* the program asked for has been executed, or was attached to */
	bool root_gone;
	bool detaching; /* each thread is let go of at its next stop */
	bool gave_up;	/* asked to end even while detaching */
	uint64_t
		stop_cpu_ns; /* CPU time of the process of this stop, and of children it waited for */
	struct death {
		pid_t tid;
		int status;
	} died; /* a wait status that was met outside of the loop; tid 0: none */
	struct child child;
	pid_t *early; /* threads that ended before their parents told of them */
	size_t nr_early, max_early;
};

/* Fork the program, seized and stopped before it executes. 0 or -errno after a warning. */
int ptrace_start(struct session *s);
/* Seize every thread of a running process. 0 or -errno after a warning. */
int ptrace_attach(struct session *s);
/* What tracing adds to one call here and now, in nanoseconds; false: could not be measured. */
bool ptrace_calibrate(bool split, uint64_t *cost_ns);

/* ptrace_calls.c: make the table of calls that get more attention. Once, before the first stop. */
void ptrace_calls_init(void);
/* The end of k's process has something to tell: report it before. k is at a stop. */
void ptrace_want_exit_stop(struct task *k);
/* A stop at a system call's entry or exit. stop_ns: when it was noticed. */
void ptrace_syscall_stop(struct session *s, struct task *k, uint64_t stop_ns);

#endif /* STATPAGE_PTRACE_ENGINE_H */
