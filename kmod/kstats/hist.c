// SPDX-License-Identifier: GPL-2.0
/* Histograms: recording, and reading them and their ledger back. */
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "record.h"
#include "node.h"

/* Any geometry, any value; see struct kstats_cell about the shift. */
static void put(struct kstats *ks, u64 v)
{
	u32 exp = kstats_exp(v, ks->bits);
	u32 slot = kstats_slot_at(v, ks->bits, exp);

	kstats_add(ks, slot, exp > KSTATS_SUM_EXP ? v >> (exp - KSTATS_SUM_EXP) : v);
}

/* The fast path had no use for the sample: find out why. */
noinline notrace void kstats_put_slow(struct kstats *ks, u64 v)
{
	u8 mode = READ_ONCE(ks->mode);
	const struct kstats_node *node = ks->node;

	if (mode & KSTATS_MODE_STOPPED) {
		kstats_event(ks, KSTATS_STOPPED);
		return;
	}
	if (mode & KSTATS_MODE_FILTER) {
		if ((node->filter.cpu >= 0 && raw_smp_processor_id() != node->filter.cpu) ||
		    (node->task_filter_at_end && !kstats_wants_task(node))) {
			kstats_event(ks, KSTATS_FILTERED);
			return;
		}
	}
	put(ks, v);
}

/*
 * Stamps of two CPUs, and a TSC that was set back, may be out of order. Of an annotated metric that is all
 * that a lost clock stops: it may get values that are no times.
 */
noinline notrace void kstats_put_since_slow(struct kstats *ks, u64 start, u64 now)
{
	u64 delta = now - start;

	if ((s64)delta < 0 || (ks->lost_clock && !ks->node))
		kstats_event(ks, KSTATS_MISS_CLOCK);
	else
		kstats_put_slow(ks, kstats_to_ns(delta));
}

notrace void kstats_record(struct kstats *ks, u64 value)
{
	if (likely(ks))
		kstats_put(ks, value);
}
EXPORT_SYMBOL_GPL(kstats_record);

notrace u64 kstats_clock(void)
{
	return kstats_now();
}
EXPORT_SYMBOL_GPL(kstats_clock);

notrace void kstats_record_since(struct kstats *ks, u64 start)
{
	if (likely(ks))
		kstats_put_since(ks, start, kstats_now());
}
EXPORT_SYMBOL_GPL(kstats_record_since);

static void set_quick(struct kstats *ks)
{
	bool quick = ks->mode == 0 && ks->bits == QUICK_BITS;
	bool both = quick && ks->gap && ks->gap->quick_time;

	WRITE_ONCE(ks->quick_value, quick ? KSTATS_QUICK_NS - QUICK_LOW : 0);
	WRITE_ONCE(ks->quick_time, quick && !ks->lost_clock ? kstats_quick : 0);
	WRITE_ONCE(ks->quick_both, both ? kstats_quick : 0);
}

/*
 * Run or stop, with what else the node asks for. Caller holds ks->lock, or nobody else knows ks yet.
 * quick_both is of two metrics and follows the later of two racing changes, which the owner of a node
 * can do; so it is only ever too small: the slow path then looks again.
 */
void kstats_set_mode(struct kstats *ks, bool stopped)
{
	const struct kstats_node *node = ks->node;
	u8 mode = 0;

	if (node && (node->filter.cpu >= 0 || node->task_filter_at_end))
		mode |= KSTATS_MODE_FILTER;
	if (stopped || (node && ks->lost_clock))
		mode |= KSTATS_MODE_STOPPED;
	WRITE_ONCE(ks->mode, mode);
	set_quick(ks);
	if (node && ks == node->ks->gap)
		set_quick(node->ks);
}

/* A cell that may be written meanwhile; on 32 bits too it is read in one piece. */
static struct kstats_cell read_cell(const struct kstats_hist *hist, u32 slot)
{
	struct kstats_cell cell;
	unsigned int seq;

	do {
		seq = u64_stats_fetch_begin(&hist->sync);
		cell.count = READ_ONCE(hist->cell[slot].count);
		cell.sum = READ_ONCE(hist->cell[slot].sum);
	} while (u64_stats_fetch_retry(&hist->sync, seq));
	return cell;
}

static void read_raw(const struct kstats *ks, int cpu, struct kstats_cell *to)
{
	const struct kstats_hist *hist = per_cpu_ptr(ks->hist, cpu);
	u32 i;

	for (i = 0; i < KSTATS_NR_SLOTS(ks->bits); i++)
		to[i] = read_cell(hist, i);
}

