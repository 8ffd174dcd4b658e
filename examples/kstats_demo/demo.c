// SPDX-License-Identifier: MIT
/*
 * A module to try kstats on. Writing "WHAT [N [TIMES]]" to debugfs kstats_demo/run calls a function of
 * work.c TIMES times, in the writer's own context, and reading the file gives the result of the last
 * run. It also is an example of annotated code: its metric `demo_annotated` has the time of each run.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/interrupt.h>
#include <linux/kstats.h>
#include <linux/kthread.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/stat.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#ifdef CONFIG_X86
#include <asm/msr.h>
#include <asm/tsc.h>
#endif

#include "demo.h"

#define CREATE_TRACE_POINTS
#include "demo_trace.h"

static struct dentry *dir;
static struct kstats *annotated, *recorded;
static char result[256];

static void say(u64 n)
{
	snprintf(result, sizeof(result), "%llu\n", n);
}

static void run_sleep(int n)
{
	kstats_demo_sleep(n);
}

static void run_recurse(int n)
{
	say(kstats_demo_recurse(n));
}

static void run_forever(int n)
{
	kstats_demo_forever();
}

static void run_release(int n)
{
	kstats_demo_release();
}

static void run_empty(int n)
{
	kstats_demo_empty(n);
}

static void run_calls(int n)
{
	say(kstats_demo_calls());
}

static void run_stack_args(int n)
{
	say(kstats_demo_stack_args(n, 1, 2, 3, 4, 5, 6, 7, 8));
}

/* The name is looked for in the stack trace. */
static noinline void kstats_demo_run_unwind(int n)
{
	int between = kstats_demo_unwind();

	snprintf(result, sizeof(result), "%d\n", between);
}

static void tasklet_body(struct tasklet_struct *t)
{
	kstats_demo_softirq_body();
}

static DECLARE_TASKLET(tasklet, tasklet_body);

static void run_softirq(int n)
{
	tasklet_schedule(&tasklet);
	while (test_bit(TASKLET_STATE_SCHED, &tasklet.state))
		cpu_relax();
	tasklet_unlock_wait(&tasklet);
}

/* The values that test the slots: a sample each of 0, 1, 2^32, 2^63 and 2^64 - 1, or n itself. */
static void run_values(int n)
{
	static const u64 v[] = {0, 1, 1ULL << 32, 1ULL << 63, ~0ULL};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(v); i++)
		kstats_record(recorded, v[i]);
}

static void run_record(int n)
{
	kstats_record(recorded, n);
}

/* What two threads do at once, n times each. */
struct batch {
	unsigned long n;
	struct completion done;
};

/*
 * A thread that is told to stop before it has run never calls its function, so it is told only after it
 * has said that it is done.
 */
