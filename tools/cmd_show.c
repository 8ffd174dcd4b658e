// SPDX-License-Identifier: GPL-2.0
/* statpage show: a metric as text, quantiles, JSON or a plot. */
#include <getopt.h>
#include <stdio.h>

#include "lib/record.h"
#include "tools/cmd.h"
#include "tools/dist_view.h"

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
	"\n"
	"Pictures are as wide as the terminal, and plain ASCII unless the locale is UTF-8. Colours are for\n"
	"terminals, and not where NO_COLOR is set.\n";

int cmd_show(int argc, char **argv)
{
	static const struct option options[] = {
		{"cpu", required_argument, NULL, 'c'},
		{"quantiles", no_argument, NULL, 'q'},
		{"json", no_argument, NULL, 'j'},
		{"plot", no_argument, NULL, 'p'},
		{"heatmap", no_argument, NULL, 'm'},
		{"interval", required_argument, NULL, 'i'},
		{"count", required_argument, NULL, 'n'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	uint64_t interval_ns = 0;
	double count = 0;
	struct dist_view view = {.cpu = -1};
	const struct dist_engine *const *engines;
	int c, ret = 0;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			ret = dist_view_cpu(optarg, &view);
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
			interval_ns = rts_duration(optarg);
			if (!interval_ns)
				ret = cmd_usage(
					"--interval takes 1ms to 24h, as 500ms, 10s or 1m, not '%s'",
					optarg);
			break;
		case 'n':
			ret = cmd_number("--count", optarg, 1, 1e9, &count);
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
	if (view.as != DIST_HEATMAP && (interval_ns || count > 0))
		return cmd_usage("--interval and --count go with --heatmap");
	if (view.as == DIST_HEATMAP && optind != argc - 1)
		return cmd_usage("--heatmap takes one metric");
	engines = dist_engines();
	if (!engines)
		return CMD_FAILED;
	if (view.as == DIST_HEATMAP)
		return dist_heatmap(dist_engine_of(engines, argv[optind]), argv[optind], view.cpu,
				    interval_ns ? interval_ns : 1000000000u, (unsigned int)count);
	for (; optind < argc; optind++)
		ret |= dist_show(dist_engine_of(engines, argv[optind]), argv[optind], &view);
	return ret;
}
