// SPDX-License-Identifier: GPL-2.0
// This test checks statpage trace with the engine bpf: beside the module, without it, killed at any point; that
// nodes outlive the tool and not more than they should; and the messages.
#include "t_dist.h"

/* How long it takes to trace, in ns. */
static uint64_t trace_ns(void)
{
	uint64_t from = now_ns();

	TRACE("kstats_demo_sleep --name k");
	from = now_ns() - from;
	UNTRACE("k");
	return from;
}

static void t_both(void)
{
	struct dist d;

	TEST("both engines side by side: ls lists both, and every command finds a name's engine") {
		CHECK(!sh("statpage trace kstats_demo_sleep --name mod"), "%s", out);
		TRACE("kstats_demo_inner --name a.b%%c");
		TRACE("vfs_open");
		CHECK(!sh("statpage ls") && strstr(out, "kstats_demo_sleep..return by task via ") &&
			      strstr(out, "(kmod) with gap, running") &&
			      strstr(out, "kstats_demo_inner..return by task via fentry (bpf)"),
		      "%s", out);
		demo("inner", 1, 3);
		demo("sleep", 1, 2);
		DIST("a.b%c", &d);
		CHECK(d.count == 3, "%s", d.text);
		DIST("mod", &d);
		CHECK(d.count == 2, "%s", d.text);
		CHECK(sh("statpage trace vfs_read --name a.b%%c") == 1 &&
			      strstr(out, "name a.b%c is taken, by the engine bpf"),
		      "%s", out);
		CHECK(sh("statpage trace vfs_read --name mod --engine bpf") == 1 &&
			      strstr(out, "name mod is taken, by the engine kmod"),
		      "%s", out);
		CHECK(!sh("statpage stop '*'") && !*out, "%s", out);
		CHECK(!sh("statpage ls | grep -c stopped") && !strcmp(out, "3\n"), "%s", out);
		CHECK(!sh("statpage untrace --all") && !*out, "%s", out);
		/* The module's slot is free some time after its node was removed. */
		CHECK(UNTIL(!sh("statpage ls") && !strcmp(out, "nothing is traced\n")), "%s", out);
		CHECK(!sh("statpage untrace --all") && !*out, "%s", out);
	}
	TEST("a function that the module holds goes by kretprobe, with a note") {
		CHECK(!sh("statpage trace vfs_open --name mod"), "%s", out);
		TRACE("vfs_open --name n");
		sh("cat /proc/version");
		DIST("n", &d);
		CHECK(!strcmp(d.via, "kretprobe") && d.count, "%s", d.text);
		CHECK(!sh("statpage ls") && strstr(out, "via kretprobe (bpf)") &&
			      strstr(out, " [vfs_open: "),
		      "%s", out);
		CHECK(!sh("statpage untrace --all"), "%s", out);
	}
	TEST("trace --for: records, prints, and removes") {
		pid_t pid = fork();

		if (!pid) {
			for (;; sleep_ms(20))
				demo("inner", 1, 1);
		}
		CHECK(!sh("statpage trace --engine bpf kstats_demo_inner --for 1s --quantiles") &&
			      strstr(out, "p50 "),
		      "%s", out);
		CHECK(!sh("statpage ls") && strstr(out, "nothing is traced"), "%s", out);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

static void t_module(void)
{
	struct dist d;

	TEST("the module is not loaded: the engine bpf is taken by itself") {
		CHECK(UNTIL(!module("kstats_demo", false)) && UNTIL(!module("kstats", false)),
		      "rmmod");
		CHECK(!sh("statpage trace vfs_open --name v"), "%s", out);
		sh("cat /proc/version");
		DIST("v", &d);
		CHECK(d.count && !strcmp(d.via, "fentry"), "%s", d.text);
		CHECK(!sh("statpage untrace v"), "%s", out);
		CHECK(!module("kstats", true) && !load_demo_btf(), "insmod");
	}
}

static void t_kill(void)
{
	uint64_t ns = trace_ns(), at;
	int made = 0, status;
	pid_t pid;

	TEST("the tool is killed at 20 points: what is left is whole, or swept away") {
		for (unsigned int i = 0; i < 20; i++) {
			pid = fork();
			if (!pid) {
				char name[8];

				snprintf(name, sizeof(name), "k%u", i);
				execlp("statpage", "statpage", "trace", "--engine", "bpf", "--name",
				       name, "kstats_demo_sleep", NULL);
				_exit(9);
			}
			at = ns * i / 18;
			nanosleep(&(struct timespec){at / 1000000000, at % 1000000000}, NULL);
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			made += WIFEXITED(status) && !WEXITSTATUS(status);
		}
		CHECK(!sh("statpage ls | grep -c '(bpf)'") || !strcmp(out, "0\n"), "%s", out);
		CHECK(atoi(out) == folders() && atoi(out) >= made, "%d folders, %d made: %s",
		      folders(), made, out);
		CHECK(UNTIL(objects().progs == before.progs + 3 * folders()),
		      "%d programs, %d before, %d nodes", objects().progs, before.progs, folders());
		CHECK(!sh("statpage untrace --all"), "%s", out);
		CHECK(!folders() && UNTIL(same(before, objects())), "%d folders", folders());
	}
}

/* ---- messages ---- */

static void t_wrong(void)
{
	static const struct {
		const char *command;
		int status;
		const char *message;
	} bad[] = {
		{"vfs_rea", 1, "near it: vfs_read"},
		{"do_exit", 1, "never returns"},
		{"vfs_read --via magic", 1, "via magic, expected"},
		{"vfs_read --via kprobe", 1, "cannot do"},
		{"vfs_read --maxactive 9", 1, "maxactive"},
		{"vfs_read --by-cpu", 1, "needs an end"},
		{"vfs_read..vfs_read", 1, "both vfs_read"},
		{"vfs_read --name a/b", 1, "no /"},
		{"vfs_read --name ...", 1, "dots only"},
		{"vfs_read --only-cpu 500", 1, "cpu 500, expected 0.."},
		{"vfs_read --pid 999999", 1, "no such process"},
		{"vfs_read --comm 1234567890123456", 1, "longer than 15 bytes"},
		{"sched:no_such..sched:sched_switch", 1, "no tracepoint sched:no_such"},
		{"sched:sched_switch", 1, "has no return"},
		{"vfs_read@0xzz", 1, "expected NAME@0xADDRESS"},
		{"nmi_enter_no_such", 1, "inlined, or absent"},
		{"exc_page_fault", 1, "exc_page_fault: the function cannot be probed"},
	};

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		TEST("wrong: statpage trace --engine bpf %s", bad[i].command) {
			int status = sh("statpage trace --engine bpf %s", bad[i].command);

			CHECK(status == bad[i].status, "exit status %d", status);
			CHECK(strstr(out, bad[i].message) && strchr(out, '\n')[1] == '\0', "%s",
			      out);
			CHECK(!folders(), "something is left");
		}
	}
	TEST("without privileges, and without BTF: one line") {
		CHECK(sh("su nobody -c 'statpage trace --engine bpf vfs_read'") == 1 &&
			      strstr(out, "this needs root") && strchr(out, '\n')[1] == '\0',
		      "%s", out);
		CHECK(!sh("mount -t tmpfs none /sys/kernel/btf"), "%s", out);
		CHECK(sh("statpage trace --engine bpf vfs_read") == 1 &&
			      strstr(out, "this kernel has no BTF") && strchr(out, '\n')[1] == '\0',
		      "%s", out);
		CHECK(!sh("umount /sys/kernel/btf"), "%s", out);
		CHECK(sh("statpage untrace nothing") == 1 && strstr(out, "no such node"), "%s",
		      out);
		CHECK(sh("statpage untrace --all x") == 2 && strstr(out, "--all takes no names"),
		      "%s", out);
	}
}

static void tests(void)
{
	t_both();
	t_module();
	t_kill();
	t_wrong();
}

int main(void)
{
	return dist_main("t_dist_bpf_tool", tests);
}
