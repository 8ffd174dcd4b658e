// SPDX-License-Identifier: MIT
/* Metrics as OpenMetrics or in Prometheus's own text format. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fmt_openmetrics.h"
#include "uapi/kstats_bucket.h"

#define NS_DIGITS 9 /* of a second */

void fmt_om_seconds(FILE *f, uint64_t ns)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, ns), exp = len - 1 - NS_DIGITS, i;

	while (len > 1 && digits[len - 1] == '0')
		digits[--len] = '\0';
	if (!ns) {
		fputc('0', f);
	} else if (exp < -4) {
		fprintf(f, "%c%s%se-%02d", digits[0], len > 1 ? "." : "", digits + 1, -exp);
	} else if (exp < 0) {
		fputs("0.", f);
		for (i = -1; i > exp; i--)
			fputc('0', f);
		fputs(digits, f);
	} else if (len <= exp + 1) {
		fprintf(f, "%s%.*s", digits, exp + 1 - len, "0000000000000000000");
	} else {
		fprintf(f, "%.*s.%s", exp + 1, digits, digits + exp + 1);
	}
}

/* Names that others chose: no byte of them may end the label, or be no UTF-8. */
static void put_label(FILE *f, const char *key, const char *value)
{
	fprintf(f, "%s=\"", key);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			fprintf(f, "\\%c", *value);
		else if ((unsigned char)*value < 0x20 || (unsigned char)*value >= 0x7f)
			fprintf(f, "\\\\x%02x", (unsigned char)*value);
		else
			fputc(*value, f);
	}
	fputc('"', f);
}

/*
 * The head of a family. OpenMetrics names a family without what its samples end in, and has infos and
 * units, which the older format has not.
 */
static void family(FILE *f, const struct om_scrape *s, const char *name, const char *type,
		   const char *help)
{
	const char *end = strrchr(name, '_'), *unit = strstr(name, "_seconds");
	int len = (int)strlen(name);
	bool om = s->dialect == OM_OPENMETRICS;

	if (om && end && (!strcmp(end, "_total") || !strcmp(end, "_info")))
		len = (int)(end - name);
	fprintf(f, "# HELP %.*s %s\n", len, name, help);
	fprintf(f, "# TYPE %.*s %s\n", len, name, !om && !strcmp(type, "info") ? "gauge" : type);
	if (om && unit && unit + strlen("_seconds") == name + len)
		fprintf(f, "# UNIT %.*s seconds\n", len, name);
}

static void put_seconds_gauge(FILE *f, const struct om_scrape *s, const char *name,
			      const char *help, uint64_t ns)
{
	family(f, s, name, "gauge", help);
	fprintf(f, "%s ", name);
	fmt_om_seconds(f, ns);
	fputc('\n', f);
}

/* ---- distributions ---- */

static void put_bucket(FILE *f, const char *metric, uint64_t le_ns, uint64_t count)
{
	fputs("statpage_duration_seconds_bucket{", f);
	put_label(f, "metric", metric);
	fputs(",le=\"", f);
	fmt_om_seconds(f, le_ns);
	fprintf(f, "\"} %" PRIu64 "\n", count);
}

/* Slots of fewer bits are unions of the histogram's own: each of those is below le whole, or not. */
static void put_buckets(FILE *f, const char *metric, const struct hist *h,
			const struct om_buckets *b)
{
	unsigned int bits = b->bits < h->bits ? b->bits : h->bits, i = 0;
	unsigned int to = kstats_slot(b->low, bits) - 1, last = kstats_slot(b->high, bits);
	uint64_t count = 0, le;

	for (; to <= last; to++) {
		le = kstats_slot_high(to, bits);
		for (; i < h->nr && kstats_slot_high(i, h->bits) <= le; i++)
			count += h->slot[i].count;
		put_bucket(f, metric, le, count);
	}
}

