// SPDX-License-Identifier: GPL-2.0
/*
 * This test checks what thread time costs by the module, in instructions; see t_cost.h.
 *
 *	VM_DEBUG=0 tests/vm.sh bench
 */
#include "t_cost_switch.h"

static void bench_reads(void)
{
	static struct csf_snap s;

	TEST("a snapshot costs at most 60 instructions") {
		t_snap(&s);
		cost_row(COST_READ, "csf_thread_snap()", COST(csf_thread_snap(&s)), 60);
	}
}

static void bench_switches(void)
{
	struct cost_session s[COST_SESSIONS];

	TEST("a pair of switches costs a registered thread at most 250 instructions, others nothing") {
		t_pin(0);
		for (int i = 0; i < COST_SESSIONS; i++) {
			s[i] = (struct cost_session){
				.steps = {cost_nothing, cost_other_registers, cost_registers}};
			cost_session(&s[i]);
		}
		cost_base(s);
		/* The kernel's own look whether a list of notifiers is empty, one a switch. */
		cost_row(COST_SWITCH, "module: a thread without a page, while another has one",
			 cost_more(s, 0, 1, 2), 12);
		cost_row(COST_SWITCH, "module: a thread with a page, more than that",
			 cost_more(s, 1, 2, 1), 250);
	}
}

int main(void)
{
	cost_begin();
	bench_switches();
	bench_reads();
	return t_done("bench");
}
