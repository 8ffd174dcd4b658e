/* SPDX-License-Identifier: GPL-2.0 */
/* This test checks that csf_diff() and csf_format_diff() print what is known, and nothing else. */
#include <locale.h>

#include "tests/t.h"
#include "fake_page.h"

/* A pair of snapshots of one thread, an operation that slept 25 ms, at 2 GHz. */
static void pair(struct csf_snap *a, struct csf_snap *b)
{
	memset(a, 0, sizeof(*a));
	fake_hdr(&a->p.hdr, CSF_KIND_THREAD, sizeof(a->p));
	a->p.tid = 7;
	a->p.start_tsc = a->p.last_switch_tsc = 5000;
	a->tsc = 8000;
	a->p.oncpu_cyc = 3000;
	a->extrapolated = 1;
	a->p.nr_block = 4;
	a->p.min_flt = 100;
	*b = *a;
	b->p.oncpu_cyc += 34000;
	b->p.sleep_cyc += 50204000;
	b->tsc += 34000 + 50204000;
	b->p.last_switch_tsc = b->tsc - 20000;
	b->p.nr_block++;
	b->p.min_flt += 4;
}

static void line(const char *want, const struct csf_snap *a, const struct csf_snap *b)
{
	char buf[CSF_DIFF_BUFSZ];
	int n = csf_format_diff(buf, sizeof(buf), a, b);

	CHECK(n == (int)strlen(want) && !strcmp(buf, want), "%d, errno %d:\n# got  %s\n# want %s",
	      n, errno, buf, want);
}

static const char slept[] =
	"wall 25.119ms = cpu 0.017 + runq 0.000 + sleep 25.102 + dsleep 0.000 + iowait 0.000"
	" | preempt 0 block 1 migrate 0 | flt 4/0 | sysc r0 w0 | io r0B w0B";

/* A locale that prints 1.5 as 1,5; few machines have one installed, so make it. */
static bool comma_locale(void)
{
	static const char *const others[] = {"CTYPE", "COLLATE", "MONETARY", "TIME", "MESSAGES"};
	char buf[8];
	size_t i;
	FILE *f;

	fake_mount();
	f = fopen("comma.def", "we");
	if (!f)
		fake_die("comma.def");
	fputs("LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n",
	      f);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		fprintf(f, "LC_%s\ncopy \"POSIX\"\nEND LC_%s\n", others[i], others[i]);
	fclose(f);
	/* It warns of what we left out. */
	if (system("localedef -c -i comma.def ./comma >/dev/null 2>&1") < 0)
		fake_die("localedef");
	setenv("LOCPATH", fake_dir, 1);
	setlocale(LC_NUMERIC, "comma");
	if (system("rm -r comma comma.def 2>/dev/null") < 0)
		fake_die("rm");
	fake_cleanup();
	snprintf(buf, sizeof(buf), "%.1f", 1.5);
	return !strcmp(buf, "1,5");
}

