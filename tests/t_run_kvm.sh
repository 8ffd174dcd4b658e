#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# This test checks that `statpage run` sees the same virtual CPU exits from outside as a KVM host that
# embeds the library counts inside, and gets at KVM's own statistics without a trace in the host.
# shellcheck disable=SC3043 # busybox's sh has local
cd /tmp || exit 1
nr=0 failed=0 bad=''

is()
{
	[ "$1" = "$2" ] && return
	echo "#   $3: got '$1', expected '$2'"
	bad="$bad $3"
}

end()
{
	nr=$((nr + 1))
	[ -z "$bad" ] || failed=$((failed + 1))
	echo "${bad:+not }ok $nr - $1${bad:+:$bad}"
	bad=''
}

# `name count null` of each exit reason of the process in a file of records
reasons()
{
	grep '"scope":"process"' "$1" | grep '"final":true' |
		grep -o '"name":"[a-z_]*","reason":[0-9]*,"count":[0-9]*,"null":[0-9]*' |
		sed 's/"name":"\([a-z_]*\)","reason":[0-9]*,"count":\([0-9]*\),"null":\([0-9]*\)/\1 \2 \3/' | sort
}

# The number at a key of the vcpu object
vcpu()
{
	grep '"scope":"process"' "$1" | grep '"final":true' | grep -o '"vcpu":{.*' |
		grep -o "\"$2\":[0-9.]*" | head -n 1 | cut -d: -f2
}

modprobe kvm-amd 2>/dev/null || modprobe kvm-intel || exit 1
both()
{
	rm -f in out
	STATPAGE_RUNTIME_STATS=json STATPAGE_STATS_OUTPUT=/tmp/in statpage run "$@" 2>err
	is $? 0 "exit status ($(cat err))"
	is "$(reasons out)" "$(reasons in)" "reasons outside and inside"
	is "$(vcpu out exits)" "$(vcpu in exits)" "exits"
}

both -f jsonl -o out -- vmm io:100 mmio:50
[ "$(reasons out | awk '$1 == "io" { print $2 }')" -ge 100 ] || is "$(reasons out)" "io 100" "io"
[ "$(reasons out | awk '$1 == "mmio" { print $2 }')" -ge 50 ] || is "$(reasons out)" "mmio 50" "mmio"
is "$(grep -c '"guest_run_absent":"not asked for: --kvm-stats"' out)" 2 "why there is no guest_run_ns"
end "exits by reason are what the host counts itself"

both --kvm-stats -f jsonl -o out -- vmm io:100 spin:200
is "$(grep '"scope":"process"' out | grep -c '"guest_run_source":"kvm-stats"')" 1 "source"
[ "$(grep -o '"kvm":{[^}]*' out | head -n 1 | tr ',' '\n' | wc -l)" -gt 10 ] ||
	is "$(grep -o '"kvm":{[^}]*' out)" "more than 10" "statistics"
[ "$(vcpu out guest_run_ns)" -gt 100000000 ] || is "$(vcpu out guest_run_ns)" ">100 ms" "guest_run_ns"
end "--kvm-stats: statistics and guest_run_ns, the host undisturbed"

both --kvm-stats -f jsonl -o out -- vmm -i halt:500
[ "$(vcpu out halted_ns)" -gt 300000000 ] || is "$(vcpu out halted_ns)" ">300 ms" "halted_ns"
[ "$(vcpu out guest_run_ns)" -lt "$(vcpu out halted_ns)" ] ||
	is "$(vcpu out guest_run_ns)" "less than halted_ns" "guest_run_ns"
end "a guest that halts in the kernel is not running"

rm -f out
statpage run --kvm-stats -f jsonl -o out -- workload filtered vmm io:100 2>err
is $? 0 "exit status: the filter kills who asks ($(cat err))"
is "$(reasons out)" "io 201 0" "reasons"
is "$(grep -c '"guest_run_absent":"the program has a seccomp filter: no call is made inside it"' out)" 2 \
	"why there is no guest_run_ns"
is "$(grep -c -e '"kvm":{' -e guest_run_ns out)" 0 "statistics"
STATPAGE_RUNTIME_STATS=json STATPAGE_STATS_OUTPUT=/tmp/in workload filtered vmm io:100
is $? $((128 + 31)) "status of a host that asks by itself: the filter works"
end "--kvm-stats makes no call in a program with a seccomp filter, and says so"

echo "1..$nr"
[ $failed = 0 ]
