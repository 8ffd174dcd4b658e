// SPDX-License-Identifier: GPL-2.0
// This test checks that a KVM host's exits, guest time and fast path are counted, and the rules
// hold in it.
#include <linux/kvm.h>

#define main vmm_main
#include "examples/vmm.c"
#undef main

#include "tests/rts_rules.h"

/* For the rules: the host starts, and its guests run for as long as the scene takes. */
static int host_begin(int argc, char **argv)
{
	static struct vm vms[] = {
		{.guest = &guests[2], .arg = 60000},		   /* spin */
		{.guest = &guests[0], .arg = 65535},		   /* io */
		{.guest = &guests[3], .arg = 60000, .irqchip = 1}, /* halt */
	};

	EXPECT(!host_start(argc, argv));
	for (size_t i = 0; i < sizeof(vms) / sizeof(vms[0]); i++)
		EXPECT(!vm_start(&vms[i]));
	while (!vms[1].exits)
		nap_ms(1);
	return 0;
}

/* ---- scenes: guests given by the environment, as the command line of vmm gives them ---- */

/* Our own counts, to compare with the record's. */
static void say_counts(const struct vm *vms, int nr)
{
	unsigned long exits = 0, kicks = 0;

	for (int i = 0; i < nr; i++) {
		exits += vms[i].exits;
		kicks += vms[i].kicks;
	}
	SAY("exits=%lu kicks=%lu", exits, kicks);
}

static int play_guests(int argc, char **argv)
{
	struct vm vms[4] = {{0}};
	const char *null_every = getenv("NULL_EVERY");
	char *word;
	int nr = 0;

	EXPECT(!host_start(argc, argv));
	for (word = strtok(getenv("GUESTS"), " "); word; word = strtok(NULL, " "), nr++) {
		vms[nr].irqchip = getenv("IRQCHIP") != NULL;
		vms[nr].null_every = null_every ? atoi(null_every) : 0;
		vms[nr].runs = 1; /* a null one first */
		EXPECT(!vm_parse(&vms[nr], word));
	}
	EXPECT(!vms_run(vms, nr));
	say_counts(vms, nr);
	return 0;
}

/* A guest that computes for 300 ms, in this thread; and how long that was by our own clock. */
static int play_spin(int argc, char **argv)
{
	struct vm vm = {.guest = &guests[2], .arg = 300, .irqchip = getenv("IRQCHIP") != NULL};
	double from;

	EXPECT(!host_start(argc, argv) && !vm_open(&vm));
	vm.thread = pthread_self();
	from = now_s();
	EXPECT(!pthread_create(&vm.timer, NULL, timer_thread, &vm));
	vcpu_thread(&vm);
	pthread_join(vm.timer, NULL);
	SAY("wall_us=%.0f", (now_s() - from) * 1e6);
	return vm.error;
}

/* Every exit a null one: no guest instruction ever runs. */
static int play_all_null(int argc, char **argv)
{
	struct vm vm = {.guest = &guests[0], .arg = 1, .null_every = 1};

	EXPECT(!host_start(argc, argv) && !vm_open(&vm));
	EXPECT(!rts_vcpu_start(vm.vcpu));
	for (int i = 0; i < 100; i++)
		EXPECT(vcpu_run(&vm) == EINTR);
	say_counts(&vm, 1);
	return 0;
}

static int play_family(int argc, char **argv)
{
	char *args[] = {argv[0],	 (char *)"-c",	     (char *)"3",
			(char *)"io:50", (char *)"fast:300", NULL};

	(void)argc;
	return vmm_main(5, args);
}

/* The embedder's word in place of KVM's statistics. */
static int play_embedders_word(int argc, char **argv)
{
	struct vm vm = {.guest = &guests[0], .arg = 10};
	int go = 1;

	EXPECT(!host_start(argc, argv) && !vm_open(&vm));
	EXPECT(!rts_vcpu_start(-1));
	rts_vcpu_halted(0);
	while (go > 0) {
		EXPECT(!vcpu_run(&vm));
		go = vcpu_exit(&vm);
	}
	rts_vcpu_halted(1000);
	return go;
}

static const struct scene vmm_scenes[] = {
	{"guests", play_guests},
	{"spin", play_spin},
	{"all-null", play_all_null},
	{"family", play_family},
	{"embedders-word", play_embedders_word},
};

/* ---- cases ---- */

static uint64_t said(struct run *r, const char *what)
{
	for (size_t i = 0; i < r->nr_lines; i++) {
		const char *at = strstr(run_line(r, i), what);

		if (at && !r->lines[i].json)
			return strtoull(at + strlen(what), NULL, 10);
	}
	return JSON_NONE;
}

