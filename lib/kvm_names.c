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

/* By Intel's numbers of basic exit reasons. */
const char *kvm_vmx_name(uint32_t reason)
{
	static const char *const names[] = {
		[0] = "exception_nmi",
		[1] = "external_interrupt",
		[2] = "triple_fault",
		[3] = "init_signal",
		[4] = "sipi_signal",
		[5] = "io_smi",
		[6] = "other_smi",
		[7] = "interrupt_window",
		[8] = "nmi_window",
		[9] = "task_switch",
		[10] = "cpuid",
		[11] = "getsec",
		[12] = "hlt",
		[13] = "invd",
		[14] = "invlpg",
		[15] = "rdpmc",
		[16] = "rdtsc",
		[17] = "rsm",
		[18] = "vmcall",
		[19] = "vmclear",
		[20] = "vmlaunch",
		[21] = "vmptrld",
		[22] = "vmptrst",
		[23] = "vmread",
		[24] = "vmresume",
		[25] = "vmwrite",
		[26] = "vmxoff",
		[27] = "vmxon",
		[28] = "cr_access",
		[29] = "dr_access",
		[30] = "io_instruction",
		[31] = "msr_read",
		[32] = "msr_write",
		[33] = "invalid_state",
		[34] = "msr_load_fail",
		[36] = "mwait",
		[37] = "monitor_trap_flag",
		[39] = "monitor",
		[40] = "pause",
		[41] = "mce_during_vmentry",
		[43] = "tpr_below_threshold",
		[44] = "apic_access",
		[45] = "eoi_induced",
		[46] = "gdtr_idtr",
		[47] = "ldtr_tr",
		[48] = "ept_violation",
		[49] = "ept_misconfig",
		[50] = "invept",
		[51] = "rdtscp",
		[52] = "preemption_timer",
		[53] = "invvpid",
		[54] = "wbinvd",
		[55] = "xsetbv",
		[56] = "apic_write",
		[57] = "rdrand",
		[58] = "invpcid",
		[59] = "vmfunc",
		[60] = "encls",
		[61] = "rdseed",
		[62] = "pml_full",
		[63] = "xsaves",
		[64] = "xrstors",
		[65] = "pconfig",
		[66] = "spp",
		[67] = "umwait",
		[68] = "tpause",
		[69] = "loadiwkey",
		[74] = "bus_lock",
		[75] = "notify",
		[76] = "seamcall",
		[77] = "tdcall",
	};

	return reason < sizeof(names) / sizeof(names[0]) ? names[reason] : NULL;
}

/* By AMD's exit codes. */
const char *kvm_svm_name(uint32_t reason)
{
#define SIXTEEN(s)                                                                            \
	s "0", s "1", s "2", s "3", s "4", s "5", s "6", s "7", s "8", s "9", s "10", s "11", \
		s "12", s "13", s "14", s "15"
	static const char *const names[] = {
		SIXTEEN("read_cr"),
		SIXTEEN("write_cr"),
		SIXTEEN("read_dr"),
		SIXTEEN("write_dr"),
		SIXTEEN("exception_"),
		"exception_16",
		"exception_17",
		"exception_18",
		"exception_19",
		"exception_20",
		"exception_21",
		"exception_22",
		"exception_23",
		"exception_24",
		"exception_25",
		"exception_26",
		"exception_27",
		"exception_28",
		"exception_29",
		"exception_30",
		"exception_31",
		[0x60] = "intr",
		[0x61] = "nmi",
		[0x62] = "smi",
		[0x63] = "init",
		[0x64] = "vintr",
		[0x65] = "cr0_sel_write",
		[0x66] = "idtr_read",
		[0x67] = "gdtr_read",
		[0x68] = "ldtr_read",
		[0x69] = "tr_read",
		[0x6a] = "idtr_write",
		[0x6b] = "gdtr_write",
		[0x6c] = "ldtr_write",
		[0x6d] = "tr_write",
		[0x6e] = "rdtsc",
		[0x6f] = "rdpmc",
		[0x70] = "pushf",
		[0x71] = "popf",
		[0x72] = "cpuid",
		[0x73] = "rsm",
		[0x74] = "iret",
		[0x75] = "swint",
		[0x76] = "invd",
		[0x77] = "pause",
		[0x78] = "hlt",
		[0x79] = "invlpg",
		[0x7a] = "invlpga",
		[0x7b] = "ioio",
		[0x7c] = "msr",
		[0x7d] = "task_switch",
		[0x7e] = "ferr_freeze",
		[0x7f] = "shutdown",
		[0x80] = "vmrun",
		[0x81] = "vmmcall",
		[0x82] = "vmload",
		[0x83] = "vmsave",
		[0x84] = "stgi",
		[0x85] = "clgi",
		[0x86] = "skinit",
		[0x87] = "rdtscp",
		[0x88] = "icebp",
		[0x89] = "wbinvd",
		[0x8a] = "monitor",
		[0x8b] = "mwait",
		[0x8c] = "mwait_cond",
		[0x8d] = "xsetbv",
		[0x8e] = "rdpru",
		[0x8f] = "efer_write_trap",
		[0xa0] = "invlpgb",
		[0xa1] = "invlpgb_illegal",
		[0xa2] = "invpcid",
		[0xa5] = "bus_lock",
		[0xa6] = "idle_hlt",
	};
	static const char *const others[] = {"npf", "avic_incomplete_ipi",
					     "avic_unaccelerated_access", "vmgexit"};

	if (reason >= 0x400 && reason - 0x400 < sizeof(others) / sizeof(others[0]))
		return others[reason - 0x400];
	return reason < sizeof(names) / sizeof(names[0]) ? names[reason] : NULL;
}
