// SPDX-License-Identifier: GPL-2.0
/*
 * The page of one thread, and the life of the object behind it.
 *
 * An object belongs to the thread that opened thread-self (its owner). It is on the owner's list of
 * preempt notifiers while `registered`, and counts the open files in `files`. It is freed when both are
 * gone. The list has no lock, so only the owner itself joins and leaves it: in open, in the release of
 * its last file, and in the tracepoints of exec and exit, which run on the dying or changing thread.
 *
 *	open by the owner		register, or resume a parked object
 *	last release by the owner	unregister, free
 *	last release by another task	park: `stopped`; the owner's next open, exec or exit ends that
 *	exec of the owner		unregister for good, PARKED; whoever maps the page sees no more
 *	exit of the owner		unregister, DEAD; the page lives as long as a file does
 *
 * Each object holds the module; the work item that frees one puts that reference last, and module exit
 * destroys the workqueue, which waits for the work item to return.
 */
#include "csf.h"
#include <linux/llist.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>

struct csf_thread_obj {
	struct preempt_notifier pn; /* on the owner's list while registered */
	struct csf_thread *pg;	    /* the page that readers map */

	/* Written by the owner alone, with preemption off or by the scheduler on its CPU. */
	u64 run_delay;		   /* sched_info.run_delay at the last switch-out */
	unsigned long nivcsw;	   /* the task's counter at the last switch-out */
	unsigned long nvcsw_start; /* and both at the open */
	unsigned long nivcsw_start;
	struct mm_struct *mm; /* what the owner ran at open; compared, never used */

	bool stopped; /* no more accounting; the closer sets it, the notifiers read it */

	raw_spinlock_t lock; /* taken in tracepoints; files, registered, and stopped against open */
	unsigned int files;
	bool registered;
	struct task_struct *owner; /* identity only; valid while registered */

	struct csf_clocked clocked;
	struct llist_node dead; /* on the list of objects to free */
};

static struct kmem_cache *obj_cache;
static struct tracepoint *tp_exec, *tp_exit;
static LLIST_HEAD(dead_objs);
static void free_work_fn(struct work_struct *work);
static DECLARE_WORK(free_work, free_work_fn);

/* The bucket of a thread that blocked in this task state. Documented in the header and the README. */
static u32 blocked_bucket(const struct task_struct *p, unsigned int state)
{
	/*
	 * TASK_RUNNING: a pending signal turned the call of schedule() back. TASK_WAKING: a waker on
	 * another CPU overtook us before we were off this one. Either way it waits for a CPU already.
	 */
	if (state == TASK_RUNNING || state == TASK_WAKING)
		return CSF_RUNQ;
	if (p->in_iowait)
		return CSF_IOWAIT;
	/* TASK_IDLE is a wait that the kernel itself does not count as load. */
	if ((state & TASK_UNINTERRUPTIBLE) && !(state & TASK_NOLOAD))
		return CSF_DSLEEP;
	if (state & TASK_RTLOCK_WAIT)
		return CSF_DSLEEP;
	return CSF_SLEEP;
}

/* The fields that lag until the next switch; current is the owner. */
static void copy_counters(struct csf_thread *pg)
{
	const struct task_struct *p = current;

	pg->min_flt = p->min_flt;
	pg->maj_flt = p->maj_flt;
	pg->sum_exec_ns = p->se.sum_exec_runtime;
	pg->run_delay_ns = p->sched_info.run_delay;
	pg->utime_ns = p->utime;
	pg->stime_ns = p->stime;
#ifdef CONFIG_TASK_XACCT
	pg->syscr = p->ioac.syscr;
	pg->syscw = p->ioac.syscw;
#endif
#ifdef CONFIG_TASK_IO_ACCOUNTING
	pg->read_bytes = p->ioac.read_bytes;
	pg->write_bytes = p->ioac.write_bytes;
#endif
}

static u64 *bucket(struct csf_thread *pg, u32 state)
{
	BUILD_BUG_ON(offsetof(struct csf_thread, iowait_cyc) !=
		     offsetof(struct csf_thread, oncpu_cyc) + CSF_IOWAIT * sizeof(u64));
	return &pg->oncpu_cyc + state;
}

