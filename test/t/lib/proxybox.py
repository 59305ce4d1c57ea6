# SPDX-License-Identifier: Apache-2.0
"""sandglass-proxy by itself: rules, listeners, servers and events, all in network, mount
and user namespaces of the test's own.

The test runs itself again inside (enter()), where the loopback has the synthetic ranges as
local addresses, a public one for servers, and /etc/hosts is the test's.
"""

import array
import atexit
import fcntl
import os
import resource
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from place import ROOT, beside

PUBLIC = "93.184.216.34"  # no class of addresses that rules treat apart
STORE = "/etc/ssl/certs/ca-certificates.crt"
PUBLIC6 = "2606:2800:220:1::34"
HOSTS = {PUBLIC: ["one.test", "two.test", "a.wild.test", "b.wild.test", "denied.test"],
         "10.9.8.7": ["private.test"], "169.254.169.254": ["metadata.test"],
         "127.0.0.1": ["rebound.test"]}
KINDS = {"dns_udp": 0, "dns_tcp": 1, "http": 2, "socks": 3, "redirect4": 4, "redirect6": 5, "local": 6}
EVENTS = ["ready", "allow", "deny", "fail", "close", "request", "secret", "bytes", "more", "done", "died"]
HOWS = ["dns", "redirect", "http", "connect", "socks", "local"]
REASONS = ["rule", "default", "port", "denied", "class", "loopback", "host", "synthetic", "sni", "ech",
           "authority", "malformed", "protocol", "limit", "unresolved", "unreached", "method", "path", "push",
           "certificate", "tls", "secret", "ambiguous", "unseen"]
CA = struct.Struct("=II2048s")
EVENT = struct.Struct("=IIIiIIQQ256s46s16s256s2xIII4x")

# The child's numbers 3 to 6 are in use here, so that nothing that matters gets them.
_reserved = [os.open("/dev/null", os.O_RDONLY) for _ in range(4)]


def enter(store=None):
    """Runs this file again in namespaces of its own, once; `store`: the host's authorities there."""
    if os.environ.get("PROXYBOX") == "1":
        return
    flags = ["-n", "-m"] if os.geteuid() == 0 else ["-U", "-r", "-n", "-m"]
    script = (f"ip link set lo up && ip addr add {PUBLIC}/32 dev lo && ip addr add 10.9.8.7/32 dev lo && "
              "ip addr add 169.254.169.254/32 dev lo && "
              f"{{ ip -6 addr add {PUBLIC6}/128 dev lo || true; }} && "
              "ip route add local 198.18.0.0/15 dev lo && "
              "{ ip -6 route add local fd53:616e:6467::/96 dev lo || true; } && "
              "mount --bind \"$PROXYBOX_HOSTS\" /etc/hosts && "
              "{ [ -z \"$PROXYBOX_STORE\" ] || mount --bind \"$PROXYBOX_STORE\" " + STORE + "; } && "
              "mount --bind \"$PROXYBOX_RESOLV\" /etc/resolv.conf && exec \"$@\"")
    top = tempfile.mkdtemp(prefix="sandglass-proxy-test.")
    with open(f"{top}/hosts", "w", encoding="ascii") as f:
        f.write("127.0.0.1 localhost\n")
        for address, names in HOSTS.items():
            f.write(f"{address} {' '.join(names)}\n")
        f.write(f"{PUBLIC6} six.test\n")
    with open(f"{top}/resolv.conf", "w", encoding="ascii") as f:
        f.write("nameserver 127.0.0.9\noptions timeout:1 attempts:1\n")
    env = {**os.environ, "PROXYBOX": "1", "PROXYBOX_HOSTS": f"{top}/hosts",
           "PROXYBOX_RESOLV": f"{top}/resolv.conf", "PROXYBOX_STORE": store or ""}
    status = subprocess.call(["unshare", *flags, "sh", "-c", script, "sh", sys.executable, *sys.argv], env=env)
    shutil.rmtree(top, ignore_errors=True)
    sys.exit(status)


def encoder():
    """The program that encodes rules, compiled once."""
    top = tempfile.mkdtemp(prefix="sandglass-proxy-set.")
    atexit.register(shutil.rmtree, top, ignore_errors=True)
    path = os.path.join(top, "egress_set")
    sources = [f"{ROOT}/src/{d}/{f}" for d in ("egress", "base") for f in sorted(os.listdir(f"{ROOT}/src/{d}"))
               if f.endswith(".c")]
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-O1", "-w", f"-I{ROOT}/src", f"{ROOT}/test/t/lib/egress_set.c",
                    *sources, "-o", path], check=True)
    return path


