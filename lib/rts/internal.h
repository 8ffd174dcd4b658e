/* SPDX-License-Identifier: MIT */
/*
 * What the files of lib/rts share. Order of locks: the dump lock (life.c), then the output lock
 * (output.c). The recorder (recorder.c, vcpu.c) takes none.
 *
 * The gate, rts_gate, is 0 while off and else the number of the present generation. A generation is
 * one set of counts: fork and exec begin the next. Each thread owns a table that belongs to one
 * generation; it takes a fresh one when it finds that the gate has moved on, so nothing live is
 * ever zeroed.
 */
#ifndef RTS_INTERNAL_H
#define RTS_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "rts.h"
#include "lib/record.h"
#include "uapi/kstats_bucket.h"

#define SLOT_BITS  3 /* rts_leave() knows it: 8 ns and more take the common path */
#define NR_SLOTS   KSTATS_NR_SLOTS(SLOT_BITS)
#define NR_ABIS	   4
#define NR_ROWS	   (NR_ABIS * RTS_MAX_NR)
#define NR_ERRNOS  134 /* [0]: those beyond */
#define NR_REASONS 64
#define MAX_NESTED 8

#if defined(__GNUC__)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define NOINLINE    __attribute__((noinline))
#define HIDDEN	    __attribute__((visibility("hidden")))
#else
#define unlikely(x) (x)
#define NOINLINE
#endif

typedef _Atomic uint64_t au64;

#define LOAD(x)	    atomic_load_explicit(&(x), memory_order_relaxed)
#define LOAD_ACQ(x) atomic_load_explicit(&(x), memory_order_acquire)
/* What a guard covers is stored with release (free on x86): who sees it sees the guard taken too.
 */
#define PUT(x, v) atomic_store_explicit(&(x), (v), memory_order_release)
#define BUMP(x)	  atomic_fetch_add_explicit(&(x), 1, memory_order_relaxed)

/* One system call: written by its thread only. */
struct row {
	unsigned int index; /* abi * RTS_MAX_NR + nr */
	au64 total_ns, min_ns, max_ns;
	au64 no_return; /* calls whose thread ended in them */
	au64 errors[NR_ERRNOS];
	au64 slot[NR_SLOTS]; /* by latency, kstats_bucket.h; their sum is the count */
};

/* Where attempts went that are in no row. Bumped atomically: a signal handler may interrupt. */
struct losses {
	au64 no_instance, recursion, table_full, clock_back, out_of_range;
};

struct exit_row {
	au64 count, null_count, total_ns;
};

/* Halts of the virtual CPU that the table's owner runs; the owner's own, but for known and
 * stats_fd. */
struct halt {
	enum { HALT_NONE, HALT_UNKNOWN, HALT_EMBEDDER, HALT_KVM } source;
	int stats_fd; /* -1: none. Closed in a forked child, which must not keep its parent's VM
			 alive */
	uint64_t offset[3];
	unsigned int nr_offsets;
	uint64_t last_ns;   /* the statistics' sum when read last */
	uint64_t unread_ns; /* spent in run calls since */
};

struct vcpu {
	au64 seq; /* odd while the owner changes what follows */
	au64 begun, ended, lost;
	au64 started, known;	      /* virtual CPUs; those whose halts are known */
	_Atomic unsigned int sources; /* bits 1 << HALT_* */
	au64 null_exits, exits, run_call_ns, halted_ns;
	struct exit_row rows[NR_REASONS];
};

/* A call in flight. start_ns is 0 until it is known. */
struct flight {
	au64 start_ns;		   /* first: rts_call holds its address */
	_Atomic(struct row *) row; /* NULL: ended out of order */
	unsigned int generation;   /* the owner's own */
};

/*
 * What a thread did in one generation. `top`, the first free entry of flight[], is the guard too:
 * while the owner changes a row it points to rts_refuse, an entry whose generation is never the
 * gate's, so a signal handler that comes in between is refused by the one comparison that every
 * call makes; so is a call nested too deep, by the last entry. Once the gate has moved on nothing
 * enters, so a dump that finds the same top (not rts_refuse) before and after it read the table has
 * read it at rest.
 */
