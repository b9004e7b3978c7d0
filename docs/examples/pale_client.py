#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A client of a world's socket in a hundred lines; docs/PROTOCOL.md is the text to it.

    world = Pale.connect("/path/of/a/workspace")        # pale exec, job … make one
    print(world.call("world.show")["mode"])
    status = world.run(["make", "-j2"], cwd="/path/of/a/workspace")
    for note in world.notes():                          # after a …subscribe
        print(note["method"], note["params"])

Over ssh, or from anywhere: Pale(subprocess.Popen(["pale", "stdio"], …)).
"""
import array
import glob
import json
import os
import re
import socket
import sys


class PaleError(Exception):
    def __init__(self, error):
        super().__init__(error["message"])
        self.number = error["code"]
        self.data = error.get("data", {})
        self.code = self.data.get("code")       # what programs look at


def encode(text):
    """Any bytes as JSON text: what is not UTF-8 becomes \\xHH."""
    raw = os.fsencode(text).replace(b"\\x", b"\\x5cx")
    return raw.decode("utf-8", "backslashreplace")


def decode(text):
    """The bytes again."""
    return re.sub(rb"\\x([0-9a-fA-F]{2})", lambda m: bytes([int(m[1], 16)]), text.encode())


class Pale:
    def __init__(self, reader, writer, sock=None, role="operator"):
        self.reader, self.writer, self.sock = reader, writer, sock
        self.last_id, self.pending = 0, []
        self.hello = self.call("hello", {"protocol": 1, "role": role,
                                         "client": os.path.basename(sys.argv[0])})

    @classmethod
    def connect(cls, workspace, session="default", role="operator"):
        """The oldest living world of this workspace and session."""
        runtime = os.environ.get("XDG_RUNTIME_DIR")
        runtime = (runtime + "/pale" if runtime else
                   "/run/pale" if os.geteuid() == 0 else "/tmp/pale-%d" % os.geteuid())
        found = []
        for path in glob.glob(runtime + "/worlds/*/info.json"):
            with open(path) as file:
                info = json.load(file)
            if (info["workspace"] == encode(os.path.realpath(workspace)) and
                    info["session"] == session and info["kind"] != "run"):
                found.append((info["started"], os.path.dirname(path)))
        if not found:
            raise FileNotFoundError("no world of '%s'" % workspace)
        sock = socket.socket(socket.AF_UNIX)
        # A socket's address is short, a runtime directory may be long.
        directory = os.open(min(found)[1], os.O_PATH)
        sock.connect("/proc/self/fd/%d/sock" % directory)
        os.close(directory)
        return cls(sock.makefile("rb"), sock.makefile("wb"), sock, role)

    def send(self, method, params=None, fds=()):
        self.last_id += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self.last_id, "method": method,
                           "params": params or {}}).encode() + b"\n"
        if fds:     # descriptors ride on the first byte of their request
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))
            self.sock.sendmsg([line[:1]], [rights])
            line = line[1:]
        self.writer.write(line)
        self.writer.flush()
        return self.last_id

    def read(self):
        line = self.reader.readline()
        if not line:
            raise ConnectionResetError("the world has ended")
        return json.loads(line)

    def call(self, method, params=None, fds=()):
        want = self.send(method, params, fds)
        while True:
            message = self.read()
            if "id" not in message:
                self.pending.append(message)
            elif message["id"] in (want, None):
                if "error" in message:
                    raise PaleError(message["error"])
                return message["result"]

    def notes(self):
        while True:
            yield self.pending.pop(0) if self.pending else self.read()

    def run(self, argv, cwd, fds=(0, 1, 2), **more):
        """A command in the world; the answer tells how it ended and what it was refused."""
        env = [encode("%s=%s" % item) for item in os.environ.items()]
        return self.call("run.exec", {"argv": [encode(a) for a in argv], "env": env,
                                      "cwd": encode(cwd), **more}, fds)


if __name__ == "__main__":
    here = os.getcwd()
    end = Pale.connect(here).run(sys.argv[1:] or ["true"], here)
    sys.exit(end["exit_code"] if end["signal"] is None else 128 + end["signal"])
