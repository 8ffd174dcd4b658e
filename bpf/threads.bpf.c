// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Thread time without a module: a registered thread has its slot in task storage, and in that slot of
 * `pages` a map of its own, which its process has mapped. Same page, same rules as kmod/csf/thread.c, but
 * for the clock, which is CLOCK_MONOTONIC: no program of this kind can read the TSC.
 *
 * A page is written by its thread's own switches only, on the CPU that switches, so seq has one writer. It
 * begins at the first switch to the thread after it was registered; one that a viewer asked for at once, by
 * the iterator, before its thread knows of it.
 */
#include "bpf/compat.bpf.h"

/* vmlinux.h has what <stddef.h> would define again. */
#define __KERNEL__
#undef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#include "include/uapi/coarse_stat_fs.h"
#include "include/uapi/threads_bpf.h"

/* Of include/linux/sched.h; macros are in no BTF. */
#define TASK_RUNNING	     0x0
#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_DEAD	     0x80
#define TASK_WAKING	     0x200
#define TASK_NOLOAD	     0x400
#define TASK_RTLOCK_WAIT     0x1000
#define PF_EXITING	     0x4
#define PF_IO_WORKER	     0x10
#define PF_KTHREAD	     0x200000

#define ESRCH  3
#define EPERM  1
#define EAGAIN 11
#define ENOMEM 12

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct page_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct csf_thread);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, THREADS_MAX);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__array(values, struct page_map);
} pages SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, THREADS_MAX);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, __u64); /* enum threads_slot; 8 bytes, as the kernel lays elements out */
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, int);
	__type(value, struct threads_owner);
} owners SEC(".maps");

struct threads_request request;
/* So that clang describes the type, which the inner map alone does not make it do. */
const struct csf_thread page_type = {};

static __always_inline struct threads_owner *owner_of(struct task_struct *task)
{
	return bpf_task_storage_get(&owners, task, 0, 0);
}

static __always_inline struct csf_thread *page_of(__u32 slot)
{
	void *map = bpf_map_lookup_elem(&pages, &slot);
	__u32 zero = 0;

	return map ? bpf_map_lookup_elem(map, &zero) : NULL;
}

static __always_inline bool ended(const struct csf_thread *pg)
{
	return pg->hdr.flags & (CSF_F_PARKED | CSF_F_DEAD);
}

/* Stores stay in order on x86, and so does the compiler. */
static __always_inline void write_begin(struct csf_thread *pg)
{
	*(volatile __u32 *)&pg->seq = pg->seq + 1;
	barrier();
}

static __always_inline void write_end(struct csf_thread *pg)
{
	barrier();
	*(volatile __u32 *)&pg->seq = pg->seq + 1;
}

/* ns since the last update, which becomes now. */
static __always_inline __u64 advance(struct csf_thread *pg)
{
	__u64 now = bpf_ktime_get_ns(), last = pg->last_switch_tsc;

	pg->last_switch_tsc = now;
	if (now >= last)
		return now - last;
	pg->start_tsc -= last - now;
	pg->nr_clamp++;
	return 0;
}

/* The bucket of a thread that blocked; see README.md, and kmod/csf/thread.c. */
static __always_inline __u32 blocked_bucket(struct task_struct *task)
{
	/* Not the tracepoint's, which may be of before a signal turned the call of schedule() back. */
	__u32 state = task->__state;

	if (state == TASK_RUNNING || state == TASK_WAKING)
		return CSF_RUNQ;
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		return CSF_IOWAIT;
	if ((state & TASK_UNINTERRUPTIBLE) && !(state & TASK_NOLOAD))
		return CSF_DSLEEP;
	if (state & TASK_RTLOCK_WAIT)
		return CSF_DSLEEP;
	return CSF_SLEEP;
}

static __always_inline void add(struct csf_thread *pg, __u32 state, __u64 ns)
{
	switch (state) {
	case CSF_ONCPU:
		pg->oncpu_cyc += ns;
		break;
	case CSF_RUNQ:
		pg->runq_cyc += ns;
		break;
	case CSF_DSLEEP:
		pg->dsleep_cyc += ns;
		break;
	case CSF_IOWAIT:
		pg->iowait_cyc += ns;
		break;
	default:
		pg->sleep_cyc += ns;
	}
}