static void t_lines(void)
{
	struct csf_snap a, b;

	TEST("diff: the line of the documentation") {
		pair(&a, &b);
		line(slept, &a, &b);
	}
	TEST("diff: the same line in a locale with a decimal comma") {
		pair(&a, &b);
		if (!comma_locale()) {
			SKIP("localedef cannot make one here");
			break;
		}
		line(slept, &a, &b);
		setlocale(LC_NUMERIC, "C");
	}
	TEST("diff: every field has its place") {
		pair(&a, &b);
		b.p.runq_cyc += 2000;
		b.p.dsleep_cyc += 4000;
		b.p.iowait_cyc += 2000000000;
		b.tsc += 2000006000;
		b.p.nr_preempt = 11;
		b.p.nr_migrate = 12;
		b.p.maj_flt = 13;
		b.p.syscr = 14;
		b.p.syscw = 15;
		b.p.read_bytes = 4096;
		b.p.write_bytes = 8192;
		line("wall 1025.122ms = cpu 0.017 + runq 0.001 + sleep 25.102 + dsleep 0.002 + iowait "
		     "1000.000 | preempt 11 block 1 migrate 12 | flt 4/13 | sysc r14 w15 | io r4096B "
		     "w8192B",
		     &a, &b);
	}
	TEST("diff: absent groups and fields beyond an older page print -") {
		pair(&a, &b);
		b.p.hdr.absent = CSF_ABSENT_IO;
		line("wall 25.119ms = cpu 0.017 + runq 0.000 + sleep 25.102 + dsleep 0.000 + iowait 0.000"
		     " | preempt 0 block 1 migrate 0 | flt 4/0 | sysc r0 w0 | io r-B w-B",
		     &a, &b);
		a.p.hdr.absent = CSF_ABSENT_SYSC;
		b.p.hdr.size = offsetof(struct csf_thread, nr_migrate);
		line("wall 25.119ms = cpu 0.017 + runq 0.000 + sleep 25.102 + dsleep 0.000 + iowait 0.000"
		     " | preempt 0 block 1 migrate - | flt -/- | sysc r- w- | io r-B w-B",
		     &a, &b);
	}
	TEST("diff: snapshots that were not extrapolated say so and still add up") {
		pair(&a, &b);
		b.extrapolated = 0;
		b.p.oncpu_cyc -= 20000; /* which ends at last_switch_tsc */
		line("wall 25.109ms = cpu 0.007 + runq 0.000 + sleep 25.102 + dsleep 0.000 + iowait 0.000"
		     " | preempt 0 block 1 migrate 0 | flt 4/0 | sysc r0 w0 | io r0B w0B"
		     " | as of the last switch",
		     &a, &b);
	}
	TEST("diff: a clock that changed in between is named") {
		pair(&a, &b);
		b.p.hdr.gen += 2;
		line("wall 25.119ms = cpu 0.017 + runq 0.000 + sleep 25.102 + dsleep 0.000 + iowait 0.000"
		     " | preempt 0 block 1 migrate 0 | flt 4/0 | sysc r0 w0 | io r0B w0B | clock changed",
		     &a, &b);
	}
	TEST("diff: nothing happened") {
		pair(&a, &b);
		line("wall 0.000ms = cpu 0.000 + runq 0.000 + sleep 0.000 + dsleep 0.000 + iowait 0.000"
		     " | preempt 0 block 0 migrate 0 | flt 0/0 | sysc r0 w0 | io r0B w0B",
		     &a, &a);
	}
}

static void t_sum(void)
{
	uint64_t *bucket, us[6];
	struct csf_snap a, b;
	char buf[CSF_DIFF_BUFSZ];
	unsigned int i, j, off = 0, ns_off = 0, zero = 0;
	struct csf_diff d = {0};
	unsigned int ms[6], frac[6];

	TEST("diff: the buckets add up to the wall time as printed, 10,000 times") {
		srandom(1);
		for (i = 0; i < 10000; i++) {
			pair(&a, &b);
			b = a;
			b.p.hdr.mult = a.p.hdr.mult = 0x5a5a5a5a + i;
			bucket = (uint64_t *)(void *)&b.p.oncpu_cyc;
			for (j = 0; j < 5; j++) {
				/* Small ones round most; the third is empty. */
				uint64_t cyc = j == 2 ? 0 : (uint64_t)random() >> (random() % 31);

				bucket[j] += cyc;
				b.tsc += cyc;
			}
			ns_off += csf_diff(&d, &a, &b) != 0;
			ns_off += d.wall_ns != d.ns[0] + d.ns[1] + d.ns[2] + d.ns[3] + d.ns[4];
			ns_off += d.wall_ns != csf_cyc_to_ns_u64(&b.p.hdr, b.tsc - a.tsc);
			csf_format_diff(buf, sizeof(buf), &a, &b);
			sscanf(buf,
			       "wall %u.%ums = cpu %u.%u + runq %u.%u + sleep %u.%u + dsleep %u.%u + iowait "
			       "%u.%u",
			       &ms[5], &frac[5], &ms[0], &frac[0], &ms[1], &frac[1], &ms[2],
			       &frac[2], &ms[3], &frac[3], &ms[4], &frac[4]);
			for (j = 0; j < 6; j++)
				us[j] = ms[j] * 1000ull + frac[j];
			off += us[5] != us[0] + us[1] + us[2] + us[3] + us[4];
			zero += us[2] != 0;
		}
		CHECK(!off, "%u lines do not add up", off);
		CHECK(!ns_off, "%u differences in ns do not add up", ns_off);
		CHECK(!zero, "%u empty buckets printed as something", zero);
	}
}

