#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every row of the probe: its control first, which must get out, then inside, which must not.

The control is the same row bare or in plain namespaces (src/probe/ROWS.md says
which and why). What can be seen from outside is looked at after both: the
control must have left its mark, the sandbox must not. As root all rows run
three times: as root over root's own source, as root over an ordinary user's,
and as that user.

usage: probe.t [ROW…]
"""

import ctypes
import errno
import os
import secrets
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import (CLONE_NEWNET, LIBC, USER, Identity, Place, Result, Terminal, alive, beside,  # noqa: E402
                   bubblewrap, identities, namespaces, own_network, plain, snapshot, wait_for,
                   with_setup)

ROOT_TEST = os.geteuid() == 0
IPC_CREAT, IPC_RMID = 0o1000, 0
CONTROL_TRIES = 3


class Fixture:
    """What a row finds, and how its effect is seen from outside."""

    def __init__(self, sets=(), options=(), harm=None, close=None, **start):
        self.sets, self.options, self.start = list(sets), list(options), start
        self.harm, self.close = harm, close


class Row:
    def __init__(self, name, root=plain, user=None, fixture=None, label=None, needs_root=False,
                 options=()):
        self.name, self.fixture, self.needs_root = name, fixture, needs_root
        self.title = f"{name} ({label})" if label else name
        self.ways = {"root": root, "user": user or root}
        self.options = list(options)


# Listeners of the host: each writes down who came.

class Server:
    def __init__(self, family, kind, address, canary, mode=0o666):
        self.sock = socket.socket(family, kind)
        self.kind, self.canary, self.came = kind, canary.encode(), []
        if family == socket.AF_INET:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind(address)
        if isinstance(address, str) and not address.startswith("\0"):
            os.chmod(address, mode)
        if kind == socket.SOCK_STREAM:
            self.sock.listen(16)
        self.sock.settimeout(0.1)
        self.stop = False
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while not self.stop:
            try:
                if self.kind == socket.SOCK_STREAM:
                    peer, _ = self.sock.accept()
                    self.came.append("connection")
                    peer.settimeout(1)
                    peer.sendall(self.canary)
                    peer.close()
                else:
                    self.came.append(self.sock.recv(64))
            except OSError:
                continue

    def close(self):
        self.stop = True
        self.thread.join()
        self.sock.close()


def sockets(servers, sets, options=()):
    def close():
        for server in servers:
            server.close()

    def harm():
        return wait_for(lambda: any(s.came for s in servers), 0.15)
    return Fixture(sets, options, harm, close)


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def host_loopback(place):
    server = Server(socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", 0), place.canary)
    sets = [f"port={server.sock.getsockname()[1]}"]
    if ROOT_TEST:
        sets.append("addr=10.9.8.7")
    return sockets([server], sets)


def call_home(place):
    tcp = Server(socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 0), place.canary)
    port = tcp.sock.getsockname()[1]
    udp = Server(socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", port), place.canary)
    return sockets([tcp, udp], [f"home=192.0.2.1:{port}"])


def unix_sockets(key, kind, where, granted):
    def fixture(place):
        path = f"{place.top}/{where}/s.{key}"
        server = Server(socket.AF_UNIX, kind, path, place.canary)
        return sockets([server], [f"{key}={path}"],
                       ["--read", place.grant] if granted == "read" else
                       ["--write", place.grant] if granted == "write" else [])
    return fixture


def bound_otherwise(how):
    """A listener in the source that no list of names leads to."""
    def fixture(place):
        deep = f"{place.src}/a/b"
        os.makedirs(deep, 0o755)
        path, here, made = f"{deep}/s", os.getcwd(), []
        if how == "relative":
            os.chdir(deep)
            made.append(Server(socket.AF_UNIX, socket.SOCK_STREAM, "s", place.canary))
            os.chdir(here)
        elif how == "renamed":
            made.append(Server(socket.AF_UNIX, socket.SOCK_STREAM, f"{deep}/first", place.canary))
            os.rename(f"{deep}/first", path)
        elif how == "proc":
            fd = os.open(deep, os.O_PATH)
            made.append(Server(socket.AF_UNIX, socket.SOCK_STREAM, f"/proc/self/fd/{fd}/s",
                               place.canary))
            os.close(fd)
        else:
            def elsewhere():
                if LIBC.unshare(CLONE_NEWNET) == 0:
                    made.append(Server(socket.AF_UNIX, socket.SOCK_STREAM, path, place.canary))
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
        return sockets(made, [f"sock={path}"])
    return fixture


def abstract(place):
    name = "sgt." + secrets.token_hex(8)
    stream = Server(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + name, place.canary)
    return sockets([stream], [f"abstract={name}"])


def abstract_datagram(place):
    name = "sgt." + secrets.token_hex(8)
    return sockets([Server(socket.AF_UNIX, socket.SOCK_DGRAM, "\0" + name, place.canary)],
                   [f"abstract={name}"])


def listener(place):
    """The host knocks at the port for as long as the row waits."""
    port, reached, stop = free_port(), [], threading.Event()

    def knock():
        while not stop.is_set():
            try:
                with socket.create_connection(("127.0.0.1", port), 0.2) as sock:
                    reached.append(sock.recv(16))
            except OSError:
                time.sleep(0.01)
    thread = threading.Thread(target=knock, daemon=True)
    thread.start()

    def close():
        stop.set()
        thread.join()
    return Fixture([f"port={port}", "hold=700"], (), lambda: wait_for(lambda: reached, 0.3), close)


def stdin_tcp(place):
    """A connection of somebody else, as a server hands it to what it starts."""
    secret = Server(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0), place.canary)
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
    fixture = sockets([secret], [f"port={secret.sock.getsockname()[1]}"])
    fixture.start, fixture.keep = {"stdin": ours}, client
    return fixture


def stdin_udp(place):
    secret = Server(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0), place.canary)
    ours = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ours.connect(("127.0.0.1", free_port()))
    fixture = sockets([secret], [f"port={secret.sock.getsockname()[1]}"])
    fixture.start = {"stdin": ours}
    return fixture


def stdin_datagrams(key):
    def fixture(place):
        name = "sgt." + secrets.token_hex(8) if key == "abstract" else f"{place.out}/s"
        address = "\0" + name if key == "abstract" else name
        server = Server(socket.AF_UNIX, socket.SOCK_DGRAM, address, place.canary)
        ours, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        made = sockets([server], [f"{key}={name}"])
        made.start, made.keep = {"stdin": ours}, other
        return made
    return fixture


def fifo(where):
    """Somebody on the host reads it."""
    def fixture(place):
        path = f"{place.top}/{where}/fifo"
        os.mkfifo(path)
        os.chmod(path, 0o666)
        place.own(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

        def harm():
            try:
                return b"probe" in os.read(reader, 4096)
            except BlockingIOError:
                return False
        return Fixture([f"fifo={path}"], ["--read", place.grant] if where == "grant" else (), harm,
                       lambda: os.close(reader))
    return fixture


# Files of the host.

def visible_file(key, before=None):
    """A file that is granted for reading, and that nothing may change."""
    def fixture(place):
        path = place.write(f"{place.grant}/file")
        if before:
            before(path)
        was = snapshot(path)
        return Fixture([f"{key}={path}"], ["--read", path], lambda: snapshot(path) != was)
    return fixture


def secret_file(place):
    return Fixture([f"secret={place.write(f'{place.out}/secret')}"])


def home_file(place):
    os.mkdir(f"{place.home}/.ssh", 0o700)
    place.own(f"{place.home}/.ssh")
    return Fixture([f"secret={place.write(f'{place.home}/.ssh/id_ed25519')}"])


def out_directory(place):
    return Fixture([f"outdir={place.out}"], (), lambda: bool(os.listdir(place.out)))


def reparent(place):
    """A link or a rename, also one that was taken back, moves the file's change time."""
    path = place.write(f"{place.grant}/file")
    was = os.stat(path).st_ctime_ns
    time.sleep(0.01)
    return Fixture([f"ro={path}", f"rw={place.src}"], ["--read", place.grant],
                   lambda: os.stat(path).st_ctime_ns != was)


