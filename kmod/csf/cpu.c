// SPDX-License-Identifier: GPL-2.0
/*
 * The page of the machine: what /proc/stat says of the CPUs, in ns, refreshed while somebody has it open.
 */
#include "csf.h"
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/kernel_stat.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/tick.h>
#include <linux/vmalloc.h>

#define PERIOD_US_MIN 500
#define PERIOD_US_MAX 1000000

unsigned int csf_period_us = 10000;

static struct csf_cpu *cpu_pg;	     /* what readers map */
static struct csf_cpu_row *cpu_rows; /* rows in it */
/* The next values, made here so that readers wait only for a copy. */
static struct csf_cpu_row *cpu_next;
static struct csf_clocked cpu_clocked;

static DEFINE_MUTEX(cpu_lock); /* cpu_users, cpu_next, and writing of the page */
static unsigned int cpu_users;
static struct hrtimer cpu_timer;
static void cpu_work_fn(struct work_struct *work);
static DECLARE_WORK(cpu_work, cpu_work_fn);

static unsigned int nr_rows(void)
{
	return nr_cpu_ids + 1;
}

size_t csf_cpu_bytes(void)
{
	return sizeof(*cpu_pg) + nr_rows() * sizeof(*cpu_rows);
}

/*
 * The kernel's idle and iowait of a CPU can run backwards (iowait belongs to no CPU in truth, and a
 * sleeper that wakes elsewhere takes it along). Ours stand still instead.
 */
static u64 never_back(u64 old, u64 new)
{
	if (likely(new >= old))
		return new;
	cpu_pg->nr_corrected++;
	return old;
}

/* Idle time as /proc/stat takes it: the tick's own clock where it stops in idle, else the tick's count. */
static u64 idle_ns(u64 us, u64 ticked)
{
	return us == (u64)-1 ? ticked : us * NSEC_PER_USEC;
}

static void read_row(struct csf_cpu_row *row, unsigned int cpu)
{
	struct kernel_cpustat kcs;
	const u64 *c = kcs.cpustat;

	if (!cpu_online(cpu)) { /* the kernel's own numbers stand still, too */
		row->flags &= ~CSF_CPU_ONLINE;
		return;
	}
	row->flags |= CSF_CPU_ONLINE;
	kcpustat_cpu_fetch(&kcs, cpu);
	row->user_ns = c[CPUTIME_USER];
	row->nice_ns = c[CPUTIME_NICE];
	row->system_ns = c[CPUTIME_SYSTEM];
	row->idle_ns =
		never_back(row->idle_ns, idle_ns(get_cpu_idle_time_us(cpu, NULL), c[CPUTIME_IDLE]));
	row->iowait_ns = never_back(row->iowait_ns,
				    idle_ns(get_cpu_iowait_time_us(cpu, NULL), c[CPUTIME_IOWAIT]));
	row->irq_ns = c[CPUTIME_IRQ];
	row->softirq_ns = c[CPUTIME_SOFTIRQ];
	row->steal_ns = c[CPUTIME_STEAL];
	row->guest_ns = c[CPUTIME_GUEST];
	row->guest_nice_ns = c[CPUTIME_GUEST_NICE];
}

static void add_row(struct csf_cpu_row *sum, const struct csf_cpu_row *row)
{
	sum->user_ns += row->user_ns;
	sum->nice_ns += row->nice_ns;
	sum->system_ns += row->system_ns;
	sum->idle_ns += row->idle_ns;
	sum->iowait_ns += row->iowait_ns;
	sum->irq_ns += row->irq_ns;
	sum->softirq_ns += row->softirq_ns;
	sum->steal_ns += row->steal_ns;
	sum->guest_ns += row->guest_ns;
	sum->guest_nice_ns += row->guest_nice_ns;
}

static void refresh(void)
{
	struct csf_cpu_row *sum = &cpu_next[0];
	unsigned int cpu;

	lockdep_assert_held(&cpu_lock);
	memset(sum, 0, sizeof(*sum));
	sum->cpu = CSF_CPU_ALL;
	sum->flags = CSF_CPU_POSSIBLE | CSF_CPU_ONLINE;
	for_each_possible_cpu(cpu) {
		read_row(&cpu_next[cpu + 1], cpu);
		add_row(sum, &cpu_next[cpu + 1]);
	}
	/* A reader must not wait for a writer that was preempted. */
	preempt_disable();
	csf_write_begin(&cpu_pg->seq);
	memcpy(cpu_rows, cpu_next, nr_rows() * sizeof(*cpu_rows));
	cpu_pg->update_mono_ns = ktime_get_ns();
	cpu_pg->update_tsc = rdtsc_ordered();
	cpu_pg->period_us = READ_ONCE(csf_period_us);
	cpu_pg->nr_updates++;
	csf_write_end(&cpu_pg->seq);
	preempt_enable();
}

