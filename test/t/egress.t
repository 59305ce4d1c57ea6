#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a command can reach: the rules, on the transparent path with every proxy variable removed,
and by each of the proxies.

All of it in a network of the test's own (lib/world.py), in which every address leads to this
program: so a connection that leaves the sandbox is seen wherever it goes, and each refusal has a
control that reaches the same place.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
import world as worlds  # noqa: E402
from place import SANDGLASS, Place, beside, identities_once, wait_for  # noqa: E402
from world import ALLOWED, ALLOWED6, METADATA, OTHER  # noqa: E402

NO_VARIABLES = "unset HTTP_PROXY http_proxy HTTPS_PROXY https_proxy NO_PROXY no_proxy; "
CURL = "curl -sS -m 10 "

# Connects and says where it got; nothing else, no name services but libc's.
CONNECT = r"""
import socket, sys
for target in sys.argv[1:]:
    host, port = target.rsplit(":", 1)
    try:
        s = socket.create_connection((host.strip("[]"), int(port)), timeout=10)
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        got = b""
        while True:
            more = s.recv(4096)
            if not more:
                break
            got += more
        body = got.split(b"\r\n\r\n", 1)[-1].decode().strip()
        print("got", target, body or "nothing", flush=True)
    except OSError as e:
        print("failed", target, type(e).__name__, e.errno, flush=True)
"""


class Box:
    """One identity, its place, and how it runs commands with rules."""

    def __init__(self, who, world):
        self.who, self.world, self.place = who, world, Place(who)
        self.place.write(f"{self.place.src}/connect.py", CONNECT, 0o644)

    def run(self, options, script, bare=False, **more):
        """(result object or None, Result). Without variables unless told."""
        self.world.forget()
        script = script if bare else NO_VARIABLES + script
        done = self.place.run([SANDGLASS, "run", "--json", *options, "-c", script], **more)
        try:
            return json.loads(done.out), done
        except ValueError:
            return None, done

    def connect(self, options, *targets, **more):
        result, done = self.run(options, "python3 connect.py " + " ".join(targets), **more)
        lines = (result or {"stdout": {"text": ""}})["stdout"]["text"].splitlines()
        return {line.split(" ")[1]: line for line in lines if line.count(" ") >= 2}, result, done

    def row(self, good, name, *why):
        return tap.ok(good, f"{name} ({self.who.name})", *why)


def allow(*hosts):
    return [word for host in hosts for word in ("--allow-host", host)]


def denied(result, target, op=None):
    """The denial of that target."""
    for row in (result or {}).get("denials", []):
        if row["target"] == target and (op is None or row["op"] == op):
            return row
    return None


def closed(box):
    bare = box.place.run(["python3", "connect.py", f"{ALLOWED}:443"])
    box.row(bare.out.startswith(f"got {ALLOWED}:443 reached"), "control: bare, it is reached", bare)
    got, result, done = box.connect([], "allowed.test:443", f"{ALLOWED}:443", f"[{ALLOWED6}]:443",
                                    f"{METADATA}:80", "127.0.0.1:8080")
    box.row(len(got) == 5 and all(line.startswith("failed") for line in got.values()) and
            not worlds.reached(box.world) and not box.world.queries,
            "without a rule nothing is reached, nor asked for", got, done, box.world.seen)
    box.row(result and "egress" not in result["sandbox"]["enforced"] and
            result["denials"] == [] and result["usage"]["egress_bytes"] == 0,
            "and there is no proxy", done)


def transparent(box):
    got, result, done = box.connect(allow("allowed.test"), "allowed.test:443")
    seen = worlds.reached(box.world, ALLOWED, 443)
    box.row(got.get("allowed.test:443", "").endswith(f"reached {ALLOWED} 443") and len(seen) == 1,
            "an allowed host is reached by its name, without a proxy variable", got, done)
    box.row(result and result["ok"] and result["denials"] == [] and
            result["usage"]["egress_bytes"] >= 90 and "egress" in result["sandbox"]["enforced"]
            and "network-redirect" not in result["sandbox"]["not_enforced"],
            "the result counts its bytes and names the control", done)
    result, done = box.run(allow("allowed.test:80"),
                           "busybox wget -q -O - http://allowed.test/; echo status $?")
    box.row(result and f"reached {ALLOWED} 80\n" in result["stdout"]["text"] and
            "status 0" in result["stdout"]["text"], "a static program reaches it", done)
    got, _, done = box.connect(allow("allowed.test:22", "allowed.test:5432"), "allowed.test:22",
                               "allowed.test:5432")
    box.row(all(line.endswith(f"reached {ALLOWED} {line.split(':')[1].split(' ')[0]}")
                for line in got.values()) and len(got) == 2, "any port that a rule names", got, done)
    if worlds.has_ipv6():
        result, done = box.run(allow("six.test:80"), CURL + "-6 http://six.test/")
        box.row(result and result["stdout"]["text"] == f"reached {ALLOWED6} 80\n",
                "by IPv6, inside and outside", done)
    got, _, done = box.connect(allow("*:*"), "allowed.test:443", "other.test:22", "deep.sub.test:81")
    box.row(len([line for line in got.values() if "reached" in line]) == 3,
            "a rule for every name and port", got, done)


