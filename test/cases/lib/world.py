# SPDX-License-Identifier: Apache-2.0
"""One throw-away host for one run of one row: workspace, neighbours, a caller's home, listeners."""

import os
import secrets
import shlex
import shutil
import subprocess
import time

from . import schema, sweep

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
HOME_FILES = (
    ".ssh/id_rsa", ".ssh/id_ed25519", ".aws/credentials", ".netrc", ".bash_history", ".npmrc",
    ".config/gh/hosts.yml", ".docker/config.json", ".kube/config", ".bashrc", ".profile",
)
GITCONFIG = """[user]
\tname = Caller
\temail = caller@example.com
[init]
\tdefaultBranch = main
"""
HELPERS = set()  # processes of the host that rows look at; not to be mistaken for leftovers
HOST_NAMES = ("HOSTPORT", "WSOCK", "SOCK", "DSOCK", "DLOG", "TAG", "HOSTPID", "HOSTNAP")


def _program(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as handle:
        return os.path.basename(handle.read().split(b"\0")[0])


class Identity:
    """Who a row runs as: the runner itself, or an ordinary user that no passwd file knows."""

    def __init__(self, name, uid, gid, switch):
        self.name, self.uid, self.gid, self.switch = name, uid, gid, switch

    def argv(self, argv):
        if not self.switch:
            return list(argv)
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups", "--",
                *argv]


