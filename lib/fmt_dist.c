// SPDX-License-Identifier: MIT
/* Distributions as text and JSON; fmt_plot.c draws them. */
#include <inttypes.h>
#include <string.h>

#include "lib/fmt_dist.h"
#include "uapi/kstats_bucket.h"

static const struct {
	double q;
	const char *name;
} quantiles[] = {{0, "min"},	{0.5, "p50"},	 {0.9, "p90"},
		 {0.99, "p99"}, {0.999, "p999"}, {1, "max"}};
#define NR_QUANTILES (sizeof(quantiles) / sizeof(quantiles[0]))

const struct hist *fmt_dist_pick(const struct dist_metric *m, int cpu)
{
	if (cpu < 0)
		return m->all;
	return (unsigned int)cpu < m->nr_cpus ? m->cpu[cpu] : NULL;
}

void fmt_dist_ledger(FILE *f, const struct dist_ledger *l)
{
	fprintf(f, "attempted %" PRIu64 " recorded %" PRIu64 " missed %" PRIu64, l->attempted,
		l->recorded, l->missed);
	if (l->causes[0])
		fprintf(f, " (%s)", l->causes);
	if (l->inside)
		fprintf(f, " inside %" PRIu64, l->inside);
	if (l->filtered)
		fprintf(f, " filtered %" PRIu64, l->filtered);
	if (l->stopped)
		fprintf(f, " stopped %" PRIu64, l->stopped);
	if (l->unpaired)
		fprintf(f, " unpaired %" PRIu64, l->unpaired);
}

void fmt_dist_head(FILE *f, const char *name, const struct dist_metric *m, int cpu)
{
	fprintf(f, "%s", name);
	if (cpu >= 0)
		fprintf(f, " on CPU %d", cpu);
	fprintf(f, ": %s, %s\n", m->origin, m->state);
	fmt_dist_ledger(f, &m->ledger);
	fputc('\n', f);
	fputs(m->notes, f);
}

/* 480 ns, 20.1 us, 1.06 ms: three digits, as a slot is no finer. */
const char *fmt_dist_ns(char buf[16], uint64_t ns)
{
	static const char *const unit[] = {"ns", "us", "ms", "s"};
	double v = (double)ns;
	unsigned int i;

	for (i = 0; i < 3 && v >= 999.5; i++)
		v /= 1000;
	snprintf(buf, 16, "%.*f %s", i == 0 || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2, v, unit[i]);
	return buf;
}

void fmt_dist_text(FILE *f, const char *name, const struct dist_metric *m, int cpu)
{
	const struct hist *h = fmt_dist_pick(m, cpu);
	uint64_t so_far = 0;
	unsigned int i;

	fmt_dist_head(f, name, m, cpu);
	if (!h || !h->count) {
		fputs("no samples\n", f);
		return;
	}
	fprintf(f, "%20s %20s %12s %20s %8s\n", "from ns", "to ns", "count", "avg ns", "share");
	for (i = 0; i < h->nr; i++) {
		if (!h->slot[i].count)
			continue;
		so_far += h->slot[i].count;
		fprintf(f, "%20" PRIu64 " %20" PRIu64 " %12" PRIu64 " %20" PRIu64 " %8.6f\n",
			(uint64_t)kstats_slot_low(i, h->bits),
			(uint64_t)kstats_slot_high(i, h->bits), h->slot[i].count,
			hist_slot_mean(h, i),
			so_far == h->count ? 1.0 : (double)so_far / (double)h->count);
	}
}

void fmt_dist_quantiles(FILE *f, const char *name, const struct dist_metric *m, int cpu)
{
	const struct hist *h = fmt_dist_pick(m, cpu);
	char a[16], b[16], c[16];
	struct hist_quantile q;
	unsigned int i;

	fmt_dist_head(f, name, m, cpu);
	if (!h || !h->count) {
		fputs("no samples\n", f);
		return;
	}
	for (i = 0; i < NR_QUANTILES; i++) {
		hist_quantile(h, quantiles[i].q, &q);
		fprintf(f, "%-5s %10s  (%s .. %s)\n", quantiles[i].name, fmt_dist_ns(a, q.value),
			fmt_dist_ns(b, q.low), fmt_dist_ns(c, q.high));
	}
	fprintf(f, "%-5s %10s  of %" PRIu64 " samples\n", "mean",
		h->sum == UINT64_MAX ? "-" : fmt_dist_ns(a, hist_mean(h)), h->count);
}

/* Text of the kernel and of users: ASCII in practice; what JSON forbids is escaped. */
static void put_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if ((unsigned char)*s < 0x20 || (unsigned char)*s >= 0x7f)
			fprintf(f, "\\u%04x", (unsigned char)*s);
		else
			fputc(*s, f);
	}
	fputc('"', f);
}

