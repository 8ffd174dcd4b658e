// SPDX-License-Identifier: GPL-2.0
/*
 * A file for node_exporter's textfile collector. That reads *.prom at any moment, so the file is written
 * under a name it does not read, and renamed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cmd.h"
#include "tools/export.h"
#include "tools/pace.h"

#define NAME "statpage.prom"

static int write_all(int fd, const char *text, size_t len)
{
	ssize_t n;

	for (; len; text += n, len -= (size_t)n) {
		n = write(fd, text, len);
		if (n < 0)
			return -1;
	}
	return 0;
}

/* Everybody may read it, whatever the umask: node_exporter is another user. 0, or -1 with errno. */
static int replace(int dir, const char *tmp, const char *text, size_t len)
{
	int fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	int err;

	if (fd < 0)
		return -1;
	err = write_all(fd, text, len) || fchmod(fd, 0644) ? errno : 0;
	if (close(fd) && !err)
		err = errno;
	if (!err && renameat(dir, tmp, dir, NAME))
		err = errno;
	if (err)
		unlinkat(dir, tmp, 0);
	errno = err;
	return err ? -1 : 0;
}

static int write_file(int dir, const struct export_opts *o)
{
	char tmp[40], *text;
	size_t len;
	int err;

	text = export_text(o, OM_PROMETHEUS, &len);
	if (!text)
		return -1;
	snprintf(tmp, sizeof(tmp), "." NAME ".%d", (int)getpid());
	err = replace(dir, tmp, text, len);
	free(text);
	return err;
}

int export_textfile(const char *path, uint64_t interval_ns, const struct export_opts *o)
{
	uint64_t start = pace_now();
	int dir, signals, up, err, was = 0;
	bool wrote;

	dir = open(path, O_DIRECTORY | O_PATH | O_CLOEXEC);
	if (dir < 0)
		return cmd_err("%s: %s", path, strerror(errno));
	up = export_check(o);
	signals = up < 0 ? -1 : pace_signals(0);
	if (signals < 0) {
		close(dir);
		return CMD_FAILED;
	}
	/* What worked once is tried again: a disk that is full may have room later. */
	for (wrote = false;; was = err) {
		err = write_file(dir, o) ? errno : 0;
		if (err && err != was)
			cmd_err("%s/%s: %s", path, NAME, strerror(err));
		wrote |= !err;
		if (!wrote || !interval_ns || pace_wait(signals, start, interval_ns, UINT64_MAX))
			break;
	}
	close(signals);
	close(dir);
	/* Once: who asked learns that the file says nothing. */
	return err || (!up && !interval_ns) ? CMD_FAILED : 0;
}
