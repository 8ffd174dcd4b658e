/* SPDX-License-Identifier: MIT */
/*
 * The tables: one for each thread, taken at its first call and left to another thread when it ends;
 * none is freed but in a forked child. recorder.c writes them.
 */
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

/* A chunk is a bit less than 64 KiB. */
#define CHUNK_ROWS 12

struct chunk {
	struct chunk *next;
	struct row rows[CHUNK_ROWS];
};

_Atomic(struct table *) rts_tables;
struct losses rts_lost;
_Atomic int rts_collecting;

static pthread_key_t key;
static bool have_key;

/* ---- rows ---- */

struct row *rts_row_new(struct table *t, unsigned int index)
{
	struct row *row;

	if (!t->chunk || t->chunk_used == CHUNK_ROWS) {
		struct chunk *c = rts_os_map(NULL, sizeof(*c), false);

		if (!c)
			return NULL;
		c->next = t->chunk;
		t->chunk = c;
		t->chunk_used = 0;
	}
	row = &t->chunk->rows[t->chunk_used++];
	row->index = index;
	atomic_init(&row->min_ns, UINT64_MAX);
	PUT(t->rows[index], row);
	return row;
}

static void row_clear(struct row *row)
{
	unsigned int index = row->index;

	memset(row, 0, sizeof(*row));
	row->index = index;
	atomic_init(&row->min_ns, UINT64_MAX);
}

/* ---- a thread and its table ---- */

/* A thread ends: calls it left open will not return; the table is free for another thread. */
static void thread_gone(void *arg)
{
	struct table *t = arg;
	struct flight *top = guard_take(t);

	for (struct flight *f = t->flight; top != &rts_refuse && f < top; f++) {
		struct row *row = LOAD(f->row);

		if (row)
			PUT(row->no_return, LOAD(row->no_return) + 1);
	}
	rts_vcpu_move(&t->halt, NULL);
	rts_table = &rts_nobody;
	PUT(t->top, t->flight);
	atomic_store(&t->owned, 0);
}

void rts_table_init(void)
{
	have_key = !pthread_key_create(&key, thread_gone);
}

/* Make a table of an older generation one of this: its owner is the caller, no dump reads it. */
static void table_clear(struct table *t, unsigned int generation)
{
	for (size_t i = 0; i < NR_ROWS; i++)
		if (LOAD(t->rows[i]))
			row_clear(LOAD(t->rows[i]));
	memset(&t->lost, 0, sizeof(t->lost));
	memset(&t->vcpu, 0, sizeof(t->vcpu));
	memset(&t->flight, 0, sizeof(t->flight));
	for (int i = 0; i < MAX_NESTED; i++)
		t->flight[i].generation = generation;
	PUT(t->top, t->flight);
	atomic_store(&t->generation, generation);
}

static struct table *table_take_free(unsigned int generation)
{
	struct table *t = atomic_load(&rts_tables);

	for (; t; t = t->next) {
		unsigned int g = atomic_load(&t->generation);
		int free = 0;

		/* A dump that closes a generation raised collecting before it moved the gate. */
		if (g != generation && atomic_load(&rts_collecting))
			continue;
		if (LOAD(t->owned) || !atomic_compare_exchange_strong(&t->owned, &free, 1))
			continue;
		if (g == generation)
			return t;
		if (g == atomic_load(&t->generation)) {
			table_clear(t, generation);
			return t;
		}
		atomic_store(&t->owned, 0);
	}
	return NULL;
}

static struct table *table_new(unsigned int generation)
{
	struct table *t = rts_os_map(NULL, sizeof(*t), false);

	if (!t)
		return NULL;
	t->halt.stats_fd = -1;
	atomic_init(&t->owned, 1);
	table_clear(t, generation);
	t->next = atomic_load(&rts_tables);
	while (!atomic_compare_exchange_weak(&rts_tables, &t->next, t))
		;
	return t;
}

/* The calling thread's first call, or its first in this generation. */
static struct table *attach(unsigned int generation)
{
	struct table *old = rts_table, *t;
	int saved = errno;

	t = table_take_free(generation);
	if (!t)
		t = table_new(generation);
	if (t) {
		PUT(t->tid, rts_os_tid());
		if (old != &rts_nobody)
			rts_vcpu_move(&old->halt, t);
		rts_table = t;
		if (have_key)
			pthread_setspecific(key, t);
		if (old != &rts_nobody)
			atomic_store(&old->owned, 0);
	}
	errno = saved;
	return t;
}

struct table *rts_self(void)
{
	unsigned int gate = LOAD_ACQ(rts_gate);

	if (!gate)
		return NULL;
	if (LOAD(rts_table->generation) == gate)
		return rts_table;
	/* In a handler that interrupted the recorder the old table must not change hands. */
	if (rts_table != &rts_nobody && table_busy(rts_table))
		return rts_table;
	return attach(gate);
}

/* ---- for dumps ---- */

static bool quiet(const struct table *t)
{
	return !table_busy(t) && !(atomic_load(&t->vcpu.seq) & 1);
}

void rts_table_stop(unsigned int gate, int limit_ms)
{
	const struct timespec tick = {.tv_nsec = 50000};
	unsigned int generation = atomic_exchange(&rts_gate, gate);
	uint64_t now = 0, until;

	/* One tick for those between the comparison and the push, which is all that nothing marks.
	 */
	nanosleep(&tick, NULL);
	rts_clock(&now);
	until = now + (uint64_t)limit_ms * 1000000u;
	for (struct table *t = atomic_load(&rts_tables); t && generation; t = t->next)
		while (LOAD(t->generation) == generation && !quiet(t) && now <= until) {
			nanosleep(&tick, NULL);
			if (rts_clock(&now))
				return;
		}
}

static void unmap_table(struct table *t)
{
	struct chunk *c = t->chunk;

	while (c) {
		struct chunk *next = c->next;

		munmap(c, sizeof(*c));
		c = next;
	}
	if (t->halt.stats_fd >= 0)
		close(t->halt.stats_fd);
	munmap(t, sizeof(*t));
}

void rts_table_forget(void)
{
	struct table *t = atomic_exchange(&rts_tables, NULL);

	rts_table = &rts_nobody;
	if (have_key)
		pthread_setspecific(key, NULL);
	while (t) {
		struct table *next = t->next;

		unmap_table(t);
		t = next;
	}
	memset(&rts_lost, 0, sizeof(rts_lost));
	atomic_store(&rts_collecting, 0);
}
