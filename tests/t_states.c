// SPDX-License-Identifier: GPL-2.0
/*
 * This test checks that each way of not running lands in the documented bucket: the states a task blocks
 * in, and the ones that a careless implementation takes for another (csf_states.ko makes those).
 */
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

#include "t_work.h"

#define STATES "/sys/kernel/debug/csf_states"

static int states(const char *word, int ms)
{
	char buf[32];
	int fd = open(STATES, O_WRONLY | O_CLOEXEC), ret;
	int len = snprintf(buf, sizeof(buf), "%s %d", word, ms);

	if (fd < 0)
		return -1;
	ret = write(fd, buf, (size_t)len) == len ? 0 : -1;
	close(fd);
	return ret;
}

static double bucket_ms(const struct csf_snap *a, const struct csf_snap *b, const char *name)
{
	struct t_diff d = t_diff(a, b);

	return !strcmp(name, "sleep")  ? d.sleep :
	       !strcmp(name, "dsleep") ? d.dsleep :
	       !strcmp(name, "iowait") ? d.iowait :
	       !strcmp(name, "runq")   ? d.runq :
					 d.cpu;
}

static void test_kernel_states(void)
{
	static const struct {
		const char *state, *bucket;
	} cases[] = {
		{"interruptible", "sleep"}, {"idle", "sleep"},	  {"uninterruptible", "dsleep"},
		{"killable", "dsleep"},	    {"iowait", "iowait"},
	};
	static const char *const asleep[] = {"sleep", "dsleep", "iowait"};
	struct csf_snap a, b;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TEST("40 ms in state %s are %s", cases[i].state, cases[i].bucket) {
			double ms = 0, slept = 0;

			WORK_MEASURE(slept >= 40 && ms > 20) {
				int64_t from = work_cpu_ns();

				t_snap(&a);
				CHECK(states(cases[i].state, 40) == 0, "%s: %s", STATES,
				      strerror(errno));
				t_snap(&b);
				ms = bucket_ms(&a, &b, cases[i].bucket);
				slept = ms + bucket_ms(&a, &b, "runq") + work_way_in_ms(from);
			}
			CHECK(slept >= 40 && ms > 20, "%.3f ms", ms);
			for (size_t j = 0; j < 3; j++)
				if (strcmp(asleep[j], cases[i].bucket))
					CHECK(bucket_ms(&a, &b, asleep[j]) == 0, "%s %.3f ms",
					      asleep[j], bucket_ms(&a, &b, asleep[j]));
		}
	}
}

static void test_preempted_in_state(void)
{
	pthread_t t[2];
	struct csf_snap a, b;

	TEST("preempted after it set its state: the whole interval is run queue, though run_delay has none") {
		work_spinners_start(t, 2);
		t_pin(0);
		t_snap(&a);
		CHECK(states("instate", 200) == 0, "%s: %s", STATES, strerror(errno));
		t_snap(&b);
		work_unpin();
		work_spinners_stop(t, 2);
		struct t_diff d = t_diff(&a, &b);

		CHECK(b.p.nr_preempt > a.p.nr_preempt,
		      "never preempted in 200 ms among 2 spinners");
		CHECK(d.sleep == 0 && d.dsleep == 0, "sleep %.3f dsleep %.3f ms", d.sleep,
		      d.dsleep);
		CHECK(d.runq > 50, "runq %.3f ms", d.runq);
		CHECK(b.p.nr_block == a.p.nr_block, "it never blocked");
	}
}

static void no_op(int sig)
{
	(void)sig;
}

struct killer {
	pid_t tgid, tid;
	atomic_bool done;
};

static void *send_signals(void *arg)
{
	struct killer *k = arg;

	/* More than one: the first may come before the thread is where it waits for it. */
	do {
		t_sleep_ns(20 * MS);
		syscall(SYS_tgkill, k->tgid, k->tid, SIGUSR1);
	} while (!atomic_load(&k->done));
	return NULL;
}

