#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Put kstats into a kernel tree, as lib/kstats with CONFIG_KSTATS: kstats-into-tree.sh TREE
# Run again it updates what it put there.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
tree=${1:-}
[ -n "$tree" ] || { echo "usage: scripts/kstats-into-tree.sh TREE" >&2; exit 2; }
for file in lib/Makefile lib/Kconfig.debug include/linux/kernel.h; do
	[ -e "$tree/$file" ] || {
		echo "kstats-into-tree.sh: $tree has no $file, expected the top of a kernel tree" >&2
		exit 1
	}
done

to=$tree/lib/kstats
mkdir -p "$to/include/uapi"
cp "$top"/kmod/kstats/*.[chS] "$top/kmod/compat.h" "$top"/packaging/kernel/K* "$to/"
cp "$top"/include/uapi/kstats*.h "$to/include/uapi/"
cp "$top/include/linux/kstats.h" "$tree/include/linux/"
sed -i 's|"\.\./compat\.h"|"compat.h"|' "$to"/*.[chS]

grep -q kstats/ "$tree/lib/Makefile" || echo 'obj-$(CONFIG_KSTATS) += kstats/' >>"$tree/lib/Makefile"
grep -q lib/kstats/Kconfig "$tree/lib/Kconfig.debug" ||
	echo 'source "lib/kstats/Kconfig"' >>"$tree/lib/Kconfig.debug"
echo "kstats-into-tree.sh: $to is there; now choose CONFIG_KSTATS"
