#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The rung `landlock`: what it promises, tried from inside and looked at from outside.

Each attempt runs bare first, where it must succeed, and then inside, where it
must be refused and nothing may have happened. Then what is lost is shown to be
lost, and to be named; then how a tree ends, and what is left of AGENT_ROOT.
"""

import ctypes
import json
import mmap
import os
import secrets
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import (SANDGLASS, SANITIZED, USER, Identity, Place, alive, descendants,  # noqa: E402
                   identities, wait_for)

LIBC = ctypes.CDLL(None, use_errno=True)
IPC_CREAT, IPC_RMID = 0o1000, 0

# One attempt a line: name, then Python that raises OSError where it is refused.
TRY = r"""
import ctypes, errno, os, resource, socket, struct, sys
E = dict(a.split("=", 1) for a in sys.argv[1:])
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.shmat.restype = ctypes.c_void_p
def call(name, *args):
    r = getattr(libc, name)(*args)
    if r == -1 or r == 2**64 - 1:
        raise OSError(ctypes.get_errno(), name)
    return r
def nr(number, *args):
    r = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a
                                              for a in args])
    if r < 0:
        raise OSError(ctypes.get_errno(), str(number))
    return r
def read(path):
    with open(path, "rb") as f:
        if not f.read(1):
            raise OSError(errno.ENODATA, path)
def write(path):
    with open(path, "a") as f:
        f.write("x")
def sock(*args, to=None, data=None):
    s = socket.socket(*args)
    s.connect(to) if data is None else s.sendto(data, to)
    if data is None and not s.recv(1):
        raise OSError(errno.ENODATA, "nothing said")
def pair(kind):
    a, b = socket.socketpair(socket.AF_UNIX, kind)
    a.sendto(b"pair", E["dgram"])
def attach(pid):
    call("ptrace", 16, pid, None, None)
    os.waitpid(pid, 0x40000000)
    call("ptrace", 17, pid, None, None)
def remote(pid):
    class V(ctypes.Structure):
        _fields_ = [("p", ctypes.c_void_p), ("n", ctypes.c_size_t)]
    buf = ctypes.create_string_buffer(8)
    mine, theirs = V(ctypes.addressof(buf), 8), V(int(E["address"], 16), 8)
    call("process_vm_readv", pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0)
def shm(key):
    at = call("shmat", call("shmget", key, 0, 0), None, 0o10000)
    ctypes.string_at(at, 8)
def namespace():
    if os.fork() == 0:
        os._exit(0 if libc.unshare(0x10000000) == 0 else ctypes.get_errno())
    code = os.waitstatus_to_exitcode(os.wait()[1])
    if code:
        raise OSError(code, "unshare")
def set_id():
    write("plain")
    os.chmod("plain", 0o4755)
def execute():
    import subprocess
    if subprocess.run([E["out"] + "/program"]).returncode != 9:
        raise OSError(errno.ENODATA, "did not run")
