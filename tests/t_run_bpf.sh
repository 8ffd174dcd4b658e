#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# This test checks that the bpf engine of `statpage run` loads on this kernel, counts what the ptrace
# engine counts, leaves nothing of BPF behind, and says in one line why where it cannot be used.
# shellcheck disable=SC3043 # busybox's sh has local
cd /tmp || exit 1
# shellcheck source=tests/tap.sh
. /t/tap.sh

# `name count errors` of the tree's table in a summary, and other numbers that do not depend on time
table()
{
	awk '/^process / { exit } /^calls_|^no_return|^exit_/ { print }
		$1 ~ /^[0-9]+$/ { print $NF, $1, $2 }' "$1" | sort
}

# A number of a call in the last record of a file: `of FILE CALL KEY`
of()
{
	grep '"scope":"tree"' "$1" | sed 's/"categories":.*//' | grep -o "\"name\":\"$2\",\"nr\"[^}]*}*[^}]*}" |
		grep -o "\"$3\":[0-9]*" | head -n 1 | cut -d: -f2
}

as_before() { bpf_ids | cmp -s - before; }

bpf_ids >before
is "$(statpage run --engine bpf -o /dev/null -- true 2>&1)" "" "what it says"
end "it loads on this kernel"

case $(uname -r) in
6.[1-9].* | 6.1[0-2].*) preempts=false ;;
*) preempts=true ;;
esac

# same STATUS PROCESSES COMMAND...
same()
{
	local status="$1" processes="$2"

	shift 2
	statpage run --engine ptrace -o ptrace -- "$@" >out 2>&1
	is $? "$status" "exit status with ptrace"
	statpage run --engine bpf -o bpf -- "$@" >out 2>&1
	is $? "$status" "exit status"
	is "$(sed -n '/^process /q; s/^engine //p' bpf)" bpf "engine"
	# A kernel that preempts leaves out programs while the watcher is preempted in a map, too: that is told.
	if $preempts && grep -q "events were lost: records of processes are not complete" out; then
		end "counts as ptrace, or tells of events that were lost: $*"
		return
	fi
	is "$(table bpf)" "$(table ptrace)" "what bpf and ptrace count"
	is "$(awk '/^process / { exit } /^processes|^threads/ { print $2 }' bpf | xargs)" "$processes $processes" \
		"processes and threads"
	[ "$(table bpf | wc -l)" -gt 5 ] || is "$(table bpf)" "a table" "rows"
	end "counts as ptrace: $*"
}

same 0 1 workload calls 1000
is "$(awk '/^process / { exit } $NF == "getppid" || $NF == "close" { print $NF, $1, $2 }' bpf | sort | xargs)" \
	"close 1 1 getppid 1000 0" "calls of a workload that is known"
end "and that is what the workload does"
same 0 51 workload forks 50
same 0 1 workload execs 20
same 0 11 workload spawns 10
same 0 11 workload vforks 10
same 7 1 i386call

statpage run --engine bpf -f json -o json -- workload thread_exec
is $? 0 "exit status"
is "$(of json getppid count)" 7 "getppid of the program executed"
is "$(grep -c '"reason":"exec"' json)" 1 "lives that end by exec"
is "$(grep '"scope":"tree"' json | grep -o '"threads_seen":[0-9]*')" '"threads_seen":3' "threads"
end "exec by a thread that is not the leader"

statpage run --engine bpf -f json -o json -- workload threads 200 >own
own() { awk -v n="$1" '$1 == n { print $2 }' own; }
# Where the kernel preempts a program at a call (6.13 and later), it leaves out those of other threads on that CPU:
# then the record says that it is not complete, and has a few less.
few=0
[ "$(grep '"scope":"tree"' json | grep -o '"complete":[a-z]*')" = '"complete":true' ] || few=10
case $(uname -r) in 6.[1-9].* | 6.1[0-2].*) is $few 0 "complete" ;; esac
# near NAME GOT OWN
near()
{
	if [ "$2" -gt "$3" ] || [ "$2" -lt $(($3 - few)) ]; then is "$2" "$3" "$1"; fi
}
near gettid "$(of json gettid count)" "$(own gettid)"
near write "$(of json write count)" $(($(own write_ring) + 2))
near "EINVAL of futex" "$(of json futex 22)" "$(own futex_errors)"
end "8 threads on futexes and pipes count themselves the same"

# Numbers of a record that a program still runs for: each adds to those before, and open calls are told.
statpage run --engine bpf -f jsonl --interval 20ms -o lines -- workload calls 30000
grep '"scope":"process"' lines | sed -n 's/.*"name":"getppid","nr":110,[^{}]*"count":\([0-9]*\).*/\1/p' >counts
is "$(awk '$1 < last { back++ } { last = $1 } END { print last, back + 0 }' counts)" "30000 0" \
	"the last count, and counts that go back"
[ "$(grep -c '"reason":"interval"' lines)" -ge 2 ] || is "$(grep -c '"reason":"interval"' lines)" 2 "intervals"
end "30,000 calls over live intervals add up"

statpage run --engine bpf -f jsonl --interval 100ms -o lines -- workload nap 4000 >out
is "$(cat out)" "nanosleep 0 0" "result of the call"
grep '"reason":"interval"' lines | grep -q '"in_flight":\[{"tid":[0-9]*,"name":"nanosleep"' ||
	is "$(grep -o '"in_flight":[^]]*' lines | head -n 1)" nanosleep "open calls"
