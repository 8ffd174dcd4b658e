#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Print the directory of a cached Debian tree for SUITE: that suite's compiler and kernel headers (a
# chroot), and in it /kernel, the suite's kernel, extracted and not installed. Makes it when it is
# not there. Usage: tests/debian/root.sh [--refresh] SUITE[-i386|-arm64]
#
# With -i386 or -arm64 the compiler is a cross compiler, the headers are that architecture's, and for i386
# so is the kernel; with it come a C library for guest programs and a busybox, /kernel/busybox.
#
# The cache is ${STATPAGE_CACHE:-~/.cache/statpage}. An entry is made under a temporary name and
# renamed when complete; each use compares the tree with the list made then, and makes it anew when
# they differ. Nothing is written into a tree afterwards, so builds may share it.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${STATPAGE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/statpage}
RECIPE=2 # raise it when make_root changes what is in a tree

say() { echo "root.sh: $*" >&2; }
die() { say "$*"; exit 1; }

# Where this machine gets Debian from, `main` or `security`: the project names no mirror.
mirror_of()
{
	local label=$1

	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(SITE) $(LABEL) $(COMPONENT)' \
		'Created-By: Packages' 'Origin: Debian' |
		awk -v label="$label" '$2 == label && $3 == "main" { print $1; exit }'
}

# The sources of a suite for architecture $2, in one-line format. Those of other architectures do without
# the archive of security updates: it is big, and mirrors of it were seen with stale lists of them.
sources_of()
{
	local suite=$1 base=${1%-backports} main security=""

	main=$(mirror_of Debian)
	if [ -z "$main" ]; then # apt has no lists yet
		if [ "$(id -u)" = 0 ]; then apt-get -qq update >&2; else sudo apt-get -qq update >&2; fi
		main=$(mirror_of Debian)
	fi
	[ -n "$main" ] ||
		die "no Debian mirror in this machine's apt sources: use tests/debian/docker.sh"
	[ "$2" != amd64 ] || security=$(mirror_of Debian-Security)

	echo "deb $main $base main"
	[ "$base" != sid ] || return 0
	echo "deb $main $base-updates main"
	[ -z "$security" ] || echo "deb $security $base-security main"
	[ "$suite" = "$base" ] || echo "deb $main $suite main"
}

# Options of this machine's apt that reaching the mirror may depend on.
apt_opts()
{
	apt-config dump |
		grep -E '^Acquire::(https?|Retries|Check-Date|Check-Valid-Until|ForceIPv4)' |
		sed -n 's/^\(.*[^ ]\) "\(..*\)";$/\1 "\2";/p' || true
}

# Shell, for the two below: with the kernel's packages of release $rel unpacked in /kernel/debs, give
# /kernel the one shape that all have: vmlinuz, release, and lib/modules/RELEASE with modules.dep. Up to 6.12
# a kernel is one package, later ones are split in four. $of names a foreign architecture, ":ARCH".
# shellcheck disable=SC2016 # expanded there
KERNEL_SH='
		for part in image binary modules base; do
			apt-cache show --no-all-versions linux-$part-$rel$of >/dev/null 2>&1 &&
				apt-get -qq download linux-$part-$rel$of
		done
		for deb in *.deb; do dpkg-deb -x "$deb" ..; done
		cd .. && rm -rf debs
		[ -d lib/modules ] || ln -s usr/lib lib
		mv boot/vmlinuz-* vmlinuz 2>/dev/null || cp lib/modules/$rel/vmlinuz vmlinuz
		rm -rf boot usr/share
		depmod -b /kernel $rel
		test -s vmlinuz && test -s lib/modules/$rel/modules.dep'

