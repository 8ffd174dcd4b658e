// SPDX-License-Identifier: GPL-2.0
// This test checks that under lockdown what was traced before can be read, nothing can be changed, and
// statpage says why. Lockdown comes when the module is there, as it is not signed.
#include "t_kstats.h"

int main(void)
{
	struct metric m;
	char buf[400];

	TEST("lockdown: metrics and the list can be read, nothing can be written") {
		TRACES("l start kstats_demo_inner");
		demo("inner", 1, 3);
		CHECK(!put("/sys/kernel/security/lockdown", "integrity"), "no lockdown");
		METRIC("l", &m);
		sound("l", &m);
		CHECK(m.count == 3, "%s", m.head);
		CHECK(get(KSTATS_DIR "/" KSTATS_NODES, buf, sizeof(buf)) > 0 &&
			      strstr(buf, "l start kstats_demo_inner"),
		      "%s", buf);
		CHECK(control("remove l") == -EPERM, "removed");
		CHECK(put(KSTATS_DIR "/l", "reset") == -EPERM, "reset");
	}
	TEST("lockdown: statpage shows, and tells in one line what cannot be done") {
		static const char *const no[] = {"trace vfs_read --engine kmod",
						 "trace vfs_read --engine kmod --for 1s",
						 "untrace l",
						 "reset l",
						 "start l",
						 "stop l"};

		CHECK(!sh("statpage ls") && strstr(out, "kstats_demo_inner..return"), "%s", out);
		CHECK(!sh("statpage show l") && strstr(out, " 1.000000\n"), "%s", out);
		for (unsigned int i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
			CHECK(sh("statpage %s", no[i]) == 1, "%s: done", no[i]);
			CHECK(strstr(out, "locked down") && strchr(out, '\n')[1] == '\0', "%s: %s",
			      no[i], out);
		}
		METRIC("l", &m);
		CHECK(m.count == 3, "%s", m.head);
	}
	TEST("lockdown: the engine bpf is taken by itself, and said to be") {
		if (sh("statpage trace --engine bpf vfs_open --for 1ms")) {
			CHECK(strstr(out, "built without it"), "%s", out);
			break;
		}
		CHECK(!sh("statpage trace vfs_open"), "%s", out);
		CHECK(strstr(out, "locked down") && strstr(out, "; using the engine bpf\n") &&
			      strchr(out, '\n')[1] == '\0',
		      "%s", out);
		CHECK(!sh("statpage ls") && strstr(out, "vfs_open..return") &&
			      strstr(out, "kstats_demo_inner..return"),
		      "%s", out);
		CHECK(!sh("statpage untrace vfs_open"), "%s", out);
	}
	return t_done("t_kstats_lockdown");
}
