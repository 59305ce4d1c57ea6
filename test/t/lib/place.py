# SPDX-License-Identifier: Apache-2.0
"""A place on the host to try things from: who, where, and how a command is started.

A Place has a source directory, a caller's home and a directory of canaries
beside it, all of one identity. Commands start bare, in bubblewrap, in plain
namespaces of util-linux or in sandglass, always with the same arguments and
the same working directory.
"""

import ctypes
import fcntl
import hashlib
import os
import pty
import secrets
import select
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time
import tty

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
SANDGLASS = os.environ.get("SANDGLASS", os.path.join(ROOT, "build", "sandglass"))
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
USER = 20001
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
SANITIZED = os.environ.get("SANDGLASS_SANITIZED") == "1"


def beside(name):
    """A product that lies where make or make install puts it."""
    top = os.path.dirname(SANDGLASS)
    for path in (f"{top}/{name}", f"{top}/../libexec/sandglass/{name}"):
        if os.path.exists(path):
            return os.path.realpath(path)
    sys.exit(f"Bail out! no {name} beside {SANDGLASS}")


class Identity:
    def __init__(self, name, uid):
        self.name, self.uid = name, uid
        switch = uid != os.geteuid()
        self.prefix = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
                       "--"] if switch else []


def identities():
    """As root everything is tried as root and as an ordinary user, else as who we are."""
    if os.geteuid() == 0:
        return [Identity("root", 0), Identity("user", USER)]
    return [Identity("user", os.geteuid())]


def identities_once():
    """For long files: over a sanitized build as the ordinary user alone."""
    return identities()[-1:] if SANITIZED else identities()


class Result:
    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds

    def __str__(self):
        return f"status {self.status} after {self.seconds:.2f} s\nstdout: {self.out}\nstderr: {self.err}"

    def row(self, name):
        """The probe's (verdict, detail) about a row; (None, '') if it said nothing."""
        for line in self.out.split("\n"):
            word = line.split(" ", 2)
            if len(word) >= 2 and word[0] == name:
                return word[1], word[2] if len(word) > 2 else ""
        return None, ""


class Place:
    """Made for who runs commands; files belong to owner, by default the same."""

    def __init__(self, who, owner=None):
        self.who, self.owner = who, owner or who
        self.top = tempfile.mkdtemp(prefix="sgt.", dir=os.environ.get("TMPDIR", "/tmp"))
        os.chmod(self.top, 0o755)
        self.canary = "canary-" + secrets.token_hex(12)
        self.processes = []
        for name, mode in (("src", 0o755), ("out", 0o755), ("home", 0o700), ("state", 0o711),
                           ("grant", 0o755), ("tmp", 0o755)):
            os.mkdir(f"{self.top}/{name}", mode)
            setattr(self, name, f"{self.top}/{name}")
            self.own(f"{self.top}/{name}")
        self.probe = self.install("sandglass-probe", f"{self.src}/probe")
        self.write(f"{self.home}/.profile", self.canary)

    # files

    def own(self, path):
        if self.owner.uid != os.geteuid():
            os.lchown(path, self.owner.uid, self.owner.uid)
        return path

    def write(self, path, text=None, mode=0o600):
        with open(path, "w", encoding="utf-8") as handle:
            handle.write((text if text is not None else self.canary) + "\n")
        os.chmod(path, mode)
        return self.own(path)

    def install(self, name, path, mode=0o755):
        shutil.copyfile(beside(name), path)
        os.chmod(path, mode)
        return self.own(path)

    # commands

    def env(self, **more):
        env = {"PATH": PATH, "HOME": self.home, "LANG": "C.UTF-8", "TERM": "dumb",
               "SANDGLASS_HOME": self.state, "TMPDIR": self.tmp}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                env[name] = os.environ[name]
        env.update(more)
        return env

    def run(self, argv, env=None, cwd=None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            fds=(), timeout=60, before=None):
        begin = time.monotonic()
        try:
            done = subprocess.run(self.who.prefix + argv, env=self.env(**(env or {})),
                                  cwd=cwd or self.src, stdin=stdin, stdout=stdout,
                                  stderr=subprocess.PIPE, close_fds=not fds, timeout=timeout,
                                  preexec_fn=before, check=False)
        except subprocess.TimeoutExpired as over:
            return Result(-1, text(over.stdout), text(over.stderr), timeout)
        return Result(done.returncode, text(done.stdout), text(done.stderr),
                      time.monotonic() - begin)

    def start(self, argv, **more):
        """The same, not waited for."""
        more.setdefault("stdin", subprocess.DEVNULL)
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        env = self.env(**more.pop("env", {}))
        process = subprocess.Popen(self.who.prefix + argv, env=env, cwd=more.pop("cwd", self.src),
                                   **more)
        self.processes.append(process)
        return process

    def inside(self, *options):
        return [SANDGLASS, "run", *options, "--"]

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe:
                    pipe.close()

        def retry(function, path, _):
            try:
                if path != self.top:  # what it lies in is not ours: /tmp
                    os.chmod(os.path.dirname(path), 0o700)
                os.chmod(path, 0o700)
                function(path)
            except OSError:
                pass
        shutil.rmtree(self.top, onerror=retry)


