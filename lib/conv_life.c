/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/conv.h"

#define NR_BUCKETS 4096
#define MAX_LIVES  8192 /* open at a time */

struct seen {
	uint32_t nr;
	uint32_t abi;
	uint64_t count, errors, total_ns, spent_ns;
};

struct life {
	struct life *next;	    /* of the hash chain */
	struct life *older, *newer; /* by last use */
	int64_t pid;
	uint64_t start_ns, time_ns, number, records;
	struct seen *seen;
	size_t nr;
};

struct conv_lives {
	struct life *bucket[NR_BUCKETS];
	struct life *oldest, *newest;
	size_t nr;
	uint64_t made, evicted;
	struct conv_row *rows; /* of the delta handed out */
	size_t cap;
	struct life *finished; /* the delta's, freed at the next call */
};

struct conv_lives *conv_lives_new(void)
{
	return calloc(1, sizeof(struct conv_lives));
}

static struct life **chain(struct conv_lives *l, int64_t pid, uint64_t start_ns)
{
	uint64_t h = ((uint64_t)pid ^ start_ns * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;

	return &l->bucket[h >> 52];
}

static void unlink_use(struct conv_lives *l, struct life *f)
{
	*(f->older ? &f->older->newer : &l->oldest) = f->newer;
	*(f->newer ? &f->newer->older : &l->newest) = f->older;
}

static void link_newest(struct conv_lives *l, struct life *f)
{
	f->older = l->newest;
	f->newer = NULL;
	*(l->newest ? &l->newest->newer : &l->oldest) = f;
	l->newest = f;
}

static void drop(struct conv_lives *l, struct life *f)
{
	struct life **at = chain(l, f->pid, f->start_ns);

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	unlink_use(l, f);
	l->nr--;
	free(f->seen);
	free(f);
}

static struct life *get(struct conv_lives *l, const struct conv_rec *rec)
{
	struct life **at = chain(l, rec->pid, rec->start_ns), *f = *at;

	while (f && (f->pid != rec->pid || f->start_ns != rec->start_ns))
		f = f->next;
	if (f) {
		unlink_use(l, f);
		link_newest(l, f);
		return f;
	}
	if (l->nr == MAX_LIVES) {
		drop(l, l->oldest);
		l->evicted++;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->pid = rec->pid;
	f->start_ns = f->time_ns = rec->start_ns;
	f->number = l->made++;
	f->next = *at;
	*at = f;
	link_newest(l, f);
	l->nr++;
	return f;
}

static uint32_t abi_hash(const char *abi)
{
	uint32_t h = 5381;

	while (*abi)
		h = h * 33 + (unsigned char)*abi++;
	return h;
}

/* Rows keep their places nearly, from one record to the next: start where it was. */
static struct seen *find_seen(struct life *f, const struct conv_row *w, size_t hint)
{
	uint32_t abi = abi_hash(w->abi);
	struct seen *bigger;

	for (size_t i = 0; i < f->nr; i++) {
		struct seen *s = &f->seen[(hint + i) % f->nr];

		if (s->nr == w->nr && s->abi == abi)
			return s;
	}
	bigger = realloc(f->seen, (f->nr + 1) * sizeof(*bigger));
	if (!bigger)
		return NULL;
	f->seen = bigger;
	f->seen[f->nr] = (struct seen){.nr = w->nr, .abi = abi};
	return &f->seen[f->nr++];
}

int conv_lives_delta(struct conv_lives *l, const struct conv_rec *rec, struct conv_delta *d)
{
	struct life *f;

	if (l->finished)
		drop(l, l->finished);
	l->finished = NULL;
	f = get(l, rec);
	if (!f)
		return -ENOMEM;
	if (rec->nr_rows > l->cap) {
		struct conv_row *bigger = realloc(l->rows, rec->nr_rows * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		l->rows = bigger;
		l->cap = rec->nr_rows;
	}
	*d = (struct conv_delta){.rec = rec,
				 .life = f->number,
				 .first = !f->records++,
				 .from_ns = f->time_ns,
				 .rows = l->rows};
	for (size_t i = 0; i < rec->nr_rows; i++) {
		const struct conv_row *w = &rec->rows[i];
		struct seen *s = find_seen(f, w, i), was;

		if (!s)
			return -ENOMEM;
		was = *s;
		/* A number that went down is a restart: all of it is new. */
		if (w->count < was.count || w->total_ns < was.total_ns || w->errors < was.errors)
			was.count = was.errors = was.total_ns = was.spent_ns = 0;
		s->count = w->count;
		s->errors = w->errors;
		s->total_ns = w->total_ns;
		s->spent_ns = w->spent_ns;
		/* A call that was in flight and never returned is gone from the sum. */
		if (was.spent_ns > w->spent_ns)
			was.spent_ns = w->spent_ns;
		if (w->count == was.count && w->spent_ns == was.spent_ns)
			continue;
		l->rows[d->nr_rows] = *w;
		l->rows[d->nr_rows].count -= was.count;
		l->rows[d->nr_rows].errors -= was.errors;
		l->rows[d->nr_rows].total_ns -= was.total_ns;
		l->rows[d->nr_rows++].spent_ns -= was.spent_ns;
	}
	/* A record from the past, by a clock that ran back, has no interval of its own. */
	d->to_ns = rec->time_ns > d->from_ns ? rec->time_ns : d->from_ns;
	f->time_ns = d->to_ns;
	d->last = rec->final || !strcmp(rec->reason, "exec");
	if (d->last)
		l->finished = f;
	return 0;
}

uint64_t conv_lives_evicted(const struct conv_lives *l)
{
	return l->evicted;
}

void conv_lives_free(struct conv_lives *l)
{
	if (!l)
		return;
	while (l->oldest)
		drop(l, l->oldest);
	free(l->rows);
	free(l);
}

uint64_t conv_lay_out(const struct conv_delta *d, conv_put *put, void *ctx)
{
	uint64_t at = d->from_ns, lost = 0;
	unsigned int lane = 0;

	for (size_t i = 0; i < d->nr_rows; i++) {
		uint64_t left = d->rows[i].spent_ns;

		while (left && lane < CONV_MAX_LANES && d->to_ns > d->from_ns) {
			uint64_t n = left < d->to_ns - at ? left : d->to_ns - at;

			put(ctx, &d->rows[i], lane, at, at + n);
			left -= n;
			at += n;
			if (at == d->to_ns) {
				at = d->from_ns;
				lane++;
			}
		}
		lost += left;
	}
	return lost;
}
