/* SPDX-License-Identifier: MIT */
/* The timeline: a lane a life of a process, which opens to all that is known of it. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "lib/fmt_report.h"

#define HEIGHT 100 /* of a lane, in units of its picture */
#define WIDTH  1000
#define LEAST  2.5 /* a pixel of a phone */

struct axis {
	uint64_t from_ns, to_ns;
};

static double x_of(const struct axis *a, uint64_t ns)
{
	return a->to_ns > a->from_ns ? (double)(ns - a->from_ns) / (double)(a->to_ns - a->from_ns) :
				       0;
}

/* How many threads' time an interval holds. */
static double threads(uint64_t ns, const struct report_point *p)
{
	return p->to_ns > p->from_ns ? (double)ns / (double)(p->to_ns - p->from_ns) : 0;
}

static double peak(const struct report_life *l)
{
	double most = 1;

	for (size_t i = 0; i < l->nr_points; i++) {
		const struct report_point *p = &l->point[i];
		double n = threads(p->cpu_ns, p) + threads(p->waiting_ns, p) +
			   threads(p->unsplit_ns, p);

		most = n > most ? n : most;
	}
	return most;
}

/* Bars of one bucket on top of those below it. */
static void layer(FILE *f, const struct axis *a, const struct report_life *l, double scale,
		  unsigned int which)
{
	static const char *const class[] = {"cpu", "waiting", "unsplit"};
	bool any = false;

	for (size_t i = 0; i < l->nr_points; i++) {
		const struct report_point *p = &l->point[i];
		const uint64_t ns[] = {p->cpu_ns, p->waiting_ns, p->unsplit_ns};
		double below = 0, here = threads(ns[which], p) / scale * HEIGHT;
		double x = x_of(a, p->from_ns) * WIDTH, w = x_of(a, p->to_ns) * WIDTH - x;

		for (unsigned int k = 0; k < which; k++)
			below += threads(ns[k], p) / scale * HEIGHT;
		if (here <= 0)
			continue;
		if (!any)
			fprintf(f, "<path class=%s d=\"", class[which]);
		any = true;
		fprintf(f, "M%.2f %.2fh%.2fv%.2fh%.2fz", x, HEIGHT - below, fmax(w, LEAST), -here,
			-fmax(w, LEAST));
	}
	if (any)
		fputs("\"/>", f);
}

static void put_point_title(FILE *f, const struct axis *a, const struct report_life *l,
			    const struct report_point *p)
{
	double x = x_of(a, p->from_ns) * WIDTH, w = x_of(a, p->to_ns) * WIDTH - x;

	fprintf(f, "<rect class=hit x=%.2f width=%.2f height=%d><title>", x, fmax(w, LEAST),
		HEIGHT);
	html_ns(f, p->from_ns - a->from_ns);
	fputs(" to ", f);
	html_ns(f, p->to_ns - a->from_ns);
	fputs(":", f);
	if (l->has_cpu) {
		fputs(" CPU ", f);
		html_ns(f, p->cpu_ns);
		fputs(",", f);
	}
	fputs(" waiting ", f);
	html_ns(f, p->waiting_ns);
	if (p->unsplit_ns) {
		fputs(", in calls ", f);
		html_ns(f, p->unsplit_ns);
	}
	fputs("</title></rect>", f);
}

static void picture(FILE *f, const struct axis *a, const struct report_life *l)
{
	double scale = peak(l);

	fprintf(f,
		"<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=none role=img "
		"aria-label=\"%zu intervals; the figures beside say the sums\">",
		WIDTH, HEIGHT, l->nr_points);
	fprintf(f, "<rect class=life x=%.2f width=%.2f height=%d />", x_of(a, l->start_ns) * WIDTH,
		fmax(LEAST, (x_of(a, l->time_ns) - x_of(a, l->start_ns)) * WIDTH), HEIGHT);
	for (unsigned int which = 0; which < 3; which++)
		layer(f, a, l, scale, which);
	for (size_t i = 0; i < l->nr_points; i++)
		put_point_title(f, a, l, &l->point[i]);
	fputs("</svg>", f);
}

static void sum(FILE *f, const char *class, const char *name, const char *key, uint64_t ns)
{
	fprintf(f, "<span class=sum><i class=%s></i>%s <b data-k=%s data-v=\"%" PRIu64 "\">", class,
		name, key, ns);
	html_ns(f, ns);
	fputs("</b></span> ", f);
}

static void sums(FILE *f, const struct report_life *l)
{
	if (l->has_cpu)
		sum(f, "cpu", "CPU", "cpu_ns", l->cpu_ns);
	else
		fputs("<span class=sum>CPU not measured</span> ", f);
	sum(f, "waiting", "waiting", "waiting_ns", l->waiting_ns);
	if (l->unsplit_ns)
		sum(f, "unsplit", "in calls", "unsplit_ns", l->unsplit_ns);
	sum(f, "life", "of", "wall_ns", l->time_ns - l->start_ns);
	if (peak(l) > 1.05)
		fprintf(f, "<span class=sum>full height: %.1f threads</span>", peak(l));
}

