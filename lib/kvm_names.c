/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "lib/kvm_watch.h"

const char *kvm_exit_name(uint32_t reason)
{
	/* KVM_EXIT_* of linux/kvm.h, by number: older headers lack the later ones. */
	/* clang-format off */
	static const char *const names[] = {
		"unknown",	 "exception",	   "io",	    "hypercall",      "debug",
		"hlt",		 "mmio",	   "irq_window_open", "shutdown",     "fail_entry",
		"intr",		 "set_tpr",	   "tpr_access",    "s390_sieic",     "s390_reset",
		"dcr",		 "nmi",		   "internal_error", "osi",	      "papr_hcall",
		"s390_ucontrol", "watchdog",	   "s390_tsch",	    "epr",	      "system_event",
		"s390_stsi",	 "ioapic_eoi",	   "hyperv",	    "arm_nisv",	      "x86_rdmsr",
		"x86_wrmsr",	 "dirty_ring_full", "ap_reset_hold", "x86_bus_lock",  "xen",
		"riscv_sbi",	 "riscv_csr",	   "notify",	    "loongarch_iocsr", "memory_fault",
	};
	/* clang-format on */

	return reason < sizeof(names) / sizeof(names[0]) ? names[reason] : NULL;
}
