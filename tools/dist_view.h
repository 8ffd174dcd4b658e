/* SPDX-License-Identifier: GPL-2.0 */
/* What the commands about distributions share. */
#ifndef TOOLS_DIST_VIEW_H
#define TOOLS_DIST_VIEW_H

#include "lib/dist.h"

struct dist_view {
	enum {
		DIST_TEXT,
		DIST_QUANTILES,
		DIST_JSON,
		DIST_PLOT,
		DIST_HEATMAP,
	} as;
	int cpu; /* -1: all */
	/* Of the heat map. */
	uint64_t interval_ns; /* 0, of a recording: each instant */
	unsigned int count;   /* of lines; 0: no limit */
	bool replay;	      /* of a recording, which goes on by the interval */
};

/* The CPU that --cpu names, of so many ids. Returns 0 or CMD_USAGE after a message. */
int dist_view_cpu(const char *text, unsigned int nr_cpus, struct dist_view *view);

/* How to show; two ways at once are wrong use. Returns 0 or CMD_USAGE after a message. */
int dist_view_as(int as, struct dist_view *view);

/* The engines that can be used here, the preferred one first, then NULL; or NULL after a message. */
const struct dist_engine *const *dist_engines(void);

/* The same at any later time; NULL with the reason. */
const struct dist_engine *const *dist_engines_now(struct dist_why *why);

/* The one of that name, or for NULL the preferred one; NULL after a message. */
const struct dist_engine *dist_engine(const char *name);

/* The engine that is not this one, or NULL where that cannot be used. */
const struct dist_engine *dist_engine_other(const struct dist_engine *e);

/* The one that has the metric, or the preferred one, which can say that there is none. */
const struct dist_engine *dist_engine_of(const struct dist_engine *const *engines,
					 const char *metric);

/* Read a metric and print it to stdout. Returns 0 or CMD_FAILED after a message. */
int dist_show(const struct dist_engine *e, const char *name, const struct dist_view *view);

/*
 * Print a line each interval of the samples that came in it, as many as were asked for, or until the
 * recording is over, or stdout cannot be written. Returns 0 or CMD_FAILED after a message.
 */
int dist_heatmap(const struct dist_engine *e, const char *name, const struct dist_view *view);

/*
 * A name of the kernel's symbol table as the engine should get it, in buf: as it is; or with the suffix
 * that the compiler gave the only function of that base name. Returns 0, or CMD_FAILED after a
 * message: there is none (with near names), or there are several (with their addresses).
 */
int dist_symbol(const char *name, char *buf, size_t size);

/* The functions that can be traced and match a glob, NULL-terminated, for the caller to free with
 * dist_names_free(); NULL after a message. */
char **dist_glob(const char *pattern);
void dist_names_free(char **names);

#endif /* TOOLS_DIST_VIEW_H */
