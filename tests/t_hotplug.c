// SPDX-License-Identifier: GPL-2.0
// This test checks that the pages stay right while a CPU goes and comes, and across a suspend.
#include "t_csf.h"

#define CPU1  "/sys/devices/system/cpu/cpu1/online"
#define POWER "/sys/power/"

enum { NR = 4 };

/* Threads that work until the end: two spin on CPU 1, two sleep there again and again. */
struct worker {
	pthread_t thread;
	const struct csf_thread *pg;
	struct csf_thread last;
	bool spins;
};

static struct worker workers[NR];
static atomic_int here, end;

static void *work(void *arg)
{
	struct worker *w = arg;

	t_pin(1);
	w->pg = t_map();
	atomic_fetch_add(&here, 1);
	while (!atomic_load(&end))
		if (w->spins)
			sched_yield();
		else
			t_sleep_ns(1000000);
	return NULL;
}

/* Every copy adds up, and nothing runs backwards between two. */
static void check_pages(const char *when)
{
	const __u64 *was, *is;
	struct csf_thread p;

	for (int i = 0; i < NR; i++) {
		t_copy(&p, workers[i].pg);
		CHECK(t_sum(&p) == p.last_switch_tsc - p.start_tsc, "%s: %d does not add up", when,
		      i);
		CHECK(!(p.hdr.flags & ~CSF_F_TSC_AUX), "%s: %d has flags 0x%x", when, i,
		      p.hdr.flags);
		is = &p.oncpu_cyc;
		was = &workers[i].last.oncpu_cyc;
		for (int b = 0; b < CSF_NR_STATES; b++)
			CHECK(is[b] >= was[b], "%s: bucket %d of %d fell by %llu", when, b, i,
			      was[b] - is[b]);
		workers[i].last = p;
	}
}

static bool all_on(uint32_t cpu)
{
	for (int i = 0; i < NR; i++)
		if (workers[i].pg->cpu != cpu)
			return false;
	return true;
}

static bool all_switch(void)
{
	uint64_t was[NR];

	for (int i = 0; i < NR; i++)
		was[i] = workers[i].pg->last_switch_tsc;
	for (int i = 0; i < NR; i++)
		if (!T_UNTIL(workers[i].pg->last_switch_tsc != was[i]))
			return false;
	return true;
}

static const struct csf_cpu *cpu_page; /* NULL: the pages are the server's, which has none */

/* A copy of the page's rows, each field that they share with the sum row. */
enum { NR_FIELDS = 10 };

