/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/procs.h"
#include "lib/room.h"
#include "tools/cmd.h"
#include "tools/run_output.h"

/* How long a reader of our pipe may let us wait for one record: while the program runs it waits, too. */
#define FINAL_LIMIT_MS 1000
#define LIMIT_MS       100

static void warn(struct run_sink *s, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	(void)s;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	cmd_err("%s", text);
}

/*
 * A pipe that says it is writable takes PIPE_BUF bytes without blocking; our end may be the
 * program's standard error as well, so it cannot be made non-blocking.
 */
static int write_all(int fd, const char *p, size_t n, int limit_ms)
{
	uint64_t end = now_ns() + (uint64_t)limit_ms * 1000000u;
	struct stat st;
	bool patient = !fstat(fd, &st) && S_ISREG(st.st_mode);

	while (n) {
		int ret = patient ? 0 : rts_wait_for_room(fd, end);
		ssize_t done;

		if (ret)
			return ret;
		done = write(fd, p, patient || n < PIPE_BUF ? n : PIPE_BUF);
		if (done < 0 && errno != EINTR)
			return -errno;
		if (done > 0) {
			p += done;
			n -= (size_t)done;
		}
	}
	return 0;
}

static void fail(struct run_output *o, int err)
{
	o->dropped++;
	if (!o->error)
		o->error = err;
}

static void put_out(struct run_output *o, int fd, const char *p, size_t n)
{
	/* Who has let one record wait in vain reads when there is room again, and not before. */
	int limit = o->torn ? 0 : o->final ? FINAL_LIMIT_MS : LIMIT_MS, ret = 0;

	if (o->torn)
		ret = write_all(fd, "\n", 1, limit);
	if (!ret)
		ret = write_all(fd, p, n, o->final ? FINAL_LIMIT_MS : LIMIT_MS);
	o->torn = ret != 0;
	if (ret)
		fail(o, -ret);
}

/* Format r into o->buf, which grows until it fits. 0 or -ENOMEM. */
static int format(struct run_output *o, int (*fmt)(struct run_output *, const struct rts_record *),
		  const struct rts_record *r)
{
	for (;;) {
		char *bigger;

		o->buf.len = 0;
		o->buf.cut = false;
		if (o->buf.cap && !fmt(o, r))
			return 0;
		bigger = realloc(o->buf.p, o->buf.cap ? o->buf.cap * 2 : 65536);
		if (!bigger) {
			fail(o, ENOMEM);
			return -ENOMEM;
		}
		o->buf.p = bigger;
		o->buf.cap = o->buf.cap ? o->buf.cap * 2 : 65536;
	}
}

static int fmt_line(struct run_output *o, const struct rts_record *r)
{
	int ret = rts_fmt_json(&o->buf, r);

	rts_putc(&o->buf, '\n');
	return o->buf.cut ? -ENOSPC : ret;
}

static int fmt_open(struct run_output *o, const struct rts_record *r)
{
	return rts_fmt_json_open(&o->buf, r);
}

static int fmt_object(struct run_output *o, const struct rts_record *r)
{
	if (o->spill_size)
		rts_put(&o->buf, ",\n");
	return rts_fmt_json(&o->buf, r);
}

static int fmt_table(struct run_output *o, const struct rts_record *r)
{
	return rts_fmt_summary(&o->buf, r, r->tree || o->dir >= 0 ? 0 : RTS_SUMMARY_PART);
}

static int fmt_short(struct run_output *o, const struct rts_record *r)
{
	return rts_fmt_summary(&o->buf, r, RTS_SUMMARY_SHORT);
}

