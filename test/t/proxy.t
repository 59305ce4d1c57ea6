#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""sandglass-proxy by itself, over sockets: what it lets through and what it refuses, in each
protocol; what it gave up; bytes, ends and resets; many connections at once.

Everything runs in namespaces of the test's own (lib/proxybox.py): servers have a public
address on the loopback there, and names come from an /etc/hosts of the test. For each refusal
there is a control: the same with one thing changed is let through.
"""

import concurrent.futures
import hashlib
import json
import os
import random
import resource
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import proxybox as box  # noqa: E402
import tap  # noqa: E402
from malformed import CONTROL, CONTROL_CHUNKED, MALFORMED, filled  # noqa: E402
from place import SANITIZED, beside  # noqa: E402

SEED = int(os.environ.get("SEED", "0")) or int(time.time())
TRANSFERS = int(os.environ.get("TRANSFERS", "150" if SANITIZED else "2000"))
AT_ONCE = 4
ROOT = os.environ.get("PROXYBOX_ROOT") == "1"
PORT = 7443  # of the transparent path here, beside 443


def answer_web(server, s):
    """Every request is answered with what was seen of it, kept alive if wanted."""
    while True:
        head, rest = box.read_head(s)
        if not head:
            return
        length = [int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-length:")]
        if b"chunked" in head.lower():
            while not rest.endswith(b"0\r\n\r\n"):
                more = s.recv(65536)
                if not more:
                    break
                rest += more
        while length and len(rest) < length[0]:
            more = s.recv(65536)
            if not more:
                break
            rest += more
        server.saw(head + rest)
        body = b"seen " + head.split(b"\r\n")[0]
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-End: 1\r\n\r\n" % len(body) + body)


def echo(server, s):
    while True:
        data = s.recv(65536)
        if not data:
            return
        server.saw(data)
        s.sendall(data)


def banner(server, s):
    """Speaks first, like ssh or a mail server."""
    s.sendall(b"220 ready\r\n")
    server.saw(s.recv(100))


def read_answer(s):
    """One response with a length."""
    head, body = box.read_head(s)
    length = [int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-length:")]
    while length and len(body) < length[0]:
        body += s.recv(65536)
    return head + body


def ask(proxy, data, timeout=5, end=False):
    """Sends bytes to the HTTP listener; what came back up to the end, or None for a reset."""
    s = proxy.connect("http", timeout)
    try:
        s.sendall(data)
        if end:
            s.shutdown(socket.SHUT_WR)
        return box.read_all(s)
    except (BrokenPipeError, ConnectionResetError):
        return None
    except TimeoutError:
        return b"(open)"
    finally:
        s.close()


def hello(name):
    """The first bytes of a TLS client that asks for that name."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


# --- start ---

