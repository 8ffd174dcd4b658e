/* SPDX-License-Identifier: MIT */
/*
 * Records from text, line by line. A line of jsonl is a record. A document of `statpage run` has the
 * tree on its first line, which ends in "processes":[ , and a process on each of the others, so it is read
 * line by line too. Anything else, a document that was reformatted, is read as one value.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "lib/conv.h"
#include "lib/json_get.h"
#include "lib/record.h"
#include "lib/syscalls.h"

#define MAX_LINE (64u << 20) /* a longer line is none of ours */

static const char list_key[] = "\"processes\":[";
static const char line_start[] = "{\"schema\":";

struct conv_reader {
	FILE *f;
	struct json_tokener *tok;
	char *line;
	size_t cap;
	bool pending; /* line is to be looked at again */
	size_t len;
	bool in_list;		   /* inside a document's list of processes */
	struct json_object *value; /* the value being handed out */
	struct json_object *list;  /* its processes, when they came with it */
	size_t next;		   /* of list */
	uint64_t line_nr;	   /* of line, from 1 */
	uint64_t value_nr;	   /* of the line on which value began */
	uint64_t skipped, first_skipped;
	conv_other *other;
	void *ctx;
	int err;
};

struct conv_reader *conv_reader_new(FILE *f)
{
	struct conv_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->f = f;
	r->tok = json_tokener_new();
	if (!r->tok) {
		free(r);
		return NULL;
	}
	return r;
}

void conv_reader_free(struct conv_reader *r)
{
	if (!r)
		return;
	json_object_put(r->value);
	json_tokener_free(r->tok);
	free(r->line);
	free(r);
}

uint64_t conv_skipped(const struct conv_reader *r)
{
	return r->skipped;
}

uint64_t conv_first_skipped(const struct conv_reader *r)
{
	return r->first_skipped;
}

uint64_t conv_line(const struct conv_reader *r)
{
	return r->value_nr;
}

void conv_read_others(struct conv_reader *r, conv_other *other, void *ctx)
{
	r->other = other;
	r->ctx = ctx;
}

int conv_read_error(const struct conv_reader *r)
{
	return r->err;
}

/* The next line without its end; false at the end of the input. */
static bool get_line(struct conv_reader *r)
{
	ssize_t n;

	if (r->pending) {
		r->pending = false;
		return true;
	}
	n = getline(&r->line, &r->cap, r->f);
	if (n < 0) {
		r->err = ferror(r->f) ? errno : 0;
		return false;
	}
	r->line_nr++;
	while (n && (r->line[n - 1] == '\n' || r->line[n - 1] == '\r' || r->line[n - 1] == ' '))
		n--;
	r->line[n] = '\0';
	r->len = (size_t)n;
	return true;
}

static bool starts_record(const struct conv_reader *r)
{
	return !strncmp(r->line, line_start, sizeof(line_start) - 1);
}

static bool ends_with(const struct conv_reader *r, const char *end)
{
	size_t n = strlen(end);

	return r->len >= n && !memcmp(r->line + r->len - n, end, n);
}

/* Parse r->line; a value that goes on for more lines is fetched whole. NULL: not ours. */
static struct json_object *parse(struct conv_reader *r)
{
	struct json_object *o;
	enum json_tokener_error err;
	size_t total = r->len;

	json_tokener_reset(r->tok);
	o = json_tokener_parse_ex(r->tok, r->line, (int)r->len);
	while ((err = json_tokener_get_error(r->tok)) == json_tokener_continue) {
		if (!get_line(r))
			return NULL;
		total += r->len;
		/* A record starts: what came before was cut short. */
		if (starts_record(r)) {
			r->pending = true;
			return NULL;
		}
		if (total > MAX_LINE * 16ul || memchr(r->line, '\0', r->len))
			return NULL;
		o = json_tokener_parse_ex(r->tok, r->line, (int)r->len);
	}
	if (err != json_tokener_success)
		return NULL;
	return o;
}

static bool is_ours(struct json_object *o)
{
	struct json_object *schema;

	return json_object_is_type(o, json_type_object) &&
	       json_object_object_get_ex(o, "schema", &schema) &&
	       json_object_is_type(schema, json_type_string) &&
	       !strcmp(json_object_get_string(schema), RTS_SCHEMA);
}

