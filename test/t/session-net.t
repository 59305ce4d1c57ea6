#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rules about the network of a living session: `session net` opens and closes under calls that
run, connections that are not allowed any more are reset, others stay.

In a network of the test's own (lib/world.py) in which every address leads to this program.
"""

import json
import os
import select
import signal
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
import world as worlds  # noqa: E402
from place import SANDGLASS, alive, children_of, identities_once, wait_for  # noqa: E402
from session import Sessions, code  # noqa: E402
from world import ALLOWED, OTHER  # noqa: E402

# One call for a whole part: reads "host port" from a file, line after line, and says what came.
# "keep" opens a connection that stays; "look" says whether it still answers.
AGENT = r"""
import select, socket, sys, time
kept = {}
done = 0
out = open("said", "a", buffering=1)
while True:
    try:
        with open("asked") as handle:
            lines = handle.read().splitlines()
    except OSError:
        lines = []
    if len(lines) == done:
        time.sleep(0.02)
        continue
    word, host, port = lines[done].split(" ")
    done += 1
    if word == "end":
        break
    try:
        if word == "look":
            s = kept[host]
            s.sendall(b"x")
            got = s.recv(1)
            print("there" if got else "ended", file=out)
            continue
        if word == "open":
            print("something" if select.select([kept[host]], [], [], 0)[0] else "open", file=out)
            continue
        if word == "gone":
            print("ended" if not kept[host].recv(1) else "answered", file=out)
            continue
        s = socket.create_connection((host, int(port)), timeout=20)
        if word == "post":  # a request whose body does not come to its end
            s.sendall(b"POST /in HTTP/1.1\r\nHost: %s:%s\r\nContent-Length: 9\r\n\r\nhalf"
                      % (host.encode(), port.encode()))
            kept[host] = s
            print("posted", file=out)
            continue
        if word == "keep":
            s.sendall(b"x")
            print("kept" if s.recv(1) else "ended", file=out)
            kept[host] = s
            continue
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        got = b""
        while True:
            more = s.recv(4096)
            if not more:
                break
            got += more
        print(got.split(b"\r\n\r\n", 1)[-1].decode().strip() or "nothing", file=out)
    except OSError as e:
        print("failed", type(e).__name__, file=out)
"""
HOLD = 7001  # one at which it reads to the end, says one byte, and keeps the connection
ECHO = 7000  # a port at which this program sends back what it gets


class Agent:
    """A call that runs, and does what it is told."""

    def __init__(self, p, name, *options):
        self.p, self.name, self.n = p, name, 0
        self.dir = f"{p.src}"
        for old in ("asked", "said"):
            try:
                os.unlink(f"{self.dir}/{old}")
            except OSError:
                pass
        self.call = p.session("exec", "--detach", *options, name, "python3", "agent.py")

    def ask(self, word, host, port=0):
        """Its answer, or None."""
        with open(f"{self.dir}/asked", "a", encoding="ascii") as handle:
            handle.write(f"{word} {host} {port}\n")
        self.n += 1

        def answer():
            try:
                with open(f"{self.dir}/said", encoding="ascii") as handle:
                    lines = handle.read().splitlines()
            except OSError:
                return None
            return lines[self.n - 1] if len(lines) >= self.n else None
        return wait_for(answer, 30, 0.02)

    def end(self):
        """Its result."""
        with open(f"{self.dir}/asked", "a", encoding="ascii") as handle:
            handle.write("end - -\n")
        path = f"{self.p.dir(self.name)}/results/{self.call.out.strip()}.json"

        def read():
            try:
                with open(path, encoding="utf-8") as handle:
                    return json.load(handle)
            except (OSError, ValueError):
                return None
        return wait_for(read, 20, 0.05) or {}


class Box:
    def __init__(self, who, world):
        self.who, self.world, self.p = who, world, Sessions(who)
        self.p.write(f"{self.p.src}/agent.py", AGENT, 0o644)

    def row(self, good, name, *why):
        return tap.ok(good, f"{name} ({self.who.name})", *why)

    def net(self, name, *options):
        return self.p.session("net", *options, name)

    def session(self, *options):
        return self.p.new("--writes", "direct", *options)


def echo():
    """Sends back what it gets; at the world's every address."""
    server = socket.create_server(("0.0.0.0", ECHO), backlog=64)

    def serve(s):
        try:
            while True:
                got = s.recv(4096)
                if not got:
                    break
                s.sendall(got)
        except OSError:
            pass
        s.close()

    def accept():
        while True:
            threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()


