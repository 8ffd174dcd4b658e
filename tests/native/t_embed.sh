#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks that a program of any kind can embed lib/rts: with names of its own, in C++, in a
# shared library, with standard error closed at the end; and what it says where the use is wrong.
. "$(dirname "$0")/tap.sh"

cflags="-std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -I."
libs="$PWD/build/librts.a -pthread -lm"
make -s build/librts_pic.a || exit 1
close_row='[.syscalls[] | select(.name == "close") | .count, .errors, .errnos."9"]'

# build OUT COMMAND...: compiles standard input
build()
{
	local out=$1

	shift
	# shellcheck disable=SC2086 # words
	"$@" -o "$tmp/$out" - -x none $libs >"$tmp/log" 2>&1 || fail "$out: $(head -n 3 "$tmp/log")"
}

body='
	long n;
	struct rts_options opt = {};

	(void)argc;
	opt.argc = 1;
	opt.argv = argv;
	if (rts_init(&opt))
		return 1;
	if (rts_on())
		rts_step("start");
	rts_count(0, 1);
	for (int i = 0; i < 3; i++)
		RTS_CALL(n, RTS_ABI_NATIVE, SYS_close, close(9999));
	(void)n;'
includes='#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/rts/rts.h"'

begin "the archives have no global name but rts_*"
for lib in build/librts.a build/librts_pic.a; do
	is "$(nm -g --defined-only $lib | awk 'NF == 3 && $3 !~ /^rts_/ { print $3 }')" "" "$lib"
	check test "$(nm -g --defined-only $lib | grep -c ' rts_')" -gt 20 "$lib has no names at all"
done

begin "a program with functions of these names links, and each is called by its own"
# shellcheck disable=SC2086 # words
build own cc $cflags -x c <<END
$includes
const char *sys_name(int n);
int hist_record(void);
const char *kvm_exit_name = "mine";
const char *sys_name(int n) { (void)n; abort(); }
int hist_record(void) { abort(); }
void hist_init(void);
void hist_init(void) { abort(); }
int main(int argc, char **argv)
{ $body return kvm_exit_name[0] != 'm'; }
END
STATPAGE_RUNTIME_STATS=json "$tmp/own" 2>"$tmp/json" || fail "status $?"
is "$(jq -c "$close_row" "$tmp/json")" "[3,3,3]" "its record"

begin "a C++17 program includes rts.h without a warning, and counts"
# shellcheck disable=SC2086
build cxx c++ -std=c++17 -Wall -Wextra -Werror -I. -x c++ <<END
$includes
int main(int argc, char **argv)
{ $body
	static const char *const names[] = {"hits"};
	if (rts_counters_open(names, 1, 0))
		return 2;
	rts_count(0, 5);
	rts_call c;
	rts_call_begin(&c, RTS_ABI_NATIVE, SYS_close);
	rts_call_end(&c, EBADF);
	return sizeof(rts_counters_page) > 4096 || rts_kvm_null(0, 10, 0) != 1;
}
END
STATPAGE_RUNTIME_STATS=json "$tmp/cxx" 2>"$tmp/json" || fail "status $?"
is "$(jq -c "$close_row" "$tmp/json")" "[4,4,4]" "its record"
is "$(jq -c .counters.hits "$tmp/json")" 5 "its counter"