/* A line of a document's list loses its comma, or the brackets that end the document. */
static void trim_list_line(struct conv_reader *r)
{
	if (ends_with(r, "]}")) {
		/* "}]}" ends the list; a process by itself ends in "}" alone, or "}}". */
		r->len -= 2;
		r->in_list = false;
	} else if (ends_with(r, ",")) {
		r->len--;
	}
	r->line[r->len] = '\0';
}

static void skip(struct conv_reader *r)
{
	if (!r->skipped++)
		r->first_skipped = r->value_nr;
}

/* What is no record, for the caller; true: it is the caller's, or the caller wants no more. */
static bool take_other(struct conv_reader *r)
{
	int ret = r->value && r->other ? r->other(r->ctx, r->value, r->value_nr) : 0;

	if (ret < 0)
		r->err = -ret;
	return ret;
}

/* The next value of ours into r->value; false at the end of the input. */
static bool next_value(struct conv_reader *r)
{
	while (!r->err && get_line(r)) {
		bool opens = ends_with(r, list_key);

		r->value_nr = r->line_nr;
		if (r->in_list)
			trim_list_line(r);
		if (!r->len)
			continue;
		if (r->len > MAX_LINE || memchr(r->line, '\0', r->len) ||
		    r->line[strspn(r->line, " \t")] != '{') {
			skip(r);
			continue;
		}
		if (opens) {
			/* getline() leaves room for the newline only. */
			if (r->cap < r->len + 3) {
				char *bigger = realloc(r->line, r->len + 3);

				if (!bigger)
					return false;
				r->line = bigger;
				r->cap = r->len + 3;
			}
			memcpy(r->line + r->len, "]}", 3);
			r->len += 2;
			r->in_list = true;
		}
		r->value = parse(r);
		if (r->value && is_ours(r->value))
			return true;
		if (!take_other(r))
			skip(r);
		json_object_put(r->value);
		r->value = NULL;
	}
	return false;
}

/* Room for n elements of size; false: no memory. */
static bool room(void **p, size_t *cap, size_t n, size_t size)
{
	void *bigger;

	if (n <= *cap)
		return true;
	bigger = realloc(*p, n * size);
	if (!bigger)
		return false;
	*p = bigger;
	*cap = n;
	return true;
}

/* One walk over the row's keys instead of a search for each. */
static void fill_row(struct json_object *o, struct conv_row *w)
{
	*w = (struct conv_row){.name = "?", .abi = "", .category = "other"};
	json_object_object_foreach(o, key, v)
	{
		if (!strcmp(key, "name"))
			w->name = json_object_get_string(v);
		else if (!strcmp(key, "nr"))
			w->nr = (uint32_t)json_as_u64(v);
		else if (!strcmp(key, "abi"))
			w->abi = json_object_get_string(v);
		else if (!strcmp(key, "category"))
			w->category = json_object_get_string(v);
		else if (!strcmp(key, "count"))
			w->count = json_as_u64(v);
		else if (!strcmp(key, "errors"))
			w->errors = json_as_u64(v);
		else if (!strcmp(key, "total_ns"))
			w->total_ns = json_as_u64(v);
	}
	w->name = w->name ? w->name : "?";
	w->abi = w->abi ? w->abi : "";
	w->category = w->category ? w->category : "other";
	w->spent_ns = w->total_ns;
}

/* Rows of calls in flight name no category. */
static const char *category_of(const struct conv_row *w)
{
	enum rts_abi abi = RTS_ABI_X86_64;

	while (abi < RTS_ABI_OTHER && strcmp(w->abi, rts_abi_name(abi)))
		abi++;
	return sys_category_name(sys_category(abi, w->nr));
}

/*
 * A call in flight, with its age for a time, goes to its row. Not one that never returns: it will have no
 * row, and what it takes is the process's end.
 */
