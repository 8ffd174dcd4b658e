#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks statpage export: the file for node_exporter, what is served and to whom, that no client
# holds others, and the messages for what cannot be. Names and numbers are checked by promtool and against
# lib/hist.c.
. "$(dirname "$0")/tap.sh"

fleet=$native/fleet
promtool=$(scripts/deps.sh metrics)/usr/bin/promtool
jobs=''
# shellcheck disable=SC2086 # one word a process
trap '[ -z "$jobs" ] || kill $jobs 2>/dev/null; rm -rf "$tmp"' EXIT

# Run statpage export in the background with output in $tmp/NAME.out, and set PID.
start()
{
	local name=$1
	shift
	"$statpage" export "$@" >"$tmp/$name.out" 2>"$tmp/$name.err" &
	PID=$!
	jobs="$jobs $PID"
}

# The same for a server, and set URL.
serve()
{
	start "$1" --listen 127.0.0.1:0 "${@:2}"
	eventually grep -qs ^http "$tmp/$1.out" || fail "$1 does not listen: $(cat "$tmp/$1.err")"
	URL=$(cat "$tmp/$1.out")
}

# End the process with signal $2: it leaves with status 0.
stop()
{
	kill "-$2" "$1"
	wait "$1"
	is $? 0 "status after SIG$2"
}

# The value of series $2 in text $1.
value()
{
	awk -v s="$2" 'index($0, s " ") == 1 { print substr($0, length(s) + 2) }' "$1"
}

get() { curl -s --max-time 60 "$@"; }

mkdir "$tmp/k" "$tmp/t"
"$fleet" table 3 1 1000 >"$tmp/k/vfs_read"
"$fleet" table 3 2 500 >"$tmp/k/GAP-vfs_read"
echo "not looked at" >"$tmp/k/_nodes"

begin "--textfile: one file, whole, for everybody to read"
(umask 077; "$statpage" export --textfile "$tmp/t" --from "$tmp/k") >"$tmp/out" 2>&1
is $? 0 "status"
is "$(cat "$tmp/out")" "" "output"
is "$(ls -A "$tmp/t")" statpage.prom "files"
is "$(stat -c %a "$tmp/t/statpage.prom")" 644 "mode"
text=$tmp/t/statpage.prom

begin "promtool finds nothing to object to"
"$promtool" check metrics <"$text" >"$tmp/out" 2>&1
is $? 0 "status"
is "$(cat "$tmp/out")" "" "what it says"

begin "numbers are those of the tables"
# slot's low and high, count, and sum in ns, of one table and of both
read -r _ _ count sum < <("$fleet" merge 3 0.5 "$tmp/k/vfs_read")
is "$(value "$text" 'statpage_duration_seconds_count{metric="vfs_read"}')" "$count" "count"
is "$count" 1000 "count of the table"
is "$(value "$text" 'statpage_duration_seconds_sum{metric="vfs_read"}' |
	awk '{ printf "%.0f", $1 * 1e9 }')" "$sum" "sum"
is "$(value "$text" 'statpage_duration_seconds_bucket{metric="vfs_read",le="+Inf"}')" 1000 "+Inf"
is "$(value "$text" 'statpage_duration_seconds_count{metric="GAP-vfs_read"}')" 500 "count of the gaps"
is "$(value "$text" 'statpage_samples_attempted_total{metric="vfs_read"}')" 1003 "attempted"
is "$(value "$text" 'statpage_samples_missed_total{metric="vfs_read"}')" 2 "missed"
is "$(value "$text" 'statpage_samples_missed_by_cause_total{metric="vfs_read",cause="instance"}')" 2 "cause"
is "$(value "$text" 'statpage_samples_inside{metric="vfs_read"}')" 1 "inside"
is "$(value "$text" 'statpage_part_up{part="distributions"}')" 1 "up"
is "$(value "$text" statpage_metrics_unread)" 0 "unread"
is "$(grep -c cpu_ "$text")" 0 "CPU times of this machine beside a copy"
awk '/_bucket\{metric="vfs_read"/ { if ($2 < last) bad = 1; last = $2 } END { exit bad }' "$text" ||
	fail "buckets that are not cumulative"

begin "--bits and --range: more and fewer buckets, the same at each value"
buckets() { "$statpage" export --textfile "$tmp/t" --from "$tmp/k" "$@" && grep 'bucket{metric="vfs_read"' "$text"; }
is "$(buckets | wc -l)" 61 "buckets by default"
is "$(buckets --bits 0 --range 1us..1ms | wc -l)" 13 "buckets of --bits 0"
buckets --bits 0 >"$tmp/0"
buckets --bits 3 >"$tmp/3"
# all but the first and the last, which lie outside of the finer range
is "$(comm -12 <(sort "$tmp/0") <(sort "$tmp/3") | wc -l)" "$(($(wc -l <"$tmp/0") - 2))" "those of 0 in those of 3"

