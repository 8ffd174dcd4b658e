// SPDX-License-Identifier: GPL-2.0
/* Recordings for commands: what lib/replay.h says, as messages. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static uint64_t top_step_ns;

static int top_next(uint64_t *mono_ns, uint64_t *real_ns, char *text, size_t len)
{
	struct dist_why why;
	int ret = replay_step(top_step_ns, &why);

	if (ret > 0) {
		*mono_ns = replay_mono_ns();
		*real_ns = replay_real_ns();
		return 0;
	}
	if (ret)
		snprintf(text, len, "%s", why.text);
	else
		snprintf(text, len, "%s", replay_cut() ?: "the recording has ended");
	return ret ? ret : -ENODATA;
}

int replay_top(struct top **out, pid_t pid, uint64_t interval_ns, bool once)
{
	static const struct top_source source = {top_next, replay_cpus, replay_engines};
	uint64_t left_out_ns = 0;
	struct threads *threads;
	struct dist_why why;

	top_step_ns = interval_ns;
	if ((once && replay_to_threads(pid, &left_out_ns, &why)) ||
	    replay_threads(&threads, pid, &why))
		return cmd_err("%s", why.text);
	if (left_out_ns && pid)
		cmd_err("process %d had ended: this is %.3f s before the end of the recording", pid,
			(double)left_out_ns / 1e9);
	else if (left_out_ns)
		cmd_err("no thread is left at the end of the recording: this is %.3f s before it",
			(double)left_out_ns / 1e9);
	if (!top_open_from(out, threads, &source))
		return 0;
	threads_close(threads);
	return cmd_err("%s", strerror(ENOMEM));
}
