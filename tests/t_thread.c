// SPDX-License-Identifier: GPL-2.0
/* This test checks that every kind of wall time lands in its bucket, against independent sources. */
#include <sys/resource.h>

#include "t_work.h"

/* ---- independent sources ---- */

struct io {
	unsigned long long rchar, wchar, syscr, syscw, read_bytes, write_bytes;
};

static int proc_io(struct io *io)
{
	char buf[256];
	int fd = open("/proc/thread-self/io", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : pread(fd, buf, sizeof(buf) - 1, 0);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return -1;
	buf[n] = '\0';
	return sscanf(buf,
		      "rchar: %llu wchar: %llu syscr: %llu syscw: %llu read_bytes: %llu write_bytes: %llu",
		      &io->rchar, &io->wchar, &io->syscr, &io->syscw, &io->read_bytes,
		      &io->write_bytes) == 6 ?
		       0 :
		       -1;
}

/* ---- the plain kinds ---- */

static void test_plain(void)
{
	struct csf_snap a, b;
	struct t_diff d = {0};

	TEST("a sleep of 25 ms is sleep") {
		double slept = 0;

		WORK_MEASURE(slept >= 25 && d.sleep > 20) {
			int64_t from = work_cpu_ns();

			t_snap(&a);
			t_sleep_ns(25 * MS);
			t_snap(&b);
			d = t_diff(&a, &b);
			slept = d.sleep + d.runq + work_way_in_ms(from);
		}
		CHECK(slept >= 25 && d.sleep > 20, "sleep %.3f runq %.3f", d.sleep, d.runq);
		CHECK(d.dsleep == 0 && d.iowait == 0, "dsleep %.3f iowait %.3f", d.dsleep,
		      d.iowait);
		CHECK(b.p.nr_block > a.p.nr_block, "no voluntary switch was counted");
		CHECK(a.extrapolated && b.extrapolated, "own snapshots are brought up to date");
	}
	TEST("a spin of 30 ms is cpu, and sum_exec_ns lags behind it") {
		work_force_switch();
		t_snap(&a);
		t_spin_ns(30 * MS);
		t_snap(&b);
		d = t_diff(&a, &b);
		CHECK(d.cpu + d.runq >= 29.9 && d.cpu > 20, "oncpu %.3f runq %.3f", d.cpu, d.runq);
		CHECK(d.sleep == 0 && d.dsleep == 0 && d.iowait == 0, "it slept");
		if (b.p.nr_preempt == a.p.nr_preempt)
			CHECK((double)(b.p.sum_exec_ns - a.p.sum_exec_ns) / 1e6 < d.cpu - 15,
			      "sum_exec_ns is as of the last switch, yet moved by %.3f ms",
			      (double)(b.p.sum_exec_ns - a.p.sum_exec_ns) / 1e6);
	}
	TEST("20 times 1 ms on the CPU and 9 ms asleep") {
		t_snap(&a);
		for (int i = 0; i < 20; i++) {
			work_spin_cpu(1 * MS);
			t_sleep_ns(9 * MS);
		}
		t_snap(&b);
		d = t_diff(&a, &b);
		CHECK(d.cpu >= 19 && d.cpu < 60, "oncpu %.3f", d.cpu);
		CHECK(d.sleep >= 150 && d.sleep < 400, "sleep %.3f", d.sleep);
	}
	TEST("time since the open is the sum of the buckets") {
		t_snap(&a);
		CHECK(a.p.oncpu_cyc + a.p.runq_cyc + a.p.sleep_cyc + a.p.dsleep_cyc +
				      a.p.iowait_cyc ==
			      a.tsc - a.p.start_tsc,
		      "off by %lld cycles",
		      (long long)(a.tsc - a.p.start_tsc - a.p.oncpu_cyc - a.p.runq_cyc -
				  a.p.sleep_cyc - a.p.dsleep_cyc - a.p.iowait_cyc));
	}
}

/* ---- against other clocks and counters ---- */

static void test_switch_counts(void)
{
	pthread_t t[2];
	struct rusage before, r0, r1;
	struct csf_snap a, b;
	int tries, agreed = 0;

	TEST("blocked and preempted counts equal getrusage's, exactly") {
		work_spinners_start(t, 2);
		t_pin(0);
		/* Bracketed: two readings of getrusage that agree. */
		do {
			getrusage(RUSAGE_THREAD, &before);
			t_snap(&a);
			getrusage(RUSAGE_THREAD, &r0);
		} while (before.ru_nvcsw != r0.ru_nvcsw || before.ru_nivcsw != r0.ru_nivcsw);
		for (int i = 0; i < 50; i++) {
			work_spin_cpu(1 * MS);
			if (i % 3 == 0)
				sched_yield();
			else
				t_sleep_ns(MS / 2);
		}
		for (tries = 0; tries < 1000 && !agreed; tries++) {
			getrusage(RUSAGE_THREAD, &before);
			t_snap(&b);
			getrusage(RUSAGE_THREAD, &r1);
			agreed = before.ru_nvcsw == r1.ru_nvcsw && before.ru_nivcsw == r1.ru_nivcsw;
		}
		work_unpin();
		work_spinners_stop(t, 2);
		CHECK(agreed, "no two readings of getrusage agreed");
		CHECK((long)(b.p.nr_block - a.p.nr_block) == r1.ru_nvcsw - r0.ru_nvcsw,
		      "blocked %lu, nvcsw %ld", (unsigned long)(b.p.nr_block - a.p.nr_block),
		      r1.ru_nvcsw - r0.ru_nvcsw);
		CHECK((long)(b.p.nr_preempt - a.p.nr_preempt) == r1.ru_nivcsw - r0.ru_nivcsw,
		      "preempted %lu, nivcsw %ld", (unsigned long)(b.p.nr_preempt - a.p.nr_preempt),
		      r1.ru_nivcsw - r0.ru_nivcsw);
		CHECK(r1.ru_nivcsw > r0.ru_nivcsw && r1.ru_nvcsw > r0.ru_nvcsw,
		      "both kinds occurred");
	}
}

static void test_faults_and_io(void)
{
	struct rusage r0, r1;
	struct csf_snap s;
	struct io io0, io1;
	int fd, ok = 0;
	char *p;

	TEST("faults equal getrusage's after a switch, and counters are as of the switch") {
		p = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
		for (int i = 0; i < 64; i++)
			p[i * 4096] = 1;
		for (int i = 0; i < 1000 && !ok; i++) {
			getrusage(RUSAGE_THREAD, &r0);
			work_force_switch();
			t_snap(&s);
			getrusage(RUSAGE_THREAD, &r1);
			ok = r0.ru_minflt == r1.ru_minflt && r0.ru_majflt == r1.ru_majflt;
		}
		munmap(p, 64 * 4096);
		CHECK(ok, "no two readings agreed");
		CHECK((long)s.p.min_flt == r1.ru_minflt && (long)s.p.maj_flt == r1.ru_majflt,
		      "page %lu/%lu, getrusage %ld/%ld", (unsigned long)s.p.min_flt,
		      (unsigned long)s.p.maj_flt, r1.ru_minflt, r1.ru_majflt);
		CHECK(s.p.min_flt >= 64, "64 pages were touched");
	}
	TEST("I/O counts equal /proc/thread-self/io after a switch") {
		/* Storage, so that bytes read and written count. */
		fd = work_slow_disk();
		p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(pread(fd, p, 65536, 0) == 65536, "read: %s", strerror(errno));
		CHECK(pwrite(fd, p, 32768, 65536) == 32768, "write: %s", strerror(errno));
		close(fd);
		ok = 0;
		for (int i = 0; i < 100 && !ok; i++) {
			/* The reading itself is a read call, hence the second one differs by its own. */
			CHECK(proc_io(&io0) == 0, "/proc/thread-self/io: %s", strerror(errno));
			work_force_switch();
			t_snap(&s);
			CHECK(proc_io(&io1) == 0, "/proc/thread-self/io: %s", strerror(errno));
			ok = io1.syscr == io0.syscr + 1 && io1.syscw == io0.syscw;
		}
		CHECK(ok, "no two readings agreed");
		CHECK(s.p.syscr == io1.syscr, "syscr %lu, io %llu", (unsigned long)s.p.syscr,
		      io1.syscr);
		CHECK(s.p.syscw == io1.syscw, "syscw %lu, io %llu", (unsigned long)s.p.syscw,
		      io1.syscw);
		CHECK(s.p.read_bytes == io1.read_bytes && io1.read_bytes >= 65536,
		      "read %lu, io %llu", (unsigned long)s.p.read_bytes, io1.read_bytes);
		CHECK(s.p.write_bytes == io1.write_bytes && io1.write_bytes >= 32768,
		      "written %lu, io %llu", (unsigned long)s.p.write_bytes, io1.write_bytes);
		munmap(p, 65536);
	}
}

/* ---- migration, hand-offs, other threads ---- */

static void test_migration(void)
{
	struct csf_snap a, b;

	TEST("a migration is counted, and the page names the CPU") {
		if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
			SKIP("one CPU");
			break;
		}
		t_pin(0);
		t_snap(&a);
		CHECK(a.p.cpu == 0, "on CPU %u", a.p.cpu);
		for (int i = 1; i <= 10; i++)
			t_pin(i & 1);
		t_pin(1);
		t_snap(&b);
		work_unpin();
		CHECK(b.p.cpu == 1, "on CPU %u", b.p.cpu);
		CHECK(b.p.nr_migrate - a.p.nr_migrate == 11, "migrated %lu times",
		      (unsigned long)(b.p.nr_migrate - a.p.nr_migrate));
	}
}

