#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks statpage record and --replay: what is recorded is what is seen live, files that are cut short
# or are none of ours, and the messages for what cannot be.
. "$(dirname "$0")/tap.sh"

export LC_ALL=C.UTF-8 TZ=UTC
fleet=$native/fleet
work=$native/top_work
cc -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -pthread -o "$work" tests/native/top_work.c || exit 1
pid=''
trap '[ -z "$pid" ] || kill $pid 2>/dev/null; rm -rf "$tmp"' EXIT

record() { "$statpage" record -o "$tmp/f" --from "$tmp/k" "$@"; }
# The same in the background, as $pid, with messages in $tmp/out.
start()
{
	rm -f "$tmp/f" # an older one is not waited for
	"$statpage" record -o "$tmp/f" --from "$tmp/k" "$@" >"$tmp/out" 2>&1 &
	pid=$!
}
# Wait for it, which has got signal $1 (none: it ends by itself).
ended()
{
	[ -z "$1" ] || kill "-$1" "$pid"
	wait "$pid"
	is "$? $(cat "$tmp/out")" "0 " "status, SIG$1"
	pid=''
}
replay() { "$statpage" "$1" --replay "$tmp/f" "${@:2}"; }
# Lines of the recording: instants, and one by its number from 1.
instants()
{
	local n

	n=$(grep -cs '^{"time_ns"' "$tmp/f")
	echo "${n:-0}"
}
instant() { sed -n "$(($1 + 1))p" "$tmp/f"; }
has_instants() { [ "$(instants)" -ge "$1" ]; }

# Four threads of a process, as $pid; all of them are there when it is.
workload()
{
	rm -f "$tmp/tids"
	"$work" >"$tmp/tids" &
	pid=$!
	eventually test -s "$tmp/tids" || fail "no workload"
}

# Status, message, and nothing on standard output: said STATUS MESSAGE COMMAND...
said()
{
	local status=$1 message=$2
	shift 2
	"$statpage" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	is $? "$status" "status of $*"
	is "$(head -n 1 "$tmp/err")" "statpage: $message" "$*"
	is "$(wc -l <"$tmp/out")" 0 "output of $*"
}

mkdir "$tmp/k"
"$fleet" table 3 1 1000 >"$tmp/k/vfs_read"
"$fleet" table 5 2 500 >"$tmp/k/GAP-vfs_read"
cat >"$tmp/k/_nodes" <<'END'
vfs_read start vfs_read end return bits 3 by task via direct gap yes state running attempted 1003 recorded 1000 missed 2 filtered 0 stopped 0 inside 1 unpaired 0 missed-instance 2
pair start a end b bits 5 by cpu via kprobe gap no state stopped attempted 9 recorded 4 missed 0 filtered 2 stopped 3 inside 0 unpaired 7 note fprobe: this kernel has none
# direct is off: no reason
END

begin "a recording is lines of JSON: a header, instants at each interval, an end"
record --interval 100ms --for 500ms >"$tmp/out" 2>&1
is "$? $(cat "$tmp/out")" "0 " "status and output"
is "$(jq -r '.format // (if .time_ns then "instant" else .end end)' "$tmp/f" | uniq | xargs)" \
	"statpage-record instant duration" lines
# A busy machine may be late for some of them.
n=$(instants)
check test "$n" -ge 2 "too few instants"
check test "$n" -le 6 "too many instants"
is "$(head -n 1 "$tmp/f" | jq -c '[.format, .version, .host, .release, .machine, .clock, .interval_ns, .cpus]')" \
	"[\"statpage-record\",1,\"$(uname -n)\",\"$(uname -r)\",\"$(uname -m)\",\"monotonic\",100000000,$(getconf _NPROCESSORS_CONF)]" header
is "$(head -n 1 "$tmp/f" | jq -r .statpage)" "$("$statpage" --version | cut -d ' ' -f 2)" version
is "$(tail -n 1 "$tmp/f")" "{\"end\":\"duration\",\"instants\":$n}" end
boot=$(($(date +%s) - $(cut -d . -f 1 /proc/uptime)))
check test "$(($(head -n 1 "$tmp/f" | jq '.boot_realtime_ns / 1e9 | floor') - boot))" -ge -3 "boot time"
check test "$(($(head -n 1 "$tmp/f" | jq '.boot_realtime_ns / 1e9 | floor') - boot))" -le 3 "boot time"
is "$(jq -s 'map(select(.time_ns).time_ns) | (.[-1] - .[0]) >= 5e8 and (. == sort)' "$tmp/f")" true "500 ms of them"

begin "show --replay: slots, sums, ledger and CPUs are those of the module's table"
for m in vfs_read GAP-vfs_read; do
	sed -n 's/^slot \([0-9]*\) *CPUS.* count *\([0-9]*\) avg *\([0-9]*\) .*/[\1,\2,\3]/p' "$tmp/k/$m" >"$tmp/table"
	check test -s "$tmp/table" "no table"
	is "$(replay show --json "$m" | jq -c '.slots[] | [.slot, .count, .mean]')" "$(cat "$tmp/table")" "$m"
	is "$(replay show --json --cpu 0 "$m" | jq -c '.slots[] | [.slot, .count, .mean]')" "$(cat "$tmp/table")" "$m, CPU 0"
	is "$(replay show --json "$m" | jq .sum)" "$(sed -n 's/^# sum \([0-9]*\) .*/\1/p' "$tmp/k/$m")" "sum of $m"
	is "$(replay show --json --cpu 1 "$m" | jq -c '[.count, .slots]')" '[0,[]]' "$m, CPU 1"
done
replay show vfs_read >"$tmp/text"
is "$(head -n 2 "$tmp/text")" "$(printf '%s\n' \
	"vfs_read: time start vfs_read end return by task via direct clock tsc 2000000 kHz error 0.100 ppm, running" \
	"attempted 1003 recorded 1000 missed 2 (instance 2) inside 1")" head
is "$(tail -n +4 "$tmp/text" | awk '{ print $3, $4 }')" \
	"$(sed -n 's/.* CPUS.* count *\([0-9]*\) avg *\([0-9]*\) .*/\1 \2/p' "$tmp/k/vfs_read")" "rows"
is "$(replay show --json vfs_read GAP-vfs_read | jq -c '[.name, .bits, .missed]')" \
	"$(printf '%s\n' '["vfs_read",3,2]' '["GAP-vfs_read",5,1]')" "two at once"
