#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks where `statpage run` puts its records, in which form, and what happens when they
# cannot be written.
. "$(dirname "$0")/tap.sh"

w=$native/workload
schema='all(.schema == "statpage-runtime/1")'

said()
{
	grep -q "$2" "$1" 2>/dev/null
}

begin "jsonl: a line a record, every process final once, the tree last"
"$statpage" run -f jsonl -o "$tmp/l" -- "$w" vforks 20
is "$(jq -s "$schema" "$tmp/l")" true "schema"
is "$(wc -l <"$tmp/l")" $((20 * 2 + 2)) "lines: exec and exit of 20, exit of the first, the tree"
is "$(jq -s '[.[] | select(.final and .scope == "process").pid] | length == (unique | length)' \
	"$tmp/l")" true "one final record a process"
is "$(tail -n 1 "$tmp/l" | jq -c '[.scope, .final, .processes_seen]')" '["tree",true,21]' "the last"
"$statpage" run -f jsonl -o "$tmp/l" -- true
is "$(wc -l <"$tmp/l")" 44 "a second run is appended"

begin "jsonl: --interval makes cumulative records until the final one"
"$statpage" run -f jsonl --interval 100ms -o "$tmp/i" -- "$w" stubborn 1 >/dev/null
check test "$(jq -s '[.[] | select(.reason == "interval")] | length' "$tmp/i")" -ge 3 "too few"
is "$(jq -s '[.[] | select(.scope == "process")] | (map(.lost.recorded) | . == sort) and
	(map(.seq) == [range(length)]) and (map(.start_ns) | unique | length == 1) and
	(last | .final) and ([.[] | select(.final)] | length == 1)' "$tmp/i")" true \
	"counts only grow, seq counts, one final record, the last"

for sig in USR1 RTMIN+3; do
	begin "jsonl: --signal $sig makes a snapshot, and the program does not see it"
	rm -f "$tmp/out"
	"$statpage" run -f jsonl --signal $sig -o "$tmp/s" -- "$w" stubborn 2 >"$tmp/out" &
	pid=$!
	eventually said "$tmp/out" ready
	kill -$sig $pid
	eventually said "$tmp/s" '"reason":"signal"'
	wait $pid
	is $? 0 status
	is "$(jq -s -c 'map([.reason, .final])' "$tmp/s")" \
		'[["signal",false],["exit",true],["exit",true]]' records
	rm -f "$tmp/s"
done

begin "summary: a snapshot signal prints the short form"
rm -f "$tmp/out"
"$statpage" run --signal USR1 -o "$tmp/s" -- "$w" stubborn 2 >"$tmp/out" &
pid=$!
eventually said "$tmp/out" ready
kill -USR1 $pid
wait $pid
is "$(grep -c '^reason signal' "$tmp/s")" 1 "short forms"
is "$(grep -c '^reason exit' "$tmp/s")" 2 "tree and process"

begin "json: one document, however many snapshot signals"
rm -f "$tmp/out"
"$statpage" run -f json --signal USR1 -o "$tmp/j" -- "$w" stubborn 2 >"$tmp/out" &
pid=$!
eventually said "$tmp/out" ready
for _ in $(seq 200); do kill -USR1 $pid; done
wait $pid
is $? 0 status
is "$(jq -s length "$tmp/j")" 1 "documents"
is "$(jq -c '[.scope, (.processes | length)]' "$tmp/j")" '["tree",1]' "what is in it"

begin "summary: stable lines, one table, sorted by total"
"$statpage" run -o "$tmp/t" -- "$w" forks 3
is "$(grep -c '^tree ' "$tmp/t")$(grep -c '^process ' "$tmp/t")" 14 "tree first, then 4 processes"
is "$(head -n 1 "$tmp/t" | cut -d' ' -f1)" tree "the first word"
is "$(awk '$NF == "clone" { print $1, $2; exit }' "$tmp/t")" "3 0" "the row of clone"
is "$(awk '/share% name$/ { on = 1; next } !NF { exit } on { print $3 }' "$tmp/t" | sort -c -g -r 2>&1)" \
	"" "order by total"

begin "a folder: one file a process, named by its pid, and the tree's"
mkdir "$tmp/d"
"$statpage" run -f json -o "$tmp/d" -- "$w" vforks 3
is "$(find "$tmp/d" -name '*.json' | wc -l)" 8 "files: two lives of three, one of the first, the tree"
is "$(jq -s "$schema" "$tmp"/d/*.json)" true "each one document"
pid=$(jq -r .pid "$tmp/d/tree.json")
is "$(jq -r .pid "$tmp/d/$pid.json")" "$pid" "the file of the first process"
"$statpage" run -f jsonl -o "$tmp/new/" -- "$w" vforks 3
is "$(find "$tmp/new" -name '*.jsonl' | wc -l)" 5 "files of a folder that was made"
is "$(cat "$tmp"/new/[0-9]*.jsonl | jq -s 'length')" 7 "their lines"

begin "argv and names of any bytes leave valid JSON"
"$statpage" run -f jsonl -o "$tmp/odd" -- "$w" odd_name 1
is "$(python3 -c 'import json, sys
print(all(json.loads(l) for l in open(sys.argv[1], encoding="utf-8", errors="strict")))' "$tmp/odd")" \
	True "strict UTF-8 and JSON"
is "$(jq -s -c '.[1].argv[0]' "$tmp/odd")" '"w\\xff\"\n\\"' "argv"
is "$(jq -s -c '.[0].comm' "$tmp/odd")" '"\\xc3(\u0001\"\\"' "name"

