/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/counters_view.h"
#include "lib/rts/rts.h"

#define MEMFD_LINK "/memfd:" RTS_COUNTERS_MEMFD

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

void counters_view_add(const void *bytes, size_t len, pid_t ns_pid, struct counters_view **v)
{
	struct rts_counters_page p;

	if (len < sizeof(p))
		return;
	memcpy(&p, bytes, sizeof(p));
	if (atomic_load_explicit(&p.magic, memory_order_relaxed) != RTS_COUNTERS_MAGIC ||
	    p.size < sizeof(p) || p.pid != ns_pid)
		return;
	if (!*v)
		*v = calloc(1, sizeof(**v));
	if (*v)
		add_page(*v, &p);
}

int counters_view_open(pid_t pid, int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

void counters_view_each(pid_t pid, void (*fn)(int fd, void *ctx), void *ctx)
{
	char path[64], to[64];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, to, sizeof(to) - 1);

		to[n < 0 ? 0 : n] = '\0';
		if (!strncmp(to, MEMFD_LINK, sizeof(MEMFD_LINK) - 1))
			fn(counters_view_open(pid, atoi(e->d_name)), ctx);
	}
	if (dir)
		closedir(dir);
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
		struct iovec mine = {&page, sizeof(page)};
		struct iovec theirs = {(void *)strtoul(line, NULL, 16), sizeof(page)};

		if (strstr(line, MEMFD_LINK) &&
		    process_vm_readv(pid, &mine, 1, &theirs, 1, 0) == sizeof(page))
			counters_view_add(&page, sizeof(page), ns_pid, v);
	}
	fclose(maps);
}