static void t_limits(void)
{
	struct csf_snap a = {0}, b;
	char buf[CSF_DIFF_BUFSZ], small[20];
	int n;

	memset(&b, 0xff, sizeof(b));
	b.p.tid = b.p.hdr.absent = 0;
	b.p.hdr.magic = a.p.hdr.magic = CSF_MAGIC;
	b.p.hdr.clock = a.p.hdr.clock = CSF_CLOCK_TSC;
	b.p.hdr.size = a.p.hdr.size = sizeof(b.p);
	b.p.hdr.shift = 0;
	b.p.start_tsc = 0;
	TEST("diff: the largest values fit CSF_DIFF_BUFSZ") {
		n = csf_format_diff(buf, sizeof(buf), &a, &b);
		CHECK(n > 0 && n < CSF_DIFF_BUFSZ, "%d characters", n);
		CHECK(!strcmp(buf,
			      "wall 18446744073709.551ms = cpu 18446744073709.551 + runq 0.000 + sleep "
			      "0.000 + dsleep 0.000 + iowait 0.000 | preempt 18446744073709551615 block "
			      "18446744073709551615 migrate 18446744073709551615 | flt "
			      "18446744073709551615/18446744073709551615 | sysc r18446744073709551615 "
			      "w18446744073709551615 | io r18446744073709551615B "
			      "w18446744073709551615B | as of the last switch | clock changed"),
		      "%s", buf);
		/* Five buckets of 20 characters are more than can be, but what if. */
		CHECK(n + 4 * (int)strlen("18446744073709") < CSF_DIFF_BUFSZ, "%d characters", n);
	}
	TEST("diff: buckets that together do not fit 64 bits do not wrap") {
		struct csf_diff d = {0};

		b.p.hdr.mult = 1;
		CHECK(!csf_diff(&d, &a, &b), "errno %d", errno);
		CHECK(d.wall_ns == UINT64_MAX && d.ns[0] == UINT64_MAX && !d.ns[1] && !d.ns[4],
		      "wall %lu, first %lu, second %lu", d.wall_ns, d.ns[0], d.ns[1]);
	}
	TEST("diff: a small buffer is filled, ended and not overrun") {
		pair(&a, &b);
		memset(small, 'x', sizeof(small));
		n = csf_format_diff(small, 10, &a, &b);
		CHECK(n == (int)sizeof(slept) - 1, "length %d", n);
		CHECK(!strcmp(small, "wall 25.1") && small[10] == 'x', "'%.20s'", small);
		CHECK(csf_format_diff(NULL, 0, &a, &b) == n, "no buffer, for the length");
	}
}

static void t_refused(void)
{
	struct csf_snap a, b;
	char buf[CSF_DIFF_BUFSZ];

#define REFUSED(what, change)                                                                    \
	do {                                                                                     \
		pair(&a, &b);                                                                    \
		change;                                                                          \
		errno = 0;                                                                       \
		CHECK(csf_format_diff(buf, sizeof(buf), &a, &b) == -1 && errno == EINVAL, what); \
	} while (0)
	TEST("diff: what cannot be subtracted is EINVAL") {
		REFUSED("another thread", b.p.tid++);
		REFUSED("accounting that began anew", b.p.start_tsc++);
		REFUSED("an older one, of a thread that sleeps",
			(b.extrapolated = 0, b.p.last_switch_tsc = a.tsc - 1));
		REFUSED("another clock", b.p.hdr.clock = CSF_CLOCK_MONOTONIC);
		REFUSED("one that could not be taken", b.p.hdr.magic = 0);
		REFUSED("nothing at all", memset(&a, 0, sizeof(a)); memset(&b, 0, sizeof(b)));
		CHECK(!strcmp(buf, "not measured"), "'%s'", buf);
		pair(&b, &a);
		CHECK(csf_format_diff(buf, sizeof(buf), &a, &b) == -1 && errno == EINVAL,
		      "swapped");
	}
#undef REFUSED
	TEST("diff: CPUs whose clocks disagreed move the start back, and that is the same accounting") {
		pair(&a, &b);
		b.p.start_tsc -= 500;
		b.tsc -= 500;
		line(slept, &a, &b);
	}
}

int main(void)
{
	t_lines();
	t_sum();
	t_limits();
	t_refused();
	return t_done("t_reader_diff");
}
