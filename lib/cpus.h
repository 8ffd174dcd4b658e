/* SPDX-License-Identifier: MIT */
/*
 * The machine's CPU times: from the cpu page of coarse_stat_fs where it is mounted, to the ns, else from
 * /proc/stat, in ticks of USER_HZ. Not thread-safe.
 */
#ifndef LIB_CPUS_H
#define LIB_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of /proc/stat. user includes guest, nice includes guest_nice. */
enum cpu_time {
	CPU_USER,
	CPU_NICE,
	CPU_SYSTEM,
	CPU_IDLE,
	CPU_IOWAIT,
	CPU_IRQ,
	CPU_SOFTIRQ,
	CPU_STEAL,
	CPU_NR_DISJOINT, /* these add up to all time */
	CPU_GUEST = CPU_NR_DISJOINT,
	CPU_GUEST_NICE,
	CPU_NR_TIMES
};

extern const char *const cpu_time_names[CPU_NR_TIMES];

struct cpu_row {
	int cpu;		   /* id; -1: all of them */
	uint64_t ns[CPU_NR_TIMES]; /* since boot */
};

/* Starts zeroed, ends with cpus_free(). row[0] is the sum, the others are CPUs online, by id. */
struct cpus {
	const char *source; /* "coarse_stat_fs" or "/proc/stat" */
	uint64_t mono_ns;   /* CLOCK_MONOTONIC that the times are as of */
	struct cpu_row *row;
	size_t nr, cap;
};

/* 0, or -errno and a line in why. */
int cpus_read(struct cpus *c, char *why, size_t len);
void cpus_free(struct cpus *c);

/* What happened on a CPU. all_ns 0: it cannot be told. Idle may run backwards in /proc/stat: a time that did is not in `known`. */
struct cpu_delta {
	uint64_t all_ns;
	unsigned int known; /* 1 << enum cpu_time */
	uint64_t ns[CPU_NR_TIMES];
};

/* older is of the same source, and may lack the CPU. */
void cpus_diff(struct cpu_delta *d, const struct cpus *older, const struct cpus *c, size_t row);

#endif /* LIB_CPUS_H */