/*
 * Cycles since the last update, which becomes now. Two CPUs may disagree by a little, and a TSC may start
 * anew in suspend: then the interval is nothing, is counted, and the start moves along, so that the
 * buckets still add up to last - start.
 */
static u64 advance(struct csf_thread *pg)
{
	u64 now = rdtsc_ordered(), last = pg->last_switch_tsc;

	pg->last_switch_tsc = now;
	if (likely(now >= last))
		return now - last;
	pg->start_tsc -= last - now;
	pg->nr_clamp++;
	return 0;
}

static void obj_stop(struct csf_thread_obj *obj, u32 flag)
{
	WRITE_ONCE(obj->stopped, true);
	csf_hdr_set_flag(&obj->pg->hdr, flag);
}

/*
 * The owner leaves the CPU. Runs with the run queue's lock held: no wake-up, no allocation, no lock. The
 * switch has been counted already, and the count, unlike the task's state, says whether it blocked: a
 * task can be preempted after it set its state, and a blocked one may stay on the run queue (6.12).
 */
static void csf_sched_out(struct preempt_notifier *pn, struct task_struct *next)
{
	struct csf_thread_obj *obj = container_of(pn, struct csf_thread_obj, pn);
	struct csf_thread *pg = obj->pg;
	struct task_struct *p = current;
	bool preempted = p->nivcsw != obj->nivcsw;

	if (unlikely(READ_ONCE(obj->stopped)))
		return;
	/* Between the point of no return of an exec and its tracepoint. */
	if (unlikely(p->mm != obj->mm && p->mm)) {
		obj_stop(obj, CSF_F_PARKED);
		return;
	}
	csf_write_begin(&pg->seq);
	pg->oncpu_cyc += advance(pg);
	pg->state = preempted ? CSF_RUNQ : blocked_bucket(p, READ_ONCE(p->__state));
	obj->nivcsw = p->nivcsw;
	obj->run_delay = p->sched_info.run_delay;
	pg->nr_block = p->nvcsw - obj->nvcsw_start;
	pg->nr_preempt = p->nivcsw - obj->nivcsw_start;
	copy_counters(pg);
	csf_write_end(&pg->seq);
}

/*
 * The owner is back. A blocked interval has two parts: up to the wake-up it waited for its event, from
 * there for a CPU, and the second is what the scheduler added to run_delay. Interrupts are on.
 */
static void csf_sched_in(struct preempt_notifier *pn, int cpu)
{
	struct csf_thread_obj *obj = container_of(pn, struct csf_thread_obj, pn);
	struct csf_thread *pg = obj->pg;
	u64 off, waited;

	if (unlikely(READ_ONCE(obj->stopped)))
		return;
	csf_write_begin(&pg->seq);
	off = advance(pg);
	pg->run_delay_ns = current->sched_info.run_delay;
	if (pg->state != CSF_RUNQ) {
		waited = min(csf_ns_to_cyc(pg->run_delay_ns - obj->run_delay), off);
		*bucket(pg, pg->state) += off - waited;
		off = waited;
	}
	pg->runq_cyc += off;
	pg->state = CSF_ONCPU;
	if (pg->cpu != cpu) {
		pg->cpu = cpu;
		pg->nr_migrate++;
	}
	csf_write_end(&pg->seq);
}

static struct preempt_ops csf_preempt_ops = {
	.sched_in = csf_sched_in,
	.sched_out = csf_sched_out,
};

/* The object on current's own list of notifiers, or NULL. Only current changes that list. */
static struct csf_thread_obj *obj_of_current(void)
{
	struct preempt_notifier *pn;

	hlist_for_each_entry(pn, &current->preempt_notifiers, link)
		if (pn->ops == &csf_preempt_ops)
			return container_of(pn, struct csf_thread_obj, pn);
	return NULL;
}

