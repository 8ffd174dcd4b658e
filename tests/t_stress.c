// SPDX-License-Identifier: GPL-2.0
// This test checks that sums stay exact and nothing is lost when all that can happen happens at once.
#include "t_csf.h"
#include "lib/coarse_stat_fs.h"

#include <poll.h>

/* ---- 100,000 pairs of snapshots ---- */

enum { PAIR_THREADS = 8 };

/* From the environment: how many of them, in all; a multiple of the threads. */
static int nr_pairs(void)
{
	const char *pairs = getenv("T_PAIRS");

	return pairs ? atoi(pairs) : 100000;
}

/* What a thread does between two snapshots. Neighbours do the same at the same time. */
enum op { OP_NOTHING, OP_SPIN, OP_YIELD, OP_FAULT, OP_PIPE, OP_MIGRATE, OP_SLEEP, NR_OPS };

struct pair_thread {
	pthread_t thread;
	int in, out; /* pipes from and to its neighbour */
	char *mem;
	int nr_cpus, want;
	/* The result. */
	int pairs, unknown, wrong, backwards, failed, ops[NR_OPS];
	uint64_t spent[CSF_NR_STATES];
};

static void operate(struct pair_thread *t, enum op op, int i)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	t->ops[op]++;
	switch (op) {
	case OP_SPIN:
		t_spin_ns(20000);
		break;
	case OP_YIELD:
		sched_yield();
		break;
	case OP_FAULT:
		madvise(t->mem, 2 * page, MADV_DONTNEED);
		t->mem[0] = t->mem[page] = 1;
		break;
	case OP_PIPE:
		t->failed += !t_tell(t->out) || !t_told(t->in);
		break;
	case OP_MIGRATE:
		t_pin(i / 64 % t->nr_cpus);
		break;
	case OP_SLEEP:
		t_sleep_ns(20000);
		break;
	default:
		break;
	}
}

static uint64_t bucket(const struct csf_snap *s, int i)
{
	return (&s->p.oncpu_cyc)[i];
}

static void *take_pairs(void *arg)
{
	struct pair_thread *t = arg;
	struct csf_snap a, b;
	uint64_t sum, d;

	for (; t->pairs < t->want; t->pairs++) {
		/* Rarely what is slow, so that the cheap ones meet all kinds of interruptions. */
		enum op op = t->pairs % 16 ? t->pairs % OP_MIGRATE : t->pairs / 16 % NR_OPS;

		t->failed += csf_thread_snap(&a) != 0;
		operate(t, op, t->pairs);
		t->failed += csf_thread_snap(&b) != 0;
		t->unknown += !a.extrapolated || !b.extrapolated;
		sum = 0;
		for (int i = 0; i < CSF_NR_STATES; i++) {
			d = bucket(&b, i) - bucket(&a, i);
			t->backwards += bucket(&b, i) < bucket(&a, i);
			t->spent[i] += d;
			sum += d;
		}
		t->wrong += sum != b.tsc - a.tsc;
	}
	return NULL;
}

static void test_pairs(void)
{
	static struct pair_thread threads[PAIR_THREADS];
	uint64_t spent[CSF_NR_STATES] = {0};
	int pairs = 0, fds[2];

	TEST("%d pairs of snapshots by %d threads add up, to the cycle", nr_pairs(), PAIR_THREADS) {
		for (int i = 0; i < PAIR_THREADS; i++) {
			CHECK(!pipe(fds), "pipe: %m");
			threads[i].in = fds[0];
			threads[i ^ 1].out = fds[1];
			threads[i].nr_cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
			threads[i].want = nr_pairs() / PAIR_THREADS;
			threads[i].mem = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE,
					      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		}
		for (int i = 0; i < PAIR_THREADS; i++)
			pthread_create(&threads[i].thread, NULL, take_pairs, &threads[i]);
		for (int i = 0; i < PAIR_THREADS; i++) {
			struct pair_thread *t = &threads[i];

			pthread_join(t->thread, NULL);
			pairs += t->pairs;
			CHECK(!t->failed, "thread %d: %d calls failed", i, t->failed);
			CHECK(!t->unknown, "thread %d: %d not extrapolated", i, t->unknown);
			CHECK(!t->wrong, "thread %d: %d sums are wrong", i, t->wrong);
			CHECK(!t->backwards, "thread %d: %d buckets fell", i, t->backwards);
			for (int op = 0; op < NR_OPS; op++)
				CHECK(t->ops[op] >= t->want / 16 / NR_OPS,
				      "thread %d: op %d only %d times", i, op, t->ops[op]);
			for (int b = 0; b < CSF_NR_STATES; b++)
				spent[b] += t->spent[b];
		}
		CHECK(pairs == nr_pairs(), "%d pairs", pairs);
		CHECK(spent[CSF_ONCPU] && spent[CSF_RUNQ] && spent[CSF_SLEEP],
		      "cpu %lu, runq %lu, sleep %lu", spent[CSF_ONCPU], spent[CSF_RUNQ],
		      spent[CSF_SLEEP]);
		t_held(0, 0);
	}
}

