/* SPDX-License-Identifier: GPL-2.0 */
/* Stands in for cmd_convert.c, cmd_report.c and replay.c where json-c is missing. */
#include "tools/cmd.h"
#include "tools/replay.h"

static int left_out(const char *what)
{
	return cmd_err("%s: left out when this was built, as json-c was missing: install its "
		       "headers (Debian: libjson-c-dev) and build again",
		       what);
}

int cmd_convert(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return left_out(cmd_name);
}

int cmd_report(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return left_out(cmd_name);
}

/* Whoever opens a recording gets no further. */
int replay_begin(const char *file)
{
	(void)file;
	return left_out("--replay");
}

int replay_last(const char *file)
{
	return replay_begin(file);
}

int replay_on(uint64_t interval_ns)
{
	(void)interval_ns;
	return -1;
}

const struct dist_engine *const *replay_dists(void)
{
	return NULL;
}

const struct dist_engine *const *replay_engines(struct dist_why *why)
{
	why->text[0] = '\0';
	return NULL;
}

const struct replay_head *replay_head(void)
{
	return NULL;
}

uint64_t replay_real_ns(void)
{
	return 0;
}

void replay_close(void)
{
}

int replay_cpu_table(struct cpu_table *t)
{
	(void)t;
	return CMD_FAILED;
}

int replay_top(struct top **out, pid_t pid, uint64_t interval_ns, bool once)
{
	(void)out;
	(void)pid;
	(void)interval_ns;
	(void)once;
	return CMD_FAILED;
}

const char *replay_cut(void)
{
	return NULL;
}

int replay_cpu_page(struct csf_cpu_snap *sum, struct csf_cpu_row **row, struct dist_why *why)
{
	(void)sum;
	(void)row;
	why->text[0] = '\0';
	return CMD_FAILED;
}
