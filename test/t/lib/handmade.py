# SPDX-License-Identifier: Apache-2.0
"""Sessions made by hand: a directory and a record as `session new` leaves them, with what a
command has changed in the upper layer, and what `apply` has put into the source. For tests
of the verbs that look at sessions, which need no keeper."""

import os
import re
import stat
import subprocess
import time
import uuid

from place import ROOT

SESSION_UID = 1879100007


def fields():
    """The record's keys with their kinds, in their order: the product's own table."""
    with open(f"{ROOT}/src/store/session.c", encoding="utf-8") as f:
        return re.findall(r"FIELD\((\w+), KIND_(\w+)\)", f.read())


def encode(values, options=()):
    out = [b"version=1"]
    for key, kind in fields():
        value = values.get(key, "" if kind == "TEXT" else 0)
        out.append(key.encode() + b"=" + os.fsencode(str(value)))
    out += [b"option=" + os.fsencode(o) for o in options]
    return b"".join(part + b"\0" for part in out)


def git(place, *words, cwd=None, check=True):
    """The owner's git, with nothing but the place's home for configuration."""
    done = subprocess.run(place.who.prefix + ["git", *words], cwd=cwd or place.src,
                          env=place.env(GIT_CONFIG_NOSYSTEM="1"), capture_output=True,
                          check=False)
    if check and done.returncode:
        raise RuntimeError(f"git {words}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode(errors="surrogateescape").rstrip("\n")


class Session:
    def __init__(self, place, name="", source=None, copy=False, **more):
        self.place, self.id = place, str(uuid.uuid4())
        self.source = source if source is not None else place.src
        self.root = place.who.uid == 0
        self.dir = f"{place.state}/sessions/{self.id}"
        self.layer = f"{self.dir}/{'copy' if copy else 'upper'}"
        self.applied = {}
        uid = SESSION_UID if self.root else place.who.uid
        for path, mode in ((f"{place.state}/sessions", 0o711), (self.dir, 0o711),
                           (f"{self.dir}/root", 0o700), (f"{self.dir}/root/logs", 0o700),
                           (f"{self.dir}/results", 0o700), (self.layer, 0o755)):
            if not os.path.isdir(path):
                os.mkdir(path)
                os.chmod(path, mode)
                os.chown(path, place.who.uid, place.who.uid)
        for path in (f"{self.dir}/root", f"{self.dir}/root/logs", self.layer):
            os.chown(path, uid, uid)
        self.uid = uid
        time.sleep(0.02)  # what stands in the source is older than the session
        now = time.time_ns()
        self.values = {"id": self.id, "name": name, "source": self.source, "uid": uid,
                       "gid": uid, "caller_uid": place.who.uid, "root": int(self.root),
                       "writes": 2 if copy else 1, "created_ns": now, "base_ns": now, "copied_ns": now,
                       "ttl_ms": 1800000, "max_ms": 86400000}
        if self.source:
            st = os.stat(self.source)
            self.values.update(dev=st.st_dev, ino=st.st_ino, owner_uid=st.st_uid,
                               owner_gid=st.st_gid)
        self.values.update(more)
        self.record()

    def record(self):
        path = f"{self.dir}/record"
        with open(path, "wb") as f:
            f.write(encode(self.values))
        os.chmod(path, 0o600)
        os.chown(path, self.place.who.uid, self.place.who.uid)

    # what a command did

    def dirs(self, path):
        """Directories of the upper layer on the way to `path`, as copied up."""
        at = self.layer
        for part in os.path.dirname(path).split("/"):
            at = f"{at}/{part}" if part else at
            if not os.path.isdir(at):
                os.mkdir(at)
                os.chown(at, self.uid, self.uid)

    def put(self, path, content=b"", mode=0o644):
        self.dirs(path)
        full = os.fsencode(f"{self.layer}/{path}")
        with open(full, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(full, mode)
        os.chown(full, self.uid, self.uid)

    def link(self, path, target):
        self.dirs(path)
        os.symlink(target, f"{self.layer}/{path}")
        os.lchown(f"{self.layer}/{path}", self.uid, self.uid)

    def remove(self, path):
        """A whiteout."""
        self.dirs(path)
        os.mknod(f"{self.layer}/{path}", stat.S_IFCHR, 0)

    def log(self, name, content):
        path = f"{self.dir}/root/logs/{name}"
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        os.chown(path, self.uid, self.uid)

    # what a person did

    def applies(self, path, content=None, mode=0o644, link=None):
        """As `apply` leaves it: in the source, and in the list. No content: deleted."""
        full = os.fsencode(f"{self.source}/{path}")
        if os.path.lexists(full):
            os.unlink(full)
        if link is not None:
            os.symlink(link, full)
        elif content is not None:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "wb") as f:
                f.write(content if isinstance(content, bytes) else content.encode())
            os.chmod(full, mode)
        self.own(os.path.dirname(full))
        if os.path.lexists(full):
            self.own(full)
            st = os.lstat(full)
            self.applied[os.fsencode(path)] = (st.st_dev, st.st_ino, st.st_ctime_ns)
        else:
            self.applied[os.fsencode(path)] = (0, 0, 0)
        self.save_applied()

    def own(self, path):
        top = os.fsencode(self.source)
        while len(path) > len(top):
            os.lchown(path, self.place.owner.uid, self.place.owner.uid)
            path = os.path.dirname(path)

    def save_applied(self):
        out = b"sandglass-applied 1\0"
        for path in sorted(self.applied):
            out += b"%d %d %d " % self.applied[path] + path + b"\0"
        with open(f"{self.dir}/applied", "wb") as f:
            f.write(out)
        os.chmod(f"{self.dir}/applied", 0o600)
        os.chown(f"{self.dir}/applied", self.place.who.uid, self.place.who.uid)
