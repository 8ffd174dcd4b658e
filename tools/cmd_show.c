// SPDX-License-Identifier: GPL-2.0
/* statpage show: a metric as text, quantiles, JSON or a plot. */
#include <getopt.h>
#include <stdio.h>

#include "tools/cmd.h"
#include "tools/dist_view.h"

static const char usage[] =
	"show [--cpu N] [--quantiles | --json | --plot] METRIC...\n"
	"\n"
	"Print metrics: traced nodes, their GAP- metrics, and those of annotated modules.\n"
	"\n"
	"  --cpu N       of one CPU only\n"
	"  --quantiles   p50 to p999, with the bounds that the slots' width gives them\n"
	"  --json        one object a line; `complete` is false when something was missed\n"
	"  --plot        distribution and shares, drawn with characters\n";

int cmd_show(int argc, char **argv)
{
	static const struct option options[] = {
		{"cpu", required_argument, NULL, 'c'}, {"quantiles", no_argument, NULL, 'q'},
		{"json", no_argument, NULL, 'j'},      {"plot", no_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},      {0},
	};
	struct dist_view view = {.cpu = -1};
	const struct dist_engine *e;
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
	e = dist_engine();
	if (!e)
		return CMD_FAILED;
	for (; optind < argc; optind++)
		ret |= dist_show(e, argv[optind], &view);
	return ret;
}