def hold(world):
    server = socket.create_server(("0.0.0.0", HOLD), backlog=64)

    def serve(s):
        try:
            while (got := s.recv(65536)):
                if b"half" in got:
                    world.note("half", "", HOLD, "", got)
            s.sendall(b"x")
        except OSError:
            s.close()
            return
        poll = select.poll()
        poll.register(s, select.POLLERR)
        if poll.poll(30000):
            world.note("reset", "", HOLD, "", b"")
        s.close()

    def accept():
        while True:
            threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()


def opened(box):
    """A session that began closed."""
    name = box.session()
    agent = Agent(box.p, name)
    box.world.forget()
    before = agent.ask("get", "allowed.test", 80)
    done = box.net(name, "--allow-host", "allowed.test:80")
    after = agent.ask("get", "allowed.test", 80)
    other = agent.ask("get", "other.test", 80)
    box.row((before or "").startswith("failed") and done.status == 0 and
            after == f"reached {ALLOWED} 80", "a closed session is opened under a call that runs",
            before, done, after)
    box.row((other or "").startswith("failed") and not worlds.reached(box.world, OTHER),
            "and for that host only", other)
    shown = box.p.show(name).get("network")
    box.row(shown == [{"list": "allow", "rule": "allowed.test:80", "origin": "session net"}],
            "session show has the rule", shown)
    text = box.net(name)
    box.row(text.status == 0 and "allow allowed.test:80  (session net)" in text.out,
            "session net without a rule lists them", text)
    fresh = box.p.exec(name, "python3 -c \"import socket; "
                       "socket.create_connection(('allowed.test', 80), timeout=20)\"")
    box.row(fresh.status == 0, "a call that begins later has it too", fresh)
    agent.end()
    box.p.session("destroy", "--discard", name)


def closed(box):
    """What is taken away is reset, at once; nothing else is."""
    name = box.session("--allow-host", f"allowed.test:{ECHO}", "--allow-host",
                       f"other.test:{ECHO}", "--allow-host", "other.test:80")
    agent = Agent(box.p, name)
    kept = [agent.ask("keep", host, ECHO) for host in ("allowed.test", "other.test")]
    box.row(kept == ["kept", "kept"] and agent.ask("look", "allowed.test") == "there",
            "control: two connections stand", kept)
    done = box.net(name, "--deny-host", "other.test")
    looks = [agent.ask("look", host) for host in ("other.test", "allowed.test", "allowed.test")]
    box.row(done.status == 0 and (looks[0] or "").startswith("failed ConnectionReset") and
            looks[1:] == ["there", "there"], "a denied host's connection is reset, others stay",
            done, looks)
    box.world.forget()
    again = agent.ask("get", "other.test", 80)
    box.row((again or "").startswith("failed") and not worlds.reached(box.world, OTHER),
            "and it is not reached again, at any port", again)
    wide = box.net(name, "--allow-host", "other.test:80")
    still = agent.ask("get", "other.test", 80)
    box.row(wide.status == 0 and (still or "").startswith("failed"), "deny beats a later allow",
            wide, still)
    back = box.net(name, "--anew")
    open_again = agent.ask("get", "other.test", 80)
    box.row(back.status == 0 and open_again == f"reached {OTHER} 80",
            "--anew takes back what was added", back, open_again)
    result = agent.end()
    box.row(result.get("ok") is True, "the call has ended by itself", result)
    box.p.session("destroy", "--discard", name)


