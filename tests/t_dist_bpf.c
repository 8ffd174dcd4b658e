// SPDX-License-Identifier: GPL-2.0
// This test checks distributions with the engine bpf: what t_kstats_call and t_kstats_pair check of the module,
// by each mechanism.
#include "t_dist.h"

static bool preemptible(void)
{
	char mode[80] = "";

	get("/sys/kernel/debug/sched/preempt", mode, sizeof(mode));
	return strstr(mode, "(full)") || strstr(mode, "(lazy)");
}

/*
 * n calls of several tasks. A program that is preempted, as fentry's may be, is not started again on that
 * CPU meanwhile: what other tasks do there then is missed. It is counted, and there is not much of it.
 */
static bool all_of(const struct dist *d, uint64_t n)
{
	if (d->attempted != n || d->count + d->missed != n)
		return false;
	return preemptible() ? d->count >= n * 3 / 4 : !d->missed && !d->unpaired;
}

/* Calls of the demo's functions since the last look. */
static long calls_made(void)
{
	demo("calls", 0, 1);
	return demo_result();
}

/* n children that stay in kstats_demo_forever, on CPU 0: they are past what makes them wait for the release. */
static void go_inside(int n)
{
	calls_made();
	for (int i = 0; i < n; i++) {
		child("forever", 0, 1, 0, 0, 0);
		CHECK(UNTIL(calls_made()), "child %d is not inside", i);
	}
}

static void come_out(void)
{
	demo("release", 0, 1);
	wait_all();
}

/* ---- calls ---- */

static void t_sleepers(const char *via)
{
	uint64_t from = now_ns();
	struct dist d;

	TEST("%s: 23 calls that sleep 10 ms, by two tasks on one CPU: 23 right samples", via) {
		TRACE("kstats_demo_sleep --name s --via %s", via);
		child("sleep", 10, 12, 0, 0, 0);
		child("sleep", 10, 11, 0, 5, 0);
		wait_all();
		/* An end that was missed shows when its task is gone. */
		CHECK(UNTIL(dist("s", &d) && !d.inside), "%s", d.text);
		whole(&d);
		CHECK(!strcmp(d.via, via), "via %s", d.via);
		CHECK(all_of(&d, 23), "%s", d.text);
		CHECK(d.min_mean >= 10 * MS && d.max_mean <= now_ns() - from, "%s", d.text);
		UNTRACE("s");
	}
}

static void t_recursion(const char *via)
{
	uint64_t from = now_ns();
	struct dist d;

	TEST("%s: recursion to depth 3, 1 ms a level: 1, 2 and 3 ms", via) {
		TRACE("kstats_demo_recurse --name r --bits 5 --via %s", via);
		CHECK(!demo("recurse", 3, 1), "demo");
		DIST("r", &d);
		whole(&d);
		CHECK(d.count == 3 && !d.missed, "%s", d.text);
		CHECK(d.min_mean >= 1 * MS && d.max_mean >= 3 * MS && d.sum >= 6 * MS, "%s",
		      d.text);
		CHECK(d.max_mean <= now_ns() - from, "%s", d.text);
		UNTRACE("r");
	}
	TEST("%s: recursion to depth 12: the 8 inner levels are right, the 4 outer ones are counted",
	     via) {
		TRACE("kstats_demo_recurse --name r --bits 5 --via %s", via);
		CHECK(!demo("recurse", 12, 1), "demo");
		DIST("r", &d);
		whole(&d);
		/* A kretprobe may have had instances for fewer levels than there are. */
		CHECK(d.attempted == 12 && d.count + d.missed == 12 && d.missed >= 4, "%s", d.text);
		CHECK(d.min_mean >= 1 * MS, "%s", d.text);
		if (!strcmp(via, "fentry"))
			CHECK(d.count == 8 && d.unpaired == 4 && strstr(d.text, "nest 4") &&
				      d.sum >= 36 * MS,
			      "%s", d.text);
		UNTRACE("r");
	}
}

static void t_migration(const char *via)
{
	uint64_t from = now_ns();
	struct dist d;

	TEST("%s: a call that migrates: one right sample, where it ended", via) {
		TRACE("kstats_demo_migrate --name m --via %s", via);
		child("migrate", 4, 1, -1, 0, 0);
		wait_all();
		DIST("m", &d);
		whole(&d);
		CHECK(d.count == 1 && d.min_mean >= 4 * MS && d.max_mean <= now_ns() - from, "%s",
		      d.text);
		UNTRACE("m");
	}
}

