/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "lib/child.h"
#include "lib/watch_signals.h"

void child_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* The child, up to its exec; async-signal-safe calls only. */
static void wait_and_exec(const struct child *c, const struct run_opts *o,
			  const struct rlimit *files)
{
	char go;
	int err;

	watch_restore_child();
	setrlimit(RLIMIT_NOFILE, files);
	close(c->start_pipe[1]);
	/* End of file: the parent gave up, or is gone. */
	while ((err = (int)read(c->start_pipe[0], &go, 1)) < 0 && errno == EINTR)
		;
	if (err != 1)
		_exit(127);
	execv(o->path, o->argv);
	err = errno;
	if (write(c->error_pipe[1], &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

static void close_pipe(int fd[2])
{
	for (int i = 0; i < 2; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
		fd[i] = -1;
	}
}

void child_close(struct child *c)
{
	close_pipe(c->start_pipe);
	close_pipe(c->error_pipe);
}

int child_fork(struct child *c, const struct run_opts *o, const struct rlimit *files,
	       struct run_sink *sink, pid_t *pid)
{
	int err;

	if (pipe2(c->start_pipe, O_CLOEXEC) || pipe2(c->error_pipe, O_CLOEXEC)) {
		err = errno;
		sink->warn(sink, "cannot make a pipe: %s", strerror(err));
		child_close(c);
		return -err;
	}
	*pid = fork();
	if (*pid == 0)
		wait_and_exec(c, o, files);
	if (*pid < 0) {
		err = errno;
		sink->warn(sink, "cannot fork: %s", strerror(err));
		child_close(c);
		return -err;
	}
	close(c->error_pipe[1]);
	c->error_pipe[1] = -1;
	return 0;
}

bool child_is_held(const struct child *c)
{
	return c->start_pipe[1] >= 0;
}

void child_release(struct child *c)
{
	while (write(c->start_pipe[1], "g", 1) < 0 && errno == EINTR)
		;
	close_pipe(c->start_pipe);
}

int child_exec_errno(struct child *c)
{
	int err = 0;

	if (read(c->error_pipe[0], &err, sizeof(err)) != sizeof(err))
		err = ECHILD;
	child_close(c);
	return err;
}
