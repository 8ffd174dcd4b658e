/* SPDX-License-Identifier: MIT */
#include "lib/record.h"

const char *rts_reason_name(enum rts_reason reason)
{
	static const char *const names[] = {
		[RTS_EXIT] = "exit",
		[RTS_SIGNAL] = "signal",
		[RTS_INTERVAL] = "interval",
		[RTS_FORK_CHILD_EXIT] = "fork-child-exit",
		[RTS_FORK_CHILD_ERROR] = "fork-child-error",
		[RTS_EXEC] = "exec",
		[RTS_INTERRUPTED] = "interrupted",
	};

	return (unsigned int)reason < RTS_NR_REASONS ? names[reason] : "unknown";
}

const char *rts_abi_name(enum rts_abi abi)
{
	static const char *const names[] = {
		[RTS_ABI_X86_64] = "x86_64",
		[RTS_ABI_I386] = "i386",
		[RTS_ABI_X32] = "x32",
		[RTS_ABI_OTHER] = "other",
	};

	return (unsigned int)abi < RTS_NR_ABIS ? names[abi] : "unknown";
}

static bool before(const struct rts_row *a, const struct rts_row *b)
{
	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns;
	if (a->count != b->count)
		return a->count > b->count;
	if (a->abi != b->abi)
		return a->abi < b->abi;
	return a->nr < b->nr;
}

/* Shell sort: a few hundred rows at most, and qsort() may allocate. */
void rts_rows_sort(struct rts_row *rows, size_t n)
{
	for (size_t gap = n / 2; gap; gap /= 2) {
		for (size_t i = gap; i < n; i++) {
			struct rts_row row = rows[i];
			size_t j = i;

			for (; j >= gap && before(&row, &rows[j - gap]); j -= gap)
				rows[j] = rows[j - gap];
			rows[j] = row;
		}
	}
}
