/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This test checks that the user-space histogram records, merges, folds, subtracts and answers
 * quantiles as hist.h says, at the ends of u64 too.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tests/t.h"
#include "lib/hist.h"
#include "uapi/kstats_bucket.h"

static uint64_t seed = 88172645463325252u;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Any magnitude is equally likely. */
static uint64_t rnd_log(void)
{
	uint64_t v = rnd();

	return v >> (rnd() & 63);
}

static int same(const struct hist *a, const struct hist *b)
{
	return a->bits == b->bits && a->count == b->count && a->sum == b->sum &&
	       !memcmp(a->slot, b->slot, a->nr * sizeof(a->slot[0]));
}

static void t_slots(void)
{
	static const struct {
		uint64_t v;
		unsigned int slot;
	} known[] = {{0, 0},	  {7, 7},	  {12, 12},	  {480, 55},
		     {20130, 97}, {1061896, 144}, {1313664, 146}, {UINT64_MAX, 495}};
	unsigned int i, bits, bad = 0;
	uint64_t next;

	TEST("slots: the values of the format's description have their slots") {
		for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			CHECK(kstats_slot(known[i].v, 3) == known[i].slot, "%llu is in slot %u",
			      (unsigned long long)known[i].v, kstats_slot(known[i].v, 3));
	}
	TEST("slots: they cover all of u64 without a gap or an overlap, 0..5 bits") {
		for (bits = 0; bits <= KSTATS_MAX_BITS; bits++) {
			for (next = 0, i = 0; i < KSTATS_NR_SLOTS(bits); i++) {
				bad += kstats_slot_low(i, bits) != next;
				bad += kstats_slot(kstats_slot_low(i, bits), bits) != i;
				bad += kstats_slot(kstats_slot_high(i, bits), bits) != i;
				next = kstats_slot_high(i, bits) + 1;
			}
			CHECK(next == 0, "%u bits end at %llu", bits, (unsigned long long)next);
		}
		CHECK(!bad, "%u bounds are wrong", bad);
	}
}

static bool all_clear(const struct hist *h)
{
	for (unsigned int i = 0; i < h->nr; i++)
		if (h->slot[i].count || h->slot[i].sum)
			return false;
	return true;
}

static void t_record(void)
{
	struct hist *h = hist_new(3);

	TEST("record: counts, sums and bounds at the ends of u64") {
		hist_record(h, 0);
		hist_record(h, UINT64_MAX);
		hist_record_n(h, 480, 5);
		hist_record_n(h, 7, 0);
		CHECK(h->count == 7, "count %llu", (unsigned long long)h->count);
		CHECK(h->slot[0].count == 1 && h->slot[0].sum == 0, "slot 0");
		CHECK(h->slot[55].count == 5 && h->slot[55].sum == 2400, "slot 55");
		CHECK(h->slot[495].count == 1 && h->slot[495].sum == UINT64_MAX, "slot 495");
		CHECK(h->min == 0 && h->max == UINT64_MAX, "bounds");
		CHECK(h->slot[7].count == 0, "n = 0 left a sample");
	}
	TEST("record: sums saturate, counts go on") {
		hist_record(h, UINT64_MAX);
		CHECK(h->sum == UINT64_MAX && h->slot[495].sum == UINT64_MAX, "wrapped");
		CHECK(h->slot[495].count == 2, "count");
		hist_record_n(h, UINT64_MAX / 2, 3);
		CHECK(h->sum == UINT64_MAX, "wrapped");
	}
	TEST("reset: nothing is left") {
		hist_reset(h);
		CHECK(!h->count && !h->sum && h->min == UINT64_MAX && !h->max, "totals");
		CHECK(all_clear(h), "slots");
		CHECK(hist_mean(h) == 0 && hist_slot_mean(h, 55) == 0, "mean of nothing");
	}
	TEST("new: bits out of range are refused") {
		errno = 0;
		CHECK(!hist_new(6) && errno == EINVAL, "6 bits: errno %d", errno);
		CHECK(hist_size(6) == 0 && hist_init(h, 6) == -EINVAL, "6 bits");
		CHECK(hist_size(5) == sizeof(*h) + 1920 * 16, "size %zu", hist_size(5));
	}
	hist_free(h);
	hist_free(NULL);
}

static void t_merge(void)
{
	struct hist *fine = hist_new(5), *coarse, *merged;
	unsigned int bits, i;
	uint64_t v;

	TEST("merge and fold: a finer histogram becomes exactly the coarser one") {
		for (bits = 0; bits <= KSTATS_MAX_BITS; bits++) {
			coarse = hist_new(bits);
			merged = hist_new(bits);
			hist_init(fine, 5);
			for (i = 0; i < 20000; i++) {
				v = rnd_log() >> 20;
				hist_record(fine, v);
				hist_record(coarse, v);
			}
			CHECK(!hist_merge(merged, fine), "merge to %u bits", bits);
			CHECK(same(merged, coarse), "merged to %u bits", bits);
			CHECK(merged->min == coarse->min && merged->max == coarse->max, "bounds");
			CHECK(!hist_fold(fine, bits) && same(fine, coarse), "folded to %u", bits);
			hist_free(coarse);
			hist_free(merged);
		}
	}
	hist_init(fine, 5);
	coarse = hist_new(3);
	TEST("merge and fold: to more bits is refused, and nothing changes") {
		hist_record(coarse, 1000);
		CHECK(hist_merge(fine, coarse) == -EINVAL && fine->count == 0, "merge");
		CHECK(hist_fold(coarse, 4) == -EINVAL && coarse->bits == 3, "fold");
	}
	TEST("add_slot: a sum that the slot cannot have is moved into its bounds") {
		hist_reset(coarse);
		CHECK(!hist_add_slot(coarse, 55, 10, 4805), "add");
		CHECK(coarse->slot[55].sum == 4805 && coarse->count == 10, "plain");
		CHECK(!hist_add_slot(coarse, 12, 10, 5), "add");
		CHECK(coarse->slot[12].sum == 120, "low %llu",
		      (unsigned long long)coarse->slot[12].sum);
		CHECK(!hist_add_slot(coarse, 11, 2, 500), "add");
		CHECK(coarse->slot[11].sum == 22, "high");
		CHECK(coarse->min == 11 && coarse->max == 511, "bounds %llu %llu",
		      (unsigned long long)coarse->min, (unsigned long long)coarse->max);
		CHECK(hist_add_slot(coarse, 496, 1, 0) == -EINVAL, "slot 496");
	}
	hist_free(coarse);
	hist_free(fine);
}

