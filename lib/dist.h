/* SPDX-License-Identifier: MIT */
/*
 * Engines of distributions: who traces functions and fills histograms. A command takes one by name or
 * by what is there, and knows nothing else about it. Each is a file engine_<name>.c.
 *
 * Functions return 0 or -errno, and then have set `why` to one line that names the input, what was
 * expected, and what to do. Not thread-safe.
 */
#ifndef LIB_DIST_H
#define LIB_DIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/hist.h"

struct dist_why {
	char text[300];
};

/* What to trace. Strings are borrowed. */
struct dist_spec {
	const char *name;  /* of the node */
	const char *start; /* function, sys:event, or __tracepoint_event */
	const char *end;   /* the same; NULL: the function's return */
	const char *via;   /* a mechanism of the engine; NULL: its choice */
	const char *comm;  /* only tasks of this name; NULL: any */
	unsigned int bits;
	unsigned int maxactive; /* calls at once, where that is limited; 0: the default */
	int pid;		/* only this process; 0: any */
	int cpu;		/* only this CPU; -1: any */
	bool by_cpu;		/* start and end are paired on the CPU, not in the task */
	bool gap;		/* record the gaps between calls too, as GAP-name */
};

/* attempted = recorded + missed + filtered + stopped + inside, exactly, once nothing is running. */
struct dist_ledger {
	uint64_t attempted, recorded, missed;
	uint64_t filtered; /* left out by a filter */
	uint64_t stopped;  /* ended while the metric was stopped */
	uint64_t inside;   /* began and have not ended */
	uint64_t unpaired; /* ends without a start; no sample was due */
	char causes[160];  /* of missed: "instance 3 died 1", or "" */
};

/* A traced node. */
struct dist_node {
	char name[64], start[128], end[128]; /* end "return" for calls */
	char via[16], state[16], by[8];
	char note[128]; /* why it is not the usual mechanism; "" */
	unsigned int bits;
	bool gap;
	struct dist_ledger ledger;
};

/* A metric read at one moment. Freed by dist_metric_free(). */
struct dist_metric {
	struct hist *all;  /* of all CPUs */
	struct hist **cpu; /* by CPU id; NULL where that CPU has no samples */
	unsigned int nr_cpus;
	struct dist_ledger ledger;
	uint64_t
		sum; /* of all samples, as the engine keeps it; UINT64_MAX: more than 64 bits hold */
	bool has_sum;
	char state[16];
	char origin[400]; /* what it measures, how, and by which clock: one line */
	char notes[400];  /* what a reader must know, one a line; "" */
};

enum dist_action {
	DIST_START,
	DIST_STOP,
	DIST_RESET,
};

struct dist_engine {
	const char *name;
	/* 0 when it can be used here and now; -ENODEV: this machine does not have it */
	int (*probe)(struct dist_why *why);
	/* The same by timing something, and undoing that: why tells how, or why not. */
	int (*try)(struct dist_why *why);
	/* Is there such a metric? */
	bool (*has)(const char *name);
	/* -EROFS: this engine can change nothing here; another may do */
	int (*trace)(const struct dist_spec *spec, struct dist_why *why);
	int (*untrace)(const char *name, struct dist_why *why);
	/* Calls fn for each node until it returns non-zero, which is then returned. */
	int (*list)(int (*fn)(const struct dist_node *node, void *data), void *data,
		    struct dist_why *why);
	/* The same for the names of all metrics, also those that no node made; sorted. */
	int (*metrics)(int (*fn)(const char *name, void *data), void *data, struct dist_why *why);
	int (*read)(const char *name, struct dist_metric *to, struct dist_why *why);
	int (*act)(const char *name, enum dist_action action, struct dist_why *why);
};

/* The module kstats.ko, by its files in debugfs. */
extern const struct dist_engine engine_kmod;

/*
 * Let probe, list, metrics and read of engine_kmod look at a copy of the module's files in this folder, which
 * must stay valid; NULL: at the module's own again.
 */
void engine_kmod_from(const char *dir);
bool engine_kmod_is_copy(void);

/* Programs in the kernel, which need no module. */
extern const struct dist_engine engine_dist_bpf;

/* Sets the line and returns err. */
__attribute__((format(printf, 3, 4))) int dist_fail(struct dist_why *why, int err, const char *fmt,
						    ...);

void dist_metric_free(struct dist_metric *m);

/* Free what is known by CPU; all of them together stay. */
void dist_metric_drop_cpus(struct dist_metric *m);

/*
 * Read a metric's table as kstats.ko prints it, from any stream; memory depends on the number of CPUs
 * that have samples, not on the length of the text. -EPROTO: a line that is none of a table; -ENOMEM.
 */
#include <stdio.h>
int engine_kmod_parse(FILE *f, const char *name, struct dist_metric *to, struct dist_why *why);

#endif /* LIB_DIST_H */
