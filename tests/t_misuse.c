// SPDX-License-Identifier: GPL-2.0
// This test checks that the two files can be mapped read-only and that all else is refused or harmless.
#include "t_csf.h"

#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <termios.h>

static const char *const files[] = {T_THREAD, T_CPU};
static size_t page;

/* One of the files; or the one kind of page that the server has. */
static int open_page(const char *path)
{
	return t_served() ? t_open() : open(path, O_RDONLY);
}

/* ret is what a system call returned. Same for the errno of a call that must have failed. */
#define REFUSED(call, err)                                                                \
	({                                                                                \
		errno = 0;                                                                \
		long ret_ = (long)(call);                                                 \
		int err_ = errno;                                                         \
		CHECK(ret_ == -1 && err_ == (err), "returned %ld, %s, expected %s", ret_, \
		      strerrorname_np(err_), strerrorname_np(err));                       \
	})

static void test_open(const char *path)
{
	static const struct {
		const char *name;
		int flags, err;
	} cases[] = {
		{"open O_WRONLY", O_WRONLY, EACCES},
		{"open O_RDWR", O_RDWR, EACCES},
		{"open O_RDONLY|O_TRUNC", O_RDONLY | O_TRUNC, EACCES},
		{"open O_DIRECT", O_RDONLY | O_DIRECT, EINVAL},
		{"open O_DIRECTORY", O_RDONLY | O_DIRECTORY, ENOTDIR},
	};
	long refs;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		TEST("%s: %s", strrchr(path, '/') + 1, cases[i].name) {
			refs = t_refs();
			REFUSED(open(path, cases[i].flags), cases[i].err);
			CHECK(t_refs() == refs, "the refused open left %ld references",
			      t_refs() - refs);
		}
}

/* The names, sizes and times of the files are the module's own; not even root changes them. */
static void test_tree(const char *path)
{
	struct stat a, b;

	TEST("%s: truncate", strrchr(path, '/') + 1) {
		CHECK(!stat(path, &a), "stat: %m");
		REFUSED(truncate(path, 0), EACCES);
		REFUSED(truncate(path, 1 << 20), EACCES);
		CHECK(!stat(path, &b) && a.st_size == b.st_size, "the size is now %ld", b.st_size);
	}
	TEST("%s: unlink, rename, link, create", strrchr(path, '/') + 1) {
		REFUSED(unlink(path), EPERM);
		REFUSED(rename(path, CSF_MOUNT "/x"), EPERM);
		REFUSED(link(path, CSF_MOUNT "/x"), EPERM);
		REFUSED(open(CSF_MOUNT "/x", O_CREAT | O_RDONLY, 0444), EACCES);
		REFUSED(mkdir(CSF_MOUNT "/x", 0755), EPERM);
	}
}

static void test_mmap(const char *path)
{
	static const struct {
		const char *name;
		int prot, flags;
		unsigned int off, more; /* pages */
		int err;
	} cases[] = {
		{"mmap PROT_WRITE", PROT_READ | PROT_WRITE, MAP_SHARED, 0, 0, EACCES},
		{"mmap MAP_PRIVATE", PROT_READ, MAP_PRIVATE, 0, 0, EINVAL},
		{"mmap MAP_PRIVATE PROT_WRITE", PROT_WRITE, MAP_PRIVATE, 0, 0, EINVAL},
		{"mmap PROT_EXEC", PROT_READ | PROT_EXEC, MAP_SHARED, 0, 0, EPERM},
		{"mmap at an offset", PROT_READ, MAP_SHARED, 1, 0, EINVAL},
		{"mmap far away", PROT_READ, MAP_SHARED, 1u << 30, 0, EINVAL},
		{"mmap longer than the file", PROT_READ, MAP_SHARED, 0, 1, EINVAL},
	};
	int fd = open_page(path);
	struct stat st;

	fstat(fd, &st);
	if (t_served())
		st.st_size = CSF_SERVE_BYTES;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (t_served() && cases[i].prot & PROT_EXEC)
			continue; /* some kernels let it be executed */
		TEST("%s: %s", strrchr(path, '/') + 1, cases[i].name) {
			size_t len = (size_t)st.st_size + cases[i].more * page;

			REFUSED(mmap(NULL, len, cases[i].prot, cases[i].flags, fd,
				     (off_t)(cases[i].off * page)),
				!t_served() || cases[i].err != EACCES ? cases[i].err : EPERM);
		}
	}
	close(fd);
}

