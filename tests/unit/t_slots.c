/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This test checks that clang -target bpf and this compiler make the same slots of the same values. What
 * kbuild's compiler makes of them is compared in a guest, by t_kstats_hist.
 */
#include "tests/t.h"

#include "tests/kmod/slot_digest.h"

#if __has_include(<bpf/libbpf.h>)
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level, (void)fmt, (void)ap;
	return 0;
}

/* The program's descriptor, or -1 with the case skipped. */
static int load(const char *path)
{
	struct bpf_object *obj;

	libbpf_set_print(quiet);
	obj = bpf_object__open_file(path, NULL);
	if (!obj)
		SKIP("%.100s was not built: no clang", path);
	else if (bpf_object__load(obj))
		SKIP("this kernel or user may not load BPF programs");
	else
		return bpf_program__fd(bpf_object__find_program_by_name(obj, "digest"));
	return -1;
}

static void t_bpf(const char *path)
{
	struct {
		struct slot_digest d;
		__u32 n;
	} r = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &r, .ctx_size_in = sizeof(r));
	int fd;

	TEST("slots: clang -target bpf agrees with this compiler on 0..5 bits, a million values") {
		fd = load(path);
		if (fd < 0)
			break;
		for (__u32 bits = 0; bits <= KSTATS_MAX_BITS; bits++) {
			slot_digest_init(&r.d, bits);
			r.n = 1000000;
			if (!CHECK(!bpf_prog_test_run_opts(fd, &opts), "the program does not run"))
				break;
			CHECK(r.d.hash == slot_digest(bits, r.n), "%u bits: %llx here, %llx in BPF",
			      bits, (unsigned long long)slot_digest(bits, r.n),
			      (unsigned long long)r.d.hash);
		}
	}
}
#else
static void t_bpf(const char *path)
{
	TEST("slots: clang -target bpf agrees with this compiler on 0..5 bits, a million values")
		SKIP("built without libbpf, for %.60s", path);
}
#endif

int main(int argc, char **argv)
{
	char path[300];

	snprintf(path, sizeof(path), "%.*s/slots.bpf.o", (int)(strrchr(argv[0], '/') - argv[0]),
		 argv[0]);
	t_bpf(argc > 1 ? argv[1] : path);
	return t_done("t_slots");
}
