#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# usage: gen_syscalls.sh lib/syscalls.tbl >table.h
# Join the categories of the table with the numbers of the compiler's kernel headers ($CC).
# A call that the headers know and the table does not is an error: put it into a category.
set -eu
tbl=$1
CC=${CC:-cc}

# abi number name, one a line; nothing where there are no such headers (another system)
numbers() {
	for abi in x86_64:64 i386:32 x32:x32; do
		printf '#include <asm/unistd_%s.h>\n' "${abi#*:}" | $CC -E -dM - 2>/dev/null |
			sed -n 's/^#define __NR_\([a-z0-9_]*\)\(.*[ (]\)\([0-9][0-9]*\))*$/\3 \1/p' |
			sed "s/^/${abi%:*} /" || :
	done
}

numbers | sort -k1,1 -k2,2n | awk -v tbl="$tbl" '
function fail(why) { print "gen_syscalls: " why > "/dev/stderr"; bad = 1 }
BEGIN {
	nr_abis = split("x86_64 i386 x32", abis)
	while ((getline line < tbl) > 0) {
		sub(/#.*/, "", line)
		n = split(line, f)
		if (!n)
			continue
		if (f[1] == "category") {
			if (!(f[2] in cat_of_name)) {
				cat_of_name[f[2]] = nr_cats
				cats[nr_cats++] = f[2]
			}
			for (i = 3; i <= n; i++) {
				if (f[i] in cat)
					fail(f[i] " is in two categories")
				cat[f[i]] = cat_of_name[f[2]]
			}
		} else if (f[1] == "bucket") {
			for (i = 3; i <= n; i++)
				bucket[f[i]] = nr_buckets + 0
			buckets[nr_buckets++] = f[2]
		} else if (f[1] == "number") {
			for (a = 1; a <= nr_abis; a++)
				if (f[2] == "common" || f[2] == abis[a])
					extra[abis[a], f[3]] = f[4]
		} else {
			fail("unknown line: " line)
		}
	}
}
function add(abi, nr, name) {
	if (!(name in cat))
		fail(name " (" abi " " nr ") is in no category of " tbl)
	if (!((abi, nr) in names) && nr >= max[abi])
		max[abi] = nr + 1
	names[abi, nr] = name
}
{ add($1, $2, $3) }
END {
	for (k in extra) {
		split(k, p, SUBSEP)
		if (max[p[1]] && !((p[1], p[2]) in names))
			add(p[1], p[2] + 0, extra[k])
	}
	print "/* Made by scripts/gen_syscalls.sh. */"
	print "static const char *const category_names[] = {"
	for (i = 0; i < nr_cats; i++)
		print "\t\"" cats[i] "\","
	print "};\nstatic const char *const bucket_names[] = {"
	for (i = 0; i < nr_buckets; i++)
		print "\t\"" buckets[i] "\","
	print "};"
	for (a = 1; a <= nr_abis; a++) {
		print "static const struct entry table_" abis[a] "[] = {"
		for (i = 0; i < max[abis[a]]; i++) {
			if (!((abis[a], i) in names))
				continue
			name = names[abis[a], i]
			printf "\t[%d] = {\"%s\", %d, %d},\n", i, name, cat[name],
			       name in bucket ? bucket[name] : nr_buckets
		}
		if (!max[abis[a]])
			print "\t{NULL, " nr_cats - 1 ", " nr_buckets "},"
		print "};"
	}
	exit bad
}'
