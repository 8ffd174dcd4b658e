/* SPDX-License-Identifier: GPL-2.0 */
/* This test checks that the formatters print a record's numbers, and stay within their buffer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/kvm_watch.h"
#include "lib/record.h"
#include "lib/syscalls.h"
#include "tests/t.h"

static const struct rts_errcount errs[] = {{2, 3}, {0, 1}};
static const struct rts_row rows[] = {
	{.abi = RTS_ABI_X86_64,
	 .nr = 257,
	 .name = "openat",
	 .count = 5,
	 .errors = 4,
	 .total_ns = 900,
	 .min_ns = 100,
	 .max_ns = 300,
	 .has_quantiles = true,
	 .p50_ns = 150,
	 .p90_ns = 290,
	 .p99_ns = 300,
	 .p999_ns = 300,
	 .has_split = true,
	 .on_cpu_ns = 800,
	 .waiting_ns = 100,
	 .errs = errs,
	 .nr_errs = 2},
	{.abi = RTS_ABI_I386,
	 .nr = 120,
	 .name = "clone",
	 .count = 1,
	 .total_ns = 70,
	 .min_ns = 70,
	 .max_ns = 70},
	{.abi = RTS_ABI_X86_64,
	 .nr = 61,
	 .name = "wait4",
	 .count = 1,
	 .total_ns = UINT64_MAX,
	 .min_ns = 1,
	 .max_ns = 1},
	{.abi = RTS_ABI_X86_64, .nr = 4000, .count = 1, .total_ns = 7, .min_ns = 7, .max_ns = 7},
};
static const char *const argv[] = {"a\"b\\", "caf\xc3\xa9", "\xff\n", ""};
static const struct rts_counter counters[] = {{0, "fast", 9}, {12, NULL, 4}, {13, "", 5}};
static const struct rts_exit_row exits[] = {{2, "io", 4, 0, 50}, {77, NULL, 2, 2, 6}};
static const struct rts_exit_row hw_exits[] = {{0x78, "hlt", 3, 0, 2000000}, {999, NULL, 1, 0, 5}};
static const struct rts_vcpu vcpu = {.nr_vcpus = 1,
				     .run_call_ns = 56,
				     .rows = exits,
				     .nr_rows = 2,
				     .null_exits = 2,
				     .exits = 6,
				     .guest_run_absent = "no statistics",
				     .has_in_guest = true,
				     .in_guest_ns = 31,
				     .isa = "svm",
				     .hw_rows = hw_exits,
				     .nr_hw_rows = 2};

static struct rts_record sample(void)
{
	return (struct rts_record){
		.reason = RTS_EXIT,
		.final = true,
		.pid = 42,
		.ppid = 1,
		.start_ns = 10,
		.time_ns = 2010,
		.argv = argv,
		.argc = 4,
		.has_exit = true,
		.exit_code = 3,
		.rows = rows,
		.nr_rows = 4,
		.counters = counters,
		.nr_counters = 3,
		.has_counters = true,
		.vcpu = &vcpu,
		.has_ledger = true,
		.lost = {.attempted = 8, .recorded = 8},
	};
}

static const char *json(const struct rts_record *r)
{
	static char text[65536];
	struct rts_buf b = {.p = text, .cap = sizeof(text) - 1};

	CHECK(!rts_fmt_json(&b, r), "did not fit");
	text[b.len] = '\0';
	return text;
}

static void has(const char *text, const char *part)
{
	CHECK(strstr(text, part), "no %s in %s", part, text);
}

static void test_json(void)
{
	struct rts_record r = sample();
	const char *t = json(&r);

	TEST("json: names, errors and sums") {
		has(t,
		    "{\"schema\":\"statpage-runtime/1\",\"scope\":\"process\",\"reason\":\"exit\","
		    "\"final\":true,");
		has(t, "\"wall_ns\":2000,");
		has(t, "{\"name\":\"openat\",\"nr\":257,\"abi\":\"x86_64\",\"category\":\"open\","
		       "\"count\":5,\"errors\":4,\"errnos\":{\"2\":3,\"other\":1},\"total_ns\":900,"
		       "\"min_ns\":100,\"max_ns\":300,\"p50_ns\":150,\"p90_ns\":290,\"p99_ns\":300,"
		       "\"p999_ns\":300,\"on_cpu_ns\":800,\"waiting_ns\":100}");
		has(t, "\"name\":\"sys_4000\",\"nr\":4000,");
		has(t, "\"openat_ns\":900,");
		has(t, "\"open_ns\":0,");
		has(t, "\"exit\":{\"code\":3}");
		has(t, "\"complete\":true,");
	}
	TEST("json: sums saturate across rows") {
		has(t, "\"clone_ns\":70,\"wait_ns\":18446744073709551615,"
		       "\"process_lifecycle_ns\":18446744073709551615,");
	}
	TEST("json: unnamed counters have unique names") {
		has(t, "\"counters\":{\"fast\":9,\"reserved12\":4,\"reserved13\":5}");
	}
	TEST("json: strings of any bytes stay valid") {
		has(t, "\"argv\":[\"a\\\"b\\\\\",\"caf\xc3\xa9\",\"\\\\xff\\u000a\",\"\"]");
	}
	TEST("json: exits by reason") {
		has(t,
		    "\"exits\":6,\"null_exits\":2,\"null_exit_share\":33.33,\"in_flight\":0,\"lost\":0,"
		    "\"run_call_ns\":56,\"guest_run_absent\":\"no statistics\"");
		has(t,
		    "{\"name\":\"exit_77\",\"reason\":77,\"count\":2,\"null\":2,\"total_ns\":6}");
		has(t,
		    "\"in_guest_ns\":31,\"isa\":\"svm\",\"hw_exits\":[{\"name\":\"hlt\",\"reason\":120,"
		    "\"count\":3,\"total_ns\":2000000},{\"name\":\"exit_999\",\"reason\":999,"
		    "\"count\":1,\"total_ns\":5}]");
	}
}

static void test_bounds(void)
{
	struct rts_record r = sample();
	size_t whole = strlen(json(&r));

	TEST("json and summary: every too small buffer is refused, none is overrun") {
		for (size_t cap = 0; cap <= whole; cap++) {
			char *p = malloc(cap + 1);
			struct rts_buf b = {.p = p, .cap = cap};

			p[cap] = 'X';
			CHECK(rts_fmt_json(&b, &r) == (cap < whole ? -ENOSPC : 0), "cap %zu", cap);
			b.len = 0;
			rts_fmt_summary(&b, &r, 0);
			CHECK(p[cap] == 'X', "overrun at %zu", cap);
			free(p);
		}
	}
}

static void test_share(void)
{
	TEST("null share is 0..100 whatever the order of the loads") {
		CHECK(rts_null_share(0, 0) == 0, "empty");
		CHECK(rts_null_share(0, 7) == 0, "none");
		CHECK(rts_null_share(1, 2) == 5000, "half");
		CHECK(rts_null_share(7, 7) == 10000, "all");
		CHECK(rts_null_share(9, 7) == 10000, "clamped");
		CHECK(rts_null_share(UINT64_MAX, UINT64_MAX) <= 10000, "huge");
		CHECK(rts_null_share(UINT64_MAX / 2, UINT64_MAX) / 10 == 500, "huge half");
	}
}

static void test_sort(void)
{
	struct rts_row v[200];

	TEST("rows are sorted by total, count, number") {
		for (unsigned int i = 0; i < 200; i++)
			v[i] = (struct rts_row){
				.nr = i * 37 % 200, .total_ns = i * 53 % 7, .count = i * 29 % 5};
		rts_rows_sort(v, 200);
		for (unsigned int i = 1; i < 200; i++) {
			const struct rts_row *a = &v[i - 1], *b = &v[i];

			CHECK(a->total_ns > b->total_ns ||
				      (a->total_ns == b->total_ns &&
				       (a->count > b->count ||
					(a->count == b->count && a->nr < b->nr))),
			      "row %u", i);
		}
	}
}

static void test_summary(void)
{
	static char text[65536];
	struct rts_record r = sample();
	struct rts_buf b = {.p = text, .cap = sizeof(text) - 1};

	TEST("summary: one line a value, one table") {
		CHECK(!rts_fmt_summary(&b, &r, 0), "did not fit");
		text[b.len] = '\0';
		has(text,
		    "process 42\ncommand \"a\\\"b\\\\\" \"caf\xc3\xa9\" \"\\\\xff\\u000a\" \"\"\n");
		has(text, "exit_code 3\n");
		has(text, "vcpu_null_exit_share 33.33\n");
		has(text, "vcpu_hw_hlt 3 2.000 ms\nvcpu_hw_999 1 0.000 ms\n");
		has(text, "counter_reserved12 4\n");
		has(text, "        5        4        0.000        0.180        0.150        0.300"
			  "        0.300   0.00 openat\n");
		has(text, " clone/i386\n");
		b.len = 0;
		CHECK(!rts_fmt_summary(&b, &r, RTS_SUMMARY_SHORT), "did not fit");
		text[b.len] = '\0';
		CHECK(!strstr(text, "openat"), "the short form has a table");
	}
}

static void test_table(void)
{
	TEST("the table knows names, categories and buckets of three ABIs") {
		CHECK(!strcmp(sys_name(RTS_ABI_X86_64, 0), "read"), "x86_64 0");
		CHECK(!strcmp(sys_name(RTS_ABI_I386, 3), "read"), "i386 3");
		CHECK(!strcmp(sys_name(RTS_ABI_X32, 512), "rt_sigaction"), "x32 512");
		CHECK(!sys_name(RTS_ABI_X86_64, 400), "a hole has a name");
		CHECK(!sys_name(RTS_ABI_X86_64, UINT32_MAX), "out of range");
		CHECK(!sys_name((enum rts_abi)77, 0), "no such ABI");
		CHECK(!strcmp(sys_category_name(sys_category(RTS_ABI_X86_64, 9999)), "other"),
		      "unknown numbers are in other");
		CHECK(sys_bucket(RTS_ABI_I386, 7) == SYS_B_WAIT, "waitpid");
		CHECK(!strcmp(sys_bucket_name(SYS_B_OPENAT2), "openat2_ns"), "order of buckets");
	}
}

static void test_hw_names(void)
{
	TEST("the hardware's exits: Intel's and AMD's names") {
		CHECK(!strcmp(kvm_vmx_name(12), "hlt") &&
			      !strcmp(kvm_vmx_name(30), "io_instruction") &&
			      !strcmp(kvm_vmx_name(48), "ept_violation") &&
			      !strcmp(kvm_vmx_name(75), "notify"),
		      "Intel");
		CHECK(!kvm_vmx_name(35) && !kvm_vmx_name(78) && !kvm_vmx_name(UINT32_MAX),
		      "numbers that Intel does not have");
		CHECK(!strcmp(kvm_svm_name(0), "read_cr0") &&
			      !strcmp(kvm_svm_name(0x1f), "write_cr15") &&
			      !strcmp(kvm_svm_name(0x30), "write_dr0") &&
			      !strcmp(kvm_svm_name(0x4e), "exception_14") &&
			      !strcmp(kvm_svm_name(0x5f), "exception_31") &&
			      !strcmp(kvm_svm_name(0x60), "intr") &&
			      !strcmp(kvm_svm_name(0x78), "hlt") &&
			      !strcmp(kvm_svm_name(0x7b), "ioio") &&
			      !strcmp(kvm_svm_name(0x400), "npf") &&
			      !strcmp(kvm_svm_name(0x403), "vmgexit"),
		      "AMD");
		CHECK(!kvm_svm_name(0x9f) && !kvm_svm_name(0xa7) && !kvm_svm_name(0x404) &&
			      !kvm_svm_name(UINT32_MAX),
		      "numbers that AMD does not have");
	}
}

int main(void)
{
	test_json();
	test_bounds();
	test_share();
	test_sort();
	test_summary();
	test_hw_names();
	test_table();
	return t_done("t_record");
}
