#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks the commands of README.md that run on this machine and take seconds.
cd "$(dirname "$0")/../.." || exit 1
exec tests/t_readme.sh native README.md
