// SPDX-License-Identifier: GPL-2.0
/* Nodes: what trace makes and remove takes away. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>

#include "clock.h"
#include "node.h"
#include "uapi/kstats_noreturn.h"

LIST_HEAD(kstats_nodes); /* kstats_mutex */

const char *const kstats_via_names[KSTATS_VIAS] = {
	"auto", "direct", "kretprobe", "fprobe", "kprobe", "ftrace", "tracepoint",
};

static bool never_returns(const char *sym)
{
	size_t len = strcspn(sym, "@");
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kstats_noreturn); i++)
		if (strlen(kstats_noreturn[i]) == len && !strncmp(kstats_noreturn[i], sym, len))
			return true;
	return false;
}

/* What a name of a command means. 0: the hook knows its place. */
static int locate(struct kstats_hook *hook, const char *sym, enum kstats_via via,
		  struct kstats_why *why)
{
	static const char prefix[] = "__tracepoint_";
	const char *event = strchr(sym, ':');
	int err;
	bool is_tp = !strncmp(sym, prefix, strlen(prefix));

	if (is_tp)
		event = sym + strlen(prefix);
	else if (event)
		event++;
	else if (via == KSTATS_VIA_TRACEPOINT)
		event = sym;
	if (event)
		hook->tp = kstats_find_tracepoint(event, &hook->tp_mod);
	if (hook->tp)
		return 0;
	if (is_tp || via == KSTATS_VIA_TRACEPOINT)
		return kstats_fail(why, -ENOENT, "no tracepoint %s", event);
	err = kstats_resolve(sym, &hook->ip, why);
	if (err == -ENOENT && event)
		kstats_fail(why, err, "no tracepoint %s, and no function of a module", sym);
	return err;
}

/* Does the command make sense as a whole? */
static int check(const struct kstats_spec *spec, struct kstats_why *why)
{
	static const char *const role[] = {"the time from entry to return", "start and end"};
	bool pair = spec->end, fits;

	if (strlen(spec->start) > KSTATS_SYM_MAX || (pair && strlen(spec->end) > KSTATS_SYM_MAX))
		return kstats_fail(why, -EINVAL, "a start or end of more than %d bytes",
				   KSTATS_SYM_MAX);
	if (pair && !strcmp(spec->start, spec->end))
		return kstats_fail(why, -EINVAL, "start and end are both %s: see its GAP- metric",
				   spec->end);
	if (spec->by_cpu && !pair)
		return kstats_fail(why, -EINVAL, "by cpu needs an end");
	if (spec->maxactive && pair)
		return kstats_fail(why, -EINVAL, "maxactive is for calls, not for start and end");
	if (!pair && never_returns(spec->start))
		return kstats_fail(why, -EINVAL, "%s never returns: give an end", spec->start);
	switch (spec->via) {
	case KSTATS_VIA_KRETPROBE:
	case KSTATS_VIA_FPROBE:
		fits = !pair;
		break;
	case KSTATS_VIA_KPROBE:
	case KSTATS_VIA_FTRACE:
	case KSTATS_VIA_TRACEPOINT:
		fits = pair;
		break;
	default:
		fits = true;
	}
	if (!fits)
		return kstats_fail(why, -EINVAL, "via %s cannot do %s", kstats_via_names[spec->via],
				   role[pair]);
	return 0;
}

/* Try one mechanism on a hook that knows its place. */
static int attach_via(struct kstats_hook *hook, enum kstats_via via, struct kstats_why *why)
{
	if (via == KSTATS_VIA_DIRECT)
		return kstats_attach_direct(hook, why);
	return kstats_attach_func(hook, via, why);
}

/*
 * Attach by the mechanism asked for, or by the cheapest that works: each refusal is kept as the reason
 * for falling back. The best comes first; kprobe is last, as it can sit where ftrace cannot.
 */