/* One CPU's cells since the last reset; sums as struct kstats_cell has them. Caller holds ks->lock. */
void kstats_read_cpu(struct kstats *ks, int cpu, struct kstats_cell *to)
{
	u32 i, nr = KSTATS_NR_SLOTS(ks->bits);
	const struct kstats_cell *base;

	lockdep_assert_held(&ks->lock);
	read_raw(ks, cpu, to);
	if (!ks->base)
		return;
	base = ks->base->cpu[cpu];
	for (i = 0; i < nr; i++) {
		to[i].count -= base[i].count;
		to[i].sum -= base[i].sum;
	}
}

/*
 * What a cell's samples, or several CPUs' cells added up, lie above the slot's low end in all, shifted
 * right by *shift. A sample in flight has its count but not its sum yet: what would be outside the slot
 * is moved to its edge.
 */
static u64 cell_rest(const struct kstats_cell *cell, u32 slot, u8 bits, u32 *shift)
{
	u32 exp = kstats_slot_exp(slot, bits);
	u64 rest, most;

	*shift = exp > KSTATS_SUM_EXP ? exp - KSTATS_SUM_EXP : 0;
	rest = cell->sum - cell->count * (kstats_slot_low(slot, bits) >> *shift);
	most = cell->count * ((1ULL << (exp - *shift)) - 1);
	if (rest <= most)
		return rest;
	return (s64)rest < 0 ? 0 : most;
}

/* The true sum; ~0 if it does not fit. */
u64 kstats_cell_sum(const struct kstats_cell *cell, u32 slot, u8 bits)
{
	u64 base, sum, rest;
	u32 shift;

	rest = cell_rest(cell, slot, bits, &shift);
	if (check_mul_overflow(cell->count, kstats_slot_low(slot, bits), &base))
		return U64_MAX;
	if (shift && rest >> (64 - shift))
		return U64_MAX;
	return check_add_overflow(base, rest << shift, &sum) ? U64_MAX : sum;
}

/* The average of a cell that is not empty; it always fits. */
u64 kstats_cell_mean(const struct kstats_cell *cell, u32 slot, u8 bits)
{
	u32 shift, fit;
	u64 rest = cell_rest(cell, slot, bits, &shift);
	u64 whole = div64_u64(rest, cell->count);

	rest -= whole * cell->count;
	for (fit = shift; fit && rest >> (64 - fit); fit--)
		;
	return kstats_slot_low(slot, bits) + (whole << shift) +
	       (div64_u64(rest << fit, cell->count) << (shift - fit));
}

/* Since the metric was made. */
u64 kstats_sum_event(const struct kstats *ks, enum kstats_event e)
{
	const u64 *n;
	u64 sum = 0, v;
	int cpu;

	for_each_possible_cpu(cpu) {
		n = &per_cpu_ptr(ks->tally, cpu)->n[e];
		do { /* two equal readings are untorn on 32 bits too */
			v = READ_ONCE(*n);
			barrier();
		} while (v != READ_ONCE(*n));
		sum += v;
	}
	return sum;
}

u64 kstats_events(const struct kstats *ks, enum kstats_event e)
{
	return kstats_sum_event(ks, e) - (ks->base ? ks->base->n[e] : 0);
}

/* Samples since the last reset. Caller holds ks->lock. */
u64 kstats_recorded(struct kstats *ks)
{
	u32 i, nr = KSTATS_NR_SLOTS(ks->bits);
	const struct kstats_hist *hist;
	u64 sum = 0;
	int cpu;

	lockdep_assert_held(&ks->lock);
	for_each_possible_cpu(cpu) {
		hist = per_cpu_ptr(ks->hist, cpu);
		for (i = 0; i < nr; i++) {
			sum += read_cell(hist, i).count;
			if (ks->base)
				sum -= ks->base->cpu[cpu][i].count;
		}
	}
	return sum;
}

static void free_base(struct kstats_base *base)
{
	int cpu;

	if (!base)
		return;
	for_each_possible_cpu(cpu)
		kvfree(base->cpu[cpu]);
	kvfree(base);
}

static struct kstats_base *new_base(u8 bits)
{
	struct kstats_base *base;
	int cpu;

