#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks that the bpf engine of `statpage run` counts what strace and the ptrace engine count,
# leaves nothing behind in the kernel, and says why where it cannot be used.
. "$(dirname "$0")/tap.sh"

w=$native/workload
bpf="$statpage run --engine bpf"
PATH=$PATH:/usr/sbin:/sbin

# The reason that is printed where the engine cannot be used; empty: it can.
reason=$($bpf -o /dev/null -- true 2>&1)

# A case that needs the engine: false, and the case is skipped, where it cannot be used.
needs_bpf()
{
	begin "bpf: $1"
	[ -z "$reason" ] || { skip "$reason"; return 1; }
}

counts()
{
	jq -r '.syscalls[] | "\(.name) \(.count) \(.errors)"' "$1" | sort
}

count()
{
	jq -r --arg n "$1" '[.syscalls[] | select(.name == $n).count] | add // 0' "$tmp/json"
}

no_return()
{
	jq -r --arg n "$1" '[.no_return[]? | select(.name == $n).count] | add // 0' "$tmp/json"
}

# What the kernel counted in tasks, and what it summed up in rows, agree.
ledger()
{
	is "$(jq -c '[.engine.name, .complete, .lost.attempted - .lost.recorded - .lost.no_return,
		.lost.recorded - ([.syscalls[].count] | add)]' "$tmp/json")" '["bpf",true,0,0]' \
		"engine, complete, attempts and rows unaccounted for"
}

said()
{
	grep -q "$2" "$1" 2>/dev/null
}

