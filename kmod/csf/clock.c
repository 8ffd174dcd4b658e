// SPDX-License-Identifier: GPL-2.0
/*
 * What every page says about its clock. The kernel tells nobody when it refines the TSC's frequency or
 * gives up on the TSC, so while any page exists a slow work item looks.
 */
#include "csf.h"
#include <linux/atomic.h>
#include <linux/clocksource.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/suspend.h>
#include <linux/time64.h>
#include <asm/asm.h>

/* Scale of the factor from ns to cycles. */
#define NS_MULT_SHIFT 32
/* Often enough to flag a page well before a person looks at its numbers; the watchdog takes 500 ms. */
#define CSF_CLOCK_POLL (HZ / 4)

/* Protects the list of pages, the factors below and those in every page's header. */
static DEFINE_MUTEX(clock_lock);
static LIST_HEAD(clock_pages);
static u32 clock_khz, clock_mult, clock_shift, clock_gen, clock_flags;
static u64 clock_ns_mult; /* cycles per ns << NS_MULT_SHIFT; read by the scheduler's notifier */

static void clock_work_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(clock_work, clock_work_fn);

/* Cycles for a span of the scheduler's clock, which is the TSC in ns. Any context. */
u64 csf_ns_to_cyc(u64 ns)
{
	return mul_u64_u64_shr(ns, READ_ONCE(clock_ns_mult), NS_MULT_SHIFT);
}

/* Flags have several writers (owner, closer, clock), hence atomic. Any context. */
void csf_hdr_set_flag(struct csf_hdr *hdr, u32 flag)
{
	BUILD_BUG_ON(sizeof(hdr->flags) != sizeof(atomic_t));
	atomic_or(flag, (atomic_t *)&hdr->flags);
}

static void clock_set_factors(void)
{
	u64 mult;

	clock_khz = tsc_khz;
	/* The largest shift whose factor fits its 32 bits: the conversion errs by less than 2^-31. */
	clock_shift = 32;
	while ((mult = div_u64((u64)NSEC_PER_MSEC << clock_shift, clock_khz)) > U32_MAX)
		clock_shift--;
	clock_mult = mult;
	WRITE_ONCE(clock_ns_mult, div_u64((u64)clock_khz << NS_MULT_SHIFT, NSEC_PER_MSEC));
}

static void clock_write_hdr(struct csf_hdr *hdr)
{
	hdr->freq_khz = clock_khz;
	hdr->mult = clock_mult;
	hdr->shift = clock_shift;
}

/* A new generation of the factors for all pages. */
static void clock_bump(void)
{
	struct csf_clocked *c;

	lockdep_assert_held(&clock_lock);
	clock_set_factors();
	clock_gen += 2;
	list_for_each_entry(c, &clock_pages, node) {
		csf_write_begin(&c->hdr->gen);
		clock_write_hdr(c->hdr);
		csf_write_end(&c->hdr->gen);
	}
}

static void clock_work_fn(struct work_struct *work)
{
	struct csf_clocked *c;

	mutex_lock(&clock_lock);
	if (tsc_khz != clock_khz)
		clock_bump();
	if (check_tsc_unstable() && !(clock_flags & CSF_F_TSC_UNSTABLE)) {
		clock_flags |= CSF_F_TSC_UNSTABLE;
		list_for_each_entry(c, &clock_pages, node)
			csf_hdr_set_flag(c->hdr, CSF_F_TSC_UNSTABLE);
		pr_warn("the kernel marked the TSC unstable: the pages say so, readers get ESTALE\n");
	}
	if (!list_empty(&clock_pages))
		queue_delayed_work(csf_wq, &clock_work, CSF_CLOCK_POLL);
	mutex_unlock(&clock_lock);
}

/* Fill the header of a zeroed page and keep it up to date until csf_clock_del(). May sleep. */
void csf_clock_add(struct csf_clocked *c, struct csf_hdr *hdr, u16 kind, u32 size)
{
	c->hdr = hdr;
	hdr->magic = CSF_MAGIC;
	hdr->abi = CSF_ABI_VERSION;
	hdr->kind = kind;
	hdr->size = size;
	hdr->clock = CSF_CLOCK_TSC;
	mutex_lock(&clock_lock);
	hdr->flags = clock_flags;
	hdr->gen = clock_gen;
	clock_write_hdr(hdr);
	if (list_empty(&clock_pages))
		queue_delayed_work(csf_wq, &clock_work, CSF_CLOCK_POLL);
	list_add(&c->node, &clock_pages);
	mutex_unlock(&clock_lock);
}

void csf_clock_del(struct csf_clocked *c)
{
	mutex_lock(&clock_lock);
	list_del(&c->node);
	mutex_unlock(&clock_lock);
}

/* The TSC may have stopped, or started anew, while the machine slept. */
static int clock_pm_notify(struct notifier_block *nb, unsigned long event, void *unused)
{
	if (event == PM_POST_SUSPEND || event == PM_POST_HIBERNATION) {
		mutex_lock(&clock_lock);
		clock_bump();
		mutex_unlock(&clock_lock);
	}
	return NOTIFY_DONE;
}

static struct notifier_block clock_pm_nb = {
	.notifier_call = clock_pm_notify,
};

/* Asked of the instruction itself: some hypervisors hide the CPUID bit and let it work. */
static bool rdtscp_works(void)
{
	bool works = false;

	asm volatile("1: rdtscp\n"
		     "movb $1, %0\n"
		     "2:\n" _ASM_EXTABLE(1b, 2b)
		     : "+q"(works)
		     :
		     : "eax", "ecx", "edx");
	return works;
}

int csf_clock_init(void)
{
	if (!rdtscp_works()) {
		pr_err("not loaded: the processor has no rdtscp, which readers of the pages use\n");
		return -ENODEV;
	}
	if (!boot_cpu_has(X86_FEATURE_TSC) || !tsc_khz || check_tsc_unstable()) {
		pr_err("not loaded: the kernel marked the TSC unstable, and it is the clock of the pages\n");
		return -ENODEV;
	}
	if (boot_cpu_has(X86_FEATURE_RDTSCP))
		clock_flags = CSF_F_TSC_AUX;
	clock_set_factors();
	return register_pm_notifier(&clock_pm_nb);
}

void csf_clock_exit(void)
{
	unregister_pm_notifier(&clock_pm_nb);
	cancel_delayed_work_sync(&clock_work);
}
