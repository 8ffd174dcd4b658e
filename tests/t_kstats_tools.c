// SPDX-License-Identifier: GPL-2.0
// This test checks statpage's commands for distributions against the module: each command, its output
// and exit status, patterns, --for with ^C, and the messages for wrong use.
#include <pty.h>

#include "t_kstats.h"

/* Of a heat map that began before them, the lines have 4 calls in sum. */
static void heatmap(void)
{
	pid_t pid;

	sh("statpage show --heatmap --interval 200ms kstats_demo_sleep >/tmp/map & echo $!");
	pid = (pid_t)strtol(out, NULL, 10);
	CHECK(UNTIL(!sh("grep -q attempted /tmp/map")), "no head");
	demo("sleep", 1, 4);
	CHECK(UNTIL(!sh("awk '/^[0-9:]+ +[0-9]+/ { n += $2 } END { exit n != 4 }' /tmp/map")),
	      "not 4 calls: %s", sh("cat /tmp/map") ? "" : out);
	CHECK(!sh("grep -q 'time *count.* p99$' /tmp/map"), "no axis");
	kill(pid, SIGTERM);
}

static void t_commands(void)
{
	TEST("trace, ls, show, stop, reset, start, untrace") {
		CHECK(sh("statpage ls") == 0 && !strcmp(out, "nothing is traced\n"), "%s", out);
		CHECK(sh("statpage trace kstats_demo_sleep") == 0 && !*out, "%s", out);
		demo("sleep", 2, 5);
		CHECK(sh("statpage ls") == 0 &&
			      strstr(out, "kstats_demo_sleep..return by task via direct") &&
			      strstr(out, "attempted 5 recorded 5 missed 0"),
		      "%s", out);
		CHECK(sh("statpage show kstats_demo_sleep") == 0 && strstr(out, " 1.000000\n"),
		      "%s", out);
		CHECK(sh("statpage show --quantiles kstats_demo_sleep") == 0 &&
			      strstr(out, "p99 ") && strstr(out, "of 5 samples"),
		      "%s", out);
		CHECK(sh("statpage show --json kstats_demo_sleep GAP-kstats_demo_sleep") == 0 &&
			      strstr(out, "\"complete\":true") && strstr(out, "\"count\":5") &&
			      strstr(out, "\"count\":4"),
		      "%s", out);
		CHECK(sh("statpage top --once --json --interval 10ms -p 1") == 0 &&
			      strstr(out, "\"distributions\":{\"engine\":\"kmod") &&
			      strstr(out, "{\"name\":\"kstats_demo_sleep\",\"missed\":0,"
					  "\"total\":{\"count\":5,\"p50_ns\":") &&
			      strstr(out, "},\"interval\":{\"count\":0}}"),
		      "%s", out);
		CHECK(sh("statpage show --plot kstats_demo_sleep") == 0 && strstr(out, "100.00%"),
		      "%s", out);
		heatmap();
		CHECK(sh("statpage stop kstats_demo_sleep") == 0, "%s", out);
		CHECK(sh("statpage reset kstats_demo_sleep") == 0, "%s", out);
		demo("sleep", 1, 2);
		CHECK(sh("statpage show kstats_demo_sleep") == 0 && strstr(out, "stopped 2"), "%s",
		      out);
		CHECK(sh("statpage start kstats_demo_sleep") == 0, "%s", out);
		CHECK(sh("statpage untrace kstats_demo_sleep") == 0 && !*out, "%s", out);
		CHECK(sh("statpage ls") == 0 && strstr(out, "nothing is traced"), "%s", out);
	}
	TEST("trace X..Y, tracepoints, and options") {
		CHECK(sh("statpage trace kstats_demo_outer..kstats_demo_inner --no-gap --bits 5") ==
			      0,
		      "%s", out);
		CHECK(sh("statpage trace --name tp kstats_demo:kstats_demo_begin..kstats_demo:kstats_demo_end") ==
			      0,
		      "%s", out);
		demo("outer", 1, 3);
		CHECK(sh("statpage show --json kstats_demo_outer..kstats_demo_inner tp") == 0 &&
			      strstr(out, "\"bits\":5") && strstr(out, "\"count\":3"),
		      "%s", out);
		CHECK(sh("statpage untrace kstats_demo_outer..kstats_demo_inner tp") == 0, "%s",
		      out);
	}
	TEST("trace PATTERN: what cannot be traced is skipped, with its reason") {
		CHECK(sh("statpage trace --no-gap 'kstats_demo_[ei]*'") == 0 &&
			      strstr(out, "of 2 functions traced"),
		      "%s", out);
		CHECK(sh("statpage trace --no-gap 'kstats_demo_[eis]*'") == 0 &&
			      strstr(out, "skipped: name") && strstr(out, "is taken"),
		      "%s", out);
		CHECK(sh("statpage trace --max 3 'vfs_*'") == 1 && strstr(out, "at most 3"), "%s",
		      out);
		CHECK(sh("statpage trace 'no_such_*'") == 1, "%s", out);
	}
	TEST("stop, reset, start and untrace take patterns, of traced nodes") {
		CHECK(sh("statpage stop 'kstats_demo_[is]*'") == 0 && !*out, "%s", out);
		CHECK(sh("statpage ls | grep -c stopped") == 0 && !strcmp(out, "4\n"), "%s", out);
		CHECK(sh("statpage untrace 'kstats_demo_i*' no_such '*_such'") == 1 &&
			      strstr(out, "no_such: no such node") &&
			      strstr(out, "no traced node matches *_such"),
		      "%s", out);
		CHECK(sh("statpage ls") == 0 && !strstr(out, "kstats_demo_inner..") &&
			      strstr(out, "kstats_demo_empty"),
		      "%s", out);
		CHECK(sh("statpage untrace '*'") == 0 && !*out, "%s", out);
		CHECK(sh("statpage ls") == 0 && strstr(out, "nothing is traced"), "%s", out);
	}
}

