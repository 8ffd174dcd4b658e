/* SPDX-License-Identifier: MIT */
/*
 * The engine that watches from the kernel: bpf/run.bpf.c counts, this file loads it, marks the first
 * threads and reads what it tells. Nothing is pinned: the programs go when we go, however that is.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.skel.h"

#include "lib/bpf_may.h"
#include "lib/bpf_tree.h"
#include "lib/cgroup.h"
#include "lib/child.h"
#include "lib/procfs.h"
#include "lib/rts/rts.h"
#include "lib/watch_signals.h"

#define POLL_MS		50 /* how late an event may be noticed */
#define WAKE_BYTES	(1 << 20)
#define CALIBRATE_CALLS 2000
#define CALIBRATE_TURNS 5
#define ROWS_PER_CPU	4096 /* of 3 kB */
#define MIN_ROWS	8192
#define MAX_ROWS	32768

struct watch {
	const struct run_opts *opts;
	struct bpf_tree tree;
	struct child child;
	struct run_bpf *bpf;
	struct ring_buffer *ring;
	struct run_task *threads; /* the map, as memory */
	uint64_t plain_ns;	  /* CALIBRATE_CALLS calls before anything was attached */
	uint64_t lost_seen;
	bool preempted; /* the kernel preempts programs at raw tracepoints */
	bool sees_kvm;
	bool let_go;
};

static struct watch w;

/* What the kernel said to bpf(), for a person. */
static void explain(int err, char *why, size_t len)
{
	char text[128] = "";
	struct proc_status st = {0};
	FILE *f = fopen("/sys/kernel/security/lockdown", "re");

	if (f && !fgets(text, sizeof(text), f))
		text[0] = '\0';
	if (f)
		fclose(f);
	procfs_status(getpid(), &st);
	/* What may not be called is unknown then: EINVAL. */
	if ((err == EPERM || err == EINVAL) && strstr(text, "[confidentiality]"))
		snprintf(why, len, "the kernel is locked down (confidentiality)");
	else if ((err == EPERM || err == ENOSYS || err == EACCES) && st.seccomp == 2)
		snprintf(why, len, "a seccomp filter forbids bpf(): %s", strerror(err));
	else
		snprintf(why, len, "the kernel does not load its programs: %s", strerror(err));
}

static uint64_t measure(void)
{
	uint64_t best = UINT64_MAX;

	for (int turn = 0; turn < CALIBRATE_TURNS; turn++) {
		uint64_t ns = now_ns();

		for (int i = 0; i < CALIBRATE_CALLS; i++)
			syscall(SYS_getppid);
		ns = now_ns() - ns;
		best = ns < best ? ns : best;
	}
	return best;
}

/* A map that may be mapped, as memory; NULL with errno. */
static void *map_memory(const struct bpf_map *map)
{
	size_t len = (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
	void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	return mem == MAP_FAILED ? NULL : mem;
}

static void unmap(const struct bpf_map *map, void *mem)
{
	if (mem)
		munmap(mem, (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map));
}

static void close_all(void)
{
	if (w.bpf) {
		unmap(w.bpf->maps.rows, w.tree.rows);
		unmap(w.bpf->maps.threads, w.threads);
	}
	ring_buffer__free(w.ring);
	run_bpf__destroy(w.bpf);
	w.ring = NULL;
	w.bpf = NULL;
}

static int on_message(void *ctx, void *data, size_t size)
{
	(void)ctx;
	(void)size;
	bpf_tree_event(&w.tree, data);
	return 0;
}

/* A place for a thread, as the programs take theirs; 0: all are in use. */
static uint32_t place_take(void)
{
	uint32_t place;

	if (!bpf_map_lookup_and_delete_elem(bpf_map__fd(w.bpf->maps.free_threads), NULL, &place))
		return place;
	place = __sync_fetch_and_add(&w.bpf->data->next_thread, 1);
	return place < RUN_THREADS ? place : 0;
}

static void place_give(uint32_t place)
{
	w.threads[place] = (struct run_task){0};
	bpf_map_update_elem(bpf_map__fd(w.bpf->maps.free_threads), NULL, &place, BPF_ANY);
}

/* Watch a process's leader from now on. Returns its place, -EEXIST if it is watched already, -errno. */
static int mark(pid_t pid, const struct run_task *as)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0), err = 0;
	struct run_mark mark = {.thread = fd < 0 ? 0 : place_take()};

	if (fd < 0)
		return -errno;
	if (!mark.thread) {
		close(fd);
		return -ENOSPC;
	}
	w.threads[mark.thread] = *as;
	if (bpf_map_update_elem(bpf_map__fd(w.bpf->maps.marks), &fd, &mark, BPF_NOEXIST)) {
		err = -errno;
		place_give(mark.thread);
	}
	close(fd);
	return err ? err : (int)mark.thread;
}

