// SPDX-License-Identifier: GPL-2.0
// This test checks the direct trampolines: deep recursion, sleepers across removal and unloading, attach
// and detach under load, a pool that is used up, stack arguments, unwinding, BPF as a rival, ftrace off.
#include <sys/select.h>

#include "t_bpf.h"
#include "t_kstats.h"

static void t_deep(void)
{
	struct metric m;

	TEST("recursion 101 deep: all 101 are there, with a kretprobe far fewer") {
		TRACES("d start kstats_demo_recurse gap no");
		CHECK(!demo("recurse", 101, 1) && demo_result() == 101, "demo: %ld", demo_result());
		METRIC("d", &m);
		sound("d", &m);
		CHECK(m.count == 101 && !m.missed && !strcmp(m.via, "direct"), "%s", m.head);
		REMOVES("d");
		TRACES("k start kstats_demo_recurse via kretprobe");
		CHECK(!demo("recurse", 101, 1) && demo_result() == 101, "demo: %ld", demo_result());
		METRIC("k", &m);
		sound("k", &m);
		CHECK(m.attempted == 101 && m.missed > 0, "%s", m.head);
		REMOVES("k");
	}
}

static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	_exit(demo("forever", 0, 1) ? 1 : 0);
}

static int unload(void)
{
	return syscall(SYS_delete_module, "kstats_demo", O_NONBLOCK) ? -errno : 0;
}

static void t_sleeper(void)
{
	char list[8192];
	struct metric m;
	int status, ret;
	pid_t pid;

	TEST("a task asleep in the function while its node is removed, and traced again") {
		TRACES("s start kstats_demo_forever");
		pid = start_sleeper();
		CHECK(UNTIL(!metric("s", -1, &m) && m.inside == 1), "%s", m.head);
		REMOVES("s");
		CHECK(access(KSTATS_DIR "/s", F_OK), "its file is still there");
		sleep_ms(1500);
		get(KSTATS_DIR "/" KSTATS_NODES, list, sizeof(list));
		CHECK(strstr(list, "# removed s: 1 calls still inside kstats_demo_forever"), "%s",
		      list);
		ret = syscall(SYS_delete_module, "kstats", O_NONBLOCK) ? -errno : 0;
		CHECK(ret == -EAGAIN || ret == -EWOULDBLOCK || ret == -EBUSY, "rmmod kstats: %d",
		      ret);
		TRACES("s start kstats_demo_forever");
		METRIC("s", &m);
		sound("s", &m);
		CHECK(!m.attempted && !m.inside && !strcmp(m.via, "direct"), "%s", m.head);
		demo("release", 0, 1);
		waitpid(pid, &status, 0);
		CHECK(!status, "the sleeper failed");
		CHECK(UNTIL(drained()), "the slot is still in use");
		METRIC("s", &m);
		CHECK(!m.attempted, "the old call is not the new node's: %s", m.head);
		REMOVES("s");
	}
}

/* Does not go through hrtimer_nanosleep(), which is traced. */
static void pause_ms(int ms)
{
	select(0, NULL, NULL, NULL, &(struct timeval){ms / 1000, ms % 1000 * 1000});
}

/* The module kstats itself goes, alone: the demo has to go first, as it uses it. */
static void t_unload(void)
{
	char path[] = "/ko/kstats_demo.ko";
	struct metric m;
	int fd, ret = 0, status;
	pid_t pid;

	TEST("rmmod removes all nodes, and is refused while a task sleeps in a traced function") {
		if (!CHECK(UNTIL(!unload()), "rmmod kstats_demo"))
			break;
		TRACES("n start hrtimer_nanosleep");
		TRACES("v start vfs_read");
		pid = fork();
		if (!pid) {
			sleep_ms(5000);
			_exit(0);
		}
		CHECK(UNTIL(!metric("n", -1, &m) && m.inside >= 1), "%s", m.head);
		pause_ms(2000); /* a look at who is inside comes once a second */
		ret = syscall(SYS_delete_module, "kstats", O_NONBLOCK) ? -errno : 0;
		CHECK(ret == -EAGAIN || ret == -EBUSY, "rmmod with a sleeper inside: %d", ret);
		waitpid(pid, &status, 0);
		CHECK(!control("remove v"), "%s", why); /* somebody may sleep in it for long */
		for (int i = 0; i < 100; i++) {
			ret = syscall(SYS_delete_module, "kstats", O_NONBLOCK) ? -errno : 0;
			if (ret != -EAGAIN)
				break;
			pause_ms(200);
		}
		CHECK(!ret && access(KSTATS_DIR, F_OK), "rmmod: %d", ret);
		fd = open("/ko/kstats.ko", O_RDONLY);
		CHECK(!syscall(SYS_finit_module, fd, "", 0), "insmod kstats");
		close(fd);
		fd = open(path, O_RDONLY);
		CHECK(!syscall(SYS_finit_module, fd, "", 0), "insmod kstats_demo");
		close(fd);
	}
}

