// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A node of `statpage trace`: the time of a function's calls, or from X to Y. A start is kept until its
 * end comes, on a short stack of whoever ran it: that is the task, in its own storage, so a call may
 * sleep, migrate and recurse; in an interrupt it is the CPU and the kind of interrupt.
 *
 * A call is known by its frame, the same at entry and return: so a return that nobody saw makes no other
 * one wrong, and is counted when the stack shows that it must have been. Only what a node needs is
 * loaded: one program for the begin, one for the end, and one for tasks that die in between.
 */
#include "bpf/compat.bpf.h"

#include "include/uapi/dist_bpf.h"
#include "include/uapi/kstats_bucket.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

const volatile struct dist_bpf_conf conf;
struct dist_bpf_ctl ctl;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* set by the loader, as the gap's */
	__type(key, __u32);
	__type(value, struct dist_bpf_cell);
} slots SEC(".maps"), gap_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DIST_BPF_ROWS);
	__type(key, __u32);
	__type(value, struct dist_bpf_tally);
} tally SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct dist_bpf_stack);
} task_stack SEC(".maps");

/* By kind of context; `by cpu` has the first one for all. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, struct dist_bpf_stack);
} cpu_stack SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} last_end SEC(".maps"); /* of a call on this CPU; 0: its gap has been taken */

static __always_inline struct dist_bpf_tally *row(__u32 which)
{
	return bpf_map_lookup_elem(&tally, &which);
}

/* The number of the process in the pid namespace that the filter was given in; 0: not there. */
static __always_inline __u32 tgid_there(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct pid *pid = BPF_CORE_READ(task, group_leader, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level);
	struct upid u;

	for (__u32 i = 0; i < 4 && i <= level; i++) {
		if (bpf_probe_read_kernel(&u, sizeof(u),
					  (void *)pid + bpf_core_field_offset(struct pid, numbers) +
						  i * sizeof(u)))
			break;
		if (BPF_CORE_READ(u.ns, ns.inum) == conf.pid_ns)
			return u.nr;
	}
	return 0;
}

static __always_inline bool wants_task(void)
{
	char comm[16] = "";

	if (conf.tgid && tgid_there() != conf.tgid)
		return false;
	if (!conf.by_comm)
		return true;
	bpf_get_current_comm(comm, sizeof(comm));
	for (int i = 0; i < 16; i++) {
		if (comm[i] != conf.comm[i])
			return false;
		if (!comm[i])
			break;
	}
	return true;
}

