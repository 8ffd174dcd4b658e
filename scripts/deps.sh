#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Install the Debian packages that the named groups need; says what is missing and does nothing when
# nothing is. Usage: scripts/deps.sh GROUP... (`scripts/deps.sh` alone lists the groups).
set -euo pipefail

declare -A NEEDS=(
	[build]="gcc libc6-dev make libjson-c-dev"
	[bpf]="clang libbpf-dev bpftool"
	[unit]="clang libbpf-dev"
	[guest]="qemu-system-x86 busybox-static cpio xz-utils zstd"
	[debian]="mmdebstrap util-linux xz-utils zstd"
	[native]="strace jq git python3 procps groff-base zsh"
	[browser]="chromium"
	[npm]="nodejs npm"
	[lint]="shellcheck clang-format"
	[tidy]="clang-tidy sparse linux-headers-amd64"
)

# As a user, mmdebstrap wants a range of user ids.
[ "$(id -u)" = 0 ] || NEEDS[debian]+=" uidmap"

die()
{
	echo "deps.sh: $*" >&2
	exit 1
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
