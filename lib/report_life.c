/* SPDX-License-Identifier: MIT */
/* Lives of a report: remembered, put together by two, made room for, and summed up at the end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/record.h"
#include "lib/report_life.h"

#define NR_HASH (sizeof(((struct report_input *)0)->hash) / sizeof(struct report_life *))

/* ---- calls ---- */

struct report_call *report_call_slot(struct report_calls *t)
{
	struct report_call *bigger;

	if (t->nr == REPORT_MAX_CALLS) {
		t->left_out++;
		return NULL;
	}
	if (t->nr == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 16;

		bigger = realloc(t->row, cap * sizeof(*bigger));
		if (!bigger)
			return NULL;
		t->row = bigger;
		t->cap = cap;
	}
	t->row[t->nr] = (struct report_call){0};
	return &t->row[t->nr++];
}

/* Quantiles of a sum are not to be had from quantiles. */
static void add_call(struct report_call *to, const struct report_call *c)
{
	if (!to->count) {
		*to = *c;
		return;
	}
	to->errnos[0] = '\0';
	to->has_p = false;
	if (c->has_range && c->min_ns < to->min_ns)
		to->min_ns = c->min_ns;
	if (c->has_range && c->max_ns > to->max_ns)
		to->max_ns = c->max_ns;
	to->has_range &= c->has_range;
	to->has_split &= c->has_split;
	to->count = rts_add(to->count, c->count);
	to->errors = rts_add(to->errors, c->errors);
	to->total_ns = rts_add(to->total_ns, c->total_ns);
	to->on_cpu_ns = rts_add(to->on_cpu_ns, c->on_cpu_ns);
	to->waiting_ns = rts_add(to->waiting_ns, c->waiting_ns);
}

static void add_calls(struct report_calls *to, const struct report_calls *t)
{
	for (size_t i = 0; i < t->nr; i++) {
		struct report_call *c = (struct report_call *)report_same_call(to, &t->row[i]);

		if (!c)
			c = report_call_slot(to);
		if (c)
			add_call(c, &t->row[i]);
	}
	to->left_out += t->left_out;
}

/* ---- a life ---- */

void report_life_free(struct report_life *l)
{
	free(l->point);
	free(l->calls.row);
	free(l->phase);
	free(l->open);
}

/* Lanes are of those that did most. */
static uint64_t busy_ns(const struct report_life *l)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < REPORT_NR_BUSY; i++)
		sum = rts_add(sum, l->ns[i]);
	return sum;
}

static void add_lost(struct report_lost *to, const struct report_lost *l)
{
	to->has |= l->has;
	to->incomplete |= l->incomplete;
	to->attempted = rts_add(to->attempted, l->attempted);
	to->recorded = rts_add(to->recorded, l->recorded);
	for (unsigned int i = 0; i < REPORT_NR_CAUSES; i++)
		to->cause[i] = rts_add(to->cause[i], l->cause[i]);
}

static int by_time_falling(const void *a, const void *b)
{
	const struct report_life *p = *(struct report_life *const *)a,
				 *q = *(struct report_life *const *)b;

	if (p->ended != q->ended)
		return p->ended ? 1 : -1;
	return (busy_ns(p) < busy_ns(q)) - (busy_ns(p) > busy_ns(q));
}

static struct report_life **chain(struct report_input *in, const struct report_life *l)
{
	uint64_t h = ((uint64_t)l->pid ^ ((uint64_t)l->tid + l->key) * 0x9e3779b97f4a7c15u) *
		     0xff51afd7ed558ccdu;

	return &in->hash[(h >> 40) % NR_HASH];
}

static void add_other(struct report_input *in, const struct report_life *l)
{
	in->others.nr++;
	in->others.unfinished += !l->ended;
	for (unsigned int i = 0; i < REPORT_NR_KINDS; i++)
		in->others.ns[i] = rts_add(in->others.ns[i], l->ns[i]);
	add_lost(&in->others.lost, &l->lost);
	add_calls(&in->whole.calls, &l->calls);
}

static void evict(struct report_input *in, struct report_life *l)
{
	struct report_life **at = chain(in, l);

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	/* A thread's time is in that of its process. */
	if (!l->tid)
		add_other(in, l);
	report_life_free(l);
	free(l);
}

/* Half of them make room: those that ended first, and of these the least. */
static void make_room(struct report_input *in)
{
	qsort(in->life, in->nr_lives, sizeof(in->life[0]), by_time_falling);
	while (in->nr_lives > REPORT_MAX_LIVES / 2)
		evict(in, in->life[--in->nr_lives]);
}

struct report_life *report_life_find(struct report_input *in, const struct report_life *like)
{
	struct report_life *l = *chain(in, like);

	while (l && (l->pid != like->pid || l->tid != like->tid || l->key != like->key ||
		     l->tree != like->tree))
		l = l->next;
	return l;
}

struct report_life *report_life_new(struct report_input *in, const struct report_life *like)
{
	struct report_life **at, *l;

