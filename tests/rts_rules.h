/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ten rules of the runtime statistics, each of which was broken once somewhere. Their children
 * are in rts_scenes.h.
 */
#ifndef RTS_RULES_H
#define RTS_RULES_H

#include "tests/rts_scenes.h"

static void rule_1(void)
{
	struct run r;

	TEST("rule 1: a snapshot signal cuts no call short") {
		run_start(&r, -1, "blocked-calls", ENV(JSONL, USR1));
		run_ready(&r);
		for (int i = 0; i < 100; i++) {
			kill(r.pid, SNAP);
			nap_ms(15);
		}
		run_wait(&r, 60);
		check_good(&r);
		CHECK(run_records(&r, "signal") >= 1, "no snapshot");
		CHECK(json_is(final_record(&r), "reason", "exit"), "no exit record");
		run_free(&r);
	}
	TEST("rule 1: with a real-time signal every snapshot is taken") {
		run_start(&r, -1, "blocked-calls",
			  ENV(JSONL, "STATPAGE_STATS_SIGNAL=RTMIN+5", "SNAPSHOTS=25"));
		run_ready(&r);
		for (int i = 0; i < 25; i++)
			kill(r.pid, SIGRTMIN + 5);
		run_wait(&r, 60);
		check_good(&r);
		CHECK(run_records(&r, "signal") == 25, "%zu snapshots", run_records(&r, "signal"));
		run_free(&r);
	}
	TEST("rule 1: it refuses when other threads run already") {
		run_scene(&r, "late-start", ENV(JSONL, USR1));
		CHECK(run_killed(&r, SNAP), "status 0x%x", r.status);
		CHECK(run_says(&r, "no snapshots on signal 10: other threads are running"), "%s",
		      r.text);
		run_free(&r);
	}
	TEST("rule 1: a program that is executed has its own signal") {
		run_scene(&r, "exec-mask", ENV(JSONL, USR1));
		check_good(&r);
		run_free(&r);
	}
}

static void rule_2(void)
{
	struct run r;

	TEST("rule 2: a handler that is there already is left alone") {
		run_scene(&r, "handler", ENV(JSONL, USR1));
		check_good(&r);
		CHECK(run_says(&r, "signal 10: the program handles or ignores it"), "no warning");
		CHECK(json_u64(final_record(&r), GETPPID) == 1, "no record");
		run_free(&r);
	}
	TEST("rule 2: a signal the program waits for is left alone") {
		run_scene(&r, "waited-for", ENV(JSONL, USR1));
		check_good(&r);
		CHECK(run_says(&r, "signal 10: the program blocks it"), "no warning");
		run_free(&r);
	}
}

static void rule_3(void)
{
	struct run r;

	TEST("rule 3: off, the signal still ends the program and nothing else changed") {
		run_scene(&r, "off", ENV(USR1, "STATPAGE_STATS_INTERVAL=10ms"));
		CHECK(run_killed(&r, SNAP), "status 0x%x", r.status);
		CHECK(!r.len, "it wrote %.200s", r.text);
		run_free(&r);
	}
	TEST("rule 3: 0 is off too") {
		run_scene(&r, "off", ENV("STATPAGE_RUNTIME_STATS=0", USR1));
		CHECK(run_killed(&r, SNAP) && !r.len, "status 0x%x", r.status);
		run_free(&r);
	}
}

static void rule_4(void)
{
	struct run r;
	int fds[2];

	TEST("rule 4: a full pipe that nobody reads does not hang the program") {
		CHECK(!pipe(fds), "pipe");
		run_start(&r, fds[1], "full-pipe", ENV(JSONL));
		run_wait(&r, 60);
		CHECK(run_exited(&r, 7), "status 0x%x", r.status);
		run_free(&r);
		close(fds[0]);
		close(fds[1]);
	}
	TEST("rule 4: a watchdog of the program covers the dump") {
		CHECK(!pipe(fds), "pipe");
		run_start(&r, fds[1], "watchdog", ENV(JSONL));
		run_wait(&r, 60);
		CHECK(run_exited(&r, 42), "status 0x%x", r.status);
		run_free(&r);
		close(fds[0]);
		close(fds[1]);
	}
	TEST("rule 4: a pipe that was closed does not kill the program") {
		CHECK(!pipe(fds), "pipe");
		close(fds[0]);
		run_start(&r, fds[1], "exec-next", ENV(JSONL));
		run_wait(&r, 60);
		CHECK(run_exited(&r, 0), "status 0x%x", r.status);
		run_free(&r);
		close(fds[1]);
	}
	TEST("rule 4: a record that was dropped is counted") {
		run_scene(&r, "dropped", ENV(JSONL));
		check_good(&r);
		CHECK(json_u64(final_record(&r), "lost.records_dropped") == 1, "%s", r.text);
		CHECK(json_u64(final_record(&r), "seq") == 1, "seq counts what was dropped");
		run_free(&r);
	}
}

