// SPDX-License-Identifier: MIT
/*
 * Engine pages: threads that have a page of coarse_stat_fs or of statpage serve, as the page tells it, for
 * who may trace their process. Exact, and no cost to the threads. Root is given pages of any thread by the
 * server, which cost the threads something at their switches as long as the engine is open.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "lib/csf_remote.h"
#include "lib/csf_view.h"
#include "lib/procfs.h"
#include "lib/threads.h"

struct pages_state {
	pid_t pid; /* 0: all */
	uint64_t start_ticks;
	bool is_mounted;
	struct csf_view *view; /* NULL: there was no server */
};

/* One process's pages on their way to the list. */
struct pages_walk {
	pid_t pid;
	bool nested;  /* in another pid namespace: its threads have other numbers there */
	size_t first; /* of its samples in the list */
	struct thread_list *to;
};

/* A thread's number as we see it, from its own; 0: the process has no such thread. */
static pid_t tid_here(const struct pages_walk *w, uint32_t own)
{
	struct proc_status st;
	char path[40];
	struct dirent *e;
	pid_t tid, found = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", w->pid);
	if (!w->nested) {
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "/%u", own);
		return access(path, F_OK) ? 0 : (pid_t)own;
	}
	dir = opendir(path);
	while (dir && !found && (e = readdir(dir))) {
		tid = (pid_t)strtol(e->d_name, NULL, 10);
		if (tid && !procfs_status(tid, &st) && st.ns_pid == (pid_t)own)
			found = tid;
	}
	if (dir)
		closedir(dir);
	return found;
}

/*
 * What a page says is as of the last switch. The time since is the bucket's that the thread is in: of one
 * that blocked this counts a wait for a CPU that has not ended yet as the sleep before it.
 */
static void put_times(const struct csf_snap *snap, struct thread_sample *s)
{
	const __u64 *cyc = &snap->p.oncpu_cyc;
	uint64_t since = snap->extrapolated ? 0 : snap->tsc - snap->p.last_switch_tsc;

	for (unsigned int i = 0; i < THREAD_NR_BUCKETS; i++) {
		s->value[i] =
			csf_cyc_to_ns_u64(&snap->p.hdr, cyc[i] + (i == snap->p.state ? since : 0));
		s->known |= THREAD_KNOWN(i);
	}
}

/* The moment of the snapshot, which is some time ago, and by its page's clock. */
static uint64_t mono_ns(const struct csf_snap *snap)
{
	uint64_t ago = csf_now(&snap->p.hdr) - snap->tsc;
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec -
	       csf_cyc_to_ns_u64(&snap->p.hdr, ago);
}

static void put(struct thread_sample *s, enum thread_field field, uint64_t value)
{
	s->value[field] = value;
	s->known |= THREAD_KNOWN(field);
}

/* Whether the list has the thread: it has mapped its page twice, or maps it itself and is viewed. */
static bool has(const struct pages_walk *w, pid_t tid)
{
	for (size_t i = w->first; i < w->to->nr; i++)
		if (w->to->v[i].tid == tid)
			return true;
	return false;
}

/* The new sample; NULL: no memory. */
static struct thread_sample *put_snap(struct pages_walk *w, pid_t tid, const struct csf_snap *snap)
{
	static const char state[CSF_NR_STATES] = {'R', 'R', 'S', 'D', 'D'};
	uint64_t at = mono_ns(snap);
	struct thread_sample *s = thread_list_add(w->to);

	if (!s)
		return NULL;
	s->pid = w->pid;
	s->tid = tid;
	procfs_comm(tid, s->comm);
	s->state = state[snap->p.state];
	s->cpu = (int)snap->p.cpu;
	s->epoch = snap->p.start_tsc;
	s->mono_ns = at;
	put_times(snap, s);
	put(s, THREAD_PREEMPT, snap->p.nr_preempt);
	put(s, THREAD_BLOCK, snap->p.nr_block);
	put(s, THREAD_MIGRATE, snap->p.nr_migrate);
	put(s, THREAD_MIN_FLT, snap->p.min_flt);
	put(s, THREAD_MAJ_FLT, snap->p.maj_flt);
	return s;
}

static int add(const struct csf_snap *snap, void *data)
{
	struct pages_walk *w = data;
	pid_t tid;

	/* Another process's page that was handed to this one is none of its threads'. */
	if (snap->p.hdr.flags & (CSF_F_DEAD | CSF_F_PARKED) || snap->p.state >= CSF_NR_STATES)
		return 0;
	tid = tid_here(w, snap->p.tid);
	if (!tid || has(w, tid))
		return 0;
	return put_snap(w, tid, snap) ? 0 : -ENOMEM;
}

