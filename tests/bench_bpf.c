// SPDX-License-Identifier: GPL-2.0
/*
 * This test checks what the bpf engine of `statpage run` adds to a system call, in instructions (vm=icount,
 * see bench.c), beside what an empty pair of programs on the same two tracepoints adds, and beside the
 * ptrace engine.
 *
 *	VM_DEBUG=0 tests/vm.sh bench_bpf
 *
 * `bench_bpf call` prints what a getppid() costs it; that is what the engines are given to run.
 */
#include <linux/bpf.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t.h"

#define ROUNDS	    2001
#define LIMIT_OURS  960
#define LIMIT_OTHER 64 /* above an empty pair */

static uint64_t rdtscp(void)
{
	uint32_t lo, hi, aux;

	__asm__ __volatile__("rdtscp" : "=a"(lo), "=d"(hi), "=c"(aux) : : "memory");
	return (uint64_t)hi << 32 | lo;
}

static int cmp(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The median of one call's cost: a tick or another interrupt is in one round of thousands. */
static uint64_t call_cost(void)
{
	static uint64_t v[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t t = rdtscp();

		syscall(SYS_getppid);
		v[i] = rdtscp() - t;
	}
	qsort(v, ROUNDS, sizeof(v[0]), cmp);
	return v[ROUNDS / 2];
}

/* Two readings differ by the same small number only where instructions are counted. */
static int is_exact(void)
{
	for (int i = 0; i < 100; i++) {
		uint64_t t = rdtscp();

		if (rdtscp() - t >= 10)
			return 0;
	}
	return 1;
}

/* A program that does nothing, on a raw tracepoint: its descriptor, or -1. */
static int attach_empty(const char *tracepoint)
{
	struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attr;
	int prog;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = 2;
	attr.license = (uintptr_t) "GPL";
	prog = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	if (prog < 0)
		return -1;
	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.name = (uintptr_t)tracepoint;
	attr.raw_tracepoint.prog_fd = (uint32_t)prog;
	return (int)syscall(SYS_bpf, BPF_RAW_TRACEPOINT_OPEN, &attr, sizeof(attr));
}

/* What a call costs a program that `statpage run` watches with that engine; 0: it did not work. */
static uint64_t watched(const char *engine)
{
	unsigned long long cost = 0;
	char cmd[128];
	FILE *f;

	snprintf(cmd, sizeof(cmd), "statpage run --engine %s -o /tmp/.bench -- bench_bpf call",
		 engine);
	f = popen(cmd, "r");
	if (!f)
		return 0;
	if (fscanf(f, "%llu", &cost) != 1)
		cost = 0;
	return pclose(f) ? 0 : cost;
}

/* What a call costs us while the engine watches another program. */
static uint64_t beside(void)
{
	uint64_t cost = 0;
	int ready[2];
	pid_t pid;
	char c;

	if (pipe(ready))
		return 0;
	pid = fork();
	if (!pid) {
		dup2(ready[1], 1);
		execlp("statpage", "statpage", "run", "--engine", "bpf", "-o", "/tmp/.bench", "--",
		       "sh", "-c", "echo; exec sleep 1000", NULL);
		_exit(127);
	}
	close(ready[1]);
	if (pid > 0 && read(ready[0], &c, 1) == 1)
		cost = call_cost();
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	return cost;
}

int main(int argc, char **argv)
{
	uint64_t plain, pair, ours, other, ptrace;
	int enter, leave, exact = is_exact();

	if (argc == 2 && !strcmp(argv[1], "call")) {
		printf("%llu\n", (unsigned long long)call_cost());
		return 0;
	}
	TEST("the bpf engine adds at most %d instructions to a call, and a tenth of what ptrace does",
	     LIMIT_OURS) {
		plain = call_cost();
		enter = attach_empty("sys_enter");
		leave = attach_empty("sys_exit");
		CHECK(enter >= 0 && leave >= 0, "the empty pair does not attach");
		pair = call_cost() - plain;
		close(enter);
		close(leave);
		other = beside();
		ours = watched("bpf");
		ptrace = watched("ptrace");
		CHECK(ours > plain && other > plain && ptrace > plain,
		      "statpage run did not work: %llu, %llu, %llu", (unsigned long long)ours,
		      (unsigned long long)other, (unsigned long long)ptrace);
		ours -= plain;
		other -= plain;
		ptrace -= plain;
		printf("# %-48s %7llu %s\n", "getppid()", (unsigned long long)plain,
		       exact ? "instructions" : "cycles");
		printf("# %-48s %7llu\n", "added by an empty pair", (unsigned long long)pair);
		printf("# %-48s %7llu, %.2f times that\n", "added by the bpf engine",
		       (unsigned long long)ours, (double)ours / (double)pair);
		printf("# %-48s %7llu, %.2f times that\n",
		       "added by it to a program that it does not watch", (unsigned long long)other,
		       (double)other / (double)pair);
		printf("# %-48s %7llu, %.2f times that\n", "added by the ptrace engine",
		       (unsigned long long)ptrace, (double)ptrace / (double)pair);
		CHECK(!exact || ours <= LIMIT_OURS, "%llu instructions, at most %d",
		      (unsigned long long)ours, LIMIT_OURS);
		CHECK(!exact || other <= pair + LIMIT_OTHER,
		      "%llu instructions to another program, an empty pair %llu, at most %d more",
		      (unsigned long long)other, (unsigned long long)pair, LIMIT_OTHER);
		CHECK(!exact || ours * 10 <= ptrace, "%llu instructions, ptrace %llu",
		      (unsigned long long)ours, (unsigned long long)ptrace);
	}
	return t_done("bench_bpf");
}
