// SPDX-License-Identifier: MIT
/* What is in an instant of a recording: JSON into the plain data that live sources fill. */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/replay_parts.h"
#include "uapi/kstats.h"
#include "uapi/kstats_bucket.h"

#define MAX_CPUS (1u << 16)

/*
 * A string of fmt_dist.c: bytes from 0x7f on are written as characters of that number, so that any text comes
 * back as it was. Absent: "".
 */
static void get_bytes(struct json_object *o, const char *key, char *to, size_t size)
{
	const char *from = json_get_str(o, key) ?: "";
	size_t n = 0;

	for (; *from && n + 1 < size; from++) {
		unsigned char c = (unsigned char)*from;

		if ((c & 0xfc) == 0xc0 && from[1])
			c = (unsigned char)(c << 6 | (*++from & 0x3f));
		to[n++] = (char)c;
	}
	to[n] = '\0';
}

#define BYTES(o, key, to) get_bytes(o, key, to, sizeof(to))

/* ---- distributions ---- */

static void get_ledger(struct json_object *o, struct dist_ledger *l)
{
	l->attempted = json_get_u64(o, "attempted");
	l->recorded = json_get_u64(o, "recorded");
	l->missed = json_get_u64(o, "missed");
	l->filtered = json_get_u64(o, "filtered");
	l->stopped = json_get_u64(o, "stopped");
	l->inside = json_get_u64(o, "inside");
	l->unpaired = json_get_u64(o, "unpaired");
	BYTES(o, "causes", l->causes);
}

/* A slot's mean is absent where its sum had saturated. */
static int get_slots(struct json_object *o, struct hist *h)
{
	struct json_object *list, *s;
	uint64_t slot, count, mean, sum;
	int err = 0;
	size_t n;

	list = json_get_array(o, "slots", &n);
	for (size_t i = 0; !err && i < n; i++) {
		s = json_object_array_get_idx(list, i);
		count = json_get_u64(s, "count");
		if (!json_have_u64(s, "mean", &mean) || __builtin_mul_overflow(count, mean, &sum))
			sum = UINT64_MAX;
		if (!json_have_u64(s, "slot", &slot) || slot >= h->nr)
			return -EPROTO;
		err = hist_add_slot(h, (unsigned int)slot, count, sum);
	}
	if (h->count != json_get_u64(o, "count"))
		return -EPROTO;
	if (h->count && !json_have_u64(o, "sum", &h->sum))
		h->sum = UINT64_MAX;
	return err;
}

/* "slots":[[slot,count,sum],...] */
static int get_cpu_slots(struct json_object *o, struct hist *h)
{
	struct json_object *list, *s;
	uint64_t v[3];
	int err = 0;
	size_t n;

	list = json_get_array(o, "slots", &n);
	for (size_t i = 0; !err && i < n; i++) {
		s = json_object_array_get_idx(list, i);
		if (!json_object_is_type(s, json_type_array) || json_object_array_length(s) != 3)
			return -EPROTO;
		for (size_t k = 0; k < 3; k++)
			v[k] = json_as_u64(json_object_array_get_idx(s, k));
		err = v[0] < h->nr ? hist_add_slot(h, (unsigned int)v[0], v[1], v[2]) : -EPROTO;
	}
	return err;
}

static int get_cpus(struct json_object *o, struct dist_metric *to)
{
	struct json_object *list, *c;
	uint64_t cpu, last;
	int err = 0;
	size_t n;

	list = json_get_array(o, "per_cpu", &n);
	if (!n)
		return 0;
	/* In the order of their ids. */
	c = json_object_array_get_idx(list, n - 1);
	if (!json_have_u64(c, "cpu", &last) || last >= MAX_CPUS)
		return -EPROTO;
	to->cpu = calloc(last + 1, sizeof(*to->cpu));
	if (!to->cpu)
		return -ENOMEM;
	to->nr_cpus = (unsigned int)last + 1;
	for (size_t i = 0; !err && i < n; i++) {
		c = json_object_array_get_idx(list, i);
		if (!json_have_u64(c, "cpu", &cpu) || cpu > last || to->cpu[cpu])
			return -EPROTO;
		to->cpu[cpu] = hist_new(to->all->bits);
		err = to->cpu[cpu] ? get_cpu_slots(c, to->cpu[cpu]) : -ENOMEM;
	}
	return err;
}

int replay_metric(struct json_object *o, struct dist_metric *to, struct dist_why *why)
{
	uint64_t bits;
	int err;

	memset(to, 0, sizeof(*to));
	err = json_have_u64(o, "bits", &bits) && bits <= KSTATS_MAX_BITS ? 0 : -EPROTO;
	if (!err && !(to->all = hist_new((unsigned int)bits)))
		err = -ENOMEM;
	if (!err)
		err = get_slots(o, to->all);
	if (!err)
		err = get_cpus(o, to);
	if (err) {
		dist_metric_free(to);
		return replay_fail(why, err, "%.63s: %s", json_get_str(o, "name") ?: "a metric",
				   err == -ENOMEM ? strerror(ENOMEM) :
						    "not a distribution of this format");
	}
	to->has_sum = true;
	to->sum = to->all->sum;
	get_ledger(o, &to->ledger);
	BYTES(o, "state", to->state);
	BYTES(o, "origin", to->origin);
	BYTES(o, "notes", to->notes);
	return 0;
}

