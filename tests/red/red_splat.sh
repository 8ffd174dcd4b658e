#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A test that passes, and leaves a warning in the kernel log.
echo "<4>WARNING: CPU: 0 PID: 1 at a/fake.c:1" >/dev/kmsg
echo "ok 1 - passes"
