/* SPDX-License-Identifier: MIT */
/*
 * The engine of distributions that needs no module: bpf/dist.bpf.c, a copy for each node. What is traced
 * lives on in pins (bpf_pins.h), and is read through them (bpf_node.h).
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "uapi/dist_bpf.h"

#include "dist.skel.h"

#include "lib/bpf_may.h"
#include "lib/bpf_node.h"
#include "lib/bpf_pins.h"
#include "lib/bpf_spec.h"
#include "lib/dist.h"
#include "uapi/kstats.h"
#include "uapi/kstats_bucket.h"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

enum how {
	HOW_FENTRY,
	HOW_KPROBE,
	HOW_TRACEPOINT,
};

/* A node in the making. */
struct making {
	const struct dist_spec *spec;
	struct bpf_place start, end;
	struct dist_bpf *bpf;
	struct bpf_program *begin_prog, *end_prog;
	char note[128];
	struct dist_why *why;
};

/* ---- may we? ---- */

static int probe(struct dist_why *why)
{
	if (!bpf_may_load())
		return dist_fail(why, -EPERM,
				 "permission denied: this needs root, or CAP_BPF and "
				 "CAP_PERFMON");
	if (access(KERNEL_BTF, R_OK))
		return dist_fail(why, -ENODEV, "this kernel has no BTF (" KERNEL_BTF ")");
	return 0;
}

static int locate_both(struct making *m)
{
	const struct dist_spec *s = m->spec;
	bool tp = s->via && !strcmp(s->via, "tracepoint");
	int err = bpf_place_find(&m->start, s->start, tp, m->why);

	if (!err && s->end)
		err = bpf_place_find(&m->end, s->end, tp, m->why);
	if (err)
		return err;
	if (!s->end && m->start.tp)
		return dist_fail(m->why, -EINVAL, "tracepoint %s has no return: give an end",
				 m->start.name);
	if (!s->end && bpf_place_never_returns(&m->start))
		return dist_fail(m->why, -EINVAL, "%s never returns: give an end", m->start.name);
	return 0;
}

static int check_taken(const char *name, bool gap, struct dist_why *why)
{
	char gap_name[80];

	snprintf(gap_name, sizeof(gap_name), KSTATS_GAP_PREFIX "%.63s", name);
	if (bpf_node_has(name))
		return dist_fail(why, -EEXIST, "name %s is taken", name);
	if (gap && bpf_node_has(gap_name))
		return dist_fail(why, -EEXIST, "name %s is taken", gap_name);
	return 0;
}

/* ---- one attempt, by one mechanism ---- */

static void configure(struct making *m, const char *via)
{
	const struct dist_spec *s = m->spec;
	struct dist_bpf_conf *c = (struct dist_bpf_conf *)&m->bpf->rodata->conf;
	struct stat st = {0};

	stat("/proc/self/ns/pid", &st);
	c->version = DIST_BPF_VERSION;
	c->bits = s->bits;
	c->gap = s->gap;
	c->by_cpu = s->by_cpu;
	c->tgid = (uint32_t)s->pid;
	c->pid_ns = (uint32_t)st.st_ino;
	c->cpu = s->cpu;
	c->by_comm = s->comm != NULL;
	snprintf(c->comm, sizeof(c->comm), "%s", s->comm ? s->comm : "");
	snprintf(c->name, sizeof(c->name), "%s", s->name);
	snprintf(c->start, sizeof(c->start), "%s", s->start);
	snprintf(c->end, sizeof(c->end), "%s", s->end ? s->end : "");
	snprintf(c->via, sizeof(c->via), "%s", via);
	snprintf(c->note, sizeof(c->note), "%s", m->note);
}

/* The programs for start and end; all others stay out of the kernel. */
static void choose(struct making *m, enum how how)
{
	struct dist_bpf *b = m->bpf;
	struct bpf_program *const call[][2] = {
		{b->progs.call_fentry, b->progs.call_fexit},
		{b->progs.call_kprobe, b->progs.call_kretprobe},
	};
	struct bpf_program *const pair[][2] = {
		{b->progs.start_fentry, b->progs.end_fentry},
		{b->progs.start_kprobe, b->progs.end_kprobe},
		{b->progs.start_tp, b->progs.end_tp},
	};
	struct bpf_program *p;

	if (m->spec->end) {
		m->begin_prog = pair[m->start.tp ? HOW_TRACEPOINT : how][0];
		m->end_prog = pair[m->end.tp ? HOW_TRACEPOINT : how][1];
	} else {
		m->begin_prog = call[how == HOW_KPROBE][0];
		m->end_prog = call[how == HOW_KPROBE][1];
	}
	bpf_object__for_each_program(p, b->obj)
		bpf_program__set_autoload(p, p == m->begin_prog || p == m->end_prog ||
						     (p == b->progs.died && !m->spec->by_cpu));
}

