/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This test checks that the engine proc samples threads as /proc has them, that samples of all engines
 * become one list, and that differences have what is known of both and no more.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/t.h"
#include "lib/threads.h"

#define KNOWN(s, f) (!!((s)->known & THREAD_KNOWN(f)))

static atomic_int stop, spinner_tid, sleeper_tid;
static int go[2];

static void *spin(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "spin (R) 1 2)");
	atomic_store(&spinner_tid, (int)syscall(SYS_gettid));
	while (!atomic_load(&stop))
		;
	return NULL;
}

static void *sleep_long(void *arg)
{
	char c;

	(void)arg;
	prctl(PR_SET_NAME, "sleeper");
	atomic_store(&sleeper_tid, (int)syscall(SYS_gettid));
	return read(go[0], &c, 1) == 1 ? &go : NULL;
}

static const struct thread_sample *find(const struct thread_list *l, pid_t tid)
{
	for (size_t i = 0; i < l->nr; i++)
		if (l->v[i].tid == tid)
			return &l->v[i];
	return NULL;
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t schedstat(pid_t tid)
{
	unsigned long long ns = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", tid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%llu", &ns) != 1)
		ns = 0;
	if (f)
		fclose(f);
	return ns;
}

static void t_sample(struct threads *t, struct thread_list *l)
{
	const struct thread_sample *s;
	uint64_t before, ran, from = now();
	char why[300] = "";

	ran = schedstat(atomic_load(&spinner_tid));
	CHECK(!threads_sample(t, l, why, sizeof(why)), "sample: %s", why);
	before = ran;
	ran = schedstat(atomic_load(&spinner_tid));
	CHECK(l->nr == 3, "%zu threads", l->nr);
	for (size_t i = 1; i < l->nr; i++)
		CHECK(l->v[i - 1].tid < l->v[i].tid, "not in order");
	s = find(l, atomic_load(&spinner_tid));
	if (!CHECK(s, "no spinner"))
		return;
	CHECK(s->engine == &threads_proc && s->pid == getpid(), "engine or pid");
	CHECK(!strcmp(s->comm, "spin (R) 1 2)"), "comm '%s'", s->comm);
	CHECK(s->state == 'R', "state '%c'", s->state);
	CHECK(s->value[THREAD_ONCPU] >= before && s->value[THREAD_ONCPU] <= ran,
	      "cpu %llu is not between %llu and %llu", (unsigned long long)s->value[THREAD_ONCPU],
	      (unsigned long long)before, (unsigned long long)ran);
	CHECK(s->mono_ns >= from && s->mono_ns <= now(), "clock");
	CHECK(s->since_ns && s->since_ns < s->mono_ns, "beginning");
	CHECK(s->cpu >= 0 && s->cpu < sysconf(_SC_NPROCESSORS_CONF), "cpu %d", s->cpu);
	CHECK(KNOWN(s, THREAD_ONCPU) && KNOWN(s, THREAD_RUNQ) && KNOWN(s, THREAD_PREEMPT) &&
		      KNOWN(s, THREAD_BLOCK) && KNOWN(s, THREAD_MIN_FLT) &&
		      KNOWN(s, THREAD_MAJ_FLT),
	      "known %x", s->known);
	CHECK(!KNOWN(s, THREAD_SLEEP) && !KNOWN(s, THREAD_DSLEEP) && !KNOWN(s, THREAD_MIGRATE),
	      "known %x", s->known);
	s = find(l, atomic_load(&sleeper_tid));
	if (CHECK(s, "no sleeper"))
		CHECK(s->state == 'S' && !strcmp(s->comm, "sleeper") && s->value[THREAD_BLOCK] >= 1,
		      "sleeper: %c %s, %llu blocked", s->state, s->comm,
		      (unsigned long long)s->value[THREAD_BLOCK]);
}

static bool asleep(pid_t tid)
{
	char path[64], text[256] = "";
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	f = fopen(path, "r");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	text[n] = '\0';
	if (f)
		fclose(f);
	return strstr(text, ") S ");
}

static void t_process(void)
{
	struct thread_list l = {0};
	pthread_t a, b;
	struct threads *t = NULL;
	char why[300] = "";
	void *ret;

	if (pipe(go) || pthread_create(&a, NULL, spin, NULL) ||
	    pthread_create(&b, NULL, sleep_long, NULL))
		abort();
	while (!atomic_load(&spinner_tid) || !atomic_load(&sleeper_tid) ||
	       !asleep(atomic_load(&sleeper_tid)))
		usleep(1000);
	TEST("threads of a process: names, states, times as of /proc around it") {
		CHECK(!threads_open(&t, "proc", getpid(), why, sizeof(why)), "%s", why);
		t_sample(t, &l);
	}
	if (write(go[1], "", 1) != 1)
		abort();
	pthread_join(b, &ret);
	TEST("a thread that has ended leaves the list") {
		/* The kernel lets us join a little before it is gone. */
		do {
			CHECK(!threads_sample(t, &l, why, sizeof(why)), "sample: %s", why);
		} while (l.nr == 3);
		CHECK(l.nr == 2 && !find(&l, atomic_load(&sleeper_tid)), "%zu threads", l.nr);
	}
	atomic_store(&stop, 1);
	pthread_join(a, NULL);
	threads_close(t);
	thread_list_free(&l);
}

