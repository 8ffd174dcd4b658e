// SPDX-License-Identifier: MIT
/* Recordings: lines of JSON, the first of which tells what they are. replay_parts.c reads an instant. */
#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/replay_parts.h"

/* A line, which may be one that has no end. */
struct line {
	char *text;
	size_t cap, len;
	uint64_t nr; /* from 1; 0: there is none */
};

static struct {
	FILE *f;
	char name[256];
	struct replay_head head;
	struct json_object *head_obj, *now;
	struct line line, before; /* before: the one before it, while we go to the end */
	struct line kept[2];	  /* the last ones, once we are there */
	unsigned int next_kept, nr_kept;
	uint64_t left_out_ns; /* from the last of them to the end */
	uint64_t nr_lines;    /* that were read */
	uint64_t nr;	      /* of the line of the instant */
	uint64_t step_ns;     /* where replay_step() is; 0: before the first instant */
	uint64_t instants;
	bool at_end, hold, whole; /* whole: the line that ends a recording was there */
	char cut[400];
} r;

int replay_fail(struct dist_why *why, int err, const char *fmt, ...)
{
	char text[sizeof(why->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* An instant that others have read. */
	if (!r.name[0])
		return dist_fail(why, err, "%s", text);
	if (r.nr)
		return dist_fail(why, err, "%s: line %llu: %.200s", r.name,
				 (unsigned long long)r.nr, text);
	return dist_fail(why, err, "%s: %.250s", r.name, text);
}

static struct json_object *parse(const struct line *l)
{
	struct json_tokener *tok = json_tokener_new();
	struct json_object *o = NULL;

	if (tok && l->len <= INT32_MAX)
		o = json_tokener_parse_ex(tok, l->text, (int)l->len);
	if (o && json_tokener_get_error(tok) != json_tokener_success) {
		json_object_put(o);
		o = NULL;
	}
	json_tokener_free(tok);
	if (json_object_is_type(o, json_type_object))
		return o;
	json_object_put(o);
	return NULL;
}

/* 1: a line with its end; 0: no more, or what there is has no end; -errno. */
static int get_line(struct line *l, struct dist_why *why)
{
	ssize_t n;

	errno = 0;
	n = getline(&l->text, &l->cap, r.f);
	if (n < 0 && !feof(r.f)) {
		r.nr = 0;
		return replay_fail(why, errno ? -errno : -EIO, "%s", strerror(errno ?: EIO));
	}
	l->len = n < 0 ? 0 : (size_t)n;
	l->nr = ++r.nr_lines;
	return l->len && l->text[l->len - 1] == '\n';
}

static int read_head(struct dist_why *why)
{
	static const char start[] = "{\"format\":\"" REPLAY_FORMAT "\"";
	const char *format;
	uint64_t version;
	int c = getc(r.f), ret;

	if (c == EOF && ferror(r.f))
		return replay_fail(why, -errno, "%s", strerror(errno));
	if (c == EOF)
		return replay_fail(why, -EPROTO, "empty, expected a recording of statpage record");
	/* What is no text may have no line's end for a long time. */
	if (c != '{')
		return replay_fail(why, -EPROTO, "not a recording of statpage record");
	ungetc(c, r.f);
	ret = get_line(&r.line, why);
	if (ret < 0)
		return ret;
	if (!ret && r.line.len >= strlen(start) && !memcmp(r.line.text, start, strlen(start)))
		return replay_fail(why, -EPROTO,
				   "cut short in its first line: there is no instant");
	r.head_obj = ret ? parse(&r.line) : NULL;
	format = json_get_str(r.head_obj, "format");
	if (!format || strcmp(format, REPLAY_FORMAT))
		return replay_fail(why, -EPROTO, "not a recording of statpage record");
	version = json_get_u64(r.head_obj, "version");
	if (version != REPLAY_VERSION)
		return replay_fail(why, -EPROTO, "version %llu, this statpage reads %d",
				   (unsigned long long)version, REPLAY_VERSION);
	r.head.interval_ns = json_get_u64(r.head_obj, "interval_ns");
	r.head.nr_cpus = (unsigned int)json_get_u64(r.head_obj, "cpus");
	snprintf(r.head.release, sizeof(r.head.release), "%s",
		 json_get_str(r.head_obj, "release") ?: "");
	if (!r.head.interval_ns || !r.head.nr_cpus)
		return replay_fail(why, -EPROTO, "its first line has no interval_ns or no cpus");
	return 0;
}

int replay_open(const char *file, struct dist_why *why)
{
	bool is_stdin = !strcmp(file, "-");
	int err;

	replay_close();
	snprintf(r.name, sizeof(r.name), "%s", is_stdin ? "standard input" : file);
	r.f = is_stdin ? stdin : fopen(file, "re");
	if (!r.f)
		return replay_fail(why, -errno, "%s", strerror(errno));
	err = read_head(why);
	if (err)
		replay_close();
	return err;
}

void replay_close(void)
{
	if (r.f && r.f != stdin)
		fclose(r.f);
	json_object_put(r.head_obj);
	json_object_put(r.now);
	free(r.line.text);
	free(r.before.text);
	free(r.kept[0].text);
	free(r.kept[1].text);
	memset(&r, 0, sizeof(r));
}

const struct replay_head *replay_head(void)
{
	return &r.head;
}

void replay_lend(struct json_object *head, struct json_object *now)
{
	if (r.head_obj != head) {
		json_object_put(r.head_obj);
		r.head_obj = json_object_get(head);
	}
	json_object_put(r.now);
	r.now = json_object_get(now);
}

struct json_object *replay_head_json(void)
{
	return r.head_obj;
}

struct json_object *replay_now_json(void)
{
	return r.now;
}

/* The line that ends a recording. */
static bool is_end(const struct line *l)
{
	static const char start[] = "{\"end\":";

	return l->len >= strlen(start) && !memcmp(l->text, start, strlen(start));
}

static void note_cut(const struct line *l)
{
	if (r.whole)
		return;
	if (l->len)
		snprintf(
			r.cut, sizeof(r.cut),
			"%s: cut short in line %llu: what follows the last whole instant is left out",
			r.name, (unsigned long long)l->nr);
	else
		snprintf(r.cut, sizeof(r.cut),
			 "%s: has no end: it was cut short, or is still being written", r.name);
}

/* Whether another recording was put behind this one, which may have been cut short. */
static bool is_head(const struct line *l)
{
	static const char start[] = "{\"format\":";

	return l->len >= strlen(start) && !memcmp(l->text, start, strlen(start));
}

/* Into l, the line of an instant. 1; 0: there is none any more; -errno. */
static int next_line(struct line *l, struct dist_why *why)
{
	int ret = r.at_end ? 0 : get_line(l, why);

	if (ret > 0 && is_end(l)) {
		r.whole = true;
		ret = get_line(l, why);
		if (ret >= 0 && l->len && !is_head(l)) {
			r.nr = l->nr;
			return replay_fail(why, -EPROTO, "expected nothing behind the end");
		}
	}
	if (ret >= 0 && is_head(l)) {
		r.nr = l->nr;
		return replay_fail(why, -EPROTO,
				   "another recording begins: expected one in a file");
	}
	if (!ret && !r.at_end)
		note_cut(l);
	r.at_end |= !ret;
	return ret;
}

static int take(const struct line *l, struct dist_why *why)
{
	struct json_object *o = parse(l);

	r.nr = l->nr;
	if (!json_get(o, "time_ns", json_type_int) || !json_get(o, "realtime_ns", json_type_int)) {
		json_object_put(o);
		return replay_fail(why, -EPROTO, "not an instant of a recording");
	}
	if (r.now && json_get_u64(o, "time_ns") < replay_mono_ns()) {
		json_object_put(o);
		return replay_fail(why, -EPROTO, "earlier than the instant before it");
	}
	json_object_put(r.now);
	r.now = o;
	r.instants++;
	return 1;
}

int replay_next(struct dist_why *why)
{
	int ret;

	if (r.hold) {
		r.hold = false;
		return 1;
	}
	if (r.next_kept < r.nr_kept)
		return take(&r.kept[r.next_kept++], why);
	ret = next_line(&r.line, why);
	if (ret > 0)
		return take(&r.line, why);
	if (!ret && !r.instants) {
		r.nr = 0;
		return replay_fail(why, -ENODATA, "there is no whole instant in it");
	}
	return ret;
}

int replay_step(uint64_t interval_ns, struct dist_why *why)
{
	/* Instants are a little late, now more, now less. */
	uint64_t to_ns = r.step_ns ? r.step_ns + interval_ns : 0, slack = r.head.interval_ns / 2;
	bool any = false;
	int ret;

	do {
		ret = replay_next(why);
		any |= ret > 0;
	} while (ret > 0 && interval_ns && replay_mono_ns() + slack < to_ns);
	if (ret < 0 || !any)
		return ret;
	r.step_ns = interval_ns && to_ns ? to_ns : replay_mono_ns();
	return 1;
}

static void swap(struct line *a, struct line *b)
{
	struct line was = *a;

	*a = *b;
	*b = was;
}

static bool has_text(const struct line *l, const char *text)
{
	return memmem(l->text, l->len, text, strlen(text));
}

static uint64_t time_of(const struct line *l)
{
	struct json_object *o = l->nr ? parse(l) : NULL;
	uint64_t ns = json_get_u64(o, "time_ns");

	json_object_put(o);
	return ns;
}

/*
 * Keep the last line that has the text, if there is any, and the one before it; else the last two. Lines are
 * moved, not copied: the oldest one's memory takes the next.
 */
static int keep_last(const char *text, struct dist_why *why)
{
	bool found = false, has, before_is_kept = true;
	uint64_t end_ns;
	int ret;

	while ((ret = next_line(&r.line, why)) > 0) {
		has = has_text(&r.line, text);
		if (found && !has) {
			swap(&r.before, &r.line);
			before_is_kept = false;
			continue;
		}
		found |= has;
		swap(&r.kept[0], before_is_kept ? &r.kept[1] : &r.before);
		swap(&r.kept[1], &r.line);
		before_is_kept = true;
	}
	if (ret < 0)
		return ret;
	end_ns = before_is_kept ? 0 : time_of(&r.before);
	r.left_out_ns = end_ns ? end_ns - time_of(&r.kept[1]) : 0;
	return 0;
}

static int to_last(unsigned int nr, const char *text, struct dist_why *why)
{
	int ret = keep_last(text, why);

	if (ret < 0)
		return ret;
	for (r.nr_kept = 2; r.next_kept < 2 && !r.kept[r.next_kept].nr;)
		r.next_kept++;
	if (nr == 1 && r.next_kept == 0)
		r.next_kept = 1;
	return 0;
}

int replay_to_last(unsigned int nr, struct dist_why *why)
{
	return to_last(nr, "", why);
}

int replay_to_threads(pid_t pid, uint64_t *left_out_ns, struct dist_why *why)
{
	char text[40] = "\"threads\":[{";
	int ret;

	/* As record writes a sample. */
	if (pid)
		snprintf(text, sizeof(text), "{\"pid\":%d,\"tid\":", pid);
	ret = to_last(2, text, why);
	*left_out_ns = r.left_out_ns;
	return ret;
}

void replay_hold(void)
{
	r.hold = true;
}

const char *replay_cut(void)
{
	return r.cut[0] ? r.cut : NULL;
}

uint64_t replay_mono_ns(void)
{
	return json_get_u64(r.now, "time_ns");
}

uint64_t replay_real_ns(void)
{
	return json_get_u64(r.now, "realtime_ns");
}
