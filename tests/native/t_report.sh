#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks that the page of `statpage report` says what its inputs say, that a browser shows it
# without a fault, and that what is no input is refused. Screenshots are left in build/report.
. "$(dirname "$0")/tap.sh"
. tests/native/browser.sh

w=$native/workload
shots=build/report
check_page=tests/native/report_check.py

report()
{
	"$statpage" report "$@" 2>"$tmp/err"
}

# Lines of `show --json` of N samples around LOW ns, a few of them slow, on 4 CPUs: NAME BITS MISSED LOW
dist()
{
	awk -v low="$4" 'BEGIN { for (i = 0; i < 4000; i++)
		print i % 4, i % 40 ? low + (i * 7919) % (2 * low) : low * 1000 + i * 311 }' |
		"$native/dist_json" "$1" "$2" "$3"
}

work='ls / >/dev/null; "$0" threads 100; "$0" forks 3; "$0" nap 150; i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done'
"$statpage" run -f jsonl --interval 20ms -o "$tmp/run1" -- sh -c "$work" "$w" >/dev/null
"$statpage" run -f json -o "$tmp/doc" -- sh -c "$work" "$w" >/dev/null
"$statpage" run -f jsonl --interval 20ms -o "$tmp/run2" -- sh -c "ls /usr /bin >/dev/null; $work" "$w" >/dev/null
STATPAGE_RUNTIME_STATS=jsonl STATPAGE_STARTUP_TRACE=all STATPAGE_STATS_OUTPUT=$tmp/embed "$native/embed"
{ dist vfs_read 3 5 400; dist vfs_write 3 0 900; dist only_before 5 0 100; } >"$tmp/dist1"
{ dist vfs_read 3 0 500; dist vfs_write 2 0 900; } >"$tmp/dist2"

begin "every number of a run, with intervals and without, is that of the input"
for in in run1 doc embed; do
	report -o "$tmp/page" "$tmp/$in"
	is "$?$(cat "$tmp/err")" 0 "status of $in"
	is "$($check_page "$tmp/page" "$tmp/$in")" "" "$in"
done
check test "$(grep -o 'class=hit' "$tmp/page" | wc -l)" -ge 1 "no interval is drawn"

begin "the check can fail: other numbers are found out"
for edit in 's/"errors":0/"errors":1/' 's/"pid":/"pid":1/' 's/"p99_ns":/"p99_ns":1/' 's/"waiting_ns":/"waiting_ns":1/' \
	's/"age_ns":/"age_ns":1/' 's/"cost_ns":/"cost_ns":1/' 's/"user_ns":/"user_ns":1/'; do
	report -o "$tmp/page" "$tmp/run1"
	sed "$edit" "$tmp/run1" >"$tmp/other"
	check test -n "$($check_page "$tmp/page" "$tmp/other")" "not found: $edit"
done

begin "steps: the buckets of the thread that ended each, where they were measured"
jq -c '.phases[0].thread = {oncpu_ns: 1200000, runq_ns: 34567, sleep_ns: 0, dsleep_ns: 89, iowait_ns: 5100000}' \
	"$tmp/embed" >"$tmp/steps"
check test "$(jq '.phases | length' "$tmp/steps")" -gt 1 "steps of the program"
report -o "$tmp/page" "$tmp/steps"
is "$($check_page "$tmp/page" "$tmp/steps")" "" "numbers"
is "$(grep -o 'class=iowait x=19.49 width=80.51' "$tmp/page" | wc -l)" 1 "the part of I/O in the bar"
is "$(grep -o 'not measured' "$tmp/page" | wc -l)" $(($(jq '.phases | length' "$tmp/steps") - 1)) "the other steps"

begin "distributions: slots, quantiles with their bounds, rows by CPU, the ledger"
report -o "$tmp/page" "$tmp/dist1" "$tmp/dist2"
is "$?" 0 status
is "$($check_page "$tmp/page" "$tmp/dist1" "$tmp/dist2")" "" "numbers"
cat "$tmp/dist2" "$tmp/dist1" >"$tmp/twice"
report -o "$tmp/page" "$tmp/twice"
is "$(grep -c 'the last of 2 readings' "$tmp/page")" 2 "metrics that were read twice"
head -n 1 "$tmp/dist1" | sed 's/"count":[0-9]*,"sum.*"quantiles.*/"count":0,"quantiles":{},"slots":[]}/' >"$tmp/empty"
report -o "$tmp/page" "$tmp/empty"
is "$(grep -c 'No samples' "$tmp/page")" 1 "a metric without samples"

