# SPDX-License-Identifier: MIT
"""Trees to work on: a git repository, a C project, a node_modules, an archive.
The same on every run."""
import os
import random
import subprocess

WORDS = ("state value node list frame buffer index table value cache count "
         "return static const struct while break import export default "
         "function render update effect props client server request").split()


def text(rng, size):
    lines, length = [], 0
    while length < size:
        line = " ".join(rng.choices(WORDS, k=8))
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines) + "\n"


def put(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(content)


def git(repo, *argv):
    subprocess.run(["git", "-C", repo, "-c", "gc.auto=0", *argv], check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def source_name(i):
    return "src/m%d/p%d/f%d.js" % (i // 400, i // 20, i)


def repository(repo, files):
    """So many files, twenty a directory; 20 commits, and a branch `other` that
    differs in 100 files.  One file of a hundred holds the word NEEDLE."""
    rng = random.Random(1)
    pool = [text(rng, size) for size in (400, 800, 1500, 3000, 6000) * 20]
    for i in range(files):
        head = "NEEDLE\n" if i % 100 == 0 else ""
        put("%s/%s" % (repo, source_name(i)),
            "%s// %d\n%s" % (head, i, pool[i % len(pool)]))
    git(repo, "init", "-q", "-b", "main", "--template=", ".")
    git(repo, "config", "gc.auto", "0")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "all")
    for n in range(20):
        for i in range(n * 7, files, max(files // 10, 1)):
            with open("%s/%s" % (repo, source_name(i)), "a",
                      encoding="utf-8") as f:
                f.write("// change %d\n" % n)
        git(repo, "commit", "-q", "-a", "-m", "change %d" % n)
    git(repo, "checkout", "-q", "-b", "other")
    for i in range(0, files, max(files // 100, 1)):
        put("%s/%s" % (repo, source_name(i)), "other %d\n" % i)
    git(repo, "commit", "-q", "-a", "-m", "other")
    git(repo, "checkout", "-q", "main")
    git(repo, "repack", "-q", "-a", "-d")


def archive(tar, repo, files):
    names = "\n".join(source_name(i) for i in range(files))
    subprocess.run(["tar", "cf", tar, "-C", repo, "-T", "-"], check=True,
                   input=names.encode())


def modules(top, packages):
    """Eight files a package, some packages in scopes, links in .bin."""
    rng = random.Random(2)
    for i in range(packages):
        where = "%s/%s" % (top, "@s%d/p%d" % (i % 9, i) if i % 3 else "p%d" % i)
        put(where + "/package.json", '{"name": "p%d"}\n' % i)
        for name in ("README.md", "LICENSE", "index.js", "lib/a.js", "lib/b.js",
                     "dist/esm/index.js", "dist/types/index.d.ts"):
            put("%s/%s" % (where, name), text(rng, rng.choice((300, 2000))))
    os.mkdir(top + "/.bin")
    for i in range(0, packages, 10):
        os.symlink("../p%d/index.js" % i, "%s/.bin/p%d" % (top, i))


def project(top, units):
    """A program of so many sources, each with a header that all include some
    of."""
    rules = ["OBJS := %s" % " ".join("f%d.o" % i for i in range(units)),
             "all: program", "program: $(OBJS)", "\t$(CC) -o $@ $(OBJS)",
             "%.o: %.c", "\t$(CC) -pipe -O1 -c -o $@ $<",
             "clean:", "\trm -f program $(OBJS)"]
    put(top + "/Makefile", "\n".join(rules) + "\n")
    for i in range(units):
        near = [(i + k) % units for k in range(1, 6)]
        put("%s/f%d.h" % (top, i), "int f%d(int x);\n" % i)
        body = ["#include <stdio.h>", "#include <stdlib.h>",
                "#include <string.h>"]
        body += ['#include "f%d.h"' % k for k in near]
        body += ["static int s%d(int x) { return x %% %d ? x * 3 : x / 2; }"
                 % (k, k + 2) for k in range(20)]
        body += ["int f%d(int x)" % i, "{", "\tif (x <= 0)", "\t\treturn 0;",
                 "\treturn f%d(x - 1) + %s;" % (
                     near[0], " + ".join("s%d(x)" % k for k in range(20))), "}"]
        if i == 0:
            body.append('int main(void) { printf("%d\\n", f0(9)); return 0; }')
        put("%s/f%d.c" % (top, i), "\n".join(body) + "\n")
