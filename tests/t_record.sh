#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# This test checks that what statpage record saw of the modules that are loaded here is, replayed, what the same
# commands said live; and that it needs neither modules nor privileges to be looked at.
# shellcheck disable=SC3043 # busybox's sh has local
cd /tmp || exit 1
rm -rf record && mkdir record && cd record || exit 1
# shellcheck source=tests/tap.sh
. /t/tap.sh
k=/sys/kernel/debug/kstats
demo=/sys/kernel/debug/kstats_demo/run

# What all forms of show say of the nodes, into a file.
show_all()
{
	local m

	for m in kstats_demo_sleep GAP-kstats_demo_sleep crowd lossy; do
		for form in "" --quantiles --json --plot "--cpu 0" "--cpu 0 --json"; do
			# shellcheck disable=SC2086 # words
			statpage show $form $replay $m
		done
	done
}

live_and_replayed()
{
	local what="$1"

	[ -s live ] || fail "$what: nothing live"
	cmp -s live replayed && return
	diff live replayed | head -n 6 | sed 's/^/#   /'
	fail "$what"
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
echo stop >$k/crowd
echo "inner 1 3" >$demo

statpage record -o f --for 1ms
is $? 0 "status"
replay='' && show_all >live 2>&1
replay='--replay f' && show_all >replayed 2>&1
live_and_replayed "show"
is "$(statpage show --replay f --json kstats_demo_sleep crowd lossy |
	sed 's/.*"attempted":\([0-9]*\),"recorded":\([0-9]*\),"missed":\([0-9]*\),.*"stopped":\([0-9]*\),.*/\1 \4/' | xargs)" \
	"15 0 1003 3 10 0" "attempted and stopped of each"
end "show of the recording is show's text of then, to the byte"

statpage ls >live
statpage ls --replay f >replayed
live_and_replayed ls
is "$(wc -l <replayed)" 3 "nodes"
end "ls likewise"

is "$(statpage show --replay f nothere 2>&1)" "$(statpage show nothere 2>&1)" "a metric that is not there"
statpage record -o g --for 1ms nothere 2>err
is "$? $(cat err)" "1 statpage: no metric nothere" "to record one that is not there"
[ ! -e g ] || fail "a file is left"
statpage record -o g --for 1ms crowd
is "$(statpage ls --replay g | cut -d ' ' -f 1)" crowd "nodes of one metric"
is "$(statpage show --replay g lossy 2>&1)" "statpage: no metric lossy" "one that was not asked for"
end "metrics by name"

mkdir live.d replayed.d
statpage export --textfile live.d
statpage export --textfile replayed.d --replay f 2>err
is "$? $(cat err)" "0 " "status of export"
for d in live replayed; do
	grep -e '^statpage_duration' -e '^statpage_sample' -e '^statpage_metric_' -e '^statpage_engine' $d.d/statpage.prom >$d
done
live_and_replayed "distributions of export"
is "$(grep -c '^statpage_cpu_online{.*} 1' replayed.d/statpage.prom)" "$(nproc)" "CPUs of export"
for m in "$k"/[!_]*; do
	statpage show --json "${m##*/}"
	statpage show --json --cpu 0 "${m##*/}"
	statpage show --json --cpu 1 "${m##*/}"
done | grep -v '"cpu":.*"count":0,' >lines # a CPU without samples is not in a recording
numbers() { sed -n '/<section id=dist0/,/<\/section>/p' | grep -o 'data-[a-z]*="*[^ >]*' | grep -v 'data-v="*0"*$' | sort -u; }
statpage report -o - lines | numbers >live
statpage report -o - f | numbers >replayed
live_and_replayed "numbers of report"
end "export and report: the numbers of then"

# The page of the last refresh before and after an instant bounds it.
statpage cpu --json >before
statpage record -o f --for 1ms
statpage cpu --json >after
statpage cpu --json --replay f >replayed
at() { sed -n 's/^{"update_mono_ns":\([0-9]*\),.*/\1/p' "$1"; }
if [ "$(at before)" -gt "$(at replayed)" ] || [ "$(at replayed)" -gt "$(at after)" ]; then
	fail "refreshed at $(at before), $(at replayed), $(at after)"
