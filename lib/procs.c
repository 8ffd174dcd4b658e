/* SPDX-License-Identifier: MIT */
#include <linux/kvm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/counters_view.h"
#include "lib/kvm_watch.h"
#include "lib/procfs.h"
#include "lib/procs.h"
#include "lib/syscalls.h"

#define MAX_CMDLINE   65536 /* bytes of a command line that are kept */
#define MAX_IN_FLIGHT 256   /* listed in a record; more are counted */

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static struct cmdline *cmdline_get(struct cmdline *c)
{
	if (c)
		c->refs++;
	return c;
}

static void cmdline_put(struct cmdline *c)
{
	if (!c || --c->refs)
		return;
	free(c->argv);
	free(c);
}

static struct cmdline *cmdline_new(const char *text, size_t n, bool cut)
{
	struct cmdline *c = malloc(sizeof(*c) + n + 1);
	size_t argc = 0;

	if (!c)
		return NULL;
	*c = (struct cmdline){.refs = 1, .cut = cut};
	memcpy(c->text, text, n);
	c->text[n] = '\0';
	for (size_t i = 0; i < n; i++)
		argc += !c->text[i];
	if (n && c->text[n - 1])
		argc++;
	c->argv = calloc(argc + 1, sizeof(*c->argv));
	if (!c->argv) {
		free(c);
		return NULL;
	}
	for (char *p = c->text; c->argc < argc; p += strlen(p) + 1)
		c->argv[c->argc++] = p;
	return c;
}

static struct cmdline *cmdline_read(pid_t pid)
{
	static char text[MAX_CMDLINE + 1];
	ssize_t n = procfs_read(pid, "cmdline", text, sizeof(text));

	return n < 0 ? NULL : cmdline_new(text, (size_t)n, n == MAX_CMDLINE);
}

struct task *tree_task(const struct tree *t, pid_t tid)
{
	struct task *k = t->hash[(unsigned int)tid % TREE_HASH];

	while (k && k->tid != tid)
		k = k->next;
	return k;
}

struct task *tree_add_task(struct tree *t, struct proc *p, pid_t tid)
{
	struct task *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->tid = tid;
	k->proc = p;
	k->schedstat = NOT_OPEN;
	k->next = t->hash[(unsigned int)tid % TREE_HASH];
	t->hash[(unsigned int)tid % TREE_HASH] = k;
	t->nr_tasks++;
	p->threads++;
	p->threads_seen++;
	t->threads_seen++;
	return k;
}

void tree_del_task(struct tree *t, struct task *k)
{
	struct task **at = &t->hash[(unsigned int)k->tid % TREE_HASH];

	while (*at != k)
		at = &(*at)->next;
	*at = k->next;
	t->nr_tasks--;
	k->proc->threads--;
	k->proc->exiting -= k->exiting;
	if (k->in_call)
		calls_never_return(&k->proc->calls, k->abi, k->nr);
	if (k->schedstat >= 0)
		close(k->schedstat);
	free(k);
}

void tree_keep_only(struct tree *t, struct proc *p, const struct task *keep)
{
	for (size_t i = 0; i < TREE_HASH; i++) {
		struct task *next;

		for (struct task *k = t->hash[i]; k; k = next) {
			next = k->next;
			if (k->proc == p && k != keep)
				tree_del_task(t, k);
		}
	}
}

struct proc *tree_proc(const struct tree *t, pid_t pid)
{
	struct proc *p = t->procs;

	while (p && p->pid != pid)
		p = p->next;
	return p;
}

struct proc *tree_add_proc(struct tree *t, pid_t pid, const struct proc *parent)
{
	struct proc *p = calloc(1, sizeof(*p));
	struct proc_status st;

	if (!p)
		return NULL;
	p->pid = p->ns_pid = pid;
	p->start_ns = now_ns();
	if (parent) {
		p->ppid = parent->pid;
		memcpy(p->comm, parent->comm, sizeof(p->comm));
		p->comm_stale = parent->comm_stale;
		p->cmd = cmdline_get(parent->cmd);
		p->has_page = parent->has_page;
	} else {
		p->cmd = cmdline_read(pid);
		p->comm_stale = true;
		p->has_page = true;
	}
	if ((!parent || t->pid_namespaces) && !procfs_status(pid, &st)) {
		p->ppid = st.ppid;
		p->ns_pid = st.ns_pid;
		t->pid_namespaces |= st.ns_pid != pid;
	}
	p->next = t->procs;
	t->procs = p;
	t->procs_seen++;
	return p;
}

