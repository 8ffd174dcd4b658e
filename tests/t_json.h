/* SPDX-License-Identifier: GPL-2.0 */
/*
 * As much of JSON as tests need: is a text valid, and what is at a path of it. Paths: "vcpu.exits",
 * "syscalls[name=read].count", "argv[1]". No allocation; strings are compared as they are written.
 */
#ifndef T_JSON_H
#define T_JSON_H

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Each skip function returns the end of what it stands for, or NULL when the text is not that. */
static const char *json_value(const char *p, int depth);

static inline const char *json_blank(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

static inline const char *json_string(const char *p)
{
	if (*p++ != '"')
		return NULL;
	for (; *p != '"'; p++) {
		if ((unsigned char)*p < 0x20)
			return NULL;
		if (*p == '\\' && !*++p)
			return NULL;
	}
	return p + 1;
}

static inline const char *json_number(const char *p)
{
	size_t n;

	p += *p == '-';
	n = strspn(p, "0123456789");
	if (!n || (*p == '0' && n > 1))
		return NULL;
	p += n;
	if (*p == '.') {
		n = strspn(p + 1, "0123456789");
		return n ? p + 1 + n : NULL;
	}
	return p;
}

static inline const char *json_list(const char *p, char end, int depth)
{
	p = json_blank(p + 1);
	if (*p == end)
		return p + 1;
	for (;; p = json_blank(p + 1)) {
		if (end == '}') {
			p = json_string(p);
			if (!p || *(p = json_blank(p)) != ':')
				return NULL;
			p++;
		}
		p = json_value(json_blank(p), depth - 1);
		if (!p)
			return NULL;
		p = json_blank(p);
		if (*p == end)
			return p + 1;
		if (*p != ',')
			return NULL;
	}
}

static const char *json_value(const char *p, int depth)
{
	static const char *const words[] = {"true", "false", "null"};

	if (!depth)
		return NULL;
	if (*p == '{')
		return json_list(p, '}', depth);
	if (*p == '[')
		return json_list(p, ']', depth);
	if (*p == '"')
		return json_string(p);
	for (int i = 0; i < 3; i++)
		if (!strncmp(p, words[i], strlen(words[i])))
			return p + strlen(words[i]);
	return json_number(p);
}

/* The text is one valid value and nothing else. */
static inline bool json_ok(const char *text)
{
	const char *end = json_value(json_blank(text), 64);

	return end && !*json_blank(end);
}

/* The value of a key (n bytes) of the object at p. */
static inline const char *json_member(const char *p, const char *key, size_t n)
{
	if (!p || *p != '{')
		return NULL;
	for (p = json_blank(p + 1); *p == '"'; p = json_blank(p + 1)) {
		const char *end = json_string(p), *value = json_blank(json_blank(end) + 1);

		if ((size_t)(end - p) == n + 2 && !strncmp(p + 1, key, n))
			return value;
		p = json_blank(json_value(value, 64));
		if (*p != ',')
			return NULL;
	}
	return NULL;
}

static inline bool json_same(const char *value, const char *text, size_t n)
{
	if (*value == '"')
		return !strncmp(value + 1, text, n) && value[n + 1] == '"';
	return !strncmp(value, text, n) && !isalnum((unsigned char)value[n]);
}

/* The element of the array at p that "[3]" or "[key=text]" names; n bytes between the brackets. */
static inline const char *json_element(const char *p, const char *which, size_t n)
{
	const char *eq = memchr(which, '=', n);
	long index = eq ? -1 : atol(which);

	if (!p || *p != '[')
		return NULL;
	p = json_blank(p + 1);
	for (long i = 0; *p != ']'; i++) {
		const char *v = eq ? json_member(p, which, (size_t)(eq - which)) : NULL;

		if (i == index || (v && json_same(v, eq + 1, n - (size_t)(eq + 1 - which))))
			return p;
		p = json_blank(json_value(p, 64));
		if (*p == ',')
			p = json_blank(p + 1);
	}
	return NULL;
}

/* What is at a path of a valid text, or NULL; NULL has nothing in it. */
static inline const char *json_at(const char *text, const char *path)
{
	const char *p = text ? json_blank(text) : NULL;

	while (p && *path) {
		size_t n = strcspn(path, *path == '[' ? "]" : ".[");

		p = *path == '[' ? json_element(p, path + 1, n - 1) : json_member(p, path, n);
		path += n + (path[n] == ']');
		path += *path == '.';
	}
	return p;
}

/* The number at a path, or JSON_NONE. */
#define JSON_NONE (UINT64_MAX - 1)
static inline uint64_t json_u64(const char *text, const char *path)
{
	const char *p = json_at(text, path);

	return p && isdigit((unsigned char)*p) ? strtoull(p, NULL, 10) : JSON_NONE;
}

static inline double json_double(const char *text, const char *path)
{
	const char *p = json_at(text, path);

	return p ? strtod(p, NULL) : -1;
}

/* A string, number or word at a path is this. */
static inline bool json_is(const char *text, const char *path, const char *expect)
{
	const char *p = json_at(text, path);

	return p && json_same(p, expect, strlen(expect));
}

#endif /* T_JSON_H */
