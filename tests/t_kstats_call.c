// SPDX-License-Identifier: GPL-2.0
// This test checks the times that kstats takes of calls that sleep, recurse, migrate, overlap, and of
// the gaps between them, by each mechanism.
#include "t_kstats.h"

static const char *const vias[] = {"direct", "kretprobe", "fprobe"};

/* 23 calls that sleep 10 ms by two tasks on one CPU, 5 ms apart. */
static void t_sleepers(const char *via)
{
	struct metric m;

	TEST("%s: 23 calls that sleep 10 ms, by two tasks on one CPU: 23 right samples", via) {
		if (LACKS("s start kstats_demo_sleep via %s", via))
			break;
		child("sleep", 10, 12, 0, 0, 0);
		child("sleep", 10, 11, 0, 5, 0);
		wait_all();
		METRIC("s", &m);
		sound("s", &m);
		CHECK(!strcmp(m.via, via), "via %s", m.via);
		CHECK(m.count == 23 && !m.missed, "%s", m.head);
		CHECK(m.min_avg >= 10 * MS, "shortest slot averages %llu ns",
		      (unsigned long long)m.min_avg);
		CHECK(m.max_avg <= traced_for(), "longest slot averages %llu ns",
		      (unsigned long long)m.max_avg);
		REMOVES("s");
	}
}

static void t_recursion(const char *via)
{
	char buf[4096];
	struct metric m;

	TEST("%s: recursion to depth 3, 1 ms a level: 1, 2 and 3 ms", via) {
		/* 5 bits: so that no two of the samples share a slot. */
		if (LACKS("r start kstats_demo_recurse bits 5 via %s", via))
			break;
		CHECK(!demo("recurse", 3, 1), "demo");
		METRIC("r", &m);
		sound("r", &m);
		CHECK(m.count == 3, "%s", m.head);
		get(KSTATS_DIR "/r", buf, sizeof(buf));
		CHECK(m.min_avg >= 1 * MS && m.max_avg >= 3 * MS && m.head_sum >= 6 * MS, "%s",
		      buf);
		CHECK(m.max_avg <= traced_for(), "%s", buf);
		REMOVES("r");
	}
}

static void t_migration(const char *via)
{
	struct metric m;

	TEST("%s: a call that migrates: one right sample, where it ended", via) {
		if (LACKS("m start kstats_demo_migrate via %s", via))
			break;
		child("migrate", 4, 1, -1, 0, 0);
		wait_all();
		METRIC("m", &m);
		sound("m", &m);
		CHECK(m.count == 1 && m.min_avg >= 4 * MS && m.max_avg <= traced_for(), "%s",
		      m.head);
		REMOVES("m");
	}
}

/* 100 callers inside one sleeping function at a time. */
static void t_crowd(const char *via, int maxactive, bool all)
{
	struct metric m;
	char cmd[40] = "";

	TEST("%s%s: 100 callers at once: %s", via, maxactive ? " maxactive 128" : "",
	     all ? "none is missed" : "what is missed is counted") {
		if (maxactive)
			snprintf(cmd, sizeof(cmd), "maxactive %d", maxactive);
		if (LACKS("c start kstats_demo_sleep via %s %s", via, cmd))
			break;
		demo("calls", 0, 1);
		for (int i = 0; i < 100; i++)
			child("sleep", 300, 1, -1, 0, 0);
		wait_all();
		demo("calls", 0, 1);
		METRIC("c", &m);
		sound("c", &m);
		CHECK(demo_result() == 100, "the function itself counted %ld", demo_result());
		CHECK(m.attempted == 100 && !m.inside, "%s", m.head);
		CHECK(all ? !m.missed : m.missed > 0, "%s", m.head);
		CHECK(!m.count || m.min_avg >= 300 * MS, "%s", m.head);
		REMOVES("c");
	}
}

static void t_softirq(void)
{
	struct metric m;

	TEST("a function that runs in softirq, on both mechanisms at once") {
		TRACES("q start kstats_demo_softirq_body");
		TRACES("k start kstats_demo_softirq_body via kretprobe");
		CHECK(!demo("softirq", 1, 50), "demo");
		METRIC("q", &m);
		sound("q", &m);
		CHECK(m.count == 50 && !strcmp(m.via, CALLS_VIA), "%s", m.head);
		METRIC("k", &m);
		sound("k", &m);
		CHECK(m.attempted == 50, "%s", m.head);
		REMOVES("q");
		REMOVES("k");
	}
}

static void t_gap(const char *via)
{
	struct metric m;

	TEST("%s: 1,000 calls 1 ms apart on one CPU: 999 gaps of about 1 ms", via) {
		if (LACKS("g start kstats_demo_inner via %s", via))
			break;
		child("inner", 1, 1000, 0, 0, 1);
		wait_all();
		METRIC("g", &m);
		sound("g", &m);
		CHECK(m.count == 1000, "%s", m.head);
		METRIC("GAP-g", &m);
		sound("GAP-g", &m);
		CHECK(m.count == 999, "%s", m.head);
		CHECK(m.min_avg >= 1 * MS && m.head_sum <= traced_for(), "%s", m.head);
		REMOVES("g");
		CHECK(metric("GAP-g", -1, &m) == -ENOENT, "GAP-g is still there");
	}
}

