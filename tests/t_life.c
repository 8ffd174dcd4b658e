// SPDX-License-Identifier: GPL-2.0
// This test checks how long a thread's page lives, and what it says in which stage of its life.
#include "t_csf.h"

#include <linux/io_uring.h>
#include <sys/resource.h>

static bool all_zero(const void *from, const void *to)
{
	for (const char *p = from; p < (const char *)to; p++)
		if (*p)
			return false;
	return true;
}

/* CLOCK_MONOTONIC_RAW in ms, and the page's clock at the same time: within a millisecond, if it takes a while. */
static double read_clocks(const struct csf_hdr *h, uint64_t *tsc)
{
	struct timespec a, b;
	double ms;

	do {
		clock_gettime(CLOCK_MONOTONIC_RAW, &a);
		*tsc = csf_now(h);
		clock_gettime(CLOCK_MONOTONIC_RAW, &b);
		ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
	} while (ms > 1);
	return (double)a.tv_sec * 1e3 + (double)a.tv_nsec / 1e6;
}

static void check_header(const struct csf_hdr *h, uint16_t kind, size_t bytes)
{
	uint64_t tsc[2], ns;
	double ms[2], khz;

	CHECK(h->magic == CSF_MAGIC && !memcmp(h, "CSF1", 4), "magic 0x%x", h->magic);
	CHECK(h->abi == CSF_ABI_VERSION, "abi %u", h->abi);
	CHECK(h->kind == kind, "kind %u", h->kind);
	CHECK(h->clock == (t_served() ? CSF_CLOCK_MONOTONIC : CSF_CLOCK_TSC), "clock %u", h->clock);
	CHECK(!(h->flags & ~CSF_F_TSC_AUX), "flags 0x%x", h->flags);
	CHECK(!h->absent, "absent 0x%x", h->absent);
	CHECK(!(h->gen & 1), "gen %u", h->gen);
	CHECK(all_zero(h->reserved, h + 1), "reserved bytes are not zero");
	CHECK(all_zero((const char *)h + h->size, (const char *)h + bytes),
	      "the rest of the page is not zero");

	ns = (uint64_t)((unsigned __int128)h->freq_khz * h->mult >> h->shift);
	CHECK(ns == 1000000 || ns == 999999, "a millisecond of cycles makes %lu ns", ns);
	ms[0] = read_clocks(h, &tsc[0]);
	t_sleep_ns(100000000);
	ms[1] = read_clocks(h, &tsc[1]);
	khz = (double)(tsc[1] - tsc[0]) / (ms[1] - ms[0]);
	CHECK(khz > 0.9 * h->freq_khz && khz < 1.1 * h->freq_khz, "%u kHz, measured %.0f",
	      h->freq_khz, khz);
}

static void test_headers(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len;
	const struct csf_thread *pg = t_map();
	const struct csf_cpu *cpu;
	struct stat st;
	int fd;

	TEST("header of the thread page") {
		check_header(&pg->hdr, CSF_KIND_THREAD, page);
		CHECK(pg->hdr.size == sizeof(*pg), "size %u", pg->hdr.size);
		CHECK(pg->tid == t_tid(), "tid %u", pg->tid);
	}
	t_unmap(pg);
	if (t_served()) /* no cpu page */
		return;
	TEST("header of the cpu page") {
		fd = open(T_CPU, O_RDONLY);
		fstat(fd, &st);
		cpu = t_map_fd(fd);
		close(fd);
		len = ((size_t)st.st_size + page - 1) / page * page;
		check_header(&cpu->hdr, CSF_KIND_CPU, len);
		CHECK(cpu->hdr.size == st.st_size, "size %u, file %ld", cpu->hdr.size, st.st_size);
		CHECK(!cpu->reserved, "reserved is not zero");
		munmap((void *)cpu, len);
	}
}

/* Enough blocks that a new page, whose owner may have been switched too, has fewer. Returns the sum. */
static uint64_t grow_old(const struct csf_thread *pg)
{
	struct csf_thread p;

	T_UNTIL(pg->nr_block >= 20);
	t_copy(&p, pg);
	return t_sum(&p);
}

