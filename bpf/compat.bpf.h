/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The kernel's types for BPF programs, and what differs between kernels: asked for with CO-RE, never
 * by version. vmlinux.h is generated from the BTF of some kernel; the loader moves offsets to those
 * of the kernel that runs.
 */
#ifndef STATPAGE_COMPAT_BPF_H
#define STATPAGE_COMPAT_BPF_H

#include "vmlinux.h"

/* vmlinux.h has these types already, and the two do not go together. */
#define _LINUX_TYPES_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* x86 alone has a status, and vmlinux.h may be another architecture's. */
struct thread_info___x86 {
	__u32 status;
} __attribute__((preserve_access_index));

struct task_struct___x86 {
	struct thread_info___x86 thread_info;
} __attribute__((preserve_access_index));

#define COMPAT_TS_COMPAT 0x2 /* the thread is in a call of the i386 ABI */

/* False where there is no such thing. A plain load: task is a pointer that the verifier knows. */
static __always_inline bool compat_thread_status(struct task_struct *task, __u32 *status)
{
	struct task_struct___x86 *x86 = (void *)task;

	if (!bpf_core_field_exists(x86->thread_info.status))
		return false;
	*status = x86->thread_info.status;
	return true;
}

/*
 * The kind of interrupt that runs: 0 none, a task; 1 softirq, 2 interrupt, 3 NMI. The count that tells
 * lies in a struct from 6.2 (7443b296e699, x86/percpu: Move preempt_count next to current_task) to 6.14,
 * and in a variable of its own before and after. Elsewhere than on x86 all is taken for a task's.
 */
#ifdef __TARGET_ARCH_x86
extern const int __preempt_count __ksym __weak;

struct pcpu_hot___old {
	int preempt_count;
} __attribute__((preserve_access_index));
extern const struct pcpu_hot___old pcpu_hot __ksym __weak;

static __always_inline __u32 compat_interrupt(void)
{
	__u32 count = 0;

	if (&__preempt_count)
		count = *(int *)bpf_this_cpu_ptr(&__preempt_count);
	else if (&pcpu_hot)
		count = ((struct pcpu_hot___old *)bpf_this_cpu_ptr(&pcpu_hot))->preempt_count;
	return count & 0xf00000 ? 3 : count & 0xf0000 ? 2 : count & 0x100 ? 1 : 0;
}

#define COMPAT_RETURN_POPS 8 /* a return takes its address off the stack */
#else
static __always_inline __u32 compat_interrupt(void)
{
	return 0;
}

#define COMPAT_RETURN_POPS 0
#endif

#endif /* STATPAGE_COMPAT_BPF_H */