static int batch_end(struct batch *b)
{
	complete(&b->done);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

/* Samples 1..n into one metric. */
static int recorder(void *arg)
{
	struct batch *b = arg;
	unsigned long i;

	for (i = 1; i <= b->n; i++) {
		kstats_record(recorded, i);
		if (!(i & 0xffff))
			cond_resched();
	}
	return batch_end(b);
}

static int caller(void *arg)
{
	struct batch *b = arg;
	unsigned long i;

	for (i = 1; i <= b->n; i++) {
		kstats_demo_empty(i);
		if (!(i & 0xfff))
			cond_resched();
	}
	return batch_end(b);
}

static void two_threads(int (*fn)(void *), int n)
{
	struct batch b = {.n = n};
	struct task_struct *t[2];
	int i;

	init_completion(&b.done);
	for (i = 0; i < 2; i++) {
		t[i] = kthread_create(fn, &b, "kstats_demo/%d", i);
		if (IS_ERR(t[i]))
			continue;
		kthread_bind(t[i], cpumask_nth(i % num_online_cpus(), cpu_online_mask));
		wake_up_process(t[i]);
	}
	for (i = 0; i < 2; i++)
		if (!IS_ERR(t[i]))
			wait_for_completion(&b.done);
	for (i = 0; i < 2; i++)
		if (!IS_ERR(t[i]))
			kthread_stop(t[i]);
}

static void run_record2(int n)
{
	two_threads(recorder, n);
}

static void run_empty2(int n)
{
	two_threads(caller, n);
}

#ifdef CONFIG_X86
/* TSC ticks of n times the statement. */
#define TICKS(n, statement)                    \
	({                                     \
		u64 from_ = rdtsc_ordered();   \
		int i_;                        \
		for (i_ = 0; i_ < (n); i_++) { \
			barrier();             \
			statement;             \
		}                              \
		rdtsc_ordered() - from_;       \
	})

/*
 * Cost in TSC ticks of n times: nothing, a function of the kernel, one of this module, both after each
 * other, two tracepoints, kstats_record(), an annotated stretch. With qemu -icount a tick is an
 * instruction. Interrupts are off so that only these are seen.
 */
static void run_cost(int n)
{
	unsigned long flags;
	u64 t[7], start;

	local_irq_save(flags);
	t[0] = TICKS(n, );
	t[3] = TICKS(n, single_task_running(); kstats_demo_empty(i_));
	t[4] = TICKS(n, trace_kstats_demo_begin(i_); trace_kstats_demo_end(i_));
	t[1] = TICKS(n, single_task_running());
	t[2] = TICKS(n, kstats_demo_empty(i_));
	t[5] = TICKS(n, kstats_record(recorded, 480));
	t[6] = TICKS(n, start = kstats_clock(); kstats_record_since(annotated, start));
	local_irq_restore(flags);
	snprintf(
		result, sizeof(result),
		"loop %llu kernel %llu module %llu pair %llu tracepoints %llu record %llu annotated %llu\n",
		t[0], t[1], t[2], t[3], t[4], t[5], t[6]);
}
#else
static void run_cost(int n)
{
	snprintf(result, sizeof(result), "no TSC\n");
}
#endif

static const struct {
	const char *name;
	void (*fn)(int n);
} runs[] = {
	{"sleep", run_sleep},
	{"recurse", run_recurse},
	{"migrate", kstats_demo_migrate},
	{"softirq", run_softirq},
	{"forever", run_forever},
	{"release", run_release},
	{"empty", run_empty},
	{"outer", kstats_demo_outer},
	{"inner", kstats_demo_inner},
	{"stack_args", run_stack_args},
	{"unwind", kstats_demo_run_unwind},
	{"calls", run_calls},
	{"values", run_values},
	{"record", run_record},
	{"record2", run_record2},
	{"empty2", run_empty2},
	{"cost", run_cost},
};

static int run(const char *name, int n, int times)
{
	unsigned int i;
	u64 start;

	for (i = 0; i < ARRAY_SIZE(runs); i++)
		if (!strcmp(runs[i].name, name))
			break;
	if (i == ARRAY_SIZE(runs))
		return -EINVAL;
	for (; times > 0; times--) {
		start = kstats_clock();
		runs[i].fn(n);
		kstats_record_since(annotated, start);
	}
	return 0;
}

static ssize_t run_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	char buf[64], name[16];
	int n = 1, times = 1, err;

	if (len >= sizeof(buf))
		return -EINVAL;
	if (copy_from_user(buf, from, len))
		return -EFAULT;
	buf[len] = '\0';
	if (sscanf(buf, "%15s %d %d", name, &n, &times) < 1)
		return -EINVAL;
	err = run(name, n, times);
	return err ? err : len;
}

static ssize_t run_read(struct file *file, char __user *to, size_t len, loff_t *pos)
{
	return simple_read_from_buffer(to, len, pos, result, strlen(result));
}

static const struct file_operations run_fops = {
	.owner = THIS_MODULE,
	.read = run_read,
	.write = run_write,
};

static int __init demo_init(void)
{
	annotated = kstats_new("demo_annotated", 3); /* NULL is fine: nothing is recorded then */
	recorded = kstats_new("demo_recorded", 3);
	dir = debugfs_create_dir("kstats_demo", NULL);
	debugfs_create_file("run", 0600, dir, NULL, &run_fops);
	return 0;
}

static void __exit demo_exit(void)
{
	debugfs_remove(dir);
	tasklet_kill(&tasklet);
	kstats_delete(recorded);
	kstats_delete(annotated);
}

module_init(demo_init);
module_exit(demo_exit);
MODULE_DESCRIPTION("Functions to try kstats on");
MODULE_LICENSE("Dual MIT/GPL");
