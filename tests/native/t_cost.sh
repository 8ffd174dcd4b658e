#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks that docs/cost.md has what the benchmarks print and nothing else, and that scripts/cost.py would say
# so if it had. The guests' rows are compared by the layer `cost` of scripts/check.sh, when the guests have run.
. "$(dirname "$0")/tap.sh"

PATH=$PWD/tools:$PWD/build/tests:$PATH
doc=docs/cost.md

# What cost.py makes of the document, as a log that has all its figures.
log_of()
{
	awk -F ' *[|] *' -v native="$1" '
		/^### / { group = tolower(substr($0, 5, 1)) substr($0, 6); sub(/, in ns$/, "", group)
			split("", head); next }
		!/^[|]/ || /^[|] ---/ { next }
		!(2 in head) { for (i = 2; i < NF; i++) head[i] = $i == "" ? "-" : $i == "ns" ? "native" : $i; next }
		{ limit = head[NF - 1] == "limit" ? $(NF - 1) : ""
			for (i = 3; i < NF; i++)
				if (head[i] != "limit" && head[i] !~ /times/ && (head[i] == "native") == native)
					print "cost: " head[i] " | " group " | " $2 " | " $i " | " limit }' "$doc"
}

# says DOC LOG STATUS [WORDS]
says()
{
	scripts/cost.py --check "$1" "$2" >"$tmp/tap"
	is $? "$3" "status of: $(grep '^#' "$tmp/tap")"
	is "$(grep -qF -- "${4:-ok 1}" "$tmp/tap" || cat "$tmp/tap")" "" "what it says"
}

begin "cost: the document is what the script makes of its own figures"
log_of 0 >"$tmp/guests"
log_of 1 >"$tmp/native"
cat "$tmp/guests" "$tmp/native" >"$tmp/all"
check test "$(wc -l <"$tmp/all")" -gt 100 "only $(wc -l <"$tmp/all") figures"
scripts/cost.py "$tmp/all" >"$tmp/made"
is "$(diff "$doc" "$tmp/made")" "" "made again"
says $doc "$tmp/all" 0

begin "cost: what differs is found"
sed 's/Counted in a/Guessed in a/' $doc >"$tmp/doc"
says "$tmp/doc" "$tmp/all" 1 "Guessed in a"
sed 's/^| module: direct |/| module: indirect |/' $doc >"$tmp/doc"
says "$tmp/doc" "$tmp/all" 1 "no benchmark prints the row 'module: indirect'"
says "$tmp/doc" "$tmp/all" 1 "lacks the row 'module: direct'"
sed '/module: kprobe/d' "$tmp/all" >"$tmp/less"
says $doc "$tmp/less" 1 "no benchmark prints the row 'module: kprobe'"
sed '/module: kprobe/s/| [0-9]* |/| 9999 |/' "$tmp/all" >"$tmp/other"
says $doc "$tmp/other" 1 "costs 9999 on"
sed '/module: kprobe/s/| [0-9]* |/| - |/' "$tmp/all" >"$tmp/other"
says $doc "$tmp/other" 1 "costs - on"
sed 's/| 250$/| 260/' "$tmp/all" >"$tmp/other"
says $doc "$tmp/other" 1 "has another limit: 260"
says $doc /dev/null 1 "no kernel"

begin "cost: wrong use, one line"
is "$(scripts/cost.py "$tmp/none" 2>&1)" "cost.py: $tmp/none: No such file or directory" "no file"
echo "cost: 6.1 | a guess | x | 1 |" >"$tmp/bad"
is "$(scripts/cost.py "$tmp/bad" 2>&1)" \
	"cost.py: $tmp/bad: expected 5 fields with a known group, not 'cost: 6.1 | a guess | x | 1 |'" "its group"
is "$(scripts/cost.py "$tmp/guests" 2>&1)" "cost.py: the logs lack a native run's rows" "guests only"
is "$(scripts/cost.py "$tmp/native" 2>&1)" "cost.py: the logs lack a guest's rows" "natively only"

begin "cost: the benchmarks of this machine print the document's rows"
reason=$("$statpage" run --engine bpf -o /dev/null -- true 2>&1)
lock=/run/statpage/threads.sock.lock
[ ! -e $lock ] || flock -n $lock true || reason="a server of pages runs already"
[ ! -e /sys/fs/bpf/statpage/threads-1 ] || reason="pages of a server that ended are there"
if [ -n "$reason" ]; then
	skip "$reason"
else
	make -s -C tests bench_reader bench_bpf bench_serve
	for bench in bench_reader bench_bpf bench_serve; do
		"$bench" >>"$tmp/printed" || fail "$bench: $(grep -v ^cost: "$tmp/printed")"
	done
	says $doc "$tmp/printed" 0
fi
finish