struct pingpong {
	int rd, wr;
};

static void *echo_thread(void *arg)
{
	struct pingpong *pp = arg;
	char c;

	/* A batch thread does not preempt its waker: the writer gets to block in its own read. */
	sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
	t_pin(0);
	while (read(pp->rd, &c, 1) == 1)
		if (write(pp->wr, &c, 1) != 1)
			break;
	return NULL;
}

static void test_handoff(void)
{
	int there[2], back[2];
	struct pingpong pp;
	struct csf_snap a, b;
	pthread_t t;
	char c = 0;

	TEST("a pipe ping-pong is hand-offs: each read blocks, none is a preemption") {
		CHECK(!pipe(there) && !pipe(back), "pipe: %s", strerror(errno));
		pp = (struct pingpong){there[0], back[1]};
		t_pin(0);
		pthread_create(&t, NULL, echo_thread, &pp);
		t_snap(&a);
		for (int i = 0; i < 1000; i++)
			CHECK(write(there[1], &c, 1) == 1 && read(back[0], &c, 1) == 1, "lost");
		t_snap(&b);
		close(there[1]);
		pthread_join(t, NULL);
		close(there[0]);
		close(back[0]);
		close(back[1]);
		work_unpin();
		unsigned long blocked = b.p.nr_block - a.p.nr_block,
			      preempted = b.p.nr_preempt - a.p.nr_preempt;

		/* A tick can turn single ones around. */
		CHECK(blocked + preempted >= 1000, "%lu blocked, %lu preempted", blocked,
		      preempted);
		CHECK(blocked >= 900 && preempted <= 100, "%lu blocked, %lu preempted", blocked,
		      preempted);
		CHECK(t_diff(&a, &b).sleep > 0, "no sleep in 1,000 blocking reads");
	}
}

