/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This test checks that csfcat and eventloop, as built, print of a real machine what other sources
 * say too.
 */
#include <sys/mount.h>

#include "t_csf.h"

static char out[65536], err[4096]; /* what the last run() printed */

/* Exit status of a shell command; its output is in out and err. */
static int run(const char *cmd)
{
	char line[512];
	int st;

	snprintf(line, sizeof(line), "cd /tmp && { %s; } >out 2>err", cmd);
	st = system(line);
	t_read_file("/tmp/out", out, sizeof(out));
	t_read_file("/tmp/err", err, sizeof(err));
	return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
}

/* The cpu lines of text in the format of /proc/stat. Returns how many. */
static int parse_stat(const char *text, long long v[8][10])
{
	int n = 0, id, k;

	while (n < 8 && !strncmp(text, "cpu", 3)) {
		if (!n)
			k = sscanf(text, "cpu  %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld",
				   &v[n][0], &v[n][1], &v[n][2], &v[n][3], &v[n][4], &v[n][5],
				   &v[n][6], &v[n][7], &v[n][8], &v[n][9]);
		else
			k = sscanf(text, "cpu%d %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld",
				   &id, &v[n][0], &v[n][1], &v[n][2], &v[n][3], &v[n][4], &v[n][5],
				   &v[n][6], &v[n][7], &v[n][8], &v[n][9]) -
			    1;
		if (k != 10)
			break;
		n++;
		text = strchr(text, '\n');
		if (!text++)
			break;
	}
	return n;
}

static void t_stat(void)
{
	long long before[8][10], page[8][10], after[8][10];
	static char text[65536];
	int i, j, n;

	TEST("csfcat cpu: each number lies between two readings of /proc/stat") {
		t_read_file("/proc/stat", text, sizeof(text));
		n = parse_stat(text, before);
		CHECK(run("csfcat cpu") == 0 && !err[0], "%s", err);
		CHECK(parse_stat(out, page) == n && n >= 2, "%d lines, /proc/stat has %d",
		      parse_stat(out, page), n);
		/* The page of the next refresh is no older than the first reading: two periods. */
		t_sleep_ns(20000000);
		t_read_file("/proc/stat", text, sizeof(text));
		parse_stat(text, after);
		/* A tick for where /proc/stat rounds, one for idle time that it counts later. */
		for (i = 0; i < n; i++)
			for (j = 0; j < 10; j++)
				CHECK(page[i][j] >= before[i][j] - 2 &&
					      page[i][j] <= after[i][j] + 2,
				      "line %d, number %d: %lld is not in %lld to %lld", i, j,
				      page[i][j], before[i][j], after[i][j]);
	}
	TEST("csfcat cpu --watch: as often as asked") {
		CHECK(run("csfcat cpu --watch 0.1 --count 2") == 0, "%s", err);
		CHECK(strstr(out, "percent ") == out && strstr(out + 1, "\npercent "), "%s", out);
		CHECK(run("csfcat cpu --json") == 0 &&
			      strstr(out, "\"cpus\":[{\"cpu\":0,\"online\":true"),
		      "%s", out);
	}
}

/* A number of the last run()'s output, behind a key; -1: there is none. */
static long long number(const char *key)
{
	const char *p = strstr(out, key);

	return p ? strtoll(p + strlen(key), NULL, 10) : -1;
}

static void t_top(void)
{
	long long before, user, all, after;

	TEST("csfcat top: CPU times are those of the cpu page") {
		CHECK(run("csfcat cpu --json") == 0, "%s", err);
		before = number("\"all\":{\"user_ns\":");
		CHECK(run("csfcat top --once --json --interval 100ms -p 1") == 0 && !err[0], "%s",
		      err);
		CHECK(strstr(out, "\"cpus\":{\"source\":\"coarse_stat_fs\",\"all\":"), "%s", out);
		CHECK(strstr(out, ",\"online\":[{\"cpu\":0,\"total\":{"), "%s", out);
		user = number("\"all\":{\"total\":{\"user_ns\":");
		all = number("\"interval\":{\"all_ns\":");
		CHECK(run("csfcat cpu --json") == 0, "%s", err);
		after = number("\"all\":{\"user_ns\":");
		CHECK(before >= 0 && before <= user && user <= after,
		      "user %lld is not in %lld to %lld", user, before, after);
		CHECK(all > 0, "no time in the interval");
	}
}

