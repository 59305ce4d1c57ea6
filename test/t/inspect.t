#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Inspection in sandglass-proxy, over sockets: TLS of the client ends there, each request is
judged, and goes up in TLS only to a server that shows who it is. On all three ways to it.

Servers, names and certificates are of the test's own (lib/proxybox.py, lib/pki.py). For each
refusal there is a control: the same with one thing changed is let through.
"""

import base64
import hashlib
import json
import os
import resource
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from urllib.parse import quote

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import pki  # noqa: E402
import proxybox as box  # noqa: E402
import tap  # noqa: E402
from malformed import MALFORMED, filled  # noqa: E402
from place import SANITIZED  # noqa: E402

PORTS = {"one": 443, "wrong": 8444, "expired": 8445, "stranger": 8446, "self": 8447}
PLAIN = 8080
BIG = 1 << 20
LIMIT = 2048  # MAX_INSPECTED


# --- servers ---

def take_body(s, head, rest):
    length = [int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-length:")]
    if b"chunked" in head.lower():
        while not rest.endswith((b"\r\n0\r\n\r\n", b"X-T: 1\r\n\r\n")):
            more = s.recv(65536)
            if not more:
                break
            rest += more
    while length and len(rest) < length[0]:
        more = s.recv(65536)
        if not more:
            break
        rest += more
    return rest


def unchunk(data):
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        n = int(size, 16)
        body, data = body + data[:n], data[n + 2:]
    return body


def answer(server, s):
    """By the path: how the answer is framed. Says what it has seen of the request's body."""
    head, rest = box.read_head(s)
    if not head:
        return
    body = take_body(s, head, rest)
    server.saw(head + body)
    seen = unchunk(body) if b"chunked" in head.lower() else body
    path = head.split(b" ")[1]
    if path.startswith(b"/ok/big"):
        data = b"0123456789abcdef" * (BIG // 16)
    else:
        data = b"seen " + head.split(b"\r\n")[0] + b" sha " + hashlib.sha256(seen).hexdigest().encode()
    if path.startswith(b"/ok/echo/"):
        echo_back(s, path, next((x.split(b" ")[-1] for x in head.split(b"\r\n")
                                 if x.lower().startswith(b"authorization:")), b"none"))
    elif path.startswith(b"/ok/chunks"):
        s.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
                  b"".join(b"%x;e=1\r\n%s\r\n" % (len(x), x) for x in (data[:5], data[5:])) + b"0\r\nX-T: 1\r\n\r\n")
    elif path.startswith((b"/ok/end", b"/ok/cut")):
        s.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + data)
        if path.startswith(b"/ok/end"):
            try:
                s.unwrap()
            except (OSError, ValueError):
                pass
    else:
        status = b"404 Not Found" if path.startswith(b"/ok/none") else b"200 OK"
        if b" HEAD " in b" " + head[:5]:
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n")
        else:
            s.sendall(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n" % (status, len(data)) + data)


def echo_back(s, path, value):
    """What it was sent, in the way that the path says."""
    kind = path.split(b"/")[3]
    if kind == b"head":
        s.sendall(b"HTTP/1.1 200 OK\r\nX-Echo: " + value + b"\r\nContent-Length: 2\r\n\r\nok")
        return
    body = {b"raw": value, b"base64": base64.b64encode(b"x:" + value), b"url": quote(value, safe="").encode(),
            b"end": value}[kind]
    body = b"headers: " + body + b" and more"
    if kind == b"end":
        s.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    else:
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
    for piece in (body[:14], body[14:]):
        s.sendall(piece)
        time.sleep(0.2)
    if kind == b"end":
        s.unwrap()


def tls_server(certs, name, port):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certs.pair(name))

    def serve(server, s):
        s.settimeout(20)
        try:
            with context.wrap_socket(s, server_side=True, suppress_ragged_eofs=False) as t:
                answer(server, t)
                try:
                    server.ends.append(t.recv(1))  # b"": TLS has said so
                except OSError as e:
                    server.ends.append(e)
        except ssl.SSLError as e:
            server.saw(b"(TLS) " + str(e).encode())
    server = box.Server(serve, port=port)
    server.ends = []
    return server


# --- clients ---

def context(p, trusting=True, **more):
    c = ssl.create_default_context(cadata=p.ca if trusting else None)
    c.set_alpn_protocols(more.get("alpn", ["h2", "http/1.1"]))
    return c


