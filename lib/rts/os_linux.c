/* SPDX-License-Identifier: MIT */
/* What the library needs of Linux. os_posix.c does without, and says less. */
#if defined(__linux__) && !defined(RTS_PORTABLE)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

static ssize_t read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, buf, size - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n;
}

/* comm may hold blanks and brackets: fields count from the last bracket. */
static const char *stat_fields(char *buf, size_t size)
{
	char *end = read_file("/proc/self/stat", buf, size) > 0 ? strrchr(buf, ')') : NULL;

	return end && end[1] == ' ' ? end + 2 : NULL;
}

int rts_os_threads(void)
{
	char buf[1024];
	const char *f = stat_fields(buf, sizeof(buf));
	int nr;

	if (!f ||
	    sscanf(f, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d",
		   &nr) != 1)
		return -1;
	return nr;
}

int rts_os_tid(void)
{
	return (int)syscall(SYS_gettid);
}

void rts_os_who(int32_t *pid, int32_t *ppid, char *comm)
{
	char buf[1024], link[32] = "";
	const char *f = stat_fields(buf, sizeof(buf));
	const char *open = f ? strchr(buf, '(') : NULL;
	int parent;

	*pid = (int32_t)getpid();
	*ppid = (int32_t)getppid();
	comm[0] = '\0';
	if (!f)
		return;
	if (readlink("/proc/self", link, sizeof(link) - 1) > 0)
		*pid = (int32_t)atoi(link);
	if (sscanf(f, "%*c %d", &parent) == 1)
		*ppid = (int32_t)parent;
	if (open)
		snprintf(comm, 16, "%.*s", (int)(f - 2 - open - 1), open + 1);
}

void *rts_os_map(void *at, size_t size, bool shared)
{
	int flags = MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE) | (at ? MAP_FIXED : 0);
	void *p = mmap(at, size, PROT_READ | PROT_WRITE, flags, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int rts_os_memfd(const char *name, size_t size)
{
	int fd = (int)syscall(SYS_memfd_create, name, 1u /* MFD_CLOEXEC */);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size)) {
		int ret = -errno;

		close(fd);
		return ret;
	}
	return fd;
}

int rts_os_reopen(int fd)
{
	char path[40];
	int own;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	return own < 0 ? -errno : own;
}

int rts_os_mutex_init(pthread_mutex_t *m)
{
	pthread_mutexattr_t attr;
	int ret = pthread_mutexattr_init(&attr);

	if (ret)
		return -ret;
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	ret = pthread_mutex_init(m, &attr);
	pthread_mutexattr_destroy(&attr);
	return -ret;
}

int rts_os_mutex_lock(pthread_mutex_t *m, int limit_ms)
{
	struct timespec until;
	int ret;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += limit_ms / 1000;
	until.tv_nsec += limit_ms % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	ret = pthread_mutex_timedlock(m, &until);
	if (ret == EOWNERDEAD)
		pthread_mutex_consistent(m);
	return ret;
}

static void (*exit_fn)(int status);

#ifdef __GLIBC__
static void exit_status(int status, void *arg)
{
	(void)arg;
	exit_fn(status & 0xff);
}
#else
static void exit_plain(void)
{
	exit_fn(-1);
}
#endif

int rts_os_at_exit(void (*fn)(int status))
{
	exit_fn = fn;
#ifdef __GLIBC__
	return on_exit(exit_status, NULL) ? -ENOMEM : 0;
#else
	return atexit(exit_plain) ? -ENOMEM : 0;
#endif
}

/* ---- KVM's halt statistics ---- */

static bool is_halt(const char *name)
{
	return !strcmp(name, "halt_poll_success_ns") || !strcmp(name, "halt_poll_fail_ns") ||
	       !strcmp(name, "halt_wait_ns");
}

static int find_halts(struct halt *h)
{
	struct kvm_stats_header head;
	union {
		struct kvm_stats_desc desc;
		char space[sizeof(struct kvm_stats_desc) + 256];
	} d;
	size_t size;

	if (pread(h->stats_fd, &head, sizeof(head), 0) != sizeof(head) || head.name_size > 255)
		return -EIO;
	size = sizeof(d.desc) + head.name_size;
	h->nr_offsets = 0;
	for (uint32_t i = 0; i < head.num_desc; i++) {
		off_t at = (off_t)(head.desc_offset + i * size);

		memset(&d, 0, sizeof(d));
		if (pread(h->stats_fd, &d, size, at) != (ssize_t)size)
			return -EIO;
		if (is_halt((const char *)&d + sizeof(d.desc)) && h->nr_offsets < 3)
			h->offset[h->nr_offsets++] = head.data_offset + d.desc.offset;
	}
	return h->nr_offsets == 3 ? 0 : -ENOENT;
}

int rts_os_halt_open(struct halt *h, int vcpu_fd)
{
	int ret;

	h->stats_fd = ioctl(vcpu_fd, KVM_GET_STATS_FD, NULL);
	if (h->stats_fd < 0)
		return -errno;
	fcntl(h->stats_fd, F_SETFD, FD_CLOEXEC);
	ret = find_halts(h);
	if (!ret && rts_os_halt_read(h, &h->last_ns))
		ret = -EIO;
	if (ret) {
		close(h->stats_fd);
		h->stats_fd = -1;
	}
	return ret;
}

int rts_os_halt_read(const struct halt *h, uint64_t *ns)
{
	*ns = 0;
	for (unsigned int i = 0; i < h->nr_offsets; i++) {
		uint64_t v;

		if (pread(h->stats_fd, &v, sizeof(v), (off_t)h->offset[i]) != sizeof(v))
			return -1;
		*ns = rts_add(*ns, v);
	}
	return 0;
}
#endif