void proc_set_cmdline(struct proc *p, const char *text, size_t n, bool cut)
{
	cmdline_put(p->cmd);
	p->cmd = cmdline_new(text, n, cut);
}

void proc_reread(struct proc *p)
{
	cmdline_put(p->cmd);
	p->cmd = cmdline_read(p->pid);
	procfs_comm(p->pid, p->comm);
	p->comm_stale = false;
}

void proc_look(struct proc *p, pid_t tid)
{
	if (p->comm_stale)
		procfs_comm(p->pid, p->comm);
	p->comm_stale = false;
	if (p->has_page)
		counters_view_read(tid, p->ns_pid, &p->page);
}

void proc_refresh(struct proc *p, pid_t tid)
{
	proc_look(p, tid);
	if (procfs_cpu(p->pid, &p->user_ns, &p->system_ns))
		p->has_cpu = true;
	kvm_watch_refresh(p->kvm);
}

/* Open calls of p's threads, or of everybody's; what does not fit in v is counted in the ledger. */
static void list_in_flight(const struct tree *t, const struct proc *p, struct rts_inflight *v,
			   struct rts_record *r)
{
	for (size_t i = 0; i < TREE_HASH; i++) {
		for (const struct task *k = t->hash[i]; k; k = k->next) {
			if (!k->in_call || (p && k->proc != p))
				continue;
			if (r->nr_in_flight == MAX_IN_FLIGHT) {
				r->lost.in_flight_unlisted++;
				continue;
			}
			v[r->nr_in_flight++] = (struct rts_inflight){
				k->tid, k->abi, k->nr, sys_name(k->abi, k->nr),
				r->time_ns > k->enter_ns ? r->time_ns - k->enter_ns : 0};
		}
	}
	r->in_flight = v;
}

/* Run calls that have not come back; they are in r's open calls too, as ioctl. */
static uint32_t open_run_calls(const struct tree *t, const struct proc *p)
{
	uint32_t n = 0;

	for (size_t i = 0; i < TREE_HASH; i++)
		for (const struct task *k = t->hash[i]; k; k = k->next)
			n += k->in_call && (!p || k->proc == p) && k->args[1] == KVM_RUN &&
			     !strcmp(sys_name(k->abi, k->nr) ? sys_name(k->abi, k->nr) : "",
				     "ioctl");
	return n;
}

/* The text of which threads had no split; what the engine says of itself is for its whole run. */
static const struct rts_engine *engine_now(struct tree *t)
{
	if (t->engine.split && t->unsplit_threads) {
		struct rts_buf b = {.p = t->split_absent, .cap = sizeof(t->split_absent) - 1};

		rts_put_u64(&b, t->unsplit_threads);
		rts_put(&b, " threads found no descriptor: raise the limit on open files");
		b.p[b.len] = '\0';
		t->engine.split_absent = t->split_absent;
	}
	return &t->engine;
}

static void set_command(struct rts_record *r, const struct cmdline *c)
{
	if (!c)
		return;
	r->argv = (const char *const *)c->argv;
	r->argc = c->argc;
	r->argv_cut = c->cut;
}

static void set_exit(struct rts_record *r, int wait_status)
{
	if (wait_status == -1)
		return;
	r->has_exit = true;
	if (WIFSIGNALED(wait_status)) {
		r->exit_signal = WTERMSIG(wait_status);
		r->core_dumped = WCOREDUMP(wait_status);
	} else {
		r->exit_code = WEXITSTATUS(wait_status);
	}
}

/* Hand r out with rows, open calls, exits and counters filled in. */
static void hand_out(struct tree *t, struct rts_record *r, const struct calls *calls,
		     const struct proc *p, struct kvm_watch *kvm)
{
	struct rts_inflight open_calls[MAX_IN_FLIGHT];
	struct rts_vcpu vcpu;
	uint64_t now;
	void *block;

	if (calls_rows(calls, r, &block)) {
		t->calls.lost.records_dropped++;
		t->sink->warn(t->sink, "pid %d: no memory for its record", r->pid);
		return;
	}
	now = now_ns();
	r->time_ns = t->at_ns ? t->at_ns : now;
	r->realtime_ns = clock_ns(CLOCK_REALTIME) - (now - r->time_ns);
	r->engine = engine_now(t);
	list_in_flight(t, p, open_calls, r);
	if (kvm_watch_record(kvm, &vcpu)) {
		vcpu.in_flight = open_run_calls(t, p);
		r->vcpu = &vcpu;
	}
	if (p && p->page) {
		r->has_counters = true;
		r->counters = p->page->counters;
		r->nr_counters = p->page->nr;
	}
	t->sink->record(t->sink, r);
	free(block);
}

