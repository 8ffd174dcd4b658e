// SPDX-License-Identifier: GPL-2.0
// This test checks that the quantiles of a row are what they say: so many calls took at most this.
#include <stdlib.h>

#include "lib/calls.h"
#include "tests/t.h"

static int cmp(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The call that q of n calls, in order, took at most; exactly. */
static uint64_t exact(const uint64_t *ns, size_t n, unsigned int permille)
{
	size_t rank = (n * permille + 999) / 1000;

	return ns[rank ? rank - 1 : 0];
}

static void check(const char *what, uint64_t got, uint64_t want, uint64_t max)
{
	CHECK(got >= want && got <= want + want / 8 && got <= max, "%s: %llu, exactly %llu", what,
	      (unsigned long long)got, (unsigned long long)want);
}

static void check_row(uint64_t *ns, size_t n)
{
	struct calls c = {0};
	struct rts_record r = {0};
	void *block;

	for (size_t i = 0; i < n; i++) {
		calls_enter(&c);
		calls_return(&c, &(struct sample){.abi = RTS_ABI_X86_64, .nr = 1, .ns = ns[i]});
	}
	qsort(ns, n, sizeof(*ns), cmp);
	if (CHECK(!calls_rows(&c, &r, &block) && r.nr_rows == 1, "no row")) {
		check("p50", r.rows[0].p50_ns, exact(ns, n, 500), ns[n - 1]);
		check("p90", r.rows[0].p90_ns, exact(ns, n, 900), ns[n - 1]);
		check("p99", r.rows[0].p99_ns, exact(ns, n, 990), ns[n - 1]);
		check("p999", r.rows[0].p999_ns, exact(ns, n, 999), ns[n - 1]);
		if (n < 100)
			CHECK(r.rows[0].p99_ns == ns[n - 1], "p99 of %zu is no max", n);
	}
	free(block);
	calls_free(&c);
}

int main(void)
{
	static uint64_t ns[5000];

	TEST("quantiles of 3 calls of nearly the same time") {
		memcpy(ns, (uint64_t[]){268500000, 287200000, 270100000}, 3 * sizeof(*ns));
		check_row(ns, 3);
	}
	TEST("quantiles of 1 to 5000 calls of all lengths") {
		for (size_t n = 1; n <= sizeof(ns) / sizeof(*ns); n = n * 3 / 2 + 1) {
			for (size_t i = 0; i < n; i++)
				ns[i] = (uint64_t)random() >> random() % 31;
			check_row(ns, n);
		}
	}
	return t_done("t_calls");
}
