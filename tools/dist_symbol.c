// SPDX-License-Identifier: GPL-2.0
/* Names of kernel functions: which there are, which are meant. */
#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cmd.h"
#include "tools/dist_view.h"

#define SYMBOLS	    "/proc/kallsyms"
#define MANY	    8
#define NEAR_ENOUGH 3

struct found {
	unsigned int exact, suffixed, near;
	bool event; /* a tracepoint has the name */
	unsigned long long address[MANY];
	char suffix[MANY][128];
	char close[NEAR_ENOUGH][128];
};

/* name.isra.0 and the like: the compiler's variant of a function; .cold is no entry of one. */
static bool is_variant(const char *sym, const char *name, size_t len)
{
	return !strncmp(sym, name, len) && sym[len] == '.' && !strstr(sym + len, ".cold");
}

static void look(struct found *f, const char *name, const char *sym, unsigned long long address)
{
	static const char iter[] = "__traceiter_"; /* each tracepoint has such a function */
	size_t len = strlen(name);
	unsigned int i;

	f->event |= !strncmp(sym, iter, sizeof(iter) - 1) && !strcmp(sym + sizeof(iter) - 1, name);
	if (!strcmp(sym, name)) {
		for (i = 0; i < f->exact && i < MANY; i++)
			if (address && f->address[i] == address)
				return; /* an alias */
		if (f->exact < MANY)
			f->address[f->exact] = address;
		f->exact++;
	} else if (is_variant(sym, name, len)) {
		if (f->suffixed < MANY)
			snprintf(f->suffix[f->suffixed], sizeof(f->suffix[0]), "%.127s", sym);
		f->suffixed++;
	} else if (len > 3 && f->near < NEAR_ENOUGH && strstr(sym, name) &&
		   strncmp(sym, "__pfx_", 6)) { /* padding before a function, from 6.2 on */
		snprintf(f->close[f->near++], sizeof(f->close[0]), "%.127s", sym);
	}
}

static int none(const struct found *f, const char *name)
{
	char near[400] = "";
	unsigned int i;

	if (f->event)
		return cmd_err("no function %s in this kernel, but a tracepoint: "
			       "say __tracepoint_%s",
			       name, name);
	for (i = 0; i < f->near; i++) {
		strcat(near, i ? ", " : "; near it: ");
		strcat(near, f->close[i]);
	}
	return cmd_err("no function %s in this kernel: inlined, or absent%s", name, near);
}

static int several(const struct found *f, const char *name)
{
	unsigned int i;

	cmd_err("%u functions are called %s: say which, as one of", f->exact, name);
	for (i = 0; i < f->exact && i < MANY; i++)
		fprintf(stderr, "  %s@0x%llx\n", name, f->address[i]);
	return CMD_FAILED;
}

int dist_symbol(const char *name, char *buf, size_t size)
{
	unsigned long long address;
	struct found f = {};
	char line[512], sym[256], type;
	FILE *file;

	snprintf(buf, size, "%s", name);
	/* Tracepoints and addresses are the engine's to check. */
	if (strpbrk(name, ":@") || !strncmp(name, "0x", 2) || !strncmp(name, "__tracepoint_", 13))
		return 0;
	file = fopen(SYMBOLS, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (strstr(line, name) && /* most lines need no more of a look */
		    sscanf(line, "%llx %c %255s", &address, &type, sym) == 3 &&
		    strchr("tTwW", type))
			look(&f, name, sym, address);
	fclose(file);
	if (f.exact > 1)
		return several(&f, name);
	if (f.exact)
		return 0;
	if (f.suffixed != 1)
		return f.suffixed ? cmd_err("%s exists only as %u variants, such as %s: name one",
					    name, f.suffixed, f.suffix[0]) :
				    none(&f, name);
	snprintf(buf, size, "%s", f.suffix[0]);
	cmd_err("%s is %s in this kernel", name, buf);
	return 0;
}

static int append(char ***names, size_t *nr, const char *name)
{
	char **more = realloc(*names, (*nr + 2) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	*names = more;
	more[*nr] = strdup(name);
	more[*nr + 1] = NULL;
	return more[(*nr)++] ? 0 : -ENOMEM;
}

char **dist_glob(const char *pattern)
{
	static const char list[] = "/sys/kernel/tracing/available_filter_functions";
	FILE *file = fopen(list, "re");
	char line[512], **names = NULL;
	size_t nr = 0;
	int err = 0;

	if (!file) {
		cmd_err("%s: %s: it says which functions match %s", list, strerror(errno), pattern);
		return NULL;
	}
	while (!err && fgets(line, sizeof(line), file)) {
		line[strcspn(line, " \t\n")] = '\0';
		if (!fnmatch(pattern, line, 0))
			err = append(&names, &nr, line);
	}
	fclose(file);
	if (!err && nr)
		return names;
	dist_names_free(names);
	cmd_err(err ? "%s: no memory for the names" : "no function that can be traced matches %s",
		pattern);
	return NULL;
}

void dist_names_free(char **names)
{
	size_t i;

	for (i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
}