static void t_rounds(void)
{
	char buf[200];
	struct metric m;
	pid_t load[2];

	TEST("attach and detach 30 times under load on two CPUs") {
		for (int i = 0; i < 2; i++) {
			load[i] = fork();
			if (!load[i])
				for (;;)
					get("/proc/version", buf, sizeof(buf));
		}
		for (int i = 0; i < 30; i++) {
			TRACES("r start vfs_read via direct %s", i & 1 ? "gap no" : "");
			CHECK(UNTIL(!metric("r", -1, &m) && m.count > 0), "%s", m.head);
			CHECK(m.closes, "p");
			REMOVES("r");
		}
		for (int i = 0; i < 2; i++) {
			kill(load[i], SIGKILL);
			waitpid(load[i], NULL, 0);
		}
		CHECK(UNTIL(drained()), "a slot is still in use");
	}
	TEST("a function of the idle path") {
		TRACES("i start tick_nohz_idle_enter");
		CHECK(UNTIL(!metric("i", -1, &m) && m.count > 10), "%s", m.head);
		CHECK(m.closes && !strcmp(m.via, "direct"), "%s", m.head);
		REMOVES("i");
		CHECK(UNTIL(drained()), "a slot is still in use");
	}
}

/* Functions that exist everywhere are few; so one is traced, removed, and its slot held by a sleeper. */
static void t_pool(void)
{
	const int slots = 16; /* of those that copy stack arguments, as the demo's need */
	struct metric m;
	char name[20];
	pid_t pid[32];

	TEST("every slot in use, and one more: it falls back, and says so") {
		for (int i = 0; i < slots; i++) {
			TRACES("p start kstats_demo_forever");
			pid[i] = start_sleeper();
			CHECK(UNTIL(!metric("p", -1, &m) && m.inside == 1), "%d: %s", i, m.head);
			CHECK(!strcmp(m.via, "direct"), "%d: %s", i, m.head);
			REMOVES("p");
		}
		TRACES("more start kstats_demo_forever");
		METRIC("more", &m);
		CHECK(!strcmp(m.via, "kretprobe") &&
			      strstr(m.head, "slots for stack arguments are in use"),
		      "%s", m.head);
		CHECK(control("trace other start kstats_demo_sleep via direct") == -EBUSY, "%s",
		      why);
		demo("release", 0, 1);
		for (int i = 0; i < slots; i++)
			waitpid(pid[i], NULL, 0);
		REMOVES("more");
		CHECK(UNTIL(drained()), "a slot is still in use");
		for (int i = 0; i < 3; i++) {
			snprintf(name, sizeof(name), "again%d", i);
			TRACES("%s start kstats_demo_%s via direct", name,
			       i == 0 ? "sleep" :
			       i == 1 ? "inner" :
					"outer");
		}
		demo("outer", 1, 3);
		METRIC("again2", &m);
		sound("again2", &m);
		CHECK(m.count == 3, "%s", m.head);
		REMOVES("again0");
		REMOVES("again1");
		REMOVES("again2");
	}
}

/*
 * The slots for functions without stack arguments. System calls are such functions, and enough of them
 * exist; a `via direct` that finds the pool empty says so.
 */
static void t_lean_pool(void)
{
	static char line[1000];
	struct metric m;
	int ret = 0, n = 0;
	FILE *f;

	TEST("each of the 64 slots for functions without stack arguments, and one more") {
		f = fopen("/sys/kernel/tracing/available_filter_functions", "re");
		while (f && fgets(line, sizeof(line), f)) {
			line[strcspn(line, " \n")] = '\0';
			if (strncmp(line, "__x64_sys_", 10) || !strncmp(line + 10, "exit", 4))
				continue;
			ret = control("trace l%d start %s gap no bits 0 via direct", n, line);
			if (ret == -EBUSY)
				break;
			CHECK(!ret, "%s: %s", line, why);
			n++;
		}
		if (f)
			fclose(f);
		CHECK(n == 64 && ret == -EBUSY, "%d fit, then %d", n, ret);
		CHECK(strstr(why, "all 64 slots without stack arguments are in use"), "%s", why);
		ret = control("trace more start %s", line);
		METRIC("more", &m);
		CHECK(!ret && !strcmp(m.via, "kretprobe"), "%s: %s", line, m.head);
		CHECK(strstr(m.head, "# fallback direct: all 64 slots"), "%s", m.head);
		control("remove more");
		while (n--)
			CHECK(!control("remove l%d", n), "%s", why);
		CHECK(UNTIL(drained()), "a slot is still in use");
		ret = control("trace again start %s via direct", line);
		CHECK(!ret, "%s: %s", line, why);
		control("remove again");
	}
}

