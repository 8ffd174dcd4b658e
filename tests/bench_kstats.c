// SPDX-License-Identifier: GPL-2.0
// This test checks what kstats costs: instructions a call, exactly, in a guest whose TSC counts them
// (qemu -icount), for every mechanism that the kernel has; and that the promised limits hold.
#include <stddef.h>

#include "t_kstats.h"

#define CALLS 20000

struct cost {
	uint64_t kernel, module, pair, tracepoints, record, annotated;
};

/* Each a call, without the loop around it. */
static void measure(struct cost *c)
{
	char buf[400] = " ";
	uint64_t loop;

	demo("cost", CALLS, 1);
	get(DEMO, buf + 1, sizeof(buf) - 1);
	loop = word(buf, "loop");
	c->kernel = (word(buf, "kernel") - loop + CALLS / 2) / CALLS;
	c->module = (word(buf, "module") - loop + CALLS / 2) / CALLS;
	c->pair = (word(buf, "pair") - loop + CALLS / 2) / CALLS;
	c->tracepoints = (word(buf, "tracepoints") - loop + CALLS / 2) / CALLS;
	c->record = (word(buf, "record") - loop + CALLS / 2) / CALLS;
	c->annotated = (word(buf, "annotated") - loop + CALLS / 2) / CALLS;
}

static struct cost base;

static void row(const char *what, uint64_t cost, uint64_t limit)
{
	TEST("%-50s %4llu instructions", what, (unsigned long long)cost) {
		CHECK(cost > 0 && cost < 100000, "no cost");
		CHECK(!limit || cost <= limit, "the limit is %llu", (unsigned long long)limit);
	}
}

/* A node, and what it adds to one of the base costs. */
static void node(const char *what, size_t which, uint64_t limit, const char *command)
{
	struct metric m;
	struct cost c;

	if (control("trace n %s", command)) {
		TEST("%s", what)
			SKIP("%.150s", why);
		return;
	}
	measure(&c);
	metric("n", -1, &m);
	control("remove n");
	UNTIL(drained());
	TEST("%s: every call was recorded", what)
		CHECK(m.count >= CALLS, "%s", m.head);
	row(what, *(uint64_t *)((char *)&c + which) - *(uint64_t *)((char *)&base + which), limit);
}

#define NODE(what, which, limit, command) node(what, offsetof(struct cost, which), limit, command)

int main(void)
{
	measure(&base);
	row("kstats_record()", base.record, 20);
	row("annotation: two clocks and a record", base.annotated, 0);
	NODE("call via direct", kernel, 50, "start single_task_running gap no via direct");
	NODE("call via direct, with its gap", kernel, 85, "start single_task_running via direct");
	NODE("call via direct, stack arguments copied", module, 0,
	     "start kstats_demo_empty gap no via direct");
	NODE("call via direct, 5 bits", kernel, 0,
	     "start single_task_running gap no bits 5 via direct");
	NODE("call via kretprobe", kernel, 0, "start single_task_running gap no via kretprobe");
	NODE("call via kretprobe, with its gap", kernel, 0,
	     "start single_task_running via kretprobe");
	NODE("call via fprobe", kernel, 0, "start single_task_running gap no via fprobe");
	NODE("X..Y via direct, both ends", pair, 0,
	     "start single_task_running end kstats_demo_empty gap no via direct");
	NODE("X..Y via ftrace, both ends", pair, 0,
	     "start single_task_running end kstats_demo_empty gap no via ftrace");
	NODE("X..Y via kprobe, both ends", pair, 0,
	     "start single_task_running end kstats_demo_empty gap no via kprobe");
	NODE("A..B via tracepoints, both ends", tracepoints, 0,
	     "start kstats_demo:kstats_demo_begin end kstats_demo:kstats_demo_end gap no");
	NODE("A..B via tracepoints by CPU, both ends", tracepoints, 0,
	     "start kstats_demo:kstats_demo_begin end kstats_demo:kstats_demo_end by cpu gap no");
	return t_done("bench_kstats");
}
