/* SPDX-License-Identifier: MIT */
/* Between replay.c, which reads lines, and replay_parts.c, which knows what is in one. */
#ifndef LIB_REPLAY_PARTS_H
#define LIB_REPLAY_PARTS_H

#include "lib/replay.h"

struct json_object;

/* The first line, and that of the instant; NULL: none was read. */
struct json_object *replay_head_json(void);
struct json_object *replay_now_json(void);

/*
 * Without replay_open(): what others have read is the first line and that of the instant, until
 * replay_close(), or until others are lent.
 */
void replay_lend(struct json_object *head, struct json_object *now);

/* Sets the line, with the file's name and the number of the instant's line before it, and returns err. */
__attribute__((format(printf, 3, 4))) int replay_fail(struct dist_why *why, int err,
						      const char *fmt, ...);

/* A metric as fmt_dist_json_whole() writes it. */
int replay_metric(struct json_object *o, struct dist_metric *to, struct dist_why *why);

#endif /* LIB_REPLAY_PARTS_H */
