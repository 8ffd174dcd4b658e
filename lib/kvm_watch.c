/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/kvm_stats.h"
#include "lib/kvm_watch.h"

#define NR_REASONS 64	/* the last one stands for all beyond */
#define PAGE	   4096 /* struct kvm_run is smaller; what follows it is of no interest */
#define UNREADABLE 0xffffffffu
#define NR_HW	   192 /* reasons of the hardware; the last one stands for what found no place */

/* A descriptor of the program that is a virtual CPU. */
struct vcpu {
	struct vcpu *next;
	int fd;
	bool stale; /* descriptors were closed since: look again before use */
	const volatile struct kvm_run *run; /* NULL: could not be mapped */
	int stats_fd;			    /* -1: none */
	struct kvm_stats stats;
	bool asked;  /* for statistics */
	bool window; /* the last exit was an interrupt window; nothing was queued since */
};

struct kvm_watch {
	struct vcpu *vcpus;
	uint32_t nr_vcpus, with_stats;
	uint64_t run_call_ns, exits, null_exits;
	struct rts_exit_row rows[NR_REASONS + 1]; /* [NR_REASONS]: reason could not be read */
	struct kvm_stats stats;			  /* sum of virtual CPUs that are gone */
	struct kvm_stats total;			  /* and of the living, when last read */
	uint64_t halted_before_ns;
	const char *why_no_stats;
	/* What the kernel's tracepoints tell, where an engine listens to them. */
	bool traced;
	uint64_t in_guest_ns, halted_ns;
	const char *isa;
	struct rts_exit_row hw[NR_HW];
	size_t nr_hw;
	/* What the last record points to. */
	struct rts_exit_row shown[NR_REASONS + 1];
	struct rts_named kvm[KVM_STATS_MAX];
	size_t nr_shown, nr_kvm;
};

static struct vcpu *find(const struct kvm_watch *w, int fd)
{
	struct vcpu *v = w ? w->vcpus : NULL;

	while (v && v->fd != fd)
		v = v->next;
	return v;
}

static bool is_vcpu(pid_t pid, int fd)
{
	char path[64], to[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	n = readlink(path, to, sizeof(to) - 1);
	if (n < 0)
		return false;
	to[n] = '\0';
	return !strncmp(to, "anon_inode:kvm-vcpu", strlen("anon_inode:kvm-vcpu"));
}

static const volatile struct kvm_run *map_run(pid_t pid, int fd)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), mine;
	void *p = MAP_FAILED;

	if (pidfd < 0)
		return NULL;
	mine = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	close(pidfd);
	if (mine >= 0) {
		p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, mine, 0);
		/* The mapping keeps the virtual CPU alive; drop_vcpu() lets it go. */
		close(mine);
	}
	return p == MAP_FAILED ? NULL : p;
}

static void drop_vcpu(struct kvm_watch *w, struct vcpu *v)
{
	struct vcpu **at = &w->vcpus;

	while (*at != v)
		at = &(*at)->next;
	*at = v->next;
	kvm_stats_add(&w->stats, &v->stats);
	if (v->stats_fd >= 0)
		close(v->stats_fd);
	if (v->run)
		munmap((void *)v->run, PAGE);
	free(v);
}

static struct vcpu *add_vcpu(struct kvm_watch *w, pid_t pid, int fd)
{
	struct vcpu *v;

	if (!is_vcpu(pid, fd))
		return NULL;
	v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->fd = fd;
	v->stats_fd = -1;
	v->run = map_run(pid, fd);
	v->next = w->vcpus;
	w->vcpus = v;
	w->nr_vcpus++;
	return v;
}

void kvm_watch_ioctl(struct kvm_watch **w, int fd, uint64_t request)
{
	struct vcpu *v;

	if (request == KVM_RUN && !*w)
		*w = calloc(1, sizeof(**w));
	/* An interrupt window that opened is no null exit when an interrupt is then put in. */
	v = request == KVM_INTERRUPT || request == KVM_SET_VCPU_EVENTS ? find(*w, fd) : NULL;
	if (v)
		v->window = false;
	v = request == KVM_RUN ? find(*w, fd) : NULL;
	if (v && v->window) {
		v->window = false;
		(*w)->null_exits++;
		(*w)->rows[KVM_EXIT_IRQ_WINDOW_OPEN].null_count++;
	}
}

static struct rts_exit_row *row_at(struct kvm_watch *w, uint32_t reason)
{
	struct rts_exit_row *row = &w->rows[reason < NR_REASONS ? reason : NR_REASONS - 1];

	row->name = kvm_exit_name(reason);
	row->reason = reason;
	return row;
}

