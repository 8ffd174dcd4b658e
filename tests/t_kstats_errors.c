// SPDX-License-Identifier: GPL-2.0
// This test checks that every wrong command is refused with its errno and a reason, and that it leaves
// nothing behind; and that nodes come and go while they are in use.
#include <sys/klog.h>

#include "t_kstats.h"

static char before[65536], after[65536];

static void t_refused(void)
{
	static const struct {
		const char *command;
		int err;
		const char *reason; /* part of it */
	} bad[] = {
		{"trace", EINVAL, "no name"},
		{"", EINVAL, NULL},
		{" \n", EINVAL, "no command"},
		{"follow vfs_read", EINVAL, "unknown command follow"},
		{"trace vfs_read bits", EINVAL, "bits has no value"},
		{"trace vfs_read bits 6", EINVAL, "expected 0..5"},
		{"trace vfs_read bits -1", EINVAL, "expected 0..5"},
		{"trace vfs_read bits 3x", EINVAL, "expected 0..5"},
		{"trace vfs_read bits 2 gap no BITS 3", EINVAL, "BITS is given twice"},
		{"trace vfs_read pid 1 pid 1", EINVAL, "pid is given twice"},
		{"trace vfs_read colour red", EINVAL, "unknown word colour"},
		{"trace vfs_read by pid", EINVAL, "expected task or cpu"},
		{"trace vfs_read by cpu", EINVAL, "needs an end"},
		{"trace vfs_read via magic", EINVAL, "via magic"},
		{"trace vfs_read via ftrace", EINVAL, "via ftrace cannot do"},
		{"trace a start vfs_read end vfs_write via kretprobe", EINVAL, "cannot do"},
		{"trace a start vfs_read end vfs_read", EINVAL, "both"},
		{"trace a start sched:sched_switch", EINVAL, "no return"},
		{"trace vfs_read maxactive 0", EINVAL, "maxactive 0"},
		{"trace vfs_read pid 999999", ESRCH, "no such process"},
		{"trace vfs_read pid 0", EINVAL, "pid 0"},
		{"trace vfs_read comm a_name_that_is_too_long", EINVAL, "longer"},
		{"trace vfs_read cpu 100000", EINVAL, "cpu 100000"},
		{"trace vfs_read gap maybe", EINVAL, "yes or no"},
		{"trace no_such_function", ENOENT, "no function no_such_function"},
		{"trace a start vfs_read end no_such_function", ENOENT, "no_such_function"},
		{"trace a start sched:no_such end vfs_read", ENOENT, "no tracepoint sched:no_such"},
		{"trace a start __tracepoint_no_such end vfs_read", ENOENT,
		 "no tracepoint no_such"},
		{"trace a start sched:sched_switch end __tracepoint_no_such", ENOENT, "no_such"},
		{"trace no_such via tracepoint end vfs_read", ENOENT, "no tracepoint"},
		{"trace a start get_kprobe", EINVAL, "cannot be traced"},
#ifdef __x86_64__ /* elsewhere it can be */
		{"trace a start memcpy", EINVAL, "cannot be traced"},
		{"trace a start copy_page", EINVAL, "no function that ftrace knows"},
		{"trace a start copy_page via kretprobe", EINVAL, "no function that ftrace knows"},
#endif
		{"trace do_idle", EINVAL, "never returns"},
		{"trace #a start vfs_read", EINVAL, "lines that begin so"},
		{"trace do_exit", EINVAL, "never returns"},
		{"trace vfs_*", EINVAL, "patterns"},
		{"trace kstats_find", EINVAL, "part of kstats"},
		{"trace a start vfs_read@0x10", EINVAL, "no function starts there"},
		{"trace a start vfs_read@0xzz", EINVAL, "hexadecimal"},
		{"trace _a start vfs_read", EINVAL, "leading _"},
		{"trace a/b start vfs_read", EINVAL, "no /"},
		{"trace . start vfs_read", EINVAL, "dots"},
		{"trace .. start vfs_read", EINVAL, "dots"},
		{"trace demo_recorded start vfs_read", EEXIST, "taken"},
		{"trace taken start vfs_read", EEXIST, "taken"},
		{"trace xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx start vfs_read",
		 EINVAL, "longer"},
		/* 61 bytes: fits, but not with the GAP- before it */
		{"trace xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx start vfs_read",
		 EINVAL, "longer"},
		{"trace a a a a a a a a a a a a a a a a a a a a a a a a a", EINVAL, "words"},
		{"remove", EINVAL, "one name"},
		{"remove a b", EINVAL, "one name"},
		{"remove no_such_node", ENOENT, "no such node"},
		{"remove demo_recorded", ENOENT, "module's metric"},
		{"remove GAP-taken", ENOENT, "goes with its node taken"},
	};
	int ret;

	TRACES("taken start vfs_write");
	TEST("a long command is EINVAL: 254 bytes are the most") {
		char cmd[300];

		memset(cmd, ' ', sizeof(cmd));
		memcpy(cmd, "remove taken", 12);
		cmd[255] = '\0';
		CHECK(control("%s", cmd) == -EINVAL && strstr(why, "254"), "%s", why);
	}
	traces_left(before, sizeof(before));
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		TEST("refused: '%s'", bad[i].command) {
			ret = *bad[i].command ? control("%s", bad[i].command) : -EINVAL;
			CHECK(ret == -bad[i].err, "%s, expected %s: %s",
			      ret ? strerrorname_np(-ret) : "it worked",
			      strerrorname_np(bad[i].err), why);
			CHECK(!bad[i].reason || strstr(why, bad[i].reason), "the reason is '%s'",
			      why);
			traces_left(after, sizeof(after));
			CHECK(!strcmp(before, after), "left behind:\n%s\n--- before:\n%s", after,
			      before);
		}
	}
	TEST("a taken GAP- name fails the whole trace") {
		TRACES("GAP-b start vfs_write gap no via kretprobe");
		traces_left(before, sizeof(before));
		CHECK(control("trace b start vfs_read") == -EEXIST, "%s", why);
		traces_left(after, sizeof(after));
		CHECK(!strcmp(before, after), "left behind:\n%s", after);
		REMOVES("GAP-b");
	}
	REMOVES("taken");
}

