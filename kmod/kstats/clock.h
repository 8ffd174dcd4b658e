/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The clock: the TSC where the kernel trusts it, else ktime_get_mono_fast_ns(), which is notrace and
 * may be read in any context. A difference becomes nanoseconds by one multiplication.
 */
#ifndef KSTATS_CLOCK_H
#define KSTATS_CLOCK_H

#include <linux/jump_label.h>
#include <linux/math64.h>
#include <linux/timekeeping.h>
#ifdef CONFIG_X86
#include <asm/msr.h>
#include <asm/tsc.h>
#endif

/* ns = cycles * kstats_mult >> 32 */
extern u64 kstats_mult;
/* Differences below this are certainly fewer ns than KSTATS_QUICK_NS. */
extern u64 kstats_quick;
#define KSTATS_QUICK_NS (1 << 28)
DECLARE_STATIC_KEY_FALSE(kstats_tsc);

int kstats_clock_init(void);
/* True once a TSC in use has been marked unstable. */
bool kstats_clock_lost(void);
struct seq_file;
void kstats_clock_show(struct seq_file *m);

static __always_inline u64 kstats_now(void)
{
#ifdef CONFIG_X86
	if (static_branch_likely(&kstats_tsc))
		return rdtsc_ordered();
#endif
	return ktime_get_mono_fast_ns();
}

static __always_inline u64 kstats_to_ns(u64 delta)
{
	return mul_u64_u64_shr(delta, kstats_mult, 32);
}

#endif /* KSTATS_CLOCK_H */