struct table {
	/* The last one stays NULL: it is where calls out of range land. */
	_Atomic(struct row *) rows[NR_ROWS + 1];
	_Atomic(struct flight *) top;
	struct table *next;
	struct flight flight[MAX_NESTED + 1];
	_Atomic unsigned int generation;
	_Atomic int owned;
	_Atomic int tid;
	struct losses lost;
	struct vcpu vcpu;
	struct halt halt;
	/* Memory for rows. */
	struct chunk *chunk;
	unsigned int chunk_used;
	const struct flight *seen_top; /* a dump's: top when it began to read */
};

/* ---- recorder.c ---- */

extern struct flight rts_refuse;
/* The calling thread's: rts_nobody, never NULL, while it has none. */
extern _Thread_local struct table *rts_table;
extern struct table rts_nobody;

/* Nanoseconds of CLOCK_MONOTONIC; 0, or -1 when the clock fails. Keeps errno. */
int rts_clock(uint64_t *ns);

/* ---- table.c ---- */

/* All that ever were; the list never shrinks but in a forked child. */
extern _Atomic(struct table *) rts_tables;
extern struct losses rts_lost;	   /* of threads that have no table */
extern _Atomic int rts_collecting; /* a dump reads tables of a generation that is over */

/* Make ready; once, before the gate opens. */
void rts_table_init(void);
/* A row for a call that has none yet; the guard is taken. NULL: out of memory. */
struct row *rts_row_new(struct table *t, unsigned int index);
/* The calling thread's table in this generation; NULL while off or out of memory. */
struct table *rts_self(void);
/* By the owner; undone by a store to top. Returns what top was. */
static inline struct flight *guard_take(struct table *t)
{
	struct flight *top = LOAD(t->top);

	PUT(t->top, &rts_refuse);
	return top;
}

/* Its owner is changing a row. */
static inline bool table_busy(const struct table *t)
{
	return LOAD_ACQ(t->top) == &rts_refuse;
}

/*
 * Move the gate: to 0, or to the next generation. Then wait, at most limit_ms, until the recorders
 * that had passed it are through.
 */
void rts_table_stop(unsigned int gate, int limit_ms);
/* In a forked child: forget all threads' tables. */
void rts_table_forget(void);

/* ---- vcpu.c ---- */

/* The owner moves from its old table (may be NULL) to a new one: its virtual CPU comes along. */
void rts_vcpu_move(struct halt *from, struct table *to);

/* ---- merge.c ---- */

struct merged {
	struct rts_row *rows;
	size_t nr_rows;
	struct rts_inflight *in_flight;
	size_t nr_in_flight;
	struct rts_noreturn *no_return;
	size_t nr_no_return;
	struct rts_ledger lost;
	struct rts_vcpu vcpu;
	bool has_vcpu;
	uint64_t vcpus_known;	   /* whose halts are known */
	unsigned int halt_sources; /* bits 1 << HALT_* */
};

/* Allocate what merging needs; 0 or -ENOMEM. */
int rts_merge_init(void);
/*
 * Sum the tables of a generation up. at_rest: rts_table_stop() has closed it, so only calls in
 * flight may still end, and each is to be in flight or recorded, not both. The result is valid
 * until the next call.
 */
void rts_merge(unsigned int generation, bool at_rest, struct merged *m);

/* ---- env.c ---- */

enum rts_format { RTS_OFF, RTS_SUMMARY, RTS_JSON, RTS_JSONL };

struct rts_config {
	char prefix[RTS_PREFIX_MAX + 1];
	enum rts_format format;
	int signo;	      /* 0: none */
	uint64_t interval_ns; /* 0: none */
	bool until_exec;      /* count until the first exec only */
	bool steps;
	const char *output; /* NULL: standard error. The environment's memory */
	void (*warn)(const char *text);
	const char *const *exit_names; /* NULL: KVM's */
	size_t nr_exit_names;
};

extern struct rts_config rts_cfg;

/* Read the environment into rts_cfg. 0, or -EINVAL after a warning: the prefix is too long. */
int rts_env_read(const char *prefix);
__attribute__((format(printf, 1, 2))) void rts_warn(const char *fmt, ...);

/* ---- signal.c ---- */

/* Start the threads that take the snapshot signal and the interval, or warn why not. */
void rts_watch_start(void);
/* In a child of rts_fork(): the same, the mask being the parent's. */
void rts_watch_restart(void);
/* Unblock or block the snapshot signal in the calling thread; nothing if there is none. */
void rts_watch_mask(int how);
/* The snapshot signal that is taken, or 0. */
int rts_watch_signal(void);
/* In a child of plain fork(): no signal, no interval, the mask as before rts_init(). */
void rts_watch_forget(void);

