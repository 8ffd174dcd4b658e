/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This test checks that csf_cpu_snap() finds the rows of a machine of any size by what the page
 * says of itself, and maps that page once in each process.
 */
#include <pthread.h>

#include "tests/t.h"
#include "fake_page.h"

#define NR_CPUS	 512
#define ROWS_OFF 192 /* a later release may have a longer header and longer rows */
#define ROW_SIZE (sizeof(struct csf_cpu_row) + 16)
#define LEN	 (ROWS_OFF + (NR_CPUS + 1) * ROW_SIZE)

static struct csf_cpu *page;

static struct csf_cpu_row *row(unsigned int nr)
{
	return (struct csf_cpu_row *)(void *)((char *)page + ROWS_OFF + nr * ROW_SIZE);
}

/* Four CPUs of 512 are possible: 0, 1, 255 and 511, and that one is offline. */
static void fill(void)
{
	static const unsigned int possible[] = {0, 1, 255, 511};
	struct csf_cpu_row *r;
	unsigned int i;

	page = (struct csf_cpu *)fake_file("cpu", LEN);
	fake_hdr(&page->hdr, CSF_KIND_CPU, LEN);
	page->rows_off = ROWS_OFF;
	page->row_size = ROW_SIZE;
	page->nr_rows = NR_CPUS + 1;
	page->update_mono_ns = 123456789;
	page->update_tsc = 99;
	page->nr_updates = 5;
	page->nr_corrected = 2;
	page->period_us = 10000;
	page->tick_ns = 4000000;
	row(0)->flags = CSF_CPU_POSSIBLE | CSF_CPU_ONLINE;
	row(0)->cpu = CSF_CPU_ALL;
	row(0)->user_ns = 777;
	for (i = 0; i < 4; i++) {
		r = row(possible[i] + 1);
		r->flags = CSF_CPU_POSSIBLE | (possible[i] == 511 ? 0 : CSF_CPU_ONLINE);
		r->cpu = possible[i];
		r->user_ns = 1000 + possible[i];
		r->guest_nice_ns = 2000 + possible[i];
	}
}

static void t_rows(void)
{
	struct csf_cpu_snap s;

	TEST("cpu: not mounted is ENOENT") {
		CHECK(csf_cpu_snap(&s, 0) == -1 && errno == ENOENT, "errno %d", errno);
	}
	fill();
	TEST("cpu: the sum, and what the page says of itself") {
		errno = 77;
		CHECK(!csf_cpu_snap(&s, CSF_CPU_ALL) && errno == 77, "errno %d", errno);
		CHECK(s.row.user_ns == 777 && s.row.cpu == CSF_CPU_ALL, "user %llu", s.row.user_ns);
		CHECK(s.update_mono_ns == 123456789 && s.update_tsc == 99 && s.nr_updates == 5 &&
			      s.nr_corrected == 2 && s.period_us == 10000 && s.tick_ns == 4000000,
		      "the header is not whole");
		CHECK(s.nr_cpus == NR_CPUS, "%u CPU ids", s.nr_cpus);
	}
	TEST("cpu: rows are found by CPU id, the last of 512 too") {
		CHECK(!csf_cpu_snap(&s, 255) && s.row.user_ns == 1255 && s.row.cpu == 255 &&
			      s.row.guest_nice_ns == 2255,
		      "255 has user %llu", s.row.user_ns);
		CHECK(s.row.flags & CSF_CPU_ONLINE, "255 is offline");
		CHECK(!csf_cpu_snap(&s, 511) && s.row.user_ns == 1511, "511: %llu", s.row.user_ns);
		CHECK(!(s.row.flags & CSF_CPU_ONLINE), "511 is online");
	}
	TEST("cpu: an id that no CPU has is ENXIO, one that none can have ERANGE") {
		CHECK(csf_cpu_snap(&s, 2) == -1 && errno == ENXIO, "2: errno %d", errno);
		CHECK(csf_cpu_snap(&s, 512) == -1 && errno == ERANGE, "512: errno %d", errno);
		CHECK(csf_cpu_snap(&s, CSF_CPU_ALL - 1) == -1 && errno == ERANGE, "errno %d",
		      errno);
	}
	TEST("cpu: rows of an older release are shorter") {
		page->row_size = offsetof(struct csf_cpu_row, guest_nice_ns);
		page->rows_off = ROWS_OFF + 8;
		memset(&s, 0xff, sizeof(s));
		((struct csf_cpu_row *)(void *)((char *)page + ROWS_OFF + 8))->flags =
			CSF_CPU_POSSIBLE;
		CHECK(!csf_cpu_snap(&s, CSF_CPU_ALL), "errno %d", errno);
		CHECK(!s.row.guest_nice_ns, "a field was read that the row does not have");
		page->row_size = ROW_SIZE;
		page->rows_off = ROWS_OFF;
	}
	TEST("cpu: a page that points outside of itself is EPROTO") {
		page->rows_off = ROWS_OFF + 8;
		CHECK(csf_cpu_snap(&s, 511) == -1 && errno == EPROTO, "errno %d", errno);
		page->rows_off = 0xfffffff8u;
		page->row_size = 0xfffffff8u;
		CHECK(csf_cpu_snap(&s, 511) == -1 && errno == EPROTO, "errno %d", errno);
		page->rows_off = ROWS_OFF;
		page->row_size = ROW_SIZE;
		page->nr_rows = 0;
		CHECK(csf_cpu_snap(&s, CSF_CPU_ALL) == -1 && errno == EPROTO, "errno %d", errno);
		page->nr_rows = NR_CPUS + 1;
	}
	TEST("cpu: a page that is being written for ever is EBUSY") {
		page->seq = 1;
		CHECK(csf_cpu_snap(&s, 0) == -1 && errno == EBUSY, "errno %d", errno);
		page->seq = 2;
	}
}

