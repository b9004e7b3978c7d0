#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Figures of standing worlds and jobs, beside fork+exec and task-spooler.

What is compared is interleaved in one run; ratios count, times do not.  Not a
test: nothing here passes or fails.

  jobs.py [-n ROUNDS] [-j JOBS] [--base DIR] [--user]
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time

from common import NOBODY, PALE, ROOT, interleave, say, workplace

sys.path.insert(0, os.path.join(ROOT, "docs/examples"))
from pale_client import Pale  # noqa: E402

PLACES = 64


def goal(name, value, unit, bound):
    print("%-44s %9.3f %s  (goal: %s)" % (name, value, unit, bound), flush=True)


def one_by_one(rounds, w):
    """How long who types a command waits, beside who needs no world."""
    arms = {"fork+exec": [], "pale exec": [PALE, "exec", "-q", "-w", w, "--"],
            "pale job start": [PALE, "job", "start", "-q", "-w", w, "--"]}
    if shutil.which("tsp"):
        arms["tsp"] = ["tsp", "-n"]
    r = interleave(rounds, arms, ["true"], w)
    base = r["fork+exec"]
    for name in r:
        say(name + " true", r[name], "ms")
    for name in list(r)[1:]:
        bound = "<= 3 ms" if name.startswith("pale") else "none"
        goal(name + " over fork+exec", statistics.median(r[name]) - statistics.median(base), "ms",
             bound)
        goal(name + " over fork+exec, least", min(r[name]) - min(base), "ms", bound)


def by_one_client(n, w):
    """From the first line sent to the last end told."""
    world = Pale.connect(w)
    begin, ids = time.perf_counter(), []
    for _ in range(n):
        world.send("job.start", {"argv": ["true"], "queue": True})
    for _ in range(n):
        ids.append(world.read()["result"]["id"])
    for at in range(0, n, 1000):
        world.call("job.wait", {"ids": ids[at:at + 1000]})
    return n / (time.perf_counter() - begin)


def by_many(n, start, is_busy):
    """Each start a process of its own, one after the other."""
    begin = time.perf_counter()
    for _ in range(n):
        subprocess.run(start, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    while is_busy():
        time.sleep(0.01)
    return n / (time.perf_counter() - begin)


def rates(rounds, n, w):
    start = [PALE, "job", "start", "-q", "--queue", "-w", w, "--", "true"]
    busy = lambda: any(job["state"] not in ("exited", "lost")
                       for job in Pale.connect(w).call("job.list")["jobs"])
    spooled = lambda: any(word in subprocess.run(["tsp"], stdout=subprocess.PIPE).stdout
                          for word in (b"queued", b"running"))
    figures = {"one client": [], "a process each": [], "task-spooler, a process each": []}
    for _ in range(rounds):
        figures["one client"].append(by_one_client(n, w))
        figures["a process each"].append(by_many(n, start, busy))
        if shutil.which("tsp"):
            figures["task-spooler, a process each"].append(by_many(n, ["tsp", "-n", "true"], spooled))
    for name, values in figures.items():
        if values:
            say("%d x true: %s" % (n, name), values, "a second")
    theirs = figures["task-spooler, a process each"]
    for name in ("one client", "a process each") if theirs else ():
        goal("%s / task-spooler" % name, statistics.median(figures[name]) / statistics.median(theirs),
             "", ">= 1")


def lists(rounds, w):
    world = Pale.connect(w)
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        n = len(world.call("job.list", {"all": True})["jobs"])
        times.append((time.perf_counter() - begin) * 1e3)
    say("a list of %d jobs" % n, times, "ms")
    goal("a list of %d jobs" % n, statistics.median(times), "ms", "<= 50 ms for 1,000")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=20, help="rounds")
    parser.add_argument("-j", type=int, default=300, help="jobs of a round")
    parser.add_argument("--base", default="/srv" if os.geteuid() == 0 else os.environ["HOME"])
    parser.add_argument("--user", action="store_true", help="as uid %d" % NOBODY)
    args = parser.parse_args()
    base = workplace(args.base, args.user)
    w = os.path.join(base, "w")
    os.mkdir(w)
    os.mkdir(base + "/config/pale")
    os.environ.update(TMPDIR=base, TS_SOCKET=base + "/tsp")
    with open(base + "/config/pale/config.ini", "w") as file:
        file.write("[default]\njobs = %d\njobs-kept = 10000\n" % PLACES)
    os.chdir(w)
    try:
        subprocess.run([PALE, "exec", "-q", "-m", "workspace-write", "-w", w, "--", "true"], check=True)
        if shutil.which("tsp"):
            subprocess.run(["tsp", "-S", str(PLACES)], check=True)
        one_by_one(args.n, w)
        rates(3, args.j, w)
        lists(10, w)
    finally:
        subprocess.run([PALE, "world", "stop", "-w", w])
        if shutil.which("tsp"):
            subprocess.run(["tsp", "-K"])
        os.chdir("/")
        shutil.rmtree(base)


main()