	base = kvzalloc(struct_size(base, cpu, nr_cpu_ids), GFP_KERNEL);
	if (!base)
		return NULL;
	for_each_possible_cpu(cpu) {
		base->cpu[cpu] =
			kvcalloc(KSTATS_NR_SLOTS(bits), sizeof(struct kstats_cell), GFP_KERNEL);
		if (!base->cpu[cpu]) {
			free_base(base);
			return NULL;
		}
	}
	return base;
}

/*
 * Forget what was recorded until now. The counters run on, as another CPU's cannot be zeroed without
 * losing its samples; a reading is kept and subtracted. Caller holds ks->lock.
 */
int kstats_reset(struct kstats *ks)
{
	struct kstats_base *base = ks->base;
	u64 entries;
	int cpu, e;

	lockdep_assert_held(&ks->lock);
	if (!base)
		base = new_base(ks->bits);
	if (!base)
		return -ENOMEM;
	for (e = 0; e < KSTATS_EVENTS; e++)
		base->n[e] = kstats_sum_event(ks, e);
	kstats_node_counts(ks, &entries, &base->exits, &base->hook_missed);
	for_each_possible_cpu(cpu)
		read_raw(ks, cpu, base->cpu[cpu]);
	ks->base = base;
	ks->since = ktime_get_boottime_ns();
	return 0;
}

/*
 * The ledger, given the samples since the last reset. On a metric that is being recorded into its
 * parts differ by the calls that moved while it was read. Caller holds ks->lock.
 */
void kstats_read_ledger(struct kstats *ks, u64 recorded, struct kstats_ledger *to)
{
	u64 entries, exits, hook_missed;

	lockdep_assert_held(&ks->lock);
	memset(to, 0, sizeof(*to));
	to->recorded = recorded;
	to->filtered = kstats_events(ks, KSTATS_FILTERED);
	to->stopped = kstats_events(ks, KSTATS_STOPPED);
	to->unpaired = kstats_events(ks, KSTATS_UNPAIRED);
	to->miss_table = kstats_events(ks, KSTATS_MISS_TABLE);
	to->miss_nest = kstats_events(ks, KSTATS_MISS_NEST);
	to->miss_died = kstats_events(ks, KSTATS_MISS_DIED);
	to->miss_clock = kstats_events(ks, KSTATS_MISS_CLOCK);
	to->miss_nmi = kstats_events(ks, KSTATS_MISS_NMI);
	kstats_node_counts(ks, &entries, &exits, &hook_missed);
	to->miss_instance = hook_missed - (ks->base ? ks->base->hook_missed : 0);
	to->missed = to->miss_instance + to->miss_table + to->miss_nest + to->miss_died +
		     to->miss_clock + to->miss_nmi;
	if (ks->node && ks == ks->node->ks) {
		to->inside = entries > exits ? entries - exits : 0;
		to->attempted = entries - (ks->base ? ks->base->exits : 0) + to->miss_instance;
	} else {
		to->attempted = to->recorded + to->missed + to->filtered + to->stopped;
	}
}

void kstats_show_ledger(struct seq_file *m, const struct kstats_ledger *l)
{
	static const char *const names[] = {"instance", "table", "nest", "died", "clock", "nmi"};
	const u64 n[] = {l->miss_instance, l->miss_table, l->miss_nest,
			 l->miss_died,	   l->miss_clock, l->miss_nmi};
	unsigned int i;

	seq_printf(
		m,
		"attempted %llu recorded %llu missed %llu filtered %llu stopped %llu inside %llu",
		l->attempted, l->recorded, l->missed, l->filtered, l->stopped, l->inside);
	for (i = 0; i < ARRAY_SIZE(n); i++)
		if (n[i])
			seq_printf(m, " missed-%s %llu", names[i], n[i]);
	if (l->unpaired)
		seq_printf(m, " unpaired %llu", l->unpaired);
}

/* The memory of a metric; the counterpart of kstats_hist_alloc. */
void kstats_hist_free(struct kstats *ks)
{
	free_base(ks->base);
	free_percpu(ks->tally);
	free_percpu(ks->hist);
}

int kstats_hist_alloc(struct kstats *ks)
{
	ks->hist = __alloc_percpu(struct_size(ks->hist, cell, KSTATS_NR_SLOTS(ks->bits)),
				  __alignof__(struct kstats_cell));
	ks->tally = alloc_percpu(struct kstats_tally);
	if (ks->hist && ks->tally)
		return 0;
	kstats_hist_free(ks);
	return -ENOMEM;
}