static void unmark_self(int place)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd >= 0) {
		bpf_map_delete_elem(bpf_map__fd(w.bpf->maps.marks), &fd);
		close(fd);
	}
	place_give((uint32_t)place);
}

/* Count a number of calls of ours: what a call costs, and in which pid namespace we are. */
static int calibrate(void)
{
	struct run_task t = {.special = RUN_CALIBRATES, .tid = getpid()};
	struct rts_engine *e = &w.tree.tree.engine;
	int place = mark(getpid(), &t);
	uint64_t ns;

	if (place < 0)
		return place;
	ns = measure();
	unmark_self(place);
	ring_buffer__consume(w.ring);
	bpf_tree_drop_own(&w.tree);
	e->has_cost = true;
	e->cost_ns = ns > w.plain_ns ? (ns - w.plain_ns) / CALIBRATE_CALLS : 0;
	return 0;
}

/* Load the programs of one of the two kinds that bpf/run.bpf.c has, and those that are of no kind. */
static void choose_programs(const char *kind)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, w.bpf->obj)
	{
		const char *name = bpf_program__name(prog);

		if (strncmp(name, "raw_", 4) && strncmp(name, "perf_", 5))
			continue;
		bpf_program__set_autoload(prog, !strncmp(name, kind, strlen(kind)));
		bpf_program__set_autoattach(prog, !strstr(name, "_kvm_"));
	}
}

/* Tracepoints of KVM are there when its module is. */
static bool attach_kvm(void)
{
	for (int i = 0; i < w.bpf->skeleton->prog_cnt; i++) {
		struct bpf_prog_skeleton *s = &w.bpf->skeleton->progs[i];

		if (!strstr(s->name, "_kvm_") || !bpf_program__autoload(*s->prog))
			continue;
		*s->link = bpf_program__attach(*s->prog);
		if (!*s->link)
			return false;
	}
	return true;
}

/* As many rows as the machine may have use for: they are memory of the kernel, in use or not. */
static int size_maps(void)
{
	int cpus = libbpf_num_possible_cpus();
	uint32_t n = cpus < 0 ? MAX_ROWS : (uint32_t)cpus * ROWS_PER_CPU;
	int ret;

	n = n < MIN_ROWS ? MIN_ROWS : n > MAX_ROWS ? MAX_ROWS : n;
	w.bpf->rodata->nr_rows = n;
	ret = bpf_map__set_max_entries(w.bpf->maps.rows, n);
	if (!ret)
		ret = bpf_map__set_max_entries(w.bpf->maps.row_index, n);
	if (!ret)
		ret = bpf_map__set_max_entries(w.bpf->maps.free_rows, n);
	return ret;
}

/* Where perf's way to attach finds the numbers of tracepoints. */
static bool has_tracefs(void)
{
	return !access("/sys/kernel/tracing/events", F_OK) ||
	       !access("/sys/kernel/debug/tracing/events", F_OK);
}