def refused(box):
    rules = allow("allowed.test") + ["--deny-host", "bad.test"]
    got, result, done = box.connect(rules, "allowed.test:443", "allowed.test:80", "other.test:443",
                                    "sub.allowed.test:443", f"{ALLOWED}:443", f"{OTHER}:443",
                                    f"{METADATA}:80", "198.18.77.77:443",
                                    "[fd53:616e:6467::c612:4d4d]:443", "127.0.0.53:15001")
    good = got.get("allowed.test:443", "").endswith(f"reached {ALLOWED} 443")
    box.row(good, "control: the allowed one is reached in the same call", got, done)
    box.row(sum("reached" in line for line in got.values()) == 1 and
            {row[1:3] for row in worlds.reached(box.world)} == {(ALLOWED, 443)},
            "another port, another host, a host below it, bare addresses, metadata, addresses that "
            "stand for nothing: not reached", got, box.world.seen)
    box.row(denied(result, "allowed.test:80") and denied(result, "other.test", "dns") and
            denied(result, "sub.allowed.test", "dns"),
            "each denied name is in the result", json.dumps((result or {}).get("denials")))
    row = denied(result, "allowed.test:80") or {}
    box.row(row.get("op") == "connect" and row.get("hint") == "--allow-host allowed.test:80" and
            row.get("rule", "").startswith("network.") and row.get("kind") == "terminal" and
            row.get("count") in (1, 2),  # a client that the reset reaches early tries its other address
            "with rule, hint and count", row)
    box.row(not any(name in ("other.test", "sub.allowed.test") for name, _ in box.world.queries),
            "a denied name is asked of nobody", box.world.queries)


def denials(box):
    result, done = box.run(allow("**.test", "**.test:80") + ["--deny-host", "bad.test"],
                           CURL + "http://bad.test/; " + CURL + "http://allowed.test/")
    row = denied(result, "bad.test") or {}
    box.row(result and result["stdout"]["text"] == f"reached {ALLOWED} 80\n" and
            row.get("rule") == "network.deny[0] bad.test",
            "deny beats allow, and is named", done, result and result["denials"])
    box.row(result and result["error"] is None and result["ok"],
            "a call that succeeds is no error, whatever was denied", result and result["error"])
    result, done = box.run(allow("allowed.test"), CURL + "https://other.test/")
    error = (result or {}).get("error") or {}
    box.row(error.get("code") == "EGRESS_DENIED" and error.get("kind") == "terminal" and
            "other.test" in error.get("message", "") and
            error.get("hint") == "--allow-host other.test" and
            result["exit"]["status"] == result["exit"]["code"] == 6,
            "a call that fails is EGRESS_DENIED, with the command's own status", done)
    done = box.place.run([SANDGLASS, "run", *allow("allowed.test"), "curl", "-sS", "--noproxy", "*",
                          "https://other.test/"])
    box.row("sandglass: denied: dns other.test (network.default); hint: --allow-host other.test\n"
            in done.err and "sandglass: EGRESS_DENIED: " in done.err.splitlines()[-1],
            "a person reads it on stderr", done)
    done = box.place.run([SANDGLASS, "run", "--quiet", *allow("allowed.test"), "curl", "-s",
                          "--noproxy", "*", "https://other.test/"])
    box.row(done.err == "" and done.status == 6, "not with --quiet", done)
    result, done = box.run(allow("allowed.test"),
                           f"for i in $(seq 300); do echo host$i.test:443; done | "
                           f"xargs python3 connect.py | tail -1", timeout=120)
    rows = (result or {}).get("denials", [])
    box.row(len(rows) == 129 and rows[-1]["target"] is None and rows[-1]["count"] >= 170,
            "300 names: 128 are told, the others counted", len(rows), rows[-2:], done.err)
    result, done = box.run(allow("allowed.test"), "for i in $(seq 300); do getent hosts host$i.test; done; "
                           f"curl -s -p -m 5 -x http://127.0.0.53:3128 http://evil.test/; true", timeout=120)
    rows = (result or {}).get("denials", [])
    box.row(any(row["target"] == "evil.test:80" and row["op"] == "connect" for row in rows),
            "300 names: a connection after them is told", rows[-2:], done.err)


