/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This test checks every line that an exporter writes, in both dialects: buckets that fold and add up,
 * sums to the last digit, the ledger, CPUs, processes, and names that would break a label.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/t.h"
#include "lib/fmt_openmetrics.h"
#include "uapi/kstats_bucket.h"

static const char table[] =
	"# bits 3 state running since 9.322 s after boot\n"
	"# time start vfs_read end return by task via direct clock tsc 2096011 kHz error 0.240 ppm\n"
	"# attempted 16 recorded 9 missed 3 filtered 1 stopped 2 inside 1 missed-instance 2 missed-clock 1 unpaired 4\n"
	"# sum 1234567890123 mean 0\n"
	"slot 5   CPUS 1    count        1 avg        5 p 0.100000\n"
	"slot 55  CPUS 1    count        5 avg      486 p 0.833333\n"
	"slot 71  CPUS 1    count        2 avg     1980 p 1.000000\n"
	"slot 495 CPUS 1    count        1 avg 1 p 1.000000\n";

static struct om_metric metric;

static int parse(const char *text, struct om_metric *to, const char *name)
{
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	struct dist_why why;
	int err = engine_kmod_parse(f, name, &to->m, &why);

	fclose(f);
	snprintf(to->name, sizeof(to->name), "%s", name);
	return err;
}

static const char *text_of(const struct om_scrape *s)
{
	static char text[65536];
	FILE *f = fmemopen(text, sizeof(text), "w");

	fmt_openmetrics(f, s);
	fclose(f);
	return text;
}

/* Whether text has line as a whole line. */
static int has(const char *text, const char *line)
{
	size_t len = strlen(line);
	const char *at = text;

	for (; (at = strstr(at, line)); at += len)
		if ((at == text || at[-1] == '\n') && at[len] == '\n')
			return 1;
	return 0;
}

static unsigned int count_of(const char *text, const char *part)
{
	unsigned int n = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		n++;
	return n;
}

static const struct om_part parts[] = {{"distributions", "kmod", true},
				       {"cpu", "coarse_stat_fs", false}};

static struct om_scrape scrape(void)
{
	return (struct om_scrape){
		.buckets = {.bits = 0, .low = 128, .high = 1000000},
		.version = "0.1",
		.release = "6.1.0-x",
		.part = parts,
		.nr_parts = 2,
		.metric = &metric,
		.nr_metrics = 1,
		.collect_ns = 1500000,
	};
}

static void t_seconds(void)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{0, "0"},
		{1, "1e-09"},
		{127, "1.27e-07"},
		{1000, "1e-06"},
		{99999, "9.9999e-05"},
		{100000, "0.0001"},
		{131071, "0.000131071"},
		{250000000, "0.25"},
		{1000000000, "1"},
		{1500000000, "1.5"},
		{10000000000, "10"},
		{1234567890123, "1234.567890123"},
		{UINT64_MAX - 1, "18446744073.709551614"},
	};
	char buf[64];
	FILE *f;

	TEST("ns are seconds to the last digit, in the fewest characters") {
		for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			f = fmemopen(buf, sizeof(buf), "w");
			fmt_om_seconds(f, cases[i].ns);
			fclose(f);
			CHECK(!strcmp(buf, cases[i].text), "%" PRIu64 ": %s, expected %s",
			      cases[i].ns, buf, cases[i].text);
		}
	}
}

#define B "statpage_duration_seconds_bucket{metric=\"vfs_read\",le="

