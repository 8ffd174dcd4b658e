/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This test checks that a signal handler may be the first to take a snapshot, that it allocates
 * nothing, and that the mappings of threads without a hook at their end are swept.
 */
#include <signal.h>
#include <sys/time.h>

#include "fake_self.h"

/* Allocations of this process: a signal handler must not make one. */
static unsigned long mallocs;
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);

void *malloc(size_t n)
{
	__atomic_add_fetch(&mallocs, 1, __ATOMIC_RELAXED);
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	__atomic_add_fetch(&mallocs, 1, __ATOMIC_RELAXED);
	return __libc_calloc(n, size);
}

static volatile int handled, handler_err;
static unsigned long handler_mallocs;

static void on_signal(int sig)
{
	unsigned long before = __atomic_load_n(&mallocs, __ATOMIC_RELAXED);
	struct csf_snap s;
	int err = errno;

	(void)sig;
	errno = 55;
	if (csf_thread_snap(&s))
		handler_err = errno;
	else if (errno != 55)
		handler_err = -1;
	handler_mallocs += __atomic_load_n(&mallocs, __ATOMIC_RELAXED) - before;
	handled++;
	errno = err;
}

static void *raise_thread(void *unused)
{
	(void)unused;
	raise(SIGUSR1);
	return NULL;
}

static void t_signal(void)
{
	struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	int i, err, bad = 0, before = fake_maps("thread-self");
	struct csf_thread *own;

	signal(SIGUSR1, on_signal);
	signal(SIGALRM, on_signal);
	TEST("signal: first use in a handler maps the page, without malloc, and leaves errno alone") {
		in_thread(raise_thread, NULL);
		CHECK(handled == 1 && !handler_err, "handler's errno %d", handler_err);
		CHECK(!handler_mallocs, "%lu allocations", handler_mallocs);
		CHECK(fake_maps("thread-self") == before, "the thread left its mapping behind");
	}
	TEST("signal: handlers that interrupt first use, and the end, of 2,000 threads") {
		hide();
		own = fake_thread_self(50);
		setitimer(ITIMER_REAL, &often, NULL);
		for (i = 0; i < 2000; i++) {
			in_thread(snap_thread, &err);
			bad += err != 0;
		}
		setitimer(ITIMER_REAL, &never, NULL);
		CHECK(!bad && !handler_err, "%d failed, handler's errno %d", bad, handler_err);
		CHECK(handled > 100, "only %d signals", handled);
		/* Those mapped by a handler after the thread's own end are for the sweep. */
		own->hdr.flags |= CSF_F_DEAD;
		csf_sweep_(csf_proc_v1_.first);
		CHECK(fake_maps("thread-self") == 1, "%d mappings left",
		      fake_maps("thread-self") - 1);
		munmap(own, PAGE);
		restore();
	}
}

/* A child whose pthread keys are so many that a value needs memory: the sweep takes over. */
static int many_keys(void)
{
	pthread_key_t key;
	struct csf_thread *dead;
	struct csf_snap s;
	int i, err, maps;

	for (i = 0; i < 40; i++)
		pthread_key_create(&key, NULL);
	dead = fake_thread_self(40);
	csf_proc_v1_.key = 0; /* this process, too, shall find no low key */
	handled = handler_err = 0;
	handler_mallocs = 0;
	in_thread(raise_thread, NULL);
	if (!handled || handler_err || handler_mallocs)
		return 1;
	for (i = 0; i < 100; i++)
		in_thread(snap_thread, &err);
	maps = fake_maps("thread-self");
	if (maps != 2 + 101) /* the test's two to write */
		return 2;
	dead->hdr.flags |= CSF_F_DEAD;
	fake_thread_self(41);
	for (i = 0; i < 253; i++) /* as many as a chunk has slots */
		in_thread(snap_thread, &err);
	if (fake_maps("thread-self") >= 2 + 1 + 101 + 253)
		return 3;
	return snap_errno(&s) ? 4 : 0;
}

static void t_keys(void)
{
	pid_t pid;
	int ret;

	TEST("exit: without a pthread key below 32 no malloc, and the dead are swept") {
		fflush(stdout);
		pid = fork();
		if (!pid)
			_exit(many_keys());
		ret = fake_wait(pid);
		CHECK(!ret, "the child says %d", ret);
	}
}

int main(void)
{
	struct csf_snap s;

	fake_mount();
	page = fake_thread_self(7);
	if (snap_errno(&s))
		fake_die("no snapshot");
	t_signal();
	t_keys();
	fake_cleanup();
	return t_done("t_reader_signal");
}
