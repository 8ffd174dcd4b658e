// SPDX-License-Identifier: MIT
/*
 * Engine pages: threads that have a page of coarse_stat_fs or of statpage serve, as the page tells it, for
 * who may trace their process. Exact, and no cost to the threads.
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
#include "lib/procfs.h"
#include "lib/threads.h"

struct pages_state {
	pid_t pid; /* 0: all */
	uint64_t start_ticks;
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

static int add(const struct csf_snap *snap, void *data)
{
	static const char state[CSF_NR_STATES] = {'R', 'R', 'S', 'D', 'D'};
	struct pages_walk *w = data;
	struct thread_sample *s;
	uint64_t at = mono_ns(snap);
	pid_t tid;

	/* Another process's page that was handed to this one is none of its threads'. */
	if (snap->p.hdr.flags & (CSF_F_DEAD | CSF_F_PARKED) || snap->p.state >= CSF_NR_STATES)
		return 0;
	tid = tid_here(w, snap->p.tid);
	for (size_t i = w->first; tid && i < w->to->nr; i++)
		if (w->to->v[i].tid == tid)
			tid = 0; /* mapped twice */
	if (!tid)
		return 0;
	s = thread_list_add(w->to);
	if (!s)
		return -ENOMEM;
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
	return 0;
}

/* 0, -ENOMEM, or why nothing of the process can be seen. */
static int sample_process(pid_t pid, struct thread_list *to)
{
	struct pages_walk w = {.pid = pid, .first = to->nr, .to = to};
	struct proc_status st;
	int ret;

	if (procfs_status(pid, &st))
		return -ESRCH;
	w.nested = st.ns_pid != pid;
	ret = csf_remote_each(pid, add, &w);
	return ret == -1 ? -errno : ret;
}

static int sample(void *state, struct thread_list *to, char *why, size_t len)
{
	struct pages_state *ps = state;
	uint64_t ticks;
	struct dirent *e;
	int err = 0;
	DIR *dir;

	if (ps->pid) {
		if (!procfs_start_ticks(ps->pid, &ticks) || ticks != ps->start_ticks) {
			snprintf(why, len, "process %d has ended", ps->pid);
			return -ESRCH;
		}
		err = sample_process(ps->pid, to);
		if (err != -EACCES && err != -EPERM && err != -ENOMEM)
			return 0; /* it may have a page later on */
		snprintf(why, len, "the pages of process %d: %s", ps->pid,
			 err == -ENOMEM ? "out of memory" : "only who may trace it can read them");
		return err;
	}
	dir = opendir("/proc");
	while (dir && err != -ENOMEM && (e = readdir(dir)))
		if (isdigit((unsigned char)e->d_name[0]))
			err = sample_process((pid_t)strtol(e->d_name, NULL, 10), to);
	if (!dir)
		err = -errno;
	else
		closedir(dir);
	/* Of processes that end, or are not ours to see, there is nothing. */
	if (dir && err != -ENOMEM)
		return 0;
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
	struct pages_state *ps;
	uint64_t ticks = 0;

	if (!is_mounted() && access(CSF_SERVE_SOCKET, F_OK)) {
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
	*ps = (struct pages_state){pid, ticks};
	*state = ps;
	return 0;
}

static void close_pages(void *state)
{
	free(state);
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
