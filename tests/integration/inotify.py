# SPDX-License-Identifier: MIT
"""inotify by hand: what is told inside of what is done outside.

inotify.py inside PATH...      watches directories (and what is made in them) and
                               files; a line for each event, with the time;
                               until stdin ends
inotify.py outside FILE TOP    changes what is below TOP, one thing at a time,
                               and waits for the lines of the other in FILE
inotify.py storm FILE TOP N    changes N things at once, and waits for the last
"""
import ctypes
import os
import re
import select
import struct
import sys
import time

BITS = {0x2: "MODIFY", 0x4: "ATTRIB", 0x8: "CLOSE_WRITE", 0x40: "MOVED_FROM", 0x80: "MOVED_TO", 0x100: "CREATE",
        0x200: "DELETE", 0x400: "DELETE_SELF", 0x4000: "OVERFLOW", 0x40000000: "ISDIR"}
WANTED = 0x7ce


def inside(paths):
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_NONBLOCK)
    watches = {}
    top = os.path.dirname(paths[0])

    def add(path):
        wd = libc.inotify_add_watch(fd, os.fsencode(path), WANTED)
        if wd >= 0:
            watches[wd] = path
        elif path in paths:
            sys.exit("cannot watch %s: %s" % (path, os.strerror(ctypes.get_errno())))

    for path in paths:
        add(path)
    print("ready", flush=True)
    while True:
        ready = select.select([fd, 0], [], [])[0]
        if 0 in ready and not os.read(0, 1):
            return
        if fd not in ready:
            continue
        data, at = os.read(fd, 1 << 20), 0
        now = time.monotonic()
        while at < len(data):
            wd, mask, cookie, length = struct.unpack_from("iIII", data, at)
            name = os.fsdecode(data[at + 16:at + 16 + length].rstrip(b"\0"))
            at += 16 + length
            bits = [text for bit, text in BITS.items() if mask & bit]
            if not bits:
                continue
            where = watches.get(wd, "?")
            path = os.path.join(where, name) if name else where + "/"
            print("%.6f %d %s %s" % (now, cookie, "+".join(bits), os.path.relpath(path, top) if name else
                                     os.path.relpath(where, top) + "/"))
            if mask & 0x40000180 == 0x40000100 or mask & 0x40000180 == 0x40000080:
                add(path)
        sys.stdout.flush()


def lines(file):
    """(time, cookie, bits, path) of each event."""
    found = []
    for line in open(file).read().splitlines():
        word = line.split(" ", 3)
        if len(word) == 4:
            found.append((float(word[0]), word[1], word[2], word[3]))
    return found


def write(path, text, flags=os.O_CREAT):
    fd = os.open(path, os.O_WRONLY | flags, 0o644)
    os.write(fd, text)
    os.close(fd)


def save(path):
    write(path + "~tmp", b"saved")
    os.rename(path + "~tmp", path)


