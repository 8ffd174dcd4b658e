#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks that `statpage run` and `attach` are transparent: exit statuses, signals, stops and the
# terminal pass through, and the program outlives its watcher.
. "$(dirname "$0")/tap.sh"

w=$native/workload
# Without job control a shell's background jobs ignore SIGINT, and we would too.
run="env --default-signal=INT,QUIT $statpage run --engine ptrace"

kid()
{
	child=$(pgrep -P "$1" -x workload)
}

said()
{
	grep -q "$2" "$1" 2>/dev/null
}

field()
{
	awk -v f="$2:" '$1 == f { print $2 }' "/proc/$1/status" 2>/dev/null
}

untraced()
{
	[ "$(field "$child" TracerPid)" = 0 ] && [ "$(field "$child" State)" != t ]
}

status_of()
{
	"$statpage" run --engine ptrace -o "$tmp/o" -- "$@" >"$tmp/out" 2>"$tmp/err"
	echo $?
}

begin "exit statuses are the command's"
is "$(status_of true)" 0 true
is "$(status_of false)" 1 false
is "$(status_of sh -c 'exit 77')" 77 "exit 77"
for sig in 9 15 6 11; do
	is "$(status_of "$w" by_signal $sig)" $((128 + sig)) "signal $sig"
done

begin "a command that is not found or cannot be executed"
is "$(status_of no-such-command)" 127 "not found"
is "$(cat "$tmp/err")" "statpage: no-such-command: command not found" "message"
is "$(status_of ./no/such/file)" 127 "no such path"
is "$(status_of /etc/passwd)" 126 "no execute permission"
is "$(status_of /tmp)" 126 "a folder"
printf 'no program\n' >"$tmp/junk"
chmod +x "$tmp/junk"
is "$(status_of "$tmp/junk")" 126 "no program"
is "$(status_of sh -c 'no-such-command')" 127 "the shell's own 127"

begin "wrong use is told in one line, with exit status 2"
for args in "run" "run -f xml true" "run --interval 5 -f jsonl true" "run --interval 1s true" \
	"run --signal KILL true" "run --engine magic true" "run --pin=9999 true" "run -p 1 true" \
	"attach" "attach -p x" "attach -p 0" "attach --pin -p 1" "attach -p 1 extra"; do
	# shellcheck disable=SC2086
	"$statpage" $args >"$tmp/out" 2>"$tmp/err"
	is "$?" 2 "status of '$args'"
	check test "$(wc -l <"$tmp/err")" -le 2 "lines for '$args'"
	is "$(wc -c <"$tmp/out")" 0 "standard output of '$args'"
done

for sig in INT TERM HUP; do
	begin "SIG$sig to the watcher once: the program gets it and ends as it likes"
	rm -f "$tmp/out"
	$run -f json -o "$tmp/json" -- "$w" graceful >"$tmp/out" &
	pid=$!
	eventually said "$tmp/out" ready
	kill -$sig $pid
	wait $pid
	ret=$?
	case $sig in
	INT) is $ret 42 status ;;
	TERM) is $ret 55 status ;;
	HUP) is $ret 129 status ;;
	esac
	is "$(jq -r .reason "$tmp/json")" exit reason
done

for sig in INT TERM; do
	begin "SIG$sig to the watcher twice: records now, the program goes on untraced"
	rm -f "$tmp/out"
	$run -f json -o "$tmp/json" -- "$w" steadfast 6 >"$tmp/out" &
	pid=$!
	eventually said "$tmp/out" ready
	kid $pid
	kill -$sig $pid
	sleep 1 # later than one request
	kill -$sig $pid
	wait $pid
	is $? $((128 + $(kill -l $sig))) status
	check eventually untraced "the program is still traced"
	is "$(jq -c '[.reason, .final, (.processes | length), .processes[0].reason,
		.processes[0].final]' "$tmp/json")" '["interrupted",true,1,"interrupted",true]' record
	is "$(jq -r '.in_flight[0].tid' "$tmp/json")" "$child" "the call in flight"
	check test "$(jq -r '.in_flight[0].age_ns > 0' "$tmp/json")" = true "its age"
	check eventually said "$tmp/out" "done" "the program did not go on"
done

cat >"$tmp/twice.py" <<'EOF2'
import os, pty, sys, time

