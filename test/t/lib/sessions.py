# SPDX-License-Identifier: Apache-2.0
"""Sessions made by hand: the directory that a keeper would leave, whose upper layer is
written through a real overlay mount. No keeper runs, so a test controls each moment."""

import os
import shutil
import subprocess
import tempfile
import textwrap
import time
import uuid

from place import SANDGLASS, USER, Identity, beside  # noqa: F401

FIELDS = ("id name source dev ino owner_uid owner_gid uid gid caller_uid root writes created_ns "
          "base_ns copied_ns ttl_ms max_ms disk_bytes inodes head branch remote remote_url policy_sha256").split()


class Session:
    """who: an Identity that makes it; root sessions belong to `owner` (a uid)."""

    def __init__(self, place, source=None, copy=False, name="", head="", branch=""):
        self.place, self.source = place, source or place.src
        self.root = place.who.uid == 0
        self.id = str(uuid.uuid4())
        self.dir = f"{place.state}/sessions/{self.id}"
        self.copy = copy
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

    def argv(self, script):
        """A command that mounts the session's view and runs python in it."""
        merged = f"{self.dir}/merged"
        os.makedirs(merged, exist_ok=True)
        options = f"lowerdir={self.dir}/masks:{self.source}," \
            f"upperdir={self.dir}/upper,workdir={self.dir}/work," + \
            ("redirect_dir=on,metacopy=off,index=off" if self.root else "userxattr")
        code = textwrap.dedent(script)
        if self.copy:
            return [*self.as_session(), "/usr/bin/python3", "-c", f"import os; os.chdir('{self.dir}/copy')\n" + code]
        inner = f'mount -t overlay overlay -o "{options}" "{merged}" && cd "{merged}" && exec "$@"'
        user = [] if self.root else ["-U", "-r"]
        return ["unshare", *user, "-m", "sh", "-c", inner, "sh", *(self.as_session()
                if self.root else []), "/usr/bin/python3", "-c", code]

    def as_session(self):
        if not self.root:
            return self.place.who.prefix
        if self.owner[0] == 0:
            return []  # in a real one an id-mapped mount; see does()
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", "--"]

    def does(self, script, check=True):
        """Runs python in the session's view."""
        prefix = [] if self.root or self.copy else self.place.who.prefix
        done = subprocess.run(prefix + self.argv(script), capture_output=True, text=True,
                              cwd="/", check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"in the session: {done.stderr}")
        if self.root and self.owner[0] == 0:
            subprocess.run(["chown", "-hR", f"{self.uid}:{self.uid}", f"{self.dir}/upper"], check=True)
        return done

    def view(self):
        """What the session sees, as tree() tells it."""
        with tempfile.NamedTemporaryFile(dir=self.place.top, suffix=".json") as out:
            os.chmod(out.name, 0o666)
            self.does(TREE + f"\nimport json\nopen({out.name!r}, 'w').write(json.dumps(tree('.')))")
            import json
            with open(out.name, encoding="utf-8") as handle:
                return json.load(handle)

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