pid = int(E["pid"])
for name, f in (
    ("read", lambda: read(E["home"] + "/.profile")),
    ("read-by-link", lambda: (os.symlink(E["home"], "l"), read("l/.profile"))),
    ("list", lambda: os.listdir(E["home"])),
    ("write", lambda: write(E["out"] + "/made")),
    ("append", lambda: write(E["out"] + "/there")),
    ("truncate", lambda: os.truncate(E["out"] + "/cut", 0)),
    ("cut-on-open", lambda: os.close(os.open(E["shown"] + "/cut", os.O_RDONLY | os.O_TRUNC))),
    ("remove", lambda: os.unlink(E["out"] + "/gone")),
    ("mkdir", lambda: os.mkdir(E["out"] + "/dir")),
    ("rename-out", lambda: (write("mine"), os.rename("mine", E["out"] + "/renamed"))),
    ("link-in", lambda: os.link(E["out"] + "/there", "linked")),
    ("execute", execute),
    ("environ", lambda: read("/proc/%d/environ" % pid)),
    ("cmdline", lambda: read("/proc/%d/cmdline" % pid)),
    ("mem", lambda: os.close(os.open("/proc/%d/mem" % pid, os.O_RDONLY))),
    ("proc-cwd", lambda: os.listdir("/proc/%d/cwd" % pid)),
    ("proc-list", lambda: os.listdir("/proc")),
    ("kill", lambda: os.kill(pid, 0)),
    ("sigqueue", lambda: nr(129, pid, 0, struct.pack("iii116x", 0, 0, -1))),
    ("pidfd-signal", lambda: nr(424, nr(434, pid, 0), 0, 0, 0)),
    ("ptrace", lambda: attach(pid)),
    ("vm-readv", lambda: remote(pid)),
    ("pidfd-getfd", lambda: nr(438, nr(434, pid, 0), 0, 0)),
    ("prlimit", lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (200, 200))),
    ("renice", lambda: os.setpriority(os.PRIO_PROCESS, pid, 7)),
    ("affinity", lambda: os.sched_setaffinity(pid, os.sched_getaffinity(0))),
    ("tcp", lambda: sock(socket.AF_INET, socket.SOCK_STREAM, to=("127.0.0.1", int(E["tcp"])))),
    ("udp", lambda: sock(socket.AF_INET, socket.SOCK_DGRAM, to=("127.0.0.1", int(E["udp"])),
                         data=b"udp")),
    ("mptcp", lambda: sock(socket.AF_INET, socket.SOCK_STREAM, 262,
                           to=("127.0.0.1", int(E["tcp"])))),
    ("listen", lambda: socket.create_server(("127.0.0.1", 0))),
    ("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)),
    ("unix", lambda: sock(socket.AF_UNIX, socket.SOCK_STREAM, to=E["unix"])),
    ("unix-dgram", lambda: sock(socket.AF_UNIX, socket.SOCK_DGRAM, to=E["dgram"], data=b"dg")),
    ("pair-dgram", lambda: pair(socket.SOCK_DGRAM)),
    ("pair-raw", lambda: pair(socket.SOCK_RAW)),
    ("abstract", lambda: sock(socket.AF_UNIX, socket.SOCK_STREAM, to="\0" + E["tag"])),
    ("sysv", lambda: shm(int(E["shm"]))),
    ("posix-queue", lambda: call("mq_open", E["queue"].encode(), 0)),
    ("posix-shm", lambda: read("/dev/shm/" + E["tag"])),
    ("tmp", lambda: read(E["tmp"] + "/secret")),
    ("userns", namespace),
    ("set-id", set_id),
):
    try:
        f()
        print(name, "DONE", flush=True)
    except OSError as e:
        print(name, "REFUSED", errno.errorcode.get(e.errno, e.errno), flush=True)
