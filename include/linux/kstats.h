/* SPDX-License-Identifier: GPL-2.0 */
/*
 * In-kernel API of kstats: histograms of 64-bit samples that debugfs shows, one file each.
 *
 *	static struct kstats *lookup_ns;
 *
 *	lookup_ns = kstats_new("lookup_ns", 3);	// in your init; sleeps
 *	...
 *	u64 t = kstats_clock();
 *	...
 *	kstats_record_since(lookup_ns, t);	// any context
 *	...
 *	kstats_delete(lookup_ns);		// in your exit; sleeps
 *
 * In a tree that has kstats, CONFIG_KSTATS decides whether these are real. A module built out of tree
 * has no such option: it defines KSTATS_ENABLED before the include (or with -DKSTATS_ENABLED), and
 * names kstats' Module.symvers in KBUILD_EXTRA_SYMBOLS; then it needs kstats.ko to load. Otherwise all
 * of these are empty inlines and nothing is needed.
 */
#ifndef _LINUX_KSTATS_H
#define _LINUX_KSTATS_H

#include <linux/types.h>
#include <linux/kconfig.h>

struct kstats;

#if IS_ENABLED(CONFIG_KSTATS) || defined(KSTATS_ENABLED)

/**
 * kstats_new - create a histogram and its debugfs file
 * @name: the file's name: 1..63 bytes, unique; no '/', no leading '_', not "." or ".."
 * @frac_bits: each power of two is split into 2^frac_bits slots, 0..5
 *
 * May sleep. Returns NULL on failure, with the reason and the errno in the kernel log: -EINVAL (a bad
 * name or bits), -EEXIST (the name is taken), -ENOMEM. The histogram lives until kstats_delete().
 */
struct kstats *kstats_new(const char *name, u8 frac_bits);

/**
 * kstats_record - add a sample
 * @ks: from kstats_new(); NULL does nothing
 * @value: any u64; times are best given in nanoseconds
 *
 * Any context. In an NMI of a 32-bit kernel the sample is counted as missed instead.
 */
void kstats_record(struct kstats *ks, u64 value);

/**
 * kstats_clock - read the clock that kstats_record_since() takes
 *
 * Any context. Cycles of the TSC where that is usable, else nanoseconds; not to be interpreted.
 */
u64 kstats_clock(void);

/**
 * kstats_record_since - add the time since an earlier kstats_clock(), in nanoseconds
 * @ks: from kstats_new(); NULL does nothing
 * @start: what kstats_clock() gave, on any CPU
 *
 * Any context. A clock that ran back is counted as missed.
 */
void kstats_record_since(struct kstats *ks, u64 start);

/**
 * kstats_delete - remove a histogram and its file
 * @ks: from kstats_new(); NULL does nothing
 *
 * May sleep; waits for readers of the file. The caller has made sure that nobody records any more.
 */
void kstats_delete(struct kstats *ks);

#else

static inline struct kstats *kstats_new(const char *name, u8 frac_bits)
{
	return NULL;
}

static inline void kstats_record(struct kstats *ks, u64 value)
{
}

static inline u64 kstats_clock(void)
{
	return 0;
}

static inline void kstats_record_since(struct kstats *ks, u64 start)
{
}

static inline void kstats_delete(struct kstats *ks)
{
}

#endif

#endif /* _LINUX_KSTATS_H */
