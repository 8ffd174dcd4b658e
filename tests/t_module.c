// SPDX-License-Identifier: GPL-2.0
// This test checks loading, unloading and parameters of the module, and mounts of its filesystem.
#include "t_csf.h"

#include <sys/mount.h>

#define KO     "/ko/" CSF_FS_NAME ".ko"
#define MODULE "/sys/module/" CSF_FS_NAME
#define PERIOD MODULE "/parameters/period_us"
#define OTHER  "/tmp/csf"

/* Returns 0 or -errno. */
static int load(const char *args)
{
	int fd = open(KO, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, args, 0) ? -errno : 0;
	close(fd);
	return ret;
}

static int unload(void)
{
	return syscall(SYS_delete_module, CSF_FS_NAME, O_NONBLOCK) ? -errno : 0;
}

/* References go with tasks and workers that may not have come to it yet. */
static bool unloads(void)
{
	int ret = -EAGAIN;

	if (!CHECK(T_UNTIL((ret = unload()) != -EAGAIN) && !ret, "rmmod: %s", strerror(-ret)))
		return false;
	CHECK(access(MODULE, F_OK), "the module is still there");
	CHECK(access(CSF_MOUNT, F_OK), "the mount point is still there");
	CHECK(access("/sys/kernel/slab/csf_thread", F_OK), "the slab cache is still there");
	return true;
}

/* Whether a call gave this: 0 or -errno. */
static bool gives(const char *what, int ret, int want)
{
	return CHECK(ret == want, "%s: %s, expected %s", what, strerrorname_np(-ret),
		     strerrorname_np(-want));
}

static int mount_at(const char *dir, const char *opts)
{
	return mount("none", dir, CSF_FS_NAME, 0, opts) ? -errno : 0;
}

static bool comes_back(void)
{
	return gives("insmod", load(""), 0) && gives("mount", mount_at(CSF_MOUNT, NULL), 0);
}

static int open_as(void *uid)
{
	if (setgid(*(uid_t *)uid) || setuid(*(uid_t *)uid))
		return 99;
	return open(OTHER "/thread-self", O_RDONLY) < 0 ? errno : 0;
}

static void test_options(void)
{
	static const struct {
		const char *opts;
		mode_t mode;
		uid_t uid;
		gid_t gid;
		/* What open() says to these users, each in the group of the same id. */
		int as_12, as_34;
	} good[] = {
		{"", 0444, 0, 0, 0, 0},
		{"mode=0400", 0400, 0, 0, EACCES, EACCES},
		{"mode=400,uid=12", 0400, 12, 0, 0, EACCES},
		{"mode=0440,gid=34", 0440, 0, 34, EACCES, 0},
		{"uid=12,gid=34,mode=044", 0044, 12, 34, EACCES, 0},
	};
	static const char *const bad[] = {
		"mode=0644", "mode=0222",      "mode=0555", "mode=8", "mode=", "mode=04444",
		"uid=-1",    "uid=4294967295", "uid=root",  "gid=-1", "gid=x", "size=1",
	};
	uid_t u12 = 12, u34 = 34;
	struct stat st;
	int ret;

	mkdir(OTHER, 0755);
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		TEST("mount options '%s'", good[i].opts) {
			if (!gives("mount", mount_at(OTHER, good[i].opts), 0))
				break;
			for (int f = 0; f < 2; f++) {
				CHECK(!stat(f ? OTHER "/cpu" : OTHER "/thread-self", &st),
				      "stat: %m");
				CHECK(st.st_mode == (S_IFREG | good[i].mode), "mode %o",
				      st.st_mode);
				CHECK(st.st_uid == good[i].uid, "uid %u", st.st_uid);
				CHECK(st.st_gid == good[i].gid, "gid %u", st.st_gid);
			}
			ret = t_wait(t_fork(open_as, &u12));
			CHECK(ret == good[i].as_12, "user 12: %s", strerror(ret));
			ret = t_wait(t_fork(open_as, &u34));
			CHECK(ret == good[i].as_34, "user 34: %s", strerror(ret));
			CHECK(!umount(OTHER), "umount: %m");
		}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		TEST("mount option '%s' is refused", bad[i]) {
			if (!gives("mount", mount_at(OTHER, bad[i]), -EINVAL))
				umount(OTHER);
		}
}

