/* SPDX-License-Identifier: MIT */
/* The timeline: a lane a life of a process, which opens to all that is known of it. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "lib/fmt_report.h"
#include "lib/record.h"

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

/* Of each kind: class of the page's style, key of its sum, its name, and what it is. */
static const struct kind {
	const char *class, *key, *name, *what;
} kinds[REPORT_NR_KINDS] = {
	[REPORT_CPU] = {"cpu", "cpu_ns", "CPU", "running on a CPU, all threads"},
	[REPORT_WAITING] = {"waiting", "waiting_ns", "waiting",
			    "waiting inside a system call; a call that has not returned counts as "
			    "waiting"},
	[REPORT_UNSPLIT] = {"unsplit", "unsplit_ns", "in calls",
			    "in calls of which the engine cannot tell; some of it is in CPU too"},
	[REPORT_RUNQ] = {"runq", "runq_ns", "run queue", "runnable, waiting for a CPU"},
	[REPORT_IOWAIT] = {"iowait", "iowait_ns", "I/O", "waiting for I/O"},
	[REPORT_DSLEEP] = {"dsleep", "dsleep_ns", "uninterruptible",
			   "uninterruptible sleep, not for I/O"},
	[REPORT_SLEEP] = {"sleep", "sleep_ns", "sleep", "interruptible sleep"},
	[REPORT_OFF] = {"off", "off_ns", "asleep",
			"in no bucket that the engine knows: asleep, it is not known how"},
};

/* A sum is there if it was measured, and one of what cannot be told if there is any. */
static bool has_kind(const struct report_life *l, unsigned int kind)
{
	return l->known & 1u << kind && (kind != REPORT_UNSPLIT || l->ns[kind]);
}

/* How many threads' time an interval holds. */
static double threads(uint64_t ns, const struct report_point *p)
{
	return p->to_ns > p->from_ns ? (double)ns / (double)(p->to_ns - p->from_ns) : 0;
}

/* Sleep takes what room is left: of a thousand threads that sleep, the one that runs is still seen. */
static double peak(const struct report_life *l)
{
	double most = 1;

	for (size_t i = 0; i < l->nr_points; i++) {
		const struct report_point *p = &l->point[i];
		double n = 0;

		for (unsigned int k = 0; k < REPORT_NR_BUSY; k++)
			n += threads(p->ns[k], p);
		most = n > most ? n : most;
	}
	return most;
}

/* Bars of one bucket on top of those below it. */
static void layer(FILE *f, const struct axis *a, const struct report_life *l, double scale,
		  unsigned int which)
{
	bool any = false;

	for (size_t i = 0; i < l->nr_points; i++) {
		const struct report_point *p = &l->point[i];
		double below = 0, here = threads(p->ns[which], p) / scale * HEIGHT;
		double x = x_of(a, p->from_ns) * WIDTH, w = x_of(a, p->to_ns) * WIDTH - x;

		for (unsigned int k = 0; k < which; k++)
			below += threads(p->ns[k], p) / scale * HEIGHT;
		if (which >= REPORT_NR_BUSY)
			here = fmin(here, HEIGHT - below);
		if (here <= 0)
			continue;
		if (!any)
			fprintf(f, "<path class=%s d=\"", kinds[which].class);
		any = true;
		fprintf(f, "M%.2f %.2fh%.2fv%.2fh%.2fz", x, HEIGHT - below, fmax(w, LEAST), -here,
			-fmax(w, LEAST));
	}
	if (any)
		fputs("\"/>", f);
}

