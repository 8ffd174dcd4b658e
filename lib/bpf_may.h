/* SPDX-License-Identifier: MIT */
/* What the BPF engines ask before they load anything. */
#ifndef LIB_BPF_MAY_H
#define LIB_BPF_MAY_H

#include <stdbool.h>

/* Whether this process has the capabilities: root without them may not, a user with them may. */
bool bpf_may_load(void);

/* Keep libbpf's own words from stderr: the engines say in one line what went wrong. */
void bpf_be_quiet(void);

/*
 * May programs at raw tracepoints be preempted here? Then the kernel leaves out those that would begin on that
 * CPU meanwhile. Those of system calls may be since 6.13, where struct tracepoint_ext came, unless the kernel
 * preempts nobody; when that cannot be found out, they may.
 */
bool bpf_is_preempted(void);

#endif /* LIB_BPF_MAY_H */