static void t_open(void)
{
	struct thread_list l = {0};
	struct threads *t = NULL;
	char why[300];
	pid_t child = 0;
	int ret;

	TEST("all processes: ours and the first one are among them") {
		CHECK(!threads_open(&t, NULL, 0, why, sizeof(why)), "%s", why);
		CHECK(threads_engine(t, 0) && !threads_engine(t, 99), "engines in use");
		CHECK(!threads_sample(t, &l, why, sizeof(why)), "sample: %s", why);
		CHECK(find(&l, getpid()) && find(&l, 1), "of %zu threads", l.nr);
		threads_close(t);
	}
	TEST("a process that ends: ESRCH") {
		child = fork();
		if (!child) {
			pause();
			_exit(0);
		}
		CHECK(!threads_open(&t, "proc", child, why, sizeof(why)), "%s", why);
		CHECK(!threads_sample(t, &l, why, sizeof(why)) && l.nr == 1, "sample");
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		ret = threads_sample(t, &l, why, sizeof(why));
		CHECK(ret == -ESRCH && strstr(why, " has ended"), "%d, %s", ret, why);
		threads_close(t);
	}
	TEST("no such engine, no such process: said in one line") {
		ret = threads_open(&t, "none", 0, why, sizeof(why));
		CHECK(ret == -EINVAL && !strncmp(why, "no engine 'none', expected ", 27), "%s",
		      why);
		ret = threads_open(&t, NULL, child, why, sizeof(why));
		CHECK(ret == -EINVAL && !strncmp(why, "no process has pid ", 19), "%s", why);
	}
	thread_list_free(&l);
}

static void t_diff(void)
{
	struct thread_sample a = {.engine = &threads_proc, .tid = 7, .epoch = 1, .since_ns = 100};
	struct thread_sample b;
	struct thread_delta d;

	a.known = THREAD_KNOWN(THREAD_ONCPU) | THREAD_KNOWN(THREAD_RUNQ) |
		  THREAD_KNOWN(THREAD_BLOCK) | THREAD_KNOWN(THREAD_MIN_FLT);
	a.mono_ns = 1000;
	a.value[THREAD_ONCPU] = 300;
	a.value[THREAD_MIN_FLT] = 5;
	b = a;
	b.mono_ns = 2000;
	b.value[THREAD_ONCPU] = 900;
	b.value[THREAD_RUNQ] = 100;
	b.value[THREAD_BLOCK] = 3;
	b.value[THREAD_MIN_FLT] = 4;
	TEST("difference: what is known, and the rest is off") {
		thread_diff(&d, &a, &b, 1000);
		CHECK(d.wall_ns == 1000 && d.value[THREAD_ONCPU] == 600 &&
			      d.value[THREAD_RUNQ] == 100 && d.value[THREAD_BLOCK] == 3,
		      "values");
		CHECK(d.has_off && d.off_ns == 300, "off %llu", (unsigned long long)d.off_ns);
		CHECK(!KNOWN(&d, THREAD_SLEEP) && !KNOWN(&d, THREAD_MIGRATE), "known %x", d.known);
		CHECK(!KNOWN(&d, THREAD_MIN_FLT), "a number that ran backwards is not known");
		b.value[THREAD_ONCPU] = 3000;
		thread_diff(&d, &a, &b, 1000);
		CHECK(d.has_off && !d.off_ns, "more than the wall time leaves nothing");
		b.value[THREAD_ONCPU] = 900;
	}
	TEST("difference: another epoch, thread, engine or an older sample has none") {
		b.epoch = 2;
		thread_diff(&d, &a, &b, 1000);
		CHECK(!d.wall_ns && !d.known && !d.has_off, "epoch");
		b.epoch = 1;
		b.tid = 8;
		thread_diff(&d, &a, &b, 1000);
		CHECK(!d.wall_ns && !d.known, "tid");
		b.tid = 7;
		b.engine = NULL;
		b.since_ns = 0;
		thread_diff(&d, &a, &b, 1000);
		CHECK(!d.wall_ns && !d.known, "engine");
		b.engine = a.engine;
		b.since_ns = a.since_ns;
		thread_diff(&d, &b, &a, 1000);
		CHECK(!d.wall_ns && !d.known, "order");
	}
	TEST("difference: an engine that takes over counts since it began") {
		b.engine = &threads_pages;
		b.since_ns = 1100;
		thread_diff(&d, &a, &b, 1000);
		CHECK(d.wall_ns == 900 && d.value[THREAD_ONCPU] == 900 &&
			      d.value[THREAD_BLOCK] == 3,
		      "%llu", (unsigned long long)d.wall_ns);
		b.mono_ns = 60000000;
		thread_diff(&d, &a, &b, 50000000);
		CHECK(!d.wall_ns && !d.known, "long before");
		b.mono_ns = 2000;
		b.engine = a.engine;
		b.since_ns = a.since_ns;
	}
	TEST("difference: a thread that was not there counts since its beginning") {
		thread_diff(&d, NULL, &b, 0);
		CHECK(d.wall_ns == 1900 && d.value[THREAD_ONCPU] == 900, "since it began");
		thread_diff(&d, NULL, &b, 500);
		CHECK(d.wall_ns == 1500, "its beginning is rounded: since the sample before");
		b.mono_ns = 60000000;
		thread_diff(&d, NULL, &b, 50000000);
		CHECK(!d.wall_ns && !d.known, "it was there, but not seen");
		b.since_ns = 0;
		thread_diff(&d, NULL, &b, 0);
		CHECK(!d.wall_ns && !d.known, "no beginning");
	}
	TEST("difference: five buckets leave no off") {
		a.known = b.known = THREAD_BUCKETS;
		b.mono_ns = 2000;
		thread_diff(&d, &a, &b, 1000);
		CHECK(d.wall_ns == 1000 && d.known == THREAD_BUCKETS && !d.has_off, "known %x",
		      d.known);
	}
}

int main(void)
{
	t_process();
	t_open();
	t_diff();
	return t_done("t_threads");
}
