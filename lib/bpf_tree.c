/* SPDX-License-Identifier: MIT */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/uapi/kstats_bucket.h"
#include "lib/bpf_tree.h"
#include "lib/counters_view.h"
#include "lib/kvm_watch.h"
#include "lib/procfs.h"

_Static_assert(RUN_BITS == CALLS_HIST_BITS, "slots go from one histogram to the other as they are");
_Static_assert(RUN_NR_SLOTS <= KSTATS_NR_SLOTS(RUN_BITS), "each slot has a place");
_Static_assert((int)RUN_X86_64 == RTS_ABI_X86_64 && (int)RUN_I386 == RTS_ABI_I386 &&
		       (int)RUN_X32 == RTS_ABI_X32 && (int)RUN_OTHER == RTS_ABI_OTHER,
	       "one numbering of ABIs");

struct row {
	struct run_key key;
	uint32_t at; /* its place in the map */
};

/* A process, under the number of the life it leads now. */
struct life {
	struct life *next; /* of the hash chain */
	uint32_t id;
	struct proc *proc; /* NULL: the watcher itself */
	struct row *rows;
	size_t nr_rows, max_rows;
	uint64_t on_ns, user_ns, system_ns; /* of threads that are gone, earlier lives' too */
	int status;
	char *args; /* the command line, while it comes in pieces */
	int *pages; /* its counters pages, as descriptors of ours */
	size_t nr_pages;
	bool page_missed;   /* one could not be opened */
	struct calls saved; /* of the process, while a snapshot adds to it */
};

static struct life *find(const struct bpf_tree *b, uint32_t id)
{
	struct life *l = b->hash[id % BPF_TREE_HASH];

	while (l && l->id != id)
		l = l->next;
	return l;
}

static void put(struct bpf_tree *b, struct life *l, uint32_t id)
{
	l->id = id;
	l->next = b->hash[id % BPF_TREE_HASH];
	b->hash[id % BPF_TREE_HASH] = l;
}

static void take(struct bpf_tree *b, struct life *l)
{
	struct life **at = &b->hash[l->id % BPF_TREE_HASH];

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
}

static struct life *life_new(struct bpf_tree *b, uint32_t id, struct proc *p)
{
	struct life *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->proc = p;
	l->status = -1;
	put(b, l, id);
	return l;
}

static void close_pages(const struct bpf_tree *b, struct life *l)
{
	if (l->nr_pages || l->page_missed)
		bpf_map_delete_elem(b->pages, &l->id);
	while (l->nr_pages)
		close(l->pages[--l->nr_pages]);
	free(l->pages);
	l->pages = NULL;
	l->page_missed = false;
}

/* A descriptor of ours of a page, or -errno. */
static void add_page(int fd, void *life)
{
	struct life *l = life;
	int *pages = fd < 0 ? NULL : realloc(l->pages, (l->nr_pages + 1) * sizeof(*pages));

	if (pages) {
		l->pages = pages;
		pages[l->nr_pages++] = fd;
		return;
	}
	l->page_missed = true;
	if (fd >= 0)
		close(fd);
}

static void life_free(struct bpf_tree *b, struct life *l)
{
	take(b, l);
	close_pages(b, l);
	free(l->rows);
	free(l->args);
	free(l);
}

static void add_row(struct calls *c, const struct run_key *key, const struct run_row *row,
		    bool split)
{
	struct rts_errcount errs[RUN_NR_ERRS];
	struct call_sum s = {
		.abi = (enum rts_abi)key->abi,
		.nr = key->nr,
		.count = row->count,
		.errors = row->errors,
		.total_ns = row->total_ns,
		.min_ns = row->min_ns,
		.max_ns = row->max_ns,
		.split_count = split ? row->count - row->unsplit_count : 0,
		.waiting_ns = row->waiting_ns,
		.errs = errs,
		.slots = (const uint64_t *)row->slot,
		.nr_slots = RUN_NR_SLOTS,
	};

	while (s.nr_errs < RUN_NR_ERRS && row->errs[s.nr_errs].err) {
		errs[s.nr_errs] =
			(struct rts_errcount){row->errs[s.nr_errs].err, row->errs[s.nr_errs].count};
		s.nr_errs++;
	}
	calls_add(c, &s);
}

