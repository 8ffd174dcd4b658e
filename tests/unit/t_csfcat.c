/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This test checks that csfcat prints what the pages say, as text and as JSON, on a machine of 512
 * CPU ids, and that wrong use and failures end with a message and the documented exit status.
 */
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>

#include "tests/t.h"
#include "fake_page.h"

#define NR_CPUS 512
#define LEN	(sizeof(struct csf_cpu) + (NR_CPUS + 1) * sizeof(struct csf_cpu_row))
#define TICK	10000000u /* ns: USER_HZ is 100 */

static char here[PATH_MAX], top[PATH_MAX]; /* of this program, of the tree */
static char out[1 << 20], err[4096];	   /* what the last run() printed */
static struct csf_cpu *page;

static struct csf_cpu_row *row(unsigned int nr)
{
	return (struct csf_cpu_row *)(void *)(page + 1) + nr;
}

static void slurp(const char *name, char *buf, size_t size)
{
	FILE *f = fopen(name, "re");
	size_t n = f ? fread(buf, 1, size - 1, f) : 0;

	buf[n] = '\0';
	if (f)
		fclose(f);
	unlink(name);
}

/* Exit status of a shell command; its output is in out and err. */
__attribute__((format(printf, 1, 2))) static int run(const char *fmt, ...)
{
	char cmd[2 * PATH_MAX];
	va_list ap;
	int n, st;

	va_start(ap, fmt);
	n = vsnprintf(cmd, sizeof(cmd) - 32, fmt, ap);
	va_end(ap);
	snprintf(cmd + n, 32, "%s", strchr(fmt, '>') ? " 2>err" : " >out 2>err");
	st = system(cmd);
	slurp("out", out, sizeof(out));
	slurp("err", err, sizeof(err));
	return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
}

static void fill_row(unsigned int nr, uint32_t flags, uint64_t ticks)
{
	uint64_t *ns = (uint64_t *)(void *)&row(nr)->user_ns;
	int i;

	row(nr)->flags = flags;
	row(nr)->cpu = nr - 1;
	/* Just below the next tick: rounding must not show. */
	for (i = 0; i < 10; i++)
		ns[i] = (ticks + (uint64_t)i) * TICK + TICK - 1;
}

/* CPU 3 is offline, 512 ids are possible but for 5. */
static void fill(void)
{
	unsigned int i;

	page = (struct csf_cpu *)fake_file("cpu", LEN);
	fake_hdr(&page->hdr, CSF_KIND_CPU, LEN);
	page->rows_off = sizeof(*page);
	page->row_size = sizeof(struct csf_cpu_row);
	page->nr_rows = NR_CPUS + 1;
	page->update_mono_ns = 123;
	page->nr_updates = 1;
	page->period_us = 10000;
	page->tick_ns = 4000000;
	fill_row(0, CSF_CPU_POSSIBLE | CSF_CPU_ONLINE, 1000000);
	for (i = 0; i < NR_CPUS; i++)
		if (i != 5)
			fill_row(i + 1, CSF_CPU_POSSIBLE | (i == 3 ? 0 : CSF_CPU_ONLINE), 100 * i);
}

static void t_stat(void)
{
	char want[128], *at;
	unsigned int i;

	TEST("csfcat cpu: the lines of /proc/stat for the sum and 510 CPUs online") {
		CHECK(run("%s/fake_csfcat cpu", here) == 0 && !err[0], "%s", err);
		strcpy(want, "cpu  1000000 1000001 1000002 1000003 1000004 1000005 1000006 1000007 "
			     "1000008 1000009\n");
		CHECK(!strncmp(out, want, strlen(want)), "%.100s", out);
		at = out + strlen(want);
		for (i = 0; i < NR_CPUS; i++) {
			unsigned int n = 100 * i;

			if (i == 3 || i == 5)
				continue;
			snprintf(want, sizeof(want), "cpu%u %u %u %u %u %u %u %u %u %u %u\n", i, n,
				 n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9);
			if (!CHECK(!strncmp(at, want, strlen(want)), "cpu%u: %.40s", i, at))
				break;
			at += strlen(want);
		}
		CHECK(!*at, "more: %.40s", at);
	}
}

