/* SPDX-License-Identifier: MIT */
/* What is at a key of a JSON object; what is absent, or of another type, is NULL, 0 or false. */
#ifndef STATPAGE_JSON_GET_H
#define STATPAGE_JSON_GET_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline struct json_object *json_get(struct json_object *o, const char *key,
					   enum json_type type)
{
	struct json_object *v;

	return json_object_object_get_ex(o, key, &v) && json_object_is_type(v, type) ? v : NULL;
}

static inline const char *json_get_str(struct json_object *o, const char *key)
{
	return json_object_get_string(json_get(o, key, json_type_string));
}

static inline uint64_t json_as_u64(struct json_object *v)
{
	return json_object_is_type(v, json_type_int) ? json_object_get_uint64(v) : 0;
}

static inline uint64_t json_get_u64(struct json_object *o, const char *key)
{
	return json_as_u64(json_get(o, key, json_type_int));
}

/* Whether there is a number, which goes to *to. */
static inline bool json_have_u64(struct json_object *o, const char *key, uint64_t *to)
{
	struct json_object *v = json_get(o, key, json_type_int);

	*to = json_as_u64(v);
	return v;
}

static inline bool json_get_bool(struct json_object *o, const char *key)
{
	return json_object_get_boolean(json_get(o, key, json_type_boolean));
}

/* The array of this name and its length; NULL and 0 when there is none. */
static inline struct json_object *json_get_array(struct json_object *o, const char *key, size_t *n)
{
	struct json_object *list = json_get(o, key, json_type_array);

	*n = list ? json_object_array_length(list) : 0;
	return list;
}

#endif /* STATPAGE_JSON_GET_H */