static void put_point_title(FILE *f, const struct axis *a, const struct report_point *p)
{
	double x = x_of(a, p->from_ns) * WIDTH, w = x_of(a, p->to_ns) * WIDTH - x;
	const char *before = ": ";

	fprintf(f, "<rect class=hit x=%.2f width=%.2f height=%d><title>", x, fmax(w, LEAST),
		HEIGHT);
	html_ns(f, p->from_ns - a->from_ns);
	fputs(" to ", f);
	html_ns(f, p->to_ns - a->from_ns);
	for (unsigned int k = 0; k < REPORT_NR_KINDS; k++) {
		/* The first two are told in any case, if they were measured. */
		if (!(p->known & 1u << k) || (k > REPORT_WAITING && !p->ns[k]))
			continue;
		fprintf(f, "%s%s ", before, kinds[k].name);
		html_ns(f, p->ns[k]);
		before = ", ";
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
	for (unsigned int which = 0; which < REPORT_NR_KINDS; which++)
		layer(f, a, l, scale, which);
	for (size_t i = 0; i < l->nr_points; i++)
		put_point_title(f, a, &l->point[i]);
	fputs("</svg>", f);
}

static void put_sum(FILE *f, const char *class, const char *name, const char *key, uint64_t ns)
{
	fprintf(f, "<span class=sum><i class=%s></i>%s <b data-k=%s data-v=\"%" PRIu64 "\">", class,
		name, key, ns);
	html_ns(f, ns);
	fputs("</b></span> ", f);
}

static void put_sums(FILE *f, const struct report_life *l)
{
	for (unsigned int k = 0; k < REPORT_NR_KINDS; k++)
		if (has_kind(l, k))
			put_sum(f, kinds[k].class, kinds[k].name, kinds[k].key, l->ns[k]);
}

static void sums(FILE *f, const struct report_life *l)
{
	if (!(l->known & 1u << REPORT_CPU))
		fputs("<span class=sum>CPU not measured</span> ", f);
	put_sums(f, l);
	put_sum(f, "life", "of", "wall_ns", l->time_ns - l->start_ns);
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

static void recorded_facts(FILE *f, const struct report_life *l)
{
	fputs("<dl class=figures>", f);
	if (l->tid)
		put_fact(f, "Thread", "tid", l->tid);
	else
		put_fact(f, "Threads, ended ones too", "threads", (int64_t)l->threads);
	put_fact(f, "Intervals", "intervals", (int64_t)l->records);
	for (unsigned int i = 0; i < REPORT_NR_COUNTS; i++)
		if (l->counts_known & 1u << i)
			put_fact(f, report_count_name[i], report_count_key[i],
				 (int64_t)l->count[i]);
	fputs("</dl>\n", f);
}

static void lane(FILE *f, const struct axis *a, const struct report_input *in,
		 const struct report_life *l);

/* Of a recording: the threads of a process, and what those did that are not drawn. */
static void thread_lanes(FILE *f, const struct axis *a, const struct report_input *in,
			 const struct report_life *process)
{
	struct report_life left = {.known = process->known};
	uint64_t drawn = 0;

	memcpy(left.ns, process->ns, sizeof(left.ns));
	for (size_t i = in->nr_trees + in->nr_processes; i < in->nr_lives; i++) {
		const struct report_life *l = in->life[i];

		if (l->serial != process->serial || !l->drawn)
			continue;
		lane(f, a, in, l);
		drawn++;
		for (unsigned int k = 0; k < REPORT_NR_KINDS; k++)
			left.ns[k] -= l->ns[k];
	}
	if (drawn == process->threads)
		return;
	fprintf(f,
		"<p class=note data-k=more_threads data-v=%" PRIu64 ">%" PRIu64
		" threads %sthat did less are not drawn. Together: ",
		process->threads - drawn, process->threads - drawn, drawn ? "more " : "");
	put_sums(f, &left);
	fputc('\n', f);
}

static void lane(FILE *f, const struct axis *a, const struct report_input *in,
		 const struct report_life *l)
{
	fprintf(f, "<details class=lane data-pid=%" PRId64 " data-start=\"%" PRIu64 "\"", l->pid,
		l->start_ns);
	if (l->tid)
		fprintf(f, " data-tid=%" PRId64, l->tid);
	fputs("><summary><span class=who>", f);
	html_text(f, l->comm);
	fprintf(f, " <small>%" PRId64 "</small></span><span class=sums>", l->tid ? l->tid : l->pid);
	sums(f, l);
	fputs("</span><span class=strip>", f);
	picture(f, a, l);
	fputs("</span></summary>\n", f);
	if (in->recording) {
		recorded_facts(f, l);
		if (!l->tid)
			thread_lanes(f, a, in, l);
	} else {
		facts(f, l);
		phases(f, l);
		open_calls(f, l);
		if (l->calls.nr)
			fmt_report_calls(f, &l->calls, "System calls of this process");
	}
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

static void put_others(FILE *f, const struct report_others *o, unsigned int known)
{
	struct report_life sums = {.known = known};

	memcpy(sums.ns, o->ns, sizeof(sums.ns));
	fprintf(f,
		"<p class=note data-k=others data-v=%" PRIu64 ">%" PRIu64
		" processes more, that took less time, are not drawn. Together: ",
		o->nr, o->nr);
	put_sums(f, &sums);
	fputc('\n', f);
}

static void legend(FILE *f, unsigned int known, bool recording)
{
	fputs("<p class=legend>", f);
	for (unsigned int k = 0; k < REPORT_NR_KINDS; k++)
		if (known & 1u << k)
			fprintf(f, "<span><i class=%s></i>%s</span> ", kinds[k].class,
				kinds[k].what);
	if (recording)
		fputs("<span><i class=life></i>not known</span>\n", f);
	else
		fputs("<span><i class=life></i>neither: runnable, faulting, or stopped by the "
		      "watcher</span> <span>The buckets of a thread: <i class=oncpu></i>on CPU "
		      "<i class=runq></i>run queue <i class=sleep></i>sleep <i class=dsleep></i>"
		      "uninterruptible <i class=iowait></i>I/O</span>\n",
		      f);
}

static void notes(FILE *f, bool recording)
{
	if (recording)
		fputs("<p class=note>A lane opens to the threads of the process. An interval is the "
		      "time between two instants of the recording; what a thread did after the last "
		      "one that has it is not known. Sleep is drawn in the room that the other "
		      "buckets leave.\n",
		      f);
	else
		fputs("<p class=note>A lane opens to the process: a record tells of a process, and "
		      "of its threads only which call each is in, and the times of the thread that "
		      "ended a start-up step. Lines are as fine as <code>--interval</code>; without, "
		      "a lane is one average.\n",
		      f);
}

void fmt_report_timeline(FILE *f, const struct report_input *in, size_t nr)
{
	struct axis a = {in->whole.start_ns, in->whole.time_ns};
	struct report_others left = in->others;
	unsigned int known = 0;

	fprintf(f, "<section id=time%zu><h3>Timeline</h3>\n", nr);
	for (size_t i = 0; i < in->nr_lives; i++)
		known |= in->life[i]->known;
	if (!in->recording)
		known |= 1u << REPORT_CPU | 1u << REPORT_WAITING | 1u << REPORT_UNSPLIT;
	legend(f, known, in->recording);
	put_axis(f, &a);
	for (size_t i = in->nr_trees; i < in->nr_trees + in->nr_processes; i++) {
		const struct report_life *l = in->life[i];

		if (l->drawn) {
			lane(f, &a, in, l);
			continue;
		}
		left.nr++;
		for (unsigned int k = 0; k < REPORT_NR_KINDS; k++)
			left.ns[k] = rts_add(left.ns[k], l->ns[k]);
	}
	if (left.nr)
		put_others(f, &left, known);
	notes(f, in->recording);
	fmt_report_engines(f, in);
	fputs("</section>\n", f);
}