begin "--interval: replaced again and again, whole whenever it is read, and a clean end"
start file --textfile "$tmp/t" --from "$tmp/k" --interval 10ms
ino=$(stat -c %i "$text")
torn=0
for _ in $(seq 200); do
	[ "$(tail -n 1 "$text")" = "statpage_metrics_unread 0" ] || torn=$((torn + 1))
done
is "$torn" 0 "torn files"
changed() { [ "$(stat -c %i "$text")" != "$ino" ]; }
check eventually changed "it is not written again"
"$fleet" table 3 1 1001 >"$tmp/k/_new" && mv "$tmp/k/_new" "$tmp/k/vfs_read"
grown() { [ "$(value "$text" 'statpage_duration_seconds_count{metric="vfs_read"}')" = 1001 ]; }
check eventually grown "it does not grow"
stop "$PID" TERM
is "$(ls -A "$tmp/t")" statpage.prom "files"
is "$(cat "$tmp/file.out" "$tmp/file.err")" "" "output"

begin "HTTP: GET and HEAD of / and /metrics, and nothing else"
serve http --from "$tmp/k"
base=${URL%/metrics}
is "$(curl -s -o "$tmp/body" -w '%{http_code} %{content_type}' "$URL")" \
	"200 text/plain; version=0.0.4; charset=utf-8" "GET /metrics"
is "$(grep -v collect_seconds "$tmp/body" | md5sum)" \
	"$("$statpage" export --textfile "$tmp/t" --from "$tmp/k" && grep -v collect_seconds "$text" | md5sum)" \
	"what is served, against the file"
is "$(curl -s -I -o /dev/null -w '%{http_code} %{size_download}' "$URL")" "200 0" "HEAD"
is "$(curl -s -o /dev/null -w '%{http_code}' "$base/")" 200 "/"
for path in /x /metrics/ /../metrics /metrics/x; do
	is "$(curl -s --path-as-is -o /dev/null -w '%{http_code}' "$base$path")" 404 "$path"
done
for method in POST PUT DELETE PATCH OPTIONS; do
	is "$(curl -s -o /dev/null -w '%{http_code} %header{allow}' -X $method "$URL" 2>/dev/null)" "405 GET, HEAD" $method
done
is "$(curl -s -o /dev/null -w '%{http_code}' --data-binary @/proc/self/exe "$URL")" 405 "a large upload"
is "$(curl -s -o "$tmp/body" -w '%{content_type}' -H "Accept: application/openmetrics-text;version=1.0.0" "$URL")" \
	"application/openmetrics-text; version=1.0.0; charset=utf-8" "OpenMetrics"
is "$(tail -n 1 "$tmp/body")" "# EOF" "its end"
stop "$PID" INT
is "$(cat "$tmp/http.err")" "" "messages"

# The sum of a bucket of spinners' time, in the last scrape.
spun() { value "$tmp/body" "statpage_thread_seconds_total{process=\"spinner\",engine=\"proc\",bucket=\"$1\"}"; }
scraped() { get "$URL" >"$tmp/body"; }
spun_more() { scraped && awk -v v="$(spun cpu)" -v least="$1" 'BEGIN { exit !(v > least) }'; }
spinner() { "$tmp/spinner" -c 'while :; do :; done' & PID=$!; jobs="$jobs $PID"; }

begin "--threads: time of processes of a name, that grows and stays when they have ended"
cp "$(command -v bash)" "$tmp/spinner"
serve threads --threads 'spin*'
server=$PID
scraped
is "$(grep -c '{process=' "$tmp/body")" 0 "nobody of that name"
spinner
check eventually spun_more 0.1 "$(cat "$tmp/body")"
# The kernel's own number, read after ours was, is no less; both are as fresh as the tick.
is "$(awk -v v="$(spun cpu)" '{ print v * 1e9 <= $1 }' "/proc/$PID/schedstat")" 1 "against schedstat"
is "$(value "$tmp/body" 'statpage_threads{process="spinner",engine="proc"}')" 1 "threads"
is "$(value "$tmp/body" 'statpage_part_up{part="threads"}')" 1 "up"
kill "$PID"
wait "$PID" 2>/dev/null
scraped
ended=$(spun cpu)
is "$(value "$tmp/body" 'statpage_threads{process="spinner",engine="proc"}')" 0 "threads after its end"
scraped
is "$(spun cpu)" "$ended" "what it had used"
spinner
check eventually spun_more "$(awk -v v="$ended" 'BEGIN { print v + 0.1 }')" "the next one is not added"
kill "$PID"
wait "$PID" 2>/dev/null
"$promtool" check metrics <"$tmp/body" >"$tmp/out" 2>&1 || fail "promtool: $(cat "$tmp/out")"
stop "$server" TERM

