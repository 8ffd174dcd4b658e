/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Commands with --replay FILE: the recording behind lib/replay.h, with messages. Without json-c only such
 * messages. FILE may be "-", standard input.
 */
#ifndef TOOLS_REPLAY_H
#define TOOLS_REPLAY_H

#include "lib/replay.h"
#include "lib/top.h"
#include "tools/cpu_table.h"

/* Open it, before its first instant. Returns 0 or CMD_FAILED after a message. */
int replay_begin(const char *file);

/* Open it, and read the last instant; with a note where it was cut short. Returns as above. */
int replay_last(const char *file);

/* Go on by replay_step(). 1; 0 at the end, with that note; or -1 after a message. */
int replay_on(uint64_t interval_ns);

/* The engines of the instant, or NULL after a message. */
const struct dist_engine *const *replay_dists(void);

/* The cpu page of the instant into t, as cpu_table_read(). Returns 0 or CMD_FAILED after a message. */
int replay_cpu_table(struct cpu_table *t);

/*
 * Reports of the recording, which go on by an interval as replay_step() does, or `once`: of the last two
 * instants. pid 0: all. -ENODATA from top_sample() comes with a line that says how it ended. Returns 0 or
 * CMD_FAILED after a message.
 */
int replay_top(struct top **out, pid_t pid, uint64_t interval_ns, bool once);

#endif /* TOOLS_REPLAY_H */
