# For the tests of what an agent asks of terminals (i_term_wait*, i_term_run*):
# one connection to the world's socket, requests that may wait, and the world
# stopped in the end.  A test that fails says so and what it got.
import atexit, glob, json, os, socket, subprocess, sys, time

PALE = os.environ['PALE']
FACTOR = float(os.environ.get('TIME_FACTOR', '1'))


def pale(*args, check=True, **more):
    r = subprocess.run([PALE, *args], capture_output=True, **more)
    if check and r.returncode:
        die('pale %s exited %d: %s' % (' '.join(args), r.returncode, r.stderr.decode()))
    return r.stdout.decode(errors='replace')


def die(*what):
    print('FAIL:', *what, file=sys.stderr)
    import traceback
    traceback.print_stack(limit=4)
    sys.exit(1)


@atexit.register
def stop():
    while subprocess.run([PALE, 'world', 'stop'], capture_output=True).returncode == 0:
        pass


def new(name, *cmd, size='80x24', env=()):
    """A terminal; the first makes the world."""
    more = [x for e in env for x in ('--env', e)]
    return pale('term', 'new', '-q', '-d', '-m', 'workspace-write', '--name', name, '--size', size, *more, '--', *cmd).strip()


class Agent:
    def __init__(self, role='agent'):
        world = json.loads(pale('world', 'show', '--json'))['id']
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect('%s/pale/worlds/%s/sock' % (os.environ['XDG_RUNTIME_DIR'], world))
        self.held, self.last, self.got = b'', 0, {}
        self.ask('hello', protocol=1, client='asks.py', role=role)

    def begin(self, method, **params):
        self.last += 1
        line = json.dumps({'jsonrpc': '2.0', 'id': self.last, 'method': method, 'params': params})
        self.sock.sendall(line.encode() + b'\n')
        return self.last

    def end(self, number, seconds=60):
        self.sock.settimeout(seconds * FACTOR)
        while number not in self.got:
            while b'\n' not in self.held:
                try:
                    some = self.sock.recv(1 << 20)
                except TimeoutError:
                    die('no answer to request', number)
                if not some:
                    die('the connection ended')
                self.held += some
            line, self.held = self.held.split(b'\n', 1)
            message = json.loads(line)
            self.got[message.get('id')] = message
        return self.got.pop(number)

    def ask(self, method, **params):
        message = self.end(self.begin(method, **params))
        if 'error' in message:
            die(method, params, 'failed:', message['error'])
        return message['result']

    def refused(self, code, method, **params):
        message = self.end(self.begin(method, **params))
        if message.get('error', {}).get('data', {}).get('code') != code:
            die(method, params, 'is not', code, 'but', message)
        return message['error']['message']

    def send(self, id, data='', **more):
        return self.ask('term.send', id=id, data=data, **more)

    def wait(self, id, *conditions, **more):
        return self.ask('term.wait', id=id, **{'for': list(conditions)}, **more)

    def run(self, id, command, **more):
        return self.ask('term.run', id=id, command=command, **more)

    def screen(self, id):
        return self.ask('term.screen', id=id)['screen']


def same(got, **want):
    """The members of an answer that are named."""
    for key, value in want.items():
        if got.get(key) != value:
            die('%s: got %r, want %r in %r' % (key, got.get(key), value, got))
    return got


def has(text, part):
    if part not in text:
        die('no %r in %r' % (part, text))


def has_not(text, part):
    if part in text:
        die('there is %r in %r' % (part, text))


def took(began, least, most):
    seconds = time.time() - began
    if seconds < least - 0.01 or seconds > most * FACTOR:
        die('it took %.3f s, not %s to %s' % (seconds, least, most))
