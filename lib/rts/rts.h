/* SPDX-License-Identifier: MIT */
/*
 * rts: what this process did, counted from inside. For runtimes, emulators and virtual machine
 * monitors: system calls by number and errno with latency quantiles, virtual CPU exits by reason,
 * the program's own fast-path counters and its start-up steps, as a table or as JSON
 * (docs/json.md). C11, or C++17.
 *
 *	rts_init(&(struct rts_options){ .prefix = "STATPAGE", .argc = argc, .argv = argv });
 *	RTS_CALL(n, RTS_ABI_NATIVE, SYS_read, read(fd, buf, sizeof(buf)));
 *
 * One environment variable switches it on, <PREFIX>_RUNTIME_STATS; four more say the rest:
 *
 * - <PREFIX>_RUNTIME_STATS: unset, empty, 0: off. summary (or 1): a table for people at exit. json:
 *   one document at exit. jsonl: a line at each interval, each snapshot signal, and at exit.
 * - <PREFIX>_STATS_SIGNAL: take a snapshot on this signal: USR1, USR2, SIGUSR1, RTMIN+3, a number.
 *   Prefer a real-time one. Ignored, with a warning, where the program handles, ignores or blocks
 *   it already.
 * - <PREFIX>_STATS_INTERVAL: the interval of jsonl, from 1ms to 24h: 500ms, 1.5s, 2m, 1h.
 * - <PREFIX>_STATS_OUTPUT: a file, which is appended to, or a folder, which gets a file for each
 *   process, named by its host pid. Default: standard error, as it is at rts_init().
 * - <PREFIX>_STARTUP_TRACE: a list of: syscalls (count from start to the first exec),
 *   syscalls-steady (until exit; what _RUNTIME_STATS implies), steps (print the start-up steps),
 *   all. On its own it implies _RUNTIME_STATS=summary.
 *
 * Off, a recorded call costs one predicted branch, and the library changes nothing in the process:
 * no thread, no signal disposition, no mask, no file.
 *
 * The library never sets a signal's disposition, so a fatal signal or _exit() ends the process
 * without a final record: the last jsonl line written before stands.
 *
 * Unless a function says otherwise it may be called from any thread, is not async-signal-safe,
 * keeps errno only if it says so, and returns 0 or a negative errno.
 */
#ifndef RTS_H
#define RTS_H

#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <signal.h>
#include <sys/types.h>

