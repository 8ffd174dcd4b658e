#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks that docs/json.md documents every key of real records, and that every documented
# key is in one; and that sums are the sums of what they say.
. "$(dirname "$0")/tap.sh"

w=$native/workload

# Keys of the records on standard input, one a line, names of arrays and maps generalised.
keys()
{
	jq -r 'paths | map(if type == "number" then "[]" else . end) | join(".")' |
		sed -E 's/\.\[\]/[]/g; s/^processes\[\]\.//; s/\.errnos\..*/.errnos.*/
			s/^counters\..*/counters.*/; s/^categories\.[a-z_]+/categories.*/
			s/^vcpu\.kvm\..*/vcpu.kvm.*/; s/^(phases\[\]\.thread)\..*/\1.*/' |
		grep -Ev '^(exit|syscalls|syscalls\[\]|in_flight|in_flight\[\]|no_return|no_return\[\]|argv)$' |
		grep -Ev '^(categories|categories\.\*|buckets|vcpu|vcpu\.(reasons|hw_exits)(\[\])?)$' |
		grep -Ev '^(vcpu\.kvm|counters|phases|phases\[\]|phases\[\]\.thread|engine|lost)$' |
		grep -Ev '^(syscalls\[\]\.errnos|processes)$' | sort -u
}

# Records of all kinds: run's documents and lines, interrupted ones, and the library's.
{
	"$statpage" run --pin -f json -o "$tmp/p" -- sh -c "$w by_signal 6; $w execs 2" >"$tmp/out" 2>&1
	: >"$tmp/out"
	"$statpage" run --no-split -f json -o "$tmp/a" -- true
	head -c 70000 /dev/zero | tr '\0' x >"$tmp/long"
	"$statpage" run -f jsonl -o "$tmp/b" -- true "$(cat "$tmp/long")"
	rm -f "$tmp/out"
	"$statpage" run -f json -o "$tmp/c" -- "$w" steadfast 6 >"$tmp/out" &
	pid=$!
	eventually grep -q ready "$tmp/out"
	kill -TERM $pid
	sleep 1 # later than one request
	kill -TERM $pid
	wait $pid
	STATPAGE_RUNTIME_STATS=json STATPAGE_STARTUP_TRACE=all STATPAGE_STATS_OUTPUT="$tmp/d" "$native/embed"
	STATPAGE_RUNTIME_STATS=json STATPAGE_STARTUP_TRACE=all STATPAGE_STATS_OUTPUT="$tmp/e" "$native/embed" known
	# The bpf engine's, or ptrace's once more where it cannot be used.
	"$statpage" run --engine auto -f jsonl --interval 100ms -o "$tmp/q" -- "$w" nap 300 >"$tmp/out"
	cat "$tmp"/[a-epq]
} >"$tmp/all"
"$statpage" run -f json -o "$tmp/f" -- env STATPAGE_RUNTIME_STATS=json STATPAGE_STARTUP_TRACE=all STATPAGE_STATS_OUTPUT="$tmp/g" \
	"$native/embed"
cat "$tmp/f" >>"$tmp/all"
keys <"$tmp/all" >"$tmp/got"
# Recordings are another format: t_record.sh looks at them.
sed '/^# .*recordings/,$d' docs/json.md | sed -n 's/^| `\([^`]*\)` |.*/\1/p' | sort >"$tmp/documented"

begin "every key of real records is documented, once"
is "$(sort "$tmp/documented" | uniq -d)" "" "documented twice"
is "$(comm -13 "$tmp/documented" "$tmp/got")" "" "not documented"

begin "every documented key is in a real record"
# What needs hardware, a module or rights that are not here is seen by the guest's tests, and t_bpf.sh.
is "$(comm -23 "$tmp/documented" "$tmp/got" | grep -v -x -F -e vcpu.kvm.\* -e vcpu.in_guest_ns -e vcpu.isa -e cgroup -e vcpu.hw_exits[].name \
	-e vcpu.hw_exits[].reason -e vcpu.hw_exits[].count -e vcpu.hw_exits[].total_ns -e phases[].thread.\*)" "" \
	"in no record"

begin "the outside view finds the counters page of a program that embeds the library"
is "$(jq -c '.processes[] | select(.comm == "embed").counters' "$tmp/f")" \
	"$(jq -c .counters "$tmp/g")" "counters"
# Its leader and its other thread end in any order.
for _ in 1 2 3 4 5 6 7 8 9 10; do
	"$statpage" run -f json -o "$tmp/h" -- env STATPAGE_RUNTIME_STATS=json \
		STATPAGE_STATS_OUTPUT=/dev/null "$native/embed"
	jq -c '.processes[] | select(.comm == "embed").counters' "$tmp/h"
done >"$tmp/ten"
is "$(sort -u "$tmp/ten")" "$(jq -c .counters "$tmp/g")" "counters, ten times"
is "$(jq -c .counters "$tmp/g")" '{"fast_reads":3,"fast_writes":0,"reserved12":1}' "and they are right"

begin "inside and outside count the same calls"
is "$(jq -c '.processes[] | select(.comm == "embed").syscalls[] | select(.name == "close") |
	.errnos."9"' "$tmp/f")" 10 "outside"
is "$(jq -c '.syscalls[] | select(.name == "close") | .errnos."9"' "$tmp/g")" 10 "inside"

begin "every bucket and category is the sum of its rows"
"$statpage" run -f json -o "$tmp/j" -- sh -c "$w threads 20; $w vforks 2; $w forks 2; ls -l" >/dev/null
for f in "$tmp/j" "$tmp/g"; do
	while read -r kind key members; do
		members=$(echo "$members" | tr '\t' ' ')
		[ "$kind" = bucket ] || continue
		is "$(jq --arg n "$key" '.buckets[$n]' "$f")" \
			"$(jq --arg m " $members " '[.syscalls[] | select(.name as $n | $m |
			contains(" \($n) ")).total_ns] | add // 0' "$f")" "$key"
	done <lib/syscalls.tbl
	is "$(jq '.buckets | .process_lifecycle_ns - .clone_ns - .wait_ns' "$f")" 0 "process_lifecycle_ns"
	is "$(jq -c '[.syscalls | group_by(.category)[] | {key: .[0].category, value:
		{count: (map(.count) | add), total_ns: (map(.total_ns) | add)}}] | from_entries | to_entries |
		sort_by(.key)' "$f")" "$(jq -c '.categories | to_entries | sort_by(.key)' "$f")" "categories"
	is "$(jq '[.syscalls[] | select(.errors != ([.errnos[]?] | add // 0))] | length' "$f")" 0 \
		"errors are the sum by errno"
	is "$(jq '[.syscalls[] | select(.count > 0) | .min_ns <= .p50_ns and .p50_ns <= .p90_ns and
		.p90_ns <= .p99_ns and .p99_ns <= .p999_ns and .p999_ns <= .max_ns and
		.min_ns * .count <= .total_ns and .max_ns * .count >= .total_ns] | all' "$f")" true \
		"min, quantiles, max"
done

begin "no object has a key twice"
is "$(python3 - "$tmp/all" <<'PY'
import json, sys
def once(pairs):
    keys = [k for k, v in pairs]
    assert len(keys) == len(set(keys)), keys
    return dict(pairs)
text, d, at = open(sys.argv[1]).read(), json.JSONDecoder(object_pairs_hook=once), 0
while at < len(text):
    _, at = d.raw_decode(text, at)
    while at < len(text) and text[at].isspace():
        at += 1
print("ok")
PY
)" ok "keys"

finish
