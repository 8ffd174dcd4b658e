/* SPDX-License-Identifier: MIT */
/* Before and after, side by side. */
#include <inttypes.h>
#include <string.h>

#include "lib/fmt_report.h"
#include "lib/record.h"

static void signed_ns(FILE *f, int64_t ns)
{
	fputs(ns < 0 ? "−" : "+", f);
	html_ns(f, ns < 0 ? -(uint64_t)ns : (uint64_t)ns);
}

static void range(FILE *f, struct report_range r)
{
	html_ns(f, r.low);
	if (r.low != r.high) {
		fputs(" – ", f);
		html_ns(f, r.high);
	}
}

/* The verdict as a cell, which sorts by the middle of the change. */
static void verdict(FILE *f, struct report_range before, struct report_range after)
{
	struct report_change c = report_change(before, after);

	fprintf(f, "<td class=%s data-moved=%d data-v=\"%" PRId64 "\">",
		c.moved > 0 ? "rose" :
		c.moved < 0 ? "fell" :
			      "same",
		c.moved, c.moved ? c.least / 2 + c.most / 2 : 0);
	if (!c.moved && !c.bound) {
		fputs("none", f);
		return;
	}
	if (!c.moved) {
		fputs("none <small>within ±", f);
		html_ns(f, c.bound);
		fputs("</small>", f);
		return;
	}
	fputs(c.moved > 0 ? "▲ " : "▼ ", f);
	signed_ns(f, c.least);
	if (c.least != c.most) {
		fputs(" to ", f);
		signed_ns(f, c.most);
	}
	if (before.low && before.high)
		fprintf(f, " <small>%+.1f to %+.1f %%</small>",
			100 * (double)c.least / (double)before.high,
			100 * (double)c.most / (double)before.low);
}

static void metric(FILE *f, const struct report_metric *b, const struct report_metric *a)
{
	static const char *const columns[] = {"Quantile", "Before", "After", "Change", ""};

	fputs("<h4>", f);
	html_text(f, b->name);
	fputs("</h4>\n<p>Samples: <b data-k=before data-v=\"", f);
	fprintf(f, "%" PRIu64 "\">", b->count);
	html_num(f, b->count);
	fprintf(f, "</b> before, <b data-k=after data-v=\"%" PRIu64 "\">", a->count);
	html_num(f, a->count);
	fputs("</b> after\n", f);
	if (!b->has_q || !a->has_q) {
		fputs("<p>Nothing to compare: one of the two has no samples.\n", f);
		return;
	}
	html_table(f, "Quantiles before and after", false, columns);
	for (unsigned int q = 0; q < REPORT_NR_Q; q++) {
		fprintf(f,
			"<tr><th scope=row>%s<td data-low=\"%" PRIu64 "\" data-high=\"%" PRIu64
			"\">",
			report_q_name[q], b->q[q].low, b->q[q].high);
		range(f, b->q[q]);
		fprintf(f, "<td data-low=\"%" PRIu64 "\" data-high=\"%" PRIu64 "\">", a->q[q].low,
			a->q[q].high);
		range(f, a->q[q]);
		verdict(f, b->q[q], a->q[q]);
	}
	html_table_end(f);
}

static void exact(FILE *f, uint64_t b, uint64_t a, bool ns)
{
	fprintf(f,
		"<td data-before=\"%" PRIu64 "\" data-after=\"%" PRIu64 "\" data-v=\"%s%" PRIu64
		"\">",
		b, a, a < b ? "-" : "", a < b ? b - a : a - b);
	(ns ? html_ns : html_num)(f, b);
	fputs(" → ", f);
	(ns ? html_ns : html_num)(f, a);
	if (b)
		fprintf(f, " <small>%+.1f %%</small>", 100 * ((double)a - (double)b) / (double)b);
}

static const struct report_call no_call;

