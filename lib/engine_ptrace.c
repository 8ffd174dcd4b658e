/* SPDX-License-Identifier: MIT */
/*
 * The engine that needs no privileges: stop every thread at the entry and at the exit of each call.
 *
 * A thread is seized, not attached to: group stops are then told apart from signals, and nothing
 * the program sees is faked. What each stop means is in ptrace(2); the cases that took care:
 *  - a new thread may report before or after its parent reports the clone, and even end before;
 *  - exec by a thread that is no leader: it goes on under the leader's number, the old number is in
 *    the event's message, and its peers vanish;
 *  - exit_group and SIGKILL end threads with a call still open: it is counted as never returning;
 *  - a stopped sleep comes back as the call restart_syscall, counted apart, as strace does.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/ptrace_engine.h"
#include "lib/watch_signals.h"

/* Which process a thread of which we know nothing belongs to; it is made if it is new. */
static struct task *adopt(struct session *s, pid_t tid, const struct proc *parent)
{
	struct proc_status st = {.tgid = tid};
	struct proc *p;

	/* Cheaper than /proc, and true of a dead thread too. */
	if (parent && !tgkill(parent->pid, tid, 0))
		st.tgid = parent->pid;
	else if (!parent && !procfs_status(tid, &st))
		parent = tree_proc(&s->tree, st.ppid);
	p = tree_proc(&s->tree, st.tgid);
	if (!p)
		p = tree_add_proc(&s->tree, st.tgid, parent);
	return p ? tree_add_task(&s->tree, p, tid) : NULL;
}

/* Without memory it will be taken for a new one that ends unseen. */
static void keep_early(struct session *s, pid_t tid)
{
	if (s->nr_early == s->max_early) {
		size_t max = s->max_early ? 2 * s->max_early : 16;
		pid_t *more = realloc(s->early, max * sizeof(*more));

		if (!more)
			return;
		s->early = more;
		s->max_early = max;
	}
	s->early[s->nr_early++] = tid;
}

/* Whether a thread that is told of now has come and gone already. */
static bool was_early(struct session *s, pid_t tid)
{
	for (size_t i = 0; i < s->nr_early; i++)
		if (s->early[i] == tid) {
			s->early[i] = s->early[--s->nr_early];
			return true;
		}
	return false;
}

static void on_clone(struct session *s, struct task *k)
{
	unsigned long tid;
	struct task *born;

	/* From now on its resource usage may contain a child's: its own is read before its end. */
	ptrace_want_exit_stop(k);
	if (ptrace(PTRACE_GETEVENTMSG, k->tid, 0, &tid))
		return;
	born = tree_task(&s->tree, (pid_t)tid);
	if (born)
		born->unclaimed = false;
	else if (!was_early(s, (pid_t)tid) && !adopt(s, (pid_t)tid, k->proc))
		s->tree.sink->warn(s->tree.sink, "no memory to follow pid %lu", tid);
}

static void warn_setid(struct session *s, pid_t pid)
{
	char comm[16] = "";

	if (!geteuid() || !procfs_is_setid(pid))
		return;
	procfs_comm(pid, comm);
	s->tree.sink->warn(
		s->tree.sink,
		"pid %d, %s, is a set-user-ID or set-group-ID program: while it is watched "
		"without privileges it runs without its own",
		pid, comm);
}

/* k is the leader's number; the thread that called execve may have had another. */
static void on_exec(struct session *s, pid_t tid)
{
	struct task *k = tree_task(&s->tree, tid), *caller;
	unsigned long former = (unsigned long)tid;
	struct proc *p = k ? k->proc : NULL;

	ptrace(PTRACE_GETEVENTMSG, tid, 0, &former);
	caller = tree_task(&s->tree, (pid_t)former);
	if (!p && caller)
		p = caller->proc;
	if (!p)
		return;
	if (caller && caller != k) {
		struct task was = *caller;

		/* The leader's own call ends here; the caller's goes on under the leader's number. */
		caller->in_call = false;
		if (k)
			tree_del_task(&s->tree, k);
		k = tree_add_task(&s->tree, p, tid);
		if (!k)
			return;
		p->threads_seen--;
		s->tree.threads_seen--;
		k->in_call = was.in_call;
		k->abi = was.abi;
		k->nr = was.nr;
		k->enter_ns = was.enter_ns;
	}
	tree_keep_only(&s->tree, p, k);
	p->exec_pending = true;
	warn_setid(s, p->pid);
}

