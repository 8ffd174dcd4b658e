#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks statpage top: its numbers against /proc and a workload that is known, its keys and
# screens in a real terminal (tmux), and the messages for what cannot be.
. "$(dirname "$0")/tap.sh"

export LC_ALL=C.UTF-8
work=$native/top_work
fleet=$native/fleet
# A server that was told to end may still answer: each has a socket of its own.
server=0
tm() { tmux -S "$tmp/tmux$server" -f /dev/null "$@"; }
# shellcheck disable=SC2154 # $pid is set below
trap 'tm kill-server 2>/dev/null; [ -z "$pid" ] || kill $pid 2>/dev/null; rm -rf "$tmp"' EXIT
pid=''
cc -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -pthread -o "$work" tests/native/top_work.c || exit 1

workload()
{
	"$work" >"$tmp/tids" &
	pid=$!
	eventually test -s "$tmp/tids"
	read -r spinner sleeper switcher <"$tmp/tids"
}

# Whatever this machine has, a module or a server of pages, the numbers are to be those of /proc.
one() { "$statpage" top --engine proc --once --json --interval 300ms "$@"; }

# Number N (1: CPU, 2: run queue) of a thread's schedstat.
schedstat() { cut -d ' ' -f "$2" "/proc/$1/schedstat"; }
of() { jq ".threads[] | select(.tid == $2) | $3" "$1"; }
# Number 2 lies between 1 and 3.
between() { [ "$1" -le "$2" ] && [ "$2" -le "$3" ]; }
# Column N of the sum of /proc/stat, in ns.
stat_ns() { awk -v n="$1" '/^cpu / { printf "%.0f\n", $(n + 1) * 1e9 / hz }' hz="$(getconf CLK_TCK)" /proc/stat; }

workload

begin "--once --json: times, switches and faults are those of /proc around it"
for t in $spinner $sleeper $switcher $pid; do
	before[t]="$(schedstat "$t" 1) $(schedstat "$t" 2) $(grep -h ctxt "/proc/$t/status" | cut -f 2 | xargs)"
	faults[t]="$(cut -d ' ' -f 10,12 "/proc/$pid/task/$t/stat")"
done
user=$(stat_ns 1) idle=$(stat_ns 4)
one -p "$pid" >"$tmp/json" || fail "status"
is "$(jq -c '[.threads[] | [.pid, .tid, .comm, .engine]]' "$tmp/json")" \
	"$(printf '%s\n' "[$pid,$pid,\"threads\",\"proc\"]" "[$pid,$spinner,\"spinner\",\"proc\"]" \
		"[$pid,$sleeper,\"sleeper\",\"proc\"]" "[$pid,$switcher,\"switcher\",\"proc\"]" |
		jq -sc 'sort_by(.[1])')" "threads"
for t in $spinner $sleeper $switcher $pid; do
	read -r cpu runq block preempt <<<"${before[t]}"
	read -r min maj <<<"${faults[t]}"
	check between "$cpu" "$(of "$tmp/json" "$t" .total.oncpu_ns)" "$(schedstat "$t" 1)" "cpu of $t"
	check between "$runq" "$(of "$tmp/json" "$t" .total.runq_ns)" "$(schedstat "$t" 2)" "run queue of $t"
	after=$(grep -h ctxt "/proc/$t/status" | cut -f 2 | xargs)
	check between "$block" "$(of "$tmp/json" "$t" .total.nr_block)" "${after% *}" "voluntary of $t"
	check between "$preempt" "$(of "$tmp/json" "$t" .total.nr_preempt)" "${after#* }" "involuntary of $t"
	after=$(cut -d ' ' -f 10,12 "/proc/$pid/task/$t/stat")
	check between "$min" "$(of "$tmp/json" "$t" .total.min_flt)" "${after% *}" "minor faults of $t"
	check between "$maj" "$(of "$tmp/json" "$t" .total.maj_flt)" "${after#* }" "major faults of $t"