static void t_gap(const char *via)
{
	uint64_t from = now_ns();
	struct dist d;

	TEST("%s: 200 calls 1 ms apart on one CPU: 199 gaps of at least 1 ms", via) {
		TRACE("kstats_demo_inner --name g --via %s", via);
		child("inner", 1, 200, 0, 0, 1);
		wait_all();
		DIST("g", &d);
		whole(&d);
		CHECK(d.count == 200, "%s", d.text);
		DIST("GAP-g", &d);
		whole(&d);
		CHECK(d.count == 199 && d.min_mean >= 1 * MS && d.sum <= now_ns() - from, "%s",
		      d.text);
		UNTRACE("g");
		CHECK(!dist("GAP-g", &d) && strstr(out, "no metric GAP-g"), "%s", out);
	}
	TEST("%s: gap: of calls that overlap on one CPU only one sees it", via) {
		TRACE("kstats_demo_forever --name o --via %s", via);
		go_inside(1);
		come_out();
		go_inside(8);
		come_out();
		DIST("GAP-o", &d);
		whole(&d);
		CHECK(d.count == 1, "%s", d.text);
		CHECK(UNTIL(dist("o", &d) && !d.inside), "%s", d.text);
		whole(&d);
		CHECK(all_of(&d, 9), "%s", d.text);
		UNTRACE("o");
	}
}

static void t_crowd(const char *via, bool all)
{
	struct dist d;

	TEST("%s: 100 callers at once: %s", via,
	     all ? "none is missed" : "what is missed is counted") {
		TRACE("kstats_demo_sleep --name c --via %s", via);
		calls_made();
		for (int i = 0; i < 100; i++)
			child("sleep", 300, 1, -1, 0, 0);
		wait_all();
		CHECK(calls_made() == 100, "the function itself counted %ld", demo_result());
		CHECK(UNTIL(dist("c", &d) && !d.inside), "%s", d.text);
		whole(&d);
		CHECK(all ? all_of(&d, 100) : d.attempted == 100 && d.missed, "%s", d.text);
		CHECK(!d.count || d.min_mean >= 300 * MS, "%s", d.text);
		UNTRACE("c");
	}
}

static void t_contexts(const char *via)
{
	struct dist d;

	TEST("%s: a function that runs in softirq", via) {
		TRACE("kstats_demo_softirq_body --name q --via %s", via);
		CHECK(!demo("softirq", 1, 50), "demo");
		DIST("q", &d);
		whole(&d);
		CHECK(d.count == 50 && !d.missed, "%s", d.text);
		UNTRACE("q");
	}
	TEST("%s: a call that does not return is inside, and comes out in the end", via) {
		TRACE("kstats_demo_forever --name f --via %s", via);
		go_inside(1);
		DIST("f", &d);
		whole(&d);
		CHECK(d.attempted == 1 && d.inside == 1 && !d.count, "%s", d.text);
		CHECK(!sh("statpage reset f"), "%s", out);
		DIST("f", &d);
		whole(&d);
		CHECK(d.inside == 1 && d.attempted == 1, "after reset: %s", d.text);
		come_out();
		DIST("f", &d);
		whole(&d);
		CHECK(d.count == 1 && !d.inside, "%s", d.text);
		UNTRACE("f");
	}
	TEST("%s: a call that was inside before trace: its end is unpaired", via) {
		go_inside(1);
		TRACE("kstats_demo_forever --name f --via %s", via);
		come_out();
		DIST("f", &d);
		whole(&d);
		CHECK(!d.attempted && !d.count && d.unpaired <= 1, "%s", d.text);
		UNTRACE("f");
	}
}

/* As fast as they can; what the kernel did not tell a program of, it has counted. */
static void t_hammer(const char *via)
{
	const int n = 30000;
	struct dist d;

	TEST("%s: two CPUs call one function as fast as they can: every call is counted", via) {
		TRACE("kstats_demo_empty --name h --via %s", via);
		CHECK(!demo("empty2", n, 1), "demo");
		DIST("h", &d);
		whole(&d);
		CHECK(d.attempted == 2 * n && !d.inside, "%s", d.text);
		CHECK(d.recorded >= n, "%s", d.text);
		CHECK(!sh("statpage stop h") && !demo("empty", 1, 7), "%s", out);
		DIST("h", &d);
		whole(&d);
		CHECK(d.stopped == 7 && strstr(d.text, "\"state\":\"stopped\""), "%s", d.text);
		CHECK(!sh("statpage reset h"), "%s", out);
		DIST("h", &d);
		whole(&d);
		CHECK(!d.count && !d.attempted && !d.stopped, "%s", d.text);
		CHECK(!sh("statpage start h") && !demo("empty", 1, 10), "%s", out);
		DIST("h", &d);
		whole(&d);
		CHECK(d.count == 10 && d.attempted == 10, "%s", d.text);
		UNTRACE("h");
	}
}

