/* SPDX-License-Identifier: MIT */
/*
 * Names, categories and cost buckets of system calls. Numbers come from the kernel headers at build
 * time, categories from lib/syscalls.tbl, both joined by scripts/gen_syscalls.sh.
 * Pure and thread-safe; nothing allocates.
 */
#ifndef STATPAGE_SYSCALLS_H
#define STATPAGE_SYSCALLS_H

#include "lib/record.h"

/* Quick sums that are known by exact name; their members are in lib/syscalls.tbl. */
enum sys_bucket {
	SYS_B_CLONE,
	SYS_B_WAIT,
	SYS_B_OPEN,
	SYS_B_OPENAT,
	SYS_B_OPENAT2,
	SYS_B_FUTEX,
	SYS_B_MEM,
	SYS_NR_BUCKETS,
	SYS_B_NONE = SYS_NR_BUCKETS,
};

/* NULL if the number is not known. */
const char *sys_name(enum rts_abi abi, uint32_t nr);

/* How many numbers of this ABI the table holds; every known nr is below it. */
uint32_t sys_count(enum rts_abi abi);

/* Index of the call's category, 0..sys_nr_categories()-1; unknown numbers are in the last, "other". */
unsigned int sys_category(enum rts_abi abi, uint32_t nr);
unsigned int sys_nr_categories(void);
const char *sys_category_name(unsigned int category);

enum sys_bucket sys_bucket(enum rts_abi abi, uint32_t nr);
/* "clone_ns" and so on. */
const char *sys_bucket_name(enum sys_bucket bucket);

#define SYS_MAX_CATEGORIES 32

struct sys_sums {
	uint64_t count[SYS_MAX_CATEGORIES], total_ns[SYS_MAX_CATEGORIES];
	uint64_t bucket_ns[SYS_NR_BUCKETS];
	uint64_t process_lifecycle_ns; /* clone_ns + wait_ns */
};

/* Sum rows by category and bucket; sums saturate. */
void sys_sum(struct sys_sums *s, const struct rts_row *rows, size_t n);

#endif /* STATPAGE_SYSCALLS_H */
