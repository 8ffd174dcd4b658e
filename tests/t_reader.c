/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This test checks that the reader, on the kernel's own pages, gives each thread its own
 * accounting, that adds up to the cycle, and knows a page that is not its caller's.
 */
#include <linux/sched.h>

#include "t_work.h"

static int snap_errno(struct csf_snap *s)
{
	return csf_thread_snap(s) ? errno : 0;
}

static uint64_t buckets(const struct csf_snap *a, const struct csf_snap *b)
{
	return t_sum(&b->p) - t_sum(&a->p);
}

static void t_own(void)
{
	struct csf_snap a, b;
	char line[CSF_DIFF_BUFSZ];

	TEST("reader: the page is of this thread, on this CPU") {
		t_pin(0);
		if (t_snap(&a))
			break;
		CHECK(a.p.tid == t_tid() && a.p.cpu == 0, "tid %u on cpu %u", a.p.tid, a.p.cpu);
		CHECK(a.p.hdr.flags == CSF_F_TSC_AUX, "flags %#x", a.p.hdr.flags);
		CHECK(a.p.hdr.clock == (t_served() ? CSF_CLOCK_MONOTONIC : CSF_CLOCK_TSC),
		      "clock %u", a.p.hdr.clock);
		CHECK(a.p.start_tsc <= a.p.last_switch_tsc && a.p.last_switch_tsc <= a.tsc,
		      "order");
	}
	TEST("reader: 25 ms of sleep are 25 ms of sleep and one switch") {
		struct t_diff d = {0};
		double slept = 0;

		WORK_MEASURE(slept >= 25 && d.sleep > 20) {
			int64_t from = work_cpu_ns();

			t_snap(&a);
			t_sleep_ns(25000000);
			t_snap(&b);
			d = t_diff(&a, &b);
			slept = d.sleep + d.runq + work_way_in_ms(from);
		}
		CHECK(slept >= 25 && d.sleep > 20, "%f ms", d.sleep);
		CHECK(d.dsleep == 0 && d.iowait == 0, "of another kind");
		CHECK(b.p.nr_block - a.p.nr_block == 1, "%llu switches",
		      b.p.nr_block - a.p.nr_block);
		CHECK(buckets(&a, &b) == b.tsc - a.tsc, "the buckets do not add up");
		csf_format_diff(line, sizeof(line), &a, &b);
		printf("# %s\n", line);
	}
	TEST("reader: a spin shows in the bucket at once, though nothing switched") {
		t_snap(&a);
		t_spin_ns(30000000);
		t_snap(&b);
		CHECK(t_diff(&a, &b).cpu + t_diff(&a, &b).runq >= 30, "cpu %f ms",
		      t_diff(&a, &b).cpu);
		CHECK(buckets(&a, &b) == b.tsc - a.tsc, "the buckets do not add up");
	}
}

static void t_moved(void)
{
	unsigned int i, bad = 0, moved = 0;
	struct csf_snap a, b;

	TEST("reader: 2,000 moves to the other CPU: counted, and never taken for another thread") {
		if (!t_pin(1)) {
			SKIP("there is one CPU");
			break;
		}
		t_pin(0);
		t_snap(&a);
		for (i = 0; i < 2000; i++) {
			t_pin((int)(i + 1) % 2);
			bad += csf_thread_snap(&b) || b.p.cpu != (i + 1) % 2;
			moved += buckets(&a, &b) != b.tsc - a.tsc;
		}
		CHECK(!bad, "%u snapshots failed or named the wrong CPU", bad);
		CHECK(b.p.nr_migrate - a.p.nr_migrate == 2000, "%llu moves",
		      b.p.nr_migrate - a.p.nr_migrate);
		CHECK(!moved || b.p.start_tsc != a.p.start_tsc, "%u do not add up", moved);
	}
}

static void *short_life(void *unused)
{
	struct csf_snap s;

	(void)unused;
	if (!t_snap(&s))
		CHECK(s.p.tid == t_tid(), "tid %u", s.p.tid);
	return NULL;
}

static void t_ends(void)
{
	const int nr = t_served() ? 100 : 500; /* the server takes its time to answer */
	pthread_t t;
	int i;

	t_held_begin();
	TEST("reader: the pages of %d threads go with them", nr) {
		for (i = 0; i < nr; i++) {
			pthread_create(&t, NULL, short_life, NULL);
			pthread_join(t, NULL);
		}
		t_held(0, 0);
	}
}

static int child_own(void *unused)
{
	struct csf_snap s;

	(void)unused;
	return snap_errno(&s) || s.p.tid != t_tid() || s.p.nr_block > 100;
}

static void t_fork_own(void)
{
	pid_t pid;

	TEST("reader: a forked child, and one that no library saw, have pages of their own") {
		CHECK(!t_wait(t_fork(child_own, NULL)), "fork");
		pid = (pid_t)syscall(SYS_fork);
		if (!pid)
			_exit(child_own(NULL));
		CHECK(!t_wait(pid), "SYS_fork");
	}
}

