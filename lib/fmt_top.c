// SPDX-License-Identifier: MIT
/* The pieces that tables of threads are drawn from: columns, cells, orders, bars. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "lib/fmt_top.h"
#include "uapi/kstats_bucket.h"

const struct top_column_text top_columns[TOP_NR_COLUMNS] = {
	[TOP_PID] = {"PID", "process", 7},
	[TOP_TID] = {"TID", "thread", 7},
	[TOP_STATE] = {"S", "state now, as in ps: R S D T t Z I", 1, true},
	[TOP_CPU] = {"ON", "CPU that it runs on or last ran on", 3},
	[TOP_ONCPU] = {"CPU%", "% of the time on a CPU", 4},
	[TOP_RUNQ] = {"RUNQ", "% runnable, waiting for a CPU", 4},
	[TOP_SLEEP] = {"SLEP", "% in interruptible sleep", 4},
	[TOP_DSLEEP] = {"DSLP", "% in uninterruptible sleep, not for I/O", 4},
	[TOP_IOWAIT] = {"IOWT", "% waiting for I/O", 4},
	[TOP_OFF] = {"OFF", "% in none of these: asleep, it is not known how", 4},
	[TOP_BAR] = {"TIME", "the same as a bar", 9, true},
	[TOP_BLOCK] = {"VOL", "voluntary switches a second", 4},
	[TOP_PREEMPT] = {"INV", "involuntary switches a second", 4},
	[TOP_MIGRATE] = {"MIG", "moves to another CPU a second", 4},
	[TOP_MIN_FLT] = {"FLT", "page faults without I/O a second", 4},
	[TOP_MAJ_FLT] = {"MAJ", "page faults with I/O a second", 4},
	[TOP_ENGINE] = {"ENG", "engine that the times are from", 4, true},
	[TOP_COMM] = {"COMMAND", "name of the thread", 15, true},
};

/* The field of a sample that a column shows; -1: none. */
static int field_of(enum top_column c)
{
	if (c >= TOP_ONCPU && c <= TOP_IOWAIT)
		return THREAD_ONCPU + (int)(c - TOP_ONCPU);
	switch (c) {
	case TOP_BLOCK:
		return THREAD_BLOCK;
	case TOP_PREEMPT:
		return THREAD_PREEMPT;
	case TOP_MIGRATE:
		return THREAD_MIGRATE;
	case TOP_MIN_FLT:
		return THREAD_MIN_FLT;
	case TOP_MAJ_FLT:
		return THREAD_MAJ_FLT;
	default:
		return -1;
	}
}

bool fmt_top_parts(uint64_t part[TOP_NR_PARTS], const struct top_thread *t)
{
	for (int i = 0; i < THREAD_NR_BUCKETS; i++)
		part[i] = t->d.known & THREAD_KNOWN(i) ? t->d.value[i] : 0;
	part[THREAD_NR_BUCKETS] = t->d.off_ns;
	return t->d.wall_ns;
}

/* What shares are of: buckets that lag may be more than the wall time. */
static uint64_t whole(const struct top_thread *t)
{
	uint64_t part[TOP_NR_PARTS], all = 0;

	fmt_top_parts(part, t);
	for (int i = 0; i < TOP_NR_PARTS; i++)
		all += part[i];
	return all > t->d.wall_ns ? all : t->d.wall_ns;
}

/* The number behind a cell: percent, or times a second. False: not known. */
static bool number(double *v, enum top_column c, const struct top_thread *t)
{
	int field = field_of(c);
	uint64_t ns;

	if (!t->d.wall_ns)
		return false;
	if (c == TOP_OFF) {
		*v = 100 * (double)t->d.off_ns / (double)whole(t);
		return t->d.has_off;
	}
	if (field < 0 || !(t->d.known & THREAD_KNOWN(field)))
		return false;
	ns = field < THREAD_NR_BUCKETS ? whole(t) : t->d.wall_ns;
	*v = (double)t->d.value[field] * (field < THREAD_NR_BUCKETS ? 100 : 1e9) / (double)ns;
	return true;
}

/* Four columns: 0, 0.3, 9999, 12k, 3.4M. */
static void put_rate(char buf[24], double v)
{
	static const char unit[] = {'k', 'M', 'G', 'T'};
	size_t i = 0;

	if (v <= 0) {
		strcpy(buf, "0");
		return;
	}
	if (v < 9999.5) {
		snprintf(buf, 24, "%.*f", v < 9.95 ? 1 : 0, v);
		return;
	}
	for (v /= 1000; v >= 999.5 && i < sizeof(unit) - 1; i++)
		v /= 1000;
	snprintf(buf, 24, "%.*f%c", v < 9.95 ? 1 : 0, v, unit[i]);
}

