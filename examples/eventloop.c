/* SPDX-License-Identifier: MIT */
/*
 * An event loop that says where the time went, but only of operations that were slow. Each
 * operation costs it one snapshot, some 60 instructions, and a second one only when it was slow.
 *
 *	eventloop [SLOW_MS]	report what took longer (default 10); ends by itself
 *
 * The operations are real, if pointless: they sleep, compute, touch memory, wait for a lock, read a
 * file.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/coarse_stat_fs.h"

#define OPS	 80 /* then we end */
#define TICK_NS	 2000000
#define MB	 (1u << 20)
#define FILE_LEN (4 * MB)

static char scratch[] = "/tmp/eventloop.XXXXXX"; /* what the file operations work on */
static int scratch_fd = -1;

static void die(const char *what)
{
	fprintf(stderr, "eventloop: %s: %s\n", what, strerror(errno));
	if (scratch_fd >= 0)
		unlink(scratch);
	exit(1);
}

static double clock_ms(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void sleep_ms(long ms)
{
	const struct timespec ts = {.tv_nsec = ms * 1000000};

	nanosleep(&ts, NULL);
}

/* Use the CPU for that long, however long it takes to get it. */
static void spin_ms(double ms)
{
	const double end = clock_ms(CLOCK_THREAD_CPUTIME_ID) + ms;

	while (clock_ms(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static void start(pthread_t *t, void *(*fn)(void *), void *arg)
{
	errno = pthread_create(t, NULL, fn, arg);
	if (errno)
		die("pthread_create");
}

static void op_nothing(void)
{
}

static void op_sleep(void)
{
	sleep_ms(25);
}

static void op_spin(void)
{
	spin_ms(20);
}

/* The sleep at the end is what brings the page's fault counters up to date: they lag on the CPU. */
static void op_memory(void)
{
	char *p = mmap(NULL, 16 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t at;

	if (p == MAP_FAILED)
		die("mmap");
	madvise(p, 16 * MB, MADV_NOHUGEPAGE);
	for (at = 0; at < 16 * MB; at += 4096)
		p[at] = 1;
	munmap(p, 16 * MB);
	sleep_ms(1);
}

static void op_write(void)
{
	static char buf[FILE_LEN];

	if (pwrite(scratch_fd, buf, sizeof(buf), 0) != (ssize_t)sizeof(buf) || fsync(scratch_fd))
		die(scratch);
}

static void op_read(void)
{
	static char buf[FILE_LEN];

	/* Not from the page cache, as far as the filesystem lets us ask. */
	posix_fadvise(scratch_fd, 0, 0, POSIX_FADV_DONTNEED);
	if (pread(scratch_fd, buf, sizeof(buf), 0) != (ssize_t)sizeof(buf))
		die(scratch);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *hold_lock(void *held)
{
	pthread_mutex_lock(&lock);
	__atomic_store_n((bool *)held, true, __ATOMIC_RELEASE);
	sleep_ms(40);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void op_lock(void)
{
	bool held = false;
	pthread_t t;

	start(&t, hold_lock, &held);
	while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE))
		sched_yield();
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	pthread_join(t, NULL);
}

static void *crowd(void *stop)
{
	while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED))
		;
	return NULL;
}

/* Compute on a CPU that three others want as well. */
static void op_crowd(void)
{
	bool stop = false;
	cpu_set_t old, one;
	pthread_t t[3];
	int i;

	if (sched_getaffinity(0, sizeof(old), &old))
		die("sched_getaffinity");
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one)) /* the threads inherit it */
		die("sched_setaffinity");
	for (i = 0; i < 3; i++)
		start(&t[i], crowd, &stop);
	spin_ms(10);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	sched_setaffinity(0, sizeof(old), &old);
}

/* The parent of a vfork() waits uninterruptibly until its child has gone its own way. */
static void op_vfork(void)
{
	/* NOLINTBEGIN(clang-analyzer-security.insecureAPI.vfork, clang-analyzer-unix.Vfork): it is the point */
	pid_t pid = vfork();

	if (!pid) {
		sleep_ms(30);
		_exit(0);
	}
	/* NOLINTEND(clang-analyzer-security.insecureAPI.vfork, clang-analyzer-unix.Vfork) */
	if (pid < 0)
		die("vfork");
	waitpid(pid, NULL, 0);
}

struct op {
	const char *name;
	void (*run)(void);
};

/* Nine operations in ten are over at once. */
static const struct op ops[] = {
	{"sleep", op_sleep}, {"spin", op_spin}, {"memory", op_memory}, {"write", op_write},
	{"read", op_read},   {"lock", op_lock}, {"crowd", op_crowd},   {"vfork", op_vfork},
};
static const struct op quick = {"nothing", op_nothing};

static void report_io(const struct csf_thread *a, const struct csf_thread *b)
{
	if (b->hdr.absent & CSF_ABSENT_SYSC)
		printf("    io not counted by this kernel\n");
	else if (b->hdr.absent & CSF_ABSENT_IO)
		printf("    io %llu read calls, %llu write calls\n",
		       (unsigned long long)(b->syscr - a->syscr),
		       (unsigned long long)(b->syscw - a->syscw));
	else
		printf("    io %llu read calls, %llu write calls; %llu B read, %llu B written\n",
		       (unsigned long long)(b->syscr - a->syscr),
		       (unsigned long long)(b->syscw - a->syscw),
		       (unsigned long long)(b->read_bytes - a->read_bytes),
		       (unsigned long long)(b->write_bytes - a->write_bytes));
}

static void report(const char *name, const struct csf_snap *a, const struct csf_snap *b)
{
	static const char *const did[CSF_NR_STATES] = {
		[CSF_ONCPU] = "running",
		[CSF_RUNQ] = "waiting for a CPU",
		[CSF_SLEEP] = "sleeping (poll, futex, timer, ...)",
		[CSF_DSLEEP] = "in uninterruptible sleep (not for I/O)",
		[CSF_IOWAIT] = "waiting for I/O",
	};
	struct csf_diff d;
	int i, most = 0;

	if (csf_diff(&d, a, b))
		return;
	for (i = 0; i < CSF_NR_STATES; i++)
		if (d.ns[i] > d.ns[most])
			most = i;
	printf("slow op %s wall %.1f ms, mostly %s\n", name, (double)d.wall_ns / 1e6, did[most]);
	printf("    time cpu %.1f + runq %.1f + sleep %.1f + dsleep %.1f + iowait %.1f ms\n",
	       (double)d.ns[CSF_ONCPU] / 1e6, (double)d.ns[CSF_RUNQ] / 1e6,
	       (double)d.ns[CSF_SLEEP] / 1e6, (double)d.ns[CSF_DSLEEP] / 1e6,
	       (double)d.ns[CSF_IOWAIT] / 1e6);
	printf("    switches %llu preempted, %llu blocked, %llu migrated; tid %u now on cpu %u\n",
	       (unsigned long long)(b->p.nr_preempt - a->p.nr_preempt),
	       (unsigned long long)(b->p.nr_block - a->p.nr_block),
	       (unsigned long long)(b->p.nr_migrate - a->p.nr_migrate), b->p.tid, b->p.cpu);
	printf("    faults %llu minor, %llu major\n",
	       (unsigned long long)(b->p.min_flt - a->p.min_flt),
	       (unsigned long long)(b->p.maj_flt - a->p.maj_flt));
	report_io(&a->p, &b->p);
}

/* Run one operation. Returns whether it was slow. */
static bool dispatch(const struct op *op, double slow_ms)
{
	struct csf_snap before, after;
	uint64_t t0;

	if (csf_thread_snap(&before))
		die("no snapshot (is coarse_stat_fs mounted?)");
	t0 = csf_now(&before.p.hdr);
	op->run();
	if (csf_cyc_to_ns(&before.p.hdr, csf_now(&before.p.hdr) - t0) < slow_ms * 1e6)
		return false;
	if (csf_thread_snap(&after))
		die("no snapshot");
	report(op->name, &before, &after);
	return true;
}

/* A timer is the only source of events here; a server would have its sockets in the same set. */
static int open_events(void)
{
	const struct itimerspec tick = {{0, TICK_NS}, {0, TICK_NS}};
	struct epoll_event ev = {.events = EPOLLIN};
	int ep = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	ev.data.fd = timer;
	if (ep < 0 || timer < 0 || timerfd_settime(timer, 0, &tick, NULL) ||
	    epoll_ctl(ep, EPOLL_CTL_ADD, timer, &ev))
		die("epoll");
	return ep;
}

int main(int argc, char **argv)
{
	const unsigned int nr = sizeof(ops) / sizeof(ops[0]);
	double slow_ms = argc > 1 ? atof(argv[1]) : 10;
	unsigned int i, slow = 0;
	struct epoll_event ev;
	uint64_t ticks;
	int ep;

	if (argc > 2 || !(slow_ms > 0)) {
		fprintf(stderr, "usage: eventloop [SLOW_MS]\n");
		return 2;
	}
	scratch_fd = mkstemp(scratch);
	if (scratch_fd < 0)
		die(scratch);
	ep = open_events();
	for (i = 0; i < OPS; i++) {
		if (epoll_wait(ep, &ev, 1, -1) != 1 ||
		    read(ev.data.fd, &ticks, sizeof(ticks)) != sizeof(ticks))
			die("epoll_wait");
		slow += dispatch(i % 10 == 9 ? &ops[i / 10 % nr] : &quick, slow_ms);
	}
	unlink(scratch);
	printf("%u operations, %u slow (over %g ms)\n", i, slow, slow_ms);
	if (fflush(stdout) || ferror(stdout))
		die("standard output");
	return 0;
}
