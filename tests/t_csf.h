/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the guest's tests share: the pages mapped by hand (the reader is a thing under test itself), files
 * of one line, descriptors over sockets, and waiting for what another context does.
 *
 * The pages are the module's, or with T_PAGES=serve in the environment those of `statpage serve`, which the
 * reader finds by itself. Their clock is another, and what a filesystem does they do not.
 */
#ifndef T_CSF_H
#define T_CSF_H

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../include/uapi/threads_bpf.h"
#include "../lib/coarse_stat_fs.h"
#include "t.h"

#define T_THREAD CSF_MOUNT "/thread-self"
#define T_CPU	 CSF_MOUNT "/cpu"
#define T_REFCNT "/sys/module/" CSF_FS_NAME "/refcnt"
#define T_SLOTS	 "/sys/fs/bpf/statpage/threads-" THREADS_VERSION "/slots"

static inline bool t_served(void)
{
	const char *pages = getenv("T_PAGES");

	return pages && !strcmp(pages, "serve");
}

static inline uint32_t t_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

static inline uint64_t t_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* At least ns, whatever signals arrive. */
static inline void t_sleep_ns(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000),
			      .tv_nsec = (long)(ns % 1000000000)};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

/* At least ns of wall time without a system call that sleeps. */
static inline void t_spin_ns(uint64_t ns)
{
	uint64_t end = t_now_ns() + ns;

	while (t_now_ns() < end)
		;
}

/* Wait up to a minute for what some other context is about to do. An emulated CPU can be very slow. */
#define T_UNTIL(cond)                                            \
	({                                                       \
		uint64_t t_end_ = t_now_ns() + 60000000000ull;   \
		bool t_ok_;                                      \
		while (!(t_ok_ = (cond)) && t_now_ns() < t_end_) \
			t_sleep_ns(1000000);                     \
		t_ok_;                                           \
	})

/* Run on this CPU alone. Returns false where there is no such CPU. */
static inline bool t_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

/* A small file as a string, without the last newline. Returns its length or -errno. */
static inline int t_read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n, len = 0;

	buf[0] = '\0';
	if (fd < 0)
		return -errno;
	while ((n = read(fd, buf + len, size - 1 - (size_t)len)) > 0)
		len += n;
	n = n < 0 ? -errno : 0;
	close(fd);
	if (len && buf[len - 1] == '\n')
		len--;
	buf[len] = '\0';
	return n ? (int)n : (int)len;
}

/* The number in a file, or -errno. */
static inline long long t_read_num(const char *path)
{
	char buf[64];
	int ret = t_read_file(path, buf, sizeof(buf));

	return ret < 0 ? ret : atoll(buf);
}

/* The number behind `key` at the start of a line of a file, as in /proc/meminfo; or -ENOENT, -errno. */
static inline long long t_read_key(const char *path, const char *key)
{
	char line[512];
	long long val = -ENOENT;
	FILE *f = fopen(path, "re");

	if (!f)
		return -errno;
	while (val == -ENOENT && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			val = atoll(line + strlen(key));
	fclose(f);
	return val;
}

/* Returns 0 or -errno. */
static inline int t_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* What the module counts: mounts, open files, objects. */
static inline long t_refs(void)
{
	return (long)t_read_num(T_REFCNT);
}

/* How many threads have a page, in the server's own table. */
static inline long t_served_threads(void)
{
	union bpf_attr attr = {.pathname = (uintptr_t)T_SLOTS};
	const size_t len = THREADS_MAX * sizeof(uint64_t);
	int fd = (int)syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof(attr));
	const volatile uint64_t *slots = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	long n = 0;

	close(fd);
	if (slots == MAP_FAILED)
		return -1;
	for (int i = 0; i < THREADS_MAX; i++)
		n += slots[i] == THREADS_TAKEN;
	munmap((void *)slots, len);
	return n;
}

