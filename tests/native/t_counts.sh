#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks that `statpage run --engine ptrace` counts exactly what `strace -f -c` counts, and what programs
# that count themselves say.
. "$(dirname "$0")/tap.sh"

# Both runs of a program: its counts and errors a call, one a line.
both()
{
	strace -f -c -U name,calls,errors -o "$tmp/strace" "$@" >"$tmp/out1" 2>&1
	want_rc=$?
	"$statpage" run --engine ptrace -f json -o "$tmp/json" -- "$@" >"$tmp/out2" 2>&1
	got_rc=$?
	awk 'NR > 2 && $1 !~ /^-/ && $1 != "total" { print $1, $2, $3 + 0 }' "$tmp/strace" |
		sort >"$tmp/want"
	jq -r '.syscalls[] | "\(.name) \(.count) \(.errors)"' "$tmp/json" | sort >"$tmp/got"
}

same()
{
	begin "counts as strace: $1"
	shift
	both "$@"
	is "$got_rc" "$want_rc" "exit status"
	is "$(diff "$tmp/want" "$tmp/got")" "" "strace's < and our > counts"
	is "$(jq -r '.complete' "$tmp/json")" true "complete"
	ledger
	tree_is_sum
}

# attempted = recorded + what never returned, and recorded is the sum of the rows.
ledger()
{
	is "$(jq -r '[.lost.recorded, ([.syscalls[].count] | add)] | unique | length' "$tmp/json")" 1 \
		"recorded is the sum of all rows"
	is "$(jq -r '.lost | .attempted - .recorded - .no_return' "$tmp/json")" 0 "attempts unaccounted for"
	is "$(jq -r '[.lost.no_return, ([.no_return[]?.count] | add // 0)] | unique | length' \
		"$tmp/json")" 1 "calls that never return are listed"
}

# Every number of the tree is the sum over the lives of its processes.
tree_is_sum()
{
	is "$(jq -c '[.processes[].syscalls[]] | group_by([.abi, .nr]) |
		map({k: [.[0].abi, .[0].nr], c: (map(.count) | add), e: (map(.errors) | add),
		     t: (map(.total_ns) | add), m: (map(.max_ns) | max)})' "$tmp/json")" \
	   "$(jq -c '[.syscalls[]] | sort_by([.abi, .nr]) |
		map({k: [.abi, .nr], c: .count, e: .errors, t: .total_ns, m: .max_ns})' "$tmp/json")" \
	   "the tree's rows and the sum of its processes' rows"
}

no_return()
{
	jq -r --arg n "$1" '[.no_return[]? | select(.name == $n).count] | add // 0' "$tmp/json"
}

count()
{
	jq -r --arg n "$1" '[.syscalls[] | select(.name == $n).count] | add // 0' "$tmp/json"
}

w=$native/workload

same "1,000 calls and one error" "$w" calls 1000
is "$(count getppid)" 1000 getppid
is "$(jq -c '.syscalls[] | select(.name == "close").errnos' "$tmp/json")" '{"9":1}' "errors by errno"
same "ls" ls -l /
same "false" false
same "git on a repository" git --no-pager log -5 --stat
same "300 fork, _exit and wait" "$w" forks 300
is "$(no_return exit_group)" 301 "exit_group"
same "a chain of 1,000 exec" "$w" execs 1000
is "$(jq -r '[.processes[] | select(.reason == "exec")] | length' "$tmp/json")" 1000 "exec records"
is "$(jq -r '[.processes[] | select(.final)] | length' "$tmp/json")" 1 "final records"
same "200 posix_spawn" "$w" spawns 200
same "200 vfork and exec" "$w" vforks 200
is "$(jq -r '[.processes[] | select(.reason == "exec")] | length' "$tmp/json")" 200 "exec records"
is "$(jq -r '[.processes[] | select(.final)] | length' "$tmp/json")" 201 "final records"
same "exec by a thread that is not the leader" "$w" thread_exec
is "$(no_return pause)" 2 "pause, open in the threads that vanished"
is "$(count getppid)" 7 "getppid of the program executed"
same "a program killed by a signal" "$w" by_signal 9

begin "12,000 fork and _exit, each with its record"
"$statpage" run --engine ptrace --pin -f json -o "$tmp/json" -- "$w" forks 12000
is "$(count clone)" 12000 clone
is "$(count wait4)" 12000 wait4
is "$(no_return exit_group)" 12001 exit_group
is "$(jq -r '[.processes[] | select(.reason == "fork-child-exit" and .final)] | length' \
	"$tmp/json")" 12000 "records of forked children"
is "$(jq -r '.processes_seen' "$tmp/json")" 12001 "processes"
ledger

begin "a program of 8 threads on futexes and pipes counts itself the same"
"$statpage" run --engine ptrace -f json -o "$tmp/json" -- "$w" threads 500 >"$tmp/own"
own()
{
	awk -v n="$1" '$1 == n { print $2 }' "$tmp/own"
}
is "$(own read_ring)" 4000 "the program's own count"
is "$(count gettid)" "$(own gettid)" gettid
# the ELF header of libc is one more; the starting byte and the printed text are two more
is "$(count read)" $(($(own read_ring) + 1)) read
is "$(count write)" $(($(own write_ring) + 2)) write
is "$(jq -r '.syscalls[] | select(.name == "futex") | .errnos."22"' "$tmp/json")" \
	"$(own futex_errors)" "futex: EINVAL"
is "$(jq -r '.threads_seen' "$tmp/json")" 9 threads
ledger
tree_is_sum

for cmd in "a pipeline of ten commands:seq 2000 | cat | cat | cat | cat | cat | cat | sort | uniq | wc -l" \
	"python3 with threads:python3 -c 'import threading
t = [threading.Thread(target=lambda: [open(\"/dev/null\").close() for i in range(50)]) for i in range(4)]
[x.start() for x in t]; [x.join() for x in t]'" \
	"make -j4:make -s -j4 -f $tmp/mk"; do
	begin "every call of ${cmd%%:*} is accounted for"
	printf 'all: a b c d e f\n\n%%:\n\t@sh -c "true; /bin/true; exit 0"\n' >"$tmp/mk"
	"$statpage" run --engine ptrace -f json -o "$tmp/json" -- sh -c "${cmd#*:}" >"$tmp/out" 2>&1
	is "$?" 0 "exit status"
	ledger
	tree_is_sum
done

begin "every known call is in one category, and the running kernel knows no other"
if grep -q __x64_sys_read /proc/kallsyms 2>/dev/null; then
	# entry points of calls under the name the table has for them; _time32 and 16 are i386's own
	grep -o '__x64_sys_[a-z0-9_]*' /proc/kallsyms | sed 's/__x64_sys_//' | sort -u |
		grep -Ev '_time32$|time32$|16$|^ia32_|^(ni_syscall|newuname|newstat|newlstat|newfstat)$' |
		grep -Ev '^(old_|oldumount|mmap_pgoff|llseek|gethostname|pciconfig_|s390_|spu_|rtas|recv$)' |
		grep -Ev '^(send|subpage_prot|sync_file_range2)$' >"$tmp/kernel"
	awk '$1 == "category" { for (i = 3; i <= NF; i++) print $i }' lib/syscalls.tbl | sort \
		>"$tmp/table"
	is "$(sort "$tmp/table" | uniq -d)" "" "in two categories"
	is "$(comm -23 "$tmp/kernel" "$tmp/table")" "" "calls of this kernel in no category"
	check test "$(wc -l <"$tmp/kernel")" -gt 300 "too few symbols to mean anything"
else
	skip "/proc/kallsyms names no system calls here"
fi

finish