/* The clocks of one life may come from two sources, which share out user and system differently. */
static uint64_t since(uint64_t now, uint64_t base)
{
	return now > base ? now - base : 0;
}

static void proc_record(struct tree *t, struct proc *p, enum rts_reason reason, int wait_status)
{
	struct rts_record r = {
		.reason = reason,
		.final = reason != RTS_EXEC && reason != RTS_SIGNAL && reason != RTS_INTERVAL,
		.seq = p->seq++,
		.pid = p->pid,
		.ppid = p->ppid,
		.ns_pid = p->ns_pid,
		.comm = p->comm[0] ? p->comm : NULL,
		.execs = p->execs,
		.threads = p->threads_seen,
		.start_ns = p->start_ns,
		.has_cpu = p->has_cpu,
		.user_ns = since(p->user_ns, p->base_user_ns),
		.system_ns = since(p->system_ns, p->base_system_ns),
	};

	set_command(&r, p->cmd);
	set_exit(&r, wait_status);
	hand_out(t, &r, &p->calls, p, p->kvm);
}

/* A life is over: its numbers go to the tree. */
static void fold_life(struct tree *t, struct proc *p)
{
	calls_merge(&t->calls, &p->calls);
	calls_free(&p->calls);
	t->user_ns += since(p->user_ns, p->base_user_ns);
	t->system_ns += since(p->system_ns, p->base_system_ns);
	p->base_user_ns = p->user_ns;
	p->base_system_ns = p->system_ns;
	kvm_watch_fold(&t->kvm, p->kvm);
	p->kvm = NULL;
}

static void free_proc(struct tree *t, struct proc *p)
{
	struct proc **at = &t->procs;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	cmdline_put(p->cmd);
	calls_free(&p->calls);
	kvm_watch_free(p->kvm);
	free(p->page);
	free(p);
}

void tree_end_proc(struct tree *t, struct proc *p, int wait_status)
{
	bool forked = !p->execs && p->pid != t->root && !p->was_there;

	proc_record(t, p, forked ? RTS_FORK_CHILD_EXIT : RTS_EXIT, wait_status);
	fold_life(t, p);
	free_proc(t, p);
}

void tree_next_life(struct tree *t, struct proc *p)
{
	proc_record(t, p, RTS_EXEC, -1);
	fold_life(t, p);
	p->has_page = false;
	free(p->page);
	p->page = NULL;
	p->execs++;
	t->execs++;
	p->threads_seen = 1;
	p->start_ns = t->at_ns ? t->at_ns : now_ns();
}

void tree_exec_proc(struct tree *t, struct proc *p)
{
	/* CPU times count up to here, the name and the page were the old program's. */
	if (procfs_cpu(p->pid, &p->user_ns, &p->system_ns))
		p->has_cpu = true;
	tree_next_life(t, p);
	proc_reread(p);
}

void tree_snapshot(struct tree *t, enum rts_reason reason)
{
	for (struct proc *p = t->procs; p; p = p->next) {
		proc_refresh(p, p->pid);
		proc_record(t, p, reason, -1);
	}
}

void tree_finish(struct tree *t, enum rts_reason reason, int wait_status)
{
	struct rts_record r = {
		.reason = reason,
		.final = true,
		.tree = true,
		.seq = t->seq++,
		.pid = t->root,
		.ppid = t->root_ppid,
		.cgroup = t->cgroup,
		.execs = t->execs,
		.processes = t->procs_seen,
		.threads = t->threads_seen,
		.start_ns = t->start_ns,
		.has_cpu = true,
	};

	for (struct proc *p = t->procs; p; p = p->next) {
		proc_refresh(p, p->pid);
		proc_record(t, p, reason, -1);
		fold_life(t, p);
	}
	r.user_ns = t->user_ns;
	r.system_ns = t->system_ns;
	set_command(&r, t->cmd);
	set_exit(&r, wait_status);
	hand_out(t, &r, &t->calls, NULL, t->kvm);
}

void tree_set_command(struct tree *t, const struct proc *root)
{
	cmdline_put(t->cmd);
	t->cmd = cmdline_get(root->cmd);
}

void tree_free(struct tree *t)
{
	for (size_t i = 0; i < TREE_HASH; i++)
		while (t->hash[i])
			tree_del_task(t, t->hash[i]);
	while (t->procs)
		free_proc(t, t->procs);
	calls_free(&t->calls);
	cmdline_put(t->cmd);
	kvm_watch_free(t->kvm);
}
