/* SPDX-License-Identifier: MIT */
/* What a user wants the bpf engine to trace: does it make sense, and what do its names mean? */
#ifndef LIB_BPF_SPEC_H
#define LIB_BPF_SPEC_H

#include "lib/dist.h"

/* One place of the kernel that a program is attached to. */
struct bpf_place {
	const char *text; /* as the user gave it */
	char name[128];	  /* of the function or tracepoint alone */
	bool tp;
	bool by_name; /* the function is the only one of its name; else address tells which */
	unsigned long long address;
};

/* All but names of places. 0, or -errno with why set, as below. */
int bpf_spec_check(const struct dist_spec *spec, struct dist_why *why);

/*
 * As the module takes it: sys:event, __tracepoint_event, function, module:function, NAME@0xADDRESS; if
 * tracepoint is set, event too. -ENOENT: there is no such thing. p keeps text.
 */
int bpf_place_find(struct bpf_place *p, const char *text, bool tracepoint, struct dist_why *why);

bool bpf_place_never_returns(const struct bpf_place *p);

#endif /* LIB_BPF_SPEC_H */
