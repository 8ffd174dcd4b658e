# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# Test cases in shell, with the lines and exit statuses of tests/t.h. Source it, then:
#
#	begin "what is checked"
#	is "$got" "$expected" "what differs"		# or: check CONDITION... "why"
#	skip "why"
#	finish
#
# Scripts run in the top of the checkout, with $tmp as a folder of their own.

set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
prog=$(basename "$0" .sh)
# shellcheck disable=SC2034 # for those who source this
statpage=$PWD/tools/statpage
# shellcheck disable=SC2034
native=$PWD/build/tests/native
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
nr=0 failed=0 skipped=0 name='' bad='' why=''

end_case()
{
	[ -n "$name" ] || return 0
	nr=$((nr + 1))
	if [ -n "$bad" ]; then
		failed=$((failed + 1))
		echo "not ok $nr - $name: $bad"
	elif [ -n "$why" ]; then
		skipped=$((skipped + 1))
		echo "ok $nr - $name # SKIP $why"
	else
		echo "ok $nr - $name"
	fi
	name=''
}

begin()
{
	end_case
	name=$1 bad='' why=''
}

fail()
{
	bad=${bad:-$1}
	printf '%s\n' "$1" | sed 's/^/#   /'
}

is()
{
	[ "$1" = "$2" ] || fail "${3:-value}: got '$1', expected '$2'"
}

# check COMMAND... WHY
check()
{
	local words=("$@") last=$(($# - 1))

	"${words[@]:0:last}" || fail "${words[last]}"
}

skip()
{
	why=$1
}

finish()
{
	end_case
	echo "1..$nr"
	echo "# $prog: $((nr - failed - skipped)) passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ] && [ "$nr" -gt 0 ] || exit 1
	[ "$skipped" -lt "$nr" ] || exit 77
	exit 0
}

# Wait at most 20 s until a command succeeds.
eventually()
{
	local _

	for _ in $(seq 400); do
		"$@" && return 0
		sleep 0.05
	done
	return 1
}