for q in 0.5:p50 0.99:p99 1:max; do
	read -r low high _ <<<"$("$fleet" merge 3 "${q%:*}" "$tmp/k/vfs_read")"
	is "$(replay show --json vfs_read | jq -c ".quantiles.${q#*:} | [.low, .high]")" "[$low,$high]" "${q#*:}"
done
check grep -q "^p99 " <(replay show --quantiles vfs_read) "no quantiles"
check grep -q "p50$" <(replay show --plot vfs_read) "no plot"
is "$(sed -n 2p "$tmp/f" | jq -c '.distributions[] | del(.engine, .notes, .per_cpu) | select(.name == "vfs_read")')" \
	"$(replay show --json vfs_read)" "an element of distributions is show's line"

begin "any bytes come back as they were, and numbers of 64 bits"
printf '%s\n' "# bits 0 state stopped" "# time start a\"b\\c$(printf '\303\244\377\1')d end return" \
	"# attempted 18446744073709551615 recorded 3 missed 18446744073709551612 filtered 0 stopped 0 inside 0 missed-x 1" \
	"# sum overflow" "# a note$(printf '\200')" \
	"slot 64  CPU  3    count 3 avg 9223372036854775807 p 1.0" "slot 64  CPUS 1    count 3 avg 9223372036854775807 p 1.0" \
	>"$tmp/k/big"
record --for 1ms big || fail "status"
is "$(replay show big | head -n 3)" "$(printf '%s\n' "big: time start a\"b\\c$(printf '\303\244\377\1')d end return, stopped" \
	"attempted 18446744073709551615 recorded 3 missed 18446744073709551612 (x 1)" "a note$(printf '\200')")" head
is "$(replay show big | tail -n 1 | xargs)" "9223372036854775808 18446744073709551615 3 6148914691236517205 1.000000" row
is "$(instant 1 | jq -c '[.distributions[].name]')" '["big"]' "metrics that were not asked for"
rm "$tmp/k/big"

begin "--heatmap --replay: a line an instant, or an interval, with the samples that came in it"
start --interval 50ms
eventually has_instants 3 || fail "no instants"
"$fleet" table 3 1 3000 >"$tmp/.x" && mv "$tmp/.x" "$tmp/k/vfs_read"
n=$(instants)
eventually has_instants $((n + 3)) || fail "no more instants"
ended INT
is "$(tail -n 1 "$tmp/f")" "{\"end\":\"signal\",\"instants\":$(instants)}" end
replay show --heatmap vfs_read >"$tmp/map" || fail "status"
is "$(grep -c '^[0-9][0-9]:' "$tmp/map")" $(($(instants) - 1)) "lines"
is "$(awk '/^[0-9][0-9]:/ { n += $2 } END { print n }' "$tmp/map")" 2000 "samples"
is "$(grep -cE '^[0-9:]+ +2000 .* [0-9.]+ [um]s$' "$tmp/map")" 1 "all in one line"
is "$(grep -m 1 -oE '^[0-9][0-9]:[0-9:]+' "$tmp/map")" "$(date -d "@$(instant 2 | jq '.realtime_ns / 1e9 | floor')" +%T)" time
replay show --heatmap --interval 1h vfs_read >"$tmp/map" || fail "status"
is "$(grep -E '^[0-9][0-9]:' "$tmp/map" | awk '{ print $2 }')" 2000 "one line"
is "$(replay show --heatmap --count 2 vfs_read | grep -c '^[0-9][0-9]:')" 2 "--count"
# The same, with times that are known: a second apart, but for a little.
jq -c 'if .format then .interval_ns = 1000000000 else . end' "$tmp/f" | awk '/^{"time_ns"/ {
	sub(/"time_ns":[0-9]+/, "\"time_ns\":" (1000 + n) * 10 + (n % 3 - 1) "00000000"); n++ } { print }' >"$tmp/part"
n=$(instants)
for step in 1:$((n - 1)) 2:$((n / 2)) 3:$(((n + 1) / 3)) $((n + 5)):1; do
	"$statpage" show --heatmap --interval "${step%:*}s" --replay "$tmp/part" vfs_read >"$tmp/map" || fail "status"
	is "$(grep -c '^[0-9][0-9]:' "$tmp/map")" "${step#*:}" "lines of $n instants by ${step%:*} s"
	is "$(awk '/^[0-9][0-9]:/ { n += $2 } END { print n }' "$tmp/map")" 2000 "samples by ${step%:*} s"
done
is "$(replay show --heatmap --cpu 0 vfs_read | awk '/^[0-9][0-9]:/ { n += $2 } END { print n }')" 2000 "a CPU"

begin "SIGHUP ends it, but not where nohup said so"
start --interval 50ms
eventually has_instants 1 || fail "no instant"
ended HUP
is "$(tail -n 1 "$tmp/f" | jq -r .end)" signal end
rm -f "$tmp/f"
nohup "$statpage" record -o "$tmp/f" --from "$tmp/k" --interval 50ms >"$tmp/out" 2>/dev/null &
pid=$!
eventually has_instants 1 || fail "no instant"
kill -HUP $pid
n=$(instants)
eventually has_instants $((n + 2)) || fail "it ended"
ended TERM

begin "a metric that comes later is in the recording from then on"
mv "$tmp/k/vfs_read" "$tmp/later"
start --interval 50ms
eventually has_instants 2 || fail "no instants"
mv "$tmp/later" "$tmp/k/vfs_read"
n=$(instants)
eventually has_instants $((n + 3)) || fail "no more instants"
ended TERM
is "$(instant 1 | jq -c '[.distributions[].name]')" '["GAP-vfs_read"]' "at first"
is "$(replay show --json vfs_read | jq .count)" 3000 "at last"
check test "$(replay show --heatmap vfs_read | grep -c '^[0-9][0-9]:')" -ge 1 "the heat map begins with it"

begin "ls --replay"
is "$(replay ls)" "$(printf '%s\n' \
	"vfs_read                 vfs_read..return by task via direct (kmod) with gap, running: attempted 1003 recorded 1000 missed 2 (instance 2) inside 1" \
	"pair                     a..b by cpu via kprobe (kmod), stopped: attempted 9 recorded 4 missed 0 filtered 2 stopped 3 unpaired 7 [fprobe: this kernel has none]" \
	"(direct is off: no reason)")" ls
record --for 1ms GAP-vfs_read || fail "status"
is "$(replay ls | cut -d ' ' -f 1 | xargs)" "vfs_read (direct" "of one metric its node"

begin "both engines: nodes of each, and the module's metric of a name that both have"
head -n 1 "$tmp/f" >"$tmp/two"
instant 1 | jq -c '.dist_engines = ["kmod", "bpf"] |
	.distributions += [(.distributions[0] | .engine = "bpf" | .state = "stopped"),
		(.distributions[0] | .engine = "bpf" | .name = "other" | .notes = "fallback x\n")] |
	.nodes += [.nodes[0] | .engine = "bpf" | .name = "other"]' >>"$tmp/two"
is "$("$statpage" show --replay "$tmp/two" --json GAP-vfs_read other 2>"$tmp/err" | jq -c '[.name, .state]')" \
	"$(printf '%s\n' '["GAP-vfs_read","running"]' '["other","running"]')" metrics
is "$(cat "$tmp/err")" "statpage: $tmp/two: has no end: it was cut short, or is still being written" note
is "$("$statpage" show --replay "$tmp/two" other 2>/dev/null | sed -n 3p)" "fallback x" notes
is "$("$statpage" ls --replay "$tmp/two" 2>/dev/null | grep -o '^[a-z_]* \|([a-z]*)' | xargs)" "vfs_read (kmod) other (bpf)" nodes

begin "a file that is cut short replays up to its last whole instant, wherever the cut is"
rm -f "$tmp/f"
for n in 1 2 3; do
	"$fleet" table 3 1 ${n}000 >"$tmp/k/vfs_read"
	record --for 1ms vfs_read
	instant 2 >"$tmp/i$n"
	head -n 1 "$tmp/f" >"$tmp/head"
