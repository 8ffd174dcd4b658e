// SPDX-License-Identifier: GPL-2.0
/*
 * This test checks that time on the CPU and in the run queue is what the kernel's own clocks of them say.
 *
 * It runs where guest time advances with guest instructions (vm=icount). The two clocks part at different
 * lines of the same switch, some hundred instructions from each other; an emulator that runs in the host's
 * time can stop for 0.3 ms in between, over and over, and did.
 */
#include "t_work.h"

/*
 * Some 50 sleeps, and few pages at a time, for where the kernel's clock is off it is off at wake-ups: one
 * that finds the CPU due to be rescheduled makes it reuse that moment's clock for the switch
 * (rq_clock_skip_update).
 *  - From idle, the way out of the interrupt and of the idle loop is charged to the thread that was
 *    woken: 9 us here each time on 6.12.
 *  - What a thread does in a long stretch of kernel code up to the switch is charged to the one that was
 *    woken: 1 ms each time with 256 pages.
 */
static void mixed_work(uint64_t ns)
{
	uint64_t end = t_now_ns() + ns;
	char *p = mmap(NULL, 16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	while (t_now_ns() < end) {
		work_spin_cpu(15 * MS);
		t_sleep_ns(5 * MS);
		madvise(p, 16 * 4096, MADV_DONTNEED);
		memset(p, 1, 16 * 4096);
		sched_yield();
	}
	munmap(p, 16 * 4096);
}

/* Is nobody else at work? Long stretches of kernel code of the boot's own are of the second kind, too. */
static bool quiet(void)
{
	struct csf_snap a, b;

	t_sleep_ns(1000 * MS); /* next to nothing in the host's time */
	t_snap(&a);
	work_spin_cpu(100 * MS);
	t_snap(&b);
	return b.p.nr_preempt - a.p.nr_preempt < 10;
}

static void test_cpu_time(void)
{
	struct csf_snap a, b;
	int64_t c0, c1, c2, c3;

	TEST("the boot's own work is over") {
		CHECK(T_UNTIL(quiet()), "it is not");
	}
	TEST("cpu within 1 ms of CLOCK_THREAD_CPUTIME_ID over a second of mixed work") {
		c0 = work_cpu_ns();
		t_snap(&a);
		c1 = work_cpu_ns();
		mixed_work(1000 * MS);
		c2 = work_cpu_ns();
		t_snap(&b);
		c3 = work_cpu_ns();
		/* The kernel's answer is between the inner and the outer pair of readings. */
		double ours = t_diff(&a, &b).cpu;

		CHECK(ours > (double)(c2 - c1) / 1e6 - 1 && ours < (double)(c3 - c0) / 1e6 + 1,
		      "oncpu %.3f ms, the kernel's clock %.3f to %.3f", ours,
		      (double)(c2 - c1) / 1e6, (double)(c3 - c0) / 1e6);
	}
}

static uint64_t schedstat_run_delay(void)
{
	unsigned long long exec, delay = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "re");

	if (f) {
		if (fscanf(f, "%llu %llu", &exec, &delay) != 2)
			delay = 0;
		fclose(f);
	}
	return delay;
}

/* A snapshot, and the kernel's run delay as of it: two readings around it that agree. */
static uint64_t snap_with_run_delay(struct csf_snap *s)
{
	uint64_t before, after;
	int i;

	for (i = 0; i < 1000; i++) {
		before = schedstat_run_delay();
		t_snap(s);
		after = schedstat_run_delay();
		if (before == after)
			return after;
	}
	CHECK(0, "no two readings of schedstat agreed");
	return 0;
}

static void test_run_queue(void)
{
	pthread_t t[3];
	struct csf_snap a, b;
	uint64_t d0, d1;

	TEST("run queue time equals schedstat's run delay with 3 spinners on the CPU") {
		work_spinners_start(t, 3);
		t_pin(0);
		d0 = snap_with_run_delay(&a);
		for (int i = 0; i < 30; i++) {
			work_spin_cpu(5 * MS);
			t_sleep_ns(2 * MS);
		}
		d1 = snap_with_run_delay(&b);
		work_unpin();
		work_spinners_stop(t, 3);
		double ours = t_diff(&a, &b).runq, theirs = (double)(d1 - d0) / 1e6;

		CHECK(theirs > 50, "only %.3f ms of run delay: the spinners did not compete",
		      theirs);
		CHECK(ours > theirs * 0.99 - 1 && ours < theirs * 1.01 + 1,
		      "runq %.3f ms, schedstat %.3f ms", ours, theirs);
		CHECK(b.p.nr_preempt > a.p.nr_preempt, "never preempted among spinners");
	}
}

int main(void)
{
	test_cpu_time();
	test_run_queue();
	return t_done("t_cputime");
}
