# SPDX-License-Identifier: Apache-2.0
"""Sessions made by hand: the directory that a keeper would leave, whose upper layer is
written through a real overlay mount. No keeper runs, so a test controls each moment."""

import json
import os
import subprocess
import textwrap
import time
import uuid

from place import SANDGLASS, USER, Identity, beside  # noqa: F401

FIELDS = ("id name source dev ino owner_uid owner_gid uid gid caller_uid root writes created_ns "
          "base_ns copied_ns ttl_ms max_ms disk_bytes inodes head branch remote remote_url policy_sha256").split()


# Lives in a mount namespace (as a user with a user namespace around it) and carries out one
# request a line: mounts a view, runs a script in it in a process of its own, unmounts it.
HELPER = textwrap.dedent("""
    import ctypes, json, os, sys, traceback
    libc = ctypes.CDLL(None, use_errno=True)
    asks, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), 'w')
    null = os.open('/dev/null', os.O_RDWR)
    for fd in (0, 1):
        os.dup2(null, fd)

    def run(ask):
        if ask['uid'] is not None:
            os.setgroups([])
            os.setresgid(*[ask['uid']] * 3)
            os.setresuid(*[ask['uid']] * 3)
        os.chdir(ask['at'])
        exec(compile(ask['script'], 'script', 'exec'), {'__name__': '__main__'})

    for line in asks:
        ask = json.loads(line)
        if ask['options'] and libc.mount(b'overlay', ask['at'].encode(), b'overlay', 0, ask['options'].encode()):
            answer = [1, '', 'mount: ' + os.strerror(ctypes.get_errno())]
        else:
            said = [os.memfd_create('said'), os.memfd_create('said')]
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    for fd in (1, 2):
                        os.dup2(said[fd - 1], fd)
                    run(ask)
                    status = 0
                except SystemExit as end:
                    status = end.code or 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    os._exit(status)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            answer = [status]
            for fd in said:
                os.lseek(fd, 0, 0)
                with os.fdopen(fd, encoding='utf-8', errors='replace') as text:
                    answer.append(text.read())
            if ask['options'] and libc.umount2(ask['at'].encode(), 0):
                libc.umount2(ask['at'].encode(), 2)
        print(json.dumps(answer), file=answers, flush=True)
    """)
_helpers = {}