/* Run by nobody, what there is to see is told in one line. */
static void one_line(const char *command, const char *part)
{
	CHECK(sh("%s", command) == 1 && strstr(out, part) && strchr(out, '\n')[1] == '\0', "%s: %s",
	      command, out);
}

static void t_absent(void)
{
	TEST("without privileges: one line") {
		one_line("su nobody -c 'statpage ls'", "this needs root");
		one_line("su nobody -c 'statpage trace vfs_read'", "this needs root");
		one_line("su nobody -c 'statpage show demo_recorded'", "this needs root");
	}
	TEST("debugfs is not mounted: one line") {
		sh("umount /sys/kernel/debug/tracing"); /* where somebody has looked into it */
		CHECK(!sh("umount /sys/kernel/debug"), "%s", out);
		one_line("statpage ls", "debugfs must be mounted");
		one_line("statpage trace vfs_read", "debugfs must be mounted");
		CHECK(!sh("mount -t debugfs debugfs /sys/kernel/debug"), "%s", out);
	}
	TEST("the module is not loaded: one line, and it says what to load, unless the engine bpf is there") {
		CHECK(!module("kstats_demo", false) && UNTIL(!module("kstats", false)), "rmmod");
		one_line("statpage trace vfs_read --engine kmod --for 1s", "modprobe kstats");
		if (sh("statpage ls") || strcmp(out, "nothing is traced\n")) {
			one_line("statpage ls", "modprobe kstats");
			one_line("statpage untrace x", "modprobe kstats");
		} else {
			one_line("statpage untrace x", "x: no such node");
		}
		CHECK(!module("kstats", true) && !module("kstats_demo", true), "insmod");
	}
}

/* Its parent reads what it writes to a terminal, which makes it tell how far it is. */
static void t_progress(void)
{
	char buf[8192] = "";
	size_t at = 0;
	ssize_t n;
	pid_t pid;
	int fd, status;

	TEST("trace --for: a line on the terminal tells how far it is, and goes away") {
		pid = forkpty(&fd, NULL, NULL, NULL);
		if (!pid) {
			execlp("statpage", "statpage", "trace", "kstats_demo_inner", "--for", "3s",
			       NULL);
			_exit(9);
		}
		CHECK(UNTIL(!access(KSTATS_DIR "/kstats_demo_inner", F_OK)), "not traced");
		CHECK(access(KSTATS_DIR "/GAP-kstats_demo_inner", F_OK), "a gap that nobody reads");
		demo("inner", 1, 3);
		while (at < sizeof(buf) - 1 && (n = read(fd, buf + at, sizeof(buf) - 1 - at)) > 0)
			at += n;
		waitpid(pid, &status, 0);
		close(fd);
		CHECK(!status, "status %x", status);
		CHECK(strstr(buf, "\rkstats_demo_inner: 1 of 3 s, attempted "), "%s", buf);
		CHECK(strstr(buf, "\r\033[Kkstats_demo_inner: time start"), "%s", buf);
		CHECK(strstr(buf, "attempted 3 recorded 3 missed 0"), "%s", buf);
	}
}

