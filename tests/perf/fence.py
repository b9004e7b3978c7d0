#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Figures of the fence, as ratios to the same work done natively and by peers.

Everything is interleaved in one run and repeated; medians with min and max are
printed.  Not a test: nothing here passes or fails.

  fence.py [-n ROUNDS] [--base DIR] [start] [deny] [meta] [tree] [memory] [rules]
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

from common import PALE, bwrap, interleave, pale, say

TREE_FILES = int(os.environ.get("PALE_BENCH_FILES", "200000"))


def bench_start(rounds, w):
    arms = {"native": [], "bwrap": bwrap(w), "pale": pale(w),
            "pale --net none": pale(w, "--net", "none"),
            "pale read-only": pale(w, mode="read-only")}
    arms = {k: v for k, v in arms.items() if v is not None}
    r = interleave(max(rounds, 40), arms, ["true"], w)
    base = statistics.median(r["native"])
    for name in r:
        say("start: true under " + name, r[name], "ms")
    if "bwrap" in r:
        cost = statistics.median(r["bwrap"]) - base
        for name in r:
            if name.startswith("pale"):
                print("%-44s %9.3f x bwrap's cost" % (
                    "start: " + name,
                    (statistics.median(r[name]) - base) / cost))


def bench_tree(rounds, w):
    """A workspace of many files starts like an empty one."""
    big = tempfile.mkdtemp(prefix="big.", dir=os.path.dirname(w))
    for d in range(TREE_FILES // 1000):
        os.mkdir("%s/%d" % (big, d))
        for f in range(1000):
            os.close(os.open("%s/%d/%d" % (big, d, f), os.O_CREAT))
    r = interleave(rounds, {"empty": pale(w), "big": pale(big)}, ["true"], w)
    say("start: empty workspace", r["empty"], "ms")
    say("start: %d files" % TREE_FILES, r["big"], "ms")
    # Memory of the warden once every name has been looked at.
    p = subprocess.Popen(pale(big) + ["sh", "-c", "find . -size +1 | wc -l; "
                                      "echo ready; sleep 30"], cwd=big,
                         stdout=subprocess.PIPE, text=True)
    while "ready" not in p.stdout.readline():
        pass
    worlds = subprocess.run([PALE, "world", "show", "--json", "-w", big],
                            capture_output=True, text=True).stdout
    for line in worlds.splitlines():
        pid, stats = json.loads(line)["pid"], json.loads(line)["stats"]
        print("memory: table of %d inodes: %.0f bytes an inode with buckets, "
              "without names" % (stats["inodes"],
                                 stats["inode_bytes"] / stats["inodes"]))
        with open("/proc/%d/status" % pid) as f:
            rss = [l for l in f if l.startswith("RssAnon")][0].split()[1]
        fds = len(os.listdir("/proc/%d/fd" % pid))
        print("memory: warden with %d looked-up inodes: %.1f MiB anonymous, "
              "%.0f bytes an inode, %d descriptors" % (
                  TREE_FILES, int(rss) / 1024,
                  int(rss) * 1024 / TREE_FILES, fds))
    p.kill()
    p.wait()
    shutil.rmtree(big)


# How long one refusal takes, in the middle: others may have the processor.
DENY = """
import os, statistics, sys, time
n, path, flags = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
took = []
for i in range(n):
    name = path.replace("%", str(i))
    t = time.perf_counter()
    try: os.close(os.open(name, flags)); sys.exit("not refused")
    except OSError: took.append(time.perf_counter() - t)
print(statistics.median(took) * 1e6)
"""

LOOP = """
import os, sys, time
kind, n, d = sys.argv[1], int(sys.argv[2]), sys.argv[3]
t = time.perf_counter()
if kind == "stat":
    for i in range(n): os.stat(d + "/f%d" % (i % 100))
elif kind == "open":
    for i in range(n):
        f = os.open(d + "/f%d" % (i % 100), os.O_RDONLY); os.read(f, 100); os.close(f)
elif kind == "create":
    for i in range(n): os.close(os.open(d + "/c%d" % i, os.O_CREAT | os.O_WRONLY, 0o644))
elif kind == "unlink":
    for i in range(n): os.unlink(d + "/c%d" % i)
print((time.perf_counter() - t) / n * 1e6)
"""


def loop(prefix, kind, n, d, cwd):
    r = subprocess.run(prefix + ["python3", "-c", LOOP, kind, str(n), d],
                       cwd=cwd, capture_output=True, text=True)
    return float(r.stdout.split()[-1])


def bench_deny(rounds, w):
    out = tempfile.mkdtemp(prefix="out.", dir=os.path.dirname(w))
    prepare(w)
    prepare(out)
    create = os.O_CREAT | os.O_WRONLY
    rows = (("open", "/f1", os.O_WRONLY),
            ("create", "/x", create),
            ("creates of new names", "/x%", create))
    for where, top, mode in (("in the mount", w, "read-only"),
                             ("outside", out, "workspace-write")):
        for what, path, flags in rows:
            r = [float(subprocess.run(
                pale(w, mode=mode) + ["python3", "-c", DENY, "20000",
                                      top + path, str(flags)],
                cwd=w, stdout=subprocess.PIPE, text=True,
                check=True).stdout) for _ in range(rounds)]
            say("refused %s %s" % (what, where), r, "us")
    shutil.rmtree(out)


def prepare(w):
    for i in range(100):
        with open("%s/f%d" % (w, i), "w") as f:
            f.write("x" * 100)
    return w


def bench_meta(rounds, w, options=(), label="pale"):
    prepare(w)
    for kind, n in (("stat", 20000), ("open", 5000), ("create", 2000),
                    ("unlink", 2000)):
        native, ours = [], []
        for _ in range(rounds):
            if kind in ("create", "unlink"):
                if kind == "create":
                    native.append(loop([], "create", n, w, w))
                    loop([], "unlink", n, w, w)
                    ours.append(loop(pale(w, *options), "create", n, w, w))
                    loop([], "unlink", n, w, w)
                else:
                    loop([], "create", n, w, w)
                    native.append(loop([], "unlink", n, w, w))
                    loop([], "create", n, w, w)
                    ours.append(loop(pale(w, *options), "unlink", n, w, w))
            else:
                native.append(loop([], kind, n, w, w))
                ours.append(loop(pale(w, *options), kind, n, w, w))
        ratio = [a / b for a, b in zip(ours, native)]
        say("%s: %s, x native" % (label, kind), ratio, "x ")


def bench_rules(rounds, w):
    rules = []
    for i in range(1000):
        rules += ["--protect", "never-%d-*.tmp" % i if i % 2 else
                  "/some/dir%d/name" % i]
    bench_meta(rounds, w, (), "no rules")
    bench_meta(rounds, w, rules, "1000 rules")
    r = interleave(rounds, {"none": pale(w), "1000": pale(w, *rules)},
                   ["true"], w)
    say("start without rules", r["none"], "ms")
    say("start with 1000 rules", r["1000"], "ms")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("-n", type=int, default=7)
    p.add_argument("--base", default=os.environ.get("PALE_TEST_BASE") or (
        "/srv" if os.geteuid() == 0 else os.environ["HOME"]))
    p.add_argument("what", nargs="*", default=[])
    a = p.parse_args()
    table = {"start": bench_start, "deny": bench_deny, "meta": bench_meta,
             "tree": bench_tree, "rules": bench_rules}
    top = tempfile.mkdtemp(prefix="pale-bench.", dir=a.base)
    os.environ["XDG_STATE_HOME"] = top + "/state"
    os.environ["XDG_CONFIG_HOME"] = top + "/config"
    try:
        for name in a.what or table:
            w = tempfile.mkdtemp(prefix="w.", dir=top)
            table[name](a.n, w)
    finally:
        shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
