#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What `make demo` shows, run in a guest. Each part: one line that says what it is, then real output.
nr=0

show()
{
	echo
	echo "--- $1"
	shift
	echo "\$ $*"
	nr=$((nr + 1))
	if "$@"; then echo "ok $nr - $*"; else echo "not ok $nr - $*: exit status $?"; bad=1; fi
}

bad=0
show "the machine's CPU times in the format of /proc/stat, read from a page without a system call" \
	csfcat cpu
show "a thread sleeps 50 ms and spins 50 ms, and reads from its own page where the time went" \
	csfcat self 100
show "a program that times its operations, and says of the slow ones alone what made them slow" \
	eventloop
exit $bad
