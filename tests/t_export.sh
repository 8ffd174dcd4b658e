#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# This test checks what statpage export tells of the modules that are loaded here, against their own files and
# /proc/stat, and that it copes with modules that come and go.
# shellcheck disable=SC3043 # busybox's sh has local
cd /tmp || exit 1
# shellcheck source=tests/tap.sh
. /t/tap.sh
pid=''
k=/sys/kernel/debug/kstats
demo=/sys/kernel/debug/kstats_demo/run

# Whether there are distributions without the module.
bpf=1
! statpage trace --engine bpf vfs_open --for 1ms 2>&1 | grep -q 'built without it' || bpf=0

listens() { grep -q ^http url; }

serve()
{
	: >url
	statpage export --listen 127.0.0.1:0 >url 2>err &
	pid=$!
	eventually listens || fail "does not listen: $(cat err)"
}

stop()
{
	kill -TERM $pid
	wait $pid
	is $? 0 "status after SIGTERM"
}

scrape() { wget -q -O metrics "$(cat url)"; }

# The value of a series in the last scrape.
value() { awk -v s="$1" 'index($0, s " ") == 1 { print substr($0, length(s) + 2) }' "${2:-metrics}"; }

# The number after a word in a metric's file.
word() { sed -n "s/.*[# ]$2 \([0-9]*\).*/\1/p" "$k/$1" | head -n 1; }

# ns as the exporter prints seconds, by its own digits: "12.345" is 12345000000.
ns()
{
	awk -v v="$1" 'BEGIN {
		n = split(v, e, "e-"); split(e[1], p, "."); digits = p[1] p[2]; zeros = 9 - length(p[2]) - (n > 1 ? e[2] : 0)
		while (zeros-- > 0) digits = digits "0"
		sub(/^0+/, "", digits); print digits == "" ? 0 : digits }'
}

echo "trace kstats_demo_sleep" >$k/_control
echo "trace crowd start kstats_demo_inner via kretprobe maxactive 1 gap no bits 5" >$k/_control
echo "sleep 2 5" >$demo
echo "inner 1 1000" >$demo
# One instance for ten callers at once: what is missed is counted.
echo "trace lossy start kstats_demo_sleep via kretprobe maxactive 1 gap no" >$k/_control
sleepers=''
for _ in 1 2 3 4 5 6 7 8 9 10; do
	echo "sleep 300 1" >$demo &
	sleepers="$sleepers $!"
done
# shellcheck disable=SC2086 # one word a process
wait $sleepers

serve
scrape
is "$(value 'statpage_part_up{part="distributions"}') $(value 'statpage_part_up{part="cpu"}')" "1 1" "parts"
is "$(value "statpage_engine_info{part=\"distributions\",engine=\"kmod$([ $bpf = 0 ] || echo ,bpf)\"}")" 1 "engines"
is "$(cat err)" "" "messages"
for m in kstats_demo_sleep GAP-kstats_demo_sleep crowd lossy; do
	is "$(value "statpage_duration_seconds_count{metric=\"$m\"}")" "$(word $m recorded)" "$m: count"
	is "$(value "statpage_duration_seconds_bucket{metric=\"$m\",le=\"+Inf\"}")" "$(word $m recorded)" "$m: +Inf"
	is "$(ns "$(value "statpage_duration_seconds_sum{metric=\"$m\"}")")" "$(word $m sum)" "$m: sum"
	for part in attempted recorded missed filtered stopped; do
		is "$(value "statpage_samples_${part}_total{metric=\"$m\"}")" "$(word $m $part)" "$m: $part"
	done
	is "$(value "statpage_samples_inside{metric=\"$m\"}")" 0 "$m: inside"
done
is "$(value 'statpage_duration_seconds_count{metric="kstats_demo_sleep"}')" 15 "calls of the demo"
is "$(value 'statpage_samples_attempted_total{metric="lossy"}')" 10 "calls of ten at once"
[ "$(word lossy missed)" -gt 0 ] || fail "nothing was missed"
is "$(value 'statpage_samples_missed_by_cause_total{metric="lossy",cause="instance"}')" "$(word lossy missed-instance)" \
	"missed for want of an instance"
is "$(value 'statpage_duration_seconds_count{metric="crowd"}')" 1000 "calls of inner"
# Five sleeps of 2 ms, ten of 300 and more: none is in a bucket below.
is "$(value 'statpage_duration_seconds_bucket{metric="kstats_demo_sleep",le="0.001572863"}')" 0 "shorter than 2 ms"
is "$(grep -c '^statpage_metric_info{metric="crowd",bits="5",state="running",origin="time start kstats_demo_inner ' metrics)" 1 info
for f in "$k"/[!_]*; do
	grep -q "_count{metric=\"${f##*/}\"}" metrics || fail "${f##*/} is not there"
done
end "traced calls, their gaps, and annotated metrics: counts, sums and ledgers to the digit"

