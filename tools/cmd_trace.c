// SPDX-License-Identifier: GPL-2.0
/* statpage trace: attach to a function, to a pair of places, or to all functions that match. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/fmt_dist.h"
#include "tools/cmd.h"
#include "tools/dist_view.h"
#include "uapi/kstats.h"

static const char usage[] =
	"trace [OPTION...] FUNCTION | X..Y | PATTERN\n"
	"\n"
	"Record how long calls of FUNCTION take, or the time from X to Y: each a function, sys:event or\n"
	"__tracepoint_event. A pattern such as 'vfs_*' stands for all functions that can be traced and match.\n"
	"\n"
	"  --name S        call the node S; default: what is traced\n"
	"  --bits B        slots a power of two: 2^B; 0..5, default 3\n"
	"  --for TIME      record for 10s, 500ms, 2m, print, and remove the node, on ^C too; no GAP-S\n"
	"  --by-cpu        pair X and Y on the CPU instead of in the task\n"
	"  --no-gap        no GAP-S metric of the time between calls\n"
	"  --via HOW       direct, kretprobe, fprobe, kprobe, ftrace, tracepoint, or with the engine bpf\n"
	"                  fentry, kretprobe, kprobe, tracepoint; default: the cheapest\n"
	"  --engine E      kmod, bpf\n"
	"                  the module kstats, or programs in the kernel that need no module; default: kmod\n"
	"                  where it is loaded, else bpf\n"
	"  --pid P         calls of process P only\n"
	"  --comm C        calls of tasks called C only\n"
	"  --only-cpu N    calls that end on CPU N only\n"
	"  --maxactive N   calls at once that a kretprobe or fprobe can follow\n"
	"  --max N         functions that a pattern may stand for; default 100\n"
	"  --quantiles, --json, --plot, --cpu N   how --for prints, as in 'show'\n";

struct request {
	struct dist_spec spec;
	struct dist_view view;
	double seconds; /* 0: until untrace */
	unsigned int max;
	const char *engine;
	char start[256], end[256], name[64];
};

static volatile sig_atomic_t interrupted;

/* The second one ends the program at once. */
static void on_signal(int sig)
{
	interrupted = sig;
	signal(sig, SIG_DFL);
}

static int duration(const char *text, double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	if (!strcmp(end, "ms"))
		*seconds /= 1000;
	else if (!strcmp(end, "m"))
		*seconds *= 60;
	else if (*end && strcmp(end, "s"))
		*seconds = 0;
	if (end == text || !(*seconds > 0 && *seconds < 1e7))
		return cmd_usage("--for takes a time such as 10s, 500ms or 2m, not '%s'", text);
	return 0;
}

/* A name for a file, from what is traced. */
static void default_name(struct request *r)
{
	static const char tp[] = "__tracepoint_";
	const char *x = r->start, *y = r->end;

	if (!strncmp(x, tp, sizeof(tp) - 1))
		x += sizeof(tp) - 1;
	if (!strncmp(y, tp, sizeof(tp) - 1))
		y += sizeof(tp) - 1;
	snprintf(r->name, sizeof(r->name), "%.59s", x + strspn(x, "_"));
	r->name[strcspn(r->name, "@")] = '\0';
	if (*y)
		snprintf(r->name + strlen(r->name), sizeof(r->name) - strlen(r->name) - 4, "..%s",
			 y);
}

/* Split X..Y, and look the functions up. */
static int resolve(struct request *r, const char *what)
{
	const char *dots = strstr(what, "..");
	char x[256];

	snprintf(x, sizeof(x), "%.*s", dots ? (int)(dots - what) : 255, what);
	if (!*x || (dots && !dots[2]))
		return cmd_usage("trace takes FUNCTION or X..Y, not '%s'", what);
	if (r->spec.via && !strcmp(r->spec.via, "tracepoint")) {
		snprintf(r->start, sizeof(r->start), "%s", x);
		snprintf(r->end, sizeof(r->end), "%s", dots ? dots + 2 : "");
	} else if (dist_symbol(x, r->start, sizeof(r->start)) ||
		   (dots && dist_symbol(dots + 2, r->end, sizeof(r->end)))) {
		return CMD_FAILED;
	}
	r->spec.start = r->start;
	r->spec.end = dots ? r->end : NULL;
	if (!r->spec.name) {
		default_name(r);
		r->spec.name = r->name;
	}
	return 0;
}

