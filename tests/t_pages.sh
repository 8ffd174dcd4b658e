#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# This test checks that statpage top sees another process's thread by its page of coarse_stat_fs.
set -u
nr=0 bad=0

case_is()
{
	nr=$((nr + 1))
	if [ "$1" = 0 ]; then
		echo "ok $nr - $2"
	else
		sed 's/^/#   /' /tmp/top
		echo "not ok $nr - $2"
		bad=1
	fi
}

# A number of the thread's last interval.
of()
{
	sed -n "s/.*\"interval\":{\"wall_ns\":.*\"$1\":\([0-9]*\).*\"nr_preempt\".*\"cpus\".*/\1/p; " /tmp/top
}

wall()
{
	sed -n 's/.*"interval":{"wall_ns":\([0-9]*\),"oncpu_ns".*"cpus".*/\1/p' /tmp/top
}

statpage self 20000 >/dev/null &
self=$!
tries=0
until [ -n "$(wall 2>/dev/null)" ] || [ $tries = 20 ]; do
	tries=$((tries + 1))
	statpage top --once --json --engine pages --interval 500ms -p $self >/tmp/top 2>&1
done
grep -q "\"threads\":\[{\"pid\":$self,\"tid\":$self,\"comm\":\"statpage\",\"engine\":\"pages\"" /tmp/top
case_is $? "the thread is there, by its page"
sum=$(($(of oncpu_ns) + $(of runq_ns) + $(of sleep_ns) + $(of dsleep_ns) + $(of iowait_ns)))
off=$((sum - $(wall)))
# By two clocks, which are read one after the other.
[ ${off#-} -lt 20000000 ]
case_is $? "its buckets add up to the wall time: $sum of $(wall)"
[ $(($(of sleep_ns) * 10)) -gt $(($(wall) * 8)) ]
case_is $? "it sleeps: $(of sleep_ns) of $(wall)"
kill $self
echo "1..$nr"
exit $bad