def lead(p, how, host="one.test", port=443):
    """A connected socket on one of the ways."""
    if how == "connect":
        s, status = box.connect_through(p, host, port)
        assert " 200 " in status, status
        return s
    if how == "socks":
        s, reply = box.socks_through(p, host, port)
        assert reply == 0, reply
        return s
    address = box.resolve(p, host)[1][0]
    return socket.create_connection((address, port), 10)


def secure(p, how="connect", host="one.test", port=443, sni=None, c=None):
    s = lead(p, how, host, port)
    s.settimeout(20)
    return (c or context(p)).wrap_socket(s, server_hostname=host if sni is None else sni or None,
                                         suppress_ragged_eofs=False)


def request(path="/ok/x", method="GET", host="one.test", more=b"", body=b"", version="1.1"):
    fields = b"" if host is None else f"Host: {host}\r\n".encode()
    return f"{method} {path} HTTP/{version}\r\n".encode("latin-1") + fields + more + b"\r\n" + body


def one_answer(s, head_only=False):
    """A response with a length or in chunks: (status, head, body)."""
    head, rest = box.read_head(s)
    if not head:
        return 0, b"", b""
    status = int(head.split(b" ")[1])
    return status, head, rest if head_only else take_body(s, head, rest)


def ask(p, data, **where):
    """One request in a connection of its own."""
    with secure(p, **where) as s:
        s.sendall(data)
        return one_answer(s)


def denied(got, reason):
    status, head, body = got
    try:
        code = json.loads(body)["error"]["code"]
    except ValueError:
        code = None
    return status == 403 and f"X-Sandglass-Denied: {reason}".encode() in head and code == "EGRESS_DENIED"


# --- rows ---

def ways(p, web):
    for how in ("connect", "socks", "redirect"):
        web.seen.clear()
        web.ends.clear()
        p.take()
        with secure(p, how) as s:
            cert = s.getpeercert()
            protocol, version = s.selected_alpn_protocol(), s.version()
            s.sendall(request("/ok/x?token=abc"))
            got = one_answer(s)
        issuer = dict(x[0] for x in cert["issuer"])["commonName"]
        tap.ok(got[0] == 200 and b"seen GET /ok/x?token=abc HTTP/1.1" in got[2], f"{how}: a request and its answer", got)
        tap.ok("sandglass" in issuer and protocol == "http/1.1" and version in ("TLSv1.2", "TLSv1.3"),
               f"{how}: a leaf of the sandbox's own authority, HTTP/1.1", issuer, protocol, version)
        head = web.seen[-1]
        tap.ok(b"\r\nHost: one.test\r\n" in head and b"Connection: close" in head, f"{how}: as it went up", head)
        closed = p.wait(lambda e: e["kind"] == "close")
        until = time.monotonic() + 5
        while not web.ends and time.monotonic() < until:
            time.sleep(0.01)
        tap.ok(web.ends == [b""], f"{how}: the server is told the end", web.ends)
        event = p.wait(lambda e: e["kind"] == "request")
        tap.ok(event and (event["method"], event["path"], event["status"], event["host"]) ==
               ("GET", "/ok/x", 200, "one.test") and "token" not in str(p.events),
               f"{how}: the log has method, path without query, status", event)
        kinds = [e["kind"] for e in p.take()]
        tap.ok(closed and closed["up"] and kinds == ["allow", "request", "close"], f"{how}: allowed and closed", kinds)