def starts():
    program = beside("sandglass-proxy")

    def bare(*args, fd3=None, **more):
        return subprocess.run([program, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=10, check=False, **more)
    done = bare()
    tap.ok(done.returncode == 125 and b"descriptor 3" in done.stderr and b"INTERNAL" in done.stderr,
           "start: without rules it says so", done)
    done = bare("--help")
    tap.ok(done.returncode == 125 and b"no arguments" in done.stderr, "start: with arguments it says so", done)
    needed = subprocess.run(["readelf", "-d", program], stdout=subprocess.PIPE, check=True).stdout.decode()
    libs = sorted(x.split("[")[1].split("]")[0].split(".so")[0] for x in needed.split("\n") if "(NEEDED)" in x)
    tap.ok(SANITIZED or libs == ["libc", "libcares", "libcrypto", "libssl", "libuv"],
           "start: linked with libuv, c-ares and OpenSSL alone", libs)


def confined(p):
    pid = p.process.pid
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    tap.ok(all(int(status[x], 16) == 0 for x in ("CapInh", "CapPrm", "CapEff", "CapAmb")) and
           (not ROOT or int(status["CapBnd"], 16) == 0), "confined: no capability", status)
    tap.ok(status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", "confined: no_new_privs and a filter", status)
    if ROOT:
        tap.ok(set(status["Uid"].split() + status["Gid"].split()) == {"1879165536"} and not status["Groups"].strip(),
               "confined: as root an id of its own", status)
    with open(f"/proc/{pid}/limits", encoding="ascii") as f:
        core = [line for line in f if line.startswith("Max core")][0].split()
    tap.ok(core[4] == "1", "confined: no core file", core)
    links = {int(n): os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")}
    rest = {n: x for n, x in links.items()
            if not (n < 3 or x.startswith(("socket:", "anon_inode:[event", "pipe:", "anon_inode:[io")))}
    tap.ok(not rest and 3 not in [n for n, x in links.items() if "memfd" in x],
           "confined: no descriptor of the caller's, the rules closed", links)


def dies_with_its_parent():
    code = ("import sys,os,time; sys.path.insert(0, sys.argv[1]); import proxybox as b\n"
            "b.Proxy.encode = sys.argv[2]; p = b.Proxy(('allow', 'one.test')); print(p.process.pid, flush=True); time.sleep(60)")
    child = subprocess.Popen([sys.executable, "-c", code, os.path.dirname(box.__file__), box.Proxy.encode],
                             stdout=subprocess.PIPE)
    pid = int(child.stdout.readline())
    alive = os.path.exists(f"/proc/{pid}")
    child.kill()
    child.wait()
    until = time.monotonic() + 5
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < until:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            if f.read().split()[2] == "Z":
                break
        time.sleep(0.02)
    tap.ok(alive and time.monotonic() < until, "start: it ends with its parent")


# --- HTTP ---

def malformed(p, web):
    for name, control in (("length", CONTROL), ("chunked", CONTROL_CHUNKED)):
        web.seen.clear()
        s = p.connect("http")
        s.sendall(filled(control, "one.test", web.port))
        got = s.recv(4096)
        s.close()
        tap.ok(got.startswith(b"HTTP/1.1 200 OK\r\n") and len(web.seen) == 1 and b"hello" in web.seen[0],
               f"malformed: control with {name} is taken", got, web.seen)
    total = 0
    for kind, requests in MALFORMED.items():
        bad, before = [], web.count
        for request in requests:
            got = ask(p, filled(request, "one.test", web.port), 3)
            if got is not None and not got.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")):
                bad.append((request[:200], got[:200]))
            total += 1
        tap.ok(not bad and web.count == before and len(requests) >= 5,
               f"malformed: {kind} ({len(requests)}): refused, closed, nothing at the server",
               bad, web.count - before)
    tap.ok(total >= 90, f"malformed: {total} requests")
    refused = [e for e in p.take() if e["kind"] == "deny"]
    tap.ok(len(refused) >= total - 10 and {e["reason"] for e in refused} <= {"malformed", "authority", "host"},
           "malformed: each is an event", {e["reason"] for e in refused}, len(refused))
    # The second half of a chunk is wrong when the first is at the server already.
    web.seen.clear()
    s = p.connect("http")
    s.sendall(filled(b"POST http://AUTH/ HTTP/1.1\r\nHost: AUTH\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
                     "one.test", web.port))
    time.sleep(0.3)
    s.sendall(b"loXX5\r\n")
    got = box.read_all(s)
    s.close()
    time.sleep(0.2)
    tap.ok(got is None or got.startswith(b"HTTP/1.1 400"), "malformed: later in a body: refused", got)
    tap.ok(not any(x.endswith(b"0\r\n\r\n") for x in web.seen) and not any(b"XX" in x for x in web.seen),
           "malformed: later in a body: the server gets no end and nothing of it", web.seen)


def each_request(p, web):
    """A kept-alive connection: each request is judged by itself."""
    web.seen.clear()
    s = p.connect("http")
    good = filled(b"GET http://AUTH/1 HTTP/1.1\r\nHost: AUTH\r\n\r\n", "one.test", web.port)
    s.sendall(good)
    first = read_answer(s)
    s.sendall(good)
    second = read_answer(s)
    tap.ok(first.startswith(b"HTTP/1.1 200") and b"keep-alive" in first and second.startswith(b"HTTP/1.1 200"),
           "http: two requests on one connection", first, second)
    s.sendall(filled(b"GET http://AUTH/2 HTTP/1.1\r\nHost: AUTH\r\n\r\n", "two.test", web.port))
    denied = box.read_all(s)
    tap.ok(denied and denied.startswith(b"HTTP/1.1 403") and len(web.seen) == 2,
           "http: the next one to another host is denied", denied, web.seen)
    s.close()
    # Both at once: the first is answered, the second judged.
    web.seen.clear()
    got = ask(p, good + filled(b"GET http://AUTH/2 HTTP/1.1\r\nHost: AUTH\r\n\r\n", "two.test", web.port))
    tap.ok(got and got.startswith(b"HTTP/1.1 200") and b"HTTP/1.1 403" in got and len(web.seen) == 1,
           "http: pipelined: the first is answered, the second denied", got, web.seen)
    web.seen.clear()
    got = ask(p, filled(CONTROL_CHUNKED, "one.test", web.port) + good + b"GET / HTTP/1.1\r\n\r\n")
    tap.ok(got and got.count(b"HTTP/1.1 200") == 2 and b"HTTP/1.1 403" in got and len(web.seen) == 2 and
           all(x.count(b"HTTP/1.1") == 1 for x in web.seen), "http: nothing of one request gets into another",
           got, web.seen)
    web.seen.clear()
    got = ask(p, filled(b"GET http://AUTH/ HTTP/1.1\r\nHost: AUTH\r\nProxy-Authorization: Basic eA==\r\nTE: trailers\r\n"
                        b"X-A: 1\r\nConnection: close, x-a\r\nX-B: 2\r\nProxy-Connection: close\r\n\r\n", "one.test", web.port))
    tap.ok(web.seen and b"x-b: 2" in web.seen[0].lower() and not any(
        x in web.seen[0].lower() for x in (b"proxy-", b"te:", b"x-a")), "http: hop-by-hop fields stay here", web.seen)
    got = ask(p, filled(b"GET https://AUTH/ HTTP/1.1\r\nHost: AUTH\r\n\r\n", "one.test", web.port))
    tap.ok(b"CONNECT" in got, "http: https:// is refused with what to do instead", got)
    got = ask(p, filled(b"GET http://ONE.TEST.:PORT/x HTTP/1.1\r\nHost: one.test:PORT\r\nConnection: close\r\n\r\n",
                        "", web.port))
    tap.ok(got.startswith(b"HTTP/1.1 200"), "http: case and a dot at the end make no difference", got)
    got = ask(p, filled(b"GET http://AUTH/ HTTP/1.0\r\n\r\n", "one.test", web.port))
    tap.ok(got.startswith(b"HTTP/1.1 200") and b"Connection: close" in got, "http: HTTP/1.0 without Host", got)
    web.seen.clear()
    got = ask(p, filled(b"GET http://AUTH/ HTTP/1.1\r\nHost: AUTH\r\nConnection: upgrade, close\r\nUpgrade: websocket\r\n\r\n",
                        "one.test", web.port))
    tap.ok(got.startswith(b"HTTP/1.1 200") and b"upgrade" not in web.seen[0].lower(),
           "http: a wish for another protocol is not passed on", got, web.seen)


def denials(p, web):
    got = ask(p, b"GET http://two.test/ HTTP/1.1\r\nHost: two.test\r\n\r\n")
    head, _, body = got.partition(b"\r\n\r\n")
    error = json.loads(body)["error"]
    tap.ok(head.startswith(b"HTTP/1.1 403") and b"X-Sandglass-Denied: " in head and
           error["code"] == "EGRESS_DENIED" and error["host"] == "two.test" and error["port"] == 80 and
           error["rule"] == "network.default" and "--allow-host" in error["hint"], "denial: status, header, body", got)
    s, line = box.connect_through(p, "two.test", 22)
    body = box.read_all(s)
    error = json.loads(body)["error"]
    tap.ok(" 403 " in line and error["port"] == 22, "denial: CONNECT to port 22 without a rule, readable", line, body)
    for host, reason in (("private.test", "class"), ("metadata.test", "class"), ("rebound.test", "loopback"),
                         ("denied.test", "denied"), ("127.0.0.1", "loopback"), ("2130706433", "loopback"),
                         ("0x7f.1", "loopback"), ("[::1]", "loopback"), ("[::ffff:127.0.0.1]", "loopback"),
                         ("169.254.169.254", "class"), ("10.9.8.7", "class")):
        p.take()
        s, line = box.connect_through(p, host, web.port)
        s.close()
        event = p.wait(lambda e: e["kind"] == "deny")
        allowed = {reason, "class", "loopback", "default"} if reason != "denied" else {reason}
        tap.ok(" 403 " in line and event and event["reason"] in allowed, f"denial: {host}", line, event)
    p.take()
    s, line = box.connect_through(p, "one.test", 9)
    body = box.read_all(s)
    tap.ok(" 502 " in line and b"refused" in body and p.wait(lambda e: e["kind"] == "fail" and e["reason"] == "unreached"),
           "failure: nobody listens there", line, body)
    s, line = box.connect_through(p, "nowhere.wild.test", web.port, 20)
    tap.ok(" 502 " in line and p.wait(lambda e: e["kind"] == "fail" and e["reason"] == "unresolved"),
           "failure: no such name", line)
    # Not one byte before the answer.
    s = p.connect("http")
    s.sendall(filled(b"CONNECT AUTH HTTP/1.1\r\nHost: AUTH\r\n\r\n", "one.test", web.port))
    s.sendall(b"GET /early HTTP/1.1\r\n\r\n")
    got = s.recv(4096)
    s.close()
    time.sleep(0.2)
    tap.ok(b"200 Conn" in got or b"400" in got, "connect: early bytes: refused, or held back until the answer", got)


# --- SOCKS ---

def socks(p, web):
    s, reply = box.socks_through(p, "one.test", web.port)
    s.sendall(b"GET /s HTTP/1.1\r\n\r\n")
    tap.ok(reply == 0 and s.recv(4096).startswith(b"HTTP/1.1 200"), "socks: a name", reply)
    s.close()
    before = web.count

    def raw(*parts):
        c = p.connect("socks", 3)
        got = b""
        try:
            for part in parts:
                c.sendall(part)
                got += c.recv(100)
            got += box.read_all(c) or b""
        except (ConnectionResetError, BrokenPipeError):
            pass
        except TimeoutError:
            got += b"(open)"
        c.close()
        return got
    port = struct.pack(">H", web.port)
    for name, message, reply in (
            ("BIND", b"\5\2\0\1\x7f\0\0\1" + port, 7), ("UDP", b"\5\3\0\1\x7f\0\0\1" + port, 7),
            ("another type", b"\5\1\0\2\x7f\0\0\1" + port, 8), ("IPv4 loopback", b"\5\1\0\1\x7f\0\0\1" + port, 2),
            ("IPv6 loopback", b"\5\1\0\4" + b"\0" * 15 + b"\1" + port, 2),
            ("mapped loopback", b"\5\1\0\4" + b"\0" * 10 + b"\xff\xff\x7f\0\0\1" + port, 2),
            ("NUL in a name", b"\5\1\0\3\x12one.test\0evil.test" + port, 2),
            ("NUL at the end", b"\5\1\0\3\x09one.test\0" + port, 2),
            ("a name of 255 bytes", b"\5\1\0\3\xff" + b"a" * 255 + port, 2),
            ("a name with a space", b"\5\1\0\3\x09one .test" + port, 2),
            ("a name with 8 bits", b"\5\1\0\3\x09one\xe9.test" + port, 2),
            ("a name with a port", b"\5\1\0\3\x0aone.test:1" + port, 2),
            ("no name", b"\5\1\0\3\0" + port, 1), ("port 0", b"\5\1\0\3\x08one.test\0\0", 1),
            ("reserved byte", b"\5\1\1\3\x08one.test" + port, 1), ("version 4", b"\4\1" + port + b"\1\2\3\4\0", 1),
            ("bytes behind", b"\5\1\0\3\x08one.test" + port + b"early", 1),
            ("another host", b"\5\1\0\3\x08two.test" + port, 2)):
        got = raw(b"\5\1\0", message)
        tap.ok(got[:2] == b"\5\0" and len(got) == 12 and got[3] == reply, f"socks: {name}: reply {reply}", got)
    for name, message, want in (("only passwords", b"\5\1\2", b"\5\xff"), ("no methods", b"\5\0", b""),
                                ("HTTP", b"GET / HTTP/1.1\r\n\r\n", b""), ("request at once", b"\5\1\0\5\1\0\3\x08one.test" + port, b"")):
        tap.ok(raw(message) == want, f"socks: greeting: {name}", raw(message))
    tap.ok(web.count == before, "socks: nothing of it reached the server", web.count - before)


# --- DNS ---

def dns(p):
    for tcp in (False, True):
        by = "tcp" if tcp else "udp"
        four, six = (box.resolve(p, "one.test", t, tcp) for t in (1, 28))
        tap.ok(four[0] == 0 and four[1][0].startswith("198.18.") and six[1][0].startswith("fd53:616e:6467:"),
               f"dns {by}: a synthetic address of each kind", four, six)
        tap.ok(box.resolve(p, "ONE.test", 1, tcp)[1] == four[1], f"dns {by}: the same one again")
        got = box.resolve(p, "other.test", 1, tcp)
        tap.ok(got[0] == 5 and not got[1] and got[2] and got[2][0][0] == 18 and "network.default" in got[2][0][1],
               f"dns {by}: another name is refused, with words", got)
        got = box.resolve(p, "denied.test", 1, tcp)
        tap.ok(got[0] == 5 and got[2][0][0] == 15, f"dns {by}: a denied one, blocked", got)
        tap.ok(box.resolve(p, "one.test", 65, tcp) == (0, [], []), f"dns {by}: HTTPS: no record")
        tap.ok(all(box.resolve(p, "one.test", t, tcp)[0] == 5 for t in (16, 15, 33, 12, 255, 2, 6, 252)),
               f"dns {by}: other types are refused")
        tap.ok(box.resolve(p, "data.one.test", 1, tcp)[0] == 5, f"dns {by}: a name below an allowed one is another")
    header = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0)
    for name, raw, code in (("pointer", header + b"\xc0\x0c\0\1\0\1", 1), ("loop", header + b"\1a\xc0\x0c\0\1\0\1", 1),
                            ("two questions", struct.pack(">HHHHHH", 7, 256, 2, 0, 0, 0) + b"\1a\0\0\1\0\1" * 2, 1),
                            ("bytes left", header + b"\1a\0\0\1\0\1x", 1), ("cut", header + b"\1a\0\0\1", 1),
                            ("another class", header + b"\3one\4test\0\0\1\0\3", 5),
                            ("a dot in a label", header + b"\x08one.test\0\0\1\0\1", 5),
                            ("NUL in a name", header + b"\4one\0\4test\0\0\1\0\1", 5)):
        got = box.resolve(p, None, raw=raw)
        tap.ok(got and got[0] == code and not got[1], f"dns: {name}: code {code}", got)
    tap.ok(box.resolve(p, None, raw=header[:2] + b"\x81\x80" + header[4:] + b"\1a\0\0\1\0\1", timeout=0.5) is None and
           box.resolve(p, None, raw=b"x", timeout=0.5) is None, "dns: an answer, a fragment: nothing back")
    got = box.resolve(p, "localhost")
    tap.ok(got[0] == 0 and got[1] == ["127.0.0.1"], "dns: localhost with an open port of the host", got)


# --- the transparent path ---

def transparent(p, servers):
    def go(name, port, family=4):
        address = box.resolve(p, name, 1 if family == 4 else 28)[1]
        return socket.create_connection((address[0], port), 5)

    def ends(s):
        try:
            return box.read_all(s)
        except TimeoutError:
            return b"(open)"
    p.take()
    for family in (4, 6):
        s = go("one.test", PORT, family)
        s.sendall(b"hi")
        tap.ok(s.recv(10) == b"hi", f"redirect: IPv{family}: to the server of the name")
        s.close()
    event = p.wait(lambda e: e["kind"] == "close")
    tap.ok(event and event["how"] == "redirect" and event["host"] == "one.test" and event["up"] == 2 and
           event["down"] == 2 and p.wait(lambda e: e["kind"] == "allow" and e["id"] == event["id"] and
                                         e["address"] == box.PUBLIC), "redirect: events, with bytes", event)
    s = go("two.test", PORT + 1)
    tap.ok(s.recv(20) == b"220 ready\r\n", "redirect: a server that speaks first")
    s.close()
    # TLS: the name asked for is the name allowed.
    for port in (443, PORT):
        server = servers[port]
        for sni, good in (("one.test", True), ("ONE.test", True), (None, True), ("evil.test", False),
                          ("one.test.evil.test", False)):
            server.seen.clear()
            s = go("one.test", port)
            data = hello(sni)
            try:
                s.sendall(data[:50])
                time.sleep(0.02)
                s.sendall(data[50:])
                got = s.recv(100) if good else ends(s)
            except ConnectionResetError:
                got = None
            s.close()
            tap.ok(got == data[:len(got)] and got if good else not got and not server.seen,
                   f"redirect {port}: TLS for {sni}: {'passed on' if good else 'reset, nothing sent on'}",
                   got, server.seen)
    tap.ok(p.wait(lambda e: e["kind"] == "deny" and e["reason"] == "sni"), "redirect: the event says sni")
    s = go("one.test", 443)
    s.sendall(b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00" + b"\x16\x03\x01\x00\x00")
    tap.ok(not ends(s), "redirect 443: TLS that is broken is reset")
    s.close()
    # Clients that look up themselves and then ask a proxy for the address.
    address = box.resolve(p, "one.test")[1][0]
    for way, through in (("connect", box.connect_through), ("socks", box.socks_through)):
        s, line = through(p, address, PORT)
        s.sendall(b"hi")
        tap.ok(s.recv(10) == b"hi", f"{way}: to a synthetic address: the name it stands for", line)
        s.close()
        s, line = through(p, address, 1)
        tap.ok(line in (5, "HTTP/1.1 502 Bad Gateway"), f"{way}: to it at another port: judged as that name", line)
        s.close()
        s, line = through(p, "198.19.255.1", PORT)
        tap.ok(line in (2, "HTTP/1.1 403 Forbidden"), f"{way}: to a synthetic address of no name: denied", line)
        s.close()
    s = go("one.test", 443)
    s.sendall(b"plain")
    tap.ok(s.recv(10) == b"plain", "redirect 443: what is no TLS goes on")
    s.close()
    for name, address, reason in (("a synthetic address of no name", "198.19.255.1", "synthetic"),
                                  ("an address", box.PUBLIC6, None), ("loopback", "127.0.0.1", "loopback"),
                                  ("private", "10.9.8.7", None), ("metadata", "169.254.169.254", None)):
        p.take()
        try:
            s = socket.create_connection((address, PORT + 2), 5)
            got = ends(s)
            s.close()
        except ConnectionResetError:
            got = None
        event = p.wait(lambda e: e["kind"] == "deny")
        tap.ok(got is None and event and (reason is None or event["reason"] == reason), f"redirect: {name}: reset", got, event)
    try:
        s = go("a.wild.test", PORT + 2)
        got = ends(s)
        s.close()
    except ConnectionResetError:
        got = None
    tap.ok(got is None, "redirect: nobody listens at the server: a reset", got)


def reaction(s, data):
    """What comes back of it, at most 10 bytes; none after a reset."""
    s.sendall(data)
    try:
        return s.recv(10)
    except ConnectionResetError:
        return b""
    finally:
        s.close()


def sni_in_tunnels(p, server):
    for way, through in (("connect", box.connect_through), ("socks", box.socks_through)):
        for sni, good in (("one.test", True), ("evil.test", False)):
            server.seen.clear()
            s, _ = through(p, "one.test", PORT)
            data = hello(sni)
            got = reaction(s, data)
            tap.ok(bool(got) == good and bool(server.seen) == good, f"{way}: TLS for {sni} in a tunnel to one.test", got)


def odd_hellos(p, server):
    """What a TLS server takes at the beginning, though it is no handshake of a known version."""
    data = hello("evil.test")
    for name, first in (("version 3.5", b"\x16\x03\x05" + data[3:]), ("version 3.255", b"\x16\x03\xff" + data[3:]),
                        ("version 10.1", b"\x16\x0a\x01" + data[3:]), ("an alert first", b"\x15\x03\x01\0\x02\x01\x64" + data),
                        ("a change of ciphers first", b"\x14\x03\x03\0\x01\x01" + data)):
        server.seen.clear()
        p.take()
        s, _ = box.connect_through(p, "one.test", PORT)
        got = reaction(s, first)
        tap.ok(not got and not server.seen, f"connect: a hello with {name} does not pass", got, server.seen)
    server.seen.clear()
    s, _ = box.connect_through(p, "one.test", PORT)
    s.sendall(b"\x15\x01\0\0\x07\0\0\0")
    tap.ok(recv_exactly(s, 8) == b"\x15\x01\0\0\x07\0\0\0", "control: other binary protocols do", server.seen)
    s.close()


def later_hellos(p, server):
    """A protocol that turns to TLS after an answer, once or often."""
    for turns in (1, 40):
        for sni, good in (("one.test", True), ("evil.test", False)):
            s, _ = box.connect_through(p, "one.test", PORT)
            for _ in range(turns):
                s.sendall(b"NOOP\r\n")
                recv_exactly(s, 6)
            data = hello(sni)
            server.seen.clear()
            got = reaction(s, data)
            tap.ok(bool(got) == good and bool(server.seen) == good,
                   f"connect: after {turns} answers TLS for {sni} {'passes' if good else 'does not'}", got)
    s, _ = box.connect_through(p, "one.test", PORT)
    for turn in range(20):
        piece = b"\x16" if turn == 5 else b"\x16\x03\x01" if turn > 16 else b"x"
        s.sendall(piece)
        if turn == 5:  # held, for it may be the beginning of one
            s.sendall(b"rest")
            piece += b"rest"
        tap.ok(recv_exactly(s, len(piece)) == piece, f"control: turn {turn} goes on as it is")
    s.close()


# --- bytes ---

def blob(server, s):
    """Commands: how many bytes to take and give, and how to end."""
    size, back, how = struct.unpack(">QQ8s", recv_exactly(s, 24))
    digest = hashlib.sha256()
    left = size
    while left:
        data = s.recv(min(left, 1 << 18))
        if not data:
            return
        digest.update(data)
        left -= len(data)
    how = how.rstrip(b"\0")
    if how == b"half" and s.recv(1):
        return
    if isinstance(s, Answering):
        s.begin(32 + back if how == b"close" else None)
    s.sendall(digest.digest())
    sent = 0
    while sent < back:
        piece = PATTERN[sent % 65536:sent % 65536 + min(1 << 17, back - sent)]
        s.sendall(piece)
        sent += len(piece)
    if how == b"reset":
        time.sleep(0.05)
        box.reset(s)


PATTERN = random.Random(1).randbytes(1 << 18)


def pattern_digest(size):
    digest, sent = hashlib.sha256(), 0
    while sent < size:
        piece = PATTERN[sent % 65536:sent % 65536 + min(1 << 17, size - sent)]
        digest.update(piece)
        sent += len(piece)
    return digest.digest()


def recv_exactly(s, n):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            raise EOFError(f"{len(data)} of {n}")
        data += more
    return data


def transfer(s, size, back, how, slow):
    """None if every byte came as it was sent, and the end as it was made. Slow is who reads or writes."""
    payload = random.randbytes(size)

    def send():
        try:
            head = struct.pack(">QQ8s", size, back, how)
            if slow == "writer":
                for at in range(0, size, 1 << 15):
                    s.sendall(head + payload[at:at + (1 << 15)])
                    head = b""
                    time.sleep(0.001)
            s.sendall(head + payload if slow != "writer" else head)
            if how == b"half":
                s.shutdown(socket.SHUT_WR)
        except OSError:
            pass
    sender = threading.Thread(target=send)
    sender.start()
    try:
        if recv_exactly(s, 32) != hashlib.sha256(payload).digest():
            return "what went up"
        digest, got, end = hashlib.sha256(), 0, "eof"
        while True:
            try:
                data = s.recv(4096 if slow == "reader" else 1 << 18)
            except ConnectionResetError:
                end = "reset"
                break
            if not data:
                break
            digest.update(data)
            got += len(data)
            if slow == "reader" and got % (1 << 16) < 4096:
                time.sleep(0.001)
        if how == b"reset":
            return None if end == "reset" and (got == back and digest.digest() == pattern_digest(back)) else f"{end} after {got} of {back}"
        return None if end == "eof" and got == back and digest.digest() == pattern_digest(back) else f"{end} after {got} of {back}"
    except (EOFError, OSError) as e:
        return repr(e)
    finally:
        sender.join()
        s.close()


class Requested:
    """A transfer as one request in absolute form, its body in chunks if it is to be half-closed."""

    def __init__(self, p, port, size, back, how):
        self.s, self.chunked, self.rest, self.left = p.connect("http", 30), how == b"half", None, None
        frame = "Transfer-Encoding: chunked" if self.chunked else f"Content-Length: {24 + size}"
        self.s.sendall(f"POST http://one.test:{port}/ HTTP/1.1\r\nHost: one.test:{port}\r\n{frame}\r\n\r\n".encode())
        if how == b"close":
            self.left = 32 + back

    def sendall(self, data):
        self.s.sendall(b"%x\r\n%b\r\n" % (len(data), data) if self.chunked and data else data)

    def shutdown(self, how):
        self.s.sendall(b"0\r\n\r\n")
        self.s.shutdown(how)

    def recv(self, n):
        if self.rest is None:
            head, self.rest = box.read_head(self.s)
            if not head.startswith(b"HTTP/1.1 200 "):
                raise OSError(head[:100])
        if self.left is not None:
            n = min(n, self.left)
        data, self.rest = self.rest[:n], self.rest[n:]
        data = data or (self.s.recv(n) if n else b"")
        if self.left is not None:
            self.left -= len(data)
        return data

    def close(self):
        self.s.close()


class Answering:
    """The server's side of it: a socket whose bytes are the bodies."""

    def __init__(self, s):
        head, self.rest = box.read_head(s)
        self.s, self.chunked, self.left, self.begun = s, b"chunked" in head.lower(), 0, False

    def more(self):
        data = self.s.recv(1 << 18)
        if not data:
            raise EOFError("a body that ends too early")
        self.rest += data

    def recv(self, n):
        if self.chunked and not self.left:
            while b"\r\n" not in self.rest:
                self.more()
            line, _, self.rest = self.rest.partition(b"\r\n")
            if not line:  # what ends the chunk before
                return self.recv(n)
            self.left = int(line, 16)
            if not self.left:
                return b""
        if not self.rest:
            self.more()
        n = min(n, self.left) if self.chunked else n
        data, self.rest = self.rest[:n], self.rest[n:]
        self.left -= len(data) if self.chunked else 0
        return data

    def begin(self, length):
        frame = b"" if length is None else b"Content-Length: %d\r\n" % length
        self.s.sendall(b"HTTP/1.1 200 OK\r\n" + frame + b"\r\n")

    def sendall(self, data):
        self.s.sendall(data)

    def setsockopt(self, *args):
        self.s.setsockopt(*args)

    def close(self):
        self.s.close()


def fds_of(p):
    return len(os.listdir(f"/proc/{p.process.pid}/fd"))


def transfers(p, server):
    tap.note(f"SEED={SEED}")
    random.seed(SEED)
    requests = box.Server(lambda server, s: blob(server, Answering(s)), port=PORT + 7)
    ways = {"connect": lambda *_: box.connect_through(p, "one.test", server.port, 30)[0],
            "socks": lambda *_: box.socks_through(p, "one.test", server.port, 30)[0],
            "redirect": lambda *_: socket.create_connection((box.resolve(p, "one.test")[1][0], server.port), 30),
            "absolute": lambda *plan: Requested(p, requests.port, *plan[:3])}
    sizes = [0, 1, 2, 100, 1459, 1460, 1461, 4096, 65535, 65536, 65537, 262143, 262144, 262145]
    large, before = [1 << 20, 5 << 20, 64 << 20], fds_of(p)

    def draw(i):
        if i < 2 * len(large):  # each of them up and down
            size, back = (large[i // 2], 0) if i % 2 else (0, large[i // 2])
            return size, back, (b"close", b"half", b"reset")[i // 2], None
        small = random.choice(sizes[:9])
        size, back = (small, random.choice(sizes)) if i % 2 else (random.choice(sizes), small)
        return size, back, (b"close", b"half", b"reset")[i % 3], (None, None, "reader", None, "writer")[i % 5]
    for way, make in ways.items():
        plans = [draw(i) for i in range(TRANSFERS // len(ways))]
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            done = pool.map(lambda plan, make=make: transfer(make(*plan), *plan), plans)
            bad = [(*plan, why) for plan, why in zip(plans, done) if why]
        tap.ok(not bad, f"bytes: {way}: {len(plans)} transfers of 0 to 64 MiB are exact, with their ends", bad[:5])
    until = time.monotonic() + 10
    while fds_of(p) > before and time.monotonic() < until:
        time.sleep(0.1)
    tap.ok(fds_of(p) <= before, "bytes: no descriptor is left of them", before, fds_of(p))
    requests.close()
    # A reset by the client reaches the server.
    seen = []

    def wait_reset(_, s):
        try:
            seen.append(("eof", s.recv(10), s.recv(10)))
        except ConnectionResetError:
            seen.append(("reset",))
    other = box.Server(wait_reset, port=PORT + 3)
    s, _ = box.connect_through(p, "one.test", other.port)
    s.sendall(b"x")
    time.sleep(0.1)
    box.reset(s)
    time.sleep(0.5)
    tap.ok(seen == [("reset",)], "bytes: a client's reset is one at the server", seen)
    other.close()


def slow_readers(p):
    """A reader that waits for longer than an answer may linger gets all of it."""
    def serve(server, s):
        head, _ = box.read_head(s)
        if b"/close" in head:
            s.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + PATTERN * 32)
        elif b"/chunks" in head:
            s.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
                      (b"%x\r\n" % len(PATTERN) + PATTERN + b"\r\n") * 32 + b"0\r\n\r\n")
        else:
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (32 * len(PATTERN)) + PATTERN * 32)
    server = box.Server(serve, port=PORT + 6)
    found, threads = {}, []

    def one(path, more):
        s = p.connect("http", 60)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 17)
        s.sendall(f"GET http://one.test:{PORT + 6}/{path} HTTP/1.1\r\nHost: one.test:{PORT + 6}\r\n{more}\r\n".encode())
        _, body = box.read_head(s)
        data = bytearray(body)
        time.sleep(4)
        while True:
            try:
                more = s.recv(1 << 16)
            except OSError as e:
                more = repr(e)
                break
            data += more
            if not more or (path != "close" and len(data) >= 32 * len(PATTERN) and "keep" in path):
                break
        s.close()
        if path.startswith("chunks"):
            good = data == (b"%x\r\n" % len(PATTERN) + PATTERN + b"\r\n") * 32 + b"0\r\n\r\n"
        else:
            good = data == PATTERN * 32
        found[path] = good or (len(data), more)
    for path in ("close", "chunks", "length", "keep"):
        threads.append(threading.Thread(target=one, args=(path, "" if path == "keep" else "Connection: close\r\n")))
        threads[-1].start()
    for t in threads:
        t.join(60)
    server.close()
    tap.ok(found == {x: True for x in ("close", "chunks", "length", "keep")},
           "bytes: HTTP to readers that wait: all of it", found)


def throughput(p, server):
    size, rates = 256 << 20, {"direct": [], "connect": []}
    for _ in range(5):
        for way in rates:
            s = (socket.create_connection((box.PUBLIC, server.port)) if way == "direct"
                 else box.connect_through(p, "one.test", server.port, 30)[0])
            s.sendall(struct.pack(">QQ8s", 0, size, b"close"))
            begin, got, room = time.monotonic(), 0, bytearray(1 << 18)
            while True:
                n = s.recv_into(room)
                if not n:
                    break
                got += n
            rates[way].append(got / (time.monotonic() - begin) / 1e6)
            s.close()
            if got != size + 32:
                tap.ok(False, "throughput: all bytes", way, got)
    ratio = sorted(a / b for a, b in zip(rates["connect"], rates["direct"]))[2]
    tap.ok(ratio > 0.3, f"throughput: {ratio:.2f} of a direct connection", rates)
    tap.note({k: [round(x) for x in v] for k, v in rates.items()})


# --- many and slow ---

def idle_tunnels(p):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(10000, (hard - 300) // 2 - 100)
    hold, accepted = [], []
    listener = socket.socket()
    listener.bind((box.PUBLIC, PORT + 4))
    listener.listen(4096)

    def accept():
        while True:
            try:
                accepted.append(listener.accept()[0])
            except OSError:
                return
    threading.Thread(target=accept, daemon=True).start()

    def rss():
        with open(f"/proc/{p.process.pid}/status", encoding="ascii") as f:
            return [int(x.split()[1]) for x in f if x.startswith("VmRSS")][0]
    before = rss()
    request = f"CONNECT one.test:{PORT + 4} HTTP/1.1\r\nHost: one.test:{PORT + 4}\r\n\r\n".encode()
    opened = 0
    for base in range(0, count, 200):
        batch = [p.connect("http", 30) for _ in range(min(200, count - base))]
        for s in batch:
            s.sendall(request)
        opened += sum(b" 200 " in s.recv(200) for s in batch)
        hold += batch
    each = (rss() - before) / max(1, opened)
    tap.ok(opened == count and each <= 20, f"many: {count} idle tunnels, {each:.1f} KiB each", opened)
    s = random.choice(hold)
    s.sendall(b"still there")
    time.sleep(0.2)
    s, line = box.connect_through(p, "one.test", PORT + 4)
    tap.ok(" 200 " in line, "many: and one more")
    s.close()
    for x in hold + accepted:
        x.close()
    listener.close()
    time.sleep(1.5)
    fds = len(os.listdir(f"/proc/{p.process.pid}/fd"))
    tap.ok(fds < 60, "many: no descriptor is left of them", fds)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def never_blocks():
    """A supervisor that does not read: events are lost, connections are not."""
    p = box.Proxy(("allow", "one.test:*"), read=False)
    time.sleep(0.5)
    for _ in range(3000):
        s = p.connect("http")
        s.sendall(b"GET / HTTP/1.1\r\n\r\n")
        s.close()
    got = ask(p, b"GET http://two.test/ HTTP/1.1\r\nHost: two.test\r\n\r\n")
    tap.ok(got and got.startswith(b"HTTP/1.1 403"), "events: nobody reads them, and it serves", got)
    p.process.kill()
    p.process.wait()


def limit_of_connections():
    p = box.Proxy(("allow", "one.test:*"), nofile=220)
    hold = []
    for _ in range(30):
        try:
            hold.append(p.connect("http"))
        except ConnectionResetError:
            pass
    time.sleep(0.3)
    tap.ok(p.wait(lambda e: e["kind"] == "deny" and e["reason"] == "limit"), "limit: the eleventh is turned away")
    for s in hold:
        s.close()
    time.sleep(0.3)
    got = ask(p, b"GET http://two.test/ HTTP/1.1\r\nHost: two.test\r\n\r\n")
    tap.ok(got and got.startswith(b"HTTP/1.1 403"), "limit: afterwards it serves", got)
    tap.ok(p.stop() == 0, "limit: ends in order")


def ends_in_order(p, server):
    s, _ = box.connect_through(p, "one.test", server.port)
    s.sendall(struct.pack(">QQ8s", 10, 0, b"close") + b"12345")
    time.sleep(0.2)
    p.take()
    status = p.stop()
    closes = [e for e in p.events if e["kind"] == "close"]
    tap.ok(status == 0 and any(e["up"] >= 29 and e["port"] == server.port for e in closes),
           "end: by descriptor 4, with the bytes of what was open", status, closes)


def main():
    box.enter()
    web, echo_server = box.Server(answer_web), box.Server(echo, port=PORT)
    tls = box.Server(echo, port=443)
    box.Server(banner, port=PORT + 1)
    bytes_server = box.Server(blob, port=PORT + 5)
    tap.attempt("start", starts)
    p = box.Proxy(("allow", "one.test:*"), ("allow", f"two.test:{PORT + 1}"), ("allow", "*.wild.test:*"),
                  ("allow", "private.test:*"), ("allow", "metadata.test:*"), ("allow", "rebound.test:*"),
                  ("allow", "denied.test:*"), ("deny", "denied.test"), ("local", "8099"),
                  redirect_ports=(443, PORT, PORT + 1, PORT + 2, PORT + 5), local=[(8099, 8098)],
                  leak=(sys.stdout.fileno(),))
    slow, slow_begin = p.connect("http", 60), time.monotonic()
    slow.sendall(b"GET http://one.test/ HTTP/1.1\r\nHo")
    slow_got = []

    def wait_slow():
        slow.settimeout(60)
        slow_got.extend((box.read_all(slow), time.monotonic() - slow_begin))
    waiting = threading.Thread(target=wait_slow)
    waiting.start()
    for name, function, *args in (
            ("confined", confined, p), ("malformed", malformed, p, web), ("each request", each_request, p, web),
            ("denials", denials, p, web), ("socks", socks, p, web), ("dns", dns, p),
            ("transparent", transparent, p, {443: tls, PORT: echo_server}),
            ("sni", sni_in_tunnels, p, echo_server), ("odd hellos", odd_hellos, p, echo_server),
            ("later hellos", later_hellos, p, echo_server), ("transfers", transfers, p, bytes_server),
            ("slow readers", slow_readers, p), ("throughput", throughput, p, bytes_server), ("many", idle_tunnels, p)):
        tap.attempt(name, function, *args)
    local = box.Server(echo, address="127.0.0.1", port=8099)
    s = socket.create_connection(("127.0.0.77", 8098), 5)
    s.sendall(hello("db.test"))
    tap.ok(s.recv(10), "local: to the same port of the host's loopback, TLS for any name")
    s.close()
    local.close()
    waiting.join()
    got, took = slow_got
    tap.ok(got and got.startswith(b"HTTP/1.1 408") and took < 45, f"slow: a head that never ends: closed after {took:.0f} s", got)
    tap.attempt("end", ends_in_order, p, bytes_server)
    tap.attempt("parent", dies_with_its_parent)
    tap.attempt("events", never_blocks)
    tap.attempt("limit", limit_of_connections)
    return tap.done()


if os.environ.get("PROXYBOX") != "1":
    os.environ["PROXYBOX_ROOT"] = "1" if os.geteuid() == 0 else "0"
sys.exit(main())
