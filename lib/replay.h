/* SPDX-License-Identifier: MIT */
/*
 * What `statpage record` wrote, behind the interfaces of what is live: the recording is a header and then
 * instants, and each function tells of the instant that was read last. docs/json.md has the format.
 *
 * One recording at a time, as engines have no state of their own. Functions return 0 or -errno, and then
 * have set `why` to one line that begins with the file's name, unless it is about a metric's name. Memory
 * holds a few instants at most, whatever the file's size. Needs json-c. Not thread-safe.
 */
#ifndef LIB_REPLAY_H
#define LIB_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/coarse_stat_fs.h"
#include "lib/cpus.h"
#include "lib/dist.h"
#include "lib/threads.h"

#define REPLAY_FORMAT  "statpage-record"
#define REPLAY_VERSION 1

struct replay_head {
	char release[72];     /* of the kernel */
	uint64_t interval_ns; /* that was asked for */
	unsigned int nr_cpus; /* ids that a CPU can have */
};

/* Open the file, "-" for standard input, and read its header. */
int replay_open(const char *file, struct dist_why *why);
void replay_close(void); /* without a recording: nothing */
const struct replay_head *replay_head(void);

/* Read the next instant. 1; 0: there is none; or -errno. */
int replay_next(struct dist_why *why);

/*
 * Go on by an interval, or to the end if that comes first, reading the instants in between; intervals are
 * from the first instant on. With 0 to the next instant. Returns as replay_next().
 */
int replay_step(uint64_t interval_ns, struct dist_why *why);

/* Go to the end, so that replay_next() reads the last one or two instants, then none. */
int replay_to_last(unsigned int nr, struct dist_why *why);

/*
 * Go to the end, so that replay_next() reads the last instant that has threads (of a process; 0: any) and before
 * that the one before it. left_out_ns: from there to the end. If none has, the last two.
 */
int replay_to_threads(pid_t pid, uint64_t *left_out_ns, struct dist_why *why);

/* Let replay_next() read the same instant once more. */
void replay_hold(void);

/* Once the end was read: why there may have been more, or NULL for a recording that is whole. */
const char *replay_cut(void);

/* The instant, by CLOCK_MONOTONIC and CLOCK_REALTIME. */
uint64_t replay_mono_ns(void);
uint64_t replay_real_ns(void);

/*
 * The engines whose distributions were recorded, then NULL; or NULL and why. They probe, have, list and
 * read; they change nothing.
 */
const struct dist_engine *const *replay_engines(struct dist_why *why);

/*
 * Threads of a process or of all, for threads_sample(); -ESRCH from there: the process is no longer
 * there. With a pid it goes on to the first instant that has it, and holds that. -EINVAL: none has.
 */
int replay_threads(struct threads **out, pid_t pid, struct dist_why *why);

/* As cpus_read(). */
int replay_cpus(struct cpus *c, char *why, size_t len);

/* The cpu page: the sum, and *row by CPU id, which is the caller's to free. */
int replay_cpu_page(struct csf_cpu_snap *sum, struct csf_cpu_row **row, struct dist_why *why);

#endif /* LIB_REPLAY_H */
