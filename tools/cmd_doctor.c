// SPDX-License-Identifier: GPL-2.0
/* statpage doctor: what works here, and for what does not the step that would help. */
#include <getopt.h>
#include <stdio.h>

#include "lib/probe.h"
#include "lib/record.h"
#include "tools/cmd.h"

static const char usage[] =
	"doctor [--json]\n"
	"\n"
	"Try each part of statpage and each of its engines here and now, and print for each: does it work, what\n"
	"was seen, and the step that would help if it does not. Nothing is changed or left behind.\n"
	"\n"
	"  --json   one object, {\"schema\":\"statpage-doctor/1\",\"checks\":[...]}; keys of a check: part, engine,\n"
	"           works (true or false), text, and fix where there is one\n";

static void print_text(const struct probe *p)
{
	printf("%-14s %-10s %-3s  %s\n", p->part, p->engine, p->works ? "yes" : "no", p->text);
	if (p->fix[0])
		printf("%-14s %-10s %-3s  try: %s\n", "", "", "", p->fix);
}

static void print_json(const struct probe *p, bool first)
{
	char text[4096];
	struct rts_buf b = {.p = text, .cap = sizeof(text) - 1};

	rts_put(&b, first ? "{\"part\":" : ",\n{\"part\":");
	rts_put_json_str(&b, p->part);
	rts_put(&b, ",\"engine\":");
	rts_put_json_str(&b, p->engine);
	rts_put(&b, p->works ? ",\"works\":true,\"text\":" : ",\"works\":false,\"text\":");
	rts_put_json_str(&b, p->text);
	if (p->fix[0]) {
		rts_put(&b, ",\"fix\":");
		rts_put_json_str(&b, p->fix);
	}
	rts_putc(&b, '}');
	text[b.len] = '\0';
	fputs(text, stdout);
}

int cmd_doctor(int argc, char **argv)
{
	static const struct option opts[] = {
		{"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	bool json = false;
	struct probe p;
	int opt;

	while ((opt = getopt_long(argc, argv, "h", opts, NULL)) != -1) {
		if (opt == 'h') {
			cmd_help(usage);
			return 0;
		}
		if (opt != 'j')
			return cmd_usage("doctor: --json is all it takes");
		json = true;
	}
	if (optind < argc)
		return cmd_usage("doctor takes no arguments, not '%s'", argv[optind]);
	if (json)
		fputs("{\"schema\":\"statpage-doctor/1\",\"checks\":[\n", stdout);
	for (unsigned int i = 0; probe_run(i, &p); i++) {
		if (json)
			print_json(&p, i == 0);
		else
			print_text(&p);
		fflush(stdout); /* a probe forks */
	}
	if (json)
		fputs("\n]}\n", stdout);
	return 0;
}
