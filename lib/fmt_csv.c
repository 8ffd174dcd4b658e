/* SPDX-License-Identifier: MIT */
/* A row a record, under the names of the JSON: what is in an object is called object.key. */
#include <json-c/json.h>
#include <string.h>

#include "lib/conv.h"
#include "lib/syscalls.h"

/* clang-format off */
static const char *const columns[] = {
	"scope", "reason", "final", "seq", "pid", "ppid", "ns_pid", "comm", "execs", "processes_seen",
	"threads_seen", "start_ns", "time_ns", "realtime_ns", "wall_ns", "user_ns", "system_ns",
	"exit.code", "exit.signal", "vcpu.exits", "vcpu.null_exits", "vcpu.null_exit_share",
	"vcpu.run_call_ns", "vcpu.guest_run_ns", "vcpu.halted_ns", "buckets.process_lifecycle_ns",
	"engine.name", "engine.cost_ns", "complete", "lost.attempted", "lost.recorded",
	"lost.no_return", "lost.no_instance", "lost.recursion", "lost.table_full",
	"lost.clock_back", "lost.out_of_range", "lost.records_dropped", "lost.in_flight_unlisted",
};
/* clang-format on */

/* The value at a.b.c, or NULL. */
static struct json_object *at(struct json_object *o, const char *path)
{
	char key[64];

	while (o && *path) {
		size_t n = strcspn(path, ".");

		if (n >= sizeof(key) || !json_object_is_type(o, json_type_object))
			return NULL;
		memcpy(key, path, n);
		key[n] = '\0';
		if (!json_object_object_get_ex(o, key, &o))
			return NULL;
		path += n + (path[n] == '.');
	}
	return o;
}

static void put_value(FILE *out, struct json_object *v)
{
	const char *s = v ? json_object_get_string(v) : "";

	if (!s[strcspn(s, "\",\r\n")]) {
		fputs(s, out);
		return;
	}
	putc('"', out);
	for (; *s; s++) {
		if (*s == '"')
			putc('"', out);
		putc(*s, out);
	}
	putc('"', out);
}

/* Columns of every category and bucket: name them, or fill them from o. */
static void put_sums(FILE *out, struct json_object *o)
{
	static const char *const of[] = {"count", "total_ns"};
	char path[96];

	for (unsigned int i = 0; i < SYS_NR_BUCKETS + 2 * sys_nr_categories(); i++) {
		unsigned int c = i < SYS_NR_BUCKETS ? 0 : (i - SYS_NR_BUCKETS) / 2;

		if (i < SYS_NR_BUCKETS)
			snprintf(path, sizeof(path), "buckets.%s",
				 sys_bucket_name((enum sys_bucket)i));
		else
			snprintf(path, sizeof(path), "categories.%s.%s", sys_category_name(c),
				 of[(i - SYS_NR_BUCKETS) % 2]);
		putc(',', out);
		if (o)
			put_value(out, at(o, path));
		else
			fputs(path, out);
	}
	putc('\n', out);
}

static int begin(struct converter *c, FILE *out)
{
	(void)c;
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		fprintf(out, "%s%s", i ? "," : "", columns[i]);
	put_sums(out, NULL);
	return 0;
}

static int delta(struct converter *c, FILE *out, const struct conv_delta *d)
{
	(void)c;
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		if (i)
			putc(',', out);
		put_value(out, at(d->rec->obj, columns[i]));
	}
	put_sums(out, d->rec->obj);
	return 0;
}

static int end(struct converter *c, FILE *out)
{
	(void)c;
	(void)out;
	return 0;
}

struct converter conv_csv = {
	.name = "csv", .tree_too = true, .begin = begin, .delta = delta, .end = end};
