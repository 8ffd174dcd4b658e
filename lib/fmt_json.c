/* SPDX-License-Identifier: MIT */
/* A record as one JSON object. docs/json.md documents every key that is written here. */
#include <errno.h>

#include "lib/record.h"
#include "lib/syscalls.h"

/* Every key goes through here: a comma unless it is the first after a bracket. */
static void key(struct rts_buf *b, const char *k)
{
	if (b->len && b->p[b->len - 1] != '{' && b->p[b->len - 1] != '[')
		rts_putc(b, ',');
	rts_put_json_str(b, k);
	rts_putc(b, ':');
}

static void num(struct rts_buf *b, const char *k, uint64_t v)
{
	key(b, k);
	rts_put_u64(b, v);
}

static void str(struct rts_buf *b, const char *k, const char *v)
{
	key(b, k);
	rts_put_json_str(b, v);
}

static void flag(struct rts_buf *b, const char *k, bool v)
{
	key(b, k);
	rts_put(b, v ? "true" : "false");
}

static void open_in(struct rts_buf *b, const char *k, char bracket)
{
	key(b, k);
	rts_putc(b, bracket);
}

/* An object inside an array. */
static void next(struct rts_buf *b)
{
	rts_put(b, b->len && b->p[b->len - 1] == '[' ? "{" : ",{");
}

/* prefix and number in one string: sys_470, reserved12 */
static void put_numbered(struct rts_buf *b, const char *prefix, uint32_t nr)
{
	rts_putc(b, '"');
	rts_put(b, prefix);
	rts_put_u64(b, nr);
	rts_putc(b, '"');
}

static void name_or(struct rts_buf *b, const char *name, const char *prefix, uint32_t nr)
{
	key(b, "name");
	if (name)
		rts_put_json_str(b, name);
	else
		put_numbered(b, prefix, nr);
}

static void call(struct rts_buf *b, const char *name, enum rts_abi abi, uint32_t nr)
{
	name_or(b, name, "sys_", nr);
	num(b, "nr", nr);
	str(b, "abi", rts_abi_name(abi));
}

static void put_row(struct rts_buf *b, const struct rts_row *r)
{
	next(b);
	call(b, r->name, r->abi, r->nr);
	str(b, "category", sys_category_name(sys_category(r->abi, r->nr)));
	num(b, "count", r->count);
	num(b, "errors", r->errors);
	if (r->nr_errs) {
		open_in(b, "errnos", '{');
		for (size_t i = 0; i < r->nr_errs; i++) {
			rts_put(b, i ? ",\"" : "\"");
			if (r->errs[i].err)
				rts_put_u64(b, r->errs[i].err);
			else
				rts_put(b, "other");
			rts_put(b, "\":");
			rts_put_u64(b, r->errs[i].count);
		}
		rts_putc(b, '}');
	}
	num(b, "total_ns", r->total_ns);
	if (r->count) {
		num(b, "min_ns", r->min_ns);
		num(b, "max_ns", r->max_ns);
	}
	if (r->has_quantiles) {
		num(b, "p50_ns", r->p50_ns);
		num(b, "p90_ns", r->p90_ns);
		num(b, "p99_ns", r->p99_ns);
		num(b, "p999_ns", r->p999_ns);
	}
	if (r->has_split) {
		num(b, "on_cpu_ns", r->on_cpu_ns);
		num(b, "waiting_ns", r->waiting_ns);
	}
	rts_putc(b, '}');
}

static void put_syscalls(struct rts_buf *b, const struct rts_record *r)
{
	open_in(b, "syscalls", '[');
	for (size_t i = 0; i < r->nr_rows; i++)
		put_row(b, &r->rows[i]);
	rts_putc(b, ']');
	if (r->nr_in_flight) {
		open_in(b, "in_flight", '[');
		for (size_t i = 0; i < r->nr_in_flight; i++) {
			const struct rts_inflight *f = &r->in_flight[i];

			next(b);
			key(b, "tid");
			rts_put_i64(b, f->tid);
			call(b, f->name, f->abi, f->nr);
			num(b, "age_ns", f->age_ns);
			rts_putc(b, '}');
		}
		rts_putc(b, ']');
	}
	if (r->nr_no_return) {
		open_in(b, "no_return", '[');
		for (size_t i = 0; i < r->nr_no_return; i++) {
			const struct rts_noreturn *n = &r->no_return[i];

			next(b);
			call(b, n->name, n->abi, n->nr);
			num(b, "count", n->count);
			rts_putc(b, '}');
		}
		rts_putc(b, ']');
	}
}

