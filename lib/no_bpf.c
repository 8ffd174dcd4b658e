/* SPDX-License-Identifier: MIT */
/* Stands in for the bpf engines where they cannot be built. */
#include <errno.h>
#include <stdio.h>

#include "lib/dist.h"
#include "lib/engine.h"

#define WITHOUT "statpage was built without it: libbpf, clang, bpftool or BTF was missing"

static int prepare(const struct run_opts *o, char *why, size_t len)
{
	(void)o;
	snprintf(why, len, WITHOUT);
	return -ENOSYS;
}

const struct run_engine engine_bpf = {.name = "bpf", .prepare = prepare};

static int probe(struct dist_why *why)
{
	return dist_fail(why, -ENODEV, "engine bpf: " WITHOUT);
}

const struct dist_engine engine_dist_bpf = {.name = "bpf", .probe = probe, .try = probe};
