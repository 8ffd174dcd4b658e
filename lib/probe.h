/* SPDX-License-Identifier: MIT */
/*
 * What of statpage works here and now, found out by doing it: each probe uses what it reports on, and
 * leaves nothing behind. A file that exists says nothing about whether it can be used.
 */
#ifndef STATPAGE_PROBE_H
#define STATPAGE_PROBE_H

#include <stdbool.h>
#include <stddef.h>

struct probe {
	const char *part;   /* of statpage */
	const char *engine; /* or, with the same meaning, the thing that is needed */
	bool works;
	char text[200]; /* what was seen when it works, why not when it does not */
	char fix[200];	/* the one command, or step, that would help; "" when there is none */
};

/* Run probe number i, from 0 on. False: there are no more. Forks; not thread-safe. */
bool probe_run(unsigned int i, struct probe *p);

#endif /* STATPAGE_PROBE_H */
