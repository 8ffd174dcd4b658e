/* SPDX-License-Identifier: GPL-2.0 */
/* Stands in for cmd_convert.c where json-c is missing. */
#include "tools/cmd.h"

int cmd_convert(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return cmd_err("convert: left out when this was built, as json-c was missing: install its "
		       "headers (Debian: libjson-c-dev) and build again");
}