static void cpu_work_fn(struct work_struct *work)
{
	mutex_lock(&cpu_lock);
	refresh();
	mutex_unlock(&cpu_lock);
}

static ktime_t period(void)
{
	return ns_to_ktime((u64)READ_ONCE(csf_period_us) * NSEC_PER_USEC);
}

static enum hrtimer_restart cpu_timer_fn(struct hrtimer *timer)
{
	queue_work(csf_wq, &cpu_work);
	hrtimer_forward_now(timer, period());
	return HRTIMER_RESTART;
}

static int period_set(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, PERIOD_US_MIN, PERIOD_US_MAX);
}

const struct kernel_param_ops csf_period_ops = {
	.set = period_set,
	.get = param_get_uint,
};

static int csf_cpu_open(struct inode *inode, struct file *file)
{
	int ret = csf_open_check(file);

	if (ret)
		return ret;
	mutex_lock(&cpu_lock);
	if (!cpu_users++) {
		csf_clock_add(&cpu_clocked, &cpu_pg->hdr, CSF_KIND_CPU, csf_cpu_bytes());
		hrtimer_start(&cpu_timer, period(), HRTIMER_MODE_REL);
	}
	refresh(); /* so that the first look is not at an old page */
	mutex_unlock(&cpu_lock);
	return 0;
}

static int csf_cpu_release(struct inode *inode, struct file *file)
{
	mutex_lock(&cpu_lock);
	if (!--cpu_users) {
		hrtimer_cancel(&cpu_timer);
		csf_clock_del(&cpu_clocked);
	}
	mutex_unlock(&cpu_lock);
	return 0;
}

static vm_fault_t csf_cpu_fault(struct vm_fault *vmf)
{
	if (vmf->pgoff >= PAGE_ALIGN(csf_cpu_bytes()) >> PAGE_SHIFT)
		return VM_FAULT_SIGBUS;
	vmf->page = vmalloc_to_page((char *)cpu_pg + (vmf->pgoff << PAGE_SHIFT));
	get_page(vmf->page);
	return 0;
}

static const struct vm_operations_struct csf_cpu_vm_ops = {
	.fault = csf_cpu_fault,
};

static int csf_cpu_mmap(struct file *file, struct vm_area_struct *vma)
{
	vma->vm_ops = &csf_cpu_vm_ops;
	return csf_mmap_check(vma, csf_cpu_bytes());
}

const struct file_operations csf_cpu_fops = {
	.owner = THIS_MODULE,
	.open = csf_cpu_open,
	.release = csf_cpu_release,
	.mmap = csf_cpu_mmap,
};

int csf_cpu_init(void)
{
	unsigned int cpu;

	cpu_pg = vmalloc_user(csf_cpu_bytes());
	cpu_next = kvcalloc(nr_rows(), sizeof(*cpu_next), GFP_KERNEL);
	if (!cpu_pg || !cpu_next) {
		vfree(cpu_pg);
		kvfree(cpu_next);
		return -ENOMEM;
	}
	cpu_rows = (void *)(cpu_pg + 1);
	cpu_pg->rows_off = sizeof(*cpu_pg);
	cpu_pg->row_size = sizeof(*cpu_rows);
	cpu_pg->nr_rows = nr_rows();
	cpu_pg->tick_ns = IS_ENABLED(CONFIG_VIRT_CPU_ACCOUNTING_NATIVE) ? 0 : TICK_NSEC;
	for_each_possible_cpu(cpu) {
		cpu_next[cpu + 1].cpu = cpu;
		cpu_next[cpu + 1].flags = CSF_CPU_POSSIBLE;
	}
	hrtimer_setup(&cpu_timer, cpu_timer_fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	return 0;
}

/* The last release stopped the timer; its last work item may still be on the way. */
void csf_cpu_exit(void)
{
	cancel_work_sync(&cpu_work);
	kvfree(cpu_next);
	vfree(cpu_pg);
}