begin "--threads: names beyond 200 are one"
mkdir "$tmp/names"
for i in $(seq 210); do
	ln -s "$(command -v sleep)" "$tmp/names/sleep-$i"
	"$tmp/names/sleep-$i" 300 &
	jobs="$jobs $!"
done
renamed() { [ "$(cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^sleep-')" = 210 ]; }
check eventually renamed "they do not start"
"$statpage" export --textfile "$tmp/t" --threads 'sleep-*' 2>/dev/null
is "$(grep -c '^statpage_threads{process="sleep-' "$text")" 200 "names"
is "$(value "$text" 'statpage_threads{process="(others)",engine="proc"}')" 10 "others"

# Much to send, so that an answer does not fit into what the kernel keeps for a client that reads nothing.
mkdir "$tmp/many"
for i in $(seq 400); do
	cp "$tmp/k/vfs_read" "$tmp/many/metric$i"
done

# Who reads on and on, but slowly, is looked at further down.
serve drip --from "$tmp/many"
drip_server=$PID
drip_url=$URL
python3 -c '
import socket, sys, time
host, port = sys.argv[1][7:].split("/")[0].rsplit(":", 1)
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
s.connect((host, int(port)))
s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
start, got = time.time(), 0
try:
    while data := s.recv(300):
        got += len(data)
        if time.time() - start < 35:
            time.sleep(0.02)
except ConnectionError:
    pass
print(got)' "$URL" >"$tmp/drip.got" 2>&1 &
drip=$!
jobs="$jobs $drip"

