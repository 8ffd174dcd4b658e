/* SPDX-License-Identifier: MIT */
/* What the ptrace engine learns at the entry and at the exit of a call. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/kvm.h>
#include <sched.h>
#include <string.h>

#include "lib/kvm_watch.h"
#include "lib/procfs.h"
#include "lib/ptrace_engine.h"
#include "lib/ptrace_inject.h"
#include "lib/syscalls.h"

#define X32_BIT 0x40000000u

/* Calls that tell us more than their time. */
enum special { PLAIN, EXEC, WAIT, CLONE, CLONE3, NAMESPACE, RENAME, MEMFD, IOCTL, CLOSE };

static uint8_t specials[RTS_NR_ABIS][1024];

void ptrace_calls_init(void)
{
	static const struct {
		const char *name;
		enum special what;
	} known[] = {
		{"execve", EXEC},	 {"execveat", EXEC},	 {"clone", CLONE},
		{"clone3", CLONE3},	 {"unshare", NAMESPACE}, {"setns", NAMESPACE},
		{"prctl", RENAME},	 {"close", CLOSE},	 {"ioctl", IOCTL},
		{"dup2", CLOSE},	 {"dup3", CLOSE},	 {"close_range", CLOSE},
		{"memfd_create", MEMFD}, {"wait4", WAIT},	 {"waitid", WAIT},
		{"waitpid", WAIT},
	};

	for (enum rts_abi abi = 0; abi < RTS_ABI_OTHER; abi++)
		for (uint32_t nr = 0; nr < sys_count(abi) && nr < sizeof(specials[0]); nr++)
			for (size_t i = 0;
			     sys_name(abi, nr) && i < sizeof(known) / sizeof(known[0]); i++)
				if (!strcmp(sys_name(abi, nr), known[i].name))
					specials[abi][nr] = (uint8_t)known[i].what;
}

static enum special special(const struct task *k)
{
	return k->nr < sizeof(specials[0]) ? (enum special)specials[k->abi][k->nr] : PLAIN;
}

/*
 * The thread's time on CPU. A process of one thread has it in the resource usage that came with the
 * stop, at no price, but not while it may collect a child's; then its clock is asked; and with
 * several threads the thread's schedstat. The thread is stopped, so all of them are up to date.
 */
static enum cpu_source best_source(const struct task *k)
{
	enum special what = special(k);

	if (k->proc->threads > 1 || what == CLONE || what == CLONE3)
		return BY_SCHEDSTAT;
	return what == WAIT ? BY_CLOCK : BY_STOP;
}

static enum cpu_source read_cpu(struct session *s, struct task *k, enum cpu_source want,
				uint64_t *ns)
{
	if (want == BY_STOP) {
		*ns = s->stop_cpu_ns;
		return BY_STOP;
	}
	if (want == BY_CLOCK)
		return procfs_cpu_sum(k->proc->pid, ns) ? BY_CLOCK : NO_CPU;
	if (k->schedstat == NOT_OPEN) {
		k->schedstat = procfs_open_schedstat(k->tid);
		s->tree.unsplit_threads += k->schedstat < 0;
	}
	return procfs_read_schedstat(k->schedstat, ns) ? BY_SCHEDSTAT : NO_CPU;
}

void ptrace_want_exit_stop(struct task *k)
{
	k->proc->exit_stop = true;
	if (!k->exit_stop &&
	    !ptrace(PTRACE_SETOPTIONS, k->tid, 0, PTRACE_OPTIONS | PTRACE_O_TRACEEXIT))
		k->exit_stop = true;
}

static void set_call(struct task *k, const struct __ptrace_syscall_info *si)
{
	k->nr = (uint32_t)si->entry.nr;
	k->args[0] = si->entry.args[0];
	k->args[1] = si->entry.args[1];
	k->abi =
		si->arch == AUDIT_ARCH_I386 ?
			RTS_ABI_I386 :
		si->arch != AUDIT_ARCH_X86_64 ?
			RTS_ABI_OTHER :
			/* -1, which seccomp and tracers use to skip a call, has the x32 bit too. */
			(k->nr & X32_BIT) && k->nr != UINT32_MAX ? RTS_ABI_X32 :
								   RTS_ABI_X86_64;
	if (k->abi == RTS_ABI_X32)
		k->nr &= ~X32_BIT;
}