begin "output that cannot be opened is told before anything runs"
"$statpage" run -o /no/such/folder/f -- touch "$tmp/ran" 2>"$tmp/err"
is $? 1 status
check grep -q "/no/such/folder/f: No such file" "$tmp/err" "message"
check test ! -e "$tmp/ran" "the program ran"

begin "a full disk is told, and fails"
"$statpage" run -f json -o /dev/full -- true 2>"$tmp/err"
is $? 1 status
check grep -q "/dev/full: .*not written: No space left" "$tmp/err" "message"
"$statpage" run -f json -o /dev/full -- sh -c 'exit 9' 2>/dev/null
is $? 9 "the program's own status goes before"

begin "a full pipe that nobody reads does not hang the program: records are dropped and counted"
mkfifo "$tmp/fifo"
sleep 60 <>"$tmp/fifo" >/dev/null &
holder=$!
timeout 50 "$statpage" run -f jsonl -o "$tmp/fifo" -- "$w" forks 40 2>"$tmp/err"
is $? 1 status
check grep -q "records not written: nobody reads them" "$tmp/err" "message"
kill $holder
wait $holder 2>/dev/null

begin "a pipe that is read late does not hold the program up, and every line that is there is whole"
mkfifo "$tmp/late"
(
	exec 3<"$tmp/late"
	eventually said "$tmp/out" "done" || exit 1 # only then, read
	cat <&3 >"$tmp/got"
) &
reader=$!
"$statpage" run -f jsonl --interval 5ms -o "$tmp/late" -- "$w" stubborn 2 >"$tmp/out" 2>"$tmp/err"
is $? 1 "status: records were dropped"
check wait $reader "the program waited for the reader"
check grep -q "records not written: nobody reads them" "$tmp/err" "message"
check test "$(grep -c '^{.*}$' "$tmp/got")" -gt 5 "few records"
# What was cut has a line of its own.
is "$(grep -v '^$' "$tmp/got" | jq -R 'fromjson? | select(.schema)' | jq -s length)" \
	"$(grep -c '^{"schema".*}$' "$tmp/got")" "whole lines that are records"

begin "a limit to the size of files: records are lost and counted, the program's limit is its own"
for format in json jsonl summary; do
	rm -f "$tmp/limited"
	(
		ulimit -f 4
		"$statpage" run -f $format -o "$tmp/limited" -- sh -c \
			"$w forks 20; head -c 10000 /dev/zero >$tmp/much; echo \$?" 2>"$tmp/err" >"$tmp/pipe"
		echo $? >"$tmp/rc"
	)
	is "$(cat "$tmp/rc")" 1 "status of $format"
	check grep -q "records not written: File too large" "$tmp/err" "message of $format: $(cat "$tmp/err")"
	is "$(cat "$tmp/pipe")" $((128 + 25)) "the program's own SIGXFSZ"
done

begin "standard error that nobody reads: the exit status is the program's all the same"
mkfifo "$tmp/unread"
exec 9<>"$tmp/unread"
exec 8>"$tmp/unread" 9<&-
"$statpage" run -- sh -c 'exit 9' 2>&8
is $? 9 status
"$statpage" run -- true 2>&8
is $? 1 "status when only the records are lost"
exec 8>&-

begin "without a temporary file records wait in memory; a full one drops whole records, and says so"
if unshare -m true 2>/dev/null; then
	# By descriptor: the checkout may be below /tmp itself.
	unshare -m sh -c 'mount -t tmpfs -o ro none /tmp && exec "$@" 3>&1 >&2' - \
		/proc/self/fd/8 run -f json -o /dev/fd/3 -- /proc/self/fd/9 forks 5 8<"$statpage" 9<"$w" 2>"$tmp/err" >"$tmp/j"
	is $? 0 "status without ($(cat "$tmp/err"))"
	is "$(jq -c '[(.processes | length), .complete]' "$tmp/j")" '[6,true]' "the document without"
	unshare -m sh -c 'mount -t tmpfs -o size=64k none /tmp && exec "$@" 3>&1 >&2' - \
		/proc/self/fd/8 run -f json -o /dev/fd/3 -- /proc/self/fd/9 forks 200 8<"$statpage" 9<"$w" 2>"$tmp/err" >"$tmp/j"
	is $? 1 "status when full"
	check grep -qx "[^:]*: the temporary file: [0-9]* records not written: No space left on device" \
		"$tmp/err" "message: $(cat "$tmp/err")"
	is "$(jq -r '.lost.records_dropped + (.processes | length)' "$tmp/j")" 201 "records there and dropped"
	check test "$(jq '.processes | length' "$tmp/j")" -gt 5 "hardly any is there"
else
	skip "cannot mount here"
fi

begin "nothing is left behind"
"$statpage" run -f json -o "$tmp/j" -- sh -c 'ls -l /proc/self/fd | wc -l' >"$tmp/a"
sh -c 'ls -l /proc/self/fd | wc -l' >"$tmp/b"
is "$(cat "$tmp/a")" "$(cat "$tmp/b")" "descriptors in the program"
is "$("$statpage" run -o "$tmp/j" -- sh -c 'ulimit -n; grep -E "Sig(Blk|Ign)" /proc/self/status')" \
	"$(sh -c 'ulimit -n; grep -E "Sig(Blk|Ign)" /proc/self/status')" "limits, signal masks"

finish