# crowd KIND N URL: N clients that connect and then say nothing (mute), half a request (half), or ask and read
# nothing (greedy). Prints `there` once all are connected, then those that the server has left, at end of input.
crowd()
{
	python3 -c '
import select, socket, sys
kind, n, url = sys.argv[1], int(sys.argv[2]), sys.argv[3]
host, port = url[7:].split("/")[0].rsplit(":", 1)
all = []
for _ in range(n):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect((host, int(port)))
    s.sendall({"mute": b"", "half": b"GET /metr", "greedy": b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"}[kind])
    all.append(s)
print("there", flush=True)
sys.stdin.read()' "$@"
}

for kind in greedy half mute; do
	begin "15 $kind clients hold nobody"
	serve $kind --from "$tmp/many"
	server=$PID
	mkfifo "$tmp/$kind.in"
	crowd $kind 15 "$URL" <"$tmp/$kind.in" >"$tmp/$kind.crowd" 2>&1 &
	jobs="$jobs $!"
	crowd=$!
	exec 9>"$tmp/$kind.in"
	check eventually grep -q there "$tmp/$kind.crowd" "they do not connect: $(cat "$tmp/$kind.crowd")"
	for _ in 1 2 3; do
		is "$(get "$URL" | grep -c '_count{')" 400 "metrics served beside them"
	done
	exec 9>&-
	wait $crowd
	stop "$server" TERM
done

begin "more clients than there are places: they are thrown out, and others are served"
serve full --from "$tmp/many"
server=$PID
mkfifo "$tmp/full.in"
crowd greedy 40 "$URL" <"$tmp/full.in" >"$tmp/full.crowd" 2>&1 &
jobs="$jobs $!"
crowd=$!
exec 9>"$tmp/full.in"
check eventually grep -q there "$tmp/full.crowd" "they do not connect"
is "$(curl -s --max-time 300 "$URL" | grep -c '_count{')" 400 "metrics served after them"
is "$(find "/proc/$server/fd" -lname 'socket:*' | wc -l | awk '{ print $1 <= 18 }')" 1 "sockets of the server"
exec 9>&-
wait $crowd
stop "$server" TERM

begin "who reads slowly is cut off in the end"
wait "$drip"
whole=$(get "$drip_url" | wc -c)
check test "$(cat "$tmp/drip.got")" -gt 1000 "got $(cat "$tmp/drip.got")"
check test "$(cat "$tmp/drip.got")" -lt "$whole" "got all: $(cat "$tmp/drip.got") of $whole"
stop "$drip_server" TERM

begin "a metric that cannot be read is told and counted; the rest is served"
mkdir "$tmp/bad"
cp "$tmp/k/vfs_read" "$tmp/bad/good"
echo "no table" >"$tmp/bad/wrong"
"$statpage" export --textfile "$tmp/t" --from "$tmp/bad" 2>"$tmp/err"
is $? 0 "status"
is "$(cat "$tmp/err")" "statpage: wrong: line 1 is not of a kstats table: no table" "message"
is "$(value "$text" statpage_metrics_unread)" 1 "unread"
is "$(value "$text" 'statpage_duration_seconds_count{metric="good"}')" 1001 "the other"

# one STATUS MESSAGE ARGUMENT...: fails with this one line
one()
{
	local status=$1 message=$2
	shift 2

	timeout 120 "$statpage" export "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	is $? "$status" "status of $*"
	is "$(grep -v '^Try ' "$tmp/err")" "statpage: $message" "$*"
	is "$(cat "$tmp/out")" "" "output of $*"
}

begin "what cannot be is one line"
serve taken --from "$tmp/k"
where=${URL#http://} where=${where%/metrics}
one 1 "--listen $where: the port is taken" --listen "$where" --from "$tmp/k"
stop "$PID" TERM
one 1 "--listen 192.0.2.1:0: not an address of this machine" --listen 192.0.2.1:0 --from "$tmp/k"
for wrong in 127.0.0.1 localhost:1 127.0.0.1:65536 127.0.0.1: ::1 '[::1' 1:2:3 -1 ''; do
	one 2 "--listen is [ADDR:]PORT, an IP address ([...] around one of IPv6) and a number up to 65535, not '$wrong'" \
		--listen="$wrong" --from "$tmp/k"
done
one 1 "$tmp/none: No such file or directory" --listen 0 --from "$tmp/none"
one 1 "$tmp/none: No such file or directory" --textfile "$tmp/none" --from "$tmp/k"
one 1 "$text: Not a directory" --textfile "$text" --from "$tmp/k"
one 1 "/proc/statpage.prom: No such file or directory" --textfile /proc --from "$tmp/k"
one 2 "export needs --listen or --textfile, and not both" --from "$tmp/k"
one 2 "export needs --listen or --textfile, and not both" --listen 0 --textfile "$tmp/t"
one 2 "--interval goes with --textfile" --listen 0 --interval 1s
one 2 "--interval is a time from 1ms to 24h, such as 500ms, not '0'" --textfile "$tmp/t" --interval 0
one 2 "--bits is a number from 0 to 5, not '6'" --textfile "$tmp/t" --bits 6
one 2 "--bits is a whole number, not '1.5'" --textfile "$tmp/t" --bits 1.5
for wrong in 1us 1us..1us 5ns..1s 1us..2h 1..2 ..1s x..y 1us..3601s; do
	one 2 "--range is LOW..HIGH within 10ns..3600s, not '$wrong'" --textfile "$tmp/t" --range $wrong
done
one 2 "--threads are this machine's, and not in a copy" --textfile "$tmp/t" --from "$tmp/k" --threads x
one 2 "export takes no argument 'x'" --listen 0 x

begin "a folder that is not writable"
mkdir -m 555 "$tmp/ro"
if [ "$(id -u)" = 0 ]; then
	chmod 755 "$tmp"
	su=(setpriv --reuid 65534 --regid 65534 --clear-groups)
else
	su=()
fi
cp "$statpage" "$tmp/statpage"
"${su[@]}" "$tmp/statpage" export --textfile "$tmp/ro" --from "$tmp/k" 2>"$tmp/err"
is $? 1 "status"
is "$(cat "$tmp/err")" "statpage: $tmp/ro/statpage.prom: Permission denied" "message"

begin "once and without anything to tell: a file that says so, and status 1"
if [ -e /sys/kernel/debug/kstats ] || [ -e /sys/kernel/coarse_stat_fs/cpu ]; then
	skip "this machine has the modules"
else
	rm "$text"
	chmod 777 "$tmp/t"
	"${su[@]}" "$tmp/statpage" export --textfile "$tmp/t" 2>"$tmp/err"
	is $? 1 "status"
	is "$(wc -l <"$tmp/err")" 2 "lines"
	is "$(grep -c 'part_up{.*} 0' "$text")" 2 "parts that are down"
fi

begin "built without libmicrohttpd, --listen says so and --textfile works"
variable() { make -pn 2>/dev/null | sed -n "s/^$1 := //p"; }
objs=$(variable TOOL_OBJS | tr ' ' '\n' | grep -v _http.o)
libs=$(variable TOOL_LIBS)
# shellcheck disable=SC2086 # words
cc -std=gnu11 -D_GNU_SOURCE -I. -Iinclude -Iinclude/uapi -o "$tmp/statpage" tools/no_http.c $objs build/lib.a \
	-pthread -lm $libs || fail "does not link"
"$tmp/statpage" export --listen 0 --from "$tmp/k" >"$tmp/out" 2>"$tmp/err"
is $? 1 "status"
is "$(wc -l <"$tmp/err") $(grep -c libmicrohttpd-dev "$tmp/err")" "1 1" "message"
"$tmp/statpage" export --textfile "$tmp/t" --from "$tmp/k" || fail "--textfile"

finish
