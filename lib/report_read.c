/* SPDX-License-Identifier: MIT */
/* Records of runs into the model of a report: one pass, and what each life has become at the end. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/conv.h"
#include "lib/json_get.h"
#include "lib/record.h"
#include "lib/report_life.h"

const char *const report_bucket[5] = {"oncpu", "runq", "sleep", "dsleep", "iowait"};

const char *const report_cause[REPORT_NR_CAUSES] = {
	"had no instance or an unseen return",
	"were made inside the recorder",
	"found the table full",
	"had a clock that ran back or failed",
	"had a number beyond the table",
	"records were dropped",
	"calls in flight are not listed",
	"run calls of virtual CPUs were lost",
};

int report_fail(struct report_input *in, uint64_t line, const char *fmt, ...)
{
	va_list ap;
	int n = line ? snprintf(in->why, sizeof(in->why), "line %" PRIu64 ": ", line) : 0;

	va_start(ap, fmt);
	vsnprintf(in->why + n, sizeof(in->why) - (size_t)n, fmt, ap);
	va_end(ap);
	return -EPROTO;
}

#define COPY(to, from) snprintf(to, sizeof(to), "%s", (from) ? (from) : "")

/* ---- calls ---- */

static void put_errnos(char *to, size_t size, struct json_object *errnos)
{
	size_t n = 0;

	if (!errnos)
		return;
	json_object_object_foreach(errnos, key, v)
	{
		const char *name = strerrorname_np(atoi(key));

		if (n < size)
			n += (size_t)snprintf(to + n, size - n, "%s%s %" PRIu64, n ? ", " : "",
					      name ? name : key, json_as_u64(v));
	}
	if (n >= size)
		memcpy(to + size - 4, "...", 4);
}

static void fill_call(struct report_call *c, struct json_object *o)
{
	static const char *const keys[REPORT_NR_P] = {"p50_ns", "p90_ns", "p99_ns", "p999_ns"};

	COPY(c->name, json_get_str(o, "name"));
	COPY(c->abi, json_get_str(o, "abi"));
	COPY(c->category, json_get_str(o, "category"));
	put_errnos(c->errnos, sizeof(c->errnos), json_get(o, "errnos", json_type_object));
	c->nr = (uint32_t)json_get_u64(o, "nr");
	c->count = json_get_u64(o, "count");
	c->errors = json_get_u64(o, "errors");
	c->total_ns = json_get_u64(o, "total_ns");
	c->has_range = json_have_u64(o, "min_ns", &c->min_ns) &
		       json_have_u64(o, "max_ns", &c->max_ns);
	c->has_p = true;
	for (unsigned int p = 0; p < REPORT_NR_P; p++)
		c->has_p &= json_have_u64(o, keys[p], &c->p_ns[p]);
	c->has_split = json_have_u64(o, "on_cpu_ns", &c->on_cpu_ns) &
		       json_have_u64(o, "waiting_ns", &c->waiting_ns);
}

static void fill_calls(struct report_calls *t, struct json_object *rec)
{
	size_t n;
	struct json_object *list = json_get_array(rec, "syscalls", &n);

	t->nr = 0;
	t->left_out = 0;
	for (size_t i = 0; i < n; i++) {
		struct report_call *c = report_call_slot(t);

		if (c)
			fill_call(c, json_object_array_get_idx(list, i));
	}
}

/* ---- a life ---- */

static void fill_args(struct report_life *l, struct json_object *o)
{
	size_t n, len = 0;
	struct json_object *argv = json_get_array(o, "argv", &n);

	for (size_t i = 0; i < n && len < sizeof(l->args); i++) {
		const char *arg = json_object_get_string(json_object_array_get_idx(argv, i));

		len += (size_t)snprintf(l->args + len, sizeof(l->args) - len, "%s%s", i ? " " : "",
					arg ? arg : "");
	}
	if (len >= sizeof(l->args) || json_get_bool(o, "argv_cut")) {
		len = len < sizeof(l->args) - 4 ? len : sizeof(l->args) - 4;
		/* not inside of a character */
		while (len && ((unsigned char)l->args[len] & 0xc0) == 0x80)
			len--;
		memcpy(l->args + len, "...", 4);
	}
}

static void fill_exit(struct report_life *l, struct json_object *o)
{
	struct json_object *e = json_get(o, "exit", json_type_object);
	uint64_t code = 0, sig = 0;

	l->has_exit = json_have_u64(e, "code", &code) | json_have_u64(e, "signal", &sig);
	l->exit_code = (int)code;
	l->exit_signal = (int)sig;
}

