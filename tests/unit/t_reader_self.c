/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This test checks that a thread finds its own page: on first use, off the fast path and back, when
 * the page has ended, and until the thread ends.
 */
#include "fake_self.h"

static int nr_fds(void)
{
	int n = dup(0);

	close(n);
	return n;
}

static void t_first(void)
{
	struct csf_snap s, a;
	int fds;

	TEST("self: not mounted is ENOENT, and the next call tries again") {
		CHECK(snap_errno(&s) == ENOENT, "errno %d", errno);
		CHECK(snap_errno(&s) == ENOENT, "errno %d", errno);
	}
	TEST("self: a file that is no thread page is EPROTO and leaves no mapping") {
		page = fake_thread_self(7);
		page->hdr.kind = CSF_KIND_CPU;
		CHECK(snap_errno(&s) == EPROTO, "errno %d", errno);
		CHECK(fake_maps("thread-self") == 1, "%d mappings", fake_maps("thread-self"));
		page->hdr.kind = CSF_KIND_THREAD;
	}
	TEST("self: first use maps the page, once, and keeps no descriptor") {
		fds = nr_fds();
		CHECK(!snap_errno(&s) && s.p.tid == 7 && s.extrapolated, "errno %d", errno);
		CHECK(!snap_errno(&s), "errno %d", errno);
		CHECK(fake_maps("thread-self") == 2, "%d mappings", fake_maps("thread-self"));
		CHECK(nr_fds() == fds, "a descriptor is open");
	}
	TEST("self: the whole page is copied and the buckets add up") {
		memset(&s, 0xff, sizeof(s));
		CHECK(!snap_errno(&s), "errno %d", errno);
		s.p.oncpu_cyc -= s.tsc - s.p.last_switch_tsc;
		memset(s.p.hdr.reserved, 0, sizeof(s.p.hdr.reserved));
		CHECK(!memcmp(&s.p, page, sizeof(s.p)), "copy and page differ");
		CHECK(!snap_errno(&a) && !snap_errno(&s), "errno %d", errno);
		CHECK(s.tsc > a.tsc && fake_sum(&s.p) - fake_sum(&a.p) == s.tsc - a.tsc,
		      "%lu cycles in buckets, %lu passed", fake_sum(&s.p) - fake_sum(&a.p),
		      s.tsc - a.tsc);
	}
}

/* Every way off the fast path, and that it is found again. */
static void t_slow(void)
{
	struct csf_snap s;

	TEST("self: a clock behind the last switch's counts as no time") {
		page->last_switch_tsc += 1000000000000;
		CHECK(!snap_errno(&s), "errno %d", errno);
		CHECK(s.tsc == page->last_switch_tsc && s.p.oncpu_cyc == 100 && s.extrapolated,
		      "tsc %lu, last switch %llu", s.tsc, page->last_switch_tsc);
		page->last_switch_tsc -= 1000000000000;
	}
	TEST("self: new factors are taken, and old ones never with the new generation") {
		page->hdr.gen += 2;
		page->hdr.mult = 12345;
		CHECK(!snap_errno(&s) && s.p.hdr.mult == 12345, "mult %u", s.p.hdr.mult);
		CHECK(!snap_errno(&s) && s.p.hdr.gen == 2, "gen %u", s.p.hdr.gen);
	}
	TEST("self: a flag that this reader does not know is no error") {
		page->hdr.flags |= 1u << 31;
		CHECK(!snap_errno(&s) && s.p.hdr.flags >> 31, "errno %d", errno);
		page->hdr.flags &= ~(1u << 31);
	}
	TEST("self: an unstable TSC is ESTALE as soon as the page says so") {
		page->hdr.flags |= CSF_F_TSC_UNSTABLE;
		CHECK(snap_errno(&s) == ESTALE, "errno %d", errno);
		page->hdr.flags &= ~CSF_F_TSC_UNSTABLE;
		CHECK(!snap_errno(&s), "errno %d", errno);
	}
	TEST("self: a page that says we do not run is another's: ESRCH") {
		page->state = CSF_DSLEEP;
		CHECK(snap_errno(&s) == ESRCH, "errno %d", errno);
		page->state = CSF_ONCPU;
		CHECK(!snap_errno(&s), "errno %d", errno);
	}
	TEST("self: one that is being written for ever is EBUSY") {
		page->seq++;
		CHECK(snap_errno(&s) == EBUSY, "errno %d", errno);
		CHECK(s.p.hdr.magic == 0, "it looks like a snapshot");
		page->seq++;
	}
}

/* The page's thread runs on the CPU whose number rdtscp gives, here and now. */
static bool snap_on(uint32_t off_by, int *err)
{
	struct csf_snap s;
	uint32_t aux;
	int i;

	/* Other CPU, other number; a hypervisor may leave us that of its own CPU. */
	for (i = 0; i < 10000; i++) {
		csf_rdtscp_(&aux);
		page->cpu = (aux + off_by) & 0xfff;
		*err = snap_errno(&s);
		if (!*err)
			return true;
	}
	return false;
}

static void *aux_thread(void *unused)
{
	int err = 0;

	(void)unused;
	CHECK(snap_on(0, &err), "no snapshot on the right CPU: errno %d", err);
	CHECK(!snap_on(2048, &err) && err == ESRCH, "a snapshot on the wrong CPU: errno %d", err);
	page->hdr.flags &= ~CSF_F_TSC_AUX;
	return NULL;
}

static void *no_aux_thread(void *unused)
{
	int err = 0;

	(void)unused;
	CHECK(snap_on(2048, &err), "rdtscp's number was used: errno %d", err);
	return NULL;
}

