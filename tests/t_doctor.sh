#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# This test checks that statpage doctor tells, step by step, what is missing until the modules' parts work.
set -u
nr=0 bad=0

# check NAME ENGINE-PATTERN EXPECTED-PATTERN [NEXT-LINE-PATTERN]: of the part's line and the one after it
check()
{
	statpage doctor >/tmp/doctor
	nr=$((nr + 1))
	got=$(grep -A 1 "^$2" /tmp/doctor)
	if echo "$got" | head -n 1 | grep -q "$3" && echo "$got" | tail -n 1 | grep -q "${4:-.}"; then
		echo "ok $nr - $1"
	else
		sed 's/^/#   /' /tmp/doctor
		echo "not ok $nr - $1"
		bad=1
	fi
}

check "coarse_stat_fs is not loaded" "thread time *module" " no .*coarse_stat_fs is not loaded" "try: .*headers"
check "nor is kstats" "distributions *module" " no .*kstats is not loaded" "try: "
insmod /ko/coarse_stat_fs.ko
check "loaded, but not mounted" "thread time *module" " no .*not mounted" "try: sudo mount -t coarse_stat_fs"
eval "$(statpage doctor | sed -n '/not mounted/{n;s/.*try: sudo //p;q;}')"
check "mounted, by the command it gave" "thread time *module" " yes .*kHz$"
nr=$((nr + 1))
# The kernel refines its first guess of the TSC's rate, which is what cpuinfo keeps, by 1% at most.
if awk -v khz="$(sed -n 's/^thread time *module .* \([0-9]*\) kHz$/\1/p' /tmp/doctor)" '
	/^cpu MHz/ { off = khz / 1000 - $4; exit off * off > $4 * $4 / 10000 }' /proc/cpuinfo; then
	echo "ok $nr - its clock's rate is that of the kernel's TSC"
else
	echo "not ok $nr - its clock's rate is that of the kernel's TSC: $(grep -m 1 MHz /proc/cpuinfo)"
	bad=1
fi
last_cpu=$(sed 's/.*[-,]//' /sys/devices/system/cpu/possible)
check "the cpu page" "thread time *cpu page" \
	" yes  $((last_cpu + 1)) CPU ids, refreshed every $(cat /sys/module/coarse_stat_fs/parameters/period_us) us"
check "the clock" "thread time *TSC" " yes .*by tsc$"
umount /sys/kernel/debug
check "debugfs is not mounted" "distributions *module" " no .*debugfs is not mounted" "try: sudo mount -t debugfs"
eval "$(statpage doctor | sed -n '/debugfs is not mounted/{n;s/.*try: sudo //p;q;}')"
insmod /ko/kstats.ko
check "kstats is loaded" "distributions *module" " yes "
check "processes can be traced" "runtime stats *ptrace" " yes .*adds [0-9]* ns"
rmmod kstats
umount /sys/kernel/coarse_stat_fs
rmmod coarse_stat_fs
echo "1..$nr"
exit $bad
