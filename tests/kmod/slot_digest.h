/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One number that tells whether two compilers agree on value <-> slot: a digest of the slots, and of
 * their bounds, over every power of two, plus and minus one, and n random values of any magnitude.
 * Compiled by kbuild, gcc and clang -target bpf, like kstats_bucket.h itself.
 */
#ifndef SLOT_DIGEST_H
#define SLOT_DIGEST_H

#include "uapi/kstats_bucket.h"

struct slot_digest {
	__u64 hash, seed;
	__u32 bits;
};

static inline void slot_digest_add(struct slot_digest *d, __u64 v)
{
	__u32 slot = kstats_slot(v, d->bits);

	d->hash = (d->hash ^ slot) * 0x100000001b3;
	d->hash = (d->hash ^ kstats_slot_low(slot, d->bits)) * 0x100000001b3;
	d->hash = (d->hash ^ kstats_slot_high(slot, d->bits)) * 0x100000001b3;
}

/* The powers of two and their neighbours are SLOT_DIGEST_POWERS values; one a call, for the verifier. */
#define SLOT_DIGEST_POWERS (64 * 3)
static inline void slot_digest_power(struct slot_digest *d, __u32 i)
{
	slot_digest_add(d, ((__u64)1 << ((i / 3) & 63)) + i % 3 - 1);
}

/* xorshift; the low bits choose the magnitude. */
static inline void slot_digest_random(struct slot_digest *d)
{
	d->seed ^= d->seed << 13;
	d->seed ^= d->seed >> 7;
	d->seed ^= d->seed << 17;
	slot_digest_add(d, d->seed >> (d->seed & 63));
}

static inline void slot_digest_init(struct slot_digest *d, __u32 bits)
{
	d->hash = 0xcbf29ce484222325;
	d->seed = 88172645463325252u;
	d->bits = bits;
}

#ifndef __bpf__ /* whose verifier wants bpf_loop() */
static inline __u64 slot_digest(__u32 bits, __u32 n)
{
	struct slot_digest d;
	__u32 i;

	slot_digest_init(&d, bits);
	for (i = 0; i < SLOT_DIGEST_POWERS; i++)
		slot_digest_power(&d, i);
	for (i = 0; i < n; i++)
		slot_digest_random(&d);
	return d.hash;
}
#endif

#endif /* SLOT_DIGEST_H */
