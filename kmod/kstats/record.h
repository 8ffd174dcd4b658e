/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The hot path, inlined into every hook and into kstats_record(). Nothing here may be traced, sleep or
 * take a lock: it runs inside any traced function, in any context.
 */
#ifndef KSTATS_RECORD_H
#define KSTATS_RECORD_H

#include "clock.h"
#include "internal.h"

void kstats_put_slow(struct kstats *ks, u64 v);
void kstats_put_since_slow(struct kstats *ks, u64 start, u64 now);

static __always_inline void kstats_event(struct kstats *ks, enum kstats_event e)
{
	this_cpu_inc(ks->tally->n[e]);
}

#if BITS_PER_LONG == 64
/*
 * Each add is one instruction on this CPU's copy, so neither an interrupt nor an NMI can lose it. A
 * task that is preempted in between may leave count and sum on two CPUs: the sum of both is right.
 */
static __always_inline void kstats_add(struct kstats *ks, u32 slot, u64 v)
{
	struct kstats_cell __percpu *cell = &ks->hist->cell[slot];

	this_cpu_inc(cell->count);
	this_cpu_add(cell->sum, v);
}
#else
static __always_inline void kstats_add(struct kstats *ks, u32 slot, u64 v)
{
	struct kstats_hist *hist;
	unsigned long flags;

	if (in_nmi()) { /* it may have interrupted an update */
		kstats_event(ks, KSTATS_MISS_NMI);
		return;
	}
	raw_local_irq_save(flags);
	hist = raw_cpu_ptr(ks->hist);
	u64_stats_update_begin(&hist->sync);
	hist->cell[slot].count++;
	hist->cell[slot].sum += v;
	u64_stats_update_end(&hist->sync);
	raw_local_irq_restore(flags);
}
#endif

/*
 * The default geometry is compiled in, and what is unusual goes to the _slow functions before anything
 * has been done: so the fast functions call nothing, and need no stack frame.
 */
#define QUICK_BITS KSTATS_BITS_DEFAULT
#define QUICK_LOW  (1 << QUICK_BITS) /* smaller ones would need a case of their own */
static_assert(KSTATS_QUICK_NS == 1 << (KSTATS_SUM_EXP + QUICK_BITS + 1)); /* no sum is shifted */

static __always_inline void kstats_add_quick(struct kstats *ks, u64 v)
{
	kstats_add(ks, kstats_slot(v, QUICK_BITS), v);
}

/* Record v. A racing change of mode takes effect a sample earlier or later, so it is just read. */
static __always_inline void kstats_put(struct kstats *ks, u64 v)
{
	u32 exp;

	if (likely(v - QUICK_LOW < data_race(ks->quick_value))) {
		exp = kstats_msb(v) - QUICK_BITS;
		kstats_add(ks, kstats_slot_at(v, QUICK_BITS, exp), v);
	} else {
		kstats_put_slow(ks, v);
	}
}

/* Record the time from start to now. */
static __always_inline void kstats_put_since(struct kstats *ks, u64 start, u64 now)
{
	u64 delta = now - start;

	if (likely(delta < data_race(ks->quick_time)))
		kstats_add_quick(ks, kstats_to_ns(delta));
	else
		kstats_put_since_slow(ks, start, now);
}

/* A call begins: its gap since the latest end on this CPU. Returns the time. */
static __always_inline u64 kstats_begin(struct kstats *ks)
{
	u64 now, end;

	if (!ks->gap)
		return kstats_now();
	preempt_disable_notrace();
	now = kstats_now();
	/* Taken, so that of overlapping calls only the first one sees it. */
	end = this_cpu_xchg(*ks->last_end, 0);
	if (end)
		kstats_put_since(ks->gap, end, now);
	preempt_enable_notrace();
	return now;
}

/* A call ends. */
static __always_inline void kstats_finish(struct kstats *ks, u64 start)
{
	u64 now;

	if (!ks->gap) {
		kstats_put_since(ks, start, kstats_now());
		return;
	}
	preempt_disable_notrace();
	now = kstats_now();
	this_cpu_write(*ks->last_end, now);
	kstats_put_since(ks, start, now);
	preempt_enable_notrace();
}

#endif /* KSTATS_RECORD_H */
