#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a session changed comes into its source: all of it or nothing.

The oracle is the session's own view, looked at through the overlay before, and the
source afterwards, with find, stat, sha256sum and getfattr in one walk. Sessions are
made by hand (lib/sessions.py), so nothing runs but `apply`.
"""

import json
import os
import random
import re
import shutil
import socket
import stat
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import shim  # noqa: E402
import tap  # noqa: E402
from place import Identity, Place, SANDGLASS, SANITIZED, USER, beside, identities_once, set_id_files  # noqa: E402
from sessions import Session, difference, tree  # noqa: E402
from term import Term  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "30" if not SANITIZED else "5"))  # of one identity
KILLS = int(os.environ.get("KILLS", "200" if not SANITIZED else "20"))  # of all of them
SEED = int(os.environ.get("SEED", "0")) or int(time.time())

# Random changes, made inside: the same script draws for both sides.
CHANGES = r"""
import os, random, shutil
seed, ops = {seed}, {ops}
r = random.Random(seed)
names = [b'a', b'b.txt', b'c d', b'new\nline', b'bad\xff\xfe', b'-x', b'.h', b'\xc3\xa9', b'z' * 200, b"q'\"\\"]
def paths(kind):
    found = []
    for top, dirs, files in os.walk(b'.'):
        found += [os.path.join(top, n) for n in (dirs if kind == 'd' else files)]
    return sorted(found)
def content():
    return r.choice([b'', b'text\n' * r.randrange(9), os.urandom(0) + bytes(r.randrange(256) for _ in range(r.randrange(3000))), b'x' * 70000])
def fresh():
    for _ in range(50):
        p = os.path.join(r.choice([b'.'] + paths('d')), r.choice(names))
        if not os.path.lexists(p) and len(p) < 900:
            return p
def put(p, how='wb'):
    with open(p, how) as f:
        f.write(content())
done = {{}}
for _ in range(ops):
    op = r.choice(['new', 'edit', 'replace', 'remove', 'mkdir', 'rmtree', 'rename', 'link', 'chmod', 'chmoddir', 'deep', 'type', 'renamedir', 'empty'])
    files, dirs, p = paths('f'), paths('d'), fresh()
    try:
        if op == 'new' and p: put(p)
        elif op == 'empty' and p: open(p, 'w').close()
        elif op == 'edit' and files: put(r.choice([f for f in files if not os.path.islink(f)]), 'ab')
        elif op == 'replace' and files and p:
            put(p); os.rename(p, r.choice(files))
        elif op == 'remove' and files: os.unlink(r.choice(files))
        elif op == 'mkdir' and p: os.mkdir(p)
        elif op == 'rmtree' and dirs and r.random() < 0.3: shutil.rmtree(r.choice(dirs))
        elif op == 'rename' and files and p: os.rename(r.choice(files), p)
        elif op == 'renamedir' and dirs and p: os.rename(r.choice(dirs), p)
        elif op == 'link' and p: os.symlink(r.choice(names + [b'/etc/passwd', b'../../out']), p)
        elif op == 'chmod' and files:
            f = r.choice(files)
            if not os.path.islink(f): os.chmod(f, r.choice([0o644, 0o755, 0o600, 0o444, 0o640]))
        elif op == 'chmoddir' and dirs: os.chmod(r.choice(dirs), r.choice([0o755, 0o700, 0o775]))
        elif op == 'deep' and p:
            os.makedirs(os.path.join(p, b'e', b'f')); put(os.path.join(p, b'e', b'g'))
        elif op == 'type' and files and dirs:
            f = r.choice(files + dirs)
            shutil.rmtree(f) if os.path.isdir(f) and not os.path.islink(f) else os.unlink(f)
            r.choice([os.mkdir, put, lambda q: os.symlink(b't', q)])(f)
        else: continue
        done[op] = done.get(op, 0) + 1
    except (OSError, IndexError):
        pass  # EXDEV as a user, a directory into itself