static bool is_new(const struct csf_thread *pg, uint64_t old_start, uint64_t old_sum)
{
	struct csf_thread p;

	t_copy(&p, pg);
	return p.start_tsc >= old_start + old_sum && p.nr_block < 10 &&
	       t_sum(&p) == p.last_switch_tsc - p.start_tsc;
}

/* The mapping alone keeps the object; without it the next open begins anew. */
static void test_reopen(void)
{
	const struct csf_thread *a, *b;
	uint64_t start = 0, sum = 0;

	TEST("the mapping holds the file") {
		a = t_map();
		start = a->start_tsc;
		t_held(2, 0);
		b = t_map();
		CHECK(b->start_tsc == start, "a second open began anew");
		t_held(3, 0);
		t_unmap(a);
		CHECK(b->start_tsc == start, "the first close began anew");
		sum = grow_old(b);
		t_unmap(b);
		t_held(0, 0);
	}
	TEST("after the last close the page begins anew") {
		a = t_map();
		CHECK(is_new(a, start, sum), "it does not");
		t_unmap(a);
	}
}

static void test_many_opens(void)
{
	enum { NR = 1000 };
	const int nr = t_served() ? 100 : NR; /* the server takes its time to answer */
	struct rlimit lim = {2 * NR, 2 * NR};
	const struct csf_thread *pg = t_map(), *other;
	uint64_t start = pg->start_tsc;
	static int fds[NR];
	int bad = 0;

	TEST("%d opens by one thread share a page", nr) {
		CHECK(!setrlimit(RLIMIT_NOFILE, &lim), "setrlimit: %m");
		for (int i = 0; i < nr; i++) {
			fds[i] = t_open();
			if (!CHECK(fds[i] >= 0, "open %d: %m", i))
				break;
			other = t_map_fd(fds[i]);
			bad += !other || other->start_tsc != start || other->tid != t_tid();
			t_unmap(other);
		}
		CHECK(!bad, "%d differ", bad);
		t_held(nr + 2, 0);
		for (int i = 0; i < nr; i++)
			close(fds[i]);
		t_held(2, 0);
		CHECK(pg->start_tsc == start && !(t_flags(pg) & CSF_F_PARKED),
		      "closing began anew");
		t_unmap(pg);
		t_held(0, 0);
	}
}

static void *close_it(void *fd)
{
	close(*(int *)fd);
	return NULL;
}

/* A thread that opens, lets another close, and opens again. Returns its complaint, or NULL. */
static void *park_and_resume(void *unused)
{
	int fd = open(T_THREAD, O_RDONLY);
	const struct csf_thread *pg = t_map_fd(fd);
	uint64_t start = pg->start_tsc, sum;
	pthread_t other;

	(void)unused;
	sum = grow_old(pg);
	t_unmap(pg);
	pthread_create(&other, NULL, close_it, &fd);
	pthread_join(other, NULL);
	if (!T_UNTIL(t_refs() == t_held0_ + 1))
		return "the closed page was not parked";
	pg = t_map();
	if (t_flags(pg) & (CSF_F_PARKED | CSF_F_DEAD))
		return "the reopened page is parked";
	if (!is_new(pg, start, sum))
		return "the reopened page goes on where it stopped";
	if (!t_lives(pg) || !pg->sleep_cyc)
		return "the reopened page stands still";
	t_unmap(pg);
	if (!T_UNTIL(t_refs() == t_held0_))
		return "the reopened page was not freed";
	/* And leave one parked when the thread ends. */
	fd = open(T_THREAD, O_RDONLY);
	pthread_create(&other, NULL, close_it, &fd);
	pthread_join(other, NULL);
	return NULL;
}

static void test_park(void)
{
	pthread_t owner;
	void *why;

	TEST("closed by another thread: parked, and resumed by the owner") {
		pthread_create(&owner, NULL, park_and_resume, NULL);
		pthread_join(owner, &why);
		CHECK(!why, "%s", (char *)why);
		t_held(0, 0);
	}
}

static int live_and_die(int sock)
{
	while (t_told(sock)) {
		t_sleep_ns(2000000);
		t_tell(sock);
	}
	return 5;
}

static int spin_forever(int sock)
{
	(void)sock;
	t_spin_ns(UINT64_MAX / 4);
	return 0;
}