static void t_frame(void)
{
	struct metric m;
	long plain;

	TEST("a function with stack arguments still works, and is right") {
		demo("stack_args", 5, 1);
		plain = demo_result();
		CHECK(plain == 5 + 2 * 1 + 3 * 2 + 4 * 3 + 5 * 4 + 6 * 5 + 7 * 6 + 8 * 7 + 9 * 8,
		      "untraced: %ld", plain);
		TRACES("a start kstats_demo_stack_args via direct");
		CHECK(!demo("stack_args", 5, 100) && demo_result() == plain, "traced: %ld",
		      demo_result());
		METRIC("a", &m);
		sound("a", &m);
		CHECK(m.count == 100, "%s", m.head);
		REMOVES("a");
		TRACES("a start kstats_demo_stack_args gap no via direct");
		CHECK(!demo("stack_args", 5, 100) && demo_result() == plain, "without gap: %ld",
		      demo_result());
		REMOVES("a");
	}
	TEST("unwinding through a slot finds the caller") {
		for (int gap = 0; gap < 2; gap++) {
			demo("unwind", 1, 1);
			plain = demo_result();
			CHECK(plain > 0, "untraced: %ld", plain);
			TRACES("u start kstats_demo_unwind gap %s via direct", gap ? "yes" : "no");
			demo("unwind", 1, 1);
			CHECK(demo_result() >= plain && demo_result() <= plain + 3,
			      "traced: %ld, not %ld", demo_result(), plain);
			REMOVES("u");
		}
	}
}

static void t_bpf(void)
{
	struct metric m;
	char buf[100];
	int fd;

	TEST("a BPF fentry program is there: kstats falls back, and says why") {
		fd = t_bpf_function("vfs_read", BPF_TRACE_FENTRY);
		if (!CHECK(fd >= 0, "no fentry: %s", strerror(-fd)))
			break;
		TRACES("b start vfs_read");
		get("/proc/version", buf, sizeof(buf));
		METRIC("b", &m);
		CHECK(!strcmp(m.via, "kretprobe") && m.count && strstr(m.head, "BPF"), "%s",
		      m.head);
		CHECK(control("trace c start vfs_read via direct") == -EBUSY, "%s", why);
		REMOVES("b");
		close(fd);
	}
	TEST("a BPF fentry program that comes later is refused, and comes in once we are gone") {
		TRACES("b start vfs_read");
		METRIC("b", &m);
		CHECK(!strcmp(m.via, "direct"), "%s", m.head);
		fd = t_bpf_function("vfs_read", BPF_TRACE_FENTRY);
		/* 7.x says EINVAL where its predecessors said EBUSY. */
		CHECK(fd == -EBUSY || fd == -EINVAL, "fentry: %d", fd);
		REMOVES("b");
		fd = t_bpf_function("vfs_read", BPF_TRACE_FENTRY);
		CHECK(fd >= 0, "fentry: %s", strerror(-fd));
		close(fd);
	}
}

static void t_ftrace_off(void)
{
	const char *sysctl = "/proc/sys/kernel/ftrace_enabled";
	struct metric m;
	int ret;

	TEST("kernel.ftrace_enabled=0 is refused, or noticed") {
		TRACES("o start kstats_demo_inner");
		ret = put(sysctl, "0");
		demo("inner", 1, 5);
		METRIC("o", &m);
		if (ret)
			CHECK(ret == -EBUSY && m.count == 5, "%d, %s", ret, m.head);
		else
			CHECK(strstr(m.head, "# ftrace is off"), "%s", m.head);
		put(sysctl, "1");
		demo("inner", 1, 5);
		METRIC("o", &m);
		CHECK(m.count >= 5 && !strstr(m.head, "# ftrace is off"), "%s", m.head);
		REMOVES("o");
		CHECK(!put(sysctl, "0"), "off");
		ret = control("trace o start kstats_demo_inner");
		CHECK(ret == -EBUSY && strstr(why, "ftrace is off"), "%d: %s", ret, why);
		CHECK(!put(sysctl, "1"), "on");
	}
}

int main(void)
{
	t_deep();
	t_sleeper();
	t_rounds();
	t_pool();
	t_lean_pool();
	t_frame();
	t_bpf();
	t_ftrace_off();
	t_unload();
	return t_done("t_kstats_direct");
}