/* Map a page as long as its file says it is; a map of BPF says nothing. NULL with errno. */
static inline const void *t_map_fd(int fd)
{
	struct stat st;
	size_t len;
	void *p;

	if (fstat(fd, &st))
		return NULL;
	len = t_served() ? CSF_SERVE_BYTES : (size_t)st.st_size;
	p = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return NULL;
	/* As the reader does; of itself only the module's is so. */
	if (t_served())
		madvise(p, len, MADV_DONTFORK);
	return p;
}

/* A descriptor of the calling thread's page, from the server. -1 with errno. */
static inline int t_ask(void)
{
	long sock = csf_connect_(), fd = sock < 0 ? sock : csf_ask_(sock);
	const struct csf_thread *pg;
	int ret;

	if (sock >= 0)
		close((int)sock);
	if (fd < 0) {
		errno = (int)-fd;
		return -1;
	}
	/* Such a page begins with a switch to its thread. */
	pg = t_map_fd((int)fd);
	ret = pg ? csf_begin_(pg) : -1;
	if (pg)
		munmap((void *)pg, CSF_SERVE_BYTES);
	if (!ret)
		return (int)fd;
	close((int)fd);
	return -1;
}

/* A descriptor of the calling thread's page. -1 with errno. */
static inline int t_open(void)
{
	return t_served() ? t_ask() : open(T_THREAD, O_RDONLY | O_CLOEXEC);
}

/* This thread's page; the mapping alone holds the file. NULL with errno. */
static inline const struct csf_thread *t_map(void)
{
	int fd = t_open();
	const struct csf_thread *pg;

	if (fd < 0)
		return NULL;
	pg = t_map_fd(fd);
	close(fd);
	return pg;
}

static inline void t_unmap(const struct csf_thread *pg)
{
	munmap((void *)pg, (size_t)sysconf(_SC_PAGESIZE));
}

static long t_held0_;

/* What is held for pages from here on: see t_held(). The caller's own page of the server stays, and counts not. */
static inline void t_held_begin(void)
{
	if (t_served()) {
		close(t_open());
		t_held0_ = t_served_threads();
	} else {
		t_held0_ = t_refs();
	}
}

/*
 * So many references more than at t_held_begin(), to the module: open files and objects; or so many threads
 * that have a page of the server's. They are freed by tasks that may not have come to it yet.
 */
static inline bool t_held(long refs, long threads)
{
	if (t_served())
		return CHECK(T_UNTIL(t_served_threads() == t_held0_ + threads),
			     "%ld threads have pages, expected %ld + %ld", t_served_threads(),
			     t_held0_, threads);
	return CHECK(T_UNTIL(t_refs() == t_held0_ + refs), "%ld references, expected %ld + %ld",
		     t_refs(), t_held0_, refs);
}

static inline uint32_t t_flags(const struct csf_thread *pg)
{
	return __atomic_load_n(&pg->hdr.flags, __ATOMIC_ACQUIRE);
}

/* Whether the calling thread's page goes on counting. A short sleep alone may not block at all. */
static inline bool t_lives(const struct csf_thread *pg)
{
	uint64_t old = pg->nr_block;

	return T_UNTIL(pg->nr_block > old);
}