class World:
    def __init__(self, top, identity, row, services, settings, naps):
        self.top, self.identity, self.row, self.services = top, identity, row, services
        self.foreign = bool(settings.runner)
        self.canary = sweep.make(settings.lead)
        program = settings.bin
        self.shapes = sweep.forms(self.canary)
        self.sockets, self.helpers, self.mark = [], [], secrets.randbelow(10**8) + 10**8
        self.names = {
            "WS": f"{top}/ws", "OUT": f"{top}/out", "SIB": f"{top}/sibling",
            "DECOY": f"{top}/decoy", "CHOME": f"{top}/home", "STATE": f"{top}/state",
            "CANARY": self.canary, "OPEN": "open" + secrets.token_hex(8),
            "NAP": str(naps()), "UIDN": str(identity.uid), "TOP": top, "BIN": program,
            "BINDIR": os.path.dirname(program), "RHOME": os.path.expanduser("~"),
        }
        text = repr(row)
        self._folders()
        self._host(text)

    def _folders(self):
        os.mkdir(self.top, 0o755)
        for name in ("ws", "out", "sibling", "decoy", "home"):
            os.mkdir(f"{self.top}/{name}", 0o755)
        os.mkdir(f"{self.top}/state", 0o711)
        for name in HOME_FILES:
            self._plant(f"home/{name}")
        self._plant("home/.gitconfig", GITCONFIG)
        self._plant("sibling/secret.txt")
        self._plant("decoy/.ssh/id_ed25519")
        self._plant("decoy/outside.txt", "outside\n")
        os.chmod(f"{self.top}/home", 0o700)
        if self.identity.switch:
            for path, folders, files in os.walk(self.top):
                for name in [path] + [f"{path}/{n}" for n in files]:
                    os.chown(name, self.identity.uid, self.identity.gid)

    def _plant(self, name, text=None):
        path = f"{self.top}/{name}"
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(text if text is not None else self.canary + "\n")

    def _host(self, text):
        """Host services, made only for a row that speaks of them."""
        names = {m for m in HOST_NAMES if m in text}
        banner = self.canary.encode()
        if "HOSTPORT" in names:
            sock, port = self.services.loopback(banner)
            self.sockets.append(sock)
            self.names["HOSTPORT"] = str(port)
        if "SOCK" in names or "WSOCK" in names:
            self.names["SOCK"] = f"{self.top}/out/s.sock"
            self.sockets.append(self.services.stream(self.names["SOCK"], banner))
            os.chown(self.names["SOCK"], self.identity.uid, self.identity.gid)
        if "WSOCK" in names:
            self.names["WSOCK"] = f"{self.top}/ws/sub/w.sock"
            os.mkdir(f"{self.top}/ws/sub", 0o755)
            self.sockets.append(self.services.stream(self.names["WSOCK"], banner))
            os.chown(f"{self.top}/ws/sub", self.identity.uid, self.identity.gid)
            os.chown(self.names["WSOCK"], self.identity.uid, self.identity.gid)
        if "DSOCK" in names:
            self.names["DSOCK"], self.names["DLOG"] = f"{self.top}/out/d.sock", f"{self.top}/dlog"
            self.sockets.append(self.services.datagram(self.names["DSOCK"], self.names["DLOG"]))
        if "TAG" in names:
            self.names["TAG"] = "sgcase" + secrets.token_hex(8)
            self.sockets.append(self.services.stream("\0" + self.names["TAG"], banner))
        if "HOSTPID" in names or "HOSTNAP" in names:
            nap = str(int(self.names["NAP"]) + 1)
            process = subprocess.Popen(self.identity.argv(["sleep", nap]),
                                       stdin=subprocess.DEVNULL, start_new_session=True)
            self.helpers.append(process)
            HELPERS.add(process.pid)
            until = time.monotonic() + 10
            while _program(process.pid) != b"sleep" and time.monotonic() < until:
                time.sleep(0.01)  # on the way there it is still somebody else's
            self.names["HOSTPID"], self.names["HOSTNAP"] = str(process.pid), nap

    def env(self):
        """The caller's environment."""
        env = {
            "PATH": PATH, "HOME": self.names["CHOME"], "LANG": "C.UTF-8", "TERM": "dumb",
            "SANDGLASS_HOME": self.names["STATE"],
        }
        if self.foreign:
            del env["SANDGLASS_HOME"]
            env["TMPDIR"] = "/tmp"  # many rows use it, and only sandglass sets it by itself
        for key, value in self.row.get("env_host", {}).items():
            env[key] = schema.expand(str(value), self.names)
        return env

    def shell(self, script, own=False):
        """A script of ours outside the sandbox: exit status and what it said."""
        env = {**self.names, "PATH": PATH, "HOME": self.names["CHOME"], "LANG": "C.UTF-8",
               "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory",
               "GIT_CONFIG_VALUE_0": "*"}
        if not own:
            env = {k: v for k, v in env.items() if not k.startswith("GIT_CONFIG")}
        argv = ["bash", "--noprofile", "--norc", "-c", script]
        if not own:
            argv = self.identity.argv(argv)
        done = subprocess.run(argv, env=env, cwd=self.names["WS"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                              check=False)
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def prepare(self):
        """What the row wants to find. A setup that fails makes the row worthless."""
        for key, own in (("prepare", True), ("setup", False)):
            script = self.row.get(key)
            if script:
                status, said = self.shell("set -e\n" + script, own)
                if status:
                    return f"{key} failed ({status}): {said.strip()[-300:]}"
        self.mounted = self.mounts()
        self.remember()
        return None

    def remember(self):
        """Where the canary stands by the row's own hand."""
        self.planted = sweep.files_with(self.top, self.shapes, skip=self.mounted)

    def mounts(self):
        """Mount points below this world, as this process sees them."""
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as handle:
            points = [line.split()[4] for line in handle]
        return {p for p in points if p.startswith(self.top + "/")}

    def script(self, cmd):
        """A marker on stderr proves that the shell ran; its value is in no argument."""
        half = self.mark // 2
        known = dict(self.names)
        del known["CANARY"]
        lines = [f"export {name}={shlex.quote(known[name])}"
                 for name in schema.mentioned(cmd, known)]
        lines.append(f"echo ran$(({half}+{self.mark - half})) >&2")
        lines.append(cmd)
        return "\n".join(lines)

    def marker(self):
        return f"ran{self.mark}"

    def leaks(self):
        """Files that hold the canary now and did not before."""
        found = sweep.files_with(self.top, self.shapes, skip=self.mounts()) - self.planted
        return sorted(p for p in found if not p.endswith("/dlog"))

    def close(self, keep=False):
        for sock in self.sockets:
            self.services.close(sock)
        for process in self.helpers:
            process.kill()
            process.wait()
            HELPERS.discard(process.pid)
        if not keep:
            self._remove()

    def _remove(self):
        for point in sorted(self.mounts(), reverse=True):
            subprocess.run(["umount", "-l", point], stderr=subprocess.DEVNULL, check=False)
        left = self.mounts()
        if left:
            raise RuntimeError(f"still mounted, so nothing is removed: {sorted(left)}")
        shutil.rmtree(self.top, onerror=_retry)


def _retry(function, path, _):
    """A folder that lost its permissions gets them back once."""
    try:
        os.chmod(os.path.dirname(path), 0o700)
        if not os.path.islink(path):
            os.chmod(path, 0o700)
        function(path)
    except OSError:
        pass