statpage, engine, record, workload = sys.argv[1:]
pid, fd = pty.fork()
if not pid:
    os.execv(statpage, [statpage, "run", "--engine", engine, "-f", "json", "-o", record, "--", workload, "stubborn", "4"])
seen = b""
while b"ready" not in seen:
    seen += os.read(fd, 100)
for _ in range(2):
    os.write(fd, b"\x03")
    time.sleep(1.5)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
EOF2
for engine in ptrace auto; do
	begin "$engine: ^C on a terminal, twice, but not at once: the program gets both, and the watch goes on"
	is "$(timeout 30 python3 "$tmp/twice.py" "$statpage" $engine "$tmp/json" "$w")" 0 status
	is "$(jq -c '[.reason, .processes[0].reason]' "$tmp/json")" '["exit","exit"]' "the record"
done

begin "the same signal twice at once is one request: timeout(1) sends it to its child and to its group"
timeout 1 "$statpage" run --engine ptrace -f json -o "$tmp/json" -- "$w" nap 20000
is $? 124 "status of timeout"
is "$(jq -c '[.reason, .exit.signal, .processes[0].exit.signal]' "$tmp/json")" '["exit",15,15]' "the record"

begin "the watcher killed with SIGKILL leaves the program running and untraced"
rm -f "$tmp/out"
"$statpage" run --engine ptrace -o /dev/null -- "$w" stubborn 2 >"$tmp/out" &
pid=$!
eventually said "$tmp/out" ready
kid $pid
kill -KILL $pid
wait $pid 2>/dev/null
check eventually untraced "the program is traced by somebody"
check eventually said "$tmp/out" "done" "the program did not go on"

begin "a program stopped and continued in a 1 s nanosleep"
rm -f "$tmp/out"
"$statpage" run --engine ptrace -f json -o "$tmp/json" -- "$w" nap 1000 >"$tmp/out" &
pid=$!
eventually kid $pid
sleep 0.4
kill -STOP "$child"
stopped()
{
	[ "$(field "$child" State)" = t ] || [ "$(field "$child" State)" = T ]
}
check eventually stopped "it is not stopped"
sleep 0.5
check stopped "it did not stay stopped"
kill -CONT "$child"
wait $pid
is $? 0 status
is "$(cat "$tmp/out")" "nanosleep 0 0" "what the program saw"
is "$(jq -c '[.syscalls[] | select(.name == "nanosleep") | .count, .errnos]' "$tmp/json")" \
	'[1,{"516":1}]' "nanosleep ends with a restart"
is "$(jq -c '[.syscalls[] | select(.name == "restart_syscall") | .count, .errors]' "$tmp/json")" \
	'[1,0]' "and is restarted"

begin "the whole job is stopped and continued, as by ^Z and fg"
set -m
rm -f "$tmp/out"
"$statpage" run --engine ptrace -o /dev/null -- "$w" nap 3000 >"$tmp/out" &
pid=$!
set +m
eventually kid $pid
sleep 0.3
kill -TSTP -- -$pid
both_stopped()
{
	stopped && [ "$(field "$pid" State)" = T ]
}
check eventually both_stopped "it does not stop"
kill -CONT -- -$pid
wait $pid
is $? 0 status
is "$(cat "$tmp/out")" "nanosleep 0 0" "what the program saw"

begin "the terminal is the program's: ^C reaches it, and it is asked once"
cat >"$tmp/term.py" <<'PY'
import os, pty, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
text = b""
while b"ready" not in text:
    text += os.read(fd, 100)
time.sleep(0.3)
os.write(fd, b"\x03")
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
is "$(python3 "$tmp/term.py" "$statpage" run --engine ptrace -f json -o "$tmp/json" -- "$w" graceful)" 42 status
is "$(jq -r '[.syscalls[] | select(.name == "rt_sigreturn").count] | add' "$tmp/json")" 1 \
	"signals handled"

begin "a debugger is there already: who, and what follows"
rm -f "$tmp/out"
"$w" stubborn 3 >"$tmp/out" &
child=$!
eventually said "$tmp/out" ready
strace -o /dev/null -p $child 2>/dev/null &
tracer=$!
traced()
{
	[ "$(field "$child" TracerPid)" = "$tracer" ]
}
eventually traced
"$statpage" attach --engine ptrace -p $child 2>"$tmp/err"
is $? 1 status
is "$(cat "$tmp/err")" \
	"statpage: pid $child is traced by strace (pid $tracer) already: a process has one tracer" message
