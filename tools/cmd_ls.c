// SPDX-License-Identifier: GPL-2.0
/* statpage ls: what is traced, how, and what was missed. */
#include <getopt.h>
#include <stdio.h>

#include "lib/fmt_dist.h"
#include "tools/cmd.h"
#include "tools/dist_view.h"
#include "tools/replay.h"

static const char usage[] =
	"ls [--replay FILE]\n"
	"\n"
	"List the traced nodes of all engines: what each measures, by which mechanism, its ledger, and why the\n"
	"mechanism is not the usual one. A function that is traced via direct is held: BPF fentry programs and live patches\n"
	"on it get EBUSY until untrace.\n"
	"\n"
	"  --replay FILE  what statpage record wrote, at its end\n";

struct listing {
	const struct dist_engine *engine;
	unsigned int nr;
};

static int show(const struct dist_node *n, void *data)
{
	struct listing *l = data;

	if (!n->name[0]) {
		printf("(%s)\n", n->note);
		return 0;
	}
	l->nr++;
	printf("%-24s %s..%s by %s via %s (%s)%s, %s: ", n->name, n->start, n->end, n->by, n->via,
	       l->engine->name, n->gap ? " with gap" : "", n->state);
	fmt_dist_ledger(stdout, &n->ledger);
	if (n->note[0])
		printf(" [%s]", n->note);
	putchar('\n');
	return 0;
}

static int list(const struct dist_engine *const *engines)
{
	struct listing l = {NULL, 0};
	struct dist_why why;

	if (!engines)
		return CMD_FAILED;
	for (; *engines; engines++) {
		l.engine = *engines;
		if (l.engine->list(show, &l, &why))
			return cmd_err("%s", why.text);
	}
	if (!l.nr)
		puts("nothing is traced");
	return 0;
}

int cmd_ls(int argc, char **argv)
{
	static const struct option options[] = {
		{"replay", required_argument, NULL, 'r'}, {"help", no_argument, NULL, 'h'}, {0}};
	const char *file = NULL;
	int c, ret;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
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
		return cmd_usage("ls takes no argument, not '%s'", argv[optind]);
	if (!file)
		return list(dist_engines());
	ret = replay_last(file);
	if (!ret)
		ret = list(replay_dists());
	replay_close();
	return ret;
}
