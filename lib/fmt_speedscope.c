/* SPDX-License-Identifier: MIT */
/*
 * speedscope.app's own format: one profile a life of a process, on its real time axis; more of them where
 * calls of several threads would overlap. A profile has to be written in one piece while the
 * records of processes come mixed, so events wait in a temporary file, chained by profile: memory
 * grows by a profile's name and three numbers only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/conv.h"

struct frame {
	char *name;
	bool category;
};

struct event {
	uint64_t from_ns, to_ns;
	long next;		 /* offset of the profile's next event, -1: none */
	uint32_t category, call; /* frames */
};

struct profile {
	uint64_t life;
	unsigned int lane;
	int64_t pid;
	uint64_t start_ns, end_ns;
	long first, last;
	char name[48];
};

/* Events are appended here first, so that most links are set in memory. */
#define BUFFER (1u << 20)

struct state {
	FILE *events;
	char *buffer;
	size_t used;
	long flushed, size; /* bytes in the file, and with those of the buffer */
	struct profile *profiles;
	size_t nr, cap;
	uint64_t nr_lives;
	struct frame *frames;
	size_t nr_frames;
	const struct conv_delta *d;
	int err;
};

/* A category may have the name of a call: frames of the two are told apart. */
static uint32_t frame(struct state *s, const char *name, bool category)
{
	struct frame *bigger;

	for (size_t i = 0; i < s->nr_frames; i++)
		if (s->frames[i].category == category && !strcmp(s->frames[i].name, name))
			return (uint32_t)i;
	bigger = realloc(s->frames, (s->nr_frames + 1) * sizeof(*bigger));
	if (bigger)
		s->frames = bigger;
	if (!bigger || !(s->frames[s->nr_frames].name = strdup(name))) {
		s->err = ENOMEM;
		return 0;
	}
	s->frames[s->nr_frames].category = category;
	return (uint32_t)s->nr_frames++;
}

/* Lives are numbered in the order they appear; those still open are near the end. */
static struct profile *profile(struct state *s, unsigned int lane)
{
	const struct conv_delta *d = s->d;
	struct profile *p;

	for (size_t i = d->life < s->nr_lives ? s->nr : 0; i--;)
		if (s->profiles[i].life == d->life && s->profiles[i].lane == lane)
			return &s->profiles[i];
	if (s->nr == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 64;

		p = realloc(s->profiles, cap * sizeof(*p));
		if (!p) {
			s->err = ENOMEM;
			return NULL;
		}
		s->profiles = p;
		s->cap = cap;
	}
	s->nr_lives = d->life + 1 > s->nr_lives ? d->life + 1 : s->nr_lives;
	p = &s->profiles[s->nr++];
	*p = (struct profile){.life = d->life,
			      .lane = lane,
			      .pid = d->rec->pid,
			      .start_ns = d->from_ns,
			      .first = -1,
			      .last = -1};
	return p;
}

static void flush(struct state *s)
{
	if (pwrite(fileno(s->events), s->buffer, s->used, s->flushed) != (ssize_t)s->used)
		s->err = errno ? errno : ENOSPC;
	s->flushed = s->size;
	s->used = 0;
}

static void append(struct state *s, const struct event *e)
{
	if (s->used + sizeof(*e) > BUFFER)
		flush(s);
	memcpy(s->buffer + s->used, e, sizeof(*e));
	s->used += sizeof(*e);
	s->size += (long)sizeof(*e);
}

static void link_to(struct state *s, long at, long next)
{
	at += (long)offsetof(struct event, next);
	if (at >= s->flushed)
		memcpy(s->buffer + (at - s->flushed), &next, sizeof(next));
	else if (pwrite(fileno(s->events), &next, sizeof(next), at) != sizeof(next))
		s->err = errno ? errno : ENOSPC;
}

static void put(void *ctx, const struct conv_row *w, unsigned int lane, uint64_t from, uint64_t to)
{
	struct state *s = ctx;
	struct event e = {from, to, -1, frame(s, w->category, true), frame(s, w->name, false)};
	struct profile *p = profile(s, lane);

	if (!p || s->err)
		return;
	if (p->last >= 0)
		link_to(s, p->last, s->size);
	else
		p->first = s->size;
	p->last = s->size;
	p->end_ns = to;
	append(s, &e);
}

