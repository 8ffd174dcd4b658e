// SPDX-License-Identifier: GPL-2.0
/*
 * statpage: one command in front of all parts. csfcat is the same program by another name.
 *
 * To add a command: its function in cmd_<name>.c, a line in cmd.h, a row here, a file in the
 * Makefile.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/cmd.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"run", cmd_run, "run a command and count its system calls, and those of all it starts"},
	{"attach", cmd_attach, "the same for a process that runs already"},
	{"convert", cmd_convert, "records to flame graphs, timelines and tables"},
	{"report", cmd_report, "records and distributions as one page for a browser"},
	{"doctor", cmd_doctor, "what works here, and what would help where something does not"},
	{"top", cmd_top, "where threads' and CPUs' time goes, live"},
	{"cpu", cmd_cpu, "CPU times of the machine, in the format of /proc/stat"},
	{"self", cmd_self, "sleep and spin, and print where the time went"},
	{"serve", cmd_serve, "give threads their pages where no module can be loaded"},
	{"trace", cmd_trace,
	 "record how long a kernel function takes, or from one place to another"},
	{"untrace", cmd_untrace, "remove what trace made"},
	{"ls", cmd_ls, "list what is traced, and what was missed"},
	{"show", cmd_show, "print a distribution: table, quantiles, JSON or plot"},
	{"start", cmd_start, "let a metric record again"},
	{"stop", cmd_stop, "stop recording into a metric"},
	{"reset", cmd_reset, "forget what a metric has recorded"},
	{"record", cmd_record, "record what these show, to look at later, on any machine"},
	{"export", cmd_export, "tell Prometheus, over HTTP or in a file"},
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void help(FILE *f)
{
	size_t i;

	fprintf(f, "usage: %s COMMAND [OPTION...]\n\n", program_invocation_short_name);
	for (i = 0; i < NR_COMMANDS; i++)
		fprintf(f, "  %-10s %s\n", commands[i].name, commands[i].help);
	fprintf(f, "\n'%s COMMAND --help' tells more. Exit status: 0, 1 failed, 2 wrong use.\n",
		program_invocation_short_name);
}

int main(int argc, char **argv)
{
	int ret, failed;
	size_t i;

	if (argc < 2) {
		help(stderr);
		return CMD_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		help(stdout);
		return cmd_flush();
	}
	if (!strcmp(argv[1], "--version")) {
		puts("statpage " STATPAGE_VERSION);
		return cmd_flush();
	}
	for (i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			break;
	if (i == NR_COMMANDS)
		return cmd_usage("no command '%s'", argv[1]);
	cmd_name = commands[i].name;
	argv[1] = argv[0]; /* the name in getopt's messages */
	ret = commands[i].run(argc - 1, argv + 1);
	failed = cmd_flush();
	return ret ? ret : failed;
}
