// SPDX-License-Identifier: GPL-2.0
/* statpage serve: hand out the pages of threads where no module can be loaded. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/procs.h"
#include "lib/serve_bpf.h"
#include "tools/cmd.h"
#include "uapi/coarse_stat_fs.h"
#include "uapi/threads_bpf.h"

static const char usage[] =
	"serve [--socket PATH] [--max N] [--end]\n"
	"\n"
	"Give threads that ask for it a page with their wall time, as coarse_stat_fs does, where no module can\n"
	"be loaded: by a BPF program. Readers (lib/coarse_stat_fs.h, statpage self) find it by themselves when\n"
	"the filesystem is not mounted. Runs until SIGINT or SIGTERM, which ends every page; killed otherwise,\n"
	"the pages go on, and the next server takes them over.\n"
	"\n"
	"A process gets the pages of its own threads. top, record and export of root get those of any thread, as\n"
	"long as they run.\n"
	"\n"
	"  --socket PATH   where to listen; default " CSF_SERVE_SOCKET "\n"
	"  --max N         threads at once, half of them for viewers; default 4096, at most 16384\n"
	"  --end           end what a server that was killed has left, and serve nobody\n";

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define MAX_CLIENTS 64
#define PATIENCE_NS 1000000000u /* for a client that says nothing */

struct client {
	pid_t pid;
	uid_t uid;
	int viewer; /* its number for serve_view(); -1: it is none */
	int pidfd;  /* -1: this kernel has none */
	uint64_t start_ticks;
	uint64_t since_ns;
};

static struct pollfd fds[2 + MAX_CLIENTS]; /* signals, the listener, clients */
static struct client clients[MAX_CLIENTS];
static int nr_clients;

/* What the address of a socket can hold. */
static int address(const char *path, struct sockaddr_un *sun)
{
	*sun = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(sun->sun_path))
		return cmd_usage("--socket %s: longer than %zu bytes", path,
				 sizeof(sun->sun_path) - 1);
	strcpy(sun->sun_path, path);
	return 0;
}

/* A socket there is a server's that was killed, or it would have our lock; anything else is somebody's. */
static int check_place(const char *path)
{
	struct stat st;

	if (!lstat(path, &st) && !S_ISSOCK(st.st_mode))
		return cmd_err("%s: is there and no socket", path);
	return 0;
}

/*
 * One server at a time, on whatever socket, as all share the pinned pages: a lock that goes with its process.
 * -1 after a message.
 */
static int take_lock(void)
{
	static const char name[] = CSF_SERVE_SOCKET ".lock";
	char dir[] = CSF_SERVE_SOCKET;
	int fd;

	*strrchr(dir, '/') = '\0';
	mkdir(dir, 0755);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0) {
		cmd_err("%s: %s", name, strerror(errno));
	} else if (flock(fd, LOCK_EX | LOCK_NB)) {
		cmd_err("a server runs already: it has %s", name);
		close(fd);
		fd = -1;
	}
	return fd;
}

static int listen_on(const struct sockaddr_un *sun)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	unlink(sun->sun_path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)sun, sizeof(*sun)) ||
	    chmod(sun->sun_path, 0666) || listen(fd, 128)) {
		cmd_err("%s: %s", sun->sun_path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

/* Who is at the other end; false: it is gone, or not of our pid namespace. */
static bool meet(int fd, struct client *c)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) || cred.pid <= 0)
		return false;
	*c = (struct client){.pid = cred.pid, .uid = cred.uid, .viewer = -1, .since_ns = now_ns()};
	len = sizeof(c->pidfd);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &c->pidfd, &len))
		c->pidfd = -1;
	return procfs_start_ticks(c->pid, &c->start_ticks);
}

/* The number may have been used again since; it has not while its process lives. */
static bool lives(const struct client *c)
{
	struct pollfd pfd = {.fd = c->pidfd, .events = POLLIN};

	return c->pidfd < 0 || poll(&pfd, 1, 0) == 0;
}

static void drop(int i)
{
	close(fds[2 + i].fd);
	if (clients[i].viewer >= 0)
		serve_unview((unsigned int)clients[i].viewer);
	if (clients[i].pidfd >= 0)
		close(clients[i].pidfd);
	nr_clients--;
	clients[i] = clients[nr_clients];
	fds[2 + i] = fds[2 + nr_clients];
}

static void welcome(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client c = {.pidfd = -1};

	if (fd < 0)
		return;
	if (!meet(fd, &c)) {
		if (c.pidfd >= 0)
			close(c.pidfd);
		close(fd);
		return;
	}
	clients[nr_clients] = c;
	fds[2 + nr_clients] = (struct pollfd){.fd = fd, .events = POLLIN};
	nr_clients++;
}

static void send_reply(int fd, int error, int page)
{
	struct csf_serve_reply reply = {.magic = CSF_MAGIC, .error = (uint32_t)error};
	struct iovec iov = {&reply, sizeof(reply)};
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (page >= 0) {
		msg.msg_control = control.space;
		msg.msg_controllen = sizeof(control.space);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &page, sizeof(page));
	}
	/* A client that does not take one small answer gets none. */
	(void)!sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A namespace of theirs is ours, too. */