static void t_both_at_once(void)
{
	struct dist d;

	TEST("one function that runs in softirq by both mechanisms at once") {
		TRACE("kstats_demo_softirq_body --name q --via fentry");
		TRACE("kstats_demo_softirq_body --name k --via kretprobe");
		CHECK(!demo("softirq", 1, 50), "demo");
		DIST("q", &d);
		whole(&d);
		CHECK(d.count == 50 && !d.missed, "%s", d.text);
		DIST("k", &d);
		whole(&d);
		CHECK(d.attempted == 50, "%s", d.text);
		CHECK(!sh("statpage untrace q k"), "%s", out);
	}
}

/* Three words are on the stack, which a fentry of some kernels cannot hand on. */
static void t_stack_args(void)
{
	struct dist d;

	TEST("a function with arguments on the stack: timed, and it gets them right") {
		TRACE("kstats_demo_stack_args --name a");
		CHECK(!demo("stack_args", 5, 3) && demo_result() == 5 + 240, "%ld", demo_result());
		DIST("a", &d);
		whole(&d);
		CHECK(d.count == 3 && !d.missed, "%s", d.text);
		CHECK(!sh("statpage ls") &&
			      (strstr(out, "fentry (bpf)") || strstr(out, "no trampoline for")),
		      "%s", out);
		UNTRACE("a");
	}
}

static void t_filters(const char *via)
{
	struct dist d;
	pid_t pid;

	TEST("%s: filters: pid, comm and cpu count what they leave out", via) {
		pid = child("sleep", 5, 4, 0, -1, 0);
		TRACE("kstats_demo_sleep --name p --pid %d --via %s", pid, via);
		TRACE("kstats_demo_sleep --name n --comm nobody --via %s", via);
		TRACE("kstats_demo_sleep --name us --comm t_dist_bpf --via %s", via);
		demo("sleep", 1, 3);
		waitpid(pid, NULL, WUNTRACED);
		kill(pid, SIGCONT);
		wait_all();
		DIST("p", &d);
		whole(&d);
		CHECK(d.count == 4 && d.filtered == 3 && !d.unpaired, "%s", d.text);
		DIST("n", &d);
		whole(&d);
		CHECK(!d.count && d.filtered == 7 && !d.unpaired, "%s", d.text);
		DIST("us", &d);
		whole(&d);
		CHECK(d.count == 7 && !d.filtered, "%s", d.text);
		CHECK(!sh("statpage untrace --all"), "%s", out);
		TRACE("kstats_demo_inner --name u --only-cpu 0 --via %s", via);
		pin_to(0);
		demo("inner", 1, 5);
		DIST("u", &d);
		whole(&d);
		CHECK(d.count == 5 && !d.filtered, "%s", d.text);
		if (sysconf(_SC_NPROCESSORS_ONLN) > 1) {
			pin_to(1);
			demo("inner", 1, 5);
			DIST("u", &d);
			whole(&d);
			CHECK(d.count == 5 && d.filtered == 5, "%s", d.text);
			CHECK(!sh("statpage show --json --cpu 0 u") && json_key(out, "count") == 5,
			      "%s", out);
			CHECK(!sh("statpage show --json --cpu 1 u") && json_key(out, "count") == 0,
			      "%s", out);
		}
		UNTRACE("u");
	}
}

/* The helper that programs look up a task's starts by: each makes calls of it that it is not told of. */
static void t_own_calls(void)
{
	struct dist d;

	TEST("calls that a program makes itself: the kernel's count of them is in the ledger") {
		TRACE("kstats_demo_inner --name a --no-gap --via fentry");
		TRACE("bpf_task_storage_get --name b --no-gap --via fentry");
		CHECK(!demo("inner", 1, 10), "demo");
		DIST("b", &d);
		whole(&d);
		CHECK(d.recorded >= 10 && d.missed >= d.recorded && strstr(d.text, "instance"),
		      "%s", d.text);
		DIST("a", &d);
		whole(&d);
		CHECK(d.count == 10 && !d.missed, "%s", d.text);
		CHECK(!sh("statpage untrace a b"), "%s", out);
	}
}