# Run by mmdebstrap when the headers are installed: get the kernel that belongs to them.
fetch_kernel()
{
	cat <<-EOF
	#!/bin/sh
	set -e
	cd "\$1"
	chroot . sh -ec '
		headers=\$(dpkg-query -W -f "\\\${Depends}\\n" linux-headers-amd64 |
			grep -o "linux-headers-[0-9][^ ]*-amd64" | head -n 1)
		rel=\${headers#linux-headers-} of=
		mkdir -p /kernel/debs && cd /kernel/debs
		chown _apt . 2>/dev/null || true
		$KERNEL_SH
		echo \$rel >release'
	EOF
}

# The same for headers of another architecture: $1 and its flavour $2, whose compilers are named $3. They
# are unpacked, as what they depend on would run there; kbuild's own programs are this machine's.
fetch_cross()
{
	local boot=""

	[ "$1" != i386 ] || boot=$KERNEL_SH
	cat <<-EOF
	#!/bin/sh
	set -e
	cd "\$1"
	chroot . sh -ec '
		of=:$1
		headers=\$(apt-cache show --no-all-versions linux-headers-$2\$of |
			grep -o "linux-headers-[0-9][^ ]*-$2" | head -n 1)
		rel=\${headers#linux-headers-}
		depends=\$(apt-cache show --no-all-versions \$headers\$of | grep "^Depends:")
		common=\$(echo "\$depends" | grep -o "linux-headers-[0-9][^ ]*-common[^ ,]*")
		kbuild=\$(echo "\$depends" | grep -o "linux-kbuild-[^ ,:]*")
		mkdir -p /kernel/debs && cd /kernel/debs
		chown _apt . 2>/dev/null || true
		apt-get -qq download \$headers\$of \$common
		for deb in *.deb; do dpkg-deb -x "\$deb" /headers; rm "\$deb"; done
		cp -a /headers/usr/src/. /usr/src && rm -r /headers # its /lib is no symlink
		cc=\$(grep -o "gcc-[0-9]*" /usr/src/\$headers/.kernelvariables | head -n 1)
		apt-get -qq -y --no-install-recommends install \$kbuild \$cc-$3 $4 >/dev/null
		$boot
		echo \$rel >/kernel/release'
	EOF
}

# Run by mmdebstrap after the above, for a guest of architecture $1.
fetch_busybox()
{
	cat <<-EOF
	#!/bin/sh
	set -e
	cd "\$1"
	chroot . sh -ec '
		mkdir /kernel/debs && cd /kernel/debs
		chown _apt . 2>/dev/null || true
		apt-get -qq download busybox-static:$1
		dpkg-deb -x *.deb . && mv bin/busybox ../busybox
		cd .. && rm -rf debs'
	EOF
}

# Run by mmdebstrap before apt: backports stay behind the release unless asked for, and the kernel's
# packages are.
prefer_backports()
{
	cat <<-EOF
	#!/bin/sh
	[ "$1" != "${1%-backports}" ] || exit 0
	mkdir -p "\$1/etc/apt/preferences.d"
	printf 'Package: linux-*\nPin: release n=$1\nPin-Priority: 600\n' \
		>"\$1/etc/apt/preferences.d/kernel"
	EOF
}

# Unpack a bzImage: a guest that boots the vmlinux (by its PVH entry) need not do that under
# emulation, where it takes longer than the rest of the boot. Offsets are those of the x86 boot
# protocol; the payload's last word is not part of the compressed stream.
unpack_kernel()
{
	local image=$1 out=$2 setup offset length magic

	field() { od -An -t "u$2" -j "$(($1))" -N "$2" "$image" | tr -d ' '; }
	setup=$(field 0x1f1 1)
	offset=$(((setup + 1) * 512 + $(field 0x248 4)))
	length=$(($(field 0x24c 4) - 4))
	magic=$(od -An -t x1 -j "$offset" -N 4 "$image" | tr -d ' ')
	payload()
	{
		dd if="$image" bs=1M iflag=skip_bytes,count_bytes skip="$offset" count="$length" \
			status=none
	}
	case $magic in
	fd377a58) payload | xz -dc --single-stream ;;
	28b52ffd) payload | zstd -qdc ;;
	*) die "$image: compression $magic is unknown, expected xz or zstd" ;;
	esac >"$out"
}

# Every path with its size and time: cheap, and shows a half-made or altered tree.
list_of()
{
	(cd "$1" && find . \( -path ./dev -o -path ./proc -o -path ./sys -o -path ./tmp \
		-o -path ./src \) -prune -o \( -type f -o -type l \) -printf '%p %s %T@\n' |
		LC_ALL=C sort | sha256sum)
}

