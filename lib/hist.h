/* SPDX-License-Identifier: MIT */
/*
 * A log-linear histogram of u64 samples in one flat block of memory (no pointers inside, so it may lie
 * in shared memory or in a file). Slots are those of kstats_bucket.h.
 *
 * Counts are 64 bits wide and are taken not to overflow. Sums saturate at UINT64_MAX: a sum of exactly
 * UINT64_MAX means "at least". No function does I/O or keeps state; hist_new() is the only one that
 * allocates. A histogram is not locked: one writer at a time, and readers that read it while it is
 * written may see a sample's count without its sum. Writers on several threads each take a histogram
 * of their own and hist_merge() them.
 *
 * Functions that can fail return 0 or -errno, and leave their operands as they were when they fail.
 */
#ifndef HIST_H
#define HIST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hist_slot {
	uint64_t count; /* samples */
	uint64_t sum;	/* of their values; saturates */
};

struct hist {
	uint32_t bits;	/* 0 .. KSTATS_MAX_BITS */
	uint32_t nr;	/* elements of slot[] */
	uint64_t count; /* samples in all slots */
	uint64_t sum;	/* of all samples; saturates */
	uint64_t min;	/* no sample is below; UINT64_MAX when there is none */
	uint64_t max;	/* no sample is above; 0 when there is none */
	struct hist_slot slot[];
};

/* A quantile: the sample asked for lies in low .. high, and value is the best guess. */
struct hist_quantile {
	uint64_t value;
	uint64_t low;
	uint64_t high;
};

/* Bytes of a histogram with this many bits; 0 when bits is out of range. */
size_t hist_size(unsigned int bits);

/* Make an empty histogram of hist_size(bits) bytes of the caller's. -EINVAL: bits out of range. */
int hist_init(struct hist *h, unsigned int bits);

/* Allocate one; NULL with errno EINVAL or ENOMEM. The caller frees it with hist_free(); NULL is fine. */
struct hist *hist_new(unsigned int bits);
void hist_free(struct hist *h);

/* Forget all samples. */
void hist_reset(struct hist *h);

/* Add one sample, or n equal ones. Never allocates, never fails. */
void hist_record(struct hist *h, uint64_t value);
void hist_record_n(struct hist *h, uint64_t value, uint64_t n);

/*
 * Add count samples that somebody else has put into a slot, with their sum; where the sum is not that
 * of count values of this slot it is moved to the nearest one that is. min and max are widened to the
 * slot's bounds, as nothing better is known. -EINVAL: no such slot.
 */
int hist_add_slot(struct hist *h, unsigned int slot, uint64_t count, uint64_t sum);

/* Add src's samples to dst. dst may have fewer bits than src (exact), not more: -EINVAL. */
int hist_merge(struct hist *dst, const struct hist *src);

/* Go down to fewer bits in place, exactly. -EINVAL: more bits than it has. */
int hist_fold(struct hist *h, unsigned int bits);

/*
 * Take an older reading of the same histogram away, which leaves the samples in between. -EINVAL: not
 * the same bits; -ERANGE: older has samples that h has not, so h was reset since. A sum that had
 * saturated stays so. min and max become the bounds of the slots that are left.
 */
int hist_sub(struct hist *h, const struct hist *older);

/*
 * The q quantile, 0 <= q <= 1: the smallest sample that has at least q of all samples at or below it.
 * It is known to within its slot: a width of at most 1/2^bits of its value. -EINVAL: q is not in
 * 0..1 (a NaN neither); -ENODATA: the histogram is empty.
 */
int hist_quantile(const struct hist *h, double q, struct hist_quantile *out);

/* Average of all samples rounded down, or of a slot's; 0 when there are none. */
uint64_t hist_mean(const struct hist *h);
uint64_t hist_slot_mean(const struct hist *h, unsigned int slot);

#ifdef __cplusplus
}
#endif

#endif /* HIST_H */
