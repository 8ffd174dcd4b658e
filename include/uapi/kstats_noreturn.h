/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Functions that do not come back: their entry-to-return time would never be known. Included by one file
 * of each engine.
 */
#ifndef _UAPI_KSTATS_NORETURN_H
#define _UAPI_KSTATS_NORETURN_H

static const char *const kstats_noreturn[] = {
	"do_exit",
	"do_group_exit",
	"make_task_dead",
	"do_task_dead",
	"kthread_exit",
	"kthread_complete_and_exit",
	"__module_put_and_kthread_exit",
	"module_put_and_kthread_exit",
	"__x64_sys_exit",
	"__x64_sys_exit_group",
	"__ia32_sys_exit",
	"__ia32_sys_exit_group",
	"__do_sys_exit_group",
	"__do_sys_exit",
	"__arm64_sys_exit",
	"__arm64_sys_exit_group",
	"sys_exit",
	"sys_exit_group",
	"panic",
	"vpanic",
	"nmi_panic_self_stop",
	"stop_this_cpu",
	"cpu_startup_entry",
	"start_secondary",
	"rest_init",
	"start_kernel",
	"arch_cpu_idle_dead",
	"do_idle", /* of a CPU that goes offline */
	"play_dead",
	"native_play_dead",
	"hlt_play_dead",
	"mwait_play_dead",
	"machine_restart",
	"native_machine_restart",
	"machine_halt",
	"native_machine_halt",
	"machine_power_off",
	"rewind_stack_and_make_dead",
	"machine_real_restart",
	"kunit_try_catch_throw",
	"kthread",
};

#endif /* _UAPI_KSTATS_NORETURN_H */
