/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * kstats: what user space and the module kstats.ko agree on. docs/kstats.md describes the files and
 * the control words in prose; value <-> slot is in kstats_bucket.h.
 */
#ifndef _UAPI_KSTATS_H
#define _UAPI_KSTATS_H

#include <linux/types.h>

#define KSTATS_DIR     "/sys/kernel/debug/kstats"
#define KSTATS_CONTROL "_control" /* 0644: write commands, read the traced nodes */
#define KSTATS_NODES   "_nodes"	  /* 0444: the same list, readable under lockdown too */

#define KSTATS_NAME_MAX	    63	/* bytes of a metric's name, its GAP- included */
#define KSTATS_SYM_MAX	    127 /* bytes of a function's or tracepoint's name in a command */
#define KSTATS_CONTROL_MAX  254 /* bytes of a command */
#define KSTATS_WORDS_MAX    24	/* words of a command */
#define KSTATS_GAP_PREFIX   "GAP-"
#define KSTATS_BITS_DEFAULT 3

/* A function whose end is another function's or a tracepoint's entry: open calls of one task. */
#define KSTATS_NEST_MAX 8

#endif /* _UAPI_KSTATS_H */
