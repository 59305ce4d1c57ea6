#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Limits of the way out in sandglass-proxy: bytes up and down, the rate, connections at once. Each
just below it, byte by byte, and just above; on every way out; many connections together; and
with the proxy killed.

In namespaces of the test's own (lib/proxybox.py). The same over `run` and sessions is in
session-net.t.
"""

import concurrent.futures
import hashlib
import json
import os
import shutil
import signal
import socket
import ssl
import struct
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import pki  # noqa: E402
import proxybox as box  # noqa: E402
import tap  # noqa: E402

PORT, LOCAL, INSIDE, TLS = 7443, 8099, 8098, 443
SIZE = 100000
PAYLOAD = bytes(range(256)) * 8192  # 2 MiB
RESET = b"(reset)"


def exactly(s, n):
    data = b""
    while len(data) < n:
        more = s.recv(min(n - len(data), 1 << 18))
        if not more:
            break
        data += more
    return data


def carry(server, s):
    """Takes as many bytes as it is told, and says their digest; then gives as many as it is told."""
    head = exactly(s, 16)
    if len(head) < 16:
        return
    up, down = struct.unpack(">QQ", head)
    digest, got = hashlib.sha256(), 0
    while got < up:
        data = s.recv(min(up - got, 1 << 18))
        if not data:
            break
        digest.update(data)
        got += len(data)
        server.saw(len(data))
    if got == up:
        s.sendall(digest.digest())
        s.sendall(PAYLOAD[:down])
    s.recv(1)


def web(server, s):
    """Requests with a body of a length, each answered with the length it had."""
    while True:
        head, body = box.read_head(s)
        if not head:
            return
        n = next((int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-length:")), 0)
        while len(body) < n:
            more = s.recv(65536)
            if not more:
                return
            body += more
        server.saw(n)
        text = str(len(body)).encode()
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)


# Each way: how it is connected, and what it has sent by then.

def by_connect(p):
    return box.connect_through(p, "one.test", PORT)[0]


def by_socks(p):
    return box.socks_through(p, "one.test", PORT)[0]


def by_redirect(p):
    return socket.create_connection((box.resolve(p, "one.test")[1][0], PORT), 10)


def by_local(_):
    return socket.create_connection(("127.0.0.77", INSIDE), 10)


WAYS = {"connect": (by_connect, len(f"CONNECT one.test:{PORT} HTTP/1.1\r\nHost: one.test:{PORT}\r\n\r\n")),
        "socks": (by_socks, 3 + 7 + len("one.test")), "redirect": (by_redirect, 0), "local": (by_local, 0)}


def proxy(*limits, **more):
    return box.Proxy(("allow", f"one.test:{PORT}"), ("local", str(LOCAL)), *[("limit", x) for x in limits],
                     redirect_ports=(PORT,), local=[(LOCAL, INSIDE)], **more)


def ask(s, up, down):
    """The digest of what went up is right, and what came down; or what was there instead."""
    s.settimeout(20)
    try:
        s.sendall(struct.pack(">QQ", up, down) + PAYLOAD[:up])
        got = exactly(s, 32 + down)
    except (ConnectionResetError, BrokenPipeError):
        return RESET
    return got == hashlib.sha256(PAYLOAD[:up]).digest() + PAYLOAD[:down] or got


def refused(p, way):
    """What a new connection is told: True if that is a denial by the limit."""
    if way == "connect":
        s, status = box.connect_through(p, "one.test", PORT)
        body = box.read_all(s) or b""
        s.close()
        return " 403 " in status and json.loads(body)["error"].get("rule")
    if way == "socks":
        s, reply = box.socks_through(p, "one.test", PORT)
        s.close()
        return reply == 2
    try:
        s = WAYS[way][0](p)
        s.settimeout(20)
        got = s.recv(1)
        s.close()
        return got == b""
    except ConnectionResetError:
        return True


def each_limit(servers):
    for way, (connect, head) in WAYS.items():
        server = servers["local" if way == "local" else "one"]
        for limit, up, down in (("bytes_up", SIZE, 7), ("bytes_down", 7, SIZE)):
            amount = head + 16 + up if limit == "bytes_up" else 32 + down
            p = proxy(f"{limit} {amount}")
            s = connect(p)
            good = ask(s, up, down)
            s.close()
            p.stop()
            tap.ok(good is True, f"{way}: {limit}: just what is allowed goes, each byte", good)
            p = proxy(f"{limit} {amount - 1}", "bytes_up 1TiB", "bytes_down 1TiB")
            server.seen.clear()
            s = connect(p)
            got = ask(s, up, down)
            event = p.wait(lambda e: e["kind"] == "deny")
            tap.ok(got is not True and (got == RESET or len(got) < 32 + down) and
                   sum(server.seen) <= amount and event and event["reason"] == "limit" and event["rule"] == 2 and
                   event["host"] == ("localhost" if way == "local" else "one.test"),
                   f"{way}: {limit}: a byte more is not sent, the connection ends, and it is said", event,
                   got if got == RESET else len(got), sum(server.seen))
            p.take()
            told = refused(p, way)
            event = p.wait(lambda e: e["kind"] == "deny")
            tap.ok(told in (True, f"network.{limit} {amount - 1}") and event and event["reason"] == "limit" and
                   event["rule"] == 2, f"{way}: {limit}: new connections are refused, with the reason", told, event)
            s.close()
            p.stop()


def absolute(servers):
    """Requests of their own, one after the other, on one connection of the client."""
    body = b"x" * 1000
    request = f"POST http://one.test:{PORT + 1}/ HTTP/1.1\r\nHost: one.test:{PORT + 1}\r\nContent-Length: 1000\r\n\r\n".encode() + body
    p = box.Proxy(("allow", f"one.test:{PORT + 1}"), ("limit", f"bytes_up {3 * len(request)}"))
    servers["web"].seen.clear()
    s = p.connect("http", 20)
    got = []
    for _ in range(4):
        s.sendall(request)
        head, rest = box.read_head(s)
        n = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        got.append((head.split(b" ")[1], rest + exactly(s, n - len(rest))))
    s.close()
    tap.ok([x[0] for x in got] == [b"200"] * 3 + [b"403"] and b"network.bytes_up" in got[3][1] and
           servers["web"].seen == [1000] * 3, "absolute form: three requests fit, the fourth is refused", got)
    tap.ok("hint" not in json.loads(got[3][1])["error"],
           "absolute form: which file says so is not told inside", got[3])
    p.stop()
    p = box.Proxy(("allow", f"one.test:{PORT + 1}"), ("limit", f"bytes_up {len(request) - 1}"))
    servers["web"].seen.clear()
    s = p.connect("http", 20)
    try:
        s.sendall(request[:-500])
        time.sleep(0.1)  # the rest comes when the request was let through
        s.sendall(request[-500:])
        data = box.read_all(s)
    except OSError:
        data = None
    tap.ok(not data or b"200 OK" not in data, "absolute form: a body that goes over does not arrive", data,
           servers["web"].seen)
    p.stop()


def inspected(certs, servers):
    for limit, up in (("bytes_up", 40000), ("bytes_down", 40000)):
        p = box.Proxy(("allow", "one.test"), ("inspect", "one.test"), ("limit", f"{limit} 100KiB"))
        server = servers["tls"]
        server.seen.clear()
        context = ssl.create_default_context(cadata=p.ca)
        results = []
        for _ in range(4):
            try:
                s, status = box.connect_through(p, "one.test", TLS)
                if " 200 " not in status:
                    results.append(status.split(" ")[1])
                    continue
                s.settimeout(20)
                with context.wrap_socket(s, server_hostname="one.test") as t:
                    path = f"/give/{up}" if limit == "bytes_down" else "/"
                    body = b"x" * (up if limit == "bytes_up" else 1)
                    t.sendall(f"POST {path} HTTP/1.1\r\nHost: one.test\r\nConnection: close\r\n"
                              f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
                    data = box.read_all(t)
                    results.append("good" if data and b"200 OK" in data and
                                   (limit == "bytes_up" or len(data) > up) else "cut")
            except OSError:
                results.append("cut")
        tap.ok(results[:2] == ["good", "good"] and "good" not in results[2:] and results[3] != "good",
               f"inspected: {limit}: two requests fit, the third and fourth do not", results)
        event = p.wait(lambda e: e["kind"] == "deny" and e["reason"] == "limit")
        tap.ok(event and event["host"] == "one.test", f"inspected: {limit}: and it is said", event)
        p.stop()


def together(servers):
    """Sixteen at once, which would take four times what there is."""
    for limit in ("bytes_up", "bytes_down"):
        for way in ("connect", "redirect"):
            amount = 1 << 20
            p = proxy(f"{limit} {amount}")
            servers["one"].seen.clear()
            came = []

            def one(_, p=p, way=way, limit=limit):
                try:
                    s = WAYS[way][0](p)
                    s.settimeout(20)
                    if limit == "bytes_up":
                        s.sendall(struct.pack(">QQ", 1 << 18, 0) + PAYLOAD[:1 << 18])
                        exactly(s, 32)
                    else:
                        s.sendall(struct.pack(">QQ", 0, 1 << 18))
                        while True:
                            data = s.recv(1 << 16)
                            if not data:
                                break
                            came.append(len(data))
                            if sum(came) > 64 << 20:
                                break
                    s.close()
                except OSError:
                    pass
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                futures = [pool.submit(one, i) for i in range(16)]
                if limit == "bytes_down":  # those that have all wait for the end
                    p.wait(lambda e: e["kind"] == "deny" and e["reason"] == "limit", 20)
                    time.sleep(0.2)
                    p.process.kill()
                concurrent.futures.wait(futures)
            total = sum(servers["one"].seen) if limit == "bytes_up" else sum(came)
            tap.ok(0 < total <= amount, f"together: {way}: {limit}: sixteen connections pass no limit", total)
            p.stop()
    p = proxy("connections 4")
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda _: box.connect_through(p, "one.test", PORT), range(16)))
    open_ones = [s for s, status in made if " 200 " in status]
    denied = [box.read_all(s) for s, status in made if " 403 " in status]
    tap.ok(len(open_ones) == 4 and len(denied) == 12 and all(b"network.connections 4" in x for x in denied),
           "together: of sixteen, four connections are let through", [status for _, status in made])
    others = [refused(p, way) for way in ("socks", "redirect", "local")]
    tap.ok(others == [True] * 3, "together: on any way out the fifth is refused", others)
    tap.ok(ask(open_ones[0], 100, 100) is True, "together: those that stand still work")
    for s in open_ones:
        s.close()
    until = time.monotonic() + 20
    while True:
        s, status = box.connect_through(p, "one.test", PORT)
        if " 200 " in status or time.monotonic() > until:
            break
        s.close()
        time.sleep(0.05)
    tap.ok(ask(s, 100, 100) is True, "together: when others have ended there is room again", status)
    s.close()
    p.stop()


def cpu_of(p):
    with open(f"/proc/{p.process.pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_of(p):
    with open(f"/proc/{p.process.pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def chosen():
    """A name that a pattern lets the sandbox choose goes to a name server: it is sent, too."""
    p = box.Proxy(("allow", f"*.wild.test:{PORT}"), ("allow", f"one.test:{PORT}"),
                  ("limit", f"bytes_up {2 * len('a.wild.test')}"), redirect_ports=(PORT,))
    got = []
    for name in ("one.test", "a.wild.test", "b.wild.test", "a.wild.test"):
        try:
            s = socket.create_connection((box.resolve(p, name)[1][0], PORT), 10)
            s.settimeout(10)
            s.shutdown(socket.SHUT_WR)
            got.append(len(s.recv(1)) == 0)
            s.close()
        except OSError:
            got.append(False)
    event = p.wait(lambda e: e["kind"] == "deny" and e["reason"] == "limit")
    tap.ok(got == [True, True, True, False] and event, "chosen: names count where a pattern allows them", got, event)
    p.stop()


def rate():
    p = proxy("rate 256KiB")
    s = by_connect(p)
    begin, cpu, memory = time.monotonic(), cpu_of(p), rss_of(p)
    good = ask(s, 128 << 10, 384 << 10)
    took, used = time.monotonic() - begin, cpu_of(p) - cpu
    s.close()
    tap.ok(good is True and took > 1.6, "rate: 512 KiB at 256 KiB a second take two seconds, and all of them come",
           good is True, took)
    tap.ok(used < took / 2 and rss_of(p) - memory < 4 << 20, "rate: it waits, and keeps nothing meanwhile", used, took,
           rss_of(p) - memory)
    begin = time.monotonic()

    def one(i):
        s = WAYS[("connect", "socks", "redirect", "local")[i % 4]][0](p)
        got = ask(s, 16 << 10, 16 << 10)
        s.close()
        return got, time.monotonic() - begin
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        done = list(pool.map(one, range(16)))
    tap.ok(all(x[0] is True for x in done) and max(x[1] for x in done) > 1.5,
           "rate: sixteen connections on all ways share it, none starves", done)
    p.stop()


def killed():
    """What is spent is nobody's to forget: another proxy of the same session goes on from there."""
    spent = os.memfd_create("spent")
    os.ftruncate(spent, 16)
    p = proxy("bytes_up 150000", spent=spent)
    s = by_redirect(p)
    good = ask(s, SIZE, 10)
    os.kill(p.process.pid, signal.SIGKILL)
    s.close()
    p.stop()
    tap.ok(good is True, "killed: control: the first part goes")
    p = proxy("bytes_up 150000", spent=spent)
    s = by_redirect(p)
    got = ask(s, SIZE, 10)
    s.close()
    tap.ok(got is not True, "killed: the next proxy knows what was spent", got)
    p.stop()
    bad = []
    for size in (0, 8, 15, 17, 24):
        wrong = os.memfd_create("spent")
        os.ftruncate(wrong, size)
        try:
            proxy("bytes_up 1", spent=wrong).stop()
            bad.append(size)
        except RuntimeError:
            pass
        os.close(wrong)
    tap.ok(not bad, "killed: with a file of another size it does not start", bad)
    os.close(spent)