def shared_places(place):
    name = "sgt." + secrets.token_hex(8)
    there = [place.write(f"{d}/{name}") for d in ("/dev/shm", "/tmp", "/var/tmp")]
    left = [f"{d}/{name}.in" for d in ("/dev/shm", "/tmp", "/var/tmp")]

    def harm():
        return any(os.path.exists(p) for p in left)

    def close():
        for path in there + left:
            if os.path.exists(path):
                os.unlink(path)
    return Fixture([f"shm={name}", f"leave={name}.in"], (), harm, close)


def device_node(place):
    """Readable by everybody, as a tree copied by a careless root would be."""
    path = f"{place.src}/node"
    os.mknod(path, 0o20666, os.makedev(1, 5))
    os.chmod(path, 0o666)
    return Fixture([f"node={path}"])


def set_id_program(place):
    """root's for the user; for root another user's, whom root has not to be."""
    path = place.install("sandglass-probe", f"{place.src}/suid")
    owner = 0 if place.who.uid else 20002
    os.chown(path, owner, owner)
    os.chmod(path, 0o6755)
    return Fixture([f"suid={path}"])


def set_id_file(place):
    path = place.write(f"{place.grant}/suid", mode=0o4755)
    return Fixture([f"suid={path}"], ["--read", path])


# Descriptors.

