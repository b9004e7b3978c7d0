# SPDX-License-Identifier: MIT
"""Escape attempts: what every file of this folder shares.

An attempt is a name and a piece of Python that runs *inside* a world and tries
to reach out.  Around it stand things outside that must not change: a directory
(OUT), services on sockets of every kind, a FIFO with a reader, a process.  The
attempt must print "attempted" (else nothing was tried, which is a failure of
the test), and afterwards the proof is taken from the host: the same files, no
visitor at any service, the process untouched.
"""
import hashlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading

PALE = os.environ.get("PALE", os.path.join(os.path.dirname(os.path.abspath(
    __file__)), "../../build/pale"))

# Where no namespace can be made and Landlock alone fences (f_landlock): what it
# does not govern is no escape, and what it refuses to do is not tried.
LANDLOCK = os.environ.get("PALE_ESCAPE") == "landlock"
NONAMESPACES = os.path.join(
    os.environ.get("PALE_TOOLS", os.path.dirname(PALE) + "/tests/tools"),
    "nonamespaces")
NOT_ALONE = set(os.environ.get("PALE_ESCAPE_NOT", "").split())

# What the inside of every attempt starts with.
PRELUDE = r"""
import ctypes, errno, fcntl, mmap, os, signal, socket, stat, struct, subprocess, sys, threading, time
OUT, W, PID = os.environ["T_OUT"], os.environ["T_W"], int(os.environ["T_PID"])
libc = ctypes.CDLL(None, use_errno=True)
def sc(nr, *args):
    r = libc.syscall(ctypes.c_long(nr), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    return -ctypes.get_errno() if r < 0 else r
def tryit(fn, *args, **kw):
    try: return fn(*args, **kw)
    except Exception as e: return e
def spoil(path):
    "Every cheap way of changing what lies at a path."
    def w(flags):
        fd = os.open(path, flags, 0o666); os.write(fd, b"BAD"); os.close(fd)
    for f in (os.O_WRONLY | os.O_CREAT, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND): tryit(w, f)
    for f in (lambda: os.truncate(path, 0), lambda: os.chmod(path, 0o777), lambda: os.chown(path, 1, 1), lambda: os.utime(path, (1, 1)),
              lambda: os.setxattr(path, "user.bad", b"1"), lambda: os.unlink(path)): tryit(f)
def spoil_dir(d):
    spoil(d + "/f")
    for f in (lambda: os.mkdir(d + "/made"), lambda: os.symlink("x", d + "/sym"), lambda: os.mknod(d + "/node"), lambda: os.mkfifo(d + "/ff"),
              lambda: os.rename(d + "/f", d + "/g"), lambda: os.link(d + "/f", d + "/h"), lambda: os.rename(d + "/sub", d + "/sub2"), lambda: os.rmdir(d + "/sub")): tryit(f)
    spoil(d + "/new")
def sh(script): return subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60)
os.chdir(W)
"""


def fingerprint(top):
    """Everything about a tree that an attempt could change."""
    h = hashlib.sha256()
    for root, dirs, files in os.walk(top):
        dirs.sort()
        for name in [""] + sorted(files) + dirs:
            p = os.path.join(root, name) if name else root
            s = os.lstat(p)
            if LANDLOCK:
                h.update(repr((p, stat.S_IFMT(s.st_mode), s.st_ino,
                               s.st_nlink)).encode())
            else:
                h.update(repr((p, s.st_mode, s.st_uid, s.st_gid, s.st_nlink,
                               s.st_mtime_ns if not stat.S_ISFIFO(s.st_mode)
                               and not stat.S_ISSOCK(s.st_mode)
                               else 0)).encode())
            if stat.S_ISLNK(s.st_mode):
                h.update(os.readlink(p).encode())
            elif stat.S_ISREG(s.st_mode):
                h.update(open(p, "rb").read())
                if not LANDLOCK:
                    h.update(repr(sorted(os.listxattr(p))).encode())
    return h.hexdigest()


