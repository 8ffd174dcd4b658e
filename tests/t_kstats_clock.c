// SPDX-License-Identifier: GPL-2.0
// This test checks that kstats stops when the kernel gives up on the TSC, and that loaded anew it takes the
// kernel's clock instead and times right by it.
#include "t_kstats.h"

static void t_lost(void)
{
	struct metric m;

	TEST("the TSC is marked unstable: nodes stop, say so, and cannot be started") {
		TRACES("c start kstats_demo_sleep gap no");
		CHECK(!demo("sleep", 1, 3), "demo");
		METRIC("c", &m);
		CHECK(m.count == 3 && strstr(m.head, "clock tsc "), "%s", m.head);
		CHECK(!module("csf_tsc", true), "insmod csf_tsc");
		CHECK(UNTIL(!metric("c", -1, &m) && strstr(m.head, "state lost-clock")), "%s",
		      m.head);
		CHECK(strstr(m.head, "# the TSC was marked unstable: stopped"), "%s", m.head);
		CHECK(!demo("sleep", 1, 2), "demo");
		METRIC("c", &m);
		sound("c", &m);
		CHECK(m.count == 3 && m.stopped == 2, "%s", m.head);
		CHECK(put(KSTATS_DIR "/c", "start") == -EIO, "started");
		CHECK(!put(KSTATS_DIR "/c", "stop") && !put(KSTATS_DIR "/c", "reset"), "reset");
		CHECK(control("trace d start vfs_read") == -EIO && strstr(why, "TSC"), "%s", why);
		CHECK(sh("statpage start c") == 1 && strstr(out, "TSC"), "%s", out);
		REMOVES("c");
		CHECK(UNTIL(drained()), "a slot is still in use");
	}
	TEST("an annotated metric goes on with values, and counts times as missed") {
		CHECK(!put(KSTATS_DIR "/demo_annotated", "reset"), "reset");
		CHECK(!demo("record", 480, 4), "demo");
		METRIC("demo_recorded", &m);
		CHECK(m.slot[55] == 4, "%s", m.head);
		METRIC("demo_annotated", &m);
		sound("demo_annotated", &m);
		CHECK(!m.count && word(m.head, "missed-clock") == 4, "%s", m.head);
	}
}

static void t_monotonic(void)
{
	struct metric m;

	TEST("loaded anew: the kernel's clock, calls by kretprobe, and the times are right") {
		CHECK(!module("kstats_demo", false) && UNTIL(!module("kstats", false)), "rmmod");
		CHECK(!module("kstats", true) && !module("kstats_demo", true), "insmod");
		TRACES("s start kstats_demo_sleep");
		CHECK(!demo("sleep", 10, 5), "demo");
		METRIC("s", &m);
		sound("s", &m);
		CHECK(strstr(m.head, "clock monotonic") && !strcmp(m.via, "kretprobe") &&
			      strstr(m.head, "# fallback direct: the TSC is not usable"),
		      "%s", m.head);
		CHECK(m.count == 5 && m.min_avg >= 10 * MS && m.max_avg <= traced_for(), "%s",
		      m.head);
		REMOVES("s");
		CHECK(control("trace s start kstats_demo_sleep via direct") == -EOPNOTSUPP, "%s",
		      why);
		METRIC("demo_annotated", &m);
		CHECK(m.count == 5 && m.min_avg >= 10 * MS && m.max_avg <= traced_for(), "%s",
		      m.head);
	}
}

int main(void)
{
	t_lost();
	t_monotonic();
	return t_done("t_kstats_clock");
}