def opened(path, flags, numbers):
    """Descriptors with these numbers in what is started, whatever the control or we do."""
    def before():
        fd = os.open(path, flags)
        for number in numbers:
            os.dup2(fd, number)
    return before


def inherited(place):
    path = place.write(f"{place.out}/secret")
    return Fixture((), (), None, None, before=opened(path, os.O_RDWR, (703, 709, 851)), fds=(703, 709, 851))


def inherited_directory(place):
    place.write(f"{place.out}/secret")
    return Fixture(["canary=secret"], (), None, None,
                   before=opened(place.out, os.O_RDONLY | os.O_DIRECTORY, (7,)), fds=(7,))


def stdin_file(place):
    path = place.write(f"{place.out}/input", mode=0o644)
    was = snapshot(path)
    return Fixture((), (), lambda: snapshot(path) != was, None, stdin=open(path, "rb"))


# Other processes.

def victim(key):
    def fixture(place):
        process = place.start(["sleep", "600"])
        return Fixture([f"{key}={process.pid}"], (),
                       lambda: wait_for(lambda: not alive(process.pid), 0.2))
    return fixture


def environment(place):
    name = "SGT_" + secrets.token_hex(6).upper()
    return Fixture([f"envname={name}"], (), None, None, env={name: place.canary})


def host_namespaces(_place):
    kinds = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
    return Fixture(["ns=" + ",".join(os.readlink(f"/proc/self/ns/{k}") for k in kinds)])


def mask(place):
    """Bare, the mask is a mount of ours; inside, whatever there is must stay."""
    os.mkdir(f"{place.top}/mask", 0o755)
    place.write(f"{place.top}/mask/secret")
    return Fixture([f"mask={place.top}/mask", f"canary={place.top}/mask/secret"])


def masked(place):
    return with_setup(f"mount -t tmpfs none {place.top}/mask || exit 1")(place)


def delegated_cgroup(place):
    """A cgroup that the user owns, with the command in one below it."""
    top = f"/sys/fs/cgroup/pids/sgt.{secrets.token_hex(6)}"
    os.mkdir(top)
    os.mkdir(f"{top}/below")
    for name in (f"{top}/cgroup.procs", f"{top}/below/cgroup.procs"):
        os.chown(name, place.who.uid, place.who.uid)

    def enter():
        with open(f"{top}/below/cgroup.procs", "w", encoding="ascii") as handle:
            handle.write("0")

    def close():
        for path in (f"{top}/below", top):
            wait_for(lambda p=path: try_rmdir(p), 2)
    return Fixture([f"cgroup={top}/cgroup.procs"], (), None, close, before=enter)


def try_rmdir(path):
    try:
        os.rmdir(path)
    except OSError:
        return False
    return True


# Keys, queues, shared memory.

def session_key(place):
    """The caller has a session keyring with a key in it; inside and bare start below it."""
    name = "sgt:" + secrets.token_hex(6)
    return Fixture([f"key={name}"], (), None, None,
                   wrap=["keyctl", "session", "-", "sh", "-c",
                         'keyctl add user "$0" "$1" @s >/dev/null && shift && exec "$@"', name,
                         place.canary])


