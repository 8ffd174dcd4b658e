/* SPDX-License-Identifier: MIT */
/* Reports of `statpage top` as JSON, as text, and in the pieces that a screen is drawn from. Pure. */
#ifndef LIB_FMT_TOP_H
#define LIB_FMT_TOP_H

#include <stdbool.h>
#include <stdio.h>

#include "lib/top.h"

/* One object a line; docs/top.md has its keys. engine: those of thread times, in use. */
void fmt_top_json(FILE *f, const struct top_report *r, const struct thread_engine *const *engine);

/* One of its threads for a recording, which has `epoch` besides and no `interval`; no newline. */
void fmt_top_sample_json(FILE *f, const struct thread_sample *s);

/* The key of a number of a thread, and any bytes as a JSON string. */
const char *fmt_top_field(enum thread_field field);
void fmt_top_string(FILE *f, const char *s);

/* Tables of threads, in their order in the report, CPUs and distributions. */
void fmt_top_text(FILE *f, const struct top_report *r, const struct thread_engine *const *engine);

/* Columns of the table of threads, in the order they stand in. */
enum top_column {
	TOP_PID,
	TOP_TID,
	TOP_STATE,
	TOP_CPU,
	TOP_ONCPU,
	TOP_RUNQ,
	TOP_SLEEP,
	TOP_DSLEEP,
	TOP_IOWAIT,
	TOP_OFF,
	TOP_BAR,
	TOP_BLOCK,
	TOP_PREEMPT,
	TOP_MIGRATE,
	TOP_MIN_FLT,
	TOP_MAJ_FLT,
	TOP_ENGINE,
	TOP_COMM,
	TOP_NR_COLUMNS
};

struct top_column_text {
	const char *title;
	const char *help;
	unsigned int width; /* of titles and cells */
	bool left;	    /* aligned so */
};

extern const struct top_column_text top_columns[TOP_NR_COLUMNS];

/* Width of each column, 0: it is left out. A blank stands between two. */
struct top_layout {
	unsigned int width[TOP_NR_COLUMNS];
	unsigned int left_out; /* columns for which there was no room */
};

/* Columns that hold something in this report, as many as there is room for. */
void fmt_top_layout(struct top_layout *l, const struct top_report *r, bool one_process,
		    unsigned int columns);

/* A cell that is neither TOP_BAR nor TOP_COMM; "-" where it is not known. Returns buf. */
const char *fmt_top_cell(char buf[24], enum top_column c, const struct top_thread *t);

/* A name to show in so many columns of a terminal: cut with a mark, without what would command it. Returns its columns. */
unsigned int fmt_top_name(char *buf, size_t size, const char *name, unsigned int columns,
			  bool utf8);

/* Order of threads by a column: what is more comes first, of names and ids what is less. */
void fmt_top_sort(struct top_thread *t, size_t nr, enum top_column c, bool reverse);

/* Shares of a whole in percent: "12.3", " 100". */
const char *fmt_top_share(char buf[24], uint64_t part, uint64_t all);

/* A number in 4 columns: 9999, 12k, 3.4M. */
const char *fmt_top_count(char buf[24], uint64_t n);

/*
 * A bar of width cells, cell[i] the index of the part that it belongs to. Parts take whole cells, and
 * all of them together take width.
 */
void fmt_top_bar(unsigned char *cell, unsigned int width, const uint64_t *part, unsigned int nr);

/* The parts of a thread's bar: its buckets, then what is in none. */
#define TOP_NR_PARTS (THREAD_NR_BUCKETS + 1)
bool fmt_top_parts(uint64_t part[TOP_NR_PARTS], const struct top_thread *t);

/* Heights 0 to 8 of the histogram over an axis of width cells that has low at its left and high at its right, both > 0, by the logarithm. */
void fmt_top_spark(unsigned char *height, unsigned int width, const struct hist *h, uint64_t low,
		   uint64_t high);

#endif /* LIB_FMT_TOP_H */
