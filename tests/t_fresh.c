// SPDX-License-Identifier: GPL-2.0
/*
 * This test checks what README.md says on freshness: of a thread that stays on its CPU only the time
 * buckets are up to date. It prints the numbers that README.md quotes.
 */
#include "t_work.h"

#define SPIN_MS 30.0

/* The first word of an open schedstat: CPU time of the thread as of the last tick or switch. */
static uint64_t schedstat_cpu(int fd)
{
	char buf[64] = "";

	return pread(fd, buf, sizeof(buf) - 1, 0) > 0 ? strtoull(buf, NULL, 10) : 0;
}

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static void test_fields(void)
{
	struct csf_snap a, b;

	TEST("fields copied at a switch lag behind a thread that stays on its CPU") {
		t_sleep_ns(1000000);
		if (t_snap(&a))
			break;
		for (b = a; csf_cyc_to_ns(&a.p.hdr, b.p.oncpu_cyc - a.p.oncpu_cyc) < SPIN_MS * 1e6;)
			t_snap(&b);
		double bucket = t_diff(&a, &b).cpu, copied = ms(b.p.sum_exec_ns - a.p.sum_exec_ns);

		printf("# after a spin: cpu %.3f ms, sum_exec_ns %.3f ms, %llu preemptions\n",
		       bucket, copied, (unsigned long long)(b.p.nr_preempt - a.p.nr_preempt));
		CHECK(bucket >= SPIN_MS && bucket < SPIN_MS + 10, "cpu %.3f ms", bucket);
		CHECK(copied < bucket, "sum_exec_ns %.3f ms, cpu %.3f", copied, bucket);
		t_sleep_ns(1000000);
		t_snap(&b);
		copied = ms(b.p.sum_exec_ns - a.p.sum_exec_ns);
		printf("# after the next switch: sum_exec_ns %.3f ms\n", copied);
		CHECK(copied > SPIN_MS - 1, "after a switch: %.3f ms", copied);
	}
}

/*
 * Reading schedstat over and over, while the thread's CPU time moves on all the time. No other clock of
 * CPU time is read here: asking for one makes the kernel bring schedstat up to date.
 */
static void test_schedstat(void)
{
	int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC), reads = 0, changes = 0;
	double behind, least = 1e9, most = -1e9;
	struct csf_snap a, b;
	uint64_t start, last, cpu;

	TEST("schedstat moves at ticks and switches, the bucket all the time") {
		if (!CHECK(fd >= 0, "schedstat: %s", strerror(errno)))
			break;
		if (t_snap(&a))
			break;
		start = last = schedstat_cpu(fd);
		do {
			cpu = schedstat_cpu(fd);
			t_snap(&b);
			behind = t_diff(&a, &b).cpu - ms(cpu - start);
			least = behind < least ? behind : least;
			most = behind > most ? behind : most;
			changes += cpu != last;
			last = cpu;
			reads++;
		} while (t_diff(&a, &b).cpu < SPIN_MS);
		printf("# schedstat: %d reads in %.0f ms saw it move %d times, up to %.3f ms behind\n",
		       reads, SPIN_MS, changes, most - least);
		CHECK(changes > 0 && changes < reads / 2, "%d changes in %d reads", changes, reads);
	}
	close(fd);
}

int main(void)
{
	t_pin(0);
	test_fields();
	test_schedstat();
	return t_done("t_fresh");
}