static void check_reasons(const char *rec)
{
	static const char *const names[] = {"io", "mmio", "hlt", "intr"};
	uint64_t count = 0, ns = 0;
	char path[64];

	for (size_t i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "vcpu.reasons[name=%s].count", names[i]);
		if (json_u64(rec, path) == JSON_NONE)
			continue;
		count += json_u64(rec, path);
		snprintf(path, sizeof(path), "vcpu.reasons[name=%s].total_ns", names[i]);
		ns += json_u64(rec, path);
	}
	CHECK(count == json_u64(rec, "vcpu.exits"), "reasons do not add up: %s", rec);
	CHECK(ns == json_u64(rec, "vcpu.run_call_ns"), "times do not add up: %s", rec);
	CHECK(json_u64(rec, "vcpu.in_flight") == 0 && json_u64(rec, "vcpu.lost") == 0, "%s", rec);
}

static void exits_by_reason(void)
{
	const char *rec;
	struct run r;

	TEST("exits by reason are those that the host saw") {
		run_scene(&r, "guests", ENV(JSONL, "GUESTS=io:200 mmio:100 halt:10"));
		check_good(&r);
		rec = final_record(&r);
		CHECK(json_u64(rec, "vcpu.exits") == said(&r, "exits="), "%s", rec);
		CHECK(json_u64(rec, "vcpu.vcpus") == 3, "%s", rec);
		/* out, in, end; end; and of the halting one 5 for the 8259, 1 to answer it, end */
		CHECK(json_u64(rec, "vcpu.reasons[name=io].count") == 401 + 1 + 7, "%s", rec);
		CHECK(json_u64(rec, "vcpu.reasons[name=mmio].count") == 100, "%s", rec);
		CHECK(json_u64(rec, "vcpu.reasons[name=hlt].count") == 1, "%s", rec);
		check_reasons(rec);
		CHECK(json_u64(rec, "vcpu.null_exits") == 0, "%s", rec);
		run_free(&r);
	}
	TEST("a guest's fast path is counted in the page, and nowhere else") {
		run_scene(&r, "guests", ENV(JSONL, "GUESTS=fast:5000"));
		check_good(&r);
		rec = final_record(&r);
		/* every 256th goes the slow way: 5000 / 256 = 19 */
		CHECK(json_u64(rec, "counters.guest_time") == 5000 - 19, "%s", rec);
		CHECK(json_u64(rec, "counters.guest_time_slow") == 19, "%s", rec);
		CHECK(json_u64(rec, "vcpu.exits") == 19 + 1, "%s", rec);
		run_free(&r);
	}
	TEST("children run guests of their own and count for themselves") {
		run_scene(&r, "family", ENV(JSONL));
		check_good(&r);
		CHECK(run_records(&r, "fork-child-exit") == 3, "%zu", run_records(&r, NULL));
		for (size_t i = 0; i < run_records(&r, NULL); i++) {
			rec = run_record(&r, NULL, i);
			CHECK(json_u64(rec, "vcpu.reasons[name=io].count") == 101 + 2, "%s", rec);
			CHECK(json_u64(rec, "counters.guest_time") == 299, "%s", rec);
		}
		run_free(&r);
	}
}

/*
 * The guest computes until it is kicked, 300 ms on; on a busy machine the kick comes later. So each
 * run is held against the time it took, and one that did take 300 ms, of ten, against the bounds.
 */
static void computes(char *chip)
{
	struct run r;

	for (int i = 0; i < 10; i++) {
		const char *rec;
		uint64_t run, wall;

		run_scene(&r, "spin", ENV(JSONL, chip));
		check_good(&r);
		rec = final_record(&r);
		run = json_u64(rec, "vcpu.guest_run_ns");
		wall = said(&r, "wall_us=") * 1000;
		/* With a sanitizer the way into the run call takes long. */
		CHECK(run <= wall && (SANITIZED || run + 100000000 > wall), "%llu of %llu ns",
		      (unsigned long long)run, (unsigned long long)wall);
		CHECK(json_is(rec, "vcpu.guest_run_source", "kvm-stats"), "%s", rec);
		run_free(&r);
		if (wall > 318000000)
			continue;
		CHECK(run >= 250000000 && run <= 320000000, "%llu ns", (unsigned long long)run);
		printf("# guest_run_ns %llu\n", (unsigned long long)run);
		return;
	}
	printf("# too busy here for a run of 300 ms\n");
}

