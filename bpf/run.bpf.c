// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Runtime stats of a process tree: a thread is watched when it has a mark in task storage, and its
 * children inherit the mark at fork. Calls are summed up here, in rows of {life, call, CPU}; the
 * watcher is told of forks, execs, exits and new rows, and reads rows when a life is over.
 */
#include "bpf/compat.bpf.h"

#include "include/uapi/kstats_bucket.h"
#include "include/uapi/run_bpf.h"

#define X32_BIT		  0x40000000u
#define SIGNAL_GROUP_EXIT 4
#define PF_EXITING	  4
#define MAX_ERRNO	  4095
#define EINTR		  4
#define EAGAIN		  11

/* Of linux/kvm.h: the part that matters here never changes. */
#define KVM_RUN			 0xae80
#define KVM_INTERRUPT		 0x4004ae86
#define KVM_SET_VCPU_EVENTS	 0x4040aea0
#define KVM_EXIT_UNKNOWN	 0
#define KVM_EXIT_IRQ_WINDOW_OPEN 7
#define KVM_EXIT_INTR		 10

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct run_mark);
} marks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, RUN_THREADS);
	__type(key, __u32);
	__type(value, struct run_task);
} threads SEC(".maps");

/* As many as the watcher has asked for; the first is nobody's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct run_row);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct run_key);
	__type(value, __u32);
} row_index SEC(".maps");

/* Places that were in use; those that never were are counted by next_thread and next_row. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, RUN_THREADS);
	__type(value, __u32);
} free_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1);
	__type(value, __u32);
} free_rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct run_here);
} heres SEC(".maps");

/* Where a life has its counters page. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} pages SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} events SEC(".maps");

const volatile __u32 exec_nr, execveat_nr, ioctl_nr; /* of the watcher's ABI, as those below */
const volatile __u32 memfd_nr, mmap_nr, exit_group_nr;
const volatile char page_name[32]; /* of the memfd of a counters page; NUL-terminated */
const volatile __u64 wake_bytes;   /* wake the watcher when this much is to be read */
const volatile __u32 nr_rows;
const volatile bool of_cgroup; /* what comes to a cgroup is wanted, too */

__u32 last_life = 1;   /* the first is the root's */
__u32 next_thread = 1; /* and no. 0 is none */
__u32 next_row = 1;
__u32 watcher_level; /* of the watcher's pid namespace */
__u32 has_pages;     /* some life has, or had, a counters page */
__u64 lost_events;   /* the ring was full */
__u64 lost_forks;    /* children that could not be marked */

/* A place that is free: of those that were used before, or the next; 0: there is none. */
static __always_inline __u32 place_take(void *freed, __u32 *next, __u32 max)
{
	__u32 place;

	if (!bpf_map_pop_elem(freed, &place))
		return place;
	if (*next >= max)
		return 0;
	place = __sync_fetch_and_add(next, 1);
	return place < max ? place : 0;
}

static __always_inline struct run_task *thread_at(__u32 thread)
{
	return bpf_map_lookup_elem(&threads, &thread);
}

static __always_inline struct run_here *here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&heres, &zero);
}

/* Of most tasks it takes one load to see that they have no mark: they have no storage at all. */
static __always_inline __u32 mark_of(struct task_struct *task)
{
	struct run_mark *mark;

	if (!task->bpf_storage)
		return 0;
	mark = bpf_task_storage_get(&marks, task, 0, 0);
	return mark ? mark->thread : 0;
}

/* Any task's; NULL: it is not watched. */
static __always_inline struct run_task *thread_of(struct task_struct *task)
{
	__u32 thread = mark_of(task);

	return thread ? thread_at(thread) : NULL;
}

/* The thread that runs here, found the long way, and remembered. */
static __noinline __u32 look_up(struct task_struct *task)
{
	__u32 thread = mark_of(task);
	struct run_here *h = here();
	struct run_task *t;

	if (!thread || !h)
		return 0;
	t = thread_at(thread);
	if (!t)
		return 0;
	t->task = (__u64)task;
	h->thread = thread;
	return thread;
}