begin "a shared library embeds it, loaded at start or by dlopen(), and exports nothing of it"
# shellcheck disable=SC2086
libs=${libs/librts/librts_pic} build libown.so cc $cflags -fPIC -shared -Wl,-z,defs -x c <<END
$includes
int own(int argc, char **argv);
int own(int argc, char **argv)
{ $body return 0; }
END
is "$(nm -D --defined-only "$tmp/libown.so" | awk '{ print $3 }' | xargs)" own "exported"
cc -x c -o "$tmp/linked" - -x none "$tmp/libown.so" -Wl,-rpath,"$tmp" <<END || fail "does not link"
int own(int argc, char **argv);
int main(int argc, char **argv) { return own(argc, argv); }
END
cc -x c -o "$tmp/opened" - -ldl <<END || fail "does not link"
#include <dlfcn.h>
#include <string.h>
int main(int argc, char **argv)
{
	void *lib = dlopen("$tmp/libown.so", RTLD_NOW);
	int (*own)(int, char **);

	if (!lib)
		return 3;
	memcpy(&own, &(void *){dlsym(lib, "own")}, sizeof(own));
	return own(argc, argv);
}
END
for p in linked opened; do
	STATPAGE_RUNTIME_STATS=json "$tmp/$p" 2>"$tmp/json" || fail "$p: status $?"
	is "$(jq -c "$close_row" "$tmp/json")" "[3,3,3]" "$p"
done

# A program that does what its first argument says at its end.
# shellcheck disable=SC2086
build ends cc $cflags -x c <<END
$includes
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
int main(int argc, char **argv)
{ $body
	int fd = 0;

	if (!strcmp(argv[1], "stderr"))
		close(2);
	else if (!strcmp(argv[1], "all"))
		for (fd = 3; fd < 1024; fd++)
			close(fd);
	else if (!strcmp(argv[1], "everything"))
		for (fd = 0; fd < 1024; fd++)
			close(fd);
	else if (!strcmp(argv[1], "reused"))
		for (fd = 0; fd < 300; fd++)
			dup2(open(argv[2], O_RDWR | O_CREAT, 0600), fd);
	else if (!strcmp(argv[1], "number"))
		printf("%d\n", dup(0));
	else if (!strcmp(argv[1], "fork") && fork())
		wait(NULL);
	else if (!strcmp(argv[1], "exec"))
		execl("/bin/sh", "sh", "-c", "ls /proc/self/fd | xargs", NULL);
	return 0;
}
END
ends()
{
	: >"$tmp/json"
	STATPAGE_RUNTIME_STATS=json "$tmp/ends" "$@" 2>"$tmp/json" || fail "$*: status $?"
}

begin "the record comes where standard error was, whatever became of it"
for how in stderr all plain; do
	ends $how
	is "$(jq -c "$close_row" "$tmp/json")" "[3,3,3]" "$how"
done
ends stderr | cat
"$tmp/ends" plain 2>"$tmp/json"
is "$(wc -c <"$tmp/json")" 0 "off"
ends fork
is "$(jq -c .reason "$tmp/json" | sort | xargs)" "exit fork-child-exit" "a forked child's, too"
STATPAGE_RUNTIME_STATS=json "$tmp/ends" stderr 2>&1 >/dev/null | cat >"$tmp/json"
is "$(jq -c "$close_row" "$tmp/json")" "[3,3,3]" "a pipe"

begin "it is lost where nothing of it is left, and goes to no file of the program's"
ends everything
is "$(wc -c <"$tmp/json")" 0 "all closed"
ends reused "$tmp/other"
is "$(cat "$tmp/json" "$tmp/other" | wc -c)" 0 "other files at these numbers"
STATPAGE_RUNTIME_STATS=json STATPAGE_STATS_OUTPUT="$tmp/file" "$tmp/ends" all 2>"$tmp/err" || fail "status $?"
is "$(cat "$tmp/err" "$tmp/file")" "STATPAGE: STATPAGE_STATS_OUTPUT=$tmp/file: the final record is lost: \
Bad file descriptor" "a file that was closed"

begin "the lowest numbers are the program's, and what it executes inherits none"
is "$(ends number)" 3 "the next descriptor"
is "$(ends exec)" "$(sh -c "ls /proc/self/fd | xargs")" "in a program executed"

begin "the library to preload prints for a program that closes standard error at its end"
env LD_PRELOAD="$PWD/build/libstatpage-vdso.so" STATPAGE_VDSO_RUNTIME_STATS=summary date >"$tmp/out" 2>"$tmp/err"
is "$?" 0 status
is "$(sed -n 's/^command //p' "$tmp/err")" date "the table"
check grep -q '^counter_clock_gettime [0-9]' "$tmp/err" "no counter"

