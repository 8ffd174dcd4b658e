/* SPDX-License-Identifier: MIT */
/*
 * The recorder: what a recorded call runs through. A thread writes its own table and nobody else's,
 * without a lock; dumps read all of them. See struct table for the guard. The common path is
 * counted in instructions, at most 60 beside the two clock reads: a test counts them.
 */
#include <time.h>

#include "internal.h"

_Atomic unsigned int rts_gate;
struct flight rts_refuse;

/* The table of a thread that has none. It refuses like a busy one: no NULL has to be tested for. */
struct table rts_nobody = {.top = &rts_refuse};
_Thread_local struct table *rts_table = &rts_nobody;

int rts_clock(uint64_t *ns)
{
	struct timespec ts;

	if (unlikely(clock_gettime(CLOCK_MONOTONIC, &ts)))
		return -1;
	*ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	return 0;
}

/* A clock that fails counts as one that ran back: nothing ends after 2^63 or starts before 0. */
uint64_t rts_clock_start(void)
{
	uint64_t ns;

	return unlikely(rts_clock(&ns)) ? (uint64_t)1 << 63 : ns;
}

uint64_t rts_clock_end(void)
{
	uint64_t ns;

	return unlikely(rts_clock(&ns)) ? 0 : ns;
}

/* kstats_slot() of 8 and more, which have the bit that it would set. */
static inline unsigned int slot_of(uint64_t ns)
{
	return kstats_slot_at(ns, SLOT_BITS, kstats_msb(ns) - SLOT_BITS);
}

static inline void row_add(struct row *row, uint64_t ns, uint64_t total, unsigned int slot)
{
	PUT(row->total_ns, total);
	PUT(row->slot[slot], LOAD(row->slot[slot]) + 1);
	if (unlikely(ns < LOAD(row->min_ns)))
		PUT(row->min_ns, ns);
	if (unlikely(ns > LOAD(row->max_ns)))
		PUT(row->max_ns, ns);
}

/* Any time at all; row_add() is for common ones. False: the clock ran back. */
static NOINLINE bool row_add_any(struct table *t, struct row *row, uint64_t start, uint64_t now)
{
	uint64_t ns = now - start;

	if (now < start) {
		BUMP(t->lost.clock_back);
		return false;
	}
	row_add(row, ns, rts_add(LOAD(row->total_ns), ns), kstats_slot(ns, SLOT_BITS));
	return true;
}

static NOINLINE void row_error(struct row *row, unsigned int err)
{
	au64 *e = &row->errors[err < NR_ERRNOS ? err : 0];

	PUT(*e, LOAD(*e) + 1);
}

/* Calls that ended out of order left holes, which only their owner may close. */
static struct flight *close_holes(struct table *t, struct flight *top)
{
	while (top > t->flight && !LOAD(top[-1].row))
		top--;
	PUT(t->top, top);
	return top;
}

/* What can be done for a call that did not pass rts_enter()'s comparison. The entry, or NULL. */
static NOINLINE struct flight *enter_slow(unsigned int index)
{
	struct table *t = rts_self();
	struct flight *f;
	struct row *row;
	int saved = errno;

	if (!t) {
		if (rts_on())
			BUMP(rts_lost.table_full);
		return NULL;
	}
	if (table_busy(t)) {
		BUMP(t->lost.recursion);
		return NULL;
	}
	if (index >= NR_ROWS) {
		BUMP(t->lost.out_of_range);
		return NULL;
	}
	f = close_holes(t, guard_take(t));
	if (f == &t->flight[MAX_NESTED]) {
		BUMP(t->lost.no_instance);
		return NULL;
	}
	guard_take(t);
	row = LOAD(t->rows[index]);
	if (!row)
		row = rts_row_new(t, index);
	PUT(t->top, row ? f + 1 : f);
	errno = saved;
	if (!row) {
		BUMP(t->lost.table_full);
		return NULL;
	}
	PUT(f->row, row);
	return f;
}

/* The guard is entered before the clock is read, and left on every path, by rts_leave(). */
_Atomic uint64_t *rts_enter(size_t index, unsigned int gate)
{
	struct table *t = rts_table;
	struct flight *f = LOAD(t->top);
	struct row *row = LOAD(t->rows[index]);

	if (unlikely(f->generation != gate || !row)) {
		f = enter_slow((unsigned int)index);
		return f ? &f->start_ns : &rts_refuse.start_ns;
	}
	/* The entry is ours first: a handler that comes between these two uses the next. */
	PUT(t->top, f + 1);
	PUT(f->row, row);
	return &f->start_ns;
}

static struct table *owner_of(const struct flight *f)
{
	struct table *t = atomic_load(&rts_tables);

	while (t && !(f >= t->flight && f < t->flight + MAX_NESTED))
		t = t->next;
	return t;
}

/* A call that is not the one begun last in this thread. Nothing of f may be touched before it is
 * found. */
static NOINLINE void leave_slow(struct table *t, struct flight *f, uint64_t now, unsigned int err)
{
	struct table *from = f == &rts_refuse ? NULL : owner_of(f);
	struct row *row = from ? atomic_exchange(&f->row, NULL) : NULL;
	struct flight *top;

	if (!row || LOAD(from->generation) != LOAD(rts_gate))
		return;
	top = LOAD(t->top);
	if (from != t || f >= top) {
		BUMP(from->lost.no_instance); /* another thread's: its rows are not ours */
		return;
	}
	guard_take(t);
	if (row_add_any(t, row, LOAD(f->start_ns), now) && err)
		row_error(row, err);
	PUT(t->top, top);
}

void rts_leave(_Atomic uint64_t *start_ns, uint64_t now)
{
	struct flight *f = (struct flight *)(void *)start_ns;
	struct table *t = rts_table;
	struct row *row;
	uint64_t start, ns, total;

	if (unlikely(LOAD(t->top) != f + 1)) {
		leave_slow(t, f, now, 0);
		return;
	}
	PUT(t->top, &rts_refuse);
	row = LOAD(f->row);
	start = LOAD(f->start_ns);
	ns = now - start;
	if (unlikely((int64_t)ns < 8))
		goto any;
	total = LOAD(row->total_ns) + ns;
	if (unlikely(total < ns))
		goto any;
	row_add(row, ns, total, slot_of(ns));
	PUT(t->top, f);
	return;
any:
	row_add_any(t, row, start, now);
	PUT(t->top, f);
}

void rts_leave_error(_Atomic uint64_t *start_ns, uint64_t now, unsigned int err)
{
	struct flight *f = (struct flight *)(void *)start_ns;
	struct table *t = rts_table;

	if (LOAD(t->top) != f + 1) {
		leave_slow(t, f, now, err);
		return;
	}
	PUT(t->top, &rts_refuse);
	if (row_add_any(t, LOAD(f->row), LOAD(f->start_ns), now))
		row_error(LOAD(f->row), err);
	PUT(t->top, f);
}
