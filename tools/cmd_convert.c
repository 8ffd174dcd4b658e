/* SPDX-License-Identifier: GPL-2.0 */
/* statpage convert: records to the formats of other tools. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "lib/conv.h"
#include "tools/cmd.h"

static struct converter *const converters[] = {&conv_folded, &conv_speedscope, &conv_perfetto,
					       &conv_csv};

static void help(void)
{
	cmd_help(
		"convert --to FORMAT FILE|-\n\n"
		"Convert records (jsonl, or a json document) of `statpage run` or of a program that embeds\n"
		"lib/rts. Lines that are no records are skipped and counted.\n\n"
		"  -t, --to FORMAT\n"
		"       folded      process;category;call ns: for flamegraph.pl\n"
		"       speedscope  one profile a process, for speedscope.app\n"
		"       perfetto    trace events, for ui.perfetto.dev and chrome://tracing\n"
		"       csv         a row a record, named as in the JSON\n"
		"  -h, --help\n\n"
		"Exit status: 1 if no record could be used.\n");
}

static struct converter *find(const char *name)
{
	for (size_t i = 0; i < sizeof(converters) / sizeof(converters[0]); i++)
		if (!strcmp(name, converters[i]->name))
			return converters[i];
	cmd_usage("--to %s: expected folded, speedscope, perfetto or csv", name);
	return NULL;
}

struct run {
	struct converter *c;
	struct conv_lives *lives;
	uint64_t used;
};

static int take(struct run *r, const struct conv_rec *rec)
{
	struct conv_delta d;
	int ret;

	/* A tree is the sum of processes that are there as well. */
	if (rec->tree && !r->c->tree_too)
		return 0;
	r->used++;
	if (rec->tree) {
		d = (struct conv_delta){.rec = rec};
		return r->c->delta(r->c, stdout, &d);
	}
	ret = conv_lives_delta(r->lives, rec, &d);
	return ret ? ret : r->c->delta(r->c, stdout, &d);
}

/* One warning a kind, with its count. */
static void warn(const char *name, const struct conv_reader *reader, const struct run *r)
{
	if (conv_skipped(reader))
		cmd_err("%s: skipped %llu lines that are no whole record", name,
			(unsigned long long)conv_skipped(reader));
	if (conv_lives_evicted(r->lives))
		cmd_err("%s: %llu processes without a final record were forgotten", name,
			(unsigned long long)conv_lives_evicted(r->lives));
	if (r->c->misfit_ns)
		cmd_err("%s: %llu ns of calls fit into no interval and are left out", name,
			(unsigned long long)r->c->misfit_ns);
}

static int convert(struct converter *c, FILE *f, const char *name)
{
	struct run r = {.c = c, .lives = conv_lives_new()};
	struct conv_reader *reader = conv_reader_new(f);
	struct conv_rec rec = {0};
	int ret = r.lives && reader ? c->begin(c, stdout) : -ENOMEM, ended;

	while (!ret && !ferror(stdout) && conv_read(reader, &rec))
		ret = take(&r, &rec);
	ended = c->end(c, stdout);
	ret = ret ? ret : ended;
	if (reader && r.lives)
		warn(name, reader, &r);
	if (!ret && conv_read_error(reader))
		ret = -conv_read_error(reader);
	if (ret)
		ret = cmd_err("%s: %s", name, strerror(-ret));
	else if (!r.used)
		ret = cmd_err("%s: has no record of schema statpage-runtime/1", name);
	conv_rec_free(&rec);
	conv_reader_free(reader);
	conv_lives_free(r.lives);
	return ret;
}

int cmd_convert(int argc, char **argv)
{
	static const struct option long_opts[] = {
		{"to", required_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct converter *c = NULL;
	const char *name;
	FILE *f;
	int opt, ret;

	while ((opt = getopt_long(argc, argv, "t:h", long_opts, NULL)) != -1) {
		switch (opt) {
		case 't':
			c = find(optarg);
			if (!c)
				return CMD_USAGE;
			break;
		case 'h':
			help();
			return 0;
		default:
			return CMD_USAGE;
		}
	}
	if (!c)
		return cmd_usage("expected --to FORMAT");
	if (optind + 1 != argc)
		return cmd_usage("expected one FILE, or - for standard input");
	name = argv[optind];
	if (!strcmp(name, "-"))
		return convert(c, stdin, "standard input");
	f = fopen(name, "re");
	if (!f)
		return cmd_err("%s: %s", name, strerror(errno));
	ret = convert(c, f, name);
	fclose(f);
	return ret;
}
