#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Build the modules for a Debian suite's kernel with that suite's compiler, boot that kernel in QEMU
# and run the guest tests. Usage: tests/debian/run.sh SUITE[-i386|-arm64] [names]
#
# SUITE is bookworm, trixie, one's -backports, sid, or `host`: this machine's own kernel. For another
# architecture what is built, by a cross compiler, is a case of its own; there is a guest for i386 only, and
# only the tests that are named run in it.
# The modules are built in build/debian/SUITE/src, its log beside it. VM_OUT names the directory of
# the guest's logs, default build/debian/SUITE; the other VM_* variables are those of tests/vm.sh.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)

sources()
{
	# Not all of these directories need exist.
	find kmod include examples tests/kmod ! -name '*.mod.c' \
		\( -name '*.[chS]' -o -name Kbuild \) 2>/dev/null || true
}

# The sources that kbuild needs go to $1: it builds in place, and two kernels must not share
# objects. Only what changed is copied, so that only that is compiled again.
copy_sources()
{
	local src=$1 file

	mkdir -p "$src"
	cd "$top"
	sources | while read -r file; do
		cmp -s "$file" "$src/$file" && continue
		mkdir -p "$src/${file%/*}"
		cp "$file" "$src/$file"
	done
	cd "$src" # what was deleted since
	sources | while read -r file; do
		[ -e "$top/$file" ] || rm -f "$file"
	done
}

# Every directory with a Kbuild, kmod first: the others may use its symbols. Runs where the
# compiler is, so plain sh.
# shellcheck disable=SC2016 # expanded there
BUILD_SH='
kdir=$1 src=$2
for kbuild in $src/kmod/Kbuild $(find $src/examples $src/tests/kmod -name Kbuild 2>/dev/null); do
	[ -e $kbuild ] || continue
	symbols=; [ $kbuild = $src/kmod/Kbuild ] || symbols=$src/kmod/Module.symvers
	make -C $kdir M=${kbuild%/Kbuild} KCFLAGS=-Werror KBUILD_EXTRA_SYMBOLS=$symbols \
		-j$(nproc) modules || exit 1
done'

# What the headers want to know to build for another architecture: sets ARCH, empty for this machine's,
# and CROSS.
architecture()
{
	ARCH="" CROSS=()
	case $1 in
	*-i386) ARCH=i386 CROSS=(DEB_HOST_GNU_TYPE=i686-linux-gnu) ;;
	*-arm64) ARCH=arm64 CROSS=(DEB_HOST_GNU_TYPE=aarch64-linux-gnu) ;;
	esac
	[ -z "$ARCH" ] || CROSS+=(DEB_BUILD_ARCH=amd64 "DEB_HOST_ARCH=$ARCH")
}

# The guest's programs of that architecture, of the tests named in $@, to /src/programs; in its chroot.
# shellcheck disable=SC2016 # expanded there
PROGRAMS_SH='
shift 2
cc=$(echo /usr/bin/$DEB_HOST_GNU_TYPE-gcc-[0-9]*)
[ $# = 0 ] || exec make -s -C /tmp/top/tests CC=$cc OUT=/src/programs "$@"'

build_host()
{
	sh -c "$BUILD_SH" build "/lib/modules/$(uname -r)/build" "$1"
}

# Run $BUILD_SH, and with tests' names $PROGRAMS_SH, in the chroot. It lives in a mount namespace of its own:
# nothing is left mounted, whatever happens.
build_chroot()
{
	local root=$1 src=$2 map=()
	shift 2

	[ "$(id -u)" = 0 ] || map=(--map-root-user)
	# shellcheck disable=SC2016 # expanded inside
	unshare --mount "${map[@]}" sh -ec '
		root=$1 src=$2 top=$3 build=$4 cross=$5
		shift 5
		mount --rbind /dev "$root/dev"
		mount --rbind /proc "$root/proc" # objtool of 7.x reads its limits there
		mount -t tmpfs tmp "$root/tmp"
		mount --bind "$src" "$root/src"
		mkdir "$root/tmp/top"
		mount --bind "$top" "$root/tmp/top"
		exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C $cross \
			sh -c "$build" build "/usr/src/linux-headers-$(cat "$root/kernel/release")" \
			/src "$@"' \
		chroot "$root" "$src" "$top" "$BUILD_SH${1:+$PROGRAMS_SH}" "${CROSS[*]}" "$@"
}

# What was built for another architecture, as cases. A function that the compiler calls for a 64-bit division
# is in no kernel: modpost makes it an error, but where it only warns the module would not load.
report_build()
{
	local src=$1 release=$2 ko nr=0 undefined bad=0

	for ko in kmod/kstats examples/kstats_demo/kstats_demo tests/kmod/kstats_slots; do
		nr=$((nr + 1))
		undefined=$(readelf -sW "$src/$ko.ko" | awk '$7 == "UND" { print $8 }' |
			grep -oE '__u?(div|mod|divmod)[dt]i[34]$' | xargs)
		if [ ! -s "$src/$ko.ko" ]; then
			echo "not ok $nr - ${ko##*/}.ko for $release: not built"
			bad=1
		elif [ -n "$undefined" ]; then
			echo "not ok $nr - ${ko##*/}.ko for $release: undefined: $undefined"
			bad=1
		else
			echo "ok $nr - ${ko##*/}.ko builds for $release, with no 64-bit division undefined"
		fi
	done
	return $bad
}

main()
{
	local suite=${1:-} src root names=""
	[ $# -gt 0 ] || { echo "run.sh: usage: tests/debian/run.sh SUITE [names]" >&2; exit 2; }
	shift

	export VM_OUT=${VM_OUT:-$top/build/debian/$suite}
	architecture "$suite"
	[ -z "$ARCH" ] || [ $# = 0 ] || names=$("$top/tests/vm-inner.sh" --names "$@")
	src=$top/build/debian/$suite/src
	mkdir -p "$src"
	exec 9>"$src.lock" # one build at a time
	flock 9
	(copy_sources "$src")
	if [ "$suite" = host ]; then
		build=(build_host "$src")
		VM_KERNEL=/boot/vmlinuz-$(uname -r)
		VM_MODULES=/lib/modules/$(uname -r)
	else
		root=$("$top/tests/debian/root.sh" "$suite") || exit
		# shellcheck disable=SC2206 # one word a name
		build=(build_chroot "$root" "$src" $names)
		VM_KERNEL=$root/kernel/vmlinux
		VM_MODULES=$root/kernel/lib/modules/$(cat "$root/kernel/release")
	fi
	echo "run.sh: $suite: building the modules for ${VM_MODULES##*/}"
	"${build[@]}" >"$src.log" 2>&1 || {
		cat "$src.log" >&2
		echo "run.sh: $suite: the modules do not build, log in $src.log" >&2
		exit 1
	}
	exec 9>&-
	export VM_KERNEL VM_MODULES VM_KO=$src
	if [ -n "$ARCH" ]; then
		report_build "$src" "${VM_MODULES##*/}" || exit
		[ -n "$names" ] || exit 0
		[ "$ARCH" = i386 ] || { echo "run.sh: there is no guest for $ARCH" >&2; exit 2; }
		export VM_TESTS=$src/programs VM_BUSYBOX=$root/kernel/busybox
	fi
	exec "$top/tests/vm.sh" "$@"
}

main "$@"