static void t_words(void)
{
	struct metric m;

	TEST("words in any case, tabs, and an address with a name") {
		char line[200], cmd[100] = "";
		FILE *f;

		CHECK(!control("TRACE\twords  Start vfs_read BITS 5 Gap NO\n"), "%s", why);
		METRIC("words", &m);
		CHECK(strstr(m.head, "bits 5"), "%s", m.head);
		CHECK(metric("GAP-words", -1, &m) == -ENOENT, "a gap");
		CHECK(!control("Remove words"), "%s", why);
		f = fopen("/proc/kallsyms", "re");
		while (f && fgets(line, sizeof(line), f))
			if (strstr(line, " T vfs_read\n"))
				snprintf(cmd, sizeof(cmd), "vfs_read@0x%.*s",
					 (int)strcspn(line, " "), line);
		fclose(f);
		CHECK(!control("trace words start %s", cmd), "%s: %s", cmd, why);
		CHECK(!control("remove words"), "%s", why);
		cmd[4] = 'R';
		CHECK(control("trace words start %s", cmd) == -EINVAL && strstr(why, "vfs_read"),
		      "%s", why);
	}
}

static void t_permission(void)
{
	pid_t pid;
	int status;

	TEST("_control needs CAP_SYS_ADMIN, whatever its mode says") {
		pid = fork();
		if (!pid) {
			chmod("/sys/kernel/debug", 0755);
			chmod(KSTATS_DIR "/" KSTATS_CONTROL, 0666);
			if (setgid(1000) || setuid(1000))
				_exit(9);
			_exit(open(KSTATS_DIR "/" KSTATS_CONTROL, O_RDWR) >= 0 ? 1 :
			      errno != EPERM				       ? 2 :
			      open(KSTATS_DIR "/demo_recorded", O_RDONLY) < 0  ? 3 :
										 0);
		}
		waitpid(pid, &status, 0);
		CHECK(!status, "status %x", status);
		chmod(KSTATS_DIR "/" KSTATS_CONTROL, 0644);
		chmod("/sys/kernel/debug", 0700);
	}
}