# Programs and maps that a process holds, by their numbers in the kernel.
ids()
{
	cat /proc/"$1"/fdinfo/* 2>/dev/null | awk '$1 == "prog_id:" || $1 == "map_id:" {
		print substr($1, 1, length($1) - 4), $2 }' | sort -u
}

# None of the numbers in file $1 is known any more.
all_gone()
{
	local kind id

	while read -r kind id; do
		! bpftool "$kind" show id "$id" >/dev/null 2>&1 || return 1
	done <"$1"
}

same()
{
	needs_bpf "counts as strace and as ptrace: $1" || return
	shift
	strace -f -c -U name,calls,errors -o "$tmp/strace" "$@" >"$tmp/out" 2>&1
	want_rc=$?
	"$statpage" run -f json -o "$tmp/ptrace" -- "$@" >"$tmp/out" 2>&1
	$bpf -f json -o "$tmp/json" -- "$@" >"$tmp/out" 2>&1
	is $? $want_rc "exit status"
	awk 'NR > 2 && $1 !~ /^-/ && $1 != "total" { print $1, $2, $3 + 0 }' "$tmp/strace" |
		sort >"$tmp/want"
	is "$(counts "$tmp/json" | diff "$tmp/want" -)" "" "strace's < and our > counts"
	is "$(jq -c '[.no_return, .execs, .processes_seen, .threads_seen, .exit, .argv, .ppid > 0]' "$tmp/json")" \
		"$(jq -c '[.no_return, .execs, .processes_seen, .threads_seen, .exit, .argv, .ppid > 0]' "$tmp/ptrace")" \
		"what else the two engines say"
	# Lives that end together are told in either order.
	is "$(jq -c '[.processes[] | [.reason, .final, .seq, .execs, .threads_seen, .comm, .argv, .exit]] |
		sort' "$tmp/json")" "$(jq -c '[.processes[] | [.reason, .final, .seq, .execs,
		.threads_seen, .comm, .argv, .exit]] | sort' "$tmp/ptrace")" "the lives they tell of"
	ledger
}

same "1,000 calls and one error" "$w" calls 1000
same "ls" ls -l /
same "false" false
same "git on a repository" git --no-pager log -5 --stat
same "300 fork, _exit and wait" "$w" forks 300
same "a chain of 200 exec" "$w" execs 200
same "100 posix_spawn" "$w" spawns 100
same "100 vfork and exec" "$w" vforks 100
same "names and words that are no text" "$w" odd_name 1

if needs_bpf "a program killed by a signal: its call returns first, as ptrace cannot see"; then
	$bpf -f json -o "$tmp/json" -- "$w" by_signal 9
	is $? 137 "exit status"
	is "$(jq -c '[.exit.signal, .exit.code]' "$tmp/json")" '[9,null]' "the record"
	is "$(count tgkill)" 1 tgkill
	ledger
fi

if needs_bpf "exec by a thread that is not the leader"; then
	$bpf -f json -o "$tmp/json" -- "$w" thread_exec
	is $? 0 "exit status"
	is "$(count getppid)" 7 "getppid of the program executed"
	is "$(jq -c '[.processes[] | [.reason, .final]]' "$tmp/json")" '[["exec",false],["exit",true]]' "lives"
	is "$(jq -c '[.processes[].pid] | unique | length' "$tmp/json")" 1 "pids"
	is "$(jq -r '.threads_seen' "$tmp/json")" 3 threads
	ledger
fi

if needs_bpf "a program of 8 threads on futexes and pipes counts itself the same"; then
	# Some kernels tell no program of the switch away from a few threads, those of a hypervisor's agent say: a call
	# that comes back in it has no split, and its row says so by having none. That run is told, and another made.
	for run in 1 2 3 4 5 6; do
		$bpf -f json -o "$tmp/json" -- "$w" threads 2000 >"$tmp/own"
		[ "$(jq '[.syscalls[] | has("on_cpu_ns")] | all' "$tmp/json")" = false ] || break
		echo "# run $run: a row has no split"
	done
	own()
	{
		awk -v n="$1" '$1 == n { print $2 }' "$tmp/own"
	}
	is "$(count gettid)" "$(own gettid)" gettid
	is "$(count read)" $(($(own read_ring) + 1)) read
	is "$(count write)" $(($(own write_ring) + 2)) write
	is "$(jq -r '.syscalls[] | select(.name == "futex") | .errnos."22"' "$tmp/json")" \
		"$(own futex_errors)" "futex: EINVAL"
	is "$(jq -r '.threads_seen' "$tmp/json")" 9 threads
	is "$(jq -r '[.syscalls[] | .on_cpu_ns + .waiting_ns == .total_ns] | all' "$tmp/json")" true \
		"every row is split, and adds up"
	ledger
fi

if needs_bpf "time on CPU and waiting time"; then
	$bpf -f json -o "$tmp/json" -- "$w" nap 300 >"$tmp/out"
	is "$(jq -c '.syscalls[] | select(.name == "nanosleep") | [.waiting_ns > 250000000,
		.on_cpu_ns < 50000000, .on_cpu_ns + .waiting_ns == .total_ns, .total_ns == .max_ns]' \
		"$tmp/json")" '[true,true,true,true]' "of a sleep of 300 ms"
	$bpf -f json -o "$tmp/json" -- "$w" burn_and_sleep 200
	is "$(jq -c '[.user_ns + .system_ns | . > 150000000, . < 390000000]' "$tmp/json")" '[true,true]' \
		"CPU time of a program that burns 200 ms and sleeps as long"
	$bpf --no-split -f json -o "$tmp/json" -- true
	is "$(jq -c '[([.syscalls[] | has("on_cpu_ns")] | any), (.engine | has("split"))]' "$tmp/json")" \
		'[false,false]' "--no-split"
fi

# A program that forks, and then waits, so that its watcher can be looked at.
after_forks()
{
	rm -f "$tmp/out"
	# shellcheck disable=SC2016 # the inner shell's
	$bpf -f jsonl -o "$tmp/lines" -- sh -c \
		'"$0" forks 12000; echo ready; exec "$0" stubborn 4' "$w" >"$tmp/out" &
	pid=$!
	# As long as it takes: what is slow is the forks themselves.
	until said "$tmp/out" ready || ! kill -0 $pid; do sleep 0.2; done
	eventually test "$(jq -c 'select(.reason == "fork-child-exit")' "$tmp/lines" | wc -l)" -ge 12000
	ids $pid >"$tmp/ids"
}

if ! needs_bpf "12,000 fork and _exit leave nothing behind"; then
	:
elif ! command -v bpftool >/dev/null; then
	skip "no bpftool to look with"
else
	after_forks
	check test "$(wc -l <"$tmp/ids")" -gt 8 "programs and maps of the watcher were not found"
	while read -r kind id; do
		if [ "$kind" = map ] && bpftool map show id "$id" | grep -q 'name row_index'; then
			bpftool map dump id "$id" -j >"$tmp/rows"
		fi
	done <"$tmp/ids"
	check test "$(jq 'length' "$tmp/rows")" -gt 0 "not even the live processes have rows"
	check test "$(jq 'length' "$tmp/rows")" -lt 300 "rows of the dead are still there"
	kill -KILL $(pgrep -P $pid)
	wait $pid
	is "$(jq -r 'select(.reason == "fork-child-exit" and .final) | .pid' "$tmp/lines" | wc -l)" 12000 \
		"records of forked children"
	is "$(jq -r 'select(.scope == "tree") | [.syscalls[] | select(.name == "clock_nanosleep").count] |
		add > 0' "$tmp/lines")" true "calls after them are recorded"
	is "$(jq -r 'select(.scope == "tree").lost | .attempted - .recorded - .no_return' "$tmp/lines")" 0 \
		"attempts unaccounted for"
	check eventually all_gone "$tmp/ids" "programs or maps are still there"
fi

if ! needs_bpf "the watcher killed with SIGKILL leaves no program attached, and the watched one running"; then
	:
elif ! command -v bpftool >/dev/null; then
	skip "no bpftool to look with"
else
	rm -f "$tmp/out"
	$bpf -o /dev/null -- "$w" stubborn 2 >"$tmp/out" &
	pid=$!
	eventually said "$tmp/out" ready
	ids $pid >"$tmp/ids"
	check test "$(grep -c prog "$tmp/ids")" -gt 5 "its programs were not found"
	all_gone "$tmp/ids" && fail "they are not there while it lives"
	kill -KILL $pid
	wait $pid 2>/dev/null
	check eventually all_gone "$tmp/ids" "programs or maps are still there"
	check eventually said "$tmp/out" "done" "the program did not go on"
fi

if needs_bpf "a million calls over live intervals add up to a million"; then
	$bpf -f jsonl --interval 5ms -o "$tmp/million" -- "$w" calls 1000000
	check test "$(jq -r 'select(.reason == "interval").seq' "$tmp/million" | wc -l)" -ge 10 "intervals"
	jq -r 'select(.scope == "process") | [.syscalls[] | select(.name == "getppid").count] | add // 0' \
		"$tmp/million" >"$tmp/n"
	is "$(awk 'NR > 1 && $1 < last { bad++ } { sum += $1 - last; last = $1 } END { print sum, bad + 0 }' \
		"$tmp/n")" "1000000 0" "sum of what each interval adds, and intervals that go back"
	is "$(jq -c 'select(.reason == "interval") | .lost.attempted - .lost.recorded - .lost.no_return -
		(.in_flight // [] | length)' "$tmp/million" | sort -u)" 0 "attempts of live records"
	jq -s '.[-1]' "$tmp/million" >"$tmp/json"
	ledger
fi

if needs_bpf "20,000 different numbers: what did not fit is counted"; then
	$bpf -f json -o "$tmp/json" -- python3 -c 'import ctypes
l = ctypes.CDLL(None)
for n in range(10000, 30000): l.syscall(n)'
	is "$(jq -c '[.complete, .lost.table_full > 15000, (.syscalls | length) > 4000,
		.lost.attempted - .lost.recorded - .lost.no_return - .lost.table_full]' "$tmp/json")" \
		'[false,true,true,0]' "complete, table_full, rows, attempts unaccounted for"
fi

if needs_bpf "attach counts from now on, with threads, lets go on SIGINT, and the program goes on"; then
	rm -f "$tmp/out"
	python3 -c 'import threading, time
def nap():
    for i in range(600): time.sleep(0.01)
t = [threading.Thread(target=nap) for i in range(3)]
[x.start() for x in t]; print("ready", flush=True); [x.join() for x in t]' >"$tmp/out" &
	child=$!
	eventually said "$tmp/out" ready
	env --default-signal=INT "$statpage" attach --engine bpf -f jsonl --interval 100ms \
		-o "$tmp/attach" -p $child &
	pid=$!
	sleeps()
	{
		[ "$(jq -r '[.syscalls[] | select(.name == "clock_nanosleep").count] | add // 0' \
			"$tmp/attach" 2>/dev/null | sort -n | tail -n 1)" -gt 30 ] 2>/dev/null
	}
	check eventually sleeps "calls of its threads are not seen"
	kill -INT $pid
	wait $pid
	is $? 0 status
	jq -s '.[-1] + {processes: [.[-2]]}' "$tmp/attach" >"$tmp/json"
	is "$(jq -c '[.reason, .engine.name, .threads_seen, .processes[0].pid]' "$tmp/json")" \
		"[\"interrupted\",\"bpf\",4,$child]" record
	is "$(jq -r --arg p $child '[.in_flight[].tid | tostring | select(. == $p)] | length' "$tmp/json")" 0 \
		"the leader waits since before we came: its call is not ours"
	wait $child
	is $? 0 "status of the program"
	"$statpage" attach --engine bpf -p 4194303 2>"$tmp/err"
	is "$?$(cat "$tmp/err")" "1statpage: no process has the pid 4194303" "a process that does not exist"
fi

# Two processes in two groups below $cg: one of threads that nap, one that goes on when it is told to.
in_groups()
{
	mkdir -p "$cg/a/b" "$cg/c"
	mkfifo "$tmp/go"
	rm -f "$tmp/out"
	# shellcheck disable=SC2016 # the inner shell's
	sh -c 'echo $$ >"$0/cgroup.procs" && exec python3 -c "$1"' "$cg/a/b" 'import threading, time
def nap():
    for i in range(3000): time.sleep(0.01)
t = [threading.Thread(target=nap) for i in range(3)]
[x.start() for x in t]; print("ready", flush=True); [x.join() for x in t]' >"$tmp/out" &
	napper=$!
	rm -f "$tmp/out2"
	# shellcheck disable=SC2016
	bash -c 'echo $$ >"$0/cgroup.procs" && echo ready && read -r _ <"$2" && "$1" calls 77 && "$1" forks 3' \
		"$cg/c" "$w" "$tmp/go" >"$tmp/out2" &
	told=$!
	"$w" graceful >"$tmp/out3" &
	outside=$!
	check eventually said "$tmp/out" ready "no program"
	check eventually said "$tmp/out2" ready "no shell"
}

# It has its programs, and waits.
watches() { [ "$(ids "$1" | grep -c prog)" -gt 5 ] && grep -q poll "/proc/$1/wchan"; }

watch_groups()
{
	env --default-signal=INT "$statpage" attach --cgroup "$cg" -f jsonl --interval 100ms -o "$tmp/groups" &
	pid=$!
	naps()
	{
		[ "$(jq -r --arg p "$napper" 'select(.pid == ($p | tonumber)) | .in_flight // [] | length' \
			"$tmp/groups" 2>/dev/null | sort -n | tail -n 1)" = 3 ] 2>/dev/null
	}
	check eventually naps "the three threads do not nap"
	echo go >"$tmp/go"
	wait "$told"
	kill -INT $pid
	wait $pid
	is $? 0 "exit status"
	jq -s --arg cg "$cg" '{tree: .[-1], ends: [.[] | select(.scope == "process" and .final)]}' "$tmp/groups" >"$tmp/json"
	is "$(jq -c --arg cg "$cg" '.tree | [.scope, .pid, .cgroup == $cg, .reason, .engine.name, .complete, .argv,
		has("exit")]' "$tmp/json")" '["tree",0,true,"interrupted","bpf",true,[],false]' "the tree's record"
	is "$(jq -c --arg p "$napper" '.ends[] | select(.pid == ($p | tonumber)) | [.reason, .threads_seen]' \
		"$tmp/json")" '["interrupted",4]' "the one with threads"
	is "$(jq -c '.ends[] | select(.argv[1] == "calls") | [.reason, .exit.code,
		(.syscalls[] | select(.name == "getppid").count)]' "$tmp/json")" '["exit",0,77]' "a child that executed"
	is "$(jq -c '[.ends[] | select(.reason == "fork-child-exit" and .argv[1] == "forks")] | length' \
		"$tmp/json")" 3 "children of a child"
	is "$(jq -c --arg p "$told" '.ends[] | select(.pid == ($p | tonumber)) | [.reason, .exit.code]' "$tmp/json")" \
		'["exit",0]' "the shell, which was there before"
	is "$(jq -c --arg p "$outside" --arg me "$pid" '[.ends[] | select(.pid == ($p, $me | tonumber))] | length' \
		"$tmp/json")" 0 "one outside, and the watcher"
	kill "$napper" "$outside" 2>/dev/null
	wait "$napper" "$outside" 2>/dev/null
}

cg=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/statpage-test-$$
if needs_bpf "attach --cgroup counts all processes of a group and below, and what they start"; then
	if mkdir "$cg" 2>/dev/null; then
		in_groups
		watch_groups
		rmdir "$cg/a/b" "$cg/a" "$cg/c"
		# An empty one is waited at, and the end of the group is that of the watch.
		"$statpage" attach --cgroup "$cg" -f jsonl --interval 100ms -o "$tmp/groups2" &
		pid=$!
		check eventually watches $pid "it does not watch"
		# shellcheck disable=SC2016
		sh -c 'echo $$ >"$0/cgroup.procs"; exec "$1" nap 500' "$cg" "$w" >"$tmp/out"
		check eventually rmdir "$cg" "it is not empty"
		wait $pid
		is $? 0 "status at an empty one that is removed"
		is "$(jq -c 'select(.scope == "tree" and .final) | [.reason, .processes_seen]' "$tmp/groups2")" \
			'["exit",1]' "its record"
	else
		skip "cgroup v2 is not writable here"
	fi
fi

# In the records of a group: a process that was seen.
seen() { [ -n "$(jq --arg p "$1" 'select(.pid == ($p | tonumber)).pid' "$tmp/groups" 2>/dev/null)" ]; }

if needs_bpf "attach --cgroup: what is moved in, or begins there, while it watches"; then
	if mkdir -p "$cg/a" 2>/dev/null; then
		sh -c 'echo $$ >"$0/cgroup.procs" && exec sleep 1000' "$cg" &
		first=$!
		rm -f "$tmp/out" "$tmp/go"
		mkfifo "$tmp/go"
		# shellcheck disable=SC2016
		bash -c 'echo ready; read -r _ <"$1"; exec "$0" calls 55' "$w" "$tmp/go" >"$tmp/out" &
		moved=$!
		check eventually said "$tmp/out" ready "no shell"
		check eventually grep -q $first "$cg/cgroup.procs" "it is not in the group"
		env --default-signal=INT "$statpage" attach --cgroup "$cg" -f jsonl --interval 100ms -o "$tmp/groups" &
		pid=$!
		check eventually seen $first "it does not watch"
		seen $moved && fail "a process outside is watched"
		echo $moved >"$cg/a/cgroup.procs"
		check eventually seen $moved "a process that was moved in is not seen"
		echo go >"$tmp/go"
		wait $moved
		child=$("$w" into_cgroup 33 "$cg/a")
		kill -INT $pid
		wait $pid
		is $? 0 "exit status"
		is "$(jq -s -c --arg p $moved '[.[] | select(.pid == ($p | tonumber) and .final)] | [length, (last |
			.syscalls[] | select(.name == "getppid").count)]' "$tmp/groups")" '[1,55]' "the moved one"
		is "$(jq -c --arg p "$child" 'select(.pid == ($p | tonumber) and .final) |
			[.syscalls[] | select(.name == "getppid").count]' "$tmp/groups")" '[33]' "the one that began there"
		kill $first
		wait $first 2>/dev/null
		rmdir "$cg/a" "$cg"
	else
		skip "cgroup v2 is not writable here"
	fi
fi

begin "attach --cgroup: what is no cgroup, and what cannot be combined, is told in one line"
for dir in "$tmp" "$tmp/none" lib/cgroup.c; do
	"$statpage" attach --cgroup "$dir" 2>"$tmp/err"
	is "$? $(head -n 1 "$tmp/err")" "2 statpage: --cgroup $dir: expected a directory of cgroup v2" "$dir"
done
cgroot=${cg%/statpage-test-*}
if [ -n "$cgroot" ]; then
	"$statpage" attach --cgroup "$cgroot" -p 1 2>"$tmp/err"
	is "$? $(head -n 1 "$tmp/err")" "2 statpage: expected either -p PID or --cgroup PATH" "with a pid"
	"$statpage" attach --cgroup "$cgroot" --engine ptrace 2>"$tmp/err"
	is "$? $(head -n 1 "$tmp/err")" "2 statpage: --cgroup: needs the engine bpf, not ptrace" "with ptrace"
	"$statpage" attach --cgroup "$cgroot" --kvm-stats 2>"$tmp/err"
	is "$?$(sed 's/cannot be used: .*/cannot be used/' "$tmp/err")" \
		"1statpage: --cgroup needs the bpf engine, which cannot be used" "with --kvm-stats"
fi

if needs_bpf "a process in a pid namespace has both its numbers"; then
	if unshare -pf true 2>/dev/null; then
		$bpf -f json -o "$tmp/json" -- unshare -pf "$w" calls 1
		is "$(jq -c '[.processes[] | select(.comm == "workload") | [.ns_pid == 1, .pid > 1]]' \
			"$tmp/json")" '[[true,true]]' "ns_pid and pid"
	else
		skip "no pid namespaces for us"
	fi
fi

has_page() { [ -n "$(find /proc/"$1"/fd -lname '/memfd:statpage-counters*' 2>/dev/null)" ]; }

if needs_bpf "attach: in a pid namespace whose second process is one like others"; then
	# shellcheck disable=SC2016 # the inner shell's
	if unshare -pf --mount-proc true 2>/dev/null; then
		unshare -pf --mount-proc bash -c '"$0" nap 1000 & exec "$1" attach -f json -o "$2" -p $!' \
			"$w" "$statpage" "$tmp/json" >"$tmp/out" 2>"$tmp/err"
		is "$? $(cat "$tmp/err")" "0 " "status and what it says"
		is "$(jq -c '[.reason, .pid]' "$tmp/json")" '["exit",2]' "its record"
	else
		skip "no pid namespaces for us"
	fi
fi

want='{"fast_reads":3,"fast_writes":0,"reserved12":1}'
if needs_bpf "the counters page of a program is read while it lives, or at its end"; then
	export STATPAGE_RUNTIME_STATS=json STATPAGE_STATS_OUTPUT=/dev/null
	$bpf -f json -o "$tmp/json" -- "$native/embed"
	is "$(jq -c '[.processes[].counters, .complete]' "$tmp/json")" "[$want,true]" "a program that ends"
	$bpf -f json -o "$tmp/json" -- sh -c '"$0"; "$0" & sleep 0.02; kill -KILL $!; wait' "$native/embed"
	is "$(jq -c '[.processes[] | select(.comm == "embed").counters]' "$tmp/json")" "[$want,$want]" "one that is killed"
	# While its watcher stands still nobody opens the page.
	# shellcheck disable=SC2016 # the inner shell's
	$bpf -f json -o "$tmp/json" -- bash -c 'kill -STOP $PPID; "$0"; kill -CONT $PPID' "$native/embed"
	is "$(jq -c '[.processes[] | select(.comm == "embed").counters]' "$tmp/json")" "[$want]" "one that nobody saw alive"
	# Nor is it there any more when a signal has ended it: then the record is not complete.
	# shellcheck disable=SC2016
	$bpf -f json -o "$tmp/json" -- bash -c 'kill -STOP $PPID; "$0" & sleep 0.02; kill -KILL $!; wait; kill -CONT $PPID' \
		"$native/embed" 2>"$tmp/err"
	is "$(jq -c '[.lost.records_dropped, ([.processes[] | select(.comm == "embed").counters])]' "$tmp/json")" \
		'[1,[null]]' "one that was killed unseen"
	is "$(grep '^statpage:' "$tmp/err")" "statpage: 1 events were lost: records of processes are not complete" "told"
	LD_PRELOAD=$PWD/build/libstatpage-vdso.so "$w" nap 2000 >"$tmp/out" &
	napper=$!
	check eventually has_page $napper "it has no page"
	"$statpage" attach --engine bpf -f json -o "$tmp/json" -p $napper
	wait $napper
	is "$(jq -c '[.processes[].counters | keys]' "$tmp/json")" '[["clock_gettime","getcpu","gettimeofday","time"]]' \
		"one that had it before"
	unset STATPAGE_RUNTIME_STATS STATPAGE_STATS_OUTPUT
fi

# The exits of a KVM host by our engine, and as it counts them itself.
kvm_host()
{
	if [ ! -w /dev/kvm ] || [ ! -x build/vmm ]; then
		skip "no /dev/kvm"
		return
	fi
	rm -f "$tmp/in" "$tmp/json"
	STATPAGE_RUNTIME_STATS=json STATPAGE_STATS_OUTPUT="$tmp/in" $bpf -f json -o "$tmp/json" -- build/vmm "$@" \
		2>"$tmp/err"
	is "$?$(cat "$tmp/err")" 0 "exit status"
	is "$(jq -c '.vcpu | [.vcpus, .exits, .null_exits, (.reasons | map([.name, .reason, .count, .null]))]' \
		"$tmp/json")" "$(jq -sc '[.[].vcpu] | [(map(.vcpus) | add), (map(.exits) | add),
		(map(.null_exits) | add), ([.[].reasons[]] | group_by(.reason) | map([.[0].name, .[0].reason,
		(map(.count) | add), (map(.null) | add)]))]' "$tmp/in")" "virtual CPUs, and exits by reason"
	is "$(jq -c '.vcpu | [.run_call_ns - ([.reasons[].total_ns] | add), .run_call_ns - .halted_ns - .guest_run_ns,
		.guest_run_source]' "$tmp/json")" '[0,0,"kvm_vcpu_wakeup"]' "times, and who knows the halts"
	ledger
}

