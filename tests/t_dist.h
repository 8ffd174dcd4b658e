/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests of distributions by BPF share: a metric as the tool shows it, and what is left of BPF. */
#ifndef T_DIST_H
#define T_DIST_H

#include <dirent.h>
#include <linux/bpf.h>

#include "t_kstats.h"

#define PINS "/sys/fs/bpf/statpage"

/* A metric as `statpage show --json` prints it. */
struct dist {
	uint64_t attempted, recorded, missed, filtered, stopped, inside, unpaired, count, sum;
	uint64_t min_mean, max_mean; /* of the slots with samples */
	char via[16];
	const char *text; /* without the slots */
};

/* Returns false, and has `out` say why, if it cannot be shown. */
static inline bool dist(const char *name, struct dist *d)
{
	char *slots, *p;

	memset(d, 0, sizeof(*d));
	d->text = out;
	if (sh("statpage show --json '%s'", name))
		return false;
	slots = strstr(out, ",\"slots\":[");
	if (!slots)
		return false;
	*slots++ = '\0';
	d->attempted = json_key(out, "attempted");
	d->recorded = json_key(out, "recorded");
	d->missed = json_key(out, "missed");
	d->filtered = json_key(out, "filtered");
	d->stopped = json_key(out, "stopped");
	d->inside = json_key(out, "inside");
	d->unpaired = json_key(out, "unpaired");
	d->count = json_key(out, "count");
	d->sum = json_key(out, "sum");
	d->min_mean = UINT64_MAX;
	for (p = slots; (p = strstr(p, "\"mean\":")); p += 7) {
		uint64_t mean = strtoull(p + 7, NULL, 10);

		d->min_mean = mean < d->min_mean ? mean : d->min_mean;
		d->max_mean = mean > d->max_mean ? mean : d->max_mean;
	}
	p = strstr(out, " via ");
	if (p)
		sscanf(p, " via %15s", d->via);
	return true;
}

#define DIST(name, d) CHECK(dist(name, d), "%s cannot be shown: %s", name, out)

/* What must hold for every metric that is not being recorded into. */
static inline void whole(const struct dist *d)
{
	CHECK(d->count == d->recorded, "%s", d->text);
	CHECK(d->attempted == d->recorded + d->missed + d->filtered + d->stopped + d->inside, "%s",
	      d->text);
	CHECK(!strstr(d->text, d->missed ? "\"complete\":true" : "\"complete\":false"), "%s",
	      d->text);
}

#define TRACE(...)    CHECK(!sh("statpage trace --engine bpf " __VA_ARGS__) && !*out, "%s", out)
#define UNTRACE(name) CHECK(!sh("statpage untrace '%s'", name) && !*out, "%s", out)

static inline long bpf_call(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static inline int ids(int cmd)
{
	union bpf_attr attr = {0};
	int nr = 0;

	while (!bpf_call(cmd, &attr)) {
		attr.start_id = attr.next_id;
		nr++;
	}
	return nr;
}

struct objects {
	int progs, maps, links;
};

static inline struct objects objects(void)
{
	return (struct objects){ids(BPF_PROG_GET_NEXT_ID), ids(BPF_MAP_GET_NEXT_ID),
				ids(BPF_LINK_GET_NEXT_ID)};
}

static inline bool same(struct objects a, struct objects b)
{
	return a.progs == b.progs && a.maps == b.maps && a.links == b.links;
}

/* Folders of nodes, whole or not. */
static inline int folders(void)
{
	DIR *dir = opendir(PINS);
	struct dirent *e;
	int nr = 0;

	while (dir && (e = readdir(dir)))
		nr += e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return nr;
}

static struct objects before; /* the first trace */

/* The main() of a test of the engine bpf. Returns its exit status. */
static inline int dist_main(const char *prog, void (*tests)(void))
{
	int err;

	before = objects();
	if (sh("statpage trace --engine bpf vfs_open --for 1ms") &&
	    strstr(out, "built without it")) {
		TEST("all") {
			SKIP("statpage was built without the engine bpf");
		}
		return t_done(prog);
	}
	err = load_demo_btf();
	TEST("the demo is loaded, and has BTF; a trace mounts the filesystem for pins") {
		CHECK(!err && !access("/sys/kernel/btf/kstats_demo", F_OK), "errno %d", -err);
		CHECK(!access(PINS, F_OK) && !folders(), "no " PINS);
		CHECK(!sh("statpage doctor") &&
			      strstr(out,
				     "distributions  bpf        yes  calls are timed by fentry,"),
		      "%s", out);
		CHECK(UNTIL(same(before, objects())), "doctor leaves something");
	}
	tests();
	TEST("nothing is left: no program, map, link, nor pin") {
		CHECK(!folders() && UNTIL(same(before, objects())), "%d %d %d, before %d %d %d",
		      objects().progs, objects().maps, objects().links, before.progs, before.maps,
		      before.links);
		CHECK(UNTIL(!module("kstats_demo", false)), "rmmod");
	}
	return t_done(prog);
}

#endif /* T_DIST_H */