static void add_kvm_row(struct kvm_watch **w, const struct run_key *key, const struct run_row *row)
{
	struct rts_exit_row r = {
		.reason = key->nr,
		.count = row->count,
		.null_count = row->errors,
		.total_ns = row->total_ns,
	};

	switch (key->abi) {
	case RUN_KVM_EXIT:
		kvm_watch_add_exits(w, &r, row->guest_ns, row->halted_ns);
		break;
	case RUN_KVM_VCPU:
		kvm_watch_add_vcpu(w, (int)key->nr);
		break;
	case RUN_KVM_VMX:
		r.name = kvm_vmx_name(key->nr);
		kvm_watch_add_hw(w, "vmx", &r);
		break;
	case RUN_KVM_SVM:
		r.name = kvm_svm_name(key->nr);
		kvm_watch_add_hw(w, "svm", &r);
		break;
	}
}

/* Nobody writes there any more. The CPU that remembers the place remembers it for a life that is over. */
static void give_back(const struct bpf_tree *b, const struct row *r)
{
	bpf_map_delete_elem(b->row_index, &r->key);
	memset(&b->rows[r->at], 0, sizeof(b->rows[r->at]));
	bpf_map_update_elem(b->free_rows, NULL, &r->at, BPF_ANY);
}

/* Add the rows of a life to its process; the last time they are given back. */
static void add_rows(const struct bpf_tree *b, struct life *l, bool last)
{
	bool split = b->tree.engine.split != NULL;

	for (const struct row *r = l->rows; r < l->rows + l->nr_rows; r++) {
		struct run_row row = b->rows[r->at];

		if (last)
			give_back(b, r);
		if (!l->proc)
			continue;
		if (r->key.abi >= RUN_KVM_EXIT)
			add_kvm_row(&l->proc->kvm, &r->key, &row);
		else
			add_row(&l->proc->calls, &r->key, &row, split);
	}
	if (last)
		l->nr_rows = 0;
}

static void on_row(struct bpf_tree *b, const struct run_row_event *e)
{
	struct life *l = find(b, e->key.life);

	if (!l && !e->key.life)
		l = life_new(b, 0, NULL);
	if (l && l->nr_rows == l->max_rows) {
		size_t max = l->max_rows ? l->max_rows * 2 : 16;
		struct row *rows = realloc(l->rows, max * sizeof(*rows));

		if (!rows)
			return; /* its calls are attempted, and in no row */
		l->rows = rows;
		l->max_rows = max;
	}
	if (l)
		l->rows[l->nr_rows++] = (struct row){.key = e->key, .at = e->row};
}

static void set_cpu(struct life *l, const struct run_event *e)
{
	uint64_t on = l->on_ns + (e ? e->on_ns : 0), user = l->user_ns + (e ? e->user_ns : 0);
	uint64_t ticks = user + l->system_ns + (e ? e->system_ns : 0);
	struct proc *p = l->proc;

	procfs_share_cpu(on, user, ticks, &p->user_ns, &p->system_ns);
	p->has_cpu = true;
}

static void add_ledger(struct calls *c, const struct run_event *e)
{
	c->lost.attempted += e->attempted;
	c->lost.table_full += e->table_full;
	c->lost.no_instance += e->half_seen;
	c->lost.clock_back += e->clock_back;
}

/* The counters of a process as they are now, or were at its end: what is open can be read after it. */
static void read_pages(struct life *l)
{
	struct proc *p = l->proc;
	char page[RUN_PAGE];

	if (l->nr_pages && p->page)
		p->page->nr = 0;
	for (size_t i = 0; i < l->nr_pages; i++) {
		ssize_t n = pread(l->pages[i], page, sizeof(page), 0);

		counters_view_add(page, n < 0 ? 0 : (size_t)n, p->ns_pid, &p->page);
	}
}

/* The last time that this life's counters can be read. */
static void last_pages(struct bpf_tree *b, struct life *l)
{
	read_pages(l);
	b->pages_missed += l->page_missed && !l->proc->page;
	close_pages(b, l);
}

