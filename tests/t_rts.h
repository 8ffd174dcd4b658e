/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests of lib/rts: a test program starts itself as a child that embeds the library, with an
 * environment of its choice, and looks at how it ended and at what it wrote to standard error.
 *
 * A child is `PROGRAM child SCENE`; scenes are a table {name, function}. host_start() starts the
 * library the way this program's host does: here plainly, in the KVM host with guests running.
 */
#ifndef T_RTS_H
#define T_RTS_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/rts/rts.h"
#include "tests/t.h"
#include "tests/t_json.h"

/* Sanitizers make everything slower and want threads of their own. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

struct scene {
	const char *name;
	int (*play)(int argc, char **argv);
};

/* A child and what came of it. */
struct run {
	pid_t pid;
	int fd; /* its standard error: a file */
	int status;
	double seconds;
	char *text; /* what it wrote, cut into lines */
	size_t len;
	struct line {
		char *text;
		bool json; /* valid */
	} * lines;
	size_t nr_lines;
};

static inline double now_s(void)
{
	struct timespec ts;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static inline void nap_ms(long ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	while (nanosleep(&ts, &ts))
		;
}

static void run_child(int err_fd, const char *scene, char *const env[])
{
	clearenv();
	putenv((char *)"PATH=/bin:/usr/bin:/sbin:/t");
	/* Children of children start threads; the sanitizer stops those by default. */
	putenv((char *)"TSAN_OPTIONS=die_after_fork=0:halt_on_error=1:exitcode=66");
	putenv((char *)"ASAN_OPTIONS=exitcode=66:detect_leaks=0");
	putenv((char *)"UBSAN_OPTIONS=halt_on_error=1:exitcode=66");
	for (; env && *env; env++)
		putenv(*env);
	dup2(err_fd, 2);
	execl("/proc/self/exe", "test", "child", scene, "arg\xff", "\"q\"", NULL);
	_exit(127);
}

/* Start a scene; env is a list of NAME=VALUE that ends with NULL. err_fd: -1 for a file. */
static inline void run_start(struct run *r, int err_fd, const char *scene, char *const env[])
{
	memset(r, 0, sizeof(*r));
	r->fd = (int)syscall(SYS_memfd_create, "stderr", MFD_CLOEXEC);
	fflush(stdout);
	r->seconds = now_s();
	r->pid = fork();
	if (r->pid == 0)
		run_child(err_fd < 0 ? r->fd : err_fd, scene, env);
}

static inline void run_read(struct run *r)
{
	char *p, *end;

	r->len = (size_t)lseek(r->fd, 0, SEEK_END);
	r->text = calloc(1, r->len + 1);
	if (pread(r->fd, r->text, r->len, 0) != (ssize_t)r->len)
		abort();
	close(r->fd);
	r->lines = calloc(r->len + 1, sizeof(*r->lines));
	for (p = r->text; p < r->text + r->len; p = end + 1) {
		end = p + strcspn(p, "\n");
		*end = '\0';
		r->lines[r->nr_lines++] = (struct line){.text = p, .json = json_ok(p)};
	}
}

/* Wait, at most limit_s; then it is killed, which a test sees by its status. Free with run_free().
 */
static inline void run_wait(struct run *r, double limit_s)
{
	double until = now_s() + limit_s;

	while (waitpid(r->pid, &r->status, WNOHANG) == 0) {
		if (now_s() > until) {
			kill(r->pid, SIGKILL);
			waitpid(r->pid, &r->status, 0);
			break;
		}
		nap_ms(2);
	}
	r->seconds = now_s() - r->seconds;
	run_read(r);
}

static inline void run_free(struct run *r)
{
	free(r->text);
	free(r->lines);
}

static inline void run_scene(struct run *r, const char *scene, char *const env[])
{
	run_start(r, -1, scene, env);
	run_wait(r, 60);
}

#define ENV(...) ((char *[]){__VA_ARGS__, NULL})
#define JSONL	 "STATPAGE_RUNTIME_STATS=jsonl"
#define USR1	 "STATPAGE_STATS_SIGNAL=USR1"
#define SNAP	 SIGUSR1

/* Line n of what it wrote, or NULL. */
static inline char *run_line(struct run *r, size_t n)
{
	return n < r->nr_lines ? r->lines[n].text : NULL;
}

/* The n-th record with this reason (any if NULL), or NULL. Lines that are no JSON are passed over.
 */
static inline char *run_record(struct run *r, const char *reason, size_t n)
{
	for (size_t i = 0; i < r->nr_lines; i++)
		if (r->lines[i].json && (!reason || json_is(r->lines[i].text, "reason", reason)) &&
		    !n--)
			return r->lines[i].text;
	return NULL;
}

static inline size_t run_records(struct run *r, const char *reason)
{
	size_t n = 0;

	for (size_t i = 0; i < r->nr_lines; i++)
		n += r->lines[i].json && (!reason || json_is(r->lines[i].text, "reason", reason));
	return n;
}

/* Some line has this text. */
static inline bool run_says(struct run *r, const char *text)
{
	char *line;

	for (size_t i = 0; (line = run_line(r, i)); i++)
		if (strstr(line, text))
			return true;
	return false;
}

/* Some summary's table has a row of this call with this count. */
static inline bool run_table(struct run *r, const char *name, unsigned long count)
{
	for (size_t i = 0; i < r->nr_lines; i++) {
		const char *line = run_line(r, i), *at = strstr(line, name);

		if (at && at > line && at[-1] == ' ' && !at[strlen(name)] &&
		    strtoul(line, NULL, 10) == count)
			return true;
	}
	return false;
}

/* Lines that are neither valid JSON nor, as warnings are, begin with "STATPAGE: ". */
static inline size_t run_bad_lines(struct run *r)
{
	size_t bad = 0;

	for (size_t i = 0; i < r->nr_lines; i++) {
		const char *text = r->lines[i].text;

		if (r->lines[i].json || !strncmp(text, "STATPAGE: ", 10))
			continue;
		/* a sanitizer's report ends with what it is about */
		if (!bad++ || !strncmp(text, "SUMMARY: ", 9))
			printf("#   bad line: %.200s\n", text);
	}
	return bad;
}

/* It ended by itself with this status. */
static inline bool run_exited(const struct run *r, int code)
{
	return WIFEXITED(r->status) && WEXITSTATUS(r->status) == code;
}

static inline bool run_killed(const struct run *r, int sig)
{
	return WIFSIGNALED(r->status) && WTERMSIG(r->status) == sig;
}

/* attempted = recorded + in flight + causes, and complete says whether nothing is missing. */
static inline bool ledger_holds(const char *rec)
{
	static const char *const causes[] = {"no_return",	  "no_instance", "recursion",
					     "table_full",	  "clock_back",	 "out_of_range",
					     "in_flight_unlisted"};
	char path[64];
	uint64_t sum = json_u64(rec, "lost.recorded");

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		snprintf(path, sizeof(path), "lost.%s", causes[i]);
		sum += json_u64(rec, path);
	}
	for (int i = 0; snprintf(path, sizeof(path), "in_flight[%d]", i), json_at(rec, path); i++)
		sum++;
	return sum == json_u64(rec, "lost.attempted");
}

