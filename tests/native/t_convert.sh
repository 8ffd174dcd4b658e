#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks that `statpage convert` keeps names and totals, whatever the input looks like.
. "$(dirname "$0")/tap.sh"

w=$native/workload
formats="folded speedscope perfetto csv"

convert()
{
	"$statpage" convert --to "$@" 2>"$tmp/err"
}

# `name ns` of every call, summed, from each format.
totals_folded()
{
	awk '{ n = split($0, f, /[; ]/); t[f[n - 1]] += f[n] } END { for (c in t) printf "%s %.0f\n", c, t[c] }' \
		"$1" | sort
}

totals_speedscope()
{
	jq -r '.shared.frames as $f | [.profiles[].events[] | select($f[.frame].file | not) |
		{n: $f[.frame].name, v: (if .type == "O" then -.at else .at end)}] | group_by(.n)[] |
		"\(.[0].n) \(map(.v) | add)"' "$1" | sort
}

totals_perfetto()
{
	jq -r '[.traceEvents[] | select(.ph == "X")] | group_by(.name)[] |
		"\(.[0].name) \(map(.dur * 1000 | round) | add)"' "$1" | sort
}

totals_json()
{
	jq -r '.processes[] | .syscalls[] | "\(.name) \(.total_ns)"' "$1" |
		awk '{ t[$1] += $2 } END { for (c in t) printf "%s %.0f\n", c, t[c] }' | sort
}

# Slices of a track, in the order of their start: none begins before the last one ended.
overlaps()
{
	jq '[.traceEvents[] | select(.ph == "X")] | group_by([.pid, .tid]) |
		map(sort_by(.ts) | . as $s | [range(1; length) |
		select($s[.].ts + 0.0005 < $s[. - 1].ts + $s[. - 1].dur)] | length) | add' "$1"
}

"$statpage" run -f json -o "$tmp/doc" -- sh -c "$w forks 5; $w vforks 3; ls / >/dev/null" 2>/dev/null

begin "totals of a document are in every format, to the nanosecond"
totals_json "$tmp/doc" >"$tmp/want"
for t in folded perfetto; do
	convert $t "$tmp/doc" >"$tmp/out"
	is "$?" 0 "status of $t"
	"totals_$t" "$tmp/out" >"$tmp/got"
	is "$(diff "$tmp/want" "$tmp/got")" "" "$t: wanted < and got >"
done
convert speedscope "$tmp/doc" >"$tmp/out"
totals_speedscope "$tmp/out" >"$tmp/got"
is "$(diff "$tmp/want" "$tmp/got")" "" "speedscope"
is "$(overlaps <(convert perfetto "$tmp/doc"))" 0 "overlapping slices"

begin "one speedscope profile a life of a process, by its name, on its time axis"
is "$(jq -r '[.profiles[].name] | sort | join(" ")' "$tmp/out")" \
	"$(jq -r '[.processes[] | "\(.comm) \(.pid)"] | sort | join(" ")' "$tmp/doc")" "names"
is "$(jq -c '[.profiles[] | [.startValue, .endValue]] | sort' "$tmp/out")" \
	"$(jq -c '[.processes[] | [.start_ns, .time_ns]] | sort' "$tmp/doc")" "axes"

begin "intervals: deltas add up, slices lie in their interval and never overlap"
"$statpage" run -f jsonl --interval 10ms -o "$tmp/l" -- "$w" threads 200 >/dev/null
jq -s '{processes: [.[] | select(.scope == "process" and .final)]}' "$tmp/l" >"$tmp/final"
totals_json "$tmp/final" >"$tmp/want"
convert folded "$tmp/l" >"$tmp/out"
totals_folded "$tmp/out" >"$tmp/got"
is "$(comm -23 "$tmp/want" "$tmp/got")" "" "totals"
check test "$(wc -l <"$tmp/out")" -gt 20 "it has no intervals"
convert perfetto "$tmp/l" >"$tmp/out"
is "$(overlaps "$tmp/out")" 0 "overlapping slices"
is "$(jq -r --slurpfile r "$tmp/l" '($r | map(select(.scope == "process") | .time_ns, .start_ns)) as $t |
	[.traceEvents[] | select(.ph == "X") | select(.ts * 1000 + 1 < ($t | min) or
	(.ts + .dur) * 1000 > ($t | max) + 1)] | length' "$tmp/out")" 0 "slices outside of the run"
