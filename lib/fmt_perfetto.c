/* SPDX-License-Identifier: MIT */
/*
 * Trace events in JSON, which ui.perfetto.dev and chrome://tracing open. A life of a process is a
 * thread of its process, more of them where calls of several threads would overlap; counters are tracks.
 */
#include "lib/conv.h"

struct ctx {
	FILE *out;
	const struct conv_delta *d;
	const struct conv_row *row; /* of the slice before */
};

/* Threads are numbered so that no two lives share one: pids are used again, and exec keeps them. */
static unsigned long long track(const struct conv_delta *d, unsigned int lane)
{
	return d->life * CONV_MAX_LANES + lane + 1;
}

/* Microseconds, as the format wants, without losing nanoseconds. */
static void put_us(FILE *out, const char *key, uint64_t ns)
{
	fprintf(out, ",\"%s\":%llu.%03u", key, (unsigned long long)(ns / 1000),
		(unsigned int)(ns % 1000));
}

/* The list ends with an event without a comma: end() writes one. */
static void meta(FILE *out, const struct conv_delta *d, const char *what, unsigned int lane)
{
	fprintf(out,
		"{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%lld,\"tid\":%llu,\"args\":{\"name\":", what,
		(long long)d->rec->pid, track(d, lane));
	conv_put_json(out, d->rec->name);
	fprintf(out, "}},\n");
}

static void slice(void *p, const struct conv_row *w, unsigned int lane, uint64_t from, uint64_t to)
{
	struct ctx *c = p;

	if (lane && from == c->d->from_ns)
		meta(c->out, c->d, "thread_name", lane);
	fprintf(c->out, "{\"ph\":\"X\",\"name\":");
	conv_put_json(c->out, w->name);
	fprintf(c->out, ",\"cat\":");
	conv_put_json(c->out, w->category);
	fprintf(c->out, ",\"pid\":%lld,\"tid\":%llu", (long long)c->d->rec->pid, track(c->d, lane));
	put_us(c->out, "ts", from);
	put_us(c->out, "dur", to - from);
	/* What does not fit one track goes on in the next; numbers of the whole are there once. */
	if (c->row == w)
		fprintf(c->out, "},\n");
	else
		fprintf(c->out, ",\"args\":{\"count\":%llu,\"errors\":%llu,\"spent_ns\":%llu}},\n",
			(unsigned long long)w->count, (unsigned long long)w->errors,
			(unsigned long long)w->spent_ns);
	c->row = w;
}

static void counter(FILE *out, const struct conv_delta *d, const char *name, uint64_t v)
{
	fprintf(out, "{\"ph\":\"C\",\"name\":");
	conv_put_json(out, name);
	fprintf(out, ",\"pid\":%lld", (long long)d->rec->pid);
	put_us(out, "ts", d->to_ns);
	fprintf(out, ",\"args\":{\"value\":%llu}},\n", (unsigned long long)v);
}

static int begin(struct converter *c, FILE *out)
{
	(void)c;
	fprintf(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	return 0;
}

static int delta(struct converter *c, FILE *out, const struct conv_delta *d)
{
	struct ctx ctx = {out, d, NULL};
	uint64_t calls = 0;

	/* The name may have changed since; the last one stands. */
	if (d->first || d->last) {
		meta(out, d, "process_name", 0);
		meta(out, d, "thread_name", 0);
	}
	c->misfit_ns += conv_lay_out(d, slice, &ctx);
	for (size_t i = 0; i < d->rec->nr_rows; i++)
		calls += d->rec->rows[i].count;
	counter(out, d, "system calls", calls);
	for (size_t i = 0; i < d->rec->nr_counters; i++)
		counter(out, d, d->rec->counters[i].name, d->rec->counters[i].value);
	return 0;
}

static int end(struct converter *c, FILE *out)
{
	(void)c;
	fprintf(out, "{\"ph\":\"M\",\"name\":\"trace_end\",\"pid\":0,\"args\":{}}\n]}\n");
	return 0;
}

struct converter conv_perfetto = {.name = "perfetto", .begin = begin, .delta = delta, .end = end};
