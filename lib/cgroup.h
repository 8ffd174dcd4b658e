/* SPDX-License-Identifier: MIT */
/* Control groups, version 2. */
#ifndef STATPAGE_CGROUP_H
#define STATPAGE_CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

/* A directory of cgroup v2. */
bool cgroup_is_dir(const char *path);

/*
 * Call fn for each process of that group and of those below it, as long as it returns 0. What it
 * returned last, or -errno of the group itself; one below that goes away meanwhile is empty.
 */
int cgroup_each_process(const char *path, int (*fn)(pid_t pid, void *arg), void *arg);

#endif /* STATPAGE_CGROUP_H */
