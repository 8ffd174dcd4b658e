/* SPDX-License-Identifier: MIT */
/*
 * The program that an engine starts: forked, held back until the engine is ready to watch it, and then
 * executed. All files are closed at its exec.
 */
#ifndef STATPAGE_CHILD_H
#define STATPAGE_CHILD_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "lib/engine.h"

struct child {
	int start_pipe[2]; /* parent to child: go */
	int error_pipe[2]; /* child to parent: errno of a failed exec */
};

#define CHILD_INIT             \
	{                      \
		{-1, -1},      \
		{              \
			-1, -1 \
		}              \
	}

/*
 * Fork o's program. It gets files as its limit, and the signals as they were before watch_start().
 * 0, or -errno after a warning.
 */
int child_fork(struct child *c, const struct run_opts *o, const struct rlimit *files,
	       struct run_sink *sink, pid_t *pid);
bool child_is_held(const struct child *c);
/* It may go on to exec. */
void child_release(struct child *c);
/* After the end of a child that executed nothing: the errno of its exec. */
int child_exec_errno(struct child *c);
/* A child that is still held back ends. */
void child_close(struct child *c);

/* Put this process, and what it starts, on one CPU. */
void child_pin(int cpu);

#endif /* STATPAGE_CHILD_H */