static void put_slots(FILE *f, const struct hist *h)
{
	const char *comma = "";
	unsigned int i;

	for (i = 0; i < h->nr; i++) {
		if (!h->slot[i].count)
			continue;
		fprintf(f,
			"%s{\"slot\":%u,\"low\":%" PRIu64 ",\"high\":%" PRIu64
			",\"count\":%" PRIu64,
			comma, i, (uint64_t)kstats_slot_low(i, h->bits),
			(uint64_t)kstats_slot_high(i, h->bits), h->slot[i].count);
		if (h->slot[i].sum != UINT64_MAX)
			fprintf(f, ",\"mean\":%" PRIu64, hist_slot_mean(h, i));
		fprintf(f, ",\"density\":%.9g}",
			(double)h->slot[i].count / (double)kstats_slot_width(i, h->bits));
		comma = ",";
	}
}

static void put_quantiles(FILE *f, const struct hist *h)
{
	struct hist_quantile q;
	unsigned int i;

	for (i = 0; i < NR_QUANTILES; i++) {
		if (hist_quantile(h, quantiles[i].q, &q))
			return;
		fprintf(f,
			"%s\"%s\":{\"value\":%" PRIu64 ",\"low\":%" PRIu64 ",\"high\":%" PRIu64 "}",
			i ? "," : "", quantiles[i].name, q.value, q.low, q.high);
	}
}

static void put_ledger(FILE *f, const struct dist_ledger *l)
{
	fprintf(f,
		",\"attempted\":%" PRIu64 ",\"recorded\":%" PRIu64 ",\"missed\":%" PRIu64
		",\"causes\":",
		l->attempted, l->recorded, l->missed);
	put_string(f, l->causes);
	fprintf(f,
		",\"filtered\":%" PRIu64 ",\"stopped\":%" PRIu64 ",\"inside\":%" PRIu64
		",\"unpaired\":%" PRIu64,
		l->filtered, l->stopped, l->inside, l->unpaired);
}

/* All but the bracket that ends it. */
static void put_metric(FILE *f, const char *name, const struct dist_metric *m, int cpu)
{
	const struct hist *h = fmt_dist_pick(m, cpu);

	fputs("{\"name\":", f);
	put_string(f, name);
	if (cpu >= 0)
		fprintf(f, ",\"cpu\":%d", cpu);
	fprintf(f, ",\"bits\":%u,\"unit\":\"ns\",\"state\":", m->all->bits);
	put_string(f, m->state);
	fputs(",\"origin\":", f);
	put_string(f, m->origin);
	fprintf(f, ",\"complete\":%s", m->ledger.missed ? "false" : "true");
	put_ledger(f, &m->ledger);
	fprintf(f, ",\"count\":%" PRIu64, h ? h->count : 0);
	/* A CPU's sum is known by its slots' averages only. */
	if (h && h->count && h->sum != UINT64_MAX && cpu < 0)
		fprintf(f, ",\"sum\":%" PRIu64, h->sum);
	if (h && h->count && h->sum != UINT64_MAX)
		fprintf(f, ",\"mean\":%" PRIu64, hist_mean(h));
	fputs(",\"quantiles\":{", f);
	if (h)
		put_quantiles(f, h);
	fputs("},\"slots\":[", f);
	if (h)
		put_slots(f, h);
	fputc(']', f);
}

void fmt_dist_json(FILE *f, const char *name, const struct dist_metric *m, int cpu)
{
	put_metric(f, name, m, cpu);
	fputs("}\n", f);
}

/* What a slot is can be told from its number; there may be many CPUs. */
static void put_cpu(FILE *f, unsigned int cpu, const struct hist *h)
{
	const char *comma = "";

	fprintf(f, "{\"cpu\":%u,\"slots\":[", cpu);
	for (unsigned int i = 0; i < h->nr; i++) {
		if (!h->slot[i].count)
			continue;
		fprintf(f, "%s[%u,%" PRIu64 ",%" PRIu64 "]", comma, i, h->slot[i].count,
			h->slot[i].sum);
		comma = ",";
	}
	fputs("]}", f);
}

void fmt_dist_json_whole(FILE *f, const char *engine, const char *name, const struct dist_metric *m)
{
	const char *comma = "";

	put_metric(f, name, m, -1);
	fputs(",\"engine\":", f);
	put_string(f, engine);
	fputs(",\"notes\":", f);
	put_string(f, m->notes);
	fputs(",\"per_cpu\":[", f);
	for (unsigned int i = 0; i < m->nr_cpus; i++) {
		if (!m->cpu[i] || !m->cpu[i]->count)
			continue;
		fputs(comma, f);
		put_cpu(f, i, m->cpu[i]);
		comma = ",";
	}
	fputs("]}", f);
}

void fmt_dist_node_json(FILE *f, const char *engine, const struct dist_node *n)
{
	const struct {
		const char *key, *value;
	} words[] = {{"name", n->name}, {"start", n->start}, {"end", n->end},  {"by", n->by},
		     {"via", n->via},	{"state", n->state}, {"note", n->note}};

	fputs("{\"engine\":", f);
	put_string(f, engine);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		fprintf(f, ",\"%s\":", words[i].key);
		put_string(f, words[i].value);
	}
	fprintf(f, ",\"bits\":%u,\"gap\":%s", n->bits, n->gap ? "true" : "false");
	put_ledger(f, &n->ledger);
	fputc('}', f);
}