/* What lags until the next switch. */
static __always_inline void copy_counters(struct csf_thread *pg, struct task_struct *task)
{
	pg->min_flt = task->min_flt;
	pg->maj_flt = task->maj_flt;
	pg->sum_exec_ns = task->se.sum_exec_runtime;
	pg->run_delay_ns = task->sched_info.run_delay;
	pg->utime_ns = task->utime;
	pg->stime_ns = task->stime;
	if (bpf_core_field_exists(task->ioac.syscr)) {
		pg->syscr = BPF_CORE_READ(task, ioac.syscr);
		pg->syscw = BPF_CORE_READ(task, ioac.syscw);
	}
	if (bpf_core_field_exists(task->ioac.read_bytes)) {
		pg->read_bytes = BPF_CORE_READ(task, ioac.read_bytes);
		pg->write_bytes = BPF_CORE_READ(task, ioac.write_bytes);
	}
}

/* The page is nobody's any more, and says so; its place may have another one. */
static __always_inline void retire(struct threads_owner *o, struct csf_thread *pg, __u32 flag)
{
	__u32 slot = o->slot;
	__u64 *in;

	o->taken = 0;
	o->started = 0;
	if (pg)
		__sync_fetch_and_or(&pg->hdr.flags, flag);
	in = bpf_map_lookup_elem(&slots, &slot);
	if (in)
		*in = THREADS_ENDED;
}

/*
 * The thread leaves for good, as far as this page is concerned. It is current, and may be preempted, on some
 * kernels: it is not taken from here on, so that its switches leave alone what is half written.
 */
static __always_inline void leave(struct task_struct *task, struct threads_owner *o, __u32 flag)
{
	struct csf_thread *pg = page_of(o->slot);

	if (!o->taken)
		return;
	*(volatile __u8 *)&o->taken = 0;
	barrier();
	if (pg && !ended(pg) && o->started) {
		write_begin(pg);
		pg->oncpu_cyc += advance(pg);
		copy_counters(pg, task);
		write_end(pg);
	}
	retire(o, pg, flag);
}

/*
 * A switch was missed: the time since the last one has a part on the CPU, which the scheduler counted, one of
 * waiting for it, likewise, and the rest.
 */
static __always_inline void catch_up(struct csf_thread *pg, struct task_struct *task, __u64 waited,
				     __u32 state)
{
	__u64 ns = advance(pg), on = task->se.sum_exec_runtime - pg->sum_exec_ns;

	if (on > ns)
		on = ns;
	if (waited > ns - on)
		waited = ns - on;
	pg->oncpu_cyc += on;
	pg->runq_cyc += waited;
	add(pg, state, ns - on - waited);
}

static __always_inline void came_to(struct csf_thread *pg, __u32 cpu)
{
	if (pg->cpu == cpu)
		return;
	pg->cpu = cpu;
	pg->nr_migrate++;
}

static __always_inline void switched_off(struct task_struct *task, __u32 state)
{
	struct threads_owner *o = owner_of(task);
	struct csf_thread *pg;
	bool preempted;
	__u64 mm;

	if (!o || !o->taken)
		return;
	if (state & TASK_DEAD) {
		leave(task, o, CSF_F_DEAD);
		return;
	}
	pg = page_of(o->slot);
	if (!pg || ended(pg) || !o->started)
		return;
	mm = (__u64)task->mm;
	/* Between the point of no return of an exec and its tracepoint, or that was missed. Kernel threads borrow one. */
	if (mm && mm != o->mm && !(task->flags & PF_KTHREAD)) {
		retire(o, pg, CSF_F_PARKED);
		return;
	}
	/* The count, unlike the state, says whether it blocked: see kmod/csf/thread.c. */
	preempted = task->nivcsw != o->nivcsw;
	write_begin(pg);
	if (pg->state == CSF_ONCPU) {
		pg->oncpu_cyc += advance(pg);
	} else {
		catch_up(pg, task, task->sched_info.run_delay - o->run_delay, pg->state);
		came_to(pg, bpf_get_smp_processor_id());
	}
	pg->state = preempted ? CSF_RUNQ : blocked_bucket(task);
	o->nivcsw = task->nivcsw;
	o->run_delay = task->sched_info.run_delay;
	pg->nr_block = task->nvcsw - o->nvcsw_start;
	pg->nr_preempt = task->nivcsw - o->nivcsw_start;
	copy_counters(pg, task);
	write_end(pg);
}