static int load(const struct run_opts *o)
{
	int ret;

	w.bpf = run_bpf__open();
	if (!w.bpf)
		return -errno;
	choose_programs(w.preempted ? "perf_" : "raw_");
	bpf_program__set_autoload(w.bpf->progs.cgroup_attach_task, o->cgroup != NULL);
	w.bpf->rodata->of_cgroup = o->cgroup != NULL;
	ret = size_maps();
	if (ret)
		return ret;
	w.bpf->rodata->exec_nr = SYS_execve;
	w.bpf->rodata->execveat_nr = SYS_execveat;
	w.bpf->rodata->ioctl_nr = SYS_ioctl;
	w.bpf->rodata->memfd_nr = SYS_memfd_create;
	w.bpf->rodata->mmap_nr = SYS_mmap;
	w.bpf->rodata->exit_group_nr = SYS_exit_group;
	memcpy((char *)w.bpf->rodata->page_name, RTS_COUNTERS_MEMFD, sizeof(RTS_COUNTERS_MEMFD));
	w.bpf->rodata->wake_bytes = WAKE_BYTES;
	ret = run_bpf__load(w.bpf);
	if (ret)
		return ret;
	w.tree.rows = map_memory(w.bpf->maps.rows);
	w.threads = w.tree.rows ? map_memory(w.bpf->maps.threads) : NULL;
	if (!w.threads)
		return -errno;
	w.tree.row_index = bpf_map__fd(w.bpf->maps.row_index);
	w.tree.free_rows = bpf_map__fd(w.bpf->maps.free_rows);
	w.tree.pages = bpf_map__fd(w.bpf->maps.pages);
	w.plain_ns = measure();
	ret = run_bpf__attach(w.bpf);
	if (ret)
		return ret;
	w.sees_kvm = attach_kvm();
	w.ring = ring_buffer__new(bpf_map__fd(w.bpf->maps.events), on_message, NULL, NULL);
	if (!w.ring)
		return -errno;
	w.tree.threads = bpf_link__fd(w.bpf->links.list_threads);
	return calibrate();
}

static int prepare(const struct run_opts *o, char *why, size_t len)
{
	int ret;

	if (o->kvm_stats) {
		snprintf(why, len, "--kvm-stats needs a watcher that can stop the program");
		return -EINVAL;
	}
	if (!bpf_may_load()) {
		snprintf(why, len, "it needs CAP_BPF and CAP_PERFMON, as root has them");
		return -EPERM;
	}
	if (access("/sys/kernel/btf/vmlinux", R_OK)) {
		snprintf(why, len, "this kernel has no BTF (/sys/kernel/btf/vmlinux)");
		return -ENOENT;
	}
	bpf_be_quiet();
	w = (struct watch){.opts = o, .child = CHILD_INIT, .preempted = bpf_is_preempted()};
	if (w.preempted && !has_tracefs()) {
		snprintf(why, len, "tracefs is not mounted (/sys/kernel/tracing)");
		return -ENOENT;
	}
	ret = load(o);
	if (ret) {
		explain(-ret, why, len);
		close_all();
	}
	return ret;
}

/* The child, which waits, is marked; it counts from its execve on. */
static int start(struct run_sink *sink)
{
	struct run_task t = {.life = 1, .root = 1, .special = RUN_ARMED, .first_exec = 1};
	struct rlimit files;
	pid_t pid;
	int ret;

	getrlimit(RLIMIT_NOFILE, &files);
	ret = child_fork(&w.child, w.opts, &files, sink, &pid);
	if (ret)
		return ret;
	t.tid = pid;
	w.tree.own_root = true;
	ret = mark(pid, &t);
	if (ret >= 0)
		ret = bpf_tree_root(&w.tree, pid);
	if (ret) {
		sink->warn(sink, "cannot watch pid %d: %s", pid, strerror(-ret));
		child_close(&w.child);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		return ret;
	}
	child_release(&w.child);
	return 0;
}

/* New threads found. Those that a marked one makes meanwhile have their mark already. */
static int adopt(void)
{
	struct run_thread buf[64];
	int fd = bpf_iter_create(bpf_link__fd(w.bpf->links.adopt_threads)), found = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, buf, sizeof(buf))) > 0 || (n < 0 && errno == EINTR))
		for (ssize_t i = 0; n > 0 && i < n / (ssize_t)sizeof(buf[0]); i++, found++)
			bpf_tree_adopt(&w.tree, buf[i].tid, buf[i].life);
	close(fd);
	return n < 0 ? -errno : found;
}