/* Once mapped, no protection but PROT_READ and PROT_NONE. */
static void test_mprotect(const char *path)
{
	int fd = open_page(path);
	void *p = (void *)t_map_fd(fd);

	close(fd);
	TEST("%s: mprotect to writable", strrchr(path, '/') + 1)
		REFUSED(mprotect(p, page, PROT_READ | PROT_WRITE), EACCES);
	TEST("%s: mprotect to executable", strrchr(path, '/') + 1)
		REFUSED(mprotect(p, page, PROT_READ | PROT_EXEC), EACCES);
	TEST("%s: mprotect to PROT_NONE and back", strrchr(path, '/') + 1) {
		CHECK(!mprotect(p, page, PROT_NONE), "PROT_NONE: %m");
		CHECK(!mprotect(p, page, PROT_READ), "PROT_READ: %m");
		CHECK(((struct csf_hdr *)p)->magic == CSF_MAGIC, "no magic");
	}
	munmap(p, page);
}

static void test_calls(const char *path)
{
	int fd = open(path, O_RDONLY), pipes[2], out = open("/dev/null", O_WRONLY);
	struct epoll_event ev = {.events = EPOLLIN};
	int ep = epoll_create1(0);
	struct termios tio;
	char buf[64] = "";

	CHECK(!pipe(pipes), "pipe: %m");
	TEST("%s: read", strrchr(path, '/') + 1)
		REFUSED(read(fd, buf, sizeof(buf)), EINVAL);
	TEST("%s: pread", strrchr(path, '/') + 1)
		REFUSED(pread(fd, buf, sizeof(buf), 0), EINVAL);
	TEST("%s: write", strrchr(path, '/') + 1)
		REFUSED(write(fd, buf, sizeof(buf)), EBADF);
	TEST("%s: lseek", strrchr(path, '/') + 1)
		REFUSED(lseek(fd, 0, SEEK_SET), ESPIPE);
	TEST("%s: ioctl", strrchr(path, '/') + 1)
		REFUSED(ioctl(fd, TCGETS, &tio), ENOTTY);
	TEST("%s: splice out", strrchr(path, '/') + 1)
		REFUSED(splice(fd, NULL, pipes[1], NULL, page, 0), EINVAL);
	TEST("%s: sendfile", strrchr(path, '/') + 1)
		REFUSED(sendfile(out, fd, NULL, page), EINVAL);
	TEST("%s: ftruncate", strrchr(path, '/') + 1)
		REFUSED(ftruncate(fd, 0), EINVAL);
	TEST("%s: fallocate", strrchr(path, '/') + 1)
		REFUSED(fallocate(fd, 0, 0, (off_t)page), EBADF);
	TEST("%s: epoll", strrchr(path, '/') + 1)
		REFUSED(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev), EPERM);
	close(ep);
	close(out);
	close(pipes[0]);
	close(pipes[1]);
	close(fd);
}

static void test_mremap(void)
{
	const struct csf_thread *pg = t_map(), *old = pg;
	struct csf_thread a, b;
	void *to;

	TEST("mremap grows nothing") {
		REFUSED(mremap((void *)pg, page, 2 * page, MREMAP_MAYMOVE), EFAULT);
		REFUSED(mremap((void *)pg, 0, 2 * page, MREMAP_MAYMOVE), EFAULT);
		REFUSED(mremap((void *)pg, 0, page, MREMAP_MAYMOVE), EFAULT);
		/* Of a page of the server's it would leave nothing behind. */
		if (!t_served())
			REFUSED(syscall(SYS_remap_file_pages, pg, page, 0, 1, 0), EINVAL);
	}
	TEST("mremap moves the page") {
		t_copy(&a, pg);
		to = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		pg = mremap((void *)pg, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, to);
		if (!CHECK(pg == to, "mremap: %m"))
			break;
		t_copy(&b, pg);
		CHECK(b.hdr.magic == CSF_MAGIC && b.start_tsc == a.start_tsc, "not the same page");
		CHECK(t_lives(pg), "not the live page");
		REFUSED(madvise((void *)old, page, MADV_NORMAL), ENOMEM);
		t_unmap(pg);
	}
}