static __always_inline struct run_task *thread_here(struct run_here *h, struct task_struct *task)
{
	struct run_task *t = thread_at(h->thread);
	__u32 thread;

	if (t && t->task == (__u64)task)
		return t;
	if (!task->bpf_storage)
		return NULL;
	thread = look_up(task);
	return thread ? thread_at(thread) : NULL;
}

/* The task's number in the pid namespace of that depth. */
static __always_inline int pid_at(struct task_struct *task, __u32 level)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	struct upid u = {};

	bpf_probe_read_kernel(&u, sizeof(u),
			      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
				      level * sizeof(u));
	return u.nr;
}

static __always_inline int pid_of(struct task_struct *task)
{
	return pid_at(task, watcher_level);
}

static __always_inline int ns_pid_of(struct task_struct *task)
{
	return pid_at(task, BPF_CORE_READ(task, thread_pid, level));
}

/* The watcher looks by itself every now and then: to wake it at each event would cost the program. */
static __always_inline __u64 wake_flags(bool now)
{
	if (now || bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) >= wake_bytes)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

static __always_inline void *reserve(__u64 size)
{
	void *e = bpf_ringbuf_reserve(&events, size, 0);

	if (!e)
		__sync_fetch_and_add(&lost_events, 1);
	return e;
}

static __always_inline struct run_event *event_new(__u32 type, struct task_struct *task,
						   struct run_task *t)
{
	struct run_event *e = reserve(sizeof(*e));
	struct task_struct *leader;

	if (!e)
		return NULL;
	__builtin_memset(e, 0, sizeof(*e));
	leader = BPF_CORE_READ(task, group_leader);
	e->type = type;
	e->life = t->life;
	e->tid = pid_of(task);
	e->tgid = pid_of(leader);
	e->ns_pid = ns_pid_of(leader);
	e->ppid = pid_of(BPF_CORE_READ(task, real_parent, group_leader));
	e->time_ns = bpf_ktime_get_ns();
	BPF_CORE_READ_STR_INTO(&e->comm, task, comm);
	return e;
}

/* What the thread's life, or the thread's part of it, came to. */
static __always_inline void add_sums(struct run_event *e, struct task_struct *task,
				     struct run_task *t)
{
	e->on_ns = t->on_ns;
	if (t->in_since && e->time_ns > t->in_since)
		e->on_ns += e->time_ns - t->in_since;
	e->user_ns = BPF_CORE_READ(task, utime);
	e->system_ns = BPF_CORE_READ(task, stime);
	e->attempted = t->attempted;
	e->table_full = t->table_full;
	e->half_seen = t->half_seen;
	e->clock_back = t->clock_back;
}

static __always_inline __u8 abi_of(struct task_struct *task, __u32 nr)
{
	__u32 status;

	if (!compat_thread_status(task, &status))
		return RUN_OTHER;
	if (status & COMPAT_TS_COMPAT)
		return RUN_I386;
	/* -1, which seccomp and tracers use to skip a call, has the x32 bit too. */
	return (nr & X32_BIT) && nr != (__u32)-1 ? RUN_X32 : RUN_X86_64;
}

/* A row that the watcher knows of; 0: there is no room. */
static __noinline __u32 row_new(struct run_key *key)
{
	struct run_row_event *e;
	__u32 row;

	if (!key)
		return 0;
	row = place_take(&free_rows, &next_row, nr_rows);
	if (!row)
		return 0;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (e && !bpf_map_update_elem(&row_index, key, &row, BPF_NOEXIST)) {
		e->type = RUN_ROW;
		e->key = *key;
		e->row = row;
		bpf_ringbuf_submit(e, wake_flags(false));
		return row;
	}
	if (e)
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
	bpf_map_push_elem(&free_rows, &row, 0);
	return 0;
}

