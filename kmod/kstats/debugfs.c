// SPDX-License-Identifier: GPL-2.0
/*
 * A metric's file. Opening it for reading takes a copy, and reading prints the copy: one consistent
 * state however slowly it is read, and however the histogram fills meanwhile.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "clock.h"
#include "node.h"

/*
 * row[] has one table a CPU and the sum of all at nr_cpu_ids, each allocated by itself: one block for
 * 1,024 CPUs at 5 bits would be 30 MiB. A row's count is the number of samples up to and including
 * the slot, its sum is the slot's average.
 */
struct snapshot {
	struct kstats *ks; /* alive while debugfs lets us run */
	struct kstats_ledger ledger;
	u64 sum; /* of all samples; U64_MAX: at least */
	bool stopped, ftrace_off;
	u32 nr; /* slots */
	struct kstats_cell *row[];
};

static void snapshot_free(struct snapshot *snap)
{
	int cpu;

	for (cpu = 0; cpu <= nr_cpu_ids; cpu++)
		kvfree(snap->row[cpu]);
	kvfree(snap);
}

static struct snapshot *snapshot_alloc(u32 nr)
{
	struct snapshot *snap;
	int cpu;

	snap = kvzalloc(struct_size(snap, row, nr_cpu_ids + 1), GFP_KERNEL);
	if (!snap)
		return NULL;
	snap->nr = nr;
	for (cpu = 0; cpu <= nr_cpu_ids; cpu++) {
		if (cpu < nr_cpu_ids && !cpu_possible(cpu))
			continue;
		snap->row[cpu] = kvcalloc(nr, sizeof(struct kstats_cell), GFP_KERNEL);
		if (!snap->row[cpu]) {
			snapshot_free(snap);
			return NULL;
		}
	}
	return snap;
}

/* From counts and raw sums to counts so far and averages. Returns the true sum. */
static u64 accumulate(struct kstats_cell *row, u32 nr, u8 bits)
{
	u64 before = 0, total = 0, sum;
	u32 i;

	for (i = 0; i < nr; i++) {
		sum = kstats_cell_sum(&row[i], i, bits);
		if (check_add_overflow(total, sum, &total) || sum == U64_MAX)
			total = U64_MAX;
		if (row[i].count)
			row[i].sum = kstats_cell_mean(&row[i], i, bits);
		before += row[i].count;
		row[i].count = before;
	}
	return total;
}

static struct snapshot *snapshot_take(struct kstats *ks)
{
	u32 i, nr = KSTATS_NR_SLOTS(ks->bits);
	struct snapshot *snap = snapshot_alloc(nr);
	struct kstats_cell *all, *row;
	int cpu;

	if (!snap)
		return NULL;
	all = snap->row[nr_cpu_ids];
	snap->ks = ks;
	mutex_lock(&ks->lock);
	for_each_possible_cpu(cpu)
		kstats_read_cpu(ks, cpu, snap->row[cpu]);
	for_each_possible_cpu(cpu) {
		row = snap->row[cpu];
		for (i = 0; i < nr; i++) {
			all[i].count += row[i].count;
			all[i].sum += row[i].sum;
		}
		accumulate(row, nr, ks->bits);
	}
	snap->sum = accumulate(all, nr, ks->bits);
	kstats_read_ledger(ks, all[nr - 1].count, &snap->ledger);
	snap->stopped = ks->mode & KSTATS_MODE_STOPPED;
	mutex_unlock(&ks->lock);
	snap->ftrace_off = ks->node && !kstats_ftrace_on();
	return snap;
}

/* A CPU that cannot be has no row. */
static u64 count_at(const struct kstats_cell *row, u32 slot)
{
	if (!row)
		return 0;
	return row[slot].count - (slot ? row[slot - 1].count : 0);
}

/* The position of a line: 0 for the head, then slot by slot each CPU and the sum, empty ones too. */
#define LINES_A_SLOT ((loff_t)nr_cpu_ids + 1)

/* The next line that is not empty, from pos on; 0: there is none. */
static loff_t next_line(const struct snapshot *snap, loff_t pos)
{
	loff_t at = pos - 1;
	u32 slot = div64_u64(at, LINES_A_SLOT);
	u32 cpu = at - slot * LINES_A_SLOT;

	for (; slot < snap->nr; slot++, cpu = 0) {
		if (!count_at(snap->row[nr_cpu_ids], slot))
			continue;
		for (; cpu <= nr_cpu_ids; cpu++)
			if (count_at(snap->row[cpu], slot))
				return slot * LINES_A_SLOT + cpu + 1;
	}
	return 0;
}

/* A line is handed on as its position plus one, never NULL. */
static void *line_start(struct seq_file *m, loff_t *pos)
{
	loff_t next;

	if (!*pos)
		return SEQ_START_TOKEN;
	next = next_line(m->private, *pos);
	if (!next)
		return NULL; /* and pos stays behind the last line */
	*pos = next;
	return pos;
}

