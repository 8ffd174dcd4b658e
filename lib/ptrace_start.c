/* SPDX-License-Identifier: MIT */
/* How the ptrace engine gets hold of a program: start it, attach to it, or say why not. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/ptrace_engine.h"

/* A descriptor a thread is wanted: take what the hard limit gives. The program gets the old limit. */
static void raise_files(struct rlimit *old)
{
	struct rlimit rl;

	getrlimit(RLIMIT_NOFILE, old);
	rl = *old;
	rl.rlim_cur = rl.rlim_max;
	setrlimit(RLIMIT_NOFILE, &rl);
}

/* Why a process cannot be traced, as far as /proc and Yama tell. */
static void explain(struct run_sink *sink, pid_t pid, int err)
{
	struct proc_status st = {0}, tracer = {0}, own = {0};
	char comm[16] = "", scope[8] = "0", why[128];
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, scope, sizeof(scope) - 1) < 0)
			scope[0] = '0';
		close(fd);
	}
	procfs_status(pid, &st);
	if (procfs_is_no_process(pid, why, sizeof(why)))
		sink->warn(sink, "%s", why);
	else if (err == ESRCH)
		sink->warn(sink, "no process has the pid %d", pid);
	else if (st.tracer && !procfs_status(st.tracer, &tracer)) {
		procfs_comm(st.tracer, comm);
		sink->warn(sink,
			   "pid %d is traced by %s (pid %d) already: a process has one tracer", pid,
			   comm, st.tracer);
	} else if (geteuid() && st.uid != geteuid())
		sink->warn(sink, "pid %d belongs to user %u: attach as that user, or as root", pid,
			   st.uid);
	else if (scope[0] != '0')
		sink->warn(
			sink, "pid %d: Yama forbids to attach (kernel.yama.ptrace_scope is %c): %s",
			pid, scope[0],
			scope[0] == '1' ? "start the program with `statpage run`, attach as root, "
					  "or set it to 0" :
			scope[0] == '2' ? "attach as root" :
					  "only a reboot changes that");
	else
		sink->warn(
			sink, "pid %d cannot be traced: %s%s", pid, strerror(err),
			err == EPERM && !procfs_status(getpid(), &own) && own.seccomp ?
				"; the seccomp filter that statpage runs under may forbid it, as that "
				"of a container" :
				"");
}

static int seize(struct session *s, pid_t tid)
{
	int err;

	if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_OPTIONS)) {
		err = errno;
		explain(s->tree.sink, tid, err);
		return -err;
	}
	/* The first stop; from there it goes from call to call. */
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	return 0;
}

/* End a child of ours. It is traced, so it may report stops before its end: it is let through them. */
static void end_child(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	for (;;) {
		if (waitpid(pid, &status, __WALL) < 0) {
			if (errno != EINTR)
				return;
		} else if (WIFSTOPPED(status)) {
			ptrace(PTRACE_CONT, pid, 0, 0);
		} else {
			return;
		}
	}
}

static int add_root(struct session *s, pid_t pid)
{
	struct proc *p;

	s->tree.root = pid;
	s->tree.start_ns = now_ns();
	p = tree_add_proc(&s->tree, pid, NULL);
	s->tree.root_ppid = p ? p->ppid : 0;
	return p && tree_add_task(&s->tree, p, pid) ? 0 : -ENOMEM;
}

int ptrace_start(struct session *s)
{
	struct rlimit files;
	pid_t pid;
	int ret;

	raise_files(&files);
	ret = child_fork(&s->child, s->opts, &files, s->tree.sink, &pid);
	if (ret)
		return ret;
	ret = seize(s, pid);
	if (!ret)
		ret = add_root(s, pid);
	if (ret) {
		child_close(&s->child);
		end_child(pid);
	}
	return ret;
}

/* Seize the threads that /proc lists now. New ones found, or -errno. */
static int seize_threads(struct session *s, struct proc *p)
{
	char path[64];
	struct dirent *d;
	int found = 0, ret = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", p->pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (!ret && (d = readdir(dir))) {
		pid_t tid = atoi(d->d_name);

		if (tid <= 0 || tree_task(&s->tree, tid))
			continue;
		/* A thread that a seized one has made meanwhile is traced already; it will report. */
		if (!ptrace(PTRACE_SEIZE, tid, 0, PTRACE_OPTIONS)) {
			ptrace(PTRACE_INTERRUPT, tid, 0, 0);
			found++;
			if (!tree_add_task(&s->tree, p, tid))
				ret = -ENOMEM;
		}
	}
	closedir(dir);
	return ret ? ret : found;
}

int ptrace_attach(struct session *s)
{
	struct rlimit files;
	char why[128];
	int ret;

	/* The kernel would seize a thread alone. */
	if (procfs_is_no_process(s->opts->attach, why, sizeof(why))) {
		s->tree.sink->warn(s->tree.sink, "%s", why);
		return -ESRCH;
	}
	raise_files(&files);
	ret = seize(s, s->opts->attach);
	if (ret)
		return ret;
	ret = add_root(s, s->opts->attach);
	if (ret)
		return ret;
	s->root_runs = true;
	tree_set_command(&s->tree, s->tree.procs);
	do {
		ret = seize_threads(s, s->tree.procs);
	} while (ret > 0);
	return ret;
}

enum { WARM_UP = 8, MEASURED = 32 };

/* Walk the child from call to call as the engine does, until stop number n. */
static bool walk(struct session *s, struct task *k, int n)
{
	struct rusage ru;
	int status;

	for (int i = 0; i < n;) {
		if (wait4(k->tid, &status, __WALL, &ru) < 0 && errno == EINTR)
			continue;
		if (!WIFSTOPPED(status))
			return false;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			ptrace_syscall_stop(s, k, now_ns());
			i++;
		}
		if (ptrace(PTRACE_SYSCALL, k->tid, 0, 0))
			return false;
	}
	return true;
}

static void nop_record(struct run_sink *s, const struct rts_record *r)
{
	(void)s;
	(void)r;
}

static void nop_warn(struct run_sink *s, const char *fmt, ...)
{
	(void)s;
	(void)fmt;
}

bool ptrace_calibrate(bool split, uint64_t *cost_ns)
{
	struct run_sink sink = {nop_record, nop_warn};
	struct session s = {.root_runs = true, .tree = {.sink = &sink}};
	uint64_t plain, traced = 0;
	bool ok = false;
	pid_t self = getpid(), pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == self)
			;
		_exit(0);
	}
	if (pid < 0)
		return false;
	plain = now_ns();
	for (int i = 0; i < MEASURED; i++)
		getppid();
	plain = now_ns() - plain;
	s.tree.engine.split = split ? "as the run" : NULL;
	if (!seize(&s, pid) && !add_root(&s, pid)) {
		struct task *k = tree_task(&s.tree, pid);

		ok = walk(&s, k, 2 * WARM_UP);
		traced = now_ns();
		ok = ok && walk(&s, k, 2 * MEASURED);
		traced = now_ns() - traced;
	}
	end_child(pid);
	tree_free(&s.tree);
	*cost_ns = (traced > plain ? traced - plain : 0) / MEASURED;
	return ok;
}
