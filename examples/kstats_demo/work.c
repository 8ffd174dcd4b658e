// SPDX-License-Identifier: MIT
/* Functions made to be traced: that sleep, recurse, migrate, never return, take many arguments. */
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/stacktrace.h>
#include <linux/string.h>
#include <linux/wait.h>

#include "demo.h"
#include "demo_trace.h"

static atomic64_t calls;
static DECLARE_WAIT_QUEUE_HEAD(release);
static unsigned int releases;

u64 kstats_demo_calls(void)
{
	return atomic64_xchg(&calls, 0);
}

static void count(void)
{
	atomic64_inc(&calls);
}

noinline void kstats_demo_sleep(int n)
{
	count();
	usleep_range(n * 1000, n * 1000 + 100);
}

/* n levels: the innermost takes 1 ms, each other one 1 ms more than the one inside. */
noinline int kstats_demo_recurse(int n)
{
	int depth = 1;

	count();
	usleep_range(1000, 1010);
	if (n > 1)
		depth += kstats_demo_recurse(n - 1);
	barrier(); /* no tail call */
	return depth;
}

/* Sleeps n ms in all, and is on another CPU at its end than at its start if there are two. */
noinline void kstats_demo_migrate(int n)
{
	int cpu = raw_smp_processor_id();
	int other = cpumask_any_but(cpu_online_mask, cpu);

	count();
	usleep_range(n * 500, n * 500 + 50);
	if (other < nr_cpu_ids)
		set_cpus_allowed_ptr(current, cpumask_of(other));
	usleep_range(n * 500, n * 500 + 50);
}

noinline void kstats_demo_softirq_body(void)
{
	count();
	udelay(20);
}

/* As far as a tracer can know it never returns. */
noinline void kstats_demo_forever(void)
{
	unsigned int before = READ_ONCE(releases);

	count();
	wait_event_idle(release, READ_ONCE(releases) != before); /* no hung task, however long */
}

void kstats_demo_release(void)
{
	WRITE_ONCE(releases, releases + 1);
	wake_up_all(&release);
}

noinline int kstats_demo_empty(int n)
{
	barrier();
	return n + 1;
}

noinline void kstats_demo_inner(int n)
{
	count();
	barrier();
}

/* 2 ms pass between its entry and the inner function's. */
noinline void kstats_demo_outer(int n)
{
	count();
	trace_kstats_demo_begin(n);
	usleep_range(2000, 2050);
	kstats_demo_inner(n);
	trace_kstats_demo_end(n);
	barrier();
}

/* Three words of stack arguments on x86-64. A wrong frame gives a wrong sum. */
noinline long kstats_demo_stack_args(long a, long b, long c, long d, long e, long f, long g, long h,
				     long i)
{
	count();
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i;
}

/*
 * Does unwinding from here find its caller? Through a trampoline there may be more entries than
 * without, but no fewer. Returns how many entries lie between this function and its caller, or -1.
 */
noinline int kstats_demo_unwind(void)
{
	static const char caller[] = "kstats_demo_run_unwind";
	unsigned long entry[24];
	char sym[64];
	int i, n;

	count();
	n = stack_trace_save(entry, ARRAY_SIZE(entry), 0);
	for (i = 0; i < n; i++) {
		snprintf(sym, sizeof(sym), "%ps", (void *)entry[i]);
		if (!strncmp(sym, caller, strlen(caller))) /* its module's name follows */
			return i;
	}
	return -1;
}
