// SPDX-License-Identifier: MIT
/* Log-linear histograms in user space: pure functions, see hist.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hist.h"
#include "uapi/kstats_bucket.h"

static uint64_t add_sat(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static uint64_t mul_sat(uint64_t a, uint64_t b)
{
	uint64_t r;

	return __builtin_mul_overflow(a, b, &r) ? UINT64_MAX : r;
}

size_t hist_size(unsigned int bits)
{
	if (bits > KSTATS_MAX_BITS)
		return 0;
	return sizeof(struct hist) + KSTATS_NR_SLOTS(bits) * sizeof(struct hist_slot);
}

int hist_init(struct hist *h, unsigned int bits)
{
	if (bits > KSTATS_MAX_BITS)
		return -EINVAL;
	*h = (struct hist){.bits = bits, .nr = KSTATS_NR_SLOTS(bits), .min = UINT64_MAX};
	memset(h->slot, 0, h->nr * sizeof(h->slot[0]));
	return 0;
}

struct hist *hist_new(unsigned int bits)
{
	size_t size = hist_size(bits);
	struct hist *h;

	if (!size) {
		errno = EINVAL;
		return NULL;
	}
	h = malloc(size);
	if (h)
		hist_init(h, bits);
	return h;
}

void hist_free(struct hist *h)
{
	free(h);
}

/* Slots that may hold samples: *first up to, not including, the result; most are far from all. */
static unsigned int used_slots(const struct hist *h, unsigned int *first)
{
	*first = h->count ? kstats_slot(h->min, h->bits) : 0;
	return h->count ? kstats_slot(h->max, h->bits) + 1 : 0;
}

void hist_reset(struct hist *h)
{
	unsigned int first, end = used_slots(h, &first);

	memset(&h->slot[first], 0, (end - first) * sizeof(h->slot[0]));
	h->count = 0;
	h->sum = 0;
	h->min = UINT64_MAX;
	h->max = 0;
}

/* Put samples into a slot and into the totals. */
static void put(struct hist *h, unsigned int slot, uint64_t count, uint64_t sum)
{
	h->slot[slot].count += count;
	h->slot[slot].sum = add_sat(h->slot[slot].sum, sum);
	h->count += count;
	h->sum = add_sat(h->sum, sum);
}

static void widen(struct hist *h, uint64_t min, uint64_t max)
{
	if (min < h->min)
		h->min = min;
	if (max > h->max)
		h->max = max;
}

void hist_record(struct hist *h, uint64_t value)
{
	put(h, kstats_slot(value, h->bits), 1, value);
	widen(h, value, value);
}

void hist_record_n(struct hist *h, uint64_t value, uint64_t n)
{
	if (!n)
		return;
	put(h, kstats_slot(value, h->bits), n, mul_sat(value, n));
	widen(h, value, value);
}

int hist_add_slot(struct hist *h, unsigned int slot, uint64_t count, uint64_t sum)
{
	uint64_t low, high;

	if (slot >= h->nr)
		return -EINVAL;
	if (!count)
		return 0;
	low = kstats_slot_low(slot, h->bits);
	high = kstats_slot_high(slot, h->bits);
	if (sum < mul_sat(low, count))
		sum = mul_sat(low, count);
	if (sum > mul_sat(high, count))
		sum = mul_sat(high, count);
	put(h, slot, count, sum);
	widen(h, low, high);
	return 0;
}

int hist_merge(struct hist *dst, const struct hist *src)
{
	unsigned int i, to, end = used_slots(src, &i);

	if (dst->bits > src->bits)
		return -EINVAL;
	for (; i < end; i++) {
		if (!src->slot[i].count)
			continue;
		to = kstats_slot(kstats_slot_low(i, src->bits), dst->bits);
		put(dst, to, src->slot[i].count, src->slot[i].sum);
	}
	if (src->count)
		widen(dst, src->min, src->max);
	return 0;
}

int hist_fold(struct hist *h, unsigned int bits)
{
	unsigned int i, to, nr = h->nr;
	struct hist_slot s;

	if (bits > h->bits)
		return -EINVAL;
	/* A slot never moves up, so going upwards nothing is overwritten before it is read. */
	for (i = 0; i < nr; i++) {
		s = h->slot[i];
		memset(&h->slot[i], 0, sizeof(s));
		to = kstats_slot(kstats_slot_low(i, h->bits), bits);
		h->slot[to].count += s.count;
		h->slot[to].sum = add_sat(h->slot[to].sum, s.sum);
	}
	h->bits = bits;
	h->nr = KSTATS_NR_SLOTS(bits);
	return 0;
}

/* What is left of a sum; a saturated one cannot be taken from. */
static uint64_t sub_sum(uint64_t now, uint64_t then)
{
	if (now == UINT64_MAX)
		return now;
	return now > then ? now - then : 0;
}

int hist_sub(struct hist *h, const struct hist *older)
{
	unsigned int i;

	if (h->bits != older->bits)
		return -EINVAL;
	for (i = 0; i < h->nr; i++)
		if (older->slot[i].count > h->slot[i].count)
			return -ERANGE;
	h->count -= older->count;
	h->sum = sub_sum(h->sum, older->sum);
	h->min = UINT64_MAX;
	h->max = 0;
	for (i = 0; i < h->nr; i++) {
		h->slot[i].count -= older->slot[i].count;
		/* A slot without samples is empty, even if its sum had saturated. */
		h->slot[i].sum = h->slot[i].count ? sub_sum(h->slot[i].sum, older->slot[i].sum) : 0;
		if (h->slot[i].count)
			widen(h, kstats_slot_low(i, h->bits), kstats_slot_high(i, h->bits));
	}
	return 0;
}

int hist_quantile(const struct hist *h, double q, struct hist_quantile *out)
{
	uint64_t rank, seen = 0;
	double want;
	unsigned int i, last;

	if (!(q >= 0 && q <= 1))
		return -EINVAL;
	if (!h->count)
		return -ENODATA;
	/* A double holds 53 bits: keep the product of a huge count inside what there is. */
	want = q * (double)h->count;
	rank = want >= (double)h->count ? h->count : (uint64_t)want;
	if (!rank || (double)rank < want)
		rank++;
	last = used_slots(h, &i) - 1;
	for (; i < last; i++) {
		seen += h->slot[i].count;
		if (seen >= rank)
			break;
	}
	out->low = kstats_slot_low(i, h->bits);
	out->high = kstats_slot_high(i, h->bits);
	if (out->low < h->min)
		out->low = h->min;
	if (out->high > h->max)
		out->high = h->max;
	out->value = out->low + (out->high - out->low) / 2;
	return 0;
}

uint64_t hist_mean(const struct hist *h)
{
	return h->count ? h->sum / h->count : 0;
}

uint64_t hist_slot_mean(const struct hist *h, unsigned int slot)
{
	return h->slot[slot].count ? h->slot[slot].sum / h->slot[slot].count : 0;
}
