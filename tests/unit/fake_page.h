/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Made-up pages for the tests of the reader: a test is its own kernel. The files lie in a directory
 * of their own, which becomes the working directory, and the reader is told to look there. The test
 * writes them through a mapping, as the module would.
 */
#ifndef FAKE_PAGE_H
#define FAKE_PAGE_H

#define CSF_MOUNT_PATH "."
#include "lib/coarse_stat_fs.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u

static char fake_dir[64];

static inline void fake_die(const char *what)
{
	perror(what);
	_exit(1);
}

static inline void fake_cleanup(void)
{
	unlink("thread-self");
	unlink("cpu");
	if (fake_dir[0])
		rmdir(fake_dir);
}

/* An empty directory to be in. */
static inline void fake_mount(void)
{
	strcpy(fake_dir, "/tmp/csf-unit.XXXXXX");
	if (!mkdtemp(fake_dir) || chdir(fake_dir))
		fake_die(fake_dir);
}

/* A new file of len zeros in place of what was there, mapped to be written. */
static inline void *fake_file(const char *name, size_t len)
{
	int fd = open("new", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	void *p;

	if (fd < 0 || ftruncate(fd, (off_t)len) || rename("new", name))
		fake_die(name);
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		fake_die("mmap");
	close(fd);
	return p;
}

static inline void fake_hdr(struct csf_hdr *h, uint16_t kind, uint32_t size)
{
	h->magic = CSF_MAGIC;
	h->abi = CSF_ABI_VERSION;
	h->kind = kind;
	h->size = size;
	h->clock = CSF_CLOCK_TSC;
	h->freq_khz = 2000000;
	h->mult = 1u << 31; /* 0.5 ns a cycle */
	h->shift = 32;
}

/* A running thread whose accounting began 1000 cycles before its last switch, just now. */
static inline void fake_thread(struct csf_thread *t, uint32_t tid)
{
	fake_hdr(&t->hdr, CSF_KIND_THREAD, sizeof(*t));
	t->tid = tid;
	t->state = CSF_ONCPU;
	t->last_switch_tsc = csf_rdtsc();
	t->start_tsc = t->last_switch_tsc - 1000;
	t->oncpu_cyc = 100;
	t->runq_cyc = 200;
	t->sleep_cyc = 300;
	t->dsleep_cyc = 350;
	t->iowait_cyc = 50;
	t->nr_preempt = 1;
	t->nr_block = 2;
	t->write_bytes = 7;
}

static inline struct csf_thread *fake_thread_self(uint32_t tid)
{
	struct csf_thread *t = (struct csf_thread *)fake_file("thread-self", PAGE);

	fake_thread(t, tid);
	return t;
}

static inline uint64_t fake_sum(const struct csf_thread *t)
{
	return t->oncpu_cyc + t->runq_cyc + t->sleep_cyc + t->dsleep_cyc + t->iowait_cyc;
}

/* How many mappings of the file this process has, the one to write included. */
static inline int fake_maps(const char *name)
{
	char line[512], path[128];
	/* Of this thread: /proc/self is empty once the first thread has ended. */
	FILE *f = fopen("/proc/thread-self/maps", "re");
	int n = 0;

	if (!f)
		fake_die("/proc/thread-self/maps");
	snprintf(path, sizeof(path), "%s/%s", fake_dir, name);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, path) != NULL;
	fclose(f);
	return n;
}

/* How a child ended: its exit status, or 128 + the signal. */
static inline int fake_wait(pid_t pid)
{
	int st;

	while (waitpid(pid, &st, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
}

#endif /* FAKE_PAGE_H */