	if (in->nr_lives == REPORT_MAX_LIVES)
		make_room(in);
	if (in->nr_lives == in->cap_lives) {
		size_t cap = in->cap_lives ? in->cap_lives * 2 : 64;
		struct report_life **bigger = realloc(in->life, cap * sizeof(*bigger));

		if (!bigger)
			return NULL;
		in->life = bigger;
		in->cap_lives = cap;
	}
	l = malloc(sizeof(*l));
	if (!l)
		return NULL;
	*l = *like;
	l->time_ns = l->start_ns;
	at = chain(in, l);
	l->next = *at;
	*at = l;
	in->life[in->nr_lives++] = l;
	return l;
}

/* Two neighbours become one, all along. */
static void halve(struct report_life *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->nr_points; i += 2) {
		struct report_point *p = &l->point[n++];

		*p = l->point[i];
		if (i + 1 == l->nr_points)
			break;
		p->to_ns = l->point[i + 1].to_ns;
		p->known |= l->point[i + 1].known;
		for (unsigned int k = 0; k < REPORT_NR_KINDS; k++)
			p->ns[k] += l->point[i + 1].ns[k];
	}
	l->nr_points = n;
}

int report_add_point(struct report_life *l, const struct report_point *p)
{
	if (l->nr_points == REPORT_MAX_POINTS)
		halve(l);
	if (l->nr_points == l->cap_points) {
		size_t cap = l->cap_points ? l->cap_points * 4 : 2;
		struct report_point *bigger = realloc(l->point, cap * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		l->point = bigger;
		l->cap_points = cap;
	}
	l->point[l->nr_points++] = *p;
	return 0;
}

/* ---- the whole ---- */

static int rank(const struct report_life *l)
{
	return l->tree ? 0 : l->tid ? 2 : 1;
}

static int by_start(const void *a, const void *b)
{
	const struct report_life *p = *(struct report_life *const *)a,
				 *q = *(struct report_life *const *)b;

	if (rank(p) != rank(q))
		return rank(p) - rank(q);
	if (p->start_ns != q->start_ns)
		return p->start_ns < q->start_ns ? -1 : 1;
	if (p->pid != q->pid)
		return p->pid < q->pid ? -1 : 1;
	return (p->tid > q->tid) - (p->tid < q->tid);
}

/* Those that are drawn of some: the ones that did most, and of equals those that began first. */
static int by_lane(const void *a, const void *b)
{
	const struct report_life *p = *(struct report_life *const *)a,
				 *q = *(struct report_life *const *)b;
	uint64_t p_ns = busy_ns(p), q_ns = busy_ns(q);

	return p_ns != q_ns ? (p_ns < q_ns ? 1 : -1) : by_start(a, b);
}

static void give_lanes(struct report_life **life, size_t nr)
{
	qsort(life, nr, sizeof(life[0]), by_lane);
	for (size_t i = 0; i < nr && i < REPORT_MAX_LANES; i++)
		life[i]->drawn = true;
	qsort(life, nr, sizeof(life[0]), by_start);
}

/* Trees are the sums of their processes. */
void report_sum_up(struct report_input *in)
{
	struct report_life *w = &in->whole;
	bool has_cpu = true;
	size_t to;

	qsort(in->life, in->nr_lives, sizeof(in->life[0]), by_start);
	while (in->nr_trees < in->nr_lives && in->life[in->nr_trees]->tree)
		in->nr_trees++;
	for (to = in->nr_trees; to < in->nr_lives && !in->life[to]->tid;)
		to++;
	in->nr_processes = to - in->nr_trees;
	give_lanes(in->life + in->nr_trees, in->nr_processes);
	give_lanes(in->life + to, in->nr_lives - to);
	in->whole_of = in->nr_trees ? in->nr_trees : in->nr_processes + in->others.nr;
	if (in->nr_trees)
		w->calls.nr = w->calls.left_out = 0;
	else
		w->lost = in->others.lost;
	w->start_ns = UINT64_MAX;
	for (size_t i = 0; i < in->nr_lives; i++) {
		const struct report_life *l = in->life[i];

		/* The page's time axis holds all of them. */
		if (l->start_ns < w->start_ns)
			w->start_ns = l->start_ns;
		if (l->time_ns > w->time_ns)
			w->time_ns = l->time_ns;
		if (l->realtime_ns > w->realtime_ns)
			w->realtime_ns = l->realtime_ns;
		if (i >= (in->nr_trees ?: in->nr_processes))
			continue;
		add_calls(&w->calls, &l->calls);
		add_lost(&w->lost, &l->lost);
		has_cpu &= l->has_cpu;
		w->user_ns = rts_add(w->user_ns, l->user_ns);
		w->system_ns = rts_add(w->system_ns, l->system_ns);
		w->processes += l->tree ? l->processes : 1;
	}
	w->has_cpu = has_cpu && !(in->others.nr && !in->nr_trees);
}
