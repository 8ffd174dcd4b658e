/* SPDX-License-Identifier: MIT */
/* A run on the page: its figures, the table of system calls, and what the engine is. */
#include <inttypes.h>
#include <string.h>

#include "lib/fmt_report.h"
#include "lib/record.h"

static void figure(FILE *f, const char *name, const char *key)
{
	fprintf(f, "<div><dt>%s<dd data-k=%s data-v=\"", name, key);
}

static void figure_ns(FILE *f, const char *name, const char *key, uint64_t ns)
{
	figure(f, name, key);
	fprintf(f, "%" PRIu64 "\">", ns);
	html_ns(f, ns);
	fputs("</div>", f);
}

static void figure_num(FILE *f, const char *name, const char *key, uint64_t n)
{
	figure(f, name, key);
	fprintf(f, "%" PRIu64 "\">", n);
	html_num(f, n);
	fputs("</div>", f);
}

void fmt_report_calls(FILE *f, const struct report_calls *t, const char *label)
{
	static const char *const columns[] = {
		"Call", "<Category", "Calls", "Failed", "Total", "Share", "On CPU",  "Waiting",
		"Mean", "Least",     "p50",   "p90",	"p99",	 "p99.9", "Longest", ""};
	uint64_t sum = 0;

	for (size_t i = 0; i < t->nr; i++)
		sum = rts_add(sum, t->row[i].total_ns);
	html_table(f, label, true, columns);
	for (size_t i = 0; i < t->nr; i++) {
		const struct report_call *c = &t->row[i];

		fputs("<tr><th scope=row>", f);
		html_text(f, c->name);
		if (c->abi[0] && strcmp(c->abi, "x86_64")) {
			fputs(" <small>", f);
			html_text(f, c->abi);
			fputs("</small>", f);
		}
		fputs("<td>", f);
		html_text(f, c->category);
		html_td_num(f, c->count);
		html_td_num(f, c->errors);
		if (c->errnos[0]) {
			fputs("<br><small>", f);
			html_text(f, c->errnos);
			fputs("</small>", f);
		}
		html_td_ns(f, c->total_ns);
		fprintf(f, "<td data-v=\"%" PRIu64 "\">%.1f %%", c->total_ns,
			html_percent((double)c->total_ns, (double)sum));
		html_td_maybe(f, c->has_split, c->on_cpu_ns);
		html_td_maybe(f, c->has_split, c->waiting_ns);
		html_td_maybe(f, c->count, c->count ? c->total_ns / c->count : 0);
		html_td_maybe(f, c->has_range, c->min_ns);
		for (unsigned int p = 0; p < REPORT_NR_P; p++)
			html_td_maybe(f, c->has_p, c->p_ns[p]);
		html_td_maybe(f, c->has_range, c->max_ns);
		fputc('\n', f);
	}
	html_table_end(f);
	if (t->left_out)
		fprintf(f, "<p class=note>%" PRIu64 " rows more are left out here.\n", t->left_out);
}

void fmt_report_engines(FILE *f, const struct report_input *in)
{
	for (size_t i = 0; i < in->nr_engines; i++) {
		const struct report_engine *e = &in->engine[i];

		fputs("<p class=engine><b>Engine ", f);
		html_text(f, e->name[0] ? e->name : "not named");
		fputs(".</b>", f);
		if (e->has_cost) {
			fprintf(f, " Adds <span data-k=cost_ns data-v=\"%" PRIu64 "\">",
				e->cost_ns);
			html_ns(f, e->cost_ns);
			fputs("</span> to a call.", f);
		}
		if (e->split[0]) {
			fputs(" On CPU and waiting are told apart by ", f);
			html_text(f, e->split);
			fputc('.', f);
		}
		if (e->split_absent[0]) {
			fputs(" Not told apart: ", f);
			html_text(f, e->split_absent);
			fputc('.', f);
		}
		fputs(" Limits, and what it cannot see: ", f);
		html_text(f, e->cannot_see[0] ? e->cannot_see : "it says nothing of it");
		fputs(".\n", f);
	}
	if (!in->nr_engines)
		fputs("<p class=engine>The records name no engine.\n", f);
}

static void figures(FILE *f, const struct report_input *in)
{
	const struct report_life *w = &in->whole;
	uint64_t calls = 0, errors = 0, total = 0;

	for (size_t i = 0; i < w->calls.nr; i++) {
		calls = rts_add(calls, w->calls.row[i].count);
		errors = rts_add(errors, w->calls.row[i].errors);
		total = rts_add(total, w->calls.row[i].total_ns);
	}
	fputs("<dl class=figures>", f);
	figure_ns(f, "From first to last", "span_ns",
		  w->time_ns > w->start_ns ? w->time_ns - w->start_ns : 0);
	if (w->has_cpu) {
		figure_ns(f, "CPU, user", "user_ns", w->user_ns);
		figure_ns(f, "CPU, kernel", "system_ns", w->system_ns);
	}
	if (w->processes)
		figure_num(f, "Processes", "processes", w->processes);
	figure_num(f, "System calls", "calls", calls);
	figure_num(f, "of them failed", "errors", errors);
	figure_ns(f, "Time in calls, all threads", "total_ns", total);
	fputs("</dl>\n", f);
}

void fmt_report_run(FILE *f, const struct report_input *in, size_t nr)
{
	fprintf(f, "<section id=calls%zu><h3>System calls</h3>\n", nr);
	figures(f, in);
	if (in->whole_of > 1)
		fprintf(f,
			"<p class=note>The sum of %" PRIu64 " %s. Quantiles of a sum cannot be had "
			"from quantiles, so they are left out where a call was made in more than "
			"one.\n",
			in->whole_of, in->nr_trees ? "runs" : "lives of processes");
	if (in->whole.calls.nr)
		fmt_report_calls(f, &in->whole.calls, "System calls of all processes");
	else
		fputs("<p>No system call was recorded.\n", f);
	fputs("<p class=note>Times are wall time from entry to return. A quantile is above the exact "
	      "value by at most an eighth of it.\n",
	      f);
	fmt_report_engines(f, in);
	fputs("</section>\n", f);
}
