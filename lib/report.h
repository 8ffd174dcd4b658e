/* SPDX-License-Identifier: MIT */
/*
 * What a report shows of an input, as plain data: records of runs (schema statpage-runtime/1) and
 * distributions (`statpage show --json`), in any mix, or a recording. report_read.c, report_dist.c and
 * report_recorded.c fill it, report_life.c holds lives, report_compare.c puts two side by side,
 * fmt_report*.c write the page. Memory is bounded by the REPORT_MAX_* below and by the longest line,
 * whatever the size of the input; what they leave out is counted.
 *
 * A number that an input does not have has a has_* that is false. Nothing here is thread-safe.
 */
#ifndef STATPAGE_REPORT_H
#define STATPAGE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define REPORT_MAX_LIVES   4096	      /* remembered; the least of those that ended make room */
#define REPORT_MAX_LANES   64	      /* of them on the page, with all that is known of each */
#define REPORT_MAX_POINTS  128	      /* intervals of a life; more are put together by two */
#define REPORT_MAX_CALLS   1024	      /* rows of a table */
#define REPORT_MAX_LISTED  32	      /* phases, calls in flight */
#define REPORT_MAX_ENGINES 8	      /* that differ */
#define REPORT_MAX_METRICS 4096	      /* with one for each CPU */
#define REPORT_MAX_SLOTS   (1u << 20) /* of all metrics together */

struct json_object;
struct top;

/* ---- runs ---- */

enum { REPORT_P50, REPORT_P90, REPORT_P99, REPORT_P999, REPORT_NR_P };

/* A system call: of a process, of a run, or of all runs of an input. */
struct report_call {
	char name[32], abi[8], category[16];
	char errnos[64]; /* "ENOENT 27, EINTR 2"; "" */
	uint32_t nr;
	uint64_t count, errors, total_ns;
	bool has_range, has_p, has_split;
	uint64_t min_ns, max_ns;
	uint64_t p_ns[REPORT_NR_P];
	uint64_t on_cpu_ns, waiting_ns;
};

struct report_calls {
	struct report_call *row;
	size_t nr, cap;
	uint64_t left_out; /* rows beyond REPORT_MAX_CALLS */
};

/* Where time of a life went: what records of runs tell, and the buckets of threads in recordings. */
enum {
	REPORT_CPU,	/* running, all threads */
	REPORT_WAITING, /* in calls, not running; in calls that have not returned */
	REPORT_UNSPLIT, /* in calls of which it is not known */
	REPORT_RUNQ,	/* from here on as in threads.h */
	REPORT_IOWAIT,
	REPORT_DSLEEP,
	REPORT_NR_BUSY, /* what follows says of a life only that it had nothing to do */
	REPORT_SLEEP = REPORT_NR_BUSY,
	REPORT_OFF, /* in no bucket that is known */
	REPORT_NR_KINDS
};

/* What happened between two records of a life. */
struct report_point {
	uint64_t from_ns, to_ns;
	unsigned int known; /* bits: ns[i] was measured */
	uint64_t ns[REPORT_NR_KINDS];
};

struct report_phase {
	char name[32];
	uint64_t start_ns, wall_ns, user_ns, system_ns;
	bool has_cpu, has_thread;
	uint64_t thread_ns[5]; /* by report_bucket[] */
};
extern const char *const report_bucket[5]; /* oncpu, runq, sleep, dsleep, iowait */

struct report_open {
	int64_t tid;
	char name[32];
	uint64_t age_ns;
};

enum {
	REPORT_NO_INSTANCE,
	REPORT_RECURSION,
	REPORT_TABLE_FULL,
	REPORT_CLOCK_BACK,
	REPORT_OUT_OF_RANGE,
	REPORT_RECORDS_DROPPED,
	REPORT_UNLISTED,
	REPORT_VCPU_LOST,
	REPORT_NR_CAUSES
};
extern const char *const report_cause[REPORT_NR_CAUSES]; /* for people */

struct report_lost {
	bool has;	 /* the record tells */
	bool incomplete; /* "complete": false */
	uint64_t attempted, recorded;
	uint64_t cause[REPORT_NR_CAUSES];
};

#define REPORT_NR_COUNTS 5
extern const char *const report_count_key[REPORT_NR_COUNTS];
extern const char *const report_count_name[REPORT_NR_COUNTS]; /* for people */

/* One life of a process or, of a recording, of a thread; or a whole run of `statpage run` (tree). */
struct report_life {
	struct report_life *next; /* of the hash chain */
	bool tree, final, ended;  /* ended: no record of this life follows */
	bool has_cpu, has_exit, has_threads;
	bool drawn; /* it is one of REPORT_MAX_LANES */
	int64_t pid, ppid;
	int64_t tid;	 /* 0: a process */
	uint64_t key;	 /* with pid and tid: which life; start_ns, or of a recording none */
	uint64_t serial; /* of a thread that of its process; 0: that is not known any more */
	uint64_t start_ns, time_ns, realtime_ns;
	uint64_t records;
	char comm[64], reason[24];
	char args[512]; /* joined by blanks */
	int exit_code, exit_signal;
	uint64_t user_ns, system_ns, threads, processes;
	unsigned int known;		  /* bits: ns[i] was measured */
	uint64_t ns[REPORT_NR_KINDS];	  /* so far; never fall */
	unsigned int counts_known;	  /* bits: count[i] was measured */
	uint64_t count[REPORT_NR_COUNTS]; /* of a recording, by report_count_key[] */
	struct report_point *point;
	size_t nr_points, cap_points;
	struct report_calls calls;
	struct report_phase *phase;
	size_t nr_phases;
	struct report_open *open;
	size_t nr_open;
	uint64_t open_left_out;
	struct report_lost lost;
};

