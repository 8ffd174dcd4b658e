#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks `statpage serve`: pages by BPF tell what the kernel's own sources tell, belong to one
# thread and one process, and come and go with the server as they should.
. "$(dirname "$0")/tap.sh"

PATH=$PATH:/usr/sbin:/sbin
t=$native/threads
pins=/sys/fs/bpf/statpage/threads-1
sock=/run/statpage/threads.sock
server=

start()
{
	"$statpage" serve "$@" >"$tmp/served" 2>"$tmp/err" &
	server=$!
	eventually grep -q "^serving" "$tmp/served"
}

stop()
{
	kill "$server" 2>/dev/null
	wait "$server"
}
trap 'kill $(jobs -p) 2>/dev/null; [ -z "$server" ] || "$statpage" serve --end >/dev/null 2>&1; rm -rf "$tmp"' EXIT

# The number that the last program said under a name.
of()
{
	sed -n "s/^$1 //p" "$tmp/out"
}

# near GOT EXPECTED BY WHAT
near()
{
	check test $(($1 - $2)) -le "$3" "$4: $1, more than $2 by over $3"
	check test $(($2 - $1)) -le "$3" "$4: $1, less than $2 by over $3"
}

begin "serve: starts, and says where"
if [ -e $pins ] || ! start; then
	server=
	skip "$(if [ -e $pins ]; then echo "$pins is there"; else cat "$tmp/err"; fi)"
	finish
fi
is "$(cat "$tmp/served")" "serving thread pages on $sock" "its word"
is "$(stat -c %a $sock)" 666 "mode of the socket"

begin "serve: buckets are what the kernel says, among two spinners on one CPU"
check "$t" work "it fails" >"$tmp/out"
is "$(of clock)" 2 "the clock"
is "$(of tid)" "$(of own_tid)" "the thread"
is $(($(of cpu_ns) + $(of runq_ns) + $(of sleep_ns) + $(of dsleep_ns) + $(of iowait_ns))) "$(of wall_ns)" \
	"the sum"
near "$(of wall_ns)" "$(of kernel_wall_ns)" 5000000 "wall time"
near "$(of cpu_ns)" "$(of kernel_cpu_ns)" 5000000 "CPU time"
near "$(of runq_ns)" "$(of kernel_runq_ns)" 5000000 "run queue time"
check test "$(of sleep_ns)" -gt 80000000 "10 naps of 10 ms: $(of sleep_ns)"
check test "$(of dsleep_ns)" -gt 40000000 "a vfork child of 50 ms: $(of dsleep_ns)"
# Each nap is a switch of its own, and so is the wait for the vfork child.
check test "$(of block)" -ge 11 "voluntary switches: $(of block)"

chmod 755 "$tmp"
cp "$statpage" "$tmp/statpage"

begin "serve: csfcat self takes the page by itself"
"$statpage" self --json 100 >"$tmp/json" 2>"$tmp/err"
is $? 0 "status, $(cat "$tmp/err")"
is "$(jq '.wall_ns - .oncpu_ns - .runq_ns - .sleep_ns - .dsleep_ns - .iowait_ns' "$tmp/json")" 0 "the sum"
check test "$(jq .sleep_ns "$tmp/json")" -gt 40000000 "sleep"

begin "serve: top sees a thread by its page, for who may trace its process"
"$statpage" self 6000 >/dev/null &
self=$!
seen()
{
	"$statpage" top --once --json --engine pages --interval 200ms -p "$self" >"$tmp/json" &&
		[ "$(jq '.threads | length' "$tmp/json")" = 1 ] &&
		[ "$(jq '.threads[0].interval.wall_ns' "$tmp/json")" != null ]
}
check eventually seen "no thread"
is "$(jq -c '[.engines[].name, .threads[0].engine, .threads[0].comm, .threads[0].tid]' "$tmp/json")" \
	"[\"pages\",\"pages\",\"statpage\",$self]" "engine and thread"
is "$(jq -c '.threads[0].interval | (.oncpu_ns + .runq_ns + .sleep_ns + .dsleep_ns + .iowait_ns - .wall_ns) |
	fabs < 1000000' "$tmp/json")" true "the buckets add up to the wall time"
