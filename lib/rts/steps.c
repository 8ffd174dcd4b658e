/* SPDX-License-Identifier: MIT */
/* The named start-up steps. All state is guarded by the dump lock. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "internal.h"

#define MAX_STEPS 32

static struct rts_phase steps[MAX_STEPS];
static char names[MAX_STEPS][32];
static struct rts_named thread_time[MAX_STEPS][RTS_NR_BUCKETS];
static size_t nr_steps;
static struct mark {
	uint64_t now_ns, user_ns, system_ns;
} last;

static uint64_t ns(struct timeval tv)
{
	return (uint64_t)tv.tv_sec * 1000000000u + (uint64_t)tv.tv_usec * 1000u;
}

static int mark_now(struct mark *m)
{
	struct rusage ru;

	if (rts_clock(&m->now_ns) || getrusage(RUSAGE_SELF, &ru))
		return -1;
	m->user_ns = ns(ru.ru_utime);
	m->system_ns = ns(ru.ru_stime);
	return 0;
}

void rts_steps_restart(void)
{
	uint64_t unused[RTS_NR_BUCKETS];

	nr_steps = 0;
	memset(&last, 0, sizeof(last));
	if (rts_cfg.steps)
		rts_thread_lap(unused); /* a forked child's first one begins here */
	mark_now(&last);
	last.now_ns = rts_life.start_ns;
}

/* Where the calling thread's time went since the step before, if that was its own. */
static void add_thread_time(struct rts_phase *p, struct rts_named *to)
{
	uint64_t ns[RTS_NR_BUCKETS];

	if (rts_thread_lap(ns))
		return;
	for (size_t i = 0; i < RTS_NR_BUCKETS; i++)
		to[i] = (struct rts_named){.name = rts_bucket_names[i], .value = ns[i]};
	p->thread = to;
	p->nr_thread = RTS_NR_BUCKETS;
}

void rts_steps_add(const char *name)
{
	struct rts_phase *p = &steps[nr_steps];
	struct mark now;

	if (nr_steps == MAX_STEPS || mark_now(&now) || now.now_ns < last.now_ns)
		return;
	snprintf(names[nr_steps], sizeof(names[0]), "%s", name);
	*p = (struct rts_phase){
		.name = names[nr_steps],
		.start_ns = last.now_ns > rts_life.start_ns ? last.now_ns - rts_life.start_ns : 0,
		.wall_ns = now.now_ns - last.now_ns,
		.has_cpu = true,
		.user_ns = now.user_ns - last.user_ns,
		.system_ns = now.system_ns - last.system_ns,
	};
	if (rts_cfg.steps)
		add_thread_time(p, thread_time[nr_steps]);
	nr_steps++;
	last = now;
}

size_t rts_steps_read(const struct rts_phase **to)
{
	*to = steps;
	return rts_cfg.steps ? nr_steps : 0;
}
