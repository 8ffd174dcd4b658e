/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/cgroup.h"

bool cgroup_is_dir(const char *path)
{
	struct statfs fs;
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode) && !statfs(path, &fs) &&
	       fs.f_type == CGROUP2_SUPER_MAGIC;
}

/* Processes of the group itself. */
static int each_here(int dir, int (*fn)(pid_t pid, void *arg), void *arg)
{
	int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC), pid, ret = 0;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (!f)
		return -errno;
	errno = 0;
	/* 0 is a process outside of our pid namespace. */
	while (!ret && fscanf(f, "%d", &pid) == 1)
		ret = pid ? fn(pid, arg) : 0;
	if (!ret && ferror(f))
		ret = -errno;
	fclose(f);
	return ret;
}

static int each_below(int dir, int (*fn)(pid_t pid, void *arg), void *arg)
{
	DIR *d = fdopendir(dir);
	struct dirent *e;
	int ret = d ? 0 : -errno;

	if (!d) {
		close(dir);
		return ret;
	}
	while (!ret && (e = readdir(d))) {
		int fd;

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		fd = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		/* A threaded group's processes are those of the domain above it: EOPNOTSUPP. */
		ret = each_here(fd, fn, arg);
		ret = ret == -ENODEV || ret == -ENOENT || ret == -EOPNOTSUPP ? 0 : ret;
		if (ret)
			close(fd);
		else
			ret = each_below(fd, fn, arg);
	}
	closedir(d);
	return ret;
}

int cgroup_each_process(const char *path, int (*fn)(pid_t pid, void *arg), void *arg)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret;

	if (dir < 0)
		return -errno;
	ret = each_here(dir, fn, arg);
	if (ret) {
		close(dir);
		return ret;
	}
	return each_below(dir, fn, arg);
}
