#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Run the tests of `statpage run` and its kin on this machine: every t_*.sh here, or those named.
set -u
cd "$(dirname "$0")/../.." || exit 1
scripts/deps.sh native || exit 1
mkdir -p build/tests/native
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -pthread -o build/tests/native/workload \
	tests/native/workload.c || exit 1
make -s build/librts.a build/lib.a || exit 1
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -pthread -I. -Iinclude \
	-o build/tests/native/embed tests/native/embed.c build/librts.a -lm || exit 1
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -I. -Iinclude -Iinclude/uapi \
	-o build/tests/native/fleet tests/native/fleet.c build/lib.a -lm || exit 1
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -pthread -I. -Iinclude \
	-o build/tests/native/threads tests/native/threads.c || exit 1
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -I. -Iinclude \
	-o build/tests/native/dist_json tests/native/dist_json.c build/lib.a -lm || exit 1
bad=0
for t in "${@:-tests/native/t_*.sh}"; do
	for f in $t; do
		log=build/tests/native/$(basename "$f" .sh).log
		# No pipe: a process that a test leaves behind would keep it open.
		timeout -k 10 900 bash "$f" </dev/null >"$log" 2>&1
		ret=$?
		cat "$log"
		case $ret in
		0 | 1 | 77) ;;
		*) echo "not ok - $f: ended with status $ret" ;;
		esac
		# The plan is a test's last word.
		# Benchmarks name no test: all they want is what is built above.
		[ "$f" = /dev/null ] || grep -q '^1\.\.[0-9]' "$log" || { echo "not ok - $f: ended before its last case"; ret=1; }
		[ "$ret" = 0 ] || [ "$ret" = 77 ] || bad=1
	done
done
exit $bad
