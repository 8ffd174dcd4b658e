// SPDX-License-Identifier: GPL-2.0
// This test checks the library's numbers, its environment variables, and what a recorded call
// costs.
#include <dirent.h>
#include <sys/stat.h>

#include "lib/rts/internal.h"
#include "tests/t_rts.h"

static const char *const names[] = {"hits", NULL, "misses"};

static int begin(int argc, char **argv)
{
	static const char *const exits[] = {"zero", "one"};

	return rts_init(&(struct rts_options){
		.argc = argc, .argv = argv, .exit_names = exits, .nr_exit_names = 2});
}

static int play_numbers(int argc, char **argv)
{
	struct rts_call c;
	long ret;

	EXPECT(!begin(argc, argv) && begin(argc, argv) == -EALREADY);
	EXPECT(!rts_counters_open(names, 3, 0));
	EXPECT(rts_counters_open(names, 3, 0) == -EALREADY);
	make_calls(23);
	for (int i = 0; i < 5; i++)
		RTS_CALL(ret, RTS_ABI_NATIVE, SYS_close, close(-1));
	(void)ret;
	rts_call_begin(&c, RTS_I386, 20);
	rts_call_end(&c, 0);
	rts_call_begin(&c, RTS_X32, 39);
	rts_call_end(&c, 200); /* no errno there is */
	rts_call_begin(&c, RTS_OTHER, 511);
	rts_call_end(&c, 0);
	rts_call_begin(&c, RTS_ABI_NATIVE, RTS_MAX_NR);
	rts_call_end(&c, 0);
	rts_call_begin(&c, 4, 0);
	rts_call_end(&c, 0);
	rts_count(0, 7);
	rts_count(12, 9);
	rts_step("load");
	rts_step("init");
	return 5;
}

static void *one_call(void *arg)
{
	struct rts_call *c = arg;

	rts_call_begin(c, RTS_ABI_NATIVE, SYS_getppid);
	return NULL; /* and ends in it */
}

/* A call that a thread takes to its grave, one ended by another thread, one ended out of order. */
static int play_odd_calls(int argc, char **argv)
{
	struct rts_call gone, mine, nested[10];
	pthread_t thread;

	begin(argc, argv);
	EXPECT(!pthread_create(&thread, NULL, one_call, &gone));
	pthread_join(thread, NULL);
	rts_call_begin(&mine, RTS_ABI_NATIVE, SYS_getuid);
	for (int i = 0; i < 10; i++) /* 7 find room beside mine, 3 do not */
		rts_call_begin(&nested[i], RTS_ABI_NATIVE, SYS_getgid);
	rts_call_end(&mine, 0); /* before those inside it */
	for (int i = 9; i >= 0; i--)
		rts_call_end(&nested[i], 0);
	for (int i = 0; i < 9; i++) /* the hole is closed: as deep as before */
		make_calls(1);
	return 0;
}

static struct rts_call interrupted;

static void call_in_handler(int sig)
{
	(void)sig;
	make_calls(1);
}

/* A handler that comes while the recorder changes a row: refused and counted. */
static int play_recursion(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = call_in_handler};
	struct flight *top;

	sigaction(SIGUSR2, &sa, NULL);
	begin(argc, argv);
	make_calls(1);
	rts_call_begin(&interrupted, RTS_ABI_NATIVE, SYS_getuid);
	raise(SIGUSR2); /* in a call: no loss */
	rts_call_end(&interrupted, 0);
	top = guard_take(rts_table);
	raise(SIGUSR2);
	PUT(rts_table->top, top);
	make_calls(1);
	return 0;
}

static void exits(unsigned long nulls, unsigned long others)
{
	struct rts_run run;

	for (unsigned long i = 0; i < nulls + others; i++) {
		rts_vcpu_begin(&run);
		rts_vcpu_end(&run, i < nulls ? 0 : i % 2 ? 1 : 70, i < nulls);
	}
}

static int play_exits(int argc, char **argv)
{
	begin(argc, argv);
	EXPECT(!rts_vcpu_start(-1));
	exits(strtoul(getenv("NULLS"), NULL, 10), strtoul(getenv("OTHERS"), NULL, 10));
	return 0;
}

static int play_trace(int argc, char **argv)
{
	begin(argc, argv);
	make_calls(4);
	rts_exec();
	rts_exec_return();
	make_calls(6);
	return 0;
}

static int play_wait(int argc, char **argv)
{
	begin(argc, argv);
	make_calls(2);
	nap_ms(atol(getenv("NAP")));
	return 0;
}