static int target(struct bpf_program *prog, const struct bpf_place *p, struct dist_why *why)
{
	int err;

	if (p->tp || bpf_program__type(prog) != BPF_PROG_TYPE_TRACING)
		return 0;
	if (!p->by_name)
		return dist_fail(why, -ENOENT, "fentry: there are several functions %s", p->name);
	err = bpf_program__set_attach_target(prog, 0, p->name);
	return err ? dist_fail(why, err, "fentry: no BTF of the function %s", p->name) : 0;
}

/* Programs ask for one variable of the kernel, which is not among its symbols everywhere. */
static const char *load_error(int err)
{
	return err == -ENOENT ? "it lists no symbols of data (CONFIG_KALLSYMS_ALL)" :
				strerror(-err);
}

static int load(struct making *m, enum how how)
{
	uint32_t slots = KSTATS_NR_SLOTS(m->spec->bits);
	const struct bpf_place *end = m->spec->end ? &m->end : &m->start;
	int err;

	choose(m, how);
	err = target(m->begin_prog, &m->start, m->why);
	if (!err)
		err = target(m->end_prog, end, m->why);
	if (err)
		return err;
	bpf_map__set_max_entries(m->bpf->maps.slots, slots);
	bpf_map__set_max_entries(m->bpf->maps.gap_slots, m->spec->gap ? slots : 1);
	err = dist_bpf__load(m->bpf);
	return err ? dist_fail(m->why, err, "%s: the kernel does not load the program: %s",
			       m->spec->start, load_error(err)) :
		     0;
}

static struct bpf_link *attach(struct bpf_program *prog, const struct bpf_place *p)
{
	LIBBPF_OPTS(bpf_kprobe_opts, opts);

	if (bpf_program__type(prog) == BPF_PROG_TYPE_TRACING)
		return bpf_program__attach_trace(prog);
	if (p->tp)
		return bpf_program__attach_raw_tracepoint(prog, p->name);
	opts.retprobe = strstr(bpf_program__name(prog), "kretprobe") != NULL;
	if (!p->by_name)
		opts.offset = p->address;
	return bpf_program__attach_kprobe_opts(prog, p->by_name ? p->name : NULL, &opts);
}

#define KERNEL_ENOTSUPP 524

/* What the kernel means by it. */
static const char *attach_error(int err, const struct bpf_program *prog)
{
	bool fentry = bpf_program__type(prog) == BPF_PROG_TYPE_TRACING;

	if (fentry && err == -KERNEL_ENOTSUPP)
		return "the kernel has no trampoline for the function's arguments";
	if (fentry && err == -EBUSY)
		return "the function is held by another tracer, or by kstats";
	if (!fentry && (err == -EINVAL || err == -EOPNOTSUPP || err == -EADDRNOTAVAIL))
		return "the function cannot be probed";
	return strerror(-err);
}

/* Attached, and kept by a pin; if we die in between, it goes with us. */
static int attach_pin(struct making *m, struct bpf_program *prog, const struct bpf_place *p,
		      const char *pin)
{
	struct bpf_link *link = p ? attach(prog, p) : bpf_program__attach(prog);
	const char *where = p ? p->text : "sched_process_free";
	char path[PIN_PATH_MAX];
	int err;

	if (!link) {
		err = -errno;
		return dist_fail(m->why, err, "%s: %s", where, attach_error(err, prog));
	}
	bpf_pins_path(path, m->spec->name, pin);
	err = bpf_link__pin(link, path);
	if (err)
		dist_fail(m->why, err, "%s: %s: %s", where, path, strerror(-err));
	else
		bpf_link__disconnect(link); /* to destroy it would disable a kprobe */
	bpf_link__destroy(link);
	return err;
}

static int pin_objects(struct making *m)
{
	struct {
		struct bpf_map *map;
		const char *pin;
	} maps[] = {{m->bpf->maps.rodata, PIN_CONF},
		    {m->bpf->maps.bss, PIN_CTL},
		    {m->bpf->maps.slots, PIN_SLOTS},
		    {m->bpf->maps.tally, PIN_TALLY},
		    {m->bpf->maps.gap_slots, PIN_GAP}};
	char path[PIN_PATH_MAX];
	int err = 0;

	bpf_pins_path(path, m->spec->name, NULL);
	if (mkdir(path, 0700))
		err = -errno;
	for (size_t i = 0; !err && i < sizeof(maps) / sizeof(maps[0]) - !m->spec->gap; i++) {
		bpf_pins_path(path, m->spec->name, maps[i].pin);
		err = bpf_map__pin(maps[i].map, path);
	}
	bpf_pins_path(path, m->spec->name, PIN_BEGIN_PROG);
	if (!err)
		err = bpf_program__pin(m->begin_prog, path);
	bpf_pins_path(path, m->spec->name, PIN_END_PROG);
	if (!err)
		err = bpf_program__pin(m->end_prog, path);
	return err ? dist_fail(m->why, err, "%s: %s", path, strerror(-err)) : 0;
}

