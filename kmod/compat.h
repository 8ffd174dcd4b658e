/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every fallback for an older kernel, and nothing else. The code uses the newest kernel's names; each
 * block here is headed by the release and the commit that brought the real thing.
 */
#ifndef STATPAGE_COMPAT_H
#define STATPAGE_COMPAT_H

#include <linux/version.h>

#ifndef __ASSEMBLER__
#include <linux/fprobe.h>
#include <linux/fs.h>
#include <linux/ftrace.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>

/* 6.3, bc292ab00f6c "mm: introduce vma->vm_flags wrapper functions" */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

/* 6.3, c1632a0f1120 "fs: port ->setattr() to pass mnt_idmap" */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define mnt_idmap user_namespace
#endif

/* 6.13, 908a1d775422 "hrtimers: Introduce hrtimer_setup() to replace hrtimer_init()" */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/* 6.19, "d_genocide() and kill_litter_super() go": kill_anon_super() drops persistent dentries itself */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 19, 0)
#define kill_anon_super kill_litter_super
#endif

/* 6.16, "exit: move and extend sched_process_exit() tracepoint" */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#define TP_SCHED_PROCESS_EXIT_ARGS void *data, struct task_struct *p
#else
#define TP_SCHED_PROCESS_EXIT_ARGS void *data, struct task_struct *p, bool group_dead
#endif

/* From here on: kstats. */

/* 6.4, 59495740f7ac "ftrace: Store direct called addresses in their ops": one API, that of _multi */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#define register_ftrace_direct register_ftrace_direct_multi
static inline int compat_unregister_ftrace_direct(struct ftrace_ops *ops, unsigned long addr,
						  bool free_filters)
{
	int err = unregister_ftrace_direct_multi(ops, addr);

	if (free_filters)
		ftrace_free_filter(ops);
	return err;
}
#define unregister_ftrace_direct compat_unregister_ftrace_direct
#endif

/*
 * 6.6, 39d954200bf6 "fprobe: Skip exit_handler if entry_handler returns !0": before, there is no ret_ip
 * and no way to skip a call. 6.14, 4346ba160409 "fprobe: Rewrite fprobe on function-graph tracer":
 * other registers, and no limit of active calls.
 */
#if IS_ENABLED(CONFIG_FPROBE) && LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
#define STATPAGE_HAVE_FPROBE
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
typedef struct pt_regs fprobe_regs_t;
static inline void fprobe_set_maxactive(struct fprobe *fp, int maxactive)
{
	fp->nr_maxactive = maxactive;
}
#else
typedef struct ftrace_regs fprobe_regs_t;
static inline void fprobe_set_maxactive(struct fprobe *fp, int maxactive)
{
}
#endif
#endif

#else /* __ASSEMBLER__ */

/* 6.2, 5d8213864ade "x86/retbleed: Add SKL return thunk": before, calls are not accounted */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
/* clang-format off */
.macro CALL_DEPTH_ACCOUNT
.endm
/* clang-format on */
#endif

#endif /* __ASSEMBLER__ */
#endif /* STATPAGE_COMPAT_H */
