/* SPDX-License-Identifier: GPL-2.0 */
/* What direct.c and direct_x86.S agree on. */
#ifndef KSTATS_DIRECT_H
#define KSTATS_DIRECT_H

/* Numbers of slots; the .S file and the tables of direct.c count them in octal digits. */
#define KSTATS_LEAN  64 /* for functions without stack arguments */
#define KSTATS_WIDE  16 /* copies KSTATS_WORDS words of them */
#define KSTATS_SLOTS (KSTATS_LEAN + KSTATS_WIDE)
/*
 * On x86-64 a function of 14 arguments has 8 words on the stack. More of them would cost every level of
 * a recursion its share of the stack: 101 levels with 16 words overflow 16 KiB.
 */
#define KSTATS_WORDS 8

/* struct kstats_slot_cpu: one a slot and CPU */
#define KSTATS_SLOT_ENTRY 0
#define KSTATS_SLOT_EXIT  8
#define KSTATS_SLOT_END	  16
#define KSTATS_SLOT_SHIFT 5

#endif /* KSTATS_DIRECT_H */
