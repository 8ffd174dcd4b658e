// SPDX-License-Identifier: GPL-2.0
/* Showing a metric in the way that was asked for. */
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/fmt_dist.h"
#include "tools/cmd.h"
#include "tools/dist_view.h"

const struct dist_engine *dist_engine(void)
{
	struct dist_why why;

	if (!engine_kmod.probe(&why))
		return &engine_kmod;
	cmd_err("%s", why.text);
	return NULL;
}

int dist_view_cpu(const char *text, struct dist_view *view)
{
	long last = sysconf(_SC_NPROCESSORS_CONF) - 1;
	double cpu;

	if (cmd_number("--cpu", text, 0, (double)last, &cpu))
		return CMD_USAGE;
	view->cpu = (int)cpu;
	return cpu == view->cpu ? 0 : cmd_usage("--cpu is a whole number, not '%s'", text);
}

int dist_view_as(int as, struct dist_view *view)
{
	if (view->as != DIST_TEXT && (int)view->as != as)
		return cmd_usage("only one of --quantiles, --json and --plot");
	view->as = as;
	return 0;
}

static unsigned int terminal_columns(void)
{
	struct winsize w;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) || w.ws_col < 40 ? 100 : w.ws_col;
}

int dist_show(const struct dist_engine *e, const char *name, const struct dist_view *view)
{
	struct dist_metric m;
	struct dist_why why;

	if (e->read(name, &m, &why))
		return cmd_err("%s", why.text);
	switch (view->as) {
	case DIST_QUANTILES:
		fmt_dist_quantiles(stdout, name, &m, view->cpu);
		break;
	case DIST_JSON:
		fmt_dist_json(stdout, name, &m, view->cpu);
		break;
	case DIST_PLOT:
		fmt_dist_plot(stdout, name, &m, view->cpu, terminal_columns());
		break;
	default:
		fmt_dist_text(stdout, name, &m, view->cpu);
	}
	dist_metric_free(&m);
	return 0;
}