static void end_proc(struct bpf_tree *b, struct life *l)
{
	struct proc *p = l->proc;

	last_pages(b, l);
	add_rows(b, l, true);
	if (p->pid == b->tree.root) {
		b->root_gone = true;
		if (b->own_root)
			while (waitpid(p->pid, &l->status, 0) < 0 && errno == EINTR)
				;
		b->res->wait_status = l->status;
	}
	tree_end_proc(&b->tree, p, l->status);
	life_free(b, l);
}

static void on_fork(struct bpf_tree *b, const struct run_event *e)
{
	struct life *parent = find(b, e->other_life), *l = find(b, e->life);
	struct proc *p = l ? l->proc : NULL;

	if (!p) {
		p = tree_add_proc(&b->tree, e->tgid, parent ? parent->proc : NULL);
		l = p ? life_new(b, e->life, p) : NULL;
		if (!l) {
			b->tree.sink->warn(b->tree.sink, "no memory to follow pid %d", e->tgid);
			return;
		}
		p->start_ns = e->time_ns;
		p->ppid = e->ppid;
		p->ns_pid = e->ns_pid;
		p->has_page = p->comm_stale = false;
	}
	tree_add_task(&b->tree, p, e->tid);
}

/* The thread goes on under its leader's number: the leader and its peers have ended before. */
static void rename_task(struct bpf_tree *b, struct proc *p, const struct run_event *e)
{
	struct task *k = tree_task(&b->tree, e->old_tid);

	if (e->old_tid == e->tid)
		return;
	if (k)
		tree_del_task(&b->tree, k);
	if (!tree_task(&b->tree, e->tid) && tree_add_task(&b->tree, p, e->tid)) {
		p->threads_seen--;
		b->tree.threads_seen--;
	}
}

static void on_exec(struct bpf_tree *b, const struct run_event *e)
{
	struct life *l = find(b, e->life);
	struct proc *p = l ? l->proc : NULL;

	if (!p)
		return;
	rename_task(b, p, e);
	if (e->other_life != e->life) {
		last_pages(b, l);
		add_ledger(&p->calls, e);
		add_rows(b, l, true);
		set_cpu(l, e);
		tree_next_life(&b->tree, p);
		take(b, l);
		put(b, l, e->other_life);
	} else {
		b->tree.start_ns = p->start_ns = e->time_ns;
		b->res->started = true;
	}
	proc_set_cmdline(p, "", 0, false);
	memcpy(p->comm, e->comm, sizeof(p->comm));
}

static void on_args(struct bpf_tree *b, const struct run_args_event *e)
{
	struct life *l = find(b, e->life);
	const uint32_t max = RUN_TEXT * RUN_CHUNKS, want = e->total < max ? e->total : max;

	if (!l || !l->proc || e->len > RUN_TEXT || e->at > max - e->len)
		return;
	if (!e->at) {
		free(l->args);
		l->args = malloc(max);
	}
	if (!l->args)
		return;
	memcpy(l->args + e->at, e->text, e->len);
	if (e->at + e->len < want)
		return;
	proc_set_cmdline(l->proc, l->args, want, e->total > max);
	free(l->args);
	l->args = NULL;
	if (!b->named)
		tree_set_command(&b->tree, l->proc);
	b->named = true;
}

static void on_end(struct bpf_tree *b, const struct run_event *e)
{
	struct life *l = find(b, e->life);
	struct task *k = tree_task(&b->tree, e->tid);
	struct proc *p = l ? l->proc : NULL;

	if (!p || (k && k->proc != p))
		return;
	add_ledger(&p->calls, e);
	l->on_ns += e->on_ns;
	l->user_ns += e->user_ns;
	l->system_ns += e->system_ns;
	set_cpu(l, NULL);
	if (e->group_exit || e->tid == e->tgid)
		l->status = e->status;
	if (e->in_call)
		calls_never_return(&p->calls, (enum rts_abi)e->abi, e->nr);
	if (k)
		tree_del_task(&b->tree, k);
	if (!p->threads)
		end_proc(b, l);
}

static void on_comm(struct bpf_tree *b, const struct run_event *e)
{
	struct life *l = find(b, e->life);

	if (l && l->proc)
		memcpy(l->proc->comm, e->comm, sizeof(l->proc->comm));
}

