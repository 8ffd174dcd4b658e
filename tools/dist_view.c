// SPDX-License-Identifier: GPL-2.0
/* Showing a metric in the way that was asked for. */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "lib/fmt_dist.h"
#include "lib/fmt_plot.h"
#include "tools/cmd.h"
#include "tools/dist_view.h"
#include "tools/replay.h"

static const struct dist_engine *const all_engines[] = {&engine_kmod, &engine_dist_bpf};
#define NR_ENGINES (sizeof(all_engines) / sizeof(all_engines[0]))

/*
 * One that is there and cannot be used is told, as nobody wants its nodes to be overlooked. What a copy holds is
 * of another machine: no engine of this one goes with it.
 */
const struct dist_engine *const *dist_engines_now(struct dist_why *to)
{
	static const struct dist_engine *usable[NR_ENGINES + 1];
	struct dist_why why[NR_ENGINES];
	size_t nr = 0;
	int err;

	for (size_t i = 0; i < (engine_kmod_is_copy() ? 1 : NR_ENGINES); i++) {
		err = all_engines[i]->probe(&why[i]);
		if (!err)
			usable[nr++] = all_engines[i];
		if (!err || err == -ENODEV || nr)
			continue;
		*to = why[i];
		return NULL;
	}
	usable[nr] = NULL;
	if (nr)
		return usable;
	if (engine_kmod_is_copy())
		*to = why[0];
	else
		dist_fail(to, 0, "%s; or: %s", why[0].text, why[1].text);
	return NULL;
}

const struct dist_engine *const *dist_engines(void)
{
	struct dist_why why;
	const struct dist_engine *const *engines = dist_engines_now(&why);

	if (!engines)
		cmd_err("%s", why.text);
	return engines;
}

const struct dist_engine *dist_engine(const char *name)
{
	const struct dist_engine *const *engines;
	struct dist_why why;

	if (!name) {
		engines = dist_engines();
		return engines ? engines[0] : NULL;
	}
	for (size_t i = 0; i < NR_ENGINES; i++) {
		if (strcmp(all_engines[i]->name, name))
			continue;
		if (!all_engines[i]->probe(&why))
			return all_engines[i];
		cmd_err("%s", why.text);
		return NULL;
	}
	cmd_err("--engine %s: there is no such engine; expected kmod or bpf", name);
	return NULL;
}

const struct dist_engine *dist_engine_other(const struct dist_engine *e)
{
	struct dist_why why;

	e = all_engines[e == all_engines[0]];
	return e->probe(&why) ? NULL : e;
}

const struct dist_engine *dist_engine_of(const struct dist_engine *const *engines,
					 const char *metric)
{
	for (size_t i = 0; engines[i]; i++)
		if (engines[i]->has(metric))
			return engines[i];
	return engines[0];
}

int dist_view_cpu(const char *text, unsigned int nr_cpus, struct dist_view *view)
{
	double cpu;

	if (cmd_number("--cpu", text, 0, nr_cpus - 1, &cpu))
		return CMD_USAGE;
	view->cpu = (int)cpu;
	return cpu == view->cpu ? 0 : cmd_usage("--cpu is a whole number, not '%s'", text);
}

int dist_view_as(int as, struct dist_view *view)
{
	if (view->as != DIST_TEXT && (int)view->as != as)
		return cmd_usage("only one of --quantiles, --json, --plot and --heatmap");
	view->as = as;
	return 0;
}

/* Of standard output. A locale's characters are only of use to who has set one. */
static struct plot_style plot_style(void)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
	struct plot_style style = {.columns = 80};
	struct winsize w;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_col)
		style.columns = w.ws_col;
	if (setlocale(LC_CTYPE, ""))
		style.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	style.colour = isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && term &&
		       strcmp(term, "dumb");
	return style;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

/* Samples of h that old has not; all of them where the metric was reset in between. */
static struct hist *since(const struct hist *h, const struct hist *old)
{
	struct hist *d = hist_new(h->bits);

	if (d && !hist_merge(d, h) && old)
		hist_sub(d, old);
	return d;
}

/* A second of this machine, or an interval of a recording. 1; 0: it is over; -1 after a message. */
static int next_line(bool replay, uint64_t interval_ns, time_t *when)
{
	int ret = 1;

	if (replay) {
		ret = replay_on(interval_ns);
		*when = (time_t)(replay_real_ns() / 1000000000u);
		return ret;
	}
	sleep_ns(interval_ns);
	*when = time(NULL);
	return ret;
}

int dist_heatmap(const struct dist_engine *e, const char *name, const struct dist_view *view)
{
	int cpu = view->cpu;
	struct plot_style style = plot_style();
	struct dist_metric old, now;
	struct dist_why why;
	struct heatmap map;
	int ret = 0;

	if (e->read(name, &old, &why))
		return cmd_err("%s", why.text);
	fmt_dist_head(stdout, name, &old, cpu);
	heatmap_init(&map, &style, fmt_dist_pick(&old, cpu) ?: old.all);
	for (unsigned int n = 0; !ret && (!view->count || n < view->count); n++) {
		const struct hist *h;
		struct hist *d;
		char when[16];
		time_t t;
		int more;

		ret = cmd_flush();
		more = next_line(view->replay, view->interval_ns, &t);
		if (more <= 0) {
			ret = more ? CMD_FAILED : ret;
			break;
		}
		if (e->read(name, &now, &why)) {
			ret = cmd_err("%s", why.text);
			break;
		}
		h = fmt_dist_pick(&now, cpu);
		d = h ? since(h, fmt_dist_pick(&old, cpu)) : NULL;
		strftime(when, sizeof(when), "%T", localtime(&t));
		fmt_heatmap_line(stdout, &map, when, d);
		hist_free(d);
		dist_metric_free(&old);
		old = now;
	}
	dist_metric_free(&old);
	return ret;
}

int dist_show(const struct dist_engine *e, const char *name, const struct dist_view *view)
{
	struct plot_style style;
	struct dist_metric m;
	struct dist_why why;

	if (e->read(name, &m, &why))
		return cmd_err("%s", why.text);
	switch (view->as) {
	case DIST_QUANTILES:
		fmt_dist_quantiles(stdout, name, &m, view->cpu);
		break;
	case DIST_JSON:
		fmt_dist_json(stdout, name, &m, view->cpu);
		break;
	case DIST_PLOT:
		style = plot_style();
		fmt_plot(stdout, name, &m, view->cpu, &style);
		break;
	default:
		fmt_dist_text(stdout, name, &m, view->cpu);
	}
	dist_metric_free(&m);
	return 0;
}
