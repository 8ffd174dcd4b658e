/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This test checks what a snapshot costs beside a bare rdtscp, on a made-up page: on any machine,
 * without the module. Both are timed in turns in one run, so that what disturbs one disturbs the
 * other. Where the clock counts instructions (tests/vm.sh bench_reader) the limit is exact.
 */
#include "t.h"
#include "unit/fake_page.h"

#define LIMIT_INSNS 60
#define LIMIT_RATIO 1.4
#define ROUNDS	    40000

static int by_size(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The mean of the middle half: some TSCs move in steps of 20 cycles, which a median would show. */
static double typical(uint64_t *v)
{
	uint64_t sum = 0;
	int i;

	qsort(v, ROUNDS, sizeof(v[0]), by_size);
	for (i = ROUNDS / 4; i < ROUNDS * 3 / 4; i++)
		sum += v[i];
	return (double)sum * 2 / ROUNDS;
}

/* Between two rdtscp lie one rdtscp's time, and that of what stands there. */
static void measure(double *bare_cyc, double *snap_cyc, double *gettime_cyc)
{
	static uint64_t bare[ROUNDS], snap[ROUNDS], gettime[ROUNDS];
	uint64_t t0, t1, t2, t3;
	struct timespec ts;
	struct csf_snap s;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		t0 = csf_rdtsc();
		t1 = csf_rdtsc();
		csf_thread_snap(&s);
		t2 = csf_rdtsc();
		clock_gettime(CLOCK_MONOTONIC, &ts);
		t3 = csf_rdtsc();
		bare[i] = t1 - t0;
		snap[i] = t2 - t1;
		gettime[i] = t3 - t2;
	}
	*bare_cyc = typical(bare);
	*snap_cyc = typical(snap) - *bare_cyc;
	*gettime_cyc = typical(gettime) - *bare_cyc;
}

int main(void)
{
	double bare, snap, gettime;
	struct csf_snap s;
	bool counts_insns;

	TEST("bench: csf_thread_snap beside rdtscp") {
		fake_mount();
		fake_thread_self(7);
		if (!CHECK(!csf_thread_snap(&s), "no snapshot: %s", strerror(errno)))
			break;
		measure(&bare, &snap, &gettime);
		counts_insns = bare < 6;
		printf("# the unit is %s\n",
		       counts_insns ? "an instruction" : "a cycle of the TSC");
		printf("# rdtscp                         %6.1f\n", bare);
		if (counts_insns)
			printf("# csf_thread_snap                %6.1f (limit %d)\n", snap,
			       LIMIT_INSNS);
		else
			printf("# csf_thread_snap                %6.1f, %.2f times rdtscp (aim: %.1f)\n",
			       snap, snap / bare, LIMIT_RATIO);
		printf("# clock_gettime(CLOCK_MONOTONIC) %6.1f, %.2f times rdtscp\n", gettime,
		       gettime / bare);
		CHECK(!counts_insns || snap <= LIMIT_INSNS, "%f instructions", snap);
	}
	fake_cleanup();
	return t_done("bench_reader");
}