static volatile bool stop;
static volatile unsigned long wrong, asked;

/* Shares our memory and thread-local storage; asks as fast as it can. */
static int clone_child(void *cpu)
{
	struct csf_snap s;

	t_pin(*(int *)cpu);
	while (!stop) {
		asked++;
		wrong += snap_errno(&s) != ESRCH;
	}
	return 0;
}

static void t_foreign(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	struct csf_snap a, b;
	unsigned int i, bad;
	int cpu;
	pid_t pid;

	TEST("reader: a vfork child finds its parent's page: ESRCH; the parent waited in dsleep") {
		struct t_diff d = {0};
		double slept = 0;

		WORK_MEASURE(slept >= 30 && d.dsleep > 25) {
			int64_t from = work_cpu_ns();

			t_snap(&a);
			pid = vfork();
			if (!pid) {
				wrong = (unsigned long)snap_errno(&b);
				t_sleep_ns(30000000);
				_exit(0);
			}
			t_wait(pid);
			t_snap(&b);
			CHECK(wrong == ESRCH, "errno %lu", wrong);
			d = t_diff(&a, &b);
			slept = d.dsleep + d.runq + work_way_in_ms(from);
		}
		CHECK(slept >= 30 && d.dsleep > 25, "%f ms", d.dsleep);
	}
	for (cpu = 0; cpu < 2; cpu++)
		TEST("reader: a CLONE_VM child on %s CPU never takes its parent's page for its own",
		     cpu ? "another" : "the same") {
			if (cpu && !t_pin(1)) {
				SKIP("there is one CPU");
				break;
			}
			t_pin(0);
			stop = false;
			wrong = asked = bad = 0;
			pid = clone(clone_child, stack + sizeof(stack), CLONE_VM | SIGCHLD, &cpu);
			for (i = 0; i < 200; i++) {
				t_spin_ns(500000);
				bad += csf_thread_snap(&a) != 0;
				if (i % 10 == 0)
					t_sleep_ns(1000000);
			}
			stop = true;
			t_wait(pid);
			CHECK(asked > 100 && !wrong, "%lu of %lu answers were no ESRCH", wrong,
			      asked);
			CHECK(!bad, "%u snapshots of the parent failed", bad);
		}
}

static volatile int handled;

static void on_signal(int sig)
{
	struct csf_snap s;

	(void)sig;
	handled = !csf_thread_snap(&s) && s.p.tid == t_tid() ? 1 : -1;
}

static void *raise_it(void *unused)
{
	(void)unused;
	raise(SIGUSR1);
	return NULL;
}

static void t_signal(void)
{
	pthread_t t;

	TEST("reader: first use in a signal handler") {
		signal(SIGUSR1, on_signal);
		pthread_create(&t, NULL, raise_it, NULL);
		pthread_join(t, NULL);
		CHECK(handled == 1, "it failed");
	}
}

static void t_cpu(void)
{
	struct csf_cpu_snap all, s;
	uint64_t user = 0, idle = 0, open_ns;
	unsigned int i, tries = 0;

	TEST("reader: the sum row is the sum of the rows, in one refresh") {
		do {
			if (!CHECK(!csf_cpu_snap(&all, CSF_CPU_ALL), "%s", strerror(errno)))
				break;
			user = idle = 0;
			for (i = 0; i < all.nr_cpus; i++)
				if (!csf_cpu_snap(&s, i)) {
					user += s.row.user_ns;
					idle += s.row.idle_ns;
				}
		} while (s.nr_updates != all.nr_updates && ++tries < 1000);
		CHECK(tries < 1000 && user == all.row.user_ns && idle == all.row.idle_ns,
		      "user %lu of %llu, idle %lu of %llu", user, all.row.user_ns, idle,
		      all.row.idle_ns);
	}
	TEST("reader: the page is refreshed while it is mapped, and not when it is closed") {
		csf_cpu_snap(&all, CSF_CPU_ALL);
		CHECK(T_UNTIL(!csf_cpu_snap(&s, CSF_CPU_ALL) && s.nr_updates > all.nr_updates + 3),
		      "it is not");
		CHECK(s.update_mono_ns <= t_now_ns() && s.update_mono_ns > all.update_mono_ns,
		      "time");
		csf_cpu_snap(&s, CSF_CPU_ALL);
		open_ns = t_now_ns();
		csf_cpu_close();
		open_ns = t_now_ns() - open_ns; /* long, where the host had better things to do */
		t_sleep_ns(300000000);
		csf_cpu_snap(&all, CSF_CPU_ALL);
		CHECK(all.nr_updates - s.nr_updates <= open_ns / (s.period_us * 1000ull) + 3,
		      "%lu refreshes while closed", all.nr_updates - s.nr_updates);
		csf_cpu_close();
	}
}

int main(void)
{
	t_own();
	t_moved();
	t_ends();
	t_fork_own();
	t_foreign();
	t_signal();
	if (!t_served()) /* no cpu page */
		t_cpu();
	return t_done("t_reader");
}