def names(box):
    """Spellings that some decoder somewhere would take for the allowed host or an address."""
    spellings = ["0x08080808", "134744072", "010.010.010.010", "8.8.2056", "[::ffff:8.8.8.8]",
                 "allowed.test.", "ALLOWED.TEST", "allowed.test%00.other.test", "allowed.test@other",
                 "0", "0.0.0.0", "127.1", "2130706433", "[::ffff:169.254.169.254]",
                 "[64:ff9b::a9fe:a9fe]", "[::1%lo]"]
    got, _, done = box.connect(allow("allowed.test"), *[name + ":443" for name in spellings])
    reached = sorted(target for target, line in got.items() if "reached" in line)
    box.row(reached == ["ALLOWED.TEST:443", "allowed.test.:443"] and
            {row[1] for row in worlds.reached(box.world)} == {ALLOWED},
            "odd spellings: only those of the same name", reached, got, done)
    box.world.names["rebind.test"] = iter_of(["9.9.9.9"], ["10.0.0.1"], ["127.0.0.1"], [METADATA])
    got, result, done = box.connect(allow("rebind.test"), *["rebind.test:443"] * 8)
    reached = {row[1] for row in worlds.reached(box.world)}
    box.row(reached <= {"9.9.9.9"}, "a name that turns to private addresses", reached, got)
    for address in ("10.0.0.1", "127.0.0.1", METADATA, "192.168.1.1", "100.64.0.1", "0.0.0.0",
                    "224.0.0.1", "192.0.2.1", "198.18.0.1", "::1", "fd00::1", "fe80::1",
                    "::ffff:10.0.0.1"):
        box.world.names["private.test"] = [address]
        got, result, done = box.connect(allow("private.test"), "private.test:443")
        line = got.get("private.test:443", "")
        box.row("reached" not in line and not worlds.reached(box.world),
                f"a name of {address}: not reached", got, done, box.world.seen)
    box.row(denied(result, "private.test:443") is not None, "and denied for its address",
            result and result["denials"])


