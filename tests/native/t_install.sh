#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks what make install installs: that a program can be built against it, that systemd
# and dkms understand their files, and that make uninstall leaves nothing.
. "$(dirname "$0")/tap.sh"

root=$tmp/root
usr=$root/usr

begin "make install"
make -s install DESTDIR="$root" PREFIX=/usr >"$tmp/log" 2>&1 || fail "$(tail -n 3 "$tmp/log")"
is "$("$usr/bin/csfcat" --help | head -n 1 | cut -d ' ' -f 1)" "usage:" "the installed csfcat"
check test -e "$usr/share/doc/statpage/README.md" "no README.md"

begin "a program includes the installed reader by either name, as C and as C++"
sed 's,"lib/coarse_stat_fs.h",<coarse_stat_fs.h>,' tests/unit/reader/example_line.c >"$tmp/line.c"
sed 's,^#include "lib/,&,' tests/unit/reader/example_fields.c >"$tmp/fields.c"
flags="-Wall -Wextra -Wconversion -Werror -c -o /dev/null"
for lang in "c -std=c11" "c++ -std=c++17"; do
	# shellcheck disable=SC2086 # words
	(cd "$tmp" && cc -x $lang $flags -I"$usr/include" line.c &&
		cc -x $lang $flags -I"$usr/include/statpage" fields.c) >"$tmp/log" 2>&1 ||
		fail "as $lang: $(head -n 3 "$tmp/log")"
done

begin "systemd understands the mount unit, and its name is that of its mount point"
unit=$usr/lib/systemd/system/sys-kernel-coarse_stat_fs.mount
is "$(sed -n 's/^Where=//p' "$unit")" /sys/kernel/coarse_stat_fs "Where"
check test -z "$(grep @ "$unit")" "a placeholder is left"
if command -v systemd-analyze >/dev/null; then
	is "$(systemd-escape -p --suffix=mount /sys/kernel/coarse_stat_fs)" "${unit##*/}" "the name"
	# It looks at other units too; only what it says of ours matters.
	is "$(SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no "$unit" 2>&1 | grep coarse)" \
		"" "what systemd says"
else
	skip "no systemd here"
fi

begin "modules-load.d names the module"
is "$(grep -v '^#' "$usr/lib/modules-load.d/coarse_stat_fs.conf")" coarse_stat_fs "the module"

begin "dkms.conf names the modules that kmod/Kbuild builds"
is "$(kernel_source_dir=/k arch=x86_64 bash -ec '. ./dkms.conf
	printf "%s\n" "${BUILT_MODULE_NAME[@]}" | sort | xargs')" \
	"$(sed -n 's/^obj-.* += \(.*\)\.o$/\1/p' kmod/Kbuild | sort | xargs)" "the modules"
is "$(kernel_source_dir=/k arch=x86_64 bash -ec '. ./dkms.conf
	echo "${MAKE[0]} ${BUILT_MODULE_LOCATION[*]} $PACKAGE_NAME $AUTOINSTALL"')" \
	"make kmod KDIR=/k kmod kmod statpage yes" "how they are built"
is "$(kernel_source_dir=/k arch=aarch64 bash -ec '. ./dkms.conf; echo "${BUILT_MODULE_NAME[*]}"')" kstats "on arm64"

begin "make uninstall leaves nothing"
make -s uninstall DESTDIR="$root" PREFIX=/usr >"$tmp/log" 2>&1 || fail "$(tail -n 3 "$tmp/log")"
is "$(find "$root" -mindepth 1 ! -path "$usr")" "" "left behind"

finish
