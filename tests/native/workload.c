/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Programs with a known number of system calls: workload NAME [N]. Each prints nothing, or the counts it
 * made itself as `call count` lines, so that a watcher can be checked against the same run.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/kvm.h>
#include <linux/seccomp.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static char *self;
static char **rest; /* what follows NAME */

static void die(const char *what)
{
	perror(what);
	_exit(99);
}

/* A child that begins in the group of that directory, waits, and calls. */
static int into_cgroup(long n)
{
	struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD};
	struct timespec nap = {.tv_sec = 1};
	pid_t pid;

	args.cgroup = open(rest[1], O_RDONLY | O_DIRECTORY);
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		die("clone3");
	if (!pid) {
		nanosleep(&nap, NULL);
		while (n--)
			syscall(SYS_getppid);
		_exit(0);
	}
	printf("%d\n", pid);
	return waitpid(pid, NULL, 0) != pid;
}

/* n times a call with success, and once with an error. */
static int calls(long n)
{
	while (n--)
		syscall(SYS_getppid);
	syscall(SYS_close, 12345);
	return 0;
}

static int forks(long n)
{
	while (n--) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (!pid)
			_exit(0);
		if (waitpid(pid, NULL, 0) != pid)
			die("waitpid");
	}
	return 0;
}

/* Replace itself n times. */
static int execs(long n)
{
	char left[24];

	if (!n)
		return 0;
	snprintf(left, sizeof(left), "%ld", n - 1);
	execl(self, self, "execs", left, NULL);
	die("exec");
	return 1;
}

static int spawns(long n)
{
	char *argv[] = {self, "nothing", NULL};

	while (n--) {
		pid_t pid;

		if (posix_spawn(&pid, self, NULL, NULL, argv, environ))
			die("posix_spawn");
		if (waitpid(pid, NULL, 0) != pid)
			die("waitpid");
	}
	return 0;
}

static int vforks(long n)
{
	while (n--) {
		pid_t pid = vfork();

		if (!pid) {
			execl(self, self, "nothing", NULL);
			_exit(99);
		}
		if (waitpid(pid, NULL, 0) != pid)
			die("waitpid");
	}
	return 0;
}

enum { THREADS = 8 };

static struct {
	atomic_long futex, futex_errors, read, write, gettid;
} made;

static int pipes[THREADS][2];
static atomic_int word;
static long rounds;

/*
 * A ring: each thread hands a byte to the next, and plays with a futex nobody else waits for. No bit to
 * wait for is an error that the C library's own calls never meet, as they do EAGAIN in pthread_join().
 */
static void *ring(void *arg)
{
	int me = (int)(long)arg;
	char c = 0;

	for (long i = 0; i < rounds; i++) {
		if (read(pipes[me][0], &c, 1) != 1)
			die("read");
		atomic_fetch_add(&made.read, 1);
		if (syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 0) == -1)
			atomic_fetch_add(&made.futex_errors, 1);
		syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		atomic_fetch_add(&made.futex, 2);
		syscall(SYS_gettid);
		atomic_fetch_add(&made.gettid, 1);
		if (write(pipes[(me + 1) % THREADS][1], &c, 1) != 1)
			die("write");
		atomic_fetch_add(&made.write, 1);
	}
	return NULL;
}

static int threads(long n)
{
	pthread_t t[THREADS];

	rounds = n;
	for (int i = 0; i < THREADS; i++)
		if (pipe(pipes[i]))
			die("pipe");
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, ring, (void *)(long)i))
			die("pthread_create");
	if (write(pipes[0][1], "x", 1) != 1)
		die("write");
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	/* The byte is read once more, so the counts are those of the threads alone plus one each. */
	printf("read_ring %ld\nwrite_ring %ld\nfutex_errors %ld\ngettid %ld\n", made.read + 0L,
	       made.write + 0L, made.futex_errors + 0L, made.gettid + 0L);
	return 0;
}

static atomic_int waiting;

/* Spins, as waiting would be a call more or less; then lets both come from their word to their pause(). */
static void *exec_in_thread(void *arg)
{
	(void)arg;
	while (atomic_load(&waiting) < 2)
		;
	usleep(500000);
	execl(self, self, "calls", "7", NULL);
	die("exec");
	return NULL;
}

static void *wait_for_ever(void *arg)
{
	(void)arg;
	atomic_fetch_add(&waiting, 1);
	for (;;)
		pause();
	return NULL;
}

/* exec by a thread that is not the leader, while the leader and another one wait. */
static int thread_exec(long n)
{
	pthread_t t;

	(void)n;
	pthread_create(&t, NULL, wait_for_ever, NULL);
	pthread_create(&t, NULL, exec_in_thread, NULL);
	wait_for_ever(NULL);
	return 0;
}

