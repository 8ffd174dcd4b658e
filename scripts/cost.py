#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Lay out what the benchmarks measured as docs/cost.md, or check that document against them.

usage: cost.py LOG...               print the document
       cost.py --check DOC LOG...   as TAP: the document is what this script makes of its own figures, and has
                                    exactly the rows that the logs have, with about their figures

A log has lines `cost: KERNEL | GROUP | WHAT | NUMBER | LIMIT`, see tests/t_cost.h; others are passed over.
"""
import sys

# Instructions on the same kernel release: from one run to the next they differed by 4 % at most, or by one or two;
# another compiler of the programs may make it more.
NEAR, NEAR_FEW = 0.25, 8

HEAD = """\
<!-- SPDX-License-Identifier: GPL-2.0 -->
# What it costs

`make bench` measured this and wrote this file (`scripts/cost.py` did, from the lines `cost:` of `tests/bench*.c`).
A test compares it with what the benchmarks print; where there is a limit, a benchmark fails above it.

## In instructions

Counted in a QEMU guest that runs a stock Debian kernel on one emulated CPU whose clock advances one tick an
instruction (`-icount`): the difference of two readings of the TSC is then an exact count, of user space and kernel
together, and the same on a busy machine. Of many rounds the median is taken, because a timer tick is in some. A count
is no time: it knows nothing of cache and TLB misses, of mispredicted branches, nor that one instruction (a locked one,
a `rdtscp`, a switch of page tables) may take as long as fifty others. The modules were built by the compiler of each
kernel's own suite. `-` is what a kernel does not have.
"""

NATIVE = """\
## In time

In ns on one virtual machine, natively, where the kernel loads no modules and attaches no program to a function: so
only what needs neither. Each is a median of many rounds; what is compared was measured in turns, so that other work on
the machine meets all alike, and of a system call what is added to the plain call of the same turn. On another machine the ns are others; the ratios are less so.
"""

# Every group, with what its table needs to be understood.
GROUPS = {
    "reading thread time": """\
By a thread about itself. `csf_thread_snap()` reads its page; a made-up page can be had without a module.
""",
    "a context switch": """\
Two SCHED_FIFO threads on one CPU, which always take the same way through the scheduler, hand a byte to and fro. Given
is what one thread pays for being switched off and on again once. A BPF program on `sched_switch` runs for every thread;
the module's hooks run for those with a page, and the kernel's look whether a thread has any (3 instructions each) for
all while one has.
""",
    "a traced call": """\
What one call of a short function pays for being traced, start and return, with the time put into a histogram. "With its
gap" also records the time since the last call. The empty BPF programs show what attaching alone costs.
""",
    "from X to Y, both ends": """\
What an X, and a Y after it, pay for the time between them being recorded: two functions, or two tracepoints.
""",
    "a system call": """\
`getppid()`, by a program that is run under `statpage run --engine bpf` or `--engine ptrace`, or `strace`. The empty pair
is of two programs on `raw_syscalls`, enter and exit, which any BPF tool of this kind has at least; those that read the
clock do the least that tells how long a call took. Where the kernel preempts programs at raw tracepoints, as 7.2 does,
and so leaves some out, those of the engine are attached as perf is.
""",
}

PAIR, BPF = "an empty pair of BPF programs adds", "--engine bpf adds"


class Costs:
    """{(group, what): {kernel: number}}, in order; kernels in order; {(group, what): limit}."""

    def __init__(self):
        self.rows, self.kernels, self.limits = {}, [], {}

    def add(self, kernel, group, what, number, limit):
        if kernel not in self.kernels:
            self.kernels.append(kernel)
        self.rows.setdefault((group, what), {})[kernel] = number
        if limit:
            self.limits[group, what] = limit

    def guests(self):
        return [k for k in self.kernels if k != "native"]

    def of(self, kernel):
        return {row: got[kernel] for row, got in self.rows.items() if kernel in got}


def read_logs(names):
    costs = Costs()
    for name in names:
        with open(name, encoding="utf-8", errors="replace") as log:
            for line in log:
                if line.startswith("cost: "):
                    fields = [word.strip() for word in line[6:].split("|")]
                    if len(fields) != 5 or fields[1] not in GROUPS:
                        sys.exit(f"cost.py: {name}: expected 5 fields with a known group, not '{line.strip()}'")
                    costs.add(*fields)
    return costs


def table(head, rows):
    return "".join("|" + "".join(f" {cell} |" if cell else " |" for cell in line) + "\n"
                   for line in [head, ["---"] * len(head)] + rows)


def ratio(numbers):
    value = float(numbers[1]) / float(numbers[0])
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def aim(costs, kernels):
    """How far the bpf engine is from its aim, said of these kernels."""
    pairs = [ratio([costs.rows["a system call", w][k] for w in (PAIR, BPF)]) for k in kernels]
    if kernels != ["native"]:
        verdict = " in instructions"
    else:
        verdict = f": the aim, 2.4, is {'not ' * (float(pairs[0]) > 2.4)}reached"
    return f"\nThe bpf engine adds {', '.join(pairs)} times what the empty pair adds{verdict}.\n"


def render(costs):
    guests, text = costs.guests(), HEAD
    for group, note in GROUPS.items():
        rows = [row for row in costs.rows if row[0] == group and guests[0] in costs.rows[row]]
        limits = any(row in costs.limits for row in rows)
        head = [""] + guests + ["limit"] * limits
        text += f"\n### {group[0].upper()}{group[1:]}\n\n{note}\n"
        text += table(head, [[row[1]] + [costs.rows[row][k] for k in guests] +
                             [costs.limits.get(row, "")] * limits for row in rows])
        if group == "a system call":
            text += aim(costs, guests)
    text += "\n" + NATIVE
    for group in GROUPS:
        rows = [row for row in costs.rows if row[0] == group and "native" in costs.rows[row]]
        if not rows:
            continue
        first = costs.rows[rows[0]]["native"]
        text += f"\n### {group[0].upper()}{group[1:]}, in ns\n\n"
        text += table(["", "ns", "times the first row"],
                      [[row[1], costs.rows[row]["native"], ratio([first, costs.rows[row]["native"]])]
                       for row in rows])
        if group == "a system call":
            text += aim(costs, ["native"])
    return text


def read_document(text):
    """The figures in the document's own tables."""
    costs, group, head = Costs(), None, []
    for line in text.splitlines():
        if line.startswith("### "):
            group, head = (line[4].lower() + line[5:]).removesuffix(", in ns"), []
        elif line.startswith("|") and group:
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if not head:
                head = ["native" if cell == "ns" else cell for cell in cells]
            elif not cells[0].startswith("---"):
                got = dict(zip(head[1:], cells[1:]))
                got.pop("times the first row", None)
                limit = got.pop("limit", "")
                for kernel, number in got.items():
                    costs.add(kernel, group, cells[0], number, limit)
    return costs


