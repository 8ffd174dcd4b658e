// SPDX-License-Identifier: GPL-2.0
/*
 * A file for node_exporter's textfile collector. That reads *.prom at any moment, so the file is written
 * under a name it does not read, and renamed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/cmd.h"
#include "tools/export.h"

#define NAME "statpage.prom"

int export_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		cmd_err("signalfd: %s", strerror(errno));
	return fd;
}

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

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Sleep until the next multiple of interval since the start. Returns 1 when a signal came. */
static int wait_next(int signals, uint64_t start_ns, uint64_t interval_ns)
{
	struct pollfd p = {.fd = signals, .events = POLLIN};
	uint64_t left = interval_ns - (now_ns() - start_ns) % interval_ns;
	struct timespec ts = {.tv_sec = (time_t)(left / 1000000000),
			      .tv_nsec = (long)(left % 1000000000)};

	return ppoll(&p, 1, &ts, NULL) > 0;
}

int export_textfile(const char *path, uint64_t interval_ns, const struct export_opts *o)
{
	uint64_t start = now_ns();
	int dir, signals, up, err, was = 0;
	bool wrote;

	dir = open(path, O_DIRECTORY | O_PATH | O_CLOEXEC);
	if (dir < 0)
		return cmd_err("%s: %s", path, strerror(errno));
	up = export_check(o);
	signals = up < 0 ? -1 : export_signals();
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
		if (!wrote || !interval_ns || wait_next(signals, start, interval_ns))
			break;
	}
	close(signals);
	close(dir);
	/* Once: who asked learns that the file says nothing. */
	return err || (!up && !interval_ns) ? CMD_FAILED : 0;
}