static void t_for(void)
{
	pid_t pid;
	int status;

	TEST("trace --for: records, prints, and removes") {
		pid = fork();
		if (!pid) {
			for (;; sleep_ms(20)) /* it may take long until statpage is ready */
				demo("inner", 1, 1);
		}
		CHECK(sh("statpage trace kstats_demo_inner --for 1s --quantiles") == 0 &&
			      strstr(out, "p50 "),
		      "%s", out);
		CHECK(sh("statpage ls") == 0 && strstr(out, "nothing is traced"), "%s", out);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	TEST("trace --for: ^C ends it early, prints, and removes") {
		pid = fork();
		if (!pid) {
			freopen("/tmp/for", "w", stdout);
			execlp("statpage", "statpage", "trace", "kstats_demo_inner", "--for", "10m",
			       NULL);
			_exit(9);
		}
		CHECK(UNTIL(!access(KSTATS_DIR "/kstats_demo_inner", F_OK)), "not traced");
		demo("inner", 1, 3);
		kill(pid, SIGINT);
		waitpid(pid, &status, 0);
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "status %x", status);
		get("/tmp/for", out, sizeof(out));
		CHECK(strstr(out, "recorded 3"), "%s", out);
		CHECK(access(KSTATS_DIR "/kstats_demo_inner", F_OK), "it is still traced");
	}
}

static void t_wrong(void)
{
	static const struct {
		const char *command;
		int status;
		const char *message;
	} bad[] = {
		{"trace", 2, "needs one"},
		{"trace a b", 2, "needs one"},
		{"trace ..", 2, "X..Y"},
		{"trace vfs_read --bits 9", 2, "--bits"},
		{"trace vfs_read --for never", 2, "--for"},
		{"trace vfs_read --for 0", 2, "--for"},
		{"trace 'vfs_*' --name x", 2, "--name"},
		{"trace vfs_rea", 1, "near it: vfs_read"},
		{"trace no_such_function_at_all", 1, "inlined, or absent"},
		{"trace do_exit", 1, "never returns"},
		{"trace vfs_read --via magic", 1, "via magic"},
		{"untrace", 2, "a name is needed"},
		{"untrace nothing", 1, "no such node"},
		{"show", 2, "name of a metric"},
		{"show nothing", 1, "no metric nothing"},
		{"show ../../x", 1, "not a metric's name"},
		{"show ..", 1, "not a metric's name"},
		{"show demo_recorded --cpu 0.5", 2, "--cpu is a "},
		{"show demo_recorded --cpu 17", 2, "--cpu is a number from 0 to"},
		{"show demo_recorded --json --plot", 2, "only one of"},
		{"show demo_recorded --heatmap --plot", 2, "only one of"},
		{"show demo_recorded --heatmap --interval 5", 2, "--interval is a time"},
		{"show demo_recorded --interval 1s", 2, "go with --heatmap"},
		{"show demo_recorded demo_annotated --heatmap", 2, "takes one metric"},
		{"show nothing_here --heatmap", 1, "no metric nothing_here"},
		{"trace vfs_read --for 1s --json --plot", 2, "only one of"},
		{"trace sched_wakeup..sched_switch", 1, "say __tracepoint_sched_wakeup"},
		{"trace sched:no_such..sched:sched_switch", 1, "no tracepoint sched:no_such"},
		{"trace vfs_read --only-cpu 500", 1, "cpu 500, expected 0.."},
		{"trace vfs_read --pid 999999", 1, "no such process"},
		{"trace vfs_read --name a/b", 1, "no /"},
		{"trace vfs_read --bits 2.5", 2, "a whole number"},
		{"stop nothing", 1, "no metric nothing"},
		{"ls everything", 2, "no argument"},
	};

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		TEST("wrong: statpage %s", bad[i].command) {
			int status = sh("statpage %s", bad[i].command);

			CHECK(status == bad[i].status, "exit status %d", status);
			CHECK(strstr(out, bad[i].message), "%s", out);
			CHECK(sh("statpage ls") == 0 && strstr(out, "nothing is traced"), "%s",
			      out);
		}
	}
	TEST("a write that fails is told: /dev/full") {
		CHECK(sh("statpage show demo_recorded >/dev/full") == 1, "%s", out);
	}
}

int main(void)
{
	t_commands();
	t_for();
	t_progress();
	t_absent();
	t_wrong();
	return t_done("t_kstats_tools");
}
