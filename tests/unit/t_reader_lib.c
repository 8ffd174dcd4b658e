/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This test checks that shared libraries may use the reader beside each other, be closed while
 * threads live that used it, and be in use while the process exits.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>

#include "tests/t.h"
#include "fake_page.h"

struct plugin {
	void *handle;
	int (*snap)(struct csf_snap *s);
	int (*other_snap)(struct csf_snap *s); /* from its second translation unit */
	int (*cpu_snap)(struct csf_cpu_snap *s);
};

static char here[PATH_MAX]; /* where the libraries are */

/* which: a or b, two builds of one source. */
static void *load(char which, int flags)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/reader_plugin_%c.so", here, which);
	/* Global: what is not hidden is found first in the first. */
	return dlopen(path, RTLD_NOW | RTLD_GLOBAL | flags);
}

static void open_plugin(struct plugin *p, char which)
{
	p->handle = load(which, 0);
	if (!p->handle) {
		printf("# %s\n", dlerror());
		_exit(1);
	}
	*(void **)&p->snap = dlsym(p->handle, "plugin_snap");
	*(void **)&p->other_snap = dlsym(p->handle, "plugin_other_snap");
	*(void **)&p->cpu_snap = dlsym(p->handle, "plugin_cpu_snap");
}

static void t_two(void)
{
	struct plugin a, b;
	struct csf_snap s;
	struct csf_cpu_snap c;

	TEST("lib: a program and two libraries map one page each, in one thread") {
		open_plugin(&a, 'a');
		open_plugin(&b, 'b');
		CHECK(!csf_thread_snap(&s) && s.p.tid == 7, "the program: errno %d", errno);
		CHECK(!a.snap(&s) && s.p.tid == 7 && s.extrapolated, "library a: errno %d", errno);
		CHECK(!b.snap(&s) && s.p.tid == 7, "library b: errno %d", errno);
		CHECK(fake_maps("thread-self") == 1 + 3, "%d mappings", fake_maps("thread-self"));
		CHECK(!a.other_snap(&s), "library a's second unit: errno %d", errno);
		CHECK(fake_maps("thread-self") == 1 + 3, "a's two units do not share");
		CHECK(!a.cpu_snap(&c) && fake_maps("cpu") == 1 + 1, "the cpu page: errno %d",
		      errno);
	}
	TEST("lib: closing one unmaps its pages and no other's") {
		CHECK(!dlclose(a.handle), "%s", dlerror());
		CHECK(fake_maps("thread-self") == 1 + 2, "%d mappings", fake_maps("thread-self"));
		CHECK(fake_maps("cpu") == 1, "the cpu page is still mapped");
		CHECK(!b.snap(&s) && !csf_thread_snap(&s), "errno %d", errno);
		dlclose(b.handle);
		CHECK(fake_maps("thread-self") == 1 + 1, "%d mappings", fake_maps("thread-self"));
	}
}

static struct plugin shared;
static sem_t used, closed;

static void *outlive(void *unused)
{
	struct csf_snap s;

	(void)unused;
	CHECK(!shared.snap(&s), "errno %d", errno);
	sem_post(&used);
	sem_wait(&closed);
	return NULL;
}

/* In pages. */
static long address_space(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long n = -1;

	if (!f || fscanf(f, "%ld", &n) != 1)
		fake_die("/proc/self/statm");
	fclose(f);
	return n;
}

static void t_close(void)
{
	struct csf_snap s;
	pthread_t t[20];
	unsigned int i, bad = 0;
	long before;

	TEST("lib: threads that used a library end after it was closed") {
		sem_init(&used, 0, 0);
		sem_init(&closed, 0, 0);
		open_plugin(&shared, 'a');
		for (i = 0; i < 20; i++)
			if (pthread_create(&t[i], NULL, outlive, NULL))
				fake_die("pthread_create");
		for (i = 0; i < 20; i++)
			sem_wait(&used);
		CHECK(fake_maps("thread-self") == 2 + 20, "%d mappings", fake_maps("thread-self"));
		CHECK(!dlclose(shared.handle), "%s", dlerror());
		CHECK(!load('a', RTLD_NOLOAD), "it is still loaded");
		CHECK(fake_maps("thread-self") == 2, "%d mappings", fake_maps("thread-self"));
		for (i = 0; i < 20; i++)
			sem_post(&closed);
		for (i = 0; i < 20; i++)
			pthread_join(t[i], NULL);
	}
	TEST("lib: 2,000 times opened, used and closed") {
		before = address_space();
		/* There are 1,024 pthread keys. */
		for (i = 0; i < 2000; i++) {
			open_plugin(&shared, i % 2 ? 'a' : 'b');
			bad += shared.snap(&s) != 0;
			bad += dlclose(shared.handle) != 0;
		}
		CHECK(!bad, "%u failures", bad);
		CHECK(fake_maps("thread-self") == 2, "%d mappings", fake_maps("thread-self"));
		CHECK(address_space() - before < 1000, "%ld pages more", address_space() - before);
	}
}

static void *use_for_ever(void *started)
{
	struct csf_snap s;

	for (;;) {
		if (shared.snap(&s))
			_exit(3);
		if (started)
			sem_post(started);
		started = NULL;
	}
	return NULL;
}

static void t_exit(void)
{
	pthread_t t;
	pid_t pid;
	int ret;

	TEST("lib: exit() leaves the pages to the threads that still run") {
		setenv("PLUGIN_LINGER", "100000", 1);
		fflush(stdout);
		pid = fork();
		if (!pid) {
			sem_init(&used, 0, 0);
			open_plugin(&shared, 'a');
			if (pthread_create(&t, NULL, use_for_ever, &used))
				_exit(2);
			sem_wait(&used);
			exit(0);
		}
		ret = fake_wait(pid);
		CHECK(!ret, "the child ended with %d", ret);
		unsetenv("PLUGIN_LINGER");
	}
}

int main(void)
{
	struct csf_cpu *cpu;
	ssize_t n;
	char *end;

	n = readlink("/proc/self/exe", here, sizeof(here) - 1);
	here[n < 0 ? 0 : n] = '\0';
	end = strrchr(here, '/');
	if (end)
		*end = '\0';
	fake_mount();
	fake_thread_self(7);
	cpu = (struct csf_cpu *)fake_file("cpu", PAGE);
	fake_hdr(&cpu->hdr, CSF_KIND_CPU, PAGE);
	cpu->rows_off = sizeof(*cpu);
	cpu->row_size = sizeof(struct csf_cpu_row);
	cpu->nr_rows = 2;
	((struct csf_cpu_row *)(cpu + 1) + 1)->flags = CSF_CPU_POSSIBLE;
	t_two();
	t_close();
	t_exit();
	fake_cleanup();
	return t_done("t_reader_lib");
}
