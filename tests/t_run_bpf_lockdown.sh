#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# This test checks that under lockdown `confidentiality`, which no BPF program that reads the kernel may
# load in, `statpage run` says so in one line and counts with ptrace. Lockdown is for good.
cd /tmp || exit 1
# shellcheck source=tests/tap.sh
. /t/tap.sh

echo confidentiality >/sys/kernel/security/lockdown
statpage run --engine bpf -o sum -- workload calls 20 2>err
is $? 0 "exit status"
is "$(cat err)" "statpage: the bpf engine cannot be used: the kernel is locked down (confidentiality); using ptrace" \
	"reason"
is "$(sed -n '/^process /q; s/^engine //p' sum)" ptrace "engine"
is "$(awk '/^process / { exit } $NF == "getppid" { print $1 }' sum)" 20 "calls counted"
statpage run --engine auto -o sum -- true 2>err
is "$?$(cat err)" 0 "auto: status and what it says"
is "$(bpf_ids)" "" "programs, maps and links"
end "lockdown: one line, and ptrace"
finish
