// SPDX-License-Identifier: MIT
/* A report as JSON, and as tables of text. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fmt_dist.h"
#include "lib/fmt_top.h"
#include "lib/record.h"

static const char *const field_names[THREAD_NR_FIELDS] = {
	[THREAD_ONCPU] = "oncpu_ns",   [THREAD_RUNQ] = "runq_ns",
	[THREAD_SLEEP] = "sleep_ns",   [THREAD_DSLEEP] = "dsleep_ns",
	[THREAD_IOWAIT] = "iowait_ns", [THREAD_PREEMPT] = "nr_preempt",
	[THREAD_BLOCK] = "nr_block",   [THREAD_MIGRATE] = "nr_migrate",
	[THREAD_MIN_FLT] = "min_flt",  [THREAD_MAJ_FLT] = "maj_flt",
};

void fmt_top_string(FILE *f, const char *s)
{
	char text[2048];
	struct rts_buf b = {.p = text, .cap = sizeof(text) - 1};

	rts_put_json_str(&b, s);
	text[b.len] = '\0';
	fputs(b.cut ? "\"\"" : text, f);
}

static void put_values(FILE *f, const char *comma, unsigned int known, const uint64_t *value)
{
	for (int i = 0; i < THREAD_NR_FIELDS; i++)
		if (known & THREAD_KNOWN(i)) {
			fprintf(f, "%s\"%s\":%" PRIu64, comma, field_names[i], value[i]);
			comma = ",";
		}
}

const char *fmt_top_field(enum thread_field field)
{
	return field_names[field];
}

/* All but the bracket that ends it. */
static void put_sample(FILE *f, const struct thread_sample *s)
{
	fprintf(f, "{\"pid\":%d,\"tid\":%d,\"comm\":", s->pid, s->tid);
	fmt_top_string(f, s->comm);
	fputs(",\"engine\":", f);
	fmt_top_string(f, s->engine->name);
	if (s->state)
		fprintf(f, ",\"state\":\"%c\"", s->state);
	if (s->cpu >= 0)
		fprintf(f, ",\"cpu\":%d", s->cpu);
	if (s->since_ns)
		fprintf(f, ",\"since_ns\":%" PRIu64, s->since_ns);
	fprintf(f, ",\"time_ns\":%" PRIu64 ",\"total\":{", s->mono_ns);
	put_values(f, "", s->known, s->value);
	fputc('}', f);
}

void fmt_top_sample_json(FILE *f, const struct thread_sample *s)
{
	put_sample(f, s);
	fprintf(f, ",\"epoch\":%" PRIu64 "}", s->epoch);
}

static void put_thread(FILE *f, const struct top_thread *t)
{
	put_sample(f, t->s);
	if (t->d.wall_ns) {
		fprintf(f, ",\"interval\":{\"wall_ns\":%" PRIu64, t->d.wall_ns);
		put_values(f, ",", t->d.known, t->d.value);
		if (t->d.has_off)
			fprintf(f, ",\"off_ns\":%" PRIu64, t->d.off_ns);
		fputc('}', f);
	}
	fputc('}', f);
}

static void put_cpu(FILE *f, const struct top_cpu *c)
{
	fputs("\"total\":{", f);
	for (int i = 0; i < CPU_NR_TIMES; i++)
		fprintf(f, "%s\"%s_ns\":%" PRIu64, i ? "," : "", cpu_time_names[i], c->row->ns[i]);
	fputc('}', f);
	if (!c->d.known)
		return;
	fprintf(f, ",\"interval\":{\"all_ns\":%" PRIu64, c->d.all_ns);
	for (int i = 0; i < CPU_NR_TIMES; i++)
		if (c->d.known & 1u << i)
			fprintf(f, ",\"%s_ns\":%" PRIu64, cpu_time_names[i], c->d.ns[i]);
	fputc('}', f);
}

static void put_cpus(FILE *f, const struct top_report *r)
{
	fputs(",\"cpus\":{", f);
	if (!r->nr_cpus) {
		fputs("\"absent\":", f);
		fmt_top_string(f, r->no_cpus);
	} else {
		fputs("\"source\":", f);
		fmt_top_string(f, r->cpu_source);
		fputs(",\"all\":{", f);
		put_cpu(f, &r->cpu[0]);
		fputs("},\"online\":[", f);
		for (size_t i = 1; i < r->nr_cpus; i++) {
			fprintf(f, "%s{\"cpu\":%d,", i > 1 ? "," : "", r->cpu[i].row->cpu);
			put_cpu(f, &r->cpu[i]);
			fputc('}', f);
		}
		fputc(']', f);
	}
	fputc('}', f);
}

static void put_hist(FILE *f, const char *name, const struct hist *h)
{
	static const struct {
		double q;
		const char *name;
	} quantiles[] = {{0.5, "p50_ns"}, {0.99, "p99_ns"}, {1, "max_ns"}};
	struct hist_quantile q;

	if (!h)
		return;
	fprintf(f, ",\"%s\":{\"count\":%" PRIu64, name, h->count);
	for (int i = 0; i < 3; i++)
		if (!hist_quantile(h, quantiles[i].q, &q))
			fprintf(f, ",\"%s\":%" PRIu64, quantiles[i].name, q.value);
	fputc('}', f);
}

