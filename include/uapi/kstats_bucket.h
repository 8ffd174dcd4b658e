/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The one definition of value <-> slot of a log-linear histogram. kbuild, a user-space C11 or C++17
 * compiler and clang -target bpf compile this same file; a test compares what the three make of it.
 *
 * Each power of two is split into 2^bits slots of equal width, 0 <= bits <= KSTATS_MAX_BITS; a value
 * below 2^bits has a slot of its own. Every u64 has a slot. A slot of fewer bits is a union of slots
 * of more bits, so a finer histogram folds exactly into a coarser one.
 *
 * Pure functions of their arguments: no state, no calls, any context. bits beyond KSTATS_MAX_BITS and
 * slots beyond KSTATS_NR_SLOTS(bits) are the caller's mistake and are not checked.
 */
#ifndef _UAPI_KSTATS_BUCKET_H
#define _UAPI_KSTATS_BUCKET_H

#include <linux/types.h>
#ifdef __KERNEL__
#include <linux/bitops.h>
#endif

#define KSTATS_MAX_BITS 5
/* Slots of a histogram: 65 with 0 bits, 496 with 3, 1,920 with 5. */
#define KSTATS_NR_SLOTS(bits) ((65u - (bits)) << (bits))

/* Index of the highest set bit; v is not 0. */
static inline __u32 kstats_msb(__u64 v)
{
#if defined(__KERNEL__) && BITS_PER_LONG == 64
	return (__u32)__fls(v);
#elif defined(__KERNEL__)
	return (__u32)fls64(v) - 1;
#elif defined(__bpf__)
	/* clang 14 crashes on __builtin_clzll here. */
	__u32 n = 0;

	if (v >> 32) {
		n += 32;
		v >>= 32;
	}
	if (v >> 16) {
		n += 16;
		v >>= 16;
	}
	if (v >> 8) {
		n += 8;
		v >>= 8;
	}
	if (v >> 4) {
		n += 4;
		v >>= 4;
	}
	if (v >> 2) {
		n += 2;
		v >>= 2;
	}
	return n + (__u32)(v >> 1);
#else
	return 63u - (__u32)__builtin_clzll(v);
#endif
}

/*
 * The exponent of the width of v's slot, which is 2^exp wide. A value below 2^(bits + 1) has a slot
 * of its own: 0.
 */
static inline __u32 kstats_exp(__u64 v, __u32 bits)
{
	return kstats_msb(v | ((__u64)1 << bits)) - bits;
}

/* The slot of v, given its exponent: what is left of v above the slot's width, and exp runs before it. */
static inline __u32 kstats_slot_at(__u64 v, __u32 bits, __u32 exp)
{
	return (__u32)(v >> exp) + (exp << bits);
}

/* The slot of v: 0 .. KSTATS_NR_SLOTS(bits) - 1. */
static inline __u32 kstats_slot(__u64 v, __u32 bits)
{
	return kstats_slot_at(v, bits, kstats_exp(v, bits));
}

/* The exponent of a slot's width. */
static inline __u32 kstats_slot_exp(__u32 slot, __u32 bits)
{
	__u32 run = slot >> bits;

	return run ? run - 1 : 0;
}

/* The number of values that share a slot. */
static inline __u64 kstats_slot_width(__u32 slot, __u32 bits)
{
	return (__u64)1 << kstats_slot_exp(slot, bits);
}

/* The least value of a slot. */
static inline __u64 kstats_slot_low(__u32 slot, __u32 bits)
{
	__u32 exp = kstats_slot_exp(slot, bits);

	return (__u64)(slot - (exp << bits)) << exp;
}

/* The greatest value of a slot. */
static inline __u64 kstats_slot_high(__u32 slot, __u32 bits)
{
	return kstats_slot_low(slot, bits) + (kstats_slot_width(slot, bits) - 1);
}

#endif /* _UAPI_KSTATS_BUCKET_H */
