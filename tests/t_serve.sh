#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# This test checks statpage serve on this kernel, by tests/native/threads.c: pages by BPF tell what the kernel's
# own sources tell, and nothing is left behind. tests/native/t_serve.sh has more of it, on the host's kernel.
# shellcheck disable=SC3043 # busybox's sh has local
set -u
# shellcheck source=tests/tap.sh
. /t/tap.sh
evidence="/tmp/out /tmp/served"
t=/t/threads

# near GOT EXPECTED WHAT: within a tenth and 10 ms, as an emulated CPU may be held up between the two clocks.
near()
{
	local off=$(($1 - $2))

	[ "${off#-}" -le $(($2 / 10 + 10000000)) ] || fail "$3: $1, not $2"
}

at_least()
{
	[ "$1" -ge "$2" ] || fail "$3: $1, less than $2"
}

of()
{
	sed -n "s/^$1 //p" /tmp/out
}

start()
{
	statpage serve >/tmp/served 2>&1 &
	server=$!
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		grep -q "^serving" /tmp/served && return
		sleep 1
	done
	fail "it does not start"
}

begin "serve: buckets are what the kernel says, among two spinners on one CPU"
start
$t work >/tmp/out 2>&1
is $? 0 "status"
is "$(of clock)" 2 "the clock"
is "$(of tid)" "$(of own_tid)" "the thread"
if [ -n "$(of wall_ns)" ]; then
	is $(($(of cpu_ns) + $(of runq_ns) + $(of sleep_ns) + $(of dsleep_ns) + $(of iowait_ns))) "$(of wall_ns)" \
		"the sum"
	near "$(of cpu_ns)" "$(of kernel_cpu_ns)" "CPU time"
	near "$(of runq_ns)" "$(of kernel_runq_ns)" "run queue time"
	at_least "$(of sleep_ns)" 80000000 "10 naps of 10 ms"
	at_least "$(of dsleep_ns)" 40000000 "a vfork child of 50 ms"
	at_least "$(of block)" 11 "voluntary switches"
fi

begin "serve: threads, each with its own"
$t at_once 30 >/tmp/out 2>&1
is "$(of good) $(of errno)" "30 0" "at once"
$t many 100 >/tmp/out 2>&1
is "$(of good) $(of errno)" "100 0" "one after the other"
$t steady 50 >/tmp/out 2>&1
is "$(of good)" 1000 "snapshots of one among many switches"
$t forked >/tmp/out 2>&1
is "$(of child) $(of parent)" "1 1" "a forked child and its parent"

begin "serve: who may have what"
is "$($t ask 1)" 3 "another process's thread"
$t protect >/tmp/out 2>&1
is "$(of writable) $(of mprotect)" "EPERM EACCES" "mmap and mprotect"

begin "serve: root views any thread, whose buckets are what it does; others may not"
$t buckets >/tmp/out 2>&1 &
buckets=$!
ready()
{
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		grep -q ready /tmp/out && return
		sleep 1
	done
	fail "the workload does not begin"
}
ready
# PID TID S ON CPU% RUNQ SLEP DSLP IOWT VOL INV MIG FLT MAJ COMMAND
statpage top --once --interval 2s -p $buckets >/tmp/top 2>&1
is $? 0 "status of top"
# share COMMAND COLUMN LEAST: percent of the time.
share()
{
	awk -v name="$1" -v column="$2" -v least="$3" '$NF == name && $column + 0 >= least { n++ }
		END { exit !n }' /tmp/top || fail "$1: less than $3 in column $2: $(grep " $1$" /tmp/top)"
}
is "$(awk '$1 == "PID" { print $5, $6, $7, $8, $9, $10 }' /tmp/top)" "CPU% RUNQ SLEP DSLP IOWT VOL" "head"
share rival 5 20
share rival 6 20
share napper 7 50
share sleeper 7 99
share waiter 8 70
share threads 7 99
tid=$(awk '$NF == "sleeper" { print $2 }' /tmp/top)
$t slots >/tmp/out 2>&1
is "$(of taken)" 1 "the thread that has a page of its own"
is "$($t view $buckets "$tid") $($t view $buckets "$tid" nobody) $($t view 1 "$tid")" "0 1 3" \
	"root, another user, a thread of another process than named"
is "$($t view 1 1) $($t view 2 2)" "0 0" "init and kthreadd"

begin "serve: a viewer that is killed gives its pages back"
statpage top --json --interval 100ms >/tmp/top 2>&1 &
viewer=$!
viewed()
{
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		$t slots >/tmp/out 2>&1
		[ $(($(of viewed) > 0)) -eq "$1" ] && [ "$(of leaving) $(of left)" = "0 0" ] && return
		sleep 1
	done
	fail "viewed pages, $1 wanted: $(xargs </tmp/out)"
}
viewed 1
kill -KILL $viewer
wait $viewer 2>/dev/null
viewed 0
is "$(of taken)" 1 "the thread that has a page of its own"
kill -KILL $buckets
wait $buckets 2>/dev/null

for how in exec exit; do
	begin "serve: who has another process's page sees its $how"
	$t $how >/tmp/out 2>&1
	is "$(of before) $(of tid) $(of after)" "0 1 1" "flags before, the thread, the mark after"
done

begin "serve: killed, the pages are taken over; the end leaves nothing"
mkfifo /tmp/ask
$t follow </tmp/ask >/tmp/out 2>&1 &
follower=$!
exec 7>/tmp/ask
nth()
{
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ "$(wc -l </tmp/out)" -ge "$1" ] && return
		sleep 1
	done
	fail "no snapshot $1"
}
nth 1
kill -KILL $server
wait $server 2>/dev/null
echo >&7
nth 2
start
echo >&7
nth 3
is "$(cut -d ' ' -f 2 /tmp/out | uniq | wc -l)" 1 "starts of the accounting"
is "$(awk '{ print $4 }' /tmp/out | sort -n | uniq | wc -l)" 3 "different counts"
kill $server
wait $server
is $? 0 "status of the orderly end"
echo >&7
nth 4
is "$(tail -n 1 /tmp/out)" ENOENT "after the end"
exec 7>&-
wait $follower
[ ! -e /sys/fs/bpf/statpage ] || fail "/sys/fs/bpf/statpage is still there"
umount /sys/fs/bpf 2>/dev/null
finish
