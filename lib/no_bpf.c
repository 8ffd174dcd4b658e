/* SPDX-License-Identifier: MIT */
/* Stands in for the bpf engine where it cannot be built. */
#include <errno.h>
#include <stdio.h>

#include "lib/engine.h"

static int prepare(const struct run_opts *o, char *why, size_t len)
{
	(void)o;
	snprintf(why, len,
		 "statpage was built without it: libbpf, clang, bpftool or BTF was missing");
	return -ENOSYS;
}

const struct run_engine engine_bpf = {.name = "bpf", .prepare = prepare};
