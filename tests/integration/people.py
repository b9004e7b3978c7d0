# For the tests of attached people (i_attach_*): a person is a tty of our own
# with `pale term attach` on it.  What it shows is kept; $PALE_TOOLS/vtrun makes
# a screen of it where there is one.
import fcntl, json, os, pty, re, select, signal, struct, subprocess, sys, termios, time

PALE = os.environ['PALE']
TOOLS = os.environ.get('PALE_TOOLS', '')
FACTOR = float(os.environ.get('TIME_FACTOR', '1'))


def on_exception(*what):
    sys.__excepthook__(*what)
    die('an exception')


sys.excepthook = on_exception


def die(text):
    print('FAIL:', text, file=sys.stderr)
    for person in Tty.all:
        if person.pid:
            print('--- a person saw', person.seen[-1500:], file=sys.stderr)
            person.kill()
    subprocess.run([PALE, 'world', 'stop'], capture_output=True)
    sys.exit(1)


def pale(*args, check=True, **more):
    r = subprocess.run([PALE, *args], capture_output=True, **more)
    if check and r.returncode:
        die('pale %s exited %d: %s' % (' '.join(args), r.returncode, r.stderr.decode()))
    return r.stdout.decode(errors='replace')


def warden():
    """The process of the workspace's world."""
    return json.loads(pale('world', 'show', '--json'))['pid']


def until(what, condition, seconds=10):
    end = time.time() + seconds * FACTOR
    while not condition():
        if time.time() > end:
            die('not within %d s: %s' % (seconds, what))
        for person in Tty.all:
            for _ in range(500):
                if not person.look(0):
                    break
        time.sleep(0.01)


def new(name, *cmd, size='80x24'):
    return pale('term', 'new', '-q', '-d', '-m', 'workspace-write', '--name', name, '--size', size, '--', *cmd).strip()


def has_model():
    return os.access(TOOLS + '/vtrun', os.X_OK)


def same_screen(person, name):
    """What a person sees becomes what the terminal shows."""
    if has_model():
        until('a person sees the screen of ' + name, lambda: person.shows() == screen(name))


def screen(name):
    return pale('term', 'screen', name)


def status(name):
    return pale('term', 'status', name).strip()


def raw(name):
    return subprocess.run([PALE, 'term', 'read', '-q', name, '--cursor', '0'], capture_output=True).stdout


class Tty:
    all = []

    def __init__(self, argv, cols=80, rows=24, env=None):
        self.seen = b''
        self.size = (cols, rows)
        self.status = None
        self.master, self.slave = pty.openpty()
        self.resize(cols, rows)
        self.before = termios.tcgetattr(self.slave)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
                for fd in range(3):
                    os.dup2(self.slave, fd)
                os.closerange(3, 256)
                os.environ['TERM'] = 'xterm-256color'
                os.environ.update(env or {})
                os.execvp(argv[0], argv)
            finally:
                os._exit(127)
        Tty.all.append(self)

    def look(self, timeout=0.02):
        if not select.select([self.master], [], [], timeout)[0]:
            return 0
        try:
            data = os.read(self.master, 1 << 16)
        except OSError:
            return 0
        self.seen += data
        return len(data)

    def sees(self, text, seconds=10):
        text = text if isinstance(text, bytes) else text.encode()
        end = time.time() + seconds * FACTOR
        while text not in self.seen:
            if time.time() > end:
                die('a person does not see %r' % text)
            self.look()
        return self

    def quiet(self, seconds=0.3):
        last = time.time()
        while time.time() - last < seconds:
            if self.look(0.02):
                last = time.time()
        return self

    def forget(self):
        self.seen = b''
        return self

    def type(self, keys):
        os.write(self.master, keys if isinstance(keys, bytes) else keys.encode())
        return self

    def resize(self, cols, rows):
        self.size = (cols, rows)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack('HHHH', rows, cols, 0, 0))

    def signal(self, number):
        os.kill(self.pid, number)
        return self

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def same_modes(self):
        return termios.tcgetattr(self.slave) == self.before

    def ended(self):
        if self.pid:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                self.status = os.waitstatus_to_exitcode(status)
        return not self.pid

    def ends(self, want, seconds=10):
        until('the end of a person', self.ended, seconds)
        self.look(0)
        if self.status != want:
            die('a person exited %d, not %d' % (self.status, want))
        if not self.same_modes():
            die('the modes of a tty are not as they were')
        return self

    def kill(self):
        try:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
        except OSError:
            pass
        self.pid = 0

    def close(self):
        if self.pid:
            self.kill()
        Tty.all.remove(self)
        os.close(self.master)
        os.close(self.slave)

    def shows(self):
        """Its screen, as lines of text; of much, from a painting on."""
        if len(self.seen) > 1 << 17:
            self.seen = self.seen[max(0, self.seen.rfind(b'\x1b[?2026h\x1b[?25l')):]
        r = subprocess.run([TOOLS + '/vtrun', '-s', '%dx%d' % self.size, '-f', 'text'], input=self.seen,
                           capture_output=True)
        return r.stdout.decode(errors='replace')


class Person(Tty):
    def __init__(self, name, *options, cols=80, rows=24, wait=True, **more):
        super().__init__([PALE, 'term', 'attach', *options, name], cols, rows, **more)
        if wait:
            until('a person is attached', self.is_attached)

    def is_attached(self):
        self.look(0)
        return self.is_raw() and len(self.seen) > self.size[1] + 10

    def detach(self):
        return self.type('\x1cd').ends(0)


def finish():
    for person in list(Tty.all):
        person.close()
    pale('world', 'stop', check=False)
    print('ok')
