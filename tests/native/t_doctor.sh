#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks what `statpage doctor` says of this machine, and of a process that may do less.
# tests/t_doctor.sh does so in a guest, with the modules.
. "$(dirname "$0")/tap.sh"

# Run a command under a seccomp filter that lets ptrace fail with EPERM.
no_ptrace()
{
	python3 - "$@" <<-'EOF2'
		import ctypes, os, struct, sys
		prog = b"".join(struct.pack("HBBI", *i) for i in (
			(0x20, 0, 0, 0), (0x15, 0, 1, 101), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)))
		buf = ctypes.create_string_buffer(prog)
		fprog = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(buf)))
		libc = ctypes.CDLL(None, use_errno=True)
		ret = libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(fprog))
		ret and sys.exit("no filter: errno %d" % ctypes.get_errno())
		os.execv(sys.argv[1], sys.argv[1:])
	EOF2
}

of()
{
	jq -r ".checks[] | select(.part == \"$2\" and .engine == \"$3\") | $4" "$1"
}

begin "text and JSON tell the same"
"$statpage" doctor --json >"$tmp/json"
is $? 0 status
"$statpage" doctor >"$tmp/text"
is $? 0 status
is "$(jq -r .schema "$tmp/json")" statpage-doctor/1 schema
is "$(jq -r '.checks[] | "\(.part) \(.engine) \(if .works then "yes" else "no" end)"' "$tmp/json")" \
	"$(grep -v '^ ' "$tmp/text" | sed -E 's/^(.{14}) (.{10}) (yes|no).*/\1 \2 \3/; s/ +/ /g')" checks
is "$(jq '[.checks[] | select(.fix)] | length' "$tmp/json")" "$(grep -c '^ *try: ' "$tmp/text")" fixes
is "$(jq '[.checks[].text | select(. == "")] | length' "$tmp/json")" 0 "checks without a word"

begin "what every user can do works"
is "$(of "$tmp/json" "runtime stats" ptrace .works)" true ptrace
is "$(of "$tmp/json" "thread time" schedstat .works)" true schedstat
check test "$(of "$tmp/json" "runtime stats" ptrace .text | sed 's/[^0-9]//g')" -gt 0 "a call costs nothing"

begin "the bpf engine of run: loads, or the reason why not"
why=$("$statpage" run --engine bpf -o /dev/null true 2>&1 | sed 's/.*cannot be used: //; s/; using ptrace$//')
is "$(of "$tmp/json" "runtime stats" bpf .works)" "$([ -n "$why" ] && echo false || echo true)" "works"
is "$(of "$tmp/json" "runtime stats" bpf .text)" "${why:-its programs load}" "why"

begin "a seccomp filter that forbids ptrace is named"
no_ptrace "$statpage" doctor --json >"$tmp/json"
for engine in ptrace attach; do
	is "$(of "$tmp/json" "runtime stats" $engine .works)" false $engine
	check grep -q "a seccomp filter forbids ptrace" <(of "$tmp/json" "runtime stats" $engine .text) "$engine: why"
done

begin "nothing is left behind"
is "$(pgrep -c -x -g 0 statpage)" 0 processes
"$statpage" doctor >"$tmp/out" 2>"$tmp/err"
is "$(cat "$tmp/err")" "" stderr

begin "wrong use is told in one line"
for args in "--yaml" "now" "--json now"; do
	# shellcheck disable=SC2086 # several words
	"$statpage" doctor $args >"$tmp/out" 2>"$tmp/err"
	is $? 2 "status of doctor $args"
	is "$(cat "$tmp/out")" "" "stdout of doctor $args"
	check grep -q "statpage: " "$tmp/err" "no message for $args"
done
"$statpage" doctor >/dev/full 2>"$tmp/err"
is $? 1 "status with a full disk"

finish