def told(box):
    """Denials of a call name the rule that was added while it ran."""
    name = box.session("--allow-host", "allowed.test:80", "--allow-host", "other.test:80")
    agent = Agent(box.p, name)
    first = agent.ask("get", "other.test", 80)
    done = box.net(name, "--deny-host", "other.test")
    then = agent.ask("get", "other.test", 80)
    result = agent.end()
    rows = [d for d in result.get("denials", []) if d["target"].startswith("other.test")]
    box.row(first == f"reached {OTHER} 80" and done.status == 0 and
            (then or "").startswith("failed") and rows and
            rows[0]["rule"] == "network.deny[0] other.test", "the denial names the new rule",
            first, then, result)
    box.p.session("destroy", "--discard", name)


def places(box):
    """Ports of the host's loopback and prefixes need sockets and routes in the living network."""
    name = box.session("--allow-host", "allowed.test:80")
    agent = Agent(box.p, name)
    before = [agent.ask("get", host, port) for host, port in
              (("127.0.0.1", 8080), ("9.9.9.9", 80), ("9.9.9.9", 443))]
    done = box.net(name, "--allow-local", "8080", "--allow-host", "9.9.9.0/24:80")
    after = [agent.ask("get", host, port) for host, port in
             (("127.0.0.1", 8080), ("9.9.9.9", 80), ("9.9.9.9", 443))]
    box.row(all((line or "").startswith("failed") for line in before) and done.status == 0 and
            after[:2] == ["reached 127.0.0.1 8080", f"reached {OTHER} 80"],
            "a new local port and a new prefix are reached by a call that runs", before, done,
            after)
    box.row((after[2] or "").startswith("failed"), "at that port only", after)
    done = box.net(name, "--deny-host", "localhost", "--deny-host", "9.9.9.0/24")
    gone = [agent.ask("get", host, port) for host, port in (("127.0.0.1", 8080), ("9.9.9.9", 80))]
    box.row(done.status == 0 and all((line or "").startswith("failed") for line in gone),
            "and closed again", done, gone)
    agent.end()
    # A server of the session has the port: nothing changes.
    box.net(name, "--anew")
    held = box.p.session("exec", "--detach", name, "python3", "-m", "http.server", "--bind",
                         "127.0.0.1", "5432")
    ready = wait_for(lambda: box.p.exec(
        name, "python3 -c \"import socket; socket.create_connection(('127.0.0.1', 5432))\""
    ).status == 0, 20, 0.2)
    before = box.p.show(name).get("network")
    done = box.net(name, "--allow-local", "5432", "--allow-host", "bad.test")
    box.row(ready and done.status == 2 and code(done) == "SANDBOX_UNAVAILABLE" and
            "in use" in done.err and box.p.show(name).get("network") == before,
            "a port that a server of the session holds is refused whole", held, done)
    fine = box.p.exec(name, "python3 -c \"import socket; "
                      "socket.create_connection(('allowed.test', 80), timeout=20)\"")
    box.row(fine.status == 0, "and what was open is open", fine)
    box.p.session("destroy", "--discard", name)


def wrong(box):
    name = box.session("--allow-host", "allowed.test:80")
    bad = [box.net(name, *o) for o in (("--allow-host", "exa mple"), ("--deny-host", ""),
                                       ("--allow-local", "70000"), ("--allow-local", "x"))]
    box.row(all((r.status, code(r)) == (2, "CONFIG_INVALID") for r in bad) and
            len(box.p.show(name).get("network")) == 1, "what is no rule is refused, nothing changes",
            *bad)
    many = [word for i in range(64) for word in ("--allow-local", str(20000 + i))]
    full = box.net(name, *many)
    over = box.net(name, "--allow-local", "30000")
    box.row(full.status == 0 and (over.status, code(over)) == (2, "CONFIG_INVALID") and
            len(box.p.show(name).get("network")) == 65, "64 local ports, not 65", full, over)
    inspect = box.net(name, "--allow-host", "a.test GET /x")
    box.row((inspect.status, code(inspect)) == (2, "CONFIG_INVALID") and
            "network.inspect" in inspect.err and len(box.p.show(name).get("network")) == 65,
            "a rule by method and path needs a session that inspects, which is said", inspect)
    for option, value in (("--allow-host", "a.test"), ("--deny-host", "a.test"),
                          ("--allow-local", "80")):
        one = box.p.session("exec", option, value, name, "true")
        box.row((one.status, code(one)) == (125, "UNSUPPORTED") and "session net" in one.err,
                f"exec {option} says how it is done", one)
    none = box.net("no-such-session", "--deny-host", "a.test")
    box.row((none.status, code(none)) == (2, "NOT_FOUND"), "no such session", none)
    box.p.session("destroy", "--discard", name)