"""

# Errors that only what is behind the refusal gives: with one of these nothing was refused.
REACHED = {"EFAULT", "EBADF", "EINVAL", "ENODATA", "ECONNREFUSED"}
# Held from Landlock's ABI 6 on; before, `signals` is in not_enforced.
SIGNALS = {"kill", "sigqueue", "pidfd-signal"}
# Not to be had bare on every machine: an abstract MPTCP, a kernel without it.
OPTIONAL = {"mptcp", "userns", "posix-queue"}


class Host:
    """What there is to reach: files, sockets, queues and a process of the same user."""

    def __init__(self, place):
        self.place, self.log, self.sockets = place, [], []
        uid = place.owner.uid
        for name in ("there", "cut", "gone"):
            place.write(f"{place.out}/{name}")
        place.write(f"{place.out}/program", "#!/bin/sh\nexit 9", 0o755)
        place.write(f"{place.grant}/cut")
        place.write(f"{place.tmp}/secret")
        self.tag = "sgl" + secrets.token_hex(8)
        self.helper = subprocess.Popen(
            ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--", "env",
             f"CANARY={place.canary}", "sleep", "600"] if uid != os.geteuid() else
            ["env", f"CANARY={place.canary}", "sleep", "600"], stdin=subprocess.DEVNULL)
        wait_for(lambda: open(f"/proc/{self.helper.pid}/comm", encoding="utf-8").read() ==
                 "sleep\n")
        self.tcp = self._listen(socket.AF_INET, ("127.0.0.1", 0))
        self.udp = self._dgram(socket.AF_INET, ("127.0.0.1", 0))
        self.unix = self._listen(socket.AF_UNIX, f"{place.out}/s")
        self.dgram = self._dgram(socket.AF_UNIX, f"{place.out}/d")
        self._listen(socket.AF_UNIX, "\0" + self.tag)
        self.key = 0x53000000 + secrets.randbelow(1 << 20)
        self.shm = LIBC.shmget(self.key, mmap.PAGESIZE, IPC_CREAT | 0o666)
        self.queue = "/" + self.tag
        LIBC.mq_open(self.queue.encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
        place.write(f"/dev/shm/{self.tag}")
        with open(f"/proc/{self.helper.pid}/maps", encoding="utf-8") as handle:
            self.address = handle.readline().split("-")[0]

    def _listen(self, family, address):
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.bind(address)
        sock.listen(64)
        if family == socket.AF_UNIX and address[0] == "/":
            os.chmod(address, 0o666)
        pid = os.fork()
        if pid == 0:  # says hello to everybody
            while True:
                try:
                    peer, _ = sock.accept()
                    peer.send(b"hello")
                    peer.close()
                except OSError:
                    os._exit(0)
        self.sockets.append((sock, pid))
        return sock.getsockname()[1] if family == socket.AF_INET else address

    def _dgram(self, family, address):
        sock = socket.socket(family, socket.SOCK_DGRAM)
        sock.bind(address)
        sock.setblocking(False)
        if family == socket.AF_UNIX:
            os.chmod(address, 0o666)
        self.sockets.append((sock, 0))
        return sock.getsockname()[1] if family == socket.AF_INET else address

    def heard(self):
        """What arrived at the datagram sockets since the last look."""
        said = []
        for sock, pid in self.sockets:
            while not pid:
                try:
                    said.append(sock.recv(100))
                except BlockingIOError:
                    break
        return said

    def args(self):
        p = self.place
        return [f"home={p.home}", f"out={p.out}", f"shown={p.grant}", f"tmp={p.tmp}",
                f"pid={self.helper.pid}", f"tcp={self.tcp}", f"udp={self.udp}",
                f"unix={self.unix}", f"dgram={self.dgram}", f"tag={self.tag}", f"shm={self.key}",
                f"queue={self.queue}", f"address={self.address}"]

    def close(self):
        for sock, pid in self.sockets:
            sock.close()
            if pid:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        self.helper.kill()
        self.helper.wait()
        LIBC.shmctl(self.shm, IPC_RMID, None)
        LIBC.mq_unlink(self.queue.encode())
        os.unlink(f"/dev/shm/{self.tag}")


def verdicts(result):
    found = {}
    for line in result.out.split("\n"):
        word = line.split(" ")
        if len(word) >= 2 and word[1] in ("DONE", "REFUSED"):
            found[word[0]] = word[1:]
    return found


def rung(*options):
    return [SANDGLASS, "run", "--isolation", "landlock", *options, "--"]


def tree_of(path):
    """Names, sizes and modes of all that lies there."""
    found = []
    for top, dirs, files in os.walk(path):
        for name in dirs + files:
            st = os.lstat(f"{top}/{name}")
            found.append((f"{top}/{name}", st.st_size, st.st_mode, st.st_nlink))
    return sorted(found)


def new_place(who):
    """As root the source belongs to an ordinary user, whom the command becomes."""
    return Place(who, Identity("user", USER) if who.uid == 0 else who)


def attempts(who):
    place = new_place(who)
    host = Host(place)
    try:
        place.write(f"{place.src}/try.py", TRY, 0o644)
        as_owner = ["setpriv", f"--reuid={place.owner.uid}", f"--regid={place.owner.uid}",
                    "--clear-groups", "--"] if who.uid == 0 else []
        argv = ["/usr/bin/python3", "-I", "try.py", *host.args()]
        before = tree_of(place.out)
        host.heard()
        inside = place.run(rung("--read", place.grant, "--quiet") + argv)
        after, said = tree_of(place.out), host.heard()
        with open(f"/proc/{host.helper.pid}/limits", encoding="utf-8") as handle:
            limit = [line.split()[3] for line in handle if line.startswith("Max open files")]
        for name in ("l", "linked", "mine", "plain"):
            if os.path.lexists(f"{place.src}/{name}"):
                os.unlink(f"{place.src}/{name}")
        control = verdicts(place.run(as_owner + argv))
        got = verdicts(inside)
        tap.ok(len(got) == len(control) > 40, f"{who.name}: every attempt was made",
               inside, len(control))
        abi = json.loads(place.run([SANDGLASS, "doctor", "--json"]).out)["features"]["landlock"]["abi"]
        for name, what in got.items():
            if name in SIGNALS and abi < 6:
                tap.ok(what[0] == "DONE", f"{who.name}: {name} is lost at ABI {abi}, and named", what)
                continue
            there = control.get(name, ["?"])
            if there[0] != "DONE" and name in OPTIONAL:
                tap.ok(what[0] == "REFUSED", f"{who.name}: {name} (this host has it not: "
                       f"{there[-1]})", what)
                continue
            tap.ok(there[0] == "DONE" and what[0] == "REFUSED" and what[1] not in REACHED,
                   f"{who.name}: {name}", f"bare {there}, inside {what}")
        tap.ok(before == after, f"{who.name}: nothing outside has changed", before, after)
        tap.ok(not said and host.heard(), f"{who.name}: no datagram arrived, bare they do", said)
        tap.ok(limit != ["200"] and alive(host.helper.pid),
               f"{who.name}: the other process is as it was", limit)
        tap.ok(place.canary not in inside.out + inside.err, f"{who.name}: no canary was said")
    finally:
        host.close()
        place.close()


def environment(who):
    place = new_place(who)
    try:
        secret = secrets.token_hex(12)
        done = place.run(rung("--quiet", "--env", "GIVEN=yes") +
                         ["sh", "-c", "env; id -u; id -G; pwd"],
                         env={"SECRET_TOKEN": secret})
        env = dict(line.split("=", 1) for line in done.out.split("\n") if "=" in line)
        root = env.get("AGENT_ROOT", "")
        tap.ok(secret not in done.out and env.get("GIVEN") == "yes",
               f"{who.name}: of the caller's variables only what was named", done)
        tap.ok(root.startswith(f"{place.state}/sessions/") and env.get("HOME") == f"{root}/home" and
               env.get("TMPDIR") == f"{root}/tmp" and
               env.get("XDG_CACHE_HOME") == f"{root}/cache",
               f"{who.name}: AGENT_ROOT is a path of the host, and the others lie in it", done)
        tap.ok(done.out.split("\n")[-4:-1] == [str(place.owner.uid)] * 2 + [place.src],
               f"{who.name}: the command is the source's owner, in the source", done)
        json_run = place.run(rung("--json") + ["sh", "-c", "echo $AGENT_ROOT"])
        result = json.loads(json_run.out)
        box = result["sandbox"]
        tap.ok(box["isolation"] == "landlock" and
               result["agent_root"] == result["stdout"]["text"].strip() and
               box["runs_as"] == ("source-owner" if who.uid == 0 else "caller"),
               f"{who.name}: the result says which rung, where and who", json_run)
        names = {"mount-view", "metadata", "masks", "protected-names", "nodev", "pid", "uts",
                 "user-counters", "private-tmp", "kill-of-all", "pids", "disk", "inodes"}
        if box["landlock"] < 6:
            names.add("signals")
        tap.ok(names <= set(box["not_enforced"]) and
               {"landlock", "seccomp", "no_new_privs", "net", "ipc"} <= set(box["enforced"]),
               f"{who.name}: and what is lost", box)
        again = json.loads(place.run(rung("--json") + ["true"]).out)["sandbox"]
        tap.ok(again["policy_sha256"] == box["policy_sha256"],
               f"{who.name}: equal policies have equal hashes")
        loud = place.run(rung() + ["true"])
        tap.ok("not enforced: mount-view metadata" in loud.err,
               f"{who.name}: without --json stderr says it", loud)
    finally:
        place.close()


def lost(who):
    """What is named as lost is lost: no more is claimed, and no less."""
    place = new_place(who)
    try:
        path = place.write(f"{place.out}/file", "x", 0o600)
        done = place.run(rung("--quiet") + ["sh", "-c", f"stat -c %s {path} && chmod 640 {path}"])
        tap.ok(done.status == 0 and os.stat(path).st_mode & 0o777 == 0o640,
               f"{who.name}: mount-view and metadata are lost, as it says", done)
        done = place.run(rung("--quiet") + ["sh", "-c", f"cat {path}; echo y >{path}; "
                                                        f"head -c1 /proc/self/status; ls /"])
        tap.ok(done.out == "", f"{who.name}: contents and lists are not", done)
    finally:
        place.close()


WORKS = r"""
set -e
python3 - <<'P'
import asyncio, concurrent.futures, sqlite3, subprocess, tempfile, threading
print(subprocess.run(["echo", "child"], capture_output=True, text=True).stdout, end="")
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    print(list(pool.map(abs, [-1, -2])))
print(asyncio.run(asyncio.sleep(0, "loop")))
sqlite3.connect("x.db").execute("create table t (a)")
tempfile.NamedTemporaryFile().write(b"x")
P
git init -q r && cd r && git config user.name a && git config user.email a@b && echo x >f
git add f && git commit -qm first && git checkout -qb other && git log --format=%s
cd .. && printf 'int main(void) { return 0; }\n' >a.c && cc -o a a.c && ./a && echo compiled
printf 'all:\n\t@echo made\n' >Makefile && make -s -j2
cat <(echo substituted) && echo x | tee $TMPDIR/t && mkdir a1 b1 && touch a1/f && mv a1/f b1/f
mktemp >/dev/null && echo y >$HOME/z && : >$XDG_CACHE_HOME/c && ls b1
if (: >$AGENT_ROOT/logs/l) 2>/dev/null; then exit 5; fi
"""


def works(who):
    place = new_place(who)
    try:
        done = place.run(rung("--quiet") + ["bash", "-c", WORKS])
        want = "child [1, 2] loop first compiled made substituted x f".split()
        tap.ok(done.status == 0 and done.out.split() == " ".join(want).split(),
               f"{who.name}: python, git, cc, make, shells and files work", done)
        if os.access("/usr/bin/node", os.X_OK):
            script = ("const c = require('child_process'); console.log(c.execSync('echo node')"
                      ".toString().trim()); new (require('worker_threads').Worker)"
                      "('console.log(1)', {eval: true})")
            done = place.run(rung("--quiet") + ["node", "-e", script])
            tap.ok(done.out.split() == ["node", "1"], f"{who.name}: node works", done)
        with open(f"{place.src}/in", "w", encoding="utf-8") as handle:
            handle.write("line\n")
        os.chmod(f"{place.src}/in", 0o600)
        with open(f"{place.src}/in", encoding="utf-8") as handle:
            done = place.run(rung("--quiet") + ["sh", "-c", "cat; chmod 777 /dev/stdin; :"],
                             stdin=handle)
        tap.ok(done.out == "line\n" and os.stat(f"{place.src}/in").st_mode & 0o777 == 0o600,
               f"{who.name}: a file at stdin is read, and its mode is out of reach", done)
        if who.uid == 0:
            os.chmod(place.state, 0o755)  # a session's uid has to get through
        done = place.run(rung("--quiet", "--mode", "read-only") +
                         ["sh", "-c", "cat in 2>/dev/null; echo x >new; echo y >$TMPDIR/a && "
                                      "cat $TMPDIR/a"])
        tap.ok(done.out.endswith("y\n") and not os.path.exists(f"{place.src}/new"),
               f"{who.name}: read-only leaves the source alone", done)
        done = place.run(rung("--quiet", "--no-source") + ["sh", "-c", "pwd; echo x >f; cat f"])
        tap.ok(done.out.split("\n")[0].endswith("/root/workspace") and
               done.out.split("\n")[1] == "x", f"{who.name}: no source", done)
        done = place.run([SANDGLASS, "run", "--isolation", "landlock", "--quiet", "-c",
                          "exit 7"])
        tap.ok(done.status == 7, f"{who.name}: the status is the command's", done)
        done = place.run(rung("--quiet", "--timeout", "300ms", "--grace", "100ms") +
                         ["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"])
        tap.ok(done.status == 124 and done.seconds < 5, f"{who.name}: its time is over", done)
    finally:
        place.close()


def naps(word):
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit():
                with open(f"/proc/{name}/cmdline", "rb") as handle:
                    if f"600.{word}".encode() in handle.read().split(b"\0"):
                        found.append(int(name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return [pid for pid in found if alive(pid)]


# Stay if you can: TERM ignored, sessions of their own, no parent, stopped.
TREE = """
trap '' TERM HUP INT
sleep 600.WORD &
(setsid sh -c "trap '' TERM; (sleep 600.WORD &); sleep 600.WORD & wait" &)
(sleep 600.WORD & p=$!; sleep 0.2; kill -STOP $p)
END
"""


def ending(who):
    place = new_place(who)
    try:
        for how in ("exit", "front", "core", "term", "both"):
            word = str(secrets.randbelow(10**12) + 10**12)
            end = "exec sleep 600.WORD" if how != "exit" else "sleep 0.3"
            script = TREE.replace("END", end).replace("WORD", word)
            process = place.start([SANDGLASS, "run", "--isolation", "landlock", "--quiet",
                                   "--grace", "200ms", "-c", script])
            wanted = 4 if how == "exit" else 5
            there = wait_for(lambda: len(naps(word)) >= wanted - (how == "exit"), 10)
            core = [p for p in descendants(process.pid)
                    if open(f"/proc/{p}/comm", encoding="utf-8").read().startswith("sandglass-c")]
            if how == "both":
                os.kill(process.pid, signal.SIGSTOP)
            if how in ("core", "both"):
                os.kill(core[0], signal.SIGKILL)
            if how in ("front", "both"):
                os.kill(process.pid, signal.SIGKILL)
            if how == "term":
                os.kill(process.pid, signal.SIGTERM)
            process.wait(timeout=20)
            left = wait_for(lambda: not naps(word), 5 if how != "both" else 0.5)
            if how == "both":
                tap.ok(there and len(naps(word)) == 4, f"{who.name}: KILL of front and core at "
                       "once ends the command alone, as it says (kill-of-all)", naps(word))
            else:
                tap.ok(there and left, f"{who.name}: {how}: nothing of the tree is left",
                       naps(word), core)
            for pid in naps(word):
                os.kill(pid, signal.SIGKILL)
        sessions = f"{place.state}/sessions"
        tap.ok([n for n in os.listdir(sessions) if n[0] != "."],
               f"{who.name}: what was killed left its AGENT_ROOT", os.listdir(sessions))
        place.run(rung("--quiet") + ["true"])
        tap.ok(not [n for n in os.listdir(sessions) if n[0] != "."],
               f"{who.name}: the next start removes it", os.listdir(sessions))
    finally:
        place.close()


MESS = r"""
cd $HOME && ln -s OUT out && ln -s OUT/there link && mkdir -p a/b c && chmod 500 a/b && chmod 0 c
i=0; mkdir deep; cd deep; while [ $i -lt 600 ]; do mkdir ddddddddd && cd ddddddddd; i=$((i+1)); done
mkfifo f; : >x
"""


def removal(who):
    place = new_place(who)
    try:
        place.write(f"{place.out}/there")
        before = tree_of(place.out)
        done = place.run(rung("--quiet") + ["bash", "-c", MESS.replace("OUT", place.out)])
        left = [n for n in os.listdir(f"{place.state}/sessions") if n[0] != "."]
        tap.ok(done.status == 0 and not left and tree_of(place.out) == before,
               f"{who.name}: AGENT_ROOT goes, whatever is in it, and no link is followed", done,
               left)
        if who.name == "root":
            os.chmod(place.state, 0o700)
            done = place.run(rung("--quiet") + ["true"])
            tap.ok(done.status == 125 and "CONFIG_INVALID" in done.err
                   and f"chmod o+x {place.state}" in done.err
                   and os.stat(place.state).st_mode & 0o777 == 0o700,
                   "root: a named home that lets no other user through is refused, not opened", done)
            os.chmod(place.state, 0o711)
        word = str(secrets.randbelow(10**12) + 10**12)
        first = place.start(rung("--quiet") + ["sleep", f"600.{word}"])
        wait_for(lambda: naps(word), 10)
        place.run(rung("--quiet") + ["true"])
        tap.ok(len([n for n in os.listdir(f"{place.state}/sessions") if n[0] != "."]) == 1,
               f"{who.name}: one that is in use stays")
        first.terminate()
        first.wait()
    finally:
        place.close()


def refused(who):
    place = new_place(who)
    try:
        os.mkdir(f"{place.src}/sub")
        place.own(f"{place.src}/sub")
        rows = [
            (["--read", f"{place.src}/sub"], "SANDBOX_UNAVAILABLE", "cannot make it narrower"),
            (["--disk", "1GiB"], "LIMIT_UNAVAILABLE", "disk"),
            (["--inodes", "1000"], "LIMIT_UNAVAILABLE", "inodes"),
            (["--dangerously-full-access"], "CONFIG_INVALID", "exclude each other"),
        ]
        for options, code, message in rows:
            done = place.run(rung(*options) + ["echo", "ran"])
            tap.ok(done.status == 125 and done.out == "" and
                   done.err.strip().split("\n")[-1].startswith(f"sandglass: {code}: ") and
                   message in done.err, f"{who.name}: {options[0]} {options[-1][:12]}: {code}",
                   done)
        done = place.run([SANDGLASS, "run", "--isolation", "gvisor", "echo", "ran"])
        tap.ok("UNSUPPORTED" in done.err and not done.out, f"{who.name}: gvisor: UNSUPPORTED", done)
        nested = place.run(rung("--quiet", "--read", os.path.dirname(SANDGLASS)) +
                           rung("--quiet") + ["echo", "ran"])
        tap.ok(nested.status == 125 and "NESTED_SANDBOX" in nested.err and "ran" not in nested.out,
               f"{who.name}: no rung inside a rung", nested)
        nested = place.run(rung("--quiet", "--read", os.path.dirname(SANDGLASS)) +
                           [SANDGLASS, "run", "--", "echo", "ran"])
        tap.ok(nested.status == 125 and "NESTED_SANDBOX" in nested.err and "ran" not in nested.out,
               f"{who.name}: no namespaces inside a rung", nested)
        if who.uid == 0:
            os.chown(place.src, 0, 0)
            done = place.run(rung() + ["echo", "ran"])
            tap.ok("POLICY_DENIED" in done.err and done.status == 125 and not done.out,
                   "root: a source of root's is not written", done)
            os.chmod(place.state, 0o755)
            done = place.run(rung("--quiet", "--mode", "read-only") + ["id", "-u"])
            tap.ok(done.out.strip().isdigit() and int(done.out) >= 1879100000,
                   "root: to read it the command is nobody", done)
    finally:
        place.close()


for someone in identities():
    for part in (attempts, environment, lost, works, ending, removal, refused):
        if SANITIZED and part is ending:
            continue  # a sanitized program of ours takes seconds to start and to end
        tap.attempt(f"{someone.name}: {part.__name__}", part, someone)
sys.exit(tap.done())