/* ---- from X to Y ---- */

static void t_pairs(const char *via)
{
	uint64_t from = now_ns();
	struct dist d;

	TEST("%s: from the outer function's entry to the inner one's, 2 ms", via) {
		TRACE("kstats_demo_outer..kstats_demo_inner --name x --via %s", via);
		CHECK(!demo("outer", 1, 50), "demo");
		DIST("x", &d);
		whole(&d);
		CHECK(!strcmp(d.via, via), "via %s", d.via);
		CHECK(d.count == 50 && d.min_mean >= 2 * MS && d.sum <= now_ns() - from, "%s",
		      d.text);
		CHECK(!demo("inner", 1, 3), "demo");
		DIST("x", &d);
		whole(&d);
		CHECK(d.count == 50 && d.unpaired == 3, "ends without a start: %s", d.text);
		DIST("GAP-x", &d);
		whole(&d);
		CHECK(d.count == 49, "%s", d.text);
		UNTRACE("x");
	}
	TEST("%s: starts without an end: too many of one task, and those of tasks that die", via) {
		TRACE("kstats_demo_empty..kstats_demo_inner --name n --via %s", via);
		CHECK(!demo("empty", 1, 8 + 5), "demo");
		DIST("n", &d);
		whole(&d);
		CHECK(strstr(d.text, "nest 5") && d.inside == 8, "%s", d.text);
		CHECK(!demo("inner", 1, 3), "demo");
		DIST("n", &d);
		whole(&d);
		CHECK(d.count == 3 && d.inside == 5, "%s", d.text);
		for (int i = 0; i < 20; i++) {
			child("empty", 1, 2, -1, 0, 0);
			wait_all();
		}
		CHECK(UNTIL(dist("n", &d) && strstr(d.text, "died 40")), "%s", d.text);
		whole(&d);
		UNTRACE("n");
	}
}

static void t_vfs_read(void)
{
	char buf[64];
	struct dist d;

	TEST("vfs_read's entry to that of a function it calls") {
		uint64_t from = now_ns();

		TRACE("vfs_read..rw_verify_area --name v --comm t_dist_bpf");
		for (int i = 0; i < 100; i++)
			get("/proc/version", buf, sizeof(buf));
		CHECK(!sh("statpage stop v"), "%s", out);
		DIST("v", &d);
		whole(&d);
		CHECK(d.count >= 100 && d.sum <= now_ns() - from, "%s", d.text);
		UNTRACE("v");
	}
}

static void t_tracepoints(void)
{
	struct dist d;
	pid_t pid;

	TEST("tracepoints of the kernel, by both kinds of names") {
		TRACE("__tracepoint_sched_process_exec..__tracepoint_sched_process_exit --name e");
		TRACE("sched:sched_process_exec..sched:sched_process_exit --name f --comm true");
		for (int i = 0; i < 5; i++) {
			pid = fork();
			if (!pid) {
				execl("/bin/true", "true", NULL);
				_exit(1);
			}
			waitpid(pid, NULL, 0);
		}
		DIST("f", &d);
		CHECK(d.count == 5 && !strcmp(d.via, "tracepoint"), "%s", d.text);
		DIST("e", &d);
		CHECK(d.count >= 5, "%s", d.text);
		CHECK(!sh("statpage untrace e f"), "%s", out);
	}
	TEST("tracepoints of a module, and a function to a tracepoint") {
		TRACE("kstats_demo:kstats_demo_begin..kstats_demo:kstats_demo_end --name tp");
		TRACE("kstats_demo_outer..kstats_demo:kstats_demo_end --name ft");
		CHECK(!demo("outer", 1, 4), "demo");
		DIST("tp", &d);
		whole(&d);
		CHECK(d.count == 4 && d.min_mean >= 2 * MS, "%s", d.text);
		DIST("GAP-tp", &d);
		whole(&d);
		CHECK(d.count <= 3, "%s", d.text);
		DIST("ft", &d);
		whole(&d);
		CHECK(d.count == 4 && d.min_mean >= 2 * MS, "%s", d.text);
		CHECK(!sh("statpage untrace tp ft"), "%s", out);
	}
	TEST("irq:irq_handler_entry..irq:irq_handler_exit, by CPU and in the interrupt's own context") {
		TRACE("irq:irq_handler_entry..irq:irq_handler_exit --by-cpu --name i");
		TRACE("irq:irq_handler_entry..irq:irq_handler_exit --name j");
		/* A serial port sends by interrupts. */
		CHECK(UNTIL(!put("/dev/ttyS0", ".\n") && dist("i", &d) && d.count >= 3), "%s",
		      d.text);
		CHECK(UNTIL(!put("/dev/ttyS0", ".\n") && dist("j", &d) && d.count >= 3), "%s",
		      d.text);
		CHECK(!sh("statpage stop i j"), "%s", out);
		CHECK(!sh("statpage untrace i j"), "%s", out);
	}
	TEST("sched_switch pairs in every context, for a while, on all CPUs: no warning") {
		TRACE("sched:sched_wakeup..sched:sched_switch --by-cpu --name w");
		TRACE("timer:hrtimer_expire_entry..timer:hrtimer_expire_exit --name t");
		sleep_ms(500);
		CHECK(!sh("statpage stop w t"), "%s", out);
		for (const char *n = "w"; n; n = *n == 'w' ? "t" : NULL) {
			DIST(n, &d);
			CHECK(d.count && d.count == d.recorded, "%s", d.text);
			CHECK(d.attempted ==
				      d.recorded + d.missed + d.filtered + d.stopped + d.inside,
			      "%s", d.text);
		}
		CHECK(!sh("statpage untrace w t"), "%s", out);
	}
}