static int attach(struct kstats_hook *hook, enum kstats_via want, struct kstats_why *why)
{
	static const enum kstats_via calls[] = {KSTATS_VIA_DIRECT, KSTATS_VIA_KRETPROBE};
	static const enum kstats_via pairs[] = {KSTATS_VIA_DIRECT, KSTATS_VIA_FTRACE,
						KSTATS_VIA_KPROBE};
	const enum kstats_via *order = hook->role == KSTATS_CALL ? calls : pairs;
	unsigned int nr = hook->role == KSTATS_CALL ? ARRAY_SIZE(calls) : ARRAY_SIZE(pairs), i;
	struct kstats_node *node = hook->node;
	int err = -EINVAL;

	if (hook->tp)
		return kstats_attach_tracepoint(hook, why);
	if (want != KSTATS_VIA_AUTO)
		return attach_via(hook, want, why);
	for (i = 0; i < nr; i++) {
		err = attach_via(hook, order[i], why);
		if (!err || err == -ENOMEM)
			return err;
		if (!node->fallback[0])
			strscpy(node->fallback, why->text, sizeof(node->fallback));
	}
	return err;
}

static void detach(struct kstats_hook *hook)
{
	if (!hook->attached)
		return;
	if (hook->via == KSTATS_VIA_DIRECT)
		kstats_detach_direct(hook);
	else if (hook->via == KSTATS_VIA_TRACEPOINT)
		kstats_detach_tracepoint(hook);
	else
		kstats_detach_func(hook);
}

void kstats_node_put(struct kstats_node *node)
{
	if (!refcount_dec_and_test(&node->users))
		return;
	kstats_release(node->ks->gap);
	kstats_release(node->ks);
	kstats_pairs_free(node->pairs);
	put_pid(node->filter.pid);
	kfree(node);
}

/* The starts first, so that no end is missed that still has one. */
static void node_detach(struct kstats_node *node)
{
	detach(&node->hook[0]);
	detach(&node->hook[1]);
	if (node->watches_tasks)
		kstats_unwatch_tasks(node);
	node->watches_tasks = false;
}

/* Takes everything away that can be seen; what calls are still using goes when they are done. */
static void node_remove(struct kstats_node *node)
{
	list_del(&node->list);
	node_detach(node);
	if (node->ks->gap)
		kstats_withdraw(node->ks->gap);
	kstats_withdraw(node->ks);
	kstats_node_put(node);
}

static int make_gap(struct kstats_node *node, u8 bits, struct kstats_why *why)
{
	char name[sizeof(KSTATS_GAP_PREFIX) + KSTATS_NAME_MAX];
	struct kstats *gap;

	snprintf(name, sizeof(name), KSTATS_GAP_PREFIX "%s", node->ks->name);
	gap = kstats_create(name, bits, why);
	if (IS_ERR(gap))
		return PTR_ERR(gap);
	gap->node = node;
	node->ks->gap = gap;
	node->ks->last_end = &gap->tally->last_end;
	return 0;
}

/* A node with its metrics, attached to nothing, on the list. */
static struct kstats_node *node_create(const struct kstats_spec *spec, struct kstats_why *why)
{
	struct kstats_node *node;
	struct kstats *ks;
	int i, err;

	node = kzalloc(sizeof(*node), GFP_KERNEL);
	if (!node)
		return ERR_PTR(kstats_fail(why, -ENOMEM, "no memory"));
	ks = kstats_create(spec->name, spec->bits, why);
	if (IS_ERR(ks)) {
		kfree(node);
		return ERR_CAST(ks);
	}
	refcount_set(&node->users, 1);
	node->ks = ks;
	ks->node = node;
	node->by_cpu = spec->by_cpu;
	node->via = spec->via;
	node->maxactive = spec->maxactive;
	node->filter.cpu = spec->cpu;
	node->filter.pid = get_pid(spec->pid);
	strscpy(node->filter.comm, spec->comm ?: "", sizeof(node->filter.comm));
	strscpy(node->start, spec->start, sizeof(node->start));
	strscpy(node->end, spec->end ?: "", sizeof(node->end));
	for (i = 0; i < 2; i++)
		node->hook[i].node = node;
	list_add_tail(&node->list, &kstats_nodes);
	err = spec->gap ? make_gap(node, spec->bits, why) : 0;
	if (!err && spec->end) {
		node->pairs = kstats_pairs_new(spec->by_cpu);
		if (!node->pairs)
			err = kstats_fail(why, -ENOMEM, "no memory for open starts");
	}
	if (!err)
		return node;
	node_remove(node);
	return ERR_PTR(err);
}

