/* SPDX-License-Identifier: GPL-2.0 */
/*
 * coarse_stat_fs, shared between its files. main.c is the filesystem, thread.c the thread page and the
 * life of its object, cpu.c the page of the machine, clock.c what both know about the TSC.
 */
#ifndef CSF_H
#define CSF_H

/* First in every file: before the kernel's own headers define it. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/list.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#include <coarse_stat_fs.h>
#include "../compat.h"

#ifndef CONFIG_X86_64
#error "coarse_stat_fs needs x86-64: its clock is the TSC"
#endif
#ifndef CONFIG_PREEMPT_NOTIFIERS
#error "coarse_stat_fs needs a kernel with CONFIG_PREEMPT_NOTIFIERS (selected by CONFIG_KVM)"
#endif
#ifndef CONFIG_SCHED_INFO
#error "coarse_stat_fs needs a kernel with CONFIG_SCHED_INFO (CONFIG_SCHEDSTATS or TASK_DELAY_ACCT)"
#endif
#ifndef CONFIG_TRACEPOINTS
#error "coarse_stat_fs needs a kernel with CONFIG_TRACEPOINTS: it learns of exit and exec by them"
#endif

/* Frees objects and refreshes the cpu page; never from the scheduler. */
extern struct workqueue_struct *csf_wq;

/* clock.c */
struct csf_clocked {
	struct list_head node;
	struct csf_hdr *hdr;
};
int csf_clock_init(void);
void csf_clock_exit(void);
void csf_clock_add(struct csf_clocked *c, struct csf_hdr *hdr, u16 kind, u32 size);
void csf_clock_del(struct csf_clocked *c);
u64 csf_ns_to_cyc(u64 ns);
void csf_hdr_set_flag(struct csf_hdr *hdr, u32 flag);

/* thread.c */
extern const struct file_operations csf_thread_fops;
int csf_thread_init(void);
void csf_thread_exit(void);

/* cpu.c */
extern const struct file_operations csf_cpu_fops;
extern const struct kernel_param_ops csf_period_ops;
extern unsigned int csf_period_us;
size_t csf_cpu_bytes(void);
int csf_cpu_init(void);
void csf_cpu_exit(void);

/* main.c */
int csf_open_check(const struct file *file);
int csf_mmap_check(struct vm_area_struct *vma, size_t bytes);

/* One writer, so a plain counter does; pairs with the reader's acquire load and recheck of seq. */
static inline void csf_write_begin(u32 *seq)
{
	WRITE_ONCE(*seq, *seq + 1);
	smp_wmb();
}

static inline void csf_write_end(u32 *seq)
{
	smp_wmb();
	WRITE_ONCE(*seq, *seq + 1);
}

#endif /* CSF_H */
