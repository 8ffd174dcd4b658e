/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "lib/syscalls.h"

struct entry {
	const char *name;
	uint8_t category, bucket;
};

#include "build/gen/syscalls_table.h"

#define NR(a) (sizeof(a) / sizeof((a)[0]))

_Static_assert(NR(bucket_names) == SYS_NR_BUCKETS, "enum sys_bucket follows lib/syscalls.tbl");

static const struct {
	const struct entry *e;
	size_t n;
} tables[RTS_NR_ABIS] = {
	[RTS_ABI_X86_64] = {table_x86_64, NR(table_x86_64)},
	[RTS_ABI_I386] = {table_i386, NR(table_i386)},
	[RTS_ABI_X32] = {table_x32, NR(table_x32)},
};

static const struct entry *find(enum rts_abi abi, uint32_t nr)
{
	if ((unsigned int)abi >= RTS_NR_ABIS || nr >= tables[abi].n || !tables[abi].e[nr].name)
		return NULL;
	return &tables[abi].e[nr];
}

const char *sys_name(enum rts_abi abi, uint32_t nr)
{
	const struct entry *e = find(abi, nr);

	return e ? e->name : NULL;
}

uint32_t sys_count(enum rts_abi abi)
{
	return (unsigned int)abi < RTS_NR_ABIS ? (uint32_t)tables[abi].n : 0;
}

unsigned int sys_category(enum rts_abi abi, uint32_t nr)
{
	const struct entry *e = find(abi, nr);

	return e ? e->category : sys_nr_categories() - 1;
}

unsigned int sys_nr_categories(void)
{
	return NR(category_names);
}

const char *sys_category_name(unsigned int category)
{
	return category_names[category];
}

enum sys_bucket sys_bucket(enum rts_abi abi, uint32_t nr)
{
	const struct entry *e = find(abi, nr);

	return e ? (enum sys_bucket)e->bucket : SYS_B_NONE;
}

const char *sys_bucket_name(enum sys_bucket bucket)
{
	return bucket_names[bucket];
}

void sys_sum(struct sys_sums *s, const struct rts_row *rows, size_t n)
{
	*s = (struct sys_sums){0};
	for (size_t i = 0; i < n; i++) {
		const struct rts_row *r = &rows[i];
		unsigned int c = sys_category(r->abi, r->nr);
		enum sys_bucket b = sys_bucket(r->abi, r->nr);

		s->count[c] = rts_add(s->count[c], r->count);
		s->total_ns[c] = rts_add(s->total_ns[c], r->total_ns);
		if (b != SYS_B_NONE)
			s->bucket_ns[b] = rts_add(s->bucket_ns[b], r->total_ns);
	}
	s->process_lifecycle_ns = rts_add(s->bucket_ns[SYS_B_CLONE], s->bucket_ns[SYS_B_WAIT]);
}

_Static_assert(NR(category_names) <= SYS_MAX_CATEGORIES, "room for every category");