/* The descriptor may be gone with its process; what was read at its end comes by on_counters() then. */
static void on_memfd(struct bpf_tree *b, const struct run_event *e)
{
	struct life *l = find(b, e->life);

	if (l && l->proc)
		add_page(counters_view_open(e->tgid, e->status), l);
}

static void on_counters(struct bpf_tree *b, const struct run_counters_event *e)
{
	struct life *l = find(b, e->life);

	if (!l || !l->proc || l->nr_pages)
		return;
	if (l->proc->page)
		l->proc->page->nr = 0;
	counters_view_add(e->page, sizeof(e->page), l->proc->ns_pid, &l->proc->page);
}

void bpf_tree_event(struct bpf_tree *b, const void *data)
{
	const struct run_event *e = data;

	switch (e->type) {
	case RUN_ROW:
		on_row(b, data);
		return;
	case RUN_ARGS:
		on_args(b, data);
		return;
	case RUN_COUNTERS:
		on_counters(b, data);
		return;
	case RUN_MOVED:
		b->moved = true;
		return;
	}
	b->tree.at_ns = e->time_ns;
	b->tree.pid_namespaces |= e->ns_pid != e->tgid;
	switch (e->type) {
	case RUN_FORK:
		on_fork(b, e);
		break;
	case RUN_EXEC:
		on_exec(b, e);
		break;
	case RUN_EXIT:
		on_end(b, e);
		break;
	case RUN_COMM:
		on_comm(b, e);
		break;
	case RUN_MEMFD:
		on_memfd(b, e);
		break;
	}
}

int bpf_tree_join(struct bpf_tree *b, pid_t pid, uint32_t life)
{
	struct proc *p = tree_add_proc(&b->tree, pid, NULL);
	struct life *l = p ? life_new(b, life, p) : NULL;

	if (!l || !tree_add_task(&b->tree, p, pid))
		return -ENOMEM;
	procfs_comm(pid, p->comm);
	p->has_page = p->comm_stale = false;
	if (b->own_root)
		return 0;
	counters_view_each(pid, add_page, l);
	p->was_there = true;
	/* What it has used up to now is not ours. */
	if (procfs_cpu(pid, &p->user_ns, &p->system_ns)) {
		p->base_user_ns = l->user_ns = p->user_ns;
		p->base_system_ns = l->system_ns = p->system_ns;
		l->on_ns = p->user_ns + p->system_ns;
	}
	return 0;
}

int bpf_tree_root(struct bpf_tree *b, pid_t pid)
{
	int ret = bpf_tree_join(b, pid, 1);
	struct proc *p = tree_proc(&b->tree, pid);

	if (ret)
		return ret;
	b->tree.root = pid;
	b->tree.root_ppid = p->ppid;
	b->tree.start_ns = p->start_ns;
	if (b->own_root)
		return 0;
	tree_set_command(&b->tree, p);
	b->named = true;
	return 0;
}

void bpf_tree_adopt(struct bpf_tree *b, pid_t tid, uint32_t life)
{
	struct life *l = find(b, life);

	if (l && l->proc && !tree_task(&b->tree, tid))
		tree_add_task(&b->tree, l->proc, tid);
}

/* Do something with each live thread that the kernel knows. */
static void each_thread(const struct bpf_tree *b,
			void (*fn)(struct task *k, const struct run_thread *th))
{
	int fd = bpf_iter_create(b->threads);
	struct run_thread buf[64];
	ssize_t n;

	if (fd < 0)
		return;
	while ((n = read(fd, buf, sizeof(buf))) > 0 || (n < 0 && errno == EINTR))
		for (ssize_t i = 0; n > 0 && i < n / (ssize_t)sizeof(buf[0]); i++) {
			struct life *l = find(b, buf[i].life);
			struct task *k = tree_task(&b->tree, buf[i].tid);

			if (k && l && k->proc == l->proc)
				fn(k, &buf[i]);
		}
	close(fd);
}

static void look_at(struct task *k, const struct run_thread *th)
{
	struct rts_ledger *lost = &k->proc->calls.lost;

	lost->table_full += th->table_full;
	lost->no_instance += th->half_seen;
	lost->clock_back += th->clock_back;
	k->in_call = th->in_call;
	k->abi = (enum rts_abi)th->abi;
	k->nr = th->nr;
	k->enter_ns = th->enter_ns;
	k->args[1] = th->request;
	lost->attempted += k->in_call;
}