static void test_madvise(void)
{
	static const struct {
		const char *name;
		int advice, err;
	} refused[] = {
		{"MADV_DOFORK", MADV_DOFORK, EINVAL},	      {"MADV_DODUMP", MADV_DODUMP, EINVAL},
		{"MADV_REMOVE", MADV_REMOVE, EACCES},	      {"MADV_FREE", MADV_FREE, EINVAL},
		{"MADV_WIPEONFORK", MADV_WIPEONFORK, EINVAL},
	};
	static const struct {
		const char *name;
		int advice;
	} harmless[] = {
		{"MADV_DONTNEED", MADV_DONTNEED},
		{"MADV_COLD", 20},
		{"MADV_PAGEOUT", 21},
	};
	const struct csf_thread *pg = t_map();
	uint64_t start;

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		TEST("%s is refused", refused[i].name)
			REFUSED(madvise((void *)pg, page, refused[i].advice), refused[i].err);
	for (size_t i = 0; i < sizeof(harmless) / sizeof(*harmless); i++)
		TEST("%s leaves the live page", harmless[i].name) {
			start = pg->start_tsc;
			CHECK(!madvise((void *)pg, page, harmless[i].advice), "%m");
			CHECK(pg->start_tsc == start, "not the same page");
			CHECK(t_lives(pg), "not the live page");
		}
	t_unmap(pg);
}

/* The ways around the mapping's protection that a debugger has. */
static void test_force(void)
{
	const struct csf_thread *pg = t_map();
	uint64_t old = pg->start_tsc, evil = 42;
	struct iovec mine = {&evil, sizeof(evil)}, its = {(void *)&pg->start_tsc, sizeof(evil)};
	pid_t pid;
	int mem;

	TEST("/proc/self/mem does not write the page") {
		mem = open("/proc/self/mem", O_RDWR);
		CHECK(mem >= 0, "open: %m");
		REFUSED(pwrite(mem, &evil, sizeof(evil), (off_t)&pg->start_tsc), EIO);
		close(mem);
		CHECK(pg->start_tsc == old, "it did");
	}
	TEST("process_vm_writev does not write the page") {
		REFUSED(process_vm_writev(getpid(), &mine, 1, &its, 1, 0), EFAULT);
		CHECK(pg->start_tsc == old, "it did");
	}
	t_unmap(pg);
	TEST("PTRACE_POKEDATA does not write the page") {
		const struct csf_thread *volatile *where;

		/* Where the child mapped its page, and what is there when it was poked. */
		where = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		pid = fork();
		if (!pid) {
			*where = pg = t_map();
			old = pg->start_tsc;
			ptrace(PTRACE_TRACEME, 0, NULL, NULL);
			raise(SIGSTOP);
			_exit(pg->start_tsc != old);
		}
		waitpid(pid, NULL, 0);
		REFUSED(ptrace(PTRACE_POKEDATA, pid, &(*where)->start_tsc, 42), EIO);
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
		CHECK(t_wait(pid) == 0, "it did, or the child died");
		munmap((void *)where, page);
	}
}

/* Open a process's memory as nobody: its errno. */
static int open_as_nobody(void *path)
{
	if (setgid(65534) || setuid(65534))
		return 255;
	return open(path, O_RDONLY) < 0 ? errno : 0;
}

static void test_peek(void)
{
	const struct csf_thread *volatile *where;
	struct csf_thread copy = {0};
	char whole[8192], path[40];
	pid_t pid;
	int mem;

	TEST("/proc/PID/mem shows the page to who may trace its process, and to nobody else") {
		where = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		pid = fork();
		if (!pid) {
			*where = t_map();
			for (;;)
				pause();
		}
		CHECK(T_UNTIL(*where), "the child has no page");
		snprintf(path, sizeof(path), "/proc/%d/mem", pid);
		mem = open(path, O_RDONLY | O_CLOEXEC);
		CHECK(pread(mem, &copy, sizeof(copy), (off_t)*where) == sizeof(copy), "read: %m");
		CHECK(copy.hdr.magic == CSF_MAGIC && copy.tid == (uint32_t)pid,
		      "magic %#x, thread %u", copy.hdr.magic, copy.tid);
		CHECK(pread(mem, whole, page, (off_t)*where) == (ssize_t)page, "all of it: %m");
		CHECK(!memcmp(whole, &copy, sizeof(copy.hdr)), "another header");
		CHECK(pread(mem, whole, 8, (off_t)*where + (off_t)page - 8) == 8 && !whole[0],
		      "its end: %m");
		CHECK(t_wait(t_fork(open_as_nobody, path)) == EACCES, "nobody may, too");
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		CHECK(pread(mem, &copy, sizeof(copy), (off_t)*where) == 0, "it is still there");
		close(mem);
		munmap((void *)where, page);
	}
}

/*
 * A pipe can hold a reference to the page itself, and the page then outlives its object: on 6.1, where
 * get_user_pages_fast() finds it. 6.12 and 7.2 leave it to the slow way, which refuses VM_IO.
 */
