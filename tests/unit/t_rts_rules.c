// SPDX-License-Identifier: GPL-2.0
// This test checks that the rules of the runtime statistics hold in a plain program that embeds
// them.
#include "tests/rts_rules.h"

static int host_begin(int argc, char **argv)
{
	return rts_init(&(struct rts_options){.argc = argc, .argv = argv});
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "child"))
		return play_scene(rule_scenes, NR_RULE_SCENES, argc, argv);
	check_rules();
	return t_done("t_rts_rules");
}