def by_request(box):
    """Rules by method and path under calls that run, in a session that inspects."""
    name = box.session("--allow-host", f"allowed.test:{ECHO}", "--allow-host", f"other.test:{ECHO}",
                       "--allow-host", "allowed.test:80 GET /", "--allow-host",
                       f"allowed.test:{HOLD} POST /in", "--allow-host", f"other.test:{HOLD} POST /in")
    agent = Agent(box.p, name)
    box.world.forget()
    kept = [agent.ask("keep", host, ECHO) for host in ("allowed.test", "other.test")]
    box.row(kept == ["kept", "kept"], "control: two tunnels stand", kept)
    done = box.net(name, "--allow-host", f"other.test:{ECHO} GET /x")
    looks = [agent.ask("look", host) for host in ("other.test", "allowed.test")]
    box.row(done.status == 0 and (looks[0] or "").startswith("failed ConnectionReset") and
            looks[1] == "there", "a tunnel that is to be inspected by now is reset, others stay",
            done, looks)
    first = agent.ask("get", "allowed.test", 80)
    closed = box.net(name, "--deny-host", "allowed.test:80 GET /")
    then = agent.ask("get", "allowed.test", 80)
    box.row(first == f"reached {ALLOWED} 80" and closed.status == 0 and
            "reached" not in (then or "reached"), "the next request is judged by the new rules",
            first, closed, then)
    posted = [agent.ask("post", host, HOLD) for host in ("other.test", "allowed.test")]
    half = wait_for(lambda: len([r for r in box.world.seen if r[0] == "half"]) == 2, 20, 0.05)
    before = [agent.ask("open", host) for host in ("other.test", "allowed.test")]
    done = box.net(name, "--deny-host", f"other.test:{HOLD} POST /in")
    after = [agent.ask("gone", "other.test"), agent.ask("open", "allowed.test")]
    box.row(posted == ["posted", "posted"] and half and before == ["open", "open"] and
            done.status == 0 and (after[0] or "").startswith("failed ConnectionReset") and
            after[1] == "open", "a request under way that may not be any more is reset, others go on",
            posted, before, done, after)
    result = agent.end()
    rows = [(d["target"], d["rule"]) for d in result.get("denials", [])]
    box.row((f"other.test:{ECHO}", "network.unseen") in rows and
            any(t == f"other.test:{HOLD}" and "network.deny" in r for t, r in rows),
            "the call's denials say why", rows)
    box.p.session("destroy", "--discard", name)


def lasting(box):
    """Rules that were added outlive keeper and proxy, and a reset."""
    name = box.session("--allow-host", "other.test:80")
    box.net(name, "--allow-host", "allowed.test:80", "--deny-host", "other.test")
    get = ("python3 -c \"import socket, sys\nfor h in sys.argv[1:]:\n try:\n"
           "  socket.create_connection((h, 80), timeout=20); print(h)\n"
           " except OSError: print('no')\" allowed.test other.test")
    first = box.p.exec(name, get)
    box.row(first.out == "allowed.test\nno\n", "rules that were added before the first call",
            first)
    for pid in box.p.named("sandglass-keep"):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not box.p.named("sandglass-keep"), 10, 0.05)
    second = box.p.exec(name, get)
    box.row(second.out == "allowed.test\nno\n", "after kill -9 of the keeper", second)
    box.p.session("reset", name)
    third = box.p.exec(name, get)
    box.row(third.out == "allowed.test\nno\n", "after a reset", third)
    box.p.session("destroy", "--discard", name)


