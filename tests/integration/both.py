# Work on files that another process works on, perhaps across the border.
#
#	both.py sqlite PATH WHO ROWS [SECONDS]   inserts rows; "ok N" or "refused N: WHY"
#	both.py append PATH WHO LINES            appends lines of many lengths
#	both.py count KIND HOW PATH N            adds 1 N times under a lock
#	both.py hold PATH                        keeps a database open till stdin ends
#	both.py mapped PATH                      a mapping sees the other side, and is seen
#	both.py circle PATH N                    two processes lock two bytes crosswise
# KIND: posix ofd flock; HOW: rw (pread, pwrite) or map (a shared mapping).
import errno, fcntl, mmap, os, sqlite3, struct, sys


def sqlite(path, who, rows, seconds="30"):
    done = 0
    try:
        db = sqlite3.connect(path, isolation_level=None, timeout=float(seconds))
        for i in range(int(rows)):
            db.execute("begin immediate")
            n = db.execute("select count(*) from t").fetchone()[0]
            db.execute("insert into t values (?, ?, ?)", (who, i, n))
            db.execute("commit")
            done += 1
    except sqlite3.Error as e:
        print("refused %d: %s" % (done, e))
        return
    print("ok", done)


def append(path, who, lines):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for i in range(int(lines)):
        os.write(fd, b"%s %d %s\n" % (who.encode(), i, b"x" * (i * 37 % 5000)))


def lock(fd, kind, on):
    if kind == "flock":
        fcntl.flock(fd, fcntl.LOCK_EX if on else fcntl.LOCK_UN)
        return
    kinds = {"posix": fcntl.F_SETLKW, "ofd": 38}
    fcntl.fcntl(fd, kinds[kind], struct.pack(
        "hhqqi4x", fcntl.F_WRLCK if on else fcntl.F_UNLCK, 0, 0, 1, 0))


def count(kind, how, path, n):
    fd = os.open(path, os.O_RDWR)
    m = mmap.mmap(fd, 4096) if how == "map" else None
    for i in range(int(n)):
        lock(fd, kind, True)
        if m:
            m[0:8] = struct.pack("q", struct.unpack("q", m[0:8])[0] + 1)
        else:
            was = struct.unpack("q", os.pread(fd, 8, 0))[0]
            os.pwrite(fd, struct.pack("q", was + 1), 0)
        lock(fd, kind, False)


def hold(path):
    db = sqlite3.connect(path, isolation_level=None)
    print(db.execute("select count(*) from t").fetchone()[0], flush=True)
    sys.stdin.read()


def mapped(path):
    fd = os.open(path, os.O_RDWR)
    m = mmap.mmap(fd, 4096)
    assert m[0] == 0
    print("mapped", flush=True)
    while m[0] != 65:
        pass
    m[1] = 66
    m.flush()
    print("seen", flush=True)
    sys.stdin.read()


def byte(fd, at):
    fcntl.fcntl(fd, fcntl.F_SETLKW,
                struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, at, 1, 0))


def circle(path, n):
    told = 0
    for i in range(int(n)):
        a, b = os.pipe(), os.pipe()
        pid = os.fork()
        mine, other = (0, 1) if pid else (1, 0)
        fd = os.open(path, os.O_RDWR)
        byte(fd, mine)
        os.write((a if pid else b)[1], b".")
        os.read((b if pid else a)[0], 1)
        try:
            byte(fd, other)
            got = 0
        except OSError as e:
            assert e.errno == errno.EDEADLK, e
            got = 1
        os.close(fd)
        if not pid:
            os._exit(got)
        told += got + os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        for p in a + b:
            os.close(p)
    print(told)


globals()[sys.argv[1]](*sys.argv[2:])
