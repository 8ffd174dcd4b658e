/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "lib/calls.h"
#include "lib/syscalls.h"

static size_t hash(enum rts_abi abi, uint32_t nr)
{
	return (nr ^ (uint32_t)abi << 10) * 2654435761u >> 8;
}

/* The slot where {abi, nr} is, or would go. There is always a free one. */
static struct call **find(const struct calls *c, enum rts_abi abi, uint32_t nr)
{
	size_t mask = c->nr_slots - 1;

	for (size_t i = hash(abi, nr) & mask;; i = (i + 1) & mask) {
		struct call *e = c->slot[i];

		if (!e || (e->nr == nr && e->abi == abi))
			return &c->slot[i];
	}
}

/* Keep at least a third of the slots free. */
static int grow(struct calls *c)
{
	struct calls bigger = *c;

	if (c->nr * 3 < c->nr_slots * 2)
		return 0;
	bigger.nr_slots = c->nr_slots ? c->nr_slots * 2 : 32;
	bigger.slot = calloc(bigger.nr_slots, sizeof(*bigger.slot));
	if (!bigger.slot)
		return -ENOMEM;
	for (size_t i = 0; i < c->nr_slots; i++)
		if (c->slot[i])
			*find(&bigger, c->slot[i]->abi, c->slot[i]->nr) = c->slot[i];
	free(c->slot);
	*c = bigger;
	return 0;
}

/*
 * Histograms of rows that are gone, empty. A process that lives for a millisecond would spend a good
 * part of it on getting and clearing memory for its rows.
 */
static struct {
	struct hist *hist[256];
	size_t nr;
} spare;

static struct hist *take_hist(void)
{
	return spare.nr ? spare.hist[--spare.nr] : hist_new(CALLS_HIST_BITS);
}

static void put_hist(struct hist *h)
{
	if (spare.nr == sizeof(spare.hist) / sizeof(spare.hist[0])) {
		hist_free(h);
		return;
	}
	hist_reset(h);
	spare.hist[spare.nr++] = h;
}

/* The row, made if need be; NULL: no room. */
static struct call *get(struct calls *c, enum rts_abi abi, uint32_t nr)
{
	struct call **slot = c->nr_slots ? find(c, abi, nr) : NULL, *e;

	if (slot && *slot)
		return *slot;
	if (c->nr >= CALLS_MAX_ROWS || grow(c))
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->hist = take_hist();
	if (!e->hist) {
		free(e);
		return NULL;
	}
	e->abi = abi;
	e->nr = nr;
	e->min_ns = UINT64_MAX;
	*find(c, abi, nr) = e;
	c->nr++;
	return e;
}

void calls_free(struct calls *c)
{
	for (size_t i = 0; i < c->nr_slots; i++) {
		if (!c->slot[i])
			continue;
		put_hist(c->slot[i]->hist);
		free(c->slot[i]->errs);
		free(c->slot[i]);
	}
	free(c->slot);
	*c = (struct calls){0};
}

/* A call has a handful of errors at most; without memory for one more it is in the sum only. */
static void count_error(struct call *e, uint32_t err, uint64_t n)
{
	struct rts_errcount *errs;

	e->errors = rts_add(e->errors, n);
	for (size_t i = 0; i < e->nr_errs; i++) {
		if (e->errs[i].err != err)
			continue;
		e->errs[i].count = rts_add(e->errs[i].count, n);
		return;
	}
	errs = realloc(e->errs, (e->nr_errs + 1) * sizeof(*errs));
	if (!errs)
		return;
	e->errs = errs;
	e->errs[e->nr_errs++] = (struct rts_errcount){err, n};
}

void calls_enter(struct calls *c)
{
	c->lost.attempted++;
}

/* What rows have in common with sums of calls. */
static void add_times(struct call *e, uint64_t count, uint64_t total_ns, uint64_t min_ns,
		      uint64_t max_ns)
{
	e->count += count;
	e->total_ns = rts_add(e->total_ns, total_ns);
	e->min_ns = min_ns < e->min_ns ? min_ns : e->min_ns;
	e->max_ns = max_ns > e->max_ns ? max_ns : e->max_ns;
}

static void add_split(struct call *e, uint64_t count, uint64_t on_cpu_ns, uint64_t waiting_ns)
{
	e->split_count += count;
	e->on_cpu_ns = rts_add(e->on_cpu_ns, on_cpu_ns);
	e->waiting_ns = rts_add(e->waiting_ns, waiting_ns);
}

void calls_return(struct calls *c, const struct sample *s)
{
	struct call *e = get(c, s->abi, s->nr);

	if (!e) {
		c->lost.table_full++;
		return;
	}
	c->lost.recorded++;
	add_times(e, 1, s->ns, s->ns, s->ns);
	if (s->has_split) {
		/* Both clocks are right, but are not read at one instant. */
		uint64_t on = s->on_cpu_ns < s->ns ? s->on_cpu_ns : s->ns;

		add_split(e, 1, on, s->ns - on);
	}
	if (s->err)
		count_error(e, s->err, 1);
	hist_record(e->hist, s->ns);
}