/* The end first, so that no start waits for an end that nobody sees; and the begin last, which it is. */
static int attempt(struct making *m, enum how how, const char *via)
{
	int err;

	m->bpf = dist_bpf__open();
	if (!m->bpf)
		return dist_fail(m->why, -errno, "libbpf: %s", strerror(errno));
	configure(m, m->start.tp ? "tracepoint" : via);
	err = load(m, how);
	if (!err)
		err = pin_objects(m);
	if (!err)
		err = attach_pin(m, m->end_prog, m->spec->end ? &m->end : &m->start, PIN_END);
	if (!err && !m->spec->by_cpu)
		err = attach_pin(m, m->bpf->progs.died, NULL, PIN_DIED);
	if (!err)
		err = attach_pin(m, m->begin_prog, &m->start, PIN_BEGIN);
	dist_bpf__destroy(m->bpf);
	if (err) {
		struct dist_why ignored;

		bpf_pins_remove(m->spec->name, &ignored);
	}
	return err;
}

static int attempts(struct making *m)
{
	const char *kprobe = m->spec->end ? "kprobe" : "kretprobe";
	const char *via = m->spec->via;
	int err;

	if (m->start.tp && m->end.tp)
		return attempt(m, HOW_TRACEPOINT, "tracepoint");
	if (via)
		return attempt(m, strcmp(via, "fentry") ? HOW_KPROBE : HOW_FENTRY, via);
	err = attempt(m, HOW_FENTRY, "fentry");
	if (!err)
		return 0;
	snprintf(m->note, sizeof(m->note), "%.127s", m->why->text);
	return attempt(m, HOW_KPROBE, kprobe);
}

static int trace(const struct dist_spec *spec, struct dist_why *why)
{
	struct making m = {.spec = spec, .why = why};
	int err = bpf_spec_check(spec, why), lock;

	if (!err)
		err = locate_both(&m);
	if (err)
		return err;
	bpf_be_quiet();
	lock = bpf_pins_lock(why);
	if (lock < 0)
		return lock;
	err = check_taken(spec->name, spec->gap, why);
	if (!err)
		err = attempts(&m);
	close(lock);
	return err;
}

/* A call of our own is timed. */
static int try_call(struct making *m, enum how how)
{
	struct bpf_link *begin = NULL, *end = NULL;
	struct dist_bpf_tally *t;
	int cpus = libbpf_num_possible_cpus(), err;
	uint64_t exits = 0;
	uint32_t row = DIST_BPF_END;

	m->bpf = dist_bpf__open();
	if (!m->bpf)
		return dist_fail(m->why, -errno, "libbpf: %s", strerror(errno));
	configure(m, "");
	err = load(m, how);
	if (!err && (!(end = attach(m->end_prog, &m->start)) ||
		     !(begin = attach(m->begin_prog, &m->start))))
		err = dist_fail(m->why, -errno, "%s: %s", m->spec->start,
				attach_error(-errno, end ? m->begin_prog : m->end_prog));
	t = calloc((size_t)cpus, sizeof(*t));
	if (!err) {
		close(open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
		if (t && !bpf_map_lookup_elem(bpf_map__fd(m->bpf->maps.tally), &row, t))
			for (int cpu = 0; cpu < cpus; cpu++)
				exits += t[cpu].n[DIST_BPF_EXIT];
		if (!exits)
			err = dist_fail(m->why, -EIO, "a call of %s was not seen", m->spec->start);
	}
	free(t);
	bpf_link__destroy(begin);
	bpf_link__destroy(end);
	dist_bpf__destroy(m->bpf);
	return err;
}

static int try_here(struct dist_why *why)
{
	const struct dist_spec spec = {.name = "", .start = "vfs_open", .bits = 3, .cpu = -1};
	struct making m = {.spec = &spec, .why = why};
	char note[200];
	int err = probe(why);

	bpf_be_quiet();
	if (!err)
		err = bpf_place_find(&m.start, spec.start, false, why);
	if (err)
		return err;
	if (!try_call(&m, HOW_FENTRY))
		return dist_fail(why, 0, "calls are timed by fentry, or by kretprobe");
	snprintf(note, sizeof(note), "%.199s", why->text);
	err = try_call(&m, HOW_KPROBE);
	return err ? err : dist_fail(why, 0, "calls are timed by kretprobe; %s", note);
}

static int untrace(const char *name, struct dist_why *why)
{
	struct bpf_node node;
	int lock, err;

	if (!bpf_node_has(name)) /* look before the filesystem is mounted for nothing */
		return dist_fail(why, -ENOENT, "%s: no such node", name);
	lock = bpf_pins_lock(why);
	if (lock < 0)
		return lock;
	if (!bpf_node_has(name))
		err = dist_fail(why, -ENOENT, "%s: no such node", name);
	else if (!bpf_pins_has_node(name))
		err = bpf_node_find(name, &node, why) ?:
			      dist_fail(why, -ENOENT, "%s goes with its node %s", name,
					node.conf.name);
	else
		err = bpf_pins_remove(name, why);
	close(lock);
	return err;
}

const struct dist_engine engine_dist_bpf = {
	.name = "bpf",
	.probe = probe,
	.try = try_here,
	.has = bpf_node_has,
	.trace = trace,
	.untrace = untrace,
	.list = bpf_node_list,
	.metrics = bpf_node_metrics,
	.read = bpf_node_read,
	.act = bpf_node_act,
};