/* Recorded calls, or as many pairs of clock reads around the same call; callgrind counts all of it.
 */
static int play_cost(int argc, char **argv)
{
	unsigned long n = strtoul(getenv("CALLS"), NULL, 10);

	begin(argc, argv);
	if (getenv("RECORDED"))
		make_calls(n);
	else
		while (n--) {
			rts_clock_start();
			syscall(SYS_getppid);
			rts_clock_end();
		}
	return 0;
}

static const struct scene scenes[] = {
	{"numbers", play_numbers}, {"odd-calls", play_odd_calls}, {"recursion", play_recursion},
	{"exits", play_exits},	   {"trace", play_trace},	  {"wait", play_wait},
	{"cost", play_cost},
};

#define IS(rec, path, n) \
	CHECK(json_u64(rec, path) == (n), path " is %llu", (unsigned long long)json_u64(rec, path))

static void check_head(const char *rec, const struct run *r)
{
	CHECK(json_is(rec, "schema", "statpage-runtime/1"), "%s", rec);
	CHECK(json_is(rec, "argv[0]", "test") && json_is(rec, "argv[3]", "arg\\\\xff"), "%s", rec);
	CHECK(json_is(rec, "argv[4]", "\\\"q\\\""), "%s", rec);
	IS(rec, "pid", (uint64_t)r->pid);
	IS(rec, "ppid", (uint64_t)getpid());
	IS(rec, "ns_pid", (uint64_t)r->pid);
	IS(rec, "exit.code", 5u);
	IS(rec, "seq", 0u);
	IS(rec, "execs", 0u);
	CHECK(json_u64(rec, "wall_ns") == json_u64(rec, "time_ns") - json_u64(rec, "start_ns") &&
		      (double)json_u64(rec, "wall_ns") < r->seconds * 1e9,
	      "wall time");
	CHECK((double)json_u64(rec, "realtime_ns") / 1e9 - (double)time(NULL) < 1, "real time");
	CHECK(json_at(rec, "user_ns") && json_at(rec, "system_ns"), "CPU time");
	CHECK(json_is(rec, "engine.name", "embedded"), "the engine");
}

static void check_calls(const char *rec)
{
	const char *row = json_at(rec, "syscalls[name=getppid]");

	if (!CHECK(row, "no row"))
		return;
	IS(row, "count", 23u);
	IS(row, "errors", 0u);
	CHECK(json_u64(row, "min_ns") <= json_u64(row, "p50_ns") &&
		      json_u64(row, "p50_ns") <= json_u64(row, "p90_ns") &&
		      json_u64(row, "p90_ns") <= json_u64(row, "p99_ns") &&
		      json_u64(row, "p99_ns") <= json_u64(row, "p999_ns") &&
		      json_u64(row, "p999_ns") <= json_u64(row, "max_ns"),
	      "quantiles: %s", rec);
	/* 99 % of 23 calls is all of them, and what all of them took at most is known exactly. */
	CHECK(json_u64(row, "p99_ns") == json_u64(row, "max_ns"), "p99 of 23: %s", rec);
	CHECK(json_u64(row, "total_ns") >= 23 * json_u64(row, "min_ns") &&
		      json_u64(row, "total_ns") <= 23 * json_u64(row, "max_ns"),
	      "sum");
	IS(rec, "syscalls[name=close].count", 5u);
	IS(rec, "syscalls[name=close].errors", 5u);
	IS(rec, "syscalls[name=close].errnos.9", 5u);
	IS(rec, "syscalls[abi=i386].count", 1u);
	CHECK(json_is(rec, "syscalls[abi=i386].name", "getpid"), "i386's names");
	IS(rec, "syscalls[abi=x32].errnos.other", 1u);
	IS(rec, "syscalls[abi=other].nr", 511u);
	IS(rec, "lost.out_of_range", 2u);
	IS(rec, "lost.recorded", 31u);
	IS(rec, "lost.attempted", 33u);
	CHECK(json_is(rec, "complete", "false"), "what was lost is said");
}