def user_key(place):
    name = "sgt:" + secrets.token_hex(6)

    def close():
        subprocess.run(place.who.prefix + ["keyctl", "purge", "user", name], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return Fixture([f"key={name}"], (), None, close,
                   wrap=["keyctl", "session", "-", "sh", "-c",
                         'keyctl link @u @s && keyctl add user "$0" "$1" @u >/dev/null && '
                         'keyctl unlink @u @s && shift && exec "$@"', name, place.canary])


def system_v(place):
    key = secrets.randbelow(2**30) + 2**20
    shm = LIBC.shmget(key, 4096, IPC_CREAT | 0o666)
    msg = LIBC.msgget(key, IPC_CREAT | 0o666)
    sem = LIBC.semget(key, 1, IPC_CREAT | 0o666)
    if min(shm, msg, sem) < 0:
        raise OSError(ctypes.get_errno(), "System V objects")
    LIBC.shmat.restype = ctypes.c_void_p
    at = LIBC.shmat(shm, None, 0)
    ctypes.memmove(at, place.canary.encode() + b"\0", len(place.canary) + 1)
    LIBC.shmdt(ctypes.c_void_p(at))

    def close():
        LIBC.shmctl(shm, IPC_RMID, None)
        LIBC.msgctl(msg, IPC_RMID, None)
        LIBC.semctl(sem, 0, IPC_RMID)
    return Fixture([f"shmkey={key}", f"msgkey={key}", f"semkey={key}"], (), None, close)


def queue(place):
    name = "/sgt." + secrets.token_hex(6)
    fd = LIBC.mq_open(name.encode(), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666, None)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "mq_open")
    os.fchmod(fd, 0o666)
    LIBC.mq_send(fd, place.canary.encode(), len(place.canary), 0)

    def close():
        LIBC.mq_unlink(name.encode())
        os.close(fd)
    return Fixture([f"mq={name}"], (), None, close)


# Terminals.

def host_terminal(place):
    term = Terminal(place)
    os.set_blocking(term.master, False)

    def harm():
        try:
            return b"typed by the probe" in os.read(term.master, 4096)
        except BlockingIOError:
            return False
    return Fixture([f"tty={os.ttyname(term.slave)}"], (), harm, term.close)


BINFMT = with_setup("mount -t binfmt_misc none /proc/sys/fs/binfmt_misc || exit 1")
STREAM, DATAGRAM = socket.SOCK_STREAM, socket.SOCK_DGRAM

