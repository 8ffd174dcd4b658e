#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Show the programs at work, natively and in a guest that has the module: what `make demo` does.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

out=build/demo
mkdir -p $out
scripts/deps.sh build guest debian || exit 1
echo "demo: building the programs"
make user >$out/build.log 2>&1 || { cat $out/build.log; exit 1; }
echo
echo "--- what a pipeline of five processes did, from outside and without privileges: the tree's total"
echo "\$ statpage run --engine ptrace -- sh -c 'find /etc | sort | uniq | wc -l'"
tools/statpage run --engine ptrace -o $out/run.txt -- sh -c 'find /etc 2>/dev/null | sort | uniq | wc -l' ||
	{ echo "demo: statpage run failed" >&2; exit 1; }
sed '/^$/,$d' $out/run.txt | head -n 30
echo "... ($(grep -c . $out/run.txt) lines in all, each process has its own table: $out/run.txt)"
echo
echo "demo: building the module and booting a kernel in QEMU with it (the first time also getting that kernel)"
VM_OUT=$PWD/$out VM_DEBUG=0 tests/vm.sh demo >$out/vm.log 2>&1 || {
	cat $out/vm.log
	echo "demo: failed, logs are in $out" >&2
	exit 1
}
grep -a '^# Linux' $out/tests.log | sed 's/^# /demo: the guest runs /'
grep -av -e '^# ' -e '^ok ' -e '^RESULT ' $out/tests.log
echo
echo "demo: csfcat cpu shows one page for the machine, the others one page for each thread that asks;"
echo "demo: README.md says what each field means"