/* After the owner's death: flagged, whole, and no more changes. */
static void check_dead(const struct csf_thread *pg, uint64_t sum_before)
{
	struct csf_thread a, b;

	CHECK(T_UNTIL(t_flags(pg) & CSF_F_DEAD), "flags 0x%x", t_flags(pg));
	CHECK(!(t_flags(pg) & CSF_F_PARKED), "parked as well");
	t_copy(&a, pg);
	CHECK(t_sum(&a) == a.last_switch_tsc - a.start_tsc, "the buckets do not add up");
	CHECK(t_sum(&a) > sum_before, "the last part of its life is missing");
	CHECK(a.sum_exec_ns > 0, "no final values");
	t_sleep_ns(10000000);
	t_copy(&b, pg);
	CHECK(!memcmp(&a, &b, sizeof(a)), "the page changed after the death");
}

static void test_handed_off(void)
{
	struct t_peer peer = t_peer_start(live_and_die);
	struct csf_thread a, b;
	int st;

	TEST("a descriptor passed to another process shows the owner's page") {
		if (!CHECK(peer.pg, "no page"))
			break;
		CHECK(peer.pg->tid == (uint32_t)peer.pid, "tid %u of %d", peer.pg->tid, peer.pid);
		t_copy(&a, peer.pg);
		t_tell(peer.sock);
		t_told(peer.sock);
		CHECK(T_UNTIL(peer.pg->nr_block > a.nr_block), "it stands still");
		t_copy(&b, peer.pg);
		CHECK(b.sleep_cyc > a.sleep_cyc, "its sleep is missing");
		CHECK(t_sum(&b) == b.last_switch_tsc - b.start_tsc, "the buckets do not add up");
		t_held(2, 1);
	}
	TEST("the owner's death leaves the page with its last values") {
		t_copy(&a, peer.pg);
		shutdown(peer.sock, SHUT_RDWR);
		check_dead(peer.pg, t_sum(&a));
		t_held(2, 0);
		st = t_peer_end(&peer);
		CHECK(st == 5, "the owner ended with %d", st);
		t_held(0, 0);
	}
	TEST("the owner is killed while it runs") {
		peer = t_peer_start(spin_forever);
		t_sleep_ns(5000000);
		kill(peer.pid, SIGKILL);
		check_dead(peer.pg, 0);
		st = t_peer_end(&peer);
		CHECK(st == 128 + SIGKILL, "the owner ended with %d", st);
		t_held(0, 0);
	}
	TEST("the owner is killed while it is stopped") {
		peer = t_peer_start(live_and_die);
		kill(peer.pid, SIGSTOP);
		waitpid(peer.pid, NULL, WUNTRACED);
		t_copy(&a, peer.pg);
		kill(peer.pid, SIGKILL);
		check_dead(peer.pg, t_sum(&a));
		t_peer_end(&peer);
		t_held(0, 0);
	}
}

static void *map_and_leave(void *unused)
{
	(void)unused;
	t_sleep_ns(1000000);
	return (void *)t_map();
}

static void test_thread_exit(void)
{
	const struct csf_thread *pg;
	pthread_t thread;
	void *ret;

	TEST("a thread that ends leaves its page to the process, dead") {
		pthread_create(&thread, NULL, map_and_leave, NULL);
		pthread_join(thread, &ret);
		pg = ret;
		check_dead(pg, 0);
		CHECK(pg->tid != t_tid(), "tid %u", pg->tid);
		t_held(2, 0);
		t_unmap(pg);
		t_held(0, 0);
	}
}

/* The page of one thread is not to be had through the descriptor or the mapping of another. */
static void test_proc_fd(void)
{
	char path[2][96];
	int fd = open(T_THREAD, O_RDONLY), st;
	const struct csf_thread *pg = t_map_fd(fd), *own;

	snprintf(path[0], sizeof(path[0]), "/proc/%d/fd/%d", getpid(), fd);
	snprintf(path[1], sizeof(path[1]), "/proc/%d/map_files/%lx-%lx", getpid(), (long)pg,
		 (long)pg + sysconf(_SC_PAGESIZE));
	for (int i = 0; i < 2; i++)
		TEST("%s gives the opener's own page", i ? "/proc/PID/map_files" : "/proc/PID/fd") {
			fflush(stdout);
			pid_t pid = fork();

			if (!pid) {
				own = t_map_fd(open(path[i], O_RDONLY));
				_exit(!own ? 1 : own->tid != t_tid() ? 2 : 0);
			}
			st = t_wait(pid);
			CHECK(!st, st == 1 ? "cannot open" : "it is another thread's page");
		}
	close(fd);
	t_unmap(pg);
}

