# shellcheck shell=sh disable=SC3043 # busybox's sh has local
# SPDX-License-Identifier: GPL-2.0
# Whether a skip is right: where the list (tests/kernels, without blanks around its bars) has it for this
# place: KERNEL | PROGRAM | CASE | WHY. Usage: skip_expected LIST PLACE PROGRAM CASE
skip_expected()
{
	local kernel program test _

	while IFS='|' read -r kernel program test _; do
		# shellcheck disable=SC2254 # they are patterns
		case $2 in $kernel) ;; *) continue ;; esac
		# shellcheck disable=SC2254
		case $3 in $program) ;; *) continue ;; esac
		# shellcheck disable=SC2254
		case $4 in $test) return 0 ;; esac
	done <"$1"
	return 1
}

# The list as skip_expected() reads it.
skip_list()
{
	sed '/^#/d; /^$/d; s/ *| */|/g' "$1"
}
