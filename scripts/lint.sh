#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Check the sources without running them: what `make lint` does, by where code runs. Every check is
# one case of TAP. Usage: scripts/lint.sh [CHECK...], or `quick` for all that take seconds;
# --format lays the C sources out, --compdb prints compile_commands.json for user space.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
top=$PWD
out=$top/build/lint
jobs=$(nproc)

# Every file of the project that is not a licence's text; of a checkout, or of an unpacked archive.
files()
{
	if git rev-parse --git-dir >/dev/null 2>&1; then
		git ls-files --cached --others --exclude-standard
	else
		find . -path ./build -prune -o -path ./.git -prune -o -type f -printf '%P\n'
	fi | grep -v '^LICENSES/' | xargs ls -d 2>/dev/null
}

c_files() { files | grep '\.[ch]$'; }
user_sources() { files | grep '\.c$' | grep -vE '^(kmod|bpf|tests/kmod|examples/kstats_demo)/'; }

scripts()
{
	files | xargs awk 'FNR == 1 && (/^#!.*\/(env )?(ba)?sh/ || /shellcheck shell=/) { print FILENAME } { nextfile }'
}

# ---- the checks: each prints what it objects to, and fails if it prints anything ----

# The licence is in the first three lines, and is the one that LICENSE gives to this part.
check_spdx()
{
	files | grep -v '^compile_flags.txt$' | xargs awk '
		FNR == 1 { if (seen != want) wrong(); file = FILENAME; seen = ""; want = "some licence"
			if (file ~ /^kmod\//) want = "GPL-2.0"
			if (file ~ /^include\/uapi\//) want = "GPL-2.0 WITH Linux-syscall-note"
			if (file ~ /^lib\//) want = "MIT" }
		FNR <= 3 && sub(/.*SPDX-License-Identifier: \(*/, "") {
			sub(/\)* *(\*\/|-->)?$/, "")
			seen = want == "some licence" ? want : $0 }
		FNR == 3 { nextfile }
		END { if (seen != want) wrong() }
		function wrong() { print file ":1: SPDX-License-Identifier: expected " want ", not \"" seen "\"" }'
}

# Includes point one way: see CONTRIBUTING.md. Only "quoted" ones of files of ours.
check_includes()
{
	local file line name dir target allowed

	while IFS=: read -r file line name; do
		name=${name#*\"} name=${name%%\"*}
		for dir in "${file%/*}/" "" include/ include/uapi/; do
			target=$dir$name
			while [[ $target =~ ^(.*/)?[^/.]+/\.\./(.*)$ ]]; do
				target=${BASH_REMATCH[1]}${BASH_REMATCH[2]}
			done
			[ ! -e "$target" ] || break
		done
		[[ -e $target && $target != build/* ]] || continue
		case $file in
		include/*) allowed='include' ;;
		kmod/*) allowed='kmod|include' ;;
		bpf/*) allowed='bpf|include/uapi' ;;
		lib/*) allowed='lib|include/uapi' ;;
		tools/*) allowed='tools|lib|include/uapi' ;;
		examples/*) allowed='examples|lib|include' ;;
		*) continue ;;
		esac
		[[ $target =~ ^($allowed)/ ]] ||
			echo "$file:$line: includes $target, expected a file of $allowed"
	done < <(files | grep '\.[chS]$' | xargs grep -nE '^[ \t]*#[ \t]*include[ \t]+"')
}

check_versions()
{
	files | grep '\.[chS]$' | grep -v '^kmod/compat\.h$' |
		xargs grep -nE '\b(LINUX_VERSION_CODE|KERNEL_VERSION)\b' |
		grep -v '^bpf/.*kconfig' | sed 's/$/: only in kmod\/compat.h/'
}

# No path of a developer's machine, and no host of a package mirror.
check_paths()
{
	files | grep -v '^scripts/lint.sh$' |
		xargs grep -nIE '(^|[^a-z0-9._/-])/(home|root|work|Users)/[a-z]|(deb|security|ftp[a-z.]*)\.debian\.org'
}

check_shellcheck() { scripts | xargs shellcheck -x -f gcc; }
check_format() { c_files | xargs clang-format --dry-run -Werror 2>&1 | grep -E 'error:'; }

tidy_one()
{
	clang-tidy --quiet "$@" 2>/dev/null | sed "s,^$top/,,"
}

# A file is looked at again only when it, a header or the rules changed since it was good.
check_tidy()
{
	local headers rules without='^$'

	export -f tidy_one
	export top
	make -s build/gen/syscalls_table.h build/gen/report_files.h
	# Where there is no BTF to make it of, what includes it is not looked at.
	make -s build/gen/{dist,run,threads}.skel.h 2>/dev/null ||
		without='^lib/(engine|engine_dist|serve)_bpf\.c$'
	rules=$(cat .clang-tidy tests/.clang-tidy compile_flags.txt; clang-tidy --version)
	headers=$(c_files | grep '\.h$' | xargs cat)
	user_sources | grep -vE "$without" | while read -r file; do
		stamp=$out/tidy/$(echo "$rules$headers$(cat "$file")" | sha256sum | cut -c 1-32)
		[ -e "$stamp" ] || echo "$file $stamp"
	done | xargs -r -P "$jobs" -L 1 bash -c '
		said=$(tidy_one "$1" -- $(cat compile_flags.txt))
		if [ -n "$said" ]; then echo "$said"; else touch "$2"; fi' tidy |
		tee "$out/tidy.log" | grep -E ' (error|warning): ' | sort -u
}

# The modules, built in a copy: their objects stay out of the way of `make kmod`.
kernel_headers()
{
	local dir

	for dir in "${KDIR:-}" "/lib/modules/$(uname -r)/build" /lib/modules/*/build; do
		[ ! -e "$dir/Makefile" ] || { echo "$dir"; return; }
	done
	echo "lint.sh: no kernel headers: install linux-headers-amd64, or set KDIR" >&2
	return 1
}

check_sparse()
{
	local kdir

	kdir=$(kernel_headers 2>&1) || { echo "$kdir"; return; }
	files | grep -E '^(kmod|include)/' | xargs cp -u --parents -t "$out/src"
	make -C "$kdir" M="$out/src/kmod" C=2 CF=-Wsparse-error KCFLAGS=-Werror -j"$jobs" modules \
		>"$out/sparse.log" 2>&1 || tail -n 3 "$out/sparse.log"
	grep -E '(warning|error): ' "$out/sparse.log" | sed "s,^$out/src/,,"
}

# After check_sparse, which leaves kbuild's commands.
check_kmod_tidy()
{
	local kdir

	kdir=$(kernel_headers 2>&1) || { echo "$kdir"; return; }
	scripts/kmod-compdb.py "$kdir" "$out/src/kmod" kmod >"$out/compile_commands.json" || echo "no commands"
	files | grep -E '^kmod/.*\.c$' | xargs -P "$jobs" -n 1 clang-tidy --quiet -p "$out" 2>/dev/null |
		sed "s,^$top/,,"
}

format() { c_files | xargs clang-format -i; }

compdb()
{
	local flags file sep='['

	flags=$(sed 's/.*/, "&"/' compile_flags.txt | tr -d '\n')
	while read -r file; do
		printf '%s\n{"directory": "%s", "file": "%s", "arguments": ["cc"%s, "-c", "%s"]}' \
			"$sep" "$top" "$file" "$flags" "$file"
		sep=,
	done < <(user_sources)
	printf '\n]\n'
}

QUICK="spdx includes versions paths shellcheck format"
ALL="$QUICK sparse kmod_tidy tidy"

main()
{
	local name said nr=0 failed=0 wanted=${*:-$ALL}

	case $wanted in
	--format) format; exit ;;
	--compdb) compdb; exit ;;
	esac

	[ "$wanted" != quick ] || wanted=$QUICK
	for name in $wanted; do
		[[ " $ALL " = *" $name "* ]] && continue
		echo "lint.sh: no check '$name', expected: quick $ALL" >&2
		exit 2
	done
	scripts/deps.sh lint || exit
	[[ $wanted != *tidy* && $wanted != *sparse* ]] || scripts/deps.sh build bpf unit tidy || exit
	mkdir -p "$out/tidy" "$out/src"
	for name in $wanted; do
		nr=$((nr + 1))
		said=$("check_$name" 2>&1)
		if [ -z "$said" ]; then
			echo "ok $nr - lint: $name"
		else
			failed=$((failed + 1))
			printf '%s\n' "$said" | sed 's/^/#   /'
			echo "not ok $nr - lint: $name: $(printf '%s\n' "$said" | wc -l) lines"
		fi
	done
	echo "1..$nr"
	[ $failed = 0 ]
}

main "$@"
