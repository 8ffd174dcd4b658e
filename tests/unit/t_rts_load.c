// SPDX-License-Identifier: GPL-2.0
// This test checks that runtime statistics stay whole under load: signals, malloc, many writers.
#include "tests/t_rts.h"

#define CHILDREN 50

static int host_begin(int argc, char **argv)
{
	return rts_init(&(struct rts_options){.argc = argc, .argv = argv});
}

static _Atomic int stop;

/* Blocks of all sizes, and recorded calls in between. */
static void *churn(void *arg)
{
	void *blocks[64] = {NULL};
	unsigned int seed = (unsigned int)(uintptr_t)arg;

	while (!stop) {
		unsigned int i = (unsigned int)rand_r(&seed);

		free(blocks[i % 64]);
		blocks[i % 64] = malloc(i / 64 % 4000 + 1);
		memset(blocks[i % 64], (int)i, i / 64 % 4000 + 1);
		if (i % 1024 < 64)
			make_calls(1);
	}
	for (int i = 0; i < 64; i++)
		free(blocks[i]);
	return NULL;
}

static int play_malloc_heavy(int argc, char **argv)
{
	pthread_t threads[3];
	char c;

	host_begin(argc, argv);
	for (intptr_t i = 0; i < 3; i++)
		EXPECT(!pthread_create(&threads[i], NULL, churn, (void *)(i + 1)));
	SAY("ready");
	while (read(0, &c, 1) > 0) /* until the tester closes it */
		;
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

/* Children that all write to one pipe, snapshots and a final record, their lines beyond PIPE_BUF.
 */
static int play_writers(int argc, char **argv)
{
	pid_t pids[CHILDREN];
	long ret;

	host_begin(argc, argv);
	for (int i = 0; i < CHILDREN; i++) {
		pids[i] = rts_fork();
		EXPECT(pids[i] >= 0);
		if (pids[i])
			continue;
		for (unsigned int nr = 0; nr < 60; nr++)
			RTS_CALL(ret, RTS_ABI_NATIVE, nr, syscall(SYS_getppid));
		(void)ret;
		for (int n = 0; n < 5; n++)
			EXPECT(!rts_snapshot());
		exit(0);
	}
	for (int i = 0; i < CHILDREN; i++)
		reap(pids[i], 0);
	return 0;
}

/* A writer that dies in its line: whoever writes next starts a new one. */
static int play_dies_writing(int argc, char **argv)
{
	char junk[65536];
	int data[2], saved = dup(2), filled;
	pid_t pid;
	ssize_t n;

	EXPECT(!pipe(data) && fcntl(data[1], F_SETPIPE_SZ, 8192) == 8192);
	dup2(data[1], 2);
	host_begin(argc, argv);
	pid = rts_fork();
	if (pid == 0) {
		long ret;

		for (unsigned int nr = 0; nr < 60; nr++)
			RTS_CALL(ret, RTS_ABI_NATIVE, nr, syscall(SYS_getppid));
		(void)ret;
		rts_snapshot(); /* more than the pipe holds: it waits, and is killed */
		_exit(1);
	}
	while (ioctl(data[0], FIONREAD, &filled) || filled < 8192)
		nap_ms(1);
	kill(pid, SIGKILL);
	reap(pid, SIGKILL);
	fcntl(data[0], F_SETFL, O_NONBLOCK);
	while ((n = read(data[0], junk, sizeof(junk))) > 0)
		EXPECT(write(saved, junk, (size_t)n) == n);
	make_calls(2);
	EXPECT(!rts_finish(0));
	while ((n = read(data[0], junk, sizeof(junk))) > 0)
		EXPECT(write(saved, junk, (size_t)n) == n);
	_exit(0);
}

static const struct scene scenes[] = {
	{"malloc-heavy", play_malloc_heavy},
	{"writers", play_writers},
	{"dies-writing", play_dies_writing},
};

/* 10,000 signals in about a second, then the child is told to end. */
static void spray(struct run *r, int sig, char *const env[])
{
	int fds[2], saved = dup(0);

	if (pipe(fds))
		abort();
	dup2(fds[0], 0);
	fcntl(fds[1], F_SETFD, FD_CLOEXEC);
	run_start(r, -1, "malloc-heavy", env);
	dup2(saved, 0);
	close(saved);
	close(fds[0]);
	run_ready(r);
	for (int i = 0; i < 10000; i++) {
		kill(r->pid, sig);
		if (i % 10 == 9)
			nap_ms(1);
	}
	close(fds[1]);
	run_wait(r, 120);
}

static void check_spray(void)
{
	size_t in_order = 0;
	struct run r;

	TEST("10,000 snapshot signals in a second to a malloc-heavy program, jsonl") {
		spray(&r, SNAP, ENV(JSONL, USR1));
		check_good(&r);
		CHECK(ledger_holds(final_record(&r)), "the ledger");
		CHECK(run_record(&r, NULL, run_records(&r, NULL) - 1) == final_record(&r),
		      "something after the final record");
		printf("# %zu of 10,000 signals were merged by the kernel\n",
		       10000 - run_records(&r, "signal"));
		for (size_t i = 0; i < r.nr_lines; i++)
			in_order += r.lines[i].json && json_u64(r.lines[i].text, "seq") == in_order;
		CHECK(in_order == run_records(&r, NULL), "seq goes wrong at %zu", in_order);
		run_free(&r);
	}
	TEST("the same, json: exactly one document, at exit") {
		spray(&r, SNAP, ENV("STATPAGE_RUNTIME_STATS=json", USR1));
		check_good(&r);
		CHECK(run_records(&r, NULL) == 1, "%zu documents", run_records(&r, NULL));
		CHECK(json_is(final_record(&r), "reason", "exit"), "not at exit");
		run_free(&r);
	}
}

static void *drain(void *arg)
{
	const int *fds = arg; /* from, to */
	char buf[65536];
	ssize_t n;

	while ((n = read(fds[0], buf, sizeof(buf))) > 0)
		if (write(fds[1], buf, (size_t)n) != n)
			abort();
	return NULL;
}

static void check_writers(void)
{
	static uint64_t pids[CHILDREN];
	pthread_t thread;
	size_t nr = 0, dup = 0, longest = 0;
	struct run r;
	int fds[2], ends[2];

	TEST("50 children write to one pipe: every line whole, one final record each") {
		if (pipe(fds))
			abort();
		fcntl(fds[0], F_SETFD, FD_CLOEXEC);
		fcntl(fds[1], F_SETFD, FD_CLOEXEC);
		run_start(&r, fds[1], "writers", ENV(JSONL));
		close(fds[1]);
		ends[0] = fds[0];
		ends[1] = r.fd;
		pthread_create(&thread, NULL, drain, ends);
		waitid(P_PID, (id_t)r.pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
		pthread_join(thread, NULL);
		run_wait(&r, 60);
		close(fds[0]);
		check_good(&r);
		CHECK(run_records(&r, "fork-child-exit") == CHILDREN, "%zu final records",
		      run_records(&r, "fork-child-exit"));
		CHECK(run_records(&r, "signal") == 5 * CHILDREN, "%zu snapshots",
		      run_records(&r, "signal"));
		for (; nr < CHILDREN; nr++) {
			const char *rec = run_record(&r, "fork-child-exit", nr);

			pids[nr] = rec ? json_u64(rec, "pid") : 0;
			for (size_t i = 0; i < nr; i++)
				dup += pids[i] == pids[nr];
			longest = rec && strlen(rec) > longest ? strlen(rec) : longest;
		}
		CHECK(!dup, "%zu processes with two final records", dup);
		CHECK(longest > 4096, "lines of %zu bytes prove nothing", longest);
		run_free(&r);
	}
	TEST("a writer that is killed in its line spoils no other") {
		/* The thread sanitizer does not know that timedlock may hand over a dead owner's
		 * lock. */
		run_scene(&r, "dies-writing",
			  ENV(JSONL, "TSAN_OPTIONS=die_after_fork=0:report_mutex_bugs=0"));
		CHECK(run_exited(&r, 0), "status 0x%x", r.status);
		CHECK(r.nr_lines == 2 && !r.lines[0].json && r.lines[1].json, "%zu lines",
		      r.nr_lines);
		CHECK(json_u64(final_record(&r), GETPPID) == 2, "the record after it");
		run_free(&r);
	}
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "child"))
		return play_scene(scenes, sizeof(scenes) / sizeof(scenes[0]), argc, argv);
	check_spray();
	check_writers();
	return t_done("t_rts_load");
}