ROWS = [
    Row("ns-03", plain, namespaces),
    Row("ns-04", masked, masked, mask),
    Row("ns-05", namespaces),
    Row("ns-06", namespaces),
    Row("ns-07", namespaces),
    Row("ns-13"),
    Row("ns-15", plain, plain, delegated_cgroup, needs_root=True),
    Row("ns-shared", plain, plain, host_namespaces),
    Row("nested-userns"),
    Row("sc-03"),
    Row("setns", plain, namespaces),
    Row("proc-sys-write", bubblewrap(), namespaces),
    Row("core-pattern", plain, namespaces),
    Row("res-17", BINFMT, BINFMT),
    Row("res-05", plain, plain, environment),
    Row("proc1-environ", bubblewrap("--clearenv"), bubblewrap("--clearenv"), environment),
    Row("net-13", plain, plain, victim("pid")),
    Row("res-15", namespaces),
    Row("res-16", namespaces),
    Row("fd-01", bubblewrap(), bubblewrap(), inherited),
    Row("fd-02", plain, plain, inherited_directory),
    Row("stdin-file-more-access", plain, plain, stdin_file),
    Row("fd-03", namespaces),
    Row("fd-04", plain, plain, visible_file("file")),
    Row("fs-02", plain, plain, visible_file("file")),
    Row("fs-22", plain, plain, visible_file("file")),
    Row("fs-21", plain, plain, reparent),
    Row("fs-read", plain, plain, secret_file,
        label="beside the source"),
    Row("fs-read", plain, plain, home_file,
        label="in the home directory"),
    Row("fs-write", plain, plain, out_directory),
    Row("fs-08", with_setup("mount -t tmpfs none /mnt || exit 1")),
    Row("fs-09"),
    Row("fs-10"),
    Row("fs-11", plain, plain, set_id_program, needs_root=True),
    Row("fs-15"),
    Row("fs-20", plain, plain, shared_places),
    Row("fs-23"),
    Row("fs-24"),
    Row("sc-08", plain, plain, secret_file),
    Row("devices"),
    Row("device-node", plain, plain, device_node, needs_root=True),
    Row("lease"),
    Row("set-id"),
    Row("set-id-move", plain, plain, set_id_file),
    Row("file-caps", plain, namespaces),
    Row("sc-01", bubblewrap()),
    Row("sc-04"),
    Row("sc-05"),
    Row("sc-06"),
    Row("bpf", bubblewrap()),
    Row("perf", bubblewrap()),
    Row("int80"),
    Row("x32"),
    Row("seccomp-listener", bubblewrap()),
    Row("seccomp-listener-high", bubblewrap()),
    Row("vsock", bubblewrap()),
    Row("socket-families", plain, namespaces),
    Row("net-02", plain, plain, host_loopback),
    Row("net-03", bubblewrap(), bubblewrap(), unix_sockets("sock", STREAM, "out", None),
        label="not in the view"),
    Row("net-03", bubblewrap(), bubblewrap(), unix_sockets("sock", STREAM, "src", None),
        label="in the source"),
    Row("net-03", bubblewrap(), bubblewrap(), unix_sockets("sock", STREAM, "grant", "read"),
        label="granted for reading"),
    Row("net-03", bubblewrap(), bubblewrap(), unix_sockets("sock", STREAM, "grant", "write"),
        label="granted for writing"),
    Row("net-03", bubblewrap(), bubblewrap(), bound_otherwise("relative"),
        label="in the source, bound by a relative name"),
    Row("net-03", bubblewrap(), bubblewrap(), bound_otherwise("renamed"),
        label="in the source, renamed"),
    Row("net-03", bubblewrap(), bubblewrap(), bound_otherwise("proc"),
        label="in the source, bound by a descriptor"),
    Row("net-03", bubblewrap(), bubblewrap(), bound_otherwise("elsewhere"),
        label="in the source, from another network", needs_root=True),
    Row("unix-dgram", bubblewrap(), bubblewrap(), unix_sockets("dgram", DATAGRAM, "out", None),
        label="not in the view"),
    Row("unix-dgram", bubblewrap(), bubblewrap(), unix_sockets("dgram", DATAGRAM, "src", None),
        label="in the source"),
    Row("unix-dgram", bubblewrap(), bubblewrap(), unix_sockets("dgram", DATAGRAM, "grant", "read"),
        label="granted for reading"),
    Row("unix-abstract", plain, plain, abstract,
        label="stream"),
    Row("unix-abstract", plain, plain, abstract_datagram,
        label="datagram"),
    Row("stdin-socket", plain, plain, stdin_tcp, "tcp"),
    Row("stdin-socket", plain, plain, stdin_udp, "udp"),
    Row("stdin-socket", plain, plain, stdin_datagrams("dgram"), "unix datagrams, to a path"),
    Row("stdin-socket", plain, plain, stdin_datagrams("abstract"), "unix datagrams, to a name"),
    Row("fifo", plain, plain, fifo("src"), "in the source"),
    Row("fifo", plain, plain, fifo("grant"), "granted for reading"),
    Row("call-home", plain, plain, call_home, needs_root=True),
    Row("net-14", plain, plain, listener),
    Row("sc-07", bubblewrap(), bubblewrap(), session_key),
    Row("keyring-user", plain, plain, user_key),
    Row("sysv", plain, plain, system_v),
    Row("mqueue", plain, plain, queue),
    Row("core-dump"),
    Row("inotify"),
    Row("host-terminal", plain, plain, host_terminal),
]



def probe_names(kind):
    listed = subprocess.run([beside("sandglass-probe"), "--list"], capture_output=True, text=True,
                            check=True).stdout
    fields = [line.split("\t") for line in listed.split("\n") if line]
    return [f[0] for f in fields if f[2] == kind]


def start(place, fixture, way, row):
    """One run of the row, however it is started."""
    more = dict(fixture.start)
    sets = [word for pair in fixture.sets for word in ("--set", pair)]
    argv = [*more.pop("wrap", ()), *way, place.probe, *sets, row.name]
    return place.run(argv, **more)


