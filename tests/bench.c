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

static uint64_t switch_round(void)
{
	struct hands h;
	pthread_t t;
	uint64_t cost;
	char c = 0;

	if (pipe(h.there) || pipe(h.back))
		return 0;
	pthread_create(&t, NULL, echo, &h);
	cost = COST_BY(least, (void)!write(h.there[1], &c, 1); (void)!read(h.back[0], &c, 1));
	close(h.there[1]);
	pthread_join(t, NULL);
	close(h.there[0]);
	close(h.back[0]);
	close(h.back[1]);
	return cost;
}

static sem_t is_open, may_close;

static void *registered(void *ok)
{
	const struct csf_thread *pg = t_map();

	*(int *)ok = pg != NULL;
	sem_post(&is_open);
	sem_wait(&may_close);
	return NULL;
}

struct switches {
	uint64_t none, others,
		mine; /* while nobody, a third thread, this thread too is registered */
};

static void keep_least(uint64_t *best, uint64_t cost)
{
	if (!*best || cost < *best)
		*best = cost;
}

static void measure_switches(struct switches *s)
{
	const struct csf_thread *pg;
	pthread_t t;
	int ok = 0;

	sem_init(&is_open, 0, 0);
	sem_init(&may_close, 0, 0);
	keep_least(&s->none, switch_round());
	pthread_create(&t, NULL, registered, &ok);
	sem_wait(&is_open);
	keep_least(&s->others, switch_round());
	pg = t_map();
	keep_least(&s->mine, switch_round());
	if (pg)
		t_unmap(pg);
	sem_post(&may_close);
	pthread_join(t, NULL);
	CHECK(ok && pg, "registered: other %d, self %d", ok, pg != NULL);
}

static void bench_switches(void)
{
	struct switches s = {0};

	TEST("a pair of switches costs a registered thread at most 250 instructions, others nothing") {
		t_pin(0);
		/* Each pair of threads has ways of its own, too, cheaper or dearer by hundreds. */
		for (int i = 0; i < 5; i++)
			measure_switches(&s);
		report("a byte to another thread and back, nobody registered", s.none);
		report("the same, neither registered, a third thread is", s.others);
		limit("more for the kernel's own check of 4 notifier lists",
		      s.others > s.none ? s.others - s.none : 0, 24);
		limit("more for a pair of switches of a registered thread", s.mine - s.others, 250);
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
