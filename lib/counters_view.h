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

/* The same of a page's bytes, len of them, if they are a page that counts for ns_pid; else nothing. */
void counters_view_add(const void *bytes, size_t len, pid_t ns_pid, struct counters_view **v);

/* The descriptor fd of process pid, opened as one of ours, to read the page at any time; -errno. */
int counters_view_open(pid_t pid, int fd);

/* Open each page that process pid has a descriptor of, and hand it out. */
void counters_view_each(pid_t pid, void (*fn)(int fd, void *ctx), void *ctx);

#endif /* STATPAGE_COUNTERS_VIEW_H */
