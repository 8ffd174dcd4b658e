/* SPDX-License-Identifier: MIT */
/* Virtual CPU exits, in the tables of table.c. */
#include <errno.h>
#include <unistd.h>

#include "internal.h"

/* Reading KVM's statistics costs 0.3 us; once in this much time of run calls nobody notices. */
#define READ_HALTS_EVERY_NS 1000000u

/* As the guard of struct table, for the part that is not about calls. False: the owner is inside.
 */
static bool enter(struct vcpu *v)
{
	if (LOAD(v->seq) & 1)
		return false;
	atomic_fetch_add_explicit(&v->seq, 1, memory_order_seq_cst);
	return true;
}

static void leave(struct vcpu *v)
{
	PUT(v->seq, LOAD(v->seq) + 1);
}

static void book_start(struct table *t)
{
	enum { KNOWN = 1u << HALT_EMBEDDER | 1u << HALT_KVM };
	unsigned int bit = 1u << t->halt.source;

	PUT(t->vcpu.started, LOAD(t->vcpu.started) + 1);
	if (bit & KNOWN)
		PUT(t->vcpu.known, LOAD(t->vcpu.known) + 1);
	PUT(t->vcpu.sources, LOAD(t->vcpu.sources) | bit);
}

void rts_vcpu_move(struct halt *from, struct table *to)
{
	struct halt h = *from;

	from->source = HALT_NONE;
	from->stats_fd = -1;
	if (!to) {
		if (h.stats_fd >= 0)
			close(h.stats_fd);
		return;
	}
	to->halt = h;
	if (h.source == HALT_NONE)
		return;
	if (h.source == HALT_KVM)
		rts_os_halt_read(&to->halt, &to->halt.last_ns);
	book_start(to);
}

int rts_vcpu_start(int vcpu_fd)
{
	struct table *t = rts_self();
	int ret = 0;

	if (!t)
		return rts_on() ? -ENOMEM : 0;
	if (t->halt.source != HALT_NONE)
		return 0;
	t->halt.source = HALT_UNKNOWN;
	t->halt.stats_fd = -1;
	if (vcpu_fd >= 0) {
		ret = rts_os_halt_open(&t->halt, vcpu_fd) ? -ENOTSUP : 0;
		if (!ret)
			t->halt.source = HALT_KVM;
	}
	book_start(t);
	return ret;
}

void rts_vcpu_halted(uint64_t ns)
{
	struct table *t = rts_self();

	if (!t || t->halt.source == HALT_NONE || t->halt.source == HALT_KVM || !enter(&t->vcpu))
		return;
	if (t->halt.source == HALT_UNKNOWN) {
		t->halt.source = HALT_EMBEDDER;
		PUT(t->vcpu.known, LOAD(t->vcpu.known) + 1);
		PUT(t->vcpu.sources,
		    1u << HALT_EMBEDDER | (LOAD(t->vcpu.sources) & ~(1u << HALT_UNKNOWN)));
	}
	PUT(t->vcpu.halted_ns, rts_add(LOAD(t->vcpu.halted_ns), ns));
	leave(&t->vcpu);
}

void rts_vcpu_begin(struct rts_run *run)
{
	struct table *t = rts_self();

	run->table = NULL;
	if (!t)
		return;
	if (LOAD(t->vcpu.seq) & 1) {
		BUMP(t->vcpu.lost);
		return;
	}
	/* The guard is entered before the clock is read. */
	BUMP(t->vcpu.begun);
	run->table = t;
	run->generation = LOAD(t->generation);
	run->start_ns = rts_clock_start();
}

static void book_halts(struct table *t, uint64_t run_ns)
{
	int saved = errno;
	uint64_t now;

	t->halt.unread_ns = rts_add(t->halt.unread_ns, run_ns);
	if (t->halt.unread_ns < READ_HALTS_EVERY_NS)
		return;
	t->halt.unread_ns = 0;
	if (!rts_os_halt_read(&t->halt, &now) && now > t->halt.last_ns) {
		PUT(t->vcpu.halted_ns, rts_add(LOAD(t->vcpu.halted_ns), now - t->halt.last_ns));
		t->halt.last_ns = now;
	}
	errno = saved;
}

/* exits before null_exits: a reader loads them the other way round, so its share is at most 100. */
static void book_exit(struct vcpu *v, unsigned int reason, int is_null, uint64_t ns)
{
	struct exit_row *row = &v->rows[reason < NR_REASONS ? reason : NR_REASONS - 1];

	PUT(row->count, LOAD(row->count) + 1);
	PUT(row->total_ns, rts_add(LOAD(row->total_ns), ns));
	PUT(v->run_call_ns, rts_add(LOAD(v->run_call_ns), ns));
	PUT(v->exits, LOAD(v->exits) + 1);
	if (is_null) {
		PUT(row->null_count, LOAD(row->null_count) + 1);
		PUT(v->null_exits, LOAD(v->null_exits) + 1);
	}
}

void rts_vcpu_end(struct rts_run *run, unsigned int reason, int is_null)
{
	struct table *t = run->table;
	struct vcpu *v;
	uint64_t now = rts_clock_end();

	/* A forked child has unmapped its parent's tables, so the gate comes first. */
	if (!t || LOAD(rts_gate) != run->generation)
		return;
	v = &t->vcpu;
	if (t != rts_self() || !enter(v)) {
		BUMP(v->lost);
		BUMP(v->ended);
		return;
	}
	if (atomic_load(&rts_gate) == run->generation) {
		if (now < run->start_ns) {
			BUMP(v->lost);
		} else {
			book_exit(v, reason, is_null, now - run->start_ns);
			if (t->halt.source == HALT_KVM)
				book_halts(t, now - run->start_ns);
		}
		BUMP(v->ended);
	}
	leave(v);
}
