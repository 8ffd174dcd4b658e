// SPDX-License-Identifier: GPL-2.0
/*
 * _control and _nodes. A command is parsed here, and the reason why one failed is kept for who wrote
 * it: reading from the same open file gives it in a comment line.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "node.h"

static struct dentry *control, *nodes;

/* A command's words, taken one by one. */
struct words {
	char *word[KSTATS_WORDS_MAX + 1]; /* NULL-terminated */
	unsigned int at;
};

static int split(char *line, struct words *w, struct kstats_why *why)
{
	unsigned int n = 0;
	char *word;

	while ((word = strsep(&line, " \t\n"))) {
		if (!*word)
			continue;
		if (n == KSTATS_WORDS_MAX)
			return kstats_fail(why, -EINVAL, "more than %d words", KSTATS_WORDS_MAX);
		w->word[n++] = word;
	}
	w->word[n] = NULL;
	return 0;
}

/* A whole number min..max after key. */
static int number(const char *key, const char *word, int min, int max, int *to,
		  struct kstats_why *why)
{
	if (kstrtoint(word, 10, to) || *to < min || *to > max)
		return kstats_fail(why, -EINVAL, "%s %s, expected %d..%d", key, word, min, max);
	return 0;
}

static int parse_by(const char *word, struct kstats_spec *spec, struct kstats_why *why)
{
	if (strcasecmp(word, "cpu") && strcasecmp(word, "task"))
		return kstats_fail(why, -EINVAL, "by %s, expected task or cpu", word);
	spec->by_cpu = !strcasecmp(word, "cpu");
	return 0;
}

static int parse_gap(const char *word, struct kstats_spec *spec, struct kstats_why *why)
{
	if (strcasecmp(word, "yes") && strcasecmp(word, "no"))
		return kstats_fail(why, -EINVAL, "gap %s, expected yes or no", word);
	spec->gap = !strcasecmp(word, "yes");
	return 0;
}

static int parse_via(const char *word, struct kstats_spec *spec, struct kstats_why *why)
{
	int i;

	for (i = 0; i < KSTATS_VIAS; i++) {
		if (strcasecmp(word, kstats_via_names[i]))
			continue;
		spec->via = i;
		return 0;
	}
	return kstats_fail(why, -EINVAL,
			   "via %s, expected auto, direct, kretprobe, fprobe, kprobe, ftrace or %s",
			   word, "tracepoint");
}

static int parse_pid(const char *word, struct kstats_spec *spec, struct kstats_why *why)
{
	struct pid *pid;
	bool is_process;
	int nr, err;

	err = number("pid", word, 1, INT_MAX, &nr, why);
	if (err)
		return err;
	pid = find_get_pid(nr); /* a number of the writer's namespace */
	rcu_read_lock();
	is_process = pid_task(pid, PIDTYPE_TGID); /* not a mere thread, which no call would match */
	rcu_read_unlock();
	if (!is_process) {
		put_pid(pid);
		return kstats_fail(why, -ESRCH, "pid %d: no such process", nr);
	}
	put_pid(spec->pid);
	spec->pid = pid;
	return 0;
}

static int parse_comm(const char *word, struct kstats_spec *spec, struct kstats_why *why)
{
	if (strlen(word) >= TASK_COMM_LEN)
		return kstats_fail(why, -EINVAL, "comm %s is longer than %d bytes", word,
				   TASK_COMM_LEN - 1);
	spec->comm = word;
	return 0;
}

static int parse_cpu(const char *word, struct kstats_spec *spec, struct kstats_why *why)
{
	int err = number("cpu", word, 0, nr_cpu_ids - 1, &spec->cpu, why);

	if (!err && !cpu_possible(spec->cpu))
		err = kstats_fail(why, -EINVAL, "cpu %d does not exist", spec->cpu);
	return err;
}

/* One `key value` of a trace command. */
static int parse_pair(const char *key, const char *word, struct kstats_spec *spec,
		      struct kstats_why *why)
{
	int n, err;

	if (!word)
		return kstats_fail(why, -EINVAL, "%s has no value", key);
	if (!strcasecmp(key, "bits")) {
		err = number(key, word, 0, KSTATS_MAX_BITS, &n, why);
		if (!err)
			spec->bits = n;
		return err;
	}
	if (!strcasecmp(key, "maxactive"))
		return number(key, word, 1, 1 << 16, &spec->maxactive, why);
	if (!strcasecmp(key, "start")) {
		spec->start = word;
		return 0;
	}
	if (!strcasecmp(key, "end")) {
		spec->end = word;
		return 0;
	}
	if (!strcasecmp(key, "by"))
		return parse_by(word, spec, why);
	if (!strcasecmp(key, "gap"))
		return parse_gap(word, spec, why);
	if (!strcasecmp(key, "via"))
		return parse_via(word, spec, why);
	if (!strcasecmp(key, "pid"))
		return parse_pid(word, spec, why);
	if (!strcasecmp(key, "comm"))
		return parse_comm(word, spec, why);
	if (!strcasecmp(key, "cpu"))
		return parse_cpu(word, spec, why);
	return kstats_fail(why, -EINVAL,
			   "unknown word %s, expected bits, start, end, by, via, gap, maxactive, "
			   "pid, comm or cpu",
			   key);
}

