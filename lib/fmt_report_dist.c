/* SPDX-License-Identifier: MIT */
/* Distributions: counts by slot on a logarithmic axis, the share of samples up to there, rows by CPU. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "lib/fmt_report.h"

#define WIDTH  1000
#define HEIGHT 200
#define SHADES 5

/* The axis is the logarithm of nanoseconds; 0 ns has a place of its own before 1 ns. */
struct axis {
	double from, to;
};

static double log_ns(double ns)
{
	return log2(ns + 1);
}

static double x_of(const struct axis *a, double ns)
{
	return a->to > a->from ? (log_ns(ns) - a->from) / (a->to - a->from) : 0;
}

static void widen(struct axis *a, const struct report_metric *m)
{
	if (!m->nr)
		return;
	a->from = fmin(a->from, log_ns((double)m->slot[0].low));
	a->to = fmax(a->to, log_ns((double)m->slot[m->nr - 1].high + 1));
}

static uint64_t most(const struct report_metric *m)
{
	uint64_t n = 0;

	for (size_t i = 0; i < m->nr; i++)
		n = m->slot[i].count > n ? m->slot[i].count : n;
	return n;
}

static void bars(FILE *f, const struct axis *a, const struct report_metric *m)
{
	uint64_t top = most(m);

	for (size_t i = 0; i < m->nr; i++) {
		const struct report_slot *s = &m->slot[i];
		double x = x_of(a, (double)s->low) * WIDTH;
		double w = x_of(a, (double)s->high + 1) * WIDTH - x;
		double h = (double)s->count / (double)top * HEIGHT;

		fprintf(f,
			"<rect class=slot x=%.2f y=%.2f width=%.2f height=%.2f data-n=\"%" PRIu64
			"\"><title>",
			x, HEIGHT - fmax(h, 1), fmax(w, 1), fmax(h, 1), s->count);
		html_ns(f, s->low);
		fputs(" to ", f);
		html_ns(f, s->high);
		fputs(": ", f);
		html_num(f, s->count);
		fputs(" samples</title></rect>", f);
	}
}

static void cdf(FILE *f, const struct axis *a, const struct report_metric *m)
{
	uint64_t so_far = 0;

	fprintf(f, "<path class=cdf d=\"M0 %d", HEIGHT);
	for (size_t i = 0; i < m->nr; i++) {
		/* Where in its slot a sample is, is not known: a straight line. */
		fprintf(f, "L%.2f %.2f", x_of(a, (double)m->slot[i].low) * WIDTH,
			HEIGHT * (1 - (double)so_far / (double)m->count));
		so_far += m->slot[i].count;
		fprintf(f, "L%.2f %.2f", x_of(a, (double)m->slot[i].high + 1) * WIDTH,
			HEIGHT * (1 - (double)so_far / (double)m->count));
	}
	fputs("\"/>", f);
}

static void ticks(FILE *f, const struct axis *a)
{
	double decades = (a->to - a->from) / log2(10), last = -1;
	int step = decades > 6 ? 2 : 1;

	fputs("<div class=axis aria-hidden=true>", f);
	for (int e = 0; e < 20; e += step) {
		double ns = pow(10, e), x = x_of(a, ns);

		if (x < 0 || x > 1 || (last >= 0 && x - last < 0.12))
			continue;
		fprintf(f, "<span style=\"left:%.1f%%\"%s>", x * 100,
			x < 0.06 ? " class=first" :
			x > 0.94 ? " class=last" :
				   "");
		html_ns(f, (uint64_t)ns);
		fputs("</span>", f);
		last = x;
	}
	/* Less than a decade: the two ends. */
	if (last < 0)
		for (int end = 0; end < 2; end++) {
			fprintf(f, "<span style=\"left:%d%%\" class=%s>", end * 100,
				end ? "last" : "first");
			html_ns(f, (uint64_t)(exp2(end ? a->to : a->from) - 1));
			fputs("</span>", f);
		}
	fputs("</div>\n", f);
}

static void picture(FILE *f, const struct axis *a, const struct report_metric *m)
{
	fputs("<div class=plot><span class=y>100 %</span><span class=y50>50 %</span>", f);
	fprintf(f,
		"<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=none role=img aria-label=\""
		"Samples by time, and the share of samples up to each; the table below has the "
		"quantiles\">",
		WIDTH, HEIGHT);
	fprintf(f, "<path class=grid d=\"M0 %dh%dM0 %dh%d\"/>", HEIGHT / 2, WIDTH, 0, WIDTH);
	bars(f, a, m);
	cdf(f, a, m);
	for (unsigned int q = REPORT_Q50; q <= REPORT_Q999 && m->has_q; q++)
		fprintf(f, "<path class=mark d=\"M%.2f 0v%d\"><title>%s</title></path>",
			x_of(a, (double)m->q_value[q]) * WIDTH, HEIGHT, report_q_name[q]);
	fputs("</svg></div>\n", f);
	ticks(f, a);
}

static void quantiles(FILE *f, const struct report_metric *m)
{
	static const char *const columns[] = {"Quantile", "Value", "at least", "at most", ""};

	html_table(f, "Quantiles", false, columns);
	for (unsigned int q = 0; q < REPORT_NR_Q && m->has_q; q++) {
		fprintf(f, "<tr><th scope=row>%s", report_q_name[q]);
		html_td_ns(f, m->q_value[q]);
		html_td_ns(f, m->q[q].low);
		html_td_ns(f, m->q[q].high);
	}
	if (m->has_mean) {
		fputs("<tr><th scope=row>mean", f);
		html_td_ns(f, m->mean);
		html_td_none(f);
		html_td_none(f);
	}
	html_table_end(f);
}