# What a tree of an architecture is made of: sets ARGS for mmdebstrap, and puts its hooks into $2.
# binutils: gcc-14-for-host of trixie wants an `as` that its backported kernels do not name.
parts()
{
	local packages=make,binutils,kmod

	case $1 in
	amd64)
		ARGS=("--include=linux-headers-amd64,$packages" --customize-hook="$2/kernel")
		fetch_kernel >"$2/kernel" ;;
	i386)
		ARGS=("--architectures=amd64,i386" "--include=$packages"
			--customize-hook="$2/kernel" --customize-hook="$2/busybox")
		fetch_cross i386 686-pae i686-linux-gnu libc6-dev-i386-cross >"$2/kernel"
		fetch_busybox i386 >"$2/busybox"
		chmod +x "$2/busybox" ;;
	arm64)
		ARGS=("--architectures=amd64,arm64" "--include=$packages" --customize-hook="$2/kernel")
		fetch_cross arm64 arm64 aarch64-linux-gnu "" >"$2/kernel" ;;
	esac
	chmod +x "$2/kernel"
}

make_root()
{
	local suite=$1 arch=$2 dir=$3 tmp=$3.tmp opt opts=()

	say "$suite $arch: getting its compiler, headers and kernel (a minute or two, once)"
	rm -rf "$tmp"
	mkdir -p "$tmp/root"
	parts "$arch" "$tmp"
	prefer_backports "$suite" >"$tmp/prefer"
	chmod +x "$tmp/prefer"
	while read -r opt; do opts+=("--aptopt=$opt"); done < <(apt_opts)
	sources_of "$suite" "$arch" >"$tmp/sources"
	mmdebstrap --quiet --variant=apt --format=tar "${ARGS[@]}" \
		--aptopt='APT::Install-Recommends "false"' "${opts[@]}" \
		--dpkgopt=force-unsafe-io \
		--setup-hook="$tmp/prefer" "${suite%-backports}" - "$tmp/sources" |
		tar -x -C "$tmp/root" --no-same-owner --exclude='./dev/*'
	[ "$arch" = arm64 ] || unpack_kernel "$tmp/root/kernel/vmlinuz" "$tmp/root/kernel/vmlinux"
	mkdir -p "$tmp/root/src"
	echo "$RECIPE" >"$tmp/recipe"
	list_of "$tmp/root" >"$tmp/list"
	rm -rf "$dir"
	mv "$tmp" "$dir"
	say "$suite $arch: kernel $(cat "$dir/root/kernel/release")"
}

good()
{
	[ "$(cat "$1/recipe" 2>/dev/null)" = "$RECIPE" ] &&
		[ "$(list_of "$1/root" 2>/dev/null)" = "$(cat "$1/list" 2>/dev/null)" ]
}

main()
{
	local refresh="" name suite arch=amd64 dir

	if [ "${1:-}" = --refresh ]; then refresh=1; shift; fi
	name=${1:-} suite=${1:-}
	case $name in
	*-i386 | *-arm64) suite=${name%-*} arch=${name##*-} ;;
	esac
	case $suite.$arch in
	bookworm.* | *.amd64 | *.arm64) ;;
	*) suite="" ;; # Debian has i386 kernels up to 12
	esac
	case $suite in
	bookworm | bookworm-backports | trixie | trixie-backports | sid) ;;
	*)
		say "no suite '$name', expected bookworm, trixie or one's -backports, or sid;" \
			"then -arm64, or -i386 for bookworm"
		exit 2 ;;
	esac
	"$here/../../scripts/deps.sh" debian >&2
	dir=$cache/$name.$RECIPE
	mkdir -p "$cache"
	exec 9>"$dir.lock"
	flock 9
	if [ -n "$refresh" ] || ! good "$dir"; then
		[ ! -d "$dir" ] || say "$name: the cached tree is made anew"
		make_root "$suite" "$arch" "$dir"
	fi
	echo "$dir/root"
}

main "$@"
