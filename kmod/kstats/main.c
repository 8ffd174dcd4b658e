// SPDX-License-Identifier: GPL-2.0
/* kstats: metrics and their names, the module's start and end. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "clock.h"
#include "node.h"

DEFINE_MUTEX(kstats_mutex);
LIST_HEAD(kstats_metrics);
struct dentry *kstats_dir;

static unsigned int max_mib = 256;
module_param(max_mib, uint, 0644);
MODULE_PARM_DESC(max_mib, "MiB that all histograms together may take (256)");
static u64 memory; /* taken by metrics, in bytes; kstats_mutex */

int kstats_fail(struct kstats_why *why, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vscnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
	return err;
}

struct kstats *kstats_find(const char *name)
{
	struct kstats *ks;

	lockdep_assert_held(&kstats_mutex);
	list_for_each_entry(ks, &kstats_metrics, list)
		if (!strcmp(ks->name, name))
			return ks;
	return NULL;
}

/* A name becomes a file's name, and a word of a line of text. */
static int check_name(const char *name, struct kstats_why *why)
{
	const char *c;
	size_t len;

	if (!name || !*name)
		return kstats_fail(why, -EINVAL, "the name is empty");
	len = strnlen(name, KSTATS_NAME_MAX + 1);
	if (len > KSTATS_NAME_MAX)
		return kstats_fail(why, -EINVAL, "name %.20s... is longer than %d bytes", name,
				   KSTATS_NAME_MAX);
	if (*name == '_')
		return kstats_fail(why, -EINVAL, "name %s: a leading _ is kept for kstats", name);
	if (*name == '#' || *name == '(')
		return kstats_fail(why, -EINVAL, "name %s: lists have lines that begin so", name);
	if (strspn(name, ".") == len)
		return kstats_fail(why, -EINVAL, "name %s: dots only", name);
	for (c = name; *c; c++)
		if (*c == '/' || *c <= ' ' || *c > '~')
			return kstats_fail(why, -EINVAL,
					   "name %*pE: no /, no space, printable ASCII only",
					   (int)len, name);
	if (kstats_find(name))
		return kstats_fail(why, -EEXIST, "name %s is taken", name);
	return 0;
}

/* Bytes that a metric takes in the per-CPU areas. */
u64 kstats_memory(u8 bits)
{
	return (u64)num_possible_cpus() *
	       (KSTATS_NR_SLOTS(bits) * sizeof(struct kstats_cell) + sizeof(struct kstats_tally));
}

/* Make a metric without a file; kstats_publish() shows it. */
struct kstats *kstats_create(const char *name, u8 bits, struct kstats_why *why)
{
	struct kstats *ks;
	int err;

	lockdep_assert_held(&kstats_mutex);
	if (bits > KSTATS_MAX_BITS) {
		err = kstats_fail(why, -EINVAL, "bits %u, expected 0..%d", bits, KSTATS_MAX_BITS);
		return ERR_PTR(err);
	}
	err = check_name(name, why);
	if (err)
		return ERR_PTR(err);
	if (memory + kstats_memory(bits) > (u64)READ_ONCE(max_mib) << 20) {
		err = kstats_fail(why, -ENOMEM, "%s: all histograms together may take %u MiB (%s)",
				  name, max_mib, "module parameter max_mib");
		return ERR_PTR(err);
	}
	ks = kzalloc(sizeof(*ks), GFP_KERNEL);
	if (!ks)
		goto err_memory;
	ks->bits = bits;
	if (kstats_hist_alloc(ks))
		goto err_free;
	strscpy(ks->name, name, sizeof(ks->name));
	mutex_init(&ks->lock);
	ks->since = ktime_get_boottime_ns();
	ks->lost_clock = kstats_clock_lost();
	kstats_set_mode(ks, false);
	memory += kstats_memory(bits);
	list_add_tail(&ks->list, &kstats_metrics);
	return ks;

err_free:
	kfree(ks);
err_memory:
	err = kstats_fail(why, -ENOMEM, "%s: no memory for a histogram", name);
	return ERR_PTR(err);
}

/* Make the file. Writing needs CAP_DAC_OVERRIDE, reading works under lockdown, which is why 0444. */
int kstats_publish(struct kstats *ks, struct kstats_why *why)
{
	struct dentry *file;

	file = debugfs_create_file(ks->name, 0444, kstats_dir, ks, &kstats_metric_fops);
	if (IS_ERR(file))
		return kstats_fail(why, PTR_ERR(file), "%s: debugfs made no file", ks->name);
	ks->file = file;
	return 0;
}

