/* SPDX-License-Identifier: MIT */
/*
 * A recording of `statpage record` into the model of a report: its distributions at its end, and where the
 * time of threads went between instants, as `top --replay` computes it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fmt_dist.h"
#include "lib/json_get.h"
#include "lib/record.h"
#include "lib/replay_parts.h"
#include "lib/report_life.h"
#include "lib/top.h"

const char *const report_count_key[REPORT_NR_COUNTS] = {"nr_preempt", "nr_block", "nr_migrate",
							"min_flt", "maj_flt"};
const char *const report_count_name[REPORT_NR_COUNTS] = {
	"Involuntary switches", "Voluntary switches", "Migrations", "Minor faults", "Major faults"};
_Static_assert(THREAD_PREEMPT + REPORT_NR_COUNTS == THREAD_NR_FIELDS, "all of them");

/* ---- threads ---- */

static int next_instant(uint64_t *mono_ns, uint64_t *real_ns, char *why, size_t len)
{
	(void)why;
	(void)len;
	*mono_ns = replay_mono_ns();
	*real_ns = replay_real_ns();
	return 0;
}

static int no_cpus(struct cpus *c, char *why, size_t len)
{
	(void)c;
	snprintf(why, len, "not asked for");
	return -ENODATA;
}

/* Distributions are taken once, at the end. */
static const struct dist_engine *const *no_dists(struct dist_why *why)
{
	dist_fail(why, -ENODATA, "not asked for");
	return NULL;
}

/* What happened to a thread, as what it adds to a life. */
static void get_delta(struct report_life *d, const struct top_thread *t)
{
	static const unsigned int kind[THREAD_NR_BUCKETS] = {
		[THREAD_ONCPU] = REPORT_CPU,	 [THREAD_RUNQ] = REPORT_RUNQ,
		[THREAD_SLEEP] = REPORT_SLEEP,	 [THREAD_DSLEEP] = REPORT_DSLEEP,
		[THREAD_IOWAIT] = REPORT_IOWAIT,
	};

	*d = (struct report_life){.pid = t->s->pid,
				  .tid = t->s->tid,
				  .start_ns = t->s->mono_ns - t->d.wall_ns,
				  .time_ns = t->s->mono_ns};
	snprintf(d->comm, sizeof(d->comm), "%s", t->s->comm);
	for (unsigned int i = 0; i < THREAD_NR_BUCKETS; i++) {
		if (!(t->d.known & THREAD_KNOWN(i)))
			continue;
		d->known |= 1u << kind[i];
		d->ns[kind[i]] = t->d.value[i];
	}
	if (t->d.has_off)
		d->known |= 1u << REPORT_OFF;
	d->ns[REPORT_OFF] = t->d.off_ns;
	for (unsigned int i = 0; i < REPORT_NR_COUNTS; i++) {
		if (!(t->d.known & THREAD_KNOWN(THREAD_PREEMPT + i)))
			continue;
		d->counts_known |= 1u << i;
		d->count[i] = t->d.value[THREAD_PREEMPT + i];
	}
}

static void add(struct report_life *to, const struct report_life *d)
{
	to->known |= d->known;
	to->counts_known |= d->counts_known;
	for (unsigned int i = 0; i < REPORT_NR_KINDS; i++)
		to->ns[i] = rts_add(to->ns[i], d->ns[i]);
	for (unsigned int i = 0; i < REPORT_NR_COUNTS; i++)
		to->count[i] = rts_add(to->count[i], d->count[i]);
}

/*
 * The life that a delta goes to. One that is in neither of both instants as such may begin here; any may in
 * the first interval. One that was there and is not found has made room. Returns -ENOMEM, or 0.
 */
static int recorded_life(struct report_input *in, const struct report_life *like, bool anew,
			 struct report_life **out, bool *began)
{
	struct report_life *l = report_life_find(in, like), fresh;

	*out = NULL;
	*began = false;
	if (l && (l->ended || anew)) {
		l->ended = true;
		l = NULL;
	}
	if (!l && (anew || in->instants == 2)) {
		fresh = (struct report_life){.pid = like->pid,
					     .tid = like->tid,
					     .serial = like->serial,
					     .start_ns = like->start_ns,
					     .has_threads = !like->tid};
		l = report_life_new(in, &fresh);
		if (!l)
			return -ENOMEM;
		*began = true;
	}
	*out = l;
	return 0;
}

