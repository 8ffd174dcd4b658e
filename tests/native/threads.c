// SPDX-License-Identifier: GPL-2.0
/*
 * What tests/native/t_serve.sh runs against statpage serve. Prints `name value...` lines, from the reader
 * and from the kernel's own sources; the shell compares.
 */
#include <fcntl.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/coarse_stat_fs.h"
#include "include/uapi/threads_bpf.h"

#define MS	     1000000L
#define UID_NOBODY   65534
#define PINNED_SLOTS "/sys/fs/bpf/statpage/threads-" THREADS_VERSION "/slots"

static void die(const char *what)
{
	fprintf(stderr, "threads: %s: %m\n", what);
	exit(1);
}

static void snap(struct csf_snap *s)
{
	if (csf_thread_snap(s))
		die("csf_thread_snap");
}

static void nap(long ns)
{
	struct timespec ts = {ns / 1000000000, ns % 1000000000};

	while (nanosleep(&ts, &ts))
		;
}

static long clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

static void spin(long ns)
{
	long end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

/* The second word: how long the thread has waited for a CPU. */
static unsigned long long run_delay(void)
{
	unsigned long long cpu, delay = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "re");

	if (!f || fscanf(f, "%llu %llu", &cpu, &delay) != 2)
		die("schedstat");
	fclose(f);
	return delay;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *spinner(void *stop)
{
	pin(0);
	while (!*(volatile int *)stop)
		;
	return NULL;
}

/* The page and the kernel's own numbers, at one moment: none in which the thread was switched away from. */
struct moment {
	struct csf_snap snap;
	unsigned long long delay;
	long cpu, wall;
};

static void look(struct moment *m)
{
	do {
		m->delay = run_delay();
		m->cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		m->wall = clock_ns(CLOCK_MONOTONIC);
		snap(&m->snap);
	} while (run_delay() != m->delay);
}

static void print_diff(const struct csf_snap *a, const struct csf_snap *b)
{
	struct csf_diff d;

	if (csf_diff(&d, a, b))
		die("csf_diff");
	printf("wall_ns %llu\ncpu_ns %llu\nrunq_ns %llu\nsleep_ns %llu\ndsleep_ns %llu\niowait_ns %llu\n",
	       (unsigned long long)d.wall_ns, (unsigned long long)d.ns[CSF_ONCPU],
	       (unsigned long long)d.ns[CSF_RUNQ], (unsigned long long)d.ns[CSF_SLEEP],
	       (unsigned long long)d.ns[CSF_DSLEEP], (unsigned long long)d.ns[CSF_IOWAIT]);
	printf("block %llu\npreempt %llu\n", b->p.nr_block - a->p.nr_block,
	       b->p.nr_preempt - a->p.nr_preempt);
}

/* Sleeps, spins among others on one CPU, and a vfork: the buckets, and what the kernel says. */
static void work(void)
{
	struct moment a, b;
	int stop = 0;
	pthread_t t[2];
	pid_t pid;

	pin(0);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, spinner, &stop);
	nap(20 * MS);
	look(&a);
	for (int i = 0; i < 10; i++) {
		spin(10 * MS);
		nap(10 * MS);
	}
	pid = vfork();
	if (!pid) {
		nap(50 * MS);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	look(&b);
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	print_diff(&a.snap, &b.snap);
	printf("kernel_wall_ns %ld\nkernel_cpu_ns %ld\nkernel_runq_ns %llu\n", b.wall - a.wall,
	       b.cpu - a.cpu, b.delay - a.delay);
	printf("clock %u\ntid %u\nown_tid %ld\n", b.snap.p.hdr.clock, b.snap.p.tid, (long)gettid());
}

static void *one_thread(void *tids)
{
	struct csf_snap s;

	if (csf_thread_snap(&s))
		return (void *)(long)errno;
	if (s.p.tid != (unsigned int)gettid())
		return (void *)-1L;
	if (tids)
		nap(200 * MS);
	return NULL;
}

/* n threads, one after the other or all at once: how many got their own page. */
static void many(int n, bool at_once)
{
	pthread_t *t = calloc((size_t)n, sizeof(*t));
	int good = 0, err = 0;
	void *ret;

	for (int i = 0; i < n; i++) {
		if (pthread_create(&t[i], NULL, one_thread, at_once ? t : NULL))
			die("pthread_create");
		if (!at_once) {
			pthread_join(t[i], &ret);
			good += !ret;
			err = ret ? (int)(long)ret : err;
		}
	}
	for (int i = 0; at_once && i < n; i++) {
		pthread_join(t[i], &ret);
		good += !ret;
		err = ret ? (int)(long)ret : err;
	}
	printf("good %d\nerrno %d\n", good, err);
	free(t);
}

/* A child made by fork has a page of its own. */
static void forked(void)
{
	struct csf_snap s;
	pid_t pid;

	snap(&s);
	pid = fork();
	if (!pid) {
		snap(&s);
		printf("child %d\n", s.p.tid == (unsigned int)getpid());
		exit(0);
	}
	waitpid(pid, NULL, 0);
	snap(&s);
	printf("parent %d\n", s.p.tid == (unsigned int)getpid());
}

/* What the server says to a request for a thread, of this process or as a viewer: an errno, or 0. */
static int ask(unsigned int pid, unsigned int tid)
{
	struct csf_serve_request r = {CSF_MAGIC, CSF_ABI_VERSION, CSF_KIND_THREAD, tid, pid};
	struct csf_serve_reply reply;
	long sock = csf_connect_();

	if (sock < 0 || write((int)sock, &r, sizeof(r)) != sizeof(r) ||
	    read((int)sock, &reply, sizeof(reply)) != sizeof(reply))
		die("ask");
	close((int)sock);
	return (int)reply.error;
}

/* A descriptor for the caller's own page. */
static int own_page(void)
{
	long sock = csf_connect_(), fd = sock < 0 ? sock : csf_ask_(sock);

	if (fd < 0) {
		errno = (int)-fd;
		die("no page");
	}
	close((int)sock);
	return (int)fd;
}

static void protect(void)
{
	int fd = own_page();
	void *page;

	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	printf("writable %s\n", page == MAP_FAILED ? strerrorname_np(errno) : "yes");
	page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		die("mmap");
	printf("mprotect %s\n",
	       mprotect(page, 4096, PROT_READ | PROT_WRITE) ? strerrorname_np(errno) : "yes");
}

/* One message with room for a descriptor. */
struct parcel {
	struct msghdr msg;
	struct iovec iov;
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	char c;
};

static struct msghdr *parcel(struct parcel *p)
{
	*p = (struct parcel){.c = 'x'};
	p->iov = (struct iovec){&p->c, 1};
	p->msg = (struct msghdr){.msg_iov = &p->iov,
				 .msg_iovlen = 1,
				 .msg_control = &p->control,
				 .msg_controllen = sizeof(p->control)};
	return &p->msg;
}

static void give_fd(int sock, int fd)
{
	struct parcel p;

	parcel(&p);
	p.control.head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(&p.control.head), &fd, sizeof(fd));
	if (sendmsg(sock, &p.msg, 0) != 1)
		die("sendmsg");
}

