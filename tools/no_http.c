// SPDX-License-Identifier: GPL-2.0
/* Stands in for export_http.c where libmicrohttpd is missing. */
#include "tools/cmd.h"
#include "tools/export.h"

int export_serve(const char *where, const struct export_opts *o)
{
	(void)where;
	(void)o;
	return cmd_err(
		"--listen: left out when this was built, as libmicrohttpd was missing: install its "
		"headers (Debian: libmicrohttpd-dev) and build again, or use --textfile");
}
