/* SPDX-License-Identifier: MIT */
/*
 * Where records go. Every write is bounded in time: nobody may be reading. The page with the lock
 * and the mark of a cut line is shared with all forked children, so that their lines do not mix.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"
#include "lib/room.h"

#ifndef PIPE_BUF
#define PIPE_BUF 512
#endif

struct shared {
	pthread_mutex_t lock;
	_Atomic int cut;	    /* the last line is not whole */
	_Atomic unsigned int moves; /* writes that got something out: the reader is alive */
	_Atomic unsigned int stuck; /* moves when a writer gave up, plus 1 */
};

static struct {
	int fd;	    /* -1: to be opened */
	int dir_fd; /* -1: no folder */
	dev_t dev;
	ino_t ino;
	bool owned; /* our descriptor, not standard error */
	bool whole; /* writes need no slicing: a file, or a pipe that does not block */
} out = {.fd = -1, .dir_fd = -1};

static struct shared *shared;

/* How long to wait for room. Not long where somebody waited in vain and nothing moved since. */
static int patience(void)
{
	return atomic_load(&shared->stuck) == atomic_load(&shared->moves) + 1 ?
		       RTS_WRITE_LIMIT_MS / 10 :
		       RTS_WRITE_LIMIT_MS;
}

struct text {
	const char *p;
	size_t n, done;
};

/* Each piece waits at most limit_ms. Slices of PIPE_BUF: poll() promises room for that much only.
 */