static int take_fd(int sock)
{
	struct parcel p;
	int fd;

	if (recvmsg(sock, parcel(&p), 0) != 1)
		die("recvmsg");
	memcpy(&fd, CMSG_DATA(&p.control.head), sizeof(fd));
	return fd;
}

static bool is_reported(const void *page, unsigned int flag)
{
	struct csf_snap s;

	for (int i = 0; i < 1000; i++) {
		if (!csf_page_snap(page, 4096, &s) && s.p.hdr.flags & flag)
			return true;
		nap(10 * MS);
	}
	return false;
}

/* This process has mapped the page of another's thread, which executes another program, or exits. */
static void ends(const char *how)
{
	bool exec = !strcmp(how, "exec");
	struct csf_snap s;
	int pair[2];
	void *page;
	pid_t pid;
	char c;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		die("socketpair");
	pid = fork();
	if (!pid) {
		give_fd(pair[1], own_page());
		if (read(pair[1], &c, 1) == 1 && exec)
			execl("/bin/sleep", "sleep", "100", NULL);
		_exit(0);
	}
	page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, take_fd(pair[0]), 0);
	for (int i = 0; i < 1000 && (csf_page_snap(page, 4096, &s) || !s.p.tid); i++)
		nap(MS);
	printf("before %u\ntid %d\n", s.p.hdr.flags & ~CSF_F_TSC_AUX, s.p.tid == (unsigned int)pid);
	if (write(pair[0], "x", 1) != 1)
		die("write");
	printf("after %d\n", is_reported(page, exec ? CSF_F_PARKED : CSF_F_DEAD));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void *signal_main(void *main_tid)
{
	nap(MS);
	syscall(SYS_tgkill, getpid(), *(pid_t *)main_tid, SIGUSR1);
	return NULL;
}

static void no_op(int sig)
{
	(void)sig;
}

/* Snapshots among many switches, each of which must be the thread's, on its CPU. */
static void steady(int rounds)
{
	pid_t tid = gettid();
	struct csf_snap s;
	int good = 0;
	pthread_t t;

	signal(SIGUSR1, no_op);
	for (int i = 0; i < rounds; i++) {
		pthread_create(&t, NULL, signal_main, &tid);
		for (int j = 0; j < 20; j++) {
			good += !csf_thread_snap(&s);
			usleep(100);
		}
		pthread_join(t, NULL);
	}
	printf("good %d\n", good);
}

