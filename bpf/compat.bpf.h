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

/* The CPU that a task is on or was on last; elsewhere than on x86 it may be told otherwise, and is 0 then. */
struct thread_info___cpu {
	__u32 cpu;
} __attribute__((preserve_access_index));

struct task_struct___cpu {
	struct thread_info___cpu thread_info;
} __attribute__((preserve_access_index));

static __always_inline __u32 compat_task_cpu(struct task_struct *task)
{
	struct task_struct___cpu *t = (void *)task;

	return bpf_core_field_exists(t->thread_info.cpu) ? t->thread_info.cpu : 0;
}

/* 6.12, 152e11f6df29 (sched/fair: Implement delayed dequeue): on the run queue, and asleep nevertheless. */
struct sched_entity___delayed {
	unsigned char sched_delayed;
} __attribute__((preserve_access_index));

struct task_struct___delayed {
	struct sched_entity___delayed se;
} __attribute__((preserve_access_index));

static __always_inline bool compat_sched_delayed(struct task_struct *task)
{
	struct task_struct___delayed *t = (void *)task;

	return bpf_core_field_exists(t->se.sched_delayed) && t->se.sched_delayed;
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

/*
 * Why a guest was left. kvm_intel and kvm_amd are modules, mostly: their types are in no vmlinux.h, and
 * each has its own struct around the kvm_vcpu, which comes first in it.
 */
#define COMPAT_ISA_VMX 1
#define COMPAT_ISA_SVM 2

union vmx_exit_reason___compat {
	__u32 full;
} __attribute__((preserve_access_index));

/* From 6.16 on the reason is in a struct that virtual CPUs of TDX have, too. */
struct vcpu_vt___compat {
	union vmx_exit_reason___compat exit_reason;
} __attribute__((preserve_access_index));

struct vcpu_vmx___compat {
	struct vcpu_vt___compat vt;
	union vmx_exit_reason___compat exit_reason;
} __attribute__((preserve_access_index));

struct vmcb_control_area___compat {
	__u32 exit_code; /* wider in some kernels: little endian, so this is its lower half */
} __attribute__((preserve_access_index));

struct vmcb___compat {
	struct vmcb_control_area___compat control;
} __attribute__((preserve_access_index));

struct vcpu_svm___compat {
	struct vmcb___compat *vmcb;
} __attribute__((preserve_access_index));

/* Of a virtual CPU that was just left; false where there is no such thing, or it is not known. */
static __always_inline bool compat_exit_reason(void *vcpu, __u32 isa, __u32 *reason)
{
	struct vcpu_vmx___compat *vmx = vcpu;
	struct vcpu_svm___compat *svm = vcpu;
	struct vmcb___compat *vmcb = NULL;

	if (isa == COMPAT_ISA_SVM && bpf_core_field_exists(svm->vmcb) &&
	    bpf_core_field_exists(vmcb->control.exit_code))
		return !bpf_core_read(&vmcb, sizeof(vmcb), &svm->vmcb) &&
		       !bpf_core_read(reason, sizeof(*reason), &vmcb->control.exit_code);
	if (isa != COMPAT_ISA_VMX)
		return false;
	if (bpf_core_field_exists(vmx->vt.exit_reason)) {
		if (bpf_core_read(reason, sizeof(*reason), &vmx->vt.exit_reason.full))
			return false;
	} else if (!bpf_core_field_exists(vmx->exit_reason) ||
		   bpf_core_read(reason, sizeof(*reason), &vmx->exit_reason.full)) {
		return false;
	}
	*reason &= 0xffff; /* flags are above */
	return true;
}

/*
 * What tracepoints of KVM tell perf. Reasons are numbered as above. Without a look whether there is such a
 * field the programs would not load where KVM's module is not.
 */
struct trace_event_raw_kvm_exit___compat {
	unsigned int exit_reason;
	__u32 isa;
} __attribute__((preserve_access_index));

struct trace_event_raw_kvm_vcpu_wakeup___compat {
	__u64 ns;
} __attribute__((preserve_access_index));

struct trace_event_raw_kvm_userspace_exit___compat {
	__u32 reason;
	int errno;
} __attribute__((preserve_access_index));

/* 0: not known. */
static __always_inline __u32 compat_told_exit(struct trace_event_raw_kvm_exit___compat *ctx,
					      __u32 *reason)
{
	__u32 isa;

	if (!bpf_core_field_exists(ctx->exit_reason) || !bpf_core_field_exists(ctx->isa))
		return 0;
	isa = ctx->isa;
	*reason = isa == COMPAT_ISA_VMX ? ctx->exit_reason & 0xffff : ctx->exit_reason;
	return isa;
}

static __always_inline __u64
compat_told_wakeup(struct trace_event_raw_kvm_vcpu_wakeup___compat *ctx)
{
	return bpf_core_field_exists(ctx->ns) ? ctx->ns : 0;
}

static __always_inline void compat_told_userspace(
	struct trace_event_raw_kvm_userspace_exit___compat *ctx, __u32 *reason, int *err)
{
	*reason = bpf_core_field_exists(ctx->reason) ? ctx->reason : 0;
	*err = bpf_core_field_exists(ctx->errno) ? ctx->errno : 0;
}

/* By number, of a task that is there; from 6.2 on (3f0e6f2b41d3, bpf: Add bpf_task_from_pid() kfunc). */
extern struct task_struct *bpf_task_from_pid(__s32 pid) __ksym __weak;
extern void bpf_task_release(struct task_struct *task) __ksym __weak;

#endif /* STATPAGE_COMPAT_BPF_H */