/* ---- the storm ---- */

enum { STORMERS = 6, KEPT = 8 };

struct stormer {
	uint64_t seed;
	int socks[2]; /* shared by all: descriptors fly both ways */
	uint64_t end;
	int fds[KEPT]; /* of whichever thread; -1 */
	const struct csf_thread *pages[KEPT];
};

static unsigned int pick(struct stormer *s, unsigned int below)
{
	s->seed ^= s->seed << 13;
	s->seed ^= s->seed >> 7;
	s->seed ^= s->seed << 17;
	return (unsigned int)(s->seed >> 32) % below;
}

/* Whatever its owner does or did, a page adds up. */
static void look(const struct csf_thread *pg)
{
	struct csf_thread p;

	t_copy(&p, pg);
	if (p.hdr.magic != CSF_MAGIC || !p.tid || t_sum(&p) != p.last_switch_tsc - p.start_tsc) {
		printf("# page of %u: magic 0x%x, sum %lu of %llu\n", p.tid, p.hdr.magic, t_sum(&p),
		       p.last_switch_tsc - p.start_tsc);
		fflush(stdout);
		_exit(1);
	}
}

static void drop_fd(struct stormer *s, unsigned int i)
{
	if (s->fds[i] >= 0)
		close(s->fds[i]);
	s->fds[i] = -1;
}

static void drop_page(struct stormer *s, unsigned int i)
{
	if (s->pages[i])
		t_unmap(s->pages[i]);
	s->pages[i] = NULL;
}

static void op_open(struct stormer *s)
{
	unsigned int i = pick(s, KEPT);

	drop_fd(s, i);
	s->fds[i] = t_open();
}

static void op_map(struct stormer *s)
{
	unsigned int i = pick(s, KEPT), j = pick(s, KEPT);

	drop_page(s, j);
	if (s->fds[i] >= 0)
		s->pages[j] = t_map_fd(s->fds[i]);
	for (i = 0; i < KEPT; i++)
		if (s->pages[i])
			look(s->pages[i]);
}

static void op_close(struct stormer *s)
{
	drop_fd(s, pick(s, KEPT));
}

static void op_send(struct stormer *s)
{
	int fd = s->fds[pick(s, KEPT)];

	if (fd >= 0)
		t_send_fd(s->socks[pick(s, 2)], fd);
}

static void op_recv(struct stormer *s)
{
	struct pollfd p = {.fd = s->socks[pick(s, 2)], .events = POLLIN};
	unsigned int i = pick(s, KEPT);

	drop_fd(s, i);
	if (poll(&p, 1, 0) == 1)
		s->fds[i] = t_recv_fd(p.fd);
}

/* A descriptor that only its own queue holds: garbage, for whichever task collects it. */
static void op_garbage(struct stormer *s)
{
	int socks[2], fd = s->fds[pick(s, KEPT)];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, socks))
		return;
	if (fd >= 0)
		t_send_fd(socks[0], fd);
	t_send_fd(socks[0], socks[0]);
	t_send_fd(socks[0], socks[1]);
	close(socks[0]);
	close(socks[1]);
}