done
if [ "$(jq -r .cpus.source "$tmp/json")" = /proc/stat ]; then
	check between "$user" "$(jq .cpus.all.total.user_ns "$tmp/json")" "$(stat_ns 1)" "user"
	check between "$idle" "$(jq .cpus.all.total.idle_ns "$tmp/json")" "$(stat_ns 4)" "idle"
fi
is "$(jq '.cpus.online | length' "$tmp/json")" "$(getconf _NPROCESSORS_ONLN)" "CPUs"

begin "the interval of the workload is as it must be, and adds up"
is "$(jq '[.threads[].interval | .off_ns == ([.wall_ns - .oncpu_ns - .runq_ns - (.iowait_ns // 0), 0] | max)] | all' \
	"$tmp/json")" true "off is the rest"
is "$(jq '.interval_ns >= 300000000 and ([.threads[].interval.wall_ns] | min) > 200000000' "$tmp/json")" true "an interval"
# A busy machine may keep it waiting, but it never sleeps; a tick at each end may be missing.
is "$(of "$tmp/json" "$spinner" '.interval | (.oncpu_ns + .runq_ns) * 2 > .wall_ns')" true "the spinner"
is "$(of "$tmp/json" "$sleeper" '.interval | .off_ns * 10 > .wall_ns * 9')" true "the sleeper"
is "$(of "$tmp/json" "$sleeper" '[.state, .interval.nr_block, .interval.nr_preempt]' | jq -c .)" '["S",0,0]' "the sleeper"
check test "$(of "$tmp/json" "$switcher" .interval.nr_block)" -gt 5 "the switcher does not switch"
is "$(of "$tmp/json" "$spinner" '.total | has("sleep_ns") or has("dsleep_ns") or has("nr_migrate")')" false \
	"what is not known is absent"
is "$(jq -r '.engines[] | .name, (.cannot_see | length > 20)' "$tmp/json" | xargs)" "proc true" "the engine"

begin "docs/top.md has every key, and no other"
mkdir "$tmp/k"
"$fleet" table 3 1 1000 >"$tmp/k/vfs_read"
one --from "$tmp/k" >"$tmp/all" || fail "status"
one --from "$tmp/none" -p "$pid" >"$tmp/absent" || fail "status"
is "$(jq -r .distributions.absent "$tmp/absent")" "$tmp/none: No such file or directory" "why there are none"
cat "$tmp/all" "$tmp/absent" | jq -r 'paths(scalars) | map(if type == "number" then "[]" else . end) | join(".")' |
	sed -E 's/\.\[\]/[]/g; s/^(threads\[\]\.(total|interval))\.(oncpu|runq|sleep|dsleep|iowait|nr_|min_flt|maj_flt).*/\1.*/
		s/^(cpus\.(all|online\[\])\.(total|interval))\.(user|nice|system|idle|iowait|irq|softirq|steal|guest).*/\1.*/
		s/^(cpus\.online\[\]\.interval)\.all_ns/\1.*/
		s/^(distributions\.metrics\[\]\.interval)\..*/\1.*/' | sort -u >"$tmp/got"
sed -n 's/^| `\([^`]*\)` |.*/\1/p' docs/top.md | sort >"$tmp/documented"
is "$(uniq -d "$tmp/documented")" "" "documented twice"
is "$(comm -13 "$tmp/documented" "$tmp/got")" "" "not documented"
is "$(comm -23 "$tmp/documented" "$tmp/got" | grep -v -x -F -e cpus.absent -e 'cpus.online[].interval.*')" "" "in no report"

begin "all threads are there, by any name"
is "$(jq -c "[.threads[] | select(.pid == $pid).comm] | sort" "$tmp/all")" '["sleeper","spinner","switcher","threads"]' names
check test "$(jq '.threads | length' "$tmp/all")" -gt 4 "no others"