/* A copy of the page that no write tore. Returns the sequence count. */
static inline uint32_t t_copy(struct csf_thread *out, const struct csf_thread *pg)
{
	uint32_t seq;

	do {
		while ((seq = __atomic_load_n(&pg->seq, __ATOMIC_ACQUIRE)) & 1)
			;
		memcpy(out, pg, sizeof(*out));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (__atomic_load_n(&pg->seq, __ATOMIC_RELAXED) != seq);
	return seq;
}

/* The five buckets together; equal to last_switch_tsc - start_tsc in any untorn copy. */
static inline uint64_t t_sum(const struct csf_thread *p)
{
	return p->oncpu_cyc + p->runq_cyc + p->sleep_cyc + p->dsleep_cyc + p->iowait_cyc;
}

static inline double t_cyc_ms(const struct csf_hdr *h, uint64_t cyc)
{
	return (double)cyc / h->freq_khz;
}

/* A snapshot of this thread by the reader; the case fails without one. Returns 0 or -1. */
static inline int t_snap(struct csf_snap *s)
{
	int ret = csf_thread_snap(s);

	CHECK(!ret, "csf_thread_snap: %s", strerror(errno));
	if (ret)
		memset(s, 0, sizeof(*s));
	return ret;
}

/* Milliseconds between two snapshots: t_diff(&a, &b).sleep. */
struct t_diff {
	double wall, cpu, runq, sleep, dsleep, iowait;
};

static inline struct t_diff t_diff(const struct csf_snap *a, const struct csf_snap *b)
{
	struct t_diff ms = {0};
	struct csf_diff d = {0};

	if (!CHECK(!csf_diff(&d, a, b), "csf_diff: %s", strerror(errno)))
		return ms;
	ms.wall = (double)d.wall_ns / 1e6;
	ms.cpu = (double)d.ns[CSF_ONCPU] / 1e6;
	ms.runq = (double)d.ns[CSF_RUNQ] / 1e6;
	ms.sleep = (double)d.ns[CSF_SLEEP] / 1e6;
	ms.dsleep = (double)d.ns[CSF_DSLEEP] / 1e6;
	ms.iowait = (double)d.ns[CSF_IOWAIT] / 1e6;
	return ms;
}

/* Pass a descriptor, or fetch one. Returns 0, or the descriptor; -1 with errno. */
static inline int t_send_fd(int sock, int fd)
{
	char c = 0, ctl[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {&c, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = ctl,
			     .msg_controllen = sizeof(ctl)};
	struct cmsghdr *cm = CMSG_FIRSTHDR(&msg);

	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cm), &fd, sizeof(fd));
	return sendmsg(sock, &msg, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static inline int t_recv_fd(int sock)
{
	char c, ctl[CMSG_SPACE(sizeof(int))];
	struct iovec iov = {&c, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = ctl,
			     .msg_controllen = sizeof(ctl)};
	struct cmsghdr *cm;
	int fd;

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	cm = CMSG_FIRSTHDR(&msg);
	if (!cm || cm->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(cm), sizeof(fd));
	return fd;
}

/* Run fn in a child of fork(). Its return value becomes the exit status. */
static inline pid_t t_fork(int (*fn)(void *), void *arg)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	pid = fn(arg);
	fflush(stdout);
	_exit(pid);
}

/* How a child ended: its exit status, or 128 + the signal. */
static inline int t_wait(pid_t pid)
{
	int st;

	while (waitpid(pid, &st, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
}

/* One byte over a socket or a pipe: now it is your turn. Returns false when the other end is gone. */
static inline bool t_tell(int sock)
{
	return write(sock, "", 1) == 1;
}

static inline bool t_told(int sock)
{
	char c;

	return read(sock, &c, 1) == 1;
}

/* Another process, whose page we have mapped. */
struct t_peer {
	pid_t pid;
	int sock;
	const struct csf_thread *pg; /* NULL when it sent nothing */
};

/* Fork; the child opens its page, sends the descriptor, closes it, and exits with what fn returns. */
static inline struct t_peer t_peer_start(int (*fn)(int sock))
{
	struct t_peer peer = {0};
	int socks[2], fd;

	fflush(stdout);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, socks))
		return peer;
	peer.pid = fork();
	if (!peer.pid) {
		close(socks[0]);
		fd = t_open();
		if (fd < 0 || t_send_fd(socks[1], fd))
			_exit(99);
		close(fd);
		_exit(fn(socks[1]));
	}
	close(socks[1]);
	peer.sock = socks[0];
	fd = t_recv_fd(peer.sock);
	peer.pg = fd < 0 ? NULL : t_map_fd(fd);
	close(fd);
	return peer;
}

/* Wait for its end and drop the page. Returns how it ended, as t_wait(). */
static inline int t_peer_end(struct t_peer *peer)
{
	int st = t_wait(peer->pid);

	close(peer->sock);
	if (peer->pg)
		t_unmap(peer->pg);
	return st;
}

#endif /* T_CSF_H */
