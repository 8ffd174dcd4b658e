/* SPDX-License-Identifier: GPL-2.0 */
/* What a call costs that is traced, by the demo's loops: of bench_kstats.c (the module) and bench_dist_bpf.c (BPF). */
#ifndef T_COST_DEMO_H
#define T_COST_DEMO_H

#include "t_cost.h"
#include "t_kstats.h"

#define COST_CALLS	20000
#define COST_CALL	"a traced call"
#define COST_PAIR	"from X to Y, both ends"
#define COST_FUNCTION	"single_task_running"
#define COST_TRACEPOINT "kstats_demo:kstats_demo_"

struct cost_demo {
	uint64_t kernel, module, pair, tracepoints, record, annotated;
};

static struct cost_demo cost_untraced;

/* Each a call, without the loop around it. */
static inline void cost_demo(struct cost_demo *c)
{
	char buf[400] = " ";
	uint64_t loop;

	demo("cost", COST_CALLS, 1);
	get(DEMO, buf + 1, sizeof(buf) - 1);
	loop = word(buf, "loop");
	c->kernel = (word(buf, "kernel") - loop + COST_CALLS / 2) / COST_CALLS;
	c->module = (word(buf, "module") - loop + COST_CALLS / 2) / COST_CALLS;
	c->pair = (word(buf, "pair") - loop + COST_CALLS / 2) / COST_CALLS;
	c->tracepoints = (word(buf, "tracepoints") - loop + COST_CALLS / 2) / COST_CALLS;
	c->record = (word(buf, "record") - loop + COST_CALLS / 2) / COST_CALLS;
	c->annotated = (word(buf, "annotated") - loop + COST_CALLS / 2) / COST_CALLS;
}

/* What one of these costs now, above what it cost untraced. */
static inline uint64_t cost_added(size_t which)
{
	struct cost_demo now;

	cost_demo(&now);
	return *(uint64_t *)((char *)&now + which) - *(uint64_t *)((char *)&cost_untraced + which);
}

#endif /* T_COST_DEMO_H */
