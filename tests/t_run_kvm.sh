#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# This test checks that `statpage run` sees the same virtual CPU exits from outside as a KVM host that
# embeds the library counts inside, and gets at KVM's own statistics without a trace in the host.
# shellcheck disable=SC3043 # busybox's sh has local
cd /tmp || exit 1
# shellcheck source=tests/tap.sh
. /t/tap.sh

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

# Its tracepoints come with the module, which a test before this one may have left.
rmmod kvm_amd 2>/dev/null || rmmod kvm_intel 2>/dev/null
rmmod kvm 2>/dev/null
statpage run --engine bpf -f json -o out -- workload calls 10
is "$? $(grep -c '"vcpu":' out)" "0 0" "exit status and virtual CPUs"
is "$(grep -c '"cannot_see":"[^"]*virtual CPU exits' out)" 2 "what the engine says that it cannot see"
end "without KVM's module the bpf engine sees no virtual CPU, and says so"

modprobe kvm-amd 2>/dev/null || modprobe kvm-intel || exit 1
both()
{
	rm -f in out
	STATPAGE_RUNTIME_STATS=json STATPAGE_STATS_OUTPUT=/tmp/in statpage run "$@" 2>err
	is $? 0 "exit status ($(cat err))"
	is "$(reasons out)" "$(reasons in)" "reasons outside and inside"
	is "$(vcpu out exits)" "$(vcpu in exits)" "exits"
}

both --engine ptrace -f jsonl -o out -- vmm io:100 mmio:50
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

# What the hardware left the guest for: `hw NAME` is its count
hw()
{
	grep '"scope":"process"' out | grep '"final":true' | grep -o '"hw_exits":\[[^]]*' |
		grep -o "\"name\":\"$1\",\"reason\":[0-9]*,\"count\":[0-9]*" | cut -d: -f4
}

both --engine bpf -f jsonl -o out -- vmm io:100 mmio:50
is "$(vcpu out vcpus)" "$(vcpu in vcpus)" "virtual CPUs"
is "$(hw ioio)$(hw io_instruction)" "$(reasons out | awk '$1 == "io" { print $2 }')" "exits of the hardware for ports"
case $(grep -o '"isa":"[a-z]*"' out | sort -u) in
'"isa":"svm"') [ "$(hw npf)" -ge 50 ] || is "$(hw npf)" "50 or more" "faults of the guest" ;;
'"isa":"vmx"') [ "$(hw ept_misconfig)" -ge 1 ] || is "$(hw ept_misconfig)" "1 or more" "faults of the guest" ;;
*) is "$(grep -o '"isa":[^,]*' out)" '"isa":"svm"' "isa" ;;
esac
[ "$(vcpu out in_guest_ns)" -lt "$(vcpu out run_call_ns)" ] ||
	is "$(vcpu out in_guest_ns)" "less than $(vcpu out run_call_ns)" "in_guest_ns"
is "$(grep -c '"cannot_see":"[^"]*virtual CPU exits' out)" 0 "the engine says that it cannot see them"
end "bpf: exits by reason are what the host counts itself, with those of the hardware"

both --engine bpf -f jsonl -o out -- vmm -i halt:500
[ "$(vcpu out halted_ns)" -gt 300000000 ] || is "$(vcpu out halted_ns)" ">300 ms" "halted_ns"
is $(($(vcpu out guest_run_ns) + $(vcpu out halted_ns))) "$(vcpu out run_call_ns)" "guest_run_ns and halted_ns"
is "$(grep -c '"guest_run_source":"kvm_vcpu_wakeup"' out)" 2 "source"
[ "$(hw hlt)" -ge 1 ] || is "$(hw hlt)" "1 or more" "halts of the hardware"
end "bpf: a guest that halts in the kernel is not running"

both --engine bpf -f jsonl -o out --interval 100ms -- vmm io:100 spin:1500
grep '"reason":"interval"' out | grep -q '"vcpu":{"vcpus":[12],"exits":[0-9]*,[^}]*"in_flight":[12]' ||
	is "$(grep '"reason":"interval"' out | grep -o '"vcpu":{[^[]*' | tail -n 1)" "in_flight 1" \
		"while it runs"
[ "$(vcpu out in_guest_ns)" -gt 1000000000 ] || is "$(vcpu out in_guest_ns)" "> 1 s" "in_guest_ns"
end "bpf: a run call that has not come back is in flight, and its guest's time is told"

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

finish
