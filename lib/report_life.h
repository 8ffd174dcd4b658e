/* SPDX-License-Identifier: MIT */
/* Between report_life.c, which holds lives, and report_read.c and report_recorded.c, which fill them. */
#ifndef STATPAGE_REPORT_LIFE_H
#define STATPAGE_REPORT_LIFE_H

#include "lib/report.h"

/* A new row, all zero; NULL: there is no more room, which is counted, or no memory. */
struct report_call *report_call_slot(struct report_calls *t);

/* The life that has the pid, tid, key and tree of another; NULL: there is none. */
struct report_life *report_life_find(struct report_input *in, const struct report_life *like);
/* A copy of it. Others may go to make room: pointers to them end here. NULL: no memory. */
struct report_life *report_life_new(struct report_input *in, const struct report_life *like);
void report_life_free(struct report_life *l); /* what it holds, not itself */

/* 0 or -ENOMEM. */
int report_add_point(struct report_life *l, const struct report_point *p);

/* After the last record: the order of lives, their lanes, and the whole. */
void report_sum_up(struct report_input *in);

#endif /* STATPAGE_REPORT_LIFE_H */