[ "$(of lines nanosleep waiting_ns)" -gt 1000000000 ] || is "$(of lines nanosleep waiting_ns)" "> 1 s" "waiting"
is $(($(of lines nanosleep waiting_ns) + $(of lines nanosleep on_cpu_ns))) "$(of lines nanosleep total_ns)" \
	"on CPU and waiting"
end "a call in flight is told, and was spent waiting"

workload graceful >out &
victim=$!
eventually grep -q ready out
: >attach
statpage attach --engine bpf -f jsonl --interval 100ms -o attach -p $victim &
eventually grep -q clock_nanosleep attach
kill -TERM $! # a shell's background job ignores SIGINT
wait $!
is $? 0 "exit status"
is "$(grep '"scope":"tree"' attach | grep -o '"reason":"[a-z]*"')" '"reason":"interrupted"' "record"
kill -TERM $victim
wait $victim
is $? 55 "status of the program, which went on"
end "attach counts, and lets go"

cg=/sys/fs/cgroup/t
mkdir -p $cg/a
workload graceful >out &
victim=$!
echo $victim >$cg/a/cgroup.procs
mkfifo go
sh -c 'read -r _ <go; workload calls 77; workload forks 3; true' &
told=$!
echo $told >$cg/cgroup.procs
eventually grep -q ready out
: >attach
statpage attach --cgroup $cg -f jsonl --interval 100ms -o attach &
watcher=$!
eventually grep -q clock_nanosleep attach
echo go >go
wait $told
kill -TERM $watcher
wait $watcher
is $? 0 "exit status"
is "$(grep '"scope":"tree"' attach | grep -o '"pid":0,"ppid":0,"cgroup":"[^"]*","execs":[0-9]*,"processes_seen":[0-9]*')" \
	'"pid":0,"ppid":0,"cgroup":"'$cg'","execs":2,"processes_seen":7' "the tree"
is "$(grep '"final":true' attach | grep -o '"reason":"[a-z-]*"' | sort | uniq -c | awk '{ print $1, $2 }' | xargs)" \
	"3 reason:exit 3 reason:fork-child-exit 2 reason:interrupted" "how they ended, the tree among them"
is "$(of attach getppid count)" 77 "calls of a child"
kill -KILL $victim
wait
rmdir $cg/a $cg
end "attach --cgroup counts what is in it, and what that starts"

eventually as_before || is "$(bpf_ids | xargs)" "$(xargs <before)" "programs, maps, links"
end "nothing of BPF is left"

# Killed while it loads, while it starts the program, while it watches.
for i in 0 1 2 3 4 5 6 7 8 9 10 11; do
	statpage run --engine bpf -o /dev/null -- workload nap 60000 >/dev/null &
	sleep 0.$((i / 10))$((i % 10))
	[ $i -lt 10 ] || sleep 1
	kill -KILL $!
	wait $! 2>/dev/null
done
killall workload 2>/dev/null
eventually as_before || is "$(bpf_ids | xargs)" "$(xargs <before)" "programs, maps, links"
end "a watcher that is killed at any point leaves nothing of BPF"

# What the engine says in one line, and which one counts then: falls_back REASON COMMAND... STATPAGE
falls_back()
{
	local want="$1"
	shift

	rm -f json
	"$@" run --engine bpf -f json -o json -- true 2>err
	is $? 0 "exit status"
	is "$(cat err)" "statpage: the bpf engine cannot be used: $want; using ptrace" "reason"
	is "$(grep '"scope":"tree"' json | grep -o '"engine":{"name":"[a-z]*"')" '"engine":{"name":"ptrace"' "engine"
	"$@" run --engine auto -f json -o json -- true 2>err
	is "$?$(cat err)" 0 "auto: status and what it says"
}

rm -rf nobody
mkdir -m 777 nobody
caps="it needs CAP_BPF and CAP_PERFMON, as root has them"
for disabled in 0 2; do
	echo $disabled >/proc/sys/kernel/unprivileged_bpf_disabled
	su nobody -s /bin/sh -c 'cd /tmp/nobody; rm -f json
		/t/statpage run --engine bpf -f json -o json -- true 2>err; echo $? >status'
	is "$(cat nobody/status) $(cat nobody/err)" "0 statpage: the bpf engine cannot be used: $caps; using ptrace" \
		"status and reason with unprivileged_bpf_disabled=$disabled"
	is "$(grep '"scope":"tree"' nobody/json | grep -o '"engine":{"name":"[a-z]*"')" \
		'"engine":{"name":"ptrace"' "engine"
done
end "an ordinary user, whether or not some BPF is allowed: one line, and ptrace"

falls_back "a seccomp filter forbids bpf(): Operation not permitted" workload no_bpf statpage
end "a seccomp filter that forbids bpf(): one line, and ptrace"

mount -t tmpfs none /sys/kernel/btf
falls_back "this kernel has no BTF (/sys/kernel/btf/vmlinux)" statpage
umount /sys/kernel/btf
end "a kernel without BTF: one line, and ptrace"

# Where the kernel may preempt programs they are attached as perf is.
if $preempts; then
	umount /sys/kernel/tracing
	umount /sys/kernel/debug
	falls_back "tracefs is not mounted (/sys/kernel/tracing)" statpage
	mount -t debugfs none /sys/kernel/debug
	mount -t tracefs none /sys/kernel/tracing
	end "no tracefs, where it is needed: one line, and ptrace"
fi

statpage run --engine auto -o sum -- true
is "$(sed -n '/^process /q; s/^engine //p' sum)" bpf "engine"
end "auto takes it"

finish
