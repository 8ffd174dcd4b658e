#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A skip that tests/kernels does not list.
echo "ok 1 - needs the moon # SKIP no moon"
exit 77