static void check_numbers(void)
{
	const char *rec;
	struct run r;

	TEST("every number of a record") {
		run_scene(&r, "numbers", ENV(JSONL, "STATPAGE_STARTUP_TRACE=steps"));
		CHECK(run_exited(&r, 5) && !run_bad_lines(&r), "status 0x%x", r.status);
		rec = final_record(&r);
		check_head(rec, &r);
		check_calls(rec);
		IS(rec, "counters.hits", 7u);
		IS(rec, "counters.misses", 0u);
		IS(rec, "counters.reserved12", 9u);
		CHECK(!json_at(rec, "counters.reserved1"), "unnamed zeros are left out");
		IS(rec, "phases[name=load].start_ns", 0u);
		CHECK(json_u64(rec, "phases[name=init].start_ns") >=
			      json_u64(rec, "phases[name=load].wall_ns"),
		      "steps follow each other");
		run_free(&r);
	}
	TEST("calls that end oddly are counted by cause") {
		run_scene(&r, "odd-calls", ENV(JSONL));
		check_good(&r);
		rec = final_record(&r);
		IS(rec, "lost.no_return", 1u);
		IS(rec, "no_return[name=getppid].count", 1u);
		IS(rec, "lost.no_instance", 3u);
		IS(rec, "syscalls[name=getuid].count", 1u);
		IS(rec, "syscalls[name=getgid].count", 7u);
		IS(rec, GETPPID, 9u);
		CHECK(ledger_holds(rec), "%s", rec);
		run_free(&r);
	}
	TEST("a handler that interrupts the recorder is refused and counted") {
		run_scene(&r, "recursion", ENV(JSONL));
		check_good(&r);
		rec = final_record(&r);
		IS(rec, "lost.recursion", 1u);
		IS(rec, GETPPID, 3u);
		CHECK(ledger_holds(rec), "%s", rec);
		run_free(&r);
	}
}

static void check_exits(void)
{
	static const struct {
		char *nulls, *others;
		double share;
	} tries[] = {{(char *)"NULLS=0", (char *)"OTHERS=10", 0},
		     {(char *)"NULLS=5", (char *)"OTHERS=5", 50},
		     {(char *)"NULLS=10", (char *)"OTHERS=0", 100}};
	const char *rec;
	struct run r;

	for (int i = 0; i < 3; i++)
		TEST("null_exit_share of %.0f", tries[i].share) {
			run_scene(&r, "exits", ENV(JSONL, tries[i].nulls, tries[i].others));
			check_good(&r);
			rec = final_record(&r);
			CHECK(json_double(rec, "vcpu.null_exit_share") == tries[i].share, "%s",
			      rec);
			IS(rec, "vcpu.exits", 10u);
			IS(rec, "vcpu.vcpus", 1u);
			CHECK(json_at(rec, "vcpu.guest_run_absent") &&
				      !json_at(rec, "vcpu.guest_run_ns"),
			      "nobody said how long it was halted: %s", rec);
			if (i < 2)
				CHECK(json_is(rec, "vcpu.reasons[reason=63].name", "exit_63"), "%s",
				      rec);
			run_free(&r);
		}
}

static void check_formats(void)
{
	struct run r;

	TEST("a value that is not known is one warning that names it and the accepted ones") {
		run_scene(&r, "wait", ENV("STATPAGE_RUNTIME_STATS=yes", "NAP=0"));
		CHECK(r.nr_lines == 1 &&
			      run_says(&r, "=yes is not known: expected 0, 1, summary, json or"),
		      "%s", r.text);
		run_free(&r);
		run_scene(&r, "wait",
			  ENV(JSONL, "STATPAGE_STATS_SIGNAL=KILL", "NAP=0",
			      "STATPAGE_STATS_INTERVAL=5d", "STATPAGE_STARTUP_TRACE=steps,al"));
		CHECK(r.nr_lines == 4, "%zu lines", r.nr_lines);
		CHECK(run_says(&r, "STATS_SIGNAL=KILL is not known"), "signal");
		CHECK(run_says(&r, "STATS_INTERVAL=5d is not known"), "interval");
		CHECK(run_says(&r, "STARTUP_TRACE: al is not known"), "trace");
		run_free(&r);
	}
	TEST("summary is a table, 1 means the same") {
		run_scene(&r, "wait", ENV("STATPAGE_RUNTIME_STATS=1", "NAP=0"));
		CHECK(run_table(&r, "getppid", 2) && run_says(&r, "reason exit"), "%s", r.text);
		run_free(&r);
	}
	TEST("an interval writes lines until the end") {
		run_scene(&r, "wait", ENV(JSONL, "STATPAGE_STATS_INTERVAL=20ms", "NAP=300"));
		check_good(&r);
		CHECK(run_records(&r, "interval") >= 2 && run_records(&r, "exit") == 1, "%zu lines",
		      r.nr_lines);
		run_free(&r);
	}
	TEST("the trace to the first exec ends there, the steady one does not") {
		run_scene(&r, "trace", ENV("STATPAGE_STARTUP_TRACE=syscalls"));
		CHECK(run_table(&r, "getppid", 4) && !run_table(&r, "getppid", 6), "%s", r.text);
		run_free(&r);
		run_scene(&r, "trace", ENV("STATPAGE_STARTUP_TRACE=syscalls-steady"));
		CHECK(run_table(&r, "getppid", 4) && run_table(&r, "getppid", 6), "%s", r.text);
		run_free(&r);
	}
}