/* The row of a call that this CPU does not remember; 0: none, there is no room. */
static __noinline __u32 row_find(__u32 life, __u32 abi, __u32 nr)
{
	struct run_key key = {
		.life = life,
		.nr = nr,
		.abi = abi,
		.cpu = bpf_get_smp_processor_id(),
	};
	__u32 *row = bpf_map_lookup_elem(&row_index, &key);

	return row ? *row : row_new(&key);
}

static __always_inline struct run_row *row_of(struct run_here *h, struct run_task *t, __u16 abi,
					      __u32 nr)
{
	struct run_recent *r = &h->recent[(nr + t->life * 61 + abi * 29) % RUN_RECENT];
	__u32 row = r->row;

	if (!row || r->nr != nr || r->life != t->life || r->abi != abi) {
		row = row_find(t->life, abi, nr);
		if (!row)
			return NULL;
		*r = (struct run_recent){.life = t->life, .nr = nr, .abi = abi, .row = row};
	}
	return bpf_map_lookup_elem(&rows, &row);
}

/* The guest came back for an interrupt that can be put in now. If it is run again without, that was for
 * nothing.
 */
static __always_inline void window_call(struct run_here *h, struct run_task *t,
					struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 request = PT_REGS_PARM2_CORE_SYSCALL(regs);
	struct run_row *row;

	if (t->nr != ioctl_nr ||
	    (request != KVM_RUN && request != KVM_INTERRUPT && request != KVM_SET_VCPU_EVENTS))
		return;
	t->special = RUN_PLAIN;
	row = request == KVM_RUN ? row_of(h, t, RUN_KVM_EXIT, KVM_EXIT_IRQ_WINDOW_OPEN) : NULL;
	if (row)
		row->errors++;
}

/* Is it the counters page that this call maps? Its thread does so next, or it is none. */
static __always_inline void maps_call(struct run_task *t, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	if (t->nr != mmap_nr || (__u32)PT_REGS_PARM5_CORE_SYSCALL(regs) != t->page_fd)
		return;
	t->special = RUN_PLAIN;
	t->at_return |= RUN_RETURN_MMAP;
}

/* The program's counters, while they can be read: it is about to end or to execute another program. */
static __noinline int tell_counters(__u32 life)
{
	__u64 *at = bpf_map_lookup_elem(&pages, &life);
	struct run_counters_event *e;

	if (!at)
		return 0;
	e = reserve(sizeof(*e));
	if (!e)
		return 0;
	e->type = RUN_COUNTERS;
	e->life = life;
	if (bpf_probe_read_user(e->page, sizeof(e->page), (void *)*at))
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
	else
		bpf_ringbuf_submit(e, wake_flags(false));
	return 0;
}

/* False: the call does not count. */
static __always_inline bool special_call(struct run_here *h, struct run_task *t,
					 struct task_struct *task)
{
	switch (t->special) {
	case RUN_WINDOW:
		window_call(h, t, task);
		return true;
	case RUN_MAPS:
		maps_call(t, task);
		return true;
	case RUN_ARMED:
		if (t->nr != exec_nr && t->nr != execveat_nr)
			return false;
		/* What it used before is not the program's. */
		t->on_ns = 0;
		t->in_since = bpf_ktime_get_ns();
		break;
	case RUN_CALIBRATES:
		watcher_level = BPF_CORE_READ(task, thread_pid, level);
		break;
	}
	t->special = RUN_PLAIN;
	return true;
}

static __always_inline int call_begins(long id)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct run_here *h;
	struct run_task *t;

	if (!task->bpf_storage)
		return 0;
	h = here();
	t = h ? thread_here(h, task) : NULL;
	if (!t)
		return 0;
	t->nr = id;
	t->abi = abi_of(task, t->nr);
	if (t->abi == RUN_X32)
		t->nr &= ~X32_BIT;
	if (t->special && !special_call(h, t, task))
		return 0;
	if (t->in_call)
		t->half_seen++;
	if (t->nr == memfd_nr)
		t->at_return |= RUN_RETURN_MEMFD;
	if (has_pages && (t->nr == exit_group_nr || t->nr == exec_nr))
		tell_counters(t->life);
	t->in_call = 1;
	t->has_called = 1;
	t->attempted++;
	t->waiting_ns = 0;
	t->enter_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline void count_error(struct run_row *row, __u32 err)
{
	row->errors++;
	for (int i = 0; i < RUN_NR_ERRS; i++) {
		if (row->errs[i].err && row->errs[i].err != err)
			continue;
		row->errs[i].err = err;
		row->errs[i].count++;
		return;
	}
}

