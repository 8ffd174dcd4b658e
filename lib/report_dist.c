/* SPDX-License-Identifier: MIT */
/* Lines of `statpage show --json` into the model of a report. docs/kstats.md has the keys. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/report.h"
#include "uapi/kstats_bucket.h"

const char *const report_q_key[REPORT_NR_Q] = {"min", "p50", "p90", "p99", "p999", "max"};
const char *const report_q_name[REPORT_NR_Q] = {"min", "p50", "p90", "p99", "p99.9", "max"};

#define COPY(to, from) snprintf(to, sizeof(to), "%s", (from) ? (from) : "")

bool report_is_metric(struct json_object *o)
{
	return json_get_str(o, "name") && json_get(o, "bits", json_type_int) &&
	       json_get(o, "slots", json_type_array);
}

static void metric_free(struct report_metric *m)
{
	if (m)
		free(m->slot);
	free(m);
}

static int fill_slots(struct report_input *in, struct report_metric *m, struct json_object *o,
		      uint64_t line)
{
	size_t n;
	struct json_object *list = json_get_array(o, "slots", &n);
	uint64_t sum = 0;
	int64_t before = -1;

	if (n > KSTATS_NR_SLOTS(m->bits))
		return report_fail(in, line, "%zu slots: %u bits have %u", n, m->bits,
				   KSTATS_NR_SLOTS(m->bits));
	m->slot = calloc(n + 1, sizeof(*m->slot));
	if (!m->slot)
		return -ENOMEM;
	for (; m->nr < n; m->nr++) {
		struct json_object *s = json_object_array_get_idx(list, m->nr);
		struct report_slot *to = &m->slot[m->nr];
		uint64_t nr;

		if (!json_have_u64(s, "slot", &nr) || (int64_t)nr <= before ||
		    nr >= KSTATS_NR_SLOTS(m->bits))
			return report_fail(in, line, "slots are not in order");
		before = (int64_t)nr;
		to->low = kstats_slot_low((uint32_t)nr, m->bits);
		to->high = kstats_slot_high((uint32_t)nr, m->bits);
		to->count = json_get_u64(s, "count");
		sum += to->count;
		if (json_get_u64(s, "low") != to->low || json_get_u64(s, "high") != to->high)
			return report_fail(in, line,
					   "slot %" PRIu64 " of %u bits is %" PRIu64 " to %" PRIu64
					   ", not what is written there",
					   nr, m->bits, to->low, to->high);
	}
	if (sum != m->count)
		return report_fail(in, line,
				   "count is %" PRIu64 ", but its slots hold %" PRIu64 " samples",
				   m->count, sum);
	return 0;
}

static int fill_quantiles(struct report_input *in, struct report_metric *m, struct json_object *o,
			  uint64_t line)
{
	struct json_object *list = json_get(o, "quantiles", json_type_object);

	m->has_q = list && m->count;
	for (unsigned int i = 0; i < REPORT_NR_Q && m->has_q; i++) {
		struct json_object *q = json_get(list, report_q_key[i], json_type_object);

		if (!json_have_u64(q, "value", &m->q_value[i]) ||
		    !json_have_u64(q, "low", &m->q[i].low) ||
		    !json_have_u64(q, "high", &m->q[i].high) || m->q[i].low > m->q_value[i] ||
		    m->q[i].high < m->q_value[i])
			return report_fail(in, line,
					   "%s has no value that lies in low .. high of it",
					   report_q_key[i]);
	}
	return 0;
}

static int fill(struct report_input *in, struct report_metric *m, struct json_object *o,
		uint64_t line)
{
	uint64_t bits = json_get_u64(o, "bits"), cpu;
	const char *unit = json_get_str(o, "unit");
	int ret;

	COPY(m->name, json_get_str(o, "name"));
	m->cpu = json_have_u64(o, "cpu", &cpu) ? (int64_t)(cpu & INT32_MAX) : -1;
	COPY(m->state, json_get_str(o, "state"));
	COPY(m->origin, json_get_str(o, "origin"));
	COPY(m->causes, json_get_str(o, "causes"));
	COPY(m->engine, json_get_str(o, "engine"));
	COPY(m->cannot_see, json_get_str(o, "cannot_see"));
	m->complete = json_get_bool(o, "complete");
	m->attempted = json_get_u64(o, "attempted");
	m->recorded = json_get_u64(o, "recorded");
	m->missed = json_get_u64(o, "missed");
	m->filtered = json_get_u64(o, "filtered");
	m->stopped = json_get_u64(o, "stopped");
	m->inside = json_get_u64(o, "inside");
	m->unpaired = json_get_u64(o, "unpaired");
	m->count = json_get_u64(o, "count");
	m->has_mean = json_have_u64(o, "mean", &m->mean);
	m->readings = 1;
	if (bits > KSTATS_MAX_BITS)
		return report_fail(in, line, "bits is %" PRIu64 ", expected 0 to %d", bits,
				   KSTATS_MAX_BITS);
	if (!unit || strcmp(unit, "ns"))
		return report_fail(in, line, "unit is %.20s, expected ns", unit ? unit : "absent");
	m->bits = (unsigned int)bits;
	ret = fill_slots(in, m, o, line);
	return ret ? ret : fill_quantiles(in, m, o, line);
}

static int by_name(const struct report_metric *a, const struct report_metric *b)
{
	int c = strcmp(a->name, b->name);

	return c ? c : (a->cpu > b->cpu) - (a->cpu < b->cpu);
}

/* The place of m, or the one where it belongs: by name, all CPUs first. */
static size_t place(const struct report_input *in, const struct report_metric *m, bool *there)
{
	size_t low = 0, high = in->nr_metrics;

	*there = false;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int c = by_name(in->metric[mid], m);

		if (!c)
			*there = true;
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int keep(struct report_input *in, struct report_metric *m)
{
	bool there;
	size_t at = place(in, m, &there);
	struct report_metric **bigger;

	in->readings++;
	if (there) {
		m->readings = in->metric[at]->readings + 1;
		in->nr_slots -= in->metric[at]->nr;
		metric_free(in->metric[at]);
		in->metric[at] = m;
		in->nr_slots += m->nr;
		return 1;
	}
	if (in->nr_metrics == REPORT_MAX_METRICS || in->nr_slots + m->nr > REPORT_MAX_SLOTS) {
		in->metrics_left_out++;
		metric_free(m);
		return 1;
	}
	bigger = realloc(in->metric, (in->nr_metrics + 1) * sizeof(*bigger));
	if (!bigger) {
		metric_free(m);
		return -ENOMEM;
	}
	in->metric = bigger;
	memmove(bigger + at + 1, bigger + at, (in->nr_metrics - at) * sizeof(*bigger));
	bigger[at] = m;
	in->nr_metrics++;
	in->nr_slots += m->nr;
	return 1;
}

int report_take_metric(struct report_input *in, struct json_object *o, uint64_t line)
{
	struct report_metric *m = calloc(1, sizeof(*m));
	int ret = m ? fill(in, m, o, line) : -ENOMEM;

	if (!ret)
		return keep(in, m);
	metric_free(m);
	return ret;
}

void report_metrics_free(struct report_input *in)
{
	for (size_t i = 0; i < in->nr_metrics; i++)
		metric_free(in->metric[i]);
	free(in->metric);
}