static void t_self(void)
{
	double wall, cpu, runq, sleep, dsleep, iowait;
	unsigned int preempt, block;

	TEST("csfcat self 100: 50 ms of sleep, 50 ms of spin, and they add up") {
		CHECK(run("csfcat self 100") == 0 && !err[0], "%s", err);
		printf("# %s\n", out);
		if (!CHECK(sscanf(out,
				  "sleep 50 ms + spin 50 ms: wall %lfms = cpu %lf + runq %lf + sleep %lf + "
				  "dsleep %lf + iowait %lf | preempt %u block %u migrate",
				  &wall, &cpu, &runq, &sleep, &dsleep, &iowait, &preempt,
				  &block) == 8,
			   "%s", out))
			break;
		/* The way into the sleep is CPU time. */
		CHECK(wall >= 100 && sleep > 40 && cpu + runq >= 50, "too little");
		CHECK(wall - cpu - runq - sleep - dsleep - iowait < 0.0005 &&
			      wall - cpu - runq - sleep - dsleep - iowait > -0.0005,
		      "the sum is not the wall time");
		CHECK(block >= 1, "%u blocks", block);
		CHECK(strstr(out, " | flt ") && strstr(out, " | sysc r") && strstr(out, " | io r"),
		      "%s", out);
	}
	TEST("csfcat self --json: the same numbers have names") {
		CHECK(run("csfcat self --json 20") == 0 && !err[0], "%s", err);
		CHECK(strstr(out, "{\"sleep_ms\":10,\"spin_ms\":10,\"tid\":") == out, "%s", out);
		CHECK(strstr(out, ",\"read_bytes\":") && strstr(out, ",\"syscr\":"), "%s", out);
	}
}

/* What the report on a slow operation says it mostly did; NULL without a whole report. */
static const char *mostly(const char *op)
{
	char head[64];
	const char *at;
	static char did[80];
	unsigned int major, minor, tid;
	double cpu;

	snprintf(head, sizeof(head), "slow op %s wall ", op);
	at = strstr(out, head);
	if (!at || sscanf(at + strlen(head), "%*f ms, mostly %79[^\n]", did) != 1)
		return NULL;
	at = strchr(at, '\n');
	if (!at ||
	    sscanf(at, "\n    time cpu %lf + runq %*f + sleep %*f + dsleep %*f + iowait %*f ms",
		   &cpu) != 1)
		return NULL;
	at = strchr(at + 1, '\n');
	if (!at ||
	    sscanf(at,
		   "\n    switches %*u preempted, %*u blocked, %*u migrated; tid %u now on cpu %*u",
		   &tid) != 1)
		return NULL;
	at = strchr(at + 1, '\n');
	if (!at || sscanf(at, "\n    faults %u minor, %u major", &minor, &major) != 2)
		return NULL;
	at = strchr(at + 1, '\n');
	return at && !strncmp(at, "\n    io ", 8) ? did : NULL;
}

static void t_eventloop(void)
{
	const char *did;

	TEST("eventloop: reports its slow operations, each for its reason") {
		CHECK(run("eventloop") == 0 && !err[0], "%s", err);
#define MOSTLY(op, what)                                                                       \
	do {                                                                                   \
		did = mostly(op);                                                              \
		CHECK(did && !strcmp(did, what), "%s: %s", op, did ? did : "no whole report"); \
	} while (0)
		MOSTLY("sleep", "sleeping (poll, futex, timer, ...)");
		MOSTLY("spin", "running");
		MOSTLY("crowd", "waiting for a CPU");
		MOSTLY("vfork", "in uninterruptible sleep (not for I/O)");
#undef MOSTLY
		CHECK(mostly("lock"), "no report on lock");
		CHECK(!mostly("nothing"), "a report on an operation that does nothing");
		CHECK(strstr(out, "\n80 operations, "), "no sum at the end: %s", out);
		CHECK(run("eventloop 100000") == 0 &&
			      !strcmp(out, "80 operations, 0 slow (over 100000 ms)"),
		      "%s", out);
	}
	TEST("eventloop: wrong use, no output device") {
		CHECK(run("eventloop x") == 2 && strstr(err, "usage: "), "%s", err);
		CHECK(run("eventloop >/dev/full") == 1 && err[0], "%s", err);
	}
}

static void t_unmounted(void)
{
	TEST("tools: without the mount they say how to get it") {
		if (!CHECK(!umount(CSF_MOUNT), "umount: %s", strerror(errno)))
			break;
		CHECK(run("csfcat cpu") == 1 && !out[0] &&
			      strstr(err, "mount -t coarse_stat_fs none " CSF_MOUNT),
		      "%s", err);
		CHECK(run("csfcat self 10") == 1 && strstr(err, "mount -t"), "%s", err);
		CHECK(run("eventloop") == 1 && strstr(err, "mounted"), "%s", err);
		mount("none", CSF_MOUNT, CSF_FS_NAME, 0, NULL);
	}
}

int main(void)
{
	t_stat();
	t_top();
	t_self();
	t_eventloop();
	t_unmounted();
	return t_done("t_tools");
}
