// SPDX-License-Identifier: GPL-2.0
// This test checks that with debugfs=off the module does not load, and that it and statpage say why.
#include <sys/klog.h>

#include "t_kstats.h"

int main(void)
{
	static char log[1 << 18];
	char *line;
	int len, ret;

	TEST("debugfs=off: the module is refused with one line") {
		ret = module("kstats", true);
		CHECK(ret == -EPERM || ret == -ENODEV, "insmod: %s", strerror(-ret));
		len = klogctl(3 /* SYSLOG_ACTION_READ_ALL */, log, sizeof(log) - 1);
		log[len < 0 ? 0 : len] = '\0';
		line = strstr(log, "kstats: no debugfs");
		CHECK(line && strstr(line, "debugfs=off"), "the log does not say it");
		CHECK(access("/sys/module/kstats", F_OK), "it is there");
	}
	TEST("annotated code that was built without kstats loads without it") {
		ret = module("kstats_off", true);
		CHECK(!ret, "insmod: %s", strerror(-ret));
		CHECK(!module("kstats_off", false), "rmmod");
	}
	TEST("debugfs=off: statpage says so in one line, and the engine bpf does without") {
		CHECK(sh("statpage trace --engine kmod vfs_read") == 1, "status");
		CHECK(strstr(out, "debugfs") && strchr(out, '\n')[1] == '\0', "%s", out);
		if (sh("statpage ls")) {
			CHECK(strstr(out, "debugfs") && strstr(out, "built without it"), "%s", out);
			break;
		}
		CHECK(!sh("statpage trace vfs_open") && !*out, "%s", out);
		CHECK(!sh("statpage ls") && strstr(out, "vfs_open..return") && strstr(out, "(bpf)"),
		      "%s", out);
		CHECK(!sh("statpage untrace vfs_open"), "%s", out);
	}
	return t_done("t_kstats_nodebugfs");
}
