# SPDX-License-Identifier: Apache-2.0
"""The host that a case could leak to: a network namespace of our own with listeners on it."""

import ctypes
import fcntl
import os
import selectors
import signal
import socket
import struct
import tempfile
import threading
import time

CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWNS = 0x10000000, 0x40000000, 0x20000
CLONE_NEWPID, CLONE_NEWIPC = 0x20000000, 0x8000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
PR_SET_CHILD_SUBREAPER = 36
ADDRESSES = ("192.0.2.1", "8.8.8.8", "169.254.169.254", "10.0.0.1")
ADDRESSES6 = ("2001:db8::1",)
TCP_PORTS = (22, 53, 80, 443)
NAMES = (("allowed.test", "8.8.8.8"), ("other.test", "8.8.8.8"), ("evil.test", "8.8.8.8"),
         ("blocked.test", "8.8.8.8"), ("metadata.allowed.test", "169.254.169.254"),
         ("private.allowed.test", "10.0.0.1"))
LIBC = ctypes.CDLL(None, use_errno=True)


def _call(name, *args):
    if getattr(LIBC, name)(*args) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def become_reaper():
    _call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def hear_signals():
    """nohup and & have a program ignore signals that rows send; what is started inherits that."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def own_network():
    """A fresh network namespace; an ordinary user pays with a user namespace of the same id."""
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        # Mounts that rows prepare are seen by nobody else and vanish with the worker.
        _call("unshare", CLONE_NEWNET | CLONE_NEWNS)
        _call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    else:
        _call("unshare", CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS)
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"),
                           ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as handle:
                handle.write(text)
        _call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    _own_names()
    _loopback_up()
    for address in ADDRESSES:
        _add_address(socket.AF_INET, address, 32)
    for address in ADDRESSES6:
        _add_address(socket.AF_INET6, address, 128)


def _own_names():
    """Names of the addresses that stand for the rest of the world, in a hosts file of our own."""
    text = "".join(f"{address} {name}\n" for name, address in NAMES)
    fd, path = tempfile.mkstemp(prefix="hosts.")
    os.write(fd, f"127.0.0.1 localhost\n::1 localhost\n{text}".encode())
    os.fchmod(fd, 0o644)
    os.close(fd)
    _call("mount", path.encode(), b"/etc/hosts", None, 0x1000, None)
    os.unlink(path)


def own_host(folders):
    """For --runner: what is not sandglass may not reach the machine either, whatever a row does.

    Processes, IPC and the temporary folders are the worker's own. Returns only in the worker: two
    processes before it wait, the first of its namespace so that orphans have an init.
    """
    _call("unshare", CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID)
    for _ in range(2):
        child = os.fork()
        if child:
            _init(child)
    _call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    _call("mount", b"proc", b"/proc", b"proc", 0xe, None)
    for folder in ("/tmp", "/var/tmp", "/dev/shm"):
        kept = [f for f in folders if f.startswith(folder + "/")]
        held = [os.open(f, os.O_PATH | os.O_DIRECTORY) for f in kept]
        _call("mount", b"tmpfs", folder.encode(), b"tmpfs", 0x6, b"mode=1777")
        for path, fd in zip(kept, held):
            os.mkdir(path, 0o755)
            _call("mount", f"/proc/self/fd/{fd}".encode(), path.encode(), None, 0x1000, None)
            os.close(fd)
    os.mkdir("/tmp/claude")  # srt names it to the command and leaves it to its caller
    os.chmod("/tmp/claude", 0o1777)


def _init(child):
    """Reaps until the child has ended, and ends as it did; holds nothing open meanwhile."""
    os.closerange(3, 256)
    while True:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xff)


def _loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(sock, 0x8913, request))[1]
        fcntl.ioctl(sock, 0x8914, struct.pack("16sH14x", b"lo", flags | 1))


def _add_address(family, address, prefix):
    """By netlink; permanent, and without a search for duplicates, during which it is no address."""
    raw = socket.inet_pton(family, address)
    body = struct.pack("=BBBBi", family, prefix, 0x80 | 0x02, 0, 1)
    for kind in (1, 2):
        body += struct.pack("=HH", 4 + len(raw), kind) + raw
    head = struct.pack("=IHHII", 16 + len(body), 20, 0x1 | 0x4 | 0x200 | 0x400, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as sock:
        sock.send(head + body)
        answer = sock.recv(4096)
    error = -struct.unpack_from("=i", answer, 16)[0]
    if error:
        raise OSError(error, f"address {address}: {os.strerror(error)}")


def lo_packets():
    """Packets that crossed the loopback of this namespace: any leak at all moves this number."""
    with open("/proc/thread-self/net/dev", encoding="ascii") as handle:
        for line in handle:
            name, _, rest = line.partition(":")
            if name.strip() == "lo":
                return int(rest.split()[1])
    return 0


def settle():
    """Waits until connections of an earlier run have said their last."""
    until = time.monotonic() + 2
    last, since = lo_packets(), time.monotonic()
    while time.monotonic() < until and time.monotonic() - since < 0.1:
        time.sleep(0.01)
        now = lo_packets()
        if now != last:
            last, since = now, time.monotonic()


class Services:
    """One thread that answers everything with a banner and writes down what came."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.events = []
        self.lock = threading.Lock()
        self.wake_r, self.wake_w = os.pipe()
        self.selector.register(self.wake_r, selectors.EVENT_READ, ("wake", None))
        self.pending = []
        threading.Thread(target=self._loop, daemon=True).start()

    def outside(self):
        """Listeners on the addresses that stand for the rest of the world."""
        for family, address in [(socket.AF_INET, a) for a in ADDRESSES] + [
                (socket.AF_INET6, a) for a in ADDRESSES6]:
            for port in TCP_PORTS:
                self._tcp(family, address, port, b"outside")
            sock = socket.socket(family, socket.SOCK_DGRAM)
            sock.bind((address, 53))
            self._add(sock, "dns", None)

    def _tcp(self, family, address, port, banner):
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        sock.listen(64)
        self._add(sock, "listen", banner)
        return sock

    def loopback(self, banner):
        sock = self._tcp(socket.AF_INET, "127.0.0.1", 0, banner)
        return sock, sock.getsockname()[1]

    def stream(self, path, banner, mode=0o666):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(path)
        if isinstance(path, str) and not path.startswith("\0"):
            os.chmod(path, mode)
        sock.listen(16)
        self._add(sock, "listen", banner)
        return sock

    def datagram(self, path, log):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.bind(path)
        os.chmod(path, 0o666)
        self._add(sock, "log", log)
        return sock

    def close(self, sock):
        done = threading.Event()
        with self.lock:
            self.pending.append(("close", sock, done))
        os.write(self.wake_w, b"x")
        done.wait(5)

    def _add(self, sock, kind, data):
        sock.setblocking(False)
        with self.lock:
            self.pending.append(("add", sock, (kind, data)))
        os.write(self.wake_w, b"x")

    def _drain_pending(self):
        os.read(self.wake_r, 4096)
        with self.lock:
            todo, self.pending = self.pending, []
        for what, sock, data in todo:
            if what == "add":
                self.selector.register(sock, selectors.EVENT_READ, data)
            else:
                self.selector.unregister(sock)
                sock.close()
                data.set()

    def _loop(self):
        while True:
            for key, _ in self.selector.select():
                kind, data = key.data
                try:
                    if kind == "wake":
                        self._drain_pending()
                    elif kind == "listen":
                        self._accept(key.fileobj, data)
                    elif kind == "dns":
                        self._dns(key.fileobj)
                    elif kind == "log":
                        self._log(key.fileobj, data)
                    else:
                        self._answer(key.fileobj, data)
                except OSError:
                    continue

    def _note(self, what):
        self.events.append((time.monotonic(), what))

    def _accept(self, sock, banner):
        peer, _ = sock.accept()
        self._note(f"connection to {sock.getsockname()}")
        peer.setblocking(False)
        if sock.family in (socket.AF_INET, socket.AF_INET6) and sock.getsockname()[1] == 22:
            peer.send(b"SSH-2.0-" + banner + b"\r\n")
            peer.close()
            return
        elif sock.family == socket.AF_UNIX:
            peer.send(banner + b"\n")
        self.selector.register(peer, selectors.EVENT_READ, ("peer", banner))

    def _answer(self, peer, banner):
        data = peer.recv(4096)
        if data.startswith((b"GET ", b"HEAD ", b"POST ", b"PUT ")):
            body = banner + b"\n"
            peer.send(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            data = b""
        if not data:
            self.selector.unregister(peer)
            peer.close()

    def _log(self, sock, log):
        data, _ = sock.recvfrom(65536)
        self._note("datagram")
        with open(log, "ab") as handle:
            handle.write(data + b"\n")

    def _dns(self, sock):
        data, peer = sock.recvfrom(4096)
        self._note(f"datagram to {sock.getsockname()}")
        if len(data) < 17:
            return
        question = data[12:]
        kind = question[question.index(b"\0") + 1:][:2]
        answer = b""
        if kind == b"\0\1":
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4" + socket.inet_aton(ADDRESSES[0])
        end = question.index(b"\0") + 5
        sock.sendto(data[:2] + b"\x81\x80\0\1" + (b"\0\1" if answer else b"\0\0") + b"\0\0\0\0"
                    + question[:end] + answer, peer)
