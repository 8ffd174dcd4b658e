#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Run all tests: what `make check` does. A layer is a command that prints lines of TAP, `ok N - name`,
# `not ok N - name: why`, `ok N - name # SKIP why`; the table below has them all. The last line is
# their sum: `N passed, N failed, N skipped`. Logs are in build/check/LAYER.log.
# Usage: scripts/check.sh [LAYER...]
set -uo pipefail
cd "$(dirname "$0")/.." || exit

. scripts/skips.sh
out=build/check
run=tests/debian/run.sh

# LAYER  HOW  COMMAND. `alone`: nothing runs beside it; `pair`: two of these run at a time, for a
# guest keeps one CPU busy.
layers()
{
	cat <<-EOF
	unit       alone  make -s unit
	native     alone  make -s native
	guest-6.1  pair   $run bookworm
	guest-6.12 pair   $run trixie
	guest-7    pair   $run sid
	one-cpu    pair   env VM_CPUS=1 VM_OUT=$PWD/build/debian/bookworm-1cpu $run bookworm
	i386       pair   $run bookworm-i386 t_kstats_hist t_kstats_call t_kstats_pair t_kstats_errors
	arm64      pair   $run bookworm-arm64
	sanitized  pair   env VM_TIMEOUT=1500 VM_OUT=$PWD/build/debian/bookworm-san $run bookworm t_rts_vmm_asan t_rts_vmm_tsan
	red        pair   tests/red/run.sh
	lint       pair   scripts/lint.sh spdx includes versions paths shellcheck
	readme     pair   tests/t_readme.sh slow README.md
	cost       alone  scripts/cost.py --check docs/cost.md $(echo build/debian/{bookworm,trixie,sid}/tests-icount.log)
	EOF
}

# The lines of log $1 that are cases of kind $2.
cases()
{
	case $2 in
	failed) grep -a '^not ok\b' "$1" ;;
	skipped) grep -a '^ok\b.* # SKIP' "$1" ;;
	passed) grep -a '^ok\b' "$1" | grep -av ' # SKIP' ;;
	esac
}

# The failed cases of log $1, each after what it says of why, for layer $2.
failures()
{
	awk -v at="check: failed in $2: " '
		/^#   / { if (n++ < 12) why = why at $0 "\n"; next }
		/^not ok/ { printf "%s%s%s\n", why, at, $0 }
		{ why = ""; n = 0 }' "$1"
}

# `N passed, N failed, N skipped` of all the given logs.
sum()
{
	local log kind n words=()

	for kind in passed failed skipped; do
		n=0
		for log; do
			n=$((n + $(cases "$log" $kind | wc -l)))
		done
		words+=("$n $kind")
	done
	echo "${words[0]}, ${words[1]}, ${words[2]}"
}

# A skip in log $2 of layer $1 that nobody expects is a failure. A guest has judged its own.
judge_skips()
{
	local place="host user" case

	[ "$(id -u)" != 0 ] || place="host root${CI:+ ci}"
	skip_list tests/kernels >"$out/$1.skips"
	cases "$2" skipped | sed 's/^ok[ 0-9]*- //; s/ # SKIP.*//' | while read -r case; do
		skip_expected "$out/$1.skips" "$place" "$1" "$case" ||
			echo "not ok - $1: skipped '$case', which tests/kernels does not expect here"
	done >"$out/$1.unexpected"
	cat "$out/$1.unexpected" >>"$2"
}

# Run one layer to its log; a layer that fails but names no failed case is one.
layer()
{
	local name=$1 log=$out/$1.log start=$SECONDS status=0
	shift

	echo "check: $name: $*"
	"$@" >"$log" 2>&1 </dev/null || status=$?
	if [ $status != 0 ] && [ $status != 77 ] && ! grep -aq '^not ok\b' "$log"; then
		tail -n 30 "$log"
		echo "not ok - $name: exit status $status of '$*'" >>"$log"
	elif ! grep -aqE '^(not )?ok\b' "$log"; then
		echo "not ok - $name: says nothing, '$*'" >>"$log"
	fi
	case $name in unit | native) judge_skips "$name" "$log" ;; esac
	cases "$log" failed | sed "s/^/check: $name: /"
	echo "check: $name: $(sum "$log") in $((SECONDS - start)) s"
}

build()
{
	scripts/deps.sh build bpf unit guest debian || return 1
	echo "check: building the programs"
	{ make user && make -C tests all; } >"$out/build.log" 2>&1 && return
	cat "$out/build.log"
	echo "check: the programs do not build, log in $out/build.log"
	return 1
}

# Each job is a process group of its own (set -m), so that no guest outlives us.
stop_jobs()
{
	local job

	for job in $(jobs -p); do
		kill -- "-$job" 2>/dev/null
	done
}

main()
{
	local name how command total wanted="$*" log logs=()

	[ -n "$wanted" ] || wanted=$(layers | cut -d ' ' -f 1 | xargs)
	for name in $wanted; do
		layers | grep -q "^$name " && continue
		echo "check.sh: no layer '$name', expected: $(layers | cut -d ' ' -f 1 | xargs)" >&2
		exit 2
	done
	mkdir -p "$out"
	build || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }

	set -m
	trap stop_jobs EXIT
	trap 'exit 130' INT TERM
	while read -r name how command; do
		[[ " $wanted " = *" $name "* ]] || continue
		logs+=("$out/$name.log")
		[ "$how" = pair ] || wait
		while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
		# shellcheck disable=SC2086 # a command and its arguments
		layer "$name" $command &
		[ "$how" = pair ] || wait
	done < <(layers)
	wait

	for log in "${logs[@]}"; do
		name=$(basename "$log" .log)
		cases "$log" skipped | sed "s/^ok[ 0-9]*- /check: skipped in $name: /"
	done
	# Again, and last: who sees no more than the end of it sees these.
	for log in "${logs[@]}"; do
		failures "$log" "$(basename "$log" .log)"
	done
	total=$(sum "${logs[@]}")
	echo "$total"
	[[ $total = *", 0 failed,"* ]]
}

main "$@"
