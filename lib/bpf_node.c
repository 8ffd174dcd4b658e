/* SPDX-License-Identifier: MIT */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/bpf_node.h"
#include "lib/bpf_pins.h"
#include "uapi/kstats.h"
#include "uapi/kstats_bucket.h"

/* A metric's raw counters, since it was made. Reset keeps one, in a map of one element. */
struct reading {
	uint64_t hook_missed; /* calls that the kernel did not tell of */
	struct dist_bpf_tally sum[DIST_BPF_ROWS];
	struct dist_bpf_cell cell[]; /* [slot][CPU] */
};

static int pin_get(const char *node, const char *pin)
{
	char path[PIN_PATH_MAX];
	int fd;

	bpf_pins_path(path, node, pin);
	fd = bpf_obj_get(path);
	return fd < 0 ? -errno : fd;
}

static int map_get(const char *node, const char *pin, void *value)
{
	uint32_t zero = 0;
	int fd = pin_get(node, pin), err = 0;

	if (fd < 0)
		return fd;
	if (bpf_map_lookup_elem(fd, &zero, value))
		err = -errno;
	close(fd);
	return err;
}

/* The map may be of another size than this release's, and must not be read then. */
static int read_conf(const char *name, struct dist_bpf_conf *conf)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info), zero = 0;
	int fd = pin_get(name, PIN_CONF), err = 0;

	if (fd < 0)
		return fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &len) ||
	    (info.value_size == sizeof(*conf) && bpf_map_lookup_elem(fd, &zero, conf)))
		err = -errno;
	else if (info.value_size != sizeof(*conf) || conf->version != DIST_BPF_VERSION ||
		 conf->bits > KSTATS_MAX_BITS)
		err = -EPROTO;
	close(fd);
	return err;
}

static const char *node_name(const char *metric, bool *gap)
{
	static const size_t len = sizeof(KSTATS_GAP_PREFIX) - 1;

	*gap = !bpf_pins_has_node(metric) && !strncmp(metric, KSTATS_GAP_PREFIX, len);
	return *gap ? metric + len : metric;
}

bool bpf_node_has(const char *metric)
{
	struct dist_bpf_conf conf = {0};
	const char *name;
	bool gap;

	name = node_name(metric, &gap);
	if (strchr(metric, '/') || !*name || !bpf_pins_has_node(name))
		return false;
	return !gap || (!read_conf(name, &conf) && conf.gap);
}

int bpf_node_find(const char *metric, struct bpf_node *node, struct dist_why *why)
{
	const char *name;
	int err;

	if (!bpf_node_has(metric))
		return dist_fail(why, -ENOENT, "no metric %.64s", metric);
	name = node_name(metric, &node->gap);
	err = read_conf(name, &node->conf);
	if (err == -EPROTO)
		return dist_fail(why, err,
				 "%s was made by another release of this tool: untrace it", name);
	return err ? dist_fail(why, err, "%s: its pins cannot be read: %s", name, strerror(-err)) :
		     0;
}

/* The tail of struct bpf_link_info of kernels that know how often a kprobe was missed, 6.7 and later. */
struct link_info {
	uint32_t type, id, prog_id, pad;
	uint32_t perf_type, pad2;
	uint64_t func_name;
	uint32_t name_len, offset;
	uint64_t addr, missed, cookie;
};
#define PERF_TYPE_KPROBE 3

static uint64_t hook_missed(const char *node)
{
	struct bpf_prog_info prog = {0};
	struct link_info link = {0};
	uint32_t len = sizeof(prog);
	uint64_t missed = 0;
	int fd = pin_get(node, PIN_BEGIN_PROG);

	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &prog, &len))
		missed = prog.recursion_misses;
	if (fd >= 0)
		close(fd);
	fd = pin_get(node, PIN_BEGIN);
	len = sizeof(link);
	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, (void *)&link, &len) &&
	    link.type == BPF_LINK_TYPE_PERF_EVENT && link.perf_type == PERF_TYPE_KPROBE)
		missed += link.missed;
	if (fd >= 0)
		close(fd);
	return missed;
}

