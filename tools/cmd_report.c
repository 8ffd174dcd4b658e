/* SPDX-License-Identifier: GPL-2.0 */
/* statpage report: records and distributions as one page for a browser. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/report.h"
#include "tools/cmd.h"

static const char usage[] =
	"report -o FILE [--compare] IN...\n"
	"\n"
	"Write one HTML page about records of `statpage run` or of a program that embeds lib/rts (json or\n"
	"jsonl) and lines of `statpage show --json`, or about a recording of `statpage record`: where the time of its\n"
	"threads went, and its distributions at its end.\n"
	"The page needs no network and no other file.\n"
	"\n"
	"  -o, --output FILE  where the page goes; - for standard output\n"
	"  --compare          IN are two, before and after: which quantiles moved, and by how much at least\n"
	"  -h, --help\n"
	"\n"
	"IN may be - for standard input. Exit status: 1 if an input cannot be used; no page is written then.\n";

/* The file that takes the place of the page that is there, once it is whole. */
struct output {
	FILE *f;
	const char *name; /* as it was given */
	char *to, *temp;  /* NULL: written to as it goes */
};

static int out_err(const struct output *o)
{
	return cmd_err("%s: %s", o->name, strerror(errno ? errno : EIO));
}

static int out_temp(struct output *o)
{
	mode_t mask = umask(0);
	int fd;

	umask(mask);
	/* What a link leads to is replaced, not the link. */
	o->to = realpath(o->name, NULL);
	if (!o->to)
		o->to = strdup(o->name);
	if (!o->to || asprintf(&o->temp, "%s.XXXXXX", o->to) < 0)
		return out_err(o);
	fd = mkstemp(o->temp);
	if (fd < 0) {
		free(o->temp);
		o->temp = NULL;
		return out_err(o);
	}
	fchmod(fd, 0666 & ~mask);
	o->f = fdopen(fd, "w");
	return o->f ? 0 : out_err(o);
}

static int out_open(struct output *o, const char *name)
{
	struct stat st;

	*o = (struct output){.name = name};
	if (!strcmp(name, "-")) {
		o->name = "standard output";
		o->f = stdout;
		return 0;
	}
	if (stat(name, &st) || S_ISREG(st.st_mode))
		return out_temp(o);
	/* A pipe or a device keeps its place. */
	o->f = fopen(name, "we");
	return o->f ? 0 : out_err(o);
}

/* The page stands if all of it was written; else nothing of it does. */
static int out_close(struct output *o, int ret)
{
	errno = 0;
	if (!ret && (fflush(o->f) || ferror(o->f))) {
		/* It was an earlier write that failed: the next tells why. */
		if (!errno && fputc('\n', o->f) != EOF)
			fflush(o->f);
		ret = out_err(o);
	}
	if (o->f && o->f != stdout && fclose(o->f) && !ret)
		ret = out_err(o);
	if (o->temp && !ret && rename(o->temp, o->to))
		ret = out_err(o);
	if (o->temp && ret)
		unlink(o->temp);
	free(o->temp);
	free(o->to);
	return ret;
}

static int read_input(struct report_input *in, const char *name)
{
	bool is_stdin = !strcmp(name, "-");
	FILE *f = is_stdin ? stdin : fopen(name, "re");
	int ret;

	if (!f)
		return cmd_err("%s: %s", name, strerror(errno));
	if (is_stdin)
		name = "standard input";
	ret = report_read(in, name, f) ? cmd_err("%s: %s", name, in->why) : 0;
	if (!is_stdin)
		fclose(f);
	if (!ret && in->skipped)
		cmd_err("%s: skipped %llu lines that are no whole record; the first is line %llu",
			name, (unsigned long long)in->skipped,
			(unsigned long long)in->first_skipped);
	else if (!ret && in->recording && !in->recorded_whole)
		cmd_err("%s: has no end: it was cut short, or is still being written", name);
	return ret;
}

/* A page in place of an input would be the last of it. */
static int check_place(char **names, size_t nr, const char *to)
{
	struct stat in, out;

	if (stat(to, &out) || !S_ISREG(out.st_mode))
		return 0;
	for (size_t i = 0; i < nr; i++)
		if (!stat(names[i], &in) && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
			return cmd_usage("-o %s: that is an input, expected another file", to);
	return 0;
}

static int report(char **names, size_t nr, const char *to, bool compare)
{
	struct report_input *in = calloc(nr, sizeof(*in));
	struct output o;
	int ret = check_place(names, nr, to);

	if (ret || !in) {
		free(in);
		return ret ? ret : cmd_err("%s", strerror(ENOMEM));
	}
	for (size_t i = 0; i < nr && !ret; i++)
		ret = read_input(&in[i], names[i]);
	if (!ret) {
		ret = out_open(&o, to);
		if (!ret)
			fmt_report(o.f, &(struct report_page){STATPAGE_VERSION, in, nr, compare});
		ret = out_close(&o, ret);
	}
	for (size_t i = 0; i < nr; i++)
		report_free(&in[i]);
	free(in);
	return ret;
}

int cmd_report(int argc, char **argv)
{
	static const struct option options[] = {
		{"output", required_argument, NULL, 'o'},
		{"compare", no_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *to = NULL;
	bool compare = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
		switch (opt) {
		case 'o':
			to = optarg;
			break;
		case 'c':
			compare = true;
			break;
		case 'h':
			cmd_help(usage);
			return 0;
		default:
			return CMD_USAGE;
		}
	}
	if (!to || !*to)
		return cmd_usage("expected -o FILE, where the page goes");
	if (optind == argc)
		return cmd_usage("expected the files to report on");
	if (compare && argc - optind != 2)
		return cmd_usage("--compare expects two files, before and after, not %d",
				 argc - optind);
	return report(argv + optind, (size_t)(argc - optind), to, compare);
}