static int begin(struct converter *c, FILE *out)
{
	struct state *s = calloc(1, sizeof(*s));

	(void)out;
	c->state = s;
	if (!s)
		return -ENOMEM;
	s->buffer = malloc(BUFFER);
	s->events = tmpfile();
	return !s->buffer ? -ENOMEM : s->events ? 0 : -errno;
}

static int delta(struct converter *c, FILE *out, const struct conv_delta *d)
{
	struct state *s = c->state;
	struct profile *p;

	(void)out;
	s->d = d;
	p = profile(s, 0);
	if (!p)
		return -s->err;
	c->misfit_ns += conv_lay_out(d, put, s);
	/* put() may have moved the profiles. */
	for (size_t i = s->nr; i--;) {
		p = &s->profiles[i];
		if (p->life != d->life)
			continue;
		p->end_ns = d->to_ns;
		snprintf(p->name, sizeof(p->name), "%s", d->rec->name);
		if (!p->lane)
			break;
	}
	return -s->err;
}

static void put_frames(const struct state *s, FILE *out)
{
	fprintf(out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
		     "\"exporter\":\"statpage\",\"shared\":{\"frames\":[");
	for (size_t i = 0; i < s->nr_frames; i++) {
		fputs(i ? ",{\"name\":" : "{\"name\":", out);
		conv_put_json(out, s->frames[i].name);
		fputs(s->frames[i].category ? ",\"file\":\"category\"}" : "}", out);
	}
	fputs("]},\"profiles\":[", out);
}

static int put_profile(struct state *s, FILE *out, const struct profile *p)
{
	struct event e;
	char name[96];

	if (p->lane)
		snprintf(name, sizeof(name), "%s %lld (thread time %u)", p->name, (long long)p->pid,
			 p->lane + 1);
	else
		snprintf(name, sizeof(name), "%s %lld", p->name, (long long)p->pid);
	fputs("{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"name\":", out);
	conv_put_json(out, name);
	fprintf(out, ",\"startValue\":%llu,\"endValue\":%llu,\"events\":[",
		(unsigned long long)p->start_ns, (unsigned long long)p->end_ns);
	for (long at = p->first; at >= 0; at = e.next) {
		if (pread(fileno(s->events), &e, sizeof(e), at) != sizeof(e))
			return -EIO;
		fprintf(out,
			"%s\n{\"type\":\"O\",\"frame\":%u,\"at\":%llu},"
			"{\"type\":\"O\",\"frame\":%u,\"at\":%llu},"
			"{\"type\":\"C\",\"frame\":%u,\"at\":%llu},"
			"{\"type\":\"C\",\"frame\":%u,\"at\":%llu}",
			at == p->first ? "" : ",", e.category, (unsigned long long)e.from_ns,
			e.call, (unsigned long long)e.from_ns, e.call, (unsigned long long)e.to_ns,
			e.category, (unsigned long long)e.to_ns);
	}
	fputs("]}", out);
	return 0;
}

/* Records come when a process ends; people look for the one that began first. */
static int by_start(const void *a, const void *b)
{
	const struct profile *p = a, *q = b;

	if (p->start_ns != q->start_ns)
		return p->start_ns < q->start_ns ? -1 : 1;
	if (p->life != q->life)
		return p->life < q->life ? -1 : 1;
	return (p->lane > q->lane) - (p->lane < q->lane);
}

static int end(struct converter *c, FILE *out)
{
	struct state *s = c->state;
	int ret = 0;

	if (!s)
		return 0;
	if (s->events) {
		flush(s);
		put_frames(s, out);
		if (s->nr)
			qsort(s->profiles, s->nr, sizeof(*s->profiles), by_start);
		for (size_t i = 0; i < s->nr && !ret; i++) {
			fputs(i ? ",\n" : "\n", out);
			ret = put_profile(s, out, &s->profiles[i]);
		}
		fputs("]}\n", out);
		fclose(s->events);
	}
	for (size_t i = 0; i < s->nr_frames; i++)
		free(s->frames[i].name);
	free(s->frames);
	free(s->profiles);
	free(s->buffer);
	free(s);
	c->state = NULL;
	return ret;
}

struct converter conv_speedscope = {
	.name = "speedscope", .begin = begin, .delta = delta, .end = end};