static void on_exit_event(struct session *s, struct task *k)
{
	k->proc->exiting += !k->exiting;
	k->exiting = true;
	/* The last chance to ask: the thread is alive, and so is its memory. */
	if (k->proc->exiting == k->proc->threads && s->root_runs) {
		proc_refresh(k->proc, k->tid);
		k->proc->final_look = true;
	}
}

static void resume(struct session *s, pid_t tid, int how, int sig)
{
	if (s->detaching) {
		struct task *k = tree_task(&s->tree, tid);

		ptrace(PTRACE_DETACH, tid, 0, sig);
		if (k)
			tree_del_task(&s->tree, k);
		return;
	}
	/* ESRCH: killed meanwhile; its end will be reported. */
	ptrace(how, tid, 0, sig);
}

static bool is_stop_signal(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

static void on_stop(struct session *s, pid_t tid, int status, uint64_t stop_ns)
{
	struct task *k = tree_task(&s->tree, tid);
	int sig = WSTOPSIG(status), how = PTRACE_SYSCALL, deliver = 0;

	switch (status >> 16) {
	case 0:
		if (sig == (SIGTRAP | 0x80) && k)
			ptrace_syscall_stop(s, k, stop_ns);
		else if (sig != (SIGTRAP | 0x80))
			deliver = sig;
		break;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		if (k && !s->detaching)
			on_clone(s, k);
		break;
	case PTRACE_EVENT_EXEC:
		on_exec(s, tid);
		break;
	case PTRACE_EVENT_EXIT:
		if (k)
			on_exit_event(s, k);
		break;
	case PTRACE_EVENT_STOP:
		if (is_stop_signal(sig))
			how = PTRACE_LISTEN;
		else if (!k && !s->detaching) {
			k = adopt(s, tid, NULL);
			if (k)
				k->unclaimed = true;
		}
		break;
	}
	resume(s, tid, how, how == PTRACE_LISTEN ? 0 : deliver);
}

static uint64_t to_ns(struct timeval tv)
{
	return (uint64_t)tv.tv_sec * 1000000000u + (uint64_t)tv.tv_usec * 1000u;
}

static void on_end(struct session *s, pid_t tid, int status, const struct rusage *ru)
{
	struct task *k = tree_task(&s->tree, tid);
	struct proc *p;

	if (tid == s->tree.root)
		s->res->wait_status = status;
	if (!k)
		return;
	p = k->proc;
	if (k->unclaimed)
		keep_early(s, tid);
	tree_del_task(&s->tree, k);
	/* A leader is reported when its last thread is gone. */
	if (tid != p->pid)
		return;
	if (p->pid == s->tree.root)
		s->root_gone = true;
	if (!s->root_runs)
		return;
	/* It had no children, or it would have been looked at before. */
	if (!p->exit_stop && ru) {
		p->user_ns = to_ns(ru->ru_utime);
		p->system_ns = to_ns(ru->ru_stime);
		p->has_cpu = true;
	} else if (!p->final_look) {
		p->has_cpu = false;
	}
	tree_end_proc(&s->tree, p, status);
}

/* End the watch: what was counted so far is handed out, the program goes on untraced. */
static void let_go(struct session *s, int sig)
{
	s->res->interrupted = sig;
	tree_finish(&s->tree, RTS_INTERRUPTED, s->root_gone ? s->res->wait_status : -1);
	s->detaching = true;
	/* A thread can be let go of only while it is stopped. */
	for (size_t i = 0; i < TREE_HASH; i++)
		for (struct task *k = s->tree.hash[i]; k; k = k->next)
			ptrace(PTRACE_INTERRUPT, k->tid, 0, 0);
}

static void on_signals(struct session *s)
{
	struct watch_news n = watch_take();

	if (s->detaching) {
		s->gave_up = n.end != 0;
		return;
	}
	/* Before its exec there is nothing to tell of the program. */
	if (n.snapshot && s->res->started)
		tree_snapshot(&s->tree, RTS_SIGNAL);
	if (n.interval && s->res->started)
		tree_snapshot(&s->tree, RTS_INTERVAL);
	if (!n.end)
		return;
	/* A program of ours gets it, unless the terminal has told it; it may want to end in peace. */
	if (s->opts->argv && !s->root_gone && !n.from_terminal)
		kill(s->tree.root, n.end);
	if (n.again || s->root_gone || !s->opts->argv)
		let_go(s, n.end);
}

/* Signals that came while nothing was waited for are looked at before the next wait. */
static void watch(struct session *s)
{
	while (s->tree.nr_tasks && !s->gave_up) {
		struct rusage ru = {0};
		int status;
		pid_t tid;
		bool met = s->died.tid != 0;

		if (watch_pending)
			on_signals(s);
		tid = s->died.tid;
		status = s->died.status;
		s->died.tid = 0;
		if (!met)
			tid = wait4(-1, &status, __WALL, &ru);
		if (tid < 0 && errno != EINTR)
			break;
		if (tid < 0)
			continue;
		s->stop_cpu_ns = to_ns(ru.ru_utime) + to_ns(ru.ru_stime);
		if (WIFSTOPPED(status))
			on_stop(s, tid, status, now_ns());
		else
			on_end(s, tid, status, met ? NULL : &ru);
		/* Our child is held back until it is where its calls are seen. */
		if (child_is_held(&s->child))
			child_release(&s->child);
	}
}

static int begin(struct session *s)
{
	struct rts_engine *e = &s->tree.engine;
	const struct run_opts *o = s->opts;
	int ret;

	ptrace_calls_init();
	e->name = engine_ptrace.name;
	e->cannot_see = engine_ptrace.cannot_see;
	e->split =
		o->no_split ?
			NULL :
			"resource usage at stops to 1 us, schedstat while there are several threads";
	if (o->no_split)
		e->split_absent = "not asked for";
	else if (!procfs_has_schedstat()) {
		e->split = NULL;
		e->split_absent = "this kernel has no /proc/PID/schedstat";
	}
	e->has_pin = o->pin_cpu >= 0;
	e->pinned_cpu = (uint32_t)o->pin_cpu;
	ret = watch_start(o->snapshot_signal, o->interval_ns);
	if (ret) {
		s->tree.sink->warn(s->tree.sink, "cannot make a timer: %s", strerror(-ret));
		return ret;
	}
	if (o->pin_cpu >= 0)
		child_pin(o->pin_cpu);
	e->has_cost = ptrace_calibrate(e->split != NULL, &e->cost_ns);
	return o->argv ? ptrace_start(s) : ptrace_attach(s);
}

static int run(const struct run_opts *o, struct run_sink *sink, struct run_result *res)
{
	static struct session s;
	int ret;

	s = (struct session){.opts = o, .res = res, .child = CHILD_INIT};
	*res = (struct run_result){.wait_status = -1, .started = !o->argv};
	s.tree.sink = sink;
	ret = begin(&s);
	if (!ret)
		watch(&s);
	if (!ret && !res->started && !res->interrupted)
		res->exec_errno = child_exec_errno(&s.child);
	if (!ret && res->started && !res->interrupted)
		tree_finish(&s.tree, RTS_EXIT, res->wait_status);
	tree_free(&s.tree);
	free(s.early);
	watch_stop();
	return ret;
}

const struct run_engine engine_ptrace = {
	.name = "ptrace",
	.cannot_see =
		"times include two hand-overs to the watcher; calls that the vDSO serves are unseen",
	.run = run,
};
