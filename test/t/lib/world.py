# SPDX-License-Identifier: Apache-2.0
"""A world of the test's own: a network namespace in which every address there is leads to this
process, and a resolver that knows what the test wants. So whatever leaves a sandbox is seen,
wherever it goes.

begin() starts the program again in fresh network and mount namespaces (in a user namespace, where
it is not root), gives /etc/hosts and /etc/resolv.conf of the test's own, and returns the World.
"""

import os
import shutil
import socket
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import time

PORTS = (22, 80, 81, 443, 5432, 8080, 9418, 15001, 3128, 1080)
# Public ones, as the proxy sees them: documentation addresses are none.
ALLOWED, OTHER, RESOLVER = "8.8.8.8", "9.9.9.9", "1.1.1.1"
METADATA = "169.254.169.254"
ALLOWED6 = "2606:4700::1111"


def begin():
    if os.environ.get("SANDGLASS_WORLD") != str(os.getppid()) and \
            os.environ.get("SANDGLASS_WORLD") != "1":
        os.environ["SANDGLASS_WORLD"] = "1"
        how = "-nm" if os.geteuid() == 0 else "-Urnm"
        os.execvp("unshare", ["unshare", how, "--", sys.executable, *sys.argv])
    del os.environ["SANDGLASS_WORLD"]
    return World()


def has_ipv6():
    return os.path.exists("/proc/sys/net/ipv6")


class World:
    def __init__(self):
        self.names = {}  # name -> list of addresses, or function that returns one
        self.queries = []
        self.seen = []  # (kind, address, port, peer, what came)
        self.lock = threading.Lock()
        self.top = tempfile.mkdtemp(prefix="sgw.")
        os.chmod(self.top, 0o755)
        for name, text in (("hosts", "127.0.0.1 localhost\n::1 localhost\n"),
                           ("resolv.conf", f"nameserver {RESOLVER}\noptions timeout:1 attempts:2\n"),
                           ("nsswitch.conf", "hosts: files dns\n")):
            with open(f"{self.top}/{name}", "w", encoding="utf-8") as handle:
                handle.write(text)
            os.chmod(f"{self.top}/{name}", 0o644)
            subprocess.run(["mount", "--bind", f"{self.top}/{name}",
                            os.path.realpath(f"/etc/{name}")], check=True)
        commands = ["ip link set lo up", "ip route add local 0.0.0.0/0 dev lo"]
        if has_ipv6():
            commands.append("ip -6 route add local ::/0 dev lo")
        for command in commands:
            subprocess.run(command.split(), check=True)
        for port in PORTS:
            self.listen(port)
        for port in (53, 443, 123):
            self.listen_udp(port)

    def close(self):
        subprocess.run("umount /etc/passwd /etc/ssl/certs/ca-certificates.crt /etc/hosts /etc/resolv.conf /etc/nsswitch.conf", shell=True,
                       check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.top, ignore_errors=True)

    def account(self, uid):
        """A name for that uid in /etc/passwd: initdb and ssh want one."""
        with open("/etc/passwd", encoding="utf-8") as passwd:
            lines = [line for line in passwd if line.split(":")[2] != str(uid)]
        with open(f"{self.top}/passwd", "w", encoding="utf-8") as out:
            out.writelines([*lines, f"someone:x:{uid}:{uid}::/nonexistent:/bin/sh\n"])
        os.chmod(f"{self.top}/passwd", 0o644)
        subprocess.run(["mount", "--bind", f"{self.top}/passwd", "/etc/passwd"], check=True)

    def trust(self, ca):
        """The host's store has that authority too, as proxy and bare programs see it."""
        store = os.path.realpath("/etc/ssl/certs/ca-certificates.crt")
        with open(f"{self.top}/store", "w", encoding="ascii") as out:
            for path in (store, ca):
                with open(path, encoding="ascii") as handle:
                    out.write(handle.read())
        os.chmod(f"{self.top}/store", 0o644)
        subprocess.run(["mount", "--bind", f"{self.top}/store", store], check=True)

    # servers

    def note(self, *what):
        with self.lock:
            self.seen.append(what)

    def forget(self):
        """Returns what was seen since the last time."""
        with self.lock:
            seen, self.seen = self.seen, []
            queries, self.queries = self.queries, []
        self.last_queries = queries
        return seen

    def listen(self, port):
        """Says where it was reached, in HTTP, whatever is asked; half of clients read to the end."""
        world = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                here = plain(self.request.getsockname()[0])
                self.request.settimeout(10)
                try:
                    got = self.request.recv(65536)
                except OSError:
                    got = b""
                world.note("tcp", here, port, self.client_address[0], got)
                body = f"reached {here} {port}\n".encode()
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                try:
                    self.request.sendall(head.encode() + body)
                    self.request.shutdown(socket.SHUT_WR)
                    while self.request.recv(65536):
                        pass
                except OSError:
                    pass

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = daemon_threads = True
            request_queue_size = 256
            address_family = socket.AF_INET6 if has_ipv6() else socket.AF_INET

            def server_bind(self):
                if has_ipv6():
                    self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                super().server_bind()

            def handle_error(self, request, client_address):
                pass
        server = Server(("::" if has_ipv6() else "0.0.0.0", port), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def listen_udp(self, port):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.IPPROTO_IP, 8, 1)  # IP_PKTINFO
        sock.bind(("0.0.0.0", port))

        def serve():
            while True:
                data, control, _, peer = sock.recvmsg(4096, socket.CMSG_SPACE(12))
                here = next((socket.inet_ntoa(value[8:12]) for level, kind, value in control
                             if level == socket.IPPROTO_IP and kind == 8), "?")
                if port == 53 and here == RESOLVER:
                    answer = self.answer(data)
                    if answer:
                        sock.sendmsg([answer], [(socket.IPPROTO_IP, 8, struct.pack(
                            "I4s4s", 0, socket.inet_aton(here), b"\0" * 4))], 0, peer)
                else:
                    self.note("udp", here, port, peer[0], data)
        threading.Thread(target=serve, daemon=True).start()

    def answer(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
            at += 1 + query[at]
        name = ".".join(labels).lower()
        kind = struct.unpack(">H", query[at + 1:at + 3])[0]
        question = query[12:at + 5]
        with self.lock:
            self.queries.append((name, kind))
        found = self.names.get(name)
        if callable(found):
            found = found()
        family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
        records = b""
        count = 0
        for address in found or []:
            if family == (socket.AF_INET6 if ":" in address else socket.AF_INET):
                raw = socket.inet_pton(family, address)
                records += b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(raw)) + raw
                count += 1
        code = 0x8180 if found is not None else 0x8183
        return query[:2] + struct.pack(">HHHHH", code, 1, count, 0, 0) + question + records


def plain(address):
    return address[7:] if address.startswith("::ffff:") else address


def reached(world, address=None, port=None):
    """Waits a moment for what is on its way; what reached that place since the last forget()."""
    time.sleep(0.05)
    return [row for row in world.seen
            if (address is None or row[1] == address) and (port is None or row[2] == port)]