done
cat "$tmp/head" "$tmp/i1" "$tmp/i2" "$tmp/i3" >"$tmp/whole"
echo '{"end":"signal","instants":3}' >>"$tmp/whole"
one=$(wc -c <"$tmp/i1") two=$(wc -c <"$tmp/i2") three=$(wc -c <"$tmp/i3") head=$(wc -c <"$tmp/head")
is "$("$statpage" show --replay "$tmp/whole" --json vfs_read 2>&1 | jq .count)" 3000 "the whole file"
# Bytes that are left, what the last instant is, and the line that is cut (0: none).
for cut in "$((head + one + two + three + 29)) 3000 5" "$((head + one + two + three)) 3000 0" \
	"$((head + one + two + three - 1)) 2000 4" "$((head + one + two + three / 2)) 2000 4" \
	"$((head + one + two + 1)) 2000 4" "$((head + one + two)) 2000 0" "$((head + one + 10)) 1000 3" "$((head + one)) 1000 0"; do
	read -r bytes count line <<<"$cut"
	head -c "$bytes" "$tmp/whole" >"$tmp/cut"
	is "$("$statpage" show --replay "$tmp/cut" --json vfs_read 2>"$tmp/err" | jq .count)" "$count" "$bytes bytes"
	if [ "$line" = 0 ]; then
		note="has no end: it was cut short, or is still being written"
	else
		note="cut short in line $line: what follows the last whole instant is left out"
	fi
	is "$(cat "$tmp/err")" "statpage: $tmp/cut: $note" "note of $bytes bytes"
	is "$("$statpage" show --replay "$tmp/cut" --heatmap vfs_read 2>"$tmp/err" | grep -c '^[0-9][0-9]:')" \
		$((count / 1000 - 1)) "heat map of $bytes bytes"
	is "$(cat "$tmp/err")" "statpage: $tmp/cut: $note" "note of the heat map of $bytes bytes"
done
for bytes in $((head + one - 1)) $((head + 1)) "$head"; do
	head -c "$bytes" "$tmp/whole" >"$tmp/cut"
	said 1 "$tmp/cut: there is no whole instant in it" show --replay "$tmp/cut" vfs_read
	said 1 "$tmp/cut: there is no whole instant in it" show --heatmap --replay "$tmp/cut" vfs_read
done
head -c $((head - 1)) "$tmp/whole" >"$tmp/cut"
said 1 "$tmp/cut: cut short in its first line: there is no instant" show --replay "$tmp/cut" vfs_read
head -c 20 "$tmp/whole" >"$tmp/cut"
said 1 "$tmp/cut: not a recording of statpage record" show --replay "$tmp/cut" vfs_read
: >"$tmp/cut"
said 1 "$tmp/cut: empty, expected a recording of statpage record" show --replay "$tmp/cut" vfs_read
# What a crash may leave of the last block.
{ head -c $((head + one)) "$tmp/whole"; head -c 4096 /dev/zero; } >"$tmp/cut"
is "$("$statpage" show --replay "$tmp/cut" --json vfs_read 2>/dev/null | jq .count)" 1000 "zeros at the end"

begin "a recorder that is killed leaves what it had, and a full disk is said"
start --interval 20ms
eventually has_instants 3 || fail "no instants"
kill -KILL $pid
wait $pid 2>/dev/null
pid=''
is "$(replay show --json vfs_read 2>"$tmp/err" | jq .count)" 3000 "after SIGKILL"
is "$(cat "$tmp/err")" "statpage: $tmp/f: has no end: it was cut short, or is still being written" note
said 1 "/dev/full: No space left on device; 0 instants are recorded" record -o /dev/full --for 1ms
rm -f "$tmp/f" "$tmp/f.old"
# A file may have so many blocks of 1024 bytes.
(ulimit -f 1; trap '' XFSZ; record --for 1ms) >"$tmp/out" 2>&1
is "$? $(cat "$tmp/out")" "1 statpage: $tmp/f: File too large; 0 instants are recorded" "no room for one"
check test ! -e "$tmp/f" "something is left"
size=$(($(wc -c <"$tmp/whole") * 5 / 4 / 1024))
(ulimit -f $size; trap '' XFSZ; record --interval 10ms vfs_read) >"$tmp/out" 2>&1
is "$?" 1 "status"
n=$(instants)
is "$(cat "$tmp/out")" "statpage: $tmp/f: File too large; $n instants are recorded" "room for some"
is "$(tail -c 1 "$tmp/f" | od -An -tx1 | xargs)" 0a "whole lines are left"
is "$(replay show --json vfs_read 2>/dev/null | jq .count)" 3000 "they replay"

begin "a file that is there becomes FILE.old, as with perf record"
rm -f "$tmp/f" "$tmp/f.old"
echo old >"$tmp/f"
record --for 1ms || fail "status"
is "$(cat "$tmp/f.old")" old "FILE.old"
before=$(cat "$tmp/f")
record --for 1ms || fail "status"
is "$(cat "$tmp/f.old")" "$before" "FILE.old, the next time"
: >"$tmp/f"
record --for 1ms || fail "status"
is "$(cat "$tmp/f.old")" "$before" "an empty file is not kept"
said 1 "$tmp/k/nothere: No such file or directory" record -o "$tmp/f" --from "$tmp/k" nothere
is "$(cat "$tmp/f.old")" "$before" "a recording that does not begin"
mkdir "$tmp/g" "$tmp/g.old" && echo x >"$tmp/h" && mkdir "$tmp/h.old"
said 1 "$tmp/g: Is a directory" record -o "$tmp/g" --for 1ms
said 1 "$tmp/h: cannot become $tmp/h.old: Is a directory" record -o "$tmp/h" --for 1ms
is "$(cat "$tmp/h")" x "the file"

begin "through a pipe"
"$statpage" record -o - --from "$tmp/k" --for 1ms | "$statpage" show --json --replay - vfs_read >"$tmp/out" || fail "status"
is "$(jq .count "$tmp/out")" 3000 count

begin "threads: of processes by pid, until they have ended"
workload
record --interval 50ms -p $pid -p $$ -p $pid --for 200ms || fail "status"
is "$(instant 1 | jq -c '[.threads[].pid] | unique')" "$(printf '%s\n' $pid $$ | sort -n | jq -sc .)" "pids"
is "$(instant 1 | jq -c "[.threads[] | select(.pid == $pid).comm] | sort")" '["sleeper","spinner","switcher","threads"]' names
watched=$pid
start --interval 50ms -p $watched
eventually has_instants 2
kill $watched
wait $watched 2>/dev/null
ended ''
is "$(tail -n 1 "$tmp/f" | jq -r .end)" processes "end"
is "$(instant "$(instants)" | jq '.threads | length')" 0 "the last instant"