print(repr(done))
"""


class Case:
    """A place with a source of a few files, and one session."""

    def __init__(self, who, owner=None, files=None, **more):
        self.place = Place(who, owner or (Identity("owner", USER) if who.uid == 0 else who))
        os.remove(self.place.probe)
        for path, text in (files or {"a": "one\n", "d/b": "two\n", "d/e/c": "three\n"}).items():
            self.put(path, text)
        self.s = Session(self.place, **more)

    def put(self, path, text, mode=0o644):
        """Somebody on the host writes a file."""
        at = self.place.src
        for part in os.path.dirname(path).split("/"):
            at += "/" + part
            if part and not os.path.isdir(at):
                os.mkdir(at)
                self.place.own(at)
        full = f"{self.place.src}/{path}"
        with open(full, "w", encoding="utf-8") as handle:
            handle.write(text)
        os.chmod(full, mode)
        self.place.own(full)

    def get(self, path):
        try:
            with open(f"{self.place.src}/{path}", encoding="utf-8") as handle:
                return handle.read()
        except OSError:
            return None

    def owners(self):
        return {os.lstat(os.path.join(top, n)).st_uid for top, dirs, files in
                os.walk(self.place.src) for n in dirs + files}

    def json(self, *args, **more):
        done = self.s.apply("--json", *args, **more)
        try:
            return done, json.loads(done.out)
        except ValueError:
            return done, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.place.close()


def attributes(top):
    done = subprocess.run(["getfattr", "-R", "-h", "-P", "-m", "-", "--absolute-names", top],
                          capture_output=True, text=True, check=False)
    return done.stdout


def random_sets(who, copy=False):
    sums, bad = {}, []
    for number in range(ROUNDS if not copy else ROUNDS // 4):
        seed = SEED + number
        with Case(who, files={}) as case:
            drawn = random.Random(seed)
            subprocess.run([*(case.place.owner.prefix if who.uid == 0 else who.prefix), "/usr/bin/python3",
                            "-c", CHANGES.format(seed=seed + 1000, ops=drawn.randrange(10, 60))],
                           cwd=case.place.src, check=True, capture_output=True)
            s = Session(case.place, copy=copy)
            before = tree(case.place.src)
            done = s.does(CHANGES.format(seed=seed, ops=drawn.randrange(5, 60)))
            for op, n in eval(done.stdout).items():
                sums[op] = sums.get(op, 0) + n
            view = s.view() if not copy else tree(f"{s.dir}/copy")
            first = s.apply()
            after = tree(case.place.src)
            again = s.apply()
            if first.status or after != view or again.status or "0 added, 0 modified, 0 deleted" \
                    not in again.out or s.leftovers() or case.owners() - {s.owner[0]} or \
                    attributes(case.place.src) or (not copy and s.view() != view):
                bad.append((seed, str(first), difference(view, after), str(again), difference(view, s.view()) if not copy else 0, s.leftovers(),
                            before == after, case.owners()))
                if len(bad) > 2:
                    break
    tap.note(f"seed {SEED}, {sums}")
    tap.ok(not bad, f"{who.name}: {'copy: ' if copy else ''}random change sets, applied, are the session's view", *bad)


def copies(who):
    random_sets(who, True)


def plain(who):
    with Case(who) as case:
        case.s.does("open('a', 'a').write('more\\n'); import os; os.mkdir('empty'); os.remove('d/b')")
        done, said = case.json()
        tap.ok(done.status == 0 and said.get("ok") and (said["added"], said["modified"], said["deleted"]) == (1, 1, 1)
               and case.get("a") == "one\nmore\n" and os.path.isdir(f"{case.place.src}/empty") and case.get("d/b") is None,
               f"{who.name}: files, an empty directory and a deletion", done)
        tap.ok(said.get("session") == case.s.id and not done.err, f"{who.name}: JSON names the session", done)
        case.s.does("open('a', 'a').write('again\\n')")
        done = case.s.apply()
        tap.ok(done.status == 0 and case.get("a") == "one\nmore\nagain\n" and f"session {case.s.id}" in done.err,
               f"{who.name}: what apply itself wrote is no conflict; the session is named", done)


CONFLICTS = {
    "in place": lambda c: c.put("a", "host\n"),
    "rename over": lambda c: (c.put("a.tmp", "host\n"), os.rename(f"{c.place.src}/a.tmp", f"{c.place.src}/a")),
    "deleted": lambda c: os.remove(f"{c.place.src}/a"),
    "new at the same path": lambda c: c.put("new", "host\n"),
    "a directory against a file": lambda c: (os.mkdir(f"{c.place.src}/new"), c.put("new/x", "host\n")),
    "a mode": lambda c: os.chmod(f"{c.place.src}/a", 0o755),
    "a removed directory is another one": lambda c: (os.remove(f"{c.place.src}/d/e/c"), os.rmdir(f"{c.place.src}/d/e"), os.mkdir(f"{c.place.src}/d/e")),
    "a changed directory was removed": lambda c: shutil.rmtree(f"{c.place.src}/d"),
    "an empty directory against a file": lambda c: os.mkdir(f"{c.place.src}/new"),
    "new in a removed directory": lambda c: c.put("d/e/host", "host\n"),
}


def conflicts(who):
    for name, edit in CONFLICTS.items():
        with Case(who) as case:
            case.s.does("open('a', 'a').write('more\\n'); open('new', 'w').write('session\\n')\n"
                        "open('fine', 'w').write('session\\n'); import shutil; shutil.rmtree('d/e')")
            time.sleep(0.02)
            edit(case)
            before = tree(case.place.src)
            inodes = {p: os.lstat(os.path.join(os.fsencode(case.place.src), bytes.fromhex(p))).st_ctime_ns
                      for p in before}
            done, said = case.json()
            after = tree(case.place.src)
            same = {p: os.lstat(os.path.join(os.fsencode(case.place.src), bytes.fromhex(p))).st_ctime_ns
                    for p in after} == inodes
            tap.ok(done.status == 1 and (said.get("error") or {}).get("code") == "CONFLICT" and before == after
                   and same and not case.s.leftovers(), f"{who.name}: conflict: {name}: nothing is changed", done)
            fine = case.s.apply("fine")
            tap.ok(fine.status == 0 and case.get("fine") == "session\n", f"{who.name}: conflict: {name}: another path can be applied", fine)
    with Case(who) as case:
        case.s.does("for i in range(30): open(f'n{i:02}', 'w').write('s')")
        for i in range(30):
            case.put(f"n{i:02}", "host\n")
        done, said = case.json()
        tap.ok(done.status == 1 and len(said.get("conflicts", [])) == 20 and said["conflict_count"] == 30,
               f"{who.name}: 20 conflicts are named, and how many there are", done)


def merges(who):
    text = "".join(f"line {i}\n" for i in range(30))
    with Case(who, files={"m": text, "x": text, "bin": "\0one"}) as case:
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
        for argv in (["git", "init", "-q"], [*git, "add", "."], [*git, "commit", "-qm", "one"]):
            subprocess.run([*case.place.owner.prefix, *argv], cwd=case.place.src, env=case.place.env(), check=True, capture_output=True)
        head = subprocess.run([*case.place.owner.prefix, "git", "rev-parse", "HEAD"], cwd=case.place.src, env=case.place.env(), capture_output=True, text=True, check=True).stdout.strip()
        s = Session(case.place, head=head)
        s.does("t = open('m').read(); open('m', 'w').write(t.replace('line 2\\n', 'session 2\\n'))\n"
               "open('x', 'w').write(t.replace('line 9\\n', 'session 9\\n'))")
        case.put("m", text.replace("line 25\n", "host 25\n"))
        case.put("x", text.replace("line 9\n", "host 9\n"))
        done = s.apply("--merge", "m")
        tap.ok(done.status == 0 and case.get("m") == text.replace("line 25\n", "host 25\n").replace("line 2\n", "session 2\n"),
               f"{who.name}: --merge takes both sides", done, case.get("m"))
        done = s.apply("--merge")
        got = case.get("x") or ""
        tap.ok(done.status == 1 and "markers: x" in done.err and "<<<<<<< source\nhost 9\n=======\nsession 9\n>>>>>>> session\n" in got,
               f"{who.name}: --merge marks what both changed, names it, status 1", done, got)
        s.does("open('bin', 'wb').write(b'\\0session')")
        case.put("bin", "\0host")
        done = s.apply("--merge", "bin")
        tap.ok(done.status == 1 and "CONFLICT" in done.err and case.get("bin") == "\0host", f"{who.name}: --merge leaves binary files alone", done)


def paths(who):
    with Case(who) as case:
        case.s.does("import os\nfor d in ('p', 'p/q'): os.mkdir(d)\n"
                    "for f in ('p/q/1', 'p/q/2', 'p-3', 'a', 'd/b', 'd/new'): open(f, 'w').write('s')\n"
                    "os.mkfifo('fifo')")
        done = case.s.apply("p/q/1")
        tap.ok(done.status == 0 and case.get("p/q/1") == "s" and case.get("p/q/2") is None and case.get("p-3") is None,
               f"{who.name}: one file, with the directories that it needs", done)
        done = case.s.apply("no/such")
        tap.ok(done.status == 1 and "NOT_FOUND" in done.err and "no/such" in done.err, f"{who.name}: a path without change is named", done)
        done = case.s.apply("p", cwd=f"{case.place.src}")
        tap.ok(done.status == 0 and case.get("p/q/2") == "s" and case.get("p-3") is None and case.get("a") == "one\n", f"{who.name}: a directory is all below it", done)
        done = case.s.apply("b", cwd=f"{case.place.src}/d")
        tap.ok(done.status == 0 and case.get("d/b") == "s" and case.get("d/new") is None, f"{who.name}: a path is seen from the working directory", done)
        done = case.s.apply("d/new", cwd=f"{case.place.src}/d")
        tap.ok(done.status == 0 and case.get("d/new") == "s", f"{who.name}: else from the source", done)
        done = case.s.apply("../out/x")
        tap.ok(done.status == 2 and "CONFIG_INVALID" in done.err, f"{who.name}: a path outside is refused", done)
        done, said = case.json(case.s.id[:8], ".")
        tap.ok(done.status == 0 and said["left"]["special"] == {"count": 1, "first": "fifo"} and not os.path.lexists(f"{case.place.src}/fifo")
               and case.get("p-3") == "s" and case.get("a") == "s", f"{who.name}: a session by the beginning of its id; a fifo stays", done)
        done = case.s.apply("0" * 8 + "-0000-4000-8000-" + "0" * 12)
        tap.ok(done.status == 1 and "NOT_FOUND" in done.err, f"{who.name}: no such session", done)


def never(who):
    with Case(who, files={"sub/.env": "secret\n", "sub/x": "x\n", "a": "one\n"}) as case:
        os.makedirs(f"{case.place.src}/.git/hooks")
        for d in (".git", ".git/hooks"):
            case.place.own(f"{case.place.src}/{d}")
        case.put(".git/config", "[core]\n")
        s = case.s = Session(case.place)
        s.mask("sub/.env")
        for top, dirs, files in os.walk(f"{s.dir}/masks"):
            for n in dirs + files:
                os.chown(os.path.join(top, n), s.uid, s.uid)
        s.does("import shutil, os; shutil.rmtree('sub'); open('.git/config', 'a').write('evil')\n"
               "open('.git/hooks/post-commit', 'w').write('#!/bin/sh\\n'); os.chmod('.git/hooks/post-commit', 0o755)")
        done, said = case.json()
        tap.ok(done.status == 0 and case.get("sub/.env") == "secret\n" and case.get("sub/x") is None and said["left"]["masked"]["first"] == "sub/.env",
               f"{who.name}: a masked file stays, and its directory", done, said)
        tap.ok(case.get(".git/config") == "[core]\n" and not os.path.exists(f"{case.place.src}/.git/hooks/post-commit") and said["left"]["git"]["count"] >= 2,
               f"{who.name}: a git directory is left alone", said)
        done = case.s.apply("sub/.env")
        tap.ok(done.status == 2 and "POLICY_DENIED" in done.err and case.get("sub/.env") == "secret\n", f"{who.name}: a masked path by its name is refused", done)
        done = case.s.apply(".git")
        tap.ok(done.status == 1 and "named exactly" in done.err and case.get(".git/config") == "[core]\n", f"{who.name}: .git by its name is not enough", done)
        done = case.s.apply(".git/config")
        tap.ok(done.status == 0 and case.get(".git/config") == "[core]\nevil", f"{who.name}: a file in it by its exact name is", done)


ACL = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in (
    (1, 6, 0xffffffff), (2, 4, 1234), (4, 4, 0xffffffff), (16, 4, 0xffffffff), (32, 4, 0xffffffff)))


def attributes_stay(who):
    """What people have put on a file or directory of the source is still there."""
    with Case(who) as case:
        src = case.place.src
        os.setxattr(f"{src}/a", "user.note", b"mine")
        os.setxattr(f"{src}/a", "system.posix_acl_access", ACL)
        os.chmod(f"{src}/d", 0o3775)
        case.s = Session(case.place)
        case.s.does("import os; open('b', 'w').write('x'); os.setxattr('b', 'user.theirs', b'x'); os.rename('b', 'a')\n"
                    "os.chmod('a', 0o644); os.chmod('d', 0o1755); open('d/n', 'w').write('n')")
        done = case.s.apply()
        tap.ok(done.status == 0 and case.get("a") == "x" and sorted(os.listxattr(f"{src}/a")) == ["system.posix_acl_access", "user.note"]
               and os.getxattr(f"{src}/a", "user.note") == b"mine" and os.getxattr(f"{src}/a", "system.posix_acl_access") == ACL,
               f"{who.name}: a replaced file keeps its user attributes and access list, and gets none of the session's", done, os.listxattr(f"{src}/a"))
        tap.ok(stat.S_IMODE(os.stat(f"{src}/d").st_mode) == 0o3755, f"{who.name}: a directory keeps set-group-ID and the sticky bit",
               oct(os.stat(f"{src}/d").st_mode))
        again = case.s.apply()
        tap.ok(again.status == 0 and "0 added, 0 modified, 0 deleted" in again.out, f"{who.name}: and nothing is left to apply", again)


def answers(case, *words):
    """A person at a terminal is asked by `apply -p`; what was asked, and the status."""
    asked = []
    with Term(case.place, [beside("sandglass-main"), "apply", "-p", case.s.id]) as term:
        for word in words:
            found = term.expect(r"\[y,n,q,a,d,\?\]\? ", 30)
            asked.append(term.said[:found.start()].decode("utf-8", "replace"))
            term.line(word)
        status = term.ended(30)
        return asked, status, term.said.decode("utf-8", "replace")


def picks(who):
    text = "".join(f"line {i}\n" for i in range(1, 31))
    with Case(who, files={"m": text, "z": "one\ntwo\n", "gone": "g\n", "bin": "\0one", "dir/x": "x\n"}) as case:
        mine = text.replace("line 2\n", "session 2\n").replace("line 15\n", "").replace("line 28\n", "line 28\nadded\n")
        case.s.does(f"""
            import os, shutil
            open('m', 'w').write({mine!r}); open('z', 'w').write('one\\ntwo'); os.remove('gone'); open('new' + chr(27) + '[2J', 'w').write('n')
            open('bin', 'wb').write(b'\\0two'); os.makedirs('made/e'); open('made/f', 'w').write('f'); shutil.rmtree('dir')""")
        done = case.s.apply("-p")
        tap.ok(done.status == 2 and "UNSUPPORTED" in done.err and case.get("m") == text, f"{who.name}: -p without a terminal is refused", done)
        # bin, dir/x, gone, m (3 hunks), made/e, made/f, new, z
        asked, status, said = answers(case, "y", "n", "n", "?", "y", "n", "y", "n", "y", "y", "q")
        half = mine.replace("line 14\n", "line 14\nline 15\n")
        tap.ok(status == 0 and case.get("m") == half and case.get("bin") == "\0two" and case.get("gone") == "g\n" and case.get("z") == "one\ntwo\n"
               and case.get("made/f") == "f" and not os.path.exists(f"{case.place.src}/made/e") and case.get("new\x1b[2J") == "n" and case.get("dir/x") == "x\n"
               and "\x1b[2J" not in said and not case.s.leftovers(), f"{who.name}: -p: what a person said yes to is applied, hunk by hunk", status, said,
               case.get("m"), os.listdir(case.place.src))
        tap.ok("neither it nor anything that is left of this file" in said and "+session 2" in said and "changed: m" in said, f"{who.name}: -p shows hunks, and what the letters mean", said)
        done = case.s.sandglass("diff")
        tap.ok(done.out.count("@@ -") == 4 and "-line 15" in done.out and "session 2" not in done.out, f"{who.name}: -p: what was left is in the diff", done)
        # dir/x, gone, m, made/e, z
        _, status, said = answers(case, "n", "a", "a", "d", "y")
        tap.ok(status == 0 and case.get("m") == mine and case.get("z") == "one\ntwo" and case.get("gone") is None and case.get("dir/x") == "x\n",
               f"{who.name}: -p: the rest, a, d, a last line without its end", status, said, case.get("m"))
        before = tree(case.place.src)
        _, status, said = answers(case, "q")
        tap.ok(status == 0 and tree(case.place.src) == before and "0 added, 0 modified, 0 deleted" in said, f"{who.name}: -p: q is nothing at all", status, said)
    with Case(who, files={"m": text}) as case:
        case.s.does(f"t = {text!r}; open('m', 'w').write(t.replace('line 3\\n', 'session 3\\n').replace('line 20\\n', 'session 20\\n'))")
        case.put("m", text.replace("line 20\n", "host 20\n"))
        _, status, said = answers(case, "y", "n")
        tap.ok(status == 0 and case.get("m") == text.replace("line 20\n", "host 20\n").replace("line 3\n", "session 3\n") and "the source changed there too" in said,
               f"{who.name}: -p: of a file that both changed, the host's hunk stays", status, said)


def random_hunks(who):
    """Every subset of hunks, against git apply of the same ones."""
    drawn, bad, parts = random.Random(SEED), [], 0
    with Case(who, files={f"f{i:02}": "".join(f"{drawn.randrange(9)}\n" for _ in range(drawn.randrange(1, 60))) for i in range(12 if not SANITIZED else 3)}) as case:
        case.s.does(f"""
            import os, random
            r = random.Random({SEED})
            for name in sorted(os.listdir('.')):
                lines = open(name).read().splitlines(True)
                for _ in range(r.randrange(1, 6)):
                    at = r.randrange(len(lines) + 1)
                    lines[at:at + r.randrange(3)] = [f'new {{r.randrange(9)}}\\n' for _ in range(r.randrange(3))]
                text = ''.join(lines)
                open(name, 'w').write(text[:-1] if r.random() < 0.3 else text)""")
        patch = case.s.sandglass("diff").out
        top = f"{case.place.top}/oracle"
        shutil.copytree(case.place.src, top)
        said = []
        for file in patch.split("diff --git ")[1:]:
            head, *hunks = re.split(r"(?m)^(?=@@ )", file)
            said += [drawn.choice("yn") for _ in hunks]
            kept = [h for h, word in zip(hunks, said[len(said) - len(hunks):]) if word == "y"]
            parts += 0 < len(kept) < len(hunks)
            if kept:
                subprocess.run(["git", "apply", "--recount", "--whitespace=nowarn"], input="diff --git " + head + "".join(kept), text=True, cwd=top,
                               env={**os.environ, "GIT_CEILING_DIRECTORIES": case.place.top}, check=True)
        _, status, out = answers(case, *said)
        if status or difference(tree(case.place.src), tree(top)):
            bad = [status, difference(tree(case.place.src), tree(top)), out]
    tap.ok(not bad and (parts > 1 or SANITIZED), f"{who.name}: -p: some hunks of files as git apply has them ({parts} in part), seed {SEED}", *bad, parts)


def owners_rights(who):
    with Case(who) as case:
        src = case.place.src
        os.chmod(f"{src}/d", 0o555)
        os.link(f"{src}/a", f"{case.place.out}/linked")
        case.s = Session(case.place)
        # What no command can make, but a file system can carry: set-id bits, capabilities, attributes.
        case.s.does("import os; open('a', 'a').write('x'); open('setid', 'w').write('x'); os.mkdir('setdir')\n"
                    "os.chmod('d', 0o755); open('d/n', 'w').write('x'); os.chmod('d', 0o555)\n"
                    "os.mkdir('shut'); open('shut/f', 'w').write('x'); os.chmod('shut', 0); open('zero', 'w').write('x'); os.chmod('zero', 0)")
        for path in ("setid", "setdir"):
            os.chmod(f"{case.s.dir}/upper/{path}", 0o6755)
        os.setxattr(f"{case.s.dir}/upper/setid", "user.mine", b"x")
        if who.uid == 0:
            subprocess.run(["setcap", "cap_net_raw+ep", f"{case.s.dir}/upper/setid"], check=False)
        done = case.s.apply()
        tap.ok(done.status == 0 and not set_id_files(src) and not attributes(src) and case.get("setid") == "x" and os.path.isdir(f"{src}/setdir"),
               f"{who.name}: no set-id bit, attribute or capability comes along", done, set_id_files(src), attributes(src))
        with open(f"{case.place.out}/linked", encoding="utf-8") as handle:
            tap.ok(handle.read() == "one\n" and case.get("a") == "one\nx", f"{who.name}: another name of the file outside keeps its content")
        tap.ok(stat.S_IMODE(os.stat(f"{src}/d").st_mode) == 0o555 and os.path.exists(f"{src}/d/n"), f"{who.name}: a directory that is read-only gets a file and stays so")
        tap.ok(stat.S_IMODE(os.stat(f"{src}/shut").st_mode) == 0 and stat.S_IMODE(os.stat(f"{src}/zero").st_mode) == 0 and case.owners() == {case.s.owner[0]},
               f"{who.name}: modes that shut everybody out, and the owner's files", case.owners())
    if who.uid != 0:
        return
    with Case(who) as case:
        src = case.place.src
        with open(f"{src}/d/roots", "w", encoding="utf-8") as handle:
            handle.write("root's secret\n")
        os.chmod(f"{src}/d/roots", 0o600)
        os.mkdir(f"{src}/rootdir")
        case.s = Session(case.place)
        case.s.does("import os; os.rename('d/roots', 'mine'); os.chmod('d', 0o700)")
        done = case.s.apply()
        tap.ok(done.status == 2 and not os.path.exists(f"{src}/mine") and os.path.exists(f"{src}/d/roots"),
               "root: a file that the session could not read is not read for it", done)
    with Case(who) as case:
        case.s = Session(case.place)
        os.makedirs(f"{case.place.src}/rootdir")
        case.s.does("open('a', 'a').write('x')")
        os.makedirs(f"{case.s.dir}/upper/rootdir")
        os.chown(f"{case.s.dir}/upper/rootdir", case.s.uid, case.s.uid)
        with open(f"{case.s.dir}/upper/rootdir/n", "w", encoding="utf-8") as handle:
            handle.write("x")
        os.chown(f"{case.s.dir}/upper/rootdir/n", case.s.uid, case.s.uid)
        done = case.s.apply()
        tap.ok(done.status == 2 and "Permission denied" in done.err and not os.listdir(f"{case.place.src}/rootdir") and case.get("a") == "one\n"
               and not case.s.leftovers(), "root: what belongs to others is as closed as to the owner; nothing is applied", done)
    with Case(who, owner=who) as case:
        case.s.does("open('a', 'a').write('x')")
        done = case.s.apply()
        tap.ok(done.status == 0 and case.owners() == {0} and case.get("a") == "one\nx", "root: a source of root's", done, case.owners())


def two_sessions(who):
    with Case(who) as case:
        other = Session(case.place)
        case.s.does("open('a', 'a').write('first\\n'); open('only1', 'w').write('1')")
        other.does("open('d/b', 'a').write('second\\n')")
        one, two = case.s.apply(case.s.id), other.apply(other.id)
        tap.ok(one.status == 0 and two.status == 0 and case.get("a") == "one\nfirst\n" and case.get("d/b") == "two\nsecond\n",
               f"{who.name}: two sessions, other files", one, two)
        other.does("open('a', 'a').write('second\\n')")
        two = other.apply(other.id)
        tap.ok(two.status == 1 and "CONFLICT" in two.err and case.get("a") == "one\nfirst\n",
               f"{who.name}: two sessions, one file", two, case.get("a"))


def discards(who):
    with Case(who) as case:
        s = case.s
        before = tree(case.place.src)
        work = ("import os, shutil\nopen('a', 'a').write('more'); os.remove('d/b'); open('d/n', 'w').write('n'); os.chmod('d', 0o700)\n"
                "os.makedirs('new/x'); open('new/x/y', 'w').write('y'); os.chmod('new/x', 0o500)")
        s.does(work)
        done = s.sandglass("discard", "d/b")
        view = s.view()
        tap.ok(done.status == 0 and view.get(b"d/b".hex()) == before[b"d/b".hex()] and b"d/n".hex() in view, f"{who.name}: discard of a deletion", done)
        done = s.sandglass("discard", "new", "a")
        view = s.view()
        tap.ok(done.status == 0 and view[b"a".hex()] == before[b"a".hex()] and b"new".hex() not in view and b"d/n".hex() in view, f"{who.name}: discard of a file and a directory", done)
        done = s.sandglass("discard", "nothing")
        tap.ok(done.status == 1 and "NOT_FOUND" in done.err, f"{who.name}: discard of what is not changed", done)
        done = s.sandglass("discard", "--json")
        tap.ok(done.status == 0 and json.loads(done.out)["ok"] and s.view() == before and tree(case.place.src) == before and not s.leftovers(),
               f"{who.name}: discard of everything; the source is as it was", done, difference(s.view(), before), s.leftovers())
        s.does("import shutil; shutil.rmtree('d')")
        done = s.sandglass("discard", "d/b")
        tap.ok(done.status == 2 and "UNSUPPORTED" in done.err and "discard d" in done.err, f"{who.name}: one file of a directory that was removed as a whole: the hint", done)
        done = s.sandglass("discard", "d")
        tap.ok(done.status == 0 and s.view() == before, f"{who.name}: that directory", done)
    with Case(who, copy=True) as case:
        s = case.s
        before = tree(case.place.src)
        s.does(work)
        done = s.sandglass("discard", "d/b", "new")
        view = tree(f"{s.dir}/copy")
        tap.ok(done.status == 0 and view.get(b"d/b".hex()) == before[b"d/b".hex()] and b"new".hex() not in view and view[b"a".hex()] != before[b"a".hex()], f"{who.name}: copy: discard of paths", done)
        done = s.sandglass("discard")
        uids = {os.lstat(os.path.join(top, n)).st_uid for top, dirs, files in os.walk(f"{s.dir}/copy") for n in dirs + files}
        tap.ok(done.status == 0 and tree(f"{s.dir}/copy") == before and not s.leftovers() and uids == {s.uid}, f"{who.name}: copy: discard of everything", done, difference(tree(f"{s.dir}/copy"), before), uids)
        again = s.apply()
        tap.ok(again.status == 0 and "0 added, 0 modified, 0 deleted" in again.out and tree(case.place.src) == before, f"{who.name}: copy: nothing is left to apply", again)


def git(place, *args, check=True):
    """git of the source's owner, on the host."""
    prefix = place.owner.prefix if place.who.uid == 0 else place.who.prefix
    done = subprocess.run([*prefix, "git", "-c", "user.name=a", "-c", "user.email=a@b.c", *args], cwd=place.src,
                          env=place.env(HOME=place.top), check=False, capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout.strip()


def audited(place, event):
    """The data of each such event in the log."""
    done = place.run([SANDGLASS, "audit", "export"])
    return [said for said in map(json.loads, done.out.splitlines()) if said["event"] == event]


MEMFDS_BEFORE_REFS = 5
GIT = """
import os, subprocess
os.environ.update(HOME='/nonexistent', GIT_CONFIG_COUNT='5', GIT_CONFIG_KEY_0='user.name', GIT_CONFIG_VALUE_0='s',
                  GIT_CONFIG_KEY_1='user.email', GIT_CONFIG_VALUE_1='s@s', GIT_CONFIG_KEY_2='safe.directory', GIT_CONFIG_VALUE_2='*',
                  GIT_CONFIG_KEY_3='core.fsmonitor', GIT_CONFIG_VALUE_3='false', GIT_CONFIG_KEY_4='core.hooksPath', GIT_CONFIG_VALUE_4='/dev/null')
def git(*a): return subprocess.run(['git', *a], check=True, capture_output=True, text=True).stdout.strip()
"""


def commits(who):
    with Case(who, files={"a": "one\n", "b": "two\n"}) as case:
        place = case.place
        git(place, "init", "-q", "-b", "main")
        git(place, "add", ".")
        git(place, "commit", "-qm", "one")
        head = git(place, "rev-parse", "HEAD")
        ran = f"{place.tmp}/ran"
        os.chmod(place.tmp, 0o777)
        for hook in ("reference-transaction", "post-checkout", "post-index-change", "fsmonitor"):
            path = f"{place.src}/.git/hooks/{hook}"
            with open(path, "w", encoding="utf-8") as handle:
                handle.write(f"#!/bin/sh\necho {hook} >>{ran}\n")
            os.chmod(path, 0o755)
            place.own(path)
        git(place, "config", "core.fsmonitor", f"{place.src}/.git/hooks/fsmonitor")
        git(place, "config", "core.alternateRefsCommand", f"touch {ran}")
        git(place, "status")
        tap.ok(os.path.exists(ran), f"{who.name}: control: the person's git runs what its configuration names")
        if os.path.exists(ran):
            os.remove(ran)
        time.sleep(0.05)
        s = case.s = Session(place, head=head, branch="main")
        s.does(GIT + "open('a', 'a').write('more\\n'); git('commit', '-qam', 'two')\n"
               "git('switch', '-qc', 'side'); open('n', 'w').write('n'); git('add', 'n'); git('commit', '-qm', 'three'); git('switch', '-q', 'main'); git('pack-refs', '--all'); git('repack', '-adq')\n"
               f"open('.git/config', 'a').write('[core]\\n\\tfsmonitor = touch {ran}\\n')")
        done, said = case.json()
        names = [r["name"] for r in said.get("refs", [])]
        tap.ok(done.status == 0 and names == ["refs/heads/main", "refs/heads/side"] and not os.path.exists(ran), f"{who.name}: commits: two branches, and nothing of the person's ran", done)
        git(place, "config", "core.fsmonitor", "false")
        for hook in ("reference-transaction", "post-index-change"):
            os.remove(f"{place.src}/.git/hooks/{hook}")
        log = git(place, "log", "--format=%s", "main", "side", "--", check=False).split("\n")
        tap.ok(sorted(log) == ["one", "three", "two"] and git(place, "fsck", "--full", "--strict", check=False) == "" and git(place, "status", "--porcelain") == "",
               f"{who.name}: commits are there, the index and the files fit them", log, git(place, "status", "--porcelain"))
        uids = {os.lstat(os.path.join(top, n)).st_uid for top, dirs, files in os.walk(f"{place.src}/.git") for n in dirs + files}
        tap.ok(uids == {s.owner[0]}, f"{who.name}: what git wrote is the owner's", uids)
        again, said = case.json()
        tap.ok(again.status == 0 and said["refs"] == [], f"{who.name}: commits: nothing is left", again)
        s.does(GIT + "open('b', 'a').write('x'); git('commit', '-qam', 'four')")
        again, said = case.json()
        tap.ok(again.status == 0 and [r["name"] for r in said["refs"]] == ["refs/heads/main"] and git(place, "log", "-1", "--format=%s") == "four", f"{who.name}: commits on top of what was applied", again)
        s.does(GIT + "open('b', 'a').write('y'); git('commit', '-qam', 'five')")
        case.put("host", "host\n")
        git(place, "add", "host")
        git(place, "commit", "-qm", "host's")
        before = (tree(place.src), git(place, "rev-parse", "main"))
        again = s.apply()
        tap.ok(again.status == 1 and "CONFLICT" in again.err and "refs/heads/main" in again.err and (tree(place.src), git(place, "rev-parse", "main")) == before,
               f"{who.name}: commits: a branch that both moved is a conflict", again)
    with Case(who, files={"a": "one\n"}) as case:
        place = case.place
        git(place, "init", "-q", "-b", "main")
        git(place, "add", ".")
        git(place, "commit", "-qm", "one")
        time.sleep(0.05)
        s = case.s = Session(place, head=git(place, "rev-parse", "HEAD"), branch="main")
        s.does(GIT + "open('a', 'a').write('more\\n'); git('commit', '-qam', 'two')")
        lock = place.write(f"{place.src}/.git/refs/heads/main.lock")
        done, said = case.json()
        tap.ok(done.status == 2 and said["error"]["code"] == "BUSY" and "files were applied" in said["error"]["message"]
               and "main.lock" in said["error"]["message"] and said["modified"] == 1 and said["refs"] == [] and case.get("a") == "one\nmore\n"
               and audited(place, "apply")[-1]["data"]["refs_not_moved"] == 1 and not s.leftovers(),
               f"{who.name}: commits: git says no after the files: its words, what was done, also in the log", done, audited(place, "apply"))
        os.remove(lock)
        s.does("open('b', 'w').write('b')")
        # The bundle is made in a sandbox and taken in by git; then the files, then the branches: killed before those.
        done = place.run(["strace", "-qq", "-o", "/dev/null", "-e", "trace=memfd_create", "-e",
                          f"inject=memfd_create:signal=KILL:when={MEMFDS_BEFORE_REFS}", beside("sandglass-main"), "apply"])
        tap.ok(done.status in (-9, 137) and case.get("b") == "b" and git(place, "log", "-1", "--format=%s") == "one" and
               os.path.exists(f"{s.dir}/journal/refs"), f"{who.name}: commits: killed between the files and the branches, the journal knows", done,
               os.listdir(f"{s.dir}/journal"))
        done = place.run([SANDGLASS, "gc"])
        tap.ok(done.status == 0 and git(place, "log", "-1", "--format=%s") == "two" and git(place, "status", "--porcelain", "a") == "" and not s.leftovers()
               and audited(place, "apply")[-1]["data"]["recovered"] == "forward", f"{who.name}: commits: gc moves them, and the log has it", done, audited(place, "apply"))
    with Case(who, files={"a": "one\n"}) as case:
        place = case.place
        git(place, "init", "-q", "-b", "main")
        git(place, "add", ".")
        git(place, "commit", "-qm", "one")
        time.sleep(0.05)
        s = case.s = Session(place, head=git(place, "rev-parse", "HEAD"), branch="main")
        s.does(GIT + "import subprocess\nblob = git('hash-object', '-w', 'a')\n"
               "tree = subprocess.run(['git', 'mktree'], input=f'100644 blob {blob}\\t.git\\n', check=False, capture_output=True, text=True).stdout.strip() or git('write-tree')\n"
               "raw = b'40000 .git\\0' + bytes.fromhex(git('write-tree')) \n"
               "p = subprocess.run(['git', 'hash-object', '-t', 'tree', '-w', '--literally', '--stdin'], input=raw, capture_output=True, check=True).stdout.decode().strip()\n"
               "c = git('commit-tree', p, '-m', 'evil', '-p', 'HEAD'); git('update-ref', 'refs/heads/evil', c)")
        before = tree(place.src, True)
        done = s.apply()
        after = tree(place.src, True)
        tap.ok(done.status == 2 and git(place, "branch", "--list", "evil") == "" and {k: v for k, v in after.items() if b"/objects" not in bytes.fromhex(k)} ==
               {k: v for k, v in before.items() if b"/objects" not in bytes.fromhex(k)}, f"{who.name}: commits with a tree that holds .git are refused by fsck", done)


# System calls that change what is stored. A write to a terminal and an open that makes nothing do not.
CALLS = ("openat", "openat2", "mkdirat", "mkdir", "unlinkat", "renameat", "renameat2", "rename", "linkat", "symlinkat", "write",
         "ftruncate", "fchmod", "chmod", "fchmodat", "fchmodat2", "fchown", "fchownat", "copy_file_range", "pwrite64", "ioctl", "fsetxattr",
         "fremovexattr")
WORK = ("import os, shutil\nopen('a', 'a').write('more'); os.remove('d/b'); os.makedirs('n/x'); open('n/x/y', 'w').write('y'); os.symlink('t', 'l')\n"
        "shutil.rmtree('r'); open('r', 'w').write('was a directory'); os.remove('f'); os.mkdir('f'); open('f/g', 'w').write('g')\n"
        "shutil.rmtree('gone'); os.chmod('m', 0o755); os.chmod('d/e', 0o500)")
FILES = {"a": "one\n", "d/b": "two\n", "d/e/c": "three\n", "r/s/t": "in a directory", "f": "a file", "gone/x/y": "z", "m": "mode"}


def old_or_new(now, before, after):
    """Paths that are neither as before nor as after."""
    ours = b".sandglass-".hex()
    bad = []
    for path in set(now) | set(before) | set(after):
        if ours in path or any(part.startswith(b".sandglass-") for part in bytes.fromhex(path).split(b"/")):
            continue
        has = now.get(path)
        if has != before.get(path) and has != after.get(path):
            if has and stat.S_ISDIR(has[0]) and any(t.get(path) and stat.S_ISDIR(t[path][0]) for t in (before, after)):
                continue  # a directory's mode while its owner has to be let at it
            bad.append((bytes.fromhex(path), before.get(path), has, after.get(path)))
    return bad


def strace(*options):
    return ["strace", "-qq", *options, beside("sandglass-main")]


def changed_case(who, copy):
    case = Case(who, files=FILES)
    if copy:
        case.s = Session(case.place, copy=True)
    case.s.does(WORK)
    return case, tree(case.place.src), case.s.view()


def kill_points(who, verb, copy):
    """(name, which of its calls) of each system call of the verb that changes something."""
    case, _, _ = changed_case(who, copy)
    with case:
        log = f"{case.place.tmp}/log"
        os.chmod(case.place.tmp, 0o777)
        done = case.place.run([*strace("-o", log, "-e", "trace=" + ",".join(f"?{name}" for name in CALLS)), verb])
        seen, points = {}, []
        with open(log, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                called = re.match(r"(\w+)\((\d*)", line)
                if not called:
                    continue
                name = called[1]
                seen[name] = seen.get(name, 0) + 1
                if (name in ("openat", "openat2") and "O_CREAT" not in line) or (name == "write" and called[2] in "12") or \
                        (name == "ioctl" and "FICLONE" not in line):
                    continue
                points.append((name, seen[name]))
    return points if done.status == 0 else []


def killed_at(who, verb, copy, call, number):
    """One kill before the call's number-th. What is wrong afterwards."""
    case, before, after = changed_case(who, copy)
    with case:
        s = case.s
        done = case.place.run([*strace("-o", "/dev/null", "-e", f"trace={call}", "-e",
                                       f"inject={call}:signal=KILL:when={number}"), verb], timeout=120)
        if done.status not in (-9, 137):
            return ["was not killed", str(done)]
        now = tree(case.place.src)
        if verb == "discard":
            then = s.view()
            bad = old_or_new(then, after, before) if now == before else ["the source changed"]
            again = s.sandglass("discard")
            if again.status not in (0, 1) or s.view() != before or s.leftovers():
                bad.append((str(again), difference(s.view(), before), s.leftovers()))
            return bad
        bad = old_or_new(now, before, after)
        again = s.apply()
        if again.status or tree(case.place.src) != after or s.leftovers():
            bad.append((str(again), difference(tree(case.place.src), after), s.leftovers()))
        return bad


def kills(whos):
    """Each call that changes something, by one of the identities in turn."""
    for verb, copy, needs in (("apply", False, "renameat2"), ("discard", False, "renameat"), ("discard", True, "renameat2")):
        what = f"{'copy: ' if copy else ''}{verb}"
        points = {who.name: kill_points(who, verb, copy) for who in whos}
        bad, done = [], 0
        for mine, who in enumerate(whos):
            for at, (call, number) in enumerate(points[who.name]):
                # A copy is brought back by the engine of apply: a third of its calls, others each time.
                rest = 10 if SANITIZED else 3 if copy else 1
                if at % len(whos) == mine and (at // len(whos) + SEED) % rest == 0 and len(bad) < 3:
                    wrong = killed_at(who, verb, copy, call, number)
                    done += 1
                    if wrong:
                        bad.append((who.name, call, number, wrong))
            tap.note(f"{who.name}: {what}: {len(points[who.name])} calls, "
                     f"{sorted({call for call, _ in points[who.name]})}")
        tap.ok(not bad and all(any(call == needs for call, _ in p) for p in points.values()),
               f"{what}: killed before each call that changes something ({done}): old or new, finished by the next", *bad, points)


def random_kills(who):
    rounds, bad, hit, took = KILLS // len(identities_once()), [], 0, 0.05
    drawn = random.Random(SEED)
    with Case(who, files={f"t/{i}": f"{i}\n" for i in range(30)}) as case:
        s = case.s
        for number in range(rounds):
            s.does(f"import os, random\nr = random.Random({SEED + number})\n"
                   "for i in range(40):\n"
                   "    p = f't/{r.randrange(60)}'\n"
                   "    if os.path.isdir(p): os.rmdir(p)\n"
                   "    elif os.path.exists(p) and r.random() < 0.4: os.remove(p); r.random() < 0.3 and os.mkdir(p)\n"
                   "    else: open(p, 'w').write('x' * r.randrange(100000))\n")
            before, after = tree(case.place.src), s.view()
            process = case.place.start([beside("sandglass-main"), "apply"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(drawn.random() * took)
            process.kill()
            hit += process.wait() == -9
            wrong = old_or_new(tree(case.place.src), before, after)
            again = s.apply()
            took = min(max(again.seconds, 0.02), 2)
            if wrong or again.status or tree(case.place.src) != after or s.leftovers():
                bad.append((number, wrong, str(again), difference(tree(case.place.src), after), s.leftovers()))
                break
    tap.ok(not bad and hit > rounds / 10, f"{who.name}: {rounds} kills at random moments ({hit} before the end), seed {SEED}", *bad, hit)


def full(who):
    """A small file system that fills up while new files are made."""
    if who.uid != 0:
        return
    place = Place(who, Identity("owner", USER))
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=755", "tmpfs", place.src], check=True)
        with open(f"{place.src}/a", "w", encoding="utf-8") as handle:
            handle.write("one\n")
        os.mkdir(f"{place.src}/d")
        for path in ("", "/a", "/d"):
            os.chown(f"{place.src}{path}", USER, USER)
        s = Session(place)
        s.seen_late = True
        s.does("import os\nopen('a', 'a').write('more')\nos.rmdir('d')\nfor i in range(9): open(f'b{i}', 'wb').write(os.urandom(400000))")
        before = tree(place.src)
        done = s.apply()
        tap.ok(done.status == 2 and "No space left" in done.err and tree(place.src) == before and not s.leftovers(), "root: a full file system: all is as before", done, s.leftovers())
        done = s.apply("a", "b1", "d")
        tap.ok(done.status == 0 and os.path.getsize(f"{place.src}/b1") == 400000 and not os.path.exists(f"{place.src}/d"), "root: what fits is applied", done)
    finally:
        subprocess.run(["umount", "-l", place.src], check=False)
        place.close()


SWAP = r"""
import ctypes, os, sys
src, out = sys.argv[1:3]
libc = ctypes.CDLL(None)
os.symlink(out, src + '/link')
print('ready', flush=True)
while not os.path.exists(out + '.stop'):
    # The directory and a link to outside change places, as fast as can be.
    libc.renameat2(-100, (src + '/d').encode(), -100, (src + '/link').encode(), 2)
"""


def swaps(who):
    """Somebody on the host's side swaps a directory for a link to outside, all the time."""
    bad, statuses = [], {}
    for _ in range(4):
        with Case(who, files={f"d/{i}": f"{i}\n" for i in range(20)}) as case:
            out = f"{case.place.top}/canary"
            os.mkdir(out)
            for i in range(20):
                with open(f"{out}/{i}", "w", encoding="utf-8") as handle:
                    handle.write("canary\n")
            os.chown(out, case.s.owner[0], case.s.owner[1])
            for i in range(20):
                os.chown(f"{out}/{i}", case.s.owner[0], case.s.owner[1])
            case.s.does("import os\nfor i in range(15): open(f'd/{i}', 'w').write('session')\nfor i in range(15, 20): os.remove(f'd/{i}')\nopen('d/new', 'w').write('n')")
            before = tree(out)
            swapper = subprocess.Popen([*case.place.owner.prefix, "/usr/bin/python3", "-c", SWAP, case.place.src, out], stdout=subprocess.PIPE)
            swapper.stdout.readline()
            for _ in range(12 if not SANITIZED else 2):
                done = case.s.apply()
                statuses[done.status] = statuses.get(done.status, 0) + 1
            with open(out + ".stop", "w", encoding="utf-8"):
                pass
            swapper.wait()
            swapper.stdout.close()
            real = f"{case.place.src}/d" if not os.path.islink(f"{case.place.src}/d") else f"{case.place.src}/link"
            if tree(out) != before or [n for n in os.listdir(out) if n.startswith(".sandglass")]:
                bad.append(("outside changed", os.listdir(out)))
            if real.endswith("link"):
                os.rename(f"{case.place.src}/d", f"{case.place.src}/l2")
                os.rename(real, f"{case.place.src}/d")
            case.s.apply()
            if [n for n in os.listdir(f"{case.place.src}/d") if n.startswith(".sandglass")]:
                bad.append(("left", os.listdir(f"{case.place.src}/d")))
    tap.note(f"{who.name}: statuses while swapping: {statuses}")
    tap.ok(not bad and sum(statuses.values()) > (40 if not SANITIZED else 6), f"{who.name}: a directory swapped for a link to outside: nothing outside changes, nothing is left", *bad)


def hostile(who):
    """An upper layer that no overlay wrote."""
    with Case(who) as case:
        s, upper = case.s, f"{case.s.dir}/upper"
        os.symlink("/etc", f"{upper}/etc")
        os.symlink(case.place.out, f"{upper}/d")
        os.mkfifo(f"{upper}/p")
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(f"{upper}/s")
        with open(f"{upper}/x", "w", encoding="utf-8") as handle:
            handle.write("x")
        os.link(f"{upper}/x", f"{upper}/y")
        os.makedirs(f"{upper}/e/" + "/".join(["n" * 200] * 12))
        if who.uid == 0:
            os.mknod(f"{upper}/dev", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            os.setxattr(f"{upper}/e", "trusted.overlay.redirect", b"/../../etc")
        for top, dirs, files in os.walk(upper):
            for n in dirs + files:
                os.lchown(os.path.join(top, n), s.uid, s.uid)
        done, said = case.json()
        tap.ok(done.status == 0 and os.readlink(f"{case.place.src}/etc") == "/etc" and os.readlink(f"{case.place.src}/d") == case.place.out
               and said["left"]["special"]["count"] == (3 if who.uid == 0 else 2) and not os.listdir(case.place.out) and case.get("y") == "x"
               and os.stat(f"{case.place.src}/x").st_ino != os.stat(f"{case.place.src}/y").st_ino,
               f"{who.name}: links as text, fifos, sockets and devices left out, hard links as files", done)
        sock.close()
    with Case(who) as case:
        moved = case.place.src + ".moved"
        case.s.does("open('a', 'a').write('x')")
        os.rename(case.place.src, moved)
        os.mkdir(case.place.src)
        done = case.s.apply(case.s.id, cwd="/")
        tap.ok(done.status == 1 and "CONFLICT" in done.err and not os.listdir(case.place.src), f"{who.name}: another directory at the source's path", done)


def without_exchange(who):
    """A file system that cannot exchange names: links do."""
    with Case(who) as case:
        shim = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "shim.py")
        case.s.does("import os\nopen('a', 'a').write('more'); os.remove('d/b'); open('n', 'w').write('n'); os.mkdir('m'); open('m/x', 'w').write('x')")
        after = case.s.view()
        done = case.place.run(["/usr/bin/python3", shim, "EINVAL", "renameat2", "--", beside("sandglass-main"), "apply"])
        tap.ok(done.status == 0 and tree(case.place.src) == after and not case.s.leftovers(), f"{who.name}: without renameat2: the same", done)


PARTS = (plain, conflicts, merges, commits, paths, never, attributes_stay, picks, random_hunks, owners_rights, two_sessions, hostile, swaps, full, without_exchange,
         discards, random_sets, copies, random_kills)


def main():
    """Words name the parts to run; none, all of them."""
    shim.without_sync()
    wanted = sys.argv[1:]
    for who in identities_once():
        for part in PARTS:
            if not wanted or part.__name__ in wanted:
                begin = time.monotonic()
                tap.attempt(f"{who.name}: {part.__name__}", part, who)
                tap.note(f"{who.name}: {part.__name__}: {time.monotonic() - begin:.1f} s")
    if not wanted or "kills" in wanted:
        tap.attempt("kills", kills, identities_once())
    return tap.done()


sys.exit(main())
