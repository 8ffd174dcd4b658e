// SPDX-License-Identifier: GPL-2.0
/* Functions: finding them, and the hooks that the kernel offers for them. */
#include <linux/fprobe.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "record.h"
#include "node.h"

/* The kernel's answer to a kprobe that is never armed tells whether a place can be traced. */
static int probe(const char *name, unsigned long addr, unsigned long *ip, const char *shown,
		 struct kstats_why *why)
{
	struct kprobe *kp = kzalloc(sizeof(*kp), GFP_KERNEL);
	int err;

	if (!kp)
		return kstats_fail(why, -ENOMEM, "no memory");
	kp->symbol_name = name;
	kp->addr = (kprobe_opcode_t *)addr;
	kp->flags = KPROBE_FLAG_DISABLED;
	err = register_kprobe(kp);
	if (!err) {
		*ip = (unsigned long)kp->addr;
		unregister_kprobe(kp);
	}
	kfree(kp);
	if (err == -ENOENT)
		return kstats_fail(why, err, "no function %s: it is inlined or absent", shown);
	if (err)
		return kstats_fail(why, err, "%s cannot be traced: notrace, blacklisted or no code",
				   shown);
	return 0;
}

/*
 * NAME@0xADDRESS, or the address alone: which of several functions with one name. The address comes
 * from user space and is believed only if it is where a function of that name starts.
 */
static int resolve_address(const char *sym, const char *hex, unsigned long *ip,
			   struct kstats_why *why)
{
	char is[KSYM_SYMBOL_LEN], *off;
	unsigned long addr;
	size_t len = hex - sym;

	if (kstrtoul(hex, 16, &addr))
		return kstats_fail(why, -EINVAL, "%s: the address is not a hexadecimal number",
				   sym);
	sprint_symbol(is, addr);
	off = strstr(is, "+0x");
	if (!off || strncmp(off, "+0x0/", 5))
		return kstats_fail(why, -EINVAL, "%s: no function starts there", sym);
	*off = '\0';
	if (len && (strlen(is) != len - 1 || strncmp(is, sym, len - 1)))
		return kstats_fail(why, -EINVAL, "%s: the function there is %.60s", sym, is);
	return probe(NULL, addr, ip, sym, why);
}

int kstats_resolve(const char *sym, unsigned long *ip, struct kstats_why *why)
{
	const char *at = strchr(sym, '@');
	int err;

	if (strpbrk(sym, "*?["))
		return kstats_fail(why, -EINVAL, "%s: patterns are expanded by statpage trace",
				   sym);
	if (at)
		err = resolve_address(sym, at + 1, ip, why);
	else if (!strncasecmp(sym, "0x", 2))
		err = resolve_address(sym, sym, ip, why);
	else
		err = probe(sym, 0, ip, sym, why);
	if (!err && within_module(*ip, THIS_MODULE))
		err = kstats_fail(why, -EINVAL, "%s is part of kstats", sym);
	return err;
}

static void call_begin(struct kstats *ks, u64 *start)
{
	kstats_event(ks, KSTATS_ENTRY);
	*start = kstats_begin(ks);
}

static void call_finish(struct kstats *ks, u64 start)
{
	kstats_finish(ks, start);
	kstats_event(ks, KSTATS_EXIT);
}

/* The call is not ours to measure: book it, as if it were over. */
static bool filtered(const struct kstats_node *node)
{
	if (likely(kstats_wants_task(node)))
		return false;
	kstats_event(node->ks, KSTATS_ENTRY);
	kstats_event(node->ks, KSTATS_FILTERED);
	kstats_event(node->ks, KSTATS_EXIT);
	return true;
}

/* The start lies in the instance, so it belongs to the call however long that sleeps. */
static int kretprobe_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct kretprobe *rp = get_kretprobe(ri);
	struct kstats_node *node;

	if (unlikely(!rp))
		return 1;
	node = container_of(rp, struct kstats_hook, rp)->node;
	if (filtered(node))
		return 1; /* gives the instance back */
	call_begin(node->ks, (u64 *)ri->data);
	return 0;
}
NOKPROBE_SYMBOL(kretprobe_entry);

static int kretprobe_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct kretprobe *rp = get_kretprobe(ri);

	if (likely(rp))
		call_finish(container_of(rp, struct kstats_hook, rp)->node->ks, *(u64 *)ri->data);
	return 0;
}
NOKPROBE_SYMBOL(kretprobe_return);

/*
 * Is it a compiled function's entry? A kretprobe replaces what it takes for the return address, and elsewhere
 * that may be anything: at ret_from_fork it is a register of the new process.
 */
static int ftrace_knows(unsigned long ip)
{
	struct ftrace_ops *ops = kzalloc(sizeof(*ops), GFP_KERNEL);
	int err = ops ? ftrace_set_filter_ip(ops, ip, 0, 1) : -ENOMEM;

	if (!err)
		ftrace_free_filter(ops);
	kfree(ops);
	return err;
}

static int attach_kretprobe(struct kstats_hook *hook)
{
	hook->rp.kp.addr = (kprobe_opcode_t *)hook->ip;
	hook->rp.entry_handler = kretprobe_entry;
	hook->rp.handler = kretprobe_return;
	hook->rp.data_size = sizeof(u64);
	hook->rp.maxactive = hook->node->maxactive;
	return register_kretprobe(&hook->rp);
}