/* A process of the cgroup. A child of one that is watched is told by its fork, and has its mark. */
static int join(pid_t pid, void *found)
{
	struct run_task t = {.root = 1, .tid = pid, .adopting = 1};
	int ret;

	if (pid == getpid() || procfs_is_kthread(pid))
		return 0;
	t.life = __sync_add_and_fetch(&w.bpf->data->last_life, 1);
	ret = mark(pid, &t);
	if (ret < 0)
		return ret == -EEXIST || ret == -ESRCH ? 0 : ret;
	++*(int *)found;
	return bpf_tree_join(&w.tree, pid, t.life);
}

/* Mark who is in the cgroup, until nobody is found: a thread that has no mark yet may make another process. */
static int join_all(void)
{
	int found, ret;

	do {
		found = 0;
		w.tree.moved = false;
		ret = cgroup_each_process(w.opts->cgroup, join, &found);
		if (!ret)
			ret = adopt();
		found += ret;
	} while (ret >= 0 && found);
	return ret;
}

/* Some process has come to some cgroup: it may be ours, and it may have ended meanwhile. */
static void join_moved(void)
{
	join_all();
	ring_buffer__consume(w.ring);
	bpf_tree_resync(&w.tree);
}

static int attach_cgroup(struct run_sink *sink)
{
	const char *path = w.opts->cgroup;
	int ret;

	w.tree.tree.cgroup = path;
	w.tree.tree.start_ns = now_ns();
	w.tree.named = true;
	ret = join_all();
	if (ret < 0)
		sink->warn(sink, "cannot watch the cgroup %s: %s", path,
			   ret == -EOPNOTSUPP ? "it is a threaded one, expected its domain" :
						strerror(-ret));
	if (ret < 0)
		return -ESRCH;
	ring_buffer__consume(w.ring);
	bpf_tree_resync(&w.tree);
	return 0;
}

static int attach(struct run_sink *sink)
{
	pid_t pid = w.opts->attach;
	struct run_task t = {.life = 1, .root = 1, .tid = pid, .adopting = 1};
	char why[128];
	int ret;

	if (procfs_is_no_process(pid, why, sizeof(why))) {
		sink->warn(sink, "%s", why);
		return -ESRCH;
	}
	ret = mark(pid, &t);
	if (ret < 0) {
		sink->warn(sink, "pid %d cannot be watched: %s", pid, strerror(-ret));
		return ret;
	}
	ret = bpf_tree_root(&w.tree, pid);
	while (!ret) {
		int found = adopt();

		ret = found < 0 ? found : 0;
		if (!found)
			break;
	}
	if (!ret && !bpf_tree_sees_root(&w.tree) && !procfs_is_no_process(pid, why, sizeof(why))) {
		sink->warn(sink,
			   "pid %d cannot be watched: the kernel does not show it to BPF programs",
			   pid);
		return -ESRCH;
	}
	if (ret)
		sink->warn(sink, "cannot watch pid %d: %s", pid, strerror(-ret));
	/* One that was past its end already will not tell it. */
	ring_buffer__consume(w.ring);
	bpf_tree_resync(&w.tree);
	return ret;
}

static void on_signals(void)
{
	struct watch_news n = watch_take();
	struct bpf_tree *b = &w.tree;

	ring_buffer__consume(w.ring);
	/* Before its exec there is nothing to tell of the program. */
	if (n.snapshot && b->res->started)
		bpf_tree_snapshot(b, RTS_SIGNAL);
	if (n.interval && b->res->started)
		bpf_tree_snapshot(b, RTS_INTERVAL);
	if (!n.end)
		return;
	/* A program of ours gets it, unless the terminal has told it; it may want to end in peace. */
	if (w.opts->argv && !b->root_gone && !n.from_terminal)
		kill(b->tree.root, n.end);
	if (n.again || b->root_gone || !w.opts->argv) {
		b->res->interrupted = n.end;
		bpf_tree_let_go(b);
		w.let_go = true;
	}
}

