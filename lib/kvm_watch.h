/* SPDX-License-Identifier: MIT */
/*
 * Virtual CPU exits of a watched process, seen from outside: the exit reason is read from the run
 * page that KVM shares with the program, mapped once by a descriptor taken from it. One watch a
 * process, made at its first KVM_RUN; NULL stands for a process that runs no virtual CPU.
 */
#ifndef STATPAGE_KVM_WATCH_H
#define STATPAGE_KVM_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/record.h"

struct kvm_watch;

/* The program asks KVM for something: ioctl(fd, request). Makes *w at the first KVM_RUN. */
void kvm_watch_ioctl(struct kvm_watch **w, int fd, uint64_t request);
/* It returned after ns; err is 0 or a positive errno. */
void kvm_watch_ioctl_done(struct kvm_watch *w, pid_t pid, int fd, uint64_t request, int err,
			  uint64_t ns);
/* The program closed or replaced descriptors: what they were is asked again. */
void kvm_watch_closed(struct kvm_watch *w);

/*
 * Does fd want its statistics fetched? Then the caller gets the statistics descriptor made by
 * KVM_GET_STATS_FD inside the program, and gives it here: it is ours from then on. -1 and
 * why say that it could not be had. attached: the virtual CPU may have run before we watched.
 */
bool kvm_watch_wants_stats(const struct kvm_watch *w, int fd);
void kvm_watch_give_stats(struct kvm_watch *w, int fd, int stats_fd, bool attached,
			  const char *why);
/* Statistics were not asked for: say so in the record. */
void kvm_watch_no_stats(struct kvm_watch *w, const char *why);

/*
 * For an engine that has counted in the kernel already. Makes *w, if there is memory.
 * A run call's reason, with what is said of these calls; and a virtual CPU that ran, which may be named
 * more than once.
 */
void kvm_watch_add_exits(struct kvm_watch **w, const struct rts_exit_row *row, uint64_t in_guest_ns,
			 uint64_t halted_ns);
void kvm_watch_add_vcpu(struct kvm_watch **w, int fd);
/* An exit of the hardware; isa is "vmx" or "svm". */
void kvm_watch_add_hw(struct kvm_watch **w, const char *isa, const struct rts_exit_row *row);

/* Read the statistics again, while their descriptors work. */
void kvm_watch_refresh(struct kvm_watch *w);
/* Add src to *dst and free src. */
void kvm_watch_fold(struct kvm_watch **dst, struct kvm_watch *src);
/* Fill v, which points into w; false: nothing to tell. */
bool kvm_watch_record(struct kvm_watch *w, struct rts_vcpu *v);
void kvm_watch_free(struct kvm_watch *w);

/* "hlt" for KVM_EXIT_HLT; NULL: not known. */
const char *kvm_exit_name(uint32_t reason);
/* The same of Intel's and AMD's hardware. */
const char *kvm_vmx_name(uint32_t reason);
const char *kvm_svm_name(uint32_t reason);

#endif /* STATPAGE_KVM_WATCH_H */
