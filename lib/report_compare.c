/* SPDX-License-Identifier: MIT */
/*
 * Before and after. A quantile is known to within a slot, so a change of it is known to within the widths
 * of two: where both may be the same value, no change was seen.
 */
#include <string.h>

#include "lib/report.h"
#include "uapi/kstats_bucket.h"

#define CALL_BITS 3 /* of the histograms behind a call's quantiles */

static int64_t minus(uint64_t a, uint64_t b)
{
	if (a >= b)
		return a - b > INT64_MAX ? INT64_MAX : (int64_t)(a - b);
	return b - a > INT64_MAX ? -INT64_MAX : -(int64_t)(b - a);
}

struct report_change report_change(struct report_range before, struct report_range after)
{
	struct report_change c = {
		.least = minus(after.low, before.high),
		.most = minus(after.high, before.low),
	};

	c.moved = c.least > 0 ? 1 : c.most < 0 ? -1 : 0;
	if (!c.moved)
		c.bound = (uint64_t)(c.most > -c.least ? c.most : -c.least);
	return c;
}

/* Of fewer calls than this, the quantile is the longest one. */
static const uint64_t few[REPORT_NR_P] = {2, 10, 100, 1000};

struct report_range report_call_p(const struct report_call *c, unsigned int p)
{
	struct report_range r = {0, c->p_ns[p]};

	/* The sample with the highest rank is the longest call, which is known exactly. */
	if (c->has_range && c->p_ns[p] == c->max_ns && c->count < few[p])
		return (struct report_range){c->max_ns, c->max_ns};
	r.low = kstats_slot_low(kstats_slot(r.high, CALL_BITS), CALL_BITS);
	if (c->has_range && r.low < c->min_ns && c->min_ns <= r.high)
		r.low = c->min_ns;
	return r;
}

const struct report_call *report_same_call(const struct report_calls *t,
					   const struct report_call *c)
{
	for (size_t i = 0; i < t->nr; i++)
		if (t->row[i].nr == c->nr && !strcmp(t->row[i].abi, c->abi) &&
		    !strcmp(t->row[i].name, c->name))
			return &t->row[i];
	return NULL;
}

const struct report_metric *report_same_metric(const struct report_input *in,
					       const struct report_metric *m)
{
	for (size_t i = 0; i < in->nr_metrics; i++)
		if (in->metric[i]->cpu == m->cpu && !strcmp(in->metric[i]->name, m->name))
			return in->metric[i];
	return NULL;
}