def kind(kernel):
    return "native" if kernel == "native" else "guest"


def compare(document, logs, kernel):
    """What differs between the document and the logs of this kernel."""
    like = [k for k in document.kernels if kind(k) == kind(kernel)]
    if not like:
        return ["the document has no figures of the kind"]
    printed = logs.of(kernel)
    wrong = [f"no benchmark prints the row '{what}' of '{group}'" for group, what in document.of(like[0])
             if (group, what) not in printed]
    for (group, what), number in printed.items():
        if (group, what) not in document.of(like[0]):
            wrong.append(f"'{group}' lacks the row '{what}'")
        elif logs.limits.get((group, what)) != document.limits.get((group, what)) and kind(kernel) == "guest":
            wrong.append(f"'{what}' has another limit: {logs.limits.get((group, what))}")
        elif kind(kernel) == "guest" and kernel in like:
            said = document.rows[group, what][kernel]
            if said != number and ("-" in (said, number) or
                                   abs(float(said) - float(number)) > max(NEAR * float(said), NEAR_FEW)):
                wrong.append(f"'{what}' of '{group}' costs {number} on {kernel}, not {said}: run make bench")
    return wrong


def check(name, logs):
    """Prints TAP; returns how many cases failed."""
    with open(name, encoding="utf-8") as file:
        text = file.read()
    document, cases = read_document(text), []
    made = render(document) if document.guests() else ""
    differ = [a for a, b in zip(text.splitlines() + [""], made.splitlines() + [""]) if a != b]
    cases.append((f"{name}: scripts/cost.py makes the same of its figures",
                  [f"by hand: '{differ[0]}'"] if text != made and differ else ["its length"] * (text != made)))
    for kernel in logs.kernels or ["no kernel"]:
        cases.append((f"{name}: the rows that are printed, {kernel}", compare(document, logs, kernel)))
    for nr, (case, wrong) in enumerate(cases, 1):
        print("".join(f"#   {why}\n" for why in wrong), end="")
        print(f"{'not ' if wrong else ''}ok {nr} - {case}{': ' + wrong[0] if wrong else ''}")
    print(f"1..{len(cases)}")
    return sum(1 for _, wrong in cases if wrong)


def main(args):
    if args[:1] == ["--check"] and len(args) > 2:
        sys.exit(1 if check(args[1], read_logs(args[2:])) else 0)
    if not args or args[0].startswith("-"):
        sys.exit(__doc__.split("\n\n")[1])
    costs = read_logs(args)
    if not costs.guests() or "native" not in costs.kernels:
        sys.exit("cost.py: the logs lack " + ("a native run's rows" if costs.guests() else "a guest's rows"))
    for kernel in costs.guests():
        if costs.of(kernel).keys() != costs.of(costs.guests()[0]).keys():
            sys.exit(f"cost.py: {kernel} has other rows than {costs.guests()[0]}")
    print(render(costs), end="")


try:
    main(sys.argv[1:])
except OSError as error:
    sys.exit(f"cost.py: {error.filename}: {error.strerror}")
