// SPDX-License-Identifier: GPL-2.0
/* Time of threads, added up by the name of their process and by the engine that saw them. */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/procfs.h"
#include "tools/export.h"

/* Names beyond go into one: a program that gives itself new names must not make new series for ever. */
#define MOST_SUMS 200
#define OTHERS	  "(others)"

struct export_threads {
	const char *const *patterns;
	struct threads *engines; /* NULL: not open */
	char names[64];		 /* of the engines */
	struct thread_list was, now;
	uint64_t was_ns; /* just before `was` was taken; 0: never */
	struct om_process *sum;
	unsigned int nr;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

struct export_threads *export_threads_new(const char *const *patterns)
{
	struct export_threads *t = calloc(1, sizeof(*t));

	if (t)
		t->patterns = patterns;
	return t;
}

void export_threads_free(struct export_threads *t)
{
	if (!t)
		return;
	threads_close(t->engines);
	thread_list_free(&t->was);
	thread_list_free(&t->now);
	free(t->sum);
	free(t);
}

const char *export_threads_engines(const struct export_threads *t)
{
	return t->names;
}

static int open_engines(struct export_threads *t, struct dist_why *why)
{
	const struct thread_engine *e;
	unsigned int i;
	size_t len = 0;
	int err = threads_open(&t->engines, NULL, 0, why->text, sizeof(why->text));

	if (err)
		return err;
	for (i = 0; (e = threads_engine(t->engines, i)) && len < sizeof(t->names); i++)
		len += (size_t)snprintf(t->names + len, sizeof(t->names) - len, "%s%s",
					len ? "," : "", e->name);
	return 0;
}

static bool wanted(const struct export_threads *t, const char *comm)
{
	const char *const *p;

	for (p = t->patterns; *p; p++)
		if (!fnmatch(*p, comm, 0))
			return true;
	return false;
}

/* The sum of this name and engine; NULL: no memory. */
static struct om_process *sum_of(struct export_threads *t, const char *comm, const char *engine)
{
	struct om_process *grown;
	unsigned int i;

	for (i = 0; i < t->nr; i++)
		if (!strcmp(t->sum[i].comm, comm) && !strcmp(t->sum[i].engine, engine))
			return &t->sum[i];
	if (t->nr >= MOST_SUMS && strcmp(comm, OTHERS))
		return sum_of(t, OTHERS, engine);
	grown = realloc(t->sum, (t->nr + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	t->sum = grown;
	grown[t->nr] = (struct om_process){.engine = engine};
	snprintf(grown[t->nr].comm, sizeof(grown->comm), "%s", comm);
	return &grown[t->nr++];
}

static void add(struct om_process *sum, const struct thread_delta *d)
{
	for (int i = 0; i < THREAD_NR_FIELDS; i++)
		if (d->known & THREAD_KNOWN(i))
			sum->value[i] += d->value[i];
	sum->known |= d->known;
	sum->has_off |= d->has_off;
	sum->off_ns += d->off_ns;
}

/* The earlier sample of the same thread; both lists are sorted by pid and tid, and *at goes along. */
static const struct thread_sample *earlier(const struct export_threads *t,
					   const struct thread_sample *s, size_t *at)
{
	const struct thread_sample *w = t->was.v;

	while (*at < t->was.nr &&
	       (w[*at].pid < s->pid || (w[*at].pid == s->pid && w[*at].tid < s->tid)))
		(*at)++;
	if (*at == t->was.nr || w[*at].pid != s->pid || w[*at].tid != s->tid ||
	    w[*at].epoch != s->epoch || w[*at].engine != s->engine)
		return NULL;
	return &w[*at];
}

/* The process's own name is its first thread's. */
static void process_name(const struct thread_sample *s, const struct thread_sample *end,
			 char comm[64])
{
	const struct thread_sample *p;

	for (p = s; p < end && p->pid == s->pid; p++)
		if (p->tid == p->pid) {
			memcpy(comm, p->comm, sizeof(p->comm));
			return;
		}
	procfs_comm(s->pid, comm);
}

static int add_all(struct export_threads *t)
{
	const struct thread_sample *s = t->now.v, *end = t->now.v + t->now.nr;
	struct thread_delta d;
	struct om_process *sum;
	char comm[64] = "";
	bool take = false;
	pid_t pid = 0;
	size_t at = 0;

	for (; s < end; s++) {
		if (s->pid != pid) {
			pid = s->pid;
			process_name(s, end, comm);
			take = wanted(t, comm);
		}
		if (!take)
			continue;
		sum = sum_of(t, comm, s->engine->name);
		if (!sum)
			return -ENOMEM;
		thread_diff(&d, earlier(t, s, &at), s, t->was_ns);
		add(sum, &d);
		sum->threads++;
	}
	return 0;
}

int export_threads_read(struct export_threads *t, const struct om_process **p, unsigned int *nr,
			struct dist_why *why)
{
	struct thread_list was;
	uint64_t start = now_ns();
	unsigned int i;
	int err = t->engines ? 0 : open_engines(t, why);

	if (!err)
		err = threads_sample(t->engines, &t->now, why->text, sizeof(why->text));
	if (err)
		return err;
	for (i = 0; i < t->nr; i++)
		t->sum[i].threads = 0;
	if (add_all(t))
		return dist_fail(why, -ENOMEM, "out of memory");
	was = t->was;
	t->was = t->now;
	t->now = was;
	t->was_ns = start;
	*p = t->sum;
	*nr = t->nr;
	return 0;
}
