// SPDX-License-Identifier: GPL-2.0
// This test checks that the library to preload counts the calls the vDSO serves, and no others.
#include <sched.h>
#include <sys/time.h>

#include "tests/t_rts.h"

#define LIBRARY "build/libstatpage-vdso.so"

/* volatile: the compiler must not find the calls to be without effect. */
static void ask(int n)
{
	volatile time_t sink;
	struct timespec ts;
	struct timeval tv;
	unsigned int cpu;

	for (int i = 0; i < n; i++) {
		clock_gettime(i % 2 ? CLOCK_MONOTONIC_COARSE : CLOCK_REALTIME_COARSE, &ts);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts); /* a system call, so not counted */
		gettimeofday(&tv, NULL);
		sink = time(NULL);
		getcpu(&cpu, NULL);
	}
	(void)sink;
}

static int play_ask(int argc, char **argv)
{
	pid_t pid;

	(void)argc;
	(void)argv;
	ask(1000);
	pid = fork();
	if (pid == 0) {
		ask(7);
		exit(0);
	}
	reap(pid, 0);
	return 0;
}

static void *ask_in_thread(void *arg)
{
	ask(2000);
	return arg;
}

static int play_threads(int argc, char **argv)
{
	pthread_t threads[4];

	(void)argc;
	(void)argv;
	for (int i = 0; i < 4; i++)
		EXPECT(!pthread_create(&threads[i], NULL, ask_in_thread, NULL));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static const struct scene scenes[] = {
	{"ask", play_ask},
	{"threads", play_threads},
};

static void check_counts(const char *rec, uint64_t n)
{
	if (!CHECK(rec, "no record"))
		return;
	CHECK(json_u64(rec, "counters.clock_gettime") == n, "%s", rec);
	CHECK(json_u64(rec, "counters.gettimeofday") == n, "%s", rec);
	CHECK(json_u64(rec, "counters.time") == n, "%s", rec);
	CHECK(json_u64(rec, "counters.getcpu") == n, "%s", rec);
}

int main(int argc, char **argv)
{
	char preload[4200] = "LD_PRELOAD=", *name = preload + strlen(preload);
	struct run r;

	if (argc > 2 && !strcmp(argv[1], "child"))
		return play_scene(scenes, sizeof(scenes) / sizeof(scenes[0]), argc, argv);
	TEST("calls that the vDSO serves are counted, each process its own") {
		if (!CHECK(realpath(LIBRARY, name), LIBRARY ": %s", strerror(errno)))
			break;
		run_scene(&r, "ask", ENV(preload, "STATPAGE_VDSO_RUNTIME_STATS=jsonl"));
		check_good(&r);
		check_counts(run_record(&r, "exit", 0), 1000);
		check_counts(run_record(&r, "fork-child-exit", 0), 7);
		run_free(&r);
	}
	TEST("threads lose no count") {
		run_scene(&r, "threads", ENV(preload, "STATPAGE_VDSO_RUNTIME_STATS=jsonl"));
		check_good(&r);
		check_counts(run_record(&r, "exit", 0), 8000);
		run_free(&r);
	}
	TEST("without its variable it prints nothing") {
		run_scene(&r, "ask", ENV(preload));
		CHECK(run_exited(&r, 0) && !r.len, "status 0x%x, %.200s", r.status, r.text);
		run_free(&r);
	}
	return t_done("t_vdso");
}
