/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/csf_view.h"

#define PATIENCE_S 2
#define PAUSE_NS   10000000000u /* after a server that does not answer, or has too many viewers */

struct viewed {
	pid_t pid, tid;
	const void *page;
	struct csf_view_base base;
};

struct viewed_list {
	struct viewed *v;
	size_t nr, cap;
};

struct csf_view {
	struct viewed_list was, now; /* of the look before, in the order of tid, and of this one */
	uint64_t began_ns;	     /* this look */
	bool full;		     /* no page was left in this look */
};

/* One for all views of the process, as the server has few places. What it was asked for goes with it. */
static struct {
	unsigned int views;
	long sock; /* -1: none */
	bool refused;
	uint64_t pause_until_ns;
} server = {.sock = -1};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void hang_up(void)
{
	if (server.sock >= 0)
		close((int)server.sock);
	server.sock = -1;
}

static bool is_connected(void)
{
	const struct timeval limit = {PATIENCE_S, 0};

	if (server.sock >= 0)
		return true;
	if (server.refused || now_ns() < server.pause_until_ns)
		return false;
	server.sock = csf_connect_();
	if (server.sock < 0)
		return false;
	setsockopt((int)server.sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return true;
}

/* A descriptor, or -errno. Once, as a server that ended may have been followed by another. */
static long ask(pid_t pid, pid_t tid)
{
	bool was_connected = server.sock >= 0;
	long fd;

	if (!is_connected())
		return -ENOENT;
	fd = csf_ask_for_(server.sock, (uint32_t)pid, (uint32_t)tid);
	switch (-fd) {
	case EPERM:
		server.refused = true;
		hang_up();
		break;
	case EUSERS:
	case ETIMEDOUT:
		server.pause_until_ns = now_ns() + PAUSE_NS;
		hang_up();
		break;
	case EPROTO:
	case EPIPE:
	case ECONNRESET:
		hang_up();
		if (was_connected)
			return ask(pid, tid);
		break;
	default:
		break;
	}
	return fd;
}

struct csf_view *csf_view_new(void)
{
	struct csf_view *v = calloc(1, sizeof(*v));

	if (v)
		server.views++;
	return v;
}

static void forget(struct viewed_list *l)
{
	for (size_t i = 0; i < l->nr; i++)
		if (l->v[i].page)
			munmap((void *)l->v[i].page, CSF_SERVE_BYTES);
	l->nr = 0;
}

void csf_view_free(struct csf_view *v)
{
	if (!v)
		return;
	forget(&v->was);
	forget(&v->now);
	free(v->was.v);
	free(v->now.v);
	free(v);
	if (!--server.views)
		hang_up();
}

bool csf_view_may(const struct csf_view *v)
{
	return v && !server.refused && (v->was.nr || is_connected());
}

void csf_view_begin(struct csf_view *v)
{
	v->began_ns = now_ns();
	v->full = false;
}

static int by_tid(const void *a, const void *b)
{
	const struct viewed *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

void csf_view_end(struct csf_view *v)
{
	struct viewed_list was = v->was;

	forget(&was);
	v->was = v->now;
	v->now = was;
	if (v->was.nr)
		qsort(v->was.v, v->was.nr, sizeof(v->was.v[0]), by_tid);
}

/* The page that the thread had in the look before, and moves on from there; NULL: none. */
static struct viewed *find(struct csf_view *v, pid_t pid, pid_t tid)
{
	const struct viewed key = {.tid = tid};
	struct viewed *e = v->was.nr ? bsearch(&key, v->was.v, v->was.nr, sizeof(key), by_tid) :
				       NULL;

	return e && e->page && e->pid == pid ? e : NULL;
}

static struct viewed *add(struct viewed_list *l)
{
	size_t cap = l->cap ? 2 * l->cap : 64;
	struct viewed *v = l->v;

	if (l->nr == l->cap) {
		v = reallocarray(l->v, cap, sizeof(*v));
		if (!v)
			return NULL;
		l->v = v;
		l->cap = cap;
	}
	return &l->v[l->nr++];
}

/* A page of the server's. NULL with errno. */
static const void *map(struct csf_view *v, pid_t pid, pid_t tid)
{
	long fd;

	if (v->full) {
		errno = ENOSPC;
		return NULL;
	}
	fd = ask(pid, tid);
	v->full = fd == -ENOSPC;
	if (fd < 0) {
		errno = (int)-fd;
		return NULL;
	}
	return csf_map_fd_(fd, CSF_KIND_THREAD, CSF_THREAD_MIN_, CSF_SERVE_BYTES);
}

/* Its snapshot; a page that has ended, by an exec or with the server, is given up. */
static int snap(struct viewed *e, struct csf_snap *s)
{
	if (csf_page_snap(e->page, CSF_SERVE_BYTES, s))
		return -1;
	if (!(s->p.hdr.flags & (CSF_F_DEAD | CSF_F_PARKED)))
		return s->p.start_tsc ? 0 : csf_fail_(EBUSY); /* registered, not switched to yet */
	munmap((void *)e->page, CSF_SERVE_BYTES);
	e->page = NULL;
	return csf_fail_(ESRCH);
}

int csf_view_snap(struct csf_view *v, pid_t pid, pid_t tid, struct csf_snap *s,
		  struct csf_view_base *base)
{
	struct viewed *old = find(v, pid, tid), *e = add(&v->now);
	bool is_new = !old;
	int ret;

	if (!e)
		return csf_fail_(ENOMEM);
	if (old) {
		*e = *old;
		old->page = NULL;
	} else {
		*e = (struct viewed){.pid = pid, .tid = tid, .page = map(v, pid, tid)};
	}
	if (!e->page) {
		v->now.nr--;
		return -1;
	}
	ret = snap(e, s);
	if (!ret && is_new && s->p.start_tsc >= v->began_ns) {
		e->base = (struct csf_view_base){true, s->p.min_flt, s->p.maj_flt};
		ret = csf_fail_(EAGAIN);
	}
	*base = e->base;
	if (!e->page)
		v->now.nr--;
	return ret;
}
