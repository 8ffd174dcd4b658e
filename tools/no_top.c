// SPDX-License-Identifier: GPL-2.0
/* Instead of top_live.c where ncurses was not there to build with. */
#include "tools/cmd.h"
#include "tools/top.h"

int top_live(const struct top_opts *o)
{
	(void)o;
	return cmd_err("the live view is not in this build, which had no ncurses (Debian: "
		       "libncurses-dev): use --once or --json, or install it and build again");
}