/* Whether text is one JSON value: enough of a parser to refuse what is none. */
static const char *json(const char *s)
{
	char close;

	if (*s == '"') {
		for (s++; *s && *s != '"'; s++)
			if (*s == '\\' || (unsigned char)*s < ' ')
				return NULL;
		return *s ? s + 1 : NULL;
	}
	if (*s != '{' && *s != '[') {
		size_t n = strspn(s, "0123456789");

		if (n)
			return *s == '0' && n > 1 ? NULL : s + n;
		return !strncmp(s, "true", 4) ? s + 4 : !strncmp(s, "false", 5) ? s + 5 : NULL;
	}
	close = *s == '{' ? '}' : ']';
	if (s[1] == close)
		return s + 2;
	do {
		s++;
		if (close == '}') {
			s = *s == '"' ? json(s) : NULL;
			if (!s || *s++ != ':')
				return NULL;
		}
		s = json(s);
	} while (s && *s == ',');
	return s && *s == close ? s + 1 : NULL;
}

static bool has(const char *text)
{
	return strstr(out, text) != NULL;
}

static void t_json(void)
{
	const char *end;

	TEST("csfcat cpu --json: one object with all of it") {
		CHECK(run("%s/fake_csfcat cpu --json", here) == 0 && !err[0], "%s", err);
		end = json(out);
		CHECK(end && !strcmp(end, "\n"), "no JSON near %.40s", end ? end : out);
		CHECK(!strncmp(
			      out,
			      "{\"update_mono_ns\":123,\"period_us\":10000,\"tick_ns\":4000000,"
			      "\"nr_updates\":1,\"nr_corrected\":0,\"all\":{\"user_ns\":10000009999999,"
			      "\"nice_ns\":10000019999999,\"system_ns\":",
			      130),
		      "%.200s", out);
		CHECK(has("\"guest_nice_ns\":10000099999999},\"cpus\":[{\"cpu\":0,\"online\":true,\"user_ns\""
			  ":9999999,"),
		      "%.600s", out);
		CHECK(has("{\"cpu\":3,\"online\":false,\"user_ns\":3009999999,"), "CPU 3");
		CHECK(!has("{\"cpu\":5,"), "CPU 5 cannot be");
		CHECK(has("{\"cpu\":511,\"online\":true,"), "CPU 511");
	}
	TEST("csfcat self --json: one object, without what the kernel does not keep") {
		struct csf_thread *t = fake_thread_self(7);

		t->hdr.absent = CSF_ABSENT_IO;
		CHECK(run("%s/fake_csfcat self --json 3", here) == 0 && !err[0], "%s", err);
		end = json(out);
		CHECK(end && !strcmp(end, "\n"), "no JSON near %.40s", end ? end : out);
		CHECK(has("{\"sleep_ms\":1,\"spin_ms\":2,\"tid\":7,\"cpu\":0,\"wall_ns\":"), "%s",
		      out);
		CHECK(has(",\"runq_ns\":0,\"sleep_ns\":0,\"dsleep_ns\":0,\"iowait_ns\":0,\"nr_preempt\":0,"
			  "\"nr_block\":0,\"nr_migrate\":0,\"min_flt\":0,\"maj_flt\":0,\"syscr\":0,\"syscw\":0}"),
		      "%s", out);
		t->hdr.size = offsetof(struct csf_thread, maj_flt);
		CHECK(run("%s/fake_csfcat self --json 3", here) == 0 && !err[0], "%s", err);
		CHECK(json(out) && has("\"min_flt\":0}"), "%s", out);
		munmap(t, PAGE);
	}
	TEST("csfcat self: the line") {
		munmap(fake_thread_self(7), PAGE);
		CHECK(run("%s/fake_csfcat self 5", here) == 0 && !err[0], "%s", err);
		CHECK(!strncmp(out, "sleep 2 ms + spin 3 ms: wall ", 29), "%s", out);
		CHECK(has(" | preempt 0 block 0 migrate 0 | flt 0/0 | sysc r0 w0 | io r0B w0B\n"),
		      "%s", out);
	}
}

