/* SPDX-License-Identifier: MIT */
/* The tables of all threads summed up into the rows of a record. Caller: a dump, one at a time. */
#include <errno.h>
#include <string.h>

#include "internal.h"
#include "lib/hist.h"
#include "lib/kvm_watch.h"
#include "lib/syscalls.h"

#define MAX_IN_FLIGHT 256
#define MAX_ERRS      4096
#define MAX_TRIES     20

struct flat {
	uint64_t total_ns, min_ns, max_ns, no_return;
	uint64_t errors[NR_ERRNOS];
	uint64_t slot[NR_SLOTS];
};

/* One mapping made at start, so that a dump needs no memory; only what is used is resident. */
static struct work {
	struct flat copy[2];
	struct flat sum[NR_ROWS];
	bool used[NR_ROWS];
	struct rts_row rows[NR_ROWS];
	struct rts_errcount errs[MAX_ERRS];
	size_t nr_errs;
	struct rts_inflight in_flight[MAX_IN_FLIGHT];
	const struct flight *source[MAX_IN_FLIGHT];
	struct rts_noreturn no_return[NR_ROWS];
	struct rts_exit_row exits[NR_REASONS];
	union {
		struct hist hist;
		char hist_space[sizeof(struct hist) + NR_SLOTS * sizeof(struct hist_slot)];
	};
} * work;

int rts_merge_init(void)
{
	work = rts_os_map(NULL, sizeof(*work), false);
	return work ? 0 : -ENOMEM;
}

static void copy_row(const struct row *row, struct flat *out)
{
	out->total_ns = LOAD_ACQ(row->total_ns);
	out->min_ns = LOAD_ACQ(row->min_ns);
	out->max_ns = LOAD_ACQ(row->max_ns);
	out->no_return = LOAD_ACQ(row->no_return);
	for (size_t i = 0; i < NR_ERRNOS; i++)
		out->errors[i] = LOAD_ACQ(row->errors[i]);
	for (size_t i = 0; i < NR_SLOTS; i++)
		out->slot[i] = LOAD_ACQ(row->slot[i]);
}

/*
 * All numbers of a row only grow. So a second copy, begun when the owner was outside, that equals
 * the first has no half of an update in it. A row that never holds still is taken as it is: its
 * times may then lack a call that its count has. After rts_table_stop() all hold still.
 */
static void copy_row_whole(const struct table *t, const struct row *row, struct flat *copy)
{
	copy_row(row, &copy[0]);
	for (int i = 0; i < MAX_TRIES; i++) {
		bool busy = table_busy(t);

		copy_row(row, &copy[1]);
		if (!busy && !memcmp(&copy[0], &copy[1], sizeof(copy[0])))
			return;
		copy[0] = copy[1];
	}
}

static void add_row(const struct table *t, const struct row *row, size_t index)
{
	struct flat *sum = &work->sum[index], *c = &work->copy[0];

	if (!work->used[index]) {
		memset(sum, 0, sizeof(*sum));
		sum->min_ns = UINT64_MAX;
		work->used[index] = true;
	}
	copy_row_whole(t, row, work->copy);
	sum->total_ns = rts_add(sum->total_ns, c->total_ns);
	sum->no_return = rts_add(sum->no_return, c->no_return);
	if (c->min_ns < sum->min_ns)
		sum->min_ns = c->min_ns;
	if (c->max_ns > sum->max_ns)
		sum->max_ns = c->max_ns;
	for (size_t i = 0; i < NR_ERRNOS; i++)
		sum->errors[i] = rts_add(sum->errors[i], c->errors[i]);
	for (size_t i = 0; i < NR_SLOTS; i++)
		sum->slot[i] = rts_add(sum->slot[i], c->slot[i]);
}

static void add_losses(const struct losses *from, struct rts_ledger *to)
{
	to->no_instance = rts_add(to->no_instance, LOAD(from->no_instance));
	to->recursion = rts_add(to->recursion, LOAD(from->recursion));
	to->table_full = rts_add(to->table_full, LOAD(from->table_full));
	to->clock_back = rts_add(to->clock_back, LOAD(from->clock_back));
	to->out_of_range = rts_add(to->out_of_range, LOAD(from->out_of_range));
}

