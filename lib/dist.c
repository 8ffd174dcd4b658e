// SPDX-License-Identifier: MIT
/* What all engines share. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/dist.h"

int dist_fail(struct dist_why *why, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
	return err;
}

void dist_metric_drop_cpus(struct dist_metric *m)
{
	while (m->nr_cpus)
		hist_free(m->cpu[--m->nr_cpus]);
	free(m->cpu);
	m->cpu = NULL;
}

void dist_metric_free(struct dist_metric *m)
{
	dist_metric_drop_cpus(m);
	hist_free(m->all);
	memset(m, 0, sizeof(*m));
}
