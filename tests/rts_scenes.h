/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the children of rts_rules.h do. Each starts the library by host_begin(), which the program
 * that includes this defines: so the same rules are put to a plain program and to a KVM host with
 * guests running. Exit status 0 is right, 1 comes with a line "STATPAGE: wrong: ...".
 */
#ifndef RTS_SCENES_H
#define RTS_SCENES_H

#include <dirent.h>
#include <linux/futex.h>
#include <spawn.h>

#include "tests/t_rts.h"

static int host_begin(int argc, char **argv);

static const char *const test_counters[] = {"served", "missed"};

static int blocked(int sig)
{
	sigset_t set;

	pthread_sigmask(SIG_SETMASK, NULL, &set);
	return sigismember(&set, sig);
}

/* ---- rule 1 ---- */

static _Atomic int futex_word;
static int two_second_pipe[2];
static pthread_barrier_t two_seconds; /* begin for the writer when the reader looks at its clock */

static void *long_read(void *arg)
{
	double from = now_s();
	char c;

	pthread_barrier_wait(&two_seconds);
	EXPECT(read(two_second_pipe[0], &c, 1) == 1 && c == 'x');
	EXPECT(now_s() - from > 1.9);
	return arg;
}

static void *long_sleep(void *arg)
{
	struct timespec ts = {.tv_sec = 2}, rest = {0};
	double from = now_s();

	EXPECT(!nanosleep(&ts, &rest));
	EXPECT(now_s() - from > 1.9);
	return arg;
}

static void *long_futex(void *arg)
{
	struct timespec ts = {.tv_sec = 2};
	double from = now_s();

	EXPECT(syscall(SYS_futex, &futex_word, FUTEX_WAIT, 0, &ts, NULL, 0) == -1);
	EXPECT(errno == ETIMEDOUT);
	EXPECT(now_s() - from > 1.9);
	return arg;
}

static void *long_poll(void *arg)
{
	double from = now_s();

	EXPECT(poll(NULL, 0, 2000) == 0);
	EXPECT(now_s() - from > 1.9);
	return arg;
}

/* Standard error is a file: stay until it has so many snapshots, which take long on a busy machine. */
static void await_snapshots(int nr)
{
	static char text[1 << 20];
	int seen = 0;

	for (double until = now_s() + 50; seen < nr && now_s() < until; nap_ms(10)) {
		ssize_t n = pread(2, text, sizeof(text) - 1, 0);

		EXPECT(n >= 0);
		text[n] = '\0';
		seen = 0;
		for (const char *p = text; (p = strstr(p, "\"reason\":\"signal\"")); p++)
			seen++;
	}
}

static int play_blocked_calls(int argc, char **argv)
{
	void *(*const fns[])(void *) = {long_read, long_sleep, long_futex, long_poll};
	pthread_t threads[4];
	double from;

	host_begin(argc, argv);
	EXPECT(!pipe(two_second_pipe));
	EXPECT(!pthread_barrier_init(&two_seconds, NULL, 2));
	for (int i = 0; i < 4; i++)
		EXPECT(!pthread_create(&threads[i], NULL, fns[i], NULL));
	pthread_barrier_wait(&two_seconds);
	SAY("ready");
	from = now_s();
	nap_ms(2000);
	EXPECT(now_s() - from > 1.9);
	EXPECT(write(two_second_pipe[1], "x", 1) == 1);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	if (getenv("SNAPSHOTS"))
		await_snapshots(atoi(getenv("SNAPSHOTS")));
	return 0;
}

static void *idle(void *arg)
{
	nap_ms(60000);
	return arg;
}

static int play_late_start(int argc, char **argv)
{
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, idle, NULL));
	host_begin(argc, argv);
	EXPECT(!blocked(SNAP));
	kill(getpid(), SNAP); /* as without the library: it ends us */
	nap_ms(5000);
	return 1;
}

/* What is executed: dies of a signal that is its own, and says so if it cannot. */
static int play_own_signal(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (blocked(SNAP))
		return 3;
	raise(SNAP);
	return 4;
}

static void exec_own_signal(void)
{
	execl("/proc/self/exe", "test", "child", "own-signal", NULL);
}

