/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Samples as lines of `statpage show --json`, by the formatter itself, for machines without kstats.ko:
 * dist_json NAME BITS MISSED <lines of `CPU NS [N]`. One line for all CPUs, then one for each.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fmt_dist.h"
#include "uapi/kstats_bucket.h"

#define MAX_CPUS 64

int main(int argc, char **argv)
{
	struct dist_metric m = {.nr_cpus = MAX_CPUS, .state = "running"};
	unsigned int cpu, bits, slot;
	uint64_t ns, n;
	char line[100];

	if (argc != 4)
		return 2;
	bits = (unsigned int)atoi(argv[2]);
	m.all = hist_new(bits);
	m.cpu = calloc(MAX_CPUS, sizeof(struct hist *));
	if (!m.all || !m.cpu)
		return 1;
	while (fgets(line, sizeof(line), stdin)) {
		n = 1;
		if (sscanf(line, "%u %" SCNu64 " %" SCNu64, &cpu, &ns, &n) < 2 || cpu >= MAX_CPUS)
			return 1;
		if (!m.cpu[cpu])
			m.cpu[cpu] = hist_new(bits);
		/* As from a table of the module: a slot's bounds are all that is known. */
		slot = kstats_slot(ns, bits);
		hist_add_slot(m.cpu[cpu], slot, n, ns * n);
		hist_add_slot(m.all, slot, n, ns * n);
	}
	snprintf(
		m.origin, sizeof(m.origin),
		"time start %s end return by task via direct clock tsc 2096011 kHz error 0.240 ppm",
		argv[1]);
	m.ledger.missed = strtoull(argv[3], NULL, 0);
	m.ledger.recorded = m.all->count;
	m.ledger.filtered = 7;
	m.ledger.inside = 1;
	m.ledger.attempted = m.ledger.recorded + m.ledger.missed + 8;
	if (m.ledger.missed)
		snprintf(m.ledger.causes, sizeof(m.ledger.causes), "instance %s", argv[3]);
	fmt_dist_json(stdout, argv[1], &m, -1);
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (m.cpu[cpu])
			fmt_dist_json(stdout, argv[1], &m, (int)cpu);
	dist_metric_free(&m);
	return 0;
}