def iter_of(*answers):
    count = iter(range(10 ** 9))
    return lambda: answers[next(count) // 2 % len(answers)]


def addresses(box):
    rules = allow("10.1.2.0/24:5432", "8.8.8.8:80", "[2606:4700::]/32:443")
    got, result, done = box.connect(rules, "10.1.2.7:5432", "10.1.3.7:5432", "10.1.2.7:443",
                                    "8.8.8.8:80", "9.9.9.9:80", "[2606:4700::1111]:443",
                                    "[2606:4701::1]:443")
    reached = sorted(target for target, line in got.items() if "reached" in line)
    want = ["10.1.2.7:5432", "8.8.8.8:80"] + (["[2606:4700::1111]:443"] if worlds.has_ipv6() else [])
    box.row(reached == want and len(worlds.reached(box.world)) == len(want),
            "addresses that rules name, and no other", reached, got, done)
    box.row(denied(result, "10.1.2.7:443") is not None, "another port of one is denied",
            result and result["denials"])


def local(box):
    script = ("python3 connect.py 127.0.0.1:8080 localhost:8080 [::1]:8080 127.0.0.1:81; "
              "python3 -m http.server --bind 127.0.0.1 81 >/dev/null 2>&1 & sleep 0.6; "
              "python3 connect.py 127.0.0.1:81 | cut -c1-24; kill %1; env | grep -ic proxy")
    result, done = box.run(["--allow-local", "8080"], script, bare=True)
    text = (result or {"stdout": {"text": ""}})["stdout"]["text"]
    box.row("got 127.0.0.1:8080 reached 127.0.0.1 8080\n" in text and
            "got localhost:8080 reached 127.0.0.1 8080\n" in text and
            ("got [::1]:8080 reached 127.0.0.1 8080\n" in text or not worlds.has_ipv6()),
            "--allow-local: the host's port at the same port inside", done)
    box.row("failed 127.0.0.1:81 ConnectionRefusedError" in text and
            "got 127.0.0.1:81 <!DOCTYPE" in text.replace("\n", " ") or
            "got 127.0.0.1:81" in text, "other ports stay the sandbox's own", done)
    box.row(text.endswith("\n0\n"), "no proxy variable where no host is open", done)
    result, done = box.run([], "python3 connect.py 127.0.0.1:8080")
    box.row(result and "failed" in result["stdout"]["text"] and not worlds.reached(box.world),
            "control: without the option it is not reached", done)


def proxies(box):
    rules = allow("allowed.test", "allowed.test:80")
    proxy, socks = "http://127.0.0.53:3128", "127.0.0.53:1080"
    for name, script in (
            ("variables: plain HTTP goes by the proxy", CURL + "-v http://allowed.test/ 2>&1"),
            ("absolute form", CURL + f"-x {proxy} http://allowed.test/"),
            ("CONNECT", CURL + f"-p -x {proxy} http://allowed.test:443/"),
            ("SOCKS5 with names", CURL + f"--socks5-hostname {socks} http://allowed.test/"),
            ("SOCKS5 with addresses that were looked up", CURL + f"--socks5 {socks} http://allowed.test/"),
            ("wget", "wget -q -O - http://allowed.test/"),
            ("python's urllib", "python3 -c 'import urllib.request as u; "
                                "print(u.urlopen(\"http://allowed.test/\").read().decode())'")):
        result, done = box.run(rules, script, bare=True)
        box.row(result and f"reached {ALLOWED} " in result["stdout"]["text"] and
                len(worlds.reached(box.world)) == 1, name, done)
    for name, script, want in (
            ("absolute form", CURL + f"-w '%{{http_code}}' -x {proxy} http://other.test/", "403"),
            ("CONNECT", CURL + f"-w '%{{http_connect}}' -p -x {proxy} http://other.test:443/", "403"),
            ("CONNECT to another port", CURL + f"-w '%{{http_connect}}' -p -x {proxy} http://allowed.test:22/",
             "403"),
            ("absolute form, an address", CURL + f"-w '%{{http_code}}' -x {proxy} http://{ALLOWED}/", "403"),
            ("absolute form, metadata", CURL + f"-w '%{{http_code}}' -x {proxy} http://{METADATA}/", "403"),
            ("absolute form, the host's loopback", CURL + f"-w '%{{http_code}}' --noproxy '' -x {proxy} http://127.0.0.1:8080/", "403"),
            ("Host of another one", CURL + f"-w '%{{http_code}}' -x {proxy} -H 'Host: other.test' http://allowed.test/",
             "4"),
            ("SOCKS5", CURL + f"-w '%{{exitcode}}' --socks5-hostname {socks} http://other.test/", "97"),
            ("SOCKS5, an address", CURL + f"-w '%{{exitcode}}' --socks5 {socks} http://{OTHER}/", "97")):
        result, done = box.run(rules, script, bare=True)
        text = (result or {"stdout": {"text": ""}})["stdout"]["text"]
        box.row(result and want in text[-3:] and not worlds.reached(box.world) and
                result["denials"], f"refused: {name}", done, box.world.seen)
    result, done = box.run(rules, CURL + f"-x {proxy} http://other.test/", bare=True)
    body = (result or {"stdout": {"text": ""}})["stdout"]["text"]
    box.row("other.test" in body and "--allow-host other.test" in body,
            "the answer says what was denied and what helps", done)
    result, done = box.run([*rules, "--env", "HTTP_PROXY=x", "--env", "no_proxy"],
                           "env | grep -i proxy | sort", bare=True)
    lines = (result or {"stdout": {"text": ""}})["stdout"]["text"].splitlines()
    box.row("HTTP_PROXY=x" in lines and "https_proxy=http://127.0.0.53:3128" in lines and
            not any(line.upper().startswith("ALL_PROXY") for line in lines),
            "variables: --env wins; ALL_PROXY is not set", lines)


# What is not TCP, and what could change the network.
OTHERS = r"""
import errno, socket, struct, sys, time
def show(name, function):
    begin = time.monotonic()
    try:
        said = function()
    except OSError as e:
        said = errno.errorcode.get(e.errno, type(e).__name__)
    except Exception as e:
        said = type(e).__name__
    print(name, said, "slow" if time.monotonic() - begin > 2.5 else "", flush=True)
def udp(host, port, family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(3)
    s.connect((host, port))
    s.send(b"x")
    return s.recv(100)
def dns(kind, name=b"\7allowed\4test\0"):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(3)
    s.connect(("127.0.0.53", 53))
    s.send(b"\0\1\1\0\0\1\0\0\0\0\0\0" + name + struct.pack(">HH", kind, 1))
    got = s.recv(600)
    return "code%d answers%d" % (got[3] & 15, struct.unpack(">H", got[6:8])[0])
def route():
    s = socket.socket(16, socket.SOCK_RAW, 0)
    m = struct.pack("BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0) + struct.pack("HHI", 8, 4, 1)
    s.send(struct.pack("IHHII", 16 + len(m), 24, 0x405, 1, 0) + m)
    return errno.errorcode.get(-struct.unpack_from("i", s.recv(500), 16)[0], "done")
def bound(kind, *where):
    s = socket.socket(socket.AF_INET, kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind(where)
    if kind == socket.SOCK_STREAM:
        s.listen()
    return "bound"
show("udp-name", lambda: udp(socket.gethostbyname("allowed.test"), 443))
show("udp6", lambda: udp("fd53:616e:6467::c612:1", 443, socket.AF_INET6))
show("udp-out", lambda: udp("8.8.8.8", 53))
show("udp-metadata", lambda: udp("169.254.169.254", 80))
show("icmp-raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
def ping(to):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1)
    s.settimeout(2)
    s.sendto(b"\x08\0\0\0\0\0\0\1", (to, 0))
    return "echo" if s.recv(100)[:1] == b"\0" else "other"
show("icmp-ping", lambda: ping("8.8.8.8"))
show("icmp-own", lambda: ping("127.0.0.1"))
show("packet", lambda: socket.socket(17, socket.SOCK_RAW, 768))
show("netfilter", lambda: socket.socket(16, socket.SOCK_RAW, 12))
show("route", route)
show("take-dns", lambda: bound(socket.SOCK_DGRAM, "127.0.0.53", 53))
show("take-http", lambda: bound(socket.SOCK_STREAM, "127.0.0.53", 3128))
show("take-redirect", lambda: bound(socket.SOCK_STREAM, "127.0.0.53", 15001))
show("own-dns", lambda: bound(socket.SOCK_DGRAM, "127.0.0.1", 53))
show("own-http", lambda: bound(socket.SOCK_STREAM, "127.0.0.1", 3128))
show("dns-a", lambda: dns(1))
show("dns-txt", lambda: dns(16))
show("dns-mx", lambda: dns(15))
show("dns-any", lambda: dns(255))
show("dns-null", lambda: dns(10))
show("dns-tunnel", lambda: dns(1, b"\x3f" + b"a" * 63 + b"\7allowed\4test\0"))
"""


def others(box):
    box.place.write(f"{box.place.src}/others.py", OTHERS, 0o644)
    result, done = box.run(allow("allowed.test"), "python3 others.py", timeout=90)
    said = {line.split(" ")[0]: line.split(" ", 1)[1].strip()
            for line in (result or {"stdout": {"text": ""}})["stdout"]["text"].splitlines()}
    for name, good in (("udp-name", ["ECONNREFUSED"]), ("udp6", ["ECONNREFUSED", "EADDRNOTAVAIL", "ENETUNREACH"]),
                       ("udp-out", ["ENETUNREACH"]), ("udp-metadata", ["ENETUNREACH"]),
                       ("icmp-raw", ["EPERM"]), ("icmp-ping", ["ENETUNREACH"]), ("icmp-own", ["echo"]),
                       ("packet", ["EAFNOSUPPORT"]), ("netfilter", ["EAFNOSUPPORT"]),
                       ("route", ["EPERM"]), ("take-dns", ["EADDRINUSE"]),
                       ("take-http", ["EADDRINUSE"]), ("take-redirect", ["EADDRINUSE"]),
                       ("own-dns", ["bound"]), ("own-http", ["bound"]),
                       ("dns-a", ["code0 answers1"])):
        box.row(said.get(name) in good, f"{name}: {good[0]}, at once", said.get(name), done.err)
    for name in ("dns-txt", "dns-mx", "dns-any", "dns-null", "dns-tunnel"):
        box.row("answers0" in said.get(name, ""), f"{name}: no answer that carries anything",
                said.get(name))
    box.row(not worlds.reached(box.world) and not [q for q in box.world.queries if q[1] not in (1, 28)]
            and not [q for q in box.world.queries if "aaaa" in q[0]],
            "and nothing of it left", box.world.seen, box.world.queries)


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as handle:
            return [int(word) for word in handle.read().split()]
    except OSError:
        return []


def command_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as handle:
            return handle.read().strip()
    except OSError:
        return ""


def proxy_of(front):
    """The pid of a front's proxy; 0: none."""
    return next((pid for pid in children(front) if command_of(pid).startswith("sandglass-prox")), 0)


def front_of(process):
    """A front that was started through setpriv has its pid."""
    return process.pid


def killed(box):
    script = (NO_VARIABLES + "python3 connect.py allowed.test:443; touch ready; "
              "until [ -e go ]; do sleep 0.05; done; python3 connect.py allowed.test:443; "
              "sleep 0.3; echo end")
    for name in ("ready", "go"):
        if os.path.exists(f"{box.place.src}/{name}"):
            os.unlink(f"{box.place.src}/{name}")
    box.world.forget()
    process = box.place.start([SANDGLASS, "run", "--json", *allow("allowed.test"), "-c", script])
    ready = wait_for(lambda: os.path.exists(f"{box.place.src}/ready"), 30)
    before = box.world.forget()
    proxy = proxy_of(front_of(process))
    if proxy:
        os.kill(proxy, signal.SIGKILL)
        wait_for(lambda: not command_of(proxy) or proxy not in children(front_of(process)) or
                 state_of(proxy) in "ZX", 10)
    box.place.write(f"{box.place.src}/go", "")
    begin = time.monotonic()
    out, err = process.communicate(timeout=60)
    took = time.monotonic() - begin
    after = worlds.reached(box.world)
    try:
        result = json.loads(out)
    except ValueError:
        result = None
    box.row(ready and proxy and len(before) == 1, "control: before the proxy is killed it is reached",
            proxy, before, err)
    box.row(result and "failed allowed.test:443" in result["stdout"]["text"] and not after and
            not box.world.queries, "kill -9 of the proxy: nothing leaves any more", result, after)
    box.row(result and result["stdout"]["text"].endswith("end\n") and took < 20 and
            any(row["rule"] == "network.proxy" for row in result["denials"]),
            "the call goes on to its own end, and the result names it", result, took)
    got, _, done = box.connect(allow("allowed.test"), "allowed.test:443")
    box.row("reached" in got.get("allowed.test:443", ""), "the next call has a proxy again", done)


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as handle:
            return handle.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "X"


def gone(box):
    """Nothing is left of a call, however it ended."""
    for name, how in (("killed front", signal.SIGKILL), ("terminated front", signal.SIGTERM)):
        process = box.place.start([SANDGLASS, "run", *allow("allowed.test"), "sleep", "100"])
        wait_for(lambda p=process: proxy_of(front_of(p)), 20)
        proxy = proxy_of(front_of(process))
        process.send_signal(how)
        process.wait(20)
        box.row(proxy and wait_for(lambda p=proxy: state_of(p) in "ZX", 5),
                f"{name}: its proxy is gone", proxy)


def fails_closed(box):
    """A product without its proxy, in a copy of the installation."""
    top = f"{box.place.out}/bin"
    os.makedirs(top, exist_ok=True)
    for name in ("sandglass", "sandglass-core", "sandglass-main"):
        path = f"{top}/{name}"
        if not os.path.exists(path):
            box.place.install(name, path)
    os.chmod(top, 0o755)
    marker = f"{box.place.src}/ran"
    argv = [f"{top}/sandglass", "run", "--json", *allow("allowed.test"), "-c", "touch ran"]

    def attempt(name):
        if os.path.exists(marker):
            os.unlink(marker)
        done = box.place.run(argv, timeout=60)
        try:
            error = json.loads(done.out)["error"] or {}
        except ValueError:
            error = {}
        box.row(error.get("code") == "SANDBOX_UNAVAILABLE" and done.status == 125 and
                not os.path.exists(marker), f"{name}: SANDBOX_UNAVAILABLE, nothing runs", done)
    attempt("no proxy")
    for name, text in (("a proxy that ends at once", "#!/bin/sh\nexit 1\n"),
                       ("one that hangs up", "#!/bin/sh\nexec 4>&-\nsleep 1\n")):
        box.place.write(f"{top}/sandglass-proxy", text, 0o755)
        attempt(name)
    box.place.install("sandglass-proxy", f"{top}/sandglass-proxy")
    done = box.place.run(argv)
    box.row(done.status == 0 and os.path.exists(marker), "control: with the proxy it runs", done)
    done = box.place.run([SANDGLASS, "run", "--isolation", "landlock", *allow("allowed.test"),
                          "--mode", "read-only", "true"])
    box.row(done.status == 125 and "runs" not in done.err and "sandglass: " in done.err,
            "isolation landlock: refused", done)


def without_redirect(box):
    """A kernel without nftables: the proxies alone, and the result says so."""
    shim = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "shim.py"),
            "EPROTONOSUPPORT", "socket-netfilter", "--"]

    def attempt(script):
        box.world.forget()
        done = box.place.run([*shim, SANDGLASS, "run", "--json", *allow("allowed.test:80"), "-c", script])
        return json.loads(done.out) if done.out.startswith("{") else {"stdout": {"text": ""}}, done
    result, done = attempt(CURL + "http://allowed.test/; " + CURL + "http://other.test/")
    box.row("sandbox" in result and "network-redirect" in result["sandbox"]["not_enforced"] and
            f"reached {ALLOWED} 80\n" in result["stdout"]["text"] and denied(result, "other.test:80") and
            not worlds.reached(box.world, OTHER), "without nftables: the proxy variables lead to it, and no further",
            done)
    result, done = attempt(NO_VARIABLES + "python3 connect.py allowed.test:80 " + f"{ALLOWED}:80 {OTHER}:80")
    box.row(result["stdout"]["text"].count("failed") == 3 and not worlds.reached(box.world),
            "without nftables: nothing goes any other way", done)


