#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks that lib/rts needs C11 and POSIX only, but for the files that say so: a stand-in for a
# system that is no Linux.
. "$(dirname "$0")/tap.sh"

# lib/rts and what it takes from lib/, as build/librts.a has them
srcs=$(sed -n '/^RTS_SRCS := /,/[^\\]$/s/^\t\(.*\) \\$/\1/p' Makefile)
flags="-std=c11 -D_POSIX_C_SOURCE=200809L -DRTS_PORTABLE -U__linux__ -U__linux -I. -Iinclude -Iinclude/uapi"
flags="$flags -Wall -Wextra -Werror"
standard="assert ctype errno fcntl limits poll pthread signal stdarg stdatomic stdbool stddef stdint stdio
	stdlib string strings sys/mman sys/resource sys/stat sys/time sys/types sys/wait time unistd"

begin "lib/rts compiles as C11 with POSIX of 2008 and nothing else"
check test "$(echo "$srcs" | wc -l)" -gt 15 "the Makefile's list was not found"
for f in $srcs; do
	# shellcheck disable=SC2086 # words
	cc $flags -c -o "$tmp/$(basename "$f" .c).o" "$f" 2>"$tmp/err" ||
		fail "$f: $(grep -m 1 error: "$tmp/err")"
done

begin "only os_linux.c and thread_time.c look at Linux's headers"
# shellcheck disable=SC2086
for f in $srcs; do
	[ "${f##*/}" = os_linux.c ] || cc $flags -MM "$f"
done | grep -oE '[^ ]+\.[ch]( |$)' | tr -d ' ' | sort -u >"$tmp/files"
check grep -q '^lib/rts/thread_time.c$' "$tmp/files" "the compiler's list was not found"
# the kernel's own side of include/uapi/kstats_bucket.h is not for us
is "$(grep -v uapi/kstats_bucket.h "$tmp/files" | xargs grep -ho '#include <[^>]*\.h>' |
	sed 's/#include <\(.*\)\.h>/\1/' | sort -u | comm -23 - <(echo "$standard" | xargs -n 1 | sort))" \
	"" "headers that are neither C's nor POSIX's"

begin "and works: a program that embeds it writes its record"
cc -D_GNU_SOURCE -I. -Iinclude -o "$tmp/embed" tests/native/embed.c "$tmp"/*.o -pthread -lm 2>"$tmp/err" ||
	fail "$(head -n 3 "$tmp/err")"
for format in json jsonl; do
	STATPAGE_RUNTIME_STATS=$format STATPAGE_STARTUP_TRACE=all STATPAGE_STATS_OUTPUT="$tmp/$format" \
		"$tmp/embed" || fail "$format: status $?"
	is "$(jq -c '[.schema, .reason, .final, (.syscalls[] | select(.name == "close").errnos."9"),
		.counters.fast_reads, (.in_flight | length), [.phases[] | .name, has("thread")]]' \
		"$tmp/$format")" '["statpage-runtime/1","exit",true,10,3,1,["init",false,"work",false]]' "$format"
done
STATPAGE_RUNTIME_STATS=summary "$tmp/embed" 2>"$tmp/summary"
is "$(awk '$NF == "close" { print $1, $2 }' "$tmp/summary")" "10 10" "the summary's row of close"
"$tmp/embed" 2>"$tmp/err"
is "$?$(cat "$tmp/err")" 0 "off"

finish
