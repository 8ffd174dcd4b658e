/* SPDX-License-Identifier: MIT */
/* What os_linux.c does, where there is POSIX only: no memfd, no robust locks, no thread count. */
#if !defined(__linux__) || defined(RTS_PORTABLE)
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

int rts_os_threads(void)
{
	return -1;
}

int rts_os_tid(void)
{
	static _Atomic int last;

	return atomic_fetch_add(&last, 1) + 1;
}

void rts_os_who(int32_t *pid, int32_t *ppid, char *comm)
{
	*pid = (int32_t)getpid();
	*ppid = (int32_t)getppid();
	comm[0] = '\0';
}

/* Anonymous memory came to POSIX in 2024 only; before, an object without a name does. */
#ifdef MAP_ANON
enum { ANON_FLAG = MAP_ANON };

static int anon_open(size_t size)
{
	(void)size;
	return -1;
}
#else
enum { ANON_FLAG = 0 };

static int anon_open(size_t size)
{
	static _Atomic unsigned int nr;
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "/rts-%lx-%x", (unsigned long)getpid(),
		 atomic_fetch_add(&nr, 1));
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return -1;
	shm_unlink(name);
	if (!ftruncate(fd, (off_t)size))
		return fd;
	close(fd);
	return -1;
}
#endif

void *rts_os_map(void *at, size_t size, bool shared)
{
	int flags = ANON_FLAG | (shared ? MAP_SHARED : MAP_PRIVATE) | (at ? MAP_FIXED : 0);
	int fd = anon_open(size);
	void *p = MAP_FAILED;

	if (ANON_FLAG || fd >= 0)
		p = mmap(at, size, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (fd >= 0)
		close(fd);
	return p == MAP_FAILED ? NULL : p;
}

int rts_os_memfd(const char *name, size_t size)
{
	(void)name;
	(void)size;
	return -ENOTSUP;
}

int rts_os_reopen(int fd)
{
	(void)fd;
	return -ENOTSUP;
}

int rts_os_mutex_init(pthread_mutex_t *m)
{
	pthread_mutexattr_t attr;
	int ret = pthread_mutexattr_init(&attr);

	if (ret)
		return -ret;
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	ret = pthread_mutex_init(m, &attr);
	pthread_mutexattr_destroy(&attr);
	return -ret;
}

/* A writer that died in here leaves the lock held: then every record waits its limit, and is
 * dropped. */
int rts_os_mutex_lock(pthread_mutex_t *m, int limit_ms)
{
	const struct timespec tick = {.tv_nsec = 1000000};

	for (int i = 0; i < limit_ms; i++) {
		if (!pthread_mutex_trylock(m))
			return 0;
		nanosleep(&tick, NULL);
	}
	return ETIMEDOUT;
}

static void (*exit_fn)(int status);

static void exit_plain(void)
{
	exit_fn(-1);
}

int rts_os_at_exit(void (*fn)(int status))
{
	exit_fn = fn;
	return atexit(exit_plain) ? -ENOMEM : 0;
}

int rts_os_halt_open(struct halt *h, int vcpu_fd)
{
	(void)vcpu_fd;
	h->stats_fd = -1;
	return -ENOTSUP;
}

int rts_os_halt_read(const struct halt *h, uint64_t *ns)
{
	(void)h;
	*ns = 0;
	return -1;
}
#endif
