/* SPDX-License-Identifier: MIT */
/* The page of a report around its parts: what is missing comes first. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "build/gen/report_files.h"
#include "lib/fmt_report.h"

static void loss(FILE *f, const struct report_input *in)
{
	fputs("<li><b>", f);
	html_text(f, in->name);
	fputs("</b>: ", f);
}

static unsigned int run_losses(FILE *f, const struct report_input *in)
{
	const struct report_lost *l = &in->whole.lost;
	unsigned int n = 0, unfinished = 0;

	if (l->incomplete) {
		loss(f, in);
		fprintf(f,
			"<code>complete: false</code>; of <b data-k=attempted data-v=\"%" PRIu64
			"\">",
			l->attempted);
		html_num(f, l->attempted);
		fprintf(f, "</b> calls <b data-k=recorded data-v=\"%" PRIu64 "\">", l->recorded);
		html_num(f, l->recorded);
		fputs("</b> were recorded.\n", f);
		n++;
	}
	for (unsigned int i = 0; i < REPORT_NR_CAUSES; i++) {
		if (!l->cause[i])
			continue;
		loss(f, in);
		fprintf(f, "<b data-k=cause%u data-v=\"%" PRIu64 "\">", i, l->cause[i]);
		html_num(f, l->cause[i]);
		fprintf(f, "</b> %s%s.\n", i < REPORT_RECORDS_DROPPED ? "calls " : "",
			report_cause[i]);
		n++;
	}
	if (in->records && !l->has) {
		loss(f, in);
		fputs("the records have no ledger, so what was lost is not known.\n", f);
		n++;
	}
	for (size_t i = in->nr_trees; i < in->nr_trees + in->nr_processes; i++)
		unfinished += !in->life[i]->ended;
	if (unfinished + in->others.unfinished) {
		loss(f, in);
		fprintf(f,
			"<b data-k=unfinished data-v=%" PRIu64 ">%" PRIu64
			"</b> processes have no final record: they went on, or the input was cut.\n",
			unfinished + in->others.unfinished, unfinished + in->others.unfinished);
		n++;
	}
	return n;
}

static unsigned int recorded_losses(FILE *f, const struct report_input *in)
{
	unsigned int n = 0;

	if (!in->recorded_whole) {
		loss(f, in);
		fputs("the recording has no end: it was cut short, or was still being written.\n",
		      f);
		n++;
	}
	if (in->no_distributions[0]) {
		loss(f, in);
		fputs("no distributions were recorded: ", f);
		html_text(f, in->no_distributions);
		fputs(".\n", f);
		n++;
	}
	if (!in->nr_processes) {
		loss(f, in);
		fputs("no thread is in two instants of the recording: there is no timeline.\n", f);
		n++;
	}
	return n;
}

static unsigned int metric_losses(FILE *f, const struct report_input *in)
{
	unsigned int n = 0;

	for (size_t i = 0; i < in->nr_metrics; i++) {
		const struct report_metric *m = in->metric[i];

		/* The ledger is of all CPUs, in each line. */
		if ((m->complete && !m->missed) ||
		    (i && m->cpu >= 0 && !strcmp(m->name, in->metric[i - 1]->name)))
			continue;
		loss(f, in);
		html_text(f, m->name);
		fprintf(f,
			": <code>complete: false</code>; <b data-k=missed data-v=\"%" PRIu64 "\">",
			m->missed);
		html_num(f, m->missed);
		fputs("</b> samples were missed", f);
		if (m->causes[0]) {
			fputs(" (", f);
			html_text(f, m->causes);
			fputs(")", f);
		}
		fputs(".\n", f);
		n++;
	}
	if (in->metrics_left_out) {
		loss(f, in);
		fprintf(f,
			"%" PRIu64
			" distributions more are left out: a page holds %d, and %u slots.\n",
			in->metrics_left_out, REPORT_MAX_METRICS, REPORT_MAX_SLOTS);
		n++;
	}
	return n;
}

/* What is not in the numbers below, before the first of them. */
static void losses(FILE *f, const struct report_page *page)
{
	unsigned int n = 0;

	fputs("<section id=missing class=missing aria-labelledby=missing-h><h2 id=missing-h>What is "
	      "missing</h2><ul>\n",
	      f);
	for (size_t i = 0; i < page->nr; i++) {
		const struct report_input *in = &page->in[i];

		if (in->records)
			n += run_losses(f, in);
		if (in->recording)
			n += recorded_losses(f, in);
		n += metric_losses(f, in);
		if (in->skipped) {
			loss(f, in);
			fprintf(f,
				"<b data-k=skipped data-v=%" PRIu64 ">%" PRIu64
				"</b> lines are of no format that is known here, or were cut; the first "
				"is line %" PRIu64 ".\n",
				in->skipped, in->skipped, in->first_skipped);
			n++;
		}
	}
	if (!n)
		fputs("<li class=whole>Nothing: every call and every sample that began is "
		      "accounted for.\n",
		      f);
	fputs("</ul></section>\n", f);
}

