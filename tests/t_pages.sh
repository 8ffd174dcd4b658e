#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# This test checks that statpage top sees another process's thread by its page of coarse_stat_fs.
set -u
# shellcheck source=tests/tap.sh
. /t/tap.sh
evidence=/tmp/top

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
begin "the thread is there, by its page"
grep -q "\"threads\":\[{\"pid\":$self,\"tid\":$self,\"comm\":\"statpage\",\"engine\":\"pages\"" /tmp/top || fail "it is not"
begin "its buckets add up to the wall time"
sum=$(($(of oncpu_ns) + $(of runq_ns) + $(of sleep_ns) + $(of dsleep_ns) + $(of iowait_ns)))
off=$((sum - $(wall)))
# By two clocks, which are read one after the other.
[ ${off#-} -lt 20000000 ] || fail "$sum of $(wall)"
begin "it sleeps"
[ $(($(of sleep_ns) * 10)) -gt $(($(wall) * 8)) ] || fail "$(of sleep_ns) of $(wall)"
kill $self
finish