static void put_percent(char buf[24], double v)
{
	snprintf(buf, 24, v < 99.95 ? "%.1f" : "%.0f", v);
}

const char *fmt_top_count(char buf[24], uint64_t n)
{
	if (n < 10000)
		snprintf(buf, 24, "%u", (unsigned int)n);
	else
		put_rate(buf, (double)n);
	return buf;
}

const char *fmt_top_share(char buf[24], uint64_t part, uint64_t all)
{
	if (all)
		put_percent(buf, 100 * (double)part / (double)all);
	else
		strcpy(buf, "-");
	return buf;
}

const char *fmt_top_cell(char buf[24], enum top_column c, const struct top_thread *t)
{
	double v;

	strcpy(buf, "-");
	switch (c) {
	case TOP_PID:
		snprintf(buf, 24, "%d", t->s->pid);
		break;
	case TOP_TID:
		snprintf(buf, 24, "%d", t->s->tid);
		break;
	case TOP_STATE:
		if (t->s->state)
			snprintf(buf, 24, "%c", t->s->state);
		break;
	case TOP_CPU:
		if (t->s->cpu >= 0)
			snprintf(buf, 24, "%d", t->s->cpu);
		break;
	case TOP_ENGINE:
		snprintf(buf, 24, "%s", t->s->engine->name);
		break;
	default:
		if (!number(&v, c, t))
			break;
		if (c <= TOP_OFF)
			put_percent(buf, v);
		else
			put_rate(buf, v);
	}
	return buf;
}

/* A character's columns, at least 1, or what stands for it where it is none to show. */
static int show_char(char to[MB_LEN_MAX], const char **p, const char *end, mbstate_t *st, bool utf8)
{
	unsigned char c = (unsigned char)**p;
	wchar_t wide;
	size_t n;

	if (c >= 0x80 && utf8) {
		n = mbrtowc(&wide, *p, (size_t)(end - *p), st);
		if (n != (size_t)-1 && n != (size_t)-2 && iswprint((wint_t)wide) &&
		    wcwidth(wide) > 0) {
			memcpy(to, *p, n);
			to[n] = '\0';
			*p += n;
			return wcwidth(wide);
		}
		memset(st, 0, sizeof(*st));
	}
	to[0] = c < ' ' || c >= 0x7f ? '?' : (char)c;
	to[1] = '\0';
	(*p)++;
	return 1;
}

unsigned int fmt_top_name(char *buf, size_t size, const char *name, unsigned int columns, bool utf8)
{
	const char *p = name, *end = name + strlen(name), *mark = utf8 ? "…" : "~";
	unsigned int used = 0, fits = 0;
	size_t len = 0, fits_len = 0;
	char c[MB_LEN_MAX + 1];
	mbstate_t st = {0};

	while (p < end) {
		unsigned int wide = (unsigned int)show_char(c, &p, end, &st, utf8);

		if (used + wide > columns || len + strlen(c) + sizeof("…") > size) {
			strcpy(buf + fits_len, columns ? mark : "");
			return columns ? fits + 1 : 0;
		}
		strcpy(buf + len, c);
		len += strlen(c);
		used += wide;
		/* Up to here there would be room for the mark behind it. */
		if (used < columns) {
			fits = used;
			fits_len = len;
		}
	}
	buf[len] = '\0';
	return used;
}

static int compare(enum top_column c, const struct top_thread *a, const struct top_thread *b)
{
	double va = 0, vb = 0;
	bool ka, kb;

	switch (c) {
	case TOP_PID:
	case TOP_TID:
		return 0;
	case TOP_STATE:
		return a->s->state - b->s->state;
	case TOP_CPU:
		return a->s->cpu - b->s->cpu;
	case TOP_ENGINE:
		return strcmp(a->s->engine->name, b->s->engine->name);
	case TOP_COMM:
		return strcmp(a->s->comm, b->s->comm);
	default:
		break;
	}
	ka = number(&va, c == TOP_BAR ? TOP_ONCPU : c, a);
	kb = number(&vb, c == TOP_BAR ? TOP_ONCPU : c, b);
	if (ka != kb)
		return ka ? -1 : 1;
	return (va < vb) - (va > vb);
}

struct order {
	enum top_column c;
	bool reverse;
};

static int in_order(const void *pa, const void *pb, void *data)
{
	const struct top_thread *a = pa, *b = pb;
	const struct order *o = data;
	int ret = compare(o->c, a, b);

	if (!ret && o->c != TOP_TID)
		ret = (a->s->pid > b->s->pid) - (a->s->pid < b->s->pid);
	if (!ret)
		ret = (a->s->tid > b->s->tid) - (a->s->tid < b->s->tid);
	return o->reverse ? -ret : ret;
}

