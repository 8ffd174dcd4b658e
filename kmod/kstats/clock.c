// SPDX-License-Identifier: GPL-2.0
/* Which clock, and its factor. */
#include <linux/module.h>
#include <linux/seq_file.h>

#include "clock.h"

u64 kstats_mult __read_mostly = 1ULL << 32;
u64 kstats_quick __read_mostly = KSTATS_QUICK_NS;
DEFINE_STATIC_KEY_FALSE(kstats_tsc);

#ifdef CONFIG_X86
int kstats_clock_init(void)
{
	if (!boot_cpu_has(X86_FEATURE_TSC) || check_tsc_unstable() || !tsc_khz)
		return 0;
	kstats_mult = div_u64((u64)NSEC_PER_MSEC << 32, tsc_khz);
	kstats_quick = div64_u64((u64)KSTATS_QUICK_NS << 32, kstats_mult);
	static_branch_enable(&kstats_tsc);
	return 0;
}

bool kstats_clock_lost(void)
{
	return static_key_enabled(&kstats_tsc) && check_tsc_unstable();
}

void kstats_clock_show(struct seq_file *m)
{
	u32 ppb;

	if (!static_key_enabled(&kstats_tsc)) {
		seq_puts(m, "monotonic");
		return;
	}
	/* The kernel knows the frequency to the kHz. */
	ppb = DIV_ROUND_UP(500000000u, tsc_khz) + 1;
	seq_printf(m, "tsc %u kHz error %u.%03u ppm", tsc_khz, ppb / 1000, ppb % 1000);
}
#else
int kstats_clock_init(void)
{
	return 0;
}

bool kstats_clock_lost(void)
{
	return false;
}

void kstats_clock_show(struct seq_file *m)
{
	seq_puts(m, "monotonic");
}
#endif