static void op_fork(struct stormer *s)
{
	unsigned int how = pick(s, 4), i = pick(s, KEPT);
	const struct csf_thread *pg;
	pid_t pid = fork();

	if (!pid) { /* with all our descriptors, and none of our mappings */
		pg = t_map();
		if (!pg || pg->tid != t_tid())
			_exit(2);
		look(pg);
		if (how == 0 && s->fds[i] >= 0)
			close(s->fds[i]);
		if (how == 1)
			execl("/bin/busybox", "true", (char *)NULL);
		if (how == 2)
			pause();
		_exit(0);
	}
	if (how == 3)
		drop_fd(s, i); /* the child may be the last to hold it */
	if (how == 2)
		kill(pid, SIGKILL);
	if (t_wait(pid) == 2)
		_exit(2);
}

static void *open_and_leave(void *fd)
{
	*(int *)fd = t_open();
	sched_yield();
	return NULL;
}

/* A thread whose file is closed, or not, while it leaves. */
static void op_thread(struct stormer *s)
{
	unsigned int i = pick(s, KEPT);
	volatile int fd = -1;
	pthread_t thread;

	if (pthread_create(&thread, NULL, open_and_leave, (void *)&fd))
		return;
	if (pick(s, 2)) {
		while (fd < 0)
			sched_yield();
		close(fd);
		fd = -1;
	}
	pthread_join(thread, NULL);
	drop_fd(s, i);
	s->fds[i] = fd;
}

static void op_cpu_page(struct stormer *s)
{
	const struct csf_cpu *cpu;
	int fd = open(T_CPU, O_RDONLY | O_CLOEXEC);
	size_t len = (size_t)sysconf(_SC_PAGESIZE);

	cpu = t_map_fd(fd);
	close(fd);
	if (!cpu || cpu->hdr.magic != CSF_MAGIC)
		_exit(3);
	if (!pick(s, 8))
		t_write_file("/sys/module/" CSF_FS_NAME "/parameters/period_us",
			     pick(s, 2) ? "500" : "10000");
	munmap((void *)cpu, len);
}

static void op_rmmod(struct stormer *s)
{
	(void)s;
	if (!syscall(SYS_delete_module, CSF_FS_NAME, O_NONBLOCK))
		_exit(4);
}

static int storm(void *arg)
{
	static void (*const ops[])(struct stormer *) = {
		op_open,
		op_open,
		op_map,
		op_map,
		op_map,
		op_close,
		op_send,
		op_send,
		op_recv,
		op_recv,
		op_garbage,
		op_fork,
		op_thread,
		/* With the module: */
		op_cpu_page,
		op_rmmod,
	};
	const unsigned int nr = sizeof(ops) / sizeof(*ops) - (t_served() ? 2 : 0);
	struct stormer *s = arg;

	for (int i = 0; i < KEPT; i++)
		s->fds[i] = -1;
	while (t_now_ns() < s->end)
		ops[pick(s, nr)](s);
	/* Some let go of everything in order, the others leave that to the kernel. */
	for (unsigned int i = 0; pick(s, 2) && i < KEPT; i++) {
		drop_fd(s, i);
		drop_page(s, i);
	}
	return 0;
}

/* Seconds, from the environment: how long to let it storm. */
static unsigned int storm_s(void)
{
	const char *s = getenv("T_STORM_S");

	return s ? (unsigned int)atoi(s) : 60;
}

static void test_storm(void)
{
	struct stormer s = {.end = t_now_ns() + storm_s() * 1000000000ull};
	pid_t pids[STORMERS];
	int st;

	TEST("%u s of open, map, close, pass, fork, exec, exit by %d processes", storm_s(),
	     STORMERS) {
		CHECK(!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, s.socks),
		      "socketpair: %m");
		for (int i = 0; i < STORMERS; i++) {
			s.seed = t_now_ns() * 2 + 1;
			printf("# stormer %d: seed %lu\n", i, s.seed);
			pids[i] = t_fork(storm, &s);
		}
		for (int i = 0; i < STORMERS; i++) {
			st = t_wait(pids[i]);
			CHECK(!st,
			      "stormer %d says %d: 1 a wrong page, 2 a child, 3 no cpu page, "
			      "4 rmmod went",
			      i, st);
		}
		close(s.socks[0]);
		close(s.socks[1]);
		t_held(0, 0);
	}
}

int main(void)
{
	t_held_begin();
	test_pairs();
	test_storm();
	return t_done("t_stress");
}