/* Events that the kernel says it left out of a program. Calls left out are known from their other end. */
static uint64_t missed(void)
{
	const struct bpf_program *of[] = {
		w.bpf->progs.raw_fork,	    w.bpf->progs.raw_exec,
		w.bpf->progs.raw_exit,	    w.bpf->progs.raw_kvm_entry,
		w.bpf->progs.raw_kvm_exit,  w.bpf->progs.raw_kvm_userspace_exit,
		w.bpf->progs.perf_fork,	    w.bpf->progs.perf_exec,
		w.bpf->progs.perf_exit,	    w.bpf->progs.perf_kvm_entry,
		w.bpf->progs.perf_kvm_exit, w.bpf->progs.perf_kvm_userspace_exit,
	};
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct bpf_prog_info info = {0};
		uint32_t len = sizeof(info);

		if (bpf_program__fd(of[i]) >= 0 &&
		    !bpf_obj_get_info_by_fd(bpf_program__fd(of[i]), &info, &len))
			sum += info.recursion_misses;
	}
	return sum;
}

static void check_lost(void)
{
	uint64_t lost =
		w.bpf->bss->lost_events + w.bpf->bss->lost_forks + missed() + w.tree.pages_missed;
	struct tree *t = &w.tree.tree;

	if (lost == w.lost_seen)
		return;
	ring_buffer__consume(w.ring);
	t->sink->warn(t->sink, "%llu events were lost: records of processes are not complete",
		      (unsigned long long)(lost - w.lost_seen));
	t->calls.lost.records_dropped += lost - w.lost_seen;
	w.lost_seen = lost;
	bpf_tree_resync(&w.tree);
}

/* A cgroup is watched while it is there: somebody may come to it. */
static bool goes_on(void)
{
	return !w.let_go &&
	       (w.tree.tree.nr_tasks || (w.opts->cgroup && !access(w.opts->cgroup, F_OK)));
}

static void watch(void)
{
	while (goes_on()) {
		if (watch_pending)
			on_signals();
		else
			ring_buffer__poll(w.ring, POLL_MS);
		/* Most events wake nobody, and epoll sees only those that do. */
		ring_buffer__consume(w.ring);
		if (w.tree.moved)
			join_moved();
		check_lost();
	}
}

static int run(const struct run_opts *o, struct run_sink *sink, struct run_result *res)
{
	struct tree *t = &w.tree.tree;
	int ret;

	*res = (struct run_result){.wait_status = -1, .started = !o->argv};
	w.tree.res = res;
	t->sink = sink;
	t->engine.name = engine_bpf.name;
	t->engine.cannot_see =
		w.sees_kvm ? "calls that the vDSO or a seccomp filter answers are unseen" :
			     engine_bpf.cannot_see;
	t->engine.split = o->no_split ? NULL : "sched_switch";
	t->engine.split_absent = o->no_split ? "not asked for" : NULL;
	t->engine.has_pin = o->pin_cpu >= 0;
	t->engine.pinned_cpu = (uint32_t)o->pin_cpu;
	ret = watch_start(o->snapshot_signal, o->interval_ns);
	if (ret)
		sink->warn(sink, "cannot make a timer: %s", strerror(-ret));
	if (!ret && o->pin_cpu >= 0)
		child_pin(o->pin_cpu);
	if (!ret)
		ret = o->argv ? start(sink) : o->cgroup ? attach_cgroup(sink) : attach(sink);
	if (!ret)
		watch();
	if (!ret && !res->started && !res->interrupted)
		res->exec_errno = child_exec_errno(&w.child);
	if (!ret && res->started && !res->interrupted)
		tree_finish(t, RTS_EXIT, res->wait_status);
	bpf_tree_free(&w.tree);
	close_all();
	watch_stop();
	return ret;
}

const struct run_engine engine_bpf = {
	.name = "bpf",
	.cannot_see =
		"calls that the vDSO or a seccomp filter answers and virtual CPU exits are unseen",
	.prepare = prepare,
	.run = run,
};