static __always_inline void count_call(struct run_here *h, struct run_task *t, __u64 ns, long ret)
{
	struct run_row *row = row_of(h, t, t->abi, t->nr);
	__u32 slot;

	if (!row) {
		t->table_full++;
		return;
	}
	if (!row->count || ns < row->min_ns)
		row->min_ns = ns;
	if (ns > row->max_ns)
		row->max_ns = ns;
	row->count++;
	row->total_ns += ns;
	/* Switched away from, and back unseen: then nothing is known. */
	if (t->off_since)
		row->unsplit_count++;
	else if (t->waiting_ns)
		row->waiting_ns += t->waiting_ns;
	if (ret < 0 && ret >= -MAX_ERRNO)
		count_error(row, -ret);
	slot = kstats_slot(ns, RUN_BITS);
	if (slot >= RUN_NR_SLOTS)
		slot = RUN_NR_SLOTS - 1;
	row->slot[slot]++;
}

/* A run call has come back: beside its row as a call it has one by the reason. */
static __always_inline void count_run(struct run_here *h, struct run_task *t, __u64 ns)
{
	__u32 reason = t->run_exit - 1;
	struct run_row *row = row_of(h, t, RUN_KVM_EXIT, reason);

	if (row) {
		row->count++;
		row->errors += reason == KVM_EXIT_INTR;
		row->total_ns += ns;
		row->guest_ns += t->guest_ns;
		row->halted_ns += t->halted_ns;
	} else {
		t->table_full++;
	}
	t->run_exit = 0;
	t->guest_ns = t->halted_ns = 0;
	t->guest_since = t->exit_since = 0;
	if (reason == KVM_EXIT_IRQ_WINDOW_OPEN)
		t->special = RUN_WINDOW;
}

struct args {
	__u64 start;
	__u32 total, life;
};

static long tell_chunk(__u32 i, void *ctx)
{
	const struct args *a = ctx;
	__u32 at = i * RUN_TEXT, len = a->total - at;
	struct run_args_event *e;

	if (at >= a->total)
		return 1;
	e = reserve(sizeof(*e));
	if (!e)
		return 1;
	/* The verifier has to see the bound on the very register that is passed. */
	barrier_var(len);
	if (len > RUN_TEXT)
		len = RUN_TEXT;
	barrier_var(len);
	e->type = RUN_ARGS;
	e->life = a->life;
	e->total = a->total;
	e->at = at;
	e->len = len;
	if (bpf_probe_read_user(e->text, len, (void *)(a->start + at)))
		e->len = 0;
	bpf_ringbuf_submit(e, wake_flags(false));
	return 0;
}

/* The command line, which the kernel has just written: its pages are there. */
static __always_inline void tell_args(struct task_struct *task, __u32 life)
{
	struct args a = {
		.start = BPF_CORE_READ(task, mm, arg_start),
		.life = life,
	};

	a.total = BPF_CORE_READ(task, mm, arg_end) - a.start;
	bpf_loop(RUN_CHUNKS, tell_chunk, &a, 0);
}

static __always_inline void exec_done(struct task_struct *task, struct run_task *t)
{
	struct run_event *e;
	__u32 life = t->life;

	if (!t->first_exec)
		life = __sync_fetch_and_add(&last_life, 1) + 1;
	/* Asked at once: a verifier that is asked later, as 6.1's, takes it for maybe NULL again. */
	e = event_new(RUN_EXEC, task, t);
	if (e) {
		e->other_life = life;
		e->old_tid = t->tid;
		add_sums(e, task, t);
		/* The program asked for began with this very call. */
		if (t->first_exec)
			e->time_ns = t->enter_ns;
		bpf_ringbuf_submit(e, wake_flags(false));
	}
	t->tid = pid_of(task);
	if (!t->first_exec)
		t->attempted = t->table_full = t->half_seen = t->clock_back = 0;
	t->first_exec = 0;
	t->life = life;
	tell_args(task, life);
}

