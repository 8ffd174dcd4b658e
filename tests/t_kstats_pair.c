// SPDX-License-Identifier: GPL-2.0
// This test checks times from one place to another: functions by each mechanism, tracepoints of the
// kernel and of a module, by task and by CPU; and that a traced module can be unloaded.
#include "t_kstats.h"

static void t_functions(const char *via)
{
	struct metric m;

	TEST("%s: from the outer function's entry to the inner one's, 2 ms", via) {
		if (LACKS("x start kstats_demo_outer end kstats_demo_inner via %s", via))
			break;
		CHECK(!demo("outer", 1, 50), "demo");
		METRIC("x", &m);
		sound("x", &m);
		CHECK(!strcmp(via, "auto") || !strcmp(m.via, via), "via %s", m.via);
		CHECK(m.count == 50 && m.min_avg >= 2 * MS && m.head_sum <= traced_for(), "%s",
		      m.head);
		CHECK(!demo("inner", 1, 3), "demo");
		METRIC("x", &m);
		sound("x", &m);
		CHECK(m.count == 50 && m.unpaired == 3, "ends without a start: %s", m.head);
		METRIC("GAP-x", &m);
		sound("GAP-x", &m);
		CHECK(m.count == 49, "%s", m.head);
		REMOVES("x");
	}
}

static void t_vfs_read(void)
{
	char buf[64];
	struct metric m;

	TEST("vfs_read's entry to that of a function it calls") {
		TRACES("v start vfs_read end rw_verify_area");
		for (int i = 0; i < 100; i++)
			get("/proc/version", buf, sizeof(buf));
		METRIC("v", &m);
		CHECK(m.closes && m.count >= 100 && m.max_avg <= traced_for(), "%s", m.head);
		REMOVES("v");
	}
}

/* Starts that get no end. */
static void t_ledger(void)
{
	struct metric m;
	pid_t pid;

	TEST("starts without an end: too many of one task, and those of tasks that die") {
		TRACES("n start kstats_demo_empty end kstats_demo_inner");
		CHECK(!demo("empty", 1, KSTATS_NEST_MAX + 5), "demo");
		METRIC("n", &m);
		sound("n", &m);
		CHECK(word(m.head, "missed-nest") == 5 && m.inside == KSTATS_NEST_MAX, "%s",
		      m.head);
		CHECK(!demo("inner", 1, 3), "demo");
		METRIC("n", &m);
		sound("n", &m);
		CHECK(m.count == 3 && m.inside == KSTATS_NEST_MAX - 3, "%s", m.head);
		for (int i = 0; i < 50; i++) {
			pid = fork();
			if (!pid) {
				demo("empty", 1, 2);
				_exit(0);
			}
			waitpid(pid, NULL, 0);
		}
		CHECK(UNTIL(!metric("n", -1, &m) && word(m.head, "missed-died") == 100), "%s",
		      m.head);
		sound("n", &m);
		REMOVES("n");
	}
}

static void t_tracepoints(void)
{
	struct metric m;
	pid_t pid;

	TEST("__tracepoint_sched_process_exec..__tracepoint_sched_process_exit, and sched:... names") {
		TRACES("e start __tracepoint_sched_process_exec end __tracepoint_sched_process_exit");
		TRACES("f start sched:sched_process_exec end sched:sched_process_exit");
		for (int i = 0; i < 5; i++) {
			pid = fork();
			if (!pid) {
				execl("/bin/sh", "sh", "-c", "exit 0", NULL);
				_exit(1);
			}
			waitpid(pid, NULL, 0);
		}
		for (const char *n = "e"; *n <= 'f'; n = *n == 'e' ? "f" : "g") {
			METRIC(n, &m);
			sound(n, &m);
			CHECK(m.count == 5 && !strcmp(m.via, "tracepoint"), "%s", m.head);
			REMOVES(n);
		}
	}
	TEST("irq:irq_handler_entry..irq:irq_handler_exit, by CPU") {
		TRACES("i start irq:irq_handler_entry end irq:irq_handler_exit by cpu");
		/* A serial port sends by interrupts. */
		CHECK(UNTIL(!put("/dev/ttyS0", ".\n") && !metric("i", -1, &m) && m.count >= 3),
		      "%s", m.head);
		CHECK(m.closes && m.max_avg <= traced_for() && !m.missed, "%s", m.head);
		REMOVES("i");
	}
	TEST("sched_switch pairs in every context, for a while, on all CPUs: no warning") {
		TRACES("w start sched:sched_wakeup end sched:sched_switch by cpu");
		TRACES("t start timer:hrtimer_expire_entry end timer:hrtimer_expire_exit");
		sleep_ms(500);
		METRIC("t", &m);
		CHECK(m.closes && m.count, "%s", m.head);
		REMOVES("w");
		REMOVES("t");
	}
}

static void t_module(void)
{
	char list[8192];
	struct metric m;

	TEST("a module's tracepoint and functions, and the module is unloaded while traced") {
		TRACES("tp start kstats_demo:kstats_demo_begin end kstats_demo:kstats_demo_end");
		TRACES("fd start kstats_demo_outer");
		TRACES("fk start kstats_demo_outer via kretprobe");
		TRACES("fp start kstats_demo_outer end kstats_demo_inner via ftrace");
		CHECK(!demo("outer", 1, 4), "demo");
		CHECK(UNTIL(module("kstats_demo", false) != -EAGAIN), "rmmod");
		CHECK(access(DEMO, F_OK), "the module is still there");
		for (int i = 0; i < 4; i++) {
			static const char *const name[] = {"tp", "fd", "fk", "fp"};

			METRIC(name[i], &m);
			sound(name[i], &m);
			CHECK(m.count == 4, "%s: %s", name[i], m.head);
		}
		get(KSTATS_DIR "/" KSTATS_NODES, list, sizeof(list));
		CHECK(strstr(list, "fd start kstats_demo_outer end return") &&
			      strstr(list, "state gone"),
		      "%s", list);
		CHECK(!module("kstats_demo", true), "insmod");
		CHECK(!demo("outer", 1, 2), "demo");
		METRIC("fd", &m);
		CHECK(m.count == 4, "a new module's calls are not the old one's: %s", m.head);
		TRACES("again start kstats_demo_outer");
		CHECK(!demo("outer", 1, 3), "demo");
		METRIC("again", &m);
		sound("again", &m);
		CHECK(m.count == 3, "%s", m.head);
		for (int i = 0; i < 5; i++) {
			static const char *const name[] = {"tp", "fd", "fk", "fp", "again"};

			REMOVES(name[i]);
		}
	}
}

int main(void)
{
	t_functions("auto");
	t_functions("direct");
	t_functions("ftrace");
	t_functions("kprobe");
	t_vfs_read();
	t_ledger();
	t_tracepoints();
	t_module();
	return t_done("t_kstats_pair");
}
