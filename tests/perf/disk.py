#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Figures of the mount, as ratios to the same work done natively and by peers.

Each arm (native, pale, an earlier pale, peers) has a copy of the same trees.
For one workload one world of each stands, and the arms take turns in it, so
the start of a world is in no figure.  A ratio is the median of those of each
round, with min and max.  `req` is how many requests the warden answered in a
round.  Rows of 1,000 rules are compared with pale without them.  Not a test:
nothing here passes or fails.

  disk.py [-n ROUNDS] [--base DIR] [--user] [--before PALE] [--json FILE]
          [--quick] [--big] [--growth | --ops] [WORKLOAD...]

--growth: time per file and memory while a tree grows to 10^6 files.
--ops: no times, but which requests one round costs (root, tracefs).
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

import requests
import trees
from common import (PALE, TOOLS, bwrap, output, pale, surroundings, workplace,
                    world_of)

FSBENCH = os.path.join(TOOLS, "fsbench")
STATUS = "git -C repo status --porcelain"

# Row: highest ratio as an ordinary user, as root with passthrough, on tmpfs;
# the same on a disk, where it differs.  What is not data is held to the first.
GOALS = {
    "git status, first": ((4, 2.5),), "git status, hot": ((1.3, 1.1),),
    "git mix": ((1.5, 1.25),), "git clone": ((1.3, 1.15),),
    "find": ((1.3, 1.2),), "grep -r": ((2, 1.4),), "rg": ((2, 1.4),),
    "untar": ((7, 4.5), (2.5, 1.8)), "rm -rf": ((5, 3), (3, 2)),
    "make -j2": ((1.1, 1.03),), "copy node_modules": ((1.6, 1.3),),
    "open-read-close": ((8, 5),), "stat": ((1.5, 1.3),),
    "write 1 MiB": (None, (2, 1.11)),
    "read 1 MiB, first": (None, (1.25, 1.05)),
    "read 1 MiB, hot": (None, (1.25, 1.05)),
    "random 4k read, first": (None, (1.25, 1.05)),
    "random 4k read, hot": (None, (1.25, 1.05)),
    "random 4k write": (None, (10, 1.2)),
    "SQLite WAL, off": ((2.5, 1.3),), "SQLite WAL, FULL": ((1.3, 1.15),),
}
DATA = ("1 MiB", "4k", "SQLite")


def goal_of(row, around):
    goals = GOALS.get(row, (None,))
    pair = goals[0 if around["filesystem"] == "tmpfs" else -1]
    if pair is None:
        return None
    data = any(word in row for word in DATA)
    return pair[1 if data and around["passthrough"] == "used" else 0]


class Workload:
    """Steps in turn: (row, command), the row None where it is not timed.  A
    command that starts with a colon is one of fsbench's."""

    def __init__(self, *steps, fresh=False, total=None, rules=False):
        self.steps, self.fresh = steps, fresh
        self.total, self.rules = total, rules

    def rows(self):
        rows = [row for row, _ in self.steps if row]
        return rows + ([self.total] if self.total else [])


