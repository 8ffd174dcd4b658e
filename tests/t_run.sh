#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# This test checks, on a kernel that has them, what `statpage run` does with 32-bit programs, with
# Yama, and that its counts are the kernel's own of the same run.
# shellcheck disable=SC3043 # busybox's sh has local
cd /tmp || exit 1
# shellcheck source=tests/tap.sh
. /t/tap.sh

# `count errors` of a call in the tree's table of a summary
row()
{
	awk -v n="$2" '/^process / { exit } $NF == n { print $1, $2 }' "$1"
}

statpage run -o sum -- i386call
is $? 7 "exit status"
is "$(row sum getpid/i386)" "23 0" "getpid"
is "$(row sum close/i386)" "2 2" "close"
is "$(row sum writev)$(row sum lstat)$(row sum writev/i386)" "" "calls of the other table"
is "$(row sum execve)" "1 0" "execve, made as a 64-bit program"
is "$(grep -c 'no_return 1 exit/i386' sum)" 2 "exit"
end "a 32-bit program is counted by its own table"

statpage run -o sum -- sh -c 'i386call; i386call; true'
is "$(row sum getpid/i386)" "46 0" "getpid of two"
end "32-bit programs that a 64-bit one starts"

echo 1 >/proc/sys/kernel/yama/ptrace_scope
su nobody -s /bin/sh -c 'sleep 20 & echo $! >/tmp/victim; wait' &
sleep 1
victim=$(cat victim)
su nobody -s /bin/sh -c "/t/statpage attach -p $victim" 2>err
is $? 1 "exit status"
is "$(grep -c "pid $victim: Yama forbids to attach (kernel.yama.ptrace_scope is 1)" err)" 1 \
	"message ($(cat err))"
su nobody -s /bin/sh -c "/t/statpage run -o /tmp/yama -- true"
is $? 0 "status of run, which Yama allows"
echo 0 >/proc/sys/kernel/yama/ptrace_scope
kill "$victim"
wait
end "Yama: attach says what forbids it and what to do, run works"

# Count what the kernel's tracepoint sees of every task but ourselves and the watcher.
t=/sys/kernel/tracing
same_run()
{
	local title="$1" root watcher

	rm -f lines
	shift
	echo 40960 >$t/buffer_size_kb
	echo >$t/trace
	echo 1 >$t/events/raw_syscalls/sys_exit/enable
	statpage run -f jsonl -o lines -- "$@" >out 2>&1
	is $? 0 "exit status"
	echo 0 >$t/events/raw_syscalls/sys_exit/enable
	root=$(sed -n 's/.*"scope":"tree".*"pid":\([0-9]*\),"ppid".*/\1/p' lines)
	watcher=$(sed -n 's/.*"scope":"tree".*"ppid":\([0-9]*\).*/\1/p' lines)
	# comm-TID [cpu] flags time: sys_exit: NR n = ret. rt_sigreturn has lost its number by then; a new
	# task leaves the call that made it, too, and that is not a call of its own. The root is the
	# watcher's child until its exec.
	awk -v me=$$ -v watcher="$watcher" -v root="$root" '!/^#/ && /sys_exit: NR/ {
		match($0, /-[0-9]+ +\[/)
		tid = substr($0, RSTART + 1) + 0
		calibration = substr($0, 1, RSTART - 1) ~ /statpage/
		sub(/.*NR /, "")
		if (tid == root && $1 == 59)
			executed = 1
		if (tid == me || tid == watcher || calibration || (tid == root && !executed) ||
		    (($1 == 56 || $1 == 57 || $1 == 58 || $1 == 435) && $3 == 0))
			next
		n[$1 == -1 ? 15 : $1]++
	} END { for (i in n) print i, n[i] }' $t/trace | sort >kernel
	grep '"scope":"tree"' lines | sed 's/"categories":.*//' |
		grep -o '"nr":[0-9]*,"abi":"x86_64","category":"[a-z_]*","count":[0-9]*' |
		sed 's/"nr":\([0-9]*\),.*"count":\([0-9]*\)/\1 \2/' | sort >ours
	is "$(cat $t/per_cpu/cpu*/stats | awk '/overrun/ { n += $2 } END { print n + 0 }')" 0 "lost by the tracer"
	is "$(diff kernel ours)" "" "kernel's counts, and ours"
	[ "$(wc -l <ours)" -gt 8 ] || is "$(wc -l <ours)" "more than 8" "rows"
	echo >$t/trace
	end "counts of the same run, by the kernel's tracepoint: $title"
}

same_run "a pipeline of ten commands" sh -c \
	'seq 500 | cat | cat | cat | cat | cat | cat | sort | uniq | wc -l'
same_run "8 threads on futexes and pipes" workload threads 40
same_run "forks" workload forks 50

finish
