// SPDX-License-Identifier: GPL-2.0
/* statpage untrace, start, stop, reset: what takes names of nodes or metrics, and nothing else. */
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cmd.h"
#include "tools/dist_view.h"

typedef int action(const struct dist_engine *e, const char *name, struct dist_why *why);

struct matches {
	const char *pattern;
	char (*name)[sizeof(((struct dist_node *)0)->name)];
	size_t nr;
};

static int match(const struct dist_node *n, void *data)
{
	struct matches *m = data;
	void *more;

	if (!n->name[0] || fnmatch(m->pattern, n->name, 0))
		return 0;
	more = realloc(m->name, (m->nr + 1) * sizeof(*m->name));
	if (!more)
		return -ENOMEM;
	m->name = more;
	strcpy(m->name[m->nr++], n->name);
	return 0;
}

/* For each node of one engine that matches, as they were before the first one is removed. */
static int for_matches(const struct dist_engine *e, const char *pattern, action *fn, size_t *nr)
{
	struct matches m = {.pattern = pattern};
	struct dist_why why = {"no memory"};
	int ret = 0;

	if (e->list(match, &m, &why))
		ret = cmd_err("%s", why.text);
	for (size_t i = 0; !ret && i < m.nr; i++)
		if (fn(e, m.name[i], &why))
			ret = cmd_err("%s", why.text);
	*nr += m.nr;
	free(m.name);
	return ret;
}

static int for_pattern(const struct dist_engine *const *engines, const char *pattern, action *fn)
{
	size_t nr = 0;
	int ret = 0;

	for (; *engines; engines++)
		ret |= for_matches(*engines, pattern, fn, &nr);
	return ret || nr ? ret : cmd_err("no traced node matches %s", pattern);
}

static int for_name(const struct dist_engine *const *engines, const char *name, action *fn)
{
	struct dist_why why;

	if (strpbrk(name, "*?["))
		return for_pattern(engines, name, fn);
	return fn(dist_engine_of(engines, name), name, &why) ? cmd_err("%s", why.text) : 0;
}

/* All that there is, and nothing is fine too. */
static int for_all(const struct dist_engine *const *engines, action *fn)
{
	size_t nr = 0;
	int ret = 0;

	for (; *engines; engines++)
		ret |= for_matches(*engines, "*", fn, &nr);
	return ret;
}

/* For each name; goes on after a failure. The help text says what it does. */
static int for_names(int argc, char **argv, const char *help, action *fn, bool may_all)
{
	static const struct option options[] = {
		{"all", no_argument, NULL, 'a'}, {"help", no_argument, NULL, 'h'}, {0}};
	const struct dist_engine *const *engines;
	bool all = false;
	int c, ret = 0;

	while ((c = getopt_long(argc, argv, "h", may_all ? options : options + 1, NULL)) != -1) {
		if (c == 'a') {
			all = true;
			continue;
		}
		if (c != 'h')
			return CMD_USAGE;
		cmd_help(help);
		return 0;
	}
	if (all && optind < argc)
		return cmd_usage("--all takes no names, not '%s'", argv[optind]);
	if (!all && optind == argc)
		return cmd_usage("a name is needed; 'ls' lists them");
	engines = dist_engines();
	if (!engines)
		return CMD_FAILED;
	if (all)
		return for_all(engines, fn);
	for (; optind < argc; optind++)
		if (for_name(engines, argv[optind], fn))
			ret = CMD_FAILED;
	return ret;
}

static int untrace(const struct dist_engine *e, const char *name, struct dist_why *why)
{
	return e->untrace(name, why);
}

static int start(const struct dist_engine *e, const char *name, struct dist_why *why)
{
	return e->act(name, DIST_START, why);
}

static int stop(const struct dist_engine *e, const char *name, struct dist_why *why)
{
	return e->act(name, DIST_STOP, why);
}

static int reset(const struct dist_engine *e, const char *name, struct dist_why *why)
{
	return e->act(name, DIST_RESET, why);
}

int cmd_untrace(int argc, char **argv)
{
	return for_names(argc, argv,
			 "untrace --all | NODE|PATTERN...\n\n"
			 "Remove traced nodes and their GAP metrics.\n\n"
			 "  --all   each one, of each engine; it is fine if there is none\n",
			 untrace, true);
}

int cmd_start(int argc, char **argv)
{
	return for_names(argc, argv,
			 "start METRIC|PATTERN...\n\nLet stopped metrics record again.\n", start,
			 false);
}

int cmd_stop(int argc, char **argv)
{
	return for_names(
		argc, argv,
		"stop METRIC|PATTERN...\n\nStop recording; calls are still counted, as stopped.\n",
		stop, false);
}

int cmd_reset(int argc, char **argv)
{
	return for_names(argc, argv,
			 "reset METRIC|PATTERN...\n\nForget what was recorded until now.\n", reset,
			 false);
}