def helper(prefix):
    """The one that was started by these words."""
    key = tuple(prefix)
    if key not in _helpers:
        _helpers[key] = subprocess.Popen([*prefix, "/usr/bin/python3", "-c", HELPER], cwd="/", text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return _helpers[key]


def asks(prefix, at, script, options="", uid=None):
    """Has that helper run it. Returns what came of it."""
    asked = helper(prefix)
    print(json.dumps({"at": at, "options": options, "uid": uid, "script": textwrap.dedent(script)}),
          file=asked.stdin, flush=True)
    return subprocess.CompletedProcess(script, *json.loads(asked.stdout.readline()))


class Session:
    """who: an Identity that makes it; root sessions belong to `owner` (a uid)."""

    def __init__(self, place, source=None, copy=False, name="", head="", branch=""):
        self.place, self.source = place, source or place.src
        self.root = place.who.uid == 0
        self.id = str(uuid.uuid4())
        self.dir = f"{place.state}/sessions/{self.id}"
        self.copy = copy
        self.seen_late = False  # something was mounted on the host after others were looked at
        st = os.stat(self.source)
        self.owner = (st.st_uid, st.st_gid)
        self.uid = (st.st_uid or 1879100000) if self.root else place.who.uid
        for top in (place.state, f"{place.state}/sessions", self.dir):
            if not os.path.isdir(top):
                os.mkdir(top, 0o711 if self.root else 0o700)
                place.own(top)
                os.chown(top, place.who.uid, place.who.uid)
        for sub in ("copy",) if copy else ("upper", "work"):
            os.mkdir(f"{self.dir}/{sub}", 0o755)
            os.chown(f"{self.dir}/{sub}", self.uid, self.uid)
        os.mkdir(f"{self.dir}/masks")
        if copy:
            subprocess.run(["cp", "-a", self.source + "/.", self.dir + "/copy"], check=True)
        time.sleep(0.02)  # the kernel's clock is coarse
        self.base = time.time_ns()
        self.values = {
            "id": self.id, "name": name, "source": self.source, "dev": st.st_dev, "ino": st.st_ino,
            "owner_uid": st.st_uid, "owner_gid": st.st_gid, "uid": self.uid, "gid": self.uid,
            "caller_uid": place.who.uid, "root": int(self.root), "writes": 2 if copy else 1,
            "created_ns": self.base, "base_ns": self.base, "copied_ns": self.base, "ttl_ms": 1800000, "max_ms": 86400000,
            "disk_bytes": 2**64 - 1, "inodes": 2**64 - 1,
            "head": head, "branch": branch, "remote": "", "remote_url": "", "policy_sha256": ""}
        record = "version=1\0" + "".join(f"{f}={self.values[f]}\0" for f in FIELDS)
        with open(f"{self.dir}/record", "wb") as handle:
            handle.write(record.encode())
        os.chown(f"{self.dir}/record", place.who.uid, place.who.uid)
        time.sleep(0.02)

    def mask(self, path, text=""):
        """What the keeper's masks layer would have."""
        at = f"{self.dir}/masks"
        for part in os.path.dirname(path).split("/"):
            if part:
                at += "/" + part
                os.makedirs(at, exist_ok=True)
        with open(f"{self.dir}/masks/{path}", "w", encoding="utf-8") as handle:
            handle.write(text)

    def does(self, script, check=True):
        """Runs python in the session's view."""
        at, options, uid, prefix = f"{self.dir}/copy", "", None, self.place.who.prefix
        if not self.copy:
            at = f"{self.dir}/merged"
            os.makedirs(at, exist_ok=True)
            options = f"lowerdir={self.dir}/masks:{self.source},upperdir={self.dir}/upper,workdir={self.dir}/work," \
                f"{'redirect_dir=on,metacopy=off,index=off' if self.root else 'userxattr'}"
            prefix = [*prefix, "unshare", *([] if self.root else ["-U", "-r"]), "-m"]
        if self.root and self.owner[0]:  # root's is an id-mapped mount in a real one; see below
            uid = self.uid
        if self.seen_late:
            _helpers.pop(tuple(prefix), None)
        done = asks(prefix, at, script, options, uid)
        if check and done.returncode != 0:
            raise RuntimeError(f"in the session: {done.stderr}")
        if self.root and self.owner[0] == 0:
            subprocess.run(["chown", "-hR", f"{self.uid}:{self.uid}", f"{self.dir}/{'copy' if self.copy else 'upper'}"], check=True)
        return done

    def view(self):
        """What the session sees, as tree() tells it."""
        return json.loads(self.does(TREE + "\nimport json\nprint(json.dumps(tree('.')))").stdout)

    def sandglass(self, verb, *args, **more):
        return self.place.run([beside("sandglass-main"), verb, *args], cwd=more.pop("cwd", self.source),
                              **more)

    def apply(self, *args, **more):
        return self.sandglass("apply", *args, **more)

    def leftovers(self):
        """Names of ours that are still there."""
        found = []
        for top in (self.source, f"{self.dir}/journal", f"{self.dir}/journal-discard", f"{self.dir}/upper"):
            for path, dirs, files in os.walk(os.fsencode(top)):
                found += [os.path.join(path, n) for n in dirs + files
                          if n.startswith((b".sandglass-", b".gone-")) or
                          os.path.basename(top).startswith("journal")]
        return found


TREE = textwrap.dedent("""
    import hashlib, os, stat
    def tree(top, git=False):
        found = {}
        todo = [b'']
        while todo:
            below = todo.pop()
            for entry in os.scandir(os.path.join(os.fsencode(top), below)):
                path = os.path.join(below, entry.name)
                if entry.name == b'.git' and not git:
                    continue
                st = entry.stat(follow_symlinks=False)
                kind, mode = stat.S_IFMT(st.st_mode), stat.S_IMODE(st.st_mode)
                what = ''
                if stat.S_ISDIR(st.st_mode):
                    todo.append(path)
                elif stat.S_ISLNK(st.st_mode):
                    what, mode = os.readlink(entry.path).hex(), 0
                elif stat.S_ISREG(st.st_mode):
                    with open(entry.path, 'rb') as f:
                        what = hashlib.sha256(f.read()).hexdigest()
                found[path.hex()] = [kind, mode, what]
        return found
    """)
_names = {}
exec(TREE, _names)  # the same code on both sides
tree = _names["tree"]


def difference(a, b):
    """The paths in which two trees differ, for messages."""
    return [(bytes.fromhex(p), a.get(p), b.get(p)) for p in sorted(set(a) | set(b))
            if a.get(p) != b.get(p)][:10]
