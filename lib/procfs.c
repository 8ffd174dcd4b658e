/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/procfs.h"

#define PF_KTHREAD 0x00200000 /* in the flags of /proc/PID/stat */

ssize_t procfs_read(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	ssize_t n = 0;
	size_t len = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		n = -errno;
	close(fd);
	buf[len] = '\0';
	return n < 0 ? n : (ssize_t)len;
}

/* The number after "\nName:\t", or 0. */
static long field(const char *text, const char *name)
{
	const char *p = strstr(text, name);

	return p ? strtol(p + strlen(name), NULL, 10) : 0;
}

int procfs_status(pid_t pid, struct proc_status *st)
{
	char text[4096];
	ssize_t n = procfs_read(pid, "status", text, sizeof(text));
	const char *p;

	if (n < 0)
		return (int)n;
	st->tgid = (pid_t)field(text, "\nTgid:\t");
	st->ppid = (pid_t)field(text, "\nPPid:\t");
	st->tracer = (pid_t)field(text, "\nTracerPid:\t");
	st->uid = (unsigned int)field(text, "\nUid:\t");
	st->seccomp = (unsigned int)field(text, "\nSeccomp:\t");
	p = strstr(text, "\nCapEff:\t");
	st->cap_eff = p ? strtoull(p + 9, NULL, 16) : 0;
	st->ns_pid = 0;
	/* One number a namespace, the innermost last. */
	p = strstr(text, "\nNSpid:\t");
	if (p)
		for (p += 8; *p && *p != '\n';) {
			char *end;

			st->ns_pid = (pid_t)strtol(p, &end, 10);
			p = *end == '\t' ? end + 1 : end;
		}
	return 0;
}

void procfs_comm(pid_t pid, char comm[16])
{
	char text[20];
	ssize_t n = procfs_read(pid, "comm", text, sizeof(text));

	if (n <= 0)
		return;
	if (text[n - 1] == '\n')
		text[n - 1] = '\0';
	memcpy(comm, text, 15);
	comm[15] = '\0';
}

enum { PROF = 0, VIRT = 1, SCHED = 2 }; /* kinds of a process's CPU clock: ticks, user ticks, sum */

/* clock_getcpuclockid(3) makes the same number, for SCHED. */
static bool cpu_clock(pid_t pid, clockid_t kind, uint64_t *ns)
{
	struct timespec ts;

	if (clock_gettime((clockid_t)((~(unsigned int)pid << 3) | (unsigned int)kind), &ts))
		return false;
	*ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	return true;
}

void procfs_share_cpu(uint64_t sum, uint64_t user, uint64_t ticks, uint64_t *user_ns,
		      uint64_t *system_ns)
{
	*user_ns = user < ticks ? (uint64_t)((double)sum * ((double)user / (double)ticks)) : sum;
	if (*user_ns > sum)
		*user_ns = sum;
	*system_ns = sum - *user_ns;
}

bool procfs_cpu(pid_t pid, uint64_t *user_ns, uint64_t *system_ns)
{
	uint64_t sum, ticks, user;

	if (!cpu_clock(pid, SCHED, &sum) || !cpu_clock(pid, PROF, &ticks) ||
	    !cpu_clock(pid, VIRT, &user))
		return false;
	procfs_share_cpu(sum, user, ticks, user_ns, system_ns);
	return true;
}

bool procfs_cpu_sum(pid_t pid, uint64_t *ns)
{
	return cpu_clock(pid, SCHED, ns);
}

bool procfs_is_kthread(pid_t pid)
{
	char buf[512], *p;
	unsigned int flags;

	if (procfs_read(pid, "stat", buf, sizeof(buf)) <= 0)
		return false;
	/* The name, in brackets, may have any character: the numbers are behind the last bracket. */
	p = strrchr(buf, ')');
	return p && sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & PF_KTHREAD;
}

/* A process whose leader has ended may have other threads, which go on. */
static bool is_zombie(pid_t pid)
{
	char stat[512], *p;
	long threads;

	if (procfs_read(pid, "stat", stat, sizeof(stat)) <= 0)
		return false;
	p = strrchr(stat, ')');
	return p && !strncmp(p, ") Z ", 4) &&
	       sscanf(p + 4, "%*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld",
		      &threads) == 1 &&
	       threads <= 1;
}

bool procfs_is_no_process(pid_t pid, char *why, size_t len)
{
	struct proc_status st = {0};

	if (pid == getpid())
		snprintf(why, len, "pid %d is statpage itself: attach from another one", pid);
	else if (procfs_status(pid, &st))
		snprintf(why, len, "no process has the pid %d", pid);
	else if (st.tgid != pid)
		snprintf(why, len, "%d is a thread of process %d: attach to that", pid, st.tgid);
	else if (is_zombie(pid))
		snprintf(why, len, "pid %d has ended, and waits for its parent %d to notice", pid,
			 st.ppid);
	else if (procfs_is_kthread(pid))
		snprintf(why, len, "pid %d is a kernel thread: it makes no system calls", pid);
	else
		return false;
	return true;
}

bool procfs_is_setid(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return !stat(path, &st) && (st.st_mode & (S_ISUID | S_ISGID));
}

int procfs_open_schedstat(pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", tid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

bool procfs_read_schedstat(int fd, uint64_t *on_cpu_ns)
{
	char text[64];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	uint64_t v = 0;

	if (n <= 0)
		return false;
	text[n] = '\0';
	for (const char *p = text; *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	*on_cpu_ns = v;
	/* Without scheduler accounting the kernel writes zeros. */
	return v != 0;
}

bool procfs_has_schedstat(void)
{
	int fd = procfs_open_schedstat(getpid());
	uint64_t ns;
	bool has;

	/* It is as of the last tick or switch, and we may be too young for either. */
	nanosleep(&(struct timespec){0, 1}, NULL);
	has = procfs_read_schedstat(fd, &ns);
	if (fd >= 0)
		close(fd);
	return has;
}

bool procfs_start_ticks(pid_t pid, uint64_t *ticks)
{
	char text[1024];
	const char *p;
	unsigned long long v;

	if (procfs_read(pid, "stat", text, sizeof(text)) <= 0)
		return false;
	/* Field 22; the second is a name in brackets that may hold any. */
	p = strrchr(text, ')');
	if (!p || sscanf(p + 1,
			 " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
			 "%*d %llu",
			 &v) != 1)
		return false;
	*ticks = v;
	return true;
}
