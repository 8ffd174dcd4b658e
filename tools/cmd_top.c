// SPDX-License-Identifier: GPL-2.0
/* statpage top: where the time of threads, CPUs and traced functions goes, live or for scripts. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <time.h>
#include <unistd.h>

#include "lib/record.h"
#include "tools/cmd.h"
#include "tools/dist_view.h"
#include "tools/pace.h"
#include "tools/replay.h"
#include "tools/top.h"

static const char usage[] =
	"top [-p PID] [OPTION...]\n"
	"\n"
	"Show where the time of threads goes: on a CPU, on the run queue, asleep, in uninterruptible sleep, in\n"
	"I/O wait; with their switches and faults, the CPUs' times, and the distributions that are traced.\n"
	"On a terminal it is a live view: F1 lists its keys.\n"
	"\n"
	"  -p, --pid PID    the threads of a process; default: all threads\n"
	"      --interval T look each T (500ms, 1.5s, 2m; from 1ms to 24h); default: 1s\n"
	"      --count N    end after N intervals\n"
	"      --once       print tables of one interval; no terminal is needed\n"
	"      --json       one object a line and interval, until interrupted; docs/top.md has the keys\n"
	"      --engine E   pages (of coarse_stat_fs or statpage serve), proc; default: both, the better first\n"
	"      --from DIR   distributions of a copy of /sys/kernel/debug/kstats\n"
	"      --replay FILE  what statpage record wrote, by its instants, or each T; --once: the last two\n"
	"  -h, --help\n";

#define MAX_ENGINES 8

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

static void print(const struct top_opts *o, bool json)
{
	const struct top_report *r = top_report(o->top);

	if (json) {
		fmt_top_json(stdout, r, o->engine);
		return;
	}
	if (o->hint)
		printf("%s\n", o->hint);
	fmt_top_sort(r->thread, r->nr_threads, TOP_ONCPU, false);
	fmt_top_text(stdout, r, o->engine);
}

/* Why there are no more reports. Less than was asked for is a failure, but of a recording. */
static int ended(const struct top_opts *o, int err, unsigned int n, const char *why)
{
	if (err != -ENODATA) {
		cmd_err("%s", why);
		return err == -ESRCH && n && (!o->count || o->replay) ? 0 : CMD_FAILED;
	}
	if (replay_cut())
		cmd_err("%s", why);
	return n ? 0 :
		   cmd_err("there is one instant in the recording: top shows what happened between "
			   "two");
}

static int scripted(const struct top_opts *o, bool json)
{
	uint64_t next = now_ns();
	unsigned int n = 0;
	char why[300];
	int ret = 0;

	if (top_sample(o->top, why, sizeof(why)))
		return cmd_err("%s", why);
	while (!ret && (!o->count || n < o->count)) {
		next += o->interval_ns;
		if (!o->replay)
			sleep_until(next);
		ret = top_sample(o->top, why, sizeof(why));
		if (ret)
			return ended(o, ret, n, why);
		print(o, json);
		ret = cmd_flush();
		if (ret) {
			/* It has been said: main() need not find it again. */
			__fpurge(stdout);
			clearerr(stdout);
		}
		n++;
	}
	if (!ret && o->replay && replay_cut())
		cmd_err("%s", replay_cut());
	return ret;
}

/* What the user asked for, and no option told top_opts. */
struct asked {
	const char *engine, *from, *replay;
	bool once, json;
};

static int open_live(struct top_opts *o, const struct asked *a)
{
	char why[300];
	int ret = top_open(&o->top, a->engine, o->pid, dist_engines_now, why, sizeof(why));

	if (!o->interval_ns)
		o->interval_ns = 1000000000u;
	return ret == -EINVAL ? cmd_usage("%s", why) : ret ? cmd_err("%s", why) : 0;
}

/* At the pace it was recorded at. */
static int open_replay(struct top_opts *o, const struct asked *a)
{
	uint64_t step_ns = o->interval_ns;
	int ret;

	if (a->engine || a->from)
		return cmd_usage("--engine and --from are for this machine, not for a recording");
	if (a->once && step_ns)
		return cmd_usage(
			"--once of a recording is its last two instants: leave --interval out");
	ret = replay_begin(a->replay);
	if (ret)
		return ret;
	o->replay = true;
	if (!step_ns)
		o->interval_ns = replay_head()->interval_ns;
	return replay_top(&o->top, o->pid, step_ns, a->once);
}

/* For who may have all of it, and has not asked for less. */
static const char *hint(const struct top_opts *o, const struct asked *a)
{
	if (a->engine || a->replay || geteuid() || o->engine[0] != &threads_proc)
		return NULL;
	return "while statpage serve runs, top of root has all five buckets of every thread";
}

static int start(struct top_opts *o, const struct asked *a)
{
	const struct thread_engine *engines[MAX_ENGINES + 1] = {NULL};
	int ret;

	if (!a->once && !a->json && !(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)))
		return cmd_usage("standard %s is no terminal: the live view needs one, --once and "
				 "--json do not",
				 isatty(STDOUT_FILENO) ? "input" : "output");
	ret = a->replay ? open_replay(o, a) : open_live(o, a);
	if (!ret) {
		for (unsigned int i = 0; i < MAX_ENGINES; i++)
			engines[i] = top_engine(o->top, i);
		o->engine = engines;
		o->hint = hint(o, a);
		ret = a->once || a->json ? scripted(o, a->json) : top_live(o);
		top_close(o->top);
	}
	replay_close();
	return ret;
}

int cmd_top(int argc, char **argv)
{
	static const struct option options[] = {
		{"pid", required_argument, NULL, 'p'},	 {"interval", required_argument, NULL, 'i'},
		{"count", required_argument, NULL, 'n'}, {"once", no_argument, NULL, 'o'},
		{"json", no_argument, NULL, 'j'},	 {"engine", required_argument, NULL, 'e'},
		{"from", required_argument, NULL, 'f'},	 {"replay", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},	 {0},
	};
	struct top_opts o = {.pid = 0};
	struct asked a = {NULL};
	double pid = 0, count = 0;
	int c;

	while ((c = getopt_long(argc, argv, "p:h", options, NULL)) != -1) {
		switch (c) {
		case 'p':
			if (cmd_number("PID", optarg, 1, 4194304, &pid))
				return CMD_USAGE;
			break;
		case 'i':
			if (pace_duration("--interval", optarg, &o.interval_ns))
				return CMD_USAGE;
			break;
		case 'n':
			if (cmd_number("N", optarg, 1, 1e9, &count))
				return CMD_USAGE;
			break;
		case 'o':
			a.once = true;
			break;
		case 'j':
			a.json = true;
			break;
		case 'e':
			a.engine = optarg;
			break;
		case 'f':
			a.from = optarg;
			engine_kmod_from(optarg);
			break;
		case 'r':
			a.replay = optarg;
			break;
		case 'h':
			cmd_help(usage);
			return 0;
		default:
			return CMD_USAGE;
		}
	}
	if (optind != argc)
		return cmd_usage("top takes no argument '%s'; a process is named by -p PID",
				 argv[optind]);
	if (pid != (double)(pid_t)pid || count != (double)(unsigned int)count)
		return cmd_usage("PID and N are whole numbers");
	if (a.once && count > 1)
		return cmd_usage("--once is one interval: leave --count out, or --once");
	o.pid = (pid_t)pid;
	o.count = a.once ? 1 : (unsigned int)count;
	return start(&o, &a);
}