/* Of who is running; NULL: there is none, or there can be none. */
static __always_inline struct dist_bpf_stack *stack_here(bool make)
{
	__u32 kind = conf.by_cpu ? 0 : compat_interrupt();

	if (conf.by_cpu || kind)
		return bpf_map_lookup_elem(&cpu_stack, &kind);
	return bpf_task_storage_get(&task_stack, bpf_get_current_task_btf(), 0,
				    make ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
}

/*
 * A CPU's stack may be in use by what this interrupt, or a task that took the CPU over, came into the
 * middle of. Others have one user at a time.
 */
static __always_inline bool enter(struct dist_bpf_stack *s)
{
	return !conf.by_cpu || !__sync_lock_test_and_set(&s->busy, 1);
}

static __always_inline void leave(struct dist_bpf_stack *s)
{
	if (conf.by_cpu)
		__sync_lock_test_and_set(&s->busy, 0);
}

static __always_inline void put(void *map, struct dist_bpf_tally *t, bool stopped, __u64 from,
				__u64 now)
{
	struct dist_bpf_cell *cell;
	__u64 v = now - from;
	__u32 slot;

	if ((__s64)v < 0) {
		t->n[DIST_BPF_MISS_CLOCK]++;
	} else if (stopped) {
		t->n[DIST_BPF_STOPPED]++;
	} else if (conf.cpu >= 0 && bpf_get_smp_processor_id() != conf.cpu) {
		t->n[DIST_BPF_FILTERED]++;
	} else {
		slot = kstats_slot(v, conf.bits);
		cell = bpf_map_lookup_elem(map, &slot);
		if (cell) {
			cell->count++;
			cell->sum += v;
		}
	}
}

/* The time; and the gap since the latest end on this CPU, which only the first of overlapping calls sees. */
static __always_inline __u64 start_time(void)
{
	struct dist_bpf_tally *t;
	__u64 *last, end, now;
	__u32 zero = 0;

	if (!conf.gap)
		return bpf_ktime_get_ns();
	last = bpf_map_lookup_elem(&last_end, &zero);
	end = last ? __sync_lock_test_and_set(last, 0) : 0;
	now = bpf_ktime_get_ns();
	t = row(DIST_BPF_GAP);
	if (end && t)
		put(&gap_slots, t, ctl.gap_stopped, end, now);
	return now;
}

static __always_inline void lose(struct dist_bpf_tally *t, __u32 cause)
{
	t->n[cause]++;
	t->n[DIST_BPF_EXIT]++;
}

/* A call that is as deep as this one, or deeper, is over, though its return was not seen. */
static __always_inline void drop_dead(struct dist_bpf_tally *t, struct dist_bpf_stack *s,
				      __u64 frame)
{
	for (int i = 0; i < DIST_BPF_NEST; i++) {
		if (!s->nr || s->frame[(s->top - 1) & (DIST_BPF_NEST - 1)] > frame)
			return;
		s->top--;
		s->nr--;
		lose(t, DIST_BPF_MISS_INSTANCE);
	}
}

/* Full, the oldest makes room, as its end has most likely been missed. */
static __always_inline void push(struct dist_bpf_tally *t, struct dist_bpf_stack *s, __u64 frame)
{
	__u32 at;

	if (frame)
		drop_dead(t, s, frame);
	if (s->nr >= DIST_BPF_NEST)
		lose(t, DIST_BPF_MISS_NEST);
	else
		s->nr++;
	at = s->top++ & (DIST_BPF_NEST - 1);
	s->frame[at] = frame;
	s->start[at] = start_time();
}

/* The start that belongs to this end; false: there is none. */
static __always_inline bool pop(struct dist_bpf_tally *t, struct dist_bpf_stack *s, __u64 frame,
				__u64 *start)
{
	__u32 at;

	for (int i = 0; i < DIST_BPF_NEST; i++) {
		at = (s->top - 1) & (DIST_BPF_NEST - 1);
		if (!s->nr || s->frame[at] > frame)
			return false;
		s->top--;
		s->nr--;
		*start = s->start[at];
		if (s->frame[at] == frame)
			return true;
		lose(t, DIST_BPF_MISS_INSTANCE);
	}
	return false;
}

static __always_inline int begin(__u64 frame)
{
	struct dist_bpf_tally *t = row(DIST_BPF_BEGIN);
	struct dist_bpf_stack *s;

	if (!t)
		return 0;
	t->n[DIST_BPF_ENTRY]++;
	if (!wants_task()) {
		lose(t, DIST_BPF_FILTERED);
		return 0;
	}
	s = stack_here(true);
	if (!s) {
		lose(t, DIST_BPF_MISS_TABLE);
	} else if (!enter(s)) {
		lose(t, DIST_BPF_MISS_BUSY);
	} else {
		push(t, s, frame);
		leave(s);
	}
	return 0;
}

static __always_inline int end(__u64 frame)
{
	struct dist_bpf_tally *t = row(DIST_BPF_END);
	struct dist_bpf_stack *s = stack_here(false);
	__u64 start, now, *last;
	bool found = false;
	__u32 zero = 0;

	if (!t)
		return 0;
	if (s && enter(s)) {
		found = pop(t, s, frame, &start);
		leave(s);
	}
	if (!found) {
		if (wants_task())
			t->n[DIST_BPF_UNPAIRED]++;
		return 0;
	}
	now = bpf_ktime_get_ns();
	if (conf.gap) {
		last = bpf_map_lookup_elem(&last_end, &zero);
		if (last)
			*last = now;
	}
	put(&slots, t, ctl.stopped, start, now);
	t->n[DIST_BPF_EXIT]++;
	return 0;
}

/* Both programs of one call get the same place on its trampoline's stack. */
SEC("fentry") int call_fentry(void *ctx)
{
	return begin((__u64)ctx);
}

SEC("fexit") int call_fexit(void *ctx)
{
	return end((__u64)ctx);
}

SEC("kprobe") int call_kprobe(struct pt_regs *ctx)
{
	return begin(PT_REGS_SP(ctx) + COMPAT_RETURN_POPS);
}

SEC("kretprobe") int call_kretprobe(struct pt_regs *ctx)
{
	return end(PT_REGS_SP(ctx));
}

SEC("fentry") int start_fentry(void *ctx)
{
	return begin(0);
}

SEC("kprobe") int start_kprobe(void *ctx)
{
	return begin(0);
}

SEC("raw_tp") int start_tp(void *ctx)
{
	return begin(0);
}

SEC("fentry") int end_fentry(void *ctx)
{
	return end(0);
}

SEC("kprobe") int end_kprobe(void *ctx)
{
	return end(0);
}

SEC("raw_tp") int end_tp(void *ctx)
{
	return end(0);
}

/*
 * The open starts of a task that runs no more. On kernels before 6.3 the helper finds nothing where this
 * interrupt came into the middle of another use of task storage; so what it would look through is.
 */
static __always_inline __u32 open_starts(struct task_struct *task)
{
	struct bpf_local_storage *storage = BPF_CORE_READ(task, bpf_storage);
	struct bpf_local_storage_elem *elem;
	struct hlist_node *node;
	__u32 nr = 0;

	node = storage ? BPF_CORE_READ(storage, list.first) : NULL;
	for (int i = 0; i < 64 && node; i++, node = BPF_CORE_READ(node, next)) {
		elem = (void *)node - bpf_core_field_offset(struct bpf_local_storage_elem, snode);
		if (BPF_CORE_READ(elem, sdata.smap, map.id) != ((struct bpf_map *)&task_stack)->id)
			continue;
		bpf_probe_read_kernel(
			&nr, sizeof(nr),
			(void *)elem +
				bpf_core_field_offset(struct bpf_local_storage_elem, sdata.data) +
				__builtin_offsetof(struct dist_bpf_stack, nr));
		break;
	}
	return nr;
}

/* Its memory is about to go, and its open starts get no end. */
SEC("tp_btf/sched_process_free") int BPF_PROG(died, struct task_struct *task)
{
	struct dist_bpf_tally *t = row(DIST_BPF_DIED);
	__u32 nr = open_starts(task);

	if (t) {
		t->n[DIST_BPF_MISS_DIED] += nr;
		t->n[DIST_BPF_EXIT] += nr;
	}
	return 0;
}
