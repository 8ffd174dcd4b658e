// SPDX-License-Identifier: MIT
/* Samples of threads: which engines take them, and their differences. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/procfs.h"
#include "lib/threads.h"

#define MS_NS 1000000u

const struct thread_engine *const thread_engines[] = {
	&threads_pages,
	&threads_proc,
	NULL,
};
#define NR_ENGINES (sizeof(thread_engines) / sizeof(thread_engines[0]) - 1)
#define MAX_IN_USE 8

struct threads {
	unsigned int nr;
	const struct thread_engine *engine[MAX_IN_USE]; /* in the order of the table */
	void *state[MAX_IN_USE];
};
_Static_assert(NR_ENGINES <= MAX_IN_USE, "room for all");

struct thread_sample *thread_list_add(struct thread_list *l)
{
	struct thread_sample *v = l->v;

	if (l->nr == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 64;

		v = reallocarray(l->v, cap, sizeof(*v));
		if (!v)
			return NULL;
		l->v = v;
		l->cap = cap;
	}
	v += l->nr++;
	memset(v, 0, sizeof(*v));
	v->cpu = -1;
	return v;
}

void thread_list_free(struct thread_list *l)
{
	free(l->v);
	memset(l, 0, sizeof(*l));
}

static int no_engine(const char *name, char *why, size_t len)
{
	size_t n = (size_t)snprintf(why, len, "no engine '%s', expected", name);

	for (unsigned int i = 0; i < NR_ENGINES && n < len; i++)
		n += (size_t)snprintf(why + n, len - n, "%s %s", i ? "," : "",
				      thread_engines[i]->name);
	return -EINVAL;
}

static int check_pid(pid_t pid, char *why, size_t len)
{
	struct proc_status st;
	int err = procfs_status(pid, &st);

	if (err) {
		snprintf(why, len, "no process has pid %d", pid);
		return -EINVAL;
	}
	if (st.tgid != pid) {
		snprintf(why, len, "%d is a thread of process %d, expected a process", pid,
			 st.tgid);
		return -EINVAL;
	}
	return 0;
}

int threads_open(struct threads **out, const char *engine, pid_t pid, char *why, size_t len)
{
	struct threads *t;
	bool found = false;
	char reason[200];
	int err = pid ? check_pid(pid, why, len) : 0;

	if (err)
		return err;
	t = calloc(1, sizeof(*t));
	if (!t) {
		snprintf(why, len, "out of memory");
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < NR_ENGINES; i++) {
		const struct thread_engine *e = thread_engines[i];

		if (engine && strcmp(engine, e->name))
			continue;
		found = true;
		err = e->open(pid, &t->state[t->nr], reason, sizeof(reason));
		if (err)
			snprintf(why, len, "engine %s cannot be used: %s", e->name, reason);
		else
			t->engine[t->nr++] = e;
	}
	if (!found)
		err = no_engine(engine, why, len);
	if (!t->nr) {
		free(t);
		return err;
	}
	*out = t;
	return 0;
}

int threads_open_as(struct threads **out, const struct thread_engine *const *engine,
		    void *const *state)
{
	struct threads *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	for (; engine[t->nr] && t->nr < MAX_IN_USE; t->nr++) {
		t->engine[t->nr] = engine[t->nr];
		t->state[t->nr] = state[t->nr];
	}
	*out = t;
	return 0;
}

void threads_close(struct threads *t)
{
	for (unsigned int i = 0; t && i < t->nr; i++)
		t->engine[i]->close(t->state[i]);
	free(t);
}

const struct thread_engine *threads_engine(const struct threads *t, unsigned int i)
{
	return i < t->nr ? t->engine[i] : NULL;
}

static size_t rank(const struct thread_engine *e)
{
	size_t i = 0;

	while (i < NR_ENGINES && thread_engines[i] != e)
		i++;
	return i;
}

static int by_tid(const void *pa, const void *pb)
{
	const struct thread_sample *a = pa, *b = pb;
	size_t ra = rank(a->engine), rb = rank(b->engine);

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return (ra > rb) - (ra < rb);
}

/* Of samples of the same thread the first stays: that of the engine that sees most. */
static void drop_doubles(struct thread_list *l)
{
	size_t n = 0;

	qsort(l->v, l->nr, sizeof(l->v[0]), by_tid);
	for (size_t i = 0; i < l->nr; i++)
		if (!n || l->v[i].tid != l->v[n - 1].tid)
			l->v[n++] = l->v[i];
	l->nr = n;
}

int threads_sample(struct threads *t, struct thread_list *to, char *why, size_t len)
{
	size_t from = 0;
	int err;

	to->nr = 0;
	for (unsigned int i = 0; i < t->nr; i++) {
		err = t->engine[i]->sample(t->state[i], to, why, len);
		/* What the better one may not see the next one may tell, if not as well. */
		if (err && (i + 1 == t->nr || (err != -EACCES && err != -EPERM)))
			return err;
		for (; from < to->nr; from++)
			to->v[from].engine = t->engine[i];
	}
	if (to->nr)
		drop_doubles(to);
	return 0;
}

/* Another engine has taken over, which knows since when it counts. */
static bool is_handed_over(const struct thread_sample *older, const struct thread_sample *s)
{
	return older && older->engine != s->engine && older->tid == s->tid && s->since_ns;
}

/* The beginning of the interval, and the sample there, if any; false: there is no interval. */
static bool base(const struct thread_sample *older, const struct thread_sample *s,
		 uint64_t before_ns, uint64_t *from_ns)
{
	if (older) {
		*from_ns = older->mono_ns;
		return older->engine == s->engine && older->tid == s->tid &&
		       older->epoch == s->epoch;
	}
	*from_ns = s->since_ns > before_ns ? s->since_ns : before_ns;
	return s->since_ns && s->since_ns + 20 * MS_NS >= before_ns;
}

void thread_diff(struct thread_delta *d, const struct thread_sample *older,
		 const struct thread_sample *s, uint64_t before_ns)
{
	uint64_t from_ns, known_ns = 0;

	memset(d, 0, sizeof(*d));
	/* It counts from zero, as if it were new. */
	if (is_handed_over(older, s))
		older = NULL;
	if (!base(older, s, before_ns, &from_ns) || s->mono_ns <= from_ns)
		return;
	d->wall_ns = s->mono_ns - from_ns;
	for (int i = 0; i < THREAD_NR_FIELDS; i++) {
		uint64_t was = older ? older->value[i] : 0;

		if (!(s->known & (older ? older->known : ~0u) & THREAD_KNOWN(i)) ||
		    s->value[i] < was)
			continue;
		d->known |= THREAD_KNOWN(i);
		d->value[i] = s->value[i] - was;
		if (i < THREAD_NR_BUCKETS)
			known_ns += d->value[i];
	}
	d->has_off = (d->known & THREAD_BUCKETS) != THREAD_BUCKETS;
	/* A bucket that moves in ticks may be ahead. */
	d->off_ns = d->has_off && d->wall_ns > known_ns ? d->wall_ns - known_ns : 0;
}
