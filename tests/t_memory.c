// SPDX-License-Identifier: GPL-2.0
// This test checks who pays for the pages, what happens without memory, and that nothing leaks.
#include "t_csf.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/resource.h>

#define ROOT  "/sys/fs/cgroup"
#define GROUP ROOT "/t_memory"
#define STACK (64 << 10)

enum { NR_CREW = 512 };

static long refs0;
static long page;

/*
 * Threads that open their file one after the other, when told to, and end together. Files, not
 * mappings: a mapping costs memory of its own, for which the kernel would ask the OOM killer.
 */
struct crew {
	int nr, opened, err; /* how many have a file, and why the next has none */
	int fds[NR_CREW];
	pthread_t threads[NR_CREW];
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int may; /* how many may open */
	bool end;
};

static struct crew crew = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static void *crew_member(void *arg)
{
	int i = (int)(intptr_t)arg, fd;

	pthread_mutex_lock(&crew.lock);
	while (crew.may <= i && !crew.end)
		pthread_cond_wait(&crew.cond, &crew.lock);
	if (!crew.end) {
		fd = open(T_THREAD, O_RDONLY);
		if (fd >= 0)
			crew.fds[crew.opened++] = fd;
		else
			crew.err = errno;
		pthread_cond_broadcast(&crew.cond);
	}
	while (!crew.end)
		pthread_cond_wait(&crew.cond, &crew.lock);
	pthread_mutex_unlock(&crew.lock);
	return NULL;
}

static bool crew_start(void)
{
	pthread_attr_t attr;

	crew.opened = crew.may = 0;
	crew.end = false;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	while (crew.nr < NR_CREW && !pthread_create(&crew.threads[crew.nr], &attr, crew_member,
						    (void *)(intptr_t)crew.nr))
		crew.nr++;
	return CHECK(crew.nr == NR_CREW, "only %d threads", crew.nr);
}

/* Let the next member open. Returns whether it could, and sets crew.err if not. */
static bool crew_open(void)
{
	int done = crew.opened;

	if (crew.may == crew.nr)
		return false;
	pthread_mutex_lock(&crew.lock);
	crew.err = 0;
	crew.may++;
	pthread_cond_broadcast(&crew.cond);
	while (crew.opened == done && !crew.err)
		pthread_cond_wait(&crew.cond, &crew.lock);
	pthread_mutex_unlock(&crew.lock);
	return !crew.err;
}

static void crew_close(void)
{
	while (crew.opened)
		close(crew.fds[--crew.opened]);
}

static void crew_end(void)
{
	pthread_mutex_lock(&crew.lock);
	crew.end = true;
	pthread_cond_broadcast(&crew.cond);
	pthread_mutex_unlock(&crew.lock);
	while (crew.nr)
		pthread_join(crew.threads[--crew.nr], NULL);
}

static int join_group(const char *dir)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	return t_write_file(path, "0");
}

/* Kernel memory charged to the group, in pages. */
static long kernel_pages(void)
{
	return (long)(t_read_key(GROUP "/memory.stat", "kernel ") / page);
}

/* The kernel brings the statistics up to date every 2 s, and frees much with a delay. */
static long settled_pages(void)
{
	t_sleep_ns(2500000000);
	return kernel_pages();
}

static bool group_setup(void)
{
	int ret = t_write_file(ROOT "/cgroup.subtree_control", "+memory");

	return CHECK(!ret, "no memory controller: %s", strerror(-ret)) &&
	       CHECK(!mkdir(GROUP, 0755), "mkdir: %m") &&
	       CHECK(!(join_group(GROUP)), "cannot join the group") &&
	       CHECK(!t_write_file("/proc/self/oom_score_adj", "-1000"), "no oom_score_adj");
}

static void test_charge(void)
{
	long before = 0, threads, opened, closed;

	TEST("a page is charged to the memory cgroup of its opener") {
		crew_start(); /* once for nothing: much is kept for the next threads */
		crew_end();
		before = settled_pages();
		crew_start();
		threads = settled_pages();
		while (crew_open())
			;
		CHECK(crew.opened == NR_CREW, "%d opened: %s", crew.opened, strerror(crew.err));
		/* The page, and some of one for the object and the file. */
		opened = settled_pages();
		CHECK(opened - threads >= NR_CREW && opened - threads < 2 * NR_CREW,
		      "%ld pages for %d threads", opened - threads, NR_CREW);
		CHECK(t_refs() == refs0 + 2 * NR_CREW, "%ld references", t_refs() - refs0);
	}
	TEST("and no longer when its thread has ended and its file is closed") {
		crew_end();
		opened = settled_pages();
		CHECK(opened - before >= NR_CREW && opened - before < 2 * NR_CREW,
		      "%ld pages while the files are open", opened - before);
		crew_close();
		CHECK(T_UNTIL(t_refs() == refs0), "%ld references", t_refs() - refs0);
		closed = settled_pages();
		CHECK(closed - before < NR_CREW / 4, "%ld pages after", closed - before);
	}
}

