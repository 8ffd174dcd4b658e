// SPDX-License-Identifier: GPL-2.0
/*
 * The direct mechanism: a fixed pool of trampolines (direct_x86.S), each of which can be put around any
 * one function. What it costs others: while we hold a function, a BPF fentry program or a live patch
 * on it gets EBUSY, and we get EBUSY where they came first.
 *
 * A slot is used again, and its node freed, only when no task can be in its code. That is after:
 * unregistering; a grace period of tasks RCU, which waits for tasks that were preempted between the
 * slot's first instruction and its count, and a rude one, as tasks RCU does not look at idle tasks;
 * the count of calls inside going to 0, which may take as long as the traced function sleeps; and both
 * grace periods again, for the way from the second count to the return. All of that happens in a work
 * item; the function and the name are free at once.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/static_call.h>
#include <linux/workqueue.h>

#include "record.h"
#include "node.h"
#include "direct.h"

#ifdef KSTATS_DIRECT

enum slot_state {
	SLOT_FREE,
	SLOT_BUSY,    /* a hook is attached */
	SLOT_LEAVING, /* unregistered; calls may be inside */
	SLOT_SETTLED, /* and a grace period has passed, so no call can begin any more */
};

struct kstats_slot {
	struct ftrace_ops ops;
	enum slot_state state; /* slot_mutex */
	bool pins;	       /* holds a reference on this module; slot_mutex */
	bool told;	       /* that calls are inside; slot_mutex */
	struct kstats_hook *hook;
	unsigned long entry; /* which of the slot's entry points */
	u64 entries, exits;  /* counts when the hook was attached */
};

/* direct_x86.S knows the layout. */
struct kstats_slot_cpu {
	u64 entry, exit, end;
} __aligned(1 << KSTATS_SLOT_SHIFT);
DECLARE_PER_CPU(struct kstats_slot_cpu, kstats_slot_cpu[KSTATS_SLOTS]);
DEFINE_PER_CPU(struct kstats_slot_cpu, kstats_slot_cpu[KSTATS_SLOTS]);
DECLARE_PER_CPU(int, kstats_this_cpu);
DEFINE_PER_CPU(int, kstats_this_cpu);

/* What a slot hands to C: struct kstats of a call, struct kstats_hook of an entry. */
extern void *kstats_slot_arg[KSTATS_SLOTS];
void *kstats_slot_arg[KSTATS_SLOTS];

static struct kstats_slot slots[KSTATS_SLOTS];
static DEFINE_MUTEX(slot_mutex); /* inside kstats_mutex and around nothing */

static void drain(struct work_struct *work);
static DECLARE_DELAYED_WORK(drain_work, drain);

/* The static calls before they lead anywhere. */
static void nowhere(void)
{
}

#define ROW(X, a) X(a##0) X(a##1) X(a##2) X(a##3) X(a##4) X(a##5) X(a##6) X(a##7)
#define LEAN(X)	  ROW(X, 0) ROW(X, 1) ROW(X, 2) ROW(X, 3) ROW(X, 4) ROW(X, 5) ROW(X, 6) ROW(X, 7)
#define WIDE(X)	  ROW(X, w0) ROW(X, w1)

#define DEFINE_CALL(n)	DEFINE_STATIC_CALL(kstats_sc_##n, nowhere);
#define DECLARE_ALL(n)	extern char kstats_slot_plain_##n[], kstats_slot_gap_##n[];
#define DECLARE_LEAN(n) extern char kstats_slot_hit_##n[];
/* clang-format off */
LEAN(DEFINE_CALL)
WIDE(DEFINE_CALL)
LEAN(DECLARE_LEAN)
LEAN(DECLARE_ALL)
WIDE(DECLARE_ALL)
/* clang-format on */