def sealed(data):
    fd = os.memfd_create("sealed", os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    fcntl.fcntl(fd, 1033, 1 | 2 | 4 | 8)
    return fd


class Proxy:
    encode = None

    def __init__(self, *rules, local=(), nofile=None, kinds=tuple(KINDS), read=True, program=None,
                 leak=(), redirect_ports=(), secrets=(), spent=None):
        """Rules: pairs of list and text. Ports of listeners are in self.port. Secrets: rows of name,
        placeholder, header, value, "plain" or "tls", host. Spent: a file of counters that outlives it."""
        if Proxy.encode is None:
            Proxy.encode = encoder()
        words = [w for rule in rules for w in rule]
        encoded = subprocess.run([Proxy.encode, *words], stdout=subprocess.PIPE, check=True).stdout
        memfd = sealed(encoded)
        secret_words = [w for row in secrets for w in row]
        secret_fd = sealed(subprocess.run([Proxy.encode, "secrets", *secret_words], stdout=subprocess.PIPE,
                                          check=True).stdout) if secrets else os.open("/dev/null", os.O_RDONLY)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.port, self.events, self.lock, listeners = {}, [], threading.Condition(), []
        self.over = False
        for kind in kinds:
            if kind == "local":
                continue
            s = socket.socket(socket.AF_INET6 if kind == "redirect6" else socket.AF_INET,
                              socket.SOCK_DGRAM if kind == "dns_udp" else socket.SOCK_STREAM)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # What a redirect would lead to: every address, and one port for all.
            if kind == "redirect6":
                s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            s.bind(("::" if kind == "redirect6" else "0.0.0.0" if kind == "redirect4" else "127.0.0.53", 0))
            listeners.append((kind, s, 0))
            self.port[kind] = s.getsockname()[1]
        for port, inside in local:
            s = socket.socket()
            s.bind(("127.0.0.77", inside))
            listeners.append(("local", s, port))
            self.port["local", port] = s.getsockname()[1]
        # A server may have the same port at an address of its own.
        for port in redirect_ports:
            for kind, family, any_address in (("redirect4", socket.AF_INET, "0.0.0.0"),
                                              ("redirect6", socket.AF_INET6, "::")):
                if kind in kinds:
                    s = socket.socket(family)
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                    if kind == "redirect6":
                        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                    s.bind((any_address, port))
                    listeners.append((kind, s, 0))
        for _, s, _ in listeners:
            if s.type == socket.SOCK_STREAM:
                s.listen(4096)
            s.setblocking(False)
        program = program or beside("sandglass-proxy")

        self.stderr = tempfile.TemporaryFile()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in (memfd, theirs.fileno(), secret_fd)]
        counters = os.open("/dev/null", os.O_RDWR) if spent is None else spent
        high.append(fcntl.fcntl(counters, fcntl.F_DUPFD, 100))
        if spent is None:
            os.close(counters)

        def before():  # the descriptors by their numbers
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)
            os.dup2(high[2], 5)
            os.dup2(high[3], 6)
            if nofile:
                resource.setrlimit(resource.RLIMIT_NOFILE, (nofile, nofile))

        self.process = subprocess.Popen([program], pass_fds=(3, 4, 5, 6, *leak), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=self.stderr, env={},
                                        preexec_fn=before)
        for fd in (*high, memfd, secret_fd):
            os.close(fd)
        theirs.close()
        try:
            table = b"".join(struct.pack("=II", KINDS[kind], port) for kind, _, port in listeners)
            fds = array.array("i", [s.fileno() for _, s, _ in listeners])
            self.control.sendmsg([table], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
            self.control.send(b"\0")
        except OSError:
            pass
        for _, s, _ in listeners:
            s.close()
        if not read:
            return
        self.thread = threading.Thread(target=self.read_events, daemon=True)
        self.thread.start()
        if not self.wait(lambda e: e["kind"] == "ready", 10):
            self.stop()
            raise RuntimeError(f"the proxy did not start: {self.said()}")

    def said(self):
        self.stderr.seek(0)
        return self.stderr.read().decode("utf-8", "replace")

    def read_events(self):
        while True:
            try:
                raw = self.control.recv(4096)
            except OSError:
                raw = b""
            with self.lock:
                self.over = not raw
                if len(raw) == CA.size:
                    self.ca = CA.unpack(raw)[2].split(b"\0")[0].decode()
                elif raw:
                    self.events.append(decode(raw))
                self.lock.notify_all()
            if not raw:
                return

    def wait(self, test, seconds=5):
        """The first event that passes, or None."""
        until = time.monotonic() + seconds
        with self.lock:
            while True:
                for event in self.events:
                    if test(event):
                        return event
                if self.over:
                    return None
                if not self.lock.wait(max(0, until - time.monotonic())) and time.monotonic() >= until:
                    return None

    def take(self):
        """All events up to now, which are forgotten."""
        with self.lock:
            events, self.events = self.events, []
        return events

    def stop(self, seconds=5):
        """Closes descriptor 4 for writing, as the supervisor does; the exit status."""
        try:
            self.control.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        if hasattr(self, "thread"):
            self.thread.join(2)
        self.control.close()
        return status

    def connect(self, kind, timeout=5):
        return socket.create_connection(("127.0.0.53", self.port[kind]), timeout)


def decode(raw):
    kind, how, reason, rule, port, ident, up, down, host, address, method, path, status, times, _ = EVENT.unpack(raw)
    return {"kind": EVENTS[kind], "how": HOWS[how], "reason": REASONS[reason], "rule": rule, "port": port,
            "id": ident, "up": up, "down": down, "host": host.split(b"\0")[0].decode(),
            "address": address.split(b"\0")[0].decode(), "method": method.split(b"\0")[0].decode(),
            "path": path.split(b"\0")[0].decode(), "status": status, "times": times or 1}


class Server:
    """A TCP server: one thread a connection, which runs serve(socket); keeps what it has read."""

    def __init__(self, serve, address=PUBLIC, port=0):
        self.serve, self.seen, self.count, self.lock = serve, [], 0, threading.Lock()
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.listener = socket.socket(family)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.listener.bind((address, port))
        self.listener.listen(4096)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.count += 1
            threading.Thread(target=self.run, args=(s,), daemon=True).start()

    def run(self, s):
        try:
            self.serve(self, s)
        except OSError:
            pass
        finally:
            s.close()

    def saw(self, data):
        with self.lock:
            self.seen.append(data)

    def close(self):
        self.listener.close()


def read_all(s):
    """Up to the end; None instead of bytes if it was a reset."""
    parts = []
    while True:
        try:
            data = s.recv(1 << 18)
        except ConnectionResetError:
            return None
        if not data:
            return b"".join(parts)
        parts.append(data)


def read_head(s):
    """A head of HTTP and what came with it."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = s.recv(65536)
        if not more:
            return data, b""
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", rest


def connect_through(proxy, host, port, timeout=10):
    """A tunnel by CONNECT; (socket, status line)."""
    s = proxy.connect("http", timeout)
    s.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = s.recv(1)
        if not byte:
            break
        head += byte
    return s, head.split(b"\r\n")[0].decode()


def socks_through(proxy, host, port, timeout=10):
    """A tunnel by SOCKS5 with a name; (socket, reply)."""
    s = proxy.connect("socks", timeout)
    s.sendall(b"\5\1\0")
    if s.recv(2) != b"\5\0":
        return s, -1
    name = host.encode()
    s.sendall(b"\5\1\0\3" + bytes([len(name)]) + name + struct.pack(">H", port))
    answer = b""
    while len(answer) < 10:
        more = s.recv(10 - len(answer))
        if not more:
            return s, answer[1] if len(answer) > 1 else -1
        answer += more
    return s, answer[1]


def resolve(proxy, name, qtype=1, tcp=False, raw=None, timeout=3):
    """(rcode, addresses, extended errors) of our resolver; None if there was no answer."""
    query = raw if raw is not None else (
        struct.pack(">HHHHHH", 0x1234, 0x0100, 1, 0, 0, 1) +
        b"".join(bytes([len(x)]) + x.encode() for x in name.split(".") if x) + b"\0" +
        struct.pack(">HH", qtype, 1) + b"\0" + struct.pack(">HHIH", 41, 1232, 0, 0))
    if tcp:
        s = proxy.connect("dns_tcp", timeout)
        s.sendall(struct.pack(">H", len(query)) + query)
        answer = s.recv(4096)
        s.close()
        answer = answer[2:]
    else:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(timeout)
        s.sendto(query, ("127.0.0.53", proxy.port["dns_udp"]))
        try:
            answer = s.recv(4096)
        except TimeoutError:
            return None
        finally:
            s.close()
    return parse_answer(answer)


def parse_answer(data):
    if len(data) < 12:
        return None
    _, flags, questions, answers, _, extra = struct.unpack(">HHHHHH", data[:12])
    at = 12
    for _ in range(questions):
        while data[at]:
            at += 1 + data[at]
        at += 5
    addresses, codes = [], []
    for i in range(answers + extra):
        at += 2 if data[at] & 0xc0 else 1
        kind, _, _, length = struct.unpack(">HHIH", data[at:at + 10])
        body = data[at + 10:at + 10 + length]
        at += 10 + length
        if i < answers:
            addresses.append(socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, body))
        while i >= answers and len(body) >= 6:
            option, size, code = struct.unpack(">HHH", body[:6])
            codes.append((code, body[6:4 + size].decode()))
            body = body[4 + size:]
            assert option == 15
    return flags & 15, addresses, codes


def reset(s):
    """Ends a connection with a reset."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
