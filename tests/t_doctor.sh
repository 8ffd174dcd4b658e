#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# This test checks that statpage doctor tells, step by step, what is missing until the modules' parts work.
set -u
# shellcheck source=tests/tap.sh
. /t/tap.sh
evidence=/tmp/doctor

# says NAME ENGINE-PATTERN EXPECTED-PATTERN [NEXT-LINE-PATTERN]: of the part's line and the one after it
says()
{
	begin "$1"
	statpage doctor >/tmp/doctor
	got=$(grep -A 1 "^$2" /tmp/doctor)
	echo "$got" | head -n 1 | grep -q "$3" || fail "the line has no '$3'"
	echo "$got" | tail -n 1 | grep -q "${4:-.}" || fail "the next one has no '${4:-.}'"
}

says "coarse_stat_fs is not loaded" "thread time *module" " no .*coarse_stat_fs is not loaded" "try: .*headers"
says "nor is kstats" "distributions *module" " no .*kstats is not loaded" "try: "
insmod /ko/coarse_stat_fs.ko
says "loaded, but not mounted" "thread time *module" " no .*not mounted" "try: sudo mount -t coarse_stat_fs"
eval "$(statpage doctor | sed -n '/not mounted/{n;s/.*try: sudo //p;q;}')"
says "mounted, by the command it gave" "thread time *module" " yes .*kHz$"
begin "its clock's rate is that of the kernel's TSC"
# The kernel refines its first guess of the TSC's rate, which is what cpuinfo keeps, by 1% at most.
awk -v khz="$(sed -n 's/^thread time *module .* \([0-9]*\) kHz$/\1/p' /tmp/doctor)" '
	/^cpu MHz/ { off = khz / 1000 - $4; exit off * off > $4 * $4 / 10000 }' /proc/cpuinfo ||
	fail "$(grep -m 1 MHz /proc/cpuinfo)"
last_cpu=$(sed 's/.*[-,]//' /sys/devices/system/cpu/possible)
says "the cpu page" "thread time *cpu page" \
	" yes  $((last_cpu + 1)) CPU ids, refreshed every $(cat /sys/module/coarse_stat_fs/parameters/period_us) us"
says "the clock" "thread time *TSC" " yes .*by tsc$"
umount /sys/kernel/debug
says "debugfs is not mounted" "distributions *module" " no .*debugfs is not mounted" "try: sudo mount -t debugfs"
eval "$(statpage doctor | sed -n '/debugfs is not mounted/{n;s/.*try: sudo //p;q;}')"
insmod /ko/kstats.ko
says "kstats is loaded" "distributions *module" " yes "
says "processes can be traced" "runtime stats *ptrace" " yes .*adds [0-9]* ns"
if statpage serve --end 2>&1 | grep -q 'built without'; then
	says "built without libbpf" "runtime stats *bpf" " no .*built without it"
else
	says "programs at system calls" "runtime stats *bpf" " yes  its programs load$"
	says "nobody serves pages" "thread time *bpf" " no .*no server listens on /run" "try: sudo statpage serve"
	statpage serve >/tmp/served 2>&1 &
	server=$!
	eventually grep -q ^serving /tmp/served
	says "a server does, and the module is there, too" "thread time *bpf" " yes .*a server gives a page" "cpu page"
	kill $server
	wait $server
	umount /sys/fs/bpf
fi
rmmod kstats
umount /sys/kernel/coarse_stat_fs
rmmod coarse_stat_fs
finish
