/* SPDX-License-Identifier: MIT */
/*
 * The record: what one process (or a whole tree) did until one moment, as plain data.
 *
 * The embedded library and the engines of `statpage run` fill it, lib/fmt_*.c turn it into text. It
 * owns nothing: every pointer belongs to whoever filled the record and has to stay valid until the
 * formatter returns. Strings are NUL-terminated bytes of any kind; formatters escape them.
 *
 * A record is cumulative since start_ns. (pid, start_ns) names one life of a process: exec ends a life
 * with a record of reason `exec` and starts the next with a later start_ns. The last record of a
 * life has reason exec, exit or fork-child-*; only a record of a process that ended has final set.
 *
 * What was not measured is absent: a NULL pointer, a zero count of rows, or a has_* that is false. Keys
 * and units of the JSON form: docs/json.md.
 *
 * All times are nanoseconds of CLOCK_MONOTONIC, but for realtime_ns. All sums saturate
 * (rts_add()): 2^64 - 1 means "at least that".
 */
#ifndef STATPAGE_RECORD_H
#define STATPAGE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RTS_SCHEMA	"statpage-runtime/1"
#define RTS_NR_COUNTERS 64 /* slots of a counters page */
#define RTS_NAME_MAX	32 /* bytes of a counter's name, NUL included */

enum rts_reason {
	RTS_EXIT,
	RTS_SIGNAL, /* a snapshot signal */
	RTS_INTERVAL,
	RTS_FORK_CHILD_EXIT,  /* a forked child that never executed, at its end */
	RTS_FORK_CHILD_ERROR, /* a forked child that could not start */
	RTS_EXEC,
	RTS_INTERRUPTED, /* the watcher let go while the process went on */
	RTS_NR_REASONS,
};

/* Whose numbering `nr` is of. Names and categories of calls: lib/syscalls.h. */
enum rts_abi { RTS_ABI_X86_64, RTS_ABI_I386, RTS_ABI_X32, RTS_ABI_OTHER, RTS_NR_ABIS };

struct rts_errcount {
	uint32_t err; /* positive errno; 0 = the rest, which found no slot */
	uint64_t count;
};

/* One system call of one ABI. Only calls that returned are in count and in the times. */
struct rts_row {
	enum rts_abi abi;
	uint32_t nr;	  /* without the x32 bit */
	const char *name; /* NULL prints sys_<nr> */
	uint64_t count;
	uint64_t errors;		   /* sum of errs[].count */
	uint64_t total_ns, min_ns, max_ns; /* wall time; min and max only if count */
	bool has_quantiles;
	uint64_t p50_ns, p90_ns, p99_ns, p999_ns;
	bool has_split;	     /* total_ns is told apart: */
	uint64_t on_cpu_ns;  /* running, in the kernel or for it */
	uint64_t waiting_ns; /* asleep or waiting for a CPU; on_cpu_ns + waiting_ns = total_ns */
	const struct rts_errcount *errs;
	size_t nr_errs;
};

/* A call that had not returned when the record was made. */
struct rts_inflight {
	int32_t tid;
	enum rts_abi abi;
	uint32_t nr;
	const char *name; /* NULL prints sys_<nr> */
	uint64_t age_ns;
};

/* Calls that will never return: exit_group, or open when their thread was killed. */
struct rts_noreturn {
	enum rts_abi abi;
	uint32_t nr;
	const char *name; /* NULL prints sys_<nr> */
	uint64_t count;
};

/* One reason why a virtual CPU came back. */
struct rts_exit_row {
	uint32_t reason;  /* KVM_EXIT_*, or the embedder's number */
	const char *name; /* NULL prints exit_<reason> */
	uint64_t count;
	uint64_t null_count; /* of count: nothing had to be done */
	uint64_t total_ns;   /* time inside the run calls that ended so */
};

struct rts_named {
	const char *name;
	uint64_t value;
};

struct rts_vcpu {
	uint32_t nr_vcpus;
	uint64_t run_call_ns; /* measured: inside the run call */
	bool has_guest_run;
	uint64_t guest_run_ns; /* run_call_ns less halted_ns */
	uint64_t halted_ns;
	const char *guest_run_source; /* "kvm-stats", "kvm_vcpu_wakeup", "embedder" */
	const char *guest_run_absent; /* why not, if !has_guest_run */
	const struct rts_exit_row *rows;
	size_t nr_rows;
	uint32_t in_flight; /* run calls that had not come back; in no other number here */
	uint64_t lost;	    /* run calls that could not be recorded */
	/* Loaded by the producer in this order: null_exits first, exits last. */
	uint64_t null_exits, exits;
	const struct rts_named *kvm; /* KVM's own statistics, summed over virtual CPUs */
	size_t nr_kvm;
	bool has_in_guest;
	uint64_t in_guest_ns; /* of run_call_ns, between each entry into the guest and its exit */
	/* Every exit of the hardware: those that KVM handled and those it could not. */
	const char *isa;		    /* "vmx", "svm": whose reasons they are */
	const struct rts_exit_row *hw_rows; /* total_ns: until the next entry, or the call's end */
	size_t nr_hw_rows;
};

/* A slot of the counters page. Unnamed zero slots are not passed on. */
struct rts_counter {
	uint32_t slot;
	const char *name; /* NULL or "" prints reserved<slot> */
	uint64_t value;
};

/* A named start-up step. */
struct rts_phase {
	const char *name;
	uint64_t start_ns; /* since the record's start_ns */
	uint64_t wall_ns;
	bool has_cpu;
	uint64_t user_ns, system_ns;
	const struct rts_named *thread; /* the thread-time module's buckets, names ending in _ns */
	size_t nr_thread;
};

