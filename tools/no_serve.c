// SPDX-License-Identifier: GPL-2.0
/* statpage serve, where it was built without libbpf. */
#include "tools/cmd.h"

int cmd_serve(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return cmd_err(
		"serve: this statpage was built without libbpf, clang and bpftool (Debian: libbpf-dev "
		"clang bpftool)");
}
