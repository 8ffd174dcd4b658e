/* SPDX-License-Identifier: MIT */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "include/uapi/coarse_stat_fs.h"
#include "include/uapi/threads_bpf.h"
#include "threads.skel.h"

#include "lib/bpf_may.h"
#include "lib/procfs.h"
#include "lib/serve_bpf.h"

#define BPFFS	    "/sys/fs/bpf"
#define BPFFS_MAGIC 0xcafe4a11
#define PIN_DIR	    BPFFS "/statpage/" THREADS_PIN_DIR THREADS_VERSION
#define NR_FRESH    32 /* pages ready: to make some takes a grace period */

#define NR_LINKS 3

static struct {
	struct threads_bpf *bpf;
	int link[NR_LINKS];
	volatile uint64_t *slots; /* enum threads_slot, THREADS_MAX of them */
	unsigned int max;
	uint32_t key_type, value_type; /* of a page's map, in the object's BTF */
	uint32_t flags;		       /* of a new page */
	uint16_t viewers[THREADS_MAX]; /* of what is in a slot: a bit each */
} t;
_Static_assert(SERVE_VIEWERS <= 16, "a bit for each viewer");

/* In the order of attaching: who is registered must not be missed when it ends. */
static const char *const link_names[NR_LINKS] = {PIN_DIR "/on_exit", PIN_DIR "/on_exec",
						 PIN_DIR "/on_switch"};

static struct bpf_program *link_prog(int i)
{
	return i == 0 ? t.bpf->progs.on_exit :
	       i == 1 ? t.bpf->progs.on_exec :
			t.bpf->progs.on_switch;
}

__attribute__((format(printf, 3, 4))) static int fail(struct serve_why *why, int err,
						      const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
	return err;
}

/* As bpftool does: mount bpffs where it belongs, if nobody has. */
static int make_pin_dir(struct serve_why *why)
{
	struct statfs fs;

	if (statfs(BPFFS, &fs))
		return fail(why, -errno, BPFFS ": %s", strerror(errno));
	if (fs.f_type != BPFFS_MAGIC && mount("bpf", BPFFS, "bpf", 0, "mode=0700"))
		return fail(why, -errno, "bpffs cannot be mounted on " BPFFS ": %s",
			    strerror(errno));
	if (mkdir(BPFFS "/statpage", 0700) && errno != EEXIST)
		return fail(why, -errno, BPFFS "/statpage: %s", strerror(errno));
	if (mkdir(PIN_DIR, 0700) && errno != EEXIST)
		return fail(why, -errno, PIN_DIR ": %s", strerror(errno));
	return 0;
}

static int load(struct serve_why *why)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .pin_root_path = PIN_DIR);
	struct bpf_map *inner;
	int ret;

	bpf_be_quiet();
	t.bpf = threads_bpf__open_opts(&opts);
	if (!t.bpf)
		return fail(why, -errno, "libbpf: %s", strerror(errno));
	inner = bpf_map__inner_map(t.bpf->maps.pages);
	t.key_type = bpf_map__btf_key_type_id(inner);
	t.value_type = bpf_map__btf_value_type_id(inner);
	ret = threads_bpf__load(t.bpf);
	if (ret == -EPERM)
		return fail(why, ret, "the kernel does not let us load its programs: %s",
			    geteuid() ? "this needs root" : "lockdown, or a seccomp filter");
	if (ret)
		return fail(why, ret, "the kernel does not load its programs: %s", strerror(-ret));
	t.slots = mmap(NULL, THREADS_MAX * sizeof(*t.slots), PROT_READ | PROT_WRITE, MAP_SHARED,
		       bpf_map__fd(t.bpf->maps.slots), 0);
	if (t.slots == MAP_FAILED)
		return fail(why, -errno, "mmap: %s", strerror(errno));
	return 0;
}

/* Links that a server before us has left go on; their programs write into the maps that we share. */
static int attach(struct serve_why *why)
{
	struct bpf_link *link;
	int ret;

	for (int i = 0; i < NR_LINKS; i++) {
		t.link[i] = bpf_obj_get(link_names[i]);
		if (t.link[i] >= 0)
			continue;
		link = bpf_program__attach(link_prog(i));
		if (!link)
			return fail(why, -errno, "%s cannot be attached: %s",
				    strrchr(link_names[i], '/') + 1, strerror(errno));
		ret = bpf_link__pin(link, link_names[i]);
		t.link[i] = dup(bpf_link__fd(link));
		/* Pinned: it only closes its descriptor. */
		if (!ret)
			bpf_link__disconnect(link);
		bpf_link__destroy(link);
		if (ret)
			return fail(why, ret, "%s cannot be pinned: %s", link_names[i],
				    strerror(-ret));
	}
	return 0;
}