static int play_exec_mask(int argc, char **argv)
{
	posix_spawnattr_t attr;
	char *const args[] = {(char *)"test", (char *)"child", (char *)"own-signal", NULL};
	sigset_t mask;
	pid_t pid;

	host_begin(argc, argv);
	EXPECT(blocked(SNAP));
	pid = fork(); /* plain: the child's mask is the program's own */
	if (pid == 0) {
		exec_own_signal();
		_exit(5);
	}
	reap(pid, SNAP);
	pid = rts_fork(); /* stays: executes something later all the same */
	if (pid == 0) {
		EXPECT(blocked(SNAP));
		rts_exec();
		exec_own_signal();
		_exit(5);
	}
	reap(pid, SNAP);
	EXPECT(!rts_mask(&mask) && !sigismember(&mask, SNAP));
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &mask);
	EXPECT(!posix_spawn(&pid, "/proc/self/exe", NULL, &attr, args, environ));
	reap(pid, SNAP);
	rts_exec();
	EXPECT(!blocked(SNAP));
	EXPECT(execl("/does/not/exist", "x", NULL) == -1);
	rts_exec_return();
	EXPECT(blocked(SNAP));
	return 0;
}

/* ---- rules 2 and 3 ---- */

static _Atomic int handled;

static void handler(int sig)
{
	(void)sig;
	handled++;
}

static int play_handler(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = handler}, after;

	sigaction(SNAP, &sa, NULL);
	host_begin(argc, argv);
	EXPECT(!sigaction(SNAP, NULL, &after) && after.sa_handler == handler);
	EXPECT(!blocked(SNAP));
	raise(SNAP);
	EXPECT(handled == 1);
	make_calls(1);
	return 0;
}

static int play_waited_for(int argc, char **argv)
{
	sigset_t set;
	int got;

	sigemptyset(&set);
	sigaddset(&set, SNAP);
	sigprocmask(SIG_BLOCK, &set, NULL); /* the program takes it itself */
	host_begin(argc, argv);
	kill(getpid(), SNAP);
	EXPECT(!sigwait(&set, &got) && got == SNAP);
	return 0;
}

static int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int nr = 0;

	EXPECT(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

static int play_off(int argc, char **argv)
{
	int fds = count_entries("/proc/self/fd"), tasks = count_entries("/proc/self/task");

	EXPECT(!rts_init(&(struct rts_options){.argc = argc, .argv = argv}));
	EXPECT(!rts_counters_open(test_counters, 2, 0) && !rts_counters);
	make_calls(10);
	rts_step("step");
	EXPECT(!rts_on() && !rts_snapshot());
	EXPECT(count_entries("/proc/self/fd") == fds);
	EXPECT(count_entries("/proc/self/task") == tasks);
	EXPECT(!blocked(SNAP));
	kill(getpid(), SNAP);
	nap_ms(5000);
	return 1;
}

/* ---- rule 4 ---- */

static void fill(int fd)
{
	char junk[4096] = "";

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (write(fd, junk, sizeof(junk)) > 0)
		;
	while (write(fd, junk, 1) > 0)
		;
	fcntl(fd, F_SETFL, 0);
}

static int play_full_pipe(int argc, char **argv)
{
	host_begin(argc, argv);
	make_calls(3);
	fill(2);
	EXPECT(rts_snapshot() == -ETIMEDOUT); /* dropped and counted */
	nap_ms(1);
	return 7;
}

static void watchdog(int sig)
{
	(void)sig;
	_exit(42);
}

static int play_watchdog(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = watchdog};

	sigaction(SIGALRM, &sa, NULL);
	host_begin(argc, argv);
	fill(2);
	ualarm(100000, 0);
	return 0;
}

/* The reader comes back after a record was dropped. */
static int play_dropped(int argc, char **argv)
{
	int data[2], saved = dup(2);
	char junk[65536];

	EXPECT(!pipe(data));
	dup2(data[1], 2);
	host_begin(argc, argv);
	make_calls(2);
	fill(2);
	EXPECT(rts_snapshot() == -ETIMEDOUT);
	fcntl(data[0], F_SETFL, O_NONBLOCK);
	while (read(data[0], junk, sizeof(junk)) > 0)
		;
	EXPECT(!rts_finish(0));
	for (ssize_t n; (n = read(data[0], junk, sizeof(junk))) > 0;)
		EXPECT(write(saved, junk, (size_t)n) == n);
	_exit(0);
}

/* ---- rule 5 ---- */

static void count_much(void)
{
	make_calls(1000);
	rts_count(0, 500);
	rts_count(20, 5);
	rts_step("parents");
}

/*
 * Past the C library and its fork handlers. The thread sanitizer would not see it either, and take the
 * child for a thread beside all of its parent's.
 */
