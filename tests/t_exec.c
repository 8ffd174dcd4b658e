// SPDX-License-Identifier: GPL-2.0
// This test checks what fork, vfork, clone and exec do to a thread's page.
#include "t_csf.h"

#include <sys/sendfile.h>

#define SUID_COPY "/tmp/t_exec.suid"

static bool is_mapped(const void *p)
{
	return !msync((void *)p, 1, MS_ASYNC);
}

/* What this program does when it was exec'ed: shows a page of its own, then works when told to. */
static int after_exec(int sock)
{
	int fd = t_open();
	char buf[256];

	if (fd < 0 || t_send_fd(sock, fd))
		return 98;
	close(fd);
	if (!t_told(sock))
		return 97;
	for (int i = 0; i < 10; i++) {
		t_read_file("/proc/version", buf, sizeof(buf));
		t_sleep_ns(1000000);
	}
	t_spin_ns(5000000);
	t_tell(sock);
	t_told(sock);
	return geteuid() ? 11 : 10;
}

static int exec_me(const char *path, int sock)
{
	char num[16];

	snprintf(num, sizeof(num), "%d", sock);
	execl(path, "t_exec", "--after-exec", num, (char *)NULL);
	return 96;
}

static int exec_plain(int sock)
{
	t_told(sock);
	return exec_me("/proc/self/exe", sock);
}

static int exec_suid(int sock)
{
	t_told(sock);
	if (setgid(65534) || setuid(65534))
		return 95;
	return exec_me(SUID_COPY, sock);
}

static int exec_failing(int sock)
{
	while (t_told(sock)) {
		if (!execl("/nowhere", "nowhere", (char *)NULL) || errno != ENOENT)
			return 94;
		if (!execl("/etc/passwd", "passwd", (char *)NULL) || errno != EACCES)
			return 93;
		t_tell(sock);
	}
	return 0;
}

/* The page of the program before exec is parked and stands still; the one after it has its own. */
static void check_exec(struct t_peer *peer)
{
	struct csf_thread before, after;
	const struct csf_thread *own;
	int fd;

	t_tell(peer->sock);
	fd = t_recv_fd(peer->sock);
	own = fd < 0 ? NULL : t_map_fd(fd);
	close(fd);
	if (!CHECK(own, "the new program sent no page"))
		return;
	CHECK(t_flags(peer->pg) & CSF_F_PARKED, "flags 0x%x", t_flags(peer->pg));
	CHECK(!(t_flags(peer->pg) & CSF_F_DEAD), "dead");
	t_copy(&before, peer->pg);
	CHECK(t_sum(&before) == before.last_switch_tsc - before.start_tsc, "buckets do not add up");

	CHECK(own->start_tsc >= before.last_switch_tsc, "not a page of its own");
	CHECK(own->tid == (uint32_t)peer->pid, "tid %u of %d", own->tid, peer->pid);
	CHECK(!(t_flags(own) & CSF_F_PARKED), "its own page is parked");
	t_tell(peer->sock);
	t_told(peer->sock);
	t_copy(&after, peer->pg);
	CHECK(!memcmp(&before, &after, sizeof(before)), "the page changed after the exec");
	t_copy(&after, own);
	CHECK(after.nr_block > 0, "its own page stands still: blocked %llu", after.nr_block);
	t_tell(peer->sock);
	CHECK(T_UNTIL(t_flags(own) & CSF_F_DEAD), "its own page does not die with it");
	CHECK(!(t_flags(peer->pg) & CSF_F_DEAD), "it was no longer the page of the one who died");
	t_unmap(own);
}

static int copy_self(const char *to)
{
	int in = open("/proc/self/exe", O_RDONLY),
	    out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	ssize_t n;

	do
		n = sendfile(out, in, NULL, 1 << 20);
	while (n > 0);
	close(in);
	close(out);
	return n || chmod(to, 04755) ? -1 : 0;
}