static void test_turned_back(void)
{
	struct killer k = {getpid(), (pid_t)t_tid(), false};
	struct rusage r0, r1;
	struct csf_snap a, b;
	int64_t off_runq = 0;
	pthread_t t[2], s;
	int switched = 0;

	signal(SIGUSR1, no_op);
	TEST("a schedule() that a signal turned back counts as voluntary and is all run queue") {
		work_spinners_start(t, 2);
		t_pin(0);
		/* The scheduler may pick the same thread again, and does so while it is owed time. */
		for (uint64_t end = t_now_ns() + 60000 * MS; !switched && t_now_ns() < end;) {
			atomic_store(&k.done, false);
			pthread_create(&s, NULL, send_signals, &k);
			getrusage(RUSAGE_THREAD, &r0);
			t_snap(&a);
			states("turnback", 0);
			t_snap(&b);
			getrusage(RUSAGE_THREAD, &r1);
			atomic_store(&k.done, true);
			struct t_diff d = t_diff(&a, &b);

			CHECK(d.sleep == 0 && d.dsleep == 0 && d.iowait == 0, "sleep %.3f ms",
			      d.sleep);
			switched = b.p.nr_block != a.p.nr_block;
			off_runq = (int64_t)(d.runq * 1000);
			pthread_join(s, NULL);
		}
		work_unpin();
		work_spinners_stop(t, 2);
		CHECK(switched, "schedule() always came straight back");
		CHECK(off_runq > 0, "switched away, but no run queue time");
		CHECK(r1.ru_nvcsw > r0.ru_nvcsw, "the kernel counts it as voluntary");
	}
	TEST("sched_yield counts as involuntary and is run queue") {
		work_spinners_start(t, 1);
		t_pin(0);
		t_snap(&a);
		/* The scheduler grants a yield once the other thread is not too far ahead. */
		uint64_t end = t_now_ns() + 5000 * MS;

		do {
			sched_yield();
			t_snap(&b);
		} while (b.p.nr_preempt == a.p.nr_preempt && t_now_ns() < end);
		work_unpin();
		work_spinners_stop(t, 1);
		CHECK(b.p.nr_preempt > a.p.nr_preempt, "no switch in 5 s of yields to a spinner");
		CHECK(b.p.nr_block == a.p.nr_block, "a yield does not block");
		CHECK(t_diff(&a, &b).sleep == 0 && t_diff(&a, &b).runq > 0, "runq %.3f",
		      t_diff(&a, &b).runq);
	}
	signal(SIGUSR1, SIG_DFL);
}

static void test_vfork(void)
{
	struct csf_snap a, b;

	TEST("a vfork parent that waits 30 ms shows it in dsleep") {
		struct t_diff d = {0};
		double slept = 0;

		WORK_MEASURE(slept >= 30 && d.dsleep > 25) {
			int64_t from = work_cpu_ns();

			t_snap(&a);
			pid_t pid = vfork();

			if (!pid) {
				struct timespec ts = {0, 30 * MS};

				nanosleep(&ts, NULL);
				_exit(0);
			}
			t_snap(&b);
			waitpid(pid, NULL, 0);
			d = t_diff(&a, &b);
			slept = d.dsleep + d.runq + work_way_in_ms(from);
		}
		CHECK(slept >= 30 && d.dsleep > 25, "dsleep %.3f runq %.3f", d.dsleep, d.runq);
		CHECK(d.iowait == 0, "iowait %.3f", d.iowait);
	}
}

