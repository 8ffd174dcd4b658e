# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# What native tests have beyond tests/tap.sh, which says how to use it. They run in the top of the checkout, with
# $tmp as a folder of their own.

set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
. tests/tap.sh
# shellcheck disable=SC2034 # for those who source this
statpage=$PWD/tools/statpage
# shellcheck disable=SC2034
native=$PWD/build/tests/native
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# check COMMAND... WHY
check()
{
	local words=("$@") last=$(($# - 1))

	"${words[@]:0:last}" || fail "${words[last]}"
}
