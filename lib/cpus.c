// SPDX-License-Identifier: MIT
/* CPU times of the machine, from whichever of two sources there is. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/coarse_stat_fs.h"
#include "lib/cpus.h"

const char *const cpu_time_names[CPU_NR_TIMES] = {
	[CPU_USER] = "user",	   [CPU_NICE] = "nice",
	[CPU_SYSTEM] = "system",   [CPU_IDLE] = "idle",
	[CPU_IOWAIT] = "iowait",   [CPU_IRQ] = "irq",
	[CPU_SOFTIRQ] = "softirq", [CPU_STEAL] = "steal",
	[CPU_GUEST] = "guest",	   [CPU_GUEST_NICE] = "guest_nice",
};

_Static_assert(sizeof(struct csf_cpu_row) ==
		       offsetof(struct csf_cpu_row, user_ns) + CPU_NR_TIMES * sizeof(__u64),
	       "the page's times are those of /proc/stat, in its order");

static struct cpu_row *add_row(struct cpus *c, int cpu)
{
	struct cpu_row *row;

	if (c->nr == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 16;

		row = reallocarray(c->row, cap, sizeof(*row));
		if (!row)
			return NULL;
		c->row = row;
		c->cap = cap;
	}
	row = &c->row[c->nr++];
	row->cpu = cpu;
	return row;
}

/* 0, or -errno; -EAGAIN: a refresh came in between. */
static int read_page_once(struct cpus *c)
{
	struct csf_cpu_snap sum, s = {0};
	struct cpu_row *row;

	c->nr = 0;
	if (csf_cpu_snap(&sum, CSF_CPU_ALL))
		return -errno;
	row = add_row(c, -1);
	if (!row)
		return -ENOMEM;
	memcpy(row->ns, &sum.row.user_ns, sizeof(row->ns));
	for (uint32_t i = 0; i < sum.nr_cpus; i++) {
		if (csf_cpu_snap(&s, i) && errno != ENXIO)
			return -errno;
		if (s.nr_updates != sum.nr_updates)
			return -EAGAIN;
		if (!(s.row.flags & CSF_CPU_ONLINE))
			continue;
		row = add_row(c, (int)i);
		if (!row)
			return -ENOMEM;
		memcpy(row->ns, &s.row.user_ns, sizeof(row->ns));
	}
	c->mono_ns = sum.update_mono_ns;
	c->source = "coarse_stat_fs";
	return 0;
}

/* Reading takes some 50 ns a CPU, a refresh comes every half millisecond at the most. */
static int read_page(struct cpus *c)
{
	int err = -EAGAIN;

	for (int tries = 0; (err == -EAGAIN || err == -EBUSY) && tries < 100; tries++)
		err = read_page_once(c);
	return err;
}

static int parse_line(struct cpus *c, const char *line, uint64_t tick_ns)
{
	struct cpu_row *row;
	char *p;

	row = add_row(c, line[3] == ' ' ? -1 : (int)strtol(line + 3, NULL, 10));
	if (!row)
		return -ENOMEM;
	p = strchr(line, ' ');
	for (int i = 0; i < CPU_NR_TIMES; i++)
		row->ns[i] = strtoull(p, &p, 10) * tick_ns;
	return 0;
}

static int read_stat(struct cpus *c)
{
	const uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	FILE *f = fopen("/proc/stat", "re");
	struct timespec ts;
	char line[512];
	int err = 0;

	if (!f)
		return -errno;
	c->nr = 0;
	while (!err && fgets(line, sizeof(line), f) && !strncmp(line, "cpu", 3))
		err = parse_line(c, line, tick_ns);
	if (!err && (ferror(f) || c->nr < 2 || c->row[0].cpu != -1))
		err = -EPROTO;
	fclose(f);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	c->mono_ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	c->source = "/proc/stat";
	return err;
}

int cpus_read(struct cpus *c, char *why, size_t len)
{
	int err;

	if (!read_page(c))
		return 0;
	err = read_stat(c);
	if (err)
		snprintf(why, len, "/proc/stat: %s",
			 err == -EPROTO ? "has no lines of CPUs" : strerror(-err));
	return err;
}

void cpus_free(struct cpus *c)
{
	free(c->row);
	memset(c, 0, sizeof(*c));
}

static const struct cpu_row *find(const struct cpus *c, int cpu)
{
	for (size_t i = 0; i < c->nr; i++)
		if (c->row[i].cpu == cpu)
			return &c->row[i];
	return NULL;
}

void cpus_diff(struct cpu_delta *d, const struct cpus *older, const struct cpus *c, size_t nr)
{
	const struct cpu_row *to = &c->row[nr], *from = find(older, to->cpu);

	memset(d, 0, sizeof(*d));
	if (!from || older->source != c->source)
		return;
	for (int i = 0; i < CPU_NR_TIMES; i++) {
		if (to->ns[i] < from->ns[i])
			continue;
		d->known |= 1u << i;
		d->ns[i] = to->ns[i] - from->ns[i];
		if (i < CPU_NR_DISJOINT)
			d->all_ns += d->ns[i];
	}
}
