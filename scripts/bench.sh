#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What `make bench` does: run the benchmarks on this machine, as root, and in guests, and make docs/cost.md of what they
# print. Usage: scripts/bench.sh [SUITE]. With a suite its kernel alone is measured, and the document left as it is.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$PWD/build/bench
here="bench_reader bench_bpf bench_serve"
guest="bench bench_reader bench_kstats bench_bpf bench_dist_bpf bench_serve"

native()
{
	local name why

	why=$(tools/statpage run --engine bpf -o /dev/null -- true 2>&1) || true
	[ -z "$why" ] || { echo "bench.sh: ${why%%; using *}" >&2; return 1; }
	mkdir -p "$out/native"
	# shellcheck disable=SC2086 # one word a program
	make -s -C tests $here
	for name in $here; do
		PATH=$PWD/tools:$PWD/build/tests:$PATH "$name" || return
	done | tee "$out/native/tests.log"
}

[ $# -le 1 ] || { echo "bench.sh: usage: bench.sh [SUITE]" >&2; exit 2; }
scripts/deps.sh native
native
for suite in ${1:-bookworm trixie sid}; do
	# shellcheck disable=SC2086
	VM_DEBUG=0 VM_OUT=$out/$suite tests/debian/run.sh "$suite" $guest
done
[ $# = 0 ] || exit 0
scripts/cost.py "$out"/{bookworm,trixie,sid,native}/tests.log >"$out/cost.md"
cp "$out/cost.md" docs/cost.md
echo "bench.sh: docs/cost.md is made"