static void t_cpu_number(uint32_t clock)
{
	const char *kept = clock == CSF_CLOCK_TSC ? "in cycles" : "in ns";

	page->hdr.clock = clock;
	TEST("self: a page %s of a thread on another CPU is another's, where rdtscp tells", kept) {
		page->hdr.flags |= CSF_F_TSC_AUX;
		in_thread(aux_thread, NULL);
	}
	TEST("self: a page %s: where rdtscp does not tell, its number means nothing", kept) {
		in_thread(no_aux_thread, NULL);
	}
	page->hdr.clock = CSF_CLOCK_TSC;
	page->cpu = 0;
}

/* A page of a kind that the fast path is not made for. */
static void *odd_thread(void *arg)
{
	const int clock = *(int *)arg;
	struct csf_snap s;

	CHECK(!snap_errno(&s), "errno %d", errno);
	CHECK(!snap_errno(&s), "errno %d", errno);
	CHECK(clock != CSF_CLOCK_TSC || (!s.p.syscr && s.p.stime_ns == 3), "the end is not known");
	CHECK(fake_sum(&s.p) == s.tsc - s.p.start_tsc && s.extrapolated, "buckets do not add up");
	CHECK(fake_maps("thread-self") == 2, "%d mappings", fake_maps("thread-self"));
	return NULL;
}

static void t_odd(void)
{
	struct csf_thread *own = page;
	int clock;

	hide();
	for (clock = CSF_CLOCK_TSC; clock <= CSF_CLOCK_MONOTONIC; clock++)
		TEST("self: a page that %s",
		     clock == CSF_CLOCK_TSC ? "an older module wrote" : "is kept in ns") {
			page = fake_thread_self(8);
			page->stime_ns = 3;
			page->syscr = 99;
			page->hdr.clock = (uint32_t)clock;
			if (clock == CSF_CLOCK_TSC)
				page->hdr.size = offsetof(struct csf_thread, syscr);
			page->last_switch_tsc = csf_now(&page->hdr);
			page->start_tsc = page->last_switch_tsc - 1000;
			in_thread(odd_thread, &clock);
			CHECK(fake_maps("thread-self") == 1, "the thread left its mapping behind");
			munmap(page, PAGE);
		}
	page = own;
	restore();
}

/* A page of our own to end, so that the main thread's stays as it is. */
static void *ended_thread(void *flag)
{
	struct csf_thread *old = fake_thread_self(10), *new;
	struct csf_snap s;

	CHECK(!snap_errno(&s) && s.p.tid == 10, "errno %d", errno);
	new = fake_thread_self(11);
	old->hdr.flags |= *(uint32_t *)flag;
	munmap(old, PAGE);
	CHECK(!snap_errno(&s) && s.p.tid == 11 && s.extrapolated, "errno %d, tid %u", errno,
	      s.p.tid);
	CHECK(!snap_errno(&s) && s.p.tid == 11, "errno %d", errno);
	CHECK(fake_maps("thread-self") == 2, "%d mappings of it", fake_maps("thread-self"));
	/* Nothing better to be had: an error, and no endless loop. */
	new->hdr.flags |= *(uint32_t *)flag;
	CHECK(snap_errno(&s) == ESRCH, "errno %d", errno);
	CHECK(fake_maps("thread-self") == 2, "%d mappings of it", fake_maps("thread-self"));
	new->hdr.kind = CSF_KIND_CPU;
	CHECK(snap_errno(&s) == EPROTO, "errno %d", errno);
	munmap(new, PAGE);
	return NULL;
}

static void t_ended(void)
{
	uint32_t flags[] = {CSF_F_PARKED, CSF_F_DEAD}, i;

	hide();
	for (i = 0; i < 2; i++)
		TEST("self: a page that is %s is replaced by the thread's own",
		     flags[i] == CSF_F_DEAD ? "dead" : "parked")
			in_thread(ended_thread, &flags[i]);
	restore();
}

static void t_exit(void)
{
	int i, err, bad = 0, before = fake_maps("thread-self");

	TEST("self: 2,000 threads map and unmap") {
		for (i = 0; i < 2000; i++) {
			in_thread(snap_thread, &err);
			bad += err != 0;
		}
		CHECK(!bad, "%d threads failed", bad);
		CHECK(fake_maps("thread-self") == before, "%d mappings more",
		      fake_maps("thread-self") - before);
		CHECK(!csf_proc_v1_.first->next, "their slots were not used again");
	}
}

static void t_many(void)
{
	enum { N = 600 }; /* some chunks */
	static pthread_t t[N];
	static int err[N];
	int i, bad = 0, before = fake_maps("thread-self");
	pthread_attr_t attr;

	TEST("self: %d threads at once have a page each", N) {
		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, 65536);
		pthread_barrier_init(&all_in, NULL, N + 1);
		pthread_barrier_init(&all_out, NULL, N + 1);
		for (i = 0; i < N; i++)
			if (pthread_create(&t[i], &attr, wait_thread, &err[i]))
				fake_die("pthread_create");
		pthread_barrier_wait(&all_in);
		CHECK(fake_maps("thread-self") == before + N, "%d mappings",
		      fake_maps("thread-self") - before);
		pthread_barrier_wait(&all_out);
		for (i = 0; i < N; i++) {
			pthread_join(t[i], NULL);
			bad += err[i] != 0;
		}
		CHECK(!bad, "%d threads failed", bad);
		CHECK(fake_maps("thread-self") == before, "%d mappings left",
		      fake_maps("thread-self") - before);
	}
}

int main(void)
{
	fake_mount();
	t_first();
	t_slow();
	t_cpu_number(CSF_CLOCK_TSC);
	t_cpu_number(CSF_CLOCK_MONOTONIC);
	t_odd();
	t_ended();
	t_exit();
	t_many();
	fake_cleanup();
	return t_done("t_reader_self");
}
