// SPDX-License-Identifier: GPL-2.0
/*
 * This test checks what thread time costs by BPF, where `statpage serve` runs; see t_cost.h. In a guest in
 * instructions; as root it runs on any machine.
 */
#include "t_bpf.h"
#include "t_cost_switch.h"
#include "t_work.h"

static int empty = -1;
static pid_t server;

static bool empty_program(struct cost_third *t)
{
	(void)t;
	empty = t_bpf_raw_tp("sched_switch");
	return empty >= 0;
}

/* Until it says that it serves. */
static bool serve(struct cost_third *t)
{
	const struct sched_param ordinary = {0};
	int said[2];
	char c = 0;

	(void)t;
	close(empty);
	if (pipe2(said, O_CLOEXEC))
		return false;
	server = fork();
	if (!server) {
		work_unpin();
		sched_setscheduler(0, SCHED_OTHER, &ordinary);
		dup2(said[1], 1);
		execlp("statpage", "statpage", "serve", NULL);
		_exit(127);
	}
	close(said[1]);
	while (read(said[0], &c, 1) == 1 && c != '\n')
		;
	close(said[0]);
	return c == '\n';
}

static bool end(void)
{
	return server > 0 && !kill(server, SIGTERM) && !t_wait(server);
}

int main(void)
{
	struct cost_session s[COST_SESSIONS] = {0};

	cost_begin();
	TEST("a pair of switches by BPF: without and with a page") {
		t_pin(0);
		for (int i = 0; i < COST_SESSIONS; i++) {
			s[i] = (struct cost_session){
				.steps = {cost_nothing, empty_program, serve, cost_registers}};
			cost_session(&s[i]);
			if (!CHECK(end(), "statpage serve does not end well"))
				break;
		}
		if (!s[COST_SESSIONS - 1].ok[0])
			break;
		if (!cost_.exact) /* in a guest bench.c has this row */
			cost_base(s);
		cost_row(COST_SWITCH, "an empty BPF program at each switch", cost_more(s, 0, 1, 2),
			 0);
		cost_row(COST_SWITCH, "statpage serve: a thread without a page",
			 cost_more(s, 0, 2, 2), 0);
		cost_row(COST_SWITCH, "statpage serve: a thread with a page, more than that",
			 cost_more(s, 2, 3, 1), 0);
	}
	return t_done("bench_serve");
}