static void close_all(void)
{
	if (t.slots && t.slots != MAP_FAILED)
		munmap((void *)t.slots, THREADS_MAX * sizeof(*t.slots));
	for (int i = 0; i < NR_LINKS; i++)
		if (t.link[i] > 0)
			close(t.link[i]);
	threads_bpf__destroy(t.bpf);
	memset(&t, 0, sizeof(t));
}

/* Links first: nothing shall run without its maps being found again. */
static void unpin(void)
{
	for (int i = 0; i < NR_LINKS; i++)
		unlink(link_names[i]);
	unlink(PIN_DIR "/owners");
	unlink(PIN_DIR "/pages");
	unlink(PIN_DIR "/slots");
	rmdir(PIN_DIR);
	rmdir(BPFFS "/statpage"); /* unless others have pinned something there */
}

/* As boot_cpu_has(X86_FEATURE_RDTSCP), by which the kernel puts the CPU's number into rdtscp's third word. */
static bool has_rdtscp(void)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char *line = NULL;
	size_t size = 0;
	bool has = false;

	while (f && getline(&line, &size, f) > 0 && strncmp(line, "flags", 5))
		;
	if (f) {
		has = !feof(f) && strstr(line, " rdtscp ");
		fclose(f);
	}
	free(line);
	return has;
}

/* Its thread may end at this very moment. */
static void leave(uint32_t slot)
{
	uint64_t viewed = THREADS_VIEWED;

	__atomic_compare_exchange_n(&t.slots[slot], &viewed, THREADS_LEAVING, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

int serve_open(unsigned int max, struct serve_why *why)
{
	bool is_first = access(PIN_DIR, F_OK) != 0;
	int ret;

	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return fail(why, -ENOENT, "this kernel has no BTF (/sys/kernel/btf/vmlinux)");
	ret = make_pin_dir(why);
	if (!ret)
		ret = load(why);
	if (!ret)
		ret = attach(why);
	t.max = max < THREADS_MAX ? max : THREADS_MAX;
	t.flags = has_rdtscp() ? CSF_F_TSC_AUX : 0;
	if (ret && is_first)
		unpin();
	if (ret)
		close_all();
	/* The viewers of the server before us are not ours. */
	for (uint32_t i = 0; !ret && i < THREADS_MAX; i++)
		leave(i);
	return ret;
}

/* A page whose header is complete, and that nobody can write but the kernel's program. -errno. */
static int page_new(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE,
		    .btf_fd = (uint32_t)bpf_object__btf_fd(t.bpf->obj),
		    .btf_key_type_id = t.key_type, .btf_value_type_id = t.value_type);
	struct csf_thread page = {
		.hdr = {.magic = CSF_MAGIC,
			.abi = CSF_ABI_VERSION,
			.kind = CSF_KIND_THREAD,
			.size = sizeof(page),
			.clock = CSF_CLOCK_MONOTONIC,
			.flags = t.flags,
			.freq_khz = 1000000,
			.mult = 1},
	};
	uint32_t zero = 0;
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "csf_page", sizeof(zero), sizeof(page), 1,
				&opts);

	if (fd < 0)
		return -errno;
	if (bpf_map_update_elem(fd, &zero, &page, 0) || bpf_map_freeze(fd)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

static unsigned int count(enum threads_slot what)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < THREADS_MAX; i++)
		n += t.slots[i] == what;
	return n;
}

/* Put a new page into a slot. The kernel waits a grace period: many may wait for the same one. */
static void *fill(void *slot_of)
{
	uint32_t slot = *(uint32_t *)slot_of;
	int fd = page_new();

	if (fd < 0)
		return NULL;
	t.viewers[slot] = 0;
	if (!bpf_map_update_elem(bpf_map__fd(t.bpf->maps.pages), &slot, &fd, 0))
		t.slots[slot] = THREADS_FRESH;
	close(fd);
	return NULL;
}

/* Fill slots that have no page, or one whose thread has ended, until there are enough fresh ones. */
static void refill(void)
{
	unsigned int want = NR_FRESH - count(THREADS_FRESH), nr = 0;
	pthread_t thread[NR_FRESH];
	uint32_t slot[NR_FRESH];
	bool started[NR_FRESH];

	for (uint32_t i = 0; i < t.max && nr < want; i++)
		if (t.slots[i] == THREADS_EMPTY || t.slots[i] == THREADS_ENDED)
			slot[nr++] = i;
	for (unsigned int i = 0; i < nr; i++) {
		started[i] = !pthread_create(&thread[i], NULL, fill, &slot[i]);
		if (!started[i])
			fill(&slot[i]);
	}
	for (unsigned int i = 0; i < nr; i++)
		if (started[i])
			pthread_join(thread[i], NULL);
}

/* A descriptor of the map in a slot. */
static int page_fd(uint32_t slot)
{
	uint32_t id;

	if (bpf_map_lookup_elem(bpf_map__fd(t.bpf->maps.pages), &slot, &id))
		return -errno;
	return bpf_map_get_fd_by_id(id);
}