static void t_sub(void)
{
	struct hist *h = hist_new(4), *then = hist_new(4), *diff = hist_new(4), *odd = hist_new(3);
	unsigned int i;
	uint64_t v;

	TEST("subtract: what is left is what came in between") {
		for (i = 0; i < 1000; i++)
			hist_record(h, rnd_log() >> 16);
		hist_merge(then, h);
		for (i = 0; i < 1000; i++) {
			v = rnd_log() >> 16;
			hist_record(h, v);
			hist_record(diff, v);
		}
		CHECK(!hist_sub(h, then) && same(h, diff), "difference");
		CHECK(h->min <= diff->min && h->max >= diff->max, "bounds");
	}
	TEST("subtract: a histogram that was reset is found, and nothing changes") {
		hist_reset(h);
		hist_record(h, 3);
		CHECK(hist_sub(h, then) == -ERANGE && h->count == 1, "reset");
		CHECK(hist_sub(h, odd) == -EINVAL, "other bits");
	}
	TEST("subtract: a saturated sum stays saturated") {
		hist_reset(h);
		hist_reset(then);
		hist_record_n(h, UINT64_MAX, 3);
		hist_record_n(then, UINT64_MAX, 1);
		CHECK(!hist_sub(h, then) && h->count == 2 && h->sum == UINT64_MAX, "sum");
	}
	TEST("subtract: what is left can be reset") {
		hist_record(h, 1);
		hist_record_n(then, UINT64_MAX, 1);
		CHECK(!hist_sub(h, then) && h->count == 1, "the 1 is left");
		hist_reset(h);
		CHECK(all_clear(h), "slots");
	}
	hist_free(h);
	hist_free(then);
	hist_free(diff);
	hist_free(odd);
}

static int cmp(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void t_quantile(void)
{
	static const double qs[] = {0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1};
	static uint64_t v[9999];
	const unsigned int n = sizeof(v) / sizeof(v[0]);
	struct hist *h = hist_new(3);
	struct hist_quantile q;
	unsigned int i, rank;

	TEST("quantile: the true sample lies within the bounds, and they are a slot wide") {
		for (i = 0; i < n; i++) {
			v[i] = rnd_log();
			hist_record(h, v[i]);
		}
		qsort(v, n, sizeof(v[0]), cmp);
		for (i = 0; i < sizeof(qs) / sizeof(qs[0]); i++) {
			rank = (unsigned int)ceil(qs[i] * n);
			CHECK(!hist_quantile(h, qs[i], &q), "%g", qs[i]);
			CHECK(q.low <= v[rank ? rank - 1 : 0] && v[rank ? rank - 1 : 0] <= q.high,
			      "%g is not in its bounds", qs[i]);
			CHECK(q.low <= q.value && q.value <= q.high, "%g: value", qs[i]);
			CHECK(q.high - q.low <= q.low / 8, "%g is too wide", qs[i]);
		}
	}
	TEST("quantile: of one value, of the last slot only, of nothing, and wrong ones") {
		hist_reset(h);
		CHECK(hist_quantile(h, 0.5, &q) == -ENODATA, "empty");
		hist_record(h, 1234567);
		CHECK(!hist_quantile(h, 0.5, &q) && q.low == 1234567 && q.high == 1234567, "one");
		hist_reset(h);
		hist_record_n(h, UINT64_MAX, UINT64_MAX);
		CHECK(!hist_quantile(h, 1, &q) && q.high == UINT64_MAX, "last slot");
		CHECK(!hist_quantile(h, 0, &q) && q.low == UINT64_MAX, "last slot, first sample");
		CHECK(hist_quantile(h, -0.1, &q) == -EINVAL, "-0.1");
		CHECK(hist_quantile(h, 1.1, &q) == -EINVAL, "1.1");
		CHECK(hist_quantile(h, (double)NAN, &q) == -EINVAL, "nan");
	}
	hist_free(h);
}

static void *hammer(void *arg)
{
	struct hist *h = arg;
	unsigned int i;

	for (i = 0; i < 10000000; i++)
		hist_record(h, i);
	return NULL;
}

static void t_threads(void)
{
	struct hist *a = hist_new(2), *b = hist_new(2);
	pthread_t t;

	TEST("merge: two threads with 10 million samples each come out exactly") {
		if (!CHECK(!pthread_create(&t, NULL, hammer, a), "no thread"))
			break;
		hammer(b);
		pthread_join(t, NULL);
		CHECK(!hist_merge(a, b), "merge");
		CHECK(a->count == 20000000, "count %llu", (unsigned long long)a->count);
		CHECK(a->sum == 2 * 49999995000000u, "sum %llu", (unsigned long long)a->sum);
		CHECK(hist_mean(a) == 4999999, "mean");
	}
	hist_free(a);
	hist_free(b);
}

int main(void)
{
	t_slots();
	t_record();
	t_merge();
	t_sub();
	t_quantile();
	t_threads();
	return t_done("t_hist");
}