static int write_all(int fd, struct text *t, bool whole, int limit_ms)
{
	while (t->done < t->n) {
		size_t left = t->n - t->done, slice = whole || left < PIPE_BUF ? left : PIPE_BUF;
		uint64_t now = 0;
		ssize_t did;
		int ret;

		rts_clock(&now);
		ret = rts_wait_for_room(fd, now + (uint64_t)limit_ms * 1000000u);
		if (ret)
			return ret;
		did = write(fd, t->p + t->done, slice);
		if (did < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (did > 0)
			t->done += (size_t)did;
	}
	return 0;
}

/* A closed pipe or a file-size limit must not kill the program: keep the signals, then eat ours. */
static int write_quiet(int fd, struct text *t, bool whole, int limit_ms)
{
	sigset_t set, old, before, after;
	int ret, sig;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	sigaddset(&set, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	sigpending(&before);
	ret = write_all(fd, t, whole, limit_ms);
	sigpending(&after);
	sig = ret == -EPIPE ? SIGPIPE : ret == -EFBIG ? SIGXFSZ : 0;
	if (sig && !sigismember(&before, sig) && sigismember(&after, sig)) {
		sigemptyset(&set);
		sigaddset(&set, sig);
		sigwait(&set, &sig);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

void rts_output_plain(int fd, const char *text, size_t len)
{
	struct text t = {.p = text, .n = len};

	write_quiet(fd, &t, false, 100);
}

/*
 * A duplicate of standard error, which programs close before our end (coreutils do, in atexit()),
 * out of the way of those that count on the lowest numbers. fd itself where there is no room.
 */
static int duplicate(int fd)
{
	static const int from[] = {200, STDERR_FILENO + 1};
	int own = -1;

	for (size_t i = 0; own < 0 && i < sizeof(from) / sizeof(from[0]); i++)
		own = fcntl(fd, F_DUPFD_CLOEXEC, from[i]);
	return own < 0 ? fd : own;
}

/* Remember what fd is, to notice when the program closed it and opened something else there. */
static int adopt(int fd, bool owned)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	out.fd = fd;
	out.owned = owned;
	out.dev = st.st_dev;
	out.ino = st.st_ino;
	out.whole = S_ISREG(st.st_mode);
	if (S_ISFIFO(st.st_mode)) {
		int own = rts_os_reopen(fd);

		if (own >= 0) {
			if (owned)
				close(fd);
			out.fd = own;
			out.owned = true;
			out.whole = true;
		}
	}
	return 0;
}

static int open_at(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);

	return fd < 0 ? -errno : adopt(fd, true);
}

static int open_in_folder(void)
{
	static const char *const suffix[] = {
		[RTS_SUMMARY] = "txt", [RTS_JSON] = "json", [RTS_JSONL] = "jsonl"};
	char name[32], comm[16];
	int32_t pid, ppid;

	rts_os_who(&pid, &ppid, comm);
	snprintf(name, sizeof(name), "%d.%s", (int)pid, suffix[rts_cfg.format]);
	return open_at(out.dir_fd, name);
}

static int open_named(const char *path)
{
	size_t n = strlen(path);
	struct stat st;

	if (stat(path, &st) ? path[n - 1] != '/' : !S_ISDIR(st.st_mode))
		return open_at(AT_FDCWD, path);
	out.dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return out.dir_fd < 0 ? -errno : open_in_folder();
}

static int make_shared(void)
{
	struct shared *p = rts_os_map(NULL, sizeof(*p), true);

	if (!p)
		return -ENOMEM;
	shared = p;
	return rts_os_mutex_init(&shared->lock);
}

int rts_output_open(void)
{
	int ret = make_shared(), fd;

	if (ret)
		return ret;
	if (rts_cfg.output) {
		ret = open_named(rts_cfg.output);
		if (!ret)
			return 0;
		rts_warn("%s_STATS_OUTPUT=%.128s cannot be written: %s; using standard error",
			 rts_cfg.prefix, rts_cfg.output, strerror(-ret));
	}
	fd = duplicate(STDERR_FILENO);
	adopt(fd, fd != STDERR_FILENO);
	return 0;
}

void rts_output_forked(void)
{
	struct shared *parents = shared;

	if (out.dir_fd < 0)
		return;
	/* A file of its own needs a lock of its own; without memory for it the parent's will do. */
	if (!make_shared())
		munmap(parents, sizeof(*parents));
	else
		shared = parents;
	if (out.fd >= 0)
		close(out.fd);
	out.fd = -1;
}

static void use_stderr(void)
{
	out.fd = duplicate(STDERR_FILENO);
	out.owned = false;
	out.whole = false;
}

static bool still_ours(void)
{
	struct stat st;

	return !fstat(out.fd, &st) && st.st_dev == out.dev && st.st_ino == out.ino;
}

static int write_line(const char *text, size_t len)
{
	int cut = atomic_exchange(&shared->cut, 1); /* before: the process may be killed in it */
	struct text line = {.p = text - cut, .n = len + (size_t)cut};
	int ret = write_quiet(out.fd, &line, out.whole, patience());

	if (!ret || !line.done)
		atomic_store(&shared->cut, ret ? cut : 0);
	if (ret == -ETIMEDOUT)
		atomic_store(&shared->stuck, atomic_load(&shared->moves) + 1);
	else
		atomic_fetch_add(&shared->moves, 1);
	return ret;
}

/* Waits on as long as the writers before it get on: 50 of them are no dead reader. */
static int lock_output(void)
{
	unsigned int moves;
	int ret;

	do {
		moves = atomic_load(&shared->moves);
		ret = rts_os_mutex_lock(&shared->lock, patience());
	} while (ret == ETIMEDOUT && moves != atomic_load(&shared->moves));
	return ret;
}

int rts_output_write(const char *text, size_t len)
{
	int ret;

	if (out.fd < 0 && out.dir_fd >= 0) {
		ret = open_in_folder();
		if (ret)
			return ret;
	}
	if (out.fd >= 0 && !still_ours() && out.owned && !rts_cfg.output)
		use_stderr(); /* the program closed what it did not know */
	if (out.fd < 0 || !still_ours())
		return -EBADF;
	ret = lock_output();
	if (ret == ETIMEDOUT)
		return -ETIMEDOUT;
	if (ret == EOWNERDEAD)
		atomic_store(&shared->cut, 1); /* it may have died in its line */
	ret = write_line(text, len);
	pthread_mutex_unlock(&shared->lock);
	return ret;
}