static void check_child(struct run *r, const char *reason, const char *code, uint64_t calls)
{
	const char *rec = NULL, *parent = run_record(r, "exit", 0);

	for (size_t i = 0; !rec && run_record(r, reason, i); i++)
		if (json_is(run_record(r, reason, i), "exit.code", code))
			rec = run_record(r, reason, i);
	if (!CHECK(rec && parent, "no record with reason %s and exit code %s", reason, code))
		return;
	CHECK(json_u64(rec, GETPPID) == calls, "counts %llu",
	      (unsigned long long)json_u64(rec, GETPPID));
	CHECK(json_is(rec, "final", "true") && json_u64(rec, "seq") == 0,
	      "not its own first and last");
	CHECK(json_u64(rec, "pid") != json_u64(parent, "pid"), "its parent's pid");
	CHECK(json_u64(rec, "ppid") == json_u64(parent, "pid"), "not its parent's child");
	CHECK(json_u64(rec, "start_ns") > json_u64(parent, "start_ns"), "its parent's start");
	CHECK(json_u64(rec, "counters.served") == 0 || !json_at(rec, "counters.served"),
	      "its parent's counters");
	CHECK(!json_at(rec, "counters.reserved20"), "its parent's counters");
	CHECK(!json_at(rec, "vcpu"), "its parent's virtual CPUs");
	CHECK(!json_at(rec, "phases"), "its parent's steps");
	CHECK(!json_at(rec, "in_flight"), "its parent's calls");
	CHECK(ledger_holds(rec), "the ledger");
}

static void rule_5(void)
{
	static char *const gates[][3] = {
		{(char *)JSONL, (char *)USR1, NULL},
		{(char *)JSONL, (char *)"STATPAGE_STARTUP_TRACE=all", NULL}};
	struct run r;

	for (int i = 0; i < 2; i++)
		TEST("rule 5: a forked child counts from zero (%s)", gates[i][1]) {
			run_scene(&r, "children", gates[i]);
			check_good(&r);
			check_child(&r, "fork-child-exit", "11", 3);
			check_child(&r, "fork-child-error", "12", JSON_NONE);
			check_child(&r, "fork-child-exit", "13", 5);
			CHECK(json_u64(run_record(&r, "exit", 0), GETPPID) == 1001, "the parent's");
			run_free(&r);
		}
	TEST("rule 5: the steady histogram goes on in children, alone as well") {
		run_scene(&r, "children", ENV("STATPAGE_STARTUP_TRACE=syscalls-steady"));
		CHECK(run_exited(&r, 0) && !run_says(&r, "wrong:"), "status 0x%x", r.status);
		CHECK(run_table(&r, "getppid", 3), "the first child");
		CHECK(run_table(&r, "getppid", 5), "the last child");
		CHECK(run_table(&r, "getppid", 1001), "the parent");
		run_free(&r);
	}
	TEST("rule 5: a child of a process that is done counts and ends by itself") {
		run_scene(&r, "child-after-final", ENV(JSONL, USR1));
		CHECK(run_exited(&r, 0), "status 0x%x", r.status);
		CHECK(run_records(&r, NULL) == 2, "%zu records", run_records(&r, NULL));
		CHECK(json_u64(run_record(&r, "fork-child-exit", 0), GETPPID) == 6, "%s", r.text);
		run_free(&r);
	}
}