static void add_in_flight(struct table *t, struct merged *m)
{
	const struct flight *top = LOAD_ACQ(t->top);

	t->seen_top = top;
	if (top == &rts_refuse) /* it is just ending a call, which is rarely nested in another */
		return;
	for (const struct flight *f = t->flight; f < top; f++) {
		struct rts_inflight *to = &work->in_flight[m->nr_in_flight];
		const struct row *row = LOAD_ACQ(f->row);

		if (!row)
			continue;
		if (m->nr_in_flight == MAX_IN_FLIGHT) {
			m->lost.in_flight_unlisted++;
			continue;
		}
		to->tid = LOAD(t->tid);
		to->abi = (enum rts_abi)(row->index / RTS_MAX_NR);
		to->nr = row->index % RTS_MAX_NR;
		to->name = sys_name(to->abi, to->nr);
		work->source[m->nr_in_flight++] = f;
	}
}

/*
 * Last, a while after they were found: a call that had entered but not yet read its clock then has
 * its own start now, not that of the call before it.
 */
static void add_ages(struct merged *m, uint64_t now_ns)
{
	for (size_t i = 0; i < m->nr_in_flight; i++) {
		uint64_t start = LOAD(work->source[i]->start_ns);

		work->in_flight[i].age_ns = now_ns > start ? now_ns - start : 0;
	}
}

/* null_exits is loaded first and exits last: a share of more than 100 cannot come out. */
static void add_vcpu(const struct vcpu *v, struct merged *m, struct rts_vcpu *sum)
{
	uint64_t ended = LOAD_ACQ(v->ended), null_exits = LOAD_ACQ(v->null_exits);

	for (size_t i = 0; i < NR_REASONS; i++) {
		struct rts_exit_row *row = &work->exits[i];

		row->null_count = rts_add(row->null_count, LOAD_ACQ(v->rows[i].null_count));
		row->count = rts_add(row->count, LOAD_ACQ(v->rows[i].count));
		row->total_ns = rts_add(row->total_ns, LOAD(v->rows[i].total_ns));
	}
	sum->run_call_ns = rts_add(sum->run_call_ns, LOAD(v->run_call_ns));
	sum->halted_ns = rts_add(sum->halted_ns, LOAD(v->halted_ns));
	sum->nr_vcpus += (uint32_t)LOAD(v->started);
	sum->in_flight += (uint32_t)(LOAD(v->begun) - ended);
	sum->lost = rts_add(sum->lost, LOAD(v->lost));
	m->vcpus_known += LOAD(v->known);
	m->halt_sources |= LOAD(v->sources);
	sum->null_exits = rts_add(sum->null_exits, null_exits);
	sum->exits = rts_add(sum->exits, LOAD(v->exits));
}

static const char *exit_name(uint32_t reason)
{
	if (!rts_cfg.exit_names)
		return kvm_exit_name(reason);
	return reason < rts_cfg.nr_exit_names ? rts_cfg.exit_names[reason] : NULL;
}

static void finish_vcpu(struct merged *m)
{
	struct rts_vcpu *v = &m->vcpu;
	size_t nr = 0;

	for (size_t i = 0; i < NR_REASONS; i++) {
		struct rts_exit_row row = work->exits[i];

		if (!row.count)
			continue;
		row.reason = (uint32_t)i;
		row.name = exit_name((uint32_t)i);
		work->exits[nr++] = row;
	}
	v->rows = work->exits;
	v->nr_rows = nr;
	m->has_vcpu = v->nr_vcpus || v->exits || v->in_flight;
	v->has_guest_run = v->nr_vcpus && m->vcpus_known == v->nr_vcpus;
	if (!v->has_guest_run)
		v->guest_run_absent = "no halt statistics for every virtual CPU";
	else if (m->halt_sources == 1u << HALT_KVM)
		v->guest_run_source = "kvm-stats";
	else
		v->guest_run_source =
			m->halt_sources == 1u << HALT_EMBEDDER ? "embedder" : "kvm-stats, embedder";
	v->guest_run_ns = v->run_call_ns > v->halted_ns ? v->run_call_ns - v->halted_ns : 0;
}

/* What q of the calls took at most: the upper bound of its slot, or the longest call. */
static uint64_t quantile(const struct hist *h, double q)
{
	struct hist_quantile out;

	return hist_quantile(h, q, &out) ? 0 : out.high;
}

static void fill_quantiles(struct rts_row *row, const struct flat *sum)
{
	struct hist *h = &work->hist;

	hist_init(h, SLOT_BITS);
	for (unsigned int i = 0; i < NR_SLOTS; i++) {
		uint64_t low = kstats_slot_low(i, SLOT_BITS);
		uint64_t mid = low + (kstats_slot_width(i, SLOT_BITS) - 1) / 2, n = sum->slot[i];

		if (n)
			hist_add_slot(h, i, n, mid > UINT64_MAX / n ? UINT64_MAX : mid * n);
	}
	h->min = sum->min_ns;
	h->max = sum->max_ns;
	row->has_quantiles = true;
	row->p50_ns = quantile(h, 0.5);
	row->p90_ns = quantile(h, 0.9);
	row->p99_ns = quantile(h, 0.99);
	row->p999_ns = quantile(h, 0.999);
}