static void copy_row(uint64_t out[NR_FIELDS], uint32_t *flags, unsigned int row)
{
	const struct csf_cpu_row *r;
	uint32_t seq;

	do {
		seq = __atomic_load_n(&cpu_page->seq, __ATOMIC_ACQUIRE);
		r = (const void *)((const char *)cpu_page + cpu_page->rows_off +
				   (size_t)row * cpu_page->row_size);
		memcpy(out, &r->user_ns, NR_FIELDS * sizeof(*out));
		*flags = r->flags;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (seq & 1 || cpu_page->seq != seq);
}

static uint32_t row_flags(unsigned int row)
{
	uint64_t fields[NR_FIELDS];
	uint32_t flags;

	copy_row(fields, &flags, row);
	return flags;
}

static bool refreshed(unsigned int times)
{
	uint64_t was = cpu_page->nr_updates;

	return T_UNTIL(cpu_page->nr_updates >= was + times);
}

static void test_row_offline(const uint64_t before[NR_FIELDS], uint64_t off[NR_FIELDS])
{
	uint64_t later[NR_FIELDS];
	uint32_t flags;

	TEST("its row in the cpu page keeps its last values and says so") {
		CHECK(T_UNTIL(row_flags(2) == CSF_CPU_POSSIBLE), "row flags 0x%x", row_flags(2));
		CHECK(row_flags(1) & CSF_CPU_ONLINE, "CPU 0 is gone as well");
		copy_row(off, &flags, 2);
		for (int f = 0; f < NR_FIELDS; f++)
			CHECK(off[f] >= before[f], "field %d fell by %lu", f, before[f] - off[f]);
		CHECK(refreshed(3), "no refresh");
		copy_row(later, &flags, 2);
		CHECK(!memcmp(off, later, sizeof(later)), "the row changed");
	}
}

static void check_row_back(const uint64_t off[NR_FIELDS])
{
	uint64_t later[NR_FIELDS];
	uint32_t flags;

	CHECK(T_UNTIL(row_flags(2) & CSF_CPU_ONLINE), "row flags 0x%x", row_flags(2));
	copy_row(later, &flags, 2);
	for (int f = 0; f < NR_FIELDS; f++)
		CHECK(later[f] >= off[f], "field %d fell by %lu", f, off[f] - later[f]);
}

static void test_offline(void)
{
	uint64_t migrated[NR], before[NR_FIELDS], off[NR_FIELDS];
	uint32_t flags;
	int ret;

	TEST("a CPU goes while registered threads run there") {
		CHECK(all_on(1), "they do not");
		check_pages("before");
		for (int i = 0; i < NR; i++)
			migrated[i] = workers[i].pg->nr_migrate;
		if (cpu_page) {
			copy_row(before, &flags, 2);
			CHECK(flags == (CSF_CPU_POSSIBLE | CSF_CPU_ONLINE), "row flags 0x%x",
			      flags);
		}
		ret = t_write_file(CPU1, "0");
		if (!CHECK(!ret, "cannot take CPU 1 offline: %s", strerror(-ret)))
			break;
		CHECK(T_UNTIL(all_on(0)), "some are not on CPU 0");
		CHECK(all_switch(), "some stand still");
		check_pages("offline");
		for (int i = 0; i < NR; i++)
			CHECK(workers[i].pg->nr_migrate == migrated[i] + 1,
			      "%d migrated %llu times", i, workers[i].pg->nr_migrate - migrated[i]);
	}
	if (cpu_page)
		test_row_offline(before, off);
	TEST("it comes back, and they return") {
		ret = t_write_file(CPU1, "1");
		CHECK(!ret, "cannot bring CPU 1 online: %s", strerror(-ret));
		if (cpu_page)
			check_row_back(off);
		for (int i = 0; i < NR; i++) {
			cpu_set_t set;

			CPU_ZERO(&set);
			CPU_SET(1, &set);
			pthread_setaffinity_np(workers[i].thread, sizeof(set), &set);
		}
		CHECK(T_UNTIL(all_on(1)), "some are not on CPU 1");
		CHECK(all_switch(), "some stand still");
		check_pages("online");
		for (int i = 0; i < NR; i++)
			CHECK(workers[i].pg->nr_migrate == migrated[i] + 2,
			      "%d migrated %llu times", i, workers[i].pg->nr_migrate - migrated[i]);
	}
}

/* The kernel's own dry run: all steps up to `level`, a second of nothing, and back. */
static int suspend(const char *state, const char *level)
{
	int ret;

	t_write_file("/sys/module/suspend/parameters/pm_test_delay", "1");
	ret = t_write_file(POWER "pm_test", level);
	if (!ret)
		ret = t_write_file(POWER "state", state);
	t_write_file(POWER "pm_test", "none");
	return ret;
}

static bool can_suspend(const char *state)
{
	char states[128];

	return !access(POWER "pm_test", W_OK) &&
	       t_read_file(POWER "state", states, sizeof(states)) > 0 && strstr(states, state);
}

/* The clock's factors may be others now. CLOCK_MONOTONIC has none, and stood still. */
static void check_factors(uint32_t gen)
{
	if (t_served()) {
		CHECK(workers[0].pg->hdr.gen == gen, "another generation");
		return;
	}
	CHECK(T_UNTIL(workers[0].pg->hdr.gen != gen), "the generation is still %u", gen);
	for (int i = 0; i < NR; i++)
		CHECK(!(workers[i].pg->hdr.gen & 1) && workers[i].pg->hdr.freq_khz,
		      "%d: generation %u, %u kHz", i, workers[i].pg->hdr.gen,
		      workers[i].pg->hdr.freq_khz);
	CHECK(cpu_page->hdr.gen == workers[0].pg->hdr.gen, "cpu page: generation %u",
	      cpu_page->hdr.gen);
}

static void test_suspend(const char *state, const char *level)
{
	uint32_t gen;
	int ret;

	TEST("suspend to %s, tested down to %s", state, level) {
		if (!can_suspend(state)) {
			SKIP("the kernel cannot test a suspend to %s", state);
			break;
		}
		check_pages("before");
		gen = workers[0].pg->hdr.gen;
		ret = suspend(state, level);
		CHECK(!ret, "suspend: %s", strerror(-ret));
		check_factors(gen);
		CHECK(all_switch(), "some stand still");
		CHECK(!cpu_page || refreshed(3), "the cpu page stands still");
		check_pages("after");
	}
}

int main(void)
{
	if (!t_served())
		cpu_page = t_map_fd(open(T_CPU, O_RDONLY));
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		TEST("hotplug of a CPU with registered threads")
			SKIP("it takes two CPUs");
		return t_done("t_hotplug");
	}
	for (int i = 0; i < NR; i++) {
		workers[i].spins = i & 1;
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	T_UNTIL(atomic_load(&here) == NR);
	test_offline();
	test_suspend("freeze", "devices");
	test_suspend("mem", "core");
	atomic_store(&end, 1);
	for (int i = 0; i < NR; i++)
		pthread_join(workers[i].thread, NULL);
	return t_done("t_hotplug");
}
