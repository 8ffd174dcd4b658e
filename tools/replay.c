// SPDX-License-Identifier: GPL-2.0
/* Recordings for commands: what lib/replay.h says, as messages. */
#include <stdlib.h>

#include "tools/cmd.h"
#include "tools/replay.h"

int replay_begin(const char *file)
{
	struct dist_why why;

	return replay_open(file, &why) ? cmd_err("%s", why.text) : 0;
}

static void tell_cut(void)
{
	static bool told;

	if (replay_cut() && !told)
		cmd_err("%s", replay_cut());
	told |= replay_cut() != NULL;
}

int replay_last(const char *file)
{
	struct dist_why why;

	if (replay_begin(file))
		return CMD_FAILED;
	if (replay_to_last(1, &why) || replay_next(&why) < 0)
		return cmd_err("%s", why.text);
	tell_cut();
	return 0;
}

int replay_on(uint64_t interval_ns)
{
	struct dist_why why;
	int ret = replay_step(interval_ns, &why);

	if (ret < 0) {
		cmd_err("%s", why.text);
		return -1;
	}
	if (!ret)
		tell_cut();
	return ret;
}

const struct dist_engine *const *replay_dists(void)
{
	struct dist_why why;
	const struct dist_engine *const *engines = replay_engines(&why);

	if (!engines)
		cmd_err("%s", why.text);
	return engines;
}

int replay_cpu_table(struct cpu_table *t)
{
	struct csf_cpu_row *row;
	struct dist_why why;

	if (replay_cpu_page(&t->sum, &row, &why))
		return cmd_err("%s", why.text);
	free(t->cpu);
	t->cpu = row;
	return 0;
}
