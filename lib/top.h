/* SPDX-License-Identifier: MIT */
/*
 * What `statpage top` shows, as plain data: threads, CPUs and distributions at one moment, and what
 * happened since the moment before. Not thread-safe.
 */
#ifndef LIB_TOP_H
#define LIB_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/cpus.h"
#include "lib/dist.h"
#include "lib/threads.h"

struct top_thread {
	const struct thread_sample *s;
	const struct thread_sample *older; /* in the report before; NULL: it was not there */
	struct thread_delta d; /* of the interval; of the first report since the thread began */
};

struct top_cpu {
	const struct cpu_row *row;
	struct cpu_delta d; /* of the interval; none in the first report */
};

struct top_dist {
	char name[128];
	struct hist *all;      /* since the metric was reset */
	struct hist *interval; /* NULL: there is no report before, or it was reset since */
	uint64_t missed;       /* samples that could not be taken, since it was reset */
	bool seen;	       /* in this report */
};

/* Valid until the next top_sample(). */
struct top_report {
	uint64_t mono_ns;     /* CLOCK_MONOTONIC, when it was begun */
	uint64_t real_ns;     /* CLOCK_REALTIME, likewise */
	uint64_t interval_ns; /* since the report before; 0: this is the first */
	struct top_thread *thread;
	size_t nr_threads;
	struct top_cpu *cpu; /* the sum, then each CPU online */
	size_t nr_cpus;
	const char *cpu_source;
	char no_cpus[200]; /* why there is no row; "" */
	struct top_dist *dist;
	size_t nr_dists;
	char dist_engines[32]; /* by name, with commas; "": */
	char no_dists[300];    /* why there are none */
};

struct top;

/* Engines of distributions that can be used now, the preferred one first, ends with NULL; or NULL and why. */
typedef const struct dist_engine *const *top_dists(struct dist_why *why);

/* Where reports are from, if not from this machine as it is now. Functions return 0, or -errno and a line in why. */
struct top_source {
	/* What the next report is about, and when that was. -ENODATA: there is no more. */
	int (*next)(uint64_t *mono_ns, uint64_t *real_ns, char *why, size_t len);
	int (*cpus)(struct cpus *c, char *why, size_t len);
	top_dists *dists;
};

/* engine and pid as threads_open() takes them. 0, or -errno and a line in why. */
int top_open(struct top **out, const char *engine, pid_t pid, top_dists *dists, char *why,
	     size_t len);
/* Takes threads over. 0 or -ENOMEM. */
int top_open_from(struct top **out, struct threads *threads, const struct top_source *source);
void top_close(struct top *t);

/*
 * Take a report. -ESRCH: the process has ended; the report is then without threads. -ENODATA: there is
 * none any more, and the last one stays. Or -errno.
 */
int top_sample(struct top *t, char *why, size_t len);

const struct top_report *top_report(const struct top *t);

/* The i'th engine of thread times in use, or NULL. */
const struct thread_engine *top_engine(const struct top *t, unsigned int i);

#endif /* LIB_TOP_H */