/* PID.json; a second document of this number (an exec, a number used again) is PID-1.json. */
static int open_in_folder(struct run_output *o, const struct rts_record *r)
{
	static const char *const ext[] = {"txt", "json", "jsonl"};
	char name[64];
	int fd = -1;

	if (r->tree) {
		snprintf(name, sizeof(name), "tree.%s", ext[o->format]);
		return openat(o->dir, name,
			      O_WRONLY | O_CREAT | O_CLOEXEC |
				      (o->format == RUN_JSONL ? O_APPEND : O_TRUNC),
			      0666);
	}
	snprintf(name, sizeof(name), "%d.%s", r->pid, ext[o->format]);
	if (o->format != RUN_JSON)
		return openat(o->dir, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	for (int i = 1; i < 1000000; i++) {
		fd = openat(o->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0 || errno != EEXIST)
			break;
		snprintf(name, sizeof(name), "%d-%d.json", r->pid, i);
	}
	return fd;
}

static void to_folder(struct run_output *o, const struct rts_record *r)
{
	int fd, ret;

	if (format(o, o->format == RUN_SUMMARY ? fmt_table : fmt_line, r))
		return;
	fd = open_in_folder(o, r);
	ret = fd < 0 ? -errno : write_all(fd, o->buf.p, o->buf.len, LIMIT_MS);
	if (ret)
		fail(o, -ret);
	if (fd >= 0)
		close(fd);
}

static void to_spill(struct run_output *o, const struct rts_record *r)
{
	int ret;

	if (format(o, o->format == RUN_JSON ? fmt_object : fmt_table, r))
		return;
	ret = write_all(o->spill, o->buf.p, o->buf.len, LIMIT_MS);
	if (!ret) {
		o->spill_size += (off_t)o->buf.len;
		return;
	}
	o->spill_failed |= !o->error;
	fail(o, -ret);
	/* Half a record would spoil the document. */
	if (ftruncate(o->spill, o->spill_size) || lseek(o->spill, o->spill_size, SEEK_SET) < 0)
		fail(o, errno);
}

static void copy_spill(struct run_output *o)
{
	char block[65536];
	off_t at = 0;

	while (at < o->spill_size && !o->torn) {
		ssize_t n = pread(o->spill, block, sizeof(block), at);

		if (n <= 0) {
			o->spill_failed |= !o->error;
			fail(o, n ? errno : EIO);
			return;
		}
		put_out(o, o->fd, block, (size_t)n);
		at += n;
	}
}

/* The whole document: the tree, then what its processes left. */
static void document(struct run_output *o, const struct rts_record *r)
{
	bool json = o->format == RUN_JSON;

	if (format(o, json ? fmt_open : fmt_table, r))
		return;
	put_out(o, o->fd, o->buf.p, o->buf.len);
	if (json)
		put_out(o, o->fd, ",\"processes\":[\n", 15);
	if (!o->torn)
		copy_spill(o);
	if (json && !o->torn)
		put_out(o, o->fd, "]}\n", 3);
}

static void record(struct run_sink *s, const struct rts_record *r)
{
	struct run_output *o = (struct run_output *)s;
	bool snapshot = r->reason == RTS_SIGNAL || r->reason == RTS_INTERVAL;
	struct rts_record tree;

	o->final = r->final;
	if (r->tree) {
		tree = *r;
		tree.lost.records_dropped += o->dropped;
		r = &tree;
	}
	if (snapshot && o->format == RUN_JSON)
		return;
	if (snapshot && o->format == RUN_SUMMARY) {
		if (!format(o, fmt_short, r))
			put_out(o, o->fd >= 0 ? o->fd : STDERR_FILENO, o->buf.p, o->buf.len);
	} else if (o->dir >= 0) {
		to_folder(o, r);
	} else if (o->format == RUN_JSONL) {
		if (!format(o, fmt_line, r))
			put_out(o, o->fd, o->buf.p, o->buf.len);
	} else if (r->tree) {
		document(o, r);
	} else {
		to_spill(o, r);
	}
}

/* tmpfile() knows file systems where a file must have a name at first. */
static int open_spill(void)
{
	FILE *f = tmpfile();
	int fd;

	if (!f)
		return memfd_create("statpage", MFD_CLOEXEC);
	fd = fcntl(fileno(f), F_DUPFD_CLOEXEC, 3);
	fclose(f);
	return fd;
}

int run_output_open(struct run_output *o, enum run_format format, const char *path)
{
	int append = format == RUN_JSONL ? O_APPEND : O_TRUNC;
	struct stat st;
	size_t n = path ? strlen(path) : 0;

	*o = (struct run_output){.sink = {record, warn},
				 .format = format,
				 .path = path,
				 .fd = -1,
				 .dir = -1,
				 .spill = -1};
	if (path && (path[n - 1] == '/' || (!stat(path, &st) && S_ISDIR(st.st_mode)))) {
		if (mkdir(path, 0777) && errno != EEXIST) {
			cmd_err("cannot make the folder %s: %s", path, strerror(errno));
			return -1;
		}
		o->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	} else {
		o->fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC | append, 0666) :
			       fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	}
	if (o->fd < 0 && o->dir < 0) {
		cmd_err("cannot write to %s: %s", path ? path : "standard error", strerror(errno));
		return -1;
	}
	if (format != RUN_JSONL && o->dir < 0) {
		o->spill = open_spill();
		if (o->spill < 0) {
			cmd_err("cannot make a temporary file: %s", strerror(errno));
			close(o->fd);
			return -1;
		}
	}
	return 0;
}

int run_output_close(struct run_output *o)
{
	int fd = o->dir >= 0 ? o->dir : o->fd;
	int ret = 0;

	const char *name = o->spill_failed ? "the temporary file" :
			   o->path	   ? o->path :
					     "standard error";

	if (o->spill >= 0)
		close(o->spill);
	free(o->buf.p);
	if (close(fd) && !o->error)
		o->error = errno;
	if (o->error) {
		cmd_err("%s: %lu records not written: %s", name, o->dropped,
			o->error == ETIMEDOUT ? "nobody reads them" : strerror(o->error));
		ret = -1;
	}
	return ret;
}
