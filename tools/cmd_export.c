// SPDX-License-Identifier: GPL-2.0
/* statpage export: metrics for Prometheus, over HTTP or in a file for node_exporter. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "lib/record.h"
#include "tools/cmd.h"
#include "tools/export.h"
#include "tools/pace.h"
#include "tools/replay.h"
#include "uapi/kstats_bucket.h"

static const char usage[] =
	"export --listen [ADDR:]PORT | --textfile DIR [OPTION...]\n"
	"\n"
	"Tell Prometheus what statpage sees of this machine: the distributions that are traced, with their\n"
	"ledgers, and the CPU times of coarse_stat_fs. Names and labels are in docs/fleet.md.\n"
	"\n"
	"  --listen [ADDR:]PORT  serve /metrics at this address (default 127.0.0.1; [::1]:PORT; port 0: any that is\n"
	"                        free) until SIGTERM or ^C; prints where\n"
	"  --textfile DIR        write DIR/statpage.prom for node_exporter's textfile collector\n"
	"  --interval T          with --textfile: every T (15s, 1m; from 1ms to 24h) until SIGTERM or ^C, not once\n"
	"  --bits B              2^B buckets a power of two, 0 to 5, default 1; machines that are to be added up\n"
	"                        need the same, and metrics of at least as many bits\n"
	"  --range LOW..HIGH     of buckets, default 100ns..60s, at most 10ns..3600s\n"
	"  --threads NAME        where the wall time of the threads of processes of this name went; a pattern in\n"
	"                        quotes ('*' is all); may be given more than once\n"
	"  --from DIR            distributions of a copy of /sys/kernel/debug/kstats, and nothing else\n"
	"  --replay FILE         with --textfile: what statpage record wrote, at its end\n";

#define MOST_NAMES 32 /* of --threads */

static const struct om_buckets defaults = {.bits = 1, .low = 100, .high = 60000000000};

/* A whole number and its unit; 0 if it is none. */
static uint64_t parse_ns(const char *text, size_t len)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	uint64_t n = 0;
	size_t i, at;

	for (at = 0; at < len && text[at] >= '0' && text[at] <= '9' && n < OM_MOST_NS; at++)
		n = n * 10 + (uint64_t)(text[at] - '0');
	for (i = 0; at && i < sizeof(units) / sizeof(units[0]); i++)
		if (strlen(units[i].name) == len - at &&
		    !strncmp(text + at, units[i].name, len - at))
			return n > OM_MOST_NS / units[i].ns ? 0 : n * units[i].ns;
	return 0;
}

static int parse_range(const char *text, struct om_buckets *b)
{
	const char *dots = strstr(text, "..");

	if (dots) {
		b->low = parse_ns(text, (size_t)(dots - text));
		b->high = parse_ns(dots + 2, strlen(dots + 2));
	}
	if (dots && b->low >= OM_LEAST_NS && b->high > b->low)
		return 0;
	return cmd_usage("--range is LOW..HIGH within 10ns..3600s, not '%s'", text);
}

static int parse_bits(const char *text, struct om_buckets *b)
{
	double bits;

	if (cmd_number("--bits", text, 0, KSTATS_MAX_BITS, &bits))
		return CMD_USAGE;
	b->bits = (unsigned int)bits;
	return bits == b->bits ? 0 : cmd_usage("--bits is a whole number, not '%s'", text);
}

/* What a user asked for. */
struct asked {
	const char *listen, *dir, *replay;
	uint64_t interval_ns;
	bool threads;
};

static int check(const struct asked *a, const struct export_opts *o)
{
	if (!a->listen == !a->dir)
		return cmd_usage("export needs --listen or --textfile, and not both");
	if (a->interval_ns && !a->dir)
		return cmd_usage("--interval goes with --textfile");
	if (a->threads && (o->from || a->replay))
		return cmd_usage("--threads are this machine's, and not in a %s",
				 o->from ? "copy" : "recording");
	if (!a->replay)
		return 0;
	if (a->listen)
		return cmd_usage("--replay goes with --textfile: what is served is of now");
	if (o->from)
		return cmd_usage("--from and --replay are two sources: expected one");
	return a->interval_ns ? cmd_usage("--replay is written once: leave --interval out") : 0;
}

static int run(const struct asked *a, const struct export_opts *o)
{
	int ret = a->replay ? replay_last(a->replay) : 0;

	if (!ret)
		ret = a->listen ? export_serve(a->listen, o) :
				  export_textfile(a->dir, a->interval_ns, o);
	replay_close();
	return ret;
}

int cmd_export(int argc, char **argv)
{
	static const struct option options[] = {
		{"listen", required_argument, NULL, 'l'},
		{"textfile", required_argument, NULL, 't'},
		{"interval", required_argument, NULL, 'i'},
		{"bits", required_argument, NULL, 'b'},
		{"range", required_argument, NULL, 'r'},
		{"threads", required_argument, NULL, 'p'},
		{"from", required_argument, NULL, 'f'},
		{"replay", required_argument, NULL, 'y'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct export_opts o = {.buckets = defaults};
	struct asked a = {NULL};
	const char *names[MOST_NAMES + 1] = {NULL};
	unsigned int nr_names = 0;
	int c, ret = 0;

	while (!ret && (c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'l':
			a.listen = optarg;
			break;
		case 't':
			a.dir = optarg;
			break;
		case 'i':
			ret = pace_duration("--interval", optarg, &a.interval_ns);
			break;
		case 'b':
			ret = parse_bits(optarg, &o.buckets);
			break;
		case 'r':
			ret = parse_range(optarg, &o.buckets);
			break;
		case 'p':
			if (nr_names == MOST_NAMES)
				ret = cmd_usage("--threads: at most %d", MOST_NAMES);
			else
				names[nr_names++] = optarg;
			break;
		case 'f':
			o.from = optarg;
			break;
		case 'y':
			a.replay = optarg;
			o.replay = true;
			break;
		case 'h':
			cmd_help(usage);
			return 0;
		default:
			return CMD_USAGE;
		}
	}
	if (ret)
		return ret;
	if (optind != argc)
		return cmd_usage("export takes no argument '%s'", argv[optind]);
	a.threads = nr_names;
	ret = check(&a, &o);
	if (ret)
		return ret;
	o.threads = nr_names ? export_threads_new(names) : NULL;
	if (nr_names && !o.threads)
		return cmd_err("out of memory");
	ret = run(&a, &o);
	export_threads_free(o.threads);
	return ret;
}
