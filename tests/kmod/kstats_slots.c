// SPDX-License-Identifier: GPL-2.0
/* What kbuild's compiler makes of value <-> slot, in the parameter `digest`: a number for each of 0..5 bits. */
#include <linux/module.h>

#include "slot_digest.h"

static unsigned int values = 1000000;
module_param(values, uint, 0444);
static char digest[128];
module_param_string(digest, digest, sizeof(digest), 0444);

static int __init slots_init(void)
{
	int bits, at = 0;

	for (bits = 0; bits <= KSTATS_MAX_BITS; bits++)
		at += scnprintf(digest + at, sizeof(digest) - at, "%s%016llx", bits ? " " : "",
				slot_digest(bits, values));
	return 0;
}

static void __exit slots_exit(void)
{
}

module_init(slots_init);
module_exit(slots_exit);
MODULE_DESCRIPTION("Digest of the slots of kstats, for its test");
MODULE_LICENSE("GPL");