def text(raw):
    return (raw or b"").decode("utf-8", "replace") if isinstance(raw, (bytes, type(None))) else raw


# Ways to start a command, none of which is ours.

def bubblewrap(*more):
    """What agents use: everything unshared, the host read-only, the source writable."""
    def way(place):
        return ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc",
                "/proc", "--dev", "/dev", "--bind", place.src, place.src, "--chdir", place.src,
                *more, "--"]
    return way


def plain(_place):
    return []


def namespaces(_place):
    """A fresh user namespace where the caller may do everything, and a pid namespace whose
    first process is an ordinary shell."""
    user = [] if os.geteuid() == 0 and not _place.who.prefix else ["-U", "-r"]
    return ["unshare", *user, "-m", "-n", "-i", "-p", "-f", "--mount-proc", "sh", "-c",
            '"$@"; exit $?', "sh"]


def with_setup(script):
    """Namespaces in which a script runs first."""
    def way(place):
        argv = namespaces(place)
        argv[argv.index('"$@"; exit $?')] = script + '\n"$@"; exit $?'
        return argv
    return way


# Looking from outside.

def own_network():
    """Everything that follows happens in a network of our own, with addresses of the world."""
    if LIBC.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWNET)")
    for command in ("ip link set lo up", "ip addr add 192.0.2.1/32 dev lo",
                    "ip addr add 10.9.8.7/32 dev lo"):
        subprocess.run(command.split(), check=True)


def snapshot(path):
    """What could change about a file: content, mode, owner, times, links, attributes."""
    st = os.lstat(path)
    attributes = {}
    for name in os.listxattr(path, follow_symlinks=False):
        attributes[name] = os.getxattr(path, name, follow_symlinks=False)
    with open(path, "rb") as handle:
        content = hashlib.sha256(handle.read()).hexdigest()
    return (content, stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid, st.st_mtime_ns, st.st_nlink,
            st.st_ino, tuple(sorted(attributes.items())))


def set_id_files(top):
    found = subprocess.run(["find", top, "-perm", "/6000"], capture_output=True, text=True,
                           check=True)
    return found.stdout.split("\n")[:-1]


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as handle:
            return handle.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children_of():
    """ppid -> pids of all processes, from one walk through /proc."""
    tree = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as handle:
                fields = handle.read().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        tree.setdefault(int(fields[1]), []).append(int(name))
    return tree


def descendants(pid):
    tree, found, todo = children_of(), [], [pid]
    while todo:
        for child in tree.get(todo.pop(), ()):
            found.append(child)
            todo.append(child)
    return found


def wait_for(condition, seconds=5.0, step=0.005):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(step)
    return condition()


# A terminal.

class Terminal:
    """A pseudo terminal whose other end is ours, as the caller's own."""

    def __init__(self, place, path=None):
        self.place, self.path, self.said = place, path, b""
        if path:  # a terminal of the machine, whose other end nobody has
            self.master, self.slave = None, os.open(path, os.O_RDWR | os.O_NOCTTY)
        else:
            self.master, self.slave = pty.openpty()
            fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            mode = termios.tcgetattr(self.slave)
            mode[3] &= ~termios.ECHO  # what is typed must not be taken for what is said
            termios.tcsetattr(self.slave, termios.TCSANOW, mode)
            place.own(os.ttyname(self.slave))

    def run(self, argv, env=None, seconds=30, out=None):
        """Runs argv with the terminal as 0 (1 and 2 too unless out is given) and as its own."""
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
                os.dup2(self.slave, 0)
                for fd in (1, 2):
                    os.dup2(self.slave if out is None else out, fd)
                os.chdir(self.place.src)
                argv = self.place.who.prefix + argv
                os.execvpe(argv[0], argv, self.place.env(**(env or {})))
            finally:
                os._exit(127)
        until = time.monotonic() + seconds
        while True:
            self._listen(0.02)
            got, status = os.waitpid(pid, os.WNOHANG)
            if got:
                break
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
        self._listen(0.05)
        return os.waitstatus_to_exitcode(status), self.said.decode("utf-8", "replace")

    def _listen(self, wait):
        while self.master is not None and select.select([self.master], [], [], wait)[0]:
            try:
                self.said += os.read(self.master, 65536)
            except OSError:
                return
            wait = 0
        if self.master is None:
            time.sleep(wait)

    def typed(self):
        """What somebody typed for the caller: what is left to read at our side of it."""
        tty.setraw(self.slave, termios.TCSANOW)
        os.set_blocking(self.slave, False)
        try:
            return os.read(self.slave, 4096)
        except BlockingIOError:
            return b""

    def close(self):
        os.close(self.slave)
        if self.master is not None:
            os.close(self.master)
