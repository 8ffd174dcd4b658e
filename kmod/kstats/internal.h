/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kstats inside: a metric (struct kstats) is a histogram with its file; a node (struct kstats_node) is
 * a metric that is fed by hooks, with its GAP metric.
 *
 * Locks, outermost first: kstats_mutex (the list of metrics and nodes, attaching and detaching), then
 * kstats.lock (one metric's baseline and state). Opening or writing a metric's file takes only the
 * latter, so that debugfs_remove() may wait for it under kstats_mutex.
 */
#ifndef KSTATS_INTERNAL_H
#define KSTATS_INTERNAL_H

#include <linux/debugfs.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/types.h>
#include <linux/u64_stats_sync.h>

#define KSTATS_ENABLED
#include <linux/kstats.h>
#include "uapi/kstats.h"
#include "uapi/kstats_bucket.h"

/*
 * A slot. sum is kept modulo 2^64, and of values whose slot is wider than 2^KSTATS_SUM_EXP their low
 * bits are shifted out first. A reader knows to within the slot's width what each sample was, so it
 * gets the true sum back as long as one CPU has put fewer than 2^(64 - KSTATS_SUM_EXP) samples into
 * the slot: 2^40, and far more where the slots are narrower. Hence an average is exact where slots are
 * at most 2^24 wide (values below 2^28 with 3 bits), and low by less than 2^-24 slot widths above.
 */
#define KSTATS_SUM_EXP 24
struct kstats_cell {
	u64 count;
	u64 sum;
};

/* One CPU's copy: 30,720 bytes with 5 bits, and the per-CPU allocator ends at 32,768. */
struct kstats_hist {
	struct u64_stats_sync sync; /* empty where longs are 64 bits wide */
	struct kstats_cell cell[];
};

/* Events that are counted apart from the samples. */
enum kstats_event {
	KSTATS_ENTRY,	   /* calls or starts seen; not with direct: the slot counts them */
	KSTATS_EXIT,	   /* returns seen; likewise */
	KSTATS_FILTERED,   /* calls that a filter left out */
	KSTATS_STOPPED,	   /* calls that ended while the metric was stopped */
	KSTATS_UNPAIRED,   /* ends without a start: no sample was due */
	KSTATS_MISS_TABLE, /* no room for the start of one more task */
	KSTATS_MISS_NEST,  /* starts that were pushed out by KSTATS_NEST_MAX later ones */
	KSTATS_MISS_DIED,  /* the task died between start and end */
	KSTATS_MISS_CLOCK, /* the clock ran back */
	KSTATS_MISS_NMI,   /* not possible in an NMI here */
	KSTATS_EVENTS,
};

struct kstats_tally {
	u64 n[KSTATS_EVENTS];
	u64 last_end;
};

/* What reset subtracts: a reading. Tallies are sums over all CPUs. */
struct kstats_base {
	u64 n[KSTATS_EVENTS];
	u64 exits, hook_missed;
	struct kstats_cell *cpu[]; /* by CPU id */
};

/* kstats.mode: what the slow path has to look at. */
#define KSTATS_MODE_FILTER  0x40 /* ask the node's filter first */
#define KSTATS_MODE_STOPPED 0x80

struct kstats {
	struct kstats_hist __percpu *hist;
	/*
	 * What the fast paths may take, in one comparison each; 0 when they may not, see kstats_set_mode().
	 */
	u64 quick_value; /* values from QUICK_LOW up to this more */
	u64 quick_time;	 /* differences of the clock below this */
	u64 quick_both;	 /* the same, when gap may be fast too */
	u8 mode;
	u8 bits;
	bool lost_clock;	  /* the TSC became unstable: no times any more */
	struct kstats *gap;	  /* the node's GAP metric; NULL: none */
	u64 __percpu *last_end;	  /* gap: when the latest call ended; 0: a start took it */
	struct kstats_node *node; /* NULL: annotated */
	struct kstats_tally __percpu *tally;
	struct mutex lock;	  /* base, and changes of mode */
	struct kstats_base *base; /* NULL: never reset */
	u64 since;		  /* ktime_get_boottime_ns() of creation or reset */
	struct dentry *file;
	struct list_head list;
	char name[KSTATS_NAME_MAX + 1];
};

/* kstats_node.via, and the order of the words in kstats_via_names */
enum kstats_via {
	KSTATS_VIA_AUTO,
	KSTATS_VIA_DIRECT,
	KSTATS_VIA_KRETPROBE,
	KSTATS_VIA_FPROBE,
	KSTATS_VIA_KPROBE,
	KSTATS_VIA_FTRACE,
	KSTATS_VIA_TRACEPOINT,
	KSTATS_VIAS,
};
extern const char *const kstats_via_names[KSTATS_VIAS];

/* A parsed `trace`. Strings are the caller's and copied. */
struct kstats_spec {
	const char *name, *start, *end, *comm;
	u8 bits;
	bool by_cpu, gap;
	enum kstats_via via;
	int maxactive; /* 0: the kernel's default */
	int cpu;       /* -1: any */
	struct pid *pid;
};

/* One line of explanation, for the kernel log and for the writer of the command. */
struct kstats_why {
	char text[160];
};
/* Sets the line and returns err. */
__printf(3, 4) int kstats_fail(struct kstats_why *why, int err, const char *fmt, ...);

/* main.c: metrics and their names */
extern struct mutex kstats_mutex;
extern struct list_head kstats_metrics;
extern struct list_head kstats_nodes;
struct kstats *kstats_create(const char *name, u8 bits, struct kstats_why *why);
int kstats_publish(struct kstats *ks, struct kstats_why *why);
void kstats_withdraw(struct kstats *ks);
void kstats_release(struct kstats *ks);
struct kstats *kstats_find(const char *name);
u64 kstats_memory(u8 bits);

/* hist.c: recording and reading */
int kstats_hist_alloc(struct kstats *ks);
void kstats_hist_free(struct kstats *ks);
void kstats_set_mode(struct kstats *ks, bool stopped);
int kstats_reset(struct kstats *ks);
void kstats_read_cpu(struct kstats *ks, int cpu, struct kstats_cell *to);
u64 kstats_cell_sum(const struct kstats_cell *cell, u32 slot, u8 bits);
u64 kstats_cell_mean(const struct kstats_cell *cell, u32 slot, u8 bits);
u64 kstats_recorded(struct kstats *ks);
u64 kstats_sum_event(const struct kstats *ks, enum kstats_event e);
u64 kstats_events(const struct kstats *ks, enum kstats_event e);

/* What a metric's ledger says; since the last reset. */
struct kstats_ledger {
	u64 attempted; /* = recorded + missed + filtered + stopped + inside */
	u64 recorded, missed, filtered, stopped, inside, unpaired;
	u64 miss_instance, miss_table, miss_nest, miss_died, miss_clock, miss_nmi;
};
void kstats_read_ledger(struct kstats *ks, u64 recorded, struct kstats_ledger *to);
void kstats_show_ledger(struct seq_file *m, const struct kstats_ledger *l);

/* debugfs.c: a metric's file; control.c: _control and _nodes */
extern struct dentry *kstats_dir;
extern const struct file_operations kstats_metric_fops;
int kstats_control_init(void);
void kstats_control_exit(void);

/* probe.c: nodes */
int kstats_trace(const struct kstats_spec *spec, struct kstats_why *why);
int kstats_untrace(const char *name, struct kstats_why *why);
void kstats_untrace_all(void);
void kstats_show_node(struct seq_file *m, const struct kstats_node *node);
void kstats_show_origin(struct seq_file *m, const struct kstats *ks);
void kstats_nodes_module_going(struct module *mod);
void kstats_node_counts(const struct kstats *ks, u64 *entries, u64 *exits, u64 *missed);

#endif /* KSTATS_INTERNAL_H */
