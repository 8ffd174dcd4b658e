#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Print a compile_commands.json of the kernel modules, for clangd and clang-tidy.

kbuild leaves the command that made an object in a file .NAME.o.cmd beside it. This reads those below
a directory and drops what only gcc understands. Build the modules first.
Usage: kmod-compdb.py KDIR DIR [AS], where KDIR is the kernel's build directory, DIR what was built,
and AS the directory to name instead of DIR, when that is only a copy of it.
"""
import json
import os
import re
import shlex
import sys

# A flag that starts with one of these means nothing to clang, or is about gcc's warnings.
GCC_ONLY = (
    "-W", "-falign-", "-fconserve-stack", "-fdiagnostics-show-context", "-fmin-function-alignment",
    "-fno-allow-store-data-races", "-fno-ipa", "-fno-stack-check", "-fno-stack-clash-protection",
    "-fplugin", "-fstrict-flex-arrays", "-ftrivial-auto-var-init", "-fzero-init-padding-bits",
    "-mfunction-return", "-mharden-sls", "-mindirect-branch", "-mno-80387", "-mno-fp-ret-in-387",
    "-mpreferred-stack-boundary", "-mrecord-mcount", "-mskip-rax-setup",
)
WARNINGS = ["-Wall", "-Wno-unknown-warning-option", "-Wno-pointer-sign", "-Wno-gnu",
            "-Wno-address-of-packed-member", "-Wno-sign-compare"]


def die(why):
    sys.exit(f"kmod-compdb.py: {why}")


def entry(cmd_file, kdir, top):
    """The database's entry for one .cmd file, or None if that is of no C source of ours."""
    with open(cmd_file, encoding="utf-8") as file:
        found = re.match(r"(?:saved)?cmd_\S+ := +(.*)", file.readline())
    if not found:
        return None
    # The compiler's command comes first; objtool's and others' follow.
    command = shlex.split(re.split(r" ; | && ", found[1].replace(r"\#", "#"))[0])
    if not command or not command[-1].endswith(".c") or command[-1].endswith(".mod.c"):
        return None
    flags = [f for f in command[1:] if not f.startswith(GCC_ONLY)]
    # Up to 6.12 kbuild runs in the kernel's directory, later in the module's.
    where = kdir if os.path.isabs(command[-1]) else top
    return {"directory": where, "file": command[-1], "arguments": ["clang"] + WARNINGS + flags}


def main():
    if len(sys.argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    kdir, top = (os.path.realpath(arg) for arg in sys.argv[1:3])
    entries = []
    for path, _, files in os.walk(top):
        entries += [entry(os.path.join(path, f), kdir, top)
                    for f in files if re.fullmatch(r"\..*\.o\.cmd", f)]
    entries = sorted(filter(None, entries), key=lambda e: e["file"])
    if not entries:
        die(f"no object was built below {top}, expected one: run `make kmod` first")
    text = json.dumps(entries, indent=1)
    if len(sys.argv) == 4:
        text = text.replace(top, os.path.realpath(sys.argv[3]))
    print(text)


main()
