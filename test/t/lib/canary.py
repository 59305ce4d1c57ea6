# SPDX-License-Identifier: Apache-2.0
"""A server that keeps what it was asked, and the forms in which a value could come to light."""

import base64
import os
import shutil
import socketserver
import ssl
import subprocess
import sys
import tempfile
import threading
import urllib.parse

import pki
import tap
import world as worlds
from place import identities_once
from world import ALLOWED, OTHER

STORE = "/etc/ssl/certs/ca-certificates.crt"


class Server:
    """HTTP over TLS, or plain; keeps what was asked, and says the headers back on /echo."""

    def __init__(self, port, pair=None):
        server, self.seen, self.lock = self, [], threading.Lock()
        context = None
        if pair:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*pair)

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                try:
                    s = context.wrap_socket(self.request, server_side=True) if context else self.request
                    s.settimeout(20)
                    got = b""
                    while b"\r\n\r\n" not in got:
                        more = s.recv(65536)
                        if not more:
                            return
                        got += more
                    with server.lock:
                        server.seen.append(got.decode("latin-1"))
                    target = got.split(b" ", 2)[1].decode()
                    body = got if target.startswith("/echo") else f"served {target}\n".encode()
                    if target.startswith("/forms"):
                        body = "\n".join(forms(header(got.decode("latin-1"), "authorization")
                                               .split(" ")[-1])).encode()
                    s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
                              % len(body) + body)
                    s.close()
                except OSError:
                    pass

        class Listener(socketserver.ThreadingTCPServer):
            allow_reuse_address = daemon_threads = True

            def handle_error(self, request, client_address):
                pass

        self.listener = Listener(("0.0.0.0", port), Handler)
        threading.Thread(target=self.listener.serve_forever, daemon=True).start()

    def take(self):
        with self.lock:
            seen, self.seen = self.seen, []
        return seen


def header(request, name):
    for line in request.split("\r\n")[1:]:
        key, _, value = line.partition(": ")
        if key.lower() == name:
            return value
    return ""


def forms(value):
    """As it could come back: raw, in base64 at each shift, percent-encoded."""
    raw = value.encode()
    return [value, *(base64.b64encode(b"x" * n + raw + b"yz").decode() for n in range(3)),
            base64.urlsafe_b64encode(b"u:" + raw).decode(), urllib.parse.quote(value, safe=""),
            "".join(f"%{c:02x}" if not chr(c).isalnum() else chr(c) for c in raw)]


def needles(value):
    """What of a form only the value decides."""
    raw = value.encode()
    found = [raw, urllib.parse.quote(value, safe="").encode()]
    for shift in range(3):
        coded = base64.b64encode(b"x" * shift + raw)
        found.append(coded[(8 * shift + 5) // 6:8 * (shift + len(raw)) // 6])
    return found


def holds(data, value):
    return any(n in data for n in needles(value))


def run_parts(parts, start, make_box):
    """
    Each part (all, or those that the command line names) with a box of each identity, in a world
    where one.test and two.test are servers that `start` makes with keys whose authority is trusted.
    """
    world = worlds.begin()
    top = tempfile.mkdtemp(prefix="sgs.")
    keys = pki.make(top)
    subprocess.run(["mount", "--bind", keys.store, os.path.realpath(STORE)], check=True)
    world.names.update({"one.test": [ALLOWED], "two.test": [OTHER]})
    servers = start(keys)
    for who in identities_once():
        box = make_box(who, *servers)
        for part in parts:
            if not sys.argv[1:] or part.__name__ in sys.argv[1:]:
                tap.attempt(f"{part.__name__} ({who.name})", part, box)
        box.close()
    subprocess.run(["umount", os.path.realpath(STORE)], check=False)
    shutil.rmtree(top, ignore_errors=True)
    world.close()
    return tap.done()