static void t_buckets(void)
{
	struct om_scrape s = scrape();
	const char *text = text_of(&s);
	unsigned int bits;

	TEST("buckets: cumulative, folded, from below the range to +Inf, all of them") {
		CHECK(has(text, B "\"1.27e-07\"} 1"), "the one below\n%s", text);
		CHECK(has(text, B "\"2.55e-07\"} 1"), "an empty one");
		CHECK(has(text, B "\"5.11e-07\"} 6"), "480..511");
		CHECK(has(text, B "\"1.023e-06\"} 6"), "an empty one");
		CHECK(has(text, B "\"2.047e-06\"} 8"), "1920..2047");
		CHECK(has(text, B "\"0.001048575\"} 8"), "the last");
		CHECK(has(text, B "\"+Inf\"} 9"), "+Inf");
		CHECK(count_of(text, B) == 15, "%u buckets", count_of(text, B));
	}
	TEST("sum and count are exact") {
		CHECK(has(text,
			  "statpage_duration_seconds_sum{metric=\"vfs_read\"} 1234.567890123"),
		      "%s", text);
		CHECK(has(text, "statpage_duration_seconds_count{metric=\"vfs_read\"} 9"), "%s",
		      text);
	}
	TEST("each bit doubles the buckets, up to those that the metric has") {
		/* 13 powers of two from 128, the last up to 1,000,000; one below, and +Inf */
		static const unsigned int nr[] = {15, 28, 54, 106, 106, 106};

		for (bits = 0; bits <= 5; bits++) {
			s.buckets.bits = bits;
			CHECK(count_of(text_of(&s), B) == nr[bits], "%u bits: %u buckets", bits,
			      count_of(text_of(&s), B));
		}
		s.buckets.bits = 3;
		CHECK(has(text_of(&s), B "\"4.79e-07\"} 1") &&
			      has(text_of(&s), B "\"5.11e-07\"} 6"),
		      "%s", text_of(&s));
	}
}

static void t_no_sum(void)
{
	static struct om_metric other;
	struct om_scrape s = scrape();

	s.metric = &other;
	TEST("a sum that is not known, or that 64 bits do not hold, is not there") {
		CHECK(!parse("# bits 3 x\nslot 5 CPUS 1 count 1 avg 5 p 1\n", &other, "x"),
		      "parse");
		CHECK(!strstr(text_of(&s), "seconds_sum"), "%s", text_of(&s));
		CHECK(has(text_of(&s), "statpage_duration_seconds_count{metric=\"x\"} 1"), "count");
		dist_metric_free(&other.m);
		CHECK(!parse("# bits 3 x\n# sum more than 64 bits hold\n"
			     "slot 5 CPUS 1 count 1 avg 5 p 1\n",
			     &other, "x"),
		      "parse");
		CHECK(!strstr(text_of(&s), "seconds_sum"), "%s", text_of(&s));
		dist_metric_free(&other.m);
	}
	TEST("a name cannot leave its label") {
		CHECK(!parse("# bits 3 x\n", &other, "a\"b\\c\n\xff"), "parse");
		CHECK(has(text_of(&s),
			  "statpage_samples_inside{metric=\"a\\\"b\\\\c\\\\x0a\\\\xff\"} 0"),
		      "%s", text_of(&s));
		dist_metric_free(&other.m);
	}
}

static const char info[] =
	"statpage_metric_info{metric=\"vfs_read\",bits=\"3\",state=\"running\",origin=\"time start"
	" vfs_read end return by task via direct clock tsc 2096011 kHz error 0.240 ppm\"} 1";