struct remote {
	const struct csf_thread *page;
	atomic_int ready, quit;
	int fd[2];
};

static void *remote_owner(void *arg)
{
	struct remote *r = arg;
	char c;

	r->page = t_map();
	atomic_store(&r->ready, 1);
	if (read(r->fd[0], &c, 1) != 1) /* asleep until told */
		return NULL;
	atomic_store(&r->ready, 2);
	while (!atomic_load(&r->quit))
		;
	return NULL;
}

static void test_remote(void)
{
	size_t page_len = (size_t)sysconf(_SC_PAGESIZE);
	struct remote r = {0};
	struct csf_snap s;
	pthread_t t;

	TEST("another thread's page: asleep is not brought up to date, running is, dead says so") {
		CHECK(!pipe(r.fd), "pipe: %s", strerror(errno));
		pthread_create(&t, NULL, remote_owner, &r);
		while (!atomic_load(&r.ready))
			t_sleep_ns(MS);
		t_sleep_ns(20 * MS);
		CHECK(csf_page_snap(r.page, page_len, &s) == 0, "%s", strerror(errno));
		CHECK(s.p.state == CSF_SLEEP && !s.extrapolated, "state %u, extrapolated %d",
		      s.p.state, s.extrapolated);
		CHECK(write(r.fd[1], "x", 1) == 1, "%s", strerror(errno));
		while (atomic_load(&r.ready) != 2)
			t_sleep_ns(MS);
		CHECK(csf_page_snap(r.page, page_len, &s) == 0, "%s", strerror(errno));
		CHECK((s.p.state == CSF_ONCPU || s.p.state == CSF_RUNQ) && s.extrapolated,
		      "state %u, extrapolated %d", s.p.state, s.extrapolated);
		CHECK(s.p.sleep_cyc > 0, "it slept");
		atomic_store(&r.quit, 1);
		pthread_join(t, NULL);
		/* join returns when the tid is cleared, a little before the thread is gone */
		for (int i = 0; i < 200 && !(s.p.hdr.flags & CSF_F_DEAD); i++) {
			t_sleep_ns(MS);
			csf_page_snap(r.page, page_len, &s);
		}
		CHECK((s.p.hdr.flags & CSF_F_DEAD) && !s.extrapolated, "flags %x", s.p.hdr.flags);
		t_unmap(r.page);
		close(r.fd[0]);
		close(r.fd[1]);
	}
}

int main(void)
{
	test_plain();
	test_switch_counts();
	test_faults_and_io();
	test_migration();
	test_handoff();
	test_remote();
	return t_done("t_thread");
}
