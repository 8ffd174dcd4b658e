// SPDX-License-Identifier: GPL-2.0
/* The cpu page: reading it whole, and as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

const char *const cpu_table_names[CPU_TABLE_TIMES] = {
	"user", "nice",	   "system", "idle",  "iowait",
	"irq",	"softirq", "steal",  "guest", "guest_nice",
};

_Static_assert(sizeof(struct csf_cpu_row) ==
		       offsetof(struct csf_cpu_row, user_ns) + CPU_TABLE_TIMES * sizeof(__u64),
	       "a row's times are those of /proc/stat, in its order");

uint64_t cpu_row_ns(const struct csf_cpu_row *row, int i)
{
	return (&row->user_ns)[i];
}

static void put_row(FILE *f, const struct csf_cpu_row *row)
{
	for (int i = 0; i < CPU_TABLE_TIMES; i++)
		fprintf(f, "%s\"%s_ns\":%" PRIu64, i ? "," : "", cpu_table_names[i],
			cpu_row_ns(row, i));
	fputc('}', f);
}

void cpu_table_json(FILE *f, const struct cpu_table *t, const char *source)
{
	const struct csf_cpu_snap *s = &t->sum;
	bool page = !source || !strcmp(source, "coarse_stat_fs");
	const char *comma = "";

	fputc('{', f);
	if (source)
		fprintf(f, "\"source\":\"%s\",", source);
	fprintf(f, "\"update_mono_ns\":%" PRIu64, (uint64_t)s->update_mono_ns);
	if (page)
		fprintf(f,
			",\"period_us\":%u,\"tick_ns\":%u,\"nr_updates\":%" PRIu64
			",\"nr_corrected\":%" PRIu64,
			s->period_us, s->tick_ns, (uint64_t)s->nr_updates,
			(uint64_t)s->nr_corrected);
	fputs(",\"all\":{", f);
	put_row(f, &s->row);
	fputs(",\"cpus\":[", f);
	for (uint32_t i = 0; i < s->nr_cpus; i++) {
		if (!(t->cpu[i].flags & CSF_CPU_POSSIBLE))
			continue;
		fprintf(f, "%s{\"cpu\":%u,\"online\":%s,", comma, i,
			t->cpu[i].flags & CSF_CPU_ONLINE ? "true" : "false");
		put_row(f, &t->cpu[i]);
		comma = ",";
	}
	fputs("]}", f);
}