def many(box):
    """Calls side by side have each their own."""
    results = [None] * 12
    def one(i):
        host = "allowed.test" if i % 2 else "other.test"
        done = box.place.run([SANDGLASS, "run", "--json", *allow(host), "-c", NO_VARIABLES +
                              "python3 connect.py allowed.test:443 other.test:443"], timeout=120)
        results[i] = (host, done)
    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    good = 0
    for host, done in results:
        try:
            text = json.loads(done.out)["stdout"]["text"]
        except ValueError:
            continue
        other = "other.test" if host == "allowed.test" else "allowed.test"
        good += f"got {host}:443 reached" in text and f"failed {other}:443" in text
    box.row(good == len(results), "12 calls at once, each with its own rules", good,
            *[str(done) for _, done in results][:2])


def audited(box):
    box.run(allow("allowed.test"), "python3 connect.py allowed.test:443 other.test:443")
    done = box.place.run([SANDGLASS, "audit", "query", "--json", "--event", "egress"])
    lines = json.loads(done.out)["events"]
    last = lines[-2:]
    box.row([(l["event"], l["decision"], l["data"]["target"], l["data"]["how"]) for l in last] ==
            [("egress.allow", "allow", "allowed.test:443", "redirect"),
             ("egress.deny", "deny", "other.test", "dns")] and
            last[0]["rule"] == "network.allow[0]" and last[1]["rule"] == "network.default",
            "the audit log has what was allowed and what was denied", last, done.err)
    done = box.place.run([SANDGLASS, "audit", "verify"])
    box.row(done.status == 0, "and verifies", done)


