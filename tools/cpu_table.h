/* SPDX-License-Identifier: GPL-2.0 */
/* All rows of the cpu page of coarse_stat_fs. */
#ifndef TOOLS_CPU_TABLE_H
#define TOOLS_CPU_TABLE_H

#include <stdio.h>

#include "lib/coarse_stat_fs.h"

/* Times of a row, in the order of /proc/stat; guest and guest_nice are in user and nice already. */
#define CPU_TABLE_TIMES	   10
#define CPU_TABLE_DISJOINT 8
extern const char *const cpu_table_names[CPU_TABLE_TIMES];

/* The rows of one refresh: the sum, then each CPU id. flags is 0 where no CPU can be. */
struct cpu_table {
	struct csf_cpu_snap sum;
	struct csf_cpu_row *cpu;
};

/* Into t, zeroed or read before. 0, or -1 with errno. cpu_table_free() frees what is in it. */
int cpu_table_read(struct cpu_table *t);
void cpu_table_free(struct cpu_table *t);

uint64_t cpu_row_ns(const struct csf_cpu_row *row, int i);

/*
 * One object, without a newline: docs of `cpu --json` have its keys. source is where the times are from, NULL
 * is not told; if that is not the page, there is only what any source has.
 */
void cpu_table_json(FILE *f, const struct cpu_table *t, const char *source);

#endif /* TOOLS_CPU_TABLE_H */