static pid_t raw_fork(void)
{
#ifdef __SANITIZE_THREAD__
	return fork();
#else
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
#endif
}

/* argv[0] of the program is the same; what a child writes is told apart by its reason. */
static int play_children(int argc, char **argv)
{
	pid_t pid;

	host_begin(argc, argv);
	rts_counters_open(test_counters, 2, 0); /* a KVM host has a page already */
	count_much();
	pid = rts_fork();
	if (pid == 0) {
		make_calls(3);
		rts_count(1, 4);
		exit(11);
	}
	reap(pid, 11 << 8);
	pid = fork();
	if (pid == 0) {
		rts_finish_child_error(12);
		_exit(12);
	}
	reap(pid, 12 << 8);
	pid = raw_fork();
	if (pid == 0) {
		rts_forked();
		make_calls(5);
		rts_finish(13);
		_exit(13);
	}
	reap(pid, 13 << 8);
	make_calls(1);
	EXPECT(rts_counters->value[0] >= 500);
	return 0;
}

static int play_child_after_final(int argc, char **argv)
{
	pid_t pid;

	host_begin(argc, argv);
	make_calls(1000);
	EXPECT(!rts_finish(0));
	pid = rts_fork();
	if (pid == 0) {
		make_calls(6);
		exit(0);
	}
	reap(pid, 0);
	EXPECT(rts_finish(0) == -EALREADY);
	return 0;
}

/* ---- rule 6 ---- */

static _Atomic int reader;

static void *recorded_read(void *arg)
{
	int *fds = arg;
	ssize_t n;
	char c;

	reader = (int)syscall(SYS_gettid);
	RTS_CALL(n, RTS_ABI_NATIVE, SYS_read, read(fds[0], &c, 1));
	EXPECT(n == 1);
	return NULL;
}

static bool asleep(int tid)
{
	char path[64], text[64] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY);
	if (read(fd, text, sizeof(text) - 1) < 0)
		abort();
	close(fd);
	return strstr(text, ") S ");
}

static int play_long_call(int argc, char **argv)
{
	pthread_t thread;
	int fds[2];

	host_begin(argc, argv);
	EXPECT(!pipe(fds));
	EXPECT(!pthread_create(&thread, NULL, recorded_read, fds));
	make_calls(9);
	while (!reader || !asleep(reader))
		nap_ms(1);
	return 0; /* nobody writes to the pipe */
}

static _Atomic int stop_calls;
static _Atomic unsigned long calls_made;

static void *hammer(void *arg)
{
	unsigned long n = 0;

	while (!stop_calls) {
		make_calls(100);
		n += 100;
	}
	calls_made += n;
	return arg;
}

/* Recorders, snapshots and the end all at once; then the ledger equals what the threads did. */
static int play_race(int argc, char **argv)
{
	pthread_t threads[4];

	host_begin(argc, argv);
	for (int i = 0; i < 4; i++)
		EXPECT(!pthread_create(&threads[i], NULL, hammer, NULL));
	for (int i = 0; i < 50; i++)
		EXPECT(!rts_snapshot());
	stop_calls = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	EXPECT(!rts_snapshot());
	SAY("made %lu", calls_made);
	return 0;
}

/* The final record while threads go on calling: it must come, and hold together. */
static int play_race_final(int argc, char **argv)
{
	pthread_t threads[4];

	host_begin(argc, argv);
	for (int i = 0; i < 4; i++)
		EXPECT(!pthread_create(&threads[i], NULL, hammer, NULL));
	nap_ms(100);
	rts_finish(0);
	nap_ms(20);
	_exit(0);
}

/* ---- rules 6 and 7: a clock of ours; --wrap=clock_gettime sends the library here ---- */

/* A thread's own, as the guests of a host go on. */
static _Thread_local const uint64_t *clock_script; /* NULL: the real clock */
static _Thread_local int clock_fails;

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	if (id == CLOCK_MONOTONIC && clock_fails) {
		errno = EINVAL;
		return -1;
	}
	if (id == CLOCK_MONOTONIC && clock_script) {
		ts->tv_sec = (time_t)(*clock_script / 1000000000u);
		ts->tv_nsec = (long)(*clock_script++ % 1000000000u);
		return 0;
	}
	return (int)syscall(SYS_clock_gettime, id, ts);
}