static void put_histograms(FILE *f, const struct om_scrape *s)
{
	unsigned int i;

	family(f, s, "statpage_duration_seconds", "histogram",
	       "Distribution of a kstats metric; GAP- metrics are times between calls.");
	for (i = 0; i < s->nr_metrics; i++) {
		const struct om_metric *m = &s->metric[i];
		const struct hist *h = m->m.all;

		put_buckets(f, m->name, h, &s->buckets);
		fputs("statpage_duration_seconds_bucket{", f);
		put_label(f, "metric", m->name);
		fprintf(f, ",le=\"+Inf\"} %" PRIu64 "\n", h->count);
		/* A sum of rounded averages, or more than 64 bits hold, is none. */
		if (m->m.has_sum && h->sum != UINT64_MAX) {
			fputs("statpage_duration_seconds_sum{", f);
			put_label(f, "metric", m->name);
			fputs("} ", f);
			fmt_om_seconds(f, h->sum);
			fputc('\n', f);
		}
		fputs("statpage_duration_seconds_count{", f);
		put_label(f, "metric", m->name);
		fprintf(f, "} %" PRIu64 "\n", h->count);
	}
}

static const struct {
	const char *name, *type, *help;
	size_t at;
} ledger[] = {
	{"statpage_samples_attempted_total", "counter", "Samples that were due.",
	 offsetof(struct dist_ledger, attempted)},
	{"statpage_samples_recorded_total", "counter", "Samples that are in the distribution.",
	 offsetof(struct dist_ledger, recorded)},
	{"statpage_samples_missed_total", "counter",
	 "Samples that were due and could not be had, of all causes.",
	 offsetof(struct dist_ledger, missed)},
	{"statpage_samples_filtered_total", "counter", "Samples that a filter left out.",
	 offsetof(struct dist_ledger, filtered)},
	{"statpage_samples_stopped_total", "counter",
	 "Samples that ended while the metric was stopped.", offsetof(struct dist_ledger, stopped)},
	{"statpage_samples_unpaired_total", "counter", "Ends without a start; no sample was due.",
	 offsetof(struct dist_ledger, unpaired)},
	{"statpage_samples_inside", "gauge", "Samples that began and have not ended.",
	 offsetof(struct dist_ledger, inside)},
};

/* "instance 3 died 1": a word and a number each. */
static void put_causes(FILE *f, const struct om_metric *m)
{
	char cause[32];
	unsigned long long n;
	const char *at = m->m.ledger.causes;
	int len;

	for (; sscanf(at, "%31s %llu%n", cause, &n, &len) == 2; at += len) {
		fputs("statpage_samples_missed_by_cause_total{", f);
		put_label(f, "metric", m->name);
		fputc(',', f);
		put_label(f, "cause", cause);
		fprintf(f, "} %llu\n", n);
	}
}

static void put_ledgers(FILE *f, const struct om_scrape *s)
{
	unsigned int i, n;

	for (i = 0; i < sizeof(ledger) / sizeof(ledger[0]); i++) {
		family(f, s, ledger[i].name, ledger[i].type, ledger[i].help);
		for (n = 0; n < s->nr_metrics; n++) {
			const char *l = (const char *)&s->metric[n].m.ledger;

			fprintf(f, "%s{", ledger[i].name);
			put_label(f, "metric", s->metric[n].name);
			fprintf(f, "} %" PRIu64 "\n", *(const uint64_t *)(l + ledger[i].at));
		}
	}
	family(f, s, "statpage_samples_missed_by_cause_total", "counter",
	       "Samples that were due and could not be had; a cause is there once it has occurred.");
	for (n = 0; n < s->nr_metrics; n++)
		put_causes(f, &s->metric[n]);
}