static void put_fact(FILE *f, const char *name, const char *key, int64_t v)
{
	fprintf(f, "<div><dt>%s<dd data-k=%s data-v=%" PRId64 ">%" PRId64 "</div>", name, key, v,
		v);
}

static void put_end(FILE *f, const struct report_life *l)
{
	fputs("<div><dt>Last record<dd>", f);
	html_text(f, l->reason);
	if (l->has_exit && l->exit_signal)
		fprintf(f, ", killed by signal %d", l->exit_signal);
	else if (l->has_exit)
		fprintf(f, ", status %d", l->exit_code);
	if (!l->ended)
		fputs(", it went on after that", f);
	fputs("</div>", f);
}

static void facts(FILE *f, const struct report_life *l)
{
	fputs("<p class=args><code>", f);
	html_text(f, l->args);
	fputs("</code>\n<dl class=figures>", f);
	put_fact(f, "Process", "pid", l->pid);
	put_fact(f, "Parent", "ppid", l->ppid);
	if (l->has_threads)
		put_fact(f, "Threads, ended ones too", "threads", (int64_t)l->threads);
	put_fact(f, "Records", "records", (int64_t)l->records);
	put_end(f, l);
	if (l->has_cpu) {
		fprintf(f, "<div><dt>CPU, user<dd data-k=user_ns data-v=\"%" PRIu64 "\">",
			l->user_ns);
		html_ns(f, l->user_ns);
		fprintf(f, "</div><div><dt>CPU, kernel<dd data-k=system_ns data-v=\"%" PRIu64 "\">",
			l->system_ns);
		html_ns(f, l->system_ns);
		fputs("</div>", f);
	}
	fputs("</dl>\n", f);
}

static void open_calls(FILE *f, const struct report_life *l)
{
	static const char *const columns[] = {"Thread", "<Call that has not returned", "For", ""};

	if (!l->nr_open)
		return;
	html_table(f, "Calls in flight, by thread", true, columns);
	for (size_t i = 0; i < l->nr_open; i++) {
		fprintf(f, "<tr><th scope=row data-v=%" PRId64 ">%" PRId64 "<td>", l->open[i].tid,
			l->open[i].tid);
		html_text(f, l->open[i].name);
		html_td_ns(f, l->open[i].age_ns);
	}
	html_table_end(f);
	if (l->open_left_out)
		fprintf(f, "<p class=note>%" PRIu64 " threads more are in a call.\n",
			l->open_left_out);
}

/* A bar of the thread's five buckets. */
static void buckets(FILE *f, const struct report_phase *p)
{
	double all = 0, x = 0;

	for (unsigned int i = 0; i < 5; i++)
		all += (double)p->thread_ns[i];
	fputs("<svg class=bar viewBox=\"0 0 100 10\" preserveAspectRatio=none aria-hidden=true>",
	      f);
	for (unsigned int i = 0; i < 5; i++) {
		double w = html_percent((double)p->thread_ns[i], all);

		fprintf(f, "<rect class=%s x=%.2f width=%.2f height=10 />", report_bucket[i], x, w);
		x += w;
	}
	fputs("</svg>", f);
}

static void phases(FILE *f, const struct report_life *l)
{
	static const char *const columns[] = {"Step",	"Began",
					      "Wall",	"User",
					      "Kernel", "The thread's time",
					      "On CPU", "Run queue",
					      "Sleep",	"Uninterruptible",
					      "I/O",	""};

	if (!l->nr_phases)
		return;
	html_table(f, "Start-up steps, and the time of the thread that ended each", false, columns);
	for (size_t i = 0; i < l->nr_phases; i++) {
		const struct report_phase *p = &l->phase[i];

		fputs("<tr><th scope=row>", f);
		html_text(f, p->name);
		html_td_ns(f, p->start_ns);
		html_td_ns(f, p->wall_ns);
		html_td_maybe(f, p->has_cpu, p->user_ns);
		html_td_maybe(f, p->has_cpu, p->system_ns);
		fputs("<td>", f);
		if (p->has_thread)
			buckets(f, p);
		else
			fputs("not measured", f);
		for (unsigned int k = 0; k < 5; k++)
			html_td_maybe(f, p->has_thread, p->thread_ns[k]);
	}
	html_table_end(f);
}

