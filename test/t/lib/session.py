# SPDX-License-Identifier: Apache-2.0
"""Sessions from outside: made, used, looked at on the host, and gone without a trace."""

import hashlib
import json
import os
import re
import stat
import subprocess
import tempfile

from place import SANDGLASS, Place, wait_for

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
CODE = re.compile(r"^sandglass: ([A-Z_]+): ", re.M)
GITCONFIG = "[user]\n\tname = Caller\n\temail = caller@example.com\n[init]\n\tdefaultBranch = main\n"
OWN_MOUNTS = os.readlink("/proc/self/ns/mnt")


def code(result):
    """The error code on stderr; None: there was no error of sandglass."""
    found = CODE.findall(result.err)
    return found[-1] if found else None


def tree(top):
    """All that could change below a directory: names, kinds, modes, owners, times, contents."""
    seen = {}
    for folder, folders, files in os.walk(top):
        for name in [*folders, *files, "."]:
            path = os.path.normpath(os.path.join(folder, name))
            st = os.lstat(path)
            what = [st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns, st.st_nlink, st.st_ino]
            if stat.S_ISLNK(st.st_mode):
                what.append(os.readlink(path))
            elif stat.S_ISREG(st.st_mode):
                with open(path, "rb") as handle:
                    what.append(hashlib.sha256(handle.read()).hexdigest())
            if not stat.S_ISLNK(st.st_mode):
                what += [(a, os.getxattr(path, a)) for a in sorted(os.listxattr(path))]
            seen[path] = tuple(what)
    return seen


def differences(before, after):
    return sorted(p for p in before.keys() | after.keys() if before.get(p) != after.get(p))


class Sessions(Place):
    """A place whose caller has a git identity, with the verbs of sessions."""

    def __init__(self, who, state_in=None):
        super().__init__(who)
        if state_in:
            self.state = tempfile.mkdtemp(prefix="sgt.", dir=state_in)
            os.chmod(self.state, 0o711)
            self.own(self.state)
        self.write(f"{self.home}/.gitconfig", GITCONFIG, 0o644)

    def sh(self, script, cwd=None, **more):
        """Bare: by the caller, on the host."""
        return self.run(["sh", "-c", script], cwd=cwd, **more)

    def session(self, *argv, env=None, cwd=None, timeout=60):
        return self.run([SANDGLASS, "session", *argv], env=env, cwd=cwd, timeout=timeout)

    def new(self, *options, env=None, cwd=None):
        """The id of a new one."""
        made = self.session("new", *options, env=env, cwd=cwd)
        if made.status or not UUID.fullmatch(made.out.strip()):
            raise AssertionError(f"session new {options}: {made}")
        return made.out.strip()

    def exec(self, name, script, *options, cwd=None, timeout=60, env=None):
        return self.session("exec", *options, name, "sh", "-c", script, cwd=cwd, timeout=timeout,
                            env=env)

    def show(self, name):
        shown = self.session("show", "--json", name)
        return json.loads(shown.out) if shown.status == 0 else {}

    def calls(self, name):
        return json.loads(self.session("calls", "--json", name).out or "[]")

    def dir(self, name):
        return f"{self.state}/sessions/{name}"

    # What there is of them on the host.

    def living(self):
        """pid -> name of what has to do with this place's sessions: keepers, holders, calls."""
        found = {}
        for pid in [p for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]:
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as handle:
                    name = handle.read().strip()
                inside = os.readlink(f"/proc/{pid}/ns/mnt") != OWN_MOUNTS
                with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="replace") as handle:
                    if inside and self.top in handle.read():
                        found[int(pid)] = name
                        continue
                for fd in os.listdir(f"/proc/{pid}/fd"):
                    if os.readlink(f"/proc/{pid}/fd/{fd}").startswith(f"{self.state}/sessions/"):
                        found[int(pid)] = name
                        break
            except OSError:
                continue
        return found

    def named(self, name):
        return [pid for pid, comm in self.living().items() if comm == name]

    def remains(self, *ids):
        """What is left on the host of these sessions, or of all of them: nothing, if all is well."""
        left = [f"process {pid} {name}" for pid, name in
                (wait_for(lambda: not self.living(), 3, 0.05) and {} or self.living()).items()]
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as handle:
            left += [f"mount {line}" for line in handle if self.top in line]
        top = f"{self.state}/sessions"
        there = os.listdir(top) if os.path.isdir(top) else []
        left += [f"directory {name}" for name in there
                 if name in ids or (not ids and name != ".lock")]
        for folder, folders, _ in os.walk("/sys/fs/cgroup"):
            left += [f"cgroup {folder}/{name}" for name in folders
                     if any(i in name for i in ids)]
        return left

    def close(self):
        """Whatever a failed row has left goes, too."""
        for name in os.listdir(f"{self.state}/sessions") if os.path.isdir(
                f"{self.state}/sessions") else ():
            self.session("destroy", "--discard", name)
        subprocess.run(["rm", "-rf", self.src, self.state], check=False)  # however deep it is
        super().close()
        subprocess.run(["rm", "-rf", self.top], check=False)


def has_export():
    """Whether this build can keep a session's changes when it ends."""
    asked = subprocess.run([SANDGLASS, "export", "--help"], capture_output=True, check=False)
    return asked.returncode == 0