/* Ends first, so that a start never waits for an end that nobody sees. */
static int node_attach(struct kstats_node *node, struct kstats_why *why)
{
	struct kstats_hook *start = &node->hook[0], *end = &node->hook[1];
	int err;

	start->role = node->pairs ? KSTATS_START : KSTATS_CALL;
	end->role = KSTATS_END;
	err = locate(start, node->start, node->via, why);
	if (!err && start->tp && !node->pairs)
		err = kstats_fail(why, -EINVAL, "tracepoint %s has no return: give an end",
				  start->tp->name);
	if (!err && node->pairs)
		err = locate(end, node->end, node->via, why);
	if (err)
		return err;
	if (node->pairs) {
		if (!node->by_cpu && !kstats_watch_tasks(node))
			node->watches_tasks = true;
		err = attach(end, node->via, why);
	}
	if (!err)
		err = attach(start, node->via, why);
	if (err)
		return err;
	node->via = start->via;
	node->task_filter_at_end = start->via == KSTATS_VIA_DIRECT && start->role == KSTATS_CALL &&
				   kstats_filters_task(node);
	kstats_set_mode(node->ks, false);
	if (node->ks->gap)
		kstats_set_mode(node->ks->gap, false);
	return 0;
}

int kstats_trace(const struct kstats_spec *spec, struct kstats_why *why)
{
	struct kstats_node *node;
	int err = check(spec, why);

	if (!err && kstats_clock_lost())
		err = kstats_fail(why, -EIO, "%s: the TSC was marked unstable: load kstats anew",
				  spec->name);
	if (err)
		return err;
	mutex_lock(&kstats_mutex);
	node = node_create(spec, why);
	if (IS_ERR(node)) {
		err = PTR_ERR(node);
		goto out;
	}
	err = node_attach(node, why);
	if (!err)
		err = kstats_publish(node->ks, why);
	if (!err && node->ks->gap)
		err = kstats_publish(node->ks->gap, why);
	if (err)
		node_remove(node);
	else if (node->fallback[0])
		pr_info("%s: via %s: %s\n", node->ks->name, kstats_via_names[node->via],
			node->fallback);
out:
	mutex_unlock(&kstats_mutex);
	return err;
}

int kstats_untrace(const char *name, struct kstats_why *why)
{
	struct kstats *ks;
	int err = 0;

	mutex_lock(&kstats_mutex);
	ks = kstats_find(name);
	if (!ks)
		err = kstats_fail(why, -ENOENT, "%s: no such node", name);
	else if (!ks->node)
		err = kstats_fail(why, -ENOENT, "%s is a module's metric, not made by trace", name);
	else if (ks != ks->node->ks)
		err = kstats_fail(why, -ENOENT, "%s goes with its node %s", name,
				  ks->node->ks->name);
	else
		node_remove(ks->node);
	mutex_unlock(&kstats_mutex);
	return err;
}

void kstats_untrace_all(void)
{
	struct kstats_node *node, *tmp;

	mutex_lock(&kstats_mutex);
	list_for_each_entry_safe(node, tmp, &kstats_nodes, list)
		node_remove(node);
	mutex_unlock(&kstats_mutex);
}

static void node_gone(struct kstats_node *node, const struct module *mod)
{
	pr_info("%s: module %s is being unloaded, nothing more is recorded\n", node->ks->name,
		mod->name);
	node_detach(node);
	node->gone = true;
}

