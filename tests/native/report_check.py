#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Hold a page of `statpage report` against its inputs: report_check.py PAGE IN... [--compare].

Prints what differs, a line each. What is expected is computed here from the inputs, not by the code that
made the page."""
import json
import sys
from html.parser import HTMLParser

VOID = {"meta", "br", "rect", "path", "link"}
P_ENDS = {"p", "dl", "div", "section", "h2", "h3", "h4", "article", "ul", "details", "table", "summary"}
# What a start tag ends that needs no end tag of its own.
ENDS = {"tr": {"th", "td", "tr"}, "th": {"th", "td"}, "td": {"th", "td"}, "tbody": {"th", "td", "tr", "thead"},
        "dt": {"dt", "dd"}, "dd": {"dt", "dd"}, "li": {"li"}}
IMPLIED = {"th", "td", "tr", "thead", "tbody", "dt", "dd", "li", "p"}


class Node:
    def __init__(self, tag, attrs, parent):
        self.tag, self.a, self.parent, self.kids, self.text = tag, dict(attrs), parent, [], ""

    def all(self, tag=None, **attrs):
        want = {k.replace("_", "-").rstrip("-"): v for k, v in attrs.items()}
        for kid in self.kids:
            if (not tag or kid.tag == tag) and all(kid.a.get(k) == v for k, v in want.items()):
                yield kid
            yield from kid.all(tag, **attrs)

    def one(self, tag=None, **attrs):
        return next(self.all(tag, **attrs), None)

    def words(self):
        return " ".join(self.text.split())


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.root = self.at = Node("root", [], None)
        self.bad, self.ids = [], set()

    def pop(self, tags):
        while self.at.tag in tags:
            self.at = self.at.parent

    def handle_starttag(self, tag, attrs):
        if tag in P_ENDS:
            self.pop({"p"})
        self.pop(ENDS.get(tag, set()))
        names = [k for k, _ in attrs]
        if len(names) != len(set(names)):
            self.bad.append(f"an attribute of {tag} is there twice")
        node = Node(tag, attrs, self.at)
        if node.a.get("id") in self.ids:
            self.bad.append(f"id {node.a['id']} is there twice")
        self.ids.add(node.a.get("id") or object())
        self.at.kids.append(node)
        if tag not in VOID or (tag == "path" and self.get_starttag_text()[-2] != "/"):
            self.at = node

    def handle_startendtag(self, tag, attrs):
        self.at.kids.append(Node(tag, attrs, self.at))

    def handle_endtag(self, tag):
        if tag in ("rect",):  # with a title inside, which its parent took
            return
        self.pop(IMPLIED - {tag})
        if self.at.tag != tag:
            self.bad.append(f"</{tag}> in {self.at.tag}")
            return
        self.at = self.at.parent

    def handle_data(self, data):
        node = self.at
        while node:
            node.text += data
            node = node.parent


def ns(v):
    for unit, div in (("ns", 1), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)):
        x = v / div
        if x < 999.5 or unit == "s":
            break
    digits = 0 if unit == "ns" or x >= 99.95 else 1 if x >= 9.995 else 2
    return f"{x:.{digits}f} {unit}"


def num(v):
    return f"{v:,}"


bad = []


def same(got, want, what):
    if got != want:
        bad.append(f"{what}: got {got!r}, expected {want!r}")


def cell(node, want, fmt, what):
    """A number: exact in data-v, for people in the text; None: nothing is there."""
    if node is None:
        bad.append(f"{what}: is not there")
        return
    if want is None:
        same(node.words(), "–", what)
        return
    same(node.a.get("data-v"), str(want), what)
    same(node.text.split("\n")[0].strip()[:len(fmt(want))], fmt(want), what)


def table_rows(table):
    head = [th.words() for th in table.one("thead").all("th")]
    for tr in table.one("tbody").all("tr"):
        yield dict(zip(head, tr.kids))


def check_calls(table, rows, what):
    got = list(table_rows(table))
    same(len(got), len(rows), f"{what}: rows")
    total = sum(r["total_ns"] for r in rows)
    for cells, r in zip(got, rows):
        w = f"{what}, {r['name']}"
        same(cells["Call"].text.split()[0], r["name"], w)
        same(cells["Category"].words(), r["category"], w)
        cell(cells["Calls"], r["count"], num, w)
        cell(cells["Failed"], r["errors"], num, w)
        cell(cells["Total"], r["total_ns"], ns, w)
        same(cells["Share"].words(), f"{100 * r['total_ns'] / total if total else 0:.1f} %", w)
        cell(cells["On CPU"], r.get("on_cpu_ns"), ns, w)
        cell(cells["Waiting"], r.get("waiting_ns"), ns, w)
        cell(cells["Mean"], r["total_ns"] // r["count"] if r["count"] else None, ns, w)
        for name, key in (("Least", "min_ns"), ("p50", "p50_ns"), ("p90", "p90_ns"), ("p99", "p99_ns"),
                          ("p99.9", "p999_ns"), ("Longest", "max_ns")):
            cell(cells[name], r.get(key), ns, f"{w} {name}")
        import errno
        want = ", ".join(f"{errno.errorcode.get(int(k), k) if k.isdigit() else k} {v}"
                         for k, v in r.get("errnos", {}).items())
        small = cells["Failed"].one("small")
        same(small.words() if small else "", want, f"{w}: errnos")


def spent(rec):
    """Waiting, and what cannot be told, so far."""
    split = "split" in rec["engine"]
    age = sum(c["age_ns"] for c in rec.get("in_flight", []) if c["name"] not in ("exit", "exit_group"))
    w = sum(r.get("waiting_ns", 0) for r in rec["syscalls"]) + (age if split else 0)
    u = sum(r["total_ns"] for r in rec["syscalls"] if "waiting_ns" not in r) + (0 if split else age)
    return w, u


def check_lane(lane, records, axis):
    last, w = records[-1], f"lane {records[-1]['pid']}"
    cpu = wait = unsplit = 0
    at, titles = last["start_ns"], []
    for rec in records:
        c, (sw, su) = rec["user_ns"] + rec["system_ns"], spent(rec)
        grown = [max(0, c - cpu), max(0, sw - wait), max(0, su - unsplit)]
        cpu, wait, unsplit = cpu + grown[0], wait + grown[1], unsplit + grown[2]
        if rec["time_ns"] > at:
            titles.append(f"{ns(at - axis)} to {ns(rec['time_ns'] - axis)}: CPU {ns(grown[0])}, waiting "
                          f"{ns(grown[1])}" + (f", in calls {ns(grown[2])}" if grown[2] else ""))
            at = rec["time_ns"]
    same([t.words() for t in lane.all("title")], titles, f"{w}: intervals")
    summary = lane.one("summary")
    same(summary.one(class_="who").words(), f"{last['comm']} {last['pid']}", w)
    cell(summary.one("b", data_k="cpu_ns"), cpu, ns, f"{w} cpu")
    cell(summary.one("b", data_k="waiting_ns"), wait, ns, f"{w} waiting")
    cell(summary.one("b", data_k="wall_ns"), last["wall_ns"], ns, f"{w} wall")
    if unsplit:
        cell(summary.one("b", data_k="unsplit_ns"), unsplit, ns, f"{w} unsplit")
    for key, want, fmt in (("pid", last["pid"], str), ("ppid", last["ppid"], str),
                           ("records", len(records), str), ("user_ns", last["user_ns"], ns),
                           ("system_ns", last["system_ns"], ns)):
        cell(lane.one("dd", data_k=key), want, fmt, f"{w} {key}")
    if "threads_seen" in last:
        cell(lane.one("dd", data_k="threads"), last["threads_seen"], str, f"{w} threads")
    tables = {t.parent.a["aria-label"]: t for t in lane.all("table")}
    if last["syscalls"]:
        check_calls(tables["System calls of this process"], last["syscalls"], w)
    if last.get("in_flight"):
        got = [(int(r["Thread"].a["data-v"]), r["Call that has not returned"].words(), int(r["For"].a["data-v"]))
               for r in table_rows(tables["Calls in flight, by thread"])]
        same(got, [(c["tid"], c["name"], c["age_ns"]) for c in last["in_flight"]], f"{w}: in flight")
    if last.get("phases"):
        name = "Start-up steps, and the time of the thread that ended each"
        for got, p in zip(table_rows(tables[name]), last["phases"]):
            same(got["Step"].words(), p["name"], w)
            for column, v in (("Began", p["start_ns"]), ("Wall", p["wall_ns"]), ("User", p.get("user_ns")),
                              ("Kernel", p.get("system_ns"))):
                cell(got[column], v, ns, f"{w} step {column}")
            for column, key in (("On CPU", "oncpu_ns"), ("Run queue", "runq_ns"), ("Sleep", "sleep_ns"),
                                ("Uninterruptible", "dsleep_ns"), ("I/O", "iowait_ns")):
                cell(got[column], p.get("thread", {}).get(key), ns, f"{w} step {column}")


def check_run(root, i, records):
    trees = [r for r in records if r["scope"] == "tree"]
    lives = {}
    for r in records:
        if r["scope"] == "process":
            lives.setdefault((r["start_ns"], r["pid"]), []).append(r)
    section = root.one("section", id=f"calls{i}")
    whole = trees[-1] if trees else list(lives.values())[0][-1]
    check_calls(section.one("table"), whole["syscalls"], "all calls")
    start = min(r["start_ns"] for r in records)
    for key, want, fmt in (
            ("span_ns", max(r["time_ns"] for r in records) - start, ns), ("user_ns", whole["user_ns"], ns),
            ("system_ns", whole["system_ns"], ns), ("processes", whole.get("processes_seen", 1), num),
            ("calls", sum(r["count"] for r in whole["syscalls"]), num),
            ("errors", sum(r["errors"] for r in whole["syscalls"]), num),
            ("total_ns", sum(r["total_ns"] for r in whole["syscalls"]), ns)):
        cell(section.one("dd", data_k=key), want, fmt, key)
    engine = section.one("p", class_="engine").words()
    for key in ("name", "cannot_see", "split", "split_absent"):
        if key in whole["engine"] and " ".join(whole["engine"][key].split()) not in engine:
            bad.append(f"engine {key}: not in '{engine}'")
    if "cost_ns" in whole["engine"]:
        cell(section.one("span", data_k="cost_ns"), whole["engine"]["cost_ns"], ns, "cost")
    lanes = list(root.one("section", id=f"time{i}").all("details"))
    same([(int(d.a["data-start"]), int(d.a["data-pid"])) for d in lanes], sorted(lives), "lanes")
    for lane, key in zip(lanes, sorted(lives)):
        check_lane(lane, lives[key], start)


# Of a recording: keys of a thread's buckets with their names, those first that are not sleep; and its counts.
KINDS = {"oncpu_ns": ("cpu_ns", "CPU"), "runq_ns": ("runq_ns", "run queue"), "iowait_ns": ("iowait_ns", "I/O"),
         "dsleep_ns": ("dsleep_ns", "uninterruptible"), "sleep_ns": ("sleep_ns", "sleep"), "off_ns": ("off_ns", "asleep")}
COUNTS = ("nr_preempt", "nr_block", "nr_migrate", "min_flt", "maj_flt")
MAX_LANES, MAX_POINTS, SLACK_NS = 64, 128, 20_000_000


class Life:
    def __init__(self, pid, tid, start):
        self.pid, self.tid, self.start, self.end = pid, tid, start, start
        self.titles, self.sums, self.comm, self.intervals, self.threads = [], {}, "", 0, set()

    def busy(self):
        return sum(self.sums.get(k, 0) for k in list(KINDS)[:4])

    def add(self, start, end, values, comm):
        self.intervals, self.comm = self.intervals + 1, comm
        if end > start:
            self.end = end
            if len(self.titles) == MAX_POINTS:  # two become one
                self.titles = [(a[0], b[1], {k: a[2].get(k, 0) + b[2].get(k, 0) for k in {**a[2], **b[2]}})
                               for a, b in zip(self.titles[::2], self.titles[1::2])]
            self.titles.append((start, end, values))
            for k, v in values.items():
                self.sums[k] = self.sums.get(k, 0) + v


def difference(old, now, before):
    """Begin, and what a thread did since, as docs/json.md has it: epochs must be the same."""
    if old and (old["epoch"], old["engine"]) != (now["epoch"], now["engine"]):
        return now["time_ns"], {}
    since = now.get("since_ns", 0)
    if not old and (not since or since + SLACK_NS < before):
        return now["time_ns"], {}
    start = old["time_ns"] if old else max(since, before)
    was = old["total"] if old else dict.fromkeys(now["total"], 0)
    values = {k: v - was[k] for k, v in now["total"].items() if k in was and v >= was[k]}
    buckets = [values[k] for k in list(KINDS)[:5] if k in values]
    if len(buckets) < 5:
        values["off_ns"] = max(0, now["time_ns"] - start - sum(buckets))
    return start, values


def lives_of(instants):
    threads, processes, lives = {}, {}, ([], [])

    def begin(where, key, kind, life):
        where[key] = life
        lives[kind].append(life)

    for before, instant in zip(instants, instants[1:]):
        old = {(t["pid"], t["tid"]): t for t in before["threads"]}
        pids, sums = {t["pid"] for t in before["threads"]}, {}
        for t in sorted(instant["threads"], key=lambda t: (t["pid"], t["tid"])):
            key = t["pid"], t["tid"]
            o = old.get(key)
            start, values = difference(o, t, before["time_ns"])
            if key not in threads or not o or (o["epoch"], o["engine"]) != (t["epoch"], t["engine"]):
                begin(threads, key, 1, Life(*key, start))
            threads[key].add(start, t["time_ns"], values, t["comm"])
            s = sums.setdefault(t["pid"], [start, 0, {}, t["comm"], []])
            s[0], s[1] = min(s[0], start), max(s[1], t["time_ns"])
            for k, v in values.items():
                s[2][k] = s[2].get(k, 0) + v
            if t["pid"] == t["tid"]:
                s[3] = t["comm"]
            s[4].append(threads[key])
        for pid, s in sums.items():
            if pid not in processes or pid not in pids:
                begin(processes, pid, 0, Life(pid, 0, s[0]))
            processes[pid].threads.update(s.pop())
            processes[pid].add(*s)
    return lives


def with_lanes(lives):
    """Those that did most have lanes, and these stand in the order in which they began."""
    order = lambda v: (v.start, v.pid, v.tid)  # noqa: E731
    return sorted(sorted(lives, key=lambda v: (-v.busy(), order(v)))[:MAX_LANES], key=order)


def check_recorded_lane(lane, life, axis):
    w, summary = f"lane {life.pid} {life.tid}", lane.one("summary")
    same([t.words() for t in summary.all("title")],
         [f"{ns(a - axis)} to {ns(b - axis)}: " + ", ".join(
             f"{name} {ns(v[k])}" for k, (_, name) in KINDS.items() if k in v and (v[k] or k == "oncpu_ns"))
          for a, b, v in life.titles], f"{w}: intervals")
    same(summary.one(class_="who").words(), f"{life.comm} {life.tid or life.pid}", w)
    for k, (key, _) in KINDS.items():
        if k in life.sums:
            cell(summary.one("b", data_k=key), life.sums[k], ns, f"{w} {key}")
        else:
            same(summary.one("b", data_k=key), None, f"{w} {key}, which was not measured")
    cell(summary.one("b", data_k="wall_ns"), life.end - life.start, ns, f"{w} wall")
    cell(lane.one("dd", data_k="intervals"), life.intervals, str, f"{w} intervals")
    for k in COUNTS:
        if k in life.sums:
            cell(lane.one("dd", data_k=k), life.sums[k], str, f"{w} {k}")
    if life.tid:
        cell(lane.one("dd", data_k="tid"), life.tid, str, f"{w} tid")
    else:
        cell(lane.one("dd", data_k="threads"), len(life.threads), str, f"{w} threads")


def check_recorded(root, i, lines):
    """The timeline of a recording of few enough processes and threads that no life made room."""
    processes, threads = lives_of([v for v in lines if "time_ns" in v])
    section = root.one("section", id=f"time{i}")
    if not processes:
        same(section, None, "timeline of no threads")
        return
    axis = min(v.start for v in processes)
    lanes = [k for k in section.kids if k.tag == "details"]
    drawn, drawn_threads = with_lanes(processes), with_lanes(threads)
    same([(int(d.a["data-start"]), int(d.a["data-pid"])) for d in lanes], [(v.start, v.pid) for v in drawn], "lanes")
    note = section.one("p", data_k="others")
    same(int(note.a["data-v"]) if note else 0, len(processes) - len(drawn), "processes without a lane")
    for k, (key, _) in KINDS.items():
        if note and note.one("b", data_k=key):
            cell(note.one("b", data_k=key), sum(v.sums.get(k, 0) for v in processes if v not in drawn), ns, f"others {key}")
    for lane, life in zip(lanes, drawn):
        check_recorded_lane(lane, life, axis)
        inner = [k for k in lane.kids if k.tag == "details"]
        mine = [v for v in drawn_threads if v in life.threads]
        same([int(d.a["data-tid"]) for d in inner], [v.tid for v in mine], f"threads of {life.pid}")
        for d, v in zip(inner, mine):
            check_recorded_lane(d, v, axis)
        note = next((k for k in lane.kids if k.a.get("data-k") == "more_threads"), None)
        same(int(note.a["data-v"]) if note else 0, len(life.threads) - len(mine), f"{life.pid}: threads without a lane")
        for k, (key, _) in KINDS.items():
            if note and k in life.sums:
                cell(note.one("b", data_k=key), life.sums[k] - sum(v.sums.get(k, 0) for v in mine), ns,
                     f"{life.pid}: other threads, {key}")
    text = section.words()
    for e in lines[0]["thread_engines"]:
        same(f"Engine {e['name']}." in text and " ".join(e["cannot_see"].split()) in text, True, f"engine {e['name']}")


QS = (("min", "min"), ("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p999", "p99.9"), ("max", "max"))


def check_metric(article, lines):
    m, w = lines[0], f"metric {lines[0]['name']}"
    cell(article.one("b", data_k="count"), m["count"], num, w)
    same([int(r.a["data-n"]) for r in article.all("rect", class_="slot")], [s["count"] for s in m["slots"]],
         f"{w}: slots")
    for key in ("attempted", "recorded", "missed", "filtered", "stopped", "inside", "unpaired"):
        cell(article.one("b", data_k=key), m[key], num, f"{w} {key}")
    same(m["origin"] in article.text and m["causes"] in article.text, True, f"{w}: origin, causes")
    tables = {t.parent.a["aria-label"]: list(table_rows(t)) for t in article.all("table")}
    rows = {r["Quantile"].words(): r for r in tables["Quantiles"]}
    for key, name in QS:
        for column, part in (("Value", "value"), ("at least", "low"), ("at most", "high")):
            cell(rows[name][column], m["quantiles"][key][part], ns, f"{w} {key} {part}")
    cell(rows["mean"]["Value"], m["mean"], ns, f"{w} mean")
    for r, line in zip(tables.get("By CPU", []), lines[1:]):
        same(r["CPU"].words(), str(line["cpu"]), w)
        cell(r["Samples"], line["count"], num, f"{w} CPU")
        cell(r["Mean"], line["mean"], ns, f"{w} CPU")
        for key, name in QS[1:]:
            cell(r["Max" if name == "max" else name], line["quantiles"][key]["value"], ns, f"{w} CPU {key}")
    same(len(tables.get("By CPU", [])), len(lines) - 1, f"{w}: CPUs")


def verdict(node, b, a, what):
    least, most = a[0] - b[1], a[1] - b[0]
    moved = 1 if least > 0 else -1 if most < 0 else 0
    same(node.a.get("data-moved"), str(moved), what)
    sign = lambda v: ("−" if v < 0 else "+") + ns(abs(v))  # noqa: E731
    if moved:
        want = ("▲ " if moved > 0 else "▼ ") + sign(least) + (f" to {sign(most)}" if least != most else "")
        if b[0]:
            want += f" {100 * least / b[1]:+.1f} to {100 * most / b[0]:+.1f} %"
    else:
        bound = max(most, -least)
        want = f"none within ±{ns(bound)}" if bound else "none"
    same(node.words(), want, what)


def slot(v):
    """Bounds of v's slot, 3 bits."""
    exp = max(0, v.bit_length() - 4)
    return (v >> exp) << exp, ((v >> exp) + 1 << exp) - 1