/* The threads of a process that the server has pages for. 0, -ESRCH or -ENOMEM. */
static int sample_viewed(struct csf_view *view, struct pages_walk *w)
{
	struct csf_view_base base;
	struct thread_sample *s;
	struct csf_snap snap;
	struct dirent *e;
	char path[40];
	int ret = 0;
	pid_t tid;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", w->pid);
	dir = opendir(path);
	if (!dir)
		return -ESRCH;
	while (!ret && (e = readdir(dir))) {
		tid = (pid_t)strtol(e->d_name, NULL, 10);
		if (!tid || has(w, tid) || csf_view_snap(view, w->pid, tid, &snap, &base) ||
		    snap.p.state >= CSF_NR_STATES)
			continue;
		s = put_snap(w, tid, &snap);
		if (!s)
			ret = -ENOMEM;
		else if (base.known) {
			/* All numbers are since the page began, as it begins with the first look. */
			s->since_ns = snap.p.start_tsc;
			s->value[THREAD_MIN_FLT] -= base.min_flt;
			s->value[THREAD_MAJ_FLT] -= base.maj_flt;
		}
	}
	closedir(dir);
	return ret;
}

/* 0, -ENOMEM, or why nothing of the process can be seen. */
static int sample_process(const struct pages_state *ps, pid_t pid, struct thread_list *to)
{
	struct pages_walk w = {.pid = pid, .first = to->nr, .to = to};
	bool viewing = csf_view_may(ps->view);
	struct proc_status st;
	int ret = 0;

	/* The server's are all that there are. */
	if (viewing && !ps->is_mounted)
		return sample_viewed(ps->view, &w);
	if (procfs_status(pid, &st))
		return -ESRCH;
	w.nested = st.ns_pid != pid;
	ret = csf_remote_each(pid, add, &w);
	if (viewing && ret != -ENOMEM)
		return sample_viewed(ps->view, &w);
	return ret == -1 ? -errno : ret;
}

static int sample_all(const struct pages_state *ps, struct thread_list *to)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	int err = 0;

	if (!dir)
		return -errno;
	while (err != -ENOMEM && (e = readdir(dir)))
		if (isdigit((unsigned char)e->d_name[0]))
			err = sample_process(ps, (pid_t)strtol(e->d_name, NULL, 10), to);
	closedir(dir);
	/* Of processes that end, or are not ours to see, there is nothing. */
	return err == -ENOMEM ? err : 0;
}

static int sample(void *state, struct thread_list *to, char *why, size_t len)
{
	struct pages_state *ps = state;
	uint64_t ticks;
	int err;

	if (ps->pid && (!procfs_start_ticks(ps->pid, &ticks) || ticks != ps->start_ticks)) {
		snprintf(why, len, "process %d has ended", ps->pid);
		return -ESRCH;
	}
	if (ps->view)
		csf_view_begin(ps->view);
	err = ps->pid ? sample_process(ps, ps->pid, to) : sample_all(ps, to);
	if (ps->view)
		csf_view_end(ps->view);
	if (ps->pid) {
		if (err != -EACCES && err != -EPERM && err != -ENOMEM)
			return 0; /* it may have a page later on */
		snprintf(why, len, "the pages of process %d: %s", ps->pid,
			 err == -ENOMEM ? "out of memory" : "only who may trace it can read them");
		return err;
	}
	if (err)
		snprintf(why, len, "/proc: %s", strerror(-err));
	return err;
}

static bool is_mounted(void)
{
	struct statfs fs;

	return !statfs(CSF_MOUNT, &fs) && fs.f_type == CSF_FS_MAGIC;
}

static int open_pages(pid_t pid, void **state, char *why, size_t len)
{
	bool mounted = is_mounted(), served = !access(CSF_SERVE_SOCKET, F_OK);
	struct pages_state *ps;
	uint64_t ticks = 0;

	if (!mounted && !served) {
		snprintf(why, len, "coarse_stat_fs is not mounted, and no statpage serve runs");
		return -ENOENT;
	}
	if (pid && !procfs_start_ticks(pid, &ticks)) {
		snprintf(why, len, "process %d has ended", pid);
		return -ESRCH;
	}
	ps = malloc(sizeof(*ps));
	if (!ps) {
		snprintf(why, len, "out of memory");
		return -ENOMEM;
	}
	*ps = (struct pages_state){pid, ticks, mounted, NULL};
	if (served)
		ps->view = csf_view_new();
	*state = ps;
	return 0;
}

static void close_pages(void *state)
{
	struct pages_state *ps = state;

	if (ps)
		csf_view_free(ps->view);
	free(ps);
}

const struct thread_engine threads_pages = {
	.name = "pages",
	.cannot_see =
		"threads that have no page; a wait for a CPU that has not ended yet counts as "
		"the sleep before it; faults since the thread's last switch",
	.open = open_pages,
	.sample = sample,
	.close = close_pages,
};