/* A module's code goes away: let go of it, and keep what was recorded. */
void kstats_nodes_module_going(struct module *mod)
{
	struct kstats_node *node;
	int i;

	mutex_lock(&kstats_mutex);
	list_for_each_entry(node, &kstats_nodes, list)
		for (i = 0; i < 2; i++)
			if (node->hook[i].attached && node->hook[i].ip &&
			    within_module(node->hook[i].ip, mod))
				node_gone(node, mod);
	mutex_unlock(&kstats_mutex);
}

/* The same for its tracepoints; the caller holds kstats_mutex. */
void kstats_nodes_tracepoints_going(const struct module *mod)
{
	struct kstats_node *node;
	int i;

	lockdep_assert_held(&kstats_mutex);
	list_for_each_entry(node, &kstats_nodes, list)
		for (i = 0; i < 2; i++)
			if (node->hook[i].attached && node->hook[i].tp &&
			    node->hook[i].tp_mod == mod)
				node_gone(node, mod);
}

/*
 * Entries and exits that the hooks counted, since the node was made: every entry becomes an exit, as a
 * sample or as something else. missed: calls that no hook saw. Exits are read first, so that there are
 * never more of them than of entries.
 */
void kstats_node_counts(const struct kstats *ks, u64 *entries, u64 *exits, u64 *missed)
{
	const struct kstats_node *node = ks->node;
	const struct kstats_hook *start;

	*entries = *exits = *missed = 0;
	if (!node || ks != node->ks)
		return;
	start = &node->hook[0];
	if (start->role == KSTATS_CALL && start->via == KSTATS_VIA_DIRECT) {
		kstats_direct_counts(start, entries, exits);
		return;
	}
	*exits = kstats_sum_event(ks, KSTATS_EXIT);
	*entries = kstats_sum_event(ks, KSTATS_ENTRY);
	*missed = kstats_hook_missed(start);
}

/* What a metric measures, in a comment line. */
void kstats_show_origin(struct seq_file *m, const struct kstats *ks)
{
	const struct kstats_node *node = ks->node;

	if (!node) {
		seq_puts(m, "# samples of a module\n");
		return;
	}
	seq_printf(m, "# %s start %s end %s by %s via %s clock ", ks == node->ks ? "time" : "gap",
		   node->start, node->end[0] ? node->end : "return", node->by_cpu ? "cpu" : "task",
		   kstats_via_names[node->via]);
	kstats_clock_show(m);
	seq_putc(m, '\n');
	if (node->fallback[0])
		seq_printf(m, "# fallback %s\n", node->fallback);
	if (node->gone)
		seq_puts(m, "# the traced module was unloaded\n");
}

static void show_filter(struct seq_file *m, const struct kstats_filter *f)
{
	if (f->pid)
		seq_printf(m, " pid %d", pid_nr(f->pid));
	if (f->comm[0])
		seq_printf(m, " comm %s", f->comm);
	if (f->cpu >= 0)
		seq_printf(m, " only-cpu %d", f->cpu);
}

/* A node's line in _control and _nodes. */
void kstats_show_node(struct seq_file *m, const struct kstats_node *node)
{
	struct kstats *ks = node->ks;
	struct kstats_ledger ledger;
	u8 mode;

	mutex_lock(&ks->lock);
	kstats_read_ledger(ks, kstats_recorded(ks), &ledger);
	mode = ks->mode;
	mutex_unlock(&ks->lock);
	seq_printf(m, "%s start %s end %s bits %u by %s via %s gap %s state %s", ks->name,
		   node->start, node->end[0] ? node->end : "return", ks->bits,
		   node->by_cpu ? "cpu" : "task", kstats_via_names[node->via],
		   ks->gap ? "yes" : "no",
		   node->gone		      ? "gone" :
		   ks->lost_clock	      ? "lost-clock" :
		   mode & KSTATS_MODE_STOPPED ? "stopped" :
						"running");
	show_filter(m, &node->filter);
	seq_putc(m, ' ');
	kstats_show_ledger(m, &ledger);
	if (node->fallback[0])
		seq_printf(m, " note %s", node->fallback);
	seq_putc(m, '\n');
}