static void rule_6(void)
{
	const char *rec;
	struct run r;

	TEST("rule 6: a thread in a long call does not hold up the end") {
		run_scene(&r, "long-call", ENV(JSONL));
		check_good(&r);
		rec = final_record(&r);
		CHECK(json_u64(rec, "in_flight[name=read].age_ns") - 1 < json_u64(rec, "wall_ns"),
		      "its age");
		CHECK(json_u64(rec, "in_flight[name=read].tid") > json_u64(rec, "pid"),
		      "its thread");
		CHECK(json_u64(rec, GETPPID) == 9, "the others");
		CHECK(json_u64(rec, "lost.attempted") >= 10 && ledger_holds(rec), "the ledger");
		run_free(&r);
	}
	TEST("rule 6: a clock that fails leaves the guard") {
		run_scene(&r, "clock-fails", ENV(JSONL));
		check_good(&r);
		rec = final_record(&r);
		CHECK(json_u64(rec, GETPPID) == 2, "%s", rec);
		CHECK(json_u64(rec, "lost.clock_back") == 4, "%s", rec);
		CHECK(json_is(rec, "complete", "false") && ledger_holds(rec), "the ledger");
		CHECK(!json_at(rec, "in_flight[name=getppid]"), "a call is in flight");
		run_free(&r);
	}
	TEST("rule 6: no call is lost between recorders and dumps") {
		char *made = NULL, *line;

		run_scene(&r, "race", ENV(JSONL));
		check_good(&r);
		for (size_t i = 0; (line = run_line(&r, i)); i++)
			made = strstr(line, "made ") ? strstr(line, "made ") + 5 : made;
		rec = final_record(&r);
		CHECK(made && json_u64(rec, GETPPID) == strtoull(made, NULL, 10), "made %s, %s",
		      made, rec);
		CHECK(json_is(rec, "complete", "true") && ledger_holds(rec), "the ledger");
		CHECK(run_records(&r, "signal") == 51, "%zu snapshots", run_records(&r, "signal"));
		run_free(&r);
	}
	TEST("rule 6: the final record holds while calls go on") {
		run_scene(&r, "race-final", ENV(JSONL));
		check_good(&r);
		CHECK(ledger_holds(final_record(&r)), "%s", final_record(&r));
		run_free(&r);
	}
}

static void rule_7(void)
{
	const char *rec;
	struct run r;

	TEST("rule 7: a clock that ran back drops the sample and counts it") {
		run_scene(&r, "clock-back", ENV(JSONL));
		check_good(&r);
		rec = final_record(&r);
		CHECK(json_u64(rec, GETPPID) == 1, "%s", rec);
		CHECK(json_u64(rec, "syscalls[name=getppid].total_ns") == 50, "%s", rec);
		CHECK(json_u64(rec, "lost.clock_back") == 1 && ledger_holds(rec), "the ledger");
		run_free(&r);
	}
	TEST("rule 7: sums saturate in a row and across threads and categories") {
		run_scene(&r, "saturate", ENV(JSONL));
		check_good(&r);
		rec = final_record(&r);
		CHECK(json_u64(rec, GETPPID) == 6, "%s", rec);
		CHECK(json_u64(rec, "syscalls[name=getppid].total_ns") == UINT64_MAX, "%s", rec);
		CHECK(json_u64(rec, "syscalls[name=getppid].max_ns") == INT64_MAX, "%s", rec);
		CHECK(json_u64(rec, "categories.identity.total_ns") == UINT64_MAX, "%s", rec);
		run_free(&r);
	}
}

static void rules_8_and_9(void)
{
	struct run r;
	const char *first, *second, *last;

	TEST("rule 8: dumps come one after the other, and none after the final one") {
		run_scene(&r, "many-dumps", ENV(JSONL, USR1));
		check_good(&r);
		CHECK(json_is(final_record(&r), "final", "true"), "no final record");
		CHECK(run_record(&r, NULL, run_records(&r, NULL) - 1) == final_record(&r),
		      "something came after it");
		CHECK(run_records(&r, "signal") >= 100, "snapshots are missing");
		for (size_t i = 0; i < run_records(&r, NULL); i++)
			CHECK(json_u64(run_record(&r, NULL, i), "seq") == i, "record %zu", i);
		run_free(&r);
	}
	TEST("rule 9: exec ends a life with a record and all counts start again") {
		run_scene(&r, "exec", ENV(JSONL, "STATPAGE_STARTUP_TRACE=all"));
		check_good(&r);
		first = run_record(&r, "exec", 0);
		second = run_record(&r, "exec", 1);
		last = final_record(&r);
		if (!CHECK(first && second, "no exec records"))
			break;
		CHECK(json_u64(first, GETPPID) == 1000 && json_u64(second, GETPPID) == 7, "calls");
		CHECK(json_u64(first, "counters.reserved20") == 5 &&
			      json_u64(second, "counters.reserved20") == 3,
		      "counters");
		CHECK(json_is(first, "final", "false"), "an exec is not the end");
		CHECK(json_u64(second, "start_ns") > json_u64(first, "start_ns"), "its start");
		CHECK(json_u64(first, "execs") == 0 && json_u64(second, "execs") == 1, "execs");
		CHECK(json_at(first, "phases[name=exec]") &&
			      !json_at(second, "phases[name=parents]"),
		      "steps");
		CHECK(json_u64(last, GETPPID) == 2, "the program that was executed");
		CHECK(json_u64(last, "pid") == json_u64(first, "pid"), "one process");
		run_free(&r);
	}
}

static void check_rules(void)
{
	rule_1();
	rule_2();
	rule_3();
	rule_4();
	rule_5();
	rule_6();
	rule_7();
	rules_8_and_9();
}

#endif /* RTS_RULES_H */
