// SPDX-License-Identifier: MIT
/*
 * Engine proc: what /proc says about threads, to anybody. CPU and run queue time of schedstat are as of
 * the thread's last tick or switch; how it slept is not told, so that is in no bucket. I/O wait is
 * counted, in ticks of USER_HZ, where the kernel was told to (task_delayacct).
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/threads.h"

struct proc_state {
	pid_t pid;	    /* 0: all */
	uint64_t pid_start; /* of pid, in ticks: another process of that pid has another */
	uint64_t tick_ns;
	/* Of threads that began (in ticks) from here on an I/O wait of 0 is one; before it may mean
	 * that nobody counted. UINT64_MAX: nobody counts. */
	uint64_t io_since;
	uint64_t suspended_ns; /* CLOCK_BOOTTIME less CLOCK_MONOTONIC, for since_ns */
};

/* Fields of /proc/PID/stat, by the numbers of proc(5). */
enum {
	STAT_STATE = 3,
	STAT_MIN_FLT = 10,
	STAT_MAJ_FLT = 12,
	STAT_START = 22,
	STAT_CPU = 39,
	STAT_BLKIO = 42,
	STAT_NR
};

struct stat_line {
	char comm[64];
	char state;
	uint64_t field[STAT_NR + 1];
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A name may have blanks and parentheses in it: the last one ends it. */
static int read_stat(pid_t pid, const char *name, struct stat_line *st)
{
	char text[1024], *open, *close, *p;
	ssize_t n = procfs_read(pid, name, text, sizeof(text));

	if (n < 0)
		return (int)n;
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close || close[1] != ' ')
		return -EPROTO;
	*close = '\0';
	snprintf(st->comm, sizeof(st->comm), "%s", open + 1);
	st->state = close[2];
	p = close + 3;
	for (int i = STAT_STATE + 1; i < STAT_NR; i++)
		st->field[i] = strtoull(p, &p, 10);
	return 0;
}

/* The number after a line's name in /proc/PID/status. */
static void put_status(struct thread_sample *s, enum thread_field field, const char *text,
		       const char *name)
{
	const char *p = strstr(text, name);

	if (!p)
		return;
	s->value[field] = strtoull(p + strlen(name), NULL, 10);
	s->known |= THREAD_KNOWN(field);
}

static void put_stat(const struct proc_state *ps, const struct stat_line *st,
		     struct thread_sample *s)
{
	uint64_t start = st->field[STAT_START], io = st->field[STAT_BLKIO];

	snprintf(s->comm, sizeof(s->comm), "%s", st->comm);
	s->state = st->state;
	s->cpu = (int)st->field[STAT_CPU];
	s->epoch = start;
	s->since_ns =
		start * ps->tick_ns > ps->suspended_ns ? start * ps->tick_ns - ps->suspended_ns : 1;
	s->value[THREAD_MIN_FLT] = st->field[STAT_MIN_FLT];
	s->value[THREAD_MAJ_FLT] = st->field[STAT_MAJ_FLT];
	s->known |= THREAD_KNOWN(THREAD_MIN_FLT) | THREAD_KNOWN(THREAD_MAJ_FLT);
	if (ps->io_since != UINT64_MAX && (io || start >= ps->io_since)) {
		s->value[THREAD_IOWAIT] = io * ps->tick_ns;
		s->known |= THREAD_KNOWN(THREAD_IOWAIT);
	}
}

/* False: it has ended. */
static bool sample_thread(const struct proc_state *ps, pid_t pid, pid_t tid,
			  struct thread_sample *s)
{
	char name[40], text[8192];
	struct stat_line st;

	s->pid = pid;
	s->tid = tid;
	snprintf(name, sizeof(name), "task/%d/stat", tid);
	if (read_stat(pid, name, &st))
		return false;
	put_stat(ps, &st, s);
	snprintf(name, sizeof(name), "task/%d/status", tid);
	if (procfs_read(pid, name, text, sizeof(text)) > 0) {
		put_status(s, THREAD_BLOCK, text, "\nvoluntary_ctxt_switches:");
		put_status(s, THREAD_PREEMPT, text, "\nnonvoluntary_ctxt_switches:");
	}
	/* The times last, next to the clock. */
	snprintf(name, sizeof(name), "task/%d/schedstat", tid);
	if (procfs_read(pid, name, text, sizeof(text)) < 0)
		return false;
	s->mono_ns = now_ns(CLOCK_MONOTONIC);
	if (sscanf(text, "%" SCNu64 " %" SCNu64, &s->value[THREAD_ONCPU], &s->value[THREAD_RUNQ]) ==
	    2)
		s->known |= THREAD_KNOWN(THREAD_ONCPU) | THREAD_KNOWN(THREAD_RUNQ);
	return true;
}

