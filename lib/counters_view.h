/* SPDX-License-Identifier: MIT */
/* The counters pages of another process (rts_counters_open() in lib/rts/rts.h), seen from outside. */
#ifndef STATPAGE_COUNTERS_VIEW_H
#define STATPAGE_COUNTERS_VIEW_H

#include <stddef.h>
#include <sys/types.h>

#include "lib/record.h"

enum { COUNTERS_VIEW_MAX = 2 * RTS_NR_COUNTERS };

struct counters_view {
	size_t nr;
	struct rts_counter counters[COUNTERS_VIEW_MAX]; /* names point into name */
	char name[COUNTERS_VIEW_MAX][RTS_NAME_MAX];
};

/*
 * Read every page that pid has mapped and that counts for it: not those a forked child still has of its
 * parent, so ns_pid, its number as it sees itself, has to match. Counters of one name are summed.
 * *v is allocated if need be and freed by the caller; it is left alone when there is no page.
 */
void counters_view_read(pid_t pid, pid_t ns_pid, struct counters_view **v);

#endif /* STATPAGE_COUNTERS_VIEW_H */