/* ---- output.c ---- */

/*
 * Open what <PREFIX>_STATS_OUTPUT names; when it cannot be written warn and take standard error. 0
 * or -errno, when there is no memory for the shared lock.
 */
int rts_output_open(void);
/* In a forked child: own descriptors, before anything is written. Cannot fail; the write may. */
void rts_output_forked(void);
/*
 * Write one record in one piece; text[-1] has to be a newline, for the case below. Waits at most
 * RTS_WRITE_LIMIT_MS while nothing moves, and less where that was in vain before. 0 or -errno; then
 * nothing or a cut line was written, and the next writer, whichever process it is, starts with a
 * newline.
 */
int rts_output_write(const char *text, size_t len);

/* Write to a descriptor, waiting no more than 100 ms. For warnings. */
void rts_output_plain(int fd, const char *text, size_t len);

/* ---- counters.c, steps.c ---- */

/* Pass on what is in the page, and leave zeros there if take; returns how many. */
size_t rts_counters_read(struct rts_counter *to, bool take);
void rts_counters_forked(void);
/* Steps are guarded by the dump lock. */
void rts_steps_add(const char *name);
size_t rts_steps_read(const struct rts_phase **to);
void rts_steps_restart(void);

/* ---- thread_time.c ---- */

enum { RTS_NR_BUCKETS = 5 };
extern const char *const rts_bucket_names[RTS_NR_BUCKETS];
/*
 * The calling thread's time since the last lap, which ends here and begins the next. 0, or -1 where it
 * is not known: no module, or the last lap was another thread's. Guarded by the dump lock.
 */
int rts_thread_lap(uint64_t ns[RTS_NR_BUCKETS]);

/* ---- life.c ---- */

/* What the record says of this process; guarded by the dump lock. */
struct rts_life {
	uint64_t start_ns;
	uint64_t seq, execs, dropped;
	bool child, final;
	char *argv[64];
	char argv_text[4096];
	size_t argc;
	bool argv_cut;
};
extern struct rts_life rts_life;

/* The environment switched something on. */
bool rts_active(void);
/* Have rts_forked() called in forked children, once and for all. 0 or -ENOMEM. */
int rts_watch_forks(void);
/* Take the dump lock and write a record. For the reasons of a snapshot only. */
int rts_dump(enum rts_reason reason);

/* ---- dump.c ---- */

/* Allocate what a dump needs; 0 or -ENOMEM. */
int rts_dump_init(void);
/* Make a record of a generation and write it. The dump lock is held. 0 or -errno. */
int rts_dump_write(enum rts_reason reason, bool final, int status, unsigned int generation);

/* ---- os_linux.c, or os_posix.c where there is no Linux ---- */

/* Threads of this process, or -1 when it cannot be told. */
int rts_os_threads(void);
int rts_os_tid(void);
/* Pids as the host's /proc shows them, else as getpid() does; comm holds 16 bytes, "" when not
 * known. */
void rts_os_who(int32_t *pid, int32_t *ppid, char *comm);
/*
 * Zeroed pages, where they are free or, if at is not NULL, there, in place of what was mapped. shared:
 * with the children of fork() too. NULL: no memory. munmap() gives them back.
 */
void *rts_os_map(void *at, size_t size, bool shared);
/* An anonymous file that other processes find by its name, of size bytes; or -errno. */
int rts_os_memfd(const char *name, size_t size);
/* Another open description of a pipe, non-blocking; or -errno. */
int rts_os_reopen(int fd);
/* A mutex that processes share and that survives its owner's death. lock: 0, EOWNERDEAD, ETIMEDOUT.
 */
int rts_os_mutex_init(pthread_mutex_t *m);
int rts_os_mutex_lock(pthread_mutex_t *m, int limit_ms);
/* Run fn(status) at exit; status is -1 where it is not known. */
int rts_os_at_exit(void (*fn)(int status));
/* Find a virtual CPU's halt statistics and fill h, last_ns too. 0, or -errno with stats_fd -1. */
int rts_os_halt_open(struct halt *h, int vcpu_fd);
/* Nanoseconds halted so far. 0 or -1. Async-signal-safe. */
int rts_os_halt_read(const struct halt *h, uint64_t *ns);

#endif /* RTS_INTERNAL_H */