static void fill_errors(struct rts_row *row, const struct flat *sum)
{
	row->errs = &work->errs[work->nr_errs];
	for (uint32_t i = 0; i < NR_ERRNOS; i++) {
		if (!sum->errors[i])
			continue;
		row->errors = rts_add(row->errors, sum->errors[i]);
		if (work->nr_errs == MAX_ERRS)
			continue;
		work->errs[work->nr_errs++] =
			(struct rts_errcount){.err = i, .count = sum->errors[i]};
		row->nr_errs++;
	}
}

static void fill_row(struct rts_row *row, size_t index, const struct flat *sum)
{
	enum rts_abi abi = (enum rts_abi)(index / RTS_MAX_NR);
	uint32_t nr = (uint32_t)(index % RTS_MAX_NR);

	*row = (struct rts_row){.abi = abi, .nr = nr, .name = sys_name(abi, nr)};
	for (size_t i = 0; i < NR_SLOTS; i++)
		row->count = rts_add(row->count, sum->slot[i]);
	row->total_ns = sum->total_ns;
	row->min_ns = sum->min_ns;
	row->max_ns = sum->max_ns;
	fill_errors(row, sum);
	if (row->count)
		fill_quantiles(row, sum);
}

static void add_no_return(const struct rts_row *row, uint64_t count, struct merged *m)
{
	if (!count)
		return;
	work->no_return[m->nr_no_return++] = (struct rts_noreturn){
		.abi = row->abi, .nr = row->nr, .name = row->name, .count = count};
	m->lost.no_return = rts_add(m->lost.no_return, count);
}

static void sum_attempts(struct merged *m)
{
	struct rts_ledger *l = &m->lost;

	l->attempted = l->recorded;
	l->attempted = rts_add(l->attempted, l->no_return);
	l->attempted = rts_add(l->attempted, l->no_instance);
	l->attempted = rts_add(l->attempted, l->recursion);
	l->attempted = rts_add(l->attempted, l->table_full);
	l->attempted = rts_add(l->attempted, l->clock_back);
	l->attempted = rts_add(l->attempted, l->out_of_range);
	l->attempted = rts_add(l->attempted, m->nr_in_flight + l->in_flight_unlisted);
}

static void merge_tables(unsigned int generation, struct merged *m)
{
	memset(m, 0, sizeof(*m));
	memset(work->used, 0, sizeof(work->used));
	memset(work->exits, 0, sizeof(work->exits));
	add_losses(&rts_lost, &m->lost);
	for (struct table *t = atomic_load(&rts_tables); t; t = t->next) {
		if (atomic_load(&t->generation) != generation)
			continue;
		add_losses(&t->lost, &m->lost);
		add_in_flight(t, m);
		for (size_t i = 0; i < NR_ROWS; i++) {
			const struct row *row = LOAD_ACQ(t->rows[i]);

			if (row)
				add_row(t, row, i);
		}
		add_vcpu(&t->vcpu, m, &m->vcpu);
	}
}

static bool still_at_rest(unsigned int generation)
{
	for (const struct table *t = atomic_load(&rts_tables); t; t = t->next)
		if (atomic_load(&t->generation) == generation &&
		    (LOAD(t->top) != t->seen_top || t->seen_top == &rts_refuse))
			return false;
	return true;
}

void rts_merge(unsigned int generation, bool at_rest, struct merged *m)
{
	uint64_t now = rts_clock_end();

	for (int i = 0; i < MAX_TRIES; i++) {
		merge_tables(generation, m);
		if (!at_rest || still_at_rest(generation))
			break;
	}
	work->nr_errs = 0;
	for (size_t i = 0; i < NR_ROWS; i++) {
		struct rts_row *row = &work->rows[m->nr_rows];

		if (!work->used[i])
			continue;
		fill_row(row, i, &work->sum[i]);
		add_no_return(row, work->sum[i].no_return, m);
		m->lost.recorded = rts_add(m->lost.recorded, row->count);
		m->nr_rows += row->count != 0;
	}
	add_ages(m, now);
	sum_attempts(m);
	rts_rows_sort(work->rows, m->nr_rows);
	m->rows = work->rows;
	m->in_flight = work->in_flight;
	m->no_return = work->no_return;
	finish_vcpu(m);
}
