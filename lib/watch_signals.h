/* SPDX-License-Identifier: MIT */
/*
 * Signals and the interval of a program that sits in waitpid(). That call takes no signal mask, so a
 * signal may arrive between a look at the flags and the call: every handler therefore arms a timer
 * that interrupts again until the flags have been looked at. One watch at a time.
 */
#ifndef STATPAGE_WATCH_SIGNALS_H
#define STATPAGE_WATCH_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Set by handlers; take it with watch_take(). */
extern volatile sig_atomic_t watch_pending;

struct watch_news {
	bool snapshot;
	bool interval;
	int end;	    /* SIGINT, SIGTERM, SIGHUP or SIGQUIT; 0: none */
	bool from_terminal; /* the program got it too */
	bool again;	    /* the one before was in vain */
};

/* Take over; snapshot_signal 0 and interval_ns 0 mean none. 0 or -errno. */
int watch_start(int snapshot_signal, uint64_t interval_ns);
/* Give back every disposition, the mask and the timers, as they were. */
void watch_stop(void);
/* The same in a forked child, which has no timers. Async-signal-safe. */
void watch_restore_child(void);
/* What has happened since the last call. */
struct watch_news watch_take(void);

#endif /* STATPAGE_WATCH_SIGNALS_H */