static void test_mounts(void)
{
	const struct csf_thread *pg, *other;
	char mounts[4096];
	struct stat st;
	long refs;
	int fd;

	TEST("a remount changes the options") {
		CHECK(!mount_at(OTHER, "mode=0440,gid=34"), "mount: %m");
		CHECK(!mount("none", OTHER, NULL, MS_REMOUNT, "mode=0400"), "remount: %m");
		CHECK(!stat(OTHER "/cpu", &st) && st.st_mode == (S_IFREG | 0400) && st.st_gid == 34,
		      "mode %o, gid %u", st.st_mode, st.st_gid);
		CHECK(mount("none", OTHER, NULL, MS_REMOUNT, "mode=0777") && errno == EINVAL,
		      "remount with a bad mode: %m");
		t_read_file("/proc/mounts", mounts, sizeof(mounts));
		CHECK(strstr(mounts, OTHER " " CSF_FS_NAME " rw,relatime,mode=0400,gid=34 0 0"),
		      "/proc/mounts shows no options");
		CHECK(!umount(OTHER), "umount: %m");
	}
	TEST("two mounts show a thread the same page") {
		refs = t_refs();
		CHECK(!mount_at(OTHER, NULL), "mount: %m");
		pg = t_map();
		fd = open(OTHER "/thread-self", O_RDONLY);
		other = t_map_fd(fd);
		close(fd);
		CHECK(other && other->start_tsc == pg->start_tsc, "it is another page");
		t_unmap(other);
		t_unmap(pg);
		CHECK(!umount(OTHER), "umount: %m");
		CHECK(T_UNTIL(t_refs() == refs), "%ld references, before %ld", t_refs(), refs);
	}
	TEST("mounted twice at one place") {
		CHECK(!mount_at(CSF_MOUNT, NULL) || errno == EBUSY, "mount: %m");
		pg = t_map();
		CHECK(pg, "open: %m");
		t_unmap(pg);
		CHECK(T_UNTIL(!umount(CSF_MOUNT)), "umount: %m");
		CHECK(!access(T_THREAD, R_OK), "the first mount is gone: %m");
	}
	TEST("unmount while mapped: busy; lazily: the mapping lives on") {
		pg = t_map();
		CHECK(umount(CSF_MOUNT) && errno == EBUSY, "umount: %m");
		CHECK(!umount2(CSF_MOUNT, MNT_DETACH), "umount -l: %m");
		CHECK(access(T_THREAD, F_OK), "it is still mounted");
		CHECK(t_lives(pg), "the page stands still");
		CHECK(!mount_at(CSF_MOUNT, NULL), "mount: %m");
		other = t_map();
		CHECK(other && other->start_tsc == pg->start_tsc, "it is another page");
		t_unmap(other);
		t_unmap(pg);
	}
}

static void *open_for_another(void *fds)
{
	int *fd = fds;

	fd[0] = open(T_THREAD, O_RDONLY);
	t_tell(fd[1]);
	t_told(fd[1]);
	return NULL;
}