/* A snapshot, at once or only then, at each line of standard input: the server comes and goes meanwhile. */
static void follow(bool late)
{
	struct csf_snap s;
	char line[10];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (late && !fgets(line, sizeof(line), stdin))
		return;
	do {
		if (csf_thread_snap(&s))
			printf("%s\n", strerrorname_np(errno));
		else
			printf("start %llu block %llu\n", (unsigned long long)s.p.start_tsc,
			       (unsigned long long)s.p.nr_block);
	} while (fgets(line, sizeof(line), stdin));
}

/* How many places of the server's are in each state, from the map that it has pinned. */
static void slots(void)
{
	static const char *const name[] = {"empty",  "fresh",	"taken", "ended",
					   "viewed", "leaving", "left"};
	unsigned int nr[sizeof(name) / sizeof(name[0])] = {0};
	union bpf_attr attr = {.pathname = (uintptr_t)PINNED_SLOTS};
	int fd = (int)syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof(attr));
	const uint64_t *slot;

	if (fd < 0)
		die(PINNED_SLOTS);
	slot = mmap(NULL, THREADS_MAX * sizeof(*slot), PROT_READ, MAP_SHARED, fd, 0);
	if (slot == MAP_FAILED)
		die("mmap");
	for (int i = 0; i < THREADS_MAX; i++)
		nr[slot[i]]++;
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		printf("%s %u\n", name[i], nr[i]);
}

/* ---- threads that fill one bucket each, for a viewer ---- */

static _Atomic int begun;

static void begin(const char *name)
{
	prctl(PR_SET_NAME, name);
	begun++;
}

static void *rival(void *unused)
{
	pin(0);
	begin("rival");
	for (;;)
		;
	return unused;
}

/* A pair of switches each 5 ms. */
static void *napper(void *unused)
{
	begin("napper");
	for (;;)
		nap(5 * MS);
	return unused;
}

static void *sleeper(void *unused)
{
	begin("sleeper");
	for (;;)
		pause();
	return unused;
}

/* Waits for a child of vfork(), which is uninterruptible. */
static void *waiter(void *unused)
{
	begin("waiter");
	for (;;) {
		if (!vfork()) {
			nap(100 * MS);
			_exit(0);
		}
	}
	return unused;
}

/* Has a page of its own. */
static void *owner(void *unused)
{
	struct csf_snap s;

	snap(&s);
	begin("owner");
	for (;;)
		nap(20 * MS);
	return unused;
}

static void buckets(void)
{
	void *(*const body[])(void *) = {rival, rival, napper, sleeper, waiter, owner};
	const int nr = sizeof(body) / sizeof(body[0]);
	pthread_t t;

	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < nr; i++)
		if (pthread_create(&t, NULL, body[i], NULL))
			die("pthread_create");
	while (begun < nr)
		nap(MS);
	printf("ready\n");
	fflush(stdout);
	for (;;)
		pause();
}

static void *short_life(void *unused)
{
	nap(MS);
	return unused;
}

/* Threads that come and go, for as long as it lives. */
static void churn(void)
{
	pthread_t t[20];

	for (;;) {
		for (int i = 0; i < 20; i++)
			if (pthread_create(&t[i], NULL, short_life, NULL))
				die("pthread_create");
		for (int i = 0; i < 20; i++)
			pthread_join(t[i], NULL);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	if (!strcmp(what, "work"))
		work();
	else if (!strcmp(what, "many"))
		many(n, false);
	else if (!strcmp(what, "at_once"))
		many(n, true);
	else if (!strcmp(what, "steady"))
		steady(n);
	else if (!strcmp(what, "forked"))
		forked();
	else if (!strcmp(what, "ask"))
		printf("%d\n", ask(0, (unsigned int)n));
	else if (!strcmp(what, "view")) {
		if (argc > 4 && setresuid(UID_NOBODY, UID_NOBODY, UID_NOBODY))
			die("setresuid");
		printf("%d\n", ask((unsigned int)n, (unsigned int)atoi(argv[3])));
	} else if (!strcmp(what, "slots"))
		slots();
	else if (!strcmp(what, "buckets"))
		buckets();
	else if (!strcmp(what, "churn"))
		churn();
	else if (!strcmp(what, "protect"))
		protect();
	else if (!strcmp(what, "exec") || !strcmp(what, "exit"))
		ends(what);
	else if (!strcmp(what, "follow"))
		follow(argc > 2);
	else
		return 2;
	return 0;
}