/* Ends before begins, so that there are never more of those. */
static int read_tally(const char *node, int cpus, struct dist_bpf_tally sum[DIST_BPF_ROWS])
{
	static const uint32_t order[] = {DIST_BPF_END, DIST_BPF_DIED, DIST_BPF_GAP, DIST_BPF_BEGIN};
	struct dist_bpf_tally *all = calloc((size_t)cpus, sizeof(*all));
	int fd = pin_get(node, PIN_TALLY), err = all ? 0 : -ENOMEM;

	if (fd < 0)
		err = fd;
	for (uint32_t i = 0; !err && i < DIST_BPF_ROWS; i++) {
		if (bpf_map_lookup_elem(fd, &order[i], all))
			err = -errno;
		for (int cpu = 0; cpu < cpus; cpu++)
			for (int e = 0; e < DIST_BPF_EVENTS; e++)
				sum[order[i]].n[e] += all[cpu].n[e];
	}
	if (fd >= 0)
		close(fd);
	free(all);
	return err;
}

static size_t reading_size(const struct bpf_node *node, int cpus)
{
	return sizeof(struct reading) +
	       KSTATS_NR_SLOTS(node->conf.bits) * (size_t)cpus * sizeof(struct dist_bpf_cell);
}

static int reading_take(const struct bpf_node *node, int cpus, struct reading **to)
{
	struct reading *r = calloc(1, reading_size(node, cpus));
	int fd = pin_get(node->conf.name, node->gap ? PIN_GAP : PIN_SLOTS), err = 0;

	if (!r || fd < 0)
		err = fd < 0 ? fd : -ENOMEM;
	for (uint32_t i = 0; !err && i < KSTATS_NR_SLOTS(node->conf.bits); i++)
		if (bpf_map_lookup_elem(fd, &i, &r->cell[i * (uint32_t)cpus]))
			err = -errno;
	if (fd >= 0)
		close(fd);
	if (!err)
		err = read_tally(node->conf.name, cpus, r->sum);
	if (!err && !node->gap)
		r->hook_missed = hook_missed(node->conf.name);
	if (err)
		free(r);
	else
		*to = r;
	return err;
}

/* What the latest reset left; zeros where there was none. */
static int reading_base(const struct bpf_node *node, int cpus, struct reading **to)
{
	struct reading *r = calloc(1, reading_size(node, cpus));
	int err = r ? map_get(node->conf.name, node->gap ? PIN_GAP_BASE : PIN_BASE, r) : -ENOMEM;

	if (err && err != -ENOENT)
		free(r);
	else
		*to = r;
	return err == -ENOENT ? 0 : err;
}

/* In all rows but the gap's, which is another metric's. */
static uint64_t event(const struct reading *r, enum dist_bpf_event e)
{
	uint64_t sum = 0;

	for (int i = 0; i < DIST_BPF_ROWS; i++)
		if (i != DIST_BPF_GAP)
			sum += r->sum[i].n[e];
	return sum;
}

static void ledger_causes(struct dist_ledger *l, const uint64_t n[], unsigned int nr)
{
	static const char *const names[] = {"instance", "table", "nest", "died", "clock", "busy"};
	size_t len = 0;

	l->missed = 0;
	for (unsigned int i = 0; i < nr; i++) {
		l->missed += n[i];
		if (n[i])
			len += (size_t)snprintf(l->causes + len, sizeof(l->causes) - len,
						"%s%s %llu", len ? " " : "", names[i],
						(unsigned long long)n[i]);
	}
}

static void ledger_fill(struct dist_ledger *l, const struct bpf_node *node, const struct reading *r,
			const struct reading *base)
{
#define SINCE(e) (event(r, e) - event(base, e))
#define GAP(e)	 (r->sum[DIST_BPF_GAP].n[e] - base->sum[DIST_BPF_GAP].n[e])
	uint64_t lost = r->hook_missed - base->hook_missed, entries, exits;
	const uint64_t missed[] = {lost + SINCE(DIST_BPF_MISS_INSTANCE),
				   SINCE(DIST_BPF_MISS_TABLE),
				   SINCE(DIST_BPF_MISS_NEST),
				   SINCE(DIST_BPF_MISS_DIED),
				   SINCE(DIST_BPF_MISS_CLOCK),
				   SINCE(DIST_BPF_MISS_BUSY)};
	const uint64_t gap_missed[] = {0, 0, 0, 0, GAP(DIST_BPF_MISS_CLOCK), 0};

	if (node->gap) {
		ledger_causes(l, gap_missed, 6);
		l->filtered = GAP(DIST_BPF_FILTERED);
		l->stopped = GAP(DIST_BPF_STOPPED);
		l->attempted = l->recorded + l->missed + l->filtered + l->stopped;
		return;
	}
	ledger_causes(l, missed, 6);
	l->filtered = SINCE(DIST_BPF_FILTERED);
	l->stopped = SINCE(DIST_BPF_STOPPED);
	l->unpaired = SINCE(DIST_BPF_UNPAIRED);
	entries = event(r, DIST_BPF_ENTRY);
	exits = event(r, DIST_BPF_EXIT);
	l->inside = entries > exits ? entries - exits : 0;
	l->attempted = entries - event(base, DIST_BPF_EXIT) + lost;
#undef SINCE
#undef GAP
}