static bool stop;

static void *refresh(void *unused)
{
	uint64_t k;

	(void)unused;
	for (k = 1; !__atomic_load_n(&stop, __ATOMIC_RELAXED); k++) {
		__atomic_store_n(&page->seq, page->seq + 1, __ATOMIC_SEQ_CST);
		page->update_mono_ns = k;
		row(2)->user_ns = k;
		row(2)->guest_nice_ns = k;
		page->nr_updates = k;
		__atomic_store_n(&page->seq, page->seq + 1, __ATOMIC_SEQ_CST);
		if (k % 3)
			csf_rdtsc();
	}
	return NULL;
}

static void *first_use(void *go)
{
	struct csf_cpu_snap s;

	while (!__atomic_load_n((bool *)go, __ATOMIC_ACQUIRE))
		;
	return csf_cpu_snap(&s, 0) || s.row.user_ns != 1000 ? &stop : NULL;
}

static void t_shared(void)
{
	unsigned int i, j, torn = 0, bad = 0, changed = 0;
	struct csf_cpu_snap s;
	uint64_t last = 0;
	pthread_t t[8];
	void *failed;
	bool go;

	TEST("cpu: a thread refreshes the page while 200,000 snapshots are taken") {
		page->update_mono_ns = page->nr_updates = 0;
		row(2)->user_ns = row(2)->guest_nice_ns = 0;
		if (pthread_create(&t[0], NULL, refresh, NULL))
			fake_die("pthread_create");
		for (i = 0; i < 200000 || changed < 1000; i++) {
			if (csf_cpu_snap(&s, 1)) {
				/* The writer lost its CPU in the middle: a kernel would not. */
				bad += errno != EBUSY;
				continue;
			}
			torn += s.update_mono_ns != s.row.user_ns ||
				s.row.user_ns != s.row.guest_nice_ns ||
				s.nr_updates != s.row.user_ns;
			changed += s.nr_updates != last;
			last = s.nr_updates;
		}
		__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
		pthread_join(t[0], NULL);
		CHECK(!torn && !bad, "%u torn, %u failed of %u", torn, bad, i);
	}
	TEST("cpu: one mapping a process, whoever comes first") {
		bad = 0;
		CHECK(fake_maps("cpu") == 2, "%d mappings", fake_maps("cpu"));
		for (j = 0; j < 200; j++) {
			csf_cpu_close();
			CHECK(fake_maps("cpu") == 1, "%d mappings after close", fake_maps("cpu"));
			go = false;
			for (i = 0; i < 8; i++)
				if (pthread_create(&t[i], NULL, first_use, &go))
					fake_die("pthread_create");
			__atomic_store_n(&go, true, __ATOMIC_RELEASE);
			for (i = 0; i < 8; i++) {
				pthread_join(t[i], &failed);
				bad += failed != NULL;
			}
			CHECK(fake_maps("cpu") == 2, "%d mappings of 8 threads", fake_maps("cpu"));
		}
		CHECK(!bad, "%u snapshots failed", bad);
		csf_cpu_close();
		csf_cpu_close();
	}
	TEST("cpu: a forked child maps its own, and a parent that mapped none is no trouble") {
		for (i = 0; i < 2; i++) {
			pid_t pid;

			CHECK(!i || !csf_cpu_snap(&s, 0), "errno %d", errno);
			pid = fork();
			if (!pid) {
				/* Two to write: fake_file()'s, which fork() copies. */
				int before = fake_maps("cpu");

				_exit(csf_cpu_snap(&s, 1) || before != 1 || fake_maps("cpu") != 2);
			}
			CHECK(fake_wait(pid) == 0, "the child failed");
		}
	}
}

int main(void)
{
	fake_mount();
	t_rows();
	t_shared();
	fake_cleanup();
	return t_done("t_reader_cpu");
}