def one_side(row, who, owner, way):
    """The verdict in a place of its own: verdict, whether harm is seen outside, the result."""
    place = Place(who, owner)
    fixture = Fixture()
    try:
        fixture = row.fixture(place) if row.fixture else fixture
        if way is None:
            way = lambda p: p.inside(*row.options, *fixture.options)
        result = start(place, fixture, way(place), row)
        verdict, _ = result.row(row.name)
        harm = bool(fixture.harm()) if fixture.harm else None
        return verdict, harm, result
    finally:
        if fixture.close:
            fixture.close()
        if hasattr(fixture.start.get("stdin"), "close"):
            fixture.start["stdin"].close()
        place.close()


def title(row, who, owner):
    over = "" if owner.uid == who.uid else " over a user's source"
    return f"{row.title}, {who.name}{over}"


def number_in(path, missing):
    try:
        with open(path, encoding="ascii") as handle:
            return int(handle.read())
    except OSError:
        return missing


def x32_errno():
    LIBC.syscall(ctypes.c_long(0x40000000 | 39))
    return ctypes.get_errno()


# mov $20, %eax (getpid); int $0x80; ret
ENTRY32 = r"""
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b"\xb8\x14\0\0\0\xcd\x80\xc3")
at = ctypes.addressof(ctypes.c_char.from_buffer(code))
print(ctypes.CFUNCTYPE(ctypes.c_int)(at)())
"""


def entry32_works():
    """Some hypervisors have no interrupt 0x80: a program that tries it dies by SIGSEGV."""
    done = subprocess.run([sys.executable, "-c", ENTRY32], capture_output=True, check=False)
    return done.returncode == 0 and done.stdout.strip().isdigit()


# What the kernel of this machine lets nobody do (or nobody but root): why, or None.
NOBODY = {
    "x32": lambda who: "no x32 entry" if os.uname().machine != "x86_64" or
           x32_errno() == errno.ENOSYS else None,
    "int80": lambda who: "no 32-bit entry" if os.uname().machine != "x86_64" or
             not os.path.exists("/proc/sys/abi/vsyscall32") or not entry32_works() else None,
    "perf": lambda who: "kernel.perf_event_paranoid" if who.uid and
            number_in("/proc/sys/kernel/perf_event_paranoid", 0) > 2 else None,
    "sc-01": lambda who: "kernel.io_uring_disabled" if
             number_in("/proc/sys/kernel/io_uring_disabled", 0) > (0 if who.uid else 1) else None,
    "vsock": lambda who: "no vsock" if not os.path.exists("/dev/vsock") else None,
    "tty-01": lambda who: "dev.tty.legacy_tiocsti" if who.uid and
              number_in("/proc/sys/dev/tty/legacy_tiocsti", 1) == 0 else None,
    "tty-03": lambda who: "no virtual console" if not os.path.exists("/dev/tty20") else None,
}
NOBODY["tty-02"] = NOBODY["tty-01"]


# Rows whose start may be refused as a whole, with a code, instead of being safe inside.
REFUSED = {"stdin-socket"}

# What is known to be open, and which part closes it (SECURITY.md says so too).
LATER = {
    "fifo": "a fifo in the source is masked with the index of directories (projects)",
    "net-03 (in the source, from another network)":
        "a socket that only another network namespace lists, likewise",
    "pipe-more-access": "a pipe given as stdout can be read again by its own user",
}


def why_nobody(name, who):
    return NOBODY[name](who) if name in NOBODY else None


def try_row(row, who, owner):
    name = title(row, who, owner)
    if row.name in LATER or row.title in LATER:
        tap.note(f"open: {name}: {LATER.get(row.name) or LATER[row.title]}")
        return
    if row.needs_root and not ROOT_TEST:
        tap.skip(name, "root: the fixture is not an ordinary user's to make")
        return
    for _ in range(CONTROL_TRIES):  # others of the same user may hold what it wants
        verdict, harm, result = one_side(row, who, owner, row.ways[who.name])
        if verdict == "ESCAPED" and harm is not False:
            break
    nobody = why_nobody(row.name, who)
    if nobody and verdict == "safe":
        name += f" (no control: {nobody} on this machine)"
    elif verdict != "ESCAPED" or harm is False:
        tap.ok(False, name, f"inconclusive: the control says {verdict}, harm outside {harm}",
               result)
        return
    verdict, harm, result = one_side(row, who, owner, None)
    if row.name in REFUSED and verdict is None and result.status == 125:
        verdict = "safe" if "POLICY_DENIED" in result.err and not result.out else verdict
    tap.ok(verdict == "safe" and not harm, name, f"inside {verdict}, harm outside {harm}", result)