static void t_memory(void)
{
	int n, ret = 0;

	TEST("memory: all histograms together have a limit") {
		CHECK(!put("/sys/module/kstats/parameters/max_mib", "1"), "max_mib");
		traces_left(before, sizeof(before));
		for (n = 0; n < 60; n++) {
			ret = control("trace m%d start vfs_read via kretprobe bits 5", n);
			if (ret)
				break;
		}
		/* Per CPU two of 1,920 slots and a little each; the demo has two of 496 already. */
		long cpus = sysconf(_SC_NPROCESSORS_CONF), demo = 2 * cpus * (496 * 16 + 88);

		CHECK(ret == -ENOMEM && strstr(why, "max_mib"), "%s", why);
		CHECK(n == (1048576 - demo) / (2 * cpus * (1920 * 16 + 88)), "%d fit", n);
		while (n--)
			CHECK(!control("remove m%d", n), "%s", why);
		put("/sys/module/kstats/parameters/max_mib", "256");
		traces_left(after, sizeof(after));
		CHECK(!strcmp(before, after), "left behind:\n%s", after);
	}
}

/* What a module may do wrong; the reasons are in the kernel log. */
static void t_api(void)
{
	static const char *const reason[] = {
		"kstats_new: the name is empty (errno 22)",
		"kstats_new: name .: dots only (errno 22)",
		"kstats_new: name a/b: no /, no space, printable ASCII only (errno 22)",
		"kstats_new: name %s%n\\n: no /, no space, printable ASCII only (errno 22)",
		"kstats_new: name _control: a leading _ is kept for kstats (errno 22)",
		"... is longer than 63 bytes (errno 22)",
		"kstats_new: bits 6, expected 0..5 (errno 22)",
		"kstats_new: name api_samples is taken (errno 17)",
	};
	static char log[1 << 18];
	struct metric m;
	char wrong[200];
	int len, ret;

	TEST("a module's bad names and bits are refused with a line, and NULL is nothing") {
		klogctl(5 /* SYSLOG_ACTION_CLEAR */, NULL, 0);
		ret = module("kstats_api", true);
		if (!CHECK(!ret, "insmod: %s", strerror(-ret)))
			break;
		get("/sys/module/kstats_api/parameters/wrong", wrong, sizeof(wrong));
		CHECK(!strcmp(wrong, "\n"), "taken: %s", wrong);
		len = klogctl(3 /* SYSLOG_ACTION_READ_ALL */, log, sizeof(log) - 1);
		log[len < 0 ? 0 : len] = '\0';
		for (unsigned int i = 0; i < sizeof(reason) / sizeof(reason[0]); i++)
			CHECK(strstr(log, reason[i]), "the log does not say '%s'", reason[i]);
	}
	TEST("a module's metric takes samples in a hard interrupt, and goes with the module") {
		METRIC("api_samples", &m);
		sound("api_samples", &m);
		CHECK(m.count == 3 && m.slot[kstats_slot(480, 5)] == 1, "%s", m.head);
		CHECK(m.slot[KSTATS_NR_SLOTS(5) - 1] == 1, "%s", m.head);
		CHECK(!module("kstats_api", false), "rmmod");
		CHECK(metric("api_samples", -1, &m) == -ENOENT, "it is still there");
	}
}

static void *reader(void *stop)
{
	char buf[16384];

	while (!*(volatile bool *)stop)
		if (get(KSTATS_DIR "/busy", buf, sizeof(buf)) == -ENOENT)
			sched_yield();
	return NULL;
}

static void t_busy(void)
{
	volatile bool stop = false;
	char buf[100];
	pthread_t t;
	pid_t load[2];
	int fd;

	TEST("removed while two CPUs record into it and readers have its file open") {
		for (int i = 0; i < 2; i++) {
			load[i] = fork();
			if (!load[i])
				for (;;)
					get("/proc/version", buf, sizeof(buf));
		}
		pthread_create(&t, NULL, reader, (void *)&stop);
		for (int i = 0; i < 10; i++) {
			static const char *const via[] = {CALLS_VIA, "kretprobe"};

			TRACES("busy start vfs_read via %s", via[i & 1]);
			sleep_ms(30);
			fd = open(KSTATS_DIR "/busy", O_RDONLY);
			CHECK(fd >= 0 && read(fd, buf, 10) == 10, "read");
			REMOVES("busy");
			CHECK(read(fd, buf, 10) < 0 && errno == EIO, "it can still be read");
			close(fd);
		}
		stop = true;
		pthread_join(t, NULL);
		for (int i = 0; i < 2; i++) {
			kill(load[i], SIGKILL);
			waitpid(load[i], NULL, 0);
		}
		CHECK(UNTIL(drained()), "a slot is still in use");
	}
}

int main(void)
{
	t_refused();
	t_words();
	t_permission();
	t_memory();
	t_api();
	t_busy();
	return t_done("t_kstats_errors");
}
