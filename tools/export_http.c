// SPDX-License-Identifier: GPL-2.0
/*
 * Serving metrics by HTTP, with libmicrohttpd. One thread, which never waits for a client: an answer is
 * made whole, and sent as fast as the client takes it. Who is slow has until LIFETIME_S, and who comes
 * beyond MOST_CLIENTS waits in the kernel's queue until one of them is gone.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/cmd.h"
#include "tools/export.h"
#include "tools/pace.h"

#define MOST_CLIENTS 16
#define IDLE_S	     10 /* without a byte to or from a client */
#define LIFETIME_S   30 /* of a connection; Prometheus gives up after 10 s */
#define BACKLOG	     64
#define SEND_BYTES   (128 << 10) /* in the kernel, for a client; else it may be all of an answer */

struct client {
	int fd; /* -1: free */
	time_t since;
};

struct server {
	const struct export_opts *opts;
	struct client client[MOST_CLIENTS];
};

static time_t now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* ---- answers ---- */

static enum MHD_Result answer(struct MHD_Connection *c, unsigned int status, const char *type,
			      char *text, size_t len, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(len, text, mode);
	enum MHD_Result ret;

	if (!r) {
		if (mode == MHD_RESPMEM_MUST_FREE)
			free(text);
		return MHD_NO;
	}
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	/* A scrape is one request; a connection that stays would take a place and live past its time. */
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	ret = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return ret;
}