# Rows that need a terminal, a limit or more than one process around them.

def at_terminal(row, who, owner, path, alone):
    """Bare and inside, with the terminal as all three or as stdin alone: (verdict, said, typed)."""
    seen = []
    for bare in (True, False):
        place = Place(who, owner)
        term = Terminal(place, path)
        out = None
        try:
            argv = ([] if bare else place.inside()) + [place.probe, row]
            if alone:
                out = os.open(f"{place.out}/said", os.O_RDWR | os.O_CREAT, 0o600)
            status, said = term.run(argv, out=out)
            if alone:
                said = os.pread(out, 65536, 0).decode("utf-8", "replace")
            verdict, _ = Result(status, said.replace("\r", ""), "", 0).row(row)
            seen.append((verdict, said, b"" if path else term.typed()))
        finally:
            if out is not None:
                os.close(out)
            term.close()
            place.close()
    return seen


def terminals(who, owner):
    for row in ("tty-01", "tty-02"):
        for alone in (False, True):
            where = "as stdin alone" if alone else "as stdin, stdout, stderr"
            name, nobody = f"{row} at a terminal {where}, {who.name}", why_nobody(row, who)
            (verdict, said, typed), (inside, said_in, typed_in) = at_terminal(row, who, owner,
                                                                              None, alone)
            control = verdict == "ESCAPED" and typed
            if nobody and not typed:
                name, control = f"{name} (no control: {nobody} on this machine)", True
            tap.ok(control and inside == "safe" and not typed_in, name,
                   f"control {verdict}, typed {typed}", said,
                   f"inside {inside}, typed {typed_in}", said_in)
    name, nobody = f"tty-03 at a virtual console, {who.name}", why_nobody("tty-03", who)
    if not ROOT_TEST:
        tap.skip(name, "root: a console is nobody else's to open")
        return
    (verdict, said, _), (inside, said_in, _) = at_terminal(
        "tty-03", who, owner, None if nobody else "/dev/tty20", True)
    if nobody:
        name += f" (no control: {nobody} on this machine)"
    tap.ok((nobody or verdict == "ESCAPED") and inside == "safe", name, f"control {verdict}", said,
           f"inside {inside}", said_in)


def directories(who, owner):
    """A directory as stdin or stderr: bare it is a way in, here it is refused before the start."""
    for number, stream in ((0, "stdin"), (2, "stderr")):
        place = Place(who, owner)
        try:
            place.write(f"{place.out}/secret")
            sets = ["--set", "canary=secret"]
            before = opened_as(place.out, number)
            bare = place.run([place.probe, *sets, "stdin-directory"], before=before)
            inside = place.run(place.inside() + [place.probe, *sets, "stdin-directory"],
                               before=before)
            good = bare.row("stdin-directory")[0] == "ESCAPED" and "32 bytes of secret" in bare.out
            tap.ok(good and inside.status == 125 and not inside.out,
                   f"stdin-directory ({stream}), {who.name}", bare, inside)
        finally:
            place.close()


def opened_as(path, number):
    def before():
        os.dup2(os.open(path, os.O_RDONLY | os.O_DIRECTORY), number)
    return before


def stdout_file(who, owner):
    """A file that is open for writing only gives nothing to read and nothing else to change."""
    name, seen = "stdout-file-more-access", []
    for bare in (True, False):
        place = Place(who, owner)
        try:
            path = place.write(f"{place.out}/log")
            was = snapshot(path)
            out = os.open(path, os.O_WRONLY | os.O_APPEND)
            result = place.run(([] if bare else place.inside()) + [place.probe, name], stdout=out)
            os.close(out)
            with open(path, encoding="utf-8") as handle:
                first, _, result.out = handle.read().partition("\n")
            now = snapshot(path)
            # Its content and time change by what is written, nothing else may.
            harm = (was[1:4], was[5:]) != (now[1:4], now[5:]) or first != place.canary
            seen.append((result.row(name)[0], place.canary in result.out, harm, result))
        finally:
            place.close()
    (verdict, read, harm, result), (inside, read_in, harm_in, result_in) = seen
    tap.ok(verdict == "ESCAPED" and read and harm and inside == "safe" and not read_in
           and not harm_in, f"{name}, {who.name}", result, result_in)


