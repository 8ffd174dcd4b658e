/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/ptrace_inject.h"

enum { SYSCALL_INSN = 2, CS_64BIT = 0x33 };

struct thread {
	pid_t tid;
	struct user_regs_struct regs; /* as they were */
	bool stop_pending;	      /* a SIGSTOP came in between: it cannot be blocked */
	int end;		      /* wait status, once it died */
};

/* Go on to the next entry or exit of a call. */
static bool step(struct thread *t)
{
	for (;;) {
		int status;

		if (ptrace(PTRACE_SYSCALL, t->tid, 0, 0))
			return false;
		while (waitpid(t->tid, &status, __WALL) < 0)
			if (errno != EINTR)
				return false;
		if (!WIFSTOPPED(status)) {
			t->end = status;
			return false;
		}
		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			return true;
		if (status >> 16 == PTRACE_EVENT_EXIT)
			continue;
		t->stop_pending |= WSTOPSIG(status) == SIGSTOP;
	}
}

static bool call(struct thread *t, long nr, uint64_t a, uint64_t b, int64_t *ret)
{
	struct user_regs_struct regs = t->regs;

	/* The instruction that made the call that just returned makes this one. */
	regs.rip -= SYSCALL_INSN;
	regs.rax = (uint64_t)nr;
	regs.rdi = a;
	regs.rsi = b;
	if (ptrace(PTRACE_SETREGS, t->tid, 0, &regs) || !step(t) || !step(t) ||
	    ptrace(PTRACE_GETREGS, t->tid, 0, &regs))
		return false;
	*ret = (int64_t)regs.rax;
	return true;
}

static int take(struct thread *t, int fd, unsigned long request, const char **why)
{
	int64_t theirs, closed;
	int mine = -1, pidfd;

	if (!call(t, SYS_ioctl, (uint64_t)fd, request, &theirs)) {
		*why = "the call inside the program did not come back";
		return -1;
	}
	if (theirs < 0) {
		*why = "this kernel's KVM gives no statistics descriptor";
		return -1;
	}
	pidfd = (int)syscall(SYS_pidfd_open, t->tid, 0);
	if (pidfd < 0) {
		/* A thread that is no leader: ask for its process. */
		struct proc_status st;

		if (!procfs_status(t->tid, &st))
			pidfd = (int)syscall(SYS_pidfd_open, st.tgid, 0);
	}
	if (pidfd >= 0) {
		mine = (int)syscall(SYS_pidfd_getfd, pidfd, theirs, 0);
		close(pidfd);
	}
	if (mine < 0)
		*why = "the descriptor could not be taken from the program";
	call(t, SYS_close, (uint64_t)theirs, 0, &closed);
	return mine;
}

int ptrace_take_fd(pid_t tid, int fd, unsigned long request, int *status, const char **why)
{
	struct thread t = {.tid = tid};
	struct proc_status st;
	uint64_t mask, all = ~0ull;
	int mine;

	*status = 0;
	if (procfs_status(tid, &st) || st.seccomp) {
		*why = "the program has a seccomp filter: no call is made inside it";
		return -1;
	}
	if (ptrace(PTRACE_GETREGS, tid, 0, &t.regs) || t.regs.cs != CS_64BIT) {
		*why = "the program is not a 64-bit one";
		return -1;
	}
	if (ptrace(PTRACE_GETSIGMASK, tid, sizeof(mask), &mask) ||
	    ptrace(PTRACE_SETSIGMASK, tid, sizeof(all), &all)) {
		*why = "the program's signal mask could not be set";
		return -1;
	}
	mine = take(&t, fd, request, why);
	if (t.end) {
		*status = t.end;
		return mine;
	}
	ptrace(PTRACE_SETREGS, tid, 0, &t.regs);
	ptrace(PTRACE_SETSIGMASK, tid, sizeof(mask), &mask);
	if (t.stop_pending)
		kill(st.tgid, SIGSTOP);
	return mine;
}