class Outside:
    """The host's side of the test: made once per file, checked per attempt."""

    def __init__(self):
        base = os.environ.get("PALE_TEST_BASE") or (
            "/srv" if os.geteuid() == 0 else os.environ["HOME"])
        self.top = tempfile.mkdtemp(prefix="pale-escape.", dir=base)
        os.chmod(self.top, 0o755)
        self.out = self.top + "/out"
        self.w = self.top + "/w"
        self.home = self.top + "/home"
        for d in (self.out + "/sub", self.w, self.home):
            os.makedirs(d)
        for p in (self.out + "/f", self.out + "/sub/f"):
            with open(p, "w") as f:
                f.write("keep\n")
            os.chmod(p, 0o666)
        for d in (self.out, self.out + "/sub"):
            os.chmod(d, 0o777)
        self.hits = []
        self.sockets = []
        self._serve(socket.SOCK_STREAM, self.out + "/stream.sock")
        self._serve(socket.SOCK_SEQPACKET, self.out + "/seq.sock")
        self._serve(socket.SOCK_DGRAM, self.out + "/dgram.sock")
        self.abstract = "pale-escape-%d" % os.getpid()
        self._serve(socket.SOCK_STREAM, "\0" + self.abstract)
        self._serve(socket.SOCK_DGRAM, "\0" + self.abstract + "-d")
        os.mkfifo(self.out + "/fifo")
        os.chmod(self.out + "/fifo", 0o666)
        self.fifo = os.open(self.out + "/fifo", os.O_RDONLY | os.O_NONBLOCK)
        self.victim = subprocess.Popen(["sleep", "100000"])
        self.env = dict(os.environ, T_OUT=self.out, T_W=self.w,
                        T_PID=str(self.victim.pid), T_HOME=self.home,
                        T_ABSTRACT=self.abstract,
                        XDG_STATE_HOME=self.top + "/state",
                        XDG_CONFIG_HOME=self.top + "/config")
        self.before = fingerprint(self.out)
        self.mounts = self._mounts()
        self.passed = self.failed = 0

    def _mounts(self):
        """The host's, without what other tests mount beside this one."""
        beside = "/" + self.top.split("/")[1] + "/"
        with open("/proc/self/mountinfo") as f:
            lines = [l.split(" ", 5) for l in f if "fuse" not in l]
        return {" ".join(l[3:]) for l in lines
                if l[4].startswith(self.top) or not l[4].startswith(beside)}

    def _serve(self, kind, address):
        s = socket.socket(socket.AF_UNIX, kind)
        s.bind(address)
        if address[0] != "\0":
            os.chmod(address, 0o777)
        self.sockets.append(s)
        if kind != socket.SOCK_DGRAM:
            s.listen(64)

        def loop():
            while True:
                try:
                    if kind == socket.SOCK_DGRAM:
                        s.recv(64)
                    else:
                        s.accept()[0].close()
                except OSError:
                    return
                self.hits.append(address)
        threading.Thread(target=loop, daemon=True).start()

    def fresh_workspace(self):
        subprocess.run(["chmod", "-R", "u+rwx", self.w],
                       stderr=subprocess.DEVNULL, check=False)
        for name in os.listdir(self.w):
            p = os.path.join(self.w, name)
            if os.path.isdir(p) and not os.path.islink(p):
                shutil.rmtree(p, ignore_errors=True)
            else:
                os.unlink(p)

    def run(self, code, mode="workspace-write", options=(), **kw):
        via = [NONAMESPACES] if LANDLOCK else []
        if LANDLOCK and mode == "workspace-write":
            options = ("--protect", "none", *options)
        return subprocess.run(
            [*via, PALE, "run", "-q", "-m", mode, "-w", kw.pop("w", self.w),
             *options, "--", "python3", "-c", PRELUDE + code],
            env=kw.pop("env", self.env), cwd=kw.pop("cwd", self.w),
            stdin=kw.pop("stdin", subprocess.DEVNULL), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace",
            timeout=120, **kw)

    def changes(self):
        """What landed outside, as a list of words; empty is right."""
        bad = []
        if fingerprint(self.out) != self.before:
            bad.append("the outside tree changed")
            self.before = fingerprint(self.out)
        if self.hits:
            bad.append("a host service was reached: %r" % self.hits)
            self.hits.clear()
        try:
            if os.read(self.fifo, 100):
                bad.append("the host's FIFO got bytes")
        except BlockingIOError:
            pass
        if self.victim.poll() is not None:
            bad.append("the outside process died")
            self.victim = subprocess.Popen(["sleep", "100000"])
        changed = self._mounts() ^ self.mounts
        if changed:
            bad.append("the host's mounts changed: %r" % sorted(changed)[:3])
        return bad

    def verdict(self, name, bad, text=""):
        if bad:
            self.failed += 1
            print("FAIL %s: %s | %s" % (name, "; ".join(bad), text[-300:]))
        else:
            self.passed += 1
            print("PASS %s" % name)
        sys.stdout.flush()

    def attempt(self, name, code, check=None, **kw):
        """Runs one attempt and takes the proof."""
        if LANDLOCK and name in NOT_ALONE:
            print("NOT TRIED %s" % name)
            return
        self.fresh_workspace()
        try:
            r = self.run(code + "\nprint('attempted')\n", **kw)
            text = r.stdout
        except subprocess.TimeoutExpired:
            self.verdict(name, ["it hangs"])
            return
        bad = self.changes()
        if "attempted" not in text:
            bad.append("nothing was tried (exit %d)" % r.returncode)
        if "ESCAPED" in text:
            bad.append("it says so itself")
        if check:
            bad += [c for c in [check(text)] if c]
        self.verdict(name, bad, text)

    def done(self):
        self.victim.kill()
        self.victim.wait()
        os.close(self.fifo)
        for s in self.sockets:
            s.close()
        self.fresh_workspace()
        shutil.rmtree(self.top, ignore_errors=True)
        print("%d passed, %d failed" % (self.passed, self.failed))
        sys.exit(1 if self.failed else 0)


def root():
    return os.geteuid() == 0


signal.signal(signal.SIGTERM, lambda *a: sys.exit(1))