PIPED = '(echo "$0"; exec "$@") | { sleep 0.4; cat; }'


def pipes(who, owner):
    """What others wrote to the pipe that is stdout is not the command's to read."""
    name, seen = "pipe-more-access", []
    if who.uid:  # root's command is a stranger to the pipe
        tap.note(f"open: {name}, {who.name}: {LATER[name]}")
        return
    for bare in (True, False):
        place = Place(who, owner)
        try:
            argv = ([] if bare else place.inside()) + [place.probe, name]
            seen.append((place.canary, place.run(["sh", "-c", PIPED, place.canary] + argv)))
        finally:
            place.close()
    (canary, bare), (canary_in, inside) = seen
    verdict, detail = bare.row(name)
    tap.ok(verdict == "ESCAPED" and canary in detail and inside.row(name)[0] == "safe"
           and canary_in not in inside.row(name)[1] and canary_in in inside.out,
           f"{name}, {who.name}", bare, inside)


def kill_everything(who, owner):
    """Bare in a pid namespace a neighbour dies; inside nothing outside does, nor init."""
    place = Place(who, owner)
    try:
        way = namespaces(place)
        way[way.index('"$@"; exit $?')] = 'sleep 600 & "$1" --set pid=$! ns-11; exit 0'
        bare = place.run(way + [place.probe])
        victim_process = place.start(["sleep", "600"])
        inside = place.run(place.inside() + [place.probe, "--set", f"pid={victim_process.pid}",
                                             "ns-11"])
        tap.ok(bare.row("ns-11")[0] == "ESCAPED" and inside.row("ns-11")[0] == "safe"
               and inside.status == 0 and alive(victim_process.pid), f"ns-11, {who.name}", bare,
               inside)
    finally:
        place.close()


LIMITS = [
    ("ns-10", ["procs=400"], ["--pids", "120"]),
    ("res-01", [f"bytes={256 << 20}"], ["--memory", "100MiB"]),
    ("disk", [f"bytes={64 << 20}"], ["--disk", "16MiB"]),
]


def limits(who, owner):
    for name, sets, options in LIMITS:
        place = Place(who, owner)
        try:
            argv = [place.probe, *[w for s in sets for w in ("--set", s)], name]
            bare = place.run(argv)
            inside = place.run(place.inside(*options) + ["sh", "-c", 'echo started; exec "$@"',
                                                         "sh", *argv])
            verdict = inside.row(name)[0]
            # The whole call may be what the kernel ends, as long as it ends.
            ended = verdict is None and inside.status in (137, 125)
            tap.ok(bare.row(name)[0] == "ESCAPED" and inside.out.startswith("started\n")
                   and (verdict == "safe" or ended), f"{name}, {who.name}", bare, inside)
        finally:
            place.close()


SPECIAL = (terminals, directories, stdout_file, pipes, kill_everything, limits)


def works(who, owner):
    """Nothing of this may break; bare it works too, but for low ports."""
    names = probe_names("works")
    place = Place(who, owner)
    try:
        result = place.run(place.inside() + [place.probe, *names])
        for name in names:
            verdict, detail = result.row(name)
            tap.ok(verdict == "works", title(Row(name), who, owner), verdict, detail, result.err)
        bare = place.run([place.probe, *[n for n in names if n != "works-low-port"]])
        tap.ok(bare.status == 0, f"the same bare, {who.name}", bare)
    finally:
        place.close()


def main(names):
    if ROOT_TEST:
        own_network()
    people = [(who, who) for who in identities()]
    if ROOT_TEST:
        people.insert(1, (people[0][0], Identity("user", USER)))
    for who, owner in people:
        for row in ROWS:
            if not names or row.name in names:
                tap.attempt(title(row, who, owner), try_row, row, who, owner)
        for function in () if names else SPECIAL + (works,):
            tap.attempt(f"{function.__name__}, {who.name}", function, who, owner)
    return tap.done()


sys.exit(main(sys.argv[1:]))