check test "$(jq '.threads[0].interval | .sleep_ns * 10 > .wall_ns * 9' "$tmp/json")" = true \
	"it sleeps: $(jq -c '.threads[0].interval' "$tmp/json")"
setpriv --reuid 65534 --clear-groups "$tmp/statpage" top --once --engine pages -p $self >"$tmp/out" 2>"$tmp/err"
is $? 1 "status for who may not"
is "$(cat "$tmp/err")" "statpage: the pages of process $self: only who may trace it can read them" message
setpriv --reuid 65534 --clear-groups "$tmp/statpage" top --once --json -p $self >"$tmp/json" 2>"$tmp/err"
is "$? $(jq -c '[.threads[0].engine, .threads[0].tid]' "$tmp/json")" "0 [\"proc\",$self]" "any engine: the other one tells"
kill $self

# ---- viewers ----

# slots is WANTED-LINES...: how many places are in a state, as "viewed 6".
slots_are()
{
	"$t" slots >"$tmp/slots" && for want; do grep -qx "$want" "$tmp/slots" || return; done
}

# All that viewers had.
returned()
{
	eventually slots_are "viewed 0" "leaving 0" "left 0" || fail "pages are not back: $(xargs <"$tmp/slots")"
}

# The workload of every bucket.
"$t" buckets >"$tmp/ready" &
buckets=$!
check eventually grep -q ready "$tmp/ready" "the workload does not begin"
tid() { grep -lx "$1" /proc/$buckets/task/*/comm | head -n 1 | cut -d / -f 5; }
rival=$(tid rival) napper=$(tid napper) sleeper=$(tid sleeper) waiter=$(tid waiter)
now() { date +%s%N; }
# The Nth number of a thread's schedstat; its voluntary switches.
schedstat() { cut -d ' ' -f "$2" "/proc/$1/schedstat"; }
blocked() { sed -n 's/^voluntary_ctxt_switches:\t//p' "/proc/$1/status"; }
# in_json TID WHAT
in_json() { jq -r ".threads[] | select(.tid == $1) | $2" "$tmp/json"; }
# within GOT LEAST MOST WHAT
within() { check test "$2" -le "$1" -a "$1" -le "$3" "$4: $1, not from $2 to $3"; }

begin "serve: top of root has five buckets of every thread, and they are the workload's"
begun=$(now) cpu=$(schedstat "$rival" 1) runq=$(schedstat "$rival" 2) block=$(blocked "$napper")
"$statpage" top --once --json --interval 1s -p "$buckets" >"$tmp/json" || fail "top"
cpu=$(($(schedstat "$rival" 1) - cpu)) runq=$(($(schedstat "$rival" 2) - runq)) block=$(($(blocked "$napper") - block))
# What the interval lacks of the time between our two looks, and a tick that the kernel's own numbers lag behind.
slack=$(($(now) - begun - $(in_json "$rival" .interval.wall_ns) + 10000000))
is "$(jq -c '[.threads[].engine] | unique' "$tmp/json")" '["pages"]' "engines"
is "$(jq -c '[.threads[].comm] | sort' "$tmp/json")" \
	'["napper","owner","rival","rival","sleeper","threads","waiter"]' "threads"
is "$(jq -c '[.threads[].interval | has("sleep_ns") and has("nr_migrate") and (has("off_ns") | not)] | all' "$tmp/json")" \
	true "a bucket is missing"
is "$(jq -c '[.threads[].interval | .oncpu_ns + .runq_ns + .sleep_ns + .dsleep_ns + .iowait_ns - .wall_ns |
	fabs < 1000000] | all' "$tmp/json")" true "they add up to the wall time"
is "$(jq -c '[.threads[] | select(.comm != "owner") | .interval.wall_ns == .time_ns - .since_ns] | all' "$tmp/json")" true \
	"they are since the page began, with the first look"
within "$(in_json "$rival" .interval.oncpu_ns)" $((cpu - slack)) $((cpu + 10000000)) "CPU time"
within "$(in_json "$rival" .interval.runq_ns)" $((runq - slack)) $((runq + 10000000)) "run queue time"
is "$(in_json "$rival" '.interval | .oncpu_ns + .runq_ns + 1000000 > .wall_ns')" true "the rival sleeps"
is "$(in_json "$rival" '.interval | .runq_ns * 4 > .wall_ns and .nr_preempt > 0')" true "the rival has no rival"
is "$(in_json "$napper" '.interval | .sleep_ns * 10 > .wall_ns * 6')" true "the napper: $(in_json "$napper" .interval)"
within "$(in_json "$napper" .interval.nr_block)" $((block - slack / 5000000 - 2)) "$block" "voluntary switches"
is "$(in_json "$sleeper" '.interval | [.sleep_ns + 1000000 > .wall_ns, .nr_block, .nr_preempt, .min_flt]' | jq -c .)" \
	'[true,0,0,0]' "the sleeper, who was never switched to: $(in_json "$sleeper" .interval)"
is "$(in_json "$waiter" '.interval | .dsleep_ns * 10 > .wall_ns * 8')" true "the waiter: $(in_json "$waiter" .interval)"
returned
check slots_are "taken 1" "the thread with a page of its own has lost it"

begin "serve: all processes, threads of the kernel among them"
"$statpage" top --once --json --interval 100ms >"$tmp/json" || fail "top"
is "$(in_json 2 '[.comm, .engine, (.interval | has("dsleep_ns"))]' | jq -c .)" '["kthreadd","pages",true]' "kthreadd"
is "$(in_json "$sleeper" .engine)" pages "the sleeper"
returned

begin "serve: record and export have them, too"
"$statpage" record -o "$tmp/rec" -p "$buckets" --interval 100ms --for 500ms || fail "record"
"$statpage" top --once --replay "$tmp/rec" --json >"$tmp/json"
is "$(in_json "$waiter" '[.engine, (.interval | .dsleep_ns * 10 > .wall_ns * 8)]' | jq -c .)" '["pages",true]' "recorded"
"$statpage" export --listen 127.0.0.1:0 --threads threads >"$tmp/export" 2>"$tmp/err" &
exporter=$!
check eventually grep -q ^http "$tmp/export" "export: $(cat "$tmp/err")"
# Seconds of a bucket, of the workload's threads.
dsleep() { sed -n 's/^statpage_thread_seconds_total{process="threads",engine="pages",bucket="dsleep"} //p' "$tmp/metrics"; }
scraped()
{
	begun=$(now)
	curl -s "$(cat "$tmp/export")" >"$tmp/metrics" && [ -n "$(dsleep)" ]
}
check eventually scraped "no pages in its metrics"
before=$(dsleep) first=$begun
sleep 0.5
check scraped "no pages in its metrics"
within "$(awk "BEGIN { printf \"%d\", ($(dsleep) - $before) * 1e9 }")" 400000000 $(($(now) - first)) \
	"uninterruptible sleep of the waiter"
check slots_are "taken 1" "it has lost its page"
kill $exporter
wait $exporter 2>/dev/null
returned

begin "serve: tools of distributions leave the server's pins alone"
"$statpage" ls >/dev/null 2>&1
"$statpage" trace vfs_no_such_function >/dev/null 2>&1
check test -e $pins/on_switch "they are gone"

begin "serve: a viewer that is killed: its pages go back, and no others"
"$statpage" top --json --interval 50ms -p "$buckets" >"$tmp/j1" &
one=$!
"$statpage" top --json --interval 50ms -p "$buckets" >"$tmp/j2" &
two=$!
check eventually grep -q pages "$tmp/j1" "no pages"
check eventually grep -q pages "$tmp/j2" "no pages for the second"
eventually slots_are "viewed 6" "taken 1" || fail "two viewers have: $(xargs <"$tmp/slots")"
kill -KILL $one
wait $one 2>/dev/null
lines=$(wc -l <"$tmp/j2")
more() { [ "$(wc -l <"$tmp/j2")" -gt $((lines + 10)) ]; }
check eventually more "the other one has stopped"
slots_are "viewed 6" "taken 1" || fail "the other's are gone, too: $(xargs <"$tmp/slots")"
kill -KILL $two
wait $two 2>/dev/null
returned
check slots_are "taken 1" "the thread with a page of its own has lost it"

begin "serve: a thread that is viewed, and then asks for its page, keeps it without the viewer"
mkfifo "$tmp/late"
"$t" follow late <"$tmp/late" >"$tmp/follow" &
follower=$!
exec 7>"$tmp/late"
"$statpage" top --json --interval 50ms -p $follower >"$tmp/j1" &
one=$!
check eventually grep -q '"pages","state"' "$tmp/j1" "it is not viewed"
echo >&7
check eventually grep -q start "$tmp/follow" "no snapshot"
slots_are "viewed 0" "taken 2" || fail "it is not the thread's own: $(xargs <"$tmp/slots")"
kill -KILL $one
wait $one 2>/dev/null
"$t" many 1 >"$tmp/out" # the server has come round
echo >&7
two() { [ "$(wc -l <"$tmp/follow")" = 2 ]; }
check eventually two "no second snapshot"
is "$(cut -d ' ' -f 2 "$tmp/follow" | uniq | wc -l)" 1 "starts of the accounting"
exec 7>&-
wait $follower

begin "serve: nobody else views another process's threads"
view() { "$@" "$tmp/threads" view "$buckets" "$sleeper"; }
cp "$t" "$tmp/threads"
is "$(view env)" 0 "root"
is "$(view setpriv --reuid 65534 --clear-groups)" 1 "an ordinary user"
is "$(view setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace)" 1 "root without the capability"
is "$(view unshare -pf)" 1 "root in a pid namespace of its own"
is "$(view unshare -Ur)" 1 "root in a user namespace of its own"
is "$(view setpriv --reuid 65534 --clear-groups unshare -Ur)" 1 "an ordinary user who plays root"
is "$("$t" view $$ "$sleeper")" 3 "a thread of another process than the one that is named"
is "$("$t" view "$buckets" 4194000)" 3 "no thread"
setpriv --reuid 65534 --clear-groups "$tmp/statpage" top --once --json --interval 50ms >"$tmp/json"
is "$(in_json "$sleeper" .engine)" proc "engine for an ordinary user"
returned

begin "serve: at most 16 viewers, who may be silent for as long as they like"
python3 - "$sock" "$buckets" "$sleeper" >"$tmp/out" <<'EOF2'
import socket, struct, sys, time
def ask(s):
    s.send(struct.pack("<IHHII", 0x31465343, 1, 1, int(sys.argv[3]), int(sys.argv[2])))
    return struct.unpack("<II", s.recv(100))[1]
def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(sys.argv[1])
    return s
viewers = [connect() for i in range(17)]
print("first", sum(ask(s) == 0 for s in viewers[:16]))
print("last", ask(viewers[16]))
time.sleep(1.5)
print("again", sum(ask(s) == 0 for s in viewers[:16]))
viewers[3].close()
print("next", ask(connect()))
EOF2
is "$(of first) $(of last) $(of again) $(of next)" "16 87 16 0" "answers: 87 is EUSERS"

begin "serve: a viewer of threads that come and go leaves none behind"
"$t" churn &
churn=$!
timeout 4 "$statpage" top --json --interval 5ms -p $churn >"$tmp/j1"
kill $churn
check test "$(grep -c pages "$tmp/j1")" -gt 20 "it saw nothing"
returned
slots_are "taken 1" || fail "pages that nobody has: $(xargs <"$tmp/slots")"

begin "serve: a server that is killed, and the next one: a viewer finds it"
"$statpage" top --json --interval 50ms -p "$buckets" >"$tmp/j1" &
one=$!
check eventually slots_are "viewed 6" "no pages"
kill -KILL "$server"
wait "$server" 2>/dev/null
lines=$(wc -l <"$tmp/j1")
on() { [ "$(wc -l <"$tmp/j1")" -gt $((lines + $1)) ] && tail -n 1 "$tmp/j1" | jq -e '[.threads[].engine] | unique == ["pages"]' >/dev/null; }
check eventually on 5 "no pages without a server"
start
lines=$(wc -l <"$tmp/j1")
check eventually on 10 "no pages of the next one"
eventually slots_are "viewed 6" "leaving 0" "left 0" || fail "the next one has: $(xargs <"$tmp/slots")"
kill -KILL $one
wait $one 2>/dev/null
returned

begin "serve: viewers have half of the places, the other half is there for who asks for its own"
stop
start --max 16
"$statpage" top --json --interval 50ms >"$tmp/j1" &
one=$!
eventually slots_are "viewed 8" || fail "viewers have: $(xargs <"$tmp/slots")"
"$t" at_once 8 >"$tmp/out"
is "$(of good)" 8 "threads with their own"
is "$(tail -n 1 "$tmp/j1" | jq -c '[.threads[].engine] | unique')" '["pages","proc"]' "engines of the viewer"
kill $one
kill -KILL $buckets
wait $one $buckets 2>/dev/null
stop
start

begin "serve: 50 threads at once, and 300 one after the other, each with its own"
"$t" at_once 50 >"$tmp/out"
is "$(of good)" 50 "at once"
"$t" many 300 >"$tmp/out"
is "$(of good)" 300 "one after the other"

begin "serve: 10,000 snapshots among as many switches"
"$t" steady 500 >"$tmp/out"
is "$(of good)" 10000 "snapshots"

begin "serve: a forked child has its own, and its parent keeps its own"
"$t" forked >"$tmp/out"
is "$(of child) $(of parent)" "1 1" "their threads"

begin "serve: a thread of another process is refused"
is "$("$t" ask 1)" 3 "errno"

begin "serve: nobody writes a page"
"$t" protect >"$tmp/out"
is "$(of writable) $(of mprotect)" "EPERM EACCES" "mmap and mprotect"

for how in exec exit; do
	begin "serve: who has another process's page sees its $how"
	"$t" $how >"$tmp/out"
	is "$(of before) $(of tid) $(of after)" "0 1 1" "flags before, the thread, the mark after"
done

begin "serve: an ordinary user, and a process in a pid namespace of its own"
cp "$t" "$tmp/threads"
setpriv --reuid 65534 --clear-groups "$tmp/threads" many 3 >"$tmp/out"
is "$(of good)" 3 "an ordinary user's"
unshare -pf "$t" many 3 >"$tmp/out"
is "$(of good)" 3 "in a pid namespace"

begin "serve: 100 clients that say nothing, and one that talks nonsense, keep nobody waiting for long"
python3 - "$sock" "$t" >"$tmp/out" <<'EOF2'
import socket, subprocess, sys
idle = []
for i in range(100):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(sys.argv[1])
    idle.append(s)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
s.send(b"give me everything")
print("nonsense", int.from_bytes(s.recv(100)[4:8], "little"))
# The server waits 1 s for each batch of silent clients.
out = subprocess.run([sys.argv[2], "many", "1"], stdout=subprocess.PIPE).stdout
print(out.decode(), end="")
EOF2
is "$(of nonsense)" 71 "EPROTO"
is "$(of good)" 1 "somebody else's page"

begin "serve: killed, the pages go on, and the next one takes them over; an orderly end marks them dead"
mkfifo "$tmp/ask"
"$t" follow <"$tmp/ask" >"$tmp/follow" &
follower=$!
exec 7>"$tmp/ask"
nth()
{
	[ "$(wc -l <"$tmp/follow")" -ge "$1" ]
}
check eventually nth 1 "no snapshot"
kill -KILL "$server"
wait "$server" 2>/dev/null
echo >&7
check eventually nth 2 "no snapshot without a server"
start
echo >&7
check eventually nth 3 "no snapshot after the next one's start"
"$t" many 1 >"$tmp/out"
is "$(of good)" 1 "a new thread's"
is "$(cut -d ' ' -f 2 "$tmp/follow" | uniq | wc -l)" 1 "one start of the accounting"
is "$(awk '{ print $4 }' "$tmp/follow" | sort -n | uniq | wc -l)" 3 "it goes on counting"
stop
is $? 0 "status of the orderly end"
echo >&7
check eventually nth 4 "no answer"
is "$(tail -n 1 "$tmp/follow")" ENOENT "after the end"
exec 7>&-
wait $follower

gone()
{
	! bpftool "$1" show | grep -qE "$2"
}

begin "serve: the end leaves nothing"
check test ! -e $pins "$pins is still there"
check test ! -e $sock "$sock is still there"
if command -v bpftool >/dev/null; then
	# The kernel frees them when nobody can be inside any more.
	check eventually gone prog 'name on_(switch|exec|exit) ' "programs in the kernel"
	check eventually gone map 'name csf_page ' "pages in the kernel"
fi

begin "serve: pages of threads that have ended are used for nobody, and their places again"
start --max 8
"$t" many 100 >"$tmp/out"
is "$(of good)" 100 "threads one after the other, in 8 places"
"$t" at_once 20 >"$tmp/out"
check test "$(of good)" -lt 20 "20 at once in 8 places: $(of good)"
check test "$(of good)" -ge 8 "20 at once in 8 places: $(of good)"
is "$(of errno)" 28 "ENOSPC for who came too late"

begin "serve: one server at a time, on whatever socket"
for args in "" "--socket $tmp/other" --end "--end --socket $tmp/other"; do
	# shellcheck disable=SC2086 # several words
	"$statpage" serve $args >"$tmp/o" 2>"$tmp/err"
	is "$? $(cat "$tmp/err")" "1 statpage: a server runs already: it has $sock.lock" "serve $args"
done
"$t" many 10 >"$tmp/out"
is "$(of good)" 10 "threads that the first one serves"
check test ! -e "$tmp/other" "there is another socket"

doctor() { "$statpage" doctor --json | jq -c ".checks[] | select(.part == \"thread time\" and .engine == \"$1\") | $2"; }

begin "serve: doctor sees the server, and takes its pages for nobody else's"
is "$(doctor bpf '[.works, .fix]')" "[true,null]" "while it runs"
is "$(doctor module .works)" false "the module"
kill -STOP "$server"
is "$(doctor bpf '[.works, .text, .fix]')" "[false,\"$sock: Connection timed out\",null]" "while it does not answer"
"$statpage" self 10 >"$tmp/o" 2>"$tmp/err"
is "$? $(cat "$tmp/err")" "1 statpage: $sock: the server of pages does not answer" "self"
kill -CONT "$server"

begin "serve: --end, after a server that was killed"
kill -KILL "$server"
wait "$server" 2>/dev/null
check test -e $pins "nothing was left behind to end"
check "$statpage" serve --end "it fails"
check test ! -e $pins "$pins is still there"
server=
is "$(doctor bpf '[.works, .text, .fix]')" '[false,"no server listens on /run/statpage/threads.sock","sudo statpage serve"]' \
	"doctor without one"

begin "serve: wrong use, and no privileges"
for args in "--max 0" "--max x" "extra" "--socket $(printf '%0120d' 1)"; do
	# shellcheck disable=SC2086 # several words
	"$statpage" serve $args >"$tmp/o" 2>"$tmp/err"
	is $? 2 "status of '$args'"
	check test -s "$tmp/err" "no message for '$args'"
done
echo mine >"$tmp/file"
"$statpage" serve --socket "$tmp/file" 2>"$tmp/err"
is "$? $(cat "$tmp/err") $(cat "$tmp/file")" "1 statpage: $tmp/file: is there and no socket mine" "a file"
"$statpage" serve --socket "$tmp/none/s" 2>"$tmp/err"
is "$? $(cat "$tmp/err")" "1 statpage: $tmp/none/s: No such file or directory" "a folder that is not there"
check test ! -e "$tmp/none" "the folder was made"
setpriv --reuid 65534 --clear-groups "$tmp/statpage" serve --socket "$tmp/none/s" 2>"$tmp/err"
is $? 1 "status without privileges"
is "$(wc -l <"$tmp/err")" 1 "lines: $(cat "$tmp/err")"
setpriv --bounding-set -bpf,-sys_admin,-perfmon "$statpage" serve --socket "$tmp/s" 2>"$tmp/err"
is $? 1 "status without capabilities"
check grep -q "^statpage: thread pages cannot be served: " "$tmp/err" "message: $(cat "$tmp/err")"
check test ! -e $pins "$pins is there"

finish
