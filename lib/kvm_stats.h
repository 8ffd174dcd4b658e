/* SPDX-License-Identifier: MIT */
/* KVM's binary statistics of one virtual CPU, read by a descriptor (KVM_GET_STATS_FD, Linux 5.14). */
#ifndef STATPAGE_KVM_STATS_H
#define STATPAGE_KVM_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/record.h"

#define KVM_STATS_MAX 96

/* Zeroed it is empty. Only cumulative numbers and time sums are kept, not gauges or histograms. */
struct kvm_stats {
	size_t nr;
	char name[KVM_STATS_MAX][48];
	uint64_t value[KVM_STATS_MAX];
};

/* Read all; 0 or -errno. */
int kvm_stats_read(int fd, struct kvm_stats *s);
/* Add by name. */
void kvm_stats_add(struct kvm_stats *dst, const struct kvm_stats *src);
/* Time inside the run call without a guest running, ns; false: this KVM does not tell. */
bool kvm_stats_halted(const struct kvm_stats *s, uint64_t *ns);

#endif /* STATPAGE_KVM_STATS_H */