static void *sleeper(void *arg)
{
	(void)arg;
	sleep(1000);
	return NULL;
}

/* n threads that sleep while the process ends by exit_group. */
static int many_threads(long n)
{
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	while (n--)
		if (pthread_create(&t, &a, sleeper, NULL))
			die("pthread_create");
	usleep(1000000);
	_exit(0);
}

/* Sleep n ms in one call; print its result. */
static int nap(long n)
{
	struct timespec ts = {n / 1000, n % 1000 * 1000000};
	int ret = (int)syscall(SYS_nanosleep, &ts, NULL);

	printf("nanosleep %d %d\n", ret, ret ? errno : 0);
	return 0;
}

static volatile sig_atomic_t got;

static void on_signal(int sig)
{
	got = sig;
}

/* Wait for SIGINT or SIGTERM, then end with status 40 + the signal's number. */
static int graceful(long n)
{
	(void)n;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	printf("ready\n");
	fflush(stdout);
	while (!got)
		usleep(10000);
	return 40 + got;
}

/* Like it, but stay until n seconds are over. */
static int stubborn(long n)
{
	struct timespec now, end;

	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	printf("ready\n");
	fflush(stdout);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += n;
	do {
		usleep(10000);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec ||
		 (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
	printf("done\n");
	return 0;
}

/* Like it, but in one call all the time that no signal is handled. */
static int steadfast(long n)
{
	struct timespec end;

	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += n;
	printf("ready\n");
	fflush(stdout);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
	printf("done\n");
	return 0;
}

static int by_signal(long n)
{
	signal((int)n, SIG_DFL);
	raise((int)n);
	return 1;
}

/* Burn CPU for n ms inside no system call, then sleep n ms in one. */
static int burn_and_sleep(long n)
{
	struct timespec t, ts = {n / 1000, n % 1000 * 1000000};
	clock_t end = clock() + n * (CLOCKS_PER_SEC / 1000);

	while (clock() < end)
		;
	(void)t;
	nanosleep(&ts, NULL);
	return 0;
}

/* Be traced by our parent's parent: what a debugger inside a watched program runs into. */
static int debugger(long n)
{
	(void)n;
	if (ptrace(PTRACE_TRACEME, 0, 0, 0)) {
		printf("traceme %d\n", errno);
		return 3;
	}
	return 0;
}

/* Execute the rest of the command line under a seccomp filter. */
static int exec_under(struct sock_filter *code, size_t nr)
{
	struct sock_fprog prog = {(unsigned short)nr, code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		die("seccomp");
	execvp(rest[0], rest);
	die("exec");
	return 1;
}

/* ... under which a call fails as in a container. */
static int exec_without(unsigned int nr)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return exec_under(code, sizeof(code) / sizeof(code[0]));
}

static int no_ptrace(long n)
{
	(void)n;
	return exec_without(SYS_ptrace);
}

static int no_bpf(long n)
{
	(void)n;
	return exec_without(SYS_bpf);
}

/* ... under which it dies if it asks for KVM's statistics descriptor. */
static int filtered(long n)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, KVM_GET_STATS_FD, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	(void)n;
	return exec_under(code, sizeof(code) / sizeof(code[0]));
}

static int nothing(long n)
{
	(void)n;
	return 0;
}

/* A name and a command line that are no text. */
static int odd_name(long n)
{
	char *argv[] = {"w\xff\"\n\\", "odd_name", "0", NULL};

	prctl(PR_SET_NAME, "\xc3(\x01\"\\");
	if (n)
		execv(self, argv);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(long n);
	} all[] = {
		{"into_cgroup", into_cgroup},
		{"calls", calls},
		{"forks", forks},
		{"execs", execs},
		{"spawns", spawns},
		{"vforks", vforks},
		{"threads", threads},
		{"thread_exec", thread_exec},
		{"many_threads", many_threads},
		{"nap", nap},
		{"graceful", graceful},
		{"stubborn", stubborn},
		{"steadfast", steadfast},
		{"by_signal", by_signal},
		{"filtered", filtered},
		{"no_ptrace", no_ptrace},
		{"no_bpf", no_bpf},
		{"nothing", nothing},
		{"burn_and_sleep", burn_and_sleep},
		{"debugger", debugger},
		{"odd_name", odd_name},
	};
	static char path[4096];

	/* Not argv[0]: it may be no path. */
	if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		die("readlink");
	self = path;
	rest = argv + 2;
	for (size_t i = 0; argc > 1 && i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(argv[1], all[i].name))
			return all[i].run(argc > 2 ? atol(argv[2]) : 1);
	fprintf(stderr, "usage: workload NAME [N]\n");
	return 2;
}