static bool shares(pid_t pid, const char *name)
{
	struct stat theirs, ours;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
	if (stat(path, &theirs))
		return false;
	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	return !stat(path, &ours) && theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

/*
 * Whether it may see threads of all processes: who may trace every process may, too. It was root when it
 * connected, so that no ordinary program can ask and then execute a set-user-ID one; and it has the capability
 * now, which root of a container lacks. The numbers that it asks by have to be ours.
 */
static bool may_view(const struct client *c)
{
	struct proc_status st;

	return !c->uid && shares(c->pid, "user") && shares(c->pid, "pid") &&
	       !procfs_status(c->pid, &st) && st.cap_eff & 1ull << CAP_SYS_PTRACE && lives(c);
}

/* 0 or -errno. */
static int make_viewer(struct client *c)
{
	uint32_t taken = 0;

	if (c->viewer >= 0)
		return 0;
	if (!may_view(c))
		return -EPERM;
	for (int i = 0; i < nr_clients; i++)
		if (clients[i].viewer >= 0)
			taken |= 1u << clients[i].viewer;
	while (++c->viewer < SERVE_VIEWERS)
		if (!(taken & 1u << c->viewer))
			return 0;
	c->viewer = -1;
	return -EUSERS;
}

/* The descriptor of the page, or -errno. */
static int page_for(struct client *c, const struct csf_serve_request *r)
{
	int ret;

	if (!r->pid)
		return lives(c) ? serve_register(c->pid, c->start_ticks, r->tid) : -ESRCH;
	ret = make_viewer(c);
	return ret ? ret : serve_view((unsigned int)c->viewer, (pid_t)r->pid, (pid_t)r->tid);
}

/* False: the client is done with, or not worth waiting for. */
static bool answer(int i)
{
	struct csf_serve_request r = {0};
	ssize_t n = recv(fds[2 + i].fd, &r, sizeof(r), MSG_DONTWAIT | MSG_TRUNC);
	int page;

	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	if (n != sizeof(r) || r.magic != CSF_MAGIC || r.abi != CSF_ABI_VERSION ||
	    r.kind != CSF_KIND_THREAD) {
		send_reply(fds[2 + i].fd, EPROTO, -1);
		return false;
	}
	page = page_for(&clients[i], &r);
	send_reply(fds[2 + i].fd, page < 0 ? -page : 0, page);
	if (page >= 0)
		close(page);
	clients[i].since_ns = now_ns();
	return true;
}

/* A viewer may stay as long as it likes. */
static bool is_late(const struct client *c)
{
	return c->viewer < 0 && now_ns() - c->since_ns > PATIENCE_NS;
}

static void serve(int signals, int listener)
{
	fds[0] = (struct pollfd){.fd = signals, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = listener, .events = POLLIN};
	for (;;) {
		serve_upkeep();
		/* Who does not fit waits in the listener's queue. */
		fds[1].events = nr_clients < MAX_CLIENTS ? POLLIN : 0;
		if (poll(fds, 2 + (nfds_t)nr_clients, 250) < 0 && errno != EINTR)
			return;
		if (fds[0].revents)
			return;
		for (int i = nr_clients - 1; i >= 0; i--)
			if (fds[2 + i].revents ? !answer(i) : is_late(&clients[i]))
				drop(i);
		if (fds[1].revents & POLLIN && nr_clients < MAX_CLIENTS)
			welcome(listener);
	}
}

static int run(const char *path, unsigned int max, bool end)
{
	struct sockaddr_un sun;
	struct serve_why why;
	sigset_t set;
	int lock, signals, listener, ret = address(path, &sun);

	if (!ret)
		ret = check_place(path);
	if (ret)
		return ret;
	lock = take_lock();
	if (lock < 0)
		return CMD_FAILED;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (serve_open(max, &why)) {
		close(lock);
		return cmd_err("thread pages cannot be served: %s", why.text);
	}
	listener = end ? -1 : listen_on(&sun);
	if (listener >= 0) {
		printf("serving thread pages on %s\n", path);
		if (!cmd_flush())
			serve(signals, listener);
		close(listener);
	}
	serve_end();
	unlink(path);
	close(signals);
	close(lock);
	return listener < 0 && !end ? CMD_FAILED : 0;
}

int cmd_serve(int argc, char **argv)
{
	static const struct option options[] = {
		{"socket", required_argument, NULL, 's'},
		{"max", required_argument, NULL, 'm'},
		{"end", no_argument, NULL, 'e'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *path = CSF_SERVE_SOCKET;
	double max = 4096;
	bool end = false;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 's':
			path = optarg;
			break;
		case 'm':
			if (cmd_number("--max", optarg, 1, THREADS_MAX, &max))
				return CMD_USAGE;
			break;
		case 'e':
			end = true;
			break;
		case 'h':
			cmd_help(usage);
			return 0;
		default:
			return CMD_USAGE;
		}
	}
	if (optind != argc)
		return cmd_usage("serve takes no argument '%s'", argv[optind]);
	return run(path, (unsigned int)max, end);
}
