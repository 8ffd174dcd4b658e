#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks that the real speedscope opens what `statpage convert` makes of a parallel make, and
# shows the right process names and totals. Screenshots are left in build/speedscope.
. "$(dirname "$0")/tap.sh"
. tests/native/browser.sh

shots=build/speedscope

begin "speedscope and a browser are there"
mkdir -p "$shots"
if browser_ready speedscope@1.25.0 >"$tmp/log" 2>&1; then
	have=yes
else
	have=
	skip "cannot install them: $(tail -n 1 "$tmp/log")"
fi

mkdir "$tmp/project"
for i in 1 2 3; do echo "int f$i(void) { return $i; }" >"$tmp/project/f$i.c"; done
echo 'int main(void) { return 0; }' >"$tmp/project/main.c"
printf 'prog: main.o f1.o f2.o f3.o\n\tcc -o $@ $^\n' >"$tmp/project/Makefile"
"$statpage" run -f jsonl --interval 50ms -o "$tmp/r" -- make -s -j4 -C "$tmp/project"
for t in speedscope perfetto folded; do "$statpage" convert --to $t "$tmp/r" >"$tmp/make.$t"; done
[ -z "$have" ] || look tests/native/speedscope.js "$npm_cache/node_modules/speedscope" \
	"$(command -v chromium)" "$shots/shot" "$tmp/make.speedscope" "$tmp/make.perfetto" "$tmp/make.folded" >"$tmp/seen" 2>"$tmp/err"

seen()
{
	jq -r "select(.file == \"make.$1\") | $2" "$tmp/seen"
}

for t in speedscope perfetto folded; do
	begin "speedscope opens $t"
	[ "$have" ] || { skip "no speedscope or no browser"; continue; }
	is "$(seen $t '.errors | length')" 0 "errors, $(cat "$tmp/err")"
	check test "$(seen $t '.table | length')" -gt 10 "the table is short"
	check test -s "$shots/shot-make.$t.png" "no screenshot"
done

begin "speedscope: the profile shown first is of the process that began first"
is "$(jq -r '.profiles[0].name' "$tmp/make.speedscope")" \
	"make $(jq 'select(.scope == "tree").pid' "$tmp/r")" "the first of $(wc -l <"$tmp/r") records"

for t in speedscope perfetto; do
	begin "$t: the names of all processes are shown"
	[ "$have" ] || { skip "no speedscope or no browser"; continue; }
	for program in make cc cc1 as ld collect2; do
		check test "$(seen $t ".profiles | map(select(test(\"\\\\b$program\\\\b\"))) | length")" -gt 0 \
			"no profile of $program"
	done
done

begin "folded: totals are shown to the nanosecond"
if [ "$have" ]; then
	for call in execve openat read mmap; do
		is "$(seen folded ".table[] | select(.[2] == \"$call\")[0]" | sed 's/ .*//; s/,//g')" \
			"$(awk -v c=";$call" 'index($1, c) && substr($1, length($1) - length(c) + 1) == c {
				t += $2 } END { printf "%.0f", t }' "$tmp/make.folded")" "$call"
	done
else
	skip "no speedscope or no browser"
fi

begin "speedscope: the first process's longest call has its total"
if [ "$have" ]; then
	# Shown with three digits: 2.63s, 27.35ms
	want=$(jq -r '.shared.frames as $f | [.profiles[0].events[] | select($f[.frame].file | not) |
		{n: $f[.frame].name, v: (if .type == "O" then -.at else .at end)}] | group_by(.n) |
		map({n: .[0].n, v: (map(.v) | add)}) | max_by(.v) | "\(.n) \(.v)"' "$tmp/make.speedscope")
	is "$(seen speedscope ".table[] | select(.[2] == \"${want% *}\")[0]" | awk -v want="${want#* }" '{
		v = $1 + 0
		ns = $1 ~ /ms$/ ? v * 1e6 : $1 ~ /µs$/ ? v * 1e3 : $1 ~ /ns$/ ? v : v * 1e9
		print (ns > want * 0.98 && ns < want * 1.02) ? "right" : ns " for " want }')" right "${want% *}"
else
	skip "no speedscope or no browser"
fi

finish