static bool stop;

/* 10 ticks of each kind on CPU 1, every so many us, as the module would. */
static void *refresh(void *us)
{
	unsigned int n, i;
	uint64_t *ns;

	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		usleep(*(useconds_t *)us);
		__atomic_store_n(&page->seq, page->seq + 1, __ATOMIC_SEQ_CST);
		for (n = 0; n < 3; n += 2) /* the sum, and CPU 1 */
			for (ns = (uint64_t *)(void *)&row(n)->user_ns, i = 0; i < 10; i++)
				ns[i] += 10 * TICK;
		page->update_mono_ns += 1000000000;
		page->nr_updates++;
		__atomic_store_n(&page->seq, page->seq + 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void start_refresh(pthread_t *t, useconds_t *us)
{
	stop = false;
	if (pthread_create(t, NULL, refresh, us))
		fake_die("pthread_create");
}

static void stop_refresh(pthread_t t)
{
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
}

static unsigned int count(const char *text)
{
	unsigned int n = 0;
	const char *at;

	for (at = out; (at = strstr(at, text)); at++)
		n++;
	return n;
}

static void t_watch(void)
{
	unsigned int i, bad = 0;
	useconds_t us = 3000;
	uint64_t sum, cpu1;
	const char *at;
	pthread_t t;

	TEST("csfcat cpu --watch: shares of the time between reports, - where none passed") {
		start_refresh(&t, &us);
		CHECK(run("%s/fake_csfcat cpu --watch 0.05 --count 3", here) == 0 && !err[0], "%s",
		      err);
		CHECK(count("percent ") == 3 && count("\ncpu511 ") == 3, "%u reports",
		      count("percent "));
		/* Eight kinds in equal shares, and two that are part of others. */
		CHECK(has("\ncpu1        12.5    12.5    12.5    12.5    12.5    12.5    12.5    12.5    12.5"
			  "    12.5\n"),
		      "%.600s", out);
		CHECK(has("\ncpu0           -       -"), "%.600s", out);
		CHECK(!has("\ncpu3 "), "CPU 3 is offline");
		CHECK(run("%s/fake_csfcat cpu --json --watch=0.02 --count 4", here) == 0, "%s",
		      err);
		CHECK(count("\n") == 4 && count("{\"update_mono_ns\"") == 4, "%u lines",
		      count("\n"));
		stop_refresh(t);
	}
	TEST("csfcat cpu: all rows are of one refresh, whenever the next comes") {
		us = 50;
		start_refresh(&t, &us);
		for (i = 0; i < 100; i++) {
			CHECK(run("%s/fake_csfcat cpu", here) == 0, "%s", err);
			at = strstr(out, "\ncpu1 ");
			if (CHECK(at && sscanf(out, "cpu  %lu", &sum) == 1 &&
					  sscanf(at, "\ncpu1 %lu", &cpu1) == 1,
				  "%.100s", out))
				bad += sum - cpu1 != 1000000 - 100;
		}
		stop_refresh(t);
		CHECK(!bad, "%u of %u are not", bad, i);
	}
	TEST("csfcat cpu --watch: ends when its output cannot be written") {
		CHECK(run("%s/fake_csfcat cpu --watch 0.02 >/dev/full", here) == 1, "it went on");
		CHECK(strstr(err, "standard output: No space left"), "%s", err);
	}
}

static void t_wrong(void)
{
	static const char *const args[] = {"cpu x",
					   "cpu --nonsense",
					   "cpu --watch 0",
					   "cpu --watch 1x",
					   "cpu --watch=",
					   "cpu --count 3",
					   "cpu --watch --count 0",
					   "cpu --count",
					   "self",
					   "self 0",
					   "self -- -1",
					   "self 1.5",
					   "self 10 20",
					   "self x",
					   "self 99999999999",
					   "self nan"};
	size_t i;

	TEST("csfcat: wrong use is 2 and one line on stderr, or two with a hint") {
		for (i = 0; i < sizeof(args) / sizeof(args[0]); i++) {
			CHECK(run("%s/fake_csfcat %s", here, args[i]) == 2, "'%s'", args[i]);
			CHECK(!out[0] && strstr(err, "fake_csfcat: "), "'%s': %s", args[i], err);
		}
	}
	TEST("csfcat: no output device, and --help on one") {
		CHECK(run("%s/fake_csfcat cpu >/dev/full", here) == 1 && err[0], "cpu: %s", err);
		CHECK(run("%s/fake_csfcat self 1 >/dev/full", here) == 1 && err[0], "self: %s",
		      err);
		CHECK(run("%s/fake_csfcat cpu --help", here) == 0 && has("--watch [SEC]"), "%s",
		      out);
		CHECK(run("%s/fake_csfcat self --help", here) == 0 && has("--json"), "%s", out);
		CHECK(run("%s/fake_csfcat self --help >/dev/full", here) == 1, "it is 0");
	}
	TEST("csfcat: pages that are not to be used are 1 and a line that says what to do") {
		page->hdr.abi++;
		CHECK(run("%s/fake_csfcat cpu", here) == 1 && strstr(err, "ABI version 1"), "%s",
		      err);
		page->hdr.abi--;
		fake_thread_self(7)->hdr.flags = CSF_F_TSC_UNSTABLE;
		CHECK(run("%s/fake_csfcat self 1", here) == 1 && strstr(err, "TSC"), "%s", err);
		unlink("thread-self");
		unlink("cpu");
		CHECK(run("%s/fake_csfcat self 1", here) == 1 && strstr(err, "mount -t"), "%s",
		      err);
		CHECK(run("%s/fake_csfcat cpu", here) == 1 && strstr(err, "mount -t"), "%s", err);
		CHECK(!out[0], "there is output: %s", out);
	}
}

static void t_main(void)
{
	TEST("statpage: the table of commands") {
		if (run("test -x %s/tools/statpage", top)) {
			SKIP("tools/statpage is not built");
			break;
		}
		CHECK(run("%s/tools/statpage", top) == 2 && !out[0] && strstr(err, "usage: "), "%s",
		      err);
		CHECK(run("%s/tools/statpage --help", top) == 0 && has("\n  cpu ") &&
			      has("\n  self "),
		      "%s", out);
		CHECK(run("%s/tools/statpage nonsense", top) == 2 && strstr(err, "'nonsense'"),
		      "%s", err);
		CHECK(run("%s/tools/statpage --help >/dev/full", top) == 1, "it is 0");
		CHECK(run("%s/tools/csfcat --help", top) == 0 && has("usage: csfcat "), "%s", out);
		CHECK(run("%s/tools/csfcat self --help", top) == 0 && has("--json"), "%s", out);
		CHECK(run("%s/tools/csfcat cpu --nonsense", top) == 2 && strstr(err, "csfcat: "),
		      "%s", err);
	}
}

int main(void)
{
	ssize_t n = readlink("/proc/self/exe", here, sizeof(here) - 1);
	char *end;

	here[n < 0 ? 0 : n] = '\0';
	memcpy(top, here, sizeof(top));
	end = strstr(top, "/build/");
	if (end)
		*end = '\0';
	end = strrchr(here, '/');
	if (end)
		*end = '\0';
	fake_mount();
	fill();
	t_stat();
	t_json();
	t_watch();
	t_wrong();
	t_main();
	fake_cleanup();
	return t_done("t_csfcat");
}