static enum MHD_Result say(struct MHD_Connection *c, unsigned int status, const char *text)
{
	return answer(c, status, "text/plain; charset=utf-8", (char *)text, strlen(text),
		      MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result metrics(struct MHD_Connection *c, const struct export_opts *o)
{
	const char *accept =
		MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	bool om = accept && strstr(accept, "application/openmetrics-text");
	size_t len;
	char *text = export_text(o, om ? OM_OPENMETRICS : OM_PROMETHEUS, &len);

	if (!text)
		return say(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
	return answer(c, MHD_HTTP_OK,
		      om ? "application/openmetrics-text; version=1.0.0; charset=utf-8" :
			   "text/plain; version=0.0.4; charset=utf-8",
		      text, len, MHD_RESPMEM_MUST_FREE);
}

static enum MHD_Result request(void *data, struct MHD_Connection *c, const char *url,
			       const char *method, const char *version, const char *upload,
			       size_t *upload_len, void **state)
{
	struct server *s = data;

	(void)version;
	(void)upload;
	(void)upload_len;
	(void)state;
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return say(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	if (!strcmp(url, "/metrics"))
		return metrics(c, s->opts);
	if (!strcmp(url, "/"))
		return say(c, MHD_HTTP_OK, "statpage " STATPAGE_VERSION ": see /metrics\n");
	return say(c, MHD_HTTP_NOT_FOUND, "only / and /metrics\n");
}

/* ---- clients ---- */

static void note_client(void *data, struct MHD_Connection *c, void **state,
			enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct server *s = data;
	int fd = what == MHD_CONNECTION_NOTIFY_STARTED ? -1 : info->connect_fd, i;

	(void)state;
	for (i = 0; i < MOST_CLIENTS && s->client[i].fd != fd; i++)
		;
	if (i == MOST_CLIENTS)
		return;
	s->client[i].fd = fd < 0 ? info->connect_fd : -1;
	s->client[i].since = now_s();
}

/* Returns whether there are any clients. */
static bool end_old_clients(struct server *s)
{
	bool any = false;

	for (int i = 0; i < MOST_CLIENTS; i++) {
		if (s->client[i].fd < 0)
			continue;
		any = true;
		if (now_s() - s->client[i].since >= LIFETIME_S)
			shutdown(s->client[i].fd, SHUT_RDWR);
	}
	return any;
}

/* ---- the address ---- */

/* "[::1]:80", "127.0.0.1:80", ":80" and "80" in two; default: the loopback address. */
static int split(const char *where, char *addr, size_t size, const char **port)
{
	const char *colon = strrchr(where, ':'), *from = where;
	size_t len = colon ? (size_t)(colon - where) : 0;

	*port = colon ? colon + 1 : where;
	if (len > 1 && *where == '[' && colon[-1] == ']') {
		from++;
		len -= 2;
	} else if (memchr(where, ':', len)) {
		return -1;
	}
	if (!len) {
		from = "127.0.0.1";
		len = strlen(from);
	}
	if (len >= size)
		return -1;
	memcpy(addr, from, len);
	addr[len] = '\0';
	return 0;
}

static struct addrinfo *parse(const char *where)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
				       .ai_socktype = SOCK_STREAM};
	struct addrinfo *ai;
	const char *port;
	char addr[64], *end;
	unsigned long nr;

	if (split(where, addr, sizeof(addr), &port))
		return NULL;
	nr = strtoul(port, &end, 10);
	if (*port < '0' || *port > '9' || *end || nr > USHRT_MAX)
		return NULL;
	return getaddrinfo(addr, port, &hints, &ai) ? NULL : ai;
}

static int listen_at(const char *where, const struct addrinfo *ai)
{
	int fd, one = 1, bytes = SEND_BYTES;

	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) &&
	    !bind(fd, ai->ai_addr, ai->ai_addrlen) && !listen(fd, BACKLOG))
		return fd;
	if (errno == EADDRINUSE)
		cmd_err("--listen %s: the port is taken", where);
	else if (errno == EADDRNOTAVAIL)
		cmd_err("--listen %s: not an address of this machine", where);
	else
		cmd_err("--listen %s: %s", where, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Where it listens, which the kernel may have chosen. */
static int print_url(int fd)
{
	struct sockaddr_storage ss = {0};
	socklen_t len = sizeof(ss);
	char addr[64], port[8];

	if (getsockname(fd, (struct sockaddr *)&ss, &len) ||
	    getnameinfo((struct sockaddr *)&ss, len, addr, sizeof(addr), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		return cmd_err("the address of the socket: %s", strerror(errno));
	printf(ss.ss_family == AF_INET6 ? "http://[%s]:%s/metrics\n" : "http://%s:%s/metrics\n",
	       addr, port);
	return cmd_flush();
}

/* ---- the loop ---- */

static int loop(struct server *s, struct MHD_Daemon *d, int signals)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(d, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd fds[2] = {{.fd = info->epoll_fd, .events = POLLIN},
				{.fd = signals, .events = POLLIN}};
	MHD_UNSIGNED_LONG_LONG ms;
	int wait;

	for (;;) {
		wait = end_old_clients(s) ? 1000 : -1;
		if (MHD_get_timeout(d, &ms) == MHD_YES && (wait < 0 || ms < (unsigned int)wait))
			wait = ms < 1000 ? (int)ms : 1000;
		if (poll(fds, 2, wait) < 0 && errno != EINTR)
			return cmd_err("poll: %s", strerror(errno));
		if (fds[1].revents)
			return 0;
		MHD_run(d);
	}
}

static int serve(int fd, int signals, const struct export_opts *o)
{
	struct server s = {.opts = o};
	struct MHD_Daemon *d;
	int ret;

	for (int i = 0; i < MOST_CLIENTS; i++)
		s.client[i].fd = -1;
	d = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, request, &s, MHD_OPTION_LISTEN_SOCKET,
			     fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned int)MOST_CLIENTS,
			     MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)IDLE_S,
			     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)16384,
			     MHD_OPTION_NOTIFY_CONNECTION, note_client, &s, MHD_OPTION_END);
	if (!d) {
		close(fd);
		return cmd_err("libmicrohttpd does not start: %s", strerror(errno));
	}
	ret = print_url(fd);
	if (!ret)
		ret = loop(&s, d, signals);
	MHD_stop_daemon(d); /* closes the socket */
	return ret;
}

int export_serve(const char *where, const struct export_opts *o)
{
	struct addrinfo *ai = parse(where);
	int fd, signals, ret = CMD_FAILED;

	if (!ai)
		return cmd_usage(
			"--listen is [ADDR:]PORT, an IP address ([...] around one of IPv6) and a "
			"number up to 65535, not '%s'",
			where);
	signals = pace_signals(0);
	fd = signals < 0 ? -1 : listen_at(where, ai);
	freeaddrinfo(ai);
	if (fd >= 0 && export_check(o) >= 0)
		ret = serve(fd, signals, o);
	else if (fd >= 0)
		close(fd);
	if (signals >= 0)
		close(signals);
	return ret;
}
