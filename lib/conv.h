/* SPDX-License-Identifier: MIT */
/*
 * From records on paper (jsonl, or the document of `statpage run -f json`) to the formats of other
 * tools. conv_read.c parses, conv_life.c turns cumulative records into what happened between two of
 * them, fmt_<name>.c writes. Memory does not grow with the input, but for the lives that are open.
 * Nothing here is thread-safe.
 */
#ifndef STATPAGE_CONV_H
#define STATPAGE_CONV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json_object;

/*
 * What converters need of a row of `syscalls`. Strings live as long as the record. spent_ns is total_ns and
 * the time that calls in flight have taken so far: a sleep of an hour is in every interval of it, not in
 * the one in which it returns.
 */
struct conv_row {
	const char *name, *abi, *category;
	uint32_t nr;
	uint64_t count, errors, total_ns, spent_ns;
};

struct conv_counter {
	const char *name;
	uint64_t value;
};

struct conv_rec {
	struct json_object *obj; /* all of it */
	const char *name;	 /* of the process: comm, else the last part of argv[0] */
	const char *reason;
	bool tree, final;
	int64_t pid;
	uint64_t start_ns, time_ns;
	struct conv_row *rows;
	size_t nr_rows, cap_rows;
	struct conv_counter *counters;
	size_t nr_counters, cap_counters;
};

/* ---- conv_read.c ---- */

struct conv_reader;

/* Read from f, which the caller closes after conv_reader_free(). NULL: no memory. */
struct conv_reader *conv_reader_new(FILE *f);
/* The next record, valid until the next call; false at the end of the input. */
bool conv_read(struct conv_reader *r, struct conv_rec *rec);
/* Lines that were no record of ours, cut short or foreign; errno of a failed read, or 0. */
uint64_t conv_skipped(const struct conv_reader *r);
/* The first of them, and the line on which the record handed out began, from 1. */
uint64_t conv_first_skipped(const struct conv_reader *r);
uint64_t conv_line(const struct conv_reader *r);
/*
 * Objects that are no records go to other: 1, it is the caller's; 0, it is skipped; -errno, reading ends
 * and conv_read_error() tells it.
 */
typedef int conv_other(void *ctx, struct json_object *o, uint64_t line);
void conv_read_others(struct conv_reader *r, conv_other *other, void *ctx);
int conv_read_error(const struct conv_reader *r);
void conv_reader_free(struct conv_reader *r);
void conv_rec_free(struct conv_rec *rec);

/* ---- conv_life.c ---- */

/* What one life of a process did between two of its records. */
struct conv_delta {
	const struct conv_rec *rec;
	uint64_t life;	  /* number of the life, from 0 */
	bool first, last; /* of the life's records */
	uint64_t from_ns, to_ns;
	const struct conv_row *rows; /* with something in them */
	size_t nr_rows;
};

struct conv_lives;

struct conv_lives *conv_lives_new(void);
/* 0 or -ENOMEM. d is valid until the next call. */
int conv_lives_delta(struct conv_lives *l, const struct conv_rec *rec, struct conv_delta *d);
/* Lives that were given up because too many were open: their next record counts from zero. */
uint64_t conv_lives_evicted(const struct conv_lives *l);
void conv_lives_free(struct conv_lives *l);

/*
 * Lay a delta's rows out in its interval one after the other, calling put for each piece. Threads make
 * more time than the interval has: what does not fit goes to the next lane, so pieces never overlap
 * on a lane and their times add up to the rows' exactly. Returns the time that found no place: the
 * interval is empty, or more than CONV_MAX_LANES threads would have been needed.
 */
#define CONV_MAX_LANES 4096

typedef void conv_put(void *ctx, const struct conv_row *row, unsigned int lane, uint64_t from_ns,
		      uint64_t to_ns);
uint64_t conv_lay_out(const struct conv_delta *d, conv_put *put, void *ctx);

/* ---- fmt_<name>.c ---- */

struct converter {
	const char *name;
	bool tree_too; /* wants records of trees beside those of processes */
	/* Each returns 0 or -errno; write errors are found by the caller, by ferror(). */
	int (*begin)(struct converter *c, FILE *out);
	int (*delta)(struct converter *c, FILE *out, const struct conv_delta *d);
	int (*end)(struct converter *c, FILE *out);
	void *state;	    /* the converter's own; end frees it */
	uint64_t misfit_ns; /* times that conv_lay_out() found no place for */
};

extern struct converter conv_folded, conv_speedscope, conv_perfetto, conv_csv;

/* conv_text.c: s as a JSON string with its quotes. */
void conv_put_json(FILE *out, const char *s);

#endif /* STATPAGE_CONV_H */
