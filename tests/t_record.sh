#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# This test checks that what statpage record saw of the modules that are loaded here is, replayed, what the same
# commands said live; and that it needs neither modules nor privileges to be looked at.
# shellcheck disable=SC3043 # busybox's sh has local
cd /tmp || exit 1
rm -rf record && mkdir record && cd record || exit 1
nr=0 failed=0 bad=''
k=/sys/kernel/debug/kstats
demo=/sys/kernel/debug/kstats_demo/run

# is GOT EXPECTED WHAT
is()
{
	[ "$1" = "$2" ] && return
	echo "#   $3: got '$1', expected '$2'"
	bad="$bad $3;"
}

end()
{
	nr=$((nr + 1))
	[ -z "$bad" ] || failed=$((failed + 1))
	echo "${bad:+not }ok $nr - $1${bad:+:$bad}"
	bad=''
}

# Wait at most a minute until a command succeeds.
eventually()
{
	local n=0

	until "$@"; do
		n=$((n + 1))
		[ $n -lt 600 ] || return 1
		usleep 100000
	done
}

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

	[ -s live ] || bad="$bad $what: nothing live;"
	cmp -s live replayed && return
	diff live replayed | head -n 6 | sed 's/^/#   /'
	bad="$bad $what;"
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
[ ! -e g ] || bad="$bad a file is left;"
statpage record -o g --for 1ms crowd
is "$(statpage ls --replay g | cut -d ' ' -f 1)" crowd "nodes of one metric"
is "$(statpage show --replay g lossy 2>&1)" "statpage: no metric lossy" "one that was not asked for"
end "metrics by name"

# The page of the last refresh before and after an instant bounds it.
statpage cpu --json >before
statpage record -o f --for 1ms
statpage cpu --json >after
statpage cpu --json --replay f >replayed
at() { sed -n 's/^{"update_mono_ns":\([0-9]*\),.*/\1/p' "$1"; }
[ "$(at before)" -le "$(at replayed)" ] && [ "$(at replayed)" -le "$(at after)" ] ||
	bad="$bad $(at before) $(at replayed) $(at after);"
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
eventually has_pages || bad="$bad no thread by its page;"
kill -INT $recorder
wait $recorder
is "$? $(cat out)" "0 " "status after SIGINT"
kill $self
statpage top --once --json --replay f >replayed 2>&1
# The numbers of the last instant's only thread.
total() { sed -n 's/.*"total":{\("oncpu_ns"[^}]*\)}.*/\1/p'; }
[ -n "$(total <replayed)" ] || bad="$bad no thread;"
is "$(total <replayed)" "$(grep '^{"time_ns"' f | tail -n 1 | total)" "numbers of the thread"
grep -q '"cpus":{"source":"coarse_stat_fs"' replayed || bad="$bad source of CPU times;"
grep -q '"distributions":{"engine":"kmod","metrics":\[{"name":"GAP-kstats_demo_sleep"' replayed || bad="$bad distributions;"
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
	end "distributions of both engines"
elif grep -q 'built without it' err; then
	end "distributions of both engines # SKIP statpage was built without the engine bpf"
else
	bad="$bad $(cat err);"
	end "distributions of both engines"
fi

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

echo "1..$nr"
[ $failed = 0 ]