def kept_bytes(box):
    """A connection that the server does not end: its bytes are the call's, and it ends with it."""
    name = box.session("--allow-host", f"allowed.test:{HOLD}")
    box.world.forget()
    done = box.p.exec(name, "python3 -c \"import socket; "
                      f"s = socket.create_connection(('allowed.test', {HOLD}), timeout=20); "
                      "s.sendall(bytes(1000000)); s.shutdown(1); s.recv(1)\"", "--json")
    result = json.loads(done.out or "{}")
    usage = result.get("usage", {})
    box.row(result.get("ok") is True and usage.get("egress_bytes") == 1000001,
            "bytes of a connection that is still open are counted when the call ends", done)
    box.row(wait_for(lambda: [row for row in box.world.seen if row[0] == "reset"], 20, 0.05),
            "and it ends with the last call of the session", box.world.seen)
    again = box.p.exec(name, "true", "--json")
    usage = json.loads(again.out or "{}").get("usage", {})
    box.row(usage.get("egress_bytes") == 0, "nothing of it is the next call's", again)
    box.p.session("destroy", "--discard", name)


FLOOD = r"""
import os, socket, threading, time
over = False
def flood():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setblocking(False)
    n = 0
    while not over:
        n += 1
        label = b"n%x" % (n % 5000)
        if n % 300 == 0:
            time.sleep(0.01)
        try:
            s.sendto(b"ab\1\0\0\1\0\0\0\0\0\0" + bytes([len(label)]) + label + b"\4test\0\0\1\0\1",
                     ("127.0.0.53", 53))
        except OSError:
            time.sleep(0)
threading.Thread(target=flood, daemon=True).start()
time.sleep(0.5)
def get(host, port):
    for _ in range(20):
        try:
            s = socket.create_connection((host, port), timeout=20)
            break
        except socket.gaierror:
            time.sleep(0.05)
        except OSError:  # a reset that came early
            return "reset"
    else:
        return "no name"
    try:
        s.sendall(b"x\r\n\r\n")
        return "got" if s.recv(100) else "ended"
    except OSError:
        return "reset"
print(*[get("allowed.test", p) for p in (22, 80, 81, 443, 5432, 8080, 9418, 15001, 3128, 1080)])
print(*[get("low.test", p) for p in range(9001, 9011)])
over = True
"""


def flooded(box):
    """Ever other names that are asked for do not hide what was connected to."""
    name = box.session("--allow-host", "allowed.test:*", "--allow-host", "low.test:80")
    box.p.write(f"{box.p.src}/flood.py", FLOOD, 0o644)
    done = box.p.exec(name, "python3 flood.py", "--json", timeout=90)
    result = json.loads(done.out or "{}")
    lines = result.get("stdout", {}).get("text", "").splitlines()
    denials = result.get("denials", [])
    told = {d["target"] for d in denials if d["op"] == "connect"}
    names = sum(d["count"] for d in denials if d["op"] == "dns")
    box.row(len(lines) == 2 and lines[0].split() == ["got"] * 10 and "got" not in lines[1],
            "control: ten are reached, ten are not", lines)
    box.row({f"low.test:{p}" for p in range(9001, 9011)} <= told and names > 256,
            "all ten denied connections are told, in spite of a flood of names", sorted(map(str, told)),
            names)
    box.row(any(d["rule"] == "network" for d in denials), "what is not told one by one is counted",
            denials[-2:])
    log = box.p.run([SANDGLASS, "audit", "query", "--json", "--session", name])
    events = json.loads(log.out)["events"]
    allowed = [v for v in events if v["event"] == "egress.allow"]
    refused = [v for v in events if v["event"] == "egress.deny" and
               v["data"]["how"] == "redirect"]
    box.row(len(allowed) == 10 and len(refused) == 10, "and all twenty are in the log",
            allowed, refused, log.err)
    box.p.session("destroy", "--discard", name)


