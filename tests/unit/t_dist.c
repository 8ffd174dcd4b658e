/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This test checks that tables of kstats.ko are read and shown as what they say, and that what is no
 * such table is refused.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "tests/t.h"
#include "lib/fmt_dist.h"
#include "uapi/kstats_bucket.h"

static const char small[] =
	"# bits 3 state stopped since 9.322 s after boot\n"
	"# time start vfs_read end return by task via kretprobe clock tsc 2096011 kHz error 0.240 ppm\n"
	"# fallback direct: a BPF program holds the function\n"
	"# attempted 10 recorded 6 missed 3 filtered 0 stopped 1 inside 0 missed-instance 2 missed-clock 1\n"
	"# sum 4096 mean 682\n"
	"slot 55  CPU  0    count        2 avg      480 p 1.000000\n"
	"slot 55  CPU  3    count        3 avg      490 p 0.750000\n"
	"slot 55  CPUS 4    count        5 avg      486 p 0.833333\n"
	"slot 71  CPU  3    count        1 avg     1980 p 1.000000\n"
	"slot 71  CPUS 4    count        1 avg     1980 p 1.000000\n";

static int parse(const char *text, struct dist_metric *m, struct dist_why *why)
{
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	int err = engine_kmod_parse(f, "x", m, why);

	fclose(f);
	return err;
}

static char *shown(void (*fmt)(FILE *f, const char *name, const struct dist_metric *m, int cpu),
		   const struct dist_metric *m, int cpu)
{
	static char buf[16384];
	FILE *f = fmemopen(buf, sizeof(buf), "w");

	fmt(f, "x", m, cpu);
	fclose(f);
	return buf;
}

#define TWO_ROWS                                          \
	"slot 55  CPU  0    count 3 avg 490 p 1.000000\n" \
	"slot 55  CPUS 1    count 3 avg 490 p 1.000000\n"

static void t_sum(void)
{
	struct dist_metric m;
	struct dist_why why;

	TEST("sum: the file's own, which no average has rounded") {
		if (!CHECK(!parse("# bits 3 state running since 1.000 s after boot\n"
				  "# sum 1472 mean 490\n" TWO_ROWS,
				  &m, &why),
			   "%s", why.text))
			break;
		CHECK(strstr(shown(fmt_dist_json, &m, -1), "\"sum\":1472,\"mean\":490,"), "JSON");
		CHECK(!strstr(shown(fmt_dist_json, &m, 0), "\"unpaired\":0,\"count\":3,\"sum\""),
		      "a CPU's sum is not known");
		dist_metric_free(&m);
	}
	TEST("sum: one that 64 bits do not hold gives no mean") {
		if (!CHECK(!parse("# bits 3 state running since 1.000 s after boot\n"
				  "# sum more than 64 bits hold\n" TWO_ROWS,
				  &m, &why),
			   "%s", why.text))
			break;
		CHECK(strstr(shown(fmt_dist_quantiles, &m, -1), "mean           -  of 3 samples"),
		      "%s", shown(fmt_dist_quantiles, &m, -1));
		CHECK(strstr(shown(fmt_dist_json, &m, -1),
			     "\"unpaired\":0,\"count\":3,\"quantiles\""),
		      "JSON has one");
		dist_metric_free(&m);
	}
}

static void t_small(void)
{
	struct dist_metric m;
	struct dist_why why;
	char *s;

	TEST("parse: every field of a table") {
		if (!CHECK(!parse(small, &m, &why), "%s", why.text))
			break;
		CHECK(m.all->bits == 3 && m.all->count == 6 && m.all->slot[55].count == 5, "all");
		CHECK(m.all->slot[55].sum == 5 * 486 && m.all->slot[71].sum == 1980, "sums");
		CHECK(m.nr_cpus == 4 && m.cpu[0] && !m.cpu[1] && !m.cpu[2] && m.cpu[3], "CPUs");
		CHECK(m.cpu[3]->count == 4 && m.cpu[0]->slot[55].sum == 960, "CPU 3");
		CHECK(m.ledger.attempted == 10 && m.ledger.recorded == 6 && m.ledger.missed == 3 &&
			      m.ledger.stopped == 1,
		      "ledger");
		CHECK(!strcmp(m.ledger.causes, "instance 2 clock 1"), "causes '%s'",
		      m.ledger.causes);
		CHECK(!strcmp(m.state, "stopped"), "state %s", m.state);
		CHECK(!strncmp(m.origin, "time start vfs_read end return", 30), "origin %s",
		      m.origin);
		CHECK(!strcmp(m.notes, "fallback direct: a BPF program holds the function\n"),
		      "notes %s", m.notes);
	}
	TEST("show: rows with bounds and shares, quantiles, JSON") {
		s = shown(fmt_dist_text, &m, -1);
		CHECK(strstr(s, "missed 3 (instance 2 clock 1) stopped 1\n"), "%s", s);
		CHECK(strstr(s,
			     "480                  511            5                  486 0.833333"),
		      "%s", s);
		CHECK(strstr(s, " 1.000000\n"), "%s", s);
		s = shown(fmt_dist_quantiles, &m, -1);
		CHECK(strstr(s, "p50       495 ns  (480 ns .. 511 ns)"), "%s", s);
		CHECK(strstr(s, "of 6 samples"), "%s", s);
		s = shown(fmt_dist_json, &m, 3);
		CHECK(strstr(s, "\"cpu\":3") && strstr(s, "\"complete\":false") &&
			      strstr(s,
				     "{\"slot\":55,\"low\":480,\"high\":511,\"count\":3,\"mean\":490,"
				     "\"density\":0.09375}"),
		      "%s", s);
		s = shown(fmt_dist_json, &m, 1);
		CHECK(strstr(s, "\"count\":0") && strstr(s, "\"slots\":[]"), "%s", s);
		s = shown(fmt_dist_text, &m, 2);
		CHECK(strstr(s, "no samples"), "%s", s);
		dist_metric_free(&m);
	}
}

