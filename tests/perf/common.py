# SPDX-License-Identifier: MIT
"""What the benchmarks share: the binary, its options, timing, surroundings."""
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, os.environ.get("B", "build"))
PALE = os.environ.get("PALE", os.path.join(BUILD, "pale"))
TOOLS = os.environ.get("PALE_TOOLS", os.path.join(BUILD, "tests/tools"))
NOBODY = 65534


def say(name, values, unit):
    values = sorted(values)
    print("%-44s %9.3f %s  (min %.3f, max %.3f, n %d)" %
          (name, statistics.median(values), unit, values[0], values[-1],
           len(values)), flush=True)


def timed(argv, **kw):
    t = time.perf_counter()
    subprocess.run(argv, check=False, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **kw)
    return (time.perf_counter() - t) * 1e3


def pale(w, *options, mode="workspace-write", binary=None):
    return [binary or PALE, "run", "-q", "-m", mode, "-w", w, *options, "--"]


def bwrap(w):
    if not shutil.which("bwrap"):
        return None
    return ["bwrap", "--die-with-parent", "--ro-bind", "/", "/", "--dev",
            "/dev", "--proc", "/proc", "--bind", w, w, "--unshare-pid",
            "--unshare-ipc", "--unshare-net", "--chdir", w, "--"]


def interleave(rounds, arms, command, cwd):
    """{arm: [ms]} with the arms taken in turn."""
    result = {name: [] for name in arms}
    for name in arms:
        timed(arms[name] + command, cwd=cwd)
    for _ in range(rounds):
        for name in arms:
            result[name].append(timed(arms[name] + command, cwd=cwd))
    return result


def output(*argv):
    r = subprocess.run(argv, check=False, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                       text=True)
    return r.stdout.strip()


def filesystem(path):
    types = output("findmnt", "-n", "-o", "FSTYPE", "-T", path).split()
    return types[-1] if types else "unknown"


def world_of(w, binary=None):
    """What a standing world of the workspace says of itself, or {}."""
    lines = output(binary or PALE, "world", "show", "--json", "-w", w)
    return json.loads(lines.splitlines()[0]) if lines else {}


def surroundings(base):
    versions = json.loads(output(PALE, "version", "--json") or "{}")
    return {"pale": PALE, "filesystem": filesystem(base), "base": base,
            "libfuse": versions.get("libfuse", "unknown"),
            "kernel": os.uname().release, "cores": os.cpu_count(),
            "user": "root" if os.geteuid() == 0 else "uid %d" % os.geteuid(),
            "load": round(os.getloadavg()[0], 1)}


def become_ordinary(top):
    """Goes on as a child of an ordinary user, who owns the directory; the
    parent removes what he cannot."""
    os.chown(top, NOBODY, NOBODY)
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    _, status = os.waitpid(child, 0)
    shutil.rmtree(top, ignore_errors=True)
    sys.exit(os.waitstatus_to_exitcode(status))


def workplace(base, as_user=False):
    """A directory of our own with a home and a state below; the environment
    names them."""
    top = tempfile.mkdtemp(prefix="pale-bench.", dir=base)
    if as_user and os.geteuid() == 0:
        become_ordinary(top)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for name, variable in (("home", "HOME"), ("run", "XDG_RUNTIME_DIR"),
                           ("state", "XDG_STATE_HOME"),
                           ("config", "XDG_CONFIG_HOME")):
        os.environ[variable] = "%s/%s" % (top, name)
        os.mkdir(os.environ[variable], 0o700)
    os.environ.update(GIT_CONFIG_NOSYSTEM="1", GIT_AUTHOR_NAME="t",
                      GIT_AUTHOR_EMAIL="t@example.org", GIT_COMMITTER_NAME="t",
                      GIT_COMMITTER_EMAIL="t@example.org")
    return top