static void lane(FILE *f, const struct axis *a, const struct report_life *l)
{
	fprintf(f, "<details class=lane data-pid=%" PRId64 " data-start=\"%" PRIu64 "\"><summary>",
		l->pid, l->start_ns);
	fputs("<span class=who>", f);
	html_text(f, l->comm);
	fprintf(f, " <small>%" PRId64 "</small></span><span class=sums>", l->pid);
	sums(f, l);
	fputs("</span><span class=strip>", f);
	picture(f, a, l);
	fputs("</span></summary>\n", f);
	facts(f, l);
	phases(f, l);
	open_calls(f, l);
	if (l->calls.nr)
		fmt_report_calls(f, &l->calls, "System calls of this process");
	fputs("</details>\n", f);
}

static void put_axis(FILE *f, const struct axis *a)
{
	fputs("<div class=axis aria-hidden=true>", f);
	for (unsigned int i = 0; i <= 4; i++) {
		fprintf(f, "<span style=\"left:%u%%\"%s>", i * 25,
			i == 0 ? " class=first" :
			i == 4 ? " class=last" :
				 "");
		html_ns(f, (a->to_ns - a->from_ns) / 4 * i);
		fputs("</span>", f);
	}
	fputs("</div>\n", f);
}

static uint64_t drawn_ns(const struct report_life *l)
{
	return l->cpu_ns + l->waiting_ns + l->unsplit_ns;
}

static int by_drawn_falling(const void *a, const void *b)
{
	const struct report_life *p = *(struct report_life *const *)a,
				 *q = *(struct report_life *const *)b;

	return (drawn_ns(p) < drawn_ns(q)) - (drawn_ns(p) > drawn_ns(q));
}

/* The time below which a life has no lane. */
static uint64_t least_drawn(const struct report_input *in)
{
	struct report_life **sorted;
	uint64_t least;

	if (in->nr_processes <= REPORT_MAX_LANES)
		return 0;
	sorted = malloc(in->nr_processes * sizeof(*sorted));
	if (!sorted)
		return 0;
	for (size_t i = 0; i < in->nr_processes; i++)
		sorted[i] = in->life[in->nr_trees + i];
	qsort(sorted, in->nr_processes, sizeof(*sorted), by_drawn_falling);
	least = drawn_ns(sorted[REPORT_MAX_LANES - 1]);
	free(sorted);
	return least;
}

static void put_others(FILE *f, const struct report_others *o)
{
	fprintf(f,
		"<p class=note data-k=others data-v=%" PRIu64 ">%" PRIu64
		" processes more, that took less time, are not drawn. Together: ",
		o->nr, o->nr);
	sum(f, "cpu", "CPU", "cpu_ns", o->cpu_ns);
	sum(f, "waiting", "waiting", "waiting_ns", o->waiting_ns);
	if (o->unsplit_ns)
		sum(f, "unsplit", "in calls", "unsplit_ns", o->unsplit_ns);
	fputc('\n', f);
}

static void legend(FILE *f)
{
	fputs("<p class=legend><span><i class=cpu></i>running on a CPU, all threads</span> "
	      "<span><i class=waiting></i>waiting inside a system call; a call that has not "
	      "returned counts as waiting</span> <span><i class=unsplit></i>in calls of which the "
	      "engine cannot tell; some of it is in CPU too</span> <span><i class=life></i>neither: "
	      "runnable, faulting, or stopped by the watcher</span> <span>The buckets of a thread: "
	      "<i class=oncpu></i>on CPU <i class=runq></i>run queue <i class=sleep></i>sleep "
	      "<i class=dsleep></i>uninterruptible <i class=iowait></i>I/O</span>\n",
	      f);
}

void fmt_report_timeline(FILE *f, const struct report_input *in, size_t nr)
{
	struct axis a = {in->whole.start_ns, in->whole.time_ns};
	struct report_others left = in->others;
	uint64_t least = least_drawn(in);
	size_t lanes = 0;

	fprintf(f, "<section id=time%zu><h3>Timeline</h3>\n", nr);
	legend(f);
	put_axis(f, &a);
	for (size_t i = in->nr_trees; i < in->nr_lives; i++) {
		const struct report_life *l = in->life[i];

		if (drawn_ns(l) >= least && lanes < REPORT_MAX_LANES) {
			lane(f, &a, l);
			lanes++;
			continue;
		}
		left.nr++;
		left.cpu_ns += l->cpu_ns;
		left.waiting_ns += l->waiting_ns;
		left.unsplit_ns += l->unsplit_ns;
	}
	if (left.nr)
		put_others(f, &left);
	fputs("<p class=note>A lane opens to the process: a record tells of a process, and of its "
	      "threads only which call each is in, and the times of the thread that ended a start-up "
	      "step. Lines are as fine as <code>--interval</code>; without, a lane is one average.\n",
	      f);
	fmt_report_engines(f, in);
	fputs("</section>\n", f);
}