static int add_delta(struct report_life *l, const struct report_life *d, uint64_t realtime_ns)
{
	struct report_point p = {.from_ns = d->start_ns, .to_ns = d->time_ns, .known = d->known};

	l->records++;
	l->realtime_ns = realtime_ns;
	memcpy(l->comm, d->comm, sizeof(l->comm));
	if (d->time_ns <= d->start_ns)
		return 0;
	add(l, d);
	l->time_ns = d->time_ns;
	memcpy(p.ns, d->ns, sizeof(p.ns));
	return report_add_point(l, &p);
}

/* Or another thread has its tid by now, or its counting began anew, perhaps by an engine that knows more. */
static bool is_new(const struct top_thread *t)
{
	return !t->older || t->older->engine != t->s->engine || t->older->epoch != t->s->epoch;
}

/* The threads of a process, which stand together: each of them, and their sum. */
static int take_process(struct report_input *in, const struct top_report *r, size_t from, size_t to)
{
	struct report_life sum = {.pid = r->thread[from].s->pid, .start_ns = UINT64_MAX}, d, *l;
	bool anew = true, began;
	uint64_t nr_began = 0, serial;
	int ret;

	for (size_t i = from; i < to; i++) {
		anew &= !r->thread[i].older;
		get_delta(&d, &r->thread[i]);
		add(&sum, &d);
		sum.start_ns = d.start_ns < sum.start_ns ? d.start_ns : sum.start_ns;
		sum.time_ns = d.time_ns > sum.time_ns ? d.time_ns : sum.time_ns;
		if (i == from || d.tid == d.pid)
			memcpy(sum.comm, d.comm, sizeof(sum.comm));
	}
	sum.serial = ++in->nr_serials;
	ret = recorded_life(in, &sum, anew, &l, &began);
	serial = l ? l->serial : 0;
	for (size_t i = from; !ret && i < to; i++) {
		get_delta(&d, &r->thread[i]);
		d.serial = serial;
		ret = recorded_life(in, &d, is_new(&r->thread[i]), &l, &began);
		nr_began += began;
		if (!ret && l)
			ret = add_delta(l, &d, r->real_ns);
	}
	/* It may have made room for its threads. */
	l = report_life_find(in, &sum);
	if (!l || l->serial != serial) {
		for (unsigned int i = 0; i < REPORT_NR_KINDS; i++)
			in->others.ns[i] = rts_add(in->others.ns[i], sum.ns[i]);
		return ret;
	}
	if (ret)
		return ret;
	l->threads += nr_began;
	return add_delta(l, &sum, r->real_ns);
}

/* Those that are not in this instant are in none that follows. */
static void end_lives(struct report_input *in, uint64_t realtime_ns)
{
	for (size_t i = 0; i < in->nr_lives; i++)
		in->life[i]->ended |= in->life[i]->realtime_ns != realtime_ns;
}

static int take_threads(struct report_input *in)
{
	const struct top_report *r;
	size_t to;
	int ret;

	replay_lend(in->recorded_head, in->recorded);
	ret = top_sample(in->top, in->why, sizeof(in->why));
	r = top_report(in->top);
	for (size_t i = 0; !ret && in->instants > 1 && i < r->nr_threads; i = to) {
		for (to = i + 1; to < r->nr_threads && r->thread[to].s->pid == r->thread[i].s->pid;)
			to++;
		ret = take_process(in, r, i, to);
	}
	end_lives(in, r->real_ns);
	return ret;
}

static void end_threads(struct report_input *in)
{
	if (!in->top)
		return;
	top_close(in->top);
	in->top = NULL;
	replay_close();
}

static void take_engines(struct report_input *in)
{
	const struct thread_engine *e;

	for (; in->nr_engines < REPORT_MAX_ENGINES; in->nr_engines++) {
		struct report_engine *to = &in->engine[in->nr_engines];

		e = top_engine(in->top, (unsigned int)in->nr_engines);
		if (!e)
			return;
		snprintf(to->name, sizeof(to->name), "%s", e->name);
		snprintf(to->cannot_see, sizeof(to->cannot_see), "%s", e->cannot_see);
	}
}

/* ---- lines ---- */

