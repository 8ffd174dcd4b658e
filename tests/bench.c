// SPDX-License-Identifier: GPL-2.0
/*
 * This test checks what thread time costs, in instructions: in a guest whose TSC advances one tick an
 * instruction (vm=icount), the difference of two rdtscp is an exact count, kernel code included. On a real
 * machine the same program prints TSC cycles, and checks nothing.
 *
 *	VM_DEBUG=0 tests/vm.sh bench
 */
#include <semaphore.h>
#include <sys/resource.h>

#include "t_work.h"

#define ROUNDS 501

static int exact; /* the TSC counts instructions */

static inline uint64_t tsc(void)
{
	return csf_rdtsc();
}

static int cmp(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The median: a tick or another interrupt is in one round of thousands. */
static uint64_t median(uint64_t *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), cmp);
	return v[n / 2];
}

static uint64_t cost_rdtscp;

/* The cheapest round: what differs between rounds is which way through the scheduler they happen to take. */
static uint64_t least(uint64_t *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), cmp);
	return v[0];
}

/* Cost of one statement by one of these, without the two readings of the TSC around it. */
#define COST_BY(pick, stmt)                           \
	({                                            \
		uint64_t v_[ROUNDS], t_;              \
		for (int i_ = 0; i_ < ROUNDS; i_++) { \
			t_ = tsc();                   \
			stmt;                         \
			v_[i_] = tsc() - t_;          \
		}                                     \
		pick(v_, ROUNDS) - cost_rdtscp;       \
	})
#define COST(stmt) COST_BY(median, stmt)

static void report(const char *what, uint64_t cost)
{
	printf("# %-52s %6llu %s\n", what, (unsigned long long)cost,
	       exact ? "instructions" : "cycles");
}

static void limit(const char *what, uint64_t cost, uint64_t most)
{
	report(what, cost);
	CHECK(!exact || cost <= most, "%s: %llu instructions, at most %llu", what,
	      (unsigned long long)cost, (unsigned long long)most);
}

static void bench_reads(void)
{
	static struct csf_snap s;
	static struct rusage ru;
	char buf[128];
	int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);

	TEST("a snapshot costs at most 60 instructions") {
		t_snap(&s);
		limit("csf_thread_snap", COST(csf_thread_snap(&s)), 60);
		report("getrusage(RUSAGE_THREAD)", COST(getrusage(RUSAGE_THREAD, &ru)));
		report("CLOCK_THREAD_CPUTIME_ID", COST(work_cpu_ns()));
		report("pread of a kept /proc/thread-self/schedstat",
		       COST((void)!pread(fd, buf, sizeof(buf), 0)));
	}
	close(fd);
}

/* ---- switches: two threads on one CPU hand a byte to and fro; a round switches each off and on ---- */

#define SESSIONS 9

struct hands {
	int there[2], back[2];
};

static void *echo(void *arg)
{
	struct hands *h = arg;
	char c;

	t_pin(0);
	while (read(h->there[0], &c, 1) == 1 && write(h->back[1], &c, 1) == 1)
		;
	return NULL;
}

/*
 * Which way through the scheduler a round takes depends on what both threads have run before. So that each way
 * is met, and the cheapest can be picked, this one computes for a while before, each time for longer or shorter.
 */
static uint64_t switch_round(const struct hands *h)
{
	uint64_t v[ROUNDS], t;
	char c = 0;

	for (int i = 0; i < ROUNDS; i++) {
		for (volatile int spin = i * 7919 % 100000; spin; spin--)
			;
		t = tsc();
		(void)!write(h->there[1], &c, 1);
		(void)!read(h->back[0], &c, 1);
		v[i] = tsc() - t;
	}
	return least(v, ROUNDS) - cost_rdtscp;
}

/* A third thread, that registers or ends when it is told to; asked to do nothing, it answers the same. */
struct third {
	pthread_t thread;
	sem_t told, done;
	enum { IDLE, REGISTER, END } step;
	int ok;
};

static void *third_main(void *arg)
{
	struct third *t = arg;

	do {
		sem_wait(&t->told);
		if (t->step == REGISTER)
			t->ok = t_map() != NULL;
		sem_post(&t->done);
	} while (t->step != END);
	return NULL;
}

static void tell(struct third *t, int step)
{
	t->step = step;
	sem_post(&t->told);
	sem_wait(&t->done);
}

/* Of one session: nobody is registered, and what that costs more for a third thread, for this one. */
struct switches {
	uint64_t none[SESSIONS], others[SESSIONS], mine[SESSIONS];
};

/*
 * Two pairs of threads differ by hundreds of instructions, so one pair has all that is compared; and what
 * comes before a round sets the scheduler's way through it, so that is the same, too.
 */
static void session(struct switches *s, int i)
{
	struct third t = {.step = IDLE};
	const struct csf_thread *pg;
	uint64_t none, others, mine;
	pthread_t other;
	struct hands h;

	if (pipe(h.there) || pipe(h.back)) {
		CHECK(0, "pipe: %s", strerror(errno));
		return;
	}
	sem_init(&t.told, 0, 0);
	sem_init(&t.done, 0, 0);
	pthread_create(&other, NULL, echo, &h);
	pthread_create(&t.thread, NULL, third_main, &t);
	/* The first rounds of a new pair go other ways than all later ones. */
	tell(&t, IDLE);
	switch_round(&h);
	tell(&t, IDLE);
	none = switch_round(&h);
	tell(&t, REGISTER);
	others = switch_round(&h);
	pg = t_map();
	tell(&t, IDLE);
	mine = switch_round(&h);
	if (pg)
		t_unmap(pg);
	tell(&t, END);
	pthread_join(t.thread, NULL);
	close(h.there[1]);
	pthread_join(other, NULL);
	close(h.there[0]);
	close(h.back[0]);
	close(h.back[1]);
	CHECK(t.ok && pg, "registered: other %d, self %d", t.ok, pg != NULL);
	s->none[i] = none;
	s->others[i] = others > none ? others - none : 0;
	s->mine[i] = mine > others ? mine - others : 0;
}

static void bench_switches(void)
{
	struct switches s = {0};

	TEST("a pair of switches costs a registered thread at most 250 instructions, others nothing") {
		t_pin(0);
		for (int i = 0; i < SESSIONS; i++)
			session(&s, i);
		report("a byte to another thread and back, nobody registered",
		       median(s.none, SESSIONS));
		limit("more while a third thread is registered: the kernel's 4 notifier lists",
		      median(s.others, SESSIONS), 24);
		limit("more for a pair of switches of a registered thread",
		      median(s.mine, SESSIONS), 250);
		CHECK(!exact || median(s.mine, SESSIONS) > 0, "registering costs nothing?");
	}
}

int main(void)
{
	/* Two readings differ by the same small number, always, only where instructions are counted. */
	uint64_t v[ROUNDS], t;

	for (int i = 0; i < ROUNDS; i++) {
		t = tsc();
		v[i] = tsc() - t;
	}
	cost_rdtscp = median(v, ROUNDS);
	exact = cost_rdtscp < 10 && v[0] == cost_rdtscp && v[ROUNDS - 10] == cost_rdtscp;
	report("rdtscp, twice", cost_rdtscp);
	bench_switches(); /* first: bench_reads() registers this thread */
	bench_reads();
	return t_done("bench");
}