static struct rts_exit_row *exit_row(struct kvm_watch *w, const struct vcpu *v, int err)
{
	uint32_t reason = v && v->run ? v->run->exit_reason : UNREADABLE;
	struct rts_exit_row *row;

	/* The page still has the reason before: the guest was not left for one of its own. */
	if (err)
		reason = err == EINTR || err == EAGAIN ? KVM_EXIT_INTR : KVM_EXIT_UNKNOWN;
	if (reason != UNREADABLE)
		return row_at(w, reason);
	row = &w->rows[NR_REASONS];
	row->name = "unreadable";
	row->reason = reason;
	return row;
}

void kvm_watch_ioctl_done(struct kvm_watch *w, pid_t pid, int fd, uint64_t request, int err,
			  uint64_t ns)
{
	struct rts_exit_row *row;
	struct vcpu *v;

	if (!w || request != KVM_RUN)
		return;
	v = find(w, fd);
	if (v && v->stale) {
		v->stale = false;
		if (!is_vcpu(pid, fd)) {
			drop_vcpu(w, v);
			v = NULL;
		}
	}
	if (!v)
		v = add_vcpu(w, pid, fd);
	row = exit_row(w, v, err);
	row->count++;
	row->total_ns = rts_add(row->total_ns, ns);
	w->run_call_ns = rts_add(w->run_call_ns, ns);
	if (row->reason == KVM_EXIT_INTR) {
		row->null_count++;
		w->null_exits++;
	}
	w->exits++;
	if (v)
		v->window = row->reason == KVM_EXIT_IRQ_WINDOW_OPEN;
}

void kvm_watch_closed(struct kvm_watch *w)
{
	for (struct vcpu *v = w ? w->vcpus : NULL; v; v = v->next)
		v->stale = true;
}

bool kvm_watch_wants_stats(const struct kvm_watch *w, int fd)
{
	const struct vcpu *v = find(w, fd);

	return v && !v->asked;
}

void kvm_watch_give_stats(struct kvm_watch *w, int fd, int stats_fd, bool attached, const char *why)
{
	struct vcpu *v = find(w, fd);
	struct kvm_stats now;
	uint64_t ns;

	v->asked = true;
	v->stats_fd = stats_fd;
	if (stats_fd < 0) {
		w->why_no_stats = why;
		return;
	}
	w->with_stats++;
	/* What it halted before is in no run call of ours. */
	if (attached && !kvm_stats_read(stats_fd, &now) && kvm_stats_halted(&now, &ns))
		w->halted_before_ns = rts_add(w->halted_before_ns, ns);
}

void kvm_watch_no_stats(struct kvm_watch *w, const char *why)
{
	if (w)
		w->why_no_stats = why;
}

static void add_row(struct rts_exit_row *to, const struct rts_exit_row *from)
{
	to->count += from->count;
	to->null_count += from->null_count;
	to->total_ns = rts_add(to->total_ns, from->total_ns);
}

void kvm_watch_add_exits(struct kvm_watch **w, const struct rts_exit_row *row, uint64_t in_guest_ns,
			 uint64_t halted_ns)
{
	if (!*w)
		*w = calloc(1, sizeof(**w));
	if (!*w)
		return;
	(*w)->traced = true;
	(*w)->in_guest_ns = rts_add((*w)->in_guest_ns, in_guest_ns);
	(*w)->halted_ns = rts_add((*w)->halted_ns, halted_ns);
	(*w)->run_call_ns = rts_add((*w)->run_call_ns, row->total_ns);
	(*w)->exits += row->count;
	(*w)->null_exits += row->null_count;
	add_row(row_at(*w, row->reason), row);
}

void kvm_watch_add_vcpu(struct kvm_watch **w, int fd)
{
	struct vcpu *v;

	if (!*w)
		*w = calloc(1, sizeof(**w));
	if (!*w || find(*w, fd))
		return;
	v = calloc(1, sizeof(*v));
	if (!v)
		return;
	v->fd = fd;
	v->stats_fd = -1;
	v->next = (*w)->vcpus;
	(*w)->vcpus = v;
	(*w)->nr_vcpus++;
}

static struct rts_exit_row *hw_row(struct kvm_watch *w, uint32_t reason, const char *name)
{
	size_t i = 0;

	while (i < w->nr_hw && w->hw[i].reason != reason)
		i++;
	if (i == NR_HW)
		return &w->hw[NR_HW - 1];
	if (i == w->nr_hw) {
		w->hw[i].reason = reason;
		w->hw[i].name = name;
		w->nr_hw++;
	}
	return &w->hw[i];
}

void kvm_watch_add_hw(struct kvm_watch **w, const char *isa, const struct rts_exit_row *row)
{
	if (!*w)
		*w = calloc(1, sizeof(**w));
	if (!*w)
		return;
	(*w)->isa = isa;
	add_row(hw_row(*w, row->reason, row->name), row);
}