def workloads(a):
    few = 4 if a.quick else 1
    n, big = 20000 // few, 256 // few
    edit = ("for i in 1 2 3 4 5 6 7 8; do echo $i >>repo/src/m0/p$i/f$((i * 20"
            ")).js; echo $i >repo/src/m0/new$i; done")
    search = [("grep -r", "grep -r --exclude-dir=.git -l NEEDLE repo")]
    if shutil.which("rg"):
        search.append(("rg", "rg -l NEEDLE repo"))
    return {
        "status": Workload(("git status, first", STATUS), (None, STATUS),
                           ("git status, hot", STATUS), fresh=True),
        "mix": Workload(
            (None, edit), ("mix: status", STATUS),
            ("mix: diff", "git -C repo diff"),
            ("mix: log", "git -C repo log --stat -n 20"),
            ("mix: add", "git -C repo add -A"),
            ("mix: commit", "git -C repo commit -q -m x"),
            ("mix: checkout", "git -C repo checkout -q other"),
            (None, "git -C repo checkout -q main; " + edit),
            ("mix: stash", "git -C repo stash -q -u"),
            (None, "git -C repo stash drop -q; "
             "git -C repo reset -q --hard HEAD~1"), total="git mix"),
        "clone": Workload((None, STATUS),
                          ("git clone", "git clone -q --template= repo clone"),
                          (None, "rm -rf clone")),
        "find": Workload(("find", "find repo -type f -size +1k -printf ''")),
        "grep": Workload(*search),
        "untar": Workload((None, "mkdir t"), ("untar", "tar xf tree.tar -C t"),
                          ("rm -rf", "rm -rf t")),
        "make": Workload((None, "make -s -C project clean"),
                         ("make -j2", "make -s -j2 -C project")),
        "copy": Workload(("copy node_modules", "cp -r modules copied"),
                         (None, "rm -rf copied")),
        "storms": Workload(
            (None, ":stat s 1000 1000"), ("stat", ":stat s %d 1000" % n),
            ("stat of nothing", ":absent s %d 1000" % n),
            ("open-read-close", ":open s %d 1000" % n),
            ("readdir", ":readdir s %d" % (n // 100)),
            ("create", ":create e %d 0" % (n // 10)),
            ("unlink", ":unlink e %d" % (n // 10)),
            ("create and write", ":create e %d 4096" % (n // 10)),
            (None, ":unlink e %d" % (n // 10))),
        "data": Workload(
            ("random 4k read, first", ":pread rand %d 64" % n),
            ("random 4k read, hot", ":pread rand %d 64" % n),
            ("random 4k write", ":pwrite rand %d 64" % n),
            ("read 1 MiB, first", ":read big %d" % big),
            ("read 1 MiB, hot", ":read big %d" % big),
            ("write 1 MiB", ":write new %d" % big), (None, "rm new"),
            fresh=True),
        "sqlite": Workload(
            ("SQLite WAL, off", ":wal-off db1 %d" % (n // 10)),
            ("SQLite WAL, FULL", ":wal-full db2 %d" % (n // 100)),
            ("SQLite rollback", ":rollback db3 %d" % (n // 100)),
            (None, "rm -f db*")),
        "files": Workload(("10,000 open files", ":hold many 10000")),
        "rules": Workload(
            (None, ":stat s 1000 1000"),
            ("1,000 rules: stat", ":stat s %d 1000" % n),
            ("1,000 rules: open", ":open s %d 1000" % n),
            ("1,000 rules: create", ":create e %d 0" % (n // 10)),
            ("1,000 rules: unlink", ":unlink e %d" % (n // 10)), rules=True),
    }


class Arm:
    """One way to see a directory: a process in it does as it is told."""

    def __init__(self, name, top, binary=None, options=()):
        self.name, self.binary, self.options = name, binary, options
        self.dir = os.path.join(top, name.split()[0])
        self.view, self.agent = self.dir, None

    def prefix(self):
        return pale(self.dir, *self.options, binary=self.binary) \
            if self.binary else []

    def start(self):
        self.agent = subprocess.Popen(
            self.prefix() + [FSBENCH], cwd=self.view, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def stop(self):
        if self.agent:
            self.agent.stdin.close()
            self.agent.wait()
            self.agent.stdout.close()
        self.agent = None

    def do(self, command):
        """Milliseconds."""
        print(command, file=self.agent.stdin, flush=True)
        answer = self.agent.stdout.readline().split()
        if len(answer) != 2:
            raise RuntimeError("%s: %s: no answer" % (self.name, command))
        if answer[1] != "0":
            raise RuntimeError("%s: %s: status %s" % (self.name, command,
                                                      answer[1]))
        return int(answer[0]) / 1e6

    def world(self):
        return world_of(self.dir, self.binary) if self.binary else {}

    def requests(self):
        return self.world().get("stats", {}).get("requests", 0)


class Bound(Arm):
    def prefix(self):
        return bwrap(self.dir)


class Mounted(Arm):
    """A peer that mounts: its daemon ends with the unmounting."""

    def __init__(self, name, top, argv):
        super().__init__(name, top)
        self.view = self.dir + ".view"
        self.mount = [word.format(dir=self.dir) for word in argv]

    def start(self):
        for end in (".view", ".upper", ".work"):
            os.makedirs(self.dir + end, exist_ok=True)
        subprocess.run(self.mount, check=True)
        super().start()

    def stop(self):
        running = self.agent
        super().stop()
        if running:
            subprocess.run(["fusermount3", "-u", self.view], check=True)


PEERS = {
    "bindfs": ["bindfs", "{dir}", "{dir}.view"],
    "fuse-overlayfs": ["fuse-overlayfs", "-o", "lowerdir={dir},upperdir={dir}"
                       ".upper,workdir={dir}.work", "{dir}.view"],
}


def arms_of(a, top):
    arms = [Arm("native", top), Arm("pale", top, PALE)]
    if a.before:
        arms.append(Arm("before", top, os.path.abspath(a.before)))
    if a.peers:
        for name, argv in PEERS.items():
            if shutil.which(name):
                arms.append(Mounted(name, top, argv))
            else:
                print("%s: not installed" % name)
        if shutil.which("bwrap"):
            arms.append(Bound("bwrap", top))
        else:
            print("bwrap: not installed")
    return arms


def fill(a, top, arms):
    """The same trees for each arm; git's index holds the times of the copy."""
    first = arms[0].dir
    packages, units = (100, 40) if a.quick else (300, 100)
    os.mkdir(first)
    for name in ("s", "e", "many"):
        os.mkdir("%s/%s" % (first, name))
    trees.repository(first + "/repo", a.files)
    trees.archive(first + "/tree.tar", first + "/repo", min(a.files, 2000))
    trees.modules(first + "/modules", packages)
    trees.project(first + "/project", units)
    for name, size in (("big", 256), ("rand", 64)):
        subprocess.run([FSBENCH, ":write", "%s/%s" % (first, name), str(size)],
                       check=True, stdout=subprocess.DEVNULL)
    for name, n in (("s", 1000), ("many", 10000)):
        subprocess.run([FSBENCH, ":prepare", "%s/%s" % (first, name), str(n)],
                       check=True, stdout=subprocess.DEVNULL)
    for arm in arms[1:]:
        subprocess.run(["cp", "-a", first, arm.dir], check=True)
    for arm in arms:
        output("git", "-C", arm.dir + "/repo", "status")
    os.sync()


def one_round(arm, work, result):
    if work.fresh:
        arm.stop()
    if not arm.agent:
        arm.start()
    total = [0, 0]
    for row, command in work.steps:
        before = arm.requests() if row else 0
        ms = arm.do(command)
        if not row:
            continue
        count = arm.requests() - before
        total = [total[0] + ms, total[1] + count]
        result[row].append((ms, count))
    if work.total:
        result[work.total].append(tuple(total))


def measure(rounds, arms, work):
    """{arm: {row: [(ms, requests)]}}, the order of the arms rotating."""
    result = {arm.name: {row: [] for row in work.rows()} for arm in arms}
    failed = set()
    for i in range(-1, rounds):
        turn = i % len(arms)
        for arm in arms[turn:] + arms[:turn]:
            if arm.name in failed:
                continue
            # The round before the first one warms up.
            into = result[arm.name] if i >= 0 else \
                {row: [] for row in work.rows()}
            try:
                one_round(arm, work, into)
            except (RuntimeError, OSError) as e:
                print("failed: %s" % e, flush=True)
                failed.add(arm.name)
    for arm in arms:
        arm.stop()
    return {k: v for k, v in result.items() if k not in failed}


def ratios(mine, base):
    return [x[0] / y[0] for x, y in zip(mine, base)]


def spread(values):
    return "%.2f (%.2f..%.2f)" % (statistics.median(values), min(values),
                                  max(values))


def report(result, rows, base, ours, around):
    """A line for each row, and what `--json` gets of it."""
    out = []
    for row in rows:
        if base not in result or ours not in result:
            print("%-22s failed" % row)
            continue
        r = {name: ratios(of[row], result[base][row])
             for name, of in result.items() if name != base}
        ms = {name: statistics.median([v[0] for v in of[row]])
              for name, of in result.items()}
        requests = statistics.median([v[1] for v in result[ours][row]])
        goal = goal_of(row, around)
        verdict = "" if goal is None else \
            "ok" if statistics.median(r[ours]) <= goal else "MISS"
        others = ["  %s %s" % (name, spread(v)) for name, v in r.items()
                  if name != ours]
        print("%-22s %9.2f %9.2f  %-22s %8d  %4s  %-4s%s" % (
            row, ms[base], ms[ours], spread(r[ours]), requests,
            goal or "-", verdict, "".join(others)), flush=True)
        out.append({"row": row, "ms": ms, "ratios": r, "requests": requests,
                    "goal": goal, "verdict": verdict or None})
    return out


RULES = [word for i in range(1000) for word in (
    "--protect", "never-%d-*.tmp" % i if i % 2 else "/some/dir%d/name" % i)]


def chosen(a):
    table = workloads(a)
    unknown = set(a.what) - set(table)
    if unknown:
        sys.exit("no such workload: %s; there are: %s" %
                 (" ".join(sorted(unknown)), " ".join(table)))
    return {name: table[name] for name in a.what or table}


def run_table(a, top, arms, around):
    rows = []
    print("%-22s %9s %9s  %-22s %8s  %4s" % (
        "", "native ms", "pale ms", "ratio (min..max)", "req", "goal"))
    for work in chosen(a).values():
        base, taking = "native", arms
        if work.rules:
            base, taking = "pale", [arms[1], Arm("rules", top, PALE, RULES)]
            if not os.path.exists(taking[1].dir):
                subprocess.run(["cp", "-a", arms[1].dir, taking[1].dir],
                               check=True)
        ours = "rules" if work.rules else "pale"
        rows += report(measure(a.n, taking, work), work.rows(), base, ours,
                       around)
    return rows


def count_requests(a, arm):
    counter = requests.Requests()
    rows = []
    try:
        for work in chosen(a).values():
            if work.rules:
                continue
            one_round(arm, work, {row: [] for row in work.rows()})
            if work.fresh:
                arm.stop()
                arm.start()
                arm.do("true")
            device = requests.device_of(arm.dir)
            for row, command in work.steps:
                counter.clear()
                arm.do(command)
                if not row:
                    continue
                kinds = counter.count(device)
                print("%-22s %7d  %s" % (
                    row, sum(n for _, n in kinds),
                    " ".join("%s %d" % kind for kind in kinds)), flush=True)
                rows.append({"row": row, "requests": dict(kinds)})
            arm.stop()
    finally:
        counter.close()
    return rows


def memory(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8") as f:
        return [int(l.split()[1]) for l in f if l.startswith("RssAnon")][0]


def grow(arm, files):
    """Time per file while the tree grows, and what the warden holds."""
    os.makedirs(arm.dir + "/grown", exist_ok=True)
    arm.start()
    step, points = files // 10, []
    for kind in ("grow", "grown"):
        us = [arm.do(":%s grown %d %d" % (kind, step, i * step)) * 1e3 / step
              for i in range(10)]
        print("%s: %s, %d files: %s us a file" % (
            arm.name, "create" if kind == "grow" else "stat", files,
            " ".join("%.1f" % v for v in us)), flush=True)
        points.append(us)
    state = {}
    for when in ("grown", "removed"):
        if when == "removed":
            print("%s: rm -rf: %.1f us a file" % (
                arm.name, arm.do("rm -rf grown") * 1e3 / files))
        world = arm.world()
        if world:
            kib = memory(world["pid"])
            state[when] = dict(world["stats"], anonymous_kib=kib)
            print("%s: %s: %.1f MiB anonymous, %.0f bytes a file, %d inodes" % (
                arm.name, when, kib / 1024, kib * 1024 / files,
                world["stats"]["inodes"]), flush=True)
    arm.stop()
    return {"arm": arm.name, "us": points, "memory": state}


def passthrough(arm, top):
    """What the report of a run says, or that it does not know the word."""
    name = top + "/report"
    subprocess.run(pale(arm.dir, "--report", name, binary=arm.binary) +
                   ["sh", "-c", "cat big >/dev/null"], cwd=arm.dir, check=True)
    with open(name, encoding="utf-8") as f:
        return json.load(f).get("passthrough", "unknown")


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("-n", type=int)
    p.add_argument("--base", default="/dev/shm")
    p.add_argument("--user", action="store_true")
    p.add_argument("--before")
    p.add_argument("--no-peers", dest="peers", action="store_false")
    p.add_argument("--json")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--big", action="store_true")
    p.add_argument("--growth", action="store_true")
    p.add_argument("--ops", action="store_true")
    p.add_argument("--files", type=int,
                   default=os.environ.get("PALE_BENCH_REPO", "7900"))
    p.add_argument("what", nargs="*", default=[])
    a = p.parse_args()
    a.n = a.n or (3 if a.quick else 7)
    if a.big:
        a.files = 100000
    elif a.quick:
        a.files = min(a.files, 2000)
    return a


def main():
    a = arguments()
    chosen(a)
    record = open(a.json, "w", encoding="utf-8") if a.json else None
    top = workplace(a.base, a.user)
    arms = []
    try:
        arms = arms_of(a, top)
        if a.growth:
            for arm in arms[:2]:
                os.mkdir(arm.dir)
            around = dict(surroundings(top), rounds=1)
            rows = [grow(arm, 1000000 if not a.quick else 100000)
                    for arm in arms[:2]]
        else:
            fill(a, top, arms)
            around = dict(surroundings(top), rounds=a.n, files=a.files,
                          passthrough=passthrough(arms[1], top))
            print(", ".join("%s %s" % pair for pair in around.items()))
            rows = count_requests(a, arms[1]) if a.ops else \
                run_table(a, top, arms, around)
        if record:
            json.dump({"around": around, "rows": rows}, record, indent=1)
    finally:
        for arm in arms:
            arm.stop()
        shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
