// SPDX-License-Identifier: GPL-2.0
// This test checks that start-up steps come with the thread's time by bucket where the thread-time
// module is, and without it where it is not.
#include <sys/mount.h>

#include "lib/coarse_stat_fs.h"
#include "tests/t_rts.h"

static const char *const buckets[CSF_NR_STATES] = {"oncpu_ns", "runq_ns", "sleep_ns", "dsleep_ns",
						   "iowait_ns"};

static int host_begin(int argc, char **argv)
{
	return rts_init(&(struct rts_options){.argc = argc, .argv = argv});
}

static void spin_ms(uint64_t ms)
{
	struct csf_snap from, now;

	EXPECT(!csf_thread_snap(&from));
	do
		EXPECT(!csf_thread_snap(&now));
	while (csf_cyc_to_ns(&now.p.hdr, now.p.oncpu_cyc - from.p.oncpu_cyc) < (double)ms * 1e6);
}

/* What the step's buckets must lie between: the laps are within the pairs (a, b) and (c, d). */
static void say_bounds(const char *name, const struct csf_snap s[4])
{
	struct csf_diff least, most;

	EXPECT(!csf_diff(&least, &s[1], &s[2]) && !csf_diff(&most, &s[0], &s[3]));
	for (int i = 0; i < CSF_NR_STATES; i++)
		SAY("%s.%s %llu %llu", name, buckets[i], (unsigned long long)least.ns[i],
		    (unsigned long long)most.ns[i]);
	SAY("%s.sum %llu %llu", name, (unsigned long long)least.wall_ns,
	    (unsigned long long)most.wall_ns);
}

static void *other_step(void *arg)
{
	rts_step("other");
	return arg;
}

static int play_steps(int argc, char **argv)
{
	struct csf_snap s[4];
	pthread_t thread;
	pid_t pid;

	host_begin(argc, argv);
	EXPECT(!csf_thread_snap(&s[0]));
	rts_step("init");
	EXPECT(!csf_thread_snap(&s[1]));
	spin_ms(30);
	nap_ms(60);
	EXPECT(!csf_thread_snap(&s[2]));
	errno = 4321;
	rts_step("work");
	EXPECT(errno == 4321);
	EXPECT(!csf_thread_snap(&s[3]));
	say_bounds("work", s);
	EXPECT(!pthread_create(&thread, NULL, other_step, NULL));
	pthread_join(thread, NULL);
	rts_step("after_other");
	rts_step("own_again");
	pid = rts_fork();
	if (pid == 0) {
		nap_ms(30);
		rts_step("childs");
		exit(0);
	}
	reap(pid, 0);
	return 0;
}

/* Not a look at the module by ourselves. */
static int play_bare(int argc, char **argv)
{
	host_begin(argc, argv);
	rts_step("init");
	return 0;
}

/* ---- cases ---- */

/* The two numbers that the child said under this name. */
static bool bounds(struct run *r, const char *name, unsigned long long *least,
		   unsigned long long *most)
{
	char what[64];

	snprintf(what, sizeof(what), "STATPAGE: work.%s ", name);
	for (size_t i = 0; i < r->nr_lines; i++)
		if (!strncmp(run_line(r, i), what, strlen(what)))
			return sscanf(run_line(r, i) + strlen(what), "%llu %llu", least, most) == 2;
	return false;
}

static uint64_t bucket(const char *rec, const char *step, const char *name)
{
	char path[80];

	snprintf(path, sizeof(path), "phases[name=%s].thread.%s", step, name);
	return json_u64(rec, path);
}

static bool has_thread(const char *rec, const char *step)
{
	char path[80];

	snprintf(path, sizeof(path), "phases[name=%s]", step);
	CHECK(json_at(rec, path), "no step %s", step);
	snprintf(path, sizeof(path), "phases[name=%s].thread", step);
	return json_at(rec, path);
}