static const struct slot_code {
	struct static_call_key *key;
	void *tramp;
	char *plain, *gap, *hit;
} code[KSTATS_SLOTS] = {
#define CODE_LEAN(n)                                                         \
	{&STATIC_CALL_KEY(kstats_sc_##n), &STATIC_CALL_TRAMP(kstats_sc_##n), \
	 kstats_slot_plain_##n, kstats_slot_gap_##n, kstats_slot_hit_##n},
#define CODE_WIDE(n)                                                         \
	{&STATIC_CALL_KEY(kstats_sc_##n), &STATIC_CALL_TRAMP(kstats_sc_##n), \
	 kstats_slot_plain_##n, kstats_slot_gap_##n, NULL},
	LEAN(CODE_LEAN) WIDE(CODE_WIDE)};

/* Called by the slots. */
void kstats_direct_return(struct kstats *ks, u64 start);
void kstats_direct_return_gap(struct kstats *ks, u64 start, u64 none2, u64 none3, u64 end_before);
void kstats_direct_hit(struct kstats_hook *hook);

notrace void kstats_direct_return(struct kstats *ks, u64 start)
{
	kstats_put_since(ks, start, rdtsc_ordered());
}

static noinline notrace void return_gap_slow(struct kstats *ks, u64 start, u64 end_before, u64 now)
{
	kstats_put_since(ks, start, now);
	if (end_before)
		kstats_put_since(ks->gap, end_before, start);
}

/*
 * The gap was measured where the call began, and is booked on the CPU where it ended. end_before is the
 * fifth argument as the multiplications need the registers of the third and fourth. A 0 in it, for no
 * gap, looks like a gap as long as the clock is old, so it leaves the fast path.
 */
notrace void kstats_direct_return_gap(struct kstats *ks, u64 start, u64 none2, u64 none3,
				      u64 end_before)
{
	int cpu = this_cpu_read(kstats_this_cpu);
	u64 now = rdtsc_ordered();
	u64 delta = now - start, gap = start - end_before;

	this_cpu_write(*ks->last_end, now);
	if (unlikely(cpu != this_cpu_read(kstats_this_cpu)))
		this_cpu_write(*ks->last_end, 0); /* the time is not this CPU's */
	if (likely((delta | gap) < data_race(ks->quick_both))) {
		kstats_add_quick(ks, kstats_to_ns(delta));
		kstats_add_quick(ks->gap, kstats_to_ns(gap));
	} else {
		return_gap_slow(ks, start, end_before, now);
	}
}

notrace void kstats_direct_hit(struct kstats_hook *hook)
{
	if (hook->role == KSTATS_START)
		kstats_pair_start(hook->node);
	else
		kstats_pair_end(hook->node);
}

static unsigned int index_of(const struct kstats_slot *slot)
{
	return slot - slots;
}

/* Exits first, so that there are never more of them than of entries. */
static void slot_counts(const struct kstats_slot *slot, u64 *entries, u64 *exits)
{
	unsigned int i = index_of(slot);
	int cpu;

	*entries = *exits = 0;
	for_each_possible_cpu(cpu)
		*exits += READ_ONCE(per_cpu(kstats_slot_cpu[i].exit, cpu));
	smp_rmb();
	for_each_possible_cpu(cpu)
		*entries += READ_ONCE(per_cpu(kstats_slot_cpu[i].entry, cpu));
}

static u64 calls_inside(const struct kstats_slot *slot)
{
	u64 entries, exits;

	slot_counts(slot, &entries, &exits);
	return entries - exits;
}

/* Of a hook, since it was attached; also after it has left its slot. Caller holds ks->lock. */
void kstats_direct_counts(const struct kstats_hook *hook, u64 *entries, u64 *exits)
{
	const struct kstats_slot *slot = hook->slot;

	if (!slot) {
		*entries = *exits = hook->calls;
		return;
	}
	slot_counts(slot, entries, exits);
	*entries -= slot->entries;
	*exits -= slot->exits;
}

static struct kstats_slot *slot_get(struct kstats_hook *hook, bool wide)
{
	unsigned int i = wide ? KSTATS_LEAN : 0, nr = wide ? KSTATS_SLOTS : KSTATS_LEAN;

	mutex_lock(&slot_mutex);
	for (; i < nr; i++) {
		if (slots[i].state != SLOT_FREE)
			continue;
		slots[i].state = SLOT_BUSY;
		slots[i].hook = hook;
		mutex_unlock(&slot_mutex);
		return &slots[i];
	}
	mutex_unlock(&slot_mutex);
	return NULL;
}

/* No task can be in the slot's code. */
static void slot_put(struct kstats_slot *slot)
{
	mutex_lock(&slot_mutex);
	if (slot->pins)
		module_put(THIS_MODULE);
	slot->pins = false;
	slot->told = false;
	slot->hook = NULL;
	memset(&slot->ops, 0,
	       sizeof(slot->ops)); /* 6.1 leaves pointers to the freed filter in it */
	slot->state = SLOT_FREE;
	mutex_unlock(&slot_mutex);
}

/* Point a slot that nobody is in at a hook's function. */
static void slot_aim(struct kstats_slot *slot, struct kstats_hook *hook)
{
	const struct slot_code *c = &code[index_of(slot)];
	struct kstats *ks = hook->node->ks;
	int cpu;

	slot_counts(slot, &slot->entries, &slot->exits);
	for_each_possible_cpu(cpu)
		per_cpu(kstats_slot_cpu[index_of(slot)].end, cpu) = 0;
	if (hook->role != KSTATS_CALL) {
		kstats_slot_arg[index_of(slot)] = hook;
		slot->entry = (unsigned long)c->hit;
		return;
	}
	ks->last_end = &kstats_slot_cpu[index_of(slot)].end;
	kstats_slot_arg[index_of(slot)] = ks;
	slot->entry = (unsigned long)(ks->gap ? c->gap : c->plain);
	__static_call_update(c->key, c->tramp, (void *)(hook->ip + MCOUNT_INSN_SIZE));
}

/* Does the function need a wide slot? Or an errno. */
static int needs_wide(struct kstats_hook *hook, struct kstats_why *why)
{
	char name[KSYM_SYMBOL_LEN];
	int words;

	if (hook->role != KSTATS_CALL)
		return 0; /* the function's frame stays where it is */
	sprint_symbol(name, hook->ip);
	words = strchr(name, '[') ? -ENOENT : kstats_stack_words(name, strcspn(name, "+"));
	if (words > KSTATS_WORDS)
		return kstats_fail(why, -EOPNOTSUPP,
				   "direct: more than %d words of stack arguments", KSTATS_WORDS);
	return words != 0;
}

int kstats_attach_direct(struct kstats_hook *hook, struct kstats_why *why)
{
	struct kstats_slot *slot;
	int err, wide;

	if (!static_key_enabled(&kstats_tsc))
		return kstats_fail(why, -EOPNOTSUPP, "direct: the TSC is not usable");
	if (hook->role == KSTATS_CALL && hook->node->ks->gap && kstats_filters_task(hook->node))
		return kstats_fail(why, -EOPNOTSUPP, "direct: a task filter needs gap no");
	wide = needs_wide(hook, why);
	if (wide < 0)
		return wide;
	err = kstats_canary_get(why);
	if (err)
		return err;
	slot = slot_get(hook, wide);
	if (!slot) {
		err = kstats_fail(why, -EBUSY, "direct: all %d slots %s are in use",
				  wide ? KSTATS_WIDE : KSTATS_LEAN,
				  wide ? "for stack arguments" : "without stack arguments");
		goto err_canary;
	}
	slot_aim(slot, hook);
	err = ftrace_set_filter_ip(&slot->ops, hook->ip, 0, 1);
	if (err) {
		err = kstats_fail(why, err, "direct: not a function that ftrace can patch");
		goto err_slot;
	}
	err = register_ftrace_direct(&slot->ops, slot->entry);
	if (err == -EBUSY)
		kstats_fail(why, err, "direct: a BPF program or a live patch holds the function");
	else if (err)
		kstats_fail(why, err, "direct: refused, errno %d", -err);
	if (err)
		goto err_filter;
	hook->slot = slot;
	hook->via = KSTATS_VIA_DIRECT;
	hook->attached = true;
	return 0;

err_filter:
	ftrace_free_filter(&slot->ops);
err_slot:
	slot_put(slot);
err_canary:
	kstats_canary_put();
	return err;
}

/* The function is free on return; the node is held until the slot is. */
void kstats_detach_direct(struct kstats_hook *hook)
{
	struct kstats_slot *slot = hook->slot;

	unregister_ftrace_direct(&slot->ops, slot->entry, true);
	hook->attached = false;
	kstats_canary_put();
	refcount_inc(&hook->node->users);
	mutex_lock(&slot_mutex);
	slot->state = SLOT_LEAVING;
	mutex_unlock(&slot_mutex);
	queue_delayed_work(system_long_wq, &drain_work, 0);
}

/* The hook has no slot any more, and its node may go. */
static void slot_release(struct kstats_slot *slot)
{
	struct kstats_hook *hook = slot->hook;
	struct kstats_node *node = hook->node;
	u64 entries, exits;

	mutex_lock(&node->ks->lock); /* readers of the ledger */
	kstats_direct_counts(hook, &entries, &exits);
	hook->calls = exits;
	hook->slot = NULL;
	mutex_unlock(&node->ks->lock);
	slot_put(slot);
	kstats_node_put(node);
}

/* While a call is inside, the module's code must stay. */
static void pin(struct kstats_slot *slot, bool inside)
{
	lockdep_assert_held(&slot_mutex);
	if (inside == slot->pins)
		return;
	if (!inside)
		module_put(THIS_MODULE);
	else if (!try_module_get(THIS_MODULE))
		return; /* unloading, and kstats_direct_exit() waits */
	slot->pins = inside;
}

/* Called once a second: a function that somebody sleeps in keeps the module. */
void kstats_direct_pin(void)
{
	unsigned int i;

	mutex_lock(&slot_mutex);
	for (i = 0; i < KSTATS_SLOTS; i++)
		if (slots[i].state == SLOT_BUSY)
			pin(&slots[i], calls_inside(&slots[i]));
	mutex_unlock(&slot_mutex);
}

static void wait_for_code(void)
{
	synchronize_rcu_tasks();
	synchronize_rcu_tasks_rude();
}

/* One round over the slots that were left. Returns how many still are. */
static unsigned int drain_round(void)
{
	DECLARE_BITMAP(leaving, KSTATS_SLOTS) = {};
	DECLARE_BITMAP(empty, KSTATS_SLOTS) = {};
	unsigned int i, left = 0;
	u64 inside;

	mutex_lock(&slot_mutex);
	for (i = 0; i < KSTATS_SLOTS; i++)
		if (slots[i].state == SLOT_LEAVING)
			__set_bit(i, leaving);
	mutex_unlock(&slot_mutex);
	if (!bitmap_empty(leaving, KSTATS_SLOTS))
		wait_for_code();

	mutex_lock(&slot_mutex);
	for (i = 0; i < KSTATS_SLOTS; i++) {
		if (test_bit(i, leaving))
			slots[i].state = SLOT_SETTLED;
		left += slots[i].state == SLOT_LEAVING || slots[i].state == SLOT_SETTLED;
		if (slots[i].state != SLOT_SETTLED)
			continue;
		inside = calls_inside(&slots[i]);
		if (inside && !slots[i].told)
			pr_info("%s: %llu calls are still inside %s: no unloading until they return\n",
				slots[i].hook->node->ks->name, inside, slots[i].hook->node->start);
		slots[i].told = inside;
		pin(&slots[i], inside);
		if (!inside)
			__set_bit(i, empty);
	}
	mutex_unlock(&slot_mutex);
	if (bitmap_empty(empty, KSTATS_SLOTS))
		return left;
	wait_for_code();
	for_each_set_bit(i, empty, KSTATS_SLOTS)
		slot_release(&slots[i]);
	return left - bitmap_weight(empty, KSTATS_SLOTS);
}

static void drain(struct work_struct *work)
{
	if (drain_round())
		queue_delayed_work(system_long_wq, &drain_work, HZ / 10);
}

/* Slots that are not free yet after their node was removed, in comment lines. */
void kstats_direct_show(struct seq_file *m)
{
	struct kstats_hook *hook;
	unsigned int i;
	u64 inside;

	mutex_lock(&slot_mutex);
	for (i = 0; i < KSTATS_SLOTS; i++) {
		if (slots[i].state != SLOT_LEAVING && slots[i].state != SLOT_SETTLED)
			continue;
		hook = slots[i].hook;
		inside = calls_inside(&slots[i]);
		if (inside)
			seq_printf(m, "# removed %s: %llu calls still inside %s\n",
				   hook->node->ks->name, inside, hook->node->start);
		else
			seq_printf(m, "# removed %s: its slot is free in a moment\n",
				   hook->node->ks->name);
	}
	mutex_unlock(&slot_mutex);
}

int kstats_direct_init(void)
{
	int cpu;

	BUILD_BUG_ON(offsetof(struct kstats_slot_cpu, entry) != KSTATS_SLOT_ENTRY);
	BUILD_BUG_ON(offsetof(struct kstats_slot_cpu, exit) != KSTATS_SLOT_EXIT);
	BUILD_BUG_ON(offsetof(struct kstats_slot_cpu, end) != KSTATS_SLOT_END);
	BUILD_BUG_ON(sizeof(struct kstats_slot_cpu) != 1 << KSTATS_SLOT_SHIFT);
	for_each_possible_cpu(cpu)
		per_cpu(kstats_this_cpu, cpu) = cpu;
	return 0;
}

/* All nodes have been removed. Calls that got inside since the last look have to come out. */
void kstats_direct_exit(void)
{
	unsigned int rounds = 0;

	cancel_delayed_work_sync(&drain_work);
	while (drain_round()) {
		if (rounds++ % 100 == 99)
			pr_warn("unloading waits for calls that are still inside traced functions\n");
		msleep(100);
	}
}

#else /* !KSTATS_DIRECT */

int kstats_attach_direct(struct kstats_hook *hook, struct kstats_why *why)
{
	return kstats_fail(why, -EOPNOTSUPP, "direct: not on this architecture or kernel");
}

void kstats_detach_direct(struct kstats_hook *hook)
{
}

void kstats_direct_counts(const struct kstats_hook *hook, u64 *entries, u64 *exits)
{
}

void kstats_direct_pin(void)
{
}

void kstats_direct_show(struct seq_file *m)
{
}

int kstats_direct_init(void)
{
	return 0;
}

void kstats_direct_exit(void)
{
}

#endif /* KSTATS_DIRECT */