/*
 * Opening takes memory for the file before the module is asked, and for that the kernel would call the
 * OOM killer. So let go of some files of the same kind before each attempt: what they cost stays in this
 * CPU's stock. The grace period is for files that are freed after one.
 */
static bool crew_open_at_limit(void)
{
	static int spare[1200], nr;

	if (!nr)
		while (nr < 1200)
			spare[nr++] = open("/dev/null", O_RDONLY);
	for (int i = 0; i < 2 && nr > 1; i++)
		close(spare[--nr]);
	syscall(SYS_membarrier, 1 /* MEMBARRIER_CMD_GLOBAL */, 0, 0);
	t_sleep_ns(1000000);
	return crew_open();
}

static void test_limit(void)
{
	enum { MORE = 32 };
	int limit = open(GROUP "/memory.max", O_WRONLY | O_CLOEXEC), failed = 0, enomem = 0, len;
	char num[32];

	TEST("at the limit of the memory cgroup open says ENOMEM") {
		CHECK(t_pin(0), "cannot run on CPU 0 alone");
		crew_start();
		CHECK(crew_open_at_limit(), "%s", strerror(crew.err));
		len = snprintf(num, sizeof(num), "%lld",
			       t_read_num(GROUP "/memory.current") + MORE * page);
		CHECK(write(limit, num, (size_t)len) == len, "memory.max: %m");
		for (int i = 0; i < NR_CREW / 2; i++)
			if (!crew_open_at_limit()) {
				failed++;
				enomem += crew.err == ENOMEM;
			}
		CHECK(write(limit, "max", 3) == 3, "memory.max: %m");
		/* A CPU may have charged 64 pages in advance, and the spare files give some back. */
		CHECK(failed > NR_CREW / 8, "only %d failed", failed);
		CHECK(enomem == failed, "%d failed, %d of them with ENOMEM", failed, enomem);
		CHECK(T_UNTIL(t_refs() == refs0 + 2 * crew.opened), "%ld references for %d",
		      t_refs() - refs0, crew.opened);
		CHECK(t_read_key(GROUP "/memory.events", "oom_kill ") == 0, "something was killed");
	}
	TEST("and below it again it works, and nothing is left") {
		CHECK(crew_open(), "%s", strerror(crew.err));
		crew_end();
		crew_close();
		CHECK(T_UNTIL(t_refs() == refs0), "%ld references", t_refs() - refs0);
	}
	close(limit);
}

/* One thread's life, in one of the ways to leave. */
enum way { CLOSES, LEAVES_OPEN, LEAVES_MAPPED, IS_PARKED, NR_WAYS };

struct life {
	enum way way;
	int fd;
	const struct csf_thread *pg;
	pthread_barrier_t bar;
};

static void *live(void *arg)
{
	struct life *l = arg;

	l->fd = open(T_THREAD, O_RDONLY);
	if (l->fd < 0)
		return "cannot open";
	if (l->way == LEAVES_MAPPED) {
		l->pg = t_map_fd(l->fd);
		if (!l->pg || l->pg->tid != t_tid())
			return "cannot map";
	} else if (l->way == IS_PARKED) {
		pthread_barrier_wait(&l->bar);
		pthread_barrier_wait(&l->bar);
	}
	if (l->way == CLOSES || l->way == LEAVES_MAPPED)
		close(l->fd);
	return NULL;
}

/* Returns its complaint, or NULL. */
static const char *cycle(enum way way)
{
	struct life l = {.way = way};
	pthread_t thread;
	void *why;

	pthread_barrier_init(&l.bar, NULL, 2);
	if (pthread_create(&thread, NULL, live, &l))
		return "no thread";
	if (way == IS_PARKED) {
		pthread_barrier_wait(&l.bar);
		close(l.fd);
		pthread_barrier_wait(&l.bar);
	}
	pthread_join(thread, &why);
	if (way == LEAVES_OPEN)
		close(l.fd);
	else if (way == LEAVES_MAPPED)
		t_unmap(l.pg);
	pthread_barrier_destroy(&l.bar);
	return why;
}

/* Free memory in kB, with the pages that CPUs keep at hand: since 6.7 that can be 27 MB a CPU. */
static long available_kb(void)
{
	long kb = (long)t_read_key("/proc/meminfo", "MemAvailable:"), pages;
	FILE *f = fopen("/proc/zoneinfo", "r");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " count: %ld", &pages) == 1)
			kb += pages * page / 1024;
	if (f)
		fclose(f);
	return kb;
}

