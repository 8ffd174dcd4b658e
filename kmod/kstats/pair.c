// SPDX-License-Identifier: GPL-2.0
/*
 * X..Y: a start is kept until its end comes, on a short stack of whoever ran it. That is the task; in
 * an interrupt it is the CPU and the kind of interrupt, never the task that happened to run there.
 * (The idle task needs no case of its own: each CPU has its own task_struct.) With `by cpu` it is the
 * CPU whatever runs on it.
 *
 * Only its owner touches a stack, and an owner is in one place at a time; so nothing is locked. The
 * one exception, a task's death, happens when the task can run no more.
 */
#include <linux/hash.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "record.h"
#include "node.h"

/* Open starts, the oldest first; full, the oldest makes room, as its end has most likely been missed. */
struct stack {
	unsigned int nr;
	u64 start[KSTATS_NEST_MAX];
};

/*
 * Stacks of tasks and interrupts: a bucket has room for WAYS owners, and an owner is looked for in its
 * bucket only. owner is 0 when a place is free, and changes from 0 by cmpxchg.
 */
#define BUCKET_BITS 8
#define WAYS	    8
struct bucket {
	unsigned long owner[WAYS]; /* one cache line: a look-up reads just this */
	struct stack stack[WAYS];
};

struct kstats_pairs {
	struct stack __percpu *cpu_stack; /* by cpu; else NULL */
	struct bucket bucket[];
};

struct kstats_pairs *kstats_pairs_new(bool by_cpu)
{
	struct kstats_pairs *pairs;

	pairs = kvzalloc(struct_size(pairs, bucket, by_cpu ? 0 : 1 << BUCKET_BITS), GFP_KERNEL);
	if (!pairs || !by_cpu)
		return pairs;
	pairs->cpu_stack = alloc_percpu(struct stack);
	if (!pairs->cpu_stack) {
		kvfree(pairs);
		return NULL;
	}
	return pairs;
}

void kstats_pairs_free(struct kstats_pairs *pairs)
{
	if (!pairs)
		return;
	free_percpu(pairs->cpu_stack);
	kvfree(pairs);
}

/* Small numbers are interrupts, as no task_struct lies there. */
static __always_inline unsigned long owner_here(void)
{
	unsigned int kind;

	if (likely(in_task()))
		return (unsigned long)current;
	kind = in_nmi() ? 3 : in_hardirq() ? 2 : 1;
	return raw_smp_processor_id() * 4 + kind;
}

static __always_inline struct bucket *bucket_of(struct kstats_pairs *pairs, unsigned long owner)
{
	return &pairs->bucket[hash_long(owner, BUCKET_BITS)];
}

static __always_inline int way_of(const struct bucket *b, unsigned long owner)
{
	int i;

	for (i = 0; i < WAYS; i++)
		if (READ_ONCE(b->owner[i]) == owner)
			return i;
	return -1;
}

/* A stack for the owner, empty if it is a new one; NULL when the bucket is full. */
static __always_inline struct stack *claim(struct bucket *b, unsigned long owner)
{
	int i = way_of(b, owner);

	if (i >= 0)
		return &b->stack[i];
	for (i = 0; i < WAYS; i++)
		if (!READ_ONCE(b->owner[i]) && !cmpxchg(&b->owner[i], 0, owner))
			return &b->stack[i];
	return NULL;
}

static __always_inline void push(struct kstats *ks, struct stack *s, u64 start)
{
	int i;

	if (s->nr == KSTATS_NEST_MAX) {
		for (i = 1; i < KSTATS_NEST_MAX; i++)
			s->start[i - 1] = s->start[i];
		s->nr--;
		kstats_event(ks, KSTATS_MISS_NEST);
		kstats_event(ks, KSTATS_EXIT);
	}
	s->start[s->nr++] = start;
}

static void start_by_task(struct kstats *ks, struct kstats_pairs *pairs)
{
	unsigned long owner = owner_here();
	struct stack *s = claim(bucket_of(pairs, owner), owner);

	if (likely(s)) {
		push(ks, s, kstats_begin(ks));
		return;
	}
	kstats_event(ks, KSTATS_MISS_TABLE);
	kstats_event(ks, KSTATS_EXIT);
}

/* Interrupts of this CPU share its stack, so they are kept out; an NMI cannot be. */
static void start_by_cpu(struct kstats *ks, struct kstats_pairs *pairs)
{
	unsigned long flags;

	if (in_nmi()) {
		kstats_event(ks, KSTATS_MISS_NMI);
		kstats_event(ks, KSTATS_EXIT);
		return;
	}
	raw_local_irq_save(flags);
	push(ks, raw_cpu_ptr(pairs->cpu_stack), kstats_begin(ks));
	raw_local_irq_restore(flags);
}

notrace void kstats_pair_start(struct kstats_node *node)
{
	struct kstats *ks = node->ks;

	kstats_event(ks, KSTATS_ENTRY);
	if (!kstats_wants_task(node)) {
		kstats_event(ks, KSTATS_FILTERED);
		kstats_event(ks, KSTATS_EXIT);
	} else if (node->by_cpu) {
		start_by_cpu(ks, node->pairs);
	} else {
		start_by_task(ks, node->pairs);
	}
}

static __always_inline void pop(struct kstats *ks, struct stack *s)
{
	kstats_finish(ks, s->start[--s->nr]);
	kstats_event(ks, KSTATS_EXIT);
}

static void end_by_task(struct kstats *ks, struct kstats_pairs *pairs)
{
	unsigned long owner = owner_here();
	struct bucket *b = bucket_of(pairs, owner);
	int i = way_of(b, owner);

	if (i < 0) {
		kstats_event(ks, KSTATS_UNPAIRED);
		return;
	}
	pop(ks, &b->stack[i]);
	if (!b->stack[i].nr) /* pairs with the cmpxchg of who takes the place next */
		smp_store_release(&b->owner[i], 0);
}

static void end_by_cpu(struct kstats *ks, struct kstats_pairs *pairs)
{
	unsigned long flags;
	struct stack *s;

	if (in_nmi()) {
		kstats_event(ks, KSTATS_UNPAIRED);
		return;
	}
	raw_local_irq_save(flags);
	s = raw_cpu_ptr(pairs->cpu_stack);
	if (s->nr)
		pop(ks, s);
	else
		kstats_event(ks, KSTATS_UNPAIRED);
	raw_local_irq_restore(flags);
}

notrace void kstats_pair_end(struct kstats_node *node)
{
	if (node->by_cpu)
		end_by_cpu(node->ks, node->pairs);
	else
		end_by_task(node->ks, node->pairs);
}

/* The task's memory is about to be reused: its open starts get no end. It does not run any more. */
notrace void kstats_pairs_task_died(struct kstats_node *node, struct task_struct *task)
{
	unsigned long owner = (unsigned long)task;
	struct bucket *b;
	int i;

	if (node->by_cpu)
		return;
	b = bucket_of(node->pairs, owner);
	i = way_of(b, owner);
	if (i < 0)
		return;
	for (; b->stack[i].nr; b->stack[i].nr--) {
		kstats_event(node->ks, KSTATS_MISS_DIED);
		kstats_event(node->ks, KSTATS_EXIT);
	}
	smp_store_release(&b->owner[i], 0);
}