static void put_metrics(FILE *f, const struct om_scrape *s)
{
	unsigned int i;

	put_histograms(f, s);
	put_ledgers(f, s);
	family(f, s, "statpage_metric_running", "gauge", "1 while the metric records.");
	for (i = 0; i < s->nr_metrics; i++) {
		fputs("statpage_metric_running{", f);
		put_label(f, "metric", s->metric[i].name);
		fprintf(f, "} %d\n", !strcmp(s->metric[i].m.state, "running"));
	}
	family(f, s, "statpage_metric_info", "info",
	       "What a metric measures, how, and by which clock.");
	for (i = 0; i < s->nr_metrics; i++) {
		fputs("statpage_metric_info{", f);
		put_label(f, "metric", s->metric[i].name);
		fprintf(f, ",bits=\"%u\",", s->metric[i].m.all->bits);
		put_label(f, "state", s->metric[i].m.state);
		fputc(',', f);
		put_label(f, "origin", s->metric[i].m.origin);
		fputs("} 1\n", f);
	}
	family(f, s, "statpage_metrics_unread", "gauge",
	       "Metrics that are there and could not be read.");
	fprintf(f, "statpage_metrics_unread %u\n", s->unread);
}

/* ---- the cpu page ---- */

static void put_cpu_time(FILE *f, const char *family, unsigned int cpu, const char *mode,
			 uint64_t ns)
{
	fprintf(f, "%s{cpu=\"%u\",mode=\"%s\"} ", family, cpu, mode);
	fmt_om_seconds(f, ns);
	fputc('\n', f);
}

static void put_cpus(FILE *f, const struct om_scrape *s)
{
	static const char times[] = "statpage_cpu_seconds_total";
	static const char guest[] = "statpage_cpu_guest_seconds_total";
	const struct om_cpus *c = s->cpus;
	const struct csf_cpu_row *r;
	unsigned int i;

	family(f, s, times, "counter", "Time of a CPU; user and nice include that of guests.");
	for (i = 0; i < c->nr; i++) {
		r = &c->row[i];
		if (!(r->flags & CSF_CPU_POSSIBLE))
			continue;
		put_cpu_time(f, times, i, "user", r->user_ns);
		put_cpu_time(f, times, i, "nice", r->nice_ns);
		put_cpu_time(f, times, i, "system", r->system_ns);
		put_cpu_time(f, times, i, "idle", r->idle_ns);
		put_cpu_time(f, times, i, "iowait", r->iowait_ns);
		put_cpu_time(f, times, i, "irq", r->irq_ns);
		put_cpu_time(f, times, i, "softirq", r->softirq_ns);
		put_cpu_time(f, times, i, "steal", r->steal_ns);
	}
	family(f, s, guest, "counter", "Time of a CPU in guests of KVM.");
	for (i = 0; i < c->nr; i++) {
		if (!(c->row[i].flags & CSF_CPU_POSSIBLE))
			continue;
		put_cpu_time(f, guest, i, "user", c->row[i].guest_ns);
		put_cpu_time(f, guest, i, "nice", c->row[i].guest_nice_ns);
	}
	family(f, s, "statpage_cpu_online", "gauge", "1 while the CPU is online.");
	for (i = 0; i < c->nr; i++)
		if (c->row[i].flags & CSF_CPU_POSSIBLE)
			fprintf(f, "statpage_cpu_online{cpu=\"%u\"} %d\n", i,
				!!(c->row[i].flags & CSF_CPU_ONLINE));
	put_seconds_gauge(f, s, "statpage_cpu_page_update_monotonic_seconds",
			  "CLOCK_MONOTONIC of the refresh that the CPU times are of.",
			  c->update_mono_ns);
	put_seconds_gauge(f, s, "statpage_cpu_page_period_seconds",
			  "Refresh period while somebody reads.", c->period_us * 1000ull);
	put_seconds_gauge(f, s, "statpage_cpu_tick_seconds",
			  "How fine the kernel accounts busy time; 0: exactly.", c->tick_ns);
	family(f, s, "statpage_cpu_page_updates_total", "counter", "Refreshes of the cpu page.");
	fprintf(f, "statpage_cpu_page_updates_total %" PRIu64 "\n", c->nr_updates);
	family(f, s, "statpage_cpu_page_corrections_total", "counter",
	       "Times that idle or iowait ran backwards in the kernel and was held.");
	fprintf(f, "statpage_cpu_page_corrections_total %" PRIu64 "\n", c->nr_corrected);
}

/* ---- thread time ---- */

static void put_process(FILE *f, const char *name, const struct om_process *p)
{
	fprintf(f, "%s{", name);
	put_label(f, "process", p->comm);
	fprintf(f, ",engine=\"%s\"", p->engine);
}