/* Say how far it is, on a terminal, until the time is over or a signal comes. */
static void wait_for(const struct dist_engine *e, const struct request *r)
{
	const struct timespec step = {0, 100000000};
	struct timespec from, now;
	struct dist_metric m;
	struct dist_why why;
	double passed = 0, shown = -1;

	clock_gettime(CLOCK_MONOTONIC, &from);
	while (!interrupted && passed < r->seconds) {
		nanosleep(&step, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
		passed = (double)(now.tv_sec - from.tv_sec) +
			 (double)(now.tv_nsec - from.tv_nsec) / 1e9;
		if (!isatty(STDERR_FILENO) || passed < shown + 1)
			continue;
		shown = passed;
		if (e->read(r->spec.name, &m, &why))
			continue;
		fprintf(stderr, "\r%s: %.0f of %g s, ", r->spec.name, passed, r->seconds);
		fmt_dist_ledger(stderr, &m.ledger);
		fprintf(stderr, "\033[K");
		dist_metric_free(&m);
	}
	if (shown >= 0)
		fputs("\r\033[K", stderr);
}

/* A name is of one engine; each looks after its own. */
static int trace(const struct dist_engine *e, const struct dist_spec *spec, struct dist_why *why)
{
	const struct dist_engine *other = dist_engine_other(e);
	char gap[80];

	snprintf(gap, sizeof(gap), KSTATS_GAP_PREFIX "%.64s", spec->name);
	if (other && (other->has(spec->name) || (spec->gap && other->has(gap))))
		return dist_fail(why, -EEXIST, "name %s is taken, by the engine %s", spec->name,
				 other->name);
	return e->trace(spec, why);
}

/* Where the preferred engine can change nothing, the other one may do. */
static int trace_any(const struct dist_engine **e, const struct request *r, struct dist_why *why)
{
	const struct dist_engine *other = r->engine ? NULL : dist_engine_other(*e);
	int err = trace(*e, &r->spec, why);

	if (err != -EROFS || !other)
		return err;
	cmd_err("%s; using the engine %s", why->text, other->name);
	*e = other;
	return trace(other, &r->spec, why);
}

static int trace_one(const struct dist_engine *e, struct request *r)
{
	struct dist_why why;
	int ret;

	if (r->seconds) {
		r->spec.gap = false; /* it would be gone before anybody could read it */
		signal(SIGINT, on_signal);
		signal(SIGTERM, on_signal);
	}
	if (trace_any(&e, r, &why))
		return cmd_err("%s", why.text);
	if (!r->seconds)
		return 0;
	wait_for(e, r);
	/* Nothing comes in any more while it is printed. */
	ret = e->act(r->spec.name, DIST_STOP, &why) ? cmd_err("%s", why.text) : 0;
	if (!ret)
		ret = dist_show(e, r->spec.name, &r->view);
	if (e->untrace(r->spec.name, &why))
		ret = cmd_err("%s", why.text);
	return ret;
}

/* What cannot be traced is skipped and told; one that can is enough. */
static int trace_pattern(const struct dist_engine *e, struct request *r, const char *pattern)
{
	char **names = dist_glob(pattern);
	unsigned int i, nr, done = 0;
	struct dist_why why;

	if (!names)
		return CMD_FAILED;
	for (nr = 0; names[nr]; nr++)
		;
	if (nr > r->max) {
		cmd_err("%s matches %u functions, at most %u are traced: see --max", pattern, nr,
			r->max);
		dist_names_free(names);
		return CMD_FAILED;
	}
	for (i = 0; i < nr; i++) {
		r->spec.name = names[i] + strspn(names[i], "_");
		r->spec.start = names[i];
		if (trace_any(&e, r, &why))
			cmd_err("skipped: %s", why.text);
		else
			done++;
	}
	dist_names_free(names);
	printf("%u of %u functions traced\n", done, nr);
	return done ? 0 : cmd_err("nothing is traced");
}

static int whole(const char *what, const char *text, double min, double max, double *out)
{
	if (cmd_number(what, text, min, max, out))
		return CMD_USAGE;
	return *out == (double)(long)*out ? 0 :
					    cmd_usage("%s is a whole number, not '%s'", what, text);
}

enum {
	OPT_NAME = 256,
	OPT_BITS,
	OPT_FOR,
	OPT_BY_CPU,
	OPT_NO_GAP,
	OPT_VIA,
	OPT_ENGINE,
	OPT_PID,
	OPT_COMM,
	OPT_ONLY_CPU,
	OPT_MAXACTIVE,
	OPT_MAX,
	OPT_QUANTILES,
	OPT_JSON,
	OPT_PLOT,
	OPT_CPU
};

static const struct option options[] = {
	{"name", required_argument, NULL, OPT_NAME},
	{"bits", required_argument, NULL, OPT_BITS},
	{"for", required_argument, NULL, OPT_FOR},
	{"by-cpu", no_argument, NULL, OPT_BY_CPU},
	{"no-gap", no_argument, NULL, OPT_NO_GAP},
	{"via", required_argument, NULL, OPT_VIA},
	{"engine", required_argument, NULL, OPT_ENGINE},
	{"pid", required_argument, NULL, OPT_PID},
	{"comm", required_argument, NULL, OPT_COMM},
	{"only-cpu", required_argument, NULL, OPT_ONLY_CPU},
	{"maxactive", required_argument, NULL, OPT_MAXACTIVE},
	{"max", required_argument, NULL, OPT_MAX},
	{"quantiles", no_argument, NULL, OPT_QUANTILES},
	{"json", no_argument, NULL, OPT_JSON},
	{"plot", no_argument, NULL, OPT_PLOT},
	{"cpu", required_argument, NULL, OPT_CPU},
	{"help", no_argument, NULL, 'h'},
	{0},
};

/* An option with a number after it. */
static int number_option(int c, struct request *r)
{
	double v;
	int ret;

	switch (c) {
	case OPT_BITS:
		ret = whole("--bits", optarg, 0, 5, &v);
		r->spec.bits = (unsigned int)v;
		break;
	case OPT_PID:
		ret = whole("--pid", optarg, 1, 1 << 22, &v);
		r->spec.pid = (int)v;
		break;
	case OPT_ONLY_CPU:
		ret = whole("--only-cpu", optarg, 0, 65535, &v);
		r->spec.cpu = (int)v;
		break;
	case OPT_CPU:
		ret = dist_view_cpu(optarg, (unsigned int)sysconf(_SC_NPROCESSORS_CONF), &r->view);
		break;
	case OPT_MAXACTIVE:
		ret = whole("--maxactive", optarg, 1, 65536, &v);
		r->spec.maxactive = (unsigned int)v;
		break;
	default:
		ret = whole("--max", optarg, 1, 1000000, &v);
		r->max = (unsigned int)v;
	}
	return ret;
}

/* Returns 0, CMD_USAGE, or -1 when there is nothing more to do. */
static int option(int c, struct request *r)
{
	switch (c) {
	case OPT_NAME:
		r->spec.name = optarg;
		return 0;
	case OPT_FOR:
		return duration(optarg, &r->seconds);
	case OPT_BY_CPU:
		r->spec.by_cpu = true;
		return 0;
	case OPT_NO_GAP:
		r->spec.gap = false;
		return 0;
	case OPT_VIA:
		r->spec.via = optarg;
		return 0;
	case OPT_ENGINE:
		r->engine = optarg;
		return 0;
	case OPT_COMM:
		r->spec.comm = optarg;
		return 0;
	case OPT_QUANTILES:
		return dist_view_as(DIST_QUANTILES, &r->view);
	case OPT_JSON:
		return dist_view_as(DIST_JSON, &r->view);
	case OPT_PLOT:
		return dist_view_as(DIST_PLOT, &r->view);
	case 'h':
		cmd_help(usage);
		return -1;
	case '?':
		return CMD_USAGE;
	default:
		return number_option(c, r);
	}
}

int cmd_trace(int argc, char **argv)
{
	struct request r = {.spec = {.bits = KSTATS_BITS_DEFAULT, .cpu = -1, .gap = true},
			    .view = {.cpu = -1},
			    .max = 100};
	const struct dist_engine *e;
	const char *what;
	int c, ret;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		ret = option(c, &r);
		if (ret)
			return ret < 0 ? 0 : ret;
	}
	if (optind != argc - 1)
		return cmd_usage("trace needs one FUNCTION, X..Y or PATTERN");
	what = argv[optind];
	if (strpbrk(what, "*?[") && (r.spec.name || r.seconds))
		return cmd_usage("--name and --for are for one function, not for the pattern '%s'",
				 what);
	e = dist_engine(r.engine);
	if (!e)
		return CMD_FAILED;
	if (strpbrk(what, "*?["))
		return trace_pattern(e, &r, what);
	ret = resolve(&r, what);
	return ret ? ret : trace_one(e, &r);
}
