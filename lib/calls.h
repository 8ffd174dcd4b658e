/* SPDX-License-Identifier: MIT */
/*
 * The system calls of one process, or summed over a tree: a hash table of {ABI, number} with counts,
 * times, errors and a histogram each. Not thread-safe. Functions that allocate say so; when memory
 * is out the sample goes to the ledger (table_full), the rest stays right.
 */
#ifndef STATPAGE_CALLS_H
#define STATPAGE_CALLS_H

#include "lib/hist.h"
#include "lib/record.h"

/* Rows beyond this are not made: a program that tries every number must not eat our memory. */
#define CALLS_MAX_ROWS	4096
#define CALLS_HIST_BITS 3 /* quantiles within an eighth; 8 KiB a row */

struct call {
	enum rts_abi abi;
	uint32_t nr;
	uint64_t count, errors, total_ns, min_ns, max_ns;
	uint64_t split_count; /* samples that came with on-CPU time */
	uint64_t on_cpu_ns, waiting_ns;
	uint64_t no_return;
	struct rts_errcount *errs;
	size_t nr_errs;
	struct hist *hist;
};

struct calls {
	struct call **slot; /* open addressing, nr_slots a power of two */
	size_t nr_slots, nr;
	struct rts_ledger lost;
};

/* One call that returned. */
struct sample {
	enum rts_abi abi;
	uint32_t nr;
	uint32_t err; /* 0: success */
	uint64_t ns;
	bool has_split;
	uint64_t on_cpu_ns;
};

void calls_free(struct calls *c); /* what c points to; c is empty then */

void calls_enter(struct calls *c); /* attempted */
void calls_return(struct calls *c, const struct sample *s);
void calls_never_return(struct calls *c, enum rts_abi abi, uint32_t nr);

/* Calls that somebody else has summed up. errs may hold less than all errors: errors has them all. */
struct call_sum {
	enum rts_abi abi;
	uint32_t nr;
	uint64_t count, errors, total_ns, min_ns, max_ns;
	uint64_t split_count, waiting_ns;
	const struct rts_errcount *errs;
	size_t nr_errs;
	const uint64_t *slots; /* samples by slot, CALLS_HIST_BITS */
	size_t nr_slots;
};

void calls_add(struct calls *c, const struct call_sum *s);

/* Add src to dst, exactly, its ledger too. */
void calls_merge(struct calls *dst, const struct calls *src);

/*
 * Sorted rows and calls that never return, for a record; both point into c and into one block,
 * which the caller frees with free(*block). 0 or -ENOMEM.
 */
int calls_rows(const struct calls *c, struct rts_record *r, void **block);

#endif /* STATPAGE_CALLS_H */
