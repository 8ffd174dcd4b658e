/* SPDX-License-Identifier: MIT */
/*
 * Reader of coarse_stat_fs: where did my thread's wall time go, without a system call. Header
 * only; C11 and C++17, Linux, x86-64 with the instruction rdtscp (valgrind lacks it); link with -pthread
 * where libc wants it. Layouts and the meaning of each field: include/uapi/coarse_stat_fs.h.
 *
 *	struct csf_snap before, after;
 *	char buf[CSF_DIFF_BUFSZ];
 *
 *	csf_thread_snap(&before);
 *	op();
 *	csf_thread_snap(&after);
 *	csf_format_diff(buf, sizeof(buf), &before, &after);
 *
 * Freshness. The five time buckets add up, and the running one is exact, to the cycle at .tsc. Where a
 * wait for a CPU ends the sleep before it is what the kernel's run_delay says: see README.md, Caveats.
 * Everything else in .p is as
 * of the thread's last context switch (.p.last_switch_tsc) and lags behind a thread that stays
 * on its CPU.
 *
 * Units. *_cyc and *_tsc are ticks of .p.hdr.clock (TSC cycles, as a rule), *_ns are
 * nanoseconds.
 *
 * The first call of csf_thread_snap() in a thread maps the thread's page: open, fstat, mmap,
 * close, madvise; where the filesystem is not mounted it asks statpage serve for it, over a socket. The page is unmapped when the thread ends, or some time later, when others begin, if
 * the program has 32 pthread keys or the call came from a late destructor of one; and when the library that holds
 * this code is closed by dlclose(); no thread may run in that library then, as always. Later
 * calls are some 60 instructions.
 *
 * fork. A child, also one made by a raw clone or SYS_fork, maps a page of its own on first use.
 * A vfork or CLONE_VM child that shares its parent's thread-local storage gets -1 with ESRCH
 * when it finds the parent's page. If such a child is the first to call, its page is dropped
 * once it has exited or exec'ed.
 *
 * Signals. csf_thread_snap(), csf_page_snap(), csf_cpu_snap(), csf_rdtsc(), csf_now() and
 * csf_cyc_to_ns() are async-signal-safe, the first use in a thread included: set-up runs with
 * all signals blocked, takes no lock and calls no malloc. They leave errno alone when they
 * succeed. One exception: a handler that interrupts csf_thread_snap() must not fork and let the
 * child return from it.
 *
 * Threads. All functions may be called by any thread at any time but csf_cpu_close(). State is
 * one set per linked object (program or shared library), hidden in it and shared by its
 * translation units; two libraries map one page each, of the same numbers. Shared libraries need
 * 48 bytes of static TLS, which is what makes first use in a handler safe; define CSF_TLS_MODEL
 * to choose another model.
 */
#ifndef LIB_COARSE_STAT_FS_H
#define LIB_COARSE_STAT_FS_H

#if !defined(__x86_64__) || defined(__ILP32__)
#error "coarse_stat_fs is for x86-64"
#endif

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include "../include/uapi/coarse_stat_fs.h"
#include "csf_map.h"

