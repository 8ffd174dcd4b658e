#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# This test checks that the module does not load on a processor without rdtscp: readers would die of it.
set -u

dmesg -c >/dev/null
if insmod /ko/coarse_stat_fs.ko 2>/dev/null; then
	rmmod coarse_stat_fs
	echo "not ok 1 - no rdtscp: the module is refused, with the reason: it loads"
elif dmesg | grep -q 'coarse_stat_fs: .*no rdtscp'; then # twice: busybox tries both calls
	echo "ok 1 - no rdtscp: the module is refused, with the reason"
else
	dmesg | sed 's/^/#   /'
	echo "not ok 1 - no rdtscp: the module is refused, with the reason"
fi
if [ -e /sys/module/coarse_stat_fs ] || [ -e /sys/kernel/coarse_stat_fs ]; then
	echo "not ok 2 - and leaves nothing behind"
else
	echo "ok 2 - and leaves nothing behind"
fi
echo "1..2"