def terminal(box):
    """With a pty of the sandbox's own: both have to be ready before the command starts."""
    done = box.place.run(["python3", "-c", "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)",
                          SANDGLASS, "run", "--tty", *allow("allowed.test"), "python3", "connect.py",
                          "allowed.test:443"])
    box.row(f"reached {ALLOWED} 443" in done.out, "on a terminal", done)


def session(box):
    """A session has one proxy for all its calls."""
    place = box.place

    def verb(*argv, **more):
        return place.run([SANDGLASS, "session", *argv], timeout=90, **more)

    def execute(script, name):
        box.world.forget()
        done = verb("exec", "--json", name, "sh", "-c", NO_VARIABLES + script)
        try:
            return json.loads(done.out), done
        except ValueError:
            return None, done

    made = verb("new", *allow("allowed.test", "10.1.2.0/24:5432"), "--allow-local", "8080",
                "--deny-host", "bad.test")
    name = made.out.strip()
    script = "python3 connect.py allowed.test:443 10.1.2.7:5432 127.0.0.1:8080 other.test:443"
    result, done = execute(script, name)
    text = (result or {"stdout": {"text": ""}})["stdout"]["text"]
    box.row(made.status == 0 and text.count("reached") == 3 and "failed other.test" in text and
            denied(result, "other.test", "dns") and "egress" in result["sandbox"]["enforced"],
            "session: rules of `session new` hold for its calls", made, done)
    box.row(result and result["usage"]["egress_bytes"] > 0, "session: bytes of a call", done)
    proxies = proxies_of(name)
    results = [None] * 4

    def one(i):
        results[i] = execute(script, name)
    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    box.row(all(r and r["stdout"]["text"].count("reached") == 3 for r, _ in results),
            "session: calls side by side", results)
    box.row(len(proxies) == 1 and proxies_of(name) == proxies, "session: one proxy for all of them",
            proxies, proxies_of(name))
    if proxies:
        os.kill(proxies[0], signal.SIGKILL)
    wait_for(lambda: not proxies_of(name), 10)
    result, done = execute(script, name)
    text = (result or {"stdout": {"text": ""}})["stdout"]["text"]
    box.row(text.count("reached") == 3 and "failed other.test" in text and proxies_of(name) != proxies,
            "session: after kill -9 of the proxy the next call has a new one", done)
    box.world.forget()
    process = place.start([SANDGLASS, "session", "exec", name, "sh", "-c", NO_VARIABLES +
                           "echo ready; read go; " + script + "; exit 3"], stdin=subprocess.PIPE)
    ready = process.stdout.readline()
    for pid in proxies_of(name):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not proxies_of(name), 10)
    out, err = process.communicate(b"go\n", timeout=60)
    box.row(ready == b"ready\n" and b"reached" not in out and out.count(b"failed") == 4 and
            not worlds.reached(box.world) and b"sandglass-proxy ended while" in err and
            process.returncode == 3,
            "session: killed under a call, nothing leaves, and it is told", out, err)
    done = verb("reset", name)
    result, again = execute(script, name)
    box.row(done.status == 0 and result and result["stdout"]["text"].count("reached") == 3,
            "session: after a reset", done, again)
    proxies = proxies_of(name)
    verb("destroy", "--discard", name)
    box.row(proxies and wait_for(lambda: not any(state_of(pid) not in "ZX" for pid in proxies), 10),
            "session: destroyed, its proxy is gone", proxies)
    name = verb("new").out.strip()
    result, done = execute("python3 connect.py allowed.test:443", name)
    box.row(result and "failed" in result["stdout"]["text"] and not proxies_of(name) and
            not worlds.reached(box.world), "session: without rules it is closed", done)
    done = verb("exec", *allow("allowed.test"), name, "true")
    box.row(done.status == 125 and "UNSUPPORTED" in done.err,
            "session: rules of a single call are UNSUPPORTED", done)
    verb("destroy", "--discard", name)
    done = place.run([SANDGLASS, "run", "--review", *allow("allowed.test"), "-c", NO_VARIABLES +
                      "python3 connect.py allowed.test:443 other.test:443"], timeout=90)
    box.row(f"reached {ALLOWED} 443" in done.out and "failed other.test" in done.out,
            "run --review: the same rules", done)


def proxies_of(session):
    """Of the keeper of that session: it is the parent."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or not command_of(name).startswith("sandglass-prox") or \
                state_of(name) in "ZX":
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as handle:
                parent = handle.read().rsplit(")", 1)[1].split()[1]
        except OSError:
            continue
        if command_of(parent) == "sandglass-keep" and keeps(parent, session):
            found.append(int(name))
    return found


def keeps(pid, session):
    try:
        return session in os.readlink(f"/proc/{pid}/fd/3")
    except OSError:
        return False


PARTS = [closed, transparent, refused, denials, names, addresses, local, proxies, others, killed,
         gone, fails_closed, without_redirect, many, audited, terminal,
         session]


def main():
    world = worlds.begin()
    world.names.update({"allowed.test": [ALLOWED, ALLOWED6], "other.test": [OTHER],
                        "bad.test": [OTHER], "sub.allowed.test": [OTHER], "six.test": [ALLOWED6],
                        "deep.sub.test": [OTHER]})
    chosen = sys.argv[1:]
    for who in identities_once():
        box = Box(who, world)
        for part in PARTS:
            if not chosen or part.__name__ in chosen:
                tap.attempt(f"{part.__name__} ({who.name})", part, box)
        box.place.close()
    world.close()
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