static void test_iowait(void)
{
	struct csf_snap a, b;
	struct t_diff d = {0};
	char *p;
	int fd;

	TEST("reads from a block device that takes 20 ms each are iowait") {
		fd = work_slow_disk();
		p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		WORK_MEASURE(d.iowait + d.runq >= 99 && d.iowait > 80) {
			t_snap(&a);
			for (int i = 0; i < 5; i++)
				CHECK(pread(fd, p, 4096, i * 4096) == 4096, "read: %s",
				      strerror(errno));
			t_snap(&b);
			d = t_diff(&a, &b);
		}
		CHECK(d.iowait + d.runq >= 99 && d.iowait > 80, "iowait %.3f runq %.3f", d.iowait,
		      d.runq);
		CHECK(d.sleep == 0 && d.dsleep < 20, "sleep %.3f dsleep %.3f", d.sleep, d.dsleep);
		munmap(p, 4096);
		close(fd);
	}
}

/* A child that publishes its page and then sits in a read until it is stopped by us. */
struct shared {
	_Atomic int go;
	struct csf_snap a, b;
};

static pid_t child_that_waits(struct shared *sh)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	csf_thread_snap(&sh->a);
	atomic_store(&sh->go, 1);
	while (atomic_load(&sh->go) != 2)
		;
	csf_thread_snap(&sh->b);
	_exit(0);
}

static void test_stopped(void)
{
	struct shared *sh =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct t_diff d;
	pid_t pid;
	int st;

	TEST("stopped by SIGSTOP is sleep") {
		atomic_store(&sh->go, 0);
		pid = child_that_waits(sh);
		while (!atomic_load(&sh->go))
			t_sleep_ns(MS);
		kill(pid, SIGSTOP);
		waitpid(pid, &st, WUNTRACED);
		t_sleep_ns(60 * MS);
		atomic_store(&sh->go, 2);
		kill(pid, SIGCONT);
		waitpid(pid, &st, 0);
		d = t_diff(&sh->a, &sh->b);
		CHECK(d.sleep >= 55, "sleep %.3f", d.sleep);
		CHECK(d.dsleep < 30 && d.iowait == 0, "dsleep %.3f iowait %.3f", d.dsleep,
		      d.iowait);
	}
	TEST("stopped by a tracer is sleep") {
		atomic_store(&sh->go, 0);
		pid = child_that_waits(sh);
		while (!atomic_load(&sh->go))
			t_sleep_ns(MS);
		CHECK(ptrace(PTRACE_SEIZE, pid, 0, 0) == 0, "%s", strerror(errno));
		CHECK(ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0, "%s", strerror(errno));
		waitpid(pid, &st, __WALL);
		t_sleep_ns(60 * MS);
		atomic_store(&sh->go, 2);
		ptrace(PTRACE_DETACH, pid, 0, 0);
		waitpid(pid, &st, 0);
		d = t_diff(&sh->a, &sh->b);
		CHECK(d.sleep >= 55, "sleep %.3f", d.sleep);
	}
	TEST("frozen by its cgroup is sleep") {
		char path[] = "/sys/fs/cgroup/csf-frozen", buf[16];

		atomic_store(&sh->go, 0);
		pid = child_that_waits(sh);
		while (!atomic_load(&sh->go))
			t_sleep_ns(MS);
		CHECK(mkdir(path, 0755) == 0, "%s: %s", path, strerror(errno));
		snprintf(buf, sizeof(buf), "%d", pid);
		CHECK(t_write_file("/sys/fs/cgroup/csf-frozen/cgroup.procs", buf) >= 0,
		      "cgroup.procs");
		CHECK(t_write_file("/sys/fs/cgroup/csf-frozen/cgroup.freeze", "1") >= 0, "freeze");
		t_sleep_ns(80 * MS);
		atomic_store(&sh->go, 2);
		CHECK(t_write_file("/sys/fs/cgroup/csf-frozen/cgroup.freeze", "0") >= 0, "thaw");
		waitpid(pid, &st, 0);
		rmdir(path);
		d = t_diff(&sh->a, &sh->b);
		CHECK(d.sleep >= 50, "sleep %.3f", d.sleep);
	}
	munmap(sh, 4096);
}

int main(void)
{
	test_kernel_states();
	test_preempted_in_state();
	test_turned_back();
	test_vfork();
	test_iowait();
	test_stopped();
	return t_done("t_states");
}