is "$(jq -r '[.traceEvents[] | select(.ph == "C" and .name == "system calls") | .args.value] |
	. == sort and length > 2' "$tmp/out")" true "the counter track grows"
is "$(jq -r '[.traceEvents[] | select(.name == "process_name").args.name] | unique | join(" ")' \
	"$tmp/out")" workload "process name"

begin "a call in flight is spread over its intervals"
"$statpage" run -f jsonl --interval 50ms -o "$tmp/n" -- "$w" nap 400 >/dev/null
check test "$(convert folded "$tmp/n" | grep -c ';nanosleep ')" -ge 3 "it is in one interval"
is "$(convert folded "$tmp/n" | awk '/;nanosleep / { t += $NF } END { printf "%.0f\n", t }')" \
	"$(jq -r 'select(.scope == "process" and .final) | .syscalls[] |
	select(.name == "nanosleep").total_ns' "$tmp/n")" "and adds up"
is "$(jq '.profiles | length' <(convert speedscope "$tmp/n"))" 1 "profiles of one thread"

begin "a call that never returns takes no time, and numbers of a slice are there once"
printf '%s\n' '{"schema":"statpage-runtime/1","scope":"process","reason":"interval","final":false,"pid":7,"comm":"p",
	"start_ns":0,"time_ns":100,"syscalls":[{"name":"read","nr":0,"abi":"x86_64","category":"file_io","count":6,
	"errors":1,"total_ns":250}],"in_flight":[{"tid":7,"abi":"x86_64","nr":231,"name":"exit_group","age_ns":90}]}' |
	tr -d '\n\t' >"$tmp/e"
