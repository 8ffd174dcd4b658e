// SPDX-License-Identifier: GPL-2.0
/* Annotated code built without kstats: it must compile to nothing, and load where kstats is not. */
#include <linux/module.h>
#include <linux/kstats.h>

static struct kstats *ks;

static int __init off_init(void)
{
	ks = kstats_new("off", 3);
	kstats_record(ks, 1);
	kstats_record_since(ks, kstats_clock());
	return ks ? -EINVAL : 0;
}

static void __exit off_exit(void)
{
	kstats_delete(ks);
}

module_init(off_init);
module_exit(off_exit);
MODULE_DESCRIPTION("Annotated, and built without kstats");
MODULE_LICENSE("GPL");