static void test_pinned(void)
{
	const struct csf_thread *pg = t_map();
	struct iovec iov = {(void *)pg, sizeof(struct csf_hdr)};
	struct csf_hdr hdr = {0};
	long refs = t_refs();
	ssize_t n;
	int pipes[2];

	TEST("a page in a pipe outlives the object, or does not get there") {
		CHECK(!pipe2(pipes, O_NONBLOCK), "pipe: %m");
		CHECK(pg->hdr.magic == CSF_MAGIC, "no page"); /* and it is mapped now */
		n = vmsplice(pipes[1], &iov, 1, 0);
		CHECK(n == sizeof(hdr) || (n == -1 && errno == EFAULT), "vmsplice: %zd, %m", n);
		t_unmap(pg);
		CHECK(T_UNTIL(t_refs() == refs - 2), "the object lives on: %ld of %ld references",
		      t_refs(), refs);
		CHECK(n < 0 || read(pipes[0], &hdr, sizeof(hdr)) == sizeof(hdr), "read: %m");
		CHECK(n < 0 || hdr.magic == CSF_MAGIC, "magic 0x%x", hdr.magic);
		close(pipes[0]);
		close(pipes[1]);
	}
	pg = t_map();
	TEST("a futex in the page")
		REFUSED(syscall(SYS_futex, &pg->seq, FUTEX_WAIT, 1, NULL, NULL, 0), EFAULT);
	TEST("PROT_READ stays readable only under READ_IMPLIES_EXEC") {
		const struct csf_thread *second;
		int old = personality(READ_IMPLIES_EXEC);

		second = t_map();
		CHECK(second, "mmap: %m");
		personality((unsigned int)old);
		REFUSED(mprotect((void *)second, page, PROT_READ | PROT_EXEC), EACCES);
		t_unmap(second);
	}
	t_unmap(pg);
}

/* O_PATH is a name, no open file: it registers nobody. */
static void test_o_path(const char *path)
{
	struct stat st;
	long refs;
	int fd;

	TEST("%s: O_PATH", strrchr(path, '/') + 1) {
		refs = t_refs();
		fd = open(path, O_PATH);
		CHECK(fd >= 0, "open: %m");
		CHECK(t_refs() == refs, "it holds %ld references", t_refs() - refs);
		CHECK(!fstat(fd, &st) && st.st_size > 0, "size %ld", st.st_size);
		REFUSED(mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0), EBADF);
		close(fd);
	}
}

static int be_nobody(void *path)
{
	const struct csf_hdr *hdr;
	int fd;

	if (setgid(65534) || setuid(65534))
		return 2;
	fd = open_page(path);
	if (fd < 0)
		return 3;
	hdr = t_map_fd(fd);
	if (!hdr)
		return 4;
	return hdr->magic != CSF_MAGIC;
}

static void test_nobody(const char *path)
{
	struct stat st;
	int ret;

	TEST("%s: nobody may use it", strrchr(path, '/') + 1) {
		if (!t_served()) {
			CHECK(!stat(path, &st), "stat: %m");
			CHECK(st.st_mode == (S_IFREG | 0444), "mode %o", st.st_mode);
			CHECK(st.st_uid == 0 && st.st_gid == 0, "owner %u:%u", st.st_uid,
			      st.st_gid);
		}
		ret = t_wait(t_fork(be_nobody, (void *)path));
		CHECK(ret == 0, "the child says %d", ret);
	}
}

/* The map behind a page of the server's takes no update, be it by root. */
static void test_bpf(void)
{
	int fd = t_open();
	const struct csf_thread *pg = t_map_fd(fd);
	struct csf_thread evil = {.start_tsc = 42};
	uint64_t old = pg->start_tsc;
	uint32_t zero = 0;
	union bpf_attr attr = {
		.map_fd = (uint32_t)fd, .key = (uintptr_t)&zero, .value = (uintptr_t)&evil};

	TEST("bpf(2) does not write the page") {
		REFUSED(syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &attr, sizeof(attr)), EPERM);
		CHECK(pg->start_tsc == old, "it did");
	}
	t_unmap(pg);
	close(fd);
}

static void test_served(void)
{
	test_mmap(T_THREAD);
	test_mprotect(T_THREAD);
	test_nobody(T_THREAD);
	test_mremap();
	test_force();
	test_peek();
	test_bpf();
}

static void test_module(void)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		test_open(files[i]);
		test_tree(files[i]);
		test_mmap(files[i]);
		test_mprotect(files[i]);
		test_calls(files[i]);
		test_o_path(files[i]);
		test_nobody(files[i]);
	}
	test_mremap();
	test_madvise();
	test_force();
	test_peek();
	test_pinned();
}

int main(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	t_held_begin();
	if (t_served())
		test_served();
	else
		test_module();
	TEST("all of this left nothing behind")
		t_held(0, 0);
	return t_done("t_misuse");
}
