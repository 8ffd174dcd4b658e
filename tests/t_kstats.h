/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the guest tests of kstats share: commands, the demo module, and reading metrics by a parser of
 * their own, so that lib/ is not tested against itself.
 */
#ifndef T_KSTATS_H
#define T_KSTATS_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "t.h"
#include "uapi/kstats.h"
#include "uapi/kstats_bucket.h"

#define DEMO "/sys/kernel/debug/kstats_demo/run"
#define MS   1000000ull

/* What times calls when no mechanism is asked for. */
#ifdef __x86_64__
#define CALLS_VIA "direct"
#else
#define CALLS_VIA "kretprobe"
#endif

/* CLOCK_MONOTONIC, in ns. */
static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 * MS + ts.tv_nsec;
}

/* Write text to a file. Returns 0 or -errno. */
static inline int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		ret = -errno;
	close(fd);
	return ret;
}

/* Read a file whole into buf. Returns its length or -errno. */
static inline int get(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while (len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += n;
	buf[len] = '\0';
	close(fd);
	return (int)len;
}

/* When the last command that was taken began. */
static uint64_t commanded_ns;

/* What was traced since that command cannot have taken longer than this. */
static inline uint64_t traced_for(void)
{
	return now_ns() - commanded_ns;
}

/* A command; `why` gets the reason that the same open file then tells. */
static char why[300];
static inline int control(const char *fmt, ...)
{
	char cmd[400], buf[4096], *line;
	int fd = open(KSTATS_DIR "/" KSTATS_CONTROL, O_RDWR | O_CLOEXEC), ret = 0;
	uint64_t began_ns = now_ns();
	ssize_t n;
	va_list ap;

	if (fd < 0)
		return -errno;
	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	why[0] = '\0';
	if (write(fd, cmd, strlen(cmd)) < 0) {
		ret = -errno;
		n = read(fd, buf, sizeof(buf) - 1);
		buf[n > 0 ? n : 0] = '\0';
		line = strstr(buf, "# error: ");
		if (line)
			snprintf(why, sizeof(why), "%.*s", (int)strcspn(line + 9, "\n"), line + 9);
	} else {
		commanded_ns = began_ns;
	}
	close(fd);
	return ret;
}

#define TRACES(...)                                                  \
	do {                                                         \
		int ret_ = control("trace " __VA_ARGS__);            \
		CHECK(!ret_, "%s: %s", strerrorname_np(-ret_), why); \
	} while (0)
/* The same where the kernel may lack the mechanism: skips the case then, so `break` must follow if true. */
#define LACKS(...)                                                           \
	({                                                                   \
		int ret_ = control("trace " __VA_ARGS__);                    \
		if (ret_ == -EOPNOTSUPP)                                     \
			SKIP("%.150s", why);                                 \
		else                                                         \
			CHECK(!ret_, "%s: %s", strerrorname_np(-ret_), why); \
		ret_;                                                        \
	})
#define REMOVES(name)                                     \
	do {                                              \
		int ret_ = control("remove %s", name);    \
		CHECK(!ret_, "remove %s: %s", name, why); \
	} while (0)

/* Let the demo module run something, in this task. */
static inline int demo(const char *what, int n, int times)
{
	char cmd[64];

	snprintf(cmd, sizeof(cmd), "%s %d %d", what, n, times);
	return put(DEMO, cmd);
}

/* What the last run of the demo said. */
static inline long demo_result(void)
{
	char buf[256] = "";

	get(DEMO, buf, sizeof(buf));
	return strtol(buf, NULL, 10);
}

/* A metric as its file shows it: all CPUs, or one. */
struct metric {
	uint64_t count, min_avg, max_avg, sum; /* sum of count * avg */
	uint64_t head_sum, attempted, recorded, missed, filtered, stopped, inside, unpaired;
	uint64_t slot[2048];
	char via[16];
	bool closes; /* p never fell, and ended in 1.000000 for each CPU and for all */
	char head[1600];
};

static inline uint64_t word(const char *text, const char *key)
{
	char k[40];
	const char *p;

	snprintf(k, sizeof(k), " %s ", key);
	p = strstr(text, k);
	return p ? strtoull(p + strlen(k), NULL, 10) : 0;
}

static inline void parse_row(struct metric *m, const char *line, int cpu, unsigned int last_p[1026])
{
	unsigned long long count, avg;
	unsigned int slot, at, whole, part, p;
	char kind;

	if (sscanf(line, "slot %u CPU%c %u count %llu avg %llu p %u.%u", &slot, &kind, &at, &count,
		   &avg, &whole, &part) != 7) {
		m->closes = false;
		return;
	}
	p = whole * 1000000 + part;
	at = kind == 'S' ? 1025 : at;
	m->closes &= p >= last_p[at] && p <= 1000000 && count;
	last_p[at] = p;
	if (cpu < 0 ? kind != 'S' : kind == 'S' || (int)at != cpu)
		return;
	m->count += count;
	m->slot[slot] += count;
	m->sum += count * avg;
	if (avg < m->min_avg)
		m->min_avg = avg;
	if (avg > m->max_avg)
		m->max_avg = avg;
}

/* cpu < 0: of all CPUs. Returns 0 or -errno. */
static inline int metric(const char *name, int cpu, struct metric *m)
{
	static unsigned int last_p[1026];
	char path[200], line[400];
	const char *via, *ledger;
	FILE *f;

	snprintf(path, sizeof(path), KSTATS_DIR "/%s", name);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	memset(m, 0, sizeof(*m));
	memset(last_p, 0, sizeof(last_p));
	m->min_avg = UINT64_MAX;
	m->closes = true;
	while (fgets(line, sizeof(line), f)) {
		if (*line == '#')
			strncat(m->head, line, sizeof(m->head) - strlen(m->head) - 1);
		else
			parse_row(m, line, cpu, last_p);
	}
	fclose(f);
	for (int i = 0; i < 1026; i++)
		m->closes &= !last_p[i] || last_p[i] == 1000000;
	m->head_sum = word(m->head, "sum");
	ledger = strstr(m->head, "# attempted ") ?: "";
	m->attempted = word(ledger, "attempted");
	m->recorded = word(ledger, "recorded");
	m->missed = word(ledger, "missed");
	m->filtered = word(ledger, "filtered");
	m->stopped = word(ledger, "stopped");
	m->inside = word(ledger, "inside");
	m->unpaired = word(ledger, "unpaired");
	via = strstr(m->head, " via ");
	if (via)
		sscanf(via, " via %15s", m->via);
	return 0;
}

#define METRIC(name, m) CHECK(!metric(name, -1, m), "%s cannot be read: %s", name, strerror(errno))

/* What must hold for every metric that is not being recorded into. */
static inline void sound(const char *name, const struct metric *m)
{
	CHECK(m->closes, "%s: p does not close", name);
	CHECK(m->count == m->recorded, "%s: rows have %llu, the ledger %llu", name,
	      (unsigned long long)m->count, (unsigned long long)m->recorded);
	CHECK(m->attempted == m->recorded + m->missed + m->filtered + m->stopped + m->inside,
	      "%s: attempted %llu, recorded %llu, missed %llu, filtered %llu, stopped %llu, inside %llu",
	      name, (unsigned long long)m->attempted, (unsigned long long)m->recorded,
	      (unsigned long long)m->missed, (unsigned long long)m->filtered,
	      (unsigned long long)m->stopped, (unsigned long long)m->inside);
}

static inline void pin_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static inline void sleep_ms(unsigned int ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

/*
 * A child that calls the demo `times` times, `gap` ms apart, after waiting `first` ms, or for SIGCONT if
 * that is negative.
 */
static inline pid_t child(const char *what, int n, int times, int cpu, int first, int gap)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (cpu >= 0)
		pin_to(cpu);
	if (first < 0)
		raise(SIGSTOP);
	else
		sleep_ms(first);
	for (; times; times--) {
		if (demo(what, n, 1))
			_exit(1);
		if (gap)
			sleep_ms(gap);
	}
	_exit(0);
}

static inline void wait_all(void)
{
	int status;

	while (wait(&status) > 0)
		CHECK(!status, "a child failed");
}

/* Wait until cond holds, for 20 s at most. */
#define UNTIL(cond)                        \
	({                                 \
		int left_ = 2000;          \
		while (!(cond) && left_--) \
			sleep_ms(10);      \
		left_ >= 0;                \
	})

/* Slots are used again some time after their node was removed. */
static inline bool drained(void)
{
	char buf[8192];

	return get(KSTATS_DIR "/" KSTATS_NODES, buf, sizeof(buf)) >= 0 && !strstr(buf, "# removed");
}

/* Everything that a failed command could leave behind, as one text. */
static inline void traces_left(char *buf, size_t size)
{
	static const char *const files[] = {KSTATS_DIR "/" KSTATS_NODES,
					    "/sys/kernel/debug/kprobes/list",
					    "/sys/kernel/tracing/enabled_functions"};
	char line[1000], *counts;
	size_t at = 0;
	FILE *f;

	UNTIL(drained());
	buf[0] = '\0';
	for (unsigned int i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		f = fopen(files[i], "re");
		while (f && fgets(line, sizeof(line), f)) {
			counts = strstr(line, " attempted ");
			if (counts)
				strcpy(counts, "\n");
			at += snprintf(buf + at, size - at, "%s", line);
		}
		if (f)
			fclose(f);
	}
	FILE *ls = popen("ls " KSTATS_DIR, "r");
	at += fread(buf + at, 1, size - at - 1, ls);
	buf[at] = '\0';
	pclose(ls);
}

/* Load or unload a module of ours. Returns 0 or -errno. */
static inline int module(const char *name, bool load)
{
	char path[64];
	int fd, ret;

	if (!load)
		return syscall(SYS_delete_module, name, O_NONBLOCK) ? -errno : 0;
	snprintf(path, sizeof(path), "/ko/%s.ko", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ret = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	return ret;
}

/* The demo with BTF, as a distribution's own modules have it. Returns 0 or -errno. */
static inline int load_demo_btf(void)
{
	int fd = open("/ko/kstats_demo_btf.ko", O_RDONLY | O_CLOEXEC);
	int ret = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;

	close(fd);
	return ret;
}

/* The first number of that key in a JSON text; 0: none. */
static inline uint64_t json_key(const char *text, const char *key)
{
	char k[40];
	const char *p;

	snprintf(k, sizeof(k), "\"%s\":", key);
	p = strstr(text, k);
	return p ? strtoull(p + strlen(k), NULL, 10) : 0;
}

static char out[65536];

/* Run a command by the shell, stdout and stderr in `out`. Returns its exit status. */
static inline int sh(const char *fmt, ...)
{
	char cmd[600];
	va_list ap;
	size_t n;
	int len, status;
	FILE *f;

	va_start(ap, fmt);
	len = vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	snprintf(cmd + len, sizeof(cmd) - len, " 2>&1");
	f = popen(cmd, "r");
	n = fread(out, 1, sizeof(out) - 1, f);
	out[n] = '\0';
	status = pclose(f);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif /* T_KSTATS_H */