def framing(p, web):
    with secure(p) as s:
        got = []
        for path in ("/ok/1", "/ok/chunks", "/ok/none", "/ok/2"):
            s.sendall(request(path))
            got.append(one_answer(s))
    tap.ok([x[0] for x in got] == [200, 200, 404, 200] and b"seen" in got[1][2], "one connection, four requests", got)
    with secure(p) as s:
        s.sendall(b"".join(request(f"/ok/p{i}") for i in range(5)))
        data = b""
        while data.count(b"seen GET") < 5:
            more = s.recv(65536)
            if not more:
                break
            data += more
    order = [data.find(b"seen GET /ok/p%d " % i) for i in range(5)]
    tap.ok(order == sorted(order) and order[0] > 0, "pipelined: five answers, in order", data)
    with secure(p) as s:
        s.sendall(request("/ok/1") + request("/no/1") + request("/ok/3"))
        data = box.read_all(s) or b""
    tap.ok(data.count(b"HTTP/1.1 200") == 1 and data.count(b"HTTP/1.1 403") == 1 and b"/ok/3" not in data,
           "pipelined: the second is refused, which is the end", data)
    body = os.urandom(BIG)
    digest = hashlib.sha256(body).hexdigest().encode()
    got = ask(p, request("/ok/up", "POST", more=b"Content-Length: %d\r\n" % BIG, body=body))
    tap.ok(got[0] == 200 and digest in got[2], f"{BIG} bytes up with a length", got)
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + 70000]), body[i:i + 70000]) for i in range(0, BIG, 70000))
    got = ask(p, request("/ok/chunks", "POST", more=b"Transfer-Encoding: chunked\r\n", body=chunks + b"0\r\n\r\n"))
    tap.ok(got[0] == 200 and digest in unchunk_loose(got[2]), "chunks up, chunks down", got[1])
    got = ask(p, request("/ok/big"))
    tap.ok(got[0] == 200 and got[2] == b"0123456789abcdef" * (BIG // 16), f"{BIG} bytes down", got[1])
    with secure(p) as s:
        s.sendall(request("/ok/h", "HEAD") + request("/ok/after"))
        first, second = one_answer(s, True), one_answer(s)
        if b"HTTP/1.1" in first[2]:
            second = (200, b"", first[2] + second[2])
    tap.ok(first[0] == 200 and b"seen GET /ok/after" in second[2], "HEAD has no body", first, second)
    with secure(p) as s:
        s.sendall(request("/ok/old", version="1.0", host=None))
        data = box.read_all(s)
    tap.ok(data.startswith(b"HTTP/1.1 200") and b"seen GET /ok/old HTTP/1.0" in data, "HTTP/1.0 without Host", data)
    web.seen.clear()
    with secure(p) as s:
        s.sendall(request("/ok/up", "POST", more=b"Content-Length: 5\r\nExpect: 100-continue\r\n"))
        time.sleep(0.2)
        s.sendall(b"hello")
        got = one_answer(s)
    tap.ok(got[0] in (100, 200), "Expect: 100-continue does not stand still", got)
    # An answer up to the end of the connection is whole only if TLS says that it ended.
    with secure(p) as s:
        s.sendall(request("/ok/end"))
        data = box.read_all(s)
    tap.ok(data and b"seen GET /ok/end" in data, "an answer up to the end", data)
    with secure(p) as s:
        s.sendall(request("/ok/cut"))
        try:
            data = box.read_all(s)
        except (ssl.SSLError, OSError) as e:
            data = e
    tap.ok(not isinstance(data, bytes), "cut off: the client sees that it was", data)


def unchunk_loose(data):
    """Chunks with extensions and a trailer."""
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        n = int(size.split(b";")[0] or b"0", 16)
        if n == 0:
            break
        body, data = body + data[:n], data[n + 2:]
    return body


def certificates(p, servers):
    for name, word in (("wrong", "mismatch"), ("expired", "expired"), ("stranger", "issuer"), ("self", "self")):
        p.take()
        servers[name].seen.clear()
        status, head, body = ask(p, request("/ok/x", more=b"X-Secret: s3cret\r\n", host=f"one.test:{PORTS[name]}"),
                                 port=PORTS[name])
        event = p.wait(lambda e: e["kind"] == "deny")
        seen = b"".join(servers[name].seen)
        tap.ok(status == 502 and b"X-Sandglass-Denied: certificate" in head and word in body.decode(),
               f"certificate: {name}: refused, and why", status, head, body)
        tap.ok(event and event["reason"] == "certificate" and event["port"] == PORTS[name] and b"s3cret" not in seen and
               b"GET" not in seen, f"certificate: {name}: nothing went up", event, seen)
    tap.ok(ask(p, request())[0] == 200, "certificate: control: a good one")
    got = ask(p, request(host="a.wild.test"), host="a.wild.test")
    tap.ok(got[0] == 200, "certificate: a wildcard's", got)


PATHS_DENIED = ("/no/x", "/ok/../no/x", "/ok/%2e%2e/no/x", "/ok/.%2E/no", "//ok/x", "/ok//x", "/ok/./x", "/OK/x", "/o",
                "/ok/%2f..%2fno", "/ok\\..\\no", "/ok/%5c..%5cno", "/ok/%00", "/ok/%zz", "/ok/%c0%ae", "/%6fk/../no",
                "/ok/%252e%252e/no", "/no/%2e./ok/x", "/ok;/../no")


def rules(p, web):
    web.seen.clear()
    bad = []
    for path in PATHS_DENIED:
        p.take()
        with secure(p) as s:
            s.sendall(request(path))
            status, head, _ = one_answer(s)
        if status not in (400, 403):
            bad.append((path, status, head))
    tap.ok(not bad and not web.seen, f"paths: {len(PATHS_DENIED)} that are not allowed, nothing went up", bad, web.seen)
    for path in ("/ok/x", "/%6fk/x", "/ok/a/b/c?x=/../no", "/ok/%20b"):
        got = ask(p, request(path))
        tap.ok(got[0] == 200, f"paths: control: {path}", got)
    tap.ok(denied(ask(p, request("/no/x")), "path"), "paths: denied, and why")
    event = p.wait(lambda e: e["kind"] == "deny" and e["reason"] == "path" and e["path"] == "/no/x")
    tap.ok(event and event["method"] == "GET", "paths: an event with method and path", event)
    web.seen.clear()
    for method in ("DELETE", "PUT", "PATCH", "PROPFIND"):
        tap.ok(denied(ask(p, request("/ok/x", method)), "method"), f"methods: {method} is denied")
    for method in ("get", "Post", "TRACE", "CONNECT", "FOO"):
        got = ask(p, request("/ok/x", method))
        tap.ok(400 <= got[0] < 600, f"methods: {method} is refused", got)
    tap.ok(not web.seen, "methods: nothing went up", web.seen)
    tap.ok(ask(p, request("/ok/x", "POST", more=b"Content-Length: 0\r\n"))[0] == 200, "methods: control: POST")
    for host in ("two.test", "one.test:444", "one.test@two.test", "", "one.test, two.test"):
        got = ask(p, request(host=host))
        tap.ok(400 <= got[0] < 500, f"Host: {host or '(empty)'} is not the one that was connected to", got)
    tap.ok(ask(p, request(host="ONE.test.:443"))[0] == 200, "Host: control: another spelling")
    got = ask(p, request("https://two.test/ok/x"))
    tap.ok(got[0] == 400, "a target that is a URL is refused", got)
    web.seen.clear()
    for field in ("X-HTTP-Method-Override: DELETE", "X-Method-Override: PUT", "x_http_method: DELETE",
                  "X-Original-URL: /no/x", "X-Rewrite-Url: /no/x"):
        got = ask(p, request(more=field.encode() + b"\r\n"))
        tap.ok(denied(got, "ambiguous"), f"another method or path by {field.split(':')[0]} is refused", got)
    tap.ok(not web.seen, "another method or path: nothing went up", web.seen)
    got = ask(p, request(host="a.wild.test", more=b"X-HTTP-Method-Override: PATCH\r\n"), host="a.wild.test")
    tap.ok(got[0] == 200, "another method: control: no rule about requests", got)
    more = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n"
    tap.ok(denied(ask(p, request(more=more)), "protocol"), "WebSocket is refused, and says so")


def pushes(p, web):
    """A host without rules about paths, inspected; git may write to team/app alone."""
    where = {"host": "two.test"}
    web.seen.clear()
    for method, path in (("GET", "/team/x.git/info/refs?service=git-receive-pack"),
                         ("POST", "/team/x.git/git-receive-pack"),
                         ("GET", "/team/x.git/info/refs?a=1&service=git%2Dreceive-pack"),
                         ("POST", "/team/x.git/%67it-receive-pack"),
                         ("POST", "/team/x/info/lfs/locks")):
        got = ask(p, request(path, method, host="two.test", more=b"Content-Length: 0\r\n"), **where)
        tap.ok(denied(got, "push"), f"push: {method} {path} is refused", got)
    tap.ok(not web.seen, "push: nothing went up", web.seen)
    for method, path in (("GET", "/team/x.git/info/refs?service=git-upload-pack"),
                         ("POST", "/team/x.git/git-upload-pack"),
                         ("GET", "/team/app.git/info/refs?service=git-receive-pack"),
                         ("POST", "/team/app.git/git-receive-pack")):
        got = ask(p, request(path, method, host="two.test", more=b"Content-Length: 0\r\n"), **where)
        tap.ok(got[0] == 200, f"push: control: {method} {path}", got)


def secrets(web, plain_server):
    """A value goes to its hosts, in its header, over TLS; everywhere else the placeholder stays."""
    value, basic, cleared = (f"VALUE-{os.urandom(8).hex()}" for _ in range(3))
    marks = [f"PLACE-{os.urandom(8).hex()}" for _ in range(3)]
    p = box.Proxy(("allow", "one.test:*"), ("allow", "two.test"), ("inspect", "one.test:*"), ("inspect", "two.test"),
                  redirect_ports=(443, PLAIN),
                  secrets=(("a", marks[0], "Authorization", f"Bearer {value}", "tls", "one.test:*"),
                           ("b", marks[1], "X-Key", basic, "tls", "one.test:*"),
                           ("c", marks[2], "X-Clear", cleared, "plain", "one.test:*")))

    def sent(more, path="/ok/x", **where):
        web.seen.clear()
        got = ask(p, request(path, host=where.get("host", "one.test"), more=more), **where)
        return got, b"".join(web.seen)
    for how in ("connect", "socks", "redirect"):
        got, head = sent(f"Authorization: Bearer {marks[0]}\r\nX-Other: {marks[0]}\r\n".encode(), how=how)
        tap.ok(got[0] == 200 and f"Authorization: Bearer {value}\r\n".encode() in head and
               f"X-Other: {marks[0]}\r\n".encode() in head and head.count(value.encode()) == 1,
               f"secret: {how}: in its header, and there alone", got, head)
    both = base64.b64encode(f"me:{marks[0]}".encode())
    got, head = sent(b"authorization: Basic " + both + b"\r\n")
    tap.ok(f": Bearer {value}\r\n".encode() in head and both not in head, "secret: inside Basic", head)
    got, head = sent(f"X-Key: {marks[1]}\r\nX-Clear: {marks[2]}\r\n".encode())
    tap.ok(f"X-Key: {basic}\r\n".encode() in head and f"X-Clear: {cleared}\r\n".encode() in head, "secret: two at once", head)
    for name, more, path in (("another header", f"X-Key: {marks[0]}\r\n", "/ok/x"),
                             ("the path", "", f"/ok/{marks[0]}"),
                             ("the query", "", f"/ok/x?{marks[0]}"),
                             ("half of it", f"Authorization: Bearer {marks[0][:-1]}\r\n", "/ok/x")):
        got, head = sent(more.encode(), path)
        tap.ok(got[0] == 200 and value.encode() not in head, f"secret: not in {name}", head)
    # A server that sends it back: the sandbox does not get it, in no spelling.
    for kind in ("raw", "base64", "url", "end", "head"):
        p.take()
        data = b""
        try:
            with secure(p) as s:
                s.sendall(request(f"/ok/echo/{kind}", more=f"Authorization: Bearer {marks[0]}\r\n".encode()))
                while True:
                    more = s.recv(65536)
                    if not more:
                        break
                    data += more
        except (OSError, ssl.SSLError):
            pass
        event = p.wait(lambda e: e["kind"] == "deny")
        tap.ok(event and event["reason"] == "secret" and value[6:].encode() not in data and b" and more" not in data,
               f"secret: sent back ({kind}): kept from the sandbox", event, data)
        got = ask(p, request(f"/ok/echo/{kind}", more=b"Authorization: Bearer something-else\r\n")) if kind != "end" else None
        tap.ok(kind == "end" or (got[0] == 200 and (kind == "head" or b" and more" in got[2])),
               f"secret: sent back ({kind}): control: another value", got)
    got, head = sent(f"Authorization: Bearer {marks[0]}\r\nAccept-Encoding: gzip, br\r\n".encode())
    tap.ok(b"Accept-Encoding: identity\r\n" in head and b"gzip" not in head, "secret: the answer is to be readable", head)
    got, head = sent(f"Authorization: Bearer {marks[0]}\r\n".encode(), host="two.test")
    tap.ok(got[0] == 200 and value.encode() not in head and marks[0].encode() in head, "secret: not to another host", head)
    plain_server.seen.clear()
    s = lead(p, "redirect", port=PLAIN)
    s.sendall(request(host=f"one.test:{PLAIN}", more=f"Authorization: {marks[0]}\r\nX-Clear: {marks[2]}\r\n".encode()))
    status = one_answer(s)[0]
    s.close()
    head = b"".join(plain_server.seen)
    tap.ok(status == 200 and value.encode() not in head and marks[0].encode() in head and cleared.encode() in head,
           "secret: not over plain HTTP, unless it may", head)
    status, head, _ = ask(p, request(host=f"one.test:{PORTS['self']}", more=f"Authorization: {marks[0]}\r\n".encode()),
                          port=PORTS["self"])
    tap.ok(status == 502 and b"certificate" in head, "secret: not to a server that shows no valid certificate", head)
    p.stop()
    said = p.said() + json.dumps(p.events)
    tap.ok("request" in said and not any(x in said for x in (value, basic, cleared)), "secret: in no event and no message")


def hello_with_ech(name, inner=True):
    c = ssl.create_default_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    t = c.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        t.do_handshake()
    except ssl.SSLWantReadError:
        pass
    raw = outgoing.read()
    body = raw[9:]
    at = 34
    at += 1 + body[at]
    at += 2 + struct.unpack(">H", body[at:at + 2])[0]
    at += 1 + body[at]
    extensions = body[at + 2:]
    if inner:
        extensions += struct.pack(">HH", 0xfe0d, 20) + bytes(20)
    body = body[:at] + struct.pack(">H", len(extensions)) + extensions
    return b"\x16\x03\x01" + struct.pack(">H", len(body) + 4) + b"\x01" + struct.pack(">I", len(body))[1:] + body


def clients(p, web):
    p.take()
    try:
        secure(p, c=context(p, trusting=False)).close()
        failed = None
    except ssl.SSLCertVerificationError as e:
        failed = e
    event = p.wait(lambda e: e["kind"] == "deny")
    tap.ok(failed and event and event["reason"] == "tls", "a client that does not know our authority: an event", failed, event)
    p.take()
    old = context(p)
    warnings.simplefilter("ignore", DeprecationWarning)
    old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    try:
        secure(p, c=old).close()
        failed = None
    except (ssl.SSLError, ConnectionError) as e:
        failed = e
    event = p.wait(lambda e: e["kind"] == "deny")
    tap.ok(failed and event and event["reason"] == "tls", "TLS 1.1 is refused", failed, event)
    twelve = context(p)
    twelve.maximum_version = ssl.TLSVersion.TLSv1_2
    with secure(p, c=twelve) as s:
        s.sendall(request())
        got = one_answer(s)
    tap.ok(got[0] == 200, "control: TLS 1.2", got)
    try:
        secure(p, c=context(p, alpn=["h2"])).close()
        failed = None
    except (ssl.SSLError, ConnectionError) as e:
        failed = e
    tap.ok(failed, "a client that speaks HTTP/2 alone is refused", failed)
    for how in ("connect", "socks", "redirect"):
        loose = context(p)
        loose.check_hostname = False
        with secure(p, how, sni="", c=loose) as s:
            s.sendall(request())
            got = one_answer(s)
            names = s.getpeercert()["subjectAltName"]
        tap.ok(got[0] == 200 and names == (("DNS", "one.test"),), f"{how}: without SNI: a leaf for the name asked for",
               got, names)
        p.take()
        try:
            secure(p, how, sni="two.test", c=loose).close()
            failed = None
        except (ssl.SSLError, OSError) as e:
            failed = e
        event = p.wait(lambda e: e["kind"] == "deny")
        tap.ok(failed and event and event["reason"] == "sni", f"{how}: SNI of another name is refused", failed, event)
    for name, inner, reason in (("two.test", True, "ech"), ("one.test", True, None), ("one.test", False, None)):
        p.take()
        s = lead(p, "connect")
        s.sendall(hello_with_ech(name, inner))
        try:
            first = s.recv(1)
        except ConnectionResetError:
            first = b""
        s.close()
        event = p.wait(lambda e: e["kind"] == "deny", 5 if reason else 0)
        tap.ok(event and event["reason"] == reason and not first if reason else first == b"\x16",
               f"ECH {'with' if inner else 'without'}, outer name {name}: {reason or 'answered as by a server that has none'}",
               first, event)
    # Neither TLS nor HTTP; and HTTP without TLS, which is judged like any other.
    web.seen.clear()
    for data in (b"SSH-2.0-OpenSSH_9\r\n", b"\x00\x01\x02\x03\r\n\r\n", b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00"):
        s = lead(p, "redirect")
        s.sendall(data)
        try:
            got = s.recv(100)
        except ConnectionResetError:
            got = b""
        s.close()
        tap.ok(got == b"" or got.startswith(b"HTTP/1.1 4"), f"neither TLS nor HTTP: {data[:12]}", got)
    tap.ok(not web.seen, "neither TLS nor HTTP: nothing went up", web.seen)


def plain(p, server):
    """The same host at a port where it speaks plain HTTP: rules hold there too."""
    for how in ("connect", "socks", "redirect"):
        server.seen.clear()
        got = []
        for path in ("/ok/x", "/no/x", "/ok/../no/x"):
            s = lead(p, how, port=PLAIN)
            s.sendall(request(path, host=f"one.test:{PLAIN}"))
            got.append(one_answer(s)[0])
            s.close()
        tap.ok(got[0] == 200 and got[1] == 403 and got[2] in (400, 403) and len(server.seen) == 1,
               f"plain HTTP by {how}: judged by the same rules", got, server.seen)
    got = []
    for path in ("/ok/x", "/no/x"):
        s = p.connect("http")
        s.sendall(f"GET http://one.test:{PLAIN}{path} HTTP/1.1\r\nHost: one.test:{PLAIN}\r\n\r\n".encode())
        got.append(one_answer(s)[0])
        s.close()
    tap.ok(got == [200, 403], "plain HTTP by the proxy: judged by the same rules", got)


def malformed(p, web):
    """What the plain path refuses is refused inside TLS as well."""
    web.seen.clear()
    total, bad = 0, []
    for kind, requests in MALFORMED.items():
        for raw in requests:
            data = filled(raw, "one.test", 443)
            if b" http://one.test:443/" not in data or kind == "absolute-form mismatch":
                continue
            data = data.replace(b" http://one.test:443/", b" /ok/", 1)
            total += 1
            with secure(p) as s:
                try:
                    s.sendall(data)
                    got = s.recv(100)
                except (ConnectionError, ssl.SSLError):
                    got = b""
            if got and not got.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")):
                bad.append((kind, data[:200], got))
    tap.ok(total >= 40 and not bad and not web.seen, f"malformed: {total} requests: refused, nothing went up", bad,
           web.seen[:3])


def renegotiation(p):
    def run(*lines):
        done = subprocess.Popen(
            ["openssl", "s_client", "-proxy", f"127.0.0.53:{p.port['http']}", "-connect", "one.test:443", "-tls1_2",
             "-CAfile", CA_FILE, "-servername", "one.test"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        for line in lines:
            time.sleep(0.5)
            try:
                done.stdin.write(line)
                done.stdin.flush()
            except BrokenPipeError:
                pass
        time.sleep(0.5)
        try:
            return done.communicate(timeout=15)[0]
        except subprocess.TimeoutExpired:
            done.kill()
            return done.communicate()[0]
    got = run(request().replace(b"GET", b"GET"))
    tap.ok(b"seen GET /ok/x" in got and b"Verify return code: 0" in got, "openssl s_client: control", got[-500:])
    got = run(b"R\n", request())
    tap.ok(b"RENEGOTIATING" in got and b"seen GET" not in got and b"enegotiation" in got,
           "TLS 1.2: no renegotiation", got[-500:])


def many(p):
    """At once, and nothing is left of them."""
    def files():
        return len(os.listdir(f"/proc/{p.process.pid}/fd"))
    before, bad = files(), []

    def run():
        try:
            for path in ("/ok/x", "/ok/chunks", "/ok/big"):
                if ask(p, request(path))[0] != 200:
                    bad.append(path)
        except OSError as e:
            bad.append(e)
    threads = [threading.Thread(target=run) for _ in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    # Ended in the middle of whatever they did.
    for cut in (b"", b"\x16\x03", hello_with_ech("one.test", False)[:200], hello_with_ech("one.test", False)):
        s = lead(p, "connect")
        s.sendall(cut)
        box.reset(s)
    s = secure(p)
    s.sendall(request("/ok/big"))
    s.recv(100)
    box.reset(s)
    until = time.monotonic() + 20
    while files() > before and time.monotonic() < until:
        time.sleep(0.1)
    tap.ok(not bad and files() <= before, "many at once: all right, no descriptor left", bad, before, files())


def limit():
    """Connections whose TLS is inspected, at the limit and one more; what one of them costs."""
    def memory():
        with open(f"/proc/{p.process.pid}/smaps_rollup", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("Rss:"))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most < 2 * LIMIT + 1000:
        tap.skip("limit: connections at once", f"nofile {2 * LIMIT + 1000}, here {most}")
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    p = box.Proxy(("allow", "one.test"), ("inspect", "one.test"))
    first = hello_with_ech("one.test", False)
    held, before = [], memory()
    for _ in range(LIMIT):
        s = lead(p, "socks")
        s.sendall(first)
        held.append(s)
    got = [s.recv(1) for s in held]
    each = (memory() - before) // LIMIT
    tap.ok(got == [b"\x16"] * LIMIT, f"limit: {LIMIT} connections at once", len(got))
    tap.ok(each <= 100, f"limit: {each} KiB each", each)
    s = lead(p, "connect")
    s.sendall(first)
    try:
        got = s.recv(1)
    except ConnectionResetError:
        got = b""
    event = p.wait(lambda e: e["kind"] == "deny")
    tap.ok(got == b"" and event and event["reason"] == "limit", "limit: one more is refused", got, event)
    for s in held:
        s.close()
    until = time.monotonic() + 20
    got = b""
    while got != b"\x16" and time.monotonic() < until:
        s = lead(p, "connect")
        s.sendall(first)
        try:
            got = s.recv(1)
        except ConnectionResetError:
            got = b""
        s.close()
    tap.ok(got == b"\x16", "limit: afterwards it serves", got)
    p.stop()


def refused_start(p):
    """Rules without inspection have no authority; with it, but without the host's, nothing starts."""
    q = box.Proxy(("allow", "one.test"))
    tap.ok(not hasattr(q, "ca"), "no rule that asks for it: no authority")
    status = q.stop()
    tap.ok(status == 0, "without inspection: ends in order", status, q.said())
    tap.ok("BEGIN CERTIFICATE" in p.ca and "PRIVATE" not in p.ca, "with one: a certificate, and no key", p.ca)
    subprocess.run(["mount", "--bind", "/dev/null", box.STORE], check=True)
    try:
        q = box.Proxy(("inspect", "one.test"), ("allow", "one.test"))
        q.stop()
        said = None
    except RuntimeError as e:
        said = str(e)
    subprocess.run(["umount", box.STORE], check=True)
    tap.ok(said and "SANDBOX_UNAVAILABLE" in said and "authorities" in said, "no authorities of the host's: it does not start",
           said)


def main():
    certs = pki.Pki(TOP)
    servers = {name: tls_server(certs, name, port) for name, port in PORTS.items()}
    plain_server = box.Server(answer, port=PLAIN)
    web = servers["one"]
    p = box.Proxy(("allow", "one.test:* GET,POST,HEAD /ok/**"), ("allow", "two.test"), ("allow", "*.wild.test"),
                  ("inspect", "two.test"), ("inspect", "*.wild.test"), ("push", "two.test/team/app"),
                  redirect_ports=(443, PLAIN))
    with open(CA_FILE, "w", encoding="ascii") as f:
        f.write(p.ca)
    for name, function, *args in (
            ("ways", ways, p, web), ("framing", framing, p, web), ("certificates", certificates, p, servers),
            ("rules", rules, p, web), ("pushes", pushes, p, web), ("clients", clients, p, web),
            ("plain", plain, p, plain_server), ("malformed", malformed, p, web), ("renegotiation", renegotiation, p),
            ("many", many, p), ("start", refused_start, p)):
        tap.attempt(name, function, *args)
    tap.ok(p.stop() == 0 and p.said() == "", "ends in order, with nothing to say", p.said())
    # A proxy of its own, at the same ports of the transparent path.
    tap.attempt("secrets", secrets, web, plain_server)
    if not SANITIZED:
        tap.attempt("limit", limit)
    return tap.done()


TOP = os.environ.get("INSPECT_TOP")
if not TOP:
    TOP = os.environ["INSPECT_TOP"] = tempfile.mkdtemp(prefix="sandglass-inspect.")
    pki.make(TOP)
CA_FILE = f"{TOP}/session.pem"
if os.environ.get("PROXYBOX") != "1":
    try:
        box.enter(f"{TOP}/store.pem")
    finally:
        shutil.rmtree(TOP, ignore_errors=True)
sys.exit(main())