SEND = r"""
import socket, sys
s = socket.create_connection(("allowed.test", int(sys.argv[1])), timeout=20)
s.sendall(bytes(200000))
s.shutdown(1)
s.recv(1)
print("went")
"""


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as handle:
            return handle.read().strip()
    except OSError:
        return None


def limited(box):
    """What is spent is spent for all calls of a session, whatever becomes of its proxy."""
    policy = box.p.write(f"{box.p.top}/limits.yaml", "version: 1\nnetwork: {bytes_up: 300000, "
                         "connections: 9}\n", 0o644)
    box.p.write(f"{box.p.src}/send.py", SEND, 0o644)
    options = ("--policy", policy, "--allow-host", f"allowed.test:{HOLD}")
    script = f"python3 send.py {HOLD}"

    def read(done):
        result = json.loads(done.out or "{}")
        return (result.get("stdout", {}).get("text"), (result.get("error") or {}).get("code"),
                [d["rule"] for d in result.get("denials", [])])
    said = [read(box.p.run([SANDGLASS, "run", "--json", *options, "-c", script])) for _ in range(2)]
    box.row(said == [("went\n", None, [])] * 2, "run: each has the limit for itself", said)
    twice = box.p.run([SANDGLASS, "run", "--json", *options, "-c", f"{script} && {script}"])
    said = read(twice)
    box.row(said[0] == "went\n" and said[1] == "EGRESS_DENIED" and
            said[2] == ["network.bytes_up 300000"], "run: twice is too much, and the result says so",
            twice)
    hint = json.loads(twice.out)["denials"][0]["hint"]
    box.row("network.bytes_up is set by" in hint and "limits.yaml:2" in hint,
            "with what would help, and where", hint)
    name = box.session(*options)
    shown = [row["rule"] for row in box.p.show(name)["network"] if row["list"] == "limit"]
    box.row(shown == ["bytes_up 300000", "connections 9"], "session show has the limits", shown)
    first, second = [box.p.exec(name, script, "--json") for _ in range(2)]
    box.row(read(first) == ("went\n", None, []) and read(second)[1:] ==
            ("EGRESS_DENIED", ["network.bytes_up 300000"]), "the second call of a session has what is left",
            first, second)
    for what in ("sandglass-proxy", "sandglass-keep"):
        keepers = set(box.p.named("sandglass-keep"))
        pids = sorted(keepers) if what.endswith("keep") else \
            [pid for keeper in keepers for pid in children_of().get(keeper, ()) if comm(pid) == what]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda pids=pids: not any(alive(pid) for pid in pids), 10, 0.05)
        third = box.p.exec(name, script, "--json")
        box.row(pids and "network.bytes_up 300000" in read(third)[2] and read(third)[0] == "",
                f"with its {what} killed the session has no more than before", pids, third)
    more = box.net(name, "--allow-host", "other.test:80")
    fourth = box.p.exec(name, script, "--json")
    box.row(more.status == 0 and "network.bytes_up 300000" in read(fourth)[2] and
            read(fourth)[0] == "", "nor with other rules", more, fourth)
    box.p.session("destroy", "--discard", name)


PARTS = [limited, opened, closed, told, places, wrong, by_request, lasting, kept_bytes, flooded]


def main():
    world = worlds.begin()
    world.names.update({"allowed.test": [ALLOWED], "other.test": [OTHER], "bad.test": [OTHER],
                        "low.test": [OTHER]})
    echo()
    hold(world)
    chosen = sys.argv[1:]
    for who in identities_once():
        box = Box(who, world)
        for part in PARTS:
            if not chosen or part.__name__ in chosen:
                tap.attempt(f"{part.__name__} ({who.name})", part, box)
        box.p.close()
    world.close()
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