/* A CPU's samples by slot, in shades of how many there are of the most: a path a shade. */
static void shades(FILE *f, const struct axis *a, const struct report_metric *m)
{
	uint64_t top = most(m);

	fprintf(f,
		"<svg class=bar viewBox=\"0 0 %d 10\" preserveAspectRatio=none role=img "
		"aria-label=\"Samples by time\">",
		WIDTH);
	for (unsigned int shade = 1; shade <= SHADES; shade++) {
		bool any = false;

		for (size_t i = 0; i < m->nr; i++) {
			double x = x_of(a, (double)m->slot[i].low) * WIDTH;
			double w = x_of(a, (double)m->slot[i].high + 1) * WIDTH - x;

			if ((unsigned int)ceil((double)m->slot[i].count / (double)top * SHADES) !=
			    shade)
				continue;
			if (!any)
				fprintf(f, "<path class=\"slot s%u\" d=\"", shade);
			any = true;
			fprintf(f, "M%.2f 0h%.2fv10h%.2fz", x, fmax(w, 1), -fmax(w, 1));
		}
		if (any)
			fputs("\"/>", f);
	}
	fputs("</svg>", f);
}

static void cpus(FILE *f, const struct axis *a, struct report_metric *const *m, size_t n)
{
	static const char *const columns[] = {"CPU", "<Distribution", "Samples", "Mean", "p50",
					      "p90", "p99",	      "p99.9",	 "Max",	 ""};

	html_table(f, "By CPU", true, columns);
	for (size_t i = 0; i < n; i++) {
		fprintf(f, "<tr><th scope=row data-v=%" PRId64 ">%" PRId64 "<td class=shades>",
			m[i]->cpu, m[i]->cpu);
		shades(f, a, m[i]);
		html_td_num(f, m[i]->count);
		html_td_maybe(f, m[i]->has_mean, m[i]->mean);
		for (unsigned int q = REPORT_Q50; q < REPORT_NR_Q; q++)
			html_td_maybe(f, m[i]->has_q, m[i]->q_value[q]);
	}
	html_table_end(f);
}

static void ledger(FILE *f, const struct report_metric *m)
{
	static const char *const name[] = {"attempted", "recorded", "missed",  "filtered",
					   "stopped",	"inside",   "unpaired"};
	const uint64_t n[] = {m->attempted, m->recorded, m->missed,  m->filtered,
			      m->stopped,   m->inside,	 m->unpaired};

	fputs("<p class=ledger>", f);
	for (unsigned int i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
		fprintf(f, "<span>%s <b data-k=%s data-v=\"%" PRIu64 "\">", name[i], name[i], n[i]);
		html_num(f, n[i]);
		fputs("</b></span> ", f);
	}
	if (m->causes[0]) {
		fputs("(missed: ", f);
		html_text(f, m->causes);
		fputs(")", f);
	}
	fputc('\n', f);
}

static void engine(FILE *f, const struct report_metric *m)
{
	fputs("<p class=engine><b>Engine ", f);
	html_text(f, m->engine[0] ? m->engine : "kmod (kstats)");
	fputs(".</b> ", f);
	html_text(f, m->origin);
	fprintf(f, ", %u bits. Limits, and what it cannot see: ", m->bits);
	html_text(f, m->cannot_see[0] ? m->cannot_see :
					"what the ledger counts beside recorded, calls that were "
					"inlined, and where in its slot a sample lies");
	fputs(".\n", f);
}

/* A metric's lines: of all CPUs, if it is there, and of single ones. */
static void metric(FILE *f, struct report_metric *const *m, size_t n)
{
	bool all = m[0]->cpu < 0;
	struct axis a = {INFINITY, -INFINITY};

	for (size_t i = 0; i < n; i++)
		widen(&a, m[i]);
	fputs("<article class=metric><h4>", f);
	html_text(f, m[0]->name);
	fputs("</h4>\n<p>", f);
	if (all) {
		fprintf(f, "<b data-k=count data-v=\"%" PRIu64 "\">", m[0]->count);
		html_num(f, m[0]->count);
		fputs("</b> samples, ", f);
	}
	html_text(f, m[0]->state);
	if (m[0]->readings > 1)
		fprintf(f, "; the last of %" PRIu64 " readings", m[0]->readings);
	fputc('\n', f);
	if (all && m[0]->count) {
		picture(f, &a, m[0]);
		quantiles(f, m[0]);
	} else if (all) {
		fputs("<p>No samples.\n", f);
	}
	if (n > all)
		cpus(f, &a, m + all, n - all);
	ledger(f, m[0]);
	engine(f, m[0]);
	fputs("</article>\n", f);
}

void fmt_report_metrics(FILE *f, const struct report_input *in, size_t nr)
{
	fprintf(f, "<section id=dist%zu><h3>Distributions</h3>\n", nr);
	fputs("<p class=legend><span><i class=slot></i>samples by time, which is on a logarithmic "
	      "axis</span> <span><i class=cdf></i>share of samples up to there</span> <span><i "
	      "class=mark></i>p50, p90, p99, p99.9</span>\n",
	      f);
	for (size_t i = 0, n; i < in->nr_metrics; i += n) {
		for (n = 1; i + n < in->nr_metrics; n++)
			if (strcmp(in->metric[i + n]->name, in->metric[i]->name))
				break;
		metric(f, in->metric + i, n);
	}
	fputs("</section>\n", f);
}
