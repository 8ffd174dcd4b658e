/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * coarse_stat_fs: layout of the pages that the kernel module (or another producer) writes and a reader
 * maps read-only. This is the whole contract; both sides compile this file.
 *
 * Rules that keep it stable:
 *  - fields are only ever appended, never moved or reused; reserved bytes are zero;
 *  - a reader asks whether a field lies inside csf_hdr.size (CSF_HAS) and never trusts sizeof;
 *  - a field that this kernel does not account is named in csf_hdr.absent and must not be read as 0.
 */
#ifndef _UAPI_COARSE_STAT_FS_H
#define _UAPI_COARSE_STAT_FS_H

#include <linux/types.h>
#ifndef __KERNEL__
#include <stddef.h>
#endif

#define CSF_FS_NAME	"coarse_stat_fs"
#define CSF_MOUNT	"/sys/kernel/coarse_stat_fs"
#define CSF_FS_MAGIC	0x63736673 /* statfs().f_type: "csfs" */
#define CSF_MAGIC	0x31465343 /* csf_hdr.magic: "CSF1" in memory */
#define CSF_ABI_VERSION 1

/*
 * Where no module can be loaded `statpage serve` hands out the same pages, by CSF_CLOCK_MONOTONIC, over this
 * SOCK_SEQPACKET socket: a request is answered by a reply, whose descriptor (SCM_RIGHTS) is mapped like a
 * file of CSF_SERVE_BYTES. A thread is of the process that connected, and begins when it is next switched to.
 *
 * A viewer may ask for any thread, and has its pages until it closes the socket: root when it connected, with
 * CAP_SYS_PTRACE, in the server's user and pid namespaces. Such a page begins at once.
 */
#define CSF_SERVE_SOCKET "/run/statpage/threads.sock"
#define CSF_SERVE_BYTES	 4096

struct csf_serve_request {
	__u32 magic; /* CSF_MAGIC */
	__u16 abi;   /* CSF_ABI_VERSION */
	__u16 kind;  /* CSF_KIND_THREAD */
	__u32 tid;   /* in the thread's own pid namespace; a viewer's: in the server's */
	__u32 pid; /* 0: the process that connected; a viewer's: any, in the server's pid namespace */
};

/*
 * error: 0; EPROTO: not a request of this ABI; ESRCH: the process has no such thread; ENOSPC: no page left;
 * EPERM: who connected is no viewer; EUSERS: too many viewers; EAGAIN: the thread executes another program
 */
struct csf_serve_reply {
	__u32 magic;
	__u32 error;
};

/* csf_hdr.kind */
enum csf_kind {
	CSF_KIND_THREAD = 1,
	CSF_KIND_CPU = 2,
};

/* csf_hdr.clock: what the *_cyc and *_tsc fields count */
enum csf_clock {
	CSF_CLOCK_TSC = 1,	 /* TSC cycles; csf_hdr.mult and shift make ns of them */
	CSF_CLOCK_MONOTONIC = 2, /* ns of CLOCK_MONOTONIC; mult and shift are the identity */
};

/* csf_hdr.flags */
#define CSF_F_TSC_UNSTABLE (1u << 0) /* the kernel gave up on the TSC: the times are worthless */
#define CSF_F_PARKED	   (1u << 1) /* accounting stopped: exec, or closed by another thread */
#define CSF_F_DEAD	   (1u << 2) /* the owner exited; the page holds its last values */
#define CSF_F_TSC_AUX	   (1u << 3) /* rdtscp's third word holds the CPU number (low 12 bits) */

/* csf_hdr.absent: groups of fields that this kernel does not account */
#define CSF_ABSENT_SYSC (1u << 0) /* syscr, syscw, (CONFIG_TASK_XACCT) */
#define CSF_ABSENT_IO	(1u << 1) /* read_bytes, write_bytes (CONFIG_TASK_IO_ACCOUNTING) */

/*
 * Header of every page, 64 bytes. Constant but for flags, and for gen, freq_khz, mult and shift, which
 * change together (suspend, a frequency that the kernel refined): gen is odd while they are being
 * written, and differs afterwards. Take gen, read the factors, take gen again. gen only grows.
 *
 * flags and gen are one aligned word of 64 bits, so that a reader which has seen both before learns
 * with one comparison that neither changed.
 */
struct csf_hdr {
	__u32 magic;	/* CSF_MAGIC */
	__u16 abi;	/* CSF_ABI_VERSION of the writer */
	__u16 kind;	/* enum csf_kind */
	__u32 size;	/* bytes of this page that the writer knows, this header included */
	__u32 clock;	/* enum csf_clock */
	__u32 flags;	/* CSF_F_* */
	__u32 gen;	/* generation of freq_khz, mult and shift */
	__u32 freq_khz; /* ticks of the clock per millisecond */
	__u32 mult;	/* ns = cycles * mult >> shift, in 128 bits */
	__u32 shift;
	__u32 absent; /* CSF_ABSENT_* */
	__u64 reserved[3];
};

/* csf_thread.state: the bucket that time since last_switch_tsc belongs to */
enum csf_state {
	CSF_ONCPU = 0,
	CSF_RUNQ = 1,	/* runnable, waiting for a CPU */
	CSF_SLEEP = 2,	/* interruptible: poll, futex, timer; stopped, traced, frozen, idle too */
	CSF_DSLEEP = 3, /* uninterruptible, not I/O; killable and lock waits of PREEMPT_RT too */
	CSF_IOWAIT = 4, /* either kind of sleep, with the task marked as waiting for I/O */
	CSF_NR_STATES
};

