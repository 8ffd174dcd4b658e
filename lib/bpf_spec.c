/* SPDX-License-Identifier: MIT */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/bpf_spec.h"
#include "uapi/kstats.h"
#include "uapi/kstats_bucket.h"
#include "uapi/kstats_noreturn.h"

/* ---- what a name means ---- */

struct symbol {
	unsigned int nr;
	unsigned long long address; /* of the last one */
};

/* Functions of that name, in that module alone unless it is NULL. */
static struct symbol find_function(const char *name, const char *module)
{
	char line[512], sym[256], mod[80], type;
	unsigned long long address;
	struct symbol s = {0};
	FILE *f = fopen("/proc/kallsyms", "re");
	int n;

	while (f && fgets(line, sizeof(line), f)) {
		if (!strstr(line, name)) /* most lines need no more of a look */
			continue;
		n = sscanf(line, "%llx %c %255s [%79[^]]", &address, &type, sym, mod);
		if (n < 3 || strcmp(sym, name) || !strchr("tTwW", type) ||
		    (module && (n < 4 || strcmp(mod, module))) ||
		    (s.nr && address && address == s.address))
			continue;
		s.nr++;
		s.address = address;
	}
	if (f)
		fclose(f);
	return s;
}

static bool is_tracepoint(const char *event)
{
	char iter[160];

	snprintf(iter, sizeof(iter), "__traceiter_%s", event);
	return find_function(iter, NULL).nr;
}

static int locate_function(struct bpf_place *p, const char *module, struct dist_why *why)
{
	char *at = strchr(p->name, '@'), *end;
	struct symbol s;

	if (at) {
		p->address = strtoull(at + 1, &end, 0);
		if (!p->address || *end)
			return dist_fail(why, -EINVAL, "%s: expected NAME@0xADDRESS", p->text);
		*at = '\0';
		return 0;
	}
	s = find_function(p->name, module);
	if (!s.nr && module)
		return dist_fail(why, -ENOENT, "no tracepoint %s, and no function of a module",
				 p->text);
	if (!s.nr)
		return dist_fail(why, -ENOENT, "no function %s in this kernel", p->text);
	p->by_name = (module ? find_function(p->name, NULL).nr : s.nr) == 1;
	p->address = s.address;
	return 0;
}

int bpf_place_find(struct bpf_place *p, const char *text, bool tracepoint, struct dist_why *why)
{
	static const char prefix[] = "__tracepoint_";
	bool must = tracepoint || !strncmp(text, prefix, sizeof(prefix) - 1);
	const char *colon = strchr(text, ':'), *event = colon ? colon + 1 : text;
	char module[64];

	if (strlen(text) > KSTATS_SYM_MAX)
		return dist_fail(why, -EINVAL, "a start or end of more than %d bytes",
				 KSTATS_SYM_MAX);
	p->text = text;
	if (!colon && must && !strncmp(text, prefix, sizeof(prefix) - 1))
		event += sizeof(prefix) - 1;
	snprintf(p->name, sizeof(p->name), "%s", event);
	p->tp = (must || colon) && is_tracepoint(event);
	if (p->tp)
		return 0;
	if (must)
		return dist_fail(why, -ENOENT, "no tracepoint %s", event);
	snprintf(module, sizeof(module), "%.*s", colon ? (int)(colon - text) : 0, text);
	return locate_function(p, colon ? module : NULL, why);
}

/* ---- does the command make sense? ---- */

static int check_name(const char *name, bool gap, struct dist_why *why)
{
	size_t len = strlen(name), most = KSTATS_NAME_MAX;

	if (gap)
		most -= sizeof(KSTATS_GAP_PREFIX) - 1;
	if (!len)
		return dist_fail(why, -EINVAL, "the name is empty");
	if (len > most)
		return dist_fail(why, -EINVAL, "name %.20s... is longer than %zu bytes", name,
				 most);
	if (strchr("_#(", *name))
		return dist_fail(why, -EINVAL, "name %s: it must not begin with %c", name, *name);
	if (strspn(name, ".") == len)
		return dist_fail(why, -EINVAL, "name %s: dots only", name);
	for (const char *c = name; *c; c++)
		if (*c == '/' || *c <= ' ' || *c > '~')
			return dist_fail(why, -EINVAL,
					 "name %s: no /, no space, printable ASCII only", name);
	return 0;
}

bool bpf_place_never_returns(const struct bpf_place *p)
{
	for (size_t i = 0; i < sizeof(kstats_noreturn) / sizeof(kstats_noreturn[0]); i++)
		if (!strcmp(kstats_noreturn[i], p->name))
			return true;
	return false;
}

static int check_via(const struct dist_spec *s, struct dist_why *why)
{
	static const struct {
		const char *name;
		bool calls, pairs;
	} vias[] = {{"fentry", true, true},
		    {"kretprobe", true, false},
		    {"kprobe", false, true},
		    {"tracepoint", false, true}};

	for (size_t i = 0; s->via && i < sizeof(vias) / sizeof(vias[0]); i++) {
		if (strcmp(vias[i].name, s->via))
			continue;
		if (s->end ? vias[i].pairs : vias[i].calls)
			return 0;
		return dist_fail(why, -EINVAL, "via %s cannot do %s", s->via,
				 s->end ? "start and end" : "the time from entry to return");
	}
	return !s->via ? 0 :
			 dist_fail(why, -EINVAL,
				   "via %s, expected fentry, kretprobe, kprobe or tracepoint with "
				   "the engine bpf",
				   s->via);
}

static int check_filters(const struct dist_spec *s, struct dist_why *why)
{
	int fd;

	if (s->cpu >= libbpf_num_possible_cpus())
		return dist_fail(why, -EINVAL, "cpu %d, expected 0..%d", s->cpu,
				 libbpf_num_possible_cpus() - 1);
	if (s->comm && strlen(s->comm) > 15)
		return dist_fail(why, -EINVAL, "comm %s is longer than 15 bytes", s->comm);
	if (!s->pid)
		return 0;
	fd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	if (fd < 0)
		return dist_fail(why, -ESRCH, "pid %d: no such process", s->pid);
	close(fd);
	return 0;
}

int bpf_spec_check(const struct dist_spec *s, struct dist_why *why)
{
	int err = check_name(s->name, s->gap, why);

	if (!err)
		err = check_via(s, why);
	if (!err)
		err = check_filters(s, why);
	if (err)
		return err;
	if (s->bits > KSTATS_MAX_BITS)
		return dist_fail(why, -EINVAL, "bits %u, expected 0..%d", s->bits, KSTATS_MAX_BITS);
	if (s->maxactive)
		return dist_fail(why, -EINVAL,
				 "maxactive cannot be set with the engine bpf: what it cannot "
				 "follow is counted");
	if (s->end && !strcmp(s->start, s->end))
		return dist_fail(why, -EINVAL, "start and end are both %s: see its GAP- metric",
				 s->end);
	if (s->by_cpu && !s->end)
		return dist_fail(why, -EINVAL, "by cpu needs an end");
	return 0;
}
