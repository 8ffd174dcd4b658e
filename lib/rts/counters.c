/* SPDX-License-Identifier: MIT */
/* The counters page, see struct rts_counters_page. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#define PAGE_SIZE_ 4096u

_Static_assert(sizeof(struct rts_counters_page) <= PAGE_SIZE_, "the page is one page");

struct rts_counters_page *rts_counters;
static int page_fd = -1;

static int check_names(const char *const *names, size_t nr)
{
	if (nr > RTS_NR_COUNTERS)
		return -EINVAL;
	for (size_t i = 0; i < nr; i++) {
		if (!names[i] || !names[i][0])
			continue;
		if (strlen(names[i]) >= RTS_NAME_MAX || !strncmp(names[i], "reserved", 8))
			return -EINVAL;
		for (size_t j = 0; j < i; j++)
			if (names[j] && !strcmp(names[i], names[j]))
				return -EINVAL;
	}
	return 0;
}

/* Map a new page, at a given address or anywhere. A memfd if possible, else private memory. */
static struct rts_counters_page *map_page(void *at)
{
	int where = at ? MAP_FIXED : 0, fd = rts_os_memfd(RTS_COUNTERS_MEMFD, PAGE_SIZE_);
	void *p = MAP_FAILED;

	if (fd >= 0)
		p = mmap(at, PAGE_SIZE_, PROT_READ | PROT_WRITE, MAP_SHARED | where, fd, 0);
	page_fd = fd;
	if (p != MAP_FAILED)
		return p;
	if (fd >= 0)
		close(fd);
	page_fd = -1;
	return rts_os_map(at, PAGE_SIZE_, false);
}

static void fill_page(struct rts_counters_page *p)
{
	p->size = sizeof(*p);
	p->nr = RTS_NR_COUNTERS;
	p->pid = (int32_t)getpid();
	rts_clock(&p->start_ns);
	atomic_store(&p->gate, 1);
	atomic_store(&p->magic, RTS_COUNTERS_MAGIC);
}

int rts_counters_open(const char *const *names, size_t nr, unsigned int flags)
{
	struct rts_counters_page *p;
	int ret = check_names(names, nr);

	if (ret)
		return ret;
	if (rts_counters)
		return -EALREADY;
	if (!rts_active() && !(flags & RTS_COUNTERS_ALWAYS))
		return 0;
	p = map_page(NULL);
	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		if (names[i])
			memcpy(p->name[i], names[i], strlen(names[i]) + 1);
	fill_page(p);
	rts_counters = p;
	/* With the statistics off nothing else has asked to be told of forks. */
	return rts_watch_forks();
}

size_t rts_counters_read(struct rts_counter *to, bool take)
{
	struct rts_counters_page *p = rts_counters;
	size_t nr = 0;

	for (uint32_t i = 0; p && i < RTS_NR_COUNTERS; i++) {
		uint64_t v = take ? atomic_exchange(&p->value[i], 0) : LOAD(p->value[i]);

		if (v || p->name[i][0])
			to[nr++] = (struct rts_counter){.slot = i, .name = p->name[i], .value = v};
	}
	if (p && take)
		rts_clock(&p->start_ns);
	return nr;
}

/*
 * The page is shared with the parent, so it is replaced, not zeroed. When there is no memory even
 * for that the child does not count: it must not count in its parent's page.
 */
void rts_counters_forked(void)
{
	struct rts_counters_page *old = rts_counters, *p;
	char name[RTS_NR_COUNTERS][RTS_NAME_MAX];
	int fd = page_fd;

	if (!old)
		return;
	memcpy(name, old->name, sizeof(name));
	p = map_page(old);
	if (fd >= 0)
		close(fd);
	rts_counters = p;
	if (!p)
		return;
	memcpy(p->name, name, sizeof(name));
	fill_page(p);
}