static int by_reason(const void *a, const void *b)
{
	const struct rts_exit_row *x = a, *y = b;

	return (x->reason > y->reason) - (x->reason < y->reason);
}

void kvm_watch_refresh(struct kvm_watch *w)
{
	if (!w)
		return;
	w->total = w->stats;
	for (struct vcpu *v = w->vcpus; v; v = v->next) {
		struct kvm_stats now;

		if (v->stats_fd >= 0 && !kvm_stats_read(v->stats_fd, &now))
			v->stats = now;
		kvm_stats_add(&w->total, &v->stats);
	}
}

void kvm_watch_fold(struct kvm_watch **dst, struct kvm_watch *src)
{
	struct kvm_watch *d = *dst;

	if (!src)
		return;
	while (src->vcpus)
		drop_vcpu(src, src->vcpus);
	src->total = src->stats;
	if (!d) {
		*dst = src;
		return;
	}
	d->nr_vcpus += src->nr_vcpus;
	d->with_stats += src->with_stats;
	d->run_call_ns = rts_add(d->run_call_ns, src->run_call_ns);
	d->halted_before_ns += src->halted_before_ns;
	d->exits += src->exits;
	d->null_exits += src->null_exits;
	for (size_t i = 0; i <= NR_REASONS; i++) {
		struct rts_exit_row *to = &d->rows[i];
		const struct rts_exit_row *from = &src->rows[i];

		if (!from->count)
			continue;
		to->name = from->name;
		to->reason = from->reason;
		add_row(to, from);
	}
	d->traced |= src->traced;
	d->in_guest_ns = rts_add(d->in_guest_ns, src->in_guest_ns);
	d->halted_ns = rts_add(d->halted_ns, src->halted_ns);
	d->isa = src->isa ? src->isa : d->isa;
	for (size_t i = 0; i < src->nr_hw; i++)
		add_row(hw_row(d, src->hw[i].reason, src->hw[i].name), &src->hw[i]);
	kvm_stats_add(&d->stats, &src->stats);
	d->total = d->stats;
	if (!d->why_no_stats)
		d->why_no_stats = src->why_no_stats;
	free(src);
}

bool kvm_watch_record(struct kvm_watch *w, struct rts_vcpu *v)
{
	if (!w || !w->exits)
		return false;
	w->nr_shown = 0;
	for (size_t i = 0; i <= NR_REASONS; i++)
		if (w->rows[i].count)
			w->shown[w->nr_shown++] = w->rows[i];
	w->nr_kvm = w->total.nr;
	for (size_t i = 0; i < w->nr_kvm; i++)
		w->kvm[i] = (struct rts_named){w->total.name[i], w->total.value[i]};
	*v = (struct rts_vcpu){
		.nr_vcpus = w->nr_vcpus,
		.run_call_ns = w->run_call_ns,
		.rows = w->shown,
		.nr_rows = w->nr_shown,
		.null_exits = w->null_exits,
		.exits = w->exits,
		.kvm = w->kvm,
		.nr_kvm = w->nr_kvm,
	};
	qsort(w->hw, w->nr_hw, sizeof(w->hw[0]), by_reason);
	v->has_in_guest = w->in_guest_ns != 0; /* not every KVM tells its entries */
	v->in_guest_ns = w->in_guest_ns;
	v->isa = w->isa;
	v->hw_rows = w->hw;
	v->nr_hw_rows = w->nr_hw;
	/* Of some virtual CPUs only it would be taken for all. */
	if (w->traced) {
		v->halted_ns = w->halted_ns < w->run_call_ns ? w->halted_ns : w->run_call_ns;
		v->has_guest_run = true;
		v->guest_run_source = "kvm_vcpu_wakeup";
		v->guest_run_ns = w->run_call_ns - v->halted_ns;
	} else if (w->with_stats && w->with_stats == w->nr_vcpus &&
		   kvm_stats_halted(&w->total, &v->halted_ns)) {
		v->halted_ns -= v->halted_ns > w->halted_before_ns ? w->halted_before_ns :
								     v->halted_ns;
		v->has_guest_run = true;
		v->guest_run_source = "kvm-stats";
		v->guest_run_ns = w->run_call_ns > v->halted_ns ? w->run_call_ns - v->halted_ns : 0;
	} else {
		v->guest_run_absent = w->why_no_stats ? w->why_no_stats :
							"KVM's statistics do not tell halts";
	}
	return true;
}

void kvm_watch_free(struct kvm_watch *w)
{
	if (!w)
		return;
	while (w->vcpus)
		drop_vcpu(w, w->vcpus);
	free(w);
}