static void test_exec(void)
{
	struct t_peer peer;
	struct csf_thread a;
	int st;

	TEST("exec parks the page") {
		peer = t_peer_start(exec_plain);
		check_exec(&peer);
		st = t_peer_end(&peer);
		CHECK(st == 10, "the owner ended with %d", st);
		t_held(0, 0);
	}
	TEST("exec of a setuid program parks the page") {
		CHECK(!copy_self(SUID_COPY), "copy: %m");
		peer = t_peer_start(exec_suid);
		check_exec(&peer);
		st = t_peer_end(&peer);
		CHECK(st == 10, "the owner ended with %d: 11 is without privileges", st);
		unlink(SUID_COPY);
		t_held(0, 0);
	}
	TEST("an exec that fails changes nothing") {
		peer = t_peer_start(exec_failing);
		t_copy(&a, peer.pg);
		t_tell(peer.sock);
		t_told(peer.sock);
		CHECK(!(t_flags(peer.pg) & CSF_F_PARKED), "parked");
		CHECK(T_UNTIL(peer.pg->nr_block > a.nr_block), "it stands still");
		shutdown(peer.sock, SHUT_RDWR);
		st = t_peer_end(&peer);
		CHECK(!st, "the owner ended with %d", st);
		t_held(0, 0);
	}
}

/* The thread that execs becomes the leader; the leader that was there dies. */
static void *exec_in_thread(void *sock)
{
	int fd = t_open();

	if (t_send_fd(*(int *)sock, fd))
		_exit(92);
	close(fd);
	t_told(*(int *)sock);
	_exit(exec_me("/proc/self/exe", *(int *)sock));
}

static int start_execer(int sock)
{
	pthread_t thread;

	pthread_create(&thread, NULL, exec_in_thread, &sock);
	pthread_join(thread, NULL);
	return 91;
}

static void test_exec_in_thread(void)
{
	struct t_peer peer = t_peer_start(start_execer), other = peer;
	int st, fd = t_recv_fd(peer.sock);

	TEST("exec by another thread than the leader") {
		other.pg = fd < 0 ? NULL : t_map_fd(fd);
		close(fd);
		if (!CHECK(peer.pg && other.pg, "no pages"))
			break;
		CHECK(other.pg->tid != (uint32_t)peer.pid, "tid %u", other.pg->tid);
		check_exec(&other);
		CHECK(t_flags(peer.pg) & CSF_F_DEAD, "the old leader is alive, flags 0x%x",
		      t_flags(peer.pg));
		t_unmap(other.pg);
		st = t_peer_end(&peer);
		CHECK(st == 10, "the owner ended with %d", st);
		t_held(0, 0);
	}
}

static int parked_then_exec(void *unused)
{
	int fd = open(T_THREAD, O_RDONLY), pipes[2];
	pid_t pid;

	(void)unused;
	if (pipe(pipes))
		return 2;
	pid = fork();
	if (!pid) { /* the last one to hold the file */
		close(pipes[1]);
		_exit(t_told(pipes[0]));
	}
	close(fd);
	close(pipes[1]);
	t_wait(pid);
	if (t_refs() != t_held0_ + 1)
		return 1;
	return execl("/bin/busybox", "true", (char *)NULL);
}

static const struct csf_thread *parents;

static int child_of_fork(void *fd)
{
	const struct csf_thread *pg;
	long refs = t_served() ? 0 : t_refs();

	if (is_mapped(parents))
		return 1;
	pg = t_map();
	if (!pg || pg->tid != t_tid() || t_flags(pg) & CSF_F_PARKED)
		return 2;
	t_unmap(pg);
	if (!t_served() && t_refs() != refs)
		return 3;
	/* The inherited descriptor is still the parent's. */
	pg = t_map_fd(*(int *)fd);
	if (!pg || pg->tid != (uint32_t)getppid())
		return 4;
	t_unmap(pg);
	close(*(int *)fd);
	return 0;
}

static void test_fork(void)
{
	int fd = t_open(), st;
	const struct csf_thread *pg = t_map_fd(fd);
	uint64_t start = pg->start_tsc;

	parents = pg;
	TEST("a forked child has a page of its own") {
		st = t_wait(t_fork(child_of_fork, &fd));
		CHECK(!st,
		      "the child says %d: 1 inherited the mapping, 2 no page of its own, "
		      "3 its object was not freed, 4 not the parent's descriptor",
		      st);
		CHECK(!(t_flags(pg) & CSF_F_PARKED) && pg->start_tsc == start,
		      "the child's close did something to the parent's page");
		t_held(2, 0);
	}
	t_unmap(pg);
	close(fd);
	if (t_served()) /* a page has nothing to do with files there */
		return;
	TEST("the last file of a parent goes with its child: parked; exec ends that") {
		st = t_wait(t_fork(parked_then_exec, NULL));
		CHECK(!st, "the child says %d", st);
		t_held(0, 0);
	}
}