kill $tracer
wait $tracer $child 2>/dev/null

begin "a tracer inside a watched program is refused by the kernel, not by a hang"
is "$(status_of "$w" debugger)" 3 "status of the inner tracer"
is "$(cat "$tmp/out")" "traceme 1" "its errno is EPERM"
"$statpage" run --engine ptrace -o /dev/null -- "$statpage" run --engine ptrace -o /dev/null -- true 2>"$tmp/err"
is $? 1 "status of a watch inside a watch"
check grep -q "is traced by statpage" "$tmp/err" "its message"

begin "attach: a process that does not exist, and one of somebody else"
"$statpage" attach --engine ptrace -p 4194303 2>"$tmp/err"
is $? 1 status
is "$(cat "$tmp/err")" "statpage: no process has the pid 4194303" message
if [ "$(id -u)" = 0 ]; then
	chmod 755 "$tmp"
	cp "$statpage" "$tmp/statpage"
	setpriv --reuid 65534 --clear-groups "$tmp/statpage" attach -p $$ 2>"$tmp/err"
	is $? 1 "status for another user"
	is "$(cat "$tmp/err")" \
		"statpage: pid $$ belongs to user 0: attach as that user, or as root" "message"
fi

begin "where a container's filter forbids ptrace, that is said, and nothing runs"
"$w" no_ptrace "$statpage" run --engine ptrace -- touch "$tmp/ran" 2>"$tmp/err"
is $? 1 status
check grep -qx "statpage: pid [0-9]* cannot be traced: Operation not permitted; the seccomp filter that .*" \
	"$tmp/err" "message: $(cat "$tmp/err")"
check test ! -e "$tmp/ran" "the program ran"

begin "attach counts from now on, lets go on SIGINT, and the program goes on"
rm -f "$tmp/out"
"$w" stubborn 3 >"$tmp/out" &
child=$!
eventually said "$tmp/out" ready
env --default-signal=INT "$statpage" attach --engine ptrace -f json -o "$tmp/json" -p $child &
pid=$!
traced()
{
	[ "$(field "$child" TracerPid)" = "$pid" ]
}
eventually traced
sleep 0.5
kill -INT $pid
wait $pid
is $? 0 status
check eventually untraced "it is still traced"
is "$(jq -r .reason "$tmp/json")" interrupted reason
check test "$(jq -r '[.syscalls[] | select(.name == "clock_nanosleep").count] | add > 5' \
	"$tmp/json")" = true "too few calls"
wait $child
is $? 0 "status of the program"

begin "attach: the tree's parent is the program's, and a thread, a zombie, a kernel thread are named as such"
is "$(jq -c '[.pid, .ppid, .processes[0].ppid]' "$tmp/json")" "[$child,$$,$$]" "pid and parents"
rm -f "$tmp/out"
"$w" many_threads 3 >"$tmp/out" &
many=$!
thread()
{
	tid=$(cd "/proc/$many/task" 2>/dev/null && echo [0-9]* | cut -s -d ' ' -f 2)
	[ -n "$tid" ]
}
if eventually thread; then
	for engine in ptrace auto; do
		"$statpage" attach --engine $engine -p "$tid" 2>"$tmp/err"
		is $? 1 "$engine: status for a thread"
		is "$(cat "$tmp/err")" "statpage: $tid is a thread of process $many: attach to that" "a thread"
	done
fi
wait $many
rm -f "$tmp/out"
python3 -c 'import os, time
pid = os.fork()
if pid:
    print(pid, flush=True)
    time.sleep(3)' >"$tmp/out" &
eventually test -s "$tmp/out"
zombie=$(cat "$tmp/out")
ended()
{
	[ "$(field "$zombie" State)" = Z ]
}
check eventually ended "no zombie"
for engine in ptrace auto; do
	"$statpage" attach --engine $engine -p "$zombie" 2>"$tmp/err"
	is "$(cat "$tmp/err")" "statpage: pid $zombie has ended, and waits for its parent $! to notice" "$engine: a zombie"
	[ "$(cat /proc/2/comm 2>/dev/null)" = kthreadd ] || continue
	"$statpage" attach --engine $engine -p 2 2>"$tmp/err"
	is "$(cat "$tmp/err")" "statpage: pid 2 is a kernel thread: it makes no system calls" "$engine: a kernel thread"