/* The key that is next, of those before it. */
static bool is_repeated(const struct words *w)
{
	unsigned int i;

	for (i = 2; i < w->at; i += 2)
		if (!strcasecmp(w->word[i], w->word[w->at]))
			return true;
	return false;
}

static int trace(struct words *w, struct kstats_why *why)
{
	struct kstats_spec spec = {.bits = KSTATS_BITS_DEFAULT, .gap = true, .cpu = -1};
	int err = 0;

	spec.name = w->word[1];
	if (!spec.name)
		return kstats_fail(why, -EINVAL, "trace has no name");
	spec.start = spec.name;
	for (w->at = 2; !err && w->word[w->at]; w->at += 2) {
		err = parse_pair(w->word[w->at], w->word[w->at + 1], &spec, why);
		if (!err && is_repeated(w))
			err = kstats_fail(why, -EINVAL, "%s is given twice", w->word[w->at]);
	}
	if (!err)
		err = kstats_trace(&spec, why);
	put_pid(spec.pid);
	return err;
}

static int command(char *line, struct kstats_why *why)
{
	struct words w = {};
	int err = split(line, &w, why);

	if (err)
		return err;
	if (!w.word[0])
		return kstats_fail(why, -EINVAL, "no command, expected trace or remove");
	if (!strcasecmp(w.word[0], "trace"))
		return trace(&w, why);
	if (strcasecmp(w.word[0], "remove"))
		return kstats_fail(why, -EINVAL, "unknown command %s, expected trace or remove",
				   w.word[0]);
	if (!w.word[1] || w.word[2])
		return kstats_fail(why, -EINVAL, "remove takes one name");
	return kstats_untrace(w.word[1], why);
}

static ssize_t control_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	struct seq_file *m = file->private_data;
	struct kstats_why *last = m->private, why = {};
	char buf[KSTATS_CONTROL_MAX + 1];
	int err;

	if (len > KSTATS_CONTROL_MAX) {
		err = kstats_fail(&why, -EINVAL, "a command of %zu bytes, the most is %d", len,
				  KSTATS_CONTROL_MAX);
	} else {
		if (copy_from_user(buf, from, len))
			return -EFAULT;
		buf[len] = '\0';
		err = strlen(buf) < len ? kstats_fail(&why, -EINVAL, "a 0 byte in the command") :
					  command(buf, &why);
	}
	if (!err)
		why.text[0] = '\0'; /* what did not work on the way is the node's note */
	mutex_lock(&m->lock);	    /* against a reader of this open file */
	*last = why;
	mutex_unlock(&m->lock);
	if (!err)
		return len;
	pr_err("%s (errno %d)\n", why.text, -err);
	return err;
}

/* The list, one node at a time, so that a thousand of them need no big buffer. */
static void *list_start(struct seq_file *m, loff_t *pos)
{
	mutex_lock(&kstats_mutex);
	return seq_list_start_head(&kstats_nodes, *pos);
}

static void *list_next(struct seq_file *m, void *v, loff_t *pos)
{
	return seq_list_next(v, &kstats_nodes, pos);
}

static void list_stop(struct seq_file *m, void *v)
{
	mutex_unlock(&kstats_mutex);
}

static int list_show(struct seq_file *m, void *v)
{
	const struct kstats_why *why = m->private;

	if (v != &kstats_nodes) {
		kstats_show_node(m, list_entry(v, struct kstats_node, list));
		return 0;
	}
	if (why->text[0])
		seq_printf(m, "# error: %s\n", why->text);
	kstats_direct_show(m);
	return 0;
}

static const struct seq_operations list_ops = {
	.start = list_start,
	.next = list_next,
	.stop = list_stop,
	.show = list_show,
};

static int nodes_open(struct inode *inode, struct file *file)
{
	return __seq_open_private(file, &list_ops, sizeof(struct kstats_why)) ? 0 : -ENOMEM;
}

static int control_open(struct inode *inode, struct file *file)
{
	return capable(CAP_SYS_ADMIN) ? nodes_open(inode, file) : -EPERM;
}

static const struct file_operations control_fops = {
	.owner = THIS_MODULE,
	.open = control_open,
	.release = seq_release_private,
	.read = seq_read,
	.llseek = seq_lseek,
	.write = control_write,
};

static const struct file_operations nodes_fops = {
	.owner = THIS_MODULE,
	.open = nodes_open,
	.release = seq_release_private,
	.read = seq_read,
	.llseek = seq_lseek,
};

int kstats_control_init(void)
{
	control = debugfs_create_file(KSTATS_CONTROL, 0644, kstats_dir, NULL, &control_fops);
	nodes = debugfs_create_file(KSTATS_NODES, 0444, kstats_dir, NULL, &nodes_fops);
	if (!IS_ERR(control) && !IS_ERR(nodes))
		return 0;
	kstats_control_exit();
	return IS_ERR(control) ? PTR_ERR(control) : PTR_ERR(nodes);
}

void kstats_control_exit(void)
{
	debugfs_remove(control);
	debugfs_remove(nodes);
}
