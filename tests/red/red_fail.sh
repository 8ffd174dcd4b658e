#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A test with a failed case.
echo "ok 1 - passes"
echo "not ok 2 - fails"
exit 1
