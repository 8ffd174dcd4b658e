/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of `statpage top` share. */
#ifndef TOOLS_TOP_H
#define TOOLS_TOP_H

#include "lib/fmt_top.h"
#include "lib/top.h"

struct top_opts {
	struct top *top;
	const struct thread_engine *const *engine; /* those in use; ends with NULL */
	pid_t pid;				   /* 0: all */
	uint64_t interval_ns;
	unsigned int count; /* intervals; 0: until it is quit */
	bool replay;	    /* of a recording; the interval is how long each is shown */
	const char *hint;   /* what would show more; NULL */
};

/*
 * Show it on the terminal until the user quits. Returns an exit status, after a message where it is
 * not 0. Without ncurses only that.
 */
int top_live(const struct top_opts *o);

#endif /* TOOLS_TOP_H */