/* A descriptor in the queue of a socket that can only be reached through itself. */
static int in_flight(void *cycle)
{
	int socks[2], fd = open(T_THREAD, O_RDONLY);

	if (fd < 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, socks) || t_send_fd(socks[0], fd))
		return 1;
	if (cycle && (t_send_fd(socks[0], socks[0]) || t_send_fd(socks[0], socks[1])))
		return 2;
	close(fd);
	close(socks[0]);
	close(socks[1]);
	/* The next socket to close makes the kernel look for such cycles, in this task or in another. */
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, socks))
		return 3;
	close(socks[0]);
	close(socks[1]);
	return T_UNTIL(t_refs() <= t_held0_ + 1) ? 0 : 4;
}

static void test_in_flight(void)
{
	int st;

	for (int cycle = 0; cycle < 2; cycle++)
		TEST("a descriptor in flight when %s",
		     cycle ? "its sockets become garbage" : "both ends close") {
			st = t_wait(t_fork(in_flight, cycle ? &cycle : NULL));
			CHECK(!st, "the child says %d", st);
			t_held(0, 0);
		}
}

/* The file is released by the worker that takes the ring down, while the owner lives. */
static int ring_registers(void *unused)
{
	struct io_uring_params params = {0};
	int ring = (int)syscall(SYS_io_uring_setup, 4, &params), fd = open(T_THREAD, O_RDONLY);
	const struct csf_thread *pg;

	(void)unused;
	if (ring < 0)
		return errno == ENOSYS || errno == EPERM ? 77 : 1;
	if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &fd, 1))
		return 2;
	close(fd);
	if (t_refs() != t_held0_ + 2)
		return 3;
	close(ring);
	if (!T_UNTIL(t_refs() <= t_held0_ + 1))
		return 4;
	pg = t_map();
	return t_flags(pg) & CSF_F_PARKED ? 5 : 0;
}

/* An open that a worker of io_uring does would register the worker, whose end nobody sees. */
static int ring_opens(void *unused)
{
	struct io_uring_params p = {0};
	int ring = (int)syscall(SYS_io_uring_setup, 4, &p);
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	char *sq, *cq;

	(void)unused;
	if (ring < 0)
		return errno == ENOSYS || errno == EPERM ? 77 : 1;
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring,
		  IORING_OFF_SQ_RING);
	cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(*cqe), PROT_READ | PROT_WRITE,
		  MAP_SHARED, ring, IORING_OFF_CQ_RING);
	sqe = mmap(NULL, p.sq_entries * sizeof(*sqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring,
		   IORING_OFF_SQES);
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_OPENAT;
	sqe->flags = IOSQE_ASYNC;
	sqe->fd = AT_FDCWD;
	sqe->addr = (uintptr_t)T_THREAD;
	sqe->open_flags = O_RDONLY;
	*(unsigned int *)(sq + p.sq_off.array) = 0;
	__atomic_store_n((unsigned int *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		return 2;
	cqe = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
	return cqe->res == -EPERM && t_refs() == t_held0_ ? 0 : 3;
}

static void test_io_uring(void)
{
	static const struct {
		const char *name;
		int (*fn)(void *);
	} cases[] = {
		{"released by io_uring's worker: parked", ring_registers},
		{"opened by io_uring's worker: refused", ring_opens},
	};

	for (int i = 0; i < 2; i++)
		TEST("%s", cases[i].name) {
			int st = t_wait(t_fork(cases[i].fn, NULL));

			if (st == 77)
				SKIP("no io_uring");
			else
				CHECK(!st, "the child says %d", st);
			t_held(0, 0);
		}
}

int main(void)
{
	t_held_begin();
	test_headers();
	test_many_opens();
	test_handed_off();
	test_thread_exit();
	if (!t_served()) { /* files */
		test_reopen();
		test_park();
		test_proc_fd();
		test_in_flight();
		test_io_uring();
	}
	return t_done("t_life");
}
