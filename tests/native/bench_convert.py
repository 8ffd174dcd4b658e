#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""How fast `statpage convert` is against json-c's parser alone on the same file, in paired runs of random order.

usage: bench_convert.py [ROUNDS [MB]]     (after `make native`, which builds the workload)
The file is a real run's JSON lines, over and over. Rates are by CPU time, since the machine may have
other work to do. Where libsimdjson-dev is installed its parser is measured too. Nothing is asserted.
"""
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile

top = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
statpage = os.path.join(top, "tools", "statpage")
native = os.path.join(top, "build", "tests", "native")


def build(source, compiler, libs):
    """The program made of a source here, or None where its library is missing."""
    program = os.path.join(native, os.path.splitext(source)[0])
    made = subprocess.run([compiler, "-O2", "-D_GNU_SOURCE", "-o", program,
                           os.path.join(top, "tests", "native", source)] + libs,
                          stderr=subprocess.DEVNULL, check=False)
    return program if made.returncode == 0 else None


def make_lines(path, size):
    block = path + ".block"
    subprocess.run([statpage, "run", "-f", "jsonl", "--interval", "20ms", "-o", block, "--", "sh", "-c",
                    f"{native}/workload threads 300; {native}/workload forks 20; ls -lR /usr/lib"],
                   stdout=subprocess.DEVNULL, check=True)
    with open(block, "rb") as f:
        text = f.read()
    with open(path, "wb") as f:
        for _ in range(max(1, size // len(text))):
            f.write(text)
    return os.path.getsize(path)


def cpu_seconds(cmd):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(cmd, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    size = int(sys.argv[2]) * 1000000 if len(sys.argv) > 2 else 50000000
    parser = build("bench_json.c", "cc", ["-ljson-c"])
    if not parser:
        sys.exit("bench_convert.py: json-c's headers are missing (Debian: libjson-c-dev)")
    faster = build("bench_simdjson.cpp", "c++", ["-lsimdjson"])
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "lines")
        size = make_lines(path, size)
        what = {"json-c alone": [parser, path]}
        if faster:
            what["simdjson alone"] = [faster, path]
        for to in ("folded", "speedscope", "perfetto", "csv"):
            what[f"convert --to {to}"] = [statpage, "convert", "--to", to, path]
        runs = {name: [] for name in what}
        for _ in range(rounds):
            for name in random.sample(list(what), len(what)):
                runs[name].append(cpu_seconds(what[name]))
        print(f"{size / 1e6:.0f} MB")
        for name, got in runs.items():
            ratio = statistics.median(b / g for g, b in zip(got, runs["json-c alone"]))
            print(f"{name:24} {size / 1e6 / statistics.median(got):8.1f} MB/s  {ratio:.2f} of json-c's rate")


main()