static bool is_of(struct json_object *o, const char *engine)
{
	const char *e = json_get_str(o, "engine");

	return e && !strcmp(e, engine);
}

static struct json_object *find(const char *engine, const char *name)
{
	struct json_object *list, *o;
	char at[KSTATS_NAME_MAX + 1];
	size_t n;

	list = json_get_array(replay_now_json(), "distributions", &n);
	for (size_t i = 0; i < n; i++) {
		o = json_object_array_get_idx(list, i);
		BYTES(o, "name", at);
		if (is_of(o, engine) && !strcmp(at, name))
			return o;
	}
	return NULL;
}

static int read_of(const char *engine, const char *name, struct dist_metric *to,
		   struct dist_why *why)
{
	struct json_object *o = find(engine, name);

	return o ? replay_metric(o, to, why) :
		   dist_fail(why, -ENOENT, "no metric %.*s", KSTATS_NAME_MAX, name);
}

static int metrics_of(const char *engine, int (*fn)(const char *name, void *data), void *data)
{
	struct json_object *list, *o;
	char name[KSTATS_NAME_MAX + 1];
	int err = 0;
	size_t n;

	list = json_get_array(replay_now_json(), "distributions", &n);
	for (size_t i = 0; !err && i < n; i++) {
		o = json_object_array_get_idx(list, i);
		BYTES(o, "name", name);
		if (is_of(o, engine))
			err = fn(name, data);
	}
	return err;
}

static int list_of(const char *engine, int (*fn)(const struct dist_node *node, void *data),
		   void *data, struct dist_why *why)
{
	struct json_object *list, *o;
	struct dist_node node;
	int err = 0;
	size_t n;

	list = json_get_array(replay_now_json(), "nodes", &n);
	if (!list)
		return replay_fail(why, -ENODATA,
				   "the list of nodes could not be read when this was recorded");
	for (size_t i = 0; !err && i < n; i++) {
		o = json_object_array_get_idx(list, i);
		if (!is_of(o, engine))
			continue;
		memset(&node, 0, sizeof(node));
		BYTES(o, "name", node.name);
		BYTES(o, "start", node.start);
		BYTES(o, "end", node.end);
		BYTES(o, "by", node.by);
		BYTES(o, "via", node.via);
		BYTES(o, "state", node.state);
		BYTES(o, "note", node.note);
		node.bits = (unsigned int)json_get_u64(o, "bits");
		node.gap = json_get_bool(o, "gap");
		get_ledger(o, &node.ledger);
		err = fn(&node, data);
	}
	return err;
}

static int probe_of(const char *engine, struct dist_why *why)
{
	struct json_object *list, *o;
	size_t n;

	list = json_get_array(replay_now_json(), "dist_engines", &n);
	for (size_t i = 0; i < n; i++) {
		o = json_object_array_get_idx(list, i);
		if (json_object_is_type(o, json_type_string) &&
		    !strcmp(json_object_get_string(o), engine))
			return 0;
	}
	return replay_fail(why, -ENODEV, "no distributions of the engine %s", engine);
}

/* Functions of an engine are not told which one is meant. */
#define ENGINE(id, text)                                                                      \
	static int probe_##id(struct dist_why *why)                                           \
	{                                                                                     \
		return probe_of(text, why);                                                   \
	}                                                                                     \
	static bool has_##id(const char *name)                                                \
	{                                                                                     \
		return find(text, name) != NULL;                                              \
	}                                                                                     \
	static int list_##id(int (*fn)(const struct dist_node *node, void *data), void *data, \
			     struct dist_why *why)                                            \
	{                                                                                     \
		return list_of(text, fn, data, why);                                          \
	}                                                                                     \
	static int metrics_##id(int (*fn)(const char *name, void *data), void *data,          \
				struct dist_why *why)                                         \
	{                                                                                     \
		(void)why;                                                                    \
		return metrics_of(text, fn, data);                                            \
	}                                                                                     \
	static int read_##id(const char *name, struct dist_metric *to, struct dist_why *why)  \
	{                                                                                     \
		return read_of(text, name, to, why);                                          \
	}                                                                                     \
	static const struct dist_engine engine_##id = {                                       \
		.name = (text),                                                               \
		.probe = probe_##id,                                                          \
		.has = has_##id,                                                              \
		.list = list_##id,                                                            \
		.metrics = metrics_##id,                                                      \
		.read = read_##id,                                                            \
	}

ENGINE(kmod_copy, "kmod");
ENGINE(bpf_copy, "bpf");

const struct dist_engine *const *replay_engines(struct dist_why *why)
{
	static const struct dist_engine *const all[] = {&engine_kmod_copy, &engine_bpf_copy};
	static const struct dist_engine *usable[3];
	size_t nr = 0;

	for (size_t i = 0; i < 2; i++)
		if (!all[i]->probe(why))
			usable[nr++] = all[i];
	usable[nr] = NULL;
	if (nr)
		return usable;
	replay_fail(why, -ENODEV, "no distributions were recorded: %.200s",
		    json_get_str(replay_now_json(), "no_distributions") ?: "it is not said why");
	return NULL;
}