begin "before and after: what moved, by how much at least, and what did not"
cat "$tmp/run1" "$tmp/dist1" >"$tmp/before"
cat "$tmp/run2" "$tmp/dist2" >"$tmp/after"
report --compare -o "$tmp/compared.html" "$tmp/before" "$tmp/after"
is "$?" 0 status
is "$($check_page "$tmp/compared.html" "$tmp/before" "$tmp/after" --compare)" "" "numbers"
check grep -q 'only_before is there before only' "$tmp/compared.html" "a metric of one of them"
report --compare -o "$tmp/page" "$tmp/before" "$tmp/before"
is "$(grep -c 'data-moved=-\?1' "$tmp/page")" 0 "changes of an input to itself"
check test "$(grep -c 'data-moved=0' "$tmp/page")" -gt 20 "its verdicts"

begin "before and after of what cannot be compared says so"
for f in x y; do
	"$statpage" record -o "$tmp/$f" -p $$ --interval 50ms --for 150ms || fail "record"
done
report --compare -o "$tmp/page" "$tmp/x" "$tmp/y"
is "$? $(grep -c 'There is nothing to compare' "$tmp/page")" "0 1" "two recordings without distributions"
is "$(grep -c 'There is nothing to compare' "$tmp/compared.html")" 0 "what can be compared"

begin "a change within the slots' width is none, the next slot's is one"
for to in 1000 1023 1024 2000; do
	echo 0 1000 | "$native/dist_json" m 3 0 >"$tmp/x"
	echo 0 $to | "$native/dist_json" m 3 0 >"$tmp/y"
	report --compare -o "$tmp/page" "$tmp/x" "$tmp/y"
	sed -n 's/.*<th scope=row>p50<td.*data-moved=\([-0-9]*\).*/\1/p' "$tmp/page"
done | tr '\n' ' ' >"$tmp/moved"
is "$(cat "$tmp/moved")" "0 0 1 1 " "moved"
report --compare -o "$tmp/page" "$tmp/y" "$tmp/x"
is "$(sed -n 's/.*<th scope=row>p50<td.*data-moved=\([-0-9]*\).*/\1/p' "$tmp/page")" -1 "the other way round"

begin "what is missing is at the top: lost calls, missed samples, records cut off"
jq -c 'if .scope == "tree" then .complete = false | .lost.recorded -= 3 | .lost.table_full = 2 | .lost.recursion = 1 |
	.lost.records_dropped = 4 | .lost.in_flight_unlisted = 5 else . end' "$tmp/run1" >"$tmp/lossy"