begin "top --replay --json: totals are those of each instant, and intervals their differences"
workload
watched=$pid
"$statpage" record -o "$tmp/f" --from "$tmp/k" --interval 50ms -p $watched -p $$ --for 400ms || fail "status"
replay top --json >"$tmp/reports" 2>&1 || fail "status of top"
is "$(wc -l <"$tmp/reports")" $(($(instants) - 1)) "reports"
# Each instant but the first with the one before it, as top would have it.
jq -s -c 'map(select(.time_ns)) | [.[1:], .[:-1]] | transpose[] | . as [$now, $old] | $now | {time_ns, realtime_ns,
	interval_ns: ($now.time_ns - $old.time_ns),
	threads: [.threads | sort_by(.pid, .tid)[] | . as $t | ($old.threads[] | select(.tid == $t.tid and .epoch == $t.epoch)) as $o | del(.epoch) |
		.interval = ({wall_ns: ($t.time_ns - $o.time_ns)} + ($t.total | with_entries(.value -= $o.total[.key] | select(.value >= 0))))],
	cpus: [.cpu | .source, .all, (.cpus[] | select(.online) | del(.online))],
	user_ns: (.cpu.all.user_ns - $old.cpu.all.user_ns),
	distributions: [.distributions[] | [.name, .missed, .count, .quantiles.p99.value]]}' "$tmp/f" |
	jq -S -c . >"$tmp/expected"
jq -S -c '{time_ns, realtime_ns, interval_ns, threads: [.threads[] | del(.interval.off_ns)],
	cpus: [.cpus | .source, .all.total, (.online[] | {cpu} + .total)], user_ns: .cpus.all.interval.user_ns,
	distributions: [.distributions.metrics[] | [.name, .missed, .total.count, .total.p99_ns]]}' "$tmp/reports" >"$tmp/got"
check test -s "$tmp/expected" "nothing is expected"
is "$(diff <(jq . "$tmp/expected") <(jq . "$tmp/got") | head -n 10)" "" "reports"
is "$(jq -c '.engines' "$tmp/reports" | uniq)" "$(head -n 1 "$tmp/f" | jq -c .thread_engines)" engines
is "$(jq -c '.distributions.engine' "$tmp/reports" | uniq)" '"kmod"' "engine of distributions"
is "$(replay top --json --count 2 | wc -l)" 2 "--count"
is "$(replay top --json --interval 1h | jq -c '[.interval_ns, .time_ns]')" \
	"$(jq -s -c 'map(select(.time_ns).time_ns) | [.[-1] - .[0], .[-1]]' "$tmp/f")" "--interval beyond the end"
is "$(replay top --json -p $watched | jq -c '.threads[].pid' | uniq)" $watched "-p"
is "$(replay top --once --json)" "$(tail -n 1 "$tmp/reports")" "--once: the last interval"
replay top --once >"$tmp/text"
is "$(sed -n 's/^\([0-9]* threads\),.*/\1/p' "$tmp/text")" "$(tail -n 1 "$tmp/reports" | jq '.threads | length') threads" "tables"
kill $watched
wait $watched 2>/dev/null
pid=''

begin "top --replay: a process that comes later and ends before the end"
sleep 100 &
stays=$!
workload
rm -f "$tmp/f" # an older one is not waited for
"$statpage" record -o "$tmp/f" --interval 50ms -p $pid -p $stays &
recorder=$!
eventually has_instants 3
kill $pid
n=$(instants)
eventually has_instants $((n + 3))
kill -TERM $recorder
wait $recorder
kill $stays
# As if it had not been there at first.
jq -c "if .threads and (.time_ns == $(instant 1 | jq .time_ns)) then .threads |= map(select(.pid != $pid)) else . end" "$tmp/f" >"$tmp/part"
said_last="statpage: process $pid has ended"
"$statpage" top --json --replay "$tmp/part" -p $pid >"$tmp/reports" 2>"$tmp/err"
is "$? $(cat "$tmp/err")" "0 $said_last" "status and message"
check test "$(jq -c '.threads | length' "$tmp/reports" | head -n 1)" = 4 "its threads"
said 1 "no process of the recording has pid 4194303" top --once --replay "$tmp/part" -p 4194303
"$statpage" top --once --json --replay "$tmp/part" -p $pid >"$tmp/o" 2>"$tmp/err"
# The last instant that has it, less the one before; and how long that was before the end.
last=$(jq -s "[.[] | select([.threads[]?.pid] | any(. == $pid)).time_ns] | last" "$tmp/part")
end=$(jq -s 'map(select(.time_ns).time_ns) | last' "$tmp/part")
is "$(jq -c '[.time_ns, (.threads | length)]' "$tmp/o")" "[$last,4]" "--once -p of a process that has ended"
is "$(cat "$tmp/err")" "statpage: process $pid had ended: this is $(awk "BEGIN { printf \"%.3f\", ($end - $last) / 1e9 }") s before the end of the recording" \
	"note on it"
pid=''

begin "top --once --replay: a recording of a process that has ended shows the last that there was of it"
sleep 0.3 &
"$statpage" record -o "$tmp/ended" --interval 50ms -p $! || fail "record"
"$statpage" top --once --json --replay "$tmp/ended" >"$tmp/o" 2>"$tmp/err"
is "$? $(jq -c "[.threads[].pid]" "$tmp/o")" "0 [$!]" "the process"
is "$(jq .time_ns "$tmp/o")" "$(jq -s 'map(select(.threads and .threads != []).time_ns) | last' "$tmp/ended")" "which instant"
check grep -qE '^statpage: no thread is left at the end of the recording: this is 0\.[0-9]{3} s before it$' "$tmp/err" \
	"note: $(cat "$tmp/err")"
is "$("$statpage" top --json --replay "$tmp/ended" 2>&1 | tail -n 1 | jq '.threads | length')" 0 "the last report of all"

begin "two recordings in one file are said, and taken for neither"
cat "$tmp/ended" "$tmp/f" >"$tmp/both"
second=$(($(wc -l <"$tmp/ended") + 1))
said 1 "$tmp/both: line $second: another recording begins: expected one in a file" ls --replay "$tmp/both"
said 1 "$tmp/both: line $second: another recording begins: expected one in a file" top --once --replay "$tmp/both"
"$statpage" top --json --replay "$tmp/both" >"$tmp/o" 2>"$tmp/err"
is "$? $(cat "$tmp/err") $(wc -l <"$tmp/o")" \
	"1 statpage: $tmp/both: line $second: another recording begins: expected one in a file $((second - 4))" "those of the first"
{ head -n 2 "$tmp/ended"; cat "$tmp/f"; } >"$tmp/both" # the first was cut short
said 1 "$tmp/both: line 3: another recording begins: expected one in a file" ls --replay "$tmp/both"
{ cat "$tmp/ended"; echo '{"x":1}'; } >"$tmp/both"
said 1 "$tmp/both: line $second: expected nothing behind the end" ls --replay "$tmp/both"
{ head -n 2 "$tmp/f"; tail -n 1 "$tmp/f"; } >"$tmp/part"
said 1 "there is one instant in the recording: top shows what happened between two" top --once --replay "$tmp/part"
said 1 "there is one instant in the recording: top shows what happened between two" top --json --replay "$tmp/part"
head -c -60 "$tmp/f" >"$tmp/part"
"$statpage" top --json --replay "$tmp/part" >"$tmp/reports" 2>"$tmp/err"
is "$? $(cut -d : -f 3 <"$tmp/err" | cut -d ' ' -f 1-4)" "0  cut short in" "a file that is cut short"
"$statpage" top --once --replay "$tmp/part" >"$tmp/o" 2>"$tmp/err2"
is "$? $(cat "$tmp/err2")" "0 $(cat "$tmp/err")" "--once of a file that is cut short"
check test -s "$tmp/reports" "no reports"
said 2 "--engine and --from are for this machine, not for a recording" top --once --replay "$tmp/f" --engine proc
said 2 "--engine and --from are for this machine, not for a recording" top --once --replay "$tmp/f" --from "$tmp/k"
said 2 "--once of a recording is its last two instants: leave --interval out" top --once --replay "$tmp/f" --interval 1s
said 2 "standard output is no terminal: the live view needs one, --once and --json do not" top --replay "$tmp/f"
said 1 "$tmp/none: No such file or directory" top --once --replay "$tmp/none"