/*
 * Where events went: attempted = recorded + in flight (nr_in_flight) + the sum of the causes.
 * no_return is no loss, the calls are listed; any other cause makes the record incomplete.
 */
struct rts_ledger {
	uint64_t attempted, recorded;
	uint64_t no_return;
	uint64_t no_instance, recursion, table_full, clock_back, out_of_range;
	/* Beside the equation. */
	uint64_t records_dropped;    /* records that could not be written in time */
	uint64_t in_flight_unlisted; /* in flight, but beyond what in_flight[] holds */
};

struct rts_engine {
	const char *name;	  /* "ptrace", "bpf", "embedded" */
	const char *split;	  /* source of on_cpu_ns: "schedstat", ...; NULL: no split */
	const char *split_absent; /* why there is none, or only in part; may be NULL */
	bool has_cost;
	uint64_t cost_ns; /* what the engine adds to one call, calibrated at start */
	bool has_pin;
	uint32_t pinned_cpu;	/* engine and program share this CPU */
	const char *cannot_see; /* one sentence, may be NULL */
};

struct rts_record {
	enum rts_reason reason;
	bool final;
	bool tree;	    /* the sum over a process tree; pid is its root's */
	uint64_t seq;	    /* counts a process's records from 0, exec or not */
	int32_t pid, ppid;  /* as the host sees them */
	int32_t ns_pid;	    /* as the process sees itself; 0: not known */
	const char *comm;   /* the process's name now, may be NULL */
	const char *cgroup; /* of a tree: it is the processes of this cgroup, pid is 0; or NULL */
	uint64_t execs;	    /* execs so far */
	uint64_t start_ns, time_ns;
	uint64_t realtime_ns; /* CLOCK_REALTIME at time_ns */
	bool has_cpu;
	uint64_t user_ns, system_ns; /* CPU time of all threads; wall time is time_ns - start_ns */
	const char *const *argv;     /* a copy made at start */
	size_t argc;
	bool argv_cut;
	bool has_exit;
	int exit_code; /* if exit_signal is 0 */
	int exit_signal;
	bool core_dumped;
	uint32_t processes; /* of a tree: how many there were */
	uint32_t threads;   /* how many there were, ended ones included; 0: not known */

	/* Sorted by rts_rows_sort(). */
	const struct rts_row *rows;
	size_t nr_rows;
	const struct rts_inflight *in_flight;
	size_t nr_in_flight;
	const struct rts_noreturn *no_return;
	size_t nr_no_return;
	const struct rts_vcpu *vcpu;
	const struct rts_counter *counters;
	size_t nr_counters;
	bool has_counters; /* there is a page, maybe with nothing in it yet */
	const struct rts_phase *phases;
	size_t nr_phases;
	bool has_ledger;
	struct rts_ledger lost;
	const struct rts_engine *engine;
};

static inline uint64_t rts_add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/*
 * null_exits as hundredths of a percent of exits: 0..10000, also while both are being counted
 * by others. Every printer uses it.
 */
static inline uint32_t rts_null_share(uint64_t null_exits, uint64_t exits)
{
	if (!exits)
		return 0;
	if (null_exits > exits)
		null_exits = exits;
	return null_exits > UINT64_MAX / 10000 ? (uint32_t)(null_exits / (exits / 10000)) :
						 (uint32_t)(null_exits * 10000 / exits);
}

/* Sort by total time, then count, both falling, then ABI and number. Allocates nothing. */
void rts_rows_sort(struct rts_row *rows, size_t n);

/*
 * Text of a bounded length. put functions never write past cap and never allocate; what did not
 * fit sets cut. The text is not NUL-terminated.
 */
struct rts_buf {
	char *p;
	size_t cap, len;
	bool cut;
};

void rts_put(struct rts_buf *b, const char *s);
void rts_putc(struct rts_buf *b, char c);
void rts_put_u64(struct rts_buf *b, uint64_t v);
void rts_put_i64(struct rts_buf *b, int64_t v);
/* v / 10^digits as a decimal fraction: (1234, 2) is 12.34 */
void rts_put_fixed(struct rts_buf *b, uint64_t v, unsigned digits);
/*
 * A JSON string with its quotes. Valid UTF-8 stays as it is, control characters become
 * \u00XX, a byte that is no part of valid UTF-8 becomes the four characters \xHH.
 */
void rts_put_json_str(struct rts_buf *b, const char *s);

/* A time of 1 ms to 24 h, such as 500ms, 1.5s, 2m or 1h, in nanoseconds; 0: not that. */
uint64_t rts_duration(const char *text);

/*
 * The record as one JSON object on one line, without a newline. 0, or -ENOSPC when b is too small:
 * its content is then of no use. Async-signal-safe, no allocation, no lock, no I/O, no floating
 * point. 1 MiB holds any record with less than 1,000 rows.
 */
int rts_fmt_json(struct rts_buf *b, const struct rts_record *r);

/* The same without the closing brace, for callers that append keys of their own. */
int rts_fmt_json_open(struct rts_buf *b, const struct rts_record *r);

enum {
	RTS_SUMMARY_SHORT = 1, /* counters and virtual CPU only, no table */
	RTS_SUMMARY_PART = 2,  /* follows its tree's summary: does not repeat the engine */
};

/*
 * The record for people: `name value` lines, then a table of system calls. Each line ends with a
 * newline. Returns and guarantees like rts_fmt_json().
 */
int rts_fmt_summary(struct rts_buf *b, const struct rts_record *r, unsigned int flags);

const char *rts_reason_name(enum rts_reason reason);
const char *rts_abi_name(enum rts_abi abi);

#endif /* STATPAGE_RECORD_H */