static void add_in_flight(struct json_object *o, struct conv_rec *rec)
{
	struct conv_row w, *at = rec->rows;

	fill_row(o, &w);
	if (!strcmp(w.name, "exit") || !strcmp(w.name, "exit_group"))
		return;
	w.spent_ns = json_get_u64(o, "age_ns");
	while (at < rec->rows + rec->nr_rows && (at->nr != w.nr || strcmp(at->abi, w.abi)))
		at++;
	if (at < rec->rows + rec->nr_rows) {
		at->spent_ns = rts_add(at->spent_ns, w.spent_ns);
		return;
	}
	w.category = category_of(&w);
	rec->rows[rec->nr_rows++] = w;
}

static bool fill_rows(struct json_object *o, struct conv_rec *rec)
{
	size_t nr_calls, nr_open;
	struct json_object *calls = json_get_array(o, "syscalls", &nr_calls);
	struct json_object *open = json_get_array(o, "in_flight", &nr_open);

	rec->nr_rows = 0;
	if (!room((void **)&rec->rows, &rec->cap_rows, nr_calls + nr_open, sizeof(*rec->rows)))
		return false;
	for (size_t i = 0; i < nr_calls; i++) {
		struct json_object *row = json_object_array_get_idx(calls, i);

		if (json_object_is_type(row, json_type_object))
			fill_row(row, &rec->rows[rec->nr_rows++]);
	}
	for (size_t i = 0; i < nr_open; i++) {
		struct json_object *call = json_object_array_get_idx(open, i);

		if (json_object_is_type(call, json_type_object))
			add_in_flight(call, rec);
	}
	return true;
}

static bool fill_counters(struct json_object *o, struct conv_rec *rec)
{
	struct json_object *counters;

	rec->nr_counters = 0;
	if (!json_object_object_get_ex(o, "counters", &counters) ||
	    !json_object_is_type(counters, json_type_object))
		return true;
	if (!room((void **)&rec->counters, &rec->cap_counters,
		  (size_t)json_object_object_length(counters), sizeof(*rec->counters)))
		return false;
	json_object_object_foreach(counters, key, v)
	{
		rec->counters[rec->nr_counters++] = (struct conv_counter){key, json_as_u64(v)};
	}
	return true;
}

static const char *name_of(struct json_object *o)
{
	const char *name = json_get_str(o, "comm"), *slash;
	struct json_object *argv;

	if (name && name[0])
		return name;
	if (!json_object_object_get_ex(o, "argv", &argv) ||
	    !json_object_is_type(argv, json_type_array) || !json_object_array_length(argv))
		return "?";
	name = json_object_get_string(json_object_array_get_idx(argv, 0));
	slash = name ? strrchr(name, '/') : NULL;
	return slash && slash[1] ? slash + 1 : name ? name : "?";
}

static bool fill(struct json_object *o, struct conv_rec *rec)
{
	struct json_object *final;
	const char *scope = json_get_str(o, "scope");

	rec->obj = o;
	rec->tree = scope && !strcmp(scope, "tree");
	rec->reason = json_get_str(o, "reason");
	rec->reason = rec->reason ? rec->reason : "";
	rec->final = json_object_object_get_ex(o, "final", &final) &&
		     json_object_get_boolean(final);
	rec->pid = (int64_t)json_get_u64(o, "pid");
	rec->start_ns = json_get_u64(o, "start_ns");
	rec->time_ns = json_get_u64(o, "time_ns");
	rec->name = name_of(o);
	return fill_rows(o, rec) && fill_counters(o, rec);
}

bool conv_read(struct conv_reader *r, struct conv_rec *rec)
{
	for (;;) {
		struct json_object *o;

		if (r->list && r->next < json_object_array_length(r->list)) {
			o = json_object_array_get_idx(r->list, r->next++);
			if (!is_ours(o)) {
				skip(r);
				continue;
			}
		} else {
			r->list = NULL;
			json_object_put(r->value);
			r->value = NULL;
			if (!next_value(r))
				return false;
			o = r->value;
			r->next = 0;
			if (!json_object_object_get_ex(o, "processes", &r->list) ||
			    !json_object_is_type(r->list, json_type_array))
				r->list = NULL;
		}
		if (!fill(o, rec)) {
			r->err = ENOMEM;
			return false;
		}
		return true;
	}
}

void conv_rec_free(struct conv_rec *rec)
{
	free(rec->rows);
	free(rec->counters);
}
