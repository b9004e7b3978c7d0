# SPDX-License-Identifier: MIT
"""Which FUSE requests the kernel sends, counted by its own tracepoint: root
and tracefs are needed, and a kernel with that event."""
import collections
import os
import re
import subprocess
import tempfile

EVENT = re.compile(r"connection (\d+) req \d+ opcode \d+ \((?:FUSE_)?(\w+)\)")


def device_of(mountpoint):
    """The device of a mount that is there in some process's namespace only."""
    for pid in os.listdir("/proc"):
        if not pid.isdigit():
            continue
        try:
            with open("/proc/%s/mountinfo" % pid, encoding="utf-8") as f:
                lines = [line.split() for line in f]
        except OSError:
            continue
        for words in lines:
            if words[4] == mountpoint and "fuse.pale" in words:
                return int(words[2].split(":")[1])
    return None


class Requests:
    """Counts in a buffer of its own, so that no other tracing is disturbed."""

    def __init__(self):
        self.fs = tempfile.mkdtemp(prefix="pale-tracefs.")
        subprocess.run(["mount", "-t", "tracefs", "nodev", self.fs], check=True)
        self.dir = "%s/instances/pale-%d" % (self.fs, os.getpid())
        os.mkdir(self.dir)
        self.set("buffer_size_kb", "65536")
        self.set("events/fuse/fuse_request_send/enable", "1")

    def set(self, name, value):
        with open("%s/%s" % (self.dir, name), "w", encoding="utf-8") as f:
            f.write(value)

    def clear(self):
        self.set("trace", "")

    def count(self, device):
        """What was sent since the last clear(), the most frequent first."""
        kinds = collections.Counter()
        with open(self.dir + "/trace", encoding="utf-8") as f:
            for line in f:
                found = EVENT.search(line)
                if found and int(found.group(1)) == device:
                    kinds[found.group(2)] += 1
        return kinds.most_common()

    def close(self):
        self.set("events/fuse/fuse_request_send/enable", "0")
        os.rmdir(self.dir)
        subprocess.run(["umount", self.fs], check=True)
        os.rmdir(self.fs)