static void check_work(struct run *r, const char *rec)
{
	unsigned long long least, most;
	uint64_t sum = 0, ns;

	for (int i = 0; i < CSF_NR_STATES; i++) {
		ns = bucket(rec, "work", buckets[i]);
		sum += ns;
		CHECK(bounds(r, buckets[i], &least, &most) && ns + 1 >= least && ns <= most + 1,
		      "%s %llu, not %llu..%llu", buckets[i], (unsigned long long)ns, least, most);
	}
	CHECK(bounds(r, "sum", &least, &most) && sum >= least && sum <= most, "sum %llu: %s",
	      (unsigned long long)sum, rec);
	CHECK(bucket(rec, "work", "oncpu_ns") >= 30000000, "%s", rec);
	/* The way into the sleep of 60 ms is CPU time. */
	CHECK(bucket(rec, "work", "sleep_ns") + bucket(rec, "work", "runq_ns") >= 50000000, "%s",
	      rec);
	CHECK(json_u64(rec, "phases[name=work].wall_ns") >= 90000000, "%s", rec);
	ns = json_u64(rec, "phases[name=work].user_ns") +
	     json_u64(rec, "phases[name=work].system_ns");
	CHECK(ns >= 20000000 && ns <= json_u64(rec, "phases[name=work].wall_ns"), "%s", rec);
}

int main(int argc, char **argv)
{
	static const struct scene scenes[] = {{"steps", play_steps}, {"bare", play_bare}};
	const char *rec, *childs;
	uint64_t sum = 0;
	struct run r;

	if (argc > 2 && !strcmp(argv[1], "child"))
		return play_scene(scenes, 2, argc, argv);
	TEST("a step's five buckets are the thread's, and add up to its wall time") {
		run_scene(&r, "steps", ENV(JSONL, "STATPAGE_STARTUP_TRACE=steps"));
		check_good(&r);
		rec = run_record(&r, "exit", 0);
		if (CHECK(rec, "no record: %s", r.text)) {
			CHECK(has_thread(rec, "init"), "%s", rec);
			check_work(&r, rec);
		}
		run_free(&r);
	}
	TEST("a step that another thread began has none; a forked child has its own") {
		run_scene(&r, "steps", ENV(JSONL, "STATPAGE_STARTUP_TRACE=steps"));
		check_good(&r);
		rec = run_record(&r, "exit", 0);
		childs = run_record(&r, "fork-child-exit", 0);
		if (CHECK(rec && childs, "no record: %s", r.text)) {
			CHECK(!has_thread(rec, "other"), "%s", rec);
			CHECK(!has_thread(rec, "after_other"), "%s", rec);
			CHECK(has_thread(rec, "own_again"), "%s", rec);
			/* as above, of 30 ms */
			CHECK(bucket(childs, "childs", "sleep_ns") +
					      bucket(childs, "childs", "runq_ns") >=
				      20000000,
			      "%s", childs);
			for (int i = 0; i < CSF_NR_STATES; i++)
				sum += bucket(childs, "childs", buckets[i]);
			/* the two clocks may differ by a little */
			CHECK(sum <= json_u64(childs, "wall_ns") * 1.001, "its parent's: %s",
			      childs);
		}
		run_free(&r);
	}
	TEST("not mounted: steps have none, and all else") {
		run_scene(&r, "bare", ENV(JSONL, "STATPAGE_STARTUP_TRACE=steps"));
		CHECK(has_thread(final_record(&r), "init"), "mounted: %s", r.text);
		run_free(&r);
		CHECK(!umount(CSF_MOUNT), "umount: %m");
		run_scene(&r, "bare", ENV(JSONL, "STATPAGE_STARTUP_TRACE=steps"));
		check_good(&r);
		CHECK(!has_thread(final_record(&r), "init"), "%s", r.text);
		CHECK(json_u64(final_record(&r), "phases[name=init].wall_ns") != JSON_NONE, "%s",
		      r.text);
		run_free(&r);
		CHECK(!mount("none", CSF_MOUNT, "coarse_stat_fs", 0, NULL), "mount: %m");
	}
	return t_done("t_rts_steps");
}
