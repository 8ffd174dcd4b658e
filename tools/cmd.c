// SPDX-License-Identifier: GPL-2.0
/* Messages, numbers and the end of output, the same for every command. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cmd.h"
#include "uapi/coarse_stat_fs.h"

const char *cmd_name;

void cmd_help(const char *text)
{
	printf("usage: %s %s", program_invocation_short_name, text);
}

static void vmessage(const char *fmt, va_list ap)
{
	char *text;

	fflush(stdout);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	/* Names that others chose are in it: what would command a terminal is written as \xHH. */
	for (const char *p = text ? text : "out of memory"; *p; p++)
		fprintf(stderr, (unsigned char)*p < ' ' || *p == 0x7f ? "\\x%02x" : "%c", *p);
	fputc('\n', stderr);
	free(text);
}

int cmd_err(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vmessage(fmt, ap);
	va_end(ap);
	return CMD_FAILED;
}

int cmd_usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vmessage(fmt, ap);
	va_end(ap);
	fprintf(stderr, "Try '%s%s%s --help'.\n", program_invocation_short_name,
		cmd_name ? " " : "", cmd_name ? cmd_name : "");
	return CMD_USAGE;
}

int cmd_csf_err(const char *file)
{
	switch (errno) {
	case ENOENT:
		return cmd_err("%s/%s is not there: load the module coarse_stat_fs, then "
			       "mount -t %s none %s%s",
			       CSF_MOUNT, file, CSF_FS_NAME, CSF_MOUNT,
			       strcmp(file, "cpu") ? "; or run statpage serve" : "");
	case ETIMEDOUT:
		return cmd_err("%s: the server of pages does not answer", CSF_SERVE_SOCKET);
	case ENOSPC:
		return cmd_err("%s: the server's pages are all taken", CSF_SERVE_SOCKET);
	case ESTALE:
		return cmd_err(
			"%s/%s: the kernel has given up on the TSC, which is the clock of all times",
			CSF_MOUNT, file);
	case EPROTO:
		return cmd_err(
			"%s/%s: not a page of ABI version %d: the module is of another release",
			CSF_MOUNT, file, CSF_ABI_VERSION);
	default:
		return cmd_err("%s/%s: %s", CSF_MOUNT, file, strerror(errno));
	}
}

int cmd_number(const char *what, const char *text, double min, double max, double *out)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= min && v <= max))
		return cmd_usage("%s is a number from %g to %.10g, not '%s'", what, min, max, text);
	*out = v;
	return 0;
}

int cmd_flush(void)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	return cmd_err("standard output: %s", errno ? strerror(errno) : "write error");
}
