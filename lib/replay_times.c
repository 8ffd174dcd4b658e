// SPDX-License-Identifier: MIT
/* Times of threads and CPUs in an instant of a recording. */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fmt_top.h"
#include "lib/json_get.h"
#include "lib/replay_parts.h"

#define MAX_CPUS    (1u << 16)
#define MAX_ENGINES 8

/* ---- threads ---- */

/* Engines of the machine that was recorded. */
static struct recorded {
	struct thread_engine engine;
	char name[32], cannot_see[400];
	pid_t pid; /* 0: all */
} engines[MAX_ENGINES];

static void get_thread(struct json_object *o, struct thread_sample *s)
{
	const char *state = json_get_str(o, "state");
	struct json_object *total = json_get(o, "total", json_type_object);
	uint64_t cpu;

	s->pid = (pid_t)json_get_u64(o, "pid");
	s->tid = (pid_t)json_get_u64(o, "tid");
	snprintf(s->comm, sizeof(s->comm), "%s", json_get_str(o, "comm") ?: "");
	s->state = state ? *state : '\0';
	s->cpu = json_have_u64(o, "cpu", &cpu) ? (int)cpu : -1;
	s->epoch = json_get_u64(o, "epoch");
	s->since_ns = json_get_u64(o, "since_ns");
	s->mono_ns = json_get_u64(o, "time_ns");
	for (int i = 0; i < THREAD_NR_FIELDS; i++)
		if (json_have_u64(total, fmt_top_field((enum thread_field)i), &s->value[i]))
			s->known |= THREAD_KNOWN(i);
}

static struct json_object *threads_now(size_t *n)
{
	return json_get_array(replay_now_json(), "threads", n);
}

static bool has_pid(pid_t pid)
{
	struct json_object *list;
	size_t n;

	list = threads_now(&n);
	for (size_t i = 0; i < n; i++)
		if (json_get_u64(json_object_array_get_idx(list, i), "pid") == (uint64_t)pid)
			return true;
	return false;
}

static int sample(void *state, struct thread_list *to, char *why, size_t len)
{
	struct recorded *e = state;
	struct json_object *list, *o;
	struct thread_sample *s;
	const char *name;
	size_t n;

	if (e->pid && !has_pid(e->pid)) {
		snprintf(why, len, "process %d has ended", e->pid);
		return -ESRCH;
	}
	list = threads_now(&n);
	for (size_t i = 0; i < n; i++) {
		o = json_object_array_get_idx(list, i);
		name = json_get_str(o, "engine");
		if (!name || strcmp(name, e->name) ||
		    (e->pid && json_get_u64(o, "pid") != (uint64_t)e->pid))
			continue;
		s = thread_list_add(to);
		if (!s) {
			snprintf(why, len, "out of memory");
			return -ENOMEM;
		}
		get_thread(o, s);
	}
	return 0;
}

static void close_nothing(void *state)
{
	(void)state;
}

static int go_to_pid(pid_t pid, struct dist_why *why)
{
	int ret;

	while ((ret = replay_next(why)) > 0)
		if (has_pid(pid)) {
			replay_hold();
			return 0;
		}
	return ret ? ret : dist_fail(why, -EINVAL, "no process of the recording has pid %d", pid);
}

int replay_threads(struct threads **out, pid_t pid, struct dist_why *why)
{
	const struct thread_engine *engine[MAX_ENGINES + 1] = {NULL};
	void *state[MAX_ENGINES];
	struct json_object *list;
	size_t n;
	int err = pid ? go_to_pid(pid, why) : 0;

	if (err)
		return err;
	list = json_get_array(replay_head_json(), "thread_engines", &n);
	if (!n || n > MAX_ENGINES)
		return replay_fail(why, -EPROTO, "no engines of threads in its first line");
	for (size_t i = 0; i < n; i++) {
		struct json_object *o = json_object_array_get_idx(list, i);
		struct recorded *e = &engines[i];

		*e = (struct recorded){.pid = pid};
		snprintf(e->name, sizeof(e->name), "%s", json_get_str(o, "name") ?: "");
		snprintf(e->cannot_see, sizeof(e->cannot_see), "%s",
			 json_get_str(o, "cannot_see") ?: "");
		e->engine = (struct thread_engine){.name = e->name,
						   .cannot_see = e->cannot_see,
						   .sample = sample,
						   .close = close_nothing};
		engine[i] = &e->engine;
		state[i] = e;
	}
	err = threads_open_as(out, engine, state);
	return err ? dist_fail(why, err, "%s", strerror(-err)) : 0;
}

/* ---- CPUs ---- */

_Static_assert(sizeof(struct csf_cpu_row) ==
		       offsetof(struct csf_cpu_row, user_ns) + CPU_NR_TIMES * sizeof(__u64),
	       "times only");