static void put_sums(struct rts_buf *b, const struct rts_record *r)
{
	struct sys_sums s;

	sys_sum(&s, r->rows, r->nr_rows);
	open_in(b, "categories", '{');
	for (unsigned int c = 0; c < sys_nr_categories(); c++) {
		if (!s.count[c])
			continue;
		open_in(b, sys_category_name(c), '{');
		num(b, "count", s.count[c]);
		num(b, "total_ns", s.total_ns[c]);
		rts_putc(b, '}');
	}
	rts_putc(b, '}');
	open_in(b, "buckets", '{');
	for (unsigned int i = 0; i < SYS_NR_BUCKETS; i++) {
		num(b, sys_bucket_name((enum sys_bucket)i), s.bucket_ns[i]);
		if (i == SYS_B_WAIT)
			num(b, "process_lifecycle_ns", s.process_lifecycle_ns);
	}
	rts_putc(b, '}');
}

static void put_named(struct rts_buf *b, const char *k, const struct rts_named *v, size_t n)
{
	open_in(b, k, '{');
	for (size_t i = 0; i < n; i++)
		num(b, v[i].name, v[i].value);
	rts_putc(b, '}');
}

static void put_hw_exits(struct rts_buf *b, const struct rts_vcpu *v)
{
	str(b, "isa", v->isa);
	open_in(b, "hw_exits", '[');
	for (size_t i = 0; i < v->nr_hw_rows; i++) {
		const struct rts_exit_row *e = &v->hw_rows[i];

		next(b);
		name_or(b, e->name, "exit_", e->reason);
		num(b, "reason", e->reason);
		num(b, "count", e->count);
		num(b, "total_ns", e->total_ns);
		rts_putc(b, '}');
	}
	rts_putc(b, ']');
}

static void put_vcpu(struct rts_buf *b, const struct rts_vcpu *v)
{
	/* total last, numerator clamped: null_exits may still be counting */
	uint64_t null = v->null_exits < v->exits ? v->null_exits : v->exits;

	open_in(b, "vcpu", '{');
	num(b, "vcpus", v->nr_vcpus);
	num(b, "exits", v->exits);
	num(b, "null_exits", null);
	key(b, "null_exit_share");
	rts_put_fixed(b, rts_null_share(null, v->exits), 2);
	num(b, "in_flight", v->in_flight);
	num(b, "lost", v->lost);
	num(b, "run_call_ns", v->run_call_ns);
	if (v->has_guest_run) {
		num(b, "guest_run_ns", v->guest_run_ns);
		num(b, "halted_ns", v->halted_ns);
		str(b, "guest_run_source", v->guest_run_source);
	} else if (v->guest_run_absent) {
		str(b, "guest_run_absent", v->guest_run_absent);
	}
	open_in(b, "reasons", '[');
	for (size_t i = 0; i < v->nr_rows; i++) {
		const struct rts_exit_row *e = &v->rows[i];

		next(b);
		name_or(b, e->name, "exit_", e->reason);
		num(b, "reason", e->reason);
		num(b, "count", e->count);
		num(b, "null", e->null_count);
		num(b, "total_ns", e->total_ns);
		rts_putc(b, '}');
	}
	rts_putc(b, ']');
	if (v->has_in_guest)
		num(b, "in_guest_ns", v->in_guest_ns);
	if (v->nr_hw_rows)
		put_hw_exits(b, v);
	if (v->nr_kvm)
		put_named(b, "kvm", v->kvm, v->nr_kvm);
	rts_putc(b, '}');
}

static void put_counters(struct rts_buf *b, const struct rts_record *r)
{
	open_in(b, "counters", '{');
	for (size_t i = 0; i < r->nr_counters; i++) {
		const struct rts_counter *c = &r->counters[i];

		if (c->name && c->name[0]) {
			num(b, c->name, c->value);
			continue;
		}
		if (i)
			rts_putc(b, ',');
		put_numbered(b, "reserved", c->slot);
		rts_putc(b, ':');
		rts_put_u64(b, c->value);
	}
	rts_putc(b, '}');
}

static void put_phases(struct rts_buf *b, const struct rts_record *r)
{
	open_in(b, "phases", '[');
	for (size_t i = 0; i < r->nr_phases; i++) {
		const struct rts_phase *p = &r->phases[i];

		next(b);
		str(b, "name", p->name);
		num(b, "start_ns", p->start_ns);
		num(b, "wall_ns", p->wall_ns);
		if (p->has_cpu) {
			num(b, "user_ns", p->user_ns);
			num(b, "system_ns", p->system_ns);
		}
		if (p->nr_thread)
			put_named(b, "thread", p->thread, p->nr_thread);
		rts_putc(b, '}');
	}
	rts_putc(b, ']');
}

