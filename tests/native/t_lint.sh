#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks that the quick checks of make lint, and the commit hook that runs them, can fail.
. "$(dirname "$0")/tap.sh"

# A small project of its own that has the same rules.
mkdir "$tmp/p"
cp -r --parents scripts .clang-format .shellcheckrc "$tmp/p"
cd "$tmp/p" || exit 1
git init -q .
mkdir -p kmod lib tools include/uapi

good()
{
	printf '/* SPDX-License-Identifier: GPL-2.0 */\nint a;\n' >tools/a.h
	printf '/* SPDX-License-Identifier: MIT */\nint b;\n' >lib/b.h
	printf '/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */\nint u;\n' >include/uapi/u.h
	printf '// SPDX-License-Identifier: GPL-2.0\n#include "lib/b.h"\nint c;\n' >tools/c.c
	printf '// SPDX-License-Identifier: GPL-2.0\nint k;\n' >kmod/k.c
	printf '#!/bin/sh\n# SPDX-License-Identifier: GPL-2.0\necho "$1"\n' >scripts/s.sh
}

# turns_red CHECK FILE TEXT: with TEXT added to FILE, CHECK fails and names FILE.
turns_red()
{
	good
	begin "lint: $1 objects to $3"
	scripts/lint.sh "$1" >"$tmp/out" 2>&1 || fail "red before: $(head -n 1 "$tmp/out")"
	# shellcheck disable=SC2059 # it has \n
	printf "$3" >>"$2"
	scripts/lint.sh "$1" >"$tmp/out" 2>&1 && fail "it did not fail"
	check grep -q "$2" "$tmp/out" "it does not name $2"
}

turns_red includes kmod/k.c '#include "../lib/b.h"\n'
turns_red includes lib/b.h '#include "tools/a.h"\n'
turns_red versions kmod/k.c '#if LINUX_VERSION_CODE < 1\n#endif\n'
turns_red paths scripts/s.sh "echo /ho""me/somebody/x\n"
turns_red shellcheck scripts/s.sh 'rm $1\n'
turns_red format kmod/k.c 'int  f( void );\n'

begin "lint: spdx objects to no licence, and to another part's"
good
echo 'int d;' >lib/d.h
sed -i 's/MIT/GPL-2.0/' lib/b.h
scripts/lint.sh spdx >"$tmp/out" 2>&1 && fail "it did not fail"
is "$(grep -o 'lib/[bd].h' "$tmp/out" | xargs)" "lib/b.h lib/d.h" "files named"
rm lib/d.h

begin "the hook lets a good commit pass, and no other"
good
ln -s ../../scripts/pre-commit .git/hooks/pre-commit
commit() { git -c user.name=t -c user.email=t@localhost commit -qm t; }
git add .
commit >"$tmp/out" 2>&1 || fail "refused: $(tail -n 3 "$tmp/out")"
echo 'int  z ;' >>kmod/k.c
git add .
commit >"$tmp/out" 2>&1 && fail "it was committed"
check grep -q "kmod/k.c" "$tmp/out" "the hook does not say why"

begin "lint: a check that is not known is wrong use"
scripts/lint.sh nonsense >"$tmp/out" 2>&1
is $? 2 "status"
check grep -q "no check 'nonsense', expected" "$tmp/out" "message"

finish
