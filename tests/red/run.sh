#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks that the harness can fail: each red_*.sh here is a way for a guest to go wrong, and
# must make tests/vm.sh say so, for the right reason. Usage: tests/red/run.sh [SUITE]
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
suite=${1:-bookworm}
out=$top/build/red
nr=0 bad=0

# Boot once for the given tests; what comes of it is in $out/BOOT.log.
guest()
{
	local boot=$1
	shift

	mkdir -p "$out"
	VM_OUT=$out/$boot "$top/tests/debian/run.sh" "$suite" "$@" >"$out/$boot.log" 2>&1
	echo "exit status $?" >>"$out/$boot.log"
}

# The boot came out red: the last words are those of a failure. Then, for each pattern, a line has it.
red()
{
	local boot=$1 name=$2 pattern why=""
	shift 2

	[ "$(tail -n 2 "$out/$boot.log")" = "RESULT 1"$'\n'"exit status 1" ] || why="vm.sh did not fail"
	for pattern; do
		grep -q -e "$pattern" "$out/$boot.log" || why=${why:-"no line has '$pattern'"}
	done
	nr=$((nr + 1))
	if [ -z "$why" ]; then
		echo "ok $nr - $name"
	else
		echo "not ok $nr - $name: $why, see $out/$boot.log"
		bad=1
	fi
}

# The hanging guest costs its time limit but no CPU, so it may wait beside the others.
VM_TIMEOUT=${RED_TIMEOUT:-60} guest hang red_hang &
guest many red_fail red_status red_signal red_mute red_skip red_splat red_leak
guest crash red_crash
guest liar red_liar
wait

red many "a failed case" '^not ok 2 - fails$'
red many "a bad exit status" '^not ok - red_status: exit status 3$'
red many "a killed test" '^not ok - red_signal: exit status 139$'
red many "a test that says nothing" '^not ok - red_mute: says nothing$'
red many "a skip that is not expected" "^not ok - red_skip: skipped 'needs the moon', which"
red many "a warning in the kernel log" '^not ok - red_splat: the kernel log has: .*at a/fake.c:1'
red many "a module that stays in use" '^not ok - red_leak: coarse_stat_fs.ko does not unload'
red crash "a crash" '^not ok - guest vm=default: the guest died without' 'sysrq: Trigger a crash'
red hang "a hang" '^# red_hang$' '^not ok - guest vm=default: no verdict within'
red liar "no verdict" '^ok 1 - passes' '^not ok - guest vm=default: the guest died without'

echo "1..$nr"
exit $bad
