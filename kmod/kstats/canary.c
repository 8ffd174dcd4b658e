// SPDX-License-Identifier: GPL-2.0
/*
 * Is ftrace on? Where permanent ops exist, the kernel refuses kernel.ftrace_enabled=0 while one is
 * registered; where they do not, it silently stops all that builds on ftrace, ours included. So while
 * something of ours builds on it there is a permanent hook on a function of our own, and who reads a
 * file calls that function and looks whether the hook was called. This file alone is built with ftrace.
 */
#include <linux/atomic.h>
#include <linux/module.h>

#include "node.h"

static unsigned int users; /* kstats_mutex */
static atomic_t seen = ATOMIC_INIT(0);

static notrace void hit(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *op,
			struct ftrace_regs *regs)
{
	atomic_inc(&seen);
}

static struct ftrace_ops ops;

/* The barrier keeps the compiler from seeing that a call does nothing. */
static noinline void kstats_canary(void)
{
	barrier();
}

int kstats_canary_get(struct kstats_why *why)
{
	int err;

	lockdep_assert_held(&kstats_mutex);
	if (users++)
		return 0;
	/* Anew each time: 6.1 leaves pointers to the freed filter in it. */
	ops = (struct ftrace_ops){.func = hit, .flags = FTRACE_OPS_FL_PERMANENT};
	err = ftrace_set_filter_ip(&ops, (unsigned long)kstats_canary, 0, 1);
	if (!err)
		err = register_ftrace_function(&ops);
	if (!err)
		return 0;
	users--;
	return kstats_fail(why, err, "ftrace is off (kernel.ftrace_enabled=0), errno %d", -err);
}

void kstats_canary_put(void)
{
	if (--users)
		return;
	unregister_ftrace_function(&ops);
	ftrace_free_filter(&ops);
}

/* Also true while nobody depends on it. */
bool kstats_ftrace_on(void)
{
	int before = atomic_read(&seen);

	if (!READ_ONCE(users))
		return true;
	kstats_canary();
	return atomic_read(&seen) != before;
}