begin "cpu --replay: the page of each instant, or why there is none"
page() { echo "{\"user_ns\":$1,\"nice_ns\":20000000,\"system_ns\":30000000,\"idle_ns\":$2,\"iowait_ns\":0,\"irq_ns\":0,\"softirq_ns\":0,\"steal_ns\":0,\"guest_ns\":0,\"guest_nice_ns\":10000000}"; }
# CPU 1 cannot be, CPU 2 is offline.
cpus() { jq -c -n --argjson a "$(page "$1" "$2")" --argjson t "$3" '{source: "coarse_stat_fs", update_mono_ns: $t, period_us: 500,
	tick_ns: 4000000, nr_updates: 7, nr_corrected: 1, all: $a, cpus: [({cpu: 0, online: true} + $a), ({cpu: 2, online: false} + $a)]}'; }
{
	head -n 1 "$tmp/f"
	for at in 1 2 3; do
		jq -c -n --argjson cpu "$(cpus ${at}00000000 ${at}0000000 ${at}000000000)" --argjson t ${at}000000000 \
			'{time_ns: $t, realtime_ns: $t, cpu: $cpu, threads: []}'
	done
	echo '{"end":"signal","instants":3}'
} >"$tmp/part"
is "$("$statpage" cpu --replay "$tmp/part")" "$(printf '%s\n' "cpu  30 2 3 3 0 0 0 0 0 1" "cpu0 30 2 3 3 0 0 0 0 0 1")" "at its end"
is "$("$statpage" cpu --json --replay "$tmp/part")" "$(cpus 300000000 30000000 3000000000 | jq -c 'del(.source)')" "--json"
is "$("$statpage" cpu --json --watch --replay "$tmp/part" | jq -c .update_mono_ns | xargs)" "2000000000 3000000000" "--watch --json"
"$statpage" cpu --watch --replay "$tmp/part" >"$tmp/text" || fail "status"
is "$(grep -c '^percent .* of 1.000 s$' "$tmp/text") $(grep -cE '^cpu0? +90\.9 +0\.0 +0\.0 +9\.1( +0\.0){6}$' "$tmp/text")" "2 4" "--watch"
is "$("$statpage" cpu --watch 2 --replay "$tmp/part" | grep -c 'of 2.000 s$')" 1 "--watch SEC"
is "$("$statpage" cpu --watch --count 1 --replay "$tmp/part" | grep -c '^percent')" 1 "--count"
jq -c 'if .cpu then .cpu.source = "/proc/stat" else . end' "$tmp/part" >"$tmp/bad"
for watch in "" --watch; do
	# shellcheck disable=SC2086 # words
	said 1 "$tmp/bad: line $([ -n "$watch" ] && echo 2 || echo 4): the cpu page was not recorded: coarse_stat_fs was not mounted" cpu --replay "$tmp/bad" $watch
done
jq -c 'if .cpu then .cpu = {absent: "no reason"} else . end' "$tmp/part" >"$tmp/bad"
said 1 "$tmp/bad: line 4: no CPU times were recorded: no reason" cpu --replay "$tmp/bad"
jq -c 'if .cpu then del(.cpu.cpus[0].irq_ns) else . end' "$tmp/part" >"$tmp/bad"
said 1 "$tmp/bad: line 4: cpu: not CPU times of this format" cpu --replay "$tmp/bad"

begin "report: the distributions of a recording at its end, and of two the comparison"
"$fleet" table 3 1 3000 >"$tmp/k/vfs_read"
record --for 1ms || fail "status"
for m in GAP-vfs_read vfs_read; do
	replay show --json $m
	replay show --json --cpu 0 $m
done >"$tmp/lines"
"$statpage" report -o "$tmp/page" "$tmp/f" >"$tmp/out" 2>&1
is "$? $(cat "$tmp/out")" "0 " "status"
is "$(tests/native/report_check.py "$tmp/page" "$tmp/lines")" "" "numbers"
check grep -q kmod "$tmp/page" "no engine"
sed '$d' "$tmp/f" >"$tmp/part"
"$statpage" report -o "$tmp/page" "$tmp/part" 2>"$tmp/err" || fail "status without an end"
is "$(cat "$tmp/err")" "statpage: $tmp/part: has no end: it was cut short, or is still being written" "note"
is "$(tests/native/report_check.py "$tmp/page" "$tmp/lines")" "" "numbers without an end"
head -c -100 "$tmp/f" >"$tmp/part"
"$statpage" report -o "$tmp/page" "$tmp/part" 2>"$tmp/err" || fail "status of a file that is cut short"
is "$(cat "$tmp/err")" "statpage: $tmp/part: skipped 1 lines that are no whole record; the first is line 3" "note"
is "$(tests/native/report_check.py "$tmp/page" "$tmp/lines")" "" "numbers of the instant before"
"$statpage" report -o "$tmp/page" "$tmp/two" 2>"$tmp/err" || fail "status with both engines"
check grep -q other "$tmp/page" "no metric of the engine bpf"
is "$(grep -oE '<h4>[^<]*|Engine [a-z]*' "$tmp/page" | xargs)" "<h4>GAP-vfs_read Engine kmod <h4>other Engine bpf" "of a name that both have, show's"
"$statpage" report --compare -o "$tmp/page" "$tmp/f" "$tmp/lines" || fail "--compare"
rm "$tmp/page"
sed '1s/"version":1/"version":2/' "$tmp/f" >"$tmp/bad"
said 1 "$tmp/bad: version 2, this statpage reads 1" report -o "$tmp/page" "$tmp/bad"
head -n 1 "$tmp/f" >"$tmp/bad"
said 1 "$tmp/bad: there is no whole instant in it" report -o "$tmp/page" "$tmp/bad"
jq -c 'if .distributions then del(.distributions) + {no_distributions: "no module"} else . end' "$tmp/f" >"$tmp/part"
grep -v '^{"time_ns"' "$tmp/part" >"$tmp/bad"
sed -i "1r /dev/stdin" "$tmp/bad" <<<"$(sed -n 2p "$tmp/part")"
said 1 "$tmp/bad: no distributions were recorded (no module), and no thread in two instants" report -o "$tmp/page" "$tmp/bad"
jq -c 'if .threads then .threads = [] else . end' "$tmp/part" >"$tmp/bad"
said 1 "$tmp/bad: no distributions were recorded (no module), and no thread in two instants" report -o "$tmp/page" "$tmp/bad"
cat "$tmp/f" "$tmp/f" >"$tmp/bad"
said 1 "$tmp/bad: line $(($(wc -l <"$tmp/f") + 1)): another recording begins: expected one in an input" report -o "$tmp/page" "$tmp/bad"
sed 2p "$tmp/f" >"$tmp/bad"
said 1 "$tmp/bad: line 3: time_ns is $(instant 1 | jq .time_ns), expected more than the instant before has" report -o "$tmp/page" "$tmp/bad"
sed '1s/"thread_engines":\[[^]]*\]/"thread_engines":[]/' "$tmp/f" >"$tmp/bad"
said 1 "$tmp/bad: line 1: no engines of threads in its first line" report -o "$tmp/page" "$tmp/bad"
"$statpage" run -f jsonl -o "$tmp/run" -- true
cat "$tmp/f" "$tmp/run" >"$tmp/bad"
said 1 "$tmp/bad: line $(($(wc -l <"$tmp/f") + 1)): a record of a run in a recording: expected each in an input of its own" report -o "$tmp/page" "$tmp/bad"
cat "$tmp/run" "$tmp/f" >"$tmp/bad"
said 1 "$tmp/bad: line $(($(wc -l <"$tmp/run") + 1)): a recording behind records of runs: expected each in an input of its own" report -o "$tmp/page" "$tmp/bad"
jq -c 'if .distributions then .distributions[1].per_cpu[0].slots[0] = [9999, 1, 1] else . end' "$tmp/f" >"$tmp/bad"
said 1 "$tmp/bad: line 3: vfs_read: not a distribution of this format" report -o "$tmp/page" "$tmp/bad"
check test ! -e "$tmp/page" "a page is left"

