#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tests/debian/run.sh in a Debian 12 container, for hosts that are not Debian or have no mmdebstrap:
# tests/debian/docker.sh SUITE [names]. The VM_* variables are passed on. STATPAGE_IMAGE names
# another image, for example one from a mirror.
#
# Making a chroot wants to mount: hence the capability, and the profiles that would forbid it. The
# checkout is mounted at its own path; outputs and the cache belong to the caller afterwards.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
cache=${STATPAGE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/statpage}
image=${STATPAGE_IMAGE:-debian:bookworm}

[ $# -gt 0 ] || { echo "docker.sh: usage: tests/debian/docker.sh SUITE [names]" >&2; exit 2; }
command -v docker >/dev/null || { echo "docker.sh: no docker here: install it" >&2; exit 1; }

args=(--rm --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined
	-v "$top:$top" -v "$cache:$cache" -w "$top" -e "STATPAGE_CACHE=$cache"
	-e "OWNER=$(id -u):$(id -g)")
for var in "${!VM_@}"; do
	args+=(-e "$var")
done
[ ! -w /dev/kvm ] || args+=(--device /dev/kvm)
[ ! -t 0 ] || args+=(-it)

mkdir -p "$cache" "$top/build"
# shellcheck disable=SC2016 # expanded in the container
exec docker run "${args[@]}" "$image" sh -c '
	status=0
	scripts/deps.sh build guest debian && tests/debian/run.sh "$@" || status=$?
	chown -R "$OWNER" build "$STATPAGE_CACHE"
	exit $status' docker "$@"