static int take_head(struct report_input *in, struct json_object *o, uint64_t line)
{
	static const struct top_source source = {next_instant, no_cpus, no_dists};
	struct threads *threads;
	struct dist_why why;

	if (json_get_u64(o, "version") != REPLAY_VERSION)
		return report_fail(in, 0, "version %llu, this statpage reads %d",
				   (unsigned long long)json_get_u64(o, "version"), REPLAY_VERSION);
	if (in->recording)
		return report_fail(in, line, "another recording begins: expected one in an input");
	if (in->records)
		return report_fail(in, line,
				   "a recording behind records of runs: expected each in an input "
				   "of its own");
	in->recording = true;
	in->recorded_head = json_object_get(o);
	replay_lend(o, NULL);
	if (replay_threads(&threads, 0, &why))
		return report_fail(in, line, "%.200s", why.text);
	if (top_open_from(&in->top, threads, &source)) {
		threads_close(threads);
		return -ENOMEM;
	}
	take_engines(in);
	return 1;
}

int report_take_recorded(struct report_input *in, struct json_object *o, uint64_t line)
{
	const char *format = json_get_str(o, "format");
	int ret;

	if (format && !strcmp(format, REPLAY_FORMAT))
		return take_head(in, o, line);
	if (!in->recording)
		return 0;
	if (json_get_str(o, "end")) {
		in->recorded_whole = true;
		return 1;
	}
	if (!json_get(o, "time_ns", json_type_int) || !json_get(o, "realtime_ns", json_type_int))
		return 0;
	if (in->recorded && json_get_u64(o, "time_ns") <= json_get_u64(in->recorded, "time_ns"))
		return report_fail(in, line,
				   "time_ns is %llu, expected more than the instant before has",
				   (unsigned long long)json_get_u64(o, "time_ns"));
	json_object_put(in->recorded);
	in->recorded = json_object_get(o);
	in->recorded_line = line;
	in->instants++;
	ret = take_threads(in);
	return ret ? ret : 1;
}

/* ---- distributions ---- */

/* The line of `show --json --cpu N`, as a recording has only what is needed to print it. */
static int take_cpu(struct report_input *in, const char *name, const struct dist_metric *m, int cpu)
{
	struct json_object *o;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int ret;

	if (!f)
		return -ENOMEM;
	fmt_dist_json(f, name, m, cpu);
	if (fclose(f)) {
		free(text);
		return -ENOMEM;
	}
	o = json_tokener_parse(text);
	ret = report_take_metric(in, o, in->recorded_line);
	json_object_put(o);
	free(text);
	return ret;
}

static int take_cpus(struct report_input *in, struct json_object *o)
{
	const char *name = json_get_str(o, "name");
	struct dist_metric m;
	struct dist_why why;
	int ret = replay_metric(o, &m, &why);

	if (ret == -ENOMEM)
		return ret;
	if (ret)
		return report_fail(in, in->recorded_line, "%.200s", why.text);
	for (unsigned int cpu = 0; ret >= 0 && cpu < m.nr_cpus; cpu++)
		if (m.cpu[cpu])
			ret = take_cpu(in, name, &m, (int)cpu);
	dist_metric_free(&m);
	return ret < 0 ? ret : 0;
}

/* Of a name that both engines have, the first is that of the preferred one: as show has it. */
static bool is_again(struct json_object *list, size_t i)
{
	const char *name = json_get_str(json_object_array_get_idx(list, i), "name"), *other;

	for (size_t k = 0; k < i; k++) {
		other = json_get_str(json_object_array_get_idx(list, k), "name");
		if (name && other && !strcmp(name, other))
			return true;
	}
	return false;
}

int report_end_recorded(struct report_input *in)
{
	struct json_object *list, *o;
	int ret = 0;
	size_t n;

	/* The next input may be a recording too. */
	end_threads(in);
	if (!in->recorded)
		return report_fail(in, 0, "there is no whole instant in it");
	list = json_get_array(in->recorded, "distributions", &n);
	for (size_t i = 0; ret >= 0 && i < n; i++) {
		o = json_object_array_get_idx(list, i);
		if (is_again(list, i))
			continue;
		ret = take_cpus(in, o);
		if (!ret)
			ret = report_take_metric(in, o, in->recorded_line);
	}
	if (ret < 0)
		return ret;
	in->whole.realtime_ns = json_get_u64(in->recorded, "realtime_ns");
	if (!in->readings)
		snprintf(in->no_distributions, sizeof(in->no_distributions), "%s",
			 json_get_str(in->recorded, "no_distributions") ?: "nothing was traced");
	if (!in->readings && !in->nr_processes)
		return report_fail(
			in, 0, "no distributions were recorded (%s), and no thread in two instants",
			in->no_distributions);
	return 0;
}

void report_recorded_free(struct report_input *in)
{
	end_threads(in);
	json_object_put(in->recorded_head);
	json_object_put(in->recorded);
}
