/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This test checks that csf_page_snap() makes of any page, in any state, while anybody writes it,
 * either a consistent snapshot that says what it knows, or the documented error.
 */
#include <pthread.h>

#include "tests/t.h"
#include "fake_page.h"

static struct csf_thread page __attribute__((aligned(PAGE)));

static void reset(void)
{
	memset(&page, 0, sizeof(page));
	fake_thread(&page, 7);
}

static int snap_errno(struct csf_snap *s)
{
	errno = 0;
	return csf_page_snap(&page, sizeof(page), s) ? errno : 0;
}

static void t_states(void)
{
	static const struct {
		const char *name;
		uint32_t flags, state;
		int extrapolated;
		uint64_t oncpu, runq; /* what they are if nothing is added */
	} c[] = {
		{"running", 0, CSF_ONCPU, 1, 0, 200},
		{"waiting for a CPU", 0, CSF_RUNQ, 1, 100, 0},
		{"asleep", 0, CSF_SLEEP, 0, 100, 200},
		{"in dsleep", 0, CSF_DSLEEP, 0, 100, 200},
		{"in iowait", 0, CSF_IOWAIT, 0, 100, 200},
		{"of a state we do not know", 0, 5, 0, 100, 200},
		{"parked", CSF_F_PARKED, CSF_ONCPU, 0, 100, 200},
		{"parked in the run queue", CSF_F_PARKED, CSF_RUNQ, 0, 100, 200},
		{"dead", CSF_F_DEAD, CSF_ONCPU, 0, 100, 200},
	};
	struct csf_snap s;
	uint64_t t0;
	size_t i;

	for (i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		TEST("page: a thread that is %s", c[i].name) {
			reset();
			page.hdr.flags = c[i].flags;
			page.state = c[i].state;
			t0 = csf_rdtsc();
			CHECK(!snap_errno(&s), "errno %d", errno);
			CHECK(s.extrapolated == c[i].extrapolated, "extrapolated %d",
			      s.extrapolated);
			CHECK(s.tsc >= t0 && s.tsc <= csf_rdtsc(),
			      "tsc is not between before and after");
			CHECK(!c[i].oncpu || s.p.oncpu_cyc == c[i].oncpu, "oncpu moved");
			CHECK(!c[i].runq || s.p.runq_cyc == c[i].runq, "runq moved");
			CHECK(s.p.sleep_cyc == 300 && s.p.dsleep_cyc == 350 && s.p.iowait_cyc == 50,
			      "a bucket of sleep moved");
			CHECK(fake_sum(&s.p) == (s.extrapolated ? s.tsc : s.p.last_switch_tsc) -
							s.p.start_tsc,
			      "the buckets do not add up");
			CHECK(s.p.tid == 7 && s.p.write_bytes == 7 && s.p.hdr.freq_khz == 2000000,
			      "the copy is not whole");
		}
}

static void t_clock(void)
{
	struct timespec ts;
	struct csf_snap s;

	TEST("page: a clock behind the writer's counts as no time at all") {
		reset();
		page.last_switch_tsc = csf_rdtsc() + 1000000000000;
		CHECK(!snap_errno(&s), "errno %d", errno);
		CHECK(s.tsc == page.last_switch_tsc, "tsc is below last_switch_tsc");
		CHECK(s.extrapolated && s.p.oncpu_cyc == 100, "oncpu %llu", s.p.oncpu_cyc);
	}
	TEST("page: one that is kept in ns of CLOCK_MONOTONIC") {
		reset();
		page.hdr.clock = CSF_CLOCK_MONOTONIC;
		page.hdr.mult = 1;
		page.hdr.shift = 0;
		page.last_switch_tsc = csf_now(&page.hdr);
		page.start_tsc = page.last_switch_tsc - 1000;
		CHECK(!snap_errno(&s), "errno %d", errno);
		clock_gettime(CLOCK_MONOTONIC, &ts);
		CHECK(s.tsc >= page.last_switch_tsc &&
			      s.tsc <= (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec,
		      "tsc %lu is no ns of CLOCK_MONOTONIC", s.tsc);
		CHECK(fake_sum(&s.p) == s.tsc - s.p.start_tsc, "the buckets do not add up");
		CHECK(csf_cyc_to_ns_u64(&s.p.hdr, 12345) == 12345, "ns are not ns");
	}
}

static void t_sizes(void)
{
	static struct {
		struct csf_thread t;
		uint64_t news[4];
	} longer;
	struct csf_snap s;

	TEST("page: an older one ends where its size says, the rest is zero and unknown") {
		reset();
		page.hdr.size = offsetof(struct csf_thread, syscr);
		page.syscr = 99;
		memset(&s, 0xff, sizeof(s));
		CHECK(!snap_errno(&s), "errno %d", errno);
		CHECK(!s.p.syscr && !s.p.write_bytes, "bytes beyond the page's size were copied");
		CHECK(CSF_HAS(&s.p, struct csf_thread, stime_ns), "stime_ns is inside");
		CHECK(!CSF_HAS(&s.p, struct csf_thread, syscr), "syscr is outside");
	}
	TEST("page: one that ends inside a field does not have the field") {
		reset();
		page.hdr.size = offsetof(struct csf_thread, write_bytes) + 4;
		CHECK(!snap_errno(&s), "errno %d", errno);
		CHECK(!s.p.write_bytes, "half a field was copied");
	}
	TEST("page: a newer, longer one") {
		reset();
		longer.t = page;
		longer.t.hdr.size = sizeof(longer);
		CHECK(!csf_page_snap(&longer, sizeof(longer), &s), "errno %d", errno);
		CHECK(s.p.write_bytes == 7 && s.extrapolated,
		      "it was not read as far as we know it");
	}
}

static void t_errors(void)
{
	struct csf_snap s;

#define BAD(what, change, err)                                               \
	do {                                                                 \
		reset();                                                     \
		page.hdr.change;                                             \
		CHECK(snap_errno(&s) == (err), "%s: errno %d", what, errno); \
	} while (0)
	TEST("page: what is none of ours is EPROTO") {
		BAD("magic", magic ^= 1, EPROTO);
		BAD("abi", abi++, EPROTO);
		BAD("kind", kind = CSF_KIND_CPU, EPROTO);
		BAD("clock 0", clock = 0, EPROTO);
		BAD("clock 3", clock = 3, EPROTO);
		BAD("longer than its mapping", size = sizeof(page) + 8, EPROTO);
		BAD("no buckets", size = offsetof(struct csf_thread, iowait_cyc), EPROTO);
		reset();
		CHECK(csf_page_snap(&page, sizeof(page.hdr) - 1, &s) && errno == EPROTO,
		      "no header");
	}
	TEST("page: an unstable TSC is ESTALE") {
		BAD("unstable", flags |= CSF_F_TSC_UNSTABLE, ESTALE);
	}
	TEST("page: one that is being written for ever is EBUSY, and the reader does not hang") {
		BAD("gen", gen = 1, EBUSY);
		reset();
		page.seq = 1;
		CHECK(snap_errno(&s) == EBUSY, "seq: errno %d", errno);
	}
#undef BAD
	TEST("page: success leaves errno alone") {
		reset();
		errno = 77;
		CHECK(!csf_page_snap(&page, sizeof(page), &s) && errno == 77, "errno is %d", errno);
	}
}

static bool stop;

/* What the module does at a switch, back to back: seq, then fields that are all of one round. */
static void *write_body(void *unused)
{
	uint64_t k;

	(void)unused;
	for (k = 1; !__atomic_load_n(&stop, __ATOMIC_RELAXED); k++) {
		__atomic_store_n(&page.seq, page.seq + 1, __ATOMIC_SEQ_CST);
		page.start_tsc = k;
		page.runq_cyc = k;
		page.sleep_cyc = 2 * k;
		page.dsleep_cyc = 3 * k;
		page.iowait_cyc = 4 * k;
		page.nr_block = k;
		page.write_bytes = k;
		__atomic_store_n(&page.seq, page.seq + 1, __ATOMIC_SEQ_CST);
		/* Room for a reader, but not always. */
		if (k % 3)
			csf_rdtsc();
	}
	return NULL;
}

static void *write_factors(void *unused)
{
	uint32_t k;

	(void)unused;
	for (k = 1; !__atomic_load_n(&stop, __ATOMIC_RELAXED); k++) {
		__atomic_store_n(&page.hdr.gen, page.hdr.gen + 1, __ATOMIC_SEQ_CST);
		page.hdr.freq_khz = k;
		page.hdr.mult = k;
		page.hdr.shift = k;
		__atomic_store_n(&page.hdr.gen, page.hdr.gen + 1, __ATOMIC_SEQ_CST);
		if (k % 3)
			csf_rdtsc();
	}
	return NULL;
}

static int torn_body(const struct csf_thread *p)
{
	const uint64_t k = p->start_tsc;

	return (p->seq & 1) || p->runq_cyc != k || p->sleep_cyc != 2 * k ||
	       p->dsleep_cyc != 3 * k || p->iowait_cyc != 4 * k || p->nr_block != k ||
	       p->write_bytes != k;
}

static int torn_factors(const struct csf_thread *p)
{
	return (p->hdr.gen & 1) || p->hdr.freq_khz != p->hdr.mult || p->hdr.mult != p->hdr.shift;
}

static void t_torn(void)
{
	static const struct {
		const char *name;
		void *(*writer)(void *);
		int (*torn)(const struct csf_thread *);
	} c[] = {
		{"the fields", write_body, torn_body},
		{"the factors", write_factors, torn_factors},
	};
	unsigned int i, j, torn, failed, changed;
	uint64_t last;
	struct csf_snap s;
	pthread_t t;

	for (i = 0; i < 2; i++)
		TEST("page: a thread rewrites %s while 200,000 snapshots are taken", c[i].name) {
			memset(&page, 0, sizeof(page));
			fake_hdr(&page.hdr, CSF_KIND_THREAD, sizeof(page));
			page.hdr.freq_khz = page.hdr.mult = page.hdr.shift = 0;
			torn = failed = changed = 0;
			last = 0;
			stop = false;
			if (pthread_create(&t, NULL, c[i].writer, NULL))
				fake_die("pthread_create");
			for (j = 0; j < 200000 || changed < 1000; j++) {
				if (csf_page_snap(&page, sizeof(page), &s)) {
					/* The writer lost its CPU in the middle: a kernel would not. */
					failed += errno != EBUSY;
					continue;
				}
				torn += c[i].torn(&s.p) != 0;
				changed += last != s.p.seq + (uint64_t)s.p.hdr.gen;
				last = s.p.seq + (uint64_t)s.p.hdr.gen;
			}
			__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
			pthread_join(t, NULL);
			CHECK(!torn, "%u torn snapshots of %u", torn, j);
			CHECK(!failed, "%u failed snapshots of %u", failed, j);
		}
}

static uint64_t seed = 88172645463325252u;

/* Any magnitude is equally likely. */
static uint64_t rnd_log(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> (seed * 0x9e3779b97f4a7c15u >> 58);
}

static void t_convert(void)
{
	struct csf_hdr h = {.mult = 0x80000000u, .shift = 32};
	long double want, got;
	unsigned int i, bad = 0;
	uint64_t cyc;

	TEST("cyc_to_ns: a hundred thousand values against long double") {
		for (i = 0; i < 100000; i++) {
			h.shift = (uint32_t)(rnd_log() & 63);
			h.mult = (uint32_t)rnd_log();
			cyc = rnd_log();
			want = (long double)cyc * h.mult /
			       (h.shift == 63 ? 0x1p63L : 1ull << h.shift);
			got = csf_cyc_to_ns_u64(&h, cyc);
			if (want > 0x1p64L - 1)
				bad += got != UINT64_MAX;
			else
				bad += got > want * (1 + 0x1p-62L) ||
				       got < want * (1 - 0x1p-62L) - 1;
		}
		CHECK(!bad, "%u are wrong", bad);
	}
	TEST("cyc_to_ns: years of a 3 GHz clock, exactly, and one that does not fit") {
		h.shift = 32; /* 1/3 ns a cycle */
		h.mult = 0x55555555;
		cyc = 3000000000ull * 86400 * 366 * 50;
		CHECK(csf_cyc_to_ns_u64(&h, cyc) == 1581119999631866812ull, "50 years are %lu ns",
		      csf_cyc_to_ns_u64(&h, cyc));
		CHECK(csf_cyc_to_ns(&h, cyc) == 1581119999631866812.0, "50 years are %f ns",
		      csf_cyc_to_ns(&h, cyc));
		h.shift = 0;
		CHECK(csf_cyc_to_ns_u64(&h, UINT64_MAX) == UINT64_MAX, "it wrapped");
	}
}

int main(void)
{
	t_states();
	t_clock();
	t_sizes();
	t_errors();
	t_torn();
	t_convert();
	return t_done("t_reader_page");
}
