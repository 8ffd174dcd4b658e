/* SPDX-License-Identifier: MIT */
/* A record for people: `name value` lines, then one table. */
#include <errno.h>
#include <string.h>

#include "lib/record.h"

static void line(struct rts_buf *b, const char *name, uint64_t v)
{
	rts_put(b, name);
	rts_putc(b, ' ');
	rts_put_u64(b, v);
	rts_putc(b, '\n');
}

static void line_str(struct rts_buf *b, const char *name, const char *v)
{
	rts_put(b, name);
	rts_putc(b, ' ');
	rts_put(b, v);
	rts_putc(b, '\n');
}

/* Nanoseconds as milliseconds with three digits. */
static void line_ms(struct rts_buf *b, const char *name, uint64_t ns)
{
	rts_put(b, name);
	rts_putc(b, ' ');
	rts_put_fixed(b, ns / 1000, 3);
	rts_putc(b, '\n');
}

/* A word of the program's; anything a terminal or a reader could stumble on is quoted. */
static void put_word(struct rts_buf *b, const char *s)
{
	for (const char *p = s; *p; p++)
		if (*p <= ' ' || *p > '~' || *p == '"' || *p == '\\') {
			rts_put_json_str(b, s);
			return;
		}
	rts_put(b, *s ? s : "\"\"");
}

static void put_head(struct rts_buf *b, const struct rts_record *r)
{
	rts_put(b, r->tree ? "tree " : "process ");
	rts_put_i64(b, r->pid);
	if (r->comm) {
		rts_putc(b, ' ');
		put_word(b, r->comm);
	}
	if (r->cgroup) {
		rts_put(b, "\ncgroup ");
		put_word(b, r->cgroup);
	}
	rts_put(b, "\ncommand");
	for (size_t i = 0; i < r->argc; i++) {
		rts_putc(b, ' ');
		put_word(b, r->argv[i]);
	}
	rts_put(b, r->argv_cut ? " ...\n" : "\n");
	line_str(b, "reason", rts_reason_name(r->reason));
	if (r->has_exit)
		line(b, r->exit_signal ? "exit_signal" : "exit_code",
		     (uint64_t)(r->exit_signal ? r->exit_signal : r->exit_code & 0xff));
	if (r->processes)
		line(b, "processes", r->processes);
	if (r->threads)
		line(b, "threads", r->threads);
	line_ms(b, "wall_ms", r->time_ns > r->start_ns ? r->time_ns - r->start_ns : 0);
	if (r->has_cpu) {
		line_ms(b, "user_ms", r->user_ns);
		line_ms(b, "system_ms", r->system_ns);
	}
}

static void put_exits(struct rts_buf *b, const char *prefix, const struct rts_exit_row *rows,
		      size_t n)
{
	for (size_t i = 0; i < n; i++) {
		rts_put(b, prefix);
		if (rows[i].name)
			put_word(b, rows[i].name);
		else
			rts_put_u64(b, rows[i].reason);
		rts_putc(b, ' ');
		rts_put_u64(b, rows[i].count);
		rts_putc(b, ' ');
		rts_put_fixed(b, rows[i].total_ns / 1000, 3);
		rts_put(b, " ms\n");
	}
}

static void put_vcpu(struct rts_buf *b, const struct rts_vcpu *v)
{
	line(b, "vcpu_exits", v->exits);
	line(b, "vcpu_null_exits", v->null_exits < v->exits ? v->null_exits : v->exits);
	rts_put(b, "vcpu_null_exit_share ");
	rts_put_fixed(b, rts_null_share(v->null_exits, v->exits), 2);
	rts_put(b, "\n");
	line_ms(b, "vcpu_run_call_ms", v->run_call_ns);
	if (v->has_guest_run)
		line_ms(b, "vcpu_guest_run_ms", v->guest_run_ns);
	else if (v->guest_run_absent)
		line_str(b, "vcpu_guest_run_absent", v->guest_run_absent);
	if (v->has_in_guest)
		line_ms(b, "vcpu_in_guest_ms", v->in_guest_ns);
	put_exits(b, "vcpu_exit_", v->rows, v->nr_rows);
	put_exits(b, "vcpu_hw_", v->hw_rows, v->nr_hw_rows);
}

static void put_counters(struct rts_buf *b, const struct rts_record *r)
{
	for (size_t i = 0; i < r->nr_counters; i++) {
		const struct rts_counter *c = &r->counters[i];

		rts_put(b, "counter_");
		if (c->name && c->name[0]) {
			put_word(b, c->name);
		} else {
			rts_put(b, "reserved");
			rts_put_u64(b, c->slot);
		}
		rts_putc(b, ' ');
		rts_put_u64(b, c->value);
		rts_putc(b, '\n');
	}
}

static void put_phases(struct rts_buf *b, const struct rts_record *r)
{
	for (size_t i = 0; i < r->nr_phases; i++) {
		rts_put(b, "phase_");
		put_word(b, r->phases[i].name);
		rts_putc(b, ' ');
		rts_put_fixed(b, r->phases[i].wall_ns / 1000, 3);
		rts_put(b, " ms\n");
	}
}

