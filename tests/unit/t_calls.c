// SPDX-License-Identifier: GPL-2.0
// This test checks that a row has every call, told one by one or in sums, and that its quantiles are what
// they say: so many calls took at most this.
#include <stdlib.h>

#include "lib/calls.h"
#include "tests/t.h"
#include "uapi/kstats_bucket.h"

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

/* Each call by itself, half of it on CPU, each tenth failed. */
static void one_by_one(struct calls *c, const uint64_t *ns, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		calls_enter(c);
		calls_return(c, &(struct sample){.abi = RTS_ABI_X86_64,
						 .nr = 1,
						 .err = i % 10 ? 0 : 5,
						 .ns = ns[i],
						 .has_split = true,
						 .on_cpu_ns = ns[i] / 2});
	}
}

/* The same calls, in sums of at most 7. */
static void summed_up(struct calls *c, const uint64_t *ns, size_t n)
{
	for (size_t i = 0; i < n;) {
		uint64_t slots[KSTATS_NR_SLOTS(CALLS_HIST_BITS)] = {0};
		struct rts_errcount err = {5, 0};
		struct call_sum s = {.abi = RTS_ABI_X86_64,
				     .nr = 1,
				     .min_ns = UINT64_MAX,
				     .errs = &err,
				     .slots = slots,
				     .nr_slots = sizeof(slots) / sizeof(*slots)};

		for (; s.count < 7 && i < n; i++, s.count++) {
			calls_enter(c);
			err.count += i % 10 == 0;
			s.total_ns += ns[i];
			s.min_ns = ns[i] < s.min_ns ? ns[i] : s.min_ns;
			s.max_ns = ns[i] > s.max_ns ? ns[i] : s.max_ns;
			s.waiting_ns += ns[i] - ns[i] / 2;
			slots[kstats_slot(ns[i], CALLS_HIST_BITS)]++;
		}
		s.errors = err.count;
		s.nr_errs = err.count != 0;
		s.split_count = s.count;
		calls_add(c, &s);
	}
}

/* Counts and times, exactly; ns is sorted. */
static void check_sums(const struct rts_row *row, const struct rts_ledger *lost, const uint64_t *ns,
		       size_t n)
{
	uint64_t total = 0, on_cpu = 0, failed = (n + 9) / 10;

	for (size_t i = 0; i < n; i++) {
		total += ns[i];
		on_cpu += ns[i] / 2;
	}
	CHECK(lost->attempted == n && lost->recorded == n, "attempted %llu, recorded %llu of %zu",
	      (unsigned long long)lost->attempted, (unsigned long long)lost->recorded, n);
	CHECK(row->count == n && row->total_ns == total, "%llu calls, %llu ns, not %zu, %llu",
	      (unsigned long long)row->count, (unsigned long long)row->total_ns, n,
	      (unsigned long long)total);
	CHECK(row->min_ns == ns[0] && row->max_ns == ns[n - 1], "%llu..%llu",
	      (unsigned long long)row->min_ns, (unsigned long long)row->max_ns);
	CHECK(row->has_split && row->on_cpu_ns == on_cpu && row->waiting_ns == total - on_cpu,
	      "on CPU %llu, waiting %llu, not %llu of %llu", (unsigned long long)row->on_cpu_ns,
	      (unsigned long long)row->waiting_ns, (unsigned long long)on_cpu,
	      (unsigned long long)total);
	CHECK(row->errors == failed && row->nr_errs == 1 && row->errs[0].err == 5 &&
		      row->errs[0].count == failed,
	      "%llu errors, not %llu", (unsigned long long)row->errors, (unsigned long long)failed);
}

static void check_row(void (*record)(struct calls *c, const uint64_t *ns, size_t n), uint64_t *ns,
		      size_t n)
{
	struct calls c = {0};
	struct rts_record r = {0};
	void *block;

	record(&c, ns, n);
	qsort(ns, n, sizeof(*ns), cmp);
	if (CHECK(!calls_rows(&c, &r, &block) && r.nr_rows == 1, "no row")) {
		check("p50", r.rows[0].p50_ns, exact(ns, n, 500), ns[n - 1]);
		check("p90", r.rows[0].p90_ns, exact(ns, n, 900), ns[n - 1]);
		check("p99", r.rows[0].p99_ns, exact(ns, n, 990), ns[n - 1]);
		check("p999", r.rows[0].p999_ns, exact(ns, n, 999), ns[n - 1]);
		check_sums(&r.rows[0], &r.lost, ns, n);
		if (n < 100)
			CHECK(r.rows[0].p99_ns == ns[n - 1], "p99 of %zu is no max", n);
	}
	free(block);
	calls_free(&c);
}

int main(void)
{
	static const struct {
		const char *how;
		void (*record)(struct calls *c, const uint64_t *ns, size_t n);
	} ways[] = {{"one by one", one_by_one}, {"in sums", summed_up}};
	static uint64_t ns[5000];

	for (size_t w = 0; w < 2; w++) {
		TEST("%s: 3 calls of nearly the same time", ways[w].how) {
			memcpy(ns, (uint64_t[]){268500000, 287200000, 270100000}, 3 * sizeof(*ns));
			check_row(ways[w].record, ns, 3);
		}
		TEST("%s: 1 to 5000 calls of all lengths", ways[w].how) {
			for (size_t n = 1; n <= sizeof(ns) / sizeof(*ns); n = n * 3 / 2 + 1) {
				for (size_t i = 0; i < n; i++)
					ns[i] = (uint64_t)random() >> random() % 31;
				check_row(ways[w].record, ns, n);
			}
		}
	}
	return t_done("t_calls");
}