struct report_engine {
	char name[32], split[200], split_absent[400], cannot_see[800];
	bool has_cost;
	uint64_t cost_ns;
};

/* Lives that made room for others. */
struct report_others {
	uint64_t nr, unfinished;
	uint64_t ns[REPORT_NR_KINDS];
	struct report_lost lost;
};

/* ---- distributions ---- */

enum { REPORT_MIN, REPORT_Q50, REPORT_Q90, REPORT_Q99, REPORT_Q999, REPORT_MAX, REPORT_NR_Q };
extern const char *const report_q_key[REPORT_NR_Q], *const report_q_name[REPORT_NR_Q];

/* A value that is known to lie in low .. high. */
struct report_range {
	uint64_t low, high;
};

struct report_slot {
	uint64_t low, high, count;
};

struct report_metric {
	char name[64];
	int64_t cpu; /* -1: all of them */
	char state[16], origin[512], causes[160], engine[32], cannot_see[800];
	bool complete, has_mean;
	uint64_t attempted, recorded, missed, filtered, stopped, inside, unpaired;
	uint64_t count, mean;
	uint64_t readings; /* lines that told of it; the last one stands */
	bool has_q;
	uint64_t q_value[REPORT_NR_Q];
	struct report_range q[REPORT_NR_Q];
	unsigned int bits;
	struct report_slot *slot;
	size_t nr;
};

/* ---- an input ---- */

struct report_input {
	const char *name; /* borrowed */
	uint64_t records, readings;
	uint64_t skipped, first_skipped; /* lines of neither kind */
	struct report_life *
		*life; /* after report_read(): trees, processes, threads, each by start */
	size_t nr_lives, cap_lives;
	size_t nr_trees, nr_processes; /* of them */
	uint64_t nr_serials;
	struct report_life *hash[1024];
	struct report_others others;
	struct report_engine engine[REPORT_MAX_ENGINES];
	size_t nr_engines;
	/* The runs together: the tree's, or the sum of trees, or else of processes. */
	struct report_life whole;
	uint64_t whole_of; /* how many were summed */
	struct report_metric **metric;
	size_t nr_metrics, cap_metrics, nr_slots;
	uint64_t metrics_left_out;
	/* Of a recording: its last instant so far, how many, and whether its end was there. */
	bool recording, recorded_whole;
	struct json_object *recorded_head, *recorded;
	uint64_t recorded_line, instants;
	struct top *top;
	char no_distributions[200]; /* why; "" */
	char why[300];		    /* the error, one line without the input's name */
};

/*
 * Read all of f. 0, or -errno with `why` set: not one of our formats, a newer schema, a number that
 * contradicts another, a failed read. The caller calls report_free() in any case.
 */
int report_read(struct report_input *in, const char *name, FILE *f);
void report_free(struct report_input *in);

/* report_dist.c: one line of `show --json`. 1: taken; 0: it is none; -errno with in->why set. */
int report_take_metric(struct report_input *in, struct json_object *o, uint64_t line);
void report_metrics_free(struct report_input *in);
bool report_is_metric(struct json_object *o);

/*
 * report_recorded.c: a line of `statpage record`, returns as report_take_metric(); and, after all of them, what
 * the last instant tells, 0 or -errno with in->why set.
 */
int report_take_recorded(struct report_input *in, struct json_object *o, uint64_t line);
int report_end_recorded(struct report_input *in);
void report_recorded_free(struct report_input *in);

/* Sets why and returns -EPROTO. line 0: of no line. */
__attribute__((format(printf, 3, 4))) int report_fail(struct report_input *in, uint64_t line,
						      const char *fmt, ...);

/* ---- report_compare.c: pure ---- */

/* after - before, which lies in least .. most as far as the slots' widths tell. */
struct report_change {
	int moved; /* -1 fell, 1 rose, 0: none that the slots could show */
	int64_t least, most;
	uint64_t bound; /* if none: no change beyond this, up or down */
};

struct report_change report_change(struct report_range before, struct report_range after);

/* Where the exact quantile of a call lies, whose printed one is the end of a slot. */
struct report_range report_call_p(const struct report_call *c, unsigned int p);

/* The same call in another table; NULL: it was not made there. */
const struct report_call *report_same_call(const struct report_calls *t,
					   const struct report_call *c);
const struct report_metric *report_same_metric(const struct report_input *in,
					       const struct report_metric *m);

/* ---- fmt_report.c ---- */

struct report_page {
	const char *version; /* of statpage */
	const struct report_input *in;
	size_t nr;
	bool compare; /* in[0] with in[1] */
};

/* The page. Errors of f are found by the caller, by ferror(). */
void fmt_report(FILE *f, const struct report_page *page);

#endif /* STATPAGE_REPORT_H */
