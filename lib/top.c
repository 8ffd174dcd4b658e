// SPDX-License-Identifier: MIT
/* Reports of threads, CPUs and distributions, and their differences. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/top.h"

struct top {
	struct top_source from;
	struct threads *threads;
	struct thread_list list[2]; /* of this report, list[cur], and of the one before */
	struct cpus cpus[2];
	unsigned int cur;
	struct top_report r;
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int live_next(uint64_t *mono_ns, uint64_t *real_ns, char *why, size_t len)
{
	(void)why;
	(void)len;
	*mono_ns = now_ns(CLOCK_MONOTONIC);
	*real_ns = now_ns(CLOCK_REALTIME);
	return 0;
}

int top_open_from(struct top **out, struct threads *threads, const struct top_source *source)
{
	struct top *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->threads = threads;
	t->from = *source;
	*out = t;
	return 0;
}

int top_open(struct top **out, const char *engine, pid_t pid, top_dists *dists, char *why,
	     size_t len)
{
	const struct top_source live = {live_next, cpus_read, dists};
	struct threads *threads;
	int err = threads_open(&threads, engine, pid, why, len);

	if (err)
		return err;
	err = top_open_from(out, threads, &live);
	if (!err)
		return 0;
	threads_close(threads);
	snprintf(why, len, "%s", strerror(-err));
	return err;
}

static void free_dist(struct top_dist *d)
{
	hist_free(d->all);
	hist_free(d->interval);
}

void top_close(struct top *t)
{
	if (!t)
		return;
	threads_close(t->threads);
	for (int i = 0; i < 2; i++) {
		thread_list_free(&t->list[i]);
		cpus_free(&t->cpus[i]);
	}
	for (size_t i = 0; i < t->r.nr_dists; i++)
		free_dist(&t->r.dist[i]);
	free(t->r.dist);
	free(t->r.thread);
	free(t->r.cpu);
	free(t);
}

static int by_id(const struct thread_sample *a, const struct thread_sample *b)
{
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

/* Both lists are in the order of pid and tid. */
static int diff_threads(struct top *t, uint64_t before_ns)
{
	const struct thread_list *old = &t->list[!t->cur], *new = &t->list[t->cur];
	struct top_report *r = &t->r;
	struct top_thread *row;
	size_t at = 0;

	row = reallocarray(r->thread, new->nr + 1, sizeof(*row));
	if (!row)
		return -ENOMEM;
	r->thread = row;
	for (size_t i = 0; i < new->nr; i++, row++) {
		const struct thread_sample *s = &new->v[i];

		while (at < old->nr && by_id(&old->v[at], s) < 0)
			at++;
		row->s = s;
		row->older = at < old->nr && !by_id(&old->v[at], s) ? &old->v[at] : NULL;
		thread_diff(&row->d, row->older, s, before_ns);
	}
	r->nr_threads = new->nr;
	return 0;
}

static int diff_cpus(struct top *t)
{
	const struct cpus *c = &t->cpus[t->cur];
	struct top_report *r = &t->r;
	struct top_cpu *row;

	r->nr_cpus = 0;
	r->cpu_source = NULL;
	r->no_cpus[0] = '\0';
	if (t->from.cpus(&t->cpus[t->cur], r->no_cpus, sizeof(r->no_cpus))) {
		t->cpus[t->cur].nr = 0;
		return 0;
	}
	row = reallocarray(r->cpu, c->nr, sizeof(*row));
	if (!row)
		return -ENOMEM;
	r->cpu = row;
	r->cpu_source = c->source;
	for (size_t i = 0; i < c->nr; i++) {
		row[i].row = &c->row[i];
		cpus_diff(&row[i].d, &t->cpus[!t->cur], c, i);
	}
	r->nr_cpus = c->nr;
	return 0;
}

static struct top_dist *dist_by_name(struct top_report *r, const char *name)
{
	struct top_dist *d;

	for (size_t i = 0; i < r->nr_dists; i++)
		if (!strcmp(r->dist[i].name, name))
			return &r->dist[i];
	d = reallocarray(r->dist, r->nr_dists + 1, sizeof(*d));
	if (!d)
		return NULL;
	r->dist = d;
	d += r->nr_dists++;
	memset(d, 0, sizeof(*d));
	snprintf(d->name, sizeof(d->name), "%s", name);
	return d;
}

/* Takes m->all over. */
static void put_dist(struct top_dist *d, struct dist_metric *m)
{
	struct hist *old = d->all;

	hist_free(d->interval);
	d->interval = NULL;
	d->all = m->all;
	m->all = NULL;
	d->missed = m->ledger.missed;
	d->seen = true;
	if (old && old->bits == d->all->bits) {
		d->interval = hist_new(d->all->bits);
		if (d->interval &&
		    (hist_merge(d->interval, d->all) || hist_sub(d->interval, old))) {
			hist_free(d->interval);
			d->interval = NULL;
		}
	}
	hist_free(old);
}

struct reading {
	struct top_report *r;
	const struct dist_engine *engine;
};

/* A metric that went away since it was listed is not there. */
static int read_dist(const char *name, void *data)
{
	struct reading *reading = data;
	struct top_report *r = reading->r;
	struct dist_metric m;
	struct dist_why why;
	struct top_dist *d;
	int err = reading->engine->read(name, &m, &why);

	if (err)
		return err == -ENOMEM ? err : 0;
	d = dist_by_name(r, name);
	if (d)
		put_dist(d, &m);
	dist_metric_free(&m);
	return d ? 0 : -ENOMEM;
}

static void read_dists(struct top *t)
{
	struct top_report *r = &t->r;
	struct dist_why why = {""};
	const struct dist_engine *const *e = t->from.dists(&why);
	struct reading reading = {.r = r};
	int err = e ? 0 : -ENODEV;
	size_t nr = 0, len;

	for (size_t i = 0; i < r->nr_dists; i++)
		r->dist[i].seen = false;
	r->dist_engines[0] = '\0';
	for (; !err && *e; e++) {
		reading.engine = *e;
		err = (*e)->metrics(read_dist, &reading, &why);
		len = strlen(r->dist_engines);
		snprintf(r->dist_engines + len, sizeof(r->dist_engines) - len, "%s%s",
			 len ? "," : "", (*e)->name);
	}
	if (err) {
		r->dist_engines[0] = '\0';
		snprintf(r->no_dists, sizeof(r->no_dists), "%s",
			 why.text[0] ? why.text : strerror(-err));
	}
	for (size_t i = 0; i < r->nr_dists; i++)
		if (r->dist[i].seen)
			r->dist[nr++] = r->dist[i];
		else
			free_dist(&r->dist[i]);
	r->nr_dists = nr;
}

int top_sample(struct top *t, char *why, size_t len)
{
	uint64_t before_ns = t->r.mono_ns;
	int err = t->from.next(&t->r.mono_ns, &t->r.real_ns, why, len), gone;

	if (err)
		return err;
	t->cur = !t->cur;
	t->r.interval_ns = before_ns ? t->r.mono_ns - before_ns : 0;
	gone = threads_sample(t->threads, &t->list[t->cur], why, len);
	if (gone)
		t->list[t->cur].nr = 0;
	if (gone && gone != -ESRCH)
		return gone;
	err = diff_threads(t, before_ns);
	if (!err)
		err = diff_cpus(t);
	if (err) {
		snprintf(why, len, "%s", strerror(-err));
		return err;
	}
	read_dists(t);
	return gone;
}

const struct top_report *top_report(const struct top *t)
{
	return &t->r;
}

const struct thread_engine *top_engine(const struct top *t, unsigned int i)
{
	return threads_engine(t->threads, i);
}