void fmt_top_sort(struct top_thread *t, size_t nr, enum top_column c, bool reverse)
{
	struct order o = {c, reverse};

	qsort_r(t, nr, sizeof(*t), in_order, &o);
}

/* A column of numbers that no thread has is not worth its room. */
static bool has_any(enum top_column c, const struct top_report *r)
{
	int field = field_of(c);

	for (size_t i = 0; i < r->nr_threads; i++) {
		const struct top_thread *t = &r->thread[i];

		if (c == TOP_OFF ? t->d.has_off :
		    field >= 0	 ? t->s->known & THREAD_KNOWN(field) :
				   t->s->engine != r->thread[0].s->engine)
			return true;
	}
	/* Of no threads at all, those that every engine has. */
	return !r->nr_threads && (c == TOP_ONCPU || c == TOP_RUNQ || c >= TOP_BLOCK) &&
	       c != TOP_ENGINE;
}

static bool is_wanted(enum top_column c, const struct top_report *r, bool one_process)
{
	switch (c) {
	case TOP_TID:
	case TOP_STATE:
	case TOP_CPU:
	case TOP_BAR:
	case TOP_COMM:
		return true;
	case TOP_PID:
		return !one_process;
	default:
		return has_any(c, r);
	}
}

void fmt_top_layout(struct top_layout *l, const struct top_report *r, bool one_process,
		    unsigned int columns)
{
	static const enum top_column by_worth[] = {
		TOP_TID,     TOP_COMM,	  TOP_BAR,     TOP_ONCPU, TOP_RUNQ,    TOP_SLEEP,
		TOP_DSLEEP,  TOP_IOWAIT,  TOP_OFF,     TOP_STATE, TOP_PID,     TOP_BLOCK,
		TOP_PREEMPT, TOP_MAJ_FLT, TOP_MIN_FLT, TOP_CPU,	  TOP_MIGRATE, TOP_ENGINE,
	};
	unsigned int used = 0, width, extra;

	_Static_assert(sizeof(by_worth) / sizeof(by_worth[0]) == TOP_NR_COLUMNS, "all of them");
	memset(l, 0, sizeof(*l));
	for (unsigned int i = 0; i < TOP_NR_COLUMNS; i++) {
		if (!is_wanted(by_worth[i], r, one_process))
			continue;
		width = top_columns[by_worth[i]].width;
		/* Once one is left out all that are worth less are, too. */
		if (l->left_out || used + !!used + width > columns) {
			l->left_out++;
			continue;
		}
		l->width[by_worth[i]] = width;
		used += !!used + width;
	}
	/* Half of the rest makes the bars longer, up to 40; names get the other half. */
	extra = columns > used ? columns - used : 0;
	if (l->width[TOP_BAR] && l->width[TOP_COMM]) {
		l->width[TOP_BAR] += extra / 2 < 30 ? extra / 2 : 30;
		l->width[TOP_COMM] += extra - (l->width[TOP_BAR] - top_columns[TOP_BAR].width);
	}
}

void fmt_top_bar(unsigned char *cell, unsigned int width, const uint64_t *part, unsigned int nr)
{
	double all = 0, sum = 0;
	unsigned int at = 0;

	for (unsigned int i = 0; i < nr; i++)
		all += (double)part[i];
	for (unsigned int i = 0; i < nr; i++) {
		sum += (double)part[i];
		/* It is the ends that are rounded: so nothing is left over. */
		while (all > 0 && at < width && at < (unsigned int)(sum / all * width + 0.5))
			cell[at++] = (unsigned char)i;
	}
	while (at < width)
		cell[at++] = (unsigned char)(nr - 1);
}

static double place(double v, double low, double high)
{
	return log(v / low) / log(high / low);
}

void fmt_top_spark(unsigned char *height, unsigned int width, const struct hist *h, uint64_t low,
		   uint64_t high)
{
	double *sum = calloc(width, sizeof(*sum)), most = 0;

	memset(height, 0, width);
	for (unsigned int i = 0; sum && i < h->nr; i++) {
		double mid = ((double)kstats_slot_low(i, h->bits) +
			      (double)kstats_slot_high(i, h->bits)) /
			     2;
		double at = high > low ? place(mid < 1 ? 1 : mid, (double)low, (double)high) : 0;
		unsigned int x = at <= 0 ? 0 : at >= 1 ? width - 1 : (unsigned int)(at * width);

		if (h->slot[i].count)
			sum[x] += (double)h->slot[i].count;
	}
	for (unsigned int x = 0; sum && x < width; x++)
		most = sum[x] > most ? sum[x] : most;
	for (unsigned int x = 0; sum && x < width; x++)
		if (sum[x] > 0)
			height[x] = (unsigned char)(1 + 7 * sum[x] / most);
	free(sum);
}