fi
sed 's/:[0-9][0-9]*\([,}]\)/:N\1/g' before >live
sed 's/:[0-9][0-9]*\([,}]\)/:N\1/g' replayed >text && mv text replayed
live_and_replayed "keys of cpu"
is "$(statpage cpu --replay f | grep -c '^cpu')" $((1 + $(nproc))) "lines of cpu"
end "cpu: the page of then"

# Recorded twice: what the one says at its end is what the other says live, but for what goes on.
statpage self 60000 >/dev/null &
self=$!
statpage record -o f --interval 200ms -p $self >out 2>&1 &
recorder=$!
has_pages() { [ "$(grep -c '"engine":"pages","state"' f 2>/dev/null || true)" -ge 3 ] 2>/dev/null; }
eventually has_pages || fail "no thread by its page"
kill -INT $recorder
wait $recorder
is "$? $(cat out)" "0 " "status after SIGINT"
kill $self
statpage top --once --json --replay f >replayed 2>&1
# The numbers of the last instant's only thread.
total() { sed -n 's/.*"total":{\("oncpu_ns"[^}]*\)}.*/\1/p'; }
[ -n "$(total <replayed)" ] || fail "no thread"
is "$(total <replayed)" "$(grep '^{"time_ns"' f | tail -n 1 | total)" "numbers of the thread"
grep -q '"cpus":{"source":"coarse_stat_fs"' replayed || fail "source of CPU times"
grep -q '"distributions":{"engine":"kmod[^"]*","metrics":\[{"name":"GAP-kstats_demo_sleep"' replayed || fail "distributions"
is "$(statpage top --json --replay f | wc -l)" $(($(grep -c '^{"time_ns"' f) - 1)) "reports"
end "top: a thread by its page, CPUs and distributions of then"

show_bpf()
{
	for form in "" --quantiles --json --plot "--cpu 0 --json" "--cpu 1 --json"; do
		# shellcheck disable=SC2086 # words
		statpage show $form $replay slept GAP-slept
	done
}

if statpage trace --engine bpf --name slept --bits 4 --via kretprobe kstats_demo_sleep 2>err; then
	echo "sleep 2 5" >$demo
	statpage record -o f --for 1ms
	replay='' && show_bpf >live 2>&1
	statpage ls >>live
	replay='--replay f' && show_bpf >replayed 2>&1
	statpage ls --replay f >>replayed
	live_and_replayed "the engine bpf"
	is "$(statpage ls --replay f | grep -o '([a-z]*)' | sort | uniq -c | xargs)" "1 (bpf) 3 (kmod)" "nodes of both engines"
	is "$(statpage show --replay f --json slept GAP-slept | sed 's/.*"recorded":\([0-9]*\),.*/\1/' | xargs)" "5 4" "samples"
	statpage untrace slept
elif grep -q 'built without it' err; then
	skip "statpage was built without the engine bpf"
else
	fail "$(cat err)"
fi
end "distributions of both engines"

statpage record -o f --for 1ms
replay='' && show_all >live 2>&1
statpage ls >live.ls
cp f /tmp/f.nobody && chmod 644 /tmp/f.nobody
for m in kstats_demo_sleep crowd lossy; do
	echo "remove $m" >$k/_control
done
umount /sys/kernel/coarse_stat_fs && rmmod coarse_stat_fs && rmmod kstats_demo && rmmod kstats
is $? 0 "rmmod"
cat >/tmp/replay.sh <<'END'
replay="--replay /tmp/f.nobody"
for m in kstats_demo_sleep GAP-kstats_demo_sleep crowd lossy; do
	for form in "" --quantiles --json --plot "--cpu 0" "--cpu 0 --json"; do
		/t/statpage show $form $replay $m
	done
done
END
su nobody -s /bin/sh -c "sh /tmp/replay.sh" >replayed 2>&1
live_and_replayed show
cp live.ls live
su nobody -s /bin/sh -c "/t/statpage ls --replay /tmp/f.nobody" >replayed 2>&1
live_and_replayed ls
is "$(su nobody -s /bin/sh -c "/t/statpage cpu --replay /tmp/f.nobody" | grep -c '^cpu')" $((1 + $(nproc))) "cpu"
statpage record -o g --for 1ms
is $? 0 "status without modules"
is "$(statpage cpu --replay g 2>&1)" "statpage: g: line 3: the cpu page was not recorded: coarse_stat_fs was not mounted" \
	"cpu without the module"
end "without modules, and as nobody"

finish