grep -v '"scope":"process".*"final":true' "$tmp/lossy" >"$tmp/in"
echo '{"schema":"statpage-runtime/1","scope":"proc' >>"$tmp/in"
cat "$tmp/dist1" >>"$tmp/in"
report -o "$tmp/page" "$tmp/in"
is "$?" 0 status
sed -n '/<section id=missing/,/<\/section>/p' "$tmp/page" | sed 's/<[^>]*>//g; s/^[^:]*: //' >"$tmp/missing"
attempted=$(jq 'select(.scope == "tree").lost.attempted' "$tmp/lossy")
recorded=$(jq 'select(.scope == "tree").lost.recorded' "$tmp/lossy")
unfinished=$(grep '^{"schema.*}$' "$tmp/in" | jq -s '[.[] | select(.scope == "process")] |
	group_by([.pid, .start_ns]) | map(select(all(.[]; .reason != "exec" and (.final | not)))) | length')
lines=$(grep -nv '^{"schema.*}$' "$tmp/in" | head -n 1 | cut -d : -f 1)
is "$(tr -d , <"$tmp/missing" | tail -n +2)" "complete: false; of $attempted calls $recorded were recorded.
1 calls were made inside the recorder.
2 calls found the table full.
4 records were dropped.
5 calls in flight are not listed.
$unfinished processes have no final record: they went on or the input was cut.
vfs_read: complete: false; 5 samples were missed (instance 5).
1 lines are of no format that is known here or were cut; the first is line $lines." "the list"
check test "$(grep -n 'id=missing' "$tmp/page" | tail -n 1 | cut -d : -f 1)" -lt \
	"$(grep -n 'id=inputs' "$tmp/page" | cut -d : -f 1)" "it is not before the numbers"
is "$(cat "$tmp/err")" "statpage: $tmp/in: skipped 1 lines that are no whole record; the first is line $lines" warning
report -o "$tmp/page" "$tmp/run1"
is "$(grep -c 'Nothing: every call and every sample' "$tmp/page")" 1 "a whole input"

begin "names that others chose are text, whatever they are"
evil='</style></script><script>alert(1)</script><img src=x onerror="alert(2)">&amp;'"'"
printf -v odd 'bidi \xe2\x80\xae nul-like \x01 broken \xff \xed\xa0\x80 c1 \xc2\x85'
"$statpage" run -f jsonl -o "$tmp/evil" -- bash -c 'exec -a "$1" "$0" odd_name 1' "$w" "$evil$odd"
sed -i 's/"comm":"bash"/"comm":"<b onclick=1>"/' "$tmp/evil"
dist '<script>alert(3)</script>' 3 1 300 | sed 's/"running"/"<i>running"/' >>"$tmp/evil"
cp "$tmp/evil" "$tmp/<svg onload=alert(4)>"
report --compare -o "$tmp/evil.html" "$tmp/evil" "$tmp/<svg onload=alert(4)>"
is "$?" 0 status
is "$(grep -oE '<(script|img|b onclick|svg onload)' "$tmp/evil.html" | paste -sd ' ')" "<script" "elements"
is "$(python3 -c 'import sys
t = open(sys.argv[1], encoding="utf-8", errors="strict").read()
print(sorted({hex(ord(c)) for c in t if ord(c) < 32 and c not in "\n\t" or 0x7f <= ord(c) < 0xa0 or c == "\u202e"}))' \
	"$tmp/evil.html")" "[]" "characters that show nothing"
check grep -qF '\u{202e}' "$tmp/evil.html" "the sign that turns text is not shown as what it is"

"$statpage" record -o "$tmp/rec" --interval 50ms --for 300ms
report -o "$tmp/recorded.html" "$tmp/rec"
begin "a browser shows all of it: no fault, no request, valid HTML"
mkdir -p "$shots"
if browser_ready parse5@7.3.0 >"$tmp/log" 2>&1; then
	have=yes
	for page in compared evil recorded; do
		look tests/native/report.js "$(command -v chromium)" "$shots/$page" \
			"$tmp/$page.html" >"$tmp/seen.$page" 2>"$tmp/err"
		is "$(jq -c '[.errors, .requests, .invalid]' "$tmp/seen.$page")" '[[],[],[]]' "$page ($(cat "$tmp/err"))"
		check test -s "$shots/$page-360-dark-dist0.png" "no screenshot"
	done
else
	have=
	skip "cannot install one: $(tail -n 1 "$tmp/log")"
fi

begin "a browser fits it into 360 pixels, in light and in dark, with text that can be read"
if [ "$have" ]; then
	for page in compared recorded; do
		is "$(jq -c '[.looks[] | .width, .closed.wider, .opened.wider]' "$tmp/seen.$page")" \
			"[1280,0,0,1280,0,0,360,0,0,360,0,0]" "$page: wider than the screen"
		is "$(jq -c '[.looks[] | .closed.dark]' "$tmp/seen.$page")" "[false,true,false,true]" "$page: dark"
		is "$(jq '[.looks[] | .closed.contrast, .opened.contrast] | min >= 4.5' "$tmp/seen.$page")" true "$page: contrast"
	done
else
	skip "no browser"
fi

begin "a browser sorts by a click on a column, by Enter and by Space, and opens a lane by Enter"
if [ "$have" ]; then
	for c in Calls Failed p99; do
		is "$(jq -c ".sorts[\"$c\"][0] | [.sorted, .mine, ([.values[] | select(.) | tonumber] |
			. == (sort | reverse)), (.values | index(null) as \$n | \$n == null or all(.[\$n:][]; . == null))]" \
			"$tmp/seen.compared")" '["descending","descending",true,true]' "$c once"
		is "$(jq -c ".sorts[\"$c\"][1] | [.sorted, .mine, ([.values[] | select(.) | tonumber] | . == sort),
			(.values | index(null) as \$n | \$n == null or all(.[\$n:][]; . == null))]" \
			"$tmp/seen.compared")" '["ascending","ascending",true,true]' "$c twice"
	done
	is "$(jq -c '.sorts.Call | [.[0].mine, .[1].mine, .[0].values == (.[0].values | sort),
		.[1].values == (.[1].values | sort | reverse)]' "$tmp/seen.compared")" \
		'["ascending","descending",true,true]' "by keyboard"
	is "$(jq .sorts.opened "$tmp/seen.compared")" true "a lane"