if needs_bpf "virtual CPU exits are what a KVM host counts itself"; then
	kvm_host io:100 mmio:50
fi
if needs_bpf "virtual CPU exits: a guest that spins and is kicked, of forked hosts, too"; then
	kvm_host -c 2 io:10 spin:100
fi
if needs_bpf "virtual CPU exits: a halt in the kernel is no time of the guest"; then
	kvm_host -i halt:300
	[ -n "$why" ] || is "$(jq '.vcpu.halted_ns > 250000000' "$tmp/json")" true "halted"
fi

# What the engine says in one line, and which one counts then.
falls_back()
{
	local want=$1
	shift

	rm -f "$tmp/json"
	"$@" run --engine bpf -f json -o "$tmp/json" -- "$(command -v true)" >"$tmp/out" 2>&1
	is $? 0 "exit status"
	is "$(cat "$tmp/out")" "statpage: the bpf engine cannot be used: $want; using ptrace" "reason"
	is "$(jq -r .engine.name "$tmp/json")" ptrace "engine"
	"$@" run --engine auto -f json -o "$tmp/json" -- "$(command -v true)" >"$tmp/out" 2>&1
	is "$?$(cat "$tmp/out")" 0 "auto: status and messages"
	is "$(jq -r .engine.name "$tmp/json")" ptrace "auto: engine"
}