static void put_call(struct rts_buf *b, const char *name, enum rts_abi abi, uint32_t nr)
{
	if (name) {
		rts_put(b, name);
	} else {
		rts_put(b, "sys_");
		rts_put_u64(b, nr);
	}
	if (abi != RTS_ABI_X86_64) {
		rts_putc(b, '/');
		rts_put(b, rts_abi_name(abi));
	}
	rts_putc(b, '\n');
}

/* What f wrote, right-aligned in width columns and followed by a blank. */
static void cell(struct rts_buf *b, size_t width, uint64_t v, unsigned int digits, bool have)
{
	char text[32];
	struct rts_buf t = {.p = text, .cap = sizeof(text)};

	if (have)
		rts_put_fixed(&t, v, digits);
	else
		rts_putc(&t, '-');
	for (size_t i = t.len; i < width; i++)
		rts_putc(b, ' ');
	t.p[t.len < sizeof(text) ? t.len : sizeof(text) - 1] = '\0';
	rts_put(b, text);
	rts_putc(b, ' ');
}

static void put_table(struct rts_buf *b, const struct rts_record *r)
{
	uint64_t total = 0;

	for (size_t i = 0; i < r->nr_rows; i++)
		total = rts_add(total, r->rows[i].total_ns);
	rts_put(b, "    count   errors     total_ms       avg_us       p50_us       p99_us"
		   "       max_us share% name\n");
	for (size_t i = 0; i < r->nr_rows; i++) {
		const struct rts_row *w = &r->rows[i];

		cell(b, 9, w->count, 0, true);
		cell(b, 8, w->errors, 0, true);
		cell(b, 12, w->total_ns / 1000, 3, true);
		cell(b, 12, w->count ? w->total_ns / w->count : 0, 3, w->count);
		cell(b, 12, w->p50_ns, 3, w->has_quantiles);
		cell(b, 12, w->p99_ns, 3, w->has_quantiles);
		cell(b, 12, w->max_ns, 3, w->count);
		cell(b, 6, rts_null_share(w->total_ns, total), 2, total);
		put_call(b, w->name, w->abi, w->nr);
	}
}

static void put_open_calls(struct rts_buf *b, const struct rts_record *r)
{
	for (size_t i = 0; i < r->nr_in_flight; i++) {
		const struct rts_inflight *f = &r->in_flight[i];

		rts_put(b, "in_flight ");
		rts_put_i64(b, f->tid);
		rts_putc(b, ' ');
		rts_put_fixed(b, f->age_ns / 1000, 3);
		rts_put(b, " ms ");
		put_call(b, f->name, f->abi, f->nr);
	}
	for (size_t i = 0; i < r->nr_no_return; i++) {
		rts_put(b, "no_return ");
		rts_put_u64(b, r->no_return[i].count);
		rts_putc(b, ' ');
		put_call(b, r->no_return[i].name, r->no_return[i].abi, r->no_return[i].nr);
	}
}

static void put_lost(struct rts_buf *b, const struct rts_ledger *l)
{
	const struct rts_named causes[] = {
		{"lost_no_instance", l->no_instance},	{"lost_recursion", l->recursion},
		{"lost_table_full", l->table_full},	{"lost_clock_back", l->clock_back},
		{"lost_out_of_range", l->out_of_range}, {"lost_records", l->records_dropped},
	};

	line(b, "calls_attempted", l->attempted);
	line(b, "calls_recorded", l->recorded);
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (causes[i].value)
			line(b, causes[i].name, causes[i].value);
}

static void put_engine(struct rts_buf *b, const struct rts_engine *e)
{
	line_str(b, "engine", e->name);
	if (e->has_cost)
		line(b, "engine_cost_ns_per_call", e->cost_ns);
	if (e->split)
		line_str(b, "engine_split", e->split);
	if (e->split_absent)
		line_str(b, "engine_split_absent", e->split_absent);
	if (e->has_pin)
		line(b, "engine_pinned_cpu", e->pinned_cpu);
	if (e->cannot_see)
		line_str(b, "engine_cannot_see", e->cannot_see);
}

int rts_fmt_summary(struct rts_buf *b, const struct rts_record *r, unsigned int flags)
{
	put_head(b, r);
	if (r->vcpu)
		put_vcpu(b, r->vcpu);
	put_counters(b, r);
	if (flags & RTS_SUMMARY_SHORT)
		return b->cut ? -ENOSPC : 0;
	put_phases(b, r);
	if (r->engine && !(flags & RTS_SUMMARY_PART))
		put_engine(b, r->engine);
	if (r->has_ledger)
		put_lost(b, &r->lost);
	put_open_calls(b, r);
	if (r->nr_rows)
		put_table(b, r);
	rts_putc(b, '\n');
	return b->cut ? -ENOSPC : 0;
}