else
	skip "no browser"
fi

begin "an input that cannot be used is told with its line, and no page is left"
mkdir "$tmp/out"
sed 's,statpage-runtime/1,statpage-runtime/2,' "$tmp/run1" >"$tmp/newer"
sed '2s/"count":1000,/"count":1001,/' "$tmp/dist1" >"$tmp/wrong"
sed '1s/\("slots":\[{"slot":[0-9]*,"low":\)[0-9]*/\11/' "$tmp/dist1" >"$tmp/bounds"
sed '1s/"bits":3/"bits":9/' "$tmp/dist1" >"$tmp/bits"
printf 'hello\n{"a":1}\n' >"$tmp/foreign"
: >"$tmp/nothing"
ours="expected records of statpage run (statpage-runtime/1), lines of statpage show --json, or a recording of statpage record"
while IFS='|' read -r file message; do
	echo old >"$tmp/out/page"
	report -o "$tmp/out/page" "$tmp/run1" "$file"
	is $? 1 "status of $file"
	is "$(cat "$tmp/err")" "statpage: $file: $message" "message of $file"
	is "$(ls "$tmp/out")$(cat "$tmp/out/page")" "pageold" "what is left after $file"
done <<EOF
/no/such/file|No such file or directory
$tmp|Is a directory
$tmp/foreign|line 1: $ours
$tmp/nothing|$ours
$tmp/newer|line 1: schema statpage-runtime/2: expected statpage-runtime/1; a newer statpage may read it
$tmp/wrong|line 2: count is 1001, but its slots hold 1000 samples
$tmp/bits|line 1: bits is 9, expected 0 to 5
EOF
report -o "$tmp/out/page" "$tmp/bounds"
is $? 1 "status of bounds"
check grep -q "bounds: line 1: slot [0-9]* of 3 bits is [0-9]* to [0-9]*, not what is written there$" "$tmp/err" \
	"message: $(cat "$tmp/err")"

begin "an output that cannot be written is told, and a page that is there stays"
report "$tmp/run1"
is $? 2 "status without -o"
is "$(head -n 1 "$tmp/err")" "statpage: expected -o FILE, where the page goes" "message without -o"
report -o "$tmp/out/page"
is "$?$(head -n 1 "$tmp/err")" "2statpage: expected the files to report on" "without an input"
echo '{}' >"$tmp/own"
"$statpage" report -o "$tmp/./own" "$tmp/own" 2>"$tmp/err"
is "$?$(head -n 1 "$tmp/err")" "2statpage: -o $tmp/./own: that is an input, expected another file" "onto its input"
is "$(cat "$tmp/own")" "{}" "the input"
report --compare -o "$tmp/out/page" "$tmp/run1"
is "$?$(head -n 1 "$tmp/err")" "2statpage: --compare expects two files, before and after, not 1" "--compare of one"
report -o /no/such/folder/page "$tmp/run1"
is "$?$(cat "$tmp/err")" "1statpage: /no/such/folder/page: No such file or directory" "no folder"
report -o "$tmp/out" "$tmp/run1"
is "$?$(cat "$tmp/err")" "1statpage: $tmp/out: Is a directory" "a folder"
report -o /dev/full "$tmp/run1"
is "$?$(cat "$tmp/err")" "1statpage: /dev/full: No space left on device" "a full disk"
(ulimit -f 8; trap '' XFSZ; report -o "$tmp/out/page" "$tmp/run1")
is "$?$(cat "$tmp/err")" "1statpage: $tmp/out/page: File too large" "a limit"
is "$(ls "$tmp/out")$(cat "$tmp/out/page")" "pageold" "what is left"

