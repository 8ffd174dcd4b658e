/* SPDX-License-Identifier: GPL-2.0 */
/* All rows of the cpu page of coarse_stat_fs. */
#ifndef TOOLS_CPU_TABLE_H
#define TOOLS_CPU_TABLE_H

#include "lib/coarse_stat_fs.h"

/* The rows of one refresh: the sum, then each CPU id. flags is 0 where no CPU can be. */
struct cpu_table {
	struct csf_cpu_snap sum;
	struct csf_cpu_row *cpu;
};

/* Into t, zeroed or read before. 0, or -1 with errno. cpu_table_free() frees what is in it. */
int cpu_table_read(struct cpu_table *t);
void cpu_table_free(struct cpu_table *t);

#endif /* TOOLS_CPU_TABLE_H */