static bool get_times(struct json_object *o, uint64_t ns[CPU_NR_TIMES])
{
	char key[24];
	bool all = true;

	for (int i = 0; i < CPU_NR_TIMES; i++) {
		snprintf(key, sizeof(key), "%s_ns", cpu_time_names[i]);
		all &= json_have_u64(o, key, &ns[i]);
	}
	return all;
}

static bool get_row(struct json_object *o, struct csf_cpu_row *row)
{
	uint64_t ns[CPU_NR_TIMES];
	bool all = get_times(o, ns);

	memcpy(&row->user_ns, ns, sizeof(ns));
	return all;
}

/* The times of the instant, and where they are from; NULL and why. */
static struct json_object *cpu_now(const char **source, struct dist_why *why)
{
	struct json_object *o = json_get(replay_now_json(), "cpu", json_type_object);

	*source = json_get_str(o, "source");
	if (*source)
		return o;
	replay_fail(why, -ENODATA, "no CPU times were recorded: %.200s",
		    json_get_str(o, "absent") ?: "it is not said why");
	return NULL;
}

static int bad_cpus(struct dist_why *why)
{
	return replay_fail(why, -EPROTO, "cpu: not CPU times of this format");
}

int replay_cpu_page(struct csf_cpu_snap *sum, struct csf_cpu_row **rows, struct dist_why *why)
{
	struct json_object *o, *list, *c;
	const char *source;
	struct csf_cpu_row *row;
	uint64_t id;
	size_t n;

	o = cpu_now(&source, why);
	if (!o)
		return -ENODATA;
	if (strcmp(source, "coarse_stat_fs"))
		return replay_fail(why, -ENODATA,
				   "the cpu page was not recorded: coarse_stat_fs was not mounted");
	list = json_get_array(o, "cpus", &n);
	*sum = (struct csf_cpu_snap){
		.update_mono_ns = json_get_u64(o, "update_mono_ns"),
		.nr_updates = json_get_u64(o, "nr_updates"),
		.nr_corrected = json_get_u64(o, "nr_corrected"),
		.period_us = (uint32_t)json_get_u64(o, "period_us"),
		.tick_ns = (uint32_t)json_get_u64(o, "tick_ns"),
		.row = {.cpu = CSF_CPU_ALL},
	};
	c = n ? json_object_array_get_idx(list, n - 1) : NULL;
	if (!json_have_u64(c, "cpu", &id) || id >= MAX_CPUS ||
	    !get_row(json_get(o, "all", json_type_object), &sum->row))
		return bad_cpus(why);
	sum->nr_cpus = (uint32_t)id + 1;
	row = calloc(sum->nr_cpus, sizeof(*row));
	if (!row)
		return replay_fail(why, -ENOMEM, "%s", strerror(ENOMEM));
	for (size_t i = 0; i < n; i++) {
		c = json_object_array_get_idx(list, i);
		if (!json_have_u64(c, "cpu", &id) || id >= sum->nr_cpus || !get_row(c, &row[id])) {
			free(row);
			return bad_cpus(why);
		}
		row[id].cpu = (uint32_t)id;
		row[id].flags = CSF_CPU_POSSIBLE |
				(json_get_bool(c, "online") ? CSF_CPU_ONLINE : 0);
	}
	*rows = row;
	return 0;
}

int replay_cpus(struct cpus *to, char *text, size_t len)
{
	struct json_object *o, *list, *c;
	struct dist_why why;
	struct cpu_row *row;
	const char *source;
	uint64_t id;
	size_t n;
	int err = 0;

	o = cpu_now(&source, &why);
	list = json_get_array(o, "cpus", &n);
	to->nr = 0;
	if (!o)
		err = -ENODATA;
	else if (!(row = reallocarray(to->row, n + 1, sizeof(*row))))
		err = replay_fail(&why, -ENOMEM, "%s", strerror(ENOMEM));
	else {
		to->row = row;
		to->cap = n + 1;
		row->cpu = -1;
		if (!get_times(json_get(o, "all", json_type_object), row->ns))
			err = bad_cpus(&why);
		to->nr = 1;
	}
	for (size_t i = 0; !err && i < n; i++) {
		c = json_object_array_get_idx(list, i);
		if (!json_get_bool(c, "online"))
			continue;
		row = &to->row[to->nr++];
		if (!json_have_u64(c, "cpu", &id) || id >= MAX_CPUS || !get_times(c, row->ns))
			err = bad_cpus(&why);
		row->cpu = (int)id;
	}
	if (err) {
		snprintf(text, len, "%s", why.text);
		return err;
	}
	to->mono_ns = json_get_u64(o, "update_mono_ns");
	/* Sources are compared by their address. */
	to->source = strcmp(source, "/proc/stat") ? "coarse_stat_fs" : "/proc/stat";
	return 0;
}