/*
 * How long it has waited for this CPU in all: run_delay, and what the scheduler will add to it in a moment:
 * the time since it was queued, by the run queue's own clock.
 */
static __always_inline __u64 waited_ns(struct task_struct *task)
{
	__u64 delay = task->sched_info.run_delay, queued = task->sched_info.last_queued, now;

	if (!queued)
		return delay;
	now = BPF_CORE_READ(task, se.cfs_rq, rq, clock);
	return now > queued ? delay + now - queued : delay;
}

static __always_inline void start(struct task_struct *task, struct threads_owner *o,
				  struct csf_thread *pg, __u32 state, __u32 cpu)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	struct upid u = {};

	bpf_probe_read_kernel(&u, sizeof(u),
			      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
				      BPF_CORE_READ(pid, level) * sizeof(u));
	o->mm = (__u64)task->mm;
	o->nvcsw_start = task->nvcsw;
	o->nivcsw = o->nivcsw_start = task->nivcsw;
	o->run_delay = waited_ns(task);
	write_begin(pg);
	pg->state = state;
	pg->tid = u.nr;
	pg->cpu = cpu;
	pg->start_tsc = pg->last_switch_tsc = bpf_ktime_get_ns();
	copy_counters(pg, task);
	write_end(pg);
	barrier();
	o->started = 1;
}

/*
 * The bucket of a thread that may be on another CPU. What is wrong by the time it is used is a switch that was
 * missed: see catch_up().
 */
static __always_inline __u32 state_now(struct task_struct *task)
{
	/* Bytes in newer kernels. */
	if (BPF_CORE_READ_BITFIELD(task, on_cpu))
		return CSF_ONCPU;
	if (BPF_CORE_READ_BITFIELD(task, on_rq) && !compat_sched_delayed(task))
		return CSF_RUNQ;
	return blocked_bucket(task);
}

static __always_inline void switched_on(struct task_struct *task)
{
	struct threads_owner *o = owner_of(task);
	struct csf_thread *pg;
	__u64 off, waited;

	if (!o || !o->taken)
		return;
	pg = page_of(o->slot);
	if (!pg || ended(pg))
		return;
	if (!o->started) {
		start(task, o, pg, CSF_ONCPU, bpf_get_smp_processor_id());
		return;
	}
	write_begin(pg);
	waited = waited_ns(task);
	pg->run_delay_ns = waited;
	waited -= o->run_delay;
	if (pg->state == CSF_ONCPU) {
		catch_up(pg, task, waited, CSF_SLEEP);
		copy_counters(pg, task);
	} else if (pg->state == CSF_RUNQ) {
		pg->runq_cyc += advance(pg);
	} else {
		off = advance(pg);
		if (waited > off)
			waited = off;
		add(pg, pg->state, off - waited);
		pg->runq_cyc += waited;
	}
	pg->state = CSF_ONCPU;
	came_to(pg, bpf_get_smp_processor_id());
	write_end(pg);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	switched_off(prev, prev_state);
	switched_on(next);
	return 0;
}

/*
 * While one of these two is preempted, which some kernels do, it is not started for who else execs or exits on
 * that CPU. Whose next switch tells, by a program that is never preempted.
 */
static __always_inline void left(struct task_struct *task, __u32 flag)
{
	struct threads_owner *o = owner_of(task);

	if (!o)
		return;
	leave(task, o, flag);
	/* After an exec it may have another page by now. */
	if (flag == CSF_F_DEAD)
		bpf_task_storage_delete(&owners, task);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	left(task, CSF_F_PARKED);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	left(task, CSF_F_DEAD);
	return 0;
}

/* Whether it is the thread that was asked for. */
static __always_inline bool is_asked(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	struct upid u = {};

	if (!pid)
		return false;
	bpf_probe_read_kernel(&u, sizeof(u),
			      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
				      BPF_CORE_READ(pid, level) * sizeof(u));
	if (!request.view && (__u32)u.nr != request.tid)
		return false;
	/* Another process, by a number used again. */
	return BPF_CORE_READ(task, group_leader, start_boottime) /
		       (1000000000 / request.ticks_a_second) ==
	       request.leader_ticks;
}