def outside(file, top):
    base = os.path.basename(top)
    took = []

    def step(what, change, *expected):
        """Each of `expected` comes, in that order; "BITS path"."""
        seen = len(lines(file))
        start = time.monotonic()
        change()
        deadline = start + 10
        while True:
            got = lines(file)[seen:]
            left = list(expected)
            for event in got:
                if left and re.fullmatch(left[0], event[2] + " " + event[3]):
                    left.pop(0)
            if not left:
                break
            if time.monotonic() > deadline:
                sys.exit("%s: '%s' did not come after %s" % (what, left[0], [e[2] + " " + e[3] for e in got]))
            time.sleep(0.002)
        last = [e[0] for e in got if any(re.fullmatch(x, e[2] + " " + e[3]) for x in expected)]
        took.append((max(last) - start, what))
        # Let the rest come: it belongs to this step.
        time.sleep(0.06)
        return lines(file)[seen:]

    def path(name):
        return os.path.join(top, name)

    def event(bits, name):
        return re.escape(bits + " " + os.path.join(base, name))

    step("modify", lambda: write(path("f"), b"x", os.O_APPEND), event("MODIFY", "f"), event("CLOSE_WRITE", "f"))
    step("modify itself", lambda: write(path("f"), b"x", os.O_APPEND), event("MODIFY", "f/"))
    step("chmod", lambda: os.chmod(path("f"), 0o600), event("ATTRIB", "f"))
    step("utimes", lambda: os.utime(path("f"), (5, 5)), event("ATTRIB", "f"))
    step("truncate", lambda: os.truncate(path("f"), 0), event("MODIFY", "f"))
    step("create", lambda: write(path("n"), b"n"), event("CREATE", "n"), event("MODIFY", "n"))
    step("symlink", lambda: os.symlink("nowhere", path("l")), event("CREATE", "l"))
    step("fifo", lambda: os.mkfifo(path("p")), event("CREATE", "p"))
    step("link", lambda: os.link(path("n"), path("n2")), event("CREATE", "n2"))
    step("mkdir", lambda: os.mkdir(path("d")), event("CREATE+ISDIR", "d"))
    step("in a new directory", lambda: write(path("d/x"), b""), event("CREATE", "d/x"))
    step("mkdir in it", lambda: os.mkdir(path("d/e")), event("CREATE+ISDIR", "d/e"))
    step("deeper", lambda: write(path("d/e/y"), b"y"), event("CREATE", "d/e/y"))
    step("nested", lambda: write(path("s/t/u/g"), b"x", os.O_APPEND), event("MODIFY", "s/t/u/g"))
    step("chmod of a directory", lambda: os.chmod(path("d"), 0o700), event("ATTRIB+ISDIR", "d"))
    for what, old, new in (("rename", "n", "m"), ("rename to a directory", "m", "d/m")):
        got = step(what, lambda old=old, new=new: os.rename(path(old), path(new)),
                   event("MOVED_FROM", old), event("MOVED_TO", new))
        cookies = {e[1] for e in got if e[2].startswith("MOVED")}
        if len(cookies) != 1 or cookies == {"0"}:
            sys.exit("%s: no pair: %s" % (what, got))
    step("rename of a directory", lambda: os.rename(path("d"), path("dd")),
         event("MOVED_FROM+ISDIR", "d"), event("MOVED_TO+ISDIR", "dd"))
    step("moved away", lambda: os.rename(path("n2"), top + ".n2"), event("DELETE", "n2"))
    step("moved here", lambda: os.rename(top + ".n2", path("n2")), event("CREATE", "n2"))
    step("save by rename", lambda: save(path("r")), event("MOVED_TO", "r"), event("DELETE_SELF", "r/"))
    step("unlink", lambda: os.unlink(path("n2")), event("DELETE", "n2"))
    step("unlink itself", lambda: os.unlink(path("f")), event("DELETE", "f"))
    step("the symlink", lambda: os.unlink(path("l")), event("DELETE", "l"))
    step("made again", lambda: write(path("f"), b"f"), event("CREATE", "f"))

    def clear():
        for name in ("m", "x", "e/y"):
            os.unlink(path("dd/" + name))
        os.rmdir(path("dd/e"))
        os.rmdir(path("dd"))

    step("all of a directory", clear, event("DELETE+ISDIR", "dd"))
    took.sort()
    print("events after %.1f ms (median), %.1f ms (%s)" %
          (took[len(took) // 2][0] * 1e3, took[-1][0] * 1e3, took[-1][1]))
    factor = float(os.environ.get("TIME_FACTOR", "1"))
    # The goal, and where the machine is busy five times that for most of them.
    if took[len(took) // 2][0] > 0.1 * factor or took[len(took) * 9 // 10][0] > 0.5 * factor:
        sys.exit("late: %s" % (took[-5:],))


def storm(file, top, n):
    for i in range(n):
        write(os.path.join(top, "storm", "f%d" % (i % 2000)), b"x" * (i % 7))
    write(os.path.join(top, "last"), b"")
    deadline = time.monotonic() + 30
    while not any(e[3].endswith("/last") for e in lines(file)):
        if time.monotonic() > deadline:
            sys.exit("the last change was not told")
        # What comes while the queue is full is not told: this is told later.
        write(os.path.join(top, "last"), b"")
        time.sleep(0.05)
    print("%d events of %d changes" % (len(lines(file)), n))


if sys.argv[1] == "inside":
    inside(sys.argv[2:])
elif sys.argv[1] == "outside":
    outside(sys.argv[2], sys.argv[3])
else:
    storm(sys.argv[2], sys.argv[3], int(sys.argv[4]))
