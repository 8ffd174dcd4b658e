/* SPDX-License-Identifier: MIT */
/*
 * The pages of any process's threads, of statpage serve: for root that may trace every process, in the
 * server's user and pid namespaces. Costs the threads what a page costs them at each switch, for as long as
 * there is a view that has looked at them. Not thread-safe.
 */
#ifndef LIB_CSF_VIEW_H
#define LIB_CSF_VIEW_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/coarse_stat_fs.h"

struct csf_view;

/* NULL: no memory. csf_view_free() gives the pages back; NULL is fine. */
struct csf_view *csf_view_new(void);
void csf_view_free(struct csf_view *v);

/* Whether the server gave us a page, or may do so: it runs, and has not refused. */
bool csf_view_may(const struct csf_view *v);

/*
 * A look at threads: begin, a snapshot of each, end. Pages of threads that were not asked for in between are
 * forgotten.
 */
void csf_view_begin(struct csf_view *v);
void csf_view_end(struct csf_view *v);

/* Of a page that began when we asked for it: */
struct csf_view_base {
	bool known;		   /* it did */
	uint64_t min_flt, maj_flt; /* what these were then */
};

/*
 * 0, or -1: there is none, in this look: the thread has ended, the server has no page left, or does not answer. Of a
 * page that began in this look the buckets say nothing yet, but the next look's can be subtracted: EAGAIN.
 */
int csf_view_snap(struct csf_view *v, pid_t pid, pid_t tid, struct csf_snap *s,
		  struct csf_view_base *base);

#endif /* LIB_CSF_VIEW_H */
