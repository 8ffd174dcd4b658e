// SPDX-License-Identifier: GPL-2.0
/* Test module: makes the kernel give up on the TSC, for good, as its watchdog does on broken hardware. */
#include <linux/module.h>
#include <asm/tsc.h>

static int __init csf_tsc_init(void)
{
	mark_tsc_unstable("a test");
	return 0;
}

static void __exit csf_tsc_exit(void)
{
}

module_init(csf_tsc_init);
module_exit(csf_tsc_exit);
MODULE_DESCRIPTION("Marks the TSC unstable");
MODULE_LICENSE("GPL");
