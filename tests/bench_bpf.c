// SPDX-License-Identifier: GPL-2.0
/*
 * This test checks what `statpage run` adds to a system call by its engines, beside what an empty pair of BPF
 * programs on the same two tracepoints adds, and strace -c. See t_cost.h; as root it runs on any machine.
 *
 *	VM_DEBUG=0 tests/vm.sh bench_bpf
 *
 * `bench_bpf call` prints what a getppid() costs it; that is what the watchers are given to run.
 */
#include <signal.h>
#include <sys/wait.h>

#include "t_bpf.h"
#include "t_cost.h"

#define GROUP	   "a system call"
#define TURNS	   25 /* where not exact */
#define SLOW_TURNS 3  /* of what takes a hundred times as long */

/*
 * Where programs at raw tracepoints are preempted ours are attached as perf is, and the kernel writes a perf record
 * of each call first. LIMIT_OTHER_*: above an empty pair.
 */
#define LIMIT_RAW	 640
#define LIMIT_PERF	 1040
#define LIMIT_OTHER_RAW	 64
#define LIMIT_OTHER_PERF 400

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), compare);
	return v[n / 2];
}

/* The kernels of the guests that are preempted came with 6.13. */
static bool preempted(void)
{
	unsigned int major = 0, minor = 0;

	sscanf(cost_.kernel, "%u.%u", &major, &minor);
	return major > 6 || (major == 6 && minor > 12);
}

static double call_cost(void)
{
	return COST(syscall(SYS_getppid));
}

/* What a call costs between two programs that do no more than to read the clock, or nothing; 0: they do not attach. */
static double between(bool clock)
{
	int enter = t_bpf_raw_tp_clock("sys_enter", clock),
	    leave = t_bpf_raw_tp_clock("sys_exit", clock);
	double cost = enter < 0 || leave < 0 ? 0 : call_cost();

	close(enter);
	close(leave);
	return cost;
}

static double between_empty(void)
{
	return between(false);
}

static double between_clocks(void)
{
	return between(true);
}

/* What a call costs a program that this command watches; 0: it did not work. */
static double watched(const char *command)
{
	double cost = 0;
	char cmd[128];
	FILE *f;

	snprintf(cmd, sizeof(cmd), "%s bench_bpf call", command);
	f = popen(cmd, "r");
	if (!f)
		return 0;
	if (fscanf(f, "%lf", &cost) != 1)
		cost = 0;
	return pclose(f) ? 0 : cost;
}

static double by_bpf(void)
{
	return watched("statpage run --engine bpf -o /dev/null --");
}

static double by_ptrace(void)
{
	return watched("statpage run --engine ptrace -o /dev/null --");
}

static double by_strace(void)
{
	return watched("strace -c -f -o /dev/null");
}

/* What a call costs us while the bpf engine watches another program. */
static double beside_bpf(void)
{
	double cost = 0;
	int ready[2];
	pid_t pid;
	char c;

	if (pipe(ready))
		return 0;
	pid = fork();
	if (!pid) {
		dup2(ready[1], 1);
		execlp("statpage", "statpage", "run", "--engine", "bpf", "-o", "/dev/null", "--",
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

enum { PLAIN, EMPTY, CLOCKS, BESIDE, BPF, PTRACE, STRACE, WAYS };

static const struct {
	const char *what;
	double (*cost)(void);
} ways[WAYS] = {
	[PLAIN] = {"getppid(), watched by nobody", call_cost},
	[EMPTY] = {"an empty pair of BPF programs adds", between_empty},
	[CLOCKS] = {"a pair of BPF programs that read the clock adds", between_clocks},
	[BESIDE] = {"--engine bpf adds, to a program that it does not watch", beside_bpf},
	[BPF] = {"--engine bpf adds", by_bpf},
	[PTRACE] = {"--engine ptrace adds", by_ptrace},
	[STRACE] = {"strace -c -f adds", by_strace},
};

/*
 * Of all ways after each other: what each adds to a plain call of that turn, for machines grow slower and faster while
 * they are measured; of all turns the median.
 */
static void measure(double cost[WAYS])
{
	double v[WAYS][TURNS];
	int turns = cost_.exact ? 1 : TURNS;

	for (int i = 0; i < turns; i++) {
		for (int way = 0; way < WAYS; way++) {
			if (way >= PTRACE && i >= SLOW_TURNS)
				continue;
			v[way][i] = ways[way].cost();
			CHECK(v[way][i] > 0, "%s: it did not work", ways[way].what);
			if (way != PLAIN)
				v[way][i] -= v[PLAIN][i];
		}
	}
	for (int way = 0; way < WAYS; way++)
		cost[way] =
			median(v[way], way >= PTRACE && turns > SLOW_TURNS ? SLOW_TURNS : turns);
}

int main(int argc, char **argv)
{
	double cost[WAYS];

	cost_begin();
	if (argc == 2 && !strcmp(argv[1], "call")) {
		printf("%.1f\n", call_cost());
		return 0;
	}
	TEST("the bpf engine adds at most %d instructions to a call, %d if preempted, and a tenth of what ptrace does",
	     LIMIT_RAW, LIMIT_PERF) {
		int ours = preempted() ? LIMIT_PERF : LIMIT_RAW;
		int other = preempted() ? LIMIT_OTHER_PERF : LIMIT_OTHER_RAW;

		measure(cost);
		for (int way = 0; way < WAYS; way++)
			cost_row(GROUP, ways[way].what, cost[way], way == BPF ? LIMIT_PERF : 0);
		CHECK(!cost_.exact || cost[BPF] <= ours, "%.0f instructions, at most %d", cost[BPF],
		      ours);
		CHECK(!cost_.exact || cost[BESIDE] <= cost[EMPTY] + other,
		      "%.0f instructions to another program, an empty pair %.0f, at most %d more",
		      cost[BESIDE], cost[EMPTY], other);
		CHECK(!cost_.exact || cost[BPF] * 10 <= cost[PTRACE],
		      "%llu instructions, ptrace %llu", (unsigned long long)cost[BPF],
		      (unsigned long long)cost[PTRACE]);
	}
	return t_done("bench_bpf");
}
