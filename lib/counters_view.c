/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "lib/counters_view.h"
#include "lib/rts/rts.h"

static void add(struct counters_view *v, uint32_t slot, const char *name, uint64_t value)
{
	for (size_t i = 0; i < v->nr; i++) {
		struct rts_counter *c = &v->counters[i];

		if (strcmp(c->name, name) || (!name[0] && c->slot != slot))
			continue;
		c->value = rts_add(c->value, value);
		return;
	}
	if (v->nr == COUNTERS_VIEW_MAX)
		return;
	memcpy(v->name[v->nr], name, RTS_NAME_MAX);
	v->counters[v->nr] = (struct rts_counter){slot, v->name[v->nr], value};
	v->nr++;
}

/* A program may have written anything into its page. */
static void add_page(struct counters_view *v, struct rts_counters_page *p)
{
	for (uint32_t i = 0; i < RTS_NR_COUNTERS; i++) {
		uint64_t value = atomic_load_explicit(&p->value[i], memory_order_relaxed);

		p->name[i][RTS_NAME_MAX - 1] = '\0';
		if (p->name[i][0] || value)
			add(v, i, p->name[i], value);
	}
}

static int read_page(pid_t pid, unsigned long at, struct rts_counters_page *p)
{
	struct iovec mine = {p, sizeof(*p)}, theirs = {(void *)at, sizeof(*p)};

	if (process_vm_readv(pid, &mine, 1, &theirs, 1, 0) != sizeof(*p))
		return -1;
	return atomic_load_explicit(&p->magic, memory_order_relaxed) == RTS_COUNTERS_MAGIC &&
			       p->size >= sizeof(*p) ?
		       0 :
		       -1;
}

void counters_view_read(pid_t pid, pid_t ns_pid, struct counters_view **v)
{
	char path[64], line[512];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return;
	if (*v)
		(*v)->nr = 0;
	while (fgets(line, sizeof(line), maps)) {
		struct rts_counters_page page;

		if (!strstr(line, "/memfd:" RTS_COUNTERS_MEMFD) ||
		    read_page(pid, strtoul(line, NULL, 16), &page) || page.pid != ns_pid)
			continue;
		if (!*v)
			*v = calloc(1, sizeof(**v));
		if (*v)
			add_page(*v, &page);
	}
	fclose(maps);
}
