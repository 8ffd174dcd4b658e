/* SPDX-License-Identifier: GPL-2.0 */
/* The pieces of statpage export: collecting, serving, writing a file. One thread runs all of them. */
#ifndef TOOLS_EXPORT_H
#define TOOLS_EXPORT_H

#include <stddef.h>
#include <stdint.h>

#include "lib/fmt_openmetrics.h"

struct export_threads;

struct export_opts {
	struct om_buckets buckets;
	struct export_threads *threads; /* NULL: none were asked for */
	const char *from; /* a copy of kstats' files; NULL: what this machine has now */
	bool replay;	  /* the instant of a recording that was read */
};

/*
 * Try all parts, with a message for each that cannot be read. Returns how many can, or -1 where what the
 * user named cannot.
 */
int export_check(const struct export_opts *o);

/* All there is to tell, now; for the caller to free. NULL: no memory. */
char *export_text(const struct export_opts *o, enum om_dialect dialect, size_t *len);

/* Listen at [ADDR:]PORT until a signal comes. Returns 0, CMD_FAILED or CMD_USAGE after a message. */
int export_serve(const char *where, const struct export_opts *o);

/* Write DIR/statpage.prom, once or each interval until a signal comes. Returns as export_serve(). */
int export_textfile(const char *dir, uint64_t interval_ns, const struct export_opts *o);

/*
 * Time of threads, by the name of their process. Sums grow from one sample to the next, so that the time of
 * threads that have ended stays in them; what a thread did between its last sample and its end is not seen.
 * patterns (globs) ends with NULL and is borrowed. NULL: no memory.
 */
struct export_threads *export_threads_new(const char *const *patterns);
void export_threads_free(struct export_threads *t);

/* Take a sample. Returns 0, or -errno with why set. What is known then is *p, *nr of them, until the next. */
int export_threads_read(struct export_threads *t, const struct om_process **p, unsigned int *nr,
			struct dist_why *why);

/* The engines in use: "proc", or several with commas. */
const char *export_threads_engines(const struct export_threads *t);

#endif /* TOOLS_EXPORT_H */