/* Part a thread from its page, from whatever CPU: the server waits for programs that may still write it. */
static __always_inline void part(struct task_struct *task, __u32 slot, __u64 *in)
{
	struct csf_thread *pg = page_of(slot);

	if (pg)
		__sync_fetch_and_or(&pg->hdr.flags, CSF_F_PARKED);
	*in = THREADS_LEFT;
	bpf_task_storage_delete(&owners, task);
}

/* Give the thread the slot of the request. An errno. */
static __always_inline int take(struct task_struct *task, struct threads_owner *o, __u64 *in)
{
	struct csf_thread *pg = page_of(request.slot);

	if (!pg)
		return ENOMEM;
	o->slot = request.slot;
	/* A sleeper may not be switched to for days. Its switches see the page once it is taken. */
	if (request.view)
		start(task, o, pg, state_now(task), compat_task_cpu(task));
	barrier();
	o->taken = 1;
	/* A full barrier: either its exit sees that, or we see its exit. */
	__sync_lock_test_and_set(in, request.view ? THREADS_VIEWED : THREADS_TAKEN);
	if (!(task->flags & PF_EXITING))
		return 0;
	part(task, o->slot, in);
	return ESRCH;
}

/* An exec of which nobody told us, and that was not switched off since. */
static __always_inline bool is_stale(struct task_struct *task, const struct threads_owner *o)
{
	return o->started && (__u64)task->mm != o->mm && !(task->flags & PF_KTHREAD);
}

/* The slot that the thread has already. An errno. */
static __always_inline int share(struct task_struct *task, struct threads_owner *o)
{
	struct csf_thread *pg = page_of(o->slot);
	__u32 slot = o->slot;
	__u64 *in = bpf_map_lookup_elem(&slots, &slot);

	if (!pg || !in)
		return ENOMEM;
	/* It is not the one who asks, so it may be running. */
	if (ended(pg) || is_stale(task, o)) {
		part(task, slot, in);
		return EAGAIN;
	}
	if (!request.view)
		__sync_lock_test_and_set(in, THREADS_TAKEN);
	else if (*in == THREADS_LEAVING)
		__sync_lock_test_and_set(in, THREADS_VIEWED);
	return 0;
}

/* Over the threads of a process, or at one: give the one that was asked for a slot, or tell which it has. */
SEC("iter/task")
int register_thread(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u32 slot = request.slot;
	struct threads_owner *o;
	__u64 *in;

	if (!task || !is_asked(task) || task->flags & PF_EXITING)
		return 0;
	if (!request.view && task->flags & (PF_KTHREAD | PF_IO_WORKER)) {
		request.error = EPERM;
		return 0;
	}
	in = bpf_map_lookup_elem(&slots, &slot);
	o = bpf_task_storage_get(&owners, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!o || !in) {
		request.error = ENOMEM;
		return 0;
	}
	/* Its own thread asks, and waits for the answer. */
	if (!request.view && is_stale(task, o))
		retire(o, page_of(o->slot), CSF_F_PARKED);
	request.answer = o->taken ? o->slot : slot;
	request.error = o->taken ? share(task, o) : take(task, o, in);
	return 0;
}

/* Over all threads: part those whose page no viewer wants any more from it. */
SEC("iter/task")
int release_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct threads_owner *o;
	__u32 slot;
	__u64 *in;

	if (!task)
		return 0;
	o = owner_of(task);
	if (!o || !o->taken)
		return 0;
	slot = o->slot;
	in = bpf_map_lookup_elem(&slots, &slot);
	if (in && *in == THREADS_LEAVING)
		part(task, slot, in);
	return 0;
}

/* The server goes in peace: nobody shall take the page's last word for the present. */
SEC("syscall")
int end_page(struct threads_end *end)
{
	struct csf_thread *pg = page_of(end->slot);

	if (pg)
		__sync_fetch_and_or(&pg->hdr.flags, CSF_F_DEAD);
	return 0;
}
