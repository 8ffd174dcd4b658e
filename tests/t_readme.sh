#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# This test checks that every command in README.md works and prints what README.md says.
# Usage: t_readme.sh [guest|native|slow] [README.md]; a guest test, and called by two layers of check.
#
# The words behind ``` mark a block:
#	sh MODE		each line is a command; MODE says where it is run: guest, native (on this
#			machine), slow (likewise, but it boots guests or takes minutes)
#	sh skip WHY	not to be run, for a reason
#	console MODE	commands behind `$ `, each followed by what it prints: numbers and widths aside
#	c NAME		lines of tests/unit/reader/NAME.c, which are compiled there
# Commands of a mode run one after the other in one directory, the top of a checkout; those of console
# blocks last, when the others have set up what they need.
# shellcheck disable=SC3043 # busybox's sh has local
set -u

mode=${1:-guest}
readme=${2:-/t/README.md}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nr=0 bad=0

ok()
{
	nr=$((nr + 1))
	echo "ok $nr - README: $1"
}

not_ok()
{
	nr=$((nr + 1)) bad=1
	echo "not ok $nr - README: $1"
}

# One line each: the words behind ```, a tab, the line of the block.
blocks()
{
	awk '/^```/ { inside = !inside; info = inside ? substr($0, 4) : ""; next }
		inside { print info "\t" $0 }' "$readme"
}

# In the guest the files of a checkout are elsewhere, and everybody is root.
make_checkout()
{
	mkdir -p "$work/kmod" "$work/tools" "$work/build" "$work/bin"
	ln -s /ko/coarse_stat_fs.ko "$work/kmod/"
	ln -s /ko/kstats.ko "$work/kmod/"
	ln -s /t/csfcat "$work/tools/"
	ln -s /t/eventloop "$work/build/"
	printf '#!/bin/sh\nexec "$@"\n' >"$work/bin/sudo"
	chmod +x "$work/bin/sudo"
	PATH=$work/bin:$PATH
	cd "$work" || exit 1
}

# What may differ from one run to the next: numbers, and how wide they are.
shape()
{
	sed 's/[0-9][0-9.]*/N/g; s/[ \t][ \t]*/ /g; s/ $//' "$1"
}

# Ends the command that ran last: did it print what followed it?
compare()
{
	[ -s "$work/expected" ] || return 0
	shape "$work/expected" >"$work/shape"
	if shape "$work/out" | cmp -s - "$work/shape"; then
		ok "$command: prints what it says"
	else
		sed 's/^/#   /' "$work/out"
		not_ok "$command: prints something else"
	fi
	: >"$work/expected"
}

run()
{
	command=$1
	[ "$command" != "make check" ] || return # which is what runs us
	if sh -c "$command" >"$work/out" 2>&1 </dev/null; then
		ok "$command"
	else
		status=$?
		sed 's/^/#   /' "$work/out"
		not_ok "$command: exit status $status"
	fi
}

line()
{
	case $1 in
	"sh $mode") run "$2" ;;
	"console $mode")
		case $2 in
		'$ '*) compare; run "${2#'$ '}" ;;
		*) echo "$2" >>"$work/expected" ;;
		esac ;;
	"sh skip "* | "sh guest" | "sh native" | "sh slow" | "console guest" | "console native") ;;
	"c "*)
		[ "$mode" = native ] || return
		grep -qxF -e "$2" "tests/unit/reader/${1#c }.c" ||
			not_ok "'$2' is no line of tests/unit/reader/${1#c }.c" ;;
	*) [ "$mode" = native ] && not_ok "a block is marked '$1', see tests/t_readme.sh: $2" ;;
	esac
}

[ -r "$readme" ] || { echo "not ok 1 - README: cannot read $readme"; exit 1; }
blocks >"$work/blocks"
: >"$work/expected"
[ "$mode" != guest ] || make_checkout
tab=$(printf '\t')
for kind in '^[^c]' '^c'; do
	grep "$kind" "$work/blocks" >"$work/pass"
	while IFS= read -r l <&3; do
		line "${l%%"$tab"*}" "${l#*"$tab"}"
	done 3<"$work/pass"
done
compare
[ "$mode" != guest ] || { umount /sys/kernel/coarse_stat_fs && rmmod coarse_stat_fs kstats; } || bad=1
[ "$mode" != native ] || ok "every block is marked, and its C is compiled by a test"
echo "1..$nr"
exit $bad