static void call(FILE *f, const struct report_call *named, const struct report_call *b,
		 const struct report_call *a)
{
	fputs("<tr><th scope=row>", f);
	html_text(f, named->name);
	if (strcmp(named->abi, "x86_64")) {
		fputs(" <small>", f);
		html_text(f, named->abi);
		fputs("</small>", f);
	}
	exact(f, b->total_ns, a->total_ns, true);
	exact(f, b->count, a->count, false);
	exact(f, b->errors, a->errors, false);
	for (unsigned int p = 0; p < REPORT_NR_P; p++) {
		if (b->has_p && a->has_p)
			verdict(f, report_call_p(b, p), report_call_p(a, p));
		else
			html_td_none(f);
	}
	if (b->has_range && a->has_range)
		verdict(f, (struct report_range){b->max_ns, b->max_ns},
			(struct report_range){a->max_ns, a->max_ns});
	else
		html_td_none(f);
	fputc('\n', f);
}

static const struct report_call *same_or_none(const struct report_calls *t,
					      const struct report_call *c)
{
	const struct report_call *same = report_same_call(t, c);

	return same ? same : &no_call;
}

static void calls(FILE *f, const struct report_input *before, const struct report_input *after)
{
	static const char *const columns[] = {"Call", "Total", "Calls", "Failed",  "p50",
					      "p90",  "p99",   "p99.9", "Longest", ""};
	const struct report_calls *b = &before->whole.calls, *a = &after->whole.calls;

	fputs("<h4>System calls</h4>\n", f);
	html_table(f, "System calls before and after", true, columns);
	for (size_t i = 0; i < b->nr; i++)
		call(f, &b->row[i], &b->row[i], same_or_none(a, &b->row[i]));
	for (size_t i = 0; i < a->nr; i++)
		if (!report_same_call(b, &a->row[i]))
			call(f, &a->row[i], &no_call, &a->row[i]);
	html_table_end(f);
}

static void whole(FILE *f, const struct report_life *b, const struct report_life *a)
{
	fputs("<div class=scroll tabindex=0 role=region aria-label=\"Runs before and after\"><table>"
	      "<tbody><tr><th scope=row>From first to last",
	      f);
	exact(f, b->time_ns - b->start_ns, a->time_ns - a->start_ns, true);
	if (b->has_cpu && a->has_cpu) {
		fputs("<tr><th scope=row>CPU, user", f);
		exact(f, b->user_ns, a->user_ns, true);
		fputs("<tr><th scope=row>CPU, kernel", f);
		exact(f, b->system_ns, a->system_ns, true);
	}
	fputs("</table></div>\n", f);
}

static void alone(FILE *f, const struct report_input *in, const struct report_input *other,
		  const char *when)
{
	for (size_t i = 0; i < in->nr_metrics; i++) {
		if (in->metric[i]->cpu >= 0 || report_same_metric(other, in->metric[i]))
			continue;
		fputs("<p class=note>", f);
		html_text(f, in->metric[i]->name);
		fprintf(f, " is there %s only.\n", when);
	}
}

void fmt_report_compare(FILE *f, const struct report_input *before,
			const struct report_input *after)
{
	fputs("<section id=compare><h2>Before and after</h2>\n<p>Before: <b>", f);
	html_text(f, before->name);
	fputs("</b>. After: <b>", f);
	html_text(f, after->name);
	fputs("</b>.\n<p class=note>A quantile is known to within a slot of its histogram, so its change "
	      "is known to within the widths of two slots: <b>none</b> means that both may be the same "
	      "value, and ± how far apart they are at most. The bound is that of the measurement, not "
	      "of chance: a quantile that few samples lie beyond moves by itself.\n",
	      f);
	if (!(before->records && after->records) && !before->nr_metrics && !after->nr_metrics)
		fputs("<p>There is nothing to compare: no distribution is in either, and no run of a "
		      "command in both. What each has is below.\n",
		      f);
	if (before->records && after->records) {
		whole(f, &before->whole, &after->whole);
		calls(f, before, after);
	}
	for (size_t i = 0; i < before->nr_metrics; i++) {
		const struct report_metric *b = before->metric[i];
		const struct report_metric *a = b->cpu < 0 ? report_same_metric(after, b) : NULL;

		if (a)
			metric(f, b, a);
	}
	alone(f, before, after, "before");
	alone(f, after, before, "after");
	fputs("<p class=engine>Engines: as in the sections below; a change of the engine between the two "
	      "is a change of what was measured.\n</section>\n",
	      f);
}