static void fill_lost(struct report_lost *l, struct json_object *o)
{
	static const char *const keys[] = {"no_instance",	"recursion",	"table_full",
					   "clock_back",	"out_of_range", "records_dropped",
					   "in_flight_unlisted"};
	struct json_object *lost = json_get(o, "lost", json_type_object);
	struct json_object *complete = json_get(o, "complete", json_type_boolean);

	*l = (struct report_lost){.has = lost || complete};
	l->incomplete = complete && !json_object_get_boolean(complete);
	l->attempted = json_get_u64(lost, "attempted");
	l->recorded = json_get_u64(lost, "recorded");
	for (unsigned int i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		l->cause[i] = json_get_u64(lost, keys[i]);
	l->cause[REPORT_VCPU_LOST] = json_get_u64(json_get(o, "vcpu", json_type_object), "lost");
}

static int fill_phases(struct report_life *l, struct json_object *o)
{
	size_t n;
	struct json_object *list = json_get_array(o, "phases", &n);

	l->nr_phases = 0;
	if (!n)
		return 0;
	if (!l->phase)
		l->phase = calloc(REPORT_MAX_LISTED, sizeof(*l->phase));
	if (!l->phase)
		return -ENOMEM;
	for (; l->nr_phases < n && l->nr_phases < REPORT_MAX_LISTED; l->nr_phases++) {
		struct json_object *p = json_object_array_get_idx(list, l->nr_phases);
		struct json_object *thread = json_get(p, "thread", json_type_object);
		struct report_phase *to = &l->phase[l->nr_phases];
		char key[32];

		COPY(to->name, json_get_str(p, "name"));
		to->start_ns = json_get_u64(p, "start_ns");
		to->wall_ns = json_get_u64(p, "wall_ns");
		to->has_cpu = json_have_u64(p, "user_ns", &to->user_ns) &
			      json_have_u64(p, "system_ns", &to->system_ns);
		to->has_thread = thread;
		for (unsigned int i = 0; i < 5; i++) {
			snprintf(key, sizeof(key), "%s_ns", report_bucket[i]);
			to->thread_ns[i] = json_get_u64(thread, key);
		}
	}
	return 0;
}

/* Returns the time that calls in flight have taken, but for those that never return. */
static uint64_t fill_open(struct report_life *l, struct json_object *o)
{
	uint64_t sum = 0;
	size_t n;
	struct json_object *list = json_get_array(o, "in_flight", &n);

	l->nr_open = 0;
	l->open_left_out = 0;
	if (n && !l->open)
		l->open = calloc(REPORT_MAX_LISTED, sizeof(*l->open));
	for (size_t i = 0; i < n; i++) {
		struct json_object *call = json_object_array_get_idx(list, i);
		const char *name = json_get_str(call, "name");
		uint64_t age = json_get_u64(call, "age_ns");
		struct report_open *to;

		if (name && strcmp(name, "exit") && strcmp(name, "exit_group"))
			sum = rts_add(sum, age);
		if (l->nr_open == REPORT_MAX_LISTED || !l->open) {
			l->open_left_out++;
			continue;
		}
		to = &l->open[l->nr_open++];
		to->tid = (int64_t)json_get_u64(call, "tid");
		to->age_ns = age;
		COPY(to->name, name);
	}
	return sum;
}

/*
 * What grew since the record before. A sum may fall back: the time of a call in flight counts as waiting
 * until it returns, and some of it proves to have been on a CPU. Then nothing is new until it is
 * beyond what was.
 */
static uint64_t grown(uint64_t *high, uint64_t now)
{
	uint64_t d = now > *high ? now - *high : 0;

	*high += d;
	return d;
}

static int fill_times(struct report_life *l, struct json_object *o, uint64_t time_ns,
		      uint64_t open_ns)
{
	bool split = json_get_str(json_get(o, "engine", json_type_object), "split");
	uint64_t waiting = split ? open_ns : 0, unsplit = split ? 0 : open_ns;
	struct report_point p = {.from_ns = l->time_ns, .to_ns = time_ns};

	for (size_t i = 0; i < l->calls.nr; i++) {
		const struct report_call *c = &l->calls.row[i];

		waiting = rts_add(waiting, c->has_split ? c->waiting_ns : 0);
		unsplit = rts_add(unsplit, c->has_split ? 0 : c->total_ns);
	}
	l->known = 1u << REPORT_WAITING | 1u << REPORT_UNSPLIT;
	if (l->has_cpu) {
		l->known |= 1u << REPORT_CPU;
		p.ns[REPORT_CPU] = grown(&l->ns[REPORT_CPU], rts_add(l->user_ns, l->system_ns));
	}
	p.known = l->known;
	p.ns[REPORT_WAITING] = grown(&l->ns[REPORT_WAITING], waiting);
	p.ns[REPORT_UNSPLIT] = grown(&l->ns[REPORT_UNSPLIT], unsplit);
	/* A clock that ran back makes no interval. */
	if (time_ns <= l->time_ns)
		return 0;
	l->time_ns = time_ns;
	return l->tree ? 0 : report_add_point(l, &p);
}

static bool same_engine(const struct report_engine *a, const struct report_engine *b)
{
	return !strcmp(a->name, b->name) && !strcmp(a->split, b->split) &&
	       !strcmp(a->split_absent, b->split_absent) && !strcmp(a->cannot_see, b->cannot_see) &&
	       a->has_cost == b->has_cost && a->cost_ns == b->cost_ns;
}

static void fill_engine(struct report_input *in, struct json_object *o)
{
	struct json_object *j = json_get(o, "engine", json_type_object);
	struct report_engine e = {0};

	COPY(e.name, json_get_str(j, "name"));
	COPY(e.split, json_get_str(j, "split"));
	COPY(e.split_absent, json_get_str(j, "split_absent"));
	COPY(e.cannot_see, json_get_str(j, "cannot_see"));
	e.has_cost = json_have_u64(j, "cost_ns", &e.cost_ns);
	for (size_t i = 0; i < in->nr_engines; i++)
		if (same_engine(&in->engine[i], &e))
			return;
	if (j && in->nr_engines < REPORT_MAX_ENGINES)
		in->engine[in->nr_engines++] = e;
}

static struct report_life *life_of(struct report_input *in, const struct conv_rec *rec)
{
	const struct report_life like = {.pid = rec->pid,
					 .key = rec->start_ns,
					 .start_ns = rec->start_ns,
					 .tree = rec->tree};

	return report_life_find(in, &like) ?: report_life_new(in, &like);
}

static int take_record(struct report_input *in, const struct conv_rec *rec)
{
	struct report_life *l = life_of(in, rec);
	struct json_object *o = rec->obj;
	uint64_t open_ns;
	int ret;

	if (!l)
		return -ENOMEM;
	in->records++;
	l->records++;
	l->final = rec->final;
	l->ended = rec->final || !strcmp(rec->reason, "exec");
	COPY(l->comm, rec->name);
	COPY(l->reason, rec->reason);
	l->ppid = (int64_t)json_get_u64(o, "ppid");
	l->realtime_ns = json_get_u64(o, "realtime_ns");
	l->processes = json_get_u64(o, "processes_seen");
	l->has_threads = json_have_u64(o, "threads_seen", &l->threads);
	l->has_cpu = json_have_u64(o, "user_ns", &l->user_ns) &
		     json_have_u64(o, "system_ns", &l->system_ns);
	fill_args(l, o);
	fill_exit(l, o);
	fill_lost(&l->lost, o);
	fill_calls(&l->calls, o);
	fill_engine(in, o);
	open_ns = fill_open(l, o);
	ret = fill_phases(l, o);
	return ret ? ret : fill_times(l, o, rec->time_ns, open_ns);
}

static int take_other(void *ctx, struct json_object *o, uint64_t line)
{
	struct report_input *in = ctx;
	const char *schema = json_get_str(o, "schema");

	if (schema && !strncmp(schema, "statpage-", 9))
		return report_fail(in, line,
				   "schema %.60s: expected " RTS_SCHEMA "; a newer statpage may "
				   "read it",
				   schema);
	return report_is_metric(o) ? report_take_metric(in, o, line) :
				     report_take_recorded(in, o, line);
}

int report_read(struct report_input *in, const char *name, FILE *f)
{
	struct conv_reader *r = conv_reader_new(f);
	struct conv_rec rec = {0};
	int ret = r ? 0 : -ENOMEM;

	*in = (struct report_input){.name = name};
	if (r)
		conv_read_others(r, take_other, in);
	while (!ret && conv_read(r, &rec))
		ret = in->recording ? report_fail(in, conv_line(r),
						  "a record of a run in a recording: expected "
						  "each in an input of its own") :
				      take_record(in, &rec);
	if (!ret)
		ret = -conv_read_error(r);
	if (!ret) {
		in->skipped = conv_skipped(r);
		in->first_skipped = conv_first_skipped(r);
		if (in->nr_lives)
			report_sum_up(in);
		if (in->recording)
			ret = report_end_recorded(in);
		else if (!in->records && !in->readings)
			ret = report_fail(in, in->first_skipped,
					  "expected records of statpage run (" RTS_SCHEMA
					  "), lines of statpage show --json, or a recording of "
					  "statpage record");
	}
	if (ret && !in->why[0])
		snprintf(in->why, sizeof(in->why), "%s", strerror(-ret));
	conv_rec_free(&rec);
	conv_reader_free(r);
	return ret;
}

void report_free(struct report_input *in)
{
	for (size_t i = 0; i < in->nr_lives; i++) {
		report_life_free(in->life[i]);
		free(in->life[i]);
	}
	report_life_free(&in->whole);
	free(in->life);
	report_recorded_free(in);
	report_metrics_free(in);
}
