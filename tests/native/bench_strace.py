#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What `statpage run` costs against `strace -c -f`, both on one CPU, in paired runs of random order.

usage: bench_strace.py [ROUNDS]     (after `make native`, which builds the workload)
Prints the median of the paired ratios, of wall time and of CPU time: on a machine with other work to
do wall time says little. Nothing is asserted.
"""
import os
import random
import resource
import statistics
import subprocess
import sys
import time

top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
statpage = os.path.join(top, "tools", "statpage")
workload = os.path.join(top, "build", "tests", "native", "workload")
watchers = {
    "strace -c -f": ["strace", "-c", "-f", "-o", "/dev/null"],
    "statpage run": [statpage, "run", "-o", "/dev/null", "--"],
    "statpage run --no-split": [statpage, "run", "--no-split", "-o", "/dev/null", "--"],
}
programs = {
    "10,000 getppid": ["calls", "10000"],
    "300 fork, _exit, wait": ["forks", "300"],
    "8 threads, futexes and pipes": ["threads", "100"],
    "100 vfork, exec, wait": ["vforks", "100"],
}


def measure(cmd):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for title, args in programs.items():
        runs = {name: [] for name in watchers}
        for _ in range(rounds):
            for name in random.sample(list(watchers), len(watchers)):
                runs[name].append(measure(watchers[name] + [workload] + args))
        base = runs["strace -c -f"]
        for name, got in runs.items():
            wall, cpu = (statistics.median(g[i] / b[i] for g, b in zip(got, base)) for i in (0, 1))
            print(f"{title:36} {name:24} wall {wall:.2f}  cpu {cpu:.2f}  "
                  f"({statistics.median(g[0] for g in got):.3f} s)")


main()