static void t_ledger(void)
{
	static const char *const lines[] = {
		"statpage_samples_attempted_total{metric=\"vfs_read\"} 16",
		"statpage_samples_recorded_total{metric=\"vfs_read\"} 9",
		"statpage_samples_missed_total{metric=\"vfs_read\"} 3",
		"statpage_samples_missed_by_cause_total{metric=\"vfs_read\",cause=\"instance\"} 2",
		"statpage_samples_missed_by_cause_total{metric=\"vfs_read\",cause=\"clock\"} 1",
		"statpage_samples_filtered_total{metric=\"vfs_read\"} 1",
		"statpage_samples_stopped_total{metric=\"vfs_read\"} 2",
		"statpage_samples_unpaired_total{metric=\"vfs_read\"} 4",
		"statpage_samples_inside{metric=\"vfs_read\"} 1",
		"statpage_metric_running{metric=\"vfs_read\"} 1",
		info,
		"statpage_metrics_unread 2",
		"statpage_build_info{version=\"0.1\",kernel=\"6.1.0-x\"} 1",
		"statpage_engine_info{part=\"distributions\",engine=\"kmod\"} 1",
		"statpage_part_up{part=\"distributions\"} 1",
		"statpage_part_up{part=\"cpu\"} 0",
		"statpage_collect_seconds 0.0015",
	};
	struct om_scrape s = scrape();

	s.unread = 2;
	TEST("the ledger, states, engines and the build") {
		for (unsigned int i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
			CHECK(has(text_of(&s), lines[i]), "not there: %s", lines[i]);
		CHECK(!strstr(text_of(&s), "statpage_cpu_") && !strstr(text_of(&s), "thread"),
		      "what is not known is there:\n%s", text_of(&s));
		CHECK(count_of(text_of(&s), "engine_info{") == 1,
		      "an engine of a part that is down");
	}
}

static const struct csf_cpu_row rows[] = {
	{CSF_CPU_POSSIBLE | CSF_CPU_ONLINE, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
	{0},
	{CSF_CPU_POSSIBLE, 2, 1000000000, 0, 0, 0, 0, 0, 0, 0, 0, 0},
};

static void t_cpus(void)
{
	static const char *const lines[] = {
		"statpage_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 1e-09",
		"statpage_cpu_seconds_total{cpu=\"0\",mode=\"nice\"} 2e-09",
		"statpage_cpu_seconds_total{cpu=\"0\",mode=\"system\"} 3e-09",
		"statpage_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 4e-09",
		"statpage_cpu_seconds_total{cpu=\"0\",mode=\"iowait\"} 5e-09",
		"statpage_cpu_seconds_total{cpu=\"0\",mode=\"irq\"} 6e-09",
		"statpage_cpu_seconds_total{cpu=\"0\",mode=\"softirq\"} 7e-09",
		"statpage_cpu_seconds_total{cpu=\"0\",mode=\"steal\"} 8e-09",
		"statpage_cpu_guest_seconds_total{cpu=\"0\",mode=\"user\"} 9e-09",
		"statpage_cpu_guest_seconds_total{cpu=\"0\",mode=\"nice\"} 1e-08",
		"statpage_cpu_seconds_total{cpu=\"2\",mode=\"user\"} 1",
		"statpage_cpu_online{cpu=\"0\"} 1",
		"statpage_cpu_online{cpu=\"2\"} 0",
		"statpage_cpu_page_update_monotonic_seconds 12.5",
		"statpage_cpu_page_period_seconds 0.01",
		"statpage_cpu_tick_seconds 0.004",
		"statpage_cpu_page_updates_total 77",
		"statpage_cpu_page_corrections_total 3",
	};
	static const struct om_cpus cpus = {rows, 3, 12500000000, 77, 3, 10000, 4000000};
	struct om_scrape s = scrape();

	s.nr_metrics = 0;
	s.cpus = &cpus;
	TEST("CPUs: all that can be, offline ones too") {
		for (unsigned int i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
			CHECK(has(text_of(&s), lines[i]), "not there: %s", lines[i]);
		CHECK(!strstr(text_of(&s), "cpu=\"1\""), "a CPU that cannot be");
		CHECK(!strstr(text_of(&s), "duration_seconds"), "distributions without any");
	}
}

#define P "{process=\"a b\",engine=\"page\""
#define Q "{process=\"c\",engine=\"proc\""

static void t_processes(void)
{
	static const char *const lines[] = {
		"statpage_thread_seconds_total" P ",bucket=\"cpu\"} 1",
		"statpage_thread_seconds_total" P ",bucket=\"runq\"} 2",
		"statpage_thread_seconds_total" P ",bucket=\"sleep\"} 3",
		"statpage_thread_seconds_total" P ",bucket=\"dsleep\"} 4",
		"statpage_thread_seconds_total" P ",bucket=\"iowait\"} 5",
		"statpage_thread_events_total" P ",kind=\"preempt\"} 6",
		"statpage_thread_events_total" P ",kind=\"block\"} 7",
		"statpage_thread_events_total" P ",kind=\"migrate\"} 8",
		"statpage_thread_events_total" P ",kind=\"minor_fault\"} 9",
		"statpage_thread_events_total" P ",kind=\"major_fault\"} 10",
		"statpage_threads" P "} 11",
		"statpage_thread_seconds_total" Q ",bucket=\"cpu\"} 0.5",
		"statpage_thread_seconds_total" Q ",bucket=\"off\"} 0.25",
		"statpage_threads" Q "} 1",
	};
	static const struct om_process p[] = {
		{"a b",
		 "page",
		 11,
		 ~0u,
		 false,
		 0,
		 {1000000000, 2000000000, 3000000000, 4000000000, 5000000000, 6, 7, 8, 9, 10}},
		{"c", "proc", 1, THREAD_KNOWN(THREAD_ONCPU), true, 250000000, {500000000}},
	};
	struct om_scrape s = scrape();

	s.process = p;
	s.nr_processes = 2;
	TEST("processes: the buckets of their threads, and nothing that is not known") {
		for (unsigned int i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
			CHECK(has(text_of(&s), lines[i]), "not there: %s", lines[i]);
		CHECK(count_of(text_of(&s), "\nstatpage_thread") == 14, "%s", text_of(&s));
	}
}

static void t_dialects(void)
{
	struct om_scrape s = scrape();

	TEST("Prometheus's format: families are named as their samples, an info is a gauge") {
		const char *text = text_of(&s);

		CHECK(has(text, "# TYPE statpage_samples_missed_total counter"), "%s", text);
		CHECK(has(text, "# TYPE statpage_build_info gauge"), "%s", text);
		CHECK(!strstr(text, "# UNIT") && !strstr(text, "# EOF"), "%s", text);
	}
	TEST("OpenMetrics: suffixes are not of the family, units are told, the end is marked") {
		const char *text;

		s.dialect = OM_OPENMETRICS;
		text = text_of(&s);
		CHECK(has(text, "# TYPE statpage_samples_missed counter"), "%s", text);
		CHECK(has(text, "# TYPE statpage_build info"), "%s", text);
		CHECK(has(text, "# TYPE statpage_duration_seconds histogram"), "%s", text);
		CHECK(has(text, "# UNIT statpage_duration_seconds seconds"), "%s", text);
		CHECK(strlen(text) > 6 && !strcmp(text + strlen(text) - 6, "# EOF\n"), "%s", text);
	}
}

static int name_of(const char *name, void *data)
{
	strcat(data, name);
	strcat(data, " ");
	return 0;
}

static void t_copy(void)
{
	char dir[] = "/tmp/t_openmetrics.XXXXXX", path[64], names[200] = "";
	static const char *const files[] = {"b", "a", "_nodes", "..c"};
	struct dist_metric m;
	struct dist_why why;
	FILE *f;

	TEST("engine: metrics and tables of a copy of the module's files") {
		if (!CHECK(mkdtemp(dir), "%s", dir))
			break;
		engine_kmod_from(dir);
		for (int i = 0; i < 4; i++) {
			snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
			f = fopen(path, "we");
			fputs(table, f);
			fclose(f);
		}
		CHECK(!engine_kmod.probe(&why), "%s", why.text);
		CHECK(!engine_kmod.metrics(name_of, names, &why) && !strcmp(names, "..c a b "),
		      "%s", names);
		CHECK(!engine_kmod.read("b", &m, &why) && m.all->count == 9, "b");
		dist_metric_free(&m);
		CHECK(engine_kmod.read("d", &m, &why) == -ENOENT &&
			      strstr(why.text, "/d: No such file"),
		      "%s", why.text);
		CHECK(engine_kmod.read("../a", &m, &why) == -EINVAL, "outside of the folder");
		for (int i = 0; i < 4; i++) {
			snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
			unlink(path);
		}
		rmdir(dir);
		CHECK(engine_kmod.probe(&why) == -ENOENT && strstr(why.text, dir), "%s", why.text);
		engine_kmod_from(NULL);
	}
}

int main(void)
{
	if (parse(table, &metric, "vfs_read"))
		return 1;
	t_seconds();
	t_buckets();
	t_no_sum();
	t_ledger();
	t_cpus();
	t_processes();
	t_dialects();
	t_copy();
	return t_done("t_openmetrics");
}