/* Atomic types have the same size and bits in both languages. */
#ifdef __cplusplus
#include <atomic>
typedef std::atomic<unsigned int> rts_atomic_u32;
typedef std::atomic<uint64_t> rts_atomic_u64;
#define RTS_RELAXED std::memory_order_relaxed
static_assert(sizeof(rts_atomic_u32) == 4 && sizeof(rts_atomic_u64) == 8, "as in C");
extern "C" {
#else
#include <stdatomic.h>
typedef _Atomic(unsigned int) rts_atomic_u32;
typedef _Atomic(uint64_t) rts_atomic_u64;
#define RTS_RELAXED memory_order_relaxed
#endif

/* ---- life of the library ---- */

#define RTS_PREFIX_MAX 31

struct rts_options {
	/* Of the environment variables, up to RTS_PREFIX_MAX bytes; NULL: "STATPAGE". Copied. */
	const char *prefix;
	int argc;	   /* the program's arguments for the record, copied up to 4 KiB */
	char *const *argv; /* may be NULL */
	/*
	 * Names of virtual CPU exit reasons, by number; NULL: KVM's. Not copied, has to stay.
	 * Reasons of 63 and above share the last row.
	 */
	const char *const *exit_names;
	size_t nr_exit_names;
	/* Gets each warning as one line without a newline; NULL: "<prefix>: <text>" on stderr. */
	void (*warn)(const char *text);
};

/*
 * Read the environment and, where it says so, start. Call it early in main(): a snapshot signal
 * needs a process with one thread, else it is refused with a warning (a thread that exists already
 * would not block the signal, and die of it). A value that is not known is a warning, and counts as
 * unset. Registers rts_finish() with atexit(). 0; -EALREADY: called before; -EINVAL: opt is NULL or
 * its prefix too long, which is a warning too, and it stays off; -ENOMEM.
 */
int rts_init(const struct rts_options *opt);

/*
 * Write the final record: reason exit, or fork-child-exit in a child that fork() made. Exactly one
 * final record is written, by whichever call comes first; nothing is written after it. Calls still
 * in flight in other threads are not waited for: the record counts and lists them. Takes at most
 * RTS_WRITE_LIMIT_MS when nobody reads the output, then the record is dropped. Runs at exit() by
 * itself. status: the exit status for the record, 0..255, or -1 when it is not known yet.
 * -EALREADY: done before; -EPIPE, -ETIMEDOUT, -ENOSPC, -EIO, ...: not written.
 */
int rts_finish(int status);

/* rts_finish() with reason fork-child-error, for a child that could not start. Before its _exit(). */
int rts_finish_child_error(int status);

/*
 * Write a record now, as a snapshot signal does: jsonl a line, summary its short form, json
 * nothing. 0; -EALREADY: the final record is out; errors of rts_finish().
 */
int rts_snapshot(void);

/* How long a record waits for room in a pipe, or for the writers before it, while nothing moves. */
enum { RTS_WRITE_LIMIT_MS = 1000 };

/* ---- fork, exec ----
 *
 * fork() is seen by itself (pthread_atfork): the child counts from zero, its mask is as it was
 * before rts_init(), and it takes no snapshots. Right for a child that executes something or ends
 * soon. vfork() and posix_spawn() children share this memory: they
 * are not seen, and must call nothing of this library but rts_mask().
 */

/*
 * fork() for a child that goes on: its snapshot signal stays blocked and its own thread takes it,
 * as in the parent. Returns like fork().
 */
pid_t rts_fork(void);

/* For a child made by a raw clone(), before it does anything else: what fork() does by itself. */
void rts_forked(void);

/*
 * Call rts_exec() right before exec*(), or where an emulator starts to execute another program: it
 * writes a record with reason exec (in every format: it is all that is left of this life of the
 * process), gives the calling thread the signal mask it had before rts_init(), and starts all
 * counts again. When exec*() came back, or the emulator goes on, call rts_exec_return(): it blocks
 * the snapshot signal again. A program that is executed without rts_exec() inherits a mask with the
 * snapshot signal blocked. posix_spawn(): pass rts_mask() by posix_spawnattr_setsigmask().
 */
void rts_exec(void);
void rts_exec_return(void);

/* The calling thread's mask as the program would have it without this library. 0, or -EINVAL. */
int rts_mask(sigset_t *out);

/* ---- system calls ---- */

/* Numbering of a call's nr. */
enum { RTS_X86_64, RTS_I386, RTS_X32, RTS_OTHER };
#if defined(__x86_64__) && defined(__LP64__)
#define RTS_ABI_NATIVE RTS_X86_64
#elif defined(__i386__)
#define RTS_ABI_NATIVE RTS_I386
#else
#define RTS_ABI_NATIVE RTS_OTHER
#endif
#define RTS_NO_ROW ((RTS_OTHER + 1) * RTS_MAX_NR)
#define RTS_MAX_NR 512 /* nr of this and above is counted as out_of_range */

/* 0 while off. Read it through rts_on(). */
extern rts_atomic_u32 rts_gate;

#if defined(__GNUC__)
#define rts_likely(x) __builtin_expect(!!(x), 1)
#else
#define rts_likely(x) (!!(x))
#endif
#define rts_on() (!rts_likely(!atomic_load_explicit(&rts_gate, RTS_RELAXED)))

/* A call in flight. It lives on the caller's stack; its member is the library's. */
struct rts_call {
	rts_atomic_u64 *start_ns;
};

/* Parts of the functions below, which are inline so that a constant abi and nr cost nothing. */
uint64_t rts_clock_start(void);
uint64_t rts_clock_end(void);
rts_atomic_u64 *rts_enter(size_t row, unsigned int gate);
void rts_leave(rts_atomic_u64 *start_ns, uint64_t now_ns);
void rts_leave_error(rts_atomic_u64 *start_ns, uint64_t now_ns, unsigned int err);

static inline void rts_call_begin_at(struct rts_call *c, unsigned int abi, unsigned int nr,
				     unsigned int gate)
{
	size_t row = abi <= RTS_OTHER && nr < RTS_MAX_NR ? (size_t)abi * RTS_MAX_NR + nr :
							   RTS_NO_ROW;

	c->start_ns = rts_enter(row, gate);
	atomic_store_explicit(c->start_ns, rts_clock_start(), RTS_RELAXED);
}

/*
 * Bracket one system call. begin and end run on the same thread, properly nested (others are
 * recorded too where that can be done, at a price); err is 0 or the positive errno the call failed
 * with. Async-signal-safe but for a thread's first call (it allocates with mmap). end keeps errno.
 * Never block, never fail: what cannot be recorded is counted by cause in the record's `lost`. A
 * call made by a signal handler that interrupts the recorder itself is such a loss.
 */
static inline void rts_call_begin(struct rts_call *c, unsigned int abi, unsigned int nr)
{
	rts_call_begin_at(c, abi, nr, atomic_load_explicit(&rts_gate, RTS_RELAXED));
}

static inline void rts_call_end(struct rts_call *c, int err)
{
	if (err)
		rts_leave_error(c->start_ns, rts_clock_end(), (unsigned int)err);
	else
		rts_leave(c->start_ns, rts_clock_end());
}

/* ret = expr, recorded: expr is a call that returns -1 and sets errno when it fails. */
#define RTS_CALL(ret, abi, nr, expr)                                                \
	do {                                                                        \
		unsigned int rts_g_ = atomic_load_explicit(&rts_gate, RTS_RELAXED); \
		if (rts_likely(!rts_g_)) {                                          \
			(ret) = (expr);                                             \
		} else {                                                            \
			struct rts_call rts_c_;                                     \
			rts_call_begin_at(&rts_c_, (abi), (nr), rts_g_);            \
			(ret) = (expr);                                             \
			rts_call_end(&rts_c_, rts_likely((ret) != -1) ? 0 : errno); \
		}                                                                   \
	} while (0)

/* ---- virtual CPUs ---- */

/*
 * Say that the calling thread runs a virtual CPU. vcpu_fd: its KVM descriptor, from whose halt_*
 * statistics guest_run_ns is worked out (KVM_GET_STATS_FD, Linux 5.14); -1: there is none, and the
 * embedder says by rts_vcpu_halted() how long it was halted inside run calls. Once a thread; no-op
 * while off. 0; -ENOTSUP: no such statistics, guest_run_ns will be absent; -ENOMEM.
 */
int rts_vcpu_start(int vcpu_fd);

/* A run call in flight; its members are the library's. */
struct rts_run {
	void *table;
	uint64_t start_ns;
	unsigned int generation;
};

/*
 * Bracket one run call (KVM_RUN). is_null: nothing had to be done after it (see rts_kvm_null()).
 * Safety as with rts_call_begin(), but that end may make one read of the statistics after a run
 * call of 1 ms or more. Call them only if rts_on().
 */
void rts_vcpu_begin(struct rts_run *run);
void rts_vcpu_end(struct rts_run *run, unsigned int reason, int is_null);

/*
 * The virtual CPU of the calling thread was halted inside its run calls for ns more nanoseconds. 0
 * is a word too: "never so far" makes guest_run_ns known. Async-signal-safe.
 */
void rts_vcpu_halted(uint64_t ns);

/* EINTR, EAGAIN, KVM_EXIT_INTR, or an interrupt window that opened with nothing queued. err: 0 or
 * errno. */
static inline int rts_kvm_null(int err, unsigned int reason, int irq_queued)
{
	return err == 4 || err == 11 || reason == 10 || (reason == 7 && !irq_queued);
}

/* ---- the program's own counters ---- */

#define RTS_NR_COUNTERS	   64
#define RTS_NAME_MAX	   32
#define RTS_COUNTERS_MAGIC 0x31737463u /* "cts1" */
#define RTS_COUNTERS_MEMFD "statpage-counters"

/*
 * One page in a memfd named RTS_COUNTERS_MEMFD, which /proc/PID/fd and /proc/PID/maps show, so that
 * another process finds it. Read value[] with relaxed atomics; a reader takes bytes beyond `size`
 * as absent. The names are complete before magic is written. value[] may be mapped into a guest and
 * counted there.
 */
struct rts_counters_page {
	rts_atomic_u32 magic; /* RTS_COUNTERS_MAGIC, written last */
	uint32_t size;	      /* bytes that are defined: sizeof(struct rts_counters_page) */
	rts_atomic_u32 gate;  /* fast paths count only if it is not 0 */
	uint32_t nr;	      /* slots, RTS_NR_COUNTERS */
	int32_t pid;	      /* of the process that counts, as it sees itself */
	uint32_t reserved;    /* 0 */
	uint64_t start_ns;    /* since when, CLOCK_MONOTONIC */
	rts_atomic_u64 value[RTS_NR_COUNTERS];
	char name[RTS_NR_COUNTERS][RTS_NAME_MAX]; /* NUL-terminated; "" is unnamed */
};

enum { RTS_COUNTERS_ALWAYS = 1 }; /* also while _RUNTIME_STATS is off */

/*
 * Make the page: nr names, of slots 0 to nr - 1 (NULL or "": unnamed). While off, and without
 * RTS_COUNTERS_ALWAYS, there is no page, and adding is one predicted branch. A forked child gets a
 * page of its own, with zeros, at the same address. 0; -EINVAL: more than RTS_NR_COUNTERS names, a
 * name too long or a duplicate; -EALREADY; -ENOMEM.
 */
int rts_counters_open(const char *const *names, size_t nr, unsigned int flags);

/* The page, or NULL. Readable and writable, 4,096 bytes. */
extern struct rts_counters_page *rts_counters;

/* Add to a slot below RTS_NR_COUNTERS. Async-signal-safe. */
static inline void rts_count(unsigned int slot, uint64_t n)
{
	if (rts_counters)
		atomic_fetch_add_explicit(&rts_counters->value[slot], n, RTS_RELAXED);
}

/* ---- start-up steps ---- */

/*
 * The named step ends here; it began where the one before ended (the first one: at rts_init()). Up
 * to 32, later ones are dropped; the name is copied up to 31 bytes. Where the thread-time module is
 * mounted, the step comes with the calling thread's time by bucket, if that thread ended the step
 * before, too. No-op while off.
 */
void rts_step(const char *name);

#ifdef __cplusplus
}
#endif

#endif /* RTS_H */