done
wait

begin "attach sees threads that exist, and an end by exit_group"
"$w" threads 3000 >"$tmp/own" &
child=$!
"$statpage" attach --engine ptrace -f json -o "$tmp/json" -p $child 2>"$tmp/err"
if jq -e . "$tmp/json" >/dev/null 2>&1; then
	is "$(jq -r '.lost | .attempted - .recorded - .no_return' "$tmp/json")" 0 "unaccounted"
	check test "$(jq -r .threads_seen "$tmp/json")" -gt 1 "threads"
else
	check grep -q "no process" "$tmp/err" "neither a record nor a reason"
fi
wait $child

begin "more threads than descriptors: the split is left out for some, and that is said"
(
	ulimit -n 60
	exec "$statpage" run --engine ptrace -f json -o "$tmp/json" -- "$w" many_threads 100
)
is $? 0 status
is "$(jq -r .threads_seen "$tmp/json")" 101 threads
check test "$(jq -r '.engine.split_absent' "$tmp/json" | grep -c 'threads found no descriptor')" = 1 \
	"it is not said"
is "$(jq -c '[.syscalls[] | select(.name == "execve") | has("on_cpu_ns")]' "$tmp/json")" \
	'[true]' "calls before are told apart all the same"
is "$(jq -c '[.no_return[] | select(.name == "clock_nanosleep").count] | add' "$tmp/json")" 100 \
	"sleeps that never return"

begin "a set-user-ID program loses its privileges, and that is said"
if [ "$(id -u)" = 0 ]; then
	cp "$(command -v id)" "$tmp/setid"
	chmod 4755 "$tmp/setid"
	got=$(setpriv --reuid 65534 --clear-groups "$tmp/statpage" run -o /dev/null -- "$tmp/setid" -u \
		2>"$tmp/err")
	is "$got" 65534 "effective user"
	check grep -q "set-user-ID" "$tmp/err" "it is not said"
else
	skip "needs root to make one"
fi

begin "without privileges it works the same"
if [ "$(id -u)" = 0 ]; then
	is "$(setpriv --reuid 65534 --clear-groups "$tmp/statpage" run -- "$(command -v true)" 2>&1 |
		sed -n 's/^reason //p' | sort -u)" exit reason
else
	skip "not root: every other case shows it"
fi

begin "time on CPU and waiting time"
"$statpage" run --engine ptrace -f json -o "$tmp/json" -- "$w" nap 300 >/dev/null
is "$(jq -c '.syscalls[] | select(.name == "nanosleep") | [.waiting_ns > 250000000,
	.on_cpu_ns < 50000000, .on_cpu_ns + .waiting_ns == .total_ns, .total_ns == .max_ns]' \
	"$tmp/json")" '[true,true,true,true]' "of a sleep of 300 ms"
is "$(jq -r '[.syscalls[] | has("on_cpu_ns")] | all' "$tmp/json")" true "every row"
"$statpage" run --engine ptrace --no-split -f json -o "$tmp/json" -- true
is "$(jq -c '[([.syscalls[] | has("on_cpu_ns")] | any), (.engine | has("split"))]' "$tmp/json")" \
	'[false,false]' "--no-split"

begin "a process in a pid namespace has both its numbers"
if unshare -pf true 2>/dev/null; then
	"$statpage" run --engine ptrace -f json -o "$tmp/json" -- unshare -pf "$w" calls 1
	is "$(jq -c '[.processes[] | select(.comm == "workload") | [.ns_pid == 1, .pid > 1]]' \
		"$tmp/json")" '[[true,true]]' "ns_pid and pid"
else
	skip "no pid namespaces for us"
fi

begin "--pin puts both on one CPU, and says so"
"$statpage" run --engine ptrace --pin=0 -f json -o "$tmp/json" -- sh -c 'taskset -p $$' >"$tmp/out"
is "$(sed 's/.*: //' "$tmp/out")" 1 "the program's mask"
is "$(jq -r .engine.pinned_cpu "$tmp/json")" 0 "the record"

finish