static int add_cell(struct dist_metric *m, unsigned int cpu, uint32_t slot, uint64_t count,
		    uint64_t sum)
{
	if (!count)
		return 0;
	if (!m->cpu[cpu])
		m->cpu[cpu] = hist_new(m->all->bits);
	if (!m->cpu[cpu])
		return -ENOMEM;
	m->ledger.recorded += count;
	hist_add_slot(m->cpu[cpu], slot, count, sum);
	return hist_add_slot(m->all, slot, count, sum);
}

static int fill_hists(struct dist_metric *m, const struct reading *r, const struct reading *base,
		      unsigned int bits, unsigned int cpus)
{
	int err = 0;

	m->all = hist_new(bits);
	m->cpu = calloc(cpus, sizeof(*m->cpu));
	m->nr_cpus = m->cpu ? cpus : 0;
	if (!m->all || !m->cpu)
		return -ENOMEM;
	for (uint32_t i = 0; !err && i < KSTATS_NR_SLOTS(bits) * cpus; i++)
		err = add_cell(m, i % cpus, i / cpus, r->cell[i].count - base->cell[i].count,
			       r->cell[i].sum - base->cell[i].sum);
	m->has_sum = true;
	m->sum = m->all->sum;
	return err;
}

static void describe(const struct bpf_node *node, struct dist_metric *m)
{
	const struct dist_bpf_conf *c = &node->conf;

	snprintf(m->origin, sizeof(m->origin),
		 "%s start %s end %s by %s via %s clock monotonic engine bpf",
		 node->gap ? "gap" : "time", c->start, *c->end ? c->end : "return",
		 c->by_cpu ? "cpu" : "task", c->via);
	if (*c->note)
		snprintf(m->notes, sizeof(m->notes), "fallback %s\n", c->note);
}

static const char *state_of(const struct dist_bpf_ctl *ctl, bool gap)
{
	return (gap ? ctl->gap_stopped : ctl->stopped) ? "stopped" : "running";
}

static int failed(const char *metric, int err, struct dist_why *why)
{
	return dist_fail(why, err, "%s: %s", metric, strerror(-err));
}

static int read_node(const struct bpf_node *node, struct dist_metric *to)
{
	int cpus = libbpf_num_possible_cpus(), err;
	struct reading *r = NULL, *base = NULL;
	struct dist_bpf_ctl ctl = {0};

	memset(to, 0, sizeof(*to));
	err = map_get(node->conf.name, PIN_CTL, &ctl);
	if (!err)
		err = reading_base(node, cpus, &base);
	if (!err)
		err = reading_take(node, cpus, &r);
	if (!err)
		err = fill_hists(to, r, base, node->conf.bits, (unsigned int)cpus);
	if (!err) {
		ledger_fill(&to->ledger, node, r, base);
		strcpy(to->state, state_of(&ctl, node->gap));
		describe(node, to);
	}
	free(r);
	free(base);
	if (err)
		dist_metric_free(to);
	return err;
}

int bpf_node_read(const char *metric, struct dist_metric *to, struct dist_why *why)
{
	struct bpf_node node = {.gap = false};
	int err = bpf_node_find(metric, &node, why);

	if (err)
		return err;
	err = read_node(&node, to);
	return err ? failed(metric, err, why) : 0;
}

/* The map is complete when it gets its name, and takes the place of an older one's. */
static int keep_base(const struct bpf_node *node)
{
	const char *pin = node->gap ? PIN_GAP_BASE : PIN_BASE;
	char path[PIN_PATH_MAX], made[PIN_PATH_MAX];
	int cpus = libbpf_num_possible_cpus(), fd = -1, err;
	struct reading *r = NULL;
	uint32_t zero = 0;

	bpf_pins_path(path, node->conf.name, pin);
	bpf_pins_path(made, node->conf.name, "base~");
	err = reading_take(node, cpus, &r);
	if (err)
		return err;
	unlink(made);
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "statpage_base", sizeof(zero),
			    (uint32_t)reading_size(node, cpus), 1, NULL);
	if (fd < 0 || bpf_map_update_elem(fd, &zero, r, BPF_ANY) || bpf_obj_pin(fd, made) ||
	    rename(made, path))
		err = -errno;
	if (fd >= 0)
		close(fd);
	free(r);
	return err;
}