# Another user runs it, and writes.
chmod 777 "$tmp"
cp "$statpage" "$tmp/statpage"
caps="it needs CAP_BPF and CAP_PERFMON, as root has them"
begin "an ordinary user: one line says why, and ptrace is used"
if [ "$(id -u)" = 0 ] && [[ $reason != *"built without"* ]]; then
	falls_back "$caps" setpriv --reuid 65534 --clear-groups "$tmp/statpage"
else
	skip "${reason:-not root}"
fi

if needs_bpf "root without capabilities: the same"; then
	falls_back "$caps" setpriv --bounding-set -all --inh-caps -all "$statpage"
fi
if needs_bpf "an ordinary user, --cgroup: there is no other engine"; then
	setpriv --reuid 65534 --clear-groups "$tmp/statpage" attach --cgroup "$cgroot" 2>"$tmp/err"
	is "$?$(cat "$tmp/err")" "1statpage: --cgroup needs the bpf engine, which cannot be used: $caps" "message"
fi
if needs_bpf "a kernel without BTF: the same"; then
	# shellcheck disable=SC2016 # the inner shell's
	falls_back "this kernel has no BTF (/sys/kernel/btf/vmlinux)" \
		unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf && exec "$0" "$@"' "$statpage"
fi
if needs_bpf "a seccomp filter that forbids bpf(): the same"; then
	falls_back "a seccomp filter forbids bpf(): Operation not permitted" "$w" no_bpf "$statpage"
fi
if needs_bpf "--kvm-stats: the same"; then
	"$statpage" run --engine bpf --kvm-stats -o /dev/null -- true 2>"$tmp/err"
	is "$(cat "$tmp/err")" "statpage: the bpf engine cannot be used: --kvm-stats needs a watcher that can stop the program; using ptrace" \
		"reason"
fi

if needs_bpf "--engine auto takes it where it can"; then
	"$statpage" run --engine auto -f json -o "$tmp/json" -- true
	is "$(jq -r .engine.name "$tmp/json")" bpf engine
fi

finish
