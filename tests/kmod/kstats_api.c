// SPDX-License-Identifier: GPL-2.0
/*
 * A module that calls the in-kernel API as it should not be called, and in a hard interrupt. The parameter
 * `wrong` says what was taken that must be refused, or is empty; `api_samples` is the metric that it leaves.
 */
#include <linux/irq_work.h>
#include <linux/kstats.h>
#include <linux/module.h>
#include <linux/string.h>

static char wrong[200];
module_param_string(wrong, wrong, sizeof(wrong), 0444);

static struct kstats *samples;

static void from_irq(struct irq_work *work)
{
	kstats_record(samples, 480);
	kstats_record_since(samples, kstats_clock());
}

static struct irq_work work = IRQ_WORK_INIT_HARD(from_irq);

static void refused(const char *name, u8 bits)
{
	struct kstats *ks = kstats_new(name, bits);

	if (!ks)
		return;
	strlcat(wrong, name ?: "NULL", sizeof(wrong));
	strlcat(wrong, ";", sizeof(wrong));
	kstats_delete(ks);
}

static int __init api_init(void)
{
	char longest[65] = "";

	memset(longest, 'x', 64);
	kstats_record(NULL, 1);
	kstats_record_since(NULL, kstats_clock());
	kstats_delete(NULL);
	refused(NULL, 3);
	refused("", 3);
	refused(".", 3);
	refused("..", 3);
	refused("a/b", 3);
	refused("a b", 3);
	refused("%s%n\n", 3);
	refused("_control", 3);
	refused("_mine", 3);
	refused(longest, 3);
	refused("six", 6);
	refused("all", 255);
	longest[63] = '\0';
	kstats_delete(kstats_new(longest, 0)); /* that fits */
	samples = kstats_new("api_samples", 5);
	refused("api_samples", 3);
	irq_work_queue(&work);
	irq_work_sync(&work);
	kstats_record(samples, ~0ULL);
	return 0;
}

static void __exit api_exit(void)
{
	kstats_delete(samples);
}

module_init(api_init);
module_exit(api_exit);
MODULE_DESCRIPTION("Calls the API of kstats in all wrong ways, for its test");
MODULE_LICENSE("GPL");