/* A memfd whose name is a counters page's: the watcher opens it, while its process lives. */
static __always_inline void memfd_made(struct task_struct *task, struct run_task *t, long fd)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	char name[sizeof(page_name)] = {};
	struct run_event *e;

	bpf_probe_read_user_str(name, sizeof(name), (void *)PT_REGS_PARM1_CORE_SYSCALL(regs));
	for (int i = 0; i < (int)sizeof(name) && (i == 0 || name[i - 1]); i++)
		if (name[i] != page_name[i])
			return;
	e = event_new(RUN_MEMFD, task, t);
	if (!e)
		return;
	e->status = fd;
	bpf_ringbuf_submit(e, wake_flags(true));
	t->page_fd = fd;
	t->special = RUN_MAPS;
}

static __always_inline void page_mapped(struct run_task *t, __u64 at)
{
	__u32 life = t->life;

	has_pages = 1;
	bpf_map_update_elem(&pages, &life, &at, BPF_ANY);
}

/* What a few calls have to do when they return. Their arguments are those of this machine's own ABI. */
static __always_inline void returns(struct task_struct *task, struct run_task *t, long ret)
{
	__u8 what = t->at_return;
	bool failed = ret < 0 && ret >= -MAX_ERRNO;

	t->at_return = 0;
	/* Only here has the successful execve been counted: with the old program. */
	if (what & RUN_RETURN_EXEC)
		exec_done(task, t);
	else if (what & RUN_RETURN_MEMFD && t->abi == RUN_X86_64 && !failed)
		memfd_made(task, t, ret);
	else if (what & RUN_RETURN_MMAP && !failed)
		page_mapped(t, ret);
}

/*
 * Not in a call: a new child returns from its parent's, the mark came in the midst of one, or a seccomp
 * filter answered before it was seen; else its begin was missed.
 */
static __always_inline void not_in_call(struct run_task *t, struct task_struct *task)
{
	if (!t->has_called || t->special || BPF_CORE_READ(task, seccomp.mode))
		return;
	t->attempted++;
	t->half_seen++;
}

static __always_inline int call_ends(long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct run_here *h;
	struct run_task *t;
	__u64 now;

	if (!task->bpf_storage)
		return 0;
	h = here();
	t = h ? thread_here(h, task) : NULL;
	if (!t)
		return 0;
	if (!t->in_call) {
		not_in_call(t, task);
		return 0;
	}
	now = bpf_ktime_get_ns();
	t->in_call = 0;
	if (t->abi == RUN_I386)
		ret = (int)ret;
	if (now < t->enter_ns)
		t->clock_back++;
	else
		count_call(h, t, now - t->enter_ns, ret);
	if (t->run_exit && now >= t->enter_ns)
		count_run(h, t, now - t->enter_ns);
	if (t->at_return)
		returns(task, t, ret);
	return 0;
}

/* A thread's place is where it is switched to: nothing else is remembered of it here. */
SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct run_task *t;
	struct run_here *h;
	__u32 thread;
	__u64 now;

	if (!prev->bpf_storage && !next->bpf_storage)
		return 0;
	h = here();
	if (!h)
		return 0;
	t = thread_here(h, prev);
	if (t) {
		now = bpf_ktime_get_ns();
		if (t->in_since)
			t->on_ns += now - t->in_since;
		t->in_since = 0;
		t->off_since = now;
	}
	thread = mark_of(next);
	t = thread ? thread_at(thread) : NULL;
	if (t) {
		h->thread = thread;
		t->task = (__u64)next;
		now = bpf_ktime_get_ns();
		if (t->off_since)
			t->waiting_ns += now - t->off_since;
		t->off_since = 0;
		t->in_since = now;
	}
	return 0;
}