static int play_clock_fails(int argc, char **argv)
{
	struct rts_call c;

	host_begin(argc, argv);
	make_calls(1);
	clock_fails = 1; /* at the start and the end */
	make_calls(2);
	clock_fails = 0;
	rts_call_begin(&c, RTS_ABI_NATIVE, SYS_getppid);
	clock_fails = 1; /* at the end only */
	rts_call_end(&c, 0);
	rts_call_begin(&c, RTS_ABI_NATIVE, SYS_getppid);
	clock_fails = 0; /* at the start only */
	rts_call_end(&c, 0);
	make_calls(1);
	return 0;
}

static int play_clock_back(int argc, char **argv)
{
	static const uint64_t script[] = {1000, 900, 2000, 2050};

	host_begin(argc, argv);
	clock_script = script;
	make_calls(2);
	clock_script = NULL;
	return 0;
}

#define FAR_FUTURE 0x7fffffffffffffffu
static const uint64_t far_script[] = {0, FAR_FUTURE, 0, FAR_FUTURE, 0, FAR_FUTURE};

static void *far_calls(void *arg)
{
	clock_script = far_script;
	make_calls(1);
	clock_script = NULL;
	return arg;
}

/* Three times 2^63 ns: once in one row, once across the rows of three threads. */
static int play_saturate(int argc, char **argv)
{
	pthread_t thread;
	long ret;

	host_begin(argc, argv);
	clock_script = far_script;
	make_calls(3);
	clock_script = far_script;
	RTS_CALL(ret, RTS_ABI_NATIVE, SYS_getuid, syscall(SYS_getuid));
	clock_script = NULL;
	(void)ret;
	for (int i = 0; i < 3; i++) {
		EXPECT(!pthread_create(&thread, NULL, far_calls, NULL));
		pthread_join(thread, NULL);
	}
	return 0;
}

/* ---- rules 8 and 9 ---- */

static void *many_snapshots(void *arg)
{
	for (int i = 0; i < 25; i++)
		rts_snapshot();
	return arg;
}

static void *finisher(void *arg)
{
	int ret = rts_finish(0);

	EXPECT(ret == 0 || ret == -EALREADY);
	return arg;
}

static int play_many_dumps(int argc, char **argv)
{
	pthread_t dumps[4], ends[4];

	host_begin(argc, argv);
	make_calls(4);
	for (int i = 0; i < 4; i++)
		EXPECT(!pthread_create(&dumps[i], NULL, many_snapshots, NULL));
	for (int i = 0; i < 50; i++)
		kill(getpid(), SNAP);
	for (int i = 0; i < 4; i++)
		pthread_join(dumps[i], NULL);
	for (int i = 0; i < 4; i++)
		EXPECT(!pthread_create(&ends[i], NULL, finisher, NULL));
	for (int i = 0; i < 4; i++)
		pthread_join(ends[i], NULL);
	for (int i = 0; i < 20; i++)
		kill(getpid(), SNAP);
	EXPECT(rts_snapshot() == -EALREADY);
	nap_ms(50);
	return 0;
}

static int play_exec_next(int argc, char **argv)
{
	host_begin(argc, argv);
	make_calls(2);
	return 0;
}

static int play_exec(int argc, char **argv)
{
	host_begin(argc, argv);
	rts_counters_open(test_counters, 2, 0);
	count_much();
	rts_exec();
	EXPECT(execl("/does/not/exist", "x", NULL) == -1);
	rts_exec_return();
	make_calls(7); /* of a life that began anew, as all three sources of counts */
	rts_count(20, 3);
	rts_exec();
	execl("/proc/self/exe", "test", "child", "exec-next", NULL);
	return 1;
}

static const struct scene rule_scenes[] = {
	{"blocked-calls", play_blocked_calls},
	{"late-start", play_late_start},
	{"own-signal", play_own_signal},
	{"exec-mask", play_exec_mask},
	{"handler", play_handler},
	{"waited-for", play_waited_for},
	{"off", play_off},
	{"full-pipe", play_full_pipe},
	{"watchdog", play_watchdog},
	{"dropped", play_dropped},
	{"children", play_children},
	{"child-after-final", play_child_after_final},
	{"long-call", play_long_call},
	{"race", play_race},
	{"race-final", play_race_final},
	{"clock-fails", play_clock_fails},
	{"clock-back", play_clock_back},
	{"saturate", play_saturate},
	{"many-dumps", play_many_dumps},
	{"exec", play_exec},
	{"exec-next", play_exec_next},
};
#define NR_RULE_SCENES (sizeof(rule_scenes) / sizeof(rule_scenes[0]))

#endif /* RTS_SCENES_H */