is "$(grep -c 'statpage_cpu_online{.*} 1' metrics)" "$(nproc)" "CPUs online"
is "$(grep -c 'statpage_cpu_seconds_total{' metrics)" $(($(grep -c 'statpage_cpu_online{' metrics) * 8)) "times of CPUs"
grep '^cpu ' /proc/stat >stat
scrape
# No less than the kernel said just before, and not much more: a tick, and what a slow scrape takes.
for column in "user 2" "system 4" "idle 5"; do
	mode=${column% *}
	awk -v mode="$mode" 'index($0, "statpage_cpu_seconds_total{") == 1 && index($0, "mode=\"" mode "\"") { sum += $2 }
		END { print sum }' metrics >sum
	awk -v field="${column#* }" -v sum="$(cat sum)" '/^cpu / { v = $field / 100; bad = sum < v - 0.5 || sum > v + 60 }
		END { exit bad }' stat || fail "$mode: $(cat sum) s, $(cat stat)"
done
grep -q "kernel=\"$(uname -r)\"" metrics || fail "the kernel's release"
end "CPU times are the kernel's"

echo reset >$k/crowd
echo "remove kstats_demo_sleep" >$k/_control
echo "remove lossy" >$k/_control
scrape
is "$(value 'statpage_duration_seconds_count{metric="crowd"}')" 0 "count after a reset"
is "$(grep -c kstats_demo_sleep metrics)" 0 "a metric that was removed"
echo stop >$k/crowd
echo "inner 1 3" >$demo
scrape
is "$(value 'statpage_samples_stopped_total{metric="crowd"}')" 3 "stopped"
is "$(value 'statpage_metric_running{metric="crowd"}')" 0 "running"
end "reset, remove and stop are seen by the next scrape"

echo "remove crowd" >$k/_control
# Nothing is held between scrapes.
umount /sys/kernel/coarse_stat_fs && rmmod coarse_stat_fs
is $? 0 "rmmod coarse_stat_fs"
scrape
is "$(value 'statpage_part_up{part="distributions"}') $(value 'statpage_part_up{part="cpu"}')" "1 0" "parts"
is "$(grep -c '^statpage_cpu_' metrics)" 0 "CPU times without the module"
rmmod kstats_demo && rmmod kstats
is $? 0 "rmmod kstats"
scrape
is "$(value 'statpage_part_up{part="distributions"}') $(value 'statpage_part_up{part="cpu"}')" "$bpf 0" "no parts"
is "$(grep -c duration_seconds metrics)" 0 "distributions without the module"
if [ $bpf = 1 ]; then
	statpage trace --engine bpf vfs_read --name b --no-gap && cat url >/dev/null && statpage stop b
	is $? 0 "trace by BPF"
	count=$(statpage show --json b | grep -o '"count":[0-9]*' | head -n 1 | cut -d: -f2)
	[ "$count" -gt 0 ] || fail "no samples"
	scrape
	is "$(value 'statpage_duration_seconds_count{metric="b"}')" "$count" "samples by BPF"
	is "$(value 'statpage_engine_info{part="distributions",engine="bpf"}')" 1 "engine"
	statpage top --once --json --interval 10ms -p $$ >report
	is "$(grep -o '"engine":"bpf","metrics":\[{"name":"b","missed":0,"total":{"count":[0-9]*' report | sed 's/.*://')" \
		"$count" "samples in top"
	statpage untrace b
fi
insmod /ko/kstats.ko && insmod /ko/kstats_demo.ko && insmod /ko/coarse_stat_fs.ko &&
	mount -t coarse_stat_fs none /sys/kernel/coarse_stat_fs
scrape
is "$(value 'statpage_part_up{part="distributions"}') $(value 'statpage_part_up{part="cpu"}')" "1 1" "parts again"
stop
end "modules that are unloaded beside it, and come back"

echo "trace kstats_demo_sleep" >$k/_control
echo "sleep 2 5" >$demo
cp -r $k copy
mkdir files
statpage export --textfile files --from copy 2>err
is "$? $(cat err)" "0 " "status of --textfile"
is "$(value 'statpage_duration_seconds_count{metric="kstats_demo_sleep"}' files/statpage.prom)" 5 "count of the copy"
serve
scrape
for f in metrics files/statpage.prom; do
	grep -e '^statpage_duration' -e '^statpage_samples' -e '^statpage_metric' $f >$f.part
done
cmp -s metrics.part files/statpage.prom.part || fail "the copy is not what is served"
stop
end "a copy of the files tells what the module does"

rm -rf nobody
su nobody -s /bin/sh -c "mkdir /tmp/nobody && /t/statpage export --textfile /tmp/nobody" 2>err
is $? 0 "status"
is "$(grep -c 'this needs root' err) $(wc -l <err)" "1 1" "message"
is "$(value 'statpage_part_up{part="distributions"}' nobody/statpage.prom)" 0 "distributions"
is "$(value 'statpage_part_up{part="cpu"}' nobody/statpage.prom)" 1 "CPU times"
end "without privileges there are CPU times, and a line that says what there is not"

echo "remove kstats_demo_sleep" >$k/_control
finish