static int set_stopped(const struct bpf_node *node, bool stopped)
{
	struct dist_bpf_ctl ctl = {0};
	uint32_t zero = 0;
	int fd = pin_get(node->conf.name, PIN_CTL), err = 0;

	if (fd < 0)
		return fd;
	if (bpf_map_lookup_elem(fd, &zero, &ctl))
		err = -errno;
	*(node->gap ? &ctl.gap_stopped : &ctl.stopped) = stopped;
	if (!err && bpf_map_update_elem(fd, &zero, &ctl, BPF_ANY))
		err = -errno;
	close(fd);
	return err;
}

int bpf_node_act(const char *metric, enum dist_action action, struct dist_why *why)
{
	struct bpf_node node = {.gap = false};
	int lock, err = bpf_node_find(metric, &node, why);

	if (err)
		return err;
	lock = bpf_pins_lock(why);
	if (lock < 0)
		return lock;
	err = bpf_node_find(metric, &node, why); /* it may have gone, and come again */
	if (!err) {
		err = action == DIST_RESET ? keep_base(&node) :
					     set_stopped(&node, action == DIST_STOP);
		if (err)
			failed(metric, err, why);
	}
	close(lock);
	return err;
}

struct lister {
	int (*fn)(const struct dist_node *node, void *data);
	void *data;
	struct dist_why *why;
};

static int list_one(const char *name, void *data)
{
	struct lister *l = data;
	struct dist_node out = {.gap = false};
	struct dist_metric m;
	struct bpf_node node = {.gap = false};
	int err;

	if (!bpf_pins_has_node(name))
		return 0;
	err = bpf_node_find(name, &node, l->why);
	if (!err) {
		err = read_node(&node, &m);
		if (err)
			failed(name, err, l->why);
	}
	if (err == -ENOENT) /* it went meanwhile */
		return 0;
	if (err)
		return err;
	strcpy(out.name, node.conf.name);
	strcpy(out.start, node.conf.start);
	strcpy(out.end, *node.conf.end ? node.conf.end : "return");
	strcpy(out.via, node.conf.via);
	strcpy(out.state, m.state);
	strcpy(out.by, node.conf.by_cpu ? "cpu" : "task");
	strcpy(out.note, node.conf.note);
	out.bits = node.conf.bits;
	out.gap = node.conf.gap;
	out.ledger = m.ledger;
	dist_metric_free(&m);
	return l->fn(&out, l->data);
}

int bpf_node_list(int (*fn)(const struct dist_node *node, void *data), void *data,
		  struct dist_why *why)
{
	struct lister l = {fn, data, why};

	bpf_pins_sweep();
	return bpf_pins_each(list_one, &l);
}

/* Two names a node at most. */
struct names {
	char (*name)[64];
	size_t nr;
};

static int add_names(const char *name, void *data)
{
	struct dist_bpf_conf conf = {0};
	struct names *all = data;
	void *more;

	if (!bpf_pins_has_node(name) || read_conf(name, &conf))
		return 0;
	more = realloc(all->name, (all->nr + 2) * sizeof(*all->name));
	if (!more)
		return -ENOMEM;
	all->name = more;
	snprintf(all->name[all->nr++], sizeof(*all->name), "%.63s", name);
	if (conf.gap)
		snprintf(all->name[all->nr++], sizeof(*all->name), KSTATS_GAP_PREFIX "%.59s", name);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

int bpf_node_metrics(int (*fn)(const char *name, void *data), void *data, struct dist_why *why)
{
	struct names all = {NULL, 0};
	int err = bpf_pins_each(add_names, &all);

	if (err)
		dist_fail(why, err, DIST_BPF_DIR ": %s", strerror(-err));
	else if (all.nr)
		qsort(all.name, all.nr, sizeof(*all.name), by_name);
	for (size_t i = 0; !err && i < all.nr; i++)
		err = fn(all.name[i], data);
	free(all.name);
	return err;
}