static void put_dists(FILE *f, const struct top_report *r)
{
	fputs(",\"distributions\":{", f);
	if (!r->dist_engines[0]) {
		fputs("\"absent\":", f);
		fmt_top_string(f, r->no_dists);
	} else {
		fputs("\"engine\":", f);
		fmt_top_string(f, r->dist_engines);
		fputs(",\"metrics\":[", f);
		for (size_t i = 0; i < r->nr_dists; i++) {
			const struct top_dist *d = &r->dist[i];

			fputs(i ? ",{\"name\":" : "{\"name\":", f);
			fmt_top_string(f, d->name);
			fprintf(f, ",\"missed\":%" PRIu64, d->missed);
			put_hist(f, "total", d->all);
			put_hist(f, "interval", d->interval);
			fputc('}', f);
		}
		fputc(']', f);
	}
	fputc('}', f);
}

void fmt_top_json(FILE *f, const struct top_report *r, const struct thread_engine *const *engine)
{
	fprintf(f,
		"{\"schema\":\"statpage-top/1\",\"time_ns\":%" PRIu64 ",\"realtime_ns\":%" PRIu64,
		r->mono_ns, r->real_ns);
	if (r->interval_ns)
		fprintf(f, ",\"interval_ns\":%" PRIu64, r->interval_ns);
	fputs(",\"engines\":[", f);
	for (int i = 0; engine[i]; i++) {
		fputs(i ? ",{\"name\":" : "{\"name\":", f);
		fmt_top_string(f, engine[i]->name);
		fputs(",\"cannot_see\":", f);
		fmt_top_string(f, engine[i]->cannot_see);
		fputc('}', f);
	}
	fputs("],\"threads\":[", f);
	for (size_t i = 0; i < r->nr_threads; i++) {
		if (i)
			fputc(',', f);
		put_thread(f, &r->thread[i]);
	}
	fputc(']', f);
	put_cpus(f, r);
	put_dists(f, r);
	fputs("}\n", f);
}

static void text_threads(FILE *f, const struct top_report *r)
{
	struct top_layout l;
	char cell[24], name[256];

	/* Room for all columns; bars are for screens. */
	fmt_top_layout(&l, r, false, 200);
	l.width[TOP_BAR] = 0;
	for (int c = 0; c < TOP_COMM; c++)
		if (l.width[c])
			fprintf(f, top_columns[c].left ? "%-*s " : "%*s ", (int)l.width[c],
				top_columns[c].title);
	fprintf(f, "%s\n", top_columns[TOP_COMM].title);
	for (size_t i = 0; i < r->nr_threads; i++) {
		for (int c = 0; c < TOP_COMM; c++)
			if (l.width[c])
				fprintf(f, top_columns[c].left ? "%-*s " : "%*s ", (int)l.width[c],
					fmt_top_cell(cell, (enum top_column)c, &r->thread[i]));
		fmt_top_name(name, sizeof(name), r->thread[i].s->comm, 80, false);
		fprintf(f, "%s\n", name);
	}
}

static void text_cpus(FILE *f, const struct top_report *r)
{
	char name[24], cell[24];

	if (!r->nr_cpus) {
		fprintf(f, "no CPU times: %s\n", r->no_cpus);
		return;
	}
	fprintf(f, "CPU times, %% (from %s)\n%-6s", r->cpu_source, "CPU");
	for (int i = 0; i < CPU_NR_TIMES; i++)
		fprintf(f, " %7s", i == CPU_GUEST_NICE ? "gnice" : cpu_time_names[i]);
	fputc('\n', f);
	for (size_t i = 0; i < r->nr_cpus; i++) {
		const struct top_cpu *c = &r->cpu[i];

		snprintf(name, sizeof(name), "%d", c->row->cpu);
		fprintf(f, "%-6s", i ? name : "all");
		for (int k = 0; k < CPU_NR_TIMES; k++)
			fprintf(f, " %7s",
				c->d.known & 1u << k ?
					fmt_top_share(cell, c->d.ns[k], c->d.all_ns) :
					"-");
		fputc('\n', f);
	}
}

static void text_dists(FILE *f, const struct top_report *r)
{
	static const double quantile[] = {0.5, 0.99, 1};
	struct hist_quantile q;
	char text[16];

	if (!r->dist_engines[0]) {
		fprintf(f, "no distributions: %s\n", r->no_dists);
		return;
	}
	fprintf(f, "distributions in this time (engine %s)\n%-40s %10s %9s %9s %9s\n",
		r->dist_engines, "METRIC", "COUNT", "P50", "P99", "MAX");
	for (size_t i = 0; i < r->nr_dists; i++) {
		const struct hist *h = r->dist[i].interval;

		fprintf(f, "%-40s ", r->dist[i].name);
		if (h)
			fprintf(f, "%10" PRIu64, h->count);
		else
			fprintf(f, "%10s", "-");
		for (int k = 0; k < 3; k++)
			fprintf(f, " %9s",
				h && !hist_quantile(h, quantile[k], &q) ?
					fmt_dist_ns(text, q.value) :
					"-");
		fputs(r->dist[i].missed ? " missed some\n" : "\n", f);
	}
}

void fmt_top_text(FILE *f, const struct top_report *r, const struct thread_engine *const *engine)
{
	for (int i = 0; engine[i]; i++)
		fprintf(f, "engine %s; it cannot see: %s\n", engine[i]->name,
			engine[i]->cannot_see);
	fprintf(f,
		"%zu threads, where their time went, %%, in %.3f s; switches and faults a second\n",
		r->nr_threads, (double)r->interval_ns / 1e9);
	text_threads(f, r);
	fputc('\n', f);
	text_cpus(f, r);
	fputc('\n', f);
	text_dists(f, r);
}
