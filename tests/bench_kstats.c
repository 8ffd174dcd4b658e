// SPDX-License-Identifier: GPL-2.0
// This test checks what kstats costs: instructions a call, exactly, in a guest whose TSC counts them
// (qemu -icount), for every mechanism that the kernel has; and that the promised limits hold.
#include <stddef.h>

#include "t_cost_demo.h"

/* A node, and what it adds to one of the loops. */
static void node(const char *group, const char *what, size_t which, uint64_t limit,
		 const char *command)
{
	struct metric m;
	uint64_t added;

	TEST("%s: %s", group, what) {
		if (control("trace n %s", command)) {
			cost_none(group, what);
			SKIP("%.150s", why);
			break;
		}
		added = cost_added(which);
		metric("n", -1, &m);
		control("remove n");
		UNTIL(drained());
		CHECK(m.count >= COST_CALLS, "not every call was recorded: %s", m.head);
		cost_row(group, what, added, limit);
	}
}

#define CALL(what, which, limit, command) \
	node(COST_CALL, what, offsetof(struct cost_demo, which), limit, "start " command)
#define PAIR(what, which, ends, command) \
	node(COST_PAIR, what, offsetof(struct cost_demo, which), 0, "start " ends " gap no" command)
#define FUNCTIONS   COST_FUNCTION " end kstats_demo_empty"
#define TRACEPOINTS COST_TRACEPOINT "begin end " COST_TRACEPOINT "end"

int main(void)
{
	cost_begin();
	cost_demo(&cost_untraced);
	TEST("annotated code") {
		cost_row(COST_CALL, "kstats_record()", cost_untraced.record, 20);
		cost_row(COST_CALL, "annotation: two kstats_clock() and a record",
			 cost_untraced.annotated, 0);
	}
	CALL("module: direct", kernel, 50, COST_FUNCTION " gap no via direct");
	CALL("module: direct, with its gap", kernel, 85, COST_FUNCTION " via direct");
	CALL("module: direct, arguments on the stack copied", module, 0,
	     "kstats_demo_empty gap no via direct");
	CALL("module: direct, 5 bits", kernel, 0, COST_FUNCTION " gap no bits 5 via direct");
	CALL("module: kretprobe", kernel, 0, COST_FUNCTION " gap no via kretprobe");
	CALL("module: kretprobe, with its gap", kernel, 0, COST_FUNCTION " via kretprobe");
	CALL("module: fprobe", kernel, 0, COST_FUNCTION " gap no via fprobe");
	CALL("module: fprobe, with its gap", kernel, 0, COST_FUNCTION " via fprobe");
	PAIR("module: direct", pair, FUNCTIONS, " via direct");
	PAIR("module: ftrace", pair, FUNCTIONS, " via ftrace");
	PAIR("module: kprobe", pair, FUNCTIONS, " via kprobe");
	PAIR("module: tracepoint", tracepoints, TRACEPOINTS, "");
	PAIR("module: tracepoint, by CPU", tracepoints, TRACEPOINTS, " by cpu");
	return t_done("bench_kstats");
}