/* A new place, and the task's mark that leads there; NULL: there is no room, or it has a mark. */
static __always_inline struct run_task *thread_new(struct task_struct *task)
{
	__u32 thread = place_take(&free_threads, &next_thread, RUN_THREADS);
	struct run_task *t = thread ? thread_at(thread) : NULL;
	struct run_mark *mark;

	mark = t ? bpf_task_storage_get(&marks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE) : NULL;
	if (!mark)
		__sync_fetch_and_add(&lost_forks, 1);
	if (!mark || mark->thread) {
		if (thread)
			bpf_map_push_elem(&free_threads, &thread, 0);
		return NULL;
	}
	__builtin_memset(t, 0, sizeof(*t));
	t->tid = pid_of(task);
	mark->thread = thread;
	return t;
}

/* The watcher looks itself whether it is one of its cgroup. */
static __always_inline void tell_moved(void)
{
	struct run_moved_event *e = reserve(sizeof(*e));

	if (!e)
		return;
	e->type = RUN_MOVED;
	bpf_ringbuf_submit(e, wake_flags(true));
}

static __always_inline int forked(struct task_struct *parent, struct task_struct *child)
{
	struct run_task *p = thread_of(parent), *c;
	struct run_event *e;

	/* clone3() may put a child where its parent is not. */
	if (of_cgroup && !p && parent->cgroups != child->cgroups)
		tell_moved();
	if (!p || p->special >= RUN_ARMED || !p->life)
		return 0;
	c = thread_new(child);
	if (!c)
		return 0;
	c->life = p->life;
	if (child->tgid != parent->tgid)
		c->life = __sync_fetch_and_add(&last_life, 1) + 1;
	e = event_new(RUN_FORK, child, c);
	if (!e)
		return 0;
	e->other_life = p->life;
	bpf_ringbuf_submit(e, wake_flags(false));
	return 0;
}

static __always_inline int executed(void)
{
	struct run_task *t = thread_of(bpf_get_current_task_btf());

	if (t)
		t->at_return = RUN_RETURN_EXEC;
	return 0;
}

static __always_inline void tell_exit(struct task_struct *task, struct run_task *t)
{
	struct run_event *e = event_new(RUN_EXIT, task, t);

	if (!e)
		return;
	add_sums(e, task, t);
	e->in_call = t->in_call;
	e->abi = t->abi;
	e->nr = t->nr;
	e->group_exit = (BPF_CORE_READ(task, signal, flags) & SIGNAL_GROUP_EXIT) != 0;
	e->status = e->group_exit ? BPF_CORE_READ(task, signal, group_exit_code) :
				    BPF_CORE_READ(task, exit_code);
	bpf_ringbuf_submit(e, wake_flags(t->root));
}

static __always_inline int exited(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct run_mark *mark;
	struct run_task *t;
	__u32 thread;

	if (!task->bpf_storage)
		return 0;
	mark = bpf_task_storage_get(&marks, task, 0, 0);
	if (!mark || !mark->thread)
		return 0;
	thread = mark->thread;
	t = thread_at(thread);
	if (!t)
		return 0;
	if (t->life)
		tell_exit(task, t);
	mark->thread = 0;
	t->task = 0;
	bpf_map_push_elem(&free_threads, &thread, 0);
	return 0;
}

SEC("?tp_btf/cgroup_attach_task")
int cgroup_attach_task(void *ctx)
{
	tell_moved();
	return 0;
}

/* Of a process's leader; what exec does to the name is told with the exec. */
SEC("tp_btf/task_rename")
int BPF_PROG(task_rename, struct task_struct *task, const char *comm)
{
	struct run_task *t = thread_of(task);
	struct run_event *e;

	if (!t || t->special >= RUN_ARMED || task->pid != task->tgid ||
	    (t->in_call && t->nr == exec_nr) || (t->in_call && t->nr == execveat_nr))
		return 0;
	e = event_new(RUN_COMM, task, t);
	if (!e)
		return 0;
	bpf_probe_read_kernel_str(e->comm, sizeof(e->comm), comm);
	bpf_ringbuf_submit(e, wake_flags(false));
	return 0;
}

