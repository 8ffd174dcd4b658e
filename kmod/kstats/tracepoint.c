// SPDX-License-Identifier: GPL-2.0
/*
 * Tracepoints, of the kernel and of modules. One callback without parameters beyond its data serves
 * them all: the C ABI lets a function ignore arguments that it is passed. A kernel built with kCFI
 * checks prototypes at indirect calls, so there we refuse.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>

#include "node.h"

/* Modules that have tracepoints; kstats_mutex. */
struct tp_owner {
	struct list_head list;
	struct module *mod;
};
static LIST_HEAD(owners);

struct search {
	const char *name;
	struct tracepoint *found;
};

static void match(struct tracepoint *tp, void *data)
{
	struct search *s = data;

	if (!s->found && !strcmp(tp->name, s->name))
		s->found = tp;
}

/* NULL: there is none. *mod: the module that has it, NULL for the kernel. */
struct tracepoint *kstats_find_tracepoint(const char *name, struct module **mod)
{
	struct search s = {.name = name};
	struct tp_owner *o;
	unsigned int i;

	lockdep_assert_held(&kstats_mutex);
	*mod = NULL;
	for_each_kernel_tracepoint(match, &s);
	if (s.found)
		return s.found;
	list_for_each_entry(o, &owners, list) {
		for (i = 0; i < o->mod->num_tracepoints; i++)
			match(tracepoint_ptr_deref(&o->mod->tracepoints_ptrs[i]), &s);
		if (s.found) {
			*mod = o->mod;
			return s.found;
		}
	}
	return NULL;
}

static notrace void at_start(void *data)
{
	kstats_pair_start(data);
}

static notrace void at_end(void *data)
{
	kstats_pair_end(data);
}

static void *callback(const struct kstats_hook *hook)
{
	return hook->role == KSTATS_START ? at_start : at_end;
}

int kstats_attach_tracepoint(struct kstats_hook *hook, struct kstats_why *why)
{
	int err;

	if (IS_ENABLED(CONFIG_CFI_CLANG) || IS_ENABLED(CONFIG_CFI))
		return kstats_fail(why, -EOPNOTSUPP,
				   "tracepoint %s: this kernel has kCFI, use the BPF engine",
				   hook->tp->name);
	err = tracepoint_probe_register(hook->tp, callback(hook), hook->node);
	if (err)
		return kstats_fail(why, err, "tracepoint %s cannot be attached", hook->tp->name);
	hook->via = KSTATS_VIA_TRACEPOINT;
	hook->attached = true;
	return 0;
}

/* On return the callback does not run any more. */
void kstats_detach_tracepoint(struct kstats_hook *hook)
{
	tracepoint_probe_unregister(hook->tp, callback(hook), hook->node);
	tracepoint_synchronize_unregister();
	hook->attached = false;
}

static int module_event(struct notifier_block *nb, unsigned long event, void *data)
{
	struct tp_module *tp_mod = data;
	struct tp_owner *o, *tmp;

	mutex_lock(&kstats_mutex);
	if (event == MODULE_STATE_COMING) {
		o = kmalloc(sizeof(*o), GFP_KERNEL);
		if (o) {
			o->mod = tp_mod->mod;
			list_add(&o->list, &owners);
		}
	} else if (event == MODULE_STATE_GOING) {
		kstats_nodes_tracepoints_going(tp_mod->mod);
		list_for_each_entry_safe(o, tmp, &owners, list) {
			if (o->mod != tp_mod->mod)
				continue;
			list_del(&o->list);
			kfree(o);
		}
	}
	mutex_unlock(&kstats_mutex);
	return NOTIFY_OK;
}

static struct notifier_block module_nb = {.notifier_call = module_event};

/*
 * Tasks' starts are dropped when the task_struct is freed: by then it cannot run, and until then no
 * other task has its address. The tracepoint's first argument after the data is the task.
 */
static struct tracepoint *task_free;

static notrace void at_task_free(void *data, struct task_struct *task)
{
	kstats_pairs_task_died(data, task);
}

int kstats_watch_tasks(struct kstats_node *node)
{
	return task_free ? tracepoint_probe_register(task_free, at_task_free, node) : -ENOENT;
}

void kstats_unwatch_tasks(struct kstats_node *node)
{
	tracepoint_probe_unregister(task_free, at_task_free, node);
	tracepoint_synchronize_unregister();
}

int kstats_tracepoint_init(void)
{
	struct module *mod;

	mutex_lock(&kstats_mutex);
	task_free = kstats_find_tracepoint("sched_process_free", &mod);
	mutex_unlock(&kstats_mutex);
	return register_tracepoint_module_notifier(
		&module_nb); /* tells about those that are there */
}

/* Also tells that all modules go, which empties the list of owners. */
void kstats_tracepoint_exit(void)
{
	unregister_tracepoint_module_notifier(&module_nb);
}