def where(row, key, few):
    v = row[key]
    if v == row["max_ns"] and row["count"] < few:
        return v, v
    low = slot(v)[0]
    return max(low, row["min_ns"]) if row["min_ns"] <= v else low, v


def exact(node, b, a, fmt, what):
    same(node.words(), f"{fmt(b)} → {fmt(a)}" + (f" {100 * (a - b) / b:+.1f} %" if b else ""), what)
    same(node.a["data-v"], str(a - b), what)


def check_compare(root, inputs):
    section = root.one("section", id="compare")
    tables = {}
    for t in section.all("table"):
        tables.setdefault(t.parent.a["aria-label"], []).append(t)
    before, after = ({m["name"]: m for m in x if "slots" in m and "cpu" not in m} for x in inputs)
    both = sorted(set(before) & set(after))
    same([h.words() for h in section.all("h4")][-len(both):] if both else [], both, "compared metrics")
    for t, name in zip(tables.get("Quantiles before and after", []), both):
        for r, (key, label) in zip(table_rows(t), QS):
            b, a = ((m[name]["quantiles"][key]["low"], m[name]["quantiles"][key]["high"]) for m in (before, after))
            same(r["Quantile"].words(), label, name)
            for column, v in (("Before", b), ("After", a)):
                same(r[column].words(), ns(v[0]) + (f" – {ns(v[1])}" if v[0] != v[1] else ""), f"{name} {key}")
            verdict(r["Change"], b, a, f"{name} {key}")
    trees = [[r for r in x if r.get("scope") == "tree"] for x in inputs]
    if not (trees[0] and trees[1]):
        return
    b, a = ({(r["name"], r["abi"]): r for r in t[-1]["syscalls"]} for t in trees)
    none = {"total_ns": 0, "count": 0, "errors": 0}
    got = list(table_rows(tables["System calls before and after"][0]))
    same(len(got), len(set(a) | set(b)), "compared calls")
    for r, key in zip(got, list(b) + [k for k in a if k not in b]):
        rb, ra = b.get(key, none), a.get(key, none)
        same(r["Call"].text.split()[0], key[0], "compared call")
        exact(r["Total"], rb["total_ns"], ra["total_ns"], ns, key)
        exact(r["Calls"], rb["count"], ra["count"], num, key)
        exact(r["Failed"], rb["errors"], ra["errors"], num, key)
        if rb is none or ra is none:
            same(r["p50"].words(), "–", key)
            continue
        for name, k, few in (("p50", "p50_ns", 2), ("p90", "p90_ns", 10), ("p99", "p99_ns", 100),
                             ("p99.9", "p999_ns", 1000)):
            verdict(r[name], where(rb, k, few), where(ra, k, few), f"{key} {name}")
        verdict(r["Longest"], (rb["max_ns"],) * 2, (ra["max_ns"],) * 2, f"{key} max")


def read(name):
    with open(name, encoding="utf-8") as f:
        text = f.read()
    try:
        doc = json.loads(text)
        return [doc] + doc.pop("processes", [])
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


def main():
    names = [n for n in sys.argv[2:] if n != "--compare"]
    page = Page()
    with open(sys.argv[1], encoding="utf-8") as f:
        page.feed(f.read())
    page.close()
    bad.extend(page.bad)
    inputs = [read(n) for n in names]
    for i, lines in enumerate(inputs):
        records = [r for r in lines if "schema" in r]
        if records:
            check_run(page.root, i, records)
        if lines and lines[0].get("format") == "statpage-record":
            check_recorded(page.root, i, lines)
        metrics = {}
        for m in lines:
            if "slots" in m:
                metrics.setdefault(m["name"], []).append(m)
        articles = list(page.root.one("section", id=f"dist{i}").all("article")) if metrics else []
        same([a.one("h4").words() for a in articles], sorted(metrics), "metrics")
        for article, name in zip(articles, sorted(metrics)):
            check_metric(article, metrics[name])
    if "--compare" in sys.argv:
        check_compare(page.root, inputs)
    print("\n".join(bad[:20]))
    return bool(bad)


sys.exit(main())
