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

/*
 * One JSON object a line: name, bits, unit, state, origin, complete (nothing was missed), the ledger's
 * numbers, count, sum (absent when it does not fit 64 bits), mean, quantiles, and slots, each with
 * slot, low, high, count, sum, and density: samples for each unit of its width.
 */
void fmt_dist_json(FILE *f, const char *name, const struct dist_metric *m, int cpu);

/* Bars of the distribution and a curve of the shares, columns wide. */
void fmt_dist_plot(FILE *f, const char *name, const struct dist_metric *m, int cpu,
		   unsigned int columns);

/* "attempted 5 recorded 4 missed 1 (instance 1)", and what else is not 0. */
void fmt_dist_ledger(FILE *f, const struct dist_ledger *l);

#endif /* LIB_FMT_DIST_H */