static pid_t number(const struct dirent *e)
{
	return isdigit((unsigned char)e->d_name[0]) ? (pid_t)strtol(e->d_name, NULL, 10) : 0;
}

static int sample_process(const struct proc_state *ps, pid_t pid, struct thread_list *to)
{
	struct thread_sample *s;
	struct dirent *e;
	char path[40];
	pid_t tid;
	DIR *dir;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (!err && (e = readdir(dir))) {
		tid = number(e);
		if (!tid)
			continue;
		s = thread_list_add(to);
		if (!s)
			err = -ENOMEM;
		else if (!sample_thread(ps, pid, tid, s))
			to->nr--;
	}
	closedir(dir);
	return err;
}

static int sample_all(const struct proc_state *ps, struct thread_list *to)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	int err = 0;
	pid_t pid;

	if (!dir)
		return -errno;
	while (err != -ENOMEM && (e = readdir(dir))) {
		pid = number(e);
		/* A process may have ended, or hide. */
		if (pid)
			err = sample_process(ps, pid, to);
	}
	closedir(dir);
	return err == -ENOMEM ? err : 0;
}

static int sample(void *state, struct thread_list *to, char *why, size_t len)
{
	struct proc_state *ps = state;
	struct stat_line st;
	int err;

	if (!ps->pid) {
		err = sample_all(ps, to);
		if (err)
			snprintf(why, len, "/proc: %s", strerror(-err));
		return err;
	}
	if (read_stat(ps->pid, "stat", &st) || st.field[STAT_START] != ps->pid_start) {
		snprintf(why, len, "process %d has ended", ps->pid);
		return -ESRCH;
	}
	err = sample_process(ps, ps->pid, to);
	if (err)
		snprintf(why, len, "/proc/%d/task: %s", ps->pid, strerror(-err));
	return err;
}

static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = text; (p = strstr(p, word)); p += len)
		if ((p == text || isspace((unsigned char)p[-1])) &&
		    (!p[len] || isspace((unsigned char)p[len])))
			return true;
	return false;
}

static bool read_file(const char *path, char *text, int size)
{
	FILE *f = fopen(path, "re");
	bool got = f && fgets(text, size, f);

	if (f)
		fclose(f);
	return got;
}

/* From boot on if the kernel was started so; else from now on, as we do not know who has been counted. */
static uint64_t io_counted_since(uint64_t now)
{
	char text[4096];

	if (!read_file("/proc/sys/kernel/task_delayacct", text, sizeof(text)) || text[0] != '1')
		return UINT64_MAX;
	return read_file("/proc/cmdline", text, sizeof(text)) && has_word(text, "delayacct") ? 0 :
											       now;
}

static int open_proc(pid_t pid, void **state, char *why, size_t len)
{
	struct proc_state *ps;
	struct stat_line st = {0};
	uint64_t boot_ns, mono_ns;

	if (!procfs_has_schedstat()) {
		snprintf(why, len,
			 "/proc/PID/schedstat does not tell times, which takes a kernel with "
			 "CONFIG_SCHED_INFO");
		return -EOPNOTSUPP;
	}
	if (pid && read_stat(pid, "stat", &st)) {
		snprintf(why, len, "process %d has ended", pid);
		return -ESRCH;
	}
	ps = calloc(1, sizeof(*ps));
	if (!ps) {
		snprintf(why, len, "out of memory");
		return -ENOMEM;
	}
	ps->pid = pid;
	ps->pid_start = st.field[STAT_START];
	ps->tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	mono_ns = now_ns(CLOCK_MONOTONIC);
	boot_ns = now_ns(CLOCK_BOOTTIME);
	ps->suspended_ns = boot_ns - mono_ns;
	ps->io_since = io_counted_since(boot_ns / ps->tick_ns + 1);
	*state = ps;
	return 0;
}

static void close_proc(void *state)
{
	free(state);
}

const struct thread_engine threads_proc = {
	.name = "proc",
	.cannot_see =
		"which kind of sleep it was (off is all of them); I/O wait, unless the kernel "
		"counts it (sysctl kernel.task_delayacct); moves between CPUs; what a running "
		"thread did since the last tick; threads that come and go between two samples",
	.open = open_proc,
	.sample = sample,
	.close = close_proc,
};