begin "a page goes to a file, through a link, to a pipe, and comes from standard input"
(umask 027; report -o "$tmp/out/page" "$tmp/run1")
is "$(stat -c %a "$tmp/out/page")" 640 "mode"
ln -s page "$tmp/out/link"
echo old >"$tmp/out/page"
report -o "$tmp/out/link" "$tmp/run1"
is "$(readlink "$tmp/out/link")$(head -n 1 "$tmp/out/page")" "page<!DOCTYPE html>" "a link"
report -o - - <"$tmp/run1" | sed "s,standard input,$tmp/run1,g" >"$tmp/piped"
is "$(cmp "$tmp/piped" "$tmp/out/page")" "" "standard input and output"

begin "a big input: bounded memory, and what has no lane is summed"
python3 - "$statpage" "$tmp/big.html" >"$tmp/out.py" 2>"$tmp/err" <<'PY'
import resource, subprocess, sys
row = ('{"name":"read","nr":0,"abi":"x86_64","category":"file_io","count":%d,"errors":0,"total_ns":%d,"min_ns":1,'
       '"max_ns":9,"p50_ns":1,"p90_ns":1,"p99_ns":1,"p999_ns":1,"on_cpu_ns":%d,"waiting_ns":%d}')
head = ('{"schema":"statpage-runtime/1","scope":"process","reason":"%s","final":%s,"pid":%d,"comm":"p","start_ns":%d,'
        '"time_ns":%d,"user_ns":%d,"system_ns":0,"argv":["p"],"engine":{"name":"x","split":"y"},"syscalls":[%s]}\n')
p = subprocess.Popen([sys.argv[1], "report", "-o", sys.argv[2], "-"], stdin=subprocess.PIPE)
lives, long = 30000, 20000
for i in range(lives):
    n = i + 1
    p.stdin.write((head % ("exit", "true", i, i * 10, i * 10 + 10, n, row % (1, 2 * n, n, n))).encode())
for t in range(1, long + 1):  # one that lives on, in so many intervals
    p.stdin.write((head % ("interval", "false", 99999, 5, 5 + t * 20, t, row % (t, 2 * t, t, t))).encode())
p.stdin.close()
p.wait()
print(p.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 100 * 1024)
PY
is "$(cat "$tmp/out.py")" "0 True" "status, and less than 100 MiB ($(cat "$tmp/err"))"
is "$(grep -o 'class=lane' "$tmp/big.html" | wc -l)" 64 "lanes"
is "$(grep -o 'data-k=others data-v=[0-9]*' "$tmp/big.html")" "data-k=others data-v=$((30001 - 64))" "others"
# The 63 longest, n = 29,938 to 30,000, and the one that lives on... is shorter than they: all of the rest.
sum=$((30000 * 30001 / 2 + 20000))
drawn=$(grep -o '<summary>.*data-k=cpu_ns data-v="[0-9]*"' "$tmp/big.html" | sed 's/.*data-k=cpu_ns data-v="\([0-9]*\)".*/\1/' |
	awk '{ s += $1 } END { printf "%.0f", s }')
rest=$(grep -o 'data-k=others.*data-k=cpu_ns data-v="[0-9]*"' "$tmp/big.html" | sed 's/.*data-k=cpu_ns data-v="\([0-9]*\)".*/\1/')
is "$((drawn + rest))" "$sum" "CPU time of all"
is "$(grep -o 'data-k=calls data-v="[0-9]*"' "$tmp/big.html")" "data-k=calls data-v=\"50000\"" "calls of all"

finish
