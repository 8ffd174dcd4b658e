#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks that make check runs every test there is: one that nobody runs proves nothing.
. "$(dirname "$0")/tap.sh"

# The names of files, without folders and endings.
names()
{
	printf '%s\n' "$@" | sed 's,.*/,,; s,\.[a-z]*$,,' | sort
}

begin "every guest test is built and in the table, and runs without being named"
is "$(names tests/t_*.c tests/t_*.sh | comm -23 - <(tests/vm-inner.sh --names | sort))" "" \
	"tests in no line of vm-inner.sh, or that run only when named"
is "$(tests/vm-inner.sh --names t_rts_vmm_asan t_rts_vmm_tsan | xargs)" \
	"$(grep -o 't_rts_vmm_[a-z]*' scripts/check.sh | xargs)" "the KVM host with sanitizers"
is "$(names tests/t_*.c tests/bench*.c | comm -23 - <(sed -n '/^TESTS := /,/^$/s/^\t\(.*\) \\$/\1/p' \
	tests/Makefile | sort))" "" "tests that tests/Makefile does not build"

begin "every unit test runs, and those of lib/rts with both sanitizers too"
units=$(make -s -C tests list-units | xargs -n 1 | sort)
is "$(names tests/unit/t_*.c | comm -23 - <(echo "$units"))" "" "unit tests that are in no list"
for san in tsan asan; do
	is "$(names tests/unit/t_rts_*.c | sed "s,^,$san/," | comm -23 - <(echo "$units"))" "" "$san"
done

begin "every red test is booted by tests/red/run.sh"
is "$(names tests/red/red_*.sh | comm -23 - <(grep -o '\bred_[a-z]*' tests/red/run.sh | sort -u))" "" \
	"red tests that nobody boots"

begin "make check has a layer for each kind, on three kernels"
layers=$(sed -n '/^layers()/,/^}/p' scripts/check.sh)
for layer in "make -s unit" "make -s native" '$run bookworm' '$run trixie' '$run sid' tests/red/run.sh \
	tests/t_readme.sh; do
	check grep -q -F -e "$layer" <(echo "$layers") "no layer runs $layer"
done
is "$(names tests/native/t_*.sh | grep -cx t_check)" 1 "native tests are found by their names"

begin "a native test that ends before its last case is a failure"
printf 'echo "ok 1 - first"\nexit 0\n' >"$tmp/t_stops.sh"
is "$(tests/native/run.sh "$tmp/t_stops.sh" | tail -n 1)" "not ok - $tmp/t_stops.sh: ended before its last case"
rm -f build/tests/native/t_stops.log

begin "a failed case is repeated with what it said of why, and with no other case's words"
eval "$(sed -n '/^failures()/,/^}/p' scripts/check.sh)"
printf '#   lost\nok 1 - a\n#   x:1: bad\n#   x:2: worse\nnot ok 2 - b\nnot ok 3 - c: d\n' >"$tmp/log"
is "$(failures "$tmp/log" unit)" "check: failed in unit: #   x:1: bad
check: failed in unit: #   x:2: worse
check: failed in unit: not ok 2 - b
check: failed in unit: not ok 3 - c: d"

begin "a skip is right where the list has it for this place, and nowhere else"
. scripts/skips.sh
printf '# a comment\n\n6.1.*  | t_a  | one * | why\nhost root | native | two | why\n' >"$tmp/kernels"
skip_list "$tmp/kernels" >"$tmp/list"
for place in "6.1.0-9 cpus=2|t_a|one case|0" "6.12.0 cpus=2|t_a|one case|1" "6.1.0-9 cpus=2|t_b|one case|1" \
	"6.1.0-9 cpus=2|t_a|two|1" "host root|native|two|0" "host root ci|native|two|1"; do
	IFS='|' read -r where program case expected <<<"$place"
	skip_expected "$tmp/list" "$where" "$program" "$case"
	is $? "$expected" "$place"
done

finish