static void test_cycles(int nr)
{
	long pages, objs, free_kb;
	const char *why = NULL;

	TEST("%d threads come and go, and the memory is as before", nr) {
		for (int i = 0; i < 50 * NR_WAYS; i++)
			cycle(i % NR_WAYS);
		CHECK(T_UNTIL(t_refs() == refs0), "%ld references", t_refs() - refs0);
		pages = settled_pages();
		objs = t_read_key("/proc/slabinfo", "csf_thread ");
		free_kb = available_kb();
		for (int i = 0; i < nr && !why; i++)
			why = cycle(i % NR_WAYS);
		CHECK(!why, "%s", why);
		CHECK(T_UNTIL(t_refs() == refs0), "%ld references", t_refs() - refs0);
		CHECK(T_UNTIL(kernel_pages() < pages + 100), "%ld pages, before %ld",
		      kernel_pages(), pages);
		/* The cache may have been merged with another of the same size. */
		CHECK(objs < 0 || t_read_key("/proc/slabinfo", "csf_thread ") < objs + 100,
		      "%lld objects, before %ld", t_read_key("/proc/slabinfo", "csf_thread "),
		      objs);
		CHECK(T_UNTIL(available_kb() > free_kb - nr), "%ld kB available, before %ld",
		      available_kb(), free_kb);
	}
}

/* Threads that are all there at once. */
struct crowd {
	struct {
		const struct csf_thread *pg;
		pthread_t thread;
		uint32_t tid;
	} * each;
	atomic_int here;
	atomic_int gate; /* a futex: they stay until it is 1 */
};

static struct crowd crowd;

static void *stay(void *arg)
{
	intptr_t i = (intptr_t)arg;

	crowd.each[i].tid = t_tid();
	crowd.each[i].pg = t_map();
	atomic_fetch_add(&crowd.here, 1);
	while (!atomic_load(&crowd.gate))
		syscall(SYS_futex, &crowd.gate, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	return NULL;
}

static int crowd_start(int nr)
{
	pthread_attr_t attr;
	int i;

	crowd.each = calloc((size_t)nr, sizeof(*crowd.each));
	t_write_file("/proc/sys/kernel/threads-max", "30000");
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	for (i = 0; i < nr; i++)
		if (pthread_create(&crowd.each[i].thread, &attr, stay, (void *)(intptr_t)i))
			break;
	return i;
}

static void test_crowd(int nr)
{
	int i, started, unmapped = 0, foreign = 0, wrong = 0, stopped = 0;
	struct csf_thread a;

	TEST("%d threads have a page each at the same time", nr) {
		started = crowd_start(nr);
		CHECK(started == nr, "%d threads", started);
		CHECK(T_UNTIL(atomic_load(&crowd.here) == started), "only %d run", crowd.here);
		for (i = 0; i < started; i++) {
			if (!crowd.each[i].pg) {
				unmapped++;
				continue;
			}
			t_copy(&a, crowd.each[i].pg);
			foreign += a.tid != crowd.each[i].tid;
			wrong += t_sum(&a) != a.last_switch_tsc - a.start_tsc;
			stopped += !!(a.hdr.flags & (CSF_F_PARKED | CSF_F_DEAD));
		}
		CHECK(!unmapped, "%d have none", unmapped);
		CHECK(!foreign, "%d have another's", foreign);
		CHECK(!wrong, "%d do not add up", wrong);
		CHECK(!stopped, "%d are parked or dead", stopped);
		CHECK(t_refs() == refs0 + 2 * nr, "%ld references", t_refs() - refs0);
		atomic_store(&crowd.gate, 1);
		syscall(SYS_futex, &crowd.gate, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
		for (i = 0; i < started; i++) {
			pthread_join(crowd.each[i].thread, NULL);
			if (crowd.each[i].pg)
				t_unmap(crowd.each[i].pg);
		}
		free(crowd.each);
		CHECK(T_UNTIL(t_refs() == refs0), "%ld references", t_refs() - refs0);
	}
}

static int open_in_group(int sock)
{
	t_told(sock);
	return 0;
}

static void test_group_gone(void)
{
	struct t_peer peer;

	TEST("a page outlives the group that it was charged to") {
		peer = t_peer_start(open_in_group);
		CHECK(!join_group(ROOT), "cannot leave the group");
		t_tell(peer.sock);
		CHECK(!t_wait(peer.pid), "the owner failed");
		CHECK(T_UNTIL(!rmdir(GROUP)), "rmdir: %m");
		CHECK(t_flags(peer.pg) & CSF_F_DEAD, "flags 0x%x", t_flags(peer.pg));
		CHECK(peer.pg->tid == (uint32_t)peer.pid, "tid %u", peer.pg->tid);
		close(peer.sock);
		t_unmap(peer.pg);
		CHECK(T_UNTIL(t_refs() == refs0), "%ld references", t_refs() - refs0);
	}
}

int main(void)
{
	struct rlimit lim = {4096, 4096};
	bool good = false;

	setrlimit(RLIMIT_NOFILE, &lim);
	refs0 = t_refs();
	page = sysconf(_SC_PAGESIZE);
	TEST("a memory cgroup")
		good = group_setup();
	if (good) {
		test_charge();
		test_limit();
		test_cycles(10000);
		test_crowd(10000);
		test_group_gone();
	}
	return t_done("t_memory");
}
