/* SPDX-License-Identifier: GPL-2.0 */
/* What clang -target bpf makes of value <-> slot: called by t_slots.c, which gives and gets the context. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "tests/kmod/slot_digest.h"

struct request {
	struct slot_digest d;
	__u32 n;
};

static long power(__u32 i, void *d)
{
	slot_digest_power(d, i);
	return 0;
}

static long random_value(__u32 i, void *d)
{
	slot_digest_random(d);
	return 0;
}

/* r is initialised by the caller: constants in here would make the verifier follow each iteration. */
SEC("syscall") int digest(struct request *r)
{
	struct slot_digest d = {.hash = r->d.hash, .seed = r->d.seed, .bits = r->d.bits & 7};

	bpf_loop(SLOT_DIGEST_POWERS, power, &d, 0);
	bpf_loop(r->n, random_value, &d, 0);
	r->d.hash = d.hash;
	return 0;
}

char _license[] SEC("license") = "GPL";
