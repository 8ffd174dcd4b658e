/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the benchmarks share: a clock, and rows of docs/cost.md. In a guest whose TSC advances one tick an
 * instruction (vm=icount) the difference of two rdtscp is an exact count, kernel code included, and limits are
 * checked; elsewhere the same is told in ns, and nothing is checked but that there is something.
 *
 * A row is a line `cost: KERNEL | GROUP | WHAT | NUMBER | LIMIT`, which scripts/cost.py reads. KERNEL is the
 * release, or `native` where the unit is ns; NUMBER is - where this kernel lacks it.
 */
#ifndef T_COST_H
#define T_COST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>

#include "t.h"

/* Groups that several of them have rows of. */
#define COST_READ   "reading thread time"
#define COST_SWITCH "a context switch"

static struct {
	bool exact;	  /* a tick is an instruction */
	uint64_t clock;	  /* ticks between two readings */
	double tick_unit; /* ns, or instructions, a tick */
	char kernel[65];
} cost_;

static inline uint64_t cost_clock(void)
{
	uint32_t aux;
	uint64_t lo, hi;

	__asm__ __volatile__("rdtscp" : "=a"(lo), "=d"(hi), "=c"(aux) : : "memory");
	return hi << 32 | lo;
}

static inline int cost_cmp(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* A tick or another interrupt is in one round of thousands. */
static inline uint64_t cost_median(uint64_t *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), cost_cmp);
	return v[n / 2];
}

/* Ticks of one of so many statements, without the two readings of the clock around them. */
#define COST_ROUNDS 2001
#define COST_OF(calls, stmt)                                   \
	({                                                     \
		static uint64_t v_[COST_ROUNDS];               \
		uint64_t t_;                                   \
		for (int i_ = 0; i_ < COST_ROUNDS; i_++) {     \
			t_ = cost_clock();                     \
			for (int j_ = 0; j_ < (calls); j_++) { \
				stmt;                          \
			}                                      \
			v_[i_] = cost_clock() - t_;            \
		}                                              \
		t_ = cost_median(v_, COST_ROUNDS);             \
		(double)(t_ - cost_.clock) / (calls);          \
	})
/* The TSC of some machines moves in steps of many ticks: several are timed together there. */
#define COST(stmt) (cost_.exact ? COST_OF(1, stmt) : COST_OF(10, stmt))

static inline uint64_t cost_mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Before all else. Two readings differ by the same small number, always, only where instructions are counted. */
static inline void cost_begin(void)
{
	uint64_t least = UINT64_MAX, most = 0, ns, t;
	struct utsname u;

	cost_.clock = (uint64_t)COST_OF(1, );
	for (int i = 0; i < 100; i++) {
		t = cost_clock();
		t = cost_clock() - t;
		least = t < least ? t : least;
		most = t > most ? t : most;
	}
	cost_.exact = most < 10 && least == most;
	cost_.tick_unit = 1;
	strcpy(cost_.kernel, "native");
	if (cost_.exact) {
		uname(&u);
		snprintf(cost_.kernel, sizeof(cost_.kernel), "%s", u.release);
		return;
	}
	ns = cost_mono_ns();
	t = cost_clock();
	while (cost_mono_ns() - ns < 20000000)
		;
	cost_.tick_unit = (double)(cost_mono_ns() - ns) / (double)(cost_clock() - t);
}

/* In a TEST. limit: instructions, 0 for none. */
static inline void cost_row(const char *group, const char *what, double ticks, unsigned int limit)
{
	printf("cost: %s | %s | %s | %.0f | ", cost_.kernel, group, what, ticks * cost_.tick_unit);
	if (limit && cost_.exact)
		printf("%u", limit);
	printf("\n");
	CHECK(ticks > 0 && ticks < 1e12, "%s: no cost", what);
	CHECK(!cost_.exact || !limit || ticks <= limit, "%s: %.0f instructions, at most %u", what,
	      ticks, limit);
}

/* What this kernel does not have. */
static inline void cost_none(const char *group, const char *what)
{
	printf("cost: %s | %s | %s | - | \n", cost_.kernel, group, what);
}

#endif /* T_COST_H */
