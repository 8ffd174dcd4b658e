/* SPDX-License-Identifier: MIT */
/*
 * Where threads' time went: samples of cumulative numbers, and the engines that take them. Commands
 * know engines only by this interface, and by the name that a user gave. Each is a file
 * threads_<name>.c with a row in the table of threads.c.
 *
 * Functions return 0 or -errno, and then have set `why` to one line without newline that names the
 * input and what was expected. Not thread-safe.
 */
#ifndef LIB_THREADS_H
#define LIB_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Numbers of a thread: five buckets in ns, in the order of enum csf_state, then counts. */
enum thread_field {
	THREAD_ONCPU,
	THREAD_RUNQ,   /* runnable, waiting for a CPU */
	THREAD_SLEEP,  /* interruptible */
	THREAD_DSLEEP, /* uninterruptible, not for I/O */
	THREAD_IOWAIT,
	THREAD_NR_BUCKETS,
	THREAD_PREEMPT = THREAD_NR_BUCKETS, /* involuntary switches */
	THREAD_BLOCK,			    /* voluntary switches */
	THREAD_MIGRATE,			    /* came back on another CPU than it left */
	THREAD_MIN_FLT,
	THREAD_MAJ_FLT,
	THREAD_NR_FIELDS
};

#define THREAD_KNOWN(field) (1u << (field))
#define THREAD_BUCKETS	    (THREAD_KNOWN(THREAD_NR_BUCKETS) - 1)

struct thread_engine;

/*
 * A thread at one moment. value[i] is cumulative, since a moment that does not change within an
 * epoch, and is meaningless unless THREAD_KNOWN(i) is in `known`. The buckets are all as of mono_ns;
 * where an engine knows less than all five, the rest of the wall time is in none of them.
 */
struct thread_sample {
	const struct thread_engine *engine;
	pid_t pid, tid; /* as this process sees them */
	char comm[64];	/* the thread's own name: 15 bytes, some kernel threads have more */
	char state;	/* letter of /proc/PID/stat; 0: not known */
	int cpu;	/* it runs on or last ran on; -1: not known */
	/*
	 * Two samples of a tid and an engine can be subtracted if their epochs are equal: else the
	 * tid is another thread's by now, or the counting began anew.
	 */
	uint64_t epoch;
	uint64_t
		since_ns; /* CLOCK_MONOTONIC of the epoch's beginning: all value[] were 0 then; 0: not known */
	uint64_t mono_ns; /* CLOCK_MONOTONIC of the sample */
	unsigned int known;
	uint64_t value[THREAD_NR_FIELDS];
};

/* Owned by the caller: starts zeroed, ends with thread_list_free(), is used again with nr = 0. */
struct thread_list {
	struct thread_sample *v;
	size_t nr, cap;
};

/* A new element, all zero but for cpu, which is -1; NULL: no memory. Moves the others. */
struct thread_sample *thread_list_add(struct thread_list *l);
void thread_list_free(struct thread_list *l);

struct thread_engine {
	const char *name;
	const char *cannot_see; /* one line */
	/*
	 * Get ready for the threads of a process, or of all with pid 0; *state is the engine's own, and
	 * set on success only. An engine that cannot be used here says so, with a reason that fits
	 * "... cannot be used: reason"; a process that has no threads that this engine sees is none.
	 */
	int (*open)(pid_t pid, void **state, char *why, size_t len);
	/*
	 * Append a sample of each thread, in any order; `engine` need not be filled in. Threads that end
	 * meanwhile are left out. -ESRCH: the process of open() has ended, and its pid may be another's.
	 */
	int (*sample)(void *state, struct thread_list *to, char *why, size_t len);
	void (*close)(void *state); /* NULL is fine */
};

/* Pages of coarse_stat_fs or statpage serve; /proc: no privileges, no module; coarser. */
extern const struct thread_engine threads_pages, threads_proc;

/* The engines that are built in, the one that sees most of a thread first; ends with NULL. */
extern const struct thread_engine *const thread_engines[];

/* One engine, or each that can be used here. */
struct threads;

/*
 * Engine by name; NULL: all that can be used here. Free with threads_close(). -EINVAL: no engine of
 * that name, or no process has the pid.
 */
int threads_open(struct threads **out, const char *engine, pid_t pid, char *why, size_t len);
void threads_close(struct threads *t);

/* The same of engines that are open: `engine` ends with NULL, and each has its state. Takes them over. */
int threads_open_as(struct threads **out, const struct thread_engine *const *engine,
		    void *const *state);

/*
 * Replace the list by a sample of each thread, in the order of pid and tid. Of a thread that several
 * engines see there is one, of the engine that sees most. -ESRCH: see thread_engine.sample.
 */
int threads_sample(struct threads *t, struct thread_list *to, char *why, size_t len);

/* The i'th engine in use, or NULL. */
const struct thread_engine *threads_engine(const struct threads *t, unsigned int i);

/* What happened to a thread in between two samples. */
struct thread_delta {
	uint64_t wall_ns; /* 0: there is no difference, `known` is 0 */
	unsigned int known;
	uint64_t value[THREAD_NR_FIELDS];
	/* Of wall_ns, what is in no known bucket. Absent (has_off) if all five are known. */
	bool has_off;
	uint64_t off_ns;
};

/*
 * What happened since an older sample; what is not known in both, or ran backwards, is not known. older
 * NULL: since the epoch's beginning, if that is known; a thread that was not there at before_ns must
 * have begun since, so one that says otherwise (by more than 20 ms, since_ns may be coarse) has no
 * difference. before_ns 0: whenever it began. Where another engine has taken over, older is as good as NULL.
 */
void thread_diff(struct thread_delta *d, const struct thread_sample *older,
		 const struct thread_sample *s, uint64_t before_ns);

#endif /* LIB_THREADS_H */
