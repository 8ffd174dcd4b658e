# shellcheck shell=sh disable=SC3043 # busybox's sh has local
# SPDX-License-Identifier: GPL-2.0
# Test cases in shell, with the lines and exit statuses of t.h. A guest test sources it as /t/tap.sh:
#
#	begin "what is checked"
#	is "$got" "$expected" "what differs"		# or: fail "why", or: skip "why"
#	finish
#
# A name that is known when all is done goes behind the checks instead: `end "what was checked"`. What the
# files in $evidence hold is shown with a case that fails.

prog=$(basename "$0" .sh)
nr=0 failed=0 skipped=0 name='' bad='' why='' evidence=''

end_case()
{
	[ -n "$name" ] || return 0
	nr=$((nr + 1))
	if [ -n "$bad" ]; then
		failed=$((failed + 1))
		# shellcheck disable=SC2086 # a list
		[ -z "$evidence" ] || cat $evidence 2>/dev/null | sed 's/^/#   /'
		echo "not ok $nr - $name: $bad"
	elif [ -n "$why" ]; then
		skipped=$((skipped + 1))
		echo "ok $nr - $name # SKIP $why"
	else
		echo "ok $nr - $name"
	fi
	name='' bad='' why=''
}

begin()
{
	end_case
	name=$1
}

end()
{
	name=$1
	end_case
}

fail()
{
	bad=${bad:-$(printf '%s\n' "$1" | head -n 1)}
	printf '%s\n' "$1" | sed 's/^/#   /'
}

is()
{
	[ "$1" = "$2" ] || fail "${3:-value}: got '$1', expected '$2'"
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

# Wait at most two minutes until a command succeeds.
eventually()
{
	local tries=0

	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 1200 ] || return 1
		sleep 0.1
	done
}
