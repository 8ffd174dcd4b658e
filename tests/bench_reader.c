/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This test checks what a snapshot costs beside a bare rdtscp, on a made-up page, and what the kernel's own
 * answers to the same question cost: on any machine, without the module. See t_cost.h.
 */
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "t_cost.h"
#include "unit/fake_page.h"

/* What the kernel offers for the same question. */
static void others(void)
{
	int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	struct timespec ts;
	struct rusage ru;
	char buf[128];

	cost_row(COST_READ, "getrusage(RUSAGE_THREAD)", COST(getrusage(RUSAGE_THREAD, &ru)), 0);
	cost_row(COST_READ, "clock_gettime(CLOCK_THREAD_CPUTIME_ID)",
		 COST(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts)), 0);
	cost_row(COST_READ, "pread() of an open /proc/thread-self/schedstat",
		 COST((void)!pread(fd, buf, sizeof(buf), 0)), 0);
	close(fd);
}

int main(void)
{
	struct timespec ts;
	struct csf_snap s;

	cost_begin();
	TEST("bench: csf_thread_snap beside rdtscp") {
		fake_mount();
		fake_thread_self(7);
		if (!CHECK(!csf_thread_snap(&s), "no snapshot: %s", strerror(errno)))
			break;
		cost_row(COST_READ, "rdtscp", COST(cost_clock()), 0);
		cost_row(COST_READ, "csf_thread_snap() of a made-up page",
			 COST(csf_thread_snap(&s)), 60);
		cost_row(COST_READ, "clock_gettime(CLOCK_MONOTONIC)",
			 COST(clock_gettime(CLOCK_MONOTONIC, &ts)), 0);
		others();
	}
	fake_cleanup();
	return t_done("bench_reader");
}