static void check_outputs(void)
{
	char dir[] = "/tmp/t_rts_XXXXXX", out[64], file[80];
	struct stat st;
	struct run r;

	TEST("a final record that cannot be written is said, and costs the program nothing") {
		run_scene(&r, "wait", ENV(JSONL, "STATPAGE_STATS_OUTPUT=/dev/full", "NAP=0"));
		CHECK(run_exited(&r, 0), "status 0x%x", r.status);
		CHECK(r.nr_lines == 1 &&
			      run_says(&r, "STATPAGE: STATPAGE_STATS_OUTPUT=/dev/full: the final "
					   "record is lost: No space left on device"),
		      "%s", r.text);
		run_free(&r);
	}
	TEST("output to a folder: a file for each process; to a file: appended; to nowhere: said") {
		CHECK(mkdtemp(dir), "mkdtemp");
		snprintf(out, sizeof(out), "STATPAGE_STATS_OUTPUT=%s", dir);
		run_scene(&r, "wait", ENV(JSONL, out, "NAP=0"));
		CHECK(run_exited(&r, 0) && !r.len, "it wrote %.100s", r.text);
		run_free(&r);
		snprintf(file, sizeof(file), "%s/%d.jsonl", dir, (int)r.pid);
		CHECK(!stat(file, &st) && st.st_size > 100, "%s: %s", file, strerror(errno));
		snprintf(out, sizeof(out), "STATPAGE_STATS_OUTPUT=%s/log", dir);
		for (int i = 0; i < 2; i++) {
			run_scene(&r, "wait", ENV(JSONL, out, "NAP=0"));
			run_free(&r);
		}
		unlink(file);
		snprintf(file, sizeof(file), "%s/log", dir);
		CHECK(!stat(file, &st) && st.st_size > 1000, "%s: %ld bytes", file,
		      (long)st.st_size);
		unlink(file);
		CHECK(!rmdir(dir), "something is left behind");
		run_scene(&r, "wait", ENV(JSONL, "STATPAGE_STATS_OUTPUT=/does/not/exist", "NAP=0"));
		CHECK(run_says(&r, "cannot be written: No such file") && run_record(&r, "exit", 0),
		      "%s", r.text);
		run_free(&r);
	}
}

/* What callgrind counts in play_cost(); 0 when it cannot be had. */
static double count_instructions(const char *how, unsigned long calls)
{
	char cmd[600], exe[300] = "", line[200];
	double nr = 0;
	FILE *f;

	if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0)
		return 0;
	snprintf(
		cmd, sizeof(cmd),
		"%s STATPAGE_RUNTIME_STATS=json STATPAGE_STATS_OUTPUT=/dev/null CALLS=%lu valgrind "
		"--tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=play_cost "
		"%s child cost 2>&1",
		how, calls, exe);
	f = popen(cmd, "r");
	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "Collected : "))
			nr = strtod(strstr(line, "Collected : ") + 12, NULL);
	if (f)
		pclose(f);
	return nr;
}

static double count_a_call(const char *how)
{
	return (count_instructions(how, 3000) - count_instructions(how, 1000)) / 2000;
}

static void check_cost(void)
{
	double recorded, clocks;

	TEST("a recorded call costs at most 60 instructions beside the two clock reads") {
		if (SANITIZED || count_instructions("", 1) == 0) {
			SKIP("%s",
			     SANITIZED ? "sanitizers count too" : "there is no valgrind here");
			break;
		}
		recorded = count_a_call("RECORDED=1");
		clocks = count_a_call("");
		printf("# %.1f instructions in all, %.1f of them clock reads and the call\n",
		       recorded, clocks);
		CHECK(recorded - clocks <= 60 && recorded - clocks > 20, "%.1f", recorded - clocks);
	}
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "child"))
		return play_scene(scenes, sizeof(scenes) / sizeof(scenes[0]), argc, argv);
	check_numbers();
	check_exits();
	check_formats();
	check_outputs();
	check_cost();
	return t_done("t_rts_record");
}