static void t_wrong(void)
{
	static const char *const bad[] = {
		"",
		"hello\n",
		"# bits 6 state running\n",
		"# bits 3 x\nslot 496 CPUS 1 count 1 avg 1 p 1\n",
		"# bits 3 x\nslot 5 CPUX 1 count 1 avg 1 p 1\n",
		"# bits 3 x\nslot 5 CPU  99999999 count 1 avg 1 p 1\n",
		"# bits 3 x\nslot 5 CPUS 1 count x avg 1 p 1\n",
		"slot 5   CPUS 1    count 1 avg 1 p 1.0\n",
	};
	struct dist_metric m;
	struct dist_why why;

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		TEST("parse: no table, %u", i) {
			why.text[0] = '\0';
			CHECK(parse(bad[i], &m, &why) == -EPROTO, "taken: %s", bad[i]);
			CHECK(strstr(why.text, "not of a kstats table"), "%s", why.text);
		}
	}
}

/* 1,024 CPUs, 1,920 slots each with samples, written by a child while it is read: 2 million lines. */
static void t_big(void)
{
	const unsigned int cpus = 1024, nr = KSTATS_NR_SLOTS(5);
	struct rusage before, after;
	struct dist_metric m;
	struct dist_why why;
	FILE *f;

	TEST("parse: 1,024 CPUs at 5 bits, from a pipe, in the memory of the histograms alone") {
		getrusage(RUSAGE_SELF, &before);
		f = popen(
			"awk 'BEGIN { print \"# bits 5 state running\"; for (s = 0; s < 1920; s++) {"
			" for (c = 0; c < 1024; c++) printf \"slot %-3d CPU  %-4d count %8d avg %8d p 0.5\\n\","
			" s, c, 2, 0; printf \"slot %-3d CPUS 1024 count %8d avg %8d p 0.5\\n\", s, 2048, 0 } }'",
			"r");
		if (!CHECK(!engine_kmod_parse(f, "big", &m, &why), "%s", why.text))
			break;
		CHECK(!pclose(f), "awk");
		getrusage(RUSAGE_SELF, &after);
		CHECK(m.nr_cpus == cpus && m.all->count == 2048ull * nr, "CPUs %u, count %" PRIu64,
		      m.nr_cpus, m.all->count);
		CHECK(m.cpu[1023]->count == 2ull * nr, "the last CPU");
		CHECK(after.ru_maxrss - before.ru_maxrss <
			      (long)((cpus + 1) * hist_size(5) / 1024 + 4096),
		      "%ld KiB more", after.ru_maxrss - before.ru_maxrss);
		dist_metric_free(&m);
	}
}

/* The section of docs/kstats.md; the test runs in the top of the checkout. */
static char *documented(void)
{
	static char text[65536];
	FILE *f = fopen("docs/kstats.md", "re");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	char *from, *to;

	if (f)
		fclose(f);
	text[n] = '\0';
	from = strstr(text, "\n## As JSON\n");
	to = from ? strstr(from + 1, "\n## ") : NULL;
	if (to)
		*to = '\0';
	return from;
}

static void t_keys(void)
{
	struct dist_metric m;
	struct dist_why why;
	unsigned int nr = 0;
	char key[40], *doc = documented();

	TEST("JSON: each key is documented") {
		if (!CHECK(doc, "docs/kstats.md has no section") ||
		    !CHECK(!parse(small, &m, &why), "%s", why.text))
			break;
		for (int cpu = -1; cpu <= 3; cpu += 4) {
			char *p = shown(fmt_dist_json, &m, cpu), *end;

			for (; (end = strstr(p, "\":")); p = end + 2, nr++) {
				char *from = end;

				while (from[-1] != '"')
					from--;
				snprintf(key, sizeof(key), "`%.*s`", (int)(end - from), from);
				CHECK(strstr(doc, key), "%s is not there", key);
			}
		}
		CHECK(nr > 50, "only %u keys seen", nr);
		dist_metric_free(&m);
	}
}

int main(void)
{
	t_small();
	t_sum();
	t_keys();
	t_wrong();
	t_big();
	return t_done("t_dist");
}
