// SPDX-License-Identifier: GPL-2.0
/* statpage ls: what is traced, how, and what was missed. */
#include <getopt.h>
#include <stdio.h>

#include "lib/fmt_dist.h"
#include "tools/cmd.h"
#include "tools/dist_view.h"

static const char usage[] =
	"ls\n"
	"\n"
	"List the traced nodes: what each measures, by which mechanism, its ledger, and why the mechanism is\n"
	"not the usual one. A function that is traced via direct is held: BPF fentry programs and live patches\n"
	"on it get EBUSY until untrace.\n";

static int show(const struct dist_node *n, void *data)
{
	unsigned int *nr = data;

	if (!n->name[0]) {
		printf("(%s)\n", n->note);
		return 0;
	}
	(*nr)++;
	printf("%-24s %s..%s by %s via %s%s, %s: ", n->name, n->start, n->end, n->by, n->via,
	       n->gap ? " with gap" : "", n->state);
	fmt_dist_ledger(stdout, &n->ledger);
	if (n->note[0])
		printf(" [%s]", n->note);
	putchar('\n');
	return 0;
}

int cmd_ls(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
	const struct dist_engine *e;
	struct dist_why why;
	unsigned int nr = 0;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c != 'h')
			return CMD_USAGE;
		cmd_help(usage);
		return 0;
	}
	if (optind != argc)
		return cmd_usage("ls takes no argument, not '%s'", argv[optind]);
	e = dist_engine();
	if (!e)
		return CMD_FAILED;
	if (e->list(show, &nr, &why))
		return cmd_err("%s", why.text);
	if (!nr)
		puts("nothing is traced");
	return 0;
}