/* Begin or begin anew: everything from seq on is as if the page had just been made. By the owner. */
static void obj_start(struct csf_thread_obj *obj)
{
	struct csf_thread *pg = obj->pg;

	lockdep_assert_held(&obj->lock);
	csf_write_begin(&pg->seq);
	memset_after(pg, 0, seq);
	pg->state = CSF_ONCPU;
	pg->tid = task_pid_vnr(current);
	pg->cpu = smp_processor_id();
	pg->start_tsc = rdtsc_ordered();
	pg->last_switch_tsc = pg->start_tsc;
	copy_counters(pg);
	obj->nvcsw_start = current->nvcsw;
	obj->nivcsw = obj->nivcsw_start = current->nivcsw;
	obj->stopped = false;
	atomic_andnot(CSF_F_PARKED, (atomic_t *)&pg->hdr.flags);
	csf_write_end(&pg->seq);
}

/* By the owner, with the lock held and so with preemption off. */
static void obj_unregister(struct csf_thread_obj *obj, u32 flag)
{
	struct csf_thread *pg = obj->pg;

	lockdep_assert_held(&obj->lock);
	if (!obj->stopped) {
		csf_write_begin(&pg->seq);
		pg->oncpu_cyc += advance(pg);
		copy_counters(pg);
		csf_write_end(&pg->seq);
	}
	obj_stop(obj, flag);
	preempt_notifier_unregister(&obj->pn);
	obj->registered = false;
	obj->owner = NULL;
}

/* May sleep. The caller is the last to know the object. */
static void obj_free(struct csf_thread_obj *obj)
{
	csf_clock_del(&obj->clocked);
	preempt_notifier_dec();
	mmdrop(obj->mm);
	free_page((unsigned long)obj->pg);
	kmem_cache_free(obj_cache, obj);
	module_put(THIS_MODULE);
}

static void free_work_fn(struct work_struct *work)
{
	struct csf_thread_obj *obj, *tmp;

	llist_for_each_entry_safe(obj, tmp, llist_del_all(&dead_objs), dead)
		obj_free(obj);
}

/*
 * The page and the object are charged to the opener's memory cgroup; at its limit this is ENOMEM and not
 * the OOM killer's business, hence __GFP_RETRY_MAYFAIL.
 */
static struct csf_thread_obj *obj_new(void)
{
	struct csf_thread_obj *obj;

	obj = kmem_cache_zalloc(obj_cache, GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL);
	if (!obj)
		return NULL;
	obj->pg = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL);
	if (!obj->pg) {
		kmem_cache_free(obj_cache, obj);
		return NULL;
	}
	__module_get(THIS_MODULE); /* the file being opened holds it too, so this cannot fail */
	raw_spin_lock_init(&obj->lock);
	preempt_notifier_init(&obj->pn, &csf_preempt_ops);
	preempt_notifier_inc();
	obj->mm = current->mm;
	mmgrab(obj->mm);
	csf_clock_add(&obj->clocked, &obj->pg->hdr, CSF_KIND_THREAD, sizeof(struct csf_thread));
#ifndef CONFIG_TASK_XACCT
	obj->pg->hdr.absent |= CSF_ABSENT_SYSC;
#endif
#ifndef CONFIG_TASK_IO_ACCOUNTING
	obj->pg->hdr.absent |= CSF_ABSENT_IO;
#endif
	return obj;
}

/*
 * EACCES: opened for writing. EPERM: a kernel thread or an io_uring worker, whose life nobody can see, or
 * a thread that is on its way out. ENOMEM: no memory, or the memory cgroup is at its limit.
 */
static int csf_thread_open(struct inode *inode, struct file *file)
{
	struct csf_thread_obj *obj;
	int ret = csf_open_check(file);

	if (ret)
		return ret;
	if (!current->mm || current->flags & (PF_KTHREAD | PF_IO_WORKER | PF_EXITING))
		return -EPERM;
	obj = obj_of_current();
	if (!obj) {
		obj = obj_new();
		if (!obj)
			return -ENOMEM;
	}
	raw_spin_lock(&obj->lock);
	if (!obj->files++)
		obj_start(obj);
	if (!obj->registered) {
		obj->registered = true;
		obj->owner = current;
		preempt_notifier_register(&obj->pn);
	}
	raw_spin_unlock(&obj->lock);
	file->private_data = obj;
	return 0;
}

