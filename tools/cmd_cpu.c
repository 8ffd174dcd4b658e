// SPDX-License-Identifier: GPL-2.0
/* statpage cpu: the CPU times of the machine from the cpu page of coarse_stat_fs. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "tools/cmd.h"
#include "tools/cpu_table.h"
#include "tools/replay.h"

static const char usage[] =
	"cpu [--json] [--watch [SEC]] [--count N] [--replay FILE]\n"
	"\n"
	"Print the CPU times of the machine and of each CPU that is online, in the format and the unit of\n"
	"/proc/stat (ticks of 1/USER_HZ s, as a rule 10 ms), from the cpu page of coarse_stat_fs.\n"
	"\n"
	"  --watch [SEC]  every SEC seconds (default 1), in percent, where the time since the last line went\n"
	"  --count N      with --watch: end after N reports\n"
	"  --replay FILE  what statpage record wrote, at its end; with --watch all of it, by its instants, or SEC\n"
	"  --json         one JSON object a line, of times since boot, not of differences. Keys: update_mono_ns\n"
	"                 (CLOCK_MONOTONIC of the refresh), period_us, tick_ns (how fine the kernel accounts busy\n"
	"                 time; 0: exactly), nr_updates, nr_corrected; all (an object) and cpus (an array of\n"
	"                 objects for each possible CPU: cpu, online) with user_ns, nice_ns, system_ns, idle_ns,\n"
	"                 iowait_ns, irq_ns, softirq_ns, steal_ns, guest_ns, guest_nice_ns. user_ns includes\n"
	"                 guest_ns, nice_ns includes guest_nice_ns.\n";

static int read_table(bool replay, struct cpu_table *t)
{
	if (replay)
		return replay_cpu_table(t);
	return cpu_table_read(t) ? cmd_csf_err("cpu") : 0;
}

static void print_ticks(const char *name, const struct csf_cpu_row *row)
{
	const uint64_t tick = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	int i;

	fputs(name, stdout);
	for (i = 0; i < CPU_TABLE_TIMES; i++)
		printf(" %" PRIu64, cpu_row_ns(row, i) / tick);
	putchar('\n');
}

static void print_stat(const struct cpu_table *t)
{
	char name[16];
	uint32_t i;

	/* The name and two blanks: /proc/stat has it so. */
	print_ticks("cpu ", &t->sum.row);
	for (i = 0; i < t->sum.nr_cpus; i++)
		if (t->cpu[i].flags & CSF_CPU_ONLINE) {
			snprintf(name, sizeof(name), "cpu%u", i);
			print_ticks(name, &t->cpu[i]);
		}
}

static void print_json(const struct cpu_table *t)
{
	cpu_table_json(stdout, t, NULL);
	putchar('\n');
}

static void print_percent(const char *name, const struct csf_cpu_row *from,
			  const struct csf_cpu_row *to)
{
	double all = 0;
	int i;

	for (i = 0; i < CPU_TABLE_DISJOINT; i++)
		all += (double)(cpu_row_ns(to, i) - cpu_row_ns(from, i));
	printf("%-8s", name);
	for (i = 0; i < CPU_TABLE_TIMES; i++)
		if (all > 0)
			printf(" %7.1f",
			       100 * (double)(cpu_row_ns(to, i) - cpu_row_ns(from, i)) / all);
		else
			printf(" %7s", "-");
	putchar('\n');
}

static void print_shares(const struct cpu_table *from, const struct cpu_table *to)
{
	char name[16];
	uint32_t i;

	printf("%-8s", "percent");
	for (i = 0; i < CPU_TABLE_TIMES; i++)
		printf(" %7s", i == CPU_TABLE_TIMES - 1 ? "gnice" : cpu_table_names[i]);
	printf("   of %.3f s\n", (double)(to->sum.update_mono_ns - from->sum.update_mono_ns) / 1e9);
	print_percent("cpu", &from->sum.row, &to->sum.row);
	for (i = 0; i < to->sum.nr_cpus; i++)
		if (to->cpu[i].flags & CSF_CPU_ONLINE) {
			snprintf(name, sizeof(name), "cpu%u", i);
			print_percent(name, &from->cpu[i], &to->cpu[i]);
		}
}

static void sleep_s(double s)
{
	struct timespec ts = {.tv_sec = (time_t)s};

	ts.tv_nsec = (long)((s - (double)ts.tv_sec) * 1e9);
	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

/* 1; 0: there is no more; -1 after a message. */
static int next(bool replay, double s)
{
	if (replay)
		return replay_on((uint64_t)(s * 1e9));
	sleep_s(s);
	return 1;
}

/*
 * Report every s seconds (0, of a recording: each instant), count times; 0 is for ever. Ends as well when stdout
 * cannot be written.
 */
static int watch(bool replay, double s, unsigned int count, bool json)
{
	struct cpu_table t[2] = {0};
	unsigned int n = 0;
	int ret, more = 1;

	ret = read_table(replay, &t[0]);
	while (!ret && (!count || n < count)) {
		more = next(replay, s);
		if (more <= 0)
			break;
		ret = read_table(replay, &t[++n % 2]);
		if (ret)
			break;
		if (json)
			print_json(&t[n % 2]);
		else
			print_shares(&t[!(n % 2)], &t[n % 2]);
		ret = cmd_flush();
	}
	cpu_table_free(&t[0]);
	cpu_table_free(&t[1]);
	return more < 0 ? CMD_FAILED : ret;
}

static int once(bool replay, bool json)
{
	struct cpu_table t = {0};
	int ret = read_table(replay, &t);

	if (!ret && json)
		print_json(&t);
	else if (!ret)
		print_stat(&t);
	cpu_table_free(&t);
	return ret;
}

/* At the instant that is the first to be read. */
static int open_replay(const char *file, bool all)
{
	int ret = all ? replay_begin(file) : replay_last(file);

	return ret || !all || replay_on(0) > 0 ? ret : CMD_FAILED;
}

int cmd_cpu(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},	 {"watch", optional_argument, NULL, 'w'},
		{"count", required_argument, NULL, 'n'}, {"replay", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},	 {0},
	};
	double every = 0, count = 0;
	bool json = false, watching = false;
	const char *file = NULL;
	int c, ret;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			json = true;
			break;
		case 'w':
			watching = true;
			/* The number may be the next word, too. */
			if (!optarg && optind < argc && argv[optind][0] != '-')
				optarg = argv[optind++];
			if (optarg && cmd_number("SEC", optarg, 0.01, 86400, &every))
				return CMD_USAGE;
			break;
		case 'n':
			if (cmd_number("N", optarg, 1, 1e9, &count))
				return CMD_USAGE;
			break;
		case 'r':
			file = optarg;
			break;
		case 'h':
			cmd_help(usage);
			return 0;
		default:
			return CMD_USAGE;
		}
	}
	if (optind != argc)
		return cmd_usage("cpu takes no argument '%s'", argv[optind]);
	if (count > 0 && !watching)
		return cmd_usage("--count goes with --watch");
	ret = file ? open_replay(file, watching) : 0;
	if (!ret && watching)
		ret = watch(file, every > 0 || file ? every : 1, (unsigned int)count, json);
	else if (!ret)
		ret = once(file, json);
	replay_close();
	return ret;
}