begin "report: a recording's timeline is what threads did between its instants, by process and thread"
sleep 100 &
ends=$!
workload
watched=$pid
"$statpage" record -o "$tmp/f" --from "$tmp/k" --interval 50ms -p $watched -p $$ -p $ends --for 700ms &
recorder=$!
eventually has_instants 4 || fail "no instants"
# A thread ends, a process ends, another one begins.
kill -USR1 $watched
kill $ends
wait $recorder || fail "status"
kill $watched
wait $watched $ends 2>/dev/null
pid=''
check test "$(instant 1 | jq '.threads | length')" -gt "$(instant "$(instants)" | jq '.threads | length')" "no thread has ended"
"$statpage" report -o "$tmp/page" "$tmp/f" >"$tmp/out" 2>&1
is "$? $(cat "$tmp/out")" "0 " "status"
is "$(tests/native/report_check.py "$tmp/page" "$tmp/f")" "" "numbers"
is "$(grep -o "data-pid=$watched .*data-tid=[0-9]*" "$tmp/page" | wc -l)" 4 "threads of the process"
# The same in jq, of the thread that runs: from its first look to its last.
is "$(grep -o '<span class=who>spinner.*data-k=cpu_ns data-v="[0-9]*"' "$tmp/page" | sed 's/.*data-v="\([0-9]*\)"/\1/')" \
	"$(jq -s '[.[].threads[]? | select(.comm == "spinner").total.oncpu_ns] | .[-1] - .[0]' "$tmp/f")" "CPU time of the spinner"
check grep -q '<a href="#time0">Timeline</a><a href="#dist0">' "$tmp/page" "no way to the timeline"
for edit in 's/"oncpu_ns":/&1/g' 's/"min_flt":/&1/g' 's/"tid":/&1/g' 's/"epoch":/&1/g' 's/"comm":"sp/&x/g'; do
	sed "3,\$$edit" "$tmp/f" >"$tmp/bad"
	check test -n "$(tests/native/report_check.py "$tmp/page" "$tmp/bad")" "the check does not see $edit"
done
jq -c 'if .distributions then del(.distributions) + {no_distributions: "no module"} else . end' "$tmp/f" >"$tmp/part"
"$statpage" report -o "$tmp/page" "$tmp/part" >"$tmp/out" 2>&1
is "$? $(cat "$tmp/out")" "0 " "status without distributions"
is "$(tests/native/report_check.py "$tmp/page" "$tmp/part")" "" "numbers without distributions"
check grep -q '</b>: no distributions were recorded: no module\.$' "$tmp/page" "it is not said"
check grep -q '<a href="#time0">Timeline</a></nav>' "$tmp/page" "a way to distributions that are not there"

# A recording whose times are known: made INSTANTS EXPRESSION, a jq expression that makes the threads of $i from
# t(PID; TID; engine; epoch; since_ns; total).
made()
{
	jq -c -n --argjson n "$1" '{format: "statpage-record", version: 1, interval_ns: 1000000000, cpus: 4, thread_engines:
		[{name: "pages", cannot_see: "nothing"}, {name: "proc", cannot_see: "sleep, and \(4) other things"}]},
		(range(1; $n + 1) as $i | def t($pid; $tid; $engine; $epoch; $since; $total): {pid: $pid, tid: $tid, comm: "t\($tid)",
			engine: $engine, epoch: $epoch, time_ns: ($i * 1000000000 + $tid), total: $total} +
			if $since then {since_ns: $since} else {} end;
		{time_ns: ($i * 1000000000), realtime_ns: (1.7e18 + $i * 1e9), no_distributions: "x", threads: ['"$2"']}),
		{end: "signal", instants: $n}' >"$tmp/made"
	"$statpage" report -o "$tmp/page" "$tmp/made" >"$tmp/out" 2>&1
	is "$? $(cat "$tmp/out")" "0 " "status of $3"
	is "$(tests/native/report_check.py "$tmp/page" "$tmp/made")" "" "numbers of $3"
}
lanes() { sed -n 's/^<details class=lane data-pid=\([0-9]*\) data-start="[0-9]*"\( data-tid=\([0-9]*\)\)\?>.*/\1:\3/p' "$tmp/page" | xargs; }

begin "report: all five buckets; what begins anew, comes later, goes back or ends"
# The 5th: a bucket that falls; the 6th in the 3rd instant, the 7th likewise, but without a beginning that is known.
five='{oncpu_ns: ($i * 100000000), runq_ns: ($i * 200000000), sleep_ns: ($i * 300000000), dsleep_ns: ($i * 150000000),
	iowait_ns: ($i * 250000000), nr_preempt: $i, nr_block: (2 * $i), nr_migrate: (3 * $i), min_flt: (4 * $i), maj_flt: (5 * $i)}'