/* What this thread has done since its guest was left belongs to the reason why. */
static __always_inline void exit_handled(struct run_here *h, struct run_task *t, __u64 now)
{
	struct run_row *row;

	if (!t->exit_since || !t->exit_isa)
		return;
	row = row_of(h, t, t->exit_isa, t->exit_reason);
	if (row) {
		row->count++;
		row->total_ns += now - t->exit_since;
	}
	t->exit_since = 0;
}

static __always_inline int guest_entered(void)
{
	struct run_here *h = here();
	struct run_task *t = h ? thread_here(h, bpf_get_current_task_btf()) : NULL;

	if (!t || !t->in_call)
		return 0;
	t->guest_since = bpf_ktime_get_ns();
	exit_handled(h, t, t->guest_since);
	return 0;
}

/* NULL: the thread has not seen its guest entered. */
static __always_inline struct run_task *guest_left(void)
{
	struct run_here *h = here();
	struct run_task *t = h ? thread_here(h, bpf_get_current_task_btf()) : NULL;

	if (!t || !t->guest_since)
		return NULL;
	t->exit_since = bpf_ktime_get_ns();
	t->guest_ns += t->exit_since - t->guest_since;
	t->guest_since = 0;
	t->exit_isa = 0;
	return t;
}

/* A virtual CPU had halted, and the kernel waited for it. */
static __always_inline int guest_woken(__u64 ns)
{
	struct run_task *t = thread_of(bpf_get_current_task_btf());

	if (t && t->in_call)
		t->halted_ns += ns;
	return 0;
}

static __always_inline int guest_asks(__u32 reason, int err)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct run_here *h = here();
	struct run_task *t = h ? thread_here(h, task) : NULL;
	struct pt_regs *regs;
	struct run_row *row;

	if (!t || !t->in_call)
		return 0;
	exit_handled(h, t, bpf_ktime_get_ns());
	/* The reason is the one before: the guest was not left for one of its own. */
	if (err < 0)
		reason = err == -EINTR || err == -EAGAIN ? KVM_EXIT_INTR : KVM_EXIT_UNKNOWN;
	t->run_exit = reason + 1;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	row = row_of(h, t, RUN_KVM_VCPU, PT_REGS_PARM1_CORE_SYSCALL(regs));
	if (row)
		row->count++;
	return 0;
}

/*
 * The programs, in two ways to attach. The first is the cheaper one. From 6.13 on the kernel may preempt
 * such programs, and leaves out those that would begin on that CPU meanwhile: calls would be lost. What is
 * attached as perf is runs with preemption off on every kernel. sched_switch is not preempted anyway.
 */
SEC("?tp_btf/sys_enter")
int BPF_PROG(raw_sys_enter, struct pt_regs *regs, long id)
{
	return call_begins(id);
}

SEC("?tp_btf/sys_exit")
int BPF_PROG(raw_sys_exit, struct pt_regs *regs, long ret)
{
	return call_ends(ret);
}

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(raw_fork, struct task_struct *parent, struct task_struct *child)
{
	return forked(parent, child);
}

