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

#endif /* STATPAGE_COMPAT_BPF_H */