static void *line_next(struct seq_file *m, void *v, loff_t *pos)
{
	loff_t next = next_line(m->private, *pos + 1);

	*pos = next ? next : *pos + 1;
	return next ? pos : NULL;
}

static void line_stop(struct seq_file *m, void *v)
{
}

/* Comment lines hold neither "CPUS" nor "CPU  N", so that grep finds rows only. */
static void show_head(struct seq_file *m, const struct snapshot *snap)
{
	const struct kstats *ks = snap->ks;
	u64 mean = snap->ledger.recorded ? div64_u64(snap->sum, snap->ledger.recorded) : 0;
	u64 since = div_u64(ks->since, NSEC_PER_MSEC);
	u32 ms;

	since = div_u64_rem(since, MSEC_PER_SEC, &ms);
	seq_printf(m, "# bits %u state %s since %llu.%03u s after boot\n", ks->bits,
		   ks->lost_clock && ks->node ? "lost-clock" :
		   snap->stopped	      ? "stopped" :
						"running",
		   since, ms);
	kstats_show_origin(m, ks);
	seq_puts(m, "# ");
	kstats_show_ledger(m, &snap->ledger);
	if (snap->sum == U64_MAX)
		seq_puts(m, "\n# sum more than 64 bits hold\n");
	else
		seq_printf(m, "\n# sum %llu mean %llu\n", snap->sum, mean);
	if (snap->ftrace_off)
		seq_puts(m, "# ftrace is off (kernel.ftrace_enabled=0): calls are not seen\n");
	if (ks->lost_clock)
		seq_printf(m, "# the TSC was marked unstable: %s\n",
			   ks->node ? "stopped, start again is refused" : "times are missed");
}

static int line_show(struct seq_file *m, void *v)
{
	const struct snapshot *snap = m->private;
	const struct kstats_cell *row;
	u64 count, avg, total, before, at;
	u32 slot, cpu, share;

	if (v == SEQ_START_TOKEN) {
		show_head(m, snap);
		return 0;
	}
	at = *(loff_t *)v - 1;
	slot = div64_u64(at, LINES_A_SLOT);
	cpu = at - slot * LINES_A_SLOT;
	row = snap->row[cpu];
	count = count_at(row, slot);
	avg = row[slot].sum;
	before = row[slot].count;
	total = row[snap->nr - 1].count;
	while (total >> 43) { /* keep a million times it in 64 bits; the last is still the whole */
		total >>= 1;
		before >>= 1;
	}
	share = div64_u64(before * 1000000, total);
	seq_printf(m, "slot %-3u CPU%c %-4u count %8llu avg %8llu p %u.%06u\n", slot,
		   cpu < nr_cpu_ids ? ' ' : 'S', cpu, count, avg, share / 1000000, share % 1000000);
	return 0;
}

static const struct seq_operations line_ops = {
	.start = line_start,
	.next = line_next,
	.stop = line_stop,
	.show = line_show,
};

static int metric_open(struct inode *inode, struct file *file)
{
	struct snapshot *snap;
	int err;

	if (!(file->f_mode & FMODE_READ))
		return 0;
	snap = snapshot_take(inode->i_private);
	if (!snap)
		return -ENOMEM;
	err = seq_open(file, &line_ops);
	if (err) {
		snapshot_free(snap);
		return err;
	}
	((struct seq_file *)file->private_data)->private = snap;
	return 0;
}

static int metric_release(struct inode *inode, struct file *file)
{
	struct seq_file *m = file->private_data;

	if (!m)
		return 0;
	snapshot_free(m->private);
	return seq_release(inode, file);
}

static ssize_t metric_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	struct kstats *ks = file_inode(file)->i_private;
	char buf[16], *word;
	int err = 0;

	if (len >= sizeof(buf))
		return -EINVAL;
	if (copy_from_user(buf, from, len))
		return -EFAULT;
	buf[len] = '\0';
	word = strim(buf);
	mutex_lock(&ks->lock);
	if (!strcasecmp(word, "start") && ks->lost_clock && ks->node)
		err = -EIO;
	else if (!strcasecmp(word, "start"))
		kstats_set_mode(ks, false);
	else if (!strcasecmp(word, "stop"))
		kstats_set_mode(ks, true);
	else if (!strcasecmp(word, "reset"))
		err = kstats_reset(ks);
	else
		err = -EINVAL;
	mutex_unlock(&ks->lock);
	return err ? err : len;
}

const struct file_operations kstats_metric_fops = {
	.owner = THIS_MODULE,
	.open = metric_open,
	.release = metric_release,
	.read = seq_read,
	.llseek = seq_lseek,
	.write = metric_write,
};