begin "--json goes on, an object a line, for --count intervals"
"$statpage" top --engine proc --json --interval 50ms --count 3 -p "$pid" >"$tmp/three" || fail "status"
is "$(jq -s -c '[length, (map(.threads | length) | unique), (map(.time_ns) | . == sort)]' "$tmp/three")" '[3,[4],true]' reports
is "$(jq -s "[.[] | .threads[] | select(.tid == $spinner)] |
	.[2].total.oncpu_ns - .[1].total.oncpu_ns == .[2].interval.oncpu_ns" "$tmp/three")" true "differences"

begin "--once: tables with the same numbers"
"$statpage" top --engine proc --once --interval 300ms -p "$pid" >"$tmp/text" || fail "status"
check grep -q '^engine proc; it cannot see: which kind of sleep' "$tmp/text" "no engine"
row() { awk -v n="$1" '$NF == n { $1 = $1; print }' "$tmp/text"; }
is "$(grep -m 1 COMMAND "$tmp/text" | xargs)" "PID TID S ON CPU% RUNQ OFF VOL INV FLT MAJ COMMAND" head
is "$(row spinner | cut -d ' ' -f 1-2)" "$pid $spinner" "the spinner"
is "$(row sleeper | cut -d ' ' -f 3,5-)" "S 0.0 0.0 100 0 0 0 0 sleeper" "the sleeper"
check awk "BEGIN { exit !($(row spinner | cut -d ' ' -f 5) + $(row spinner | cut -d ' ' -f 6) > 50) }" "the spinner"
check awk "BEGIN { exit !($(row switcher | cut -d ' ' -f 8) > 10) }" "the switcher"
is "$(sed -n '/^CPU times/,/^$/p' "$tmp/text" | grep -cE '^(all|[0-9]+)( +[0-9.]+| +-){10}$')" \
	$(($(getconf _NPROCESSORS_ONLN) + 1)) "rows of CPUs"
"$statpage" top --once --interval 10ms --from "$tmp/k" >"$tmp/text" || fail "status"
is "$(tail -n 1 "$tmp/text" | xargs)" "vfs_read 0 - - - missed some" "a metric without samples in the interval"

begin "--once: what would give root more, if there is nothing that does"
hint="while statpage serve runs, top of root has all five buckets of every thread"
"$statpage" top --once --interval 10ms >"$tmp/text" || fail "status"
if grep -q '^engine pages' "$tmp/text" || [ "$(id -u)" != 0 ]; then
	is "$(grep -cx "$hint" "$tmp/text")" 0 "a hint in vain"
else
	is "$(sed -n 1p "$tmp/text")" "$hint" "the first line"
	is "$(setpriv --reuid 65534 --clear-groups tools/statpage top --once --interval 10ms | grep -cx "$hint")" 0 "a user's"
fi
is "$("$statpage" top --engine proc --once --interval 10ms | grep -cx "$hint")" 0 "who asked for less"

