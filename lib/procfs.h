/* SPDX-License-Identifier: MIT */
/* What /proc says about one process. Every function is thread-safe and copes with a process gone. */
#ifndef STATPAGE_PROCFS_H
#define STATPAGE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_status {
	pid_t tgid, ppid, tracer, ns_pid;
	unsigned int uid, seccomp;
	uint64_t cap_eff; /* a bit for each capability in effect */
};

/* Read /proc/PID/NAME into buf, NUL-terminated. Bytes read, or -errno. */
ssize_t procfs_read(pid_t pid, const char *name, char *buf, size_t size);
int procfs_status(pid_t pid, struct proc_status *st);
void procfs_comm(pid_t pid, char comm[16]);
/*
 * The scheduler's sum is exact, user time and all time (ticks) are counted in ticks: share the sum in
 * their ratio, as getrusage() does. No ticks: all of it is user time.
 */
void procfs_share_cpu(uint64_t sum, uint64_t user, uint64_t ticks, uint64_t *user_ns,
		      uint64_t *system_ns);
/* CPU time of all threads, dead ones included; false if the process is gone. */
bool procfs_cpu(pid_t pid, uint64_t *user_ns, uint64_t *system_ns);
/* The same, their sum alone: cheaper. */
bool procfs_cpu_sum(pid_t pid, uint64_t *ns);
/* The program's file has a set-user-ID or set-group-ID bit. */
bool procfs_is_setid(pid_t pid);
/* When the process began, in clock ticks since boot; false if it is gone. */
bool procfs_start_ticks(pid_t pid, uint64_t *ticks);
/* Why nobody can watch a process of that number, in words; false: it is one. */
bool procfs_is_no_process(pid_t pid, char *why, size_t len);
/* A thread of the kernel itself. */
bool procfs_is_kthread(pid_t pid);
/* Keep open to read a thread's time on CPU at every stop; -1: no descriptor. */
int procfs_open_schedstat(pid_t tid);
bool procfs_read_schedstat(int fd, uint64_t *on_cpu_ns);
/* The kernel has the file and fills it in. */
bool procfs_has_schedstat(void);

#endif /* STATPAGE_PROCFS_H */
