/* SPDX-License-Identifier: GPL-2.0 */
/* Stands in for cmd_convert.c and cmd_report.c where json-c is missing. */
#include "tools/cmd.h"

static int left_out(void)
{
	return cmd_err("%s: left out when this was built, as json-c was missing: install its "
		       "headers (Debian: libjson-c-dev) and build again",
		       cmd_name);
}

int cmd_convert(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return left_out();
}

int cmd_report(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return left_out();
}