static void enter_call(struct session *s, struct task *k, const struct __ptrace_syscall_info *si)
{
	uint64_t flags = si->entry.args[0];

	set_call(k, si);
	switch (special(k)) {
	case EXEC:
		if (!s->root_runs)
			s->tree.start_ns = k->proc->start_ns = now_ns();
		s->root_runs = true;
		/* If it succeeds the old program's memory is gone. */
		proc_look(k->proc, k->tid);
		break;
	case CLONE3:
		errno = 0;
		flags = (uint64_t)ptrace(PTRACE_PEEKDATA, k->tid, flags, 0);
		if (errno)
			break;
		/* fallthrough */
	case CLONE:
		/* A child of its own namespace is asked for its pid there. */
		s->tree.pid_namespaces |= (flags & CLONE_NEWPID) != 0;
		break;
	case IOCTL:
		kvm_watch_ioctl(&k->proc->kvm, (int)k->args[0], k->args[1]);
		break;
	default:
		break;
	}
	/* Our own child's calls before its exec are not the program's. */
	if (!s->root_runs)
		return;
	k->in_call = true;
	calls_enter(&k->proc->calls);
	k->cpu_source = NO_CPU;
	if (s->tree.engine.split)
		k->cpu_source = read_cpu(s, k, best_source(k), &k->enter_cpu_ns);
	k->enter_ns = now_ns();
}

/* Fetch KVM's statistics of a virtual CPU seen for the first time, if that was asked for. */
static void kvm_statistics(struct session *s, struct task *k)
{
	struct kvm_watch *w = k->proc->kvm;
	int fd = (int)k->args[0], got, status = 0;
	const char *why = NULL;

	if (!kvm_watch_wants_stats(w, fd))
		return;
	ptrace_want_exit_stop(k);
	if (!s->opts->kvm_stats) {
		kvm_watch_give_stats(w, fd, -1, false, "not asked for: --kvm-stats");
		return;
	}
	got = ptrace_take_fd(k->tid, fd, KVM_GET_STATS_FD, &status, &why);
	kvm_watch_give_stats(w, fd, got, !s->opts->argv, why);
	if (status)
		s->died = (struct death){k->tid, status};
}

/* What a call that returned tells us. */
static void note_call(struct session *s, struct task *k, bool is_error, int64_t ret, uint64_t ns)
{
	switch (special(k)) {
	case RENAME:
		k->proc->comm_stale = true;
		ptrace_want_exit_stop(k);
		break;
	case MEMFD:
		k->proc->has_page |= !is_error;
		ptrace_want_exit_stop(k);
		break;
	case NAMESPACE:
		s->tree.pid_namespaces = true;
		break;
	case IOCTL:
		kvm_watch_ioctl_done(k->proc->kvm, k->proc->pid, (int)k->args[0], k->args[1],
				     is_error ? (int)-ret : 0, ns);
		kvm_statistics(s, k);
		break;
	case CLOSE:
		kvm_watch_closed(k->proc->kvm);
		break;
	default:
		break;
	}
}

static void leave_call(struct session *s, struct task *k, const struct __ptrace_syscall_info *si,
		       uint64_t stop_ns)
{
	struct sample sample = {
		.abi = k->abi,
		.nr = k->nr,
		.err = si->exit.is_error ? (uint32_t)-si->exit.rval : 0,
		.ns = stop_ns - k->enter_ns,
	};
	uint64_t cpu;

	k->in_call = false;
	if (stop_ns < k->enter_ns) {
		k->proc->calls.lost.clock_back++;
		return;
	}
	if (k->cpu_source && read_cpu(s, k, k->cpu_source, &cpu) && cpu >= k->enter_cpu_ns) {
		sample.has_split = true;
		sample.on_cpu_ns = cpu - k->enter_cpu_ns;
	}
	calls_return(&k->proc->calls, &sample);
	note_call(s, k, si->exit.is_error, si->exit.rval, sample.ns);
}

/* The program that was asked for runs now: what we know of it so far is our own child. */
static void root_executed(struct session *s, struct proc *p)
{
	proc_reread(p);
	p->has_page = false;
	tree_set_command(&s->tree, p);
	s->res->started = true;
}

void ptrace_syscall_stop(struct session *s, struct task *k, uint64_t stop_ns)
{
	struct __ptrace_syscall_info si;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, k->tid, sizeof(si), &si) <= 0)
		return;
	/* What one thread found worth a stop the others report, too. */
	if (k->proc->exit_stop && !k->exit_stop)
		ptrace_want_exit_stop(k);
	if (si.op == PTRACE_SYSCALL_INFO_ENTRY) {
		enter_call(s, k, &si);
	} else if (si.op == PTRACE_SYSCALL_INFO_EXIT && k->in_call) {
		leave_call(s, k, &si, stop_ns);
		if (!k->proc->exec_pending)
			return;
		/* Only here has the successful execve been counted: with the old program. */
		k->proc->exec_pending = false;
		if (k->proc->pid == s->tree.root && !s->res->started && s->opts->argv)
			root_executed(s, k->proc);
		else
			tree_exec_proc(&s->tree, k->proc);
	}
}