# wrong PREFIX-EXPRESSION OPTIONS: what it says, its status being what rts_init() gave
wrong()
{
	# shellcheck disable=SC2086
	build wrong cc $cflags -x c <<END
$includes
int main(void) { char p[301] = ""; long n; (void)p;
	while (sizeof(p) - 1 > __builtin_strlen(p)) p[__builtin_strlen(p)] = 'X';
	n = rts_init($1);
	return rts_on() ? 99 : (int)-n; }
END
	STATPAGE_RUNTIME_STATS=json "$tmp/wrong" 2>&1
	echo "$?"
}

begin "rts_init() without options, or with a prefix too long, is off and says why"
is "$(wrong NULL)" "STATPAGE: rts_init(NULL): expected options; the statistics stay off
22" NULL
is "$(wrong '&(struct rts_options){.prefix = p}')" \
	"STATPAGE: rts_init(): the prefix XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX... has 300 bytes: \
expected 31 at most; the statistics stay off
22" "300 bytes"

begin "the library and statpage run take the same intervals"
for t in 1ms 500ms 0.5s 1.5s 1.0000000001s 90s 1m 0.5h 24h 1440m; do
	is "$(STATPAGE_RUNTIME_STATS=jsonl STATPAGE_STATS_INTERVAL=$t "$tmp/own" 2>&1 | grep -v '^{')" "" "$t"
	"$statpage" run -f jsonl --interval $t -o "$tmp/o" true 2>"$tmp/err" || fail "run: $t: $(cat "$tmp/err")"
done
for t in 0s 0.9ms 5 5d s .5s 1.s -1s 1e3s " 1s" 25h 24.1h 99999999999999999999s 1S "1 s" 1sx; do
	is "$(STATPAGE_RUNTIME_STATS=jsonl STATPAGE_STATS_INTERVAL=$t "$tmp/own" 2>&1 | grep -v '^{')" \
		"STATPAGE: STATPAGE_STATS_INTERVAL=$t is not known: expected 1ms to 24h, as 500ms, 1.5s, 2m or 1h; \
no interval" "'$t'"
	"$statpage" run -f jsonl --interval "$t" true 2>"$tmp/err"
	is "$? $(head -n 1 "$tmp/err")" \
		"2 statpage: --interval is a time from 1ms to 24h, such as 500ms, not '$t'" "run: '$t'"
done

begin "nothing that a program names gets to a terminal as it is"
# shellcheck disable=SC2086
build names cc $cflags -x c <<END
$includes
int main(void)
{
	static const char *const names[] = {"a\xff", "b\33[31m", "plain"};

	rts_init(&(struct rts_options){.prefix = NULL});
	rts_counters_open(names, 3, 0);
	rts_step("s\33\n");
	return 0;
}
END
STATPAGE_STARTUP_TRACE=all "$tmp/names" 2>"$tmp/err" || fail "status $?"
is "$(LC_ALL=C tr -d ' -~\n' <"$tmp/err" | wc -c)" 0 "raw bytes: $(LC_ALL=C cat -v "$tmp/err")"
is "$(sed -n 's/^counter_\(.*\) 0$/\1/p' "$tmp/err")" '"a\\xff"
"b\u001b[31m"
plain' "counters"
is "$(sed -n 's/^phase_\([^ ]*\) .*/\1/p' "$tmp/err")" '"s\u001b\u000a"' "a step"
"$statpage" run -- true $'x\xfey\n\e[31mred' 2>"$tmp/err"
is "$(sed -n 's/^command //p' "$tmp/err" | sort -u)" 'true "x\\xfey\u000a\u001b[31mred"' "the command line"
"$statpage" run -- $'./x\n\e[31mred' 2>"$tmp/err"
is "$(cat "$tmp/err")" 'statpage: ./x\x0a\x1b[31mred: cannot be executed: No such file or directory' "a message"

finish
