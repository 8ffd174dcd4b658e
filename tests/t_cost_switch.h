/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What being switched off and on again costs a thread: two threads on one CPU hand a byte to and fro, and a
 * round switches each off and on. Of bench.c (the module) and bench_serve.c (BPF); a thread registers by its
 * first snapshot, so it is the reader that chooses.
 */
#ifndef T_COST_SWITCH_H
#define T_COST_SWITCH_H

#include <semaphore.h>

#include "t_cost.h"
#include "t_csf.h"

#define COST_SESSIONS 9
#define COST_BYTES    501

struct cost_hands {
	int there[2], back[2];
};

static inline void *cost_echo(void *arg)
{
	struct cost_hands *h = arg;
	char c;

	while (read(h->there[0], &c, 1) == 1 && write(h->back[1], &c, 1) == 1)
		;
	return NULL;
}

static inline uint64_t cost_round(const struct cost_hands *h)
{
	uint64_t v[COST_BYTES], t;
	char c = 0;

	for (int i = 0; i < COST_BYTES; i++) {
		t = cost_clock();
		(void)!write(h->there[1], &c, 1);
		(void)!read(h->back[0], &c, 1);
		v[i] = cost_clock() - t;
	}
	return cost_median(v, COST_BYTES) - cost_.clock;
}

/* A third thread, that registers or ends when it is told to; asked to do nothing, it answers the same. */
struct cost_third {
	pthread_t thread;
	sem_t told, done;
	enum { COST_IDLE, COST_REGISTER, COST_END } step;
	bool ok;
};

static inline void *cost_third_main(void *arg)
{
	struct cost_third *t = arg;
	struct csf_snap s;

	do {
		sem_wait(&t->told);
		if (t->step == COST_REGISTER)
			t->ok = !csf_thread_snap(&s);
		sem_post(&t->done);
	} while (t->step != COST_END);
	return NULL;
}

static inline void cost_tell(struct cost_third *t, int step)
{
	t->step = step;
	sem_post(&t->told);
	sem_wait(&t->done);
}

/* What changes before a round; t->step is what the third thread is told then. Returns false if it fails. */
typedef bool (*cost_step)(struct cost_third *t);

static inline bool cost_nothing(struct cost_third *t)
{
	(void)t;
	return true;
}

static inline bool cost_other_registers(struct cost_third *t)
{
	t->step = COST_REGISTER;
	return true;
}

static inline bool cost_registers(struct cost_third *t)
{
	struct csf_snap s;

	(void)t;
	return !csf_thread_snap(&s);
}

#define COST_STEPS 4
struct cost_session {
	cost_step steps[COST_STEPS];
	uint64_t ticks[COST_STEPS]; /* of a round after each step */
	bool ok[COST_STEPS];
};

/*
 * Two pairs of threads differ by some instructions, so one pair has all that is compared. SCHED_FIFO: which way
 * ordinary threads take through the scheduler, and who preempts whom, depends on what they have run before; the
 * difference is thousands of instructions.
 */
static inline void *cost_session_main(void *arg)
{
	struct cost_session *s = arg;
	struct cost_third t = {.step = COST_IDLE, .ok = true};
	const struct sched_param first = {1};
	struct cost_hands h;
	pthread_t other;

	sched_setscheduler(0, SCHED_FIFO, &first);
	if (pipe2(h.there, O_CLOEXEC) || pipe2(h.back, O_CLOEXEC))
		return NULL;
	sem_init(&t.told, 0, 0);
	sem_init(&t.done, 0, 0);
	pthread_create(&other, NULL, cost_echo, &h);
	pthread_create(&t.thread, NULL, cost_third_main, &t);
	cost_round(&h);
	for (int i = 0; i < COST_STEPS && s->steps[i]; i++) {
		t.step = COST_IDLE;
		s->ok[i] = s->steps[i](&t);
		cost_tell(&t, t.step);
		s->ok[i] &= t.ok;
		s->ticks[i] = cost_round(&h);
	}
	cost_tell(&t, COST_END);
	pthread_join(t.thread, NULL);
	close(h.there[1]);
	pthread_join(other, NULL);
	close(h.there[0]);
	close(h.back[0]);
	close(h.back[1]);
	return NULL;
}

/* The threads of a session are new ones: none is registered, and all that were are gone with it. */
static inline void cost_session(struct cost_session *s)
{
	pthread_t thread;

	pthread_create(&thread, NULL, cost_session_main, s);
	pthread_join(thread, NULL);
	for (int i = 0; i < COST_STEPS && s->steps[i]; i++)
		CHECK(s->ok[i], "step %d of a session failed", i);
}

/* What a round costs more after step b than after step a: the median of all sessions, a part of it. */
static inline double cost_more(const struct cost_session *s, int a, int b, int part)
{
	uint64_t v[COST_SESSIONS];

	for (int i = 0; i < COST_SESSIONS; i++)
		v[i] = s[i].ticks[b] > s[i].ticks[a] ? s[i].ticks[b] - s[i].ticks[a] : 0;
	return (double)cost_median(v, COST_SESSIONS) / part;
}

/* The round itself after a session's first step, of one thread's part: half of it. */
static inline void cost_base(const struct cost_session *s)
{
	uint64_t v[COST_SESSIONS];

	for (int i = 0; i < COST_SESSIONS; i++)
		v[i] = s[i].ticks[0];
	cost_row(COST_SWITCH, "the switches themselves, made by a pipe",
		 (double)cost_median(v, COST_SESSIONS) / 2, 0);
}

#endif /* T_COST_SWITCH_H */
