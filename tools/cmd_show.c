// SPDX-License-Identifier: GPL-2.0
/* statpage show: a metric as text, quantiles, JSON or a plot. */
#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/record.h"
#include "tools/cmd.h"
#include "tools/dist_view.h"
#include "tools/pace.h"
#include "tools/replay.h"

static const char usage[] =
	"show [--cpu N] [--quantiles | --json | --plot | --heatmap] METRIC...\n"
	"\n"
	"Print metrics: traced nodes, their GAP- metrics, and those of annotated modules.\n"
	"\n"
	"  --cpu N            of one CPU only\n"
	"  --quantiles        p50 to p999, with the bounds that the slots' width gives them\n"
	"  --json             one object a line; `complete` is false when something was missed\n"
	"  --plot             distribution and shares, drawn with characters; quantiles are marked\n"
	"  --heatmap          of one metric, time against latency: a line an interval, with the samples that\n"
	"                     came in it\n"
	"  --interval TIME    of the heat map: 500ms, 10s, 1m; default 1s\n"
	"  --count N          lines of the heat map; default: until ^C\n"
	"  --replay FILE      what statpage record wrote, at its end; the heat map goes through all of it, a line an\n"
	"                     instant, or --interval\n"
	"\n"
	"Pictures are as wide as the terminal, and plain ASCII unless the locale is UTF-8. Colours are for\n"
	"terminals, and not where NO_COLOR is set.\n";

static int show(const struct dist_engine *const *engines, char *const *names,
		const struct dist_view *view)
{
	int ret = 0;

	if (view->as == DIST_HEATMAP)
		return dist_heatmap(dist_engine_of(engines, *names), *names, view);
	for (; *names; names++)
		ret |= dist_show(dist_engine_of(engines, *names), *names, view);
	return ret;
}

static int live(char *const *names, const char *cpu, struct dist_view *view)
{
	const struct dist_engine *const *engines;

	if (cpu && dist_view_cpu(cpu, (unsigned int)sysconf(_SC_NPROCESSORS_CONF), view))
		return CMD_USAGE;
	if (!view->interval_ns)
		view->interval_ns = 1000000000u;
	engines = dist_engines();
	return engines ? show(engines, names, view) : CMD_FAILED;
}

/* A heat map begins with the first instant that has the metric. */
static int go_to(const char *name)
{
	const struct dist_engine *const *engines;
	struct dist_why why;
	int ret;

	while ((ret = replay_on(0)) > 0) {
		engines = replay_engines(&why);
		if (engines && dist_engine_of(engines, name)->has(name))
			return 0;
	}
	return ret < 0 ? CMD_FAILED : 0;
}

static int replayed(const char *file, char *const *names, const char *cpu, struct dist_view *view)
{
	const struct dist_engine *const *engines;
	int ret;

	view->replay = true;
	ret = view->as == DIST_HEATMAP ? replay_begin(file) : replay_last(file);
	if (!ret && cpu)
		ret = dist_view_cpu(cpu, replay_head()->nr_cpus, view);
	if (!ret && view->as == DIST_HEATMAP)
		ret = go_to(*names);
	if (!ret) {
		engines = replay_dists();
		ret = engines ? show(engines, names, view) : CMD_FAILED;
	}
	replay_close();
	return ret;
}

int cmd_show(int argc, char **argv)
{
	static const struct option options[] = {
		{"cpu", required_argument, NULL, 'c'},	 {"quantiles", no_argument, NULL, 'q'},
		{"json", no_argument, NULL, 'j'},	 {"plot", no_argument, NULL, 'p'},
		{"heatmap", no_argument, NULL, 'm'},	 {"interval", required_argument, NULL, 'i'},
		{"count", required_argument, NULL, 'n'}, {"replay", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},	 {0},
	};
	struct dist_view view = {.cpu = -1};
	const char *cpu = NULL, *file = NULL;
	double count = 0;
	int c, ret = 0;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			cpu = optarg;
			break;
		case 'q':
			ret = dist_view_as(DIST_QUANTILES, &view);
			break;
		case 'j':
			ret = dist_view_as(DIST_JSON, &view);
			break;
		case 'p':
			ret = dist_view_as(DIST_PLOT, &view);
			break;
		case 'm':
			ret = dist_view_as(DIST_HEATMAP, &view);
			break;
		case 'i':
			ret = pace_duration("--interval", optarg, &view.interval_ns);
			break;
		case 'n':
			ret = cmd_number("--count", optarg, 1, 1e9, &count);
			view.count = (unsigned int)count;
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
		if (ret)
			return ret;
	}
	if (optind == argc)
		return cmd_usage("show needs the name of a metric; 'ls' lists the traced ones");
	if (view.as != DIST_HEATMAP && (view.interval_ns || view.count))
		return cmd_usage("--interval and --count go with --heatmap");
	if (view.as == DIST_HEATMAP && optind != argc - 1)
		return cmd_usage("--heatmap takes one metric");
	return file ? replayed(file, argv + optind, cpu, &view) : live(argv + optind, cpu, &view);
}