static void each_life(struct bpf_tree *b, void (*fn)(struct bpf_tree *b, struct life *l))
{
	for (size_t i = 0; i < BPF_TREE_HASH; i++) {
		struct life *next;

		for (struct life *l = b->hash[i]; l; l = next) {
			next = l->next;
			if (l->proc)
				fn(b, l);
		}
	}
}

/* Rows stay in the kernel and grow: add them to a copy of what is known for good. */
static void add_live(struct bpf_tree *b, struct life *l)
{
	struct proc *p = l->proc;

	read_pages(l);
	l->saved = p->calls;
	p->calls = (struct calls){0};
	calls_merge(&p->calls, &l->saved);
	add_rows(b, l, false);
}

/*
 * Rows and threads go on while they are read, one after another: what was attempted is what they
 * say together. At the end of a life nothing moves, and the kernel's own count is taken.
 */
static void sum_attempts(struct bpf_tree *b, struct life *l)
{
	struct rts_ledger *lost = &l->proc->calls.lost;

	(void)b;
	lost->attempted = lost->attempted - l->saved.lost.attempted + lost->recorded +
			  lost->no_return + lost->no_instance + lost->table_full + lost->clock_back;
}

static void take_back(struct bpf_tree *b, struct life *l)
{
	(void)b;
	calls_free(&l->proc->calls);
	l->proc->calls = l->saved;
	kvm_watch_free(l->proc->kvm);
	l->proc->kvm = NULL;
}

static void look(struct bpf_tree *b)
{
	b->tree.at_ns = 0;
	each_life(b, add_live);
	each_thread(b, look_at);
	each_life(b, sum_attempts);
}

static void forget_calls(struct bpf_tree *b)
{
	for (size_t i = 0; i < TREE_HASH; i++)
		for (struct task *k = b->tree.hash[i]; k; k = k->next)
			k->in_call = false;
}

void bpf_tree_snapshot(struct bpf_tree *b, enum rts_reason reason)
{
	look(b);
	tree_snapshot(&b->tree, reason);
	each_life(b, take_back);
	forget_calls(b);
}

static void free_saved(struct bpf_tree *b, struct life *l)
{
	(void)b;
	calls_free(&l->saved);
}

void bpf_tree_let_go(struct bpf_tree *b)
{
	look(b);
	tree_finish(&b->tree, RTS_INTERRUPTED, b->root_gone ? b->res->wait_status : -1);
	each_life(b, free_saved);
	forget_calls(b);
}

static void see(struct task *k, const struct run_thread *th)
{
	(void)th;
	k->exiting = true;
}

bool bpf_tree_sees_root(struct bpf_tree *b)
{
	bool seen = false;

	each_thread(b, see);
	for (size_t i = 0; i < TREE_HASH; i++) {
		for (struct task *k = b->tree.hash[i]; k; k = k->next) {
			seen |= k->exiting;
			k->exiting = false;
		}
	}
	return seen;
}

static void end_if_empty(struct bpf_tree *b, struct life *l)
{
	if (!l->proc->threads)
		end_proc(b, l);
}

void bpf_tree_resync(struct bpf_tree *b)
{
	each_thread(b, see);
	for (size_t i = 0; i < TREE_HASH; i++) {
		struct task *next;

		for (struct task *k = b->tree.hash[i]; k; k = next) {
			bool seen = k->exiting;

			next = k->next;
			k->exiting = false;
			if (!seen)
				tree_del_task(&b->tree, k);
		}
	}
	b->tree.at_ns = 0;
	each_life(b, end_if_empty);
}

void bpf_tree_drop_own(struct bpf_tree *b)
{
	struct life *l = find(b, 0);

	if (!l)
		return;
	add_rows(b, l, true);
	life_free(b, l);
}

void bpf_tree_free(struct bpf_tree *b)
{
	for (size_t i = 0; i < BPF_TREE_HASH; i++)
		while (b->hash[i])
			life_free(b, b->hash[i]);
	tree_free(&b->tree);
}