/*
 * Take the file and the name away, and wait for readers of the file. Samples may still come in until
 * kstats_release().
 */
void kstats_withdraw(struct kstats *ks)
{
	lockdep_assert_held(&kstats_mutex);
	debugfs_remove(ks->file);
	ks->file = NULL;
	list_del(&ks->list);
	memory -= kstats_memory(ks->bits);
}

void kstats_release(struct kstats *ks)
{
	if (!ks)
		return;
	kstats_hist_free(ks);
	kfree(ks);
}

struct kstats *kstats_new(const char *name, u8 frac_bits)
{
	struct kstats_why why;
	struct kstats *ks;
	int err = 0;

	mutex_lock(&kstats_mutex);
	ks = kstats_create(name, frac_bits, &why);
	if (IS_ERR(ks)) {
		err = PTR_ERR(ks);
		ks = NULL;
	} else {
		err = kstats_publish(ks, &why);
		if (err) {
			kstats_withdraw(ks);
			kstats_release(ks);
			ks = NULL;
		}
	}
	mutex_unlock(&kstats_mutex);
	if (err)
		pr_err("kstats_new: %s (errno %d)\n", why.text, -err);
	return ks;
}
EXPORT_SYMBOL_GPL(kstats_new);

void kstats_delete(struct kstats *ks)
{
	if (!ks)
		return;
	mutex_lock(&kstats_mutex);
	kstats_withdraw(ks);
	mutex_unlock(&kstats_mutex);
	kstats_release(ks);
}
EXPORT_SYMBOL_GPL(kstats_delete);

/* A clock that lies must not go on filling histograms. */
static void stop_all(void)
{
	struct kstats *ks;

	mutex_lock(&kstats_mutex);
	list_for_each_entry(ks, &kstats_metrics, list) {
		if (ks->lost_clock)
			continue;
		mutex_lock(&ks->lock);
		ks->lost_clock = true;
		kstats_set_mode(ks, ks->node || ks->mode & KSTATS_MODE_STOPPED);
		mutex_unlock(&ks->lock);
		if (ks->node)
			pr_err("%s: stopped, the TSC has been marked unstable\n", ks->name);
	}
	mutex_unlock(&kstats_mutex);
}

static void look_after(struct work_struct *work);
static DECLARE_DELAYED_WORK(watch, look_after);

static void look_after(struct work_struct *work)
{
	if (kstats_clock_lost())
		stop_all();
	kstats_direct_pin();
	queue_delayed_work(system_power_efficient_wq, &watch, HZ);
}

static int module_event(struct notifier_block *nb, unsigned long event, void *mod)
{
	if (event == MODULE_STATE_GOING && mod != THIS_MODULE)
		kstats_nodes_module_going(mod);
	return NOTIFY_OK;
}

static struct notifier_block module_nb = {.notifier_call = module_event};

static int __init kstats_init(void)
{
	int err;

	kstats_clock_init();
	kstats_dir = debugfs_create_dir("kstats", NULL);
	if (IS_ERR(kstats_dir)) {
		err = PTR_ERR(kstats_dir);
		pr_err("no debugfs (errno %d): it is off (debugfs=off), or kstats is there\n",
		       -err);
		return err;
	}
	err = kstats_direct_init();
	if (err)
		goto err_dir;
	err = register_module_notifier(&module_nb);
	if (err)
		goto err_direct;
	err = kstats_tracepoint_init();
	if (err)
		goto err_notifier;
	err = kstats_control_init();
	if (err)
		goto err_tracepoint;
	queue_delayed_work(system_power_efficient_wq, &watch, HZ);
	return 0;

err_tracepoint:
	kstats_tracepoint_exit();
err_notifier:
	unregister_module_notifier(&module_nb);
err_direct:
	kstats_direct_exit();
err_dir:
	debugfs_remove(kstats_dir);
	return err;
}

static void __exit kstats_exit(void)
{
	kstats_control_exit(); /* nobody can trace any more */
	cancel_delayed_work_sync(&watch);
	kstats_untrace_all();
	kstats_tracepoint_exit();
	unregister_module_notifier(&module_nb);
	kstats_direct_exit(); /* waits for calls inside */
	debugfs_remove(kstats_dir);
}

/* Built in, it is there before what wants to be measured. */
#ifdef MODULE
module_init(kstats_init);
#else
subsys_initcall(kstats_init);
#endif
module_exit(kstats_exit);

MODULE_DESCRIPTION("Per-CPU latency histograms of kernel functions and tracepoints");
MODULE_LICENSE("GPL");
