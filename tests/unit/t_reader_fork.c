/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This test checks that a child finds a page of its own after every kind of fork, and knows its
 * parent's where it shares its memory.
 */
#include <linux/sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>

#include "fake_self.h"

/* Runs in a child that does not share our memory. The files were replaced: tid 20 is in there now.
 */
static int child_finds_its_own(void)
{
	struct csf_snap s;
	int err;

	if (snap_errno(&s) || s.p.tid != 20 || !s.extrapolated)
		return 1;
	if (fake_maps("thread-self") != 1 + 1) /* the test's to write, and ours */
		return 2;
	/* And so do threads, with the first one's state as it is. */
	in_thread(snap_thread, &err);
	if (err)
		return 3;
	return snap_errno(&s) || s.p.tid != 20 ? 4 : 0;
}

/* A new thread is the first of the child to call; the one that forked has stale state. */
static int child_thread_first(void)
{
	struct csf_snap s;
	int err;

	in_thread(snap_thread, &err);
	if (err)
		return 1;
	return snap_errno(&s) || s.p.tid != 20 ? 2 : 0;
}

static int child_grandchild(void)
{
	struct csf_snap s;
	pid_t pid;

	if (snap_errno(&s))
		return 1;
	pid = fork();
	if (!pid)
		_exit(child_finds_its_own());
	return fake_wait(pid) || snap_errno(&s) ? 2 : 0;
}

static pthread_t forker;
static sem_t may_end;

/* In the child, beside the forker: its end must not touch the others' pages. */
static void *watch_forker(void *unused)
{
	enum { N = 4 }; /* one of them has the slot that the forker had in the parent */
	pthread_t t[N];
	static int err[N];
	int i;

	(void)unused;
	pthread_barrier_init(&all_in, NULL, N + 1);
	pthread_barrier_init(&all_out, NULL, N + 1);
	for (i = 0; i < N; i++)
		if (pthread_create(&t[i], NULL, wait_thread, &err[i]))
			_exit(2);
	pthread_barrier_wait(&all_in);
	sem_post(&may_end);
	pthread_join(forker, NULL);
	_exit(fake_maps("thread-self") == N ? 0 : 3); /* nothing is mapped to write */
}

static void *fork_and_end(void *unused)
{
	pthread_t t;
	pid_t pid;
	int err;

	(void)unused;
	snap_thread(&err);
	CHECK(!err, "errno %d", err);
	forker = pthread_self();
	sem_init(&may_end, 0, 0);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (pthread_create(&t, NULL, watch_forker, NULL))
			_exit(1);
		sem_wait(&may_end);
		return NULL;
	}
	err = fake_wait(pid);
	CHECK(!err, "the child says %d", err);
	return NULL;
}

static pid_t raw_fork(void)
{
	return (pid_t)syscall(SYS_fork);
}

static pid_t raw_clone(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void t_fork(void)
{
	static const struct {
		const char *name;
		pid_t (*fork)(void);
		int (*child)(void);
	} c[] = {
		{"fork", fork, child_finds_its_own},
		{"SYS_fork", raw_fork, child_finds_its_own},
		{"SYS_clone", raw_clone, child_finds_its_own},
		{"fork, and a new thread of the child is first", fork, child_thread_first},
		{"fork, and a fork in the child", fork, child_grandchild},
	};
	struct csf_thread *new;
	struct csf_snap s;
	pid_t pid;
	size_t i;
	int ret;

	hide();
	new = fake_thread_self(20);
	for (i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		TEST("fork: %s", c[i].name) {
			CHECK(!snap_errno(&s) && s.p.tid == 7, "errno %d", errno);
			fflush(stdout);
			pid = c[i].fork();
			if (!pid)
				_exit(c[i].child());
			ret = fake_wait(pid);
			CHECK(!ret, "the child says %d", ret);
			CHECK(!snap_errno(&s) && s.p.tid == 7, "the parent lost its page");
		}
	munmap(new, PAGE);
	TEST("fork: the thread that forked ends in the child, and no other loses its page") {
		in_thread(fork_and_end, NULL);
	}
	restore();
}

static int clone_child(void *err)
{
	struct csf_snap s;

	/* What the kernel says of the parent while this is a vfork child. */
	page->state = CSF_DSLEEP;
	*(int *)err = snap_errno(&s);
	page->state = CSF_ONCPU;
	return 0;
}

static void *vfork_first(void *unused)
{
	struct csf_thread *own = fake_thread_self(30), *child = fake_thread_self(31);
	/* A compiler does not see that the child's stores are for its parent. */
	static volatile uint32_t tid;
	static volatile int err;
	struct csf_snap s;
	pid_t pid;

	(void)unused;
	pid = vfork();
	if (!pid) {
		err = snap_errno(&s);
		tid = s.p.tid;
		_exit(0);
	}
	CHECK(fake_wait(pid) == 0 && !err, "the child could not: errno %d", err);
	CHECK(tid == 31, "the child found tid %u", tid);
	/* Our own page again; the child's is of a dead thread. */
	child->hdr.flags |= CSF_F_DEAD;
	munmap(own, PAGE);
	own = fake_thread_self(32);
	CHECK(!snap_errno(&s) && s.p.tid == 32, "errno %d, tid %u", errno, s.p.tid);
	munmap(own, PAGE);
	munmap(child, PAGE);
	return NULL;
}

static void t_shared_memory(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	struct csf_snap s;
	static int err;
	pid_t pid;

	TEST("vfork: the child finds its parent's page, and knows: ESRCH") {
		CHECK(!snap_errno(&s), "errno %d", errno);
		pid = vfork();
		if (!pid) {
			clone_child(&err);
			_exit(0);
		}
		CHECK(fake_wait(pid) == 0 && err == ESRCH, "errno %d", err);
		CHECK(!snap_errno(&s) && s.p.tid == 7, "the parent lost its page");
	}
	TEST("clone: so does a CLONE_VM child without thread-local storage of its own") {
		err = 0;
		pid = clone(clone_child, stack + sizeof(stack), CLONE_VM | SIGCHLD, &err);
		CHECK(fake_wait(pid) == 0 && err == ESRCH, "errno %d", err);
		CHECK(!snap_errno(&s) && s.p.tid == 7, "the parent lost its page");
	}
	TEST("vfork: a child that is the first to call leaves the parent no dead page") {
		hide();
		in_thread(vfork_first, NULL);
		restore();
	}
}

int main(void)
{
	struct csf_snap s;

	fake_mount();
	page = fake_thread_self(7);
	if (snap_errno(&s))
		fake_die("no snapshot");
	t_fork();
	t_shared_memory();
	fake_cleanup();
	return t_done("t_reader_fork");
}