/* ---- checks ---- */

/* The child ended well: its own checks hold, and what it wrote is JSON line by line. */
static inline void check_good(struct run *r)
{
	CHECK(run_exited(r, 0), "status 0x%x", r->status);
	CHECK(!run_bad_lines(r), "bad lines");
	CHECK(!run_says(r, "wrong:"), "the child's own checks");
	for (size_t i = 0; i < r->nr_lines; i++)
		if (strstr(run_line(r, i), "wrong:"))
			printf("#   %.200s\n", run_line(r, i));
}

/* The one final record; it is the last line. */
static inline const char *final_record(struct run *r)
{
	const char *rec = NULL;
	size_t nr = 0;

	for (size_t i = 0; i < r->nr_lines; i++) {
		if (r->lines[i].json && json_is(r->lines[i].text, "final", "true")) {
			nr++;
			rec = r->lines[i].text;
		}
	}
	CHECK(nr == 1, "%zu final records", nr);
	return rec ? rec : "{}";
}

static inline void run_ready(struct run *r)
{
	char text[4096] = "";

	for (int i = 0; i < 10000 && !strstr(text, "STATPAGE: ready"); i++) {
		nap_ms(2);
		if (pread(r->fd, text, sizeof(text) - 1, 0) < 0)
			return;
	}
}

/* ---- what scenes are made of; a scene that is content exits with 0 ---- */

#define SAY(...)                                                                   \
	do {                                                                       \
		char say_[200] = "STATPAGE: ";                                     \
		int n_ = snprintf(say_ + 10, sizeof(say_) - 12, __VA_ARGS__) + 10; \
		say_[n_] = '\n';                                                   \
		if (write(2, say_, (size_t)n_ + 1) < 0)                            \
			abort();                                                   \
	} while (0)
#define EXPECT(cond)                                                \
	do {                                                        \
		if (!(cond)) {                                      \
			SAY("wrong: line %d: %s", __LINE__, #cond); \
			exit(1);                                    \
		}                                                   \
	} while (0)

static inline void reap(pid_t pid, int expect)
{
	int status = -1;

	EXPECT(waitpid(pid, &status, 0) == pid);
	EXPECT(status == expect);
}

/* n recorded calls of getppid, a number that only tests use. */
static inline void make_calls(unsigned long n)
{
	long ret;

	while (n--)
		RTS_CALL(ret, RTS_ABI_NATIVE, SYS_getppid, syscall(SYS_getppid));
	(void)ret;
}

#define GETPPID "syscalls[name=getppid].count"

/* Play the scene that argv names. */
static inline int play_scene(const struct scene *scenes, size_t nr, int argc, char **argv)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(scenes[i].name, argv[2]))
			return scenes[i].play(argc, argv);
	return 99;
}

#endif /* T_RTS_H */
