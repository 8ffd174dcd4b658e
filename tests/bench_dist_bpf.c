// SPDX-License-Identifier: GPL-2.0
// This test checks what distributions cost with the engine bpf: instructions a call, counted as by bench_kstats,
// beside those of BPF programs that do nothing.
#include <stddef.h>

#include "t_bpf.h"
#include "t_cost_demo.h"

/* A program at each of these places that does nothing. */
static void empty(const char *what, const enum bpf_attach_type *how, int n)
{
	int fd[2] = {-1, -1};

	TEST("%s: %s", COST_CALL, what) {
		for (int i = 0; i < n; i++) {
			fd[i] = t_bpf_function(COST_FUNCTION, how[i]);
			CHECK(fd[i] >= 0, "it does not attach: %s", strerror(-fd[i]));
		}
		cost_row(COST_CALL, what, cost_added(offsetof(struct cost_demo, kernel)), 0);
		for (int i = 0; i < n; i++)
			close(fd[i]);
	}
}

/* A node, and what it adds to one of the loops. */
static void node(const char *group, const char *what, size_t which, const char *command)
{
	uint64_t added;

	TEST("%s: %s", group, what) {
		CHECK(!sh("statpage trace --engine bpf --name n %s", command) && !*out, "%s", out);
		added = cost_added(which);
		CHECK(!sh("statpage show --json n"), "%s", out);
		CHECK(json_key(out, "count") >= COST_CALLS, "not every call was recorded: %s", out);
		CHECK(!sh("statpage untrace n"), "%s", out);
		cost_row(group, what, added, 0);
	}
}

#define CALL(what, command) \
	node(COST_CALL, what, offsetof(struct cost_demo, kernel), COST_FUNCTION " " command)
#define PAIR(what, which, command) \
	node(COST_PAIR, what, offsetof(struct cost_demo, which), command " --no-gap")
#define FUNCTIONS   COST_FUNCTION "..kstats_demo_empty"
#define TRACEPOINTS COST_TRACEPOINT "begin.." COST_TRACEPOINT "end"

int main(void)
{
	static const enum bpf_attach_type both[] = {BPF_TRACE_FENTRY, BPF_TRACE_FEXIT};

	cost_begin();
	TEST("the demo is loaded, and has BTF") {
		CHECK(!load_demo_btf(), "insmod");
	}
	cost_demo(&cost_untraced);
	empty("BPF: fentry, an empty program", both, 1);
	empty("BPF: fexit, an empty program", both + 1, 1);
	empty("BPF: fentry and fexit, empty programs", both, 2);
	CALL("BPF: fentry and fexit", "--no-gap --via fentry");
	CALL("BPF: fentry and fexit, with its gap", "--via fentry");
	CALL("BPF: kprobe and kretprobe", "--no-gap --via kretprobe");
	CALL("BPF: kprobe and kretprobe, with its gap", "--via kretprobe");
	PAIR("BPF: fentry", pair, FUNCTIONS " --via fentry");
	PAIR("BPF: kprobe", pair, FUNCTIONS " --via kprobe");
	PAIR("BPF: tracepoint", tracepoints, TRACEPOINTS);
	PAIR("BPF: tracepoint, by CPU", tracepoints, TRACEPOINTS " --by-cpu");
	TEST("the demo unloads") {
		CHECK(UNTIL(!module("kstats_demo", false)), "rmmod");
	}
	return t_done("bench_dist_bpf");
}