/*
 * The page of one thread. seq is odd while the kernel writes; read it, copy, read it again.
 * Everything from seq on is as of last_switch_tsc, the thread's last switch off or onto a CPU. While the
 * thread runs, the time since then belongs to the bucket `state`; the other fields lag behind.
 *
 * The five buckets add up to last_switch_tsc - start_tsc, to the cycle.
 */
struct csf_thread {
	struct csf_hdr hdr;

	__u32 seq;
	__u32 state;	       /* enum csf_state */
	__u32 tid;	       /* thread id in the pid namespace of the thread itself */
	__u32 cpu;	       /* CPU that it runs on or last ran on */
	__u64 last_switch_tsc; /* clock at the last update of this page */
	__u64 start_tsc;       /* clock at the open that began the accounting */

	__u64 oncpu_cyc; /* running */
	__u64 runq_cyc;	 /* the rest: see enum csf_state */
	__u64 sleep_cyc;
	__u64 dsleep_cyc;
	__u64 iowait_cyc;

	__u64 nr_preempt; /* involuntary switches (getrusage: nivcsw) since start_tsc */
	__u64 nr_block;	  /* voluntary switches (nvcsw) since start_tsc */
	__u64 nr_migrate; /* times it came back on another CPU than it left, since start_tsc */
	__u64 nr_clamp;	  /* times two CPUs' clocks disagreed and a negative interval became 0 */

	/* Since the thread was created, as the scheduler and the accounting keep them. */
	__u64 min_flt;	    /* page faults without I/O */
	__u64 maj_flt;	    /* page faults with I/O */
	__u64 sum_exec_ns;  /* CPU time */
	__u64 run_delay_ns; /* run queue time: the second word of /proc/thread-self/schedstat */
	__u64 utime_ns;	    /* user time; raw, so tick-sampled unless the kernel accounts exactly */
	__u64 stime_ns;	    /* system time; likewise */
	__u64 syscr;	    /* read(2)-like system calls */
	__u64 syscw;	    /* write(2)-like system calls */
	__u64 read_bytes;   /* bytes fetched from storage */
	__u64 write_bytes;  /* bytes sent to storage */
};

/* csf_cpu_row.flags */
#define CSF_CPU_POSSIBLE (1u << 0) /* an id that can exist; other rows are all zero */
#define CSF_CPU_ONLINE	 (1u << 1) /* online at the last refresh; else the row is what it last was */

/* CPU times as in /proc/stat, in ns since boot. user includes guest, nice includes guest_nice. */
struct csf_cpu_row {
	__u32 flags;
	__u32 cpu; /* CPU id; CSF_CPU_ALL in the sum row */
	__u64 user_ns;
	__u64 nice_ns;
	__u64 system_ns;
	__u64 idle_ns;
	__u64 iowait_ns;
	__u64 irq_ns;
	__u64 softirq_ns;
	__u64 steal_ns;
	__u64 guest_ns;
	__u64 guest_nice_ns;
};

#define CSF_CPU_ALL 0xffffffffu

/*
 * The page of the machine: this, then nr_rows rows of row_size bytes, the first at rows_off: the sum of
 * all CPUs, then one for each CPU id from 0. Refreshed every period_us while somebody has it open.
 * seq is odd while the kernel writes.
 */
struct csf_cpu {
	struct csf_hdr hdr;

	__u32 seq;
	__u32 rows_off;
	__u32 row_size;
	__u32 nr_rows;	      /* CPU ids plus one */
	__u64 update_mono_ns; /* CLOCK_MONOTONIC of the last refresh */
	__u64 update_tsc;
	__u64 nr_updates; /* refreshes since the module was loaded */
	__u64 nr_corrected; /* times idle or iowait ran backwards in the kernel and was held instead */
	__u32 period_us;
	__u32 tick_ns; /* how fine the kernel accounts busy time; 0: exactly, at each switch */
	__u64 reserved;
};

/* Whether the writer of the page behind p knows the field: CSF_HAS(page, struct csf_thread, syscr). */
#define CSF_HAS(p, type, field) \
	(((const struct csf_hdr *)(p))->size >= offsetof(type, field) + sizeof(((type *)0)->field))

#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(struct csf_hdr) == 64, "csf_hdr is 64 bytes");
_Static_assert(offsetof(struct csf_hdr, flags) % 8 == 0, "flags and gen are one word");
_Static_assert(offsetof(struct csf_hdr, gen) == offsetof(struct csf_hdr, flags) + 4, "likewise");
_Static_assert(offsetof(struct csf_thread, seq) == 64, "the body follows the header");
_Static_assert(offsetof(struct csf_thread, state) == 68, "seq and state are one word, too");
_Static_assert(sizeof(struct csf_thread) == 64 + 32 + 5 * 8 + 4 * 8 + 10 * 8, "no holes");
_Static_assert(sizeof(struct csf_cpu_row) == 88, "no holes");
_Static_assert(sizeof(struct csf_cpu) == 64 + 16 + 40 + 8 + 0, "no holes");
#endif

#endif /* _UAPI_COARSE_STAT_FS_H */
