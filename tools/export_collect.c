// SPDX-License-Identifier: GPL-2.0
/* What an exporter tells: read all parts, and hand them to the formatter. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "tools/cmd.h"
#include "tools/cpu_table.h"
#include "tools/dist_view.h"
#include "tools/export.h"
#include "tools/replay.h"

struct metrics {
	const struct dist_engine *engine; /* whose metrics are being read */
	char engines[32];		  /* all, by name */
	struct om_metric *metric;
	unsigned int nr, unread;
	bool warn;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* A metric that went away since it was listed is not there; one that cannot be read is counted. */
static int read_metric(const char *name, void *data)
{
	struct metrics *all = data;
	struct om_metric *grown, *m;
	struct dist_why why;
	int err;

	grown = realloc(all->metric, (all->nr + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	all->metric = grown;
	m = &grown[all->nr];
	err = strlen(name) < sizeof(m->name) ?
		      all->engine->read(name, &m->m, &why) :
		      dist_fail(&why, -EINVAL, "'%.64s' is not a metric's name", name);
	if (err == -ENOENT)
		return 0;
	if (err) {
		all->unread++;
		if (all->warn)
			cmd_err("%s", why.text);
		return 0;
	}
	dist_metric_drop_cpus(&m->m);
	strcpy(m->name, name);
	all->nr++;
	return 0;
}

static void free_metrics(struct metrics *all)
{
	while (all->nr)
		dist_metric_free(&all->metric[--all->nr].m);
	free(all->metric);
}

static int read_metrics(const struct export_opts *o, struct metrics *all)
{
	const struct dist_engine *const *e;
	struct dist_why why = {""};
	int err;

	e = o->replay ? replay_engines(&why) : dist_engines_now(&why);
	err = e ? 0 : -ENODEV;
	for (; !err && *e; e++) {
		all->engine = *e;
		err = (*e)->metrics(read_metric, all, &why);
		snprintf(all->engines + strlen(all->engines),
			 sizeof(all->engines) - strlen(all->engines), "%s%s",
			 all->engines[0] ? "," : "", (*e)->name);
	}
	if (err && all->warn)
		cmd_err("%s", why.text[0] ? why.text : strerror(-err));
	return err;
}

/* This machine's page is mapped no longer than it takes: while it is, the kernel refreshes it. */
static int read_table(const struct export_opts *o, struct cpu_table *t, bool warn)
{
	struct dist_why why;
	int err;

	if (o->replay) {
		err = replay_cpu_page(&t->sum, &t->cpu, &why);
		if (err && warn)
			cmd_err("%s", why.text);
		return err;
	}
	err = cpu_table_read(t);
	if (err && warn)
		cmd_csf_err("cpu");
	csf_cpu_close();
	return err;
}

static int read_cpus(const struct export_opts *o, struct cpu_table *t, struct om_cpus *to,
		     bool warn)
{
	int err = read_table(o, t, warn);

	if (err)
		return err;
	*to = (struct om_cpus){
		.row = t->cpu,
		.nr = t->sum.nr_cpus,
		.update_mono_ns = t->sum.update_mono_ns,
		.nr_updates = t->sum.nr_updates,
		.nr_corrected = t->sum.nr_corrected,
		.period_us = t->sum.period_us,
		.tick_ns = t->sum.tick_ns,
	};
	return 0;
}

static int read_threads(const struct export_opts *o, struct om_scrape *s, bool warn)
{
	struct dist_why why;
	int err = export_threads_read(o->threads, &s->process, &s->nr_processes, &why);

	if (err && warn)
		cmd_err("--threads: %s", why.text);
	return err;
}

/* A copy holds distributions alone: nothing of this machine is told beside them. */
static int collect(const struct export_opts *o, enum om_dialect dialect, bool warn, FILE *f)
{
	struct om_part part[] = {{"distributions", "", false},
				 {"cpu", "coarse_stat_fs", false},
				 {"threads", "", false}};
	struct metrics all = {.warn = warn};
	uint64_t start = now_ns();
	struct cpu_table table = {0};
	struct om_cpus cpus;
	struct utsname uts;
	struct om_scrape s = {
		.dialect = dialect,
		.buckets = o->buckets,
		.version = STATPAGE_VERSION,
		.part = part,
		.nr_parts = o->from    ? 1 :
			    o->threads ? 3 :
					 2,
	};
	int up;

	engine_kmod_from(o->from);
	part[0].up = !read_metrics(o, &all);
	part[0].engine = all.engines;
	if (part[0].up) {
		s.metric = all.metric;
		s.nr_metrics = all.nr;
		s.unread = all.unread;
	}
	if (!o->from) {
		part[1].up = !read_cpus(o, &table, &cpus, warn);
		s.cpus = part[1].up ? &cpus : NULL;
		s.release = o->replay ? replay_head()->release : uname(&uts) ? NULL : uts.release;
	}
	if (o->threads) {
		part[2].up = !read_threads(o, &s, warn);
		part[2].engine = export_threads_engines(o->threads);
	}
	s.collect_ns = now_ns() - start;
	if (f)
		fmt_openmetrics(f, &s);
	up = part[0].up + part[1].up + part[2].up;
	free_metrics(&all);
	cpu_table_free(&table);
	return up;
}

int export_check(const struct export_opts *o)
{
	int up = collect(o, OM_PROMETHEUS, true, NULL);

	return o->from && !up ? -1 : up;
}

char *export_text(const struct export_opts *o, enum om_dialect dialect, size_t *len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, len);
	int bad;

	if (!f)
		return NULL;
	collect(o, dialect, false, f);
	bad = ferror(f);
	if (!fclose(f) && !bad)
		return text;
	free(text);
	return NULL;
}