static void put_times(FILE *f, const struct om_scrape *s, const struct om_process *p)
{
	static const char *const bucket[THREAD_NR_BUCKETS] = {"cpu", "runq", "sleep", "dsleep",
							      "iowait"};
	static const char name[] = "statpage_thread_seconds_total";
	unsigned int i;

	family(f, s, name, "counter",
	       "Wall time of a process's threads, by where it went; off: in no bucket that the engine knows.");
	for (; p < s->process + s->nr_processes; p++) {
		for (i = 0; i < THREAD_NR_BUCKETS; i++) {
			if (!(p->known & THREAD_KNOWN(i)))
				continue;
			put_process(f, name, p);
			fprintf(f, ",bucket=\"%s\"} ", bucket[i]);
			fmt_om_seconds(f, p->value[i]);
			fputc('\n', f);
		}
		if (!p->has_off)
			continue;
		put_process(f, name, p);
		fputs(",bucket=\"off\"} ", f);
		fmt_om_seconds(f, p->off_ns);
		fputc('\n', f);
	}
}

static void put_events(FILE *f, const struct om_scrape *s, const struct om_process *p)
{
	static const struct {
		const char *kind;
		enum thread_field field;
	} events[] = {{"preempt", THREAD_PREEMPT},
		      {"block", THREAD_BLOCK},
		      {"migrate", THREAD_MIGRATE},
		      {"minor_fault", THREAD_MIN_FLT},
		      {"major_fault", THREAD_MAJ_FLT}};
	static const char name[] = "statpage_thread_events_total";
	unsigned int i;

	family(f, s, name, "counter", "Switches, migrations and faults of a process's threads.");
	for (; p < s->process + s->nr_processes; p++)
		for (i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
			if (!(p->known & THREAD_KNOWN(events[i].field)))
				continue;
			put_process(f, name, p);
			fprintf(f, ",kind=\"%s\"} %" PRIu64 "\n", events[i].kind,
				p->value[events[i].field]);
		}
}

static void put_processes(FILE *f, const struct om_scrape *s)
{
	const struct om_process *p;

	put_times(f, s, s->process);
	put_events(f, s, s->process);
	family(f, s, "statpage_threads", "gauge", "Threads of processes of that name, now.");
	for (p = s->process; p < s->process + s->nr_processes; p++) {
		put_process(f, "statpage_threads", p);
		fprintf(f, "} %u\n", p->threads);
	}
}

/* ---- all ---- */

static void put_self(FILE *f, const struct om_scrape *s)
{
	unsigned int i;

	family(f, s, "statpage_build_info", "info",
	       "Version of statpage, and the kernel it runs on.");
	fputs("statpage_build_info{", f);
	put_label(f, "version", s->version);
	if (s->release) {
		fputc(',', f);
		put_label(f, "kernel", s->release);
	}
	fputs("} 1\n", f);
	family(f, s, "statpage_engine_info", "info", "Which engine serves a part.");
	for (i = 0; i < s->nr_parts; i++)
		if (s->part[i].up)
			fprintf(f, "statpage_engine_info{part=\"%s\",engine=\"%s\"} 1\n",
				s->part[i].name, s->part[i].engine);
	family(f, s, "statpage_part_up", "gauge", "1 when the part could be read.");
	for (i = 0; i < s->nr_parts; i++)
		fprintf(f, "statpage_part_up{part=\"%s\"} %d\n", s->part[i].name, s->part[i].up);
	put_seconds_gauge(f, s, "statpage_collect_seconds", "What it took to collect all this.",
			  s->collect_ns);
}

void fmt_openmetrics(FILE *f, const struct om_scrape *s)
{
	put_self(f, s);
	if (s->nr_metrics || s->unread)
		put_metrics(f, s);
	if (s->cpus)
		put_cpus(f, s);
	if (s->nr_processes)
		put_processes(f, s);
	if (s->dialect == OM_OPENMETRICS)
		fputs("# EOF\n", f);
}