void calls_never_return(struct calls *c, enum rts_abi abi, uint32_t nr)
{
	struct call *e = get(c, abi, nr);

	if (!e) {
		c->lost.table_full++;
		return;
	}
	c->lost.no_return++;
	e->no_return++;
}

void calls_add(struct calls *c, const struct call_sum *s)
{
	struct call *e = s->count ? get(c, s->abi, s->nr) : NULL;
	uint64_t errors = s->errors;

	if (!e) {
		c->lost.table_full += s->count;
		return;
	}
	c->lost.recorded += s->count;
	add_times(e, s->count, s->total_ns, s->min_ns, s->max_ns);
	/* Of use only when every call was told apart, see to_row(). */
	add_split(e, s->split_count, s->total_ns > s->waiting_ns ? s->total_ns - s->waiting_ns : 0,
		  s->waiting_ns);
	for (size_t i = 0; i < s->nr_errs; i++) {
		count_error(e, s->errs[i].err, s->errs[i].count);
		errors -= s->errs[i].count;
	}
	if (errors)
		count_error(e, 0, errors);
	for (unsigned int i = 0; i < s->nr_slots; i++)
		hist_add_slot(e->hist, i, s->slots[i], 0);
}

static void merge_ledger(struct rts_ledger *d, const struct rts_ledger *s)
{
	d->attempted += s->attempted;
	d->recorded += s->recorded;
	d->no_return += s->no_return;
	d->no_instance += s->no_instance;
	d->recursion += s->recursion;
	d->table_full += s->table_full;
	d->clock_back += s->clock_back;
	d->out_of_range += s->out_of_range;
	d->records_dropped += s->records_dropped;
	d->in_flight_unlisted += s->in_flight_unlisted;
}

void calls_merge(struct calls *dst, const struct calls *src)
{
	merge_ledger(&dst->lost, &src->lost);
	for (size_t i = 0; i < src->nr_slots; i++) {
		const struct call *s = src->slot[i];
		struct call *d;

		if (!s)
			continue;
		d = get(dst, s->abi, s->nr);
		if (!d) {
			dst->lost.recorded -= s->count;
			dst->lost.no_return -= s->no_return;
			dst->lost.table_full += s->count + s->no_return;
			continue;
		}
		add_times(d, s->count, s->total_ns, s->min_ns, s->max_ns);
		add_split(d, s->split_count, s->on_cpu_ns, s->waiting_ns);
		d->no_return += s->no_return;
		for (size_t j = 0; j < s->nr_errs; j++)
			count_error(d, s->errs[j].err, s->errs[j].count);
		hist_merge(d->hist, s->hist);
	}
}

/* What q of the calls took at most: the upper bound of its slot, or the longest call. */
static uint64_t quantile(const struct call *e, double q)
{
	struct hist_quantile v;

	if (hist_quantile(e->hist, q, &v))
		return 0;
	return v.high < e->max_ns ? v.high : e->max_ns; /* slots that were added know no max */
}

static struct rts_row to_row(const struct call *e)
{
	return (struct rts_row){
		.abi = e->abi,
		.nr = e->nr,
		.name = sys_name(e->abi, e->nr),
		.count = e->count,
		.errors = e->errors,
		.total_ns = e->total_ns,
		.min_ns = e->min_ns,
		.max_ns = e->max_ns,
		.has_quantiles = true,
		.p50_ns = quantile(e, 0.5),
		.p90_ns = quantile(e, 0.9),
		.p99_ns = quantile(e, 0.99),
		.p999_ns = quantile(e, 0.999),
		/* A split of some of the calls would be taken for one of all. */
		.has_split = e->split_count == e->count,
		.on_cpu_ns = e->on_cpu_ns,
		.waiting_ns = e->waiting_ns,
		.errs = e->errs,
		.nr_errs = e->nr_errs,
	};
}

int calls_rows(const struct calls *c, struct rts_record *r, void **block)
{
	struct rts_row *rows = malloc(c->nr * (sizeof(*rows) + sizeof(struct rts_noreturn)) + 1);
	struct rts_noreturn *never = (struct rts_noreturn *)(rows + c->nr);
	size_t nr_rows = 0, nr_never = 0;

	*block = rows;
	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < c->nr_slots; i++) {
		const struct call *e = c->slot[i];

		if (e && e->count)
			rows[nr_rows++] = to_row(e);
		if (e && e->no_return)
			never[nr_never++] = (struct rts_noreturn){
				e->abi, e->nr, sys_name(e->abi, e->nr), e->no_return};
	}
	rts_rows_sort(rows, nr_rows);
	r->rows = rows;
	r->nr_rows = nr_rows;
	r->no_return = never;
	r->nr_no_return = nr_never;
	r->has_ledger = true;
	r->lost = c->lost;
	return 0;
}
