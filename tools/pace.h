/* SPDX-License-Identifier: GPL-2.0 */
/* Doing something each interval, until a signal ends it. */
#ifndef TOOLS_PACE_H
#define TOOLS_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* CLOCK_MONOTONIC in ns. */
uint64_t pace_now(void);

/* Block SIGTERM, SIGINT and `also` (0: none); the descriptor can be read once one came. -1 after a message. */
int pace_signals(int also);

/*
 * Sleep until the next multiple of the interval since the start, or until end_ns if that comes first. Returns
 * true when a signal came.
 */
bool pace_wait(int signals, uint64_t start_ns, uint64_t interval_ns, uint64_t end_ns);

/* The time that an option takes, 1ms to 24h, in ns. Returns 0 or CMD_USAGE after a message. */
int pace_duration(const char *option, const char *text, uint64_t *ns);

#endif /* TOOLS_PACE_H */