static void put_time(FILE *f, uint64_t realtime_ns)
{
	time_t t = (time_t)(realtime_ns / 1000000000u);
	struct tm tm;
	char text[32];

	if (!realtime_ns || !gmtime_r(&t, &tm)) {
		html_td_none(f);
		return;
	}
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	fprintf(f, "<td data-v=\"%" PRIu64 "\">%s UTC", realtime_ns, text);
}

static void inputs(FILE *f, const struct report_page *page)
{
	static const char *const columns[] = {"Input",	       "Records",     "Process lives",
					      "Distributions", "Last record", ""};

	fputs("<section id=inputs><h2>Inputs</h2>\n", f);
	html_table(f, "Inputs", false, columns);
	for (size_t i = 0; i < page->nr; i++) {
		const struct report_input *in = &page->in[i];

		fprintf(f, "<tr><th scope=row><a href=\"#in%zu\">", i);
		html_text(f, in->name);
		fputs("</a>", f);
		html_td_num(f, in->records + in->readings + in->instants);
		html_td_num(f, in->nr_processes + in->others.nr);
		html_td_num(f, in->nr_metrics);
		put_time(f, in->whole.realtime_ns);
	}
	html_table_end(f);
	fputs("</section>\n", f);
}

static void navigation(FILE *f, const struct report_page *page)
{
	fputs("<nav aria-label=Sections><a href=\"#missing\">What is missing</a>", f);
	if (page->compare)
		fputs("<a href=\"#compare\">Before and after</a>", f);
	for (size_t i = 0; i < page->nr; i++) {
		const struct report_input *in = &page->in[i];

		if (page->nr > 1) {
			fprintf(f, "<a class=input href=\"#in%zu\">", i);
			html_text(f, in->name);
			fputs("</a>", f);
		}
		if (in->records)
			fprintf(f, "<a href=\"#calls%zu\">System calls</a>", i);
		if (in->records || in->nr_processes)
			fprintf(f, "<a href=\"#time%zu\">Timeline</a>", i);
		if (in->nr_metrics)
			fprintf(f, "<a href=\"#dist%zu\">Distributions</a>", i);
	}
	fputs("</nav>\n", f);
}

static void head(FILE *f, const struct report_page *page)
{
	/* The policy: nothing is fetched from anywhere, whatever a name on the page says. */
	fputs("<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
	      "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n"
	      "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; "
	      "style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; "
	      "form-action 'none'\">\n"
	      "<meta name=color-scheme content=\"light dark\">\n<title>statpage report",
	      f);
	for (size_t i = 0; i < page->nr; i++) {
		fputs(i ? ", " : ": ", f);
		html_text(f, page->in[i].name);
	}
	fputs("</title>\n<style>\n", f);
	fwrite(report_css, 1, sizeof(report_css), f);
	fputs("</style>\n</head>\n<body>\n<a class=skip href=\"#main\">To the content</a>\n"
	      "<header><h1>statpage report</h1>\n",
	      f);
	navigation(f, page);
	fputs("</header>\n<main id=main>\n", f);
}

void fmt_report(FILE *f, const struct report_page *page)
{
	head(f, page);
	losses(f, page);
	inputs(f, page);
	if (page->compare)
		fmt_report_compare(f, &page->in[0], &page->in[1]);
	for (size_t i = 0; i < page->nr; i++) {
		const struct report_input *in = &page->in[i];

		fprintf(f, "<section id=in%zu><h2>", i);
		html_text(f, in->name);
		fputs("</h2>\n", f);
		if (in->records)
			fmt_report_run(f, in, i);
		if (in->records || in->nr_processes)
			fmt_report_timeline(f, in, i);
		if (in->nr_metrics)
			fmt_report_metrics(f, in, i);
		fputs("</section>\n", f);
	}
	fputs("</main>\n<footer>Made by statpage ", f);
	html_text(f, page->version);
	fputs(". This page needs no network.</footer>\n<script>\n", f);
	fwrite(report_js, 1, sizeof(report_js), f);
	fputs("</script>\n</body>\n</html>\n", f);
}
