// SPDX-License-Identifier: GPL-2.0
/*
 * Test module: puts the writing thread into task states that user space cannot reach at will. Write a word
 * and a number of ms to /sys/kernel/debug/csf_states:
 *
 *	instate MS	spin with the state set to interruptible, without ever calling schedule()
 *	turnback 0	wait for a signal by spinning, then block: the signal turns schedule() back
 *	interruptible, killable, uninterruptible, idle, iowait MS	sleep in that state
 */
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

static struct dentry *file;

static void spin_in_state(unsigned int ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(ms) + 1;

	set_current_state(TASK_INTERRUPTIBLE);
	/* cond_resched() for kernels that do not preempt kernel code by themselves. */
	while (time_before(jiffies, end)) {
		cond_resched();
		cpu_relax();
	}
	__set_current_state(TASK_RUNNING);
}

static void turn_back(void)
{
	while (!signal_pending(current)) {
		cond_resched();
		cpu_relax();
	}
	/*
	 * Use up the slice, so that schedule() has somebody better to run, and let neither a tick nor the end
	 * of a stretch without preemption find that out first. schedule() turns interrupts on.
	 */
	local_irq_disable();
	mdelay(20);
	set_current_state(TASK_INTERRUPTIBLE);
	schedule();
	__set_current_state(TASK_RUNNING);
}

static void sleep_in(unsigned int state, unsigned int ms)
{
	/* Not in jiffies: those of a busy emulator run late, and then catch up. */
	ktime_t end = ktime_add_ms(ktime_get(), ms);

	do
		set_current_state(state);
	while (schedule_hrtimeout(&end, HRTIMER_MODE_ABS));
}

static ssize_t states_write(struct file *filp, const char __user *ubuf, size_t len, loff_t *pos)
{
	char buf[32] = "", word[16];
	unsigned int ms;

	if (len >= sizeof(buf) || copy_from_user(buf, ubuf, len))
		return -EINVAL;
	if (sscanf(buf, "%15s %u", word, &ms) != 2)
		return -EINVAL;
	if (!strcmp(word, "instate"))
		spin_in_state(ms);
	else if (!strcmp(word, "turnback"))
		turn_back();
	else if (!strcmp(word, "interruptible"))
		sleep_in(TASK_INTERRUPTIBLE, ms);
	else if (!strcmp(word, "killable"))
		sleep_in(TASK_KILLABLE, ms);
	else if (!strcmp(word, "uninterruptible"))
		sleep_in(TASK_UNINTERRUPTIBLE, ms);
	else if (!strcmp(word, "idle"))
		sleep_in(TASK_IDLE, ms);
	else if (!strcmp(word, "iowait")) {
		current->in_iowait = 1;
		sleep_in(TASK_UNINTERRUPTIBLE, ms);
		current->in_iowait = 0;
	} else {
		return -EINVAL;
	}
	return len;
}

static const struct file_operations states_fops = {
	.owner = THIS_MODULE,
	.write = states_write,
};

static int __init states_init(void)
{
	file = debugfs_create_file("csf_states", 0200, NULL, NULL, &states_fops);
	return PTR_ERR_OR_ZERO(file);
}

static void __exit states_exit(void)
{
	debugfs_remove(file);
}

module_init(states_init);
module_exit(states_exit);
MODULE_DESCRIPTION("Task states on demand, for the tests of coarse_stat_fs");
MODULE_LICENSE("GPL");