echo >>"$tmp/e"
is "$(convert folded "$tmp/e")" "p;file_io;read 250" folded
is "$(convert perfetto "$tmp/e" | jq -c '[.traceEvents[] | select(.ph == "X")] |
	[length, (map(.args.count // 0) | add), (map(.args.spent_ns // 0) | add)]')" "[3,6,250]" "three tracks, one set of numbers"

begin "a number that went down is a restart"
row='"syscalls":[{"name":"read","nr":0,"abi":"x86_64","category":"file_io","count":%s,"errors":0,"total_ns":%s}]'
head='{"schema":"statpage-runtime/1","scope":"process","reason":"%s","final":%s,"pid":7,"comm":"p","start_ns":%s,"time_ns":%s,'
record()
{
	# shellcheck disable=SC2059
	printf "$head$row}\n" "$1" "$2" "$3" "$4" "$5" "$6"
}
{
	record interval false 0 100 3 30
	record interval false 0 200 5 50
	record interval false 0 300 1 10
	record exec false 0 400 2 15
	record exit true 400 500 4 40
} >"$tmp/r"
is "$(convert folded "$tmp/r" | tr '\n' ' ')" \
	"p;file_io;read 30 p;file_io;read 20 p;file_io;read 10 p;file_io;read 5 p;file_io;read 40 " deltas
is "$(convert speedscope "$tmp/r" | jq -c '[.profiles[] | [.startValue, .endValue]]')" \
	'[[0,400],[400,500]]' "two lives of one pid"

begin "csv: a row a record, under the names of the JSON"
convert csv "$tmp/l" >"$tmp/csv"
is "$(wc -l <"$tmp/csv")" $(($(wc -l <"$tmp/l") + 1)) rows
python3 - "$tmp/csv" "$tmp/l" >"$tmp/py" <<'PY'
import csv, json, sys
def at(o, path):
    for k in path.split("."):
        o = o.get(k) if isinstance(o, dict) else None
    return o
bad = 0
for row, line in zip(csv.DictReader(open(sys.argv[1])), open(sys.argv[2])):
    rec = json.loads(line)
    for key, text in row.items():
        v = at(rec, key)
        want = "" if v is None else ("true" if v else "false") if isinstance(v, bool) else str(v)
        if want != text:
            print(key, repr(want), repr(text))
            bad += 1
print("bad", bad)
PY
is "$(cat "$tmp/py")" "bad 0" "cells"
"$statpage" run -f jsonl -o "$tmp/odd" -- "$w" odd_name 1
is "$(convert csv "$tmp/odd" | python3 -c 'import csv, sys
print(len({len(r) for r in csv.reader(sys.stdin)}))')" 1 "columns of rows with odd names"

begin "a cut line, a foreign line, NUL bytes: skipped, counted, the rest is there"
convert folded "$tmp/l" >"$tmp/clean"
{
	echo "no record"
	tail -n 3 "$tmp/l" | head -c 700
	echo
	printf '{"schema":"somebody-elses/1"}\n[1,2]\n{"a":\n'
	cat "$tmp/l"
	printf 'a\0b\n{"schema":"statpage-runtime/1","pid"'
} >"$tmp/mess"
convert folded "$tmp/mess" >"$tmp/out"
is $? 0 status
is "$(cmp "$tmp/out" "$tmp/clean")" "" "output"
is "$(cat "$tmp/err")" "statpage: $tmp/mess: skipped 7 lines that are no whole record" warning

begin "a document cut anywhere never breaks the output"
size=$(wc -c <"$tmp/doc")
for i in $(seq 1 25); do
	head -c $((size * i / 26)) "$tmp/doc" >"$tmp/cut"
	for t in folded perfetto speedscope; do
		convert $t "$tmp/cut" >"$tmp/out"
		[ $? -le 1 ] || fail "status for $t cut at $i/26"
		[ $t = folded ] || jq -e . "$tmp/out" >/dev/null || fail "$t cut at $i/26 is no JSON"
	done
done

begin "a reformatted document reads the same, and so does standard input"
jq . "$tmp/doc" >"$tmp/pretty"
is "$(convert folded "$tmp/pretty" | cmp - <(convert folded "$tmp/doc"))" "" "pretty"
# shellcheck disable=SC2094 # both only read it
is "$(convert folded - <"$tmp/doc" | cmp - <(convert folded "$tmp/doc"))" "" "standard input"
is "$(jq -c '.processes[]' "$tmp/doc" | convert folded - | cmp - <(convert folded "$tmp/doc"))" "" "jsonl"

begin "nothing usable is a failure"
: >"$tmp/empty"
for f in "$tmp/empty" /etc/passwd "$statpage"; do
	for t in $formats; do
		convert "$t" "$f" >/dev/null
		is $? 1 "status of $t for $f"
	done
	check grep -q "no record of schema" "$tmp/err" "message for $f"
done
convert folded /no/such/file
is $? 1 "no such file"
is "$(cat "$tmp/err")" "statpage: /no/such/file: No such file or directory" message
convert xml "$tmp/doc"
is $? 2 "no such format"
convert folded "$tmp/doc" >/dev/full
is $? 1 "a full disk"

begin "2 GB in constant memory"
# Lives that end and lives that do not, as a long run leaves them.
for _ in $(seq 40); do jq -c . "$tmp/l"; done >"$tmp/block"
size=$(wc -c <"$tmp/block")
(
	i=0
	while [ $((i * size)) -lt "${CONVERT_BYTES:-2000000000}" ]; do
		cat "$tmp/block"
		i=$((i + 1))
	done
) | /usr/bin/env python3 -c '
import resource, subprocess, sys
r = subprocess.run([sys.argv[1], "convert", "--to", "folded", "-"], stdout=subprocess.DEVNULL)
print(r.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 32768)' \
	"$statpage" >"$tmp/out" 2>"$tmp/err"
is "$(cat "$tmp/out")" "0 True" "status, and less than 32 MiB"

finish