static void t_overlap(void)
{
	struct metric m;

	TEST("gap: of calls that overlap on one CPU only one sees it") {
		TRACES("o start kstats_demo_sleep");
		demo("sleep", 1, 1);
		sleep_ms(20);
		for (int i = 0; i < 8; i++)
			child("sleep", 200, 1, 0, 0, 0);
		wait_all();
		METRIC("GAP-o", &m);
		sound("GAP-o", &m);
		CHECK(m.count <= 1, "%s", m.head);
		METRIC("o", &m);
		CHECK(m.count == 9, "%s", m.head);
		REMOVES("o");
	}
}

/* Direct does not see the start of a call, so it needs `gap no` for a filter of tasks. */
static void t_filters(void)
{
	struct metric m;
	pid_t pid;

	TEST("filters: pid, comm and cpu count what they leave out") {
		pid = child("sleep", 5, 4, 0, -1, 0);
		TRACES("p start kstats_demo_sleep pid %d gap no", pid);
		TRACES("pk start kstats_demo_sleep pid %d via kretprobe", pid);
		TRACES("n start kstats_demo_sleep comm nobody via kretprobe");
		demo("sleep", 1, 3);
		waitpid(pid, NULL, WUNTRACED);
		kill(pid, SIGCONT);
		wait_all();
		METRIC("p", &m);
		sound("p", &m);
		CHECK(m.count == 4 && m.filtered == 3 && !strcmp(m.via, CALLS_VIA), "%s", m.head);
		METRIC("pk", &m);
		sound("pk", &m);
		CHECK(m.count == 4 && m.filtered == 3, "%s", m.head);
		METRIC("n", &m);
		sound("n", &m);
		CHECK(m.count == 0 && m.filtered == 7, "%s", m.head);
		REMOVES("p");
		REMOVES("pk");
		REMOVES("n");
		TRACES("u start kstats_demo_inner cpu 0");
		pin_to(0);
		demo("inner", 1, 5);
		CHECK(!metric("u", 0, &m) && m.count == 5, "%s", m.head);
		if (sysconf(_SC_NPROCESSORS_ONLN) > 1) {
			pin_to(1);
			demo("inner", 1, 5);
			METRIC("u", &m);
			sound("u", &m);
			CHECK(m.count == 5 && m.filtered == 5, "%s", m.head);
		}
		REMOVES("u");
	}
}

static void t_hammer(void)
{
	const int n = 200000;
	struct metric m;

	TEST("two CPUs call one function as fast as they can: every call is there") {
		TRACES("h start kstats_demo_empty");
		CHECK(!demo("empty2", n, 1), "demo");
		METRIC("h", &m);
		sound("h", &m);
		CHECK(m.count == 2 * n && !m.missed, "%s", m.head);
		CHECK(!put(KSTATS_DIR "/h", "reset"), "reset");
		METRIC("h", &m);
		sound("h", &m);
		CHECK(!m.count && !m.attempted, "%s", m.head);
		CHECK(!demo("empty", 1, 10), "demo");
		METRIC("h", &m);
		sound("h", &m);
		CHECK(m.count == 10 && m.attempted == 10, "%s", m.head);
		REMOVES("h");
	}
}

/* A task that dies inside: its call never returns. */
static void t_inside(void)
{
	struct metric m;
	pid_t pid;

	TEST("a call that does not return is shown as inside, and comes out in the end") {
		TRACES("f start kstats_demo_forever");
		pid = child("forever", 0, 1, -1, 0, 0);
		CHECK(UNTIL(!metric("f", -1, &m) && m.inside == 1), "%s", m.head);
		sound("f", &m);
		CHECK(m.attempted == 1 && m.count == 0, "%s", m.head);
		CHECK(!put(KSTATS_DIR "/f", "reset"), "reset");
		METRIC("f", &m);
		sound("f", &m);
		CHECK(m.inside == 1 && m.attempted == 1, "after reset: %s", m.head);
		demo("release", 0, 1);
		waitpid(pid, NULL, 0);
		METRIC("f", &m);
		sound("f", &m);
		CHECK(m.count == 1 && !m.inside, "%s", m.head);
		REMOVES("f");
	}
}

int main(void)
{
	for (unsigned int i = 0; i < sizeof(vias) / sizeof(vias[0]); i++) {
		t_sleepers(vias[i]);
		t_recursion(vias[i]);
		t_migration(vias[i]);
		t_gap(vias[i]);
	}
	t_crowd("direct", 0, true);
	t_crowd("kretprobe", 0, false);
	t_crowd("kretprobe", 128, true);
	t_softirq();
	t_overlap();
	t_filters();
	t_hammer();
	t_inside();
	return t_done("t_kstats_call");
}