def tls_server(certs):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certs.pair("one"))

    def serve(server, s):
        with context.wrap_socket(s, server_side=True) as t:
            head, body = box.read_head(t)
            n = next((int(x.split(b":")[1]) for x in head.split(b"\r\n")
                      if x.lower().startswith(b"content-length:")), 0)
            while len(body) < n:
                body += t.recv(65536)
            give = int(head.split(b" ")[1].split(b"/")[-1] or b"0") if b"/give/" in head else 0
            server.saw(len(body))
            t.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % give + PAYLOAD[:give])
            t.unwrap()
    return box.Server(serve, port=TLS)


def main():
    certs = pki.Pki(TOP)
    servers = {"one": box.Server(carry, port=PORT), "local": box.Server(carry, address="127.0.0.1", port=LOCAL),
               "web": box.Server(web, port=PORT + 1), "tls": tls_server(certs)}
    for name, function, *args in (("each", each_limit, servers), ("absolute", absolute, servers),
                                  ("inspected", inspected, certs, servers), ("together", together, servers),
                                  ("chosen", chosen), ("rate", rate), ("killed", killed)):
        tap.attempt(name, function, *args)
    return tap.done()


TOP = os.environ.get("LIMITS_TOP")
if not TOP:
    TOP = os.environ["LIMITS_TOP"] = tempfile.mkdtemp(prefix="sandglass-limits.")
    pki.make(TOP)
if os.environ.get("PROXYBOX") != "1":
    try:
        box.enter(f"{TOP}/store.pem")
    finally:
        shutil.rmtree(TOP, ignore_errors=True)
sys.exit(main())
