/* SPDX-License-Identifier: MIT */
/* A metric or a node as text. Pure: nothing is read but what is given, nothing written but to f. */
#ifndef LIB_FMT_DIST_H
#define LIB_FMT_DIST_H

#include <stdio.h>

#include "lib/dist.h"

/* cpu < 0: of all CPUs; a CPU without samples has an empty histogram. */

/* Head lines (origin, ledger, notes), then one line a slot: bounds, count, average, shares. */
void fmt_dist_text(FILE *f, const char *name, const struct dist_metric *m, int cpu);

/* Quantiles with their bounds: p50, p90, p99, p99.9, and the least and the greatest. */
void fmt_dist_quantiles(FILE *f, const char *name, const struct dist_metric *m, int cpu);

/* One JSON object a line; docs/kstats.md has its keys. */
void fmt_dist_json(FILE *f, const char *name, const struct dist_metric *m, int cpu);

/*
 * For recordings: the same object of all CPUs without a newline, with `engine`, `notes`, and in `per_cpu` the
 * samples of each CPU; docs/json.md has the keys. And a node.
 */
void fmt_dist_json_whole(FILE *f, const char *engine, const char *name,
			 const struct dist_metric *m);
void fmt_dist_node_json(FILE *f, const char *engine, const struct dist_node *n);

/* "attempted 5 recorded 4 missed 1 (instance 1)", and what else is not 0. */
void fmt_dist_ledger(FILE *f, const struct dist_ledger *l);

/* The lines that every form for people begins with: name, origin, ledger, notes. */
void fmt_dist_head(FILE *f, const char *name, const struct dist_metric *m, int cpu);

/* The histogram that is shown for this CPU; NULL: no samples there. */
const struct hist *fmt_dist_pick(const struct dist_metric *m, int cpu);

/* 480 ns, 20.1 us, 1.06 ms: three digits, as a slot is no finer. Returns buf. */
const char *fmt_dist_ns(char buf[16], uint64_t ns);

#endif /* LIB_FMT_DIST_H */