/* A fentry and a tracepoint hold their module; a kprobe does not, and counts no more. */
static void t_unload(void)
{
	struct dist d;

	TEST("a module is not unloaded under a fentry or a tracepoint") {
		TRACE("kstats_demo_outer --name fe --via fentry");
		CHECK(module("kstats_demo", false) == -EAGAIN, "it is");
		TRACE("kstats_demo:kstats_demo_begin..kstats_demo:kstats_demo_end --name tp");
		UNTRACE("fe");
		CHECK(module("kstats_demo", false) == -EAGAIN, "it is");
		CHECK(!demo("outer", 1, 4), "demo");
		DIST("tp", &d);
		whole(&d);
		CHECK(d.count == 4, "%s", d.text);
		UNTRACE("tp");
	}
	TEST("a module with a kretprobe is unloaded: what was recorded stays, and a new one's calls are not its") {
		TRACE("kstats_demo_outer --name fk --via kretprobe");
		TRACE("kstats_demo_outer..kstats_demo_inner --name fp --via kprobe");
		CHECK(!demo("outer", 1, 4), "demo");
		CHECK(UNTIL(!module("kstats_demo", false)), "rmmod");
		for (int loaded = 0; loaded < 2; loaded++) {
			if (loaded)
				CHECK(!load_demo_btf() && !demo("outer", 1, 2), "insmod");
			DIST("fk", &d);
			whole(&d);
			CHECK(d.count == 4, "%s", d.text);
			DIST("fp", &d);
			whole(&d);
			CHECK(d.count == 4, "%s", d.text);
		}
		TRACE("kstats_demo_outer --name again");
		CHECK(!demo("outer", 1, 3), "demo");
		DIST("again", &d);
		whole(&d);
		CHECK(d.count == 3, "%s", d.text);
		CHECK(!sh("statpage untrace fk fp again"), "%s", out);
	}
}

static void tests(void)
{
	static const char *const calls[] = {"fentry", "kretprobe"};

	for (unsigned int i = 0; i < 2; i++) {
		t_sleepers(calls[i]);
		t_recursion(calls[i]);
		t_migration(calls[i]);
		t_gap(calls[i]);
		t_crowd(calls[i], !i);
		t_contexts(calls[i]);
		t_hammer(calls[i]);
		t_filters(calls[i]);
	}
	t_both_at_once();
	t_stack_args();
	/* Later kernels have two such helpers; and where programs are preempted, others miss calls too. */
	if (!preemptible() && sh("grep -q ' bpf_task_storage_get_recur$' /proc/kallsyms"))
		t_own_calls();
	t_pairs("fentry");
	t_pairs("kprobe");
	t_vfs_read();
	t_tracepoints();
	t_unload();
}

int main(void)
{
	return dist_main("t_dist_bpf", tests);
}