SEC("?tp_btf/sched_process_exec")
int BPF_PROG(raw_exec)
{
	return executed();
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(raw_exit)
{
	return exited();
}

/* Tracepoints of modules, mostly, which have no BTF of their own in vmlinux: so raw ones. */
SEC("?raw_tp/kvm_entry")
int BPF_PROG(raw_kvm_entry)
{
	return guest_entered();
}

SEC("?raw_tp/kvm_exit")
int BPF_PROG(raw_kvm_exit, struct kvm_vcpu *vcpu, __u32 isa)
{
	struct run_task *t = guest_left();

	if (t && compat_exit_reason(vcpu, isa, &t->exit_reason))
		t->exit_isa = isa == COMPAT_ISA_VMX ? RUN_KVM_VMX : RUN_KVM_SVM;
	return 0;
}

SEC("?raw_tp/kvm_vcpu_wakeup")
int BPF_PROG(raw_kvm_vcpu_wakeup, __u64 ns)
{
	return guest_woken(ns);
}

SEC("?raw_tp/kvm_userspace_exit")
int BPF_PROG(raw_kvm_userspace_exit, __u32 reason, int err)
{
	return guest_asks(reason, err);
}

SEC("?tp/raw_syscalls/sys_enter")
int perf_sys_enter(struct trace_event_raw_sys_enter *ctx)
{
	return call_begins(ctx->id);
}

SEC("?tp/raw_syscalls/sys_exit")
int perf_sys_exit(struct trace_event_raw_sys_exit *ctx)
{
	return call_ends(ctx->ret);
}

SEC("?tp/sched/sched_process_fork")
int perf_fork(struct trace_event_raw_sched_process_fork *ctx)
{
	struct task_struct *child = bpf_task_from_pid(ctx->child_pid);

	if (!child)
		return 0;
	forked(bpf_get_current_task_btf(), child);
	bpf_task_release(child);
	return 0;
}

SEC("?tp/sched/sched_process_exec")
int perf_exec(void *ctx)
{
	return executed();
}

SEC("?tp/sched/sched_process_exit")
int perf_exit(void *ctx)
{
	return exited();
}

SEC("?tp/kvm/kvm_entry")
int perf_kvm_entry(void *ctx)
{
	return guest_entered();
}

SEC("?tp/kvm/kvm_exit")
int perf_kvm_exit(struct trace_event_raw_kvm_exit___compat *ctx)
{
	struct run_task *t = guest_left();
	__u32 isa = t ? compat_told_exit(ctx, &t->exit_reason) : 0;

	if (isa)
		t->exit_isa = isa == COMPAT_ISA_VMX ? RUN_KVM_VMX : RUN_KVM_SVM;
	return 0;
}

SEC("?tp/kvm/kvm_vcpu_wakeup")
int perf_kvm_vcpu_wakeup(struct trace_event_raw_kvm_vcpu_wakeup___compat *ctx)
{
	return guest_woken(compat_told_wakeup(ctx));
}

SEC("?tp/kvm/kvm_userspace_exit")
int perf_kvm_userspace_exit(struct trace_event_raw_kvm_userspace_exit___compat *ctx)
{
	__u32 reason;
	int err;

	compat_told_userspace(ctx, &reason, &err);
	return guest_asks(reason, err);
}

static __always_inline void tell_thread(struct seq_file *seq, struct task_struct *task,
					struct run_task *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct run_thread th = {
		.enter_ns = t->enter_ns,
		.request = PT_REGS_PARM2_CORE_SYSCALL(regs),
		.table_full = t->table_full,
		.half_seen = t->half_seen,
		.clock_back = t->clock_back,
		.life = t->life,
		.tid = t->tid,
		.nr = t->nr,
		.abi = t->abi,
		.in_call = t->in_call,
	};

	bpf_seq_write(seq, &th, sizeof(th));
}

SEC("iter/task")
int list_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct run_task *t;

	if (!task)
		return 0;
	t = thread_of(task);
	if (t && t->life && !(task->flags & PF_EXITING))
		tell_thread(ctx->meta->seq, task, t);
	return 0;
}

/* Mark the threads of a leader that was marked for it; tell those that are new. */
SEC("iter/task")
int adopt_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct run_task *leader, *t;

	if (!task || (task->flags & PF_EXITING))
		return 0;
	leader = thread_of(task->group_leader);
	if (!leader || !leader->adopting || mark_of(task))
		return 0;
	t = thread_new(task);
	if (!t)
		return 0;
	t->life = leader->life;
	tell_thread(ctx->meta->seq, task, t);
	return 0;
}