/* Runs in whatever task drops the last reference to the file: delayed fput, a socket's garbage... */
static int csf_thread_release(struct inode *inode, struct file *file)
{
	struct csf_thread_obj *obj = file->private_data;
	bool unused = false;

	raw_spin_lock(&obj->lock);
	if (!--obj->files) {
		if (obj->owner == current)
			obj_unregister(obj, CSF_F_PARKED);
		else if (obj->registered)
			obj_stop(obj, CSF_F_PARKED);
		unused = !obj->registered;
	}
	raw_spin_unlock(&obj->lock);
	if (unused)
		obj_free(obj);
	return 0;
}

static vm_fault_t csf_thread_fault(struct vm_fault *vmf)
{
	struct csf_thread_obj *obj = vmf->vma->vm_file->private_data;

	if (vmf->pgoff)
		return VM_FAULT_SIGBUS;
	vmf->page = virt_to_page(obj->pg);
	get_page(vmf->page);
	return 0;
}

/*
 * How /proc/PID/mem gets at what GUP must not: a copy, for who may trace the process. It goes by the address
 * space, so after an exec there is nothing here to read. Called with the mmap lock held.
 */
static int csf_thread_access(struct vm_area_struct *vma, unsigned long addr, void *buf, int len,
			     int write)
{
	struct csf_thread_obj *obj = vma->vm_file->private_data;
	unsigned long at = addr - vma->vm_start;

	if (write || at >= PAGE_SIZE)
		return -EIO;
	len = min_t(unsigned long, len, PAGE_SIZE - at);
	memcpy(buf, (char *)obj->pg + at, len);
	return len;
}

static const struct vm_operations_struct csf_thread_vm_ops = {
	.fault = csf_thread_fault,
	.access = csf_thread_access,
};

static int csf_thread_mmap(struct file *file, struct vm_area_struct *vma)
{
	vma->vm_ops = &csf_thread_vm_ops;
	return csf_mmap_check(vma, PAGE_SIZE);
}

const struct file_operations csf_thread_fops = {
	.owner = THIS_MODULE,
	.open = csf_thread_open,
	.release = csf_thread_release,
	.mmap = csf_thread_mmap,
};

/* The owner is gone, or has become another program. Atomic context: the tracepoints' callers say so. */
static void obj_orphan(u32 flag)
{
	struct csf_thread_obj *obj = obj_of_current();
	bool unused;

	if (likely(!obj))
		return;
	raw_spin_lock(&obj->lock);
	obj_unregister(obj, flag);
	unused = !obj->files;
	raw_spin_unlock(&obj->lock);
	if (unused && llist_add(&obj->dead, &dead_objs))
		queue_work(csf_wq, &free_work);
}

static void probe_exec(void *data, struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm)
{
	obj_orphan(CSF_F_PARKED);
}

static void probe_exit(TP_SCHED_PROCESS_EXIT_ARGS)
{
	obj_orphan(CSF_F_DEAD);
}

static void find_tracepoint(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "sched_process_exec"))
		tp_exec = tp;
	else if (!strcmp(tp->name, "sched_process_exit"))
		tp_exit = tp;
}

int csf_thread_init(void)
{
	int ret;

	for_each_kernel_tracepoint(find_tracepoint, NULL);
	if (!tp_exec || !tp_exit) {
		pr_err("this kernel lacks the tracepoints sched_process_exec and sched_process_exit\n");
		return -ENOENT;
	}
	obj_cache = kmem_cache_create("csf_thread", sizeof(struct csf_thread_obj), 0,
				      SLAB_ACCOUNT | SLAB_HWCACHE_ALIGN, NULL);
	if (!obj_cache)
		return -ENOMEM;
	ret = tracepoint_probe_register(tp_exec, probe_exec, NULL);
	if (ret)
		goto err_destroy_cache;
	ret = tracepoint_probe_register(tp_exit, probe_exit, NULL);
	if (ret)
		goto err_unregister_exec;
	return 0;

err_unregister_exec:
	tracepoint_probe_unregister(tp_exec, probe_exec, NULL);
	tracepoint_synchronize_unregister();
err_destroy_cache:
	kmem_cache_destroy(obj_cache);
	return ret;
}

void csf_thread_exit(void)
{
	tracepoint_probe_unregister(tp_exit, probe_exit, NULL);
	tracepoint_probe_unregister(tp_exec, probe_exec, NULL);
	tracepoint_synchronize_unregister();
	flush_work(&free_work);
	kmem_cache_destroy(obj_cache);
}