static void test_rmmod(void)
{
	const struct csf_thread *pg;
	int fd[2], socks[2], cpu;
	pthread_t owner;

	TEST("rmmod fails while mounted")
		gives("rmmod while mounted", unload(), -EAGAIN);
	TEST("rmmod fails while a file is open, and succeeds after") {
		cpu = open(T_CPU, O_RDONLY);
		CHECK(!umount2(CSF_MOUNT, MNT_DETACH), "umount -l: %m");
		gives("rmmod while a file is open", unload(), -EAGAIN);
		close(cpu);
		if (unloads())
			comes_back();
	}
	TEST("rmmod fails while a thread has its page mapped, and succeeds after") {
		pg = t_map();
		CHECK(!umount2(CSF_MOUNT, MNT_DETACH), "umount -l: %m");
		gives("rmmod while a page is mapped", unload(), -EAGAIN);
		t_unmap(pg);
		if (unloads())
			comes_back();
	}
	TEST("rmmod fails while a thread is parked, and succeeds after its end") {
		CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, socks), "socketpair: %m");
		fd[1] = socks[1];
		pthread_create(&owner, NULL, open_for_another, fd);
		t_told(socks[0]);
		CHECK(!umount2(CSF_MOUNT, MNT_DETACH), "umount -l: %m");
		close(fd[0]);
		CHECK(T_UNTIL(t_refs() == 1), "%ld references, expected one object", t_refs());
		gives("rmmod while a thread is parked", unload(), -EAGAIN);
		t_tell(socks[0]);
		pthread_join(owner, NULL);
		close(socks[0]);
		close(socks[1]);
		if (unloads())
			comes_back();
	}
}

static int die_parked(void *unused)
{
	int fd = open(T_THREAD, O_RDONLY), socks[2];

	(void)unused;
	if (fd < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, socks) || t_send_fd(socks[0], fd))
		return 1;
	/* The mount is not ours, the file goes with the socket, and the object with the last thread. */
	return 0;
}

static void test_race(void)
{
	pid_t pid;

	TEST("rmmod races with the end of the last owner, 20 times") {
		for (int i = 0; i < 20; i++) {
			pid = t_fork(die_parked, NULL);
			T_UNTIL(t_refs() > 1);
			umount2(CSF_MOUNT, MNT_DETACH);
			if (!unloads())
				break;
			CHECK(!t_wait(pid), "no page");
			if (!comes_back())
				break;
		}
	}
}

static void test_period(void)
{
	static const struct {
		const char *val;
		int err;
	} bad[] = {
		{"0", -EINVAL},	 {"499", -EINVAL},	  {"1000001", -EINVAL},
		{"-1", -EINVAL}, {"4294967296", -ERANGE}, {"x", -EINVAL},
	};
	static const char *const good[] = {"500", "1000000", "2000"};
	const struct csf_cpu *cpu;
	char arg[64];
	int fd;

	TEST("loading twice")
		gives("insmod", load(""), -EEXIST);
	umount2(CSF_MOUNT, MNT_DETACH);
	TEST("unload for the next cases")
		unloads();
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		TEST("load with period_us=%s is refused", bad[i].val) {
			snprintf(arg, sizeof(arg), "period_us=%s", bad[i].val);
			if (!gives("insmod", load(arg), bad[i].err))
				unload();
			CHECK(access(CSF_MOUNT, F_OK), "it left its mount point");
		}
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		TEST("load with period_us=%s", good[i]) {
			snprintf(arg, sizeof(arg), "period_us=%s", good[i]);
			if (!gives("insmod", load(arg), 0))
				break;
			CHECK(t_read_num(PERIOD) == atoll(good[i]), "it is %lld",
			      t_read_num(PERIOD));
			unloads();
		}
	TEST("period_us changes at run time, within its range") {
		comes_back();
		fd = open(T_CPU, O_RDONLY);
		cpu = t_map_fd(fd);
		CHECK(cpu->period_us == 10000, "the default is %u", cpu->period_us);
		gives("write", t_write_file(PERIOD, "2000"), 0);
		CHECK(T_UNTIL(cpu->period_us == 2000), "the page says %u", cpu->period_us);
		for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
			gives(bad[i].val, t_write_file(PERIOD, bad[i].val), bad[i].err);
		CHECK(t_read_num(PERIOD) == 2000, "it is %lld", t_read_num(PERIOD));
		munmap((void *)cpu, (size_t)sysconf(_SC_PAGESIZE));
		close(fd);
	}
}

int main(void)
{
	test_options();
	test_mounts();
	test_rmmod();
	test_race();
	test_period();
	return t_done("t_module");
}
