/* SPDX-License-Identifier: GPL-2.0 */
/* Known workloads that tests compare snapshots with. */
#ifndef T_WORK_H
#define T_WORK_H

#include "t_csf.h"

#define MS 1000000LL

static inline int64_t work_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/*
 * A timed wait begins before the thread is off its CPU: what it computed since from_ns, by the kernel's own
 * clock, is no part of the sleep, and an emulated CPU may be held up in it. In ms; with 0.1 for what the
 * kernel counts as interrupts.
 */
static inline double work_way_in_ms(int64_t from_ns)
{
	return (double)(work_cpu_ns() - from_ns) / 1e6 + 0.1;
}

/*
 * Measure, and up to twice again until it is good: an emulated CPU can be held up between two lines of the
 * kernel, where only one of two clocks sees it. What is wrong is wrong every time.
 */
#define WORK_MEASURE(good) for (volatile int try_ = 0; try_ < 3 && !(try_ && (good)); try_++)

/* Spin for so much of this thread's own CPU time. */
static inline void work_spin_cpu(int64_t ns)
{
	int64_t end = work_cpu_ns() + ns;

	while (work_cpu_ns() < end)
		;
}

static inline void work_unpin(void)
{
	cpu_set_t set;

	memset(&set, 0xff, sizeof(set));
	sched_setaffinity(0, sizeof(set), &set);
}

static atomic_int work_stop;

static inline void *work_spinner(void *unused)
{
	t_pin(0);
	while (!atomic_load(&work_stop))
		;
	return unused;
}

/* n threads that want CPU 0 and nothing else, until work_spinners_stop(). */
static inline void work_spinners_start(pthread_t *t, int n)
{
	atomic_store(&work_stop, 0);
	for (int i = 0; i < n; i++)
		pthread_create(&t[i], NULL, work_spinner, NULL);
}

static inline void work_spinners_stop(pthread_t *t, int n)
{
	atomic_store(&work_stop, 1);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

/*
 * A block device that takes 20 ms a request: null_blk, which completes them by a timer. Returns a
 * descriptor for direct I/O, or -1.
 */
static inline int work_slow_disk(void)
{
	int fd;

	if (access("/dev/nullb0", F_OK) &&
	    system("modprobe null_blk nr_devices=1 irqmode=2 completion_nsec=20000000"))
		return -1;
	fd = open("/dev/nullb0", O_RDWR | O_DIRECT | O_CLOEXEC);
	CHECK(fd >= 0, "/dev/nullb0: %s", strerror(errno));
	return fd;
}

/*
 * Let the kernel update this thread's page. The scheduler may hand the CPU straight back without a
 * switch, so this sleeps until a switch was counted.
 */
static inline void work_force_switch(void)
{
	struct csf_snap a, b;

	t_snap(&a);
	do {
		t_sleep_ns(100000);
		t_snap(&b);
	} while (b.p.nr_block == a.p.nr_block);
}

#endif /* T_WORK_H */
