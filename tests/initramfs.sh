#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Make the guest's initramfs for the named tests: tests/initramfs.sh FILE TEST...
# In it: busybox, vm-inner.sh as /init, the programs in /t, our modules in /ko, the kernel's in
# /lib/modules, as the table in vm-inner.sh says. Called by vm.sh, whose VM_* variables it uses.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/skips.sh
. "$top/scripts/skips.sh"
release=${VM_MODULES##*/}

die() { echo "initramfs.sh: $*" >&2; exit 1; }

# A file to directory $2 of the guest, with the shared libraries it needs.
add_file()
{
	local lib

	[ -e "$1" ] || die "no $1, which a test needs"
	cp "$1" "$dir$2/"
	{ ldd "$1" 2>/dev/null || true; } | { grep -o '/[^ ]*' || true; } | while read -r lib; do
		mkdir -p "$dir${lib%/*}"
		cp -L "$lib" "$dir$lib"
	done
}

add_test()
{
	local script needs

	needs=" $("$top/tests/vm-inner.sh" --needs "$1")"
	if [[ $needs =~ \ serve=([^ ]*) ]]; then # another test's program
		add_test "${BASH_REMATCH[1]}"
		return
	fi
	for script in "$top/tests/$1.sh" "$top/tests/red/$1.sh"; do
		[ ! -e "$script" ] || { cp "$script" "$dir/t/$1"; return; }
	done
	add_file "${VM_TESTS:-$top/build/tests}/$1" /t
}

add_ko()
{
	local ko

	ko=$(find "$VM_KO" -name "$1.ko" | head -n 1)
	[ -n "$ko" ] || die "no module $1.ko was built"
	cp "$ko" "$dir/ko/"
	strip --strip-debug "$dir/ko/$1.ko"
}

# The same with BTF, which the headers of Debian 12 do not let kbuild make.
add_btf()
{
	local ko

	ko=$(find "$VM_KO" -name "$1.ko" | head -n 1)
	[ -n "$ko" ] || die "no module $1.ko was built"
	cp "$ko" "$dir/ko/$1_btf.ko"
	grep -qF ' .BTF ' <(readelf -SW "$ko") || pahole -J --btf_base "$VM_KERNEL" "$dir/ko/$1_btf.ko" ||
		die "pahole makes no BTF of $1.ko"
	strip --strip-debug "$dir/ko/$1_btf.ko"
}

# A module of the kernel and all it depends on, unpacked (busybox cannot), and the line of
# modules.dep that says so. Nothing to do for one that is built in.
add_mod()
{
	local line file files to=$dir/lib/modules/$release

	line=$(sed 's/\.[xg]z//g; s/\.zst//g' "$VM_MODULES/modules.dep" |
		grep -E "/${1//[-_]/[-_]}\.ko:" | head -n 1) || true
	if [ -z "$line" ]; then
		grep -qE "/${1//[-_]/[-_]}\.ko$" "$VM_MODULES/modules.builtin" ||
			die "kernel $release has no module $1"
		return
	fi
	read -ra files <<<"${line/:/}"
	for file in "${files[@]}"; do
		[ ! -e "$to/$file" ] || continue
		mkdir -p "$to/${file%/*}"
		case $(echo "$VM_MODULES/$file"*) in
		*.xz) xz -dc "$VM_MODULES/$file.xz" ;;
		*.zst) zstd -qdc "$VM_MODULES/$file.zst" ;;
		*) cat "$VM_MODULES/$file" ;;
		esac >"$to/$file"
		sed 's/\.[xg]z//g; s/\.zst//g' "$VM_MODULES/modules.dep" |
			grep -F "${file}:" >>"$to/modules.dep"
	done
}

main()
{
	local out=$1 name need needs
	shift

	dir=$out.d
	rm -rf "$dir"
	mkdir -p "$dir"/{bin,dev,etc,ko,lib/modules/"$release",proc,root,run,sys,t,tmp}
	cp "${VM_BUSYBOX:-/bin/busybox}" "$dir/bin/busybox"
	/bin/busybox --list | while read -r name; do
		[ "$name" = busybox ] || ln -s busybox "$dir/bin/$name"
	done
	cp "$top/tests/vm-inner.sh" "$dir/init"
	printf '%s\n' "$@" >"$dir/etc/tests"
	sed '/^#/d; /^$/d' "$top/tests/splats.deny" >"$dir/etc/splats.deny"
	cp "$top/scripts/skips.sh" "$dir/etc/skips.sh"
	cp "$top/tests/tap.sh" "$dir/t/tap.sh"
	skip_list "$top/tests/kernels" >"$dir/etc/kernels"
	echo "root:x:0:0:root:/root:/bin/sh
nobody:x:65534:65534:nobody:/:/bin/sh" >"$dir/etc/passwd"
	echo "root:x:0:
nogroup:x:65534:" >"$dir/etc/group"
	for name; do
		add_test "$name"
		needs=$("$top/tests/vm-inner.sh" --needs "$name")
		for need in $needs; do
			case $need in
			ko=*) add_ko "${need#ko=}" ;;
			with=*/*) add_file "$top/${need#with=}" /t ;;
			with=*) add_ko "${need#with=}" ;;
			btf=*) add_btf "${need#btf=}" ;;
			host=*) add_file "$(command -v "${need#host=}" || echo "${need#host=}")" /t ;;
			mod=*) add_mod "${need#mod=}" ;;
			vm=* | named | oom | serve=* | T_*=*) ;;
			*) die "vm-inner.sh: $name needs '$need', which is not in its list" ;;
			esac
		done
	done
	(cd "$dir" && find . | cpio --quiet -o -H newc -R 0:0) >"$out"
	rm -rf "$dir"
}

main "$@"