static void test_vfork(void)
{
	const struct csf_thread *pg = t_map();
	struct csf_thread a, b;
	pid_t pid;
	double ms;

	TEST("a vfork parent that waits 30 ms shows 30 ms of uninterruptible sleep") {
		t_copy(&a, pg);
		pid = vfork();
		if (!pid) { /* in the parent's memory, so it can see it wait */
			if (!T_UNTIL(pg->state == CSF_DSLEEP))
				_exit(1);
			t_sleep_ns(30000000);
			_exit(0);
		}
		t_copy(&b, pg);
		CHECK(!t_wait(pid), "the parent's page does not say that it waits");
		ms = t_cyc_ms(&b.hdr, b.dsleep_cyc - a.dsleep_cyc);
		CHECK(ms > 29.9 && ms < t_cyc_ms(&b.hdr, b.last_switch_tsc - a.last_switch_tsc),
		      "%.3f ms", ms);
		CHECK(b.nr_block > a.nr_block, "it did not block");
	}
	TEST("a vfork child has a page of its own") {
		static const struct csf_thread *childs;

		pid = vfork();
		if (!pid) {
			childs = t_map();
			_exit(!childs || childs->tid != t_tid() ||
			      childs->start_tsc == pg->start_tsc);
		}
		CHECK(!t_wait(pid), "it has not");
		/* It is mapped in the memory that both share. */
		CHECK(is_mapped(childs) && t_flags(childs) == (t_flags(pg) | CSF_F_DEAD),
		      "flags 0x%x", t_flags(childs));
		t_unmap(childs);
		t_held(2, 0);
	}
	t_unmap(pg);
	TEST("exec by a vfork child parks the child's page only") {
		static const struct csf_thread *childs;

		pg = t_map();
		pid = vfork();
		if (!pid) {
			childs = t_map();
			_exit(execl("/bin/busybox", "true", (char *)NULL));
		}
		CHECK(!t_wait(pid), "the exec failed");
		CHECK((t_flags(childs) & (CSF_F_PARKED | CSF_F_DEAD)) == CSF_F_PARKED, "flags 0x%x",
		      t_flags(childs));
		CHECK(!(t_flags(pg) & CSF_F_PARKED), "flags 0x%x", t_flags(pg));
		t_unmap(childs);
		t_unmap(pg);
		t_held(0, 0);
	}
}

static int in_shared_memory(void *arg)
{
	const struct csf_thread **pg = arg;

	*pg = t_map();
	return !*pg ? 1 : (*pg)->tid != t_tid() ? 2 : !t_lives(*pg) ? 3 : 0;
}

static int in_new_pid_ns(void *unused)
{
	const struct csf_thread *pg;
	pid_t pid;

	(void)unused;
	if (unshare(CLONE_NEWPID))
		return 2;
	pid = fork();
	if (pid)
		return t_wait(pid);
	pg = t_map();
	_exit(!pg || pg->tid != 1);
}

static void test_clone(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	const struct csf_thread *pg = t_map(), *childs = NULL;
	int st;

	TEST("a CLONE_VM child has a page of its own") {
		st = t_wait(clone(in_shared_memory, stack + sizeof(stack), CLONE_VM | SIGCHLD,
				  &childs));
		CHECK(!st, "the child says %d", st);
		CHECK(childs && childs->tid != pg->tid, "it is the parent's");
		CHECK(t_flags(childs) & CSF_F_DEAD && !(t_flags(pg) & CSF_F_DEAD),
		      "flags 0x%x and 0x%x", t_flags(childs), t_flags(pg));
		t_unmap(childs);
		t_held(2, 0);
	}
	t_unmap(pg);
	TEST("the thread id is that of the thread's own pid namespace") {
		st = t_wait(t_fork(in_new_pid_ns, NULL));
		CHECK(!st, st == 2 ? "unshare" : "it is not 1");
		t_held(0, 0);
	}
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--after-exec"))
		return after_exec(atoi(argv[2]));
	t_held_begin();
	test_exec();
	test_exec_in_thread();
	test_fork();
	test_vfork();
	test_clone();
	return t_done("t_exec");
}