static void put_engine(struct rts_buf *b, const struct rts_engine *e)
{
	open_in(b, "engine", '{');
	str(b, "name", e->name);
	if (e->has_cost)
		num(b, "cost_ns", e->cost_ns);
	if (e->split)
		str(b, "split", e->split);
	if (e->split_absent)
		str(b, "split_absent", e->split_absent);
	if (e->has_pin)
		num(b, "pinned_cpu", e->pinned_cpu);
	if (e->cannot_see)
		str(b, "cannot_see", e->cannot_see);
	rts_putc(b, '}');
}

static void put_ledger(struct rts_buf *b, const struct rts_ledger *l)
{
	uint64_t loss = rts_add(rts_add(l->no_instance, l->recursion),
				rts_add(l->table_full, rts_add(l->clock_back, l->out_of_range)));

	flag(b, "complete", !loss);
	open_in(b, "lost", '{');
	num(b, "attempted", l->attempted);
	num(b, "recorded", l->recorded);
	num(b, "no_return", l->no_return);
	num(b, "no_instance", l->no_instance);
	num(b, "recursion", l->recursion);
	num(b, "table_full", l->table_full);
	num(b, "clock_back", l->clock_back);
	num(b, "out_of_range", l->out_of_range);
	num(b, "records_dropped", l->records_dropped);
	num(b, "in_flight_unlisted", l->in_flight_unlisted);
	rts_putc(b, '}');
}

static void put_exit(struct rts_buf *b, const struct rts_record *r)
{
	open_in(b, "exit", '{');
	if (r->exit_signal) {
		num(b, "signal", (uint64_t)r->exit_signal);
		flag(b, "core", r->core_dumped);
	} else {
		num(b, "code", (uint64_t)(r->exit_code & 0xff));
	}
	rts_putc(b, '}');
}

static void put_head(struct rts_buf *b, const struct rts_record *r)
{
	str(b, "schema", RTS_SCHEMA);
	str(b, "scope", r->tree ? "tree" : "process");
	str(b, "reason", rts_reason_name(r->reason));
	flag(b, "final", r->final);
	num(b, "seq", r->seq);
	key(b, "pid");
	rts_put_i64(b, r->pid);
	key(b, "ppid");
	rts_put_i64(b, r->ppid);
	if (r->ns_pid) {
		key(b, "ns_pid");
		rts_put_i64(b, r->ns_pid);
	}
	if (r->comm)
		str(b, "comm", r->comm);
	if (r->cgroup)
		str(b, "cgroup", r->cgroup);
	num(b, "execs", r->execs);
	if (r->processes)
		num(b, "processes_seen", r->processes);
	if (r->threads)
		num(b, "threads_seen", r->threads);
	str(b, "clock", "monotonic");
	num(b, "start_ns", r->start_ns);
	num(b, "time_ns", r->time_ns);
	num(b, "realtime_ns", r->realtime_ns);
	num(b, "wall_ns", r->time_ns > r->start_ns ? r->time_ns - r->start_ns : 0);
	if (r->has_cpu) {
		num(b, "user_ns", r->user_ns);
		num(b, "system_ns", r->system_ns);
	}
	open_in(b, "argv", '[');
	for (size_t i = 0; i < r->argc; i++) {
		if (i)
			rts_putc(b, ',');
		rts_put_json_str(b, r->argv[i]);
	}
	rts_putc(b, ']');
	if (r->argv_cut)
		flag(b, "argv_cut", true);
	if (r->has_exit)
		put_exit(b, r);
}

int rts_fmt_json_open(struct rts_buf *b, const struct rts_record *r)
{
	rts_putc(b, '{');
	put_head(b, r);
	put_syscalls(b, r);
	put_sums(b, r);
	if (r->vcpu)
		put_vcpu(b, r->vcpu);
	if (r->has_counters)
		put_counters(b, r);
	if (r->nr_phases)
		put_phases(b, r);
	if (r->engine)
		put_engine(b, r->engine);
	if (r->has_ledger)
		put_ledger(b, &r->lost);
	return b->cut ? -ENOSPC : 0;
}

int rts_fmt_json(struct rts_buf *b, const struct rts_record *r)
{
	rts_fmt_json_open(b, r);
	rts_putc(b, '}');
	return b->cut ? -ENOSPC : 0;
}