#ifdef __cplusplus
extern "C" {
/* As with stat(2), struct and function share a name; in C++ say `struct csf_diff d`. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/*
 * A private copy of a thread's page. The conversion of cycles to ns is in .p.hdr. Fields beyond
 * .p.hdr.size are zero and unknown: ask CSF_HAS(&s.p, struct csf_thread, field). The reserved words
 * of the header are not filled.
 */
struct csf_snap {
	struct csf_thread p;
	uint64_t tsc;	  /* the page's clock at the copy, never before .p.last_switch_tsc */
	int extrapolated; /* the bucket of .p.state was brought up to .tsc: all five add up to it */
};

/* One row of the cpu page, as of update_mono_ns. */
struct csf_cpu_snap {
	struct csf_cpu_row
		row; /* ns since boot, as /proc/stat has them; row.flags: CSF_CPU_ONLINE */
	uint64_t update_mono_ns; /* CLOCK_MONOTONIC of the refresh that this row is from */
	uint64_t update_tsc;
	uint64_t nr_updates;   /* equal in two snapshots: they are of one refresh */
	uint64_t nr_corrected; /* times idle or iowait ran backwards in the kernel and was held */
	uint32_t period_us;    /* refresh period */
	uint32_t tick_ns;      /* how fine the kernel accounts busy time; 0: exactly */
	uint32_t nr_cpus;      /* CPU ids are below this; not all need be possible */
};

/* ---- clock ---- */

static inline uint64_t csf_rdtscp_(uint32_t *aux)
{
	uint64_t lo, hi;

	__asm__ __volatile__("rdtscp" : "=a"(lo), "=d"(hi), "=c"(*aux) : : "memory");
	return hi << 32 | lo;
}

/* The TSC, read after all earlier instructions. Comparable with .tsc where hdr.clock is
 * CSF_CLOCK_TSC. */
static inline uint64_t csf_rdtsc(void)
{
	uint32_t aux;

	return csf_rdtscp_(&aux);
}

/* By a name of our own, since <time.h> hides clock_gettime() from strict C11. */
extern int csf_clock_gettime_(int clock, struct timespec *ts) __asm__("clock_gettime");

/* Now, by the clock of the page that hdr is from: for programs that must also work with pages in
 * ns. */
static inline uint64_t csf_now(const struct csf_hdr *hdr)
{
	struct timespec ts;

	if (hdr->clock == CSF_CLOCK_TSC)
		return csf_rdtsc();
	csf_clock_gettime_(1 /* CLOCK_MONOTONIC */, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The same, and which CPU we are on, if rdtscp is said to tell. */
static inline uint64_t csf_now_aux_(const struct csf_hdr *hdr, uint32_t *aux)
{
	if (hdr->clock == CSF_CLOCK_TSC)
		return csf_rdtscp_(aux);
	*aux = 0;
	if (hdr->flags & CSF_F_TSC_AUX)
		csf_rdtscp_(aux);
	return csf_now(hdr);
}

/* Ticks of hdr's clock as ns, rounded down; UINT64_MAX for what is more. hdr is a snapshot's. */
static inline uint64_t csf_cyc_to_ns_u64(const struct csf_hdr *hdr, uint64_t cyc)
{
	__extension__ const unsigned __int128 ns = (unsigned __int128)cyc * hdr->mult >>
						   (hdr->shift & 63);

	return ns >> 64 ? UINT64_MAX : (uint64_t)ns;
}

/* The same for arithmetic in floating point: exact to 2^53 ns (104 days), above to 16 digits. */
static inline double csf_cyc_to_ns(const struct csf_hdr *hdr, uint64_t cyc)
{
	return (double)csf_cyc_to_ns_u64(hdr, cyc);
}

/* ---- reading any page ---- */

/* One load each, which the compiler neither repeats nor splits: the page changes under our hands.
 */
typedef unsigned long long csf_vec_ __attribute__((vector_size(16), aligned(8), may_alias));
typedef uint64_t csf_u64_ __attribute__((may_alias));

static inline uint64_t csf_word_(const void *p)
{
	return *(const volatile csf_u64_ *)p;
}

static inline void csf_copy_(void *to, const void *from, size_t off)
{
	*(csf_vec_ *)((char *)to + off) = *(const volatile csf_vec_ *)((const char *)from + off);
}

static inline void csf_copy48_(void *to, const void *from, size_t off)
{
	csf_copy_(to, from, off);
	csf_copy_(to, from, off + 16);
	csf_copy_(to, from, off + 32);
}

/* The bytes that the writer knows, in words of 64 bits, and zeros for the rest of an older page. */
static inline void csf_copy_known_(void *to, const void *from, size_t known, size_t want)
{
	size_t off;

	for (off = 0; off + 8 <= want; off += 8)
		*(csf_u64_ *)((char *)to + off) =
			off + 8 <= known ? csf_word_((const char *)from + off) : 0;
}

/* More than any writer needs, unless the hypervisor took its CPU away in the middle. */
#define CSF_TRIES_ (1 << 20)

/*
 * A consistent copy of pg, and the clock at that moment. 0, or -1 with EBUSY.
 *
 * The lfence keeps the second look at seq behind the clock: rdtscp waits for earlier loads but
 * lets later ones pass, and the writer may be another CPU. The fast path below needs none: there
 * the writer is the reader's own CPU, which changes seq only at an interrupt or in a system
 * call, and those are precise.
 */
static inline int csf_read_(const struct csf_thread *pg, struct csf_snap *s, uint32_t *aux)
{
	uint32_t seq, gen;
	int i;

	for (i = 0; i < CSF_TRIES_; i++) {
		gen = __atomic_load_n(&pg->hdr.gen, __ATOMIC_ACQUIRE);
		seq = __atomic_load_n(&pg->seq, __ATOMIC_ACQUIRE);
		if (!((gen | seq) & 1)) {
			csf_copy_known_(&s->p, pg, pg->hdr.size, sizeof(s->p));
			s->tsc = csf_now_aux_(&s->p.hdr, aux);
			__asm__ __volatile__("lfence" : : : "memory");
			if (__atomic_load_n(&pg->seq, __ATOMIC_ACQUIRE) == seq &&
			    __atomic_load_n(&pg->hdr.gen, __ATOMIC_ACQUIRE) == gen)
				return 0;
		}
		__asm__ __volatile__("pause");
	}
	return csf_fail_(EBUSY);
}

/* A TSC read on another CPU than the one that wrote last_switch_tsc may be a little behind it. */
static inline void csf_extrapolate_(struct csf_snap *s, __u64 *bucket)
{
	if (s->tsc < s->p.last_switch_tsc)
		s->tsc = s->p.last_switch_tsc;
	if (bucket)
		*bucket += s->tsc - s->p.last_switch_tsc;
	s->extrapolated = !!bucket;
}

/*
 * Read the page of any thread, mapped from a descriptor of thread-self that its owner handed
 * over; len is the length of the mapping. s->extrapolated says what could be known: 1 for a
 * thread that runs or waits for a CPU, whose state lasts until we would see it change. 0 for one
 * that blocked, since it may have been woken since, for a parked page and for a dead thread's:
 * the buckets are as of .p.last_switch_tsc.
 *
 * 0, or -1 with errno: EPROTO (no thread page, or of another ABI), ESTALE (the kernel gave up on
 * the TSC), EBUSY (it was being written whenever we looked, for many milliseconds: try again).
 */
static inline int csf_page_snap(const void *page, size_t len, struct csf_snap *s)
{
	const struct csf_thread *pg = (const struct csf_thread *)page;
	__u64 *bucket = NULL;
	uint32_t aux;

	if (!csf_check_(&pg->hdr, len, CSF_KIND_THREAD, CSF_THREAD_MIN_))
		return csf_fail_(EPROTO);
	if (csf_read_(pg, s, &aux))
		return -1;
	if (s->p.hdr.flags & CSF_F_TSC_UNSTABLE)
		return csf_fail_(ESTALE);
	if (!(s->p.hdr.flags & (CSF_F_PARKED | CSF_F_DEAD))) {
		if (s->p.state == CSF_ONCPU)
			bucket = &s->p.oncpu_cyc;
		else if (s->p.state == CSF_RUNQ)
			bucket = &s->p.runq_cyc;
	}
	csf_extrapolate_(s, bucket);
	return 0;
}

/* ---- the calling thread ---- */

/* We run, on this CPU: a page that says otherwise is of the thread whose memory we share. */
static inline int csf_is_here_(const struct csf_snap *s, uint32_t cpu, uint32_t mask)
{
	return s->p.state == CSF_ONCPU && !((s->p.cpu ^ cpu) & mask);
}

static inline int csf_thread_try_(struct csf_snap *s)
{
	struct csf_self_ *self = &csf_self_v1_;
	int reopened = 0, switched = 0;
	uint32_t aux;

	for (;;) {
		if (self->epoch != csf_epoch_() && csf_thread_setup_(self, 0))
			return -1;
		if (csf_read_(csf_self_page_(self), s, &aux))
			return -1;
		if (s->p.hdr.flags & CSF_F_TSC_UNSTABLE)
			return csf_fail_(ESTALE);
		/* A running thread's own page has not ended, unless its descriptor was abused. */
		if (!(s->p.hdr.flags & (CSF_F_PARKED | CSF_F_DEAD))) {
			if (csf_is_here_(s, aux, self->aux_mask))
				break;
			/* The server's program can miss a switch to us, which the next one mends. */
			if (s->p.hdr.clock != CSF_CLOCK_MONOTONIC || s->p.tid != csf_gettid_() ||
			    switched++ == CSF_SWITCHES_)
				return csf_fail_(ESRCH);
			csf_switch_(switched);
			continue;
		}
		if (reopened++)
			return csf_fail_(ESRCH);
		if (csf_thread_setup_(self, 1))
			return -1;
	}
	self->want = (uint64_t)s->p.hdr.gen << 32 | s->p.hdr.flags;
	csf_extrapolate_(s, &s->p.oncpu_cyc);
	return 0;
}

/* All that is not the common case of csf_thread_snap(). */
__attribute__((noinline, cold, unused)) static int csf_thread_slow_(struct csf_snap *s)
{
	if (!csf_thread_try_(s))
		return 0;
	s->p.hdr.magic = 0; /* so that nobody takes it for a snapshot */
	return -1;
}

/*
 * Snapshot of the calling thread: its page, the time, and the running bucket brought up to it.
 * In any two snapshots a, b of a thread the differences of the five buckets add up to b.tsc -
 * a.tsc, to the cycle.
 *
 * 0, or -1 with errno, and csf_diff() will refuse *s:
 *	ENOENT	not mounted, or the module is not loaded; and no statpage serve runs
 *	EACCES	the mount's mode= keeps this user out
 *	ESTALE	the kernel gave up on the TSC: the times are worthless
 *	ESRCH	the page is of the thread whose memory we share: a vfork or CLONE_VM child; or we are
 *		that thread, and the child was the first to call and still lives
 *	EPROTO	not a page of this ABI
 *	ENOMEM	no memory, also by the limit of the memory cgroup; too many mappings
 *	EMFILE, ENFILE	no descriptor free for the moment of the first use
 *	EAGAIN	mlockall(MCL_FUTURE) is in force and RLIMIT_MEMLOCK is used up; statpage serve was not seen to
 *		write the page
 *	EOPNOTSUPP	no MADV_WIPEONFORK: without it a forked child could not be made safe
 *	EPERM	a thread that the module cannot follow (io_uring worker, on its way out)
 *	EBUSY	only with somebody else's page: it was being written whenever we looked
 *	ENOSPC, ETIMEDOUT	of statpage serve: it has no page left; it did not answer within 10 s
 */
static inline int csf_thread_snap(struct csf_snap *s)
{
	const struct csf_self_ *self = &csf_self_v1_;
	const struct csf_thread *pg;
	uint64_t seq, tsc, ran;
	uint32_t aux;

	if (__builtin_expect(csf_epoch_() != self->fast, 0))
		return csf_thread_slow_(s);
	pg = csf_self_page_(self);
	seq = __atomic_load_n(&pg->seq, __ATOMIC_ACQUIRE) & ~(uint32_t)1;
	csf_copy48_(&s->p, pg, 0); /* all of the header but its last reserved words */
	csf_copy48_(&s->p, pg, 64);
	csf_copy48_(&s->p, pg, 112);
	csf_copy48_(&s->p, pg, 160);
	csf_copy_(&s->p, pg, 208);
	csf_copy_(&s->p, pg, 224);
	*(csf_u64_ *)&s->p.write_bytes = csf_word_(&pg->write_bytes);
	tsc = csf_rdtscp_(&aux);
	/* The first comparison also says that seq was even, and that state is CSF_ONCPU, 0. */
	if (__builtin_expect(*(const csf_u64_ *)&pg->seq != seq ||
				     *(const csf_u64_ *)&pg->hdr.flags != self->want ||
				     ((aux ^ s->p.cpu) & self->aux_mask) ||
				     __builtin_sub_overflow(tsc, s->p.last_switch_tsc, &ran),
			     0))
		return csf_thread_slow_(s);
	s->p.oncpu_cyc += ran;
	s->tsc = tsc;
	s->extrapolated = 1;
	return 0;
}

/* ---- the machine's CPU times ---- */

/* Row nr of the page, and what the header says, of one refresh. 0, or -1 with errno. */
static inline int csf_cpu_read_(const struct csf_cpu *pg, size_t len, struct csf_cpu_snap *s,
				uint32_t nr)
{
	const size_t at = pg->rows_off + (size_t)nr * pg->row_size;
	uint32_t seq;
	int i;

	if (pg->row_size % 8 || pg->rows_off % 8 || at + pg->row_size > len)
		return csf_fail_(EPROTO);
	for (i = 0; i < CSF_TRIES_; i++) {
		seq = __atomic_load_n(&pg->seq, __ATOMIC_ACQUIRE);
		if (!(seq & 1)) {
			csf_copy_known_(&s->row, (const char *)pg + at, pg->row_size,
					sizeof(s->row));
			s->update_mono_ns = csf_word_(&pg->update_mono_ns);
			s->update_tsc = csf_word_(&pg->update_tsc);
			s->nr_updates = csf_word_(&pg->nr_updates);
			s->nr_corrected = csf_word_(&pg->nr_corrected);
			s->period_us = __atomic_load_n(&pg->period_us, __ATOMIC_ACQUIRE);
			s->tick_ns = __atomic_load_n(&pg->tick_ns, __ATOMIC_ACQUIRE);
			if (__atomic_load_n(&pg->seq, __ATOMIC_ACQUIRE) == seq)
				return 0;
		}
		__asm__ __volatile__("pause");
	}
	return csf_fail_(EBUSY);
}

/*
 * CPU times of one CPU, or of all with CSF_CPU_ALL, as of s->update_mono_ns. The first call of a
 * process maps the page, and while it is mapped the kernel refreshes it every period_us: see
 * csf_cpu_close(). An offline CPU's row is what it last was, and row.flags lacks CSF_CPU_ONLINE.
 *
 * 0, or -1 with errno: ERANGE (beyond the last CPU id), ENXIO (an id that no CPU of this machine
 * can have; *s is filled, the row is zero), EBUSY, and from the first call on those of
 * csf_thread_snap() but ESRCH and ESTALE.
 */
static inline int csf_cpu_snap(struct csf_cpu_snap *s, unsigned int cpu)
{
	const struct csf_cpu *pg;
	size_t len = 0;

	pg = csf_cpu_page_(&len);
	if (!pg)
		return -1;
	if (!pg->nr_rows)
		return csf_fail_(EPROTO);
	if (cpu != CSF_CPU_ALL && cpu >= pg->nr_rows - 1)
		return csf_fail_(ERANGE);
	if (csf_cpu_read_(pg, len, s, cpu == CSF_CPU_ALL ? 0 : cpu + 1))
		return -1;
	s->nr_cpus = pg->nr_rows - 1;
	return s->row.flags & CSF_CPU_POSSIBLE ? 0 : csf_fail_(ENXIO);
}

/*
 * Unmap the cpu page, so that the kernel may stop refreshing it. The next csf_cpu_snap() maps it
 * again. No other thread may be in csf_cpu_snap().
 */
static inline void csf_cpu_close(void)
{
	csf_cpu_unmap_();
}

/* ---- the difference of two snapshots ---- */

/* Where the time between two snapshots of a thread went. ns[] is by enum csf_state. */
struct csf_diff {
	uint64_t wall_ns; /* the sum of ns[] */
	uint64_t ns[CSF_NR_STATES];
};

/* Time that s accounts for, since the start that the page names. */
static inline uint64_t csf_accounted_(const struct csf_snap *s)
{
	return (s->extrapolated ? s->tsc : s->p.last_switch_tsc) - s->p.start_tsc;
}

/*
 * The buckets between two snapshots in ns, by the factors of b. Each is off by less than 1 ns, so
 * that they add up: laid one after the other, it is their ends that are rounded. Where a snapshot
 * was not extrapolated its time ends at .p.last_switch_tsc.
 *
 * 0, or -1 with EINVAL: the snapshots are not of one thread's one accounting, b is the older, or one is
 * none, since taking it failed.
 */
static inline int csf_diff(struct csf_diff *d, const struct csf_snap *a, const struct csf_snap *b)
{
	const __u64 *from = &a->p.oncpu_cyc, *to = &b->p.oncpu_cyc;
	uint64_t cyc = 0, end;
	int i;

	/* start_tsc moves back when two CPUs' clocks disagree; forward only to begin anew. */
	if (a->p.hdr.magic != CSF_MAGIC || b->p.hdr.magic != CSF_MAGIC || a->p.tid != b->p.tid ||
	    b->p.start_tsc > a->p.start_tsc || a->p.hdr.clock != b->p.hdr.clock ||
	    csf_accounted_(b) < csf_accounted_(a))
		return csf_fail_(EINVAL);
	d->wall_ns = 0;
	for (i = 0; i < CSF_NR_STATES; i++) {
		/* Another thread's bucket may have been extrapolated some cycles too far. */
		if (to[i] > from[i] && __builtin_add_overflow(cyc, to[i] - from[i], &cyc))
			cyc = UINT64_MAX;
		end = csf_cyc_to_ns_u64(&b->p.hdr, cyc);
		d->ns[i] = end - d->wall_ns;
		d->wall_ns = end;
	}
	return 0;
}

/* Fits whatever csf_format_diff() prints, the final NUL included. */
#define CSF_DIFF_BUFSZ 512

struct csf_num_ {
	char s[24];
};

/* b - a, or "-" where it is not known. */
static inline struct csf_num_ csf_num_(int known, uint64_t a, uint64_t b)
{
	struct csf_num_ n = {"-"};

	if (known && b >= a)
		snprintf(n.s, sizeof(n.s), "%llu", (unsigned long long)(b - a));
	return n;
}

/*
 * A span of time in ms. Its ends are rounded, not its length: so the spans of a line add up as
 * printed, and an empty one is 0.000. In integers: a locale may print a comma.
 */
static inline struct csf_num_ csf_ms_(uint64_t from_ns, uint64_t to_ns)
{
	const uint64_t us = to_ns / 1000 - from_ns / 1000;
	struct csf_num_ n;

	snprintf(n.s, sizeof(n.s), "%llu.%03u", (unsigned long long)(us / 1000),
		 (unsigned int)(us % 1000));
	return n;
}

/*
 * One line, without newline, on where the time between two snapshots of a thread went (in two
 *here):
 *
 *	wall 25.119ms = cpu 0.017 + runq 0.000 + sleep 25.102 + dsleep 0.000 + iowait 0.000
 *	| preempt 0 block 1 migrate 0 | flt 4/0 | sysc r0 w0 | io r0B w0B
 *
 * Times are ms; flt is minor/major. A number that is not known prints as `-`. The line goes on with
 * ` | as of the last switch` if a snapshot was not extrapolated: then the time is counted between
 * switches; and with ` | clock changed` if its frequency did, or the machine slept, in between.
 *
 * The length without the NUL, as snprintf() has it: size or more means that the line was cut. -1
 * with EINVAL as from csf_diff(); the line is `not measured` then. Any thread; not for signal handlers; the locale does not matter.
 */
static inline int csf_format_diff(char *buf, size_t size, const struct csf_snap *a,
				  const struct csf_snap *b)
{
	const unsigned int absent = a->p.hdr.absent | b->p.hdr.absent;
	struct csf_diff d;
	uint64_t end[CSF_NR_STATES] = {0};
	int i;

	if (csf_diff(&d, a, b)) {
		snprintf(buf, size, "not measured");
		return csf_fail_(EINVAL);
	}
	for (i = 0; i < CSF_NR_STATES; i++)
		end[i] = d.ns[i] + (i ? end[i - 1] : 0);
#define CSF_NUM_(field, group)                                                            \
	csf_num_(CSF_HAS(&a->p, struct csf_thread, field) &&                              \
			 CSF_HAS(&b->p, struct csf_thread, field) && !(absent & (group)), \
		 a->p.field, b->p.field)                                                  \
		.s
	return snprintf(buf, size,
			"wall %sms = cpu %s + runq %s + sleep %s + dsleep %s + iowait %s"
			" | preempt %s block %s migrate %s | flt %s/%s"
			" | sysc r%s w%s | io r%sB w%sB%s%s",
			csf_ms_(0, d.wall_ns).s, csf_ms_(0, end[0]).s, csf_ms_(end[0], end[1]).s,
			csf_ms_(end[1], end[2]).s, csf_ms_(end[2], end[3]).s,
			csf_ms_(end[3], end[4]).s, CSF_NUM_(nr_preempt, 0), CSF_NUM_(nr_block, 0),
			CSF_NUM_(nr_migrate, 0), CSF_NUM_(min_flt, 0), CSF_NUM_(maj_flt, 0),
			CSF_NUM_(syscr, CSF_ABSENT_SYSC), CSF_NUM_(syscw, CSF_ABSENT_SYSC),
			CSF_NUM_(read_bytes, CSF_ABSENT_IO), CSF_NUM_(write_bytes, CSF_ABSENT_IO),
			a->extrapolated && b->extrapolated ? "" : " | as of the last switch",
			a->p.hdr.gen == b->p.hdr.gen ? "" : " | clock changed");
#undef CSF_NUM_
}

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif /* LIB_COARSE_STAT_FS_H */