#ifdef STATPAGE_HAVE_FPROBE
static int fprobe_entry(struct fprobe *fp, unsigned long ip, unsigned long ret_ip,
			fprobe_regs_t *regs, void *data)
{
	struct kstats_node *node = container_of(fp, struct kstats_hook, fp)->node;

	if (filtered(node))
		return 1;
	call_begin(node->ks, data);
	return 0;
}
NOKPROBE_SYMBOL(fprobe_entry);

static void fprobe_return(struct fprobe *fp, unsigned long ip, unsigned long ret_ip,
			  fprobe_regs_t *regs, void *data)
{
	call_finish(container_of(fp, struct kstats_hook, fp)->node->ks, *(u64 *)data);
}
NOKPROBE_SYMBOL(fprobe_return);

static int attach_fprobe(struct kstats_hook *hook)
{
	hook->fp.entry_handler = fprobe_entry;
	hook->fp.exit_handler = fprobe_return;
	hook->fp.entry_data_size = sizeof(u64);
	fprobe_set_maxactive(&hook->fp, hook->node->maxactive);
	return register_fprobe_ips(&hook->fp, &hook->ip, 1);
}
#else
static int attach_fprobe(struct kstats_hook *hook)
{
	return -EOPNOTSUPP;
}
#endif

static void reached(const struct kstats_hook *hook)
{
	if (hook->role == KSTATS_START)
		kstats_pair_start(hook->node);
	else
		kstats_pair_end(hook->node);
}
NOKPROBE_SYMBOL(reached);

static int kprobe_hit(struct kprobe *kp, struct pt_regs *regs)
{
	reached(container_of(kp, struct kstats_hook, kp));
	return 0;
}
NOKPROBE_SYMBOL(kprobe_hit);

static int attach_kprobe(struct kstats_hook *hook)
{
	hook->kp.addr = (kprobe_opcode_t *)hook->ip;
	hook->kp.pre_handler = kprobe_hit;
	return register_kprobe(&hook->kp);
}

/* No guard against recursion is asked for, as nothing that runs from here can be traced. */
static void ftrace_hit(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *op,
		       struct ftrace_regs *regs)
{
	reached(container_of(op, struct kstats_hook, ops));
}
NOKPROBE_SYMBOL(ftrace_hit);

static int attach_ftrace(struct kstats_hook *hook)
{
	int err;

	hook->ops.func = ftrace_hit;
	err = ftrace_set_filter_ip(&hook->ops, hook->ip, 0, 1);
	if (err)
		return err;
	err = register_ftrace_function(&hook->ops);
	if (err)
		ftrace_free_filter(&hook->ops);
	return err;
}

static void detach_ftrace(struct kstats_hook *hook)
{
	unregister_ftrace_function(&hook->ops);
	ftrace_free_filter(&hook->ops);
}

int kstats_attach_func(struct kstats_hook *hook, enum kstats_via via, struct kstats_why *why)
{
	static int (*const attach[KSTATS_VIAS])(struct kstats_hook *) = {
		[KSTATS_VIA_KRETPROBE] = attach_kretprobe,
		[KSTATS_VIA_FPROBE] = attach_fprobe,
		[KSTATS_VIA_KPROBE] = attach_kprobe,
		[KSTATS_VIA_FTRACE] = attach_ftrace,
	};
	int err = via == KSTATS_VIA_KRETPROBE ? ftrace_knows(hook->ip) : 0;

	if (err == -ENOMEM)
		return kstats_fail(why, err, "no memory");
	if (err)
		return kstats_fail(why, -EINVAL,
				   "%pS is no function that ftrace knows: give an end",
				   (void *)hook->ip);
	err = kstats_canary_get(why);
	if (err)
		return err;
	err = attach[via](hook);
	if (err) {
		kstats_canary_put();
		if (err == -EOPNOTSUPP)
			return kstats_fail(why, err, "this kernel has no %s",
					   kstats_via_names[via]);
		return kstats_fail(why, err, "%s of %pS refused, errno %d", kstats_via_names[via],
				   (void *)hook->ip, -err);
	}
	hook->via = via;
	hook->attached = true;
	return 0;
}

/* On return no handler runs any more. */
void kstats_detach_func(struct kstats_hook *hook)
{
	switch (hook->via) {
	case KSTATS_VIA_KRETPROBE:
		unregister_kretprobe(&hook->rp);
		break;
	case KSTATS_VIA_FPROBE:
		unregister_fprobe(&hook->fp);
		break;
	case KSTATS_VIA_KPROBE:
		unregister_kprobe(&hook->kp);
		break;
	default:
		detach_ftrace(hook);
	}
	hook->attached = false;
	kstats_canary_put();
}

/* Calls that the kernel says it did not tell us about. */
u64 kstats_hook_missed(const struct kstats_hook *hook)
{
	switch (hook->via) {
	case KSTATS_VIA_KRETPROBE:
		return (u64)READ_ONCE(hook->rp.nmissed) + READ_ONCE(hook->rp.kp.nmissed);
	case KSTATS_VIA_FPROBE:
		return READ_ONCE(hook->fp.nmissed);
	case KSTATS_VIA_KPROBE:
		return READ_ONCE(hook->kp.nmissed);
	default:
		return 0;
	}
}
