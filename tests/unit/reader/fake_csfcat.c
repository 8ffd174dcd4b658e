/* SPDX-License-Identifier: GPL-2.0 */
/* The commands of csfcat on the made-up pages of the working directory: t_csfcat runs it. */
#include <string.h>

#include "tools/cmd.h"

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	int ret = CMD_USAGE, failed;

	if (argc > 1)
		argv[1] = argv[0]; /* as main() of statpage does */
	if (!strcmp(name, "cpu"))
		ret = cmd_cpu(argc - 1, argv + 1);
	else if (!strcmp(name, "self"))
		ret = cmd_self(argc - 1, argv + 1);
	failed = cmd_flush();
	return ret ? ret : failed;
}
