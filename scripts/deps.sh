#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Install the Debian packages that the named groups need; says what is missing and does nothing when
# nothing is. Usage: scripts/deps.sh GROUP... (`scripts/deps.sh` alone lists the groups).
set -euo pipefail

declare -A NEEDS=(
	[build]="gcc libc6-dev make libjson-c-dev libmicrohttpd-dev libncurses-dev"
	[bpf]="clang libbpf-dev bpftool"
	[unit]="clang libbpf-dev"
	[guest]="qemu-system-x86 busybox-static cpio dwarves strace xz-utils zstd"
	[debian]="mmdebstrap util-linux xz-utils zstd"
	[native]="strace jq curl git python3 procps groff-base zsh tmux"
	[browser]="chromium"
	[npm]="nodejs npm"
	[metrics]="prometheus"
	[lint]="shellcheck clang-format"
	[tidy]="clang-tidy sparse linux-headers-amd64"
)

# Installed, these would leave a service running: they are unpacked, into a folder that is printed.
UNPACKED=prometheus

# As a user, mmdebstrap wants a range of user ids.
[ "$(id -u)" = 0 ] || NEEDS[debian]+=" uidmap"

die()
{
	echo "deps.sh: $*" >&2
	exit 1
}

# The named packages, unpacked in a folder of the cache, if they are not yet; needs no root where the lists of
# packages are there.
unpack()
{
	local cache=${STATPAGE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/statpage} dir tmp pkg

	for pkg; do
		dir=$cache/$pkg
		if [ ! -e "$dir" ]; then
			echo "deps.sh: unpacking $pkg to $dir" >&2
			mkdir -p "$cache"
			tmp=$(mktemp -d "$cache/$pkg.XXXXXX")
			(cd "$tmp" && chmod 755 . && download "$pkg" && dpkg-deb -x ./*.deb root && chmod 755 root) >&2 ||
				die "apt-get could not fetch $pkg: is the network there?"
			# Somebody else may have been faster.
			mv -T "$tmp/root" "$dir" 2>/dev/null || [ -e "$dir" ] || die "cannot make $dir"
			rm -rf "$tmp"
		fi
		echo "$dir"
	done
}

download()
{
	apt-get -qq -o APT::Sandbox::User=root download "$1" && return
	[ "$(id -u)" != 0 ] || { apt-get -qq update && apt-get -qq -o APT::Sandbox::User=root download "$1"; }
}

installed()
{
	[ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)" = "ii " ]
}

main()
{
	local group pkg sudo="" missing=()

	if [ $# = 0 ]; then
		for group in "${!NEEDS[@]}"; do
			echo "$group: ${NEEDS[$group]}"
		done
		exit 0
	fi
	for group; do
		[ -n "${NEEDS[$group]:-}" ] ||
			{ echo "deps.sh: no group '$group', expected: ${!NEEDS[*]}" >&2; exit 2; }
		for pkg in ${NEEDS[$group]}; do
			if [[ " $UNPACKED " = *" $pkg "* ]]; then
				unpack "$pkg"
				continue
			fi
			installed "$pkg" || missing+=("$pkg")
		done
	done
	[ ${#missing[@]} -gt 0 ] || exit 0

	command -v apt-get >/dev/null ||
		die "needs the equivalent of Debian's ${missing[*]}: install them by hand"
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null ||
			die "needs root to install ${missing[*]}: run 'apt-get install ${missing[*]}' as root"
		sudo=sudo
	fi
	echo "deps.sh: installing ${missing[*]} (for: $*)"
	$sudo apt-get -qq update || die "apt-get update failed: is the network there?"
	DEBIAN_FRONTEND=noninteractive $sudo apt-get -qq -y --no-install-recommends install \
		"${missing[@]}" >/dev/null || die "apt-get could not install ${missing[*]}"
}

main "$@"