/* Let an iterator look at the threads of a process, at one thread, or with neither at all. 0 or -errno. */
static int walk(const struct bpf_program *prog, pid_t pid, pid_t tid)
{
	union bpf_iter_link_info info = {.task = {.pid = (uint32_t)pid, .tid = (uint32_t)tid}};
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));
	struct bpf_link *link = bpf_program__attach_iter(prog, &opts);
	char buf[16];
	int fd, ret = 0;

	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0)
		ret = -errno;
	while (fd >= 0 && read(fd, buf, sizeof(buf)) > 0)
		;
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return ret;
}

/* The kernel's iterator stops short where a thread that it stands on ends: then it looks again. */
#define WALKS 4

/* Fill in the request's rest and let the iterator answer it. 0 or -errno. */
static int ask(struct threads_request *r, pid_t pid, pid_t tid)
{
	uint32_t slot = 0;
	int ret = 0;

	if (!count(THREADS_FRESH))
		serve_upkeep();
	while (slot < THREADS_MAX && t.slots[slot] != THREADS_FRESH)
		slot++;
	if (slot == THREADS_MAX)
		return -ENOSPC;
	r->slot = slot;
	r->ticks_a_second = (uint64_t)sysconf(_SC_CLK_TCK);
	r->error = ESRCH;
	for (int i = 0; i < WALKS && !ret && r->error == ESRCH; i++)
		ret = walk(t.bpf->progs.register_thread, pid, tid);
	return ret ? ret : -r->error;
}

int serve_register(pid_t pid, uint64_t start_ticks, uint32_t tid)
{
	struct threads_request *r = &t.bpf->bss->request;
	int ret;

	*r = (struct threads_request){.tid = tid, .leader_ticks = start_ticks};
	ret = ask(r, pid, 0);
	return ret ? ret : page_fd(r->answer);
}

static bool is_thread_of(pid_t pid, pid_t tid)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, tid);
	return !access(path, F_OK);
}

int serve_view(unsigned int viewer, pid_t pid, pid_t tid)
{
	struct threads_request *r = &t.bpf->bss->request;
	uint64_t start_ticks;
	int ret;

	/* Who asks for its own page shall find one. */
	if (count(THREADS_VIEWED) >= t.max / 2)
		return -ENOSPC;
	if (!procfs_start_ticks(pid, &start_ticks))
		return -ESRCH;
	*r = (struct threads_request){.leader_ticks = start_ticks, .view = 1};
	ret = ask(r, 0, tid);
	if (ret)
		return ret;
	t.viewers[r->answer] |= (uint16_t)(1u << viewer);
	/* The number was another process's thread's, which began in the same tick. */
	return is_thread_of(pid, tid) ? page_fd(r->answer) : -ESRCH;
}

void serve_unview(unsigned int viewer)
{
	uint16_t bit = (uint16_t)(1u << viewer);

	for (uint32_t i = 0; i < THREADS_MAX; i++) {
		if (!(t.viewers[i] & bit))
			continue;
		t.viewers[i] &= (uint16_t)~bit;
		if (!t.viewers[i])
			leave(i);
	}
}

/*
 * Have the threads of pages that are LEAVING let go of them. What a program of theirs still writes on another CPU
 * goes into that page, and no other: its place waits for the grace period that the kernel gives whoever
 * takes a map out of a map.
 */
static void release(void)
{
	uint32_t slot = 0;

	for (int i = 0; i < WALKS && count(THREADS_LEAVING); i++)
		walk(t.bpf->progs.release_threads, 0, 0);
	while (slot < THREADS_MAX && t.slots[slot] != THREADS_LEFT)
		slot++;
	if (slot == THREADS_MAX || bpf_map_delete_elem(bpf_map__fd(t.bpf->maps.pages), &slot))
		return;
	for (slot = 0; slot < THREADS_MAX; slot++)
		if (t.slots[slot] == THREADS_LEFT)
			t.slots[slot] = THREADS_ENDED;
}

void serve_upkeep(void)
{
	if (count(THREADS_LEAVING) || count(THREADS_LEFT))
		release();
	if (count(THREADS_FRESH) < NR_FRESH / 2)
		refill();
}

void serve_end(void)
{
	for (uint32_t slot = 0; slot < THREADS_MAX; slot++) {
		struct threads_end end = {.slot = slot};
		LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &end, .ctx_size_in = sizeof(end));

		if (t.slots[slot] == THREADS_TAKEN || t.slots[slot] == THREADS_VIEWED ||
		    t.slots[slot] == THREADS_LEAVING)
			bpf_prog_test_run_opts(bpf_program__fd(t.bpf->progs.end_page), &opts);
	}
	unpin();
	close_all();
}
