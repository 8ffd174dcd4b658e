/* SPDX-License-Identifier: GPL-2.0 */
/* Nodes and their hooks: what probe.c shares with the files that attach. */
#ifndef KSTATS_NODE_H
#define KSTATS_NODE_H

#include <linux/fprobe.h>
#include <linux/ftrace.h>
#include <linux/kprobes.h>
#include <linux/pid.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/tracepoint.h>

#include "../compat.h"
#include "internal.h"

enum kstats_role {
	KSTATS_CALL, /* entry and return of one function */
	KSTATS_START,
	KSTATS_END,
};

/* One place in the kernel that a node is called from. */
struct kstats_hook {
	struct kstats_node *node;
	enum kstats_role role;
	enum kstats_via via; /* once attached */
	bool attached;
	unsigned long ip; /* where the hook sits; 0: tracepoint */
	struct tracepoint *tp;
	struct module *tp_mod;	  /* which has tp; compared only */
	struct kstats_slot *slot; /* direct; NULL when it is left for good */
	u64 calls;		  /* direct: how many there were, once slot is NULL */
	union {
		struct kprobe kp;
		struct kretprobe rp;
		struct ftrace_ops ops;
		struct fprobe fp;
	};
};

struct kstats_filter {
	struct pid *pid;	  /* of a process; NULL: any */
	int cpu;		  /* -1: any */
	char comm[TASK_COMM_LEN]; /* "": any */
};

struct kstats_node {
	struct kstats *ks; /* has the GAP metric in ks->gap */
	refcount_t users;  /* the list of nodes, and each slot that calls may be in */
	bool watches_tasks;
	struct kstats_filter filter;
	bool task_filter_at_end; /* direct has no code of its own at the entry */
	bool by_cpu;
	bool gone; /* the module that was traced has been unloaded */
	enum kstats_via via;
	int maxactive;
	char start[KSTATS_SYM_MAX + 1], end[KSTATS_SYM_MAX + 1]; /* end "": return */
	char fallback[96]; /* why it is not the mechanism one would expect; "" */
	struct kstats_hook hook[2];
	struct kstats_pairs *pairs; /* of start and end; NULL: calls */
	struct list_head list;
};

/* Does this task belong to what the node looks at? */
static __always_inline bool kstats_wants_task(const struct kstats_node *node)
{
	const struct kstats_filter *f = &node->filter;

	if (f->pid && task_tgid(current) != f->pid)
		return false;
	return !f->comm[0] || !strncmp(current->comm, f->comm, TASK_COMM_LEN);
}

static inline bool kstats_filters_task(const struct kstats_node *node)
{
	return node->filter.pid || node->filter.comm[0];
}

/* func.c: functions by kprobe, kretprobe, fprobe, ftrace; each returns 0 or -errno with why set */
int kstats_resolve(const char *sym, unsigned long *ip, struct kstats_why *why);
int kstats_attach_func(struct kstats_hook *hook, enum kstats_via via, struct kstats_why *why);
void kstats_detach_func(struct kstats_hook *hook);
u64 kstats_hook_missed(const struct kstats_hook *hook);

/* canary.c */
int kstats_canary_get(struct kstats_why *why);
void kstats_canary_put(void);
bool kstats_ftrace_on(void);

/* tracepoint.c */
struct tracepoint *kstats_find_tracepoint(const char *name, struct module **mod);
int kstats_attach_tracepoint(struct kstats_hook *hook, struct kstats_why *why);
void kstats_detach_tracepoint(struct kstats_hook *hook);
int kstats_watch_tasks(struct kstats_node *node);
void kstats_unwatch_tasks(struct kstats_node *node);
int kstats_tracepoint_init(void);
void kstats_tracepoint_exit(void);

/* pair.c: the open starts of X..Y */
struct kstats_pairs *kstats_pairs_new(bool by_cpu);
void kstats_pairs_free(struct kstats_pairs *pairs);
void kstats_pair_start(struct kstats_node *node);
void kstats_pair_end(struct kstats_node *node);
void kstats_pairs_task_died(struct kstats_node *node, struct task_struct *task);
u64 kstats_pairs_open(const struct kstats_pairs *pairs);

/* direct.c, where there are trampolines */
#if defined(CONFIG_X86_64) && defined(CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS) && \
	defined(CONFIG_HAVE_STATIC_CALL_INLINE) && defined(CONFIG_TASKS_RCU)
#define KSTATS_DIRECT
#endif
int kstats_attach_direct(struct kstats_hook *hook, struct kstats_why *why);
void kstats_detach_direct(struct kstats_hook *hook);
void kstats_direct_counts(const struct kstats_hook *hook, u64 *entries, u64 *exits);
void kstats_direct_show(struct seq_file *m);
void kstats_direct_pin(void);
int kstats_direct_init(void);
void kstats_direct_exit(void);

/* probe.c */
void kstats_node_put(struct kstats_node *node);
void kstats_nodes_tracepoints_going(const struct module *mod);

/* btf.c: words of stack arguments of a function of the kernel; -ENOENT: not known */
int kstats_stack_words(const char *name, size_t len);

#endif /* KSTATS_NODE_H */