made 8 "t(1; 1; \"pages\"; 7; 5; $five), t(1; 2; \"pages\"; if \$i < 4 then 7 else 8 end; 5; $five),
	(if \$i < 5 then t(1; 3; \"proc\"; 9; 5; {oncpu_ns: (\$i * 400000000)}) else t(1; 3; \"pages\"; 9; 5; $five) end),
	(select(\$i < 6) | t(4; 4; \"proc\"; 1; 5; {oncpu_ns: (\$i * 30000000), runq_ns: 10})),
	t(4; 5; \"proc\"; 1; 5; {oncpu_ns: (\$i * 70000000), runq_ns: ((10 - \$i) * 1000)}),
	(select(\$i > 2) | t(4; 6; \"proc\"; 1; 2500000000; {oncpu_ns: ((\$i - 2) * 80000000)})),
	(select(\$i > 2) | t(4; 7; \"proc\"; 1; 0; {oncpu_ns: ((\$i - 2) * 80000000)})),
	(select(\$i < 4 or \$i > 6) | t(8; 8; \"proc\"; \$i / 5 | floor; 5; {oncpu_ns: (\$i * 1000)}))" "changes"
is "$(lanes)" "1: 1:1 1:2 1:3 1:2 1:3 4: 4:4 4:5 4:6 4:7 8: 8:8 8: 8:8" "lanes"
is "$(grep -A 1 'data-tid=1>' "$tmp/page" | grep -o '<dd data-k=[a-z_]* data-v=[0-9]*' | cut -d = -f 2- | tr -d '"' | xargs)" \
	"tid data-v=1 intervals data-v=7 nr_preempt data-v=7 nr_block data-v=14 nr_migrate data-v=21 min_flt data-v=28 maj_flt data-v=35" counts
is "$(grep -o '<path class=[a-z]* d="M0.00 [0-9.]*h[0-9.]*v-[0-9.]*' <<<"$(grep 'data-tid=1>' "$tmp/page")" | sed 's/ d="M0.00 / /; s/h[0-9.]*v/ /' | xargs)" \
	"<path class=cpu 100.00 -10.00 <path class=runq 90.00 -20.00 <path class=iowait 70.00 -25.00 <path class=dsleep 45.00 -15.00 <path class=sleep 30.00 -30.00" \
	"bars on each other"

begin "report: more instants than a lane has intervals, threads by the thousand: the page is bounded"
made 300 '(1, 2) | t(1; .; "proc"; 1; 5; {oncpu_ns: ($i * 1000 * .), iowait_ns: ($i * $i)})' "300 instants"
# Of 299 intervals the first 256 are, time and again, put together by two.
is "$(grep -o 'class=hit' "$tmp/page" | wc -l)" $((3 * (64 + 299 - 256)))  "intervals of three lanes"
made 3 'range(1; 3001) | t(. % 100 + 1; . % 100 + 1 + 100 * (. / 100 | floor); "proc"; 1; 5; {oncpu_ns: ($i * . * 100)})' "3000 threads"
is "$(lanes | wc -w) $(lanes | tr ' ' '\n' | grep -c ':$')" "128 64" "lanes"
check test "$(wc -c <"$tmp/page")" -lt 1000000 "a big page"
# More than are remembered, of more processes than have lanes: threads make room, their time stays.
jq -c 'if .threads then .threads |= [.[] | .tid += (0, 1, 2, 3) * 100000] else . end' "$tmp/made" >"$tmp/part"
"$statpage" report -o "$tmp/page" "$tmp/part" || fail "status of 12000 threads"
is "$(lanes | tr ' ' '\n' | grep -c ':$')" 64 "processes of 12000 threads"
is "$(grep -o '<dd data-k=threads data-v=[0-9]*' "$tmp/page" | cut -d = -f 3 | uniq -c | xargs)" "64 120" "threads of each"
check test "$(lanes | wc -w)" -le 128 "too many lanes"
is "$(grep -o 'data-k=others data-v=[0-9]*' "$tmp/page")" "data-k=others data-v=36" "processes without a lane"
is "$(grep -E '^<details [^>]*[0-9]"><summary|data-k=others' "$tmp/page" | grep -o 'data-k=cpu_ns data-v="[0-9]*' | cut -d '"' -f 2 | paste -sd + | bc)" \
	"$(jq -s '[.[] | select(.threads)] | ([.[-1].threads[].total.oncpu_ns] | add) - ([.[0].threads[].total.oncpu_ns] | add)' "$tmp/part")" "CPU time of all"
# Of a process the threads that are drawn, and those that are not.
python3 - "$tmp/page" >"$tmp/out" <<'PY'
import re, sys
page = open(sys.argv[1], encoding="utf-8").read()
for lane in re.split(r'<details class=lane data-pid=\d+ data-start="\d+">', page)[1:]:
    lane = lane.split("data-k=others")[0]
    cpu = [int(v) for v in re.findall(r'data-k=cpu_ns data-v="(\d+)"', lane)]
    more = re.search(r"data-k=more_threads data-v=(\d+)", lane)
    drawn = len(re.findall("data-tid", lane))
    print(cpu[0] == sum(cpu[1:]), drawn + int(more[1]) if more else drawn)
PY
is "$(uniq -c "$tmp/out" | xargs)" "64 True 120" "their sums"

begin "export --textfile --replay: what export says of the copy, with the machine's CPUs"
mkdir "$tmp/t1" "$tmp/t2"
record --for 1ms || fail "status"
"$statpage" export --textfile "$tmp/t1" --from "$tmp/k" || fail "status of the copy"
"$statpage" export --textfile "$tmp/t2" --replay "$tmp/f" 2>"$tmp/err" || fail "status"
is "$(cat "$tmp/err")" "statpage: $tmp/f: line 3: the cpu page was not recorded: coarse_stat_fs was not mounted" "the part that is not there"
of() { grep -e '^statpage_duration' -e '^statpage_sample' -e '^statpage_metric_' "$1"; }
check test "$(of "$tmp/t1/statpage.prom" | wc -l)" -gt 50 "no distributions"
is "$(diff <(of "$tmp/t1/statpage.prom") <(of "$tmp/t2/statpage.prom"))" "" "distributions"
check grep -q "kernel=\"$(uname -r)\"" "$tmp/t2/statpage.prom" "no kernel"
{ head -n 1 "$tmp/f"; jq -c -n --argjson cpu "$(cpus 300000000 30000000 3000000000)" '{time_ns: 1, realtime_ns: 1, no_distributions: "x", cpu: $cpu}'
	tail -n 1 "$tmp/f"; } | sed '1s/"release":"[^"]*"/"release":"another"/' >"$tmp/part"
"$statpage" export --textfile "$tmp/t2" --replay "$tmp/part" 2>"$tmp/err" || fail "status with a cpu page"
is "$(cat "$tmp/err")" "statpage: $tmp/part: line 2: no distributions were recorded: x" "the other part"
value() { sed -n "s/^$1 //p" "$tmp/t2/statpage.prom"; }
is "$(value 'statpage_cpu_seconds_total{cpu="0",mode="user"}') $(value 'statpage_cpu_online{cpu="2"}')" "0.3 0" "CPU times"
check grep -q 'kernel="another"' "$tmp/t2/statpage.prom" "the other machine's kernel"
said 2 "--replay goes with --textfile: what is served is of now" export --listen 0 --replay "$tmp/f"
said 2 "--threads are this machine's, and not in a recording" export --textfile "$tmp/t1" --threads x --replay "$tmp/f"
said 2 "--threads are this machine's, and not in a copy" export --textfile "$tmp/t1" --threads x --from "$tmp/k"
said 2 "--from and --replay are two sources: expected one" export --textfile "$tmp/t1" --from "$tmp/k" --replay "$tmp/f"
said 2 "--replay is written once: leave --interval out" export --textfile "$tmp/t1" --interval 1s --replay "$tmp/f"
said 1 "$tmp/none: No such file or directory" export --textfile "$tmp/t1" --replay "$tmp/none"

begin "docs/json.md has every key of a recording, and no other"
record --for 1ms || fail "status"
keys() { jq -r 'paths | map(if type == "number" then "[]" else . end) | join(".")' | sed -E 's/\.\[\]/[]/g' | sort -u; }
documented() { sed -n '/^# .*recordings/,$p' docs/json.md | sed -n "/^| key of $1 /,/^\$/s/^| \`\([^\`]*\)\` |.*/\1/p" | sort; }
is "$(head -n 1 "$tmp/f" | keys | grep -vx 'thread_engines\(\[\]\)\?')" "$(documented "the header")" "header"
is "$(tail -n 1 "$tmp/f" | keys)" "$(documented "the end")" "end"
is "$(instant 1 | jq -c '.distributions[] |= {engine, notes, per_cpu} | .nodes = [{}] | .nodes[0].x = 1 | .cpu |= {source, x: 1} |
	.threads = [.threads[0] | {epoch, x: 1}]' | keys | sed 's/\.x$/.*/' | sort |
	grep -vxE 'distributions(\[\](\.per_cpu(\[\](\.slots(\[\]\[\])?)?)?)?)?|(dist_engines|nodes|threads|cpu)(\[\])?')" \
	"$(documented "an instant" | grep -vxF -e no_distributions -e 'distributions[].*' -e cpu.absent -e 'dist_engines[]')" "instant"
is "$(instant 1 | jq -c '.nodes[0] | keys_unsorted')" \
	'["engine","name","start","end","by","via","state","note","bits","gap","attempted","recorded","missed","causes","filtered","stopped","inside","unpaired"]' nodes
is "$(instant 1 | jq -c '.distributions[0].per_cpu[0] | [.cpu, (.slots | map(.[1]) | add)]')" "[0,500]" "slots of a CPU"

begin "what cannot be is said in one line"
said 2 "expected -o FILE, where the recording goes" record
said 2 "--interval is a time from 1ms to 24h, such as 500ms, not '5'" record -o "$tmp/x" --interval 5
said 2 "--for is a time from 1ms to 24h, such as 500ms, not 'x'" record -o "$tmp/x" --for x
said 2 "PID is a number from 1 to 4194304, not 'x'" record -o "$tmp/x" -p x
said 2 "PID is a whole number, not '1.5'" record -o "$tmp/x" -p 1.5
said 2 "no process has pid 4194303" record -o "$tmp/x" -p 4194303
said 1 "$tmp/none: No such file or directory" record -o "$tmp/x" --from "$tmp/none"
said 1 "$tmp/none/x: No such file or directory" record -o "$tmp/none/x" --for 1ms
is "$(ls "$tmp/x" 2>/dev/null)" "" "nothing is left behind"
record --for 1ms
said 1 "$tmp/none: No such file or directory" show --replay "$tmp/none" x
said 1 "$tmp: Is a directory" show --replay "$tmp" x
said 1 "no metric x" show --replay "$tmp/f" x
said 1 "no metric x" show --replay "$tmp/f" --heatmap x
said 2 "--cpu is a number from 0 to $(($(getconf _NPROCESSORS_CONF) - 1)), not '70000'" show --replay "$tmp/f" --cpu 70000 vfs_read
said 2 "--interval and --count go with --heatmap" show --replay "$tmp/f" --count 2 vfs_read
sed '1s/"version":1/"version":2/' "$tmp/f" >"$tmp/v2"
said 1 "$tmp/v2: version 2, this statpage reads 1" show --replay "$tmp/v2" vfs_read
sed '1s/"cpus":[0-9]*/"cpus":0/' "$tmp/f" >"$tmp/bad"
said 1 "$tmp/bad: its first line has no interval_ns or no cpus" show --replay "$tmp/bad" vfs_read
jq -c '(.distributions[]? | select(.name == "vfs_read")).count = 7' "$tmp/f" >"$tmp/bad"
said 1 "$tmp/bad: line 3: vfs_read: not a distribution of this format" show --replay "$tmp/bad" vfs_read
jq -c '(.distributions[]? | select(.name == "vfs_read")).slots[0].slot = 4000' "$tmp/f" >"$tmp/bad"
said 1 "$tmp/bad: line 3: vfs_read: not a distribution of this format" show --replay "$tmp/bad" vfs_read
sed '3s/.*/{"something":"else"}/' "$tmp/f" >"$tmp/bad"
said 1 "$tmp/bad: line 3: not an instant of a recording" show --replay "$tmp/bad" vfs_read
sed '3s/"time_ns":[0-9]*/"time_ns":1/' "$tmp/f" >"$tmp/bad"
said 1 "$tmp/bad: line 3: earlier than the instant before it" top --once --replay "$tmp/bad"
for file in tools/statpage README.md "$tmp/k/vfs_read"; do
	said 1 "$file: not a recording of statpage record" show --replay "$file" vfs_read
done
jq -c 'del(.nodes)' "$tmp/f" >"$tmp/bad"
said 1 "$tmp/bad: line 3: the list of nodes could not be read when this was recorded" ls --replay "$tmp/bad"
jq -c 'if .distributions then del(.distributions, .dist_engines) + {no_distributions: "no module"} else . end' "$tmp/f" >"$tmp/bad"
for command in "show vfs_read" ls; do
	# shellcheck disable=SC2086 # words
	said 1 "$tmp/bad: line 3: no distributions were recorded: no module" $command --replay "$tmp/bad"
done

begin "built without json-c, --replay says so and record works"
variable() { make -pn 2>/dev/null | sed -n "s/^$1 := //p"; }
objs=$(variable TOOL_OBJS | tr ' ' '\n' |
	grep -vE '/lib/(conv_|fmt_(csv|folded|perfetto|report|speedscope)|re(play|port)_?)|/tools/(cmd_(convert|report)|replay)\.o')
# shellcheck disable=SC2046,SC2086 # words
cc -std=gnu11 -D_GNU_SOURCE -I. -Iinclude -Iinclude/uapi -o "$tmp/statpage" tools/no_convert.c $objs build/lib.a \
	-pthread -lm $(variable HTTPD_LIBS) $(variable BPF_LIBS) $(variable NCURSES_LIBS) || fail "does not link"
rm -f "$tmp/f"
"$tmp/statpage" record -o "$tmp/f" --for 1ms || fail "record"
is "$(tail -n 1 "$tmp/f" | jq -r .end)" duration "the recording"
for command in "show x" "show --heatmap x" ls cpu "cpu --watch" "top --once" "export --textfile $tmp/t1"; do
	# shellcheck disable=SC2086 # words
	"$tmp/statpage" $command --replay "$tmp/f" >"$tmp/out" 2>&1
	is "$? $(cat "$tmp/out")" "1 statpage: --replay: left out when this was built, as json-c was missing: install its headers (Debian: libjson-c-dev) and build again" "$command"
done

finish
