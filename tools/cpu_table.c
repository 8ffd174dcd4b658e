// SPDX-License-Identifier: GPL-2.0
/* Reading the cpu page whole. */
#include <errno.h>
#include <stdlib.h>

#include "tools/cpu_table.h"

/* All rows, as long as none is of another refresh than the sum. Returns 0 or -1 with errno. */
static int read_once(struct cpu_table *t)
{
	struct csf_cpu_snap s = {0};
	uint32_t i;

	if (csf_cpu_snap(&t->sum, CSF_CPU_ALL))
		return -1;
	if (!t->cpu)
		t->cpu = calloc(t->sum.nr_cpus, sizeof(t->cpu[0]));
	if (!t->cpu)
		return -1;
	for (i = 0; i < t->sum.nr_cpus; i++) {
		if (csf_cpu_snap(&s, i) && errno != ENXIO)
			return -1;
		t->cpu[i] = s.row;
		if (s.nr_updates != t->sum.nr_updates) {
			errno = EAGAIN;
			return -1;
		}
	}
	return 0;
}

/*
 * Reading takes some 50 ns a CPU, and a refresh comes every half millisecond at the most. EBUSY comes
 * after some 20 ms; in a guest, a virtual CPU may have been taken away in the middle of a refresh.
 */
int cpu_table_read(struct cpu_table *t)
{
	int tries, ret = -1;

	for (tries = 0; ret && tries < 100; tries++) {
		ret = read_once(t);
		if (ret && errno != EAGAIN && errno != EBUSY)
			break;
	}
	return ret;
}

void cpu_table_free(struct cpu_table *t)
{
	free(t->cpu);
	t->cpu = NULL;
}