begin "distributions: count and quantiles are those of lib/hist.c"
read -r low high count _ <<<"$("$fleet" merge 3 0.5 "$tmp/k/vfs_read")"
is "$(jq '.distributions.metrics[0].total.count' "$tmp/all")" "$count" "count"
for q in 0.5:p50_ns 0.99:p99_ns 1:max_ns; do
	read -r low high _ <<<"$("$fleet" merge 3 "${q%:*}" "$tmp/k/vfs_read")"
	check between "$low" "$(jq ".distributions.metrics[0].total.${q#*:}" "$tmp/all")" "$high" "${q#*:}"
done

# ---- the live view ----

# Run it in a terminal of 80x24, from a shell.
live()
{
	tm kill-server 2>/dev/null
	server=$((server + 1))
	tm new-session -d -x 80 -y 24 "exec env LC_ALL=C.UTF-8 PS1='> ' sh"
	tm set-option -g remain-on-exit on >/dev/null
	tm send-keys "stty -a >$tmp/stty; $*; echo status \$?; stty -a >$tmp/stty.after" Enter
}
screen() { tm capture-pane -p; }
shows() { screen | grep -qE -- "$1"; }
shows_not() { ! shows "$1"; }
key() { tm send-keys "$@"; }
wait_for() { eventually shows "$1" || { fail "no '$1' on the screen${2:+ after $2}"; screen | sed 's/^/#   |/'; }; }
# Names in the order of the screen.
names() { screen | awk '/^ +[0-9]+ [RSD] / { print $NF }' | xargs; }
names_are() { [ "$(names)" = "$1" ]; }

top="$statpage top --engine proc --interval 300ms"
begin "live: the workload, in 80x24"
live "$top -p $pid"
wait_for '^statpage top  process [0-9]+ threads: 4 threads +last '
wait_for '^engine proc \(F1: what it cannot see\)   sorted by CPU%'
wait_for '^F1Help .*\(threads\)'
screen >"$tmp/screen"
is "$(wc -l <"$tmp/screen") $(sed -n 24p "$tmp/screen" | cut -c 1-66)" \
	"24 F1Help F2View F4Filter F5Pause F6Sort F7Invert F10Quit  (threads)" "lines, and the last one"
check test "$(wc -L <"$tmp/screen")" -le 80 "wider than 80"
is "$(sed -n 5p "$tmp/screen" | xargs)" "TID S ON CPU% RUNQ OFF TIME VOL INV FLT MAJ COMMAND" "head"
wait_for "^ *$spinner [RS] +[0-9]+ .*[█▓]{5,}.* spinner$"
check grep -qE "^ *$sleeper S +[0-9]+ +0\.0 +0\.0 +100 ·{10,} +0 +0 +0 +0 sleeper$" "$tmp/screen" "the sleeper"
check grep -qE "^ *$switcher [RS] .* switcher$" "$tmp/screen" "the switcher"
is "$(names | cut -d ' ' -f 1)" spinner "sorted by CPU"

begin "keys: sort, invert, filter"
key F6; wait_for '^Sort by'
key End; wait_for 'COMMAND +name of the thread'
key Enter; wait_for 'sorted by COMMAND'
eventually names_are "sleeper spinner switcher threads" || fail "by name: $(names)"
key I; wait_for 'COMMAND, reversed'
eventually names_are "threads switcher spinner sleeper" || fail "reversed: $(names)"
key N; wait_for 'sorted by PID$'
eventually names_are "threads spinner sleeper switcher" || fail "by pid: $(names)"
key F4; wait_for '^Filter: '
key SLEEP; eventually names_are sleeper || fail "filter: $(names)"
key Enter; wait_for "sorted by PID, filter 'SLEEP'\$"
key F4; wait_for '^Filter: SLEEP'
key BSpace BSpace BSpace BSpace BSpace x y z; wait_for 'no thread matches the filter'
key Escape; eventually names_are "threads spinner sleeper switcher" || fail "all again: $(names)"

begin "keys: pause, help, views"
key F5; wait_for PAUSED
screen >"$tmp/before"
sleep 1
is "$(screen)" "$(cat "$tmp/before")" "the screen while it is paused"
key Z; eventually shows_not PAUSED || fail "goes on"
key F1; wait_for '^Engine proc. It cannot see: which kind of sleep'
wait_for '^Help, lines 1 to '
key x; wait_for 'sorted by'
key F2; wait_for '^ CPU  user  nice   sys'
check test "$(screen | grep -cE '^ +(all|[0-9]+)( +[0-9.]+| +-){9} [█▓░▒▚·]{20}')" -ge 2 "rows of CPUs"
key Tab; wait_for '\(distributions\)'
key BTab; wait_for '\(CPUs\)'
key 1; wait_for '\(threads\)'

begin "resizing: more columns, fewer, too small, back"
tm resize-window -x 120 -y 30; wait_for '^.{90,}last'
check test "$(screen | wc -l)" = 30 "30 lines"
tm resize-window -x 60 -y 10
wait_for ' [»]$'
check test "$(screen | wc -L)" -le 60 "wider than 60"
tm resize-window -x 59 -y 10; wait_for '^59x10 is too small: 60x10 is the least$'
tm resize-window -x 80 -y 9; wait_for '^80x9 is too small: 60x10 is the least$'
tm resize-window -x 80 -y 24; wait_for 'sorted by'

begin "a thread that ends leaves the list, a process that ends is said"
kill -USR1 "$pid"
wait_for ': 3 threads '
eventually names_are "threads spinner switcher" || fail "without it: $(names)"
kill -KILL "$pid"
wait "$pid" 2>/dev/null
wait_for "^process $pid has ended\$"
gone=$pid
pid=''

begin "q, F10, ^C and SIGTERM leave the terminal as it was"
key q; wait_for '^status 0$'
check grep -q 'stty -a' <(screen) "what was there before"
eventually test -s "$tmp/stty.after" || fail "no prompt"
is "$(tr ';' '\n' <"$tmp/stty.after")" "$(tr ';' '\n' <"$tmp/stty")" "stty"
for how in F10 C-c; do
	live "$top"
	wait_for 'all processes: .* last '
	key $how; wait_for '^status 0$' $how
done
live "$top"
wait_for 'all processes: .* last '
tm list-panes -F '#{pane_pid}' | xargs pgrep -P | xargs kill -TERM
wait_for '^status 0$' SIGTERM

begin "a terminal that goes away ends it"
workload
live "$top -p $pid"
check eventually shows spinner "no spinner"
viewer=$(pgrep -f "^$top -p $pid\$")
check test -n "$viewer" "no view"
tm kill-server
ended() { ! [ -e "/proc/$viewer" ]; }
check eventually ended "it runs on"
kill "$pid"
wait "$pid" 2>/dev/null
pid=''

begin "all processes: pids, and --count ends it"
live "$statpage top --interval 100ms --count 20"
wait_for '^ +PID +TID S '
wait_for '^status 0$'

begin "live: distributions"
live "$top --from $tmp/k"
wait_for 'all processes: .* last '
key 3; wait_for '^METRIC +COUNT +P50 +P99 +MAX'
wait_for '^vfs_read +! +0 +- +- +-$'
"$fleet" table 3 1 3000 >"$tmp/k/new"
"$fleet" table 3 1 3000 >"$tmp/.x" && mv "$tmp/.x" "$tmp/k/vfs_read"
key a; wait_for '^vfs_read +! +3000 +[0-9.]+ [num]?s +[0-9.]+ [num]?s +[0-9.]+ [num]?s +[▁▂▃▄▅▆▇█ ]+$'
wait_for '^new +! +3000 .*[█]'
rm "$tmp/k/new"
eventually shows_not '^new ' || fail "a metric that went away"
key q; wait_for '^status 0$'

begin "live: a recording, at the pace it was recorded at, with the same keys, and its end"
"$fleet" table 3 1 1000 >"$tmp/k/vfs_read"
(sleep 0.3; "$fleet" table 3 1 3000 >"$tmp/.x" && mv "$tmp/.x" "$tmp/k/vfs_read") &
"$statpage" record -o "$tmp/rec" --from "$tmp/k" -p $$ --interval 200ms --for 2s || fail "record"
live "$statpage top --replay $tmp/rec"
wait_for 'all processes: +1 threads? +last '
key F5; wait_for PAUSED
screen >"$tmp/before"
sleep 0.5
is "$(screen)" "$(cat "$tmp/before")" "the screen while it is paused"
key Z; eventually shows_not PAUSED || fail "goes on"
key 3; wait_for '^METRIC +COUNT +P50 +P99 +MAX'
key a; wait_for '^vfs_read +! +3000 +[0-9.]+ [num]?s'
wait_for 'the recording has ended'
key 1; wait_for " $$ +[RS] .* bash\$| $$ +[RS] .* t_top.sh\$"
key q; wait_for '^status 0$'
head -c -100 "$tmp/rec" >"$tmp/cut"
live "$statpage top --replay $tmp/cut --interval 500ms"
wait_for "$tmp/cut: cut short in line"
key q; wait_for '^status 0$'

begin "plain characters where the locale is no UTF-8, names that would command the terminal"
cp "$(command -v sleep)" "$tmp/$(printf 'a\033[31m\303\244')"
"$tmp/$(printf 'a\033[31m\303\244')" 100 &
pid=$!
eventually grep -q 31m "/proc/$pid/comm" || fail "the name"
live "LC_ALL=C $top -p $pid"
wait_for "^ *$pid S .* \.{10,} .* a\?\[31m\?\?\$"
is "$(screen | LC_ALL=C grep -c '[^ -~]')" 0 "other characters"
key q; wait_for '^status 0$'
live "$top -p $pid"
wait_for "^ *$pid S .* a\?\[31mä\$"
kill $pid
pid=''

begin "what cannot be is said in one line"
# Status, message, arguments.
said()
{
	local status=$1 message=$2
	shift 2
	"$statpage" top "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	is $? "$status" "status of top $*"
	is "$(head -n 1 "$tmp/err")" "statpage: $message" "top $*"
	is "$(wc -l <"$tmp/out")" 0 "output of top $*"
}
said 2 "standard output is no terminal: the live view needs one, --once and --json do not"
said 2 "no process has pid $gone" --once -p "$gone"
said 2 "PID is a number from 1 to 4194304, not 'x'" --once -p x
said 2 "--interval is a time from 1ms to 24h, such as 500ms, not '5'" --once --interval 5
said 2 "N is a number from 1 to 1000000000, not '0'" --json --count 0
said 2 "no engine 'x', expected pages, proc" --once --engine x
said 2 "top takes no argument 'x'; a process is named by -p PID" --once x
said 2 "--once is one interval: leave --count out, or --once" --once --count 2
said 2 "PID and N are whole numbers" --once -p 1.5
"$statpage" top --once --interval 1ms >/dev/full 2>"$tmp/err"
is "$? $(wc -l <"$tmp/err")" "1 1" "a full disk"
live "TERM=none $top"
wait_for "the terminal 'none' is not known: set TERM, or use --once or --json"
wait_for '^status 1$'
live "TERM=dumb $top"
wait_for "^statpage: the terminal 'dumb' cannot place a cursor: use --once or --json"
wait_for '^status 1$'
sleep 1 &
"$statpage" top --json --interval 200ms -p $! >"$tmp/out" 2>"$tmp/err"
is "$? $(cat "$tmp/err")" "0 statpage: process $! has ended" "a process that ends"
check test "$(wc -l <"$tmp/out")" -ge 1 "no report of it"

begin "built without ncurses, the live view says so and --once works"
variable() { make -pn 2>/dev/null | sed -n "s/^$1 := //p"; }
objs=$(variable TOOL_OBJS | tr ' ' '\n' | grep -vE '/(top_live|top_draw|no_top)\.o')
libs="$(variable JSON_C_LIBS) $(variable HTTPD_LIBS) $(variable BPF_LIBS)"
# shellcheck disable=SC2086 # words
cc -std=gnu11 -D_GNU_SOURCE -I. -Iinclude -Iinclude/uapi -o "$tmp/statpage" tools/no_top.c $objs build/lib.a \
	-pthread -lm $libs || fail "does not link"
live "$tmp/statpage top"
wait_for 'the live view is not in this build, which had no ncurses'
wait_for '^status 1$'
"$tmp/statpage" top --once --interval 1ms >"$tmp/out" || fail "--once"

finish