static void guest_time(void)
{
	static char *const chip[] = {(char *)"NO_IRQCHIP=1", (char *)"IRQCHIP=1"};
	const char *rec;
	struct run r;

	for (int i = 0; i < 2; i++) {
		TEST("guest_run_ns of a guest that computes for 300 ms (%s)", chip[i]) {
			computes(chip[i]);
		}
		TEST("guest_run_ns of a guest that halts for 1 s (%s)", chip[i]) {
			run_scene(&r, "guests", ENV(JSONL, "GUESTS=halt:1000", chip[i]));
			check_good(&r);
			rec = final_record(&r);
			printf("# guest_run_ns %llu of run_call_ns %llu\n",
			       (unsigned long long)json_u64(rec, "vcpu.guest_run_ns"),
			       (unsigned long long)json_u64(rec, "vcpu.run_call_ns"));
			CHECK(json_u64(rec, "vcpu.guest_run_ns") < 200000000, "%s", rec);
			/* with the controller in the kernel the halt is inside the run call */
			CHECK((json_u64(rec, "vcpu.run_call_ns") > 900000000) == i, "%s", rec);
			CHECK((json_u64(rec, "vcpu.halted_ns") > 800000000) == i, "%s", rec);
			run_free(&r);
		}
	}
	TEST("guest_run_ns by the embedder's word") {
		run_scene(&r, "embedders-word", ENV(JSONL));
		check_good(&r);
		rec = final_record(&r);
		CHECK(json_is(rec, "vcpu.guest_run_source", "embedder"), "%s", rec);
		CHECK(json_u64(rec, "vcpu.halted_ns") == 1000, "%s", rec);
		CHECK(json_u64(rec, "vcpu.guest_run_ns") + 1000 ==
			      json_u64(rec, "vcpu.run_call_ns"),
		      "%s", rec);
		run_free(&r);
	}
}

static void null_exits(void)
{
	const char *rec;
	struct run r;

	TEST("null_exit_share is 0 where every exit had a cause") {
		run_scene(&r, "guests", ENV(JSONL, "GUESTS=io:100"));
		check_good(&r);
		CHECK(json_double(final_record(&r), "vcpu.null_exit_share") == 0, "%s",
		      final_record(&r));
		run_free(&r);
	}
	TEST("null_exit_share is 50 where every other run call did nothing") {
		/* 200 exits of the loop and its end, a null one before each */
		run_scene(&r, "guests", ENV(JSONL, "GUESTS=io:100", "NULL_EVERY=2"));
		check_good(&r);
		rec = final_record(&r);
		CHECK(json_u64(rec, "vcpu.null_exits") == said(&r, "kicks="), "%s", rec);
		CHECK(json_u64(rec, "vcpu.null_exits") == 201, "%s", rec);
		CHECK(json_u64(rec, "vcpu.exits") == 402, "%s", rec);
		CHECK(json_u64(rec, "vcpu.reasons[name=intr].null") == 201, "%s", rec);
		CHECK(json_double(rec, "vcpu.null_exit_share") == 50, "%s", rec);
		check_reasons(rec);
		run_free(&r);
	}
	TEST("null_exit_share is 100 where no run call did anything") {
		run_scene(&r, "all-null", ENV(JSONL));
		check_good(&r);
		rec = final_record(&r);
		CHECK(json_double(rec, "vcpu.null_exit_share") == 100, "%s", rec);
		CHECK(json_u64(rec, "vcpu.null_exits") == 100, "%s", rec);
		run_free(&r);
	}
	TEST("a kick is a null exit; the summary says the same") {
		run_scene(&r, "guests",
			  ENV("STATPAGE_RUNTIME_STATS=summary", "GUESTS=spin:50",
			      "STATPAGE_STATS_SIGNAL=RTMIN+1"));
		CHECK(run_exited(&r, 0), "status 0x%x", r.status);
		CHECK(run_says(&r, "no snapshots on signal"), "took the host's kick signal");
		CHECK(run_says(&r, "vcpu_null_exit_share 100.00"), "the share");
		CHECK(run_says(&r, "vcpu_exit_intr 1 "), "the kick");
		run_free(&r);
	}
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "child")) {
		int ret = play_scene(vmm_scenes, sizeof(vmm_scenes) / sizeof(vmm_scenes[0]), argc,
				     argv);

		return ret == 99 ? play_scene(rule_scenes, NR_RULE_SCENES, argc, argv) : ret;
	}
	if (access("/dev/kvm", R_OK | W_OK) &&
	    system("modprobe kvm-amd 2>/dev/null || modprobe kvm-intel")) {
		TEST("a KVM host")
			SKIP("/dev/kvm cannot be had here");
		return t_done("t_rts_vmm");
	}
	exits_by_reason();
	guest_time();
	null_exits();
	check_rules();
	return t_done("t_rts_vmm");
}
