#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions: names and ids, calls that share files, the lease, what is held for review.

Rows that are named after a row of ACCEPTANCE.md show it. What a killed process
leaves, and the end of many, are in session-end.t; git is in session-git.t, what
a command does on purpose in session-hostile.t.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import SANDGLASS, identities_once, wait_for  # noqa: E402
from session import UUID, Sessions, code, differences, has_export, tree  # noqa: E402

FIRST, SECOND = "abcd1234-0000-4000-8000-000000000001", "abcd1234-0000-4000-8000-000000000002"


def names(who):
    """Ids: given, made, from the environment; never twice. Names, beginnings, @last."""
    p = Sessions(who)
    try:
        a = p.new("--id", FIRST, "--name", "one")
        b = p.new(env={"SESSION_ID": SECOND})
        c = p.new(env={"SESSION_ID": "no-id"})
        tap.ok((a, b) == (FIRST, SECOND) and UUID.fullmatch(c) and c not in (a, b),
               f"S1: an id is given, taken from SESSION_ID or made, {who.name}", a, b, c)
        found = [p.show(n).get("id") for n in (a, "one", c[:4], c[:9], "@last")]
        tap.ok(found == [a, a, c, c, c],
               f"found by id, name, beginning, @last, {who.name}", found)
        wrong = [(n, code(p.session("show", n))) for n in ("abcd", c[:3], "two", "no/name", "")]
        tap.ok([w for _, w in wrong] == ["CONFLICT"] + ["NOT_FOUND"] * 4 and
               code(p.exec("abcd1234", "true")) == "CONFLICT",
               f"several of a beginning are CONFLICT, others NOT_FOUND, {who.name}", wrong)
        other = f"{p.top}/out"
        d = p.new(cwd=other)
        last = [json.loads(p.session("show", "--json", "@last", cwd=at).out)["id"]
                for at in (p.src, other)]
        tap.ok(last == [c, d], f"@last is of the caller's source, {who.name}", last, c, d)

        taken = p.session("new", "--name", "one")
        gone = p.session("destroy", "--discard", "one")
        again = p.session("new", "--id", FIRST)
        env = p.session("new", env={"SESSION_ID": FIRST})
        free = p.session("new", "--name", "one")
        tap.ok(code(taken) == "CONFLICT" and gone.status == 0 and
               (again.status, code(again), code(env)) == (2, "CONFLICT", "CONFLICT") and
               free.status == 0, f"an id is never used twice, a name is free again, {who.name}",
               taken, gone, again, env, free)
        said = [p.session("exec", *o).out for o in (
            ("one", "-c", "echo $1", "x"), ("one", "--", "echo", "x"), ("one", "--quiet", "echo", "x"),
            ("-c", "echo ${1#-}", "one", "-x"), ("--", "one", "echo", "x"))]
        twice = p.session("exec", "--grace", "1s", "one", "--grace", "2s", "true")
        tap.ok(said == ["x\n"] * 5 and code(twice) == "CONFIG_INVALID",
               f"options of a call stand on both sides of the session, {who.name}", said, twice)
        rel = [p.session("list", env={"SANDGLASS_HOME": "rel"}),
               p.run([SANDGLASS, "run", "true"], env={"SANDGLASS_HOME": "rel"})]
        tap.ok([code(r) for r in rel] == ["CONFIG_INVALID"] * 2 and
               all("SANDGLASS_HOME: rel" in r.err for r in rel),
               f"a state directory that is no absolute path is refused, {who.name}", *rel)
        bad = [p.session("new", *o) for o in (
            ("--id", FIRST.upper()), ("--id", "x"), ("--name", "a/b"), ("--name", ""),
            ("--name", "-x"), ("--name", "n" * 64), ("--ttl", "24h1s"), ("--ttl", "0s"),
            ("--ttl", "90"), ("true",))]
        tap.ok(all((r.status, code(r)) == (2, "CONFIG_INVALID") for r in bad),
               f"what cannot be an id, a name or a lease is refused, {who.name}", *bad)
        most = p.session("new", "--name", "n" * 63, "--ttl", "24h")
        tap.ok(most.status == 0, f"the longest name, the longest lease, {who.name}", most)

        listed = json.loads(p.session("list", "--json").out)
        text = p.session("list").out
        tap.ok({s["id"] for s in listed} == set(os.listdir(f"{p.state}/sessions")) - {".lock"} and
               len(listed) == 5 and all(s["id"][:8] in text and s["state"] == "active"
                                        for s in listed), f"list has them all, {who.name}",
               listed, text)
        for s in listed:
            p.session("destroy", "--discard", s["id"])
        left = p.remains(*[s["id"] for s in listed])
        tap.ok(not left and p.session("list", "--json").out == "[]\n",
               f"and nothing is left of any, {who.name}", *left)
    finally:
        p.close()


def start(who):
    """What a session has from the beginning."""
    p = Sessions(who)
    try:
        s = p.new()
        top = p.dir(s)
        env = p.exec(s, "env; pwd; ulimit -t; stat -c '%n %a' /sand /sand/*").out
        value = dict(re.findall(r"^(\w+)=(.*)$", env, re.M))
        tap.ok(value.get("SESSION_ID") == s and value.get("AGENT_ROOT") == "/sand" and
               value.get("TMPDIR") == "/sand/tmp" and value.get("HOME") == "/sand/home" and
               value.get("XDG_CACHE_HOME") == "/sand/cache" and f"\n{p.src}\n" in env,
               f"Session start: environment and working directory, {who.name}", env)
        modes = {n: oct(os.stat(f"{top}/root/{n}").st_mode & 0o7777)
                 for n in ("", "workspace", "tmp", "cache", "home", "logs")}
        wanted = {n: "0o700" for n in modes} | {"tmp": "0o1777"}
        outer = os.stat(top).st_mode & 0o7777
        tap.ok(modes == wanted and outer in (0o700, 0o711),
               f"S2: AGENT_ROOT with its places, mode 0700, {who.name}", modes, oct(outer))
        if who.uid:
            return
        p.session("destroy", "--discard", s)
        s = p.new("--cpus", "0.5", "--cpu-time", "1s")
        limits = json.loads(p.exec(s, "true", "--json").out)["sandbox"]["limits"]
        busy = p.exec(s, "while :; do :; done", timeout=40)
        tap.ok(limits["cpus"]["value"] == 500 and code(busy) == "CPU_LIMIT",
               f"S5: the CPU limits of the session are its calls', {who.name}", limits, busy)
    finally:
        p.close()


WRITES = r"""
for d in "$TMPDIR" "$XDG_CACHE_HOME" "$HOME" "$AGENT_ROOT/workspace" /tmp /var/tmp "$PWD" "$PWD/sub"
do echo "CANA""RY" >"$d/written.$$" && echo "wrote $d"; done
"""


def grep(top, needle):
    found = []
    for folder, _, files in os.walk(top):
        for name in files:
            path = f"{folder}/{name}"
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as handle:
                    if needle.encode() in handle.read():
                        found.append(path)
    return found


def prefix(who):
    """A1 and A2: every write path has the session's id in it, and goes with it."""
    p = Sessions(who)
    try:
        p.sh("mkdir sub")
        half = len(p.canary) // 2  # in no argument whole: arguments are in results
        script = WRITES.replace("CANA", p.canary[:half]).replace("RY", p.canary[half:])
        os.unlink(f"{p.home}/.profile")
        bare = p.run(["env", f"XDG_CACHE_HOME={p.out}", f"AGENT_ROOT={p.top}", "sh", "-c",
                      script.replace("/tmp /var/tmp", "").replace("/workspace", "/grant")])
        control = grep(p.top, p.canary)
        for path in control:
            os.unlink(path)
        s = p.new()
        done = p.exec(s, script)
        found = grep(p.top, p.canary)
        tmp = [f for d in ("/tmp", "/var/tmp", "/dev/shm") for f in os.listdir(d)
               if f.startswith("written.")]
        tap.ok(len(control) == 6 and bare.status == 0 and done.out.count("wrote") == 8 and
               len(found) == 6 and all(f"/sessions/{s}/" in f for f in found) and not tmp,
               f"A1: SESSION_ID prefixes every write path, {who.name}", bare, done, control, found,
               tmp)
        places = p.exec(s, 'cd "$TMPDIR" && pwd -P; cd "$XDG_CACHE_HOME" && pwd -P; '
                        'mktemp -u; cat /tmp/written.* "$TMPDIR"/written.* | sort | uniq -c').out
        tap.ok(places.startswith("/sand/tmp\n/sand/cache\n/sand/tmp/tmp.") and
               places.count(p.canary) == 1,
               f"A2: TMPDIR and XDG_CACHE_HOME lie under AGENT_ROOT, /tmp is no other, {who.name}",
               places)
        gone = p.session("destroy", "--discard", s)
        left = grep(p.state, p.canary) + p.remains(s)
        tap.ok(gone.status == 0 and not left,
               f"A1: deleting it removes workspace, tmp, cache and changes, {who.name}", gone, *left)
    finally:
        p.close()


CHANGES = r"""
echo direct >f1; mv f3 f3.new; rm f4; chmod 777 f5; ln f6 f6.hard; echo x >>f6.hard
ln -sf /etc/passwd f7; rm -rf d1; mv d2 d2.new 2>/dev/null; chmod 700 d3; truncate -s 0 f8
mkdir new; echo n >new/n; echo n >d3/n; touch -d @1 f9; ln -s f1 link.new; echo y >link; mkfifo ff
python3 - <<'END'
import mmap, os
fd = os.open("f10", os.O_RDWR)
m = mmap.mmap(fd, 5)
m[0:4] = b"mmap"
m.flush()
for path in ("f11", "d3/g"):
    try:
        os.setxattr(path, "user.mine", b"1")
    except OSError:
        pass
    os.utime(path, ns=(1, 1))
os.ftruncate(os.open("f12", os.O_WRONLY), 2)
END
git add -A; git commit -qam changed; git tag t; git gc -q; echo ended
"""
PROJECT = r"""
git init -q .; mkdir d1 d2 d3; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "file $i" >f$i; done
echo g >d1/g; echo g >d2/g; echo g >d3/g; ln -s f2 link; ln f11 f11.hard; chmod 755 f12
git add -A; git commit -qm start
"""


def source(who):
    """A5: whatever is done to it, the source stays byte for byte; the changes are there for calls."""
    for options in ((), ("--copy",)):
        p = Sessions(who)
        how = "copy" if options else "overlay"
        try:
            p.sh(PROJECT)
            p.sh("cp -a . ../out/bare")
            first = tree(f"{p.out}/bare")
            bare = p.sh(CHANGES, cwd=f"{p.out}/bare")
            control = differences(first, tree(f"{p.out}/bare"))
            before = tree(p.src)
            s = p.new(*options)
            done = p.exec(s, CHANGES)
            seen = p.exec(s, "cat f1 f2 f3.new f10; ls; git log --oneline; stat -c %a f5; "
                          "cat f6 f12; test -L f7 && echo linked; wc -c <f8; cat new/n d3/n").out
            after = tree(p.src)
            wanted = ("direct", "y\n", "file 3", "mmap", "changed", "777", "filinked")
            tap.ok("ended" in bare.out and len(control) > 30 and "ended" in done.out and
                   before == after, f"A5: the source is read-only, {how}, {who.name}",
                   *differences(before, after), bare, done)
            tap.ok(all(w in seen for w in wanted) and p.show(s)["writes"] == how,
                   f"what was changed is there for the next call, {how}, {who.name}",
                   [w for w in wanted if w not in seen], seen)
            p.session("reset", s)
            again = p.exec(s, "git status --porcelain; git log --oneline; cat f1 f4; ls new")
            tap.ok(again.out.startswith(p.sh("git log --oneline").out) and "file 4" in again.out and
                   again.status != 0 and tree(p.src) == before,
                   f"reset puts it back, {how}, {who.name}", again)
        finally:
            p.close()


def files(who):
    """Calls see each other's files, not each other's processes."""
    p = Sessions(who)
    try:
        s = p.new()
        p.exec(s, 'for d in . "$TMPDIR" "$HOME" "$XDG_CACHE_HOME" /tmp "$AGENT_ROOT/workspace"; do '
               'echo kept >"$d/mark"; done')
        seen = p.exec(s, 'cat mark "$TMPDIR/mark" "$HOME/mark" "$XDG_CACHE_HOME/mark" /tmp/mark '
                      '"$AGENT_ROOT/workspace/mark"; touch "$AGENT_ROOT/logs/x"')
        tap.ok(seen.out.count("kept") == 6 and "Read-only" in seen.err,
               f"a call finds what one before left; logs are read-only, {who.name}", seen)
        first = p.start([SANDGLASS, "session", "exec", s, "sh", "-c",
                         "echo $$ >pid; echo ready; exec sleep 1234.5"], text=True)
        first.stdout.readline()
        other = p.exec(s, "cat pid; ls /proc | grep -c '^[0-9]'; cat /proc/*/cmdline | tr '\\0' ' '; "
                       "kill -0 $(cat pid) && echo reached")
        again = p.exec(s, "sleep 0.1; echo together >x; cat x")
        with_it = p.show(s)["calls"]
        tap.ok("1234.5" not in other.out and again.out == "together\n" and with_it == 1,
               f"a call sees no other's processes, two at once work, {who.name}", other, again,
               with_it)
        first.terminate()
        first.wait(20)
        left = wait_for(lambda: not p.named("sleep"), 5)
        tap.ok(left, f"what a call started ends with it, {who.name}", p.living())
        background = p.exec(s, "sleep 1234.5 & echo started")
        tap.ok(background.out == "started\n" and not p.named("sleep"),
               f"so does what it left in the background, {who.name}", background, p.living())
    finally:
        p.close()


SERVER = r"""
import http.server, os
open("served", "w").write("by the session\n")
print("serving", flush=True)
http.server.HTTPServer(("127.0.0.1", 80), http.server.SimpleHTTPRequestHandler).serve_forever()
"""
GET = ("python3 -c 'import urllib.request as u; "
       "print(u.urlopen(\"http://127.0.0.1/served\", timeout=3).read().decode())'")


def detached(who):
    """A server lives across calls, and ends with stop, reset and destroy."""
    p = Sessions(who)
    try:
        for how in ("stop", "reset", "destroy"):
            s = p.new()
            before = p.exec(s, GET)
            made = p.session("exec", "--detach", s, "python3", "-c", SERVER)
            call = made.out.strip()
            said = wait_for(lambda: "serving" in p.session("logs", s, call).out, 15, 0.05)
            got = p.exec(s, GET)
            outside = p.sh(GET)
            running = [c for c in p.calls(s) if c.get("running")]
            servers = len(p.named("python3"))
            if how == "stop":
                ended = p.session("stop", s, call[:8])
            else:
                ended = p.session(how, *(["--discard"] if how == "destroy" else []), s)
            gone = wait_for(lambda: not p.named("python3"), 10)
            tap.ok(UUID.fullmatch(call) and said and before.status != 0 and
                   "by the session" in got.out and outside.status != 0 and len(running) == 1 and
                   running[0]["call"] == call and servers and ended.status == 0 and gone,
                   f"a detached server is reached by later calls and ends with {how}, {who.name}",
                   made, before, got, outside, running, servers, ended, p.living())
            if how != "destroy":
                after = p.exec(s, GET)
                here = p.exec(s, "test -e served").status
                tap.ok(after.status != 0 and here == (0 if how == "stop" else 1),
                       f"after {how} the session goes on, {who.name}", after, here)
                p.session("destroy", "--discard", s)
            left = p.remains(s)
            tap.ok(not left, f"and nothing of it is left, {who.name}", *left)
    finally:
        p.close()


def kept(p, s):
    """What a call that has a caller writes is in the logs, too, wherever its output goes."""
    script = "echo out; echo err >&2; exit 4"
    ways = {"pipes": "", "a file each": f">{p.out}/1 2>{p.out}/2", "one file": f">{p.out}/1 2>&1",
            "/dev/null": ">/dev/null 2>&1", "closed": ">&- 2>&-"}
    if not os.environ.get("SANDGLASS_SANITIZED"):
        ways["--json"] = "--json"
    if p.who.uid:  # the front's doing, whoever calls
        ways = {way: ways[way] for way in ("pipes", "one file")}
    for way, how in ways.items():
        option, to = ("--json", "") if way == "--json" else ("", how)
        done = p.sh(f"{SANDGLASS} session exec {option} {s} sh -c '{script}' {to}")
        said = p.session("logs", s).out, p.session("logs", "--err", s).out
        wanted = ("out\nerr\n", "") if way == "one file" else ("out\n", "err\n")
        tap.ok(said == wanted and done.status == 4,
               f"logs of a call: {way}, {p.who.name}", done, said)
    typed = p.run(["script", "-qec", f"{SANDGLASS} session exec {s} sh -c 'test -t 1 && echo on'",
                   "/dev/null"])
    tap.ok("on" in p.session("logs", s).out, f"logs of a call: a terminal stays one, {p.who.name}",
           typed)
    many = p.exec(s, "head -c 70000000 /dev/zero >&2; echo end")
    st = os.stat(f"{p.dir(s)}/root/logs/{p.calls(s)[-1]['call']}.err")
    tap.ok(many.out == "end\n" and 1 << 26 <= st.st_size <= (1 << 26) + 100,
           f"logs of a call are bounded, what it writes is not, {p.who.name}", many.status,
           st.st_size)


def logs(who):
    """calls, logs, stop: what they say, and of what they know nothing."""
    p = Sessions(who)
    try:
        s = p.new()
        none = p.session("logs", s)
        call = p.session("exec", "--detach", s, "sh", "-c",
                         "echo out; echo err >&2; sleep 0.5; echo end; exit 3").out.strip()
        followed = p.session("logs", "-f", s, call)
        err = p.session("logs", "--err", s, call[:6])
        tap.ok(followed.out == "out\nend\n" and err.out == "err\n" and code(none) == "NOT_FOUND",
               f"logs of a detached call, followed to its end, {who.name}", none, followed, err)
        result = wait_for(lambda: [c for c in p.calls(s) if not c.get("running")], 5)
        kept(p, s)
        tap.ok(result and result[0]["call"] == call and result[0]["exit"]["code"] == 3 and
               result[0]["session"] == s and result[0]["stdout"]["file"] == f"logs/{call}.out",
               f"its result is among the calls, {who.name}", result)
        wrong = [p.session("stop", s, call), p.session("stop", s, "0000"),
                 p.session("logs", s, "0000"), p.session("logs", s, "../record"),
                 p.session("stop", s, "")]
        tap.ok(all(code(w) == "NOT_FOUND" and w.status == 2 for w in wrong),
               f"a call that has ended or never was is NOT_FOUND, {who.name}", *wrong)
        statuses = [p.exec(s, f"exit {n}").status for n in (0, 1, 77, 255)]
        killed = p.exec(s, "kill -9 $$").status
        late = p.exec(s, "sleep 30", "--timeout", "200ms", "--grace", "100ms")
        none = p.session("exec", s, "no-such-program").status
        tap.ok(statuses == [0, 1, 77, 255] and killed == 137 and late.status == 124 and
               none == 127, f"exec has the command's status, {who.name}", statuses, killed, late,
               none)
    finally:
        p.close()


def lease(who):
    """The lease: over, renewed, and what is kept."""
    p = Sessions(who)
    try:
        s = p.new("--ttl", "2s")
        p.exec(s, "echo precious >changed")
        call = p.start([SANDGLASS, "session", "exec", "--json", s, "sh", "-c",
                        "sleep 1234.5 & sleep 1234.5"], text=True)
        running = wait_for(lambda: len(p.named("sleep")) == 2, 10)
        began = time.monotonic()
        out, err = call.communicate(timeout=30)
        took = time.monotonic() - began
        left = wait_for(lambda: not p.living(), 10)
        told = json.loads(out or "{}").get("error") or {}
        tap.ok(running and left and 0.5 < took < 15 and told.get("code") == "LEASE_EXPIRED",
               f"R9: at the lease's end the tree is ended, the call says why, {who.name}",
               f"{took:.1f} s", out, err, p.living())
        kept = grep(f"{p.state}/artifacts", "precious") if os.path.isdir(
            f"{p.state}/artifacts") else []
        there = os.path.isdir(p.dir(s))
        if has_export():
            wait_for(lambda: not os.path.isdir(p.dir(s)), 10)
            tap.ok(kept and not p.remains(s),
                   f"the changes are kept as an artifact, {who.name}", kept, *p.remains(s))
        else:
            held = grep(p.dir(s), "precious")
            tap.ok(there and held, f"what cannot be kept elsewhere stays, {who.name}", held)
        after = p.exec(s, "true")
        tap.ok(after.status == 125 and code(after) in ("LEASE_EXPIRED", "NOT_FOUND"),
               f"no call goes into it any more, {who.name}", after)
        p.session("destroy", "--discard", s)

        s = p.new("--ttl", "2s")
        begin, alive_at = time.monotonic(), 0.0
        while time.monotonic() - begin < 5:
            if p.exec(s, "true").status:
                break
            alive_at = time.monotonic() - begin
            time.sleep(0.3)
        asked = p.session("renew", "--ttl", "1h", s)
        shown = p.show(s)
        more = p.session("renew", "--ttl", "48h", s)
        most = p.show(s)
        tap.ok(alive_at > 4 and asked.status == 0 and 3590000 < shown["lease_left_ms"] <= 3600000 and
               most["lease_left_ms"] <= 86400000 and most["lease_left_ms"] == most["lease_most_ms"],
               f"calls renew it, renew sets it, never beyond 24 hours, {who.name}", alive_at, asked,
               shown, more, most)
    finally:
        p.close()


def paused(who):
    """A paused session stands still, and its lease with it."""
    p = Sessions(who)
    try:
        s = p.new("--ttl", "3s")
        counter = p.session("exec", "--detach", s, "sh", "-c",
                            "i=0; while :; do i=$((i+1)); echo $i >count; sleep 0.01; done")
        file = f"{p.dir(s)}/upper/count"

        def count():
            with open(file, encoding="utf-8") as handle:
                return handle.read()

        wait_for(lambda: os.path.exists(file) and count(), 10)
        went = count()
        runs = wait_for(lambda: count() != went, 5)
        done = p.session("pause", s)
        if code(done) == "LIMIT_UNAVAILABLE":
            on = count()
            time.sleep(0.3)
            tap.ok(who.uid and runs and done.status == 2 and count() != on and
                   p.show(s)["state"] == "active",
                   f"no freezer: LIMIT_UNAVAILABLE, and it goes on, {who.name}", done)
            return
        stood = count()
        time.sleep(4)  # longer than the lease
        still, state = count(), p.show(s)
        refused = p.exec(s, "true")
        again = p.session("pause", s)
        go = p.session("resume", s)
        moved = wait_for(lambda: count() != still, 5)
        tap.ok(runs and counter.status == 0 and done.status == 0 and stood == still and
               state["state"] == "paused" and state["lease_left_ms"] > 1000 and
               (refused.status, code(refused)) == (125, "BUSY") and again.status == 0 and
               go.status == 0 and moved and p.exec(s, "true").status == 0,
               f"what is paused stands still, its lease too, and goes on, {who.name}", done, stood,
               still, state, refused, go)
        p.session("pause", s)
        gone = p.session("destroy", "--discard", s)
        left = p.remains(s)
        tap.ok(gone.status == 0 and not left, f"a paused one can be destroyed, {who.name}", gone,
               *left)
    finally:
        p.close()


def edits(who):
    """What the host changes between calls is seen; another directory in its place is not taken."""
    p = Sessions(who)
    try:
        p.sh("mkdir d; echo 1 >place; echo 1 >over; echo 1 >gone; echo 1 >d/deep; echo 1 >mine")
        s = p.new()
        p.exec(s, "cat place over gone d/deep; echo inside >mine; ls d")
        p.sh("echo 2 >place; echo 2 >n; mv n over; rm gone; echo 2 >d/deep; echo 2 >d/more; "
             "mkdir e; echo 2 >e/x; echo 2 >mine")
        seen = p.exec(s, "cat place over d/deep d/more e/x mine; ls gone")
        tap.ok(seen.out == "2\n2\n2\n2\n2\ninside\n" and seen.status != 0,
               f"host edits between calls are seen, its own changes stay, {who.name}", seen)
        os.rename(p.src, f"{p.top}/moved")
        os.mkdir(p.src)
        p.own(p.src)
        p.write(f"{p.src}/other", "another")
        refused = p.exec(s, "ls; cat other", cwd=p.top)
        os.unlink(f"{p.src}/other")
        os.rmdir(p.src)
        os.rename(f"{p.top}/moved", p.src)
        back = p.exec(s, "cat mine")
        tap.ok(refused.status == 125 and code(refused) == "CONFLICT" and back.out == "inside\n",
               f"a source that was replaced is CONFLICT, put back it goes on, {who.name}", refused,
               back)
    finally:
        p.close()


HIDES = r"""
cat .env; cat pkg/.env.local; cat id_rsa; wc -c <.env; ls -A
cp .env.example .env; rm -f pkg/.env.local; git clean -fdxq; git add -A; git stash -qu
git commit -qm all; mv pkg pkg2; cat .env pkg2/.env.local; git log -p --all; rm -rf .env pkg2; cat .env
git archive --format=tar HEAD | cat; echo ended
"""


def secrets(who):
    """Masked files are masked in every call, and come through whatever is done inside."""
    for options in ((), ("--copy",)):
        how = "copy" if options else "overlay"
        p = Sessions(who)
        try:
            p.sh("git init -q .; mkdir pkg; echo a >a; echo EXAMPLE=1 >.env.example; "
                 "echo a >pkg/a; git add -A; git commit -qm start")
            for name in (".env", "pkg/.env.local"):
                p.write(f"{p.src}/{name}")
            p.write(f"{p.src}/id_rsa", "-----BEGIN OPENSSH PRIVATE KEY-----\n" + p.canary)
            bare = p.sh("cat .env pkg/.env.local id_rsa").out.count(p.canary)
            before = tree(p.src)
            s = p.new(*options)
            done = p.exec(s, HIDES)
            after = p.exec(s, "cat .env pkg/.env.local pkg2/.env.local; cat id_rsa; git log -p --all")
            masked = json.loads(p.exec(s, "true", "--json").out)["sandbox"]["masked"]
            shown = done.out + done.err + after.out + after.err
            inside = grep(p.state, p.canary)
            tap.ok(bare == 3 and "ended" in done.out and p.canary not in shown and not inside and
                   tree(p.src) == before,
                   f"secrets are masked and survive everything, {how}, {who.name}", done, after,
                   inside, *differences(before, tree(p.src)))
            tap.ok(how == "copy" or
                   {m["path"] for m in masked} >= {".env", "pkg/.env.local", "id_rsa"},
                   f"sandbox.masked says so, {how}, {who.name}", masked)
            if how == "overlay":
                p.write(f"{p.src}/.env.new")
                late = p.exec(s, "cat .env.new; echo ran")
                tap.ok(late.out == "ran\n", f"one that came later too, {who.name}", late)
                under_way(p, s)
                p.sh("git init -q nest; cd nest; echo g >g; git add g; git commit -qm n")
                p.write(f"{p.src}/nest/.env")
                added = p.exec(s, "cd nest; echo n >new; git add -A; git ls-files; git check-ignore .env")
                tap.ok(added.out == "g\nnew\n.env\n",
                       f"git in a repository of the project's ignores what is masked there, {who.name}", added)
            forced(p, how, *options)
        finally:
            p.close()


def forced(p, how, *options):
    """A commit that has something at a masked path is not applied, and names the way out."""
    s = p.new(*options)
    p.exec(s, "git add -f .env; git commit -qm sneaky")
    refs = p.sh("git rev-parse HEAD; git ls-files").out
    refused = p.run([SANDGLASS, "apply", s])
    same = p.sh("git rev-parse HEAD; git ls-files").out == refs
    p.exec(s, "git rm -q --cached -f .env; echo new >late; git add late; git commit -q --amend -m good")
    good = p.run([SANDGLASS, "apply", s])
    tap.ok(code(refused) == "POLICY_DENIED" and ".env, which is masked" in refused.err and same and
           good.status == 0 and "late" in p.sh("git ls-files").out,
           f"a commit with a masked file is not applied, {how}, {p.who.name}", refused, good)


def under_way(p, s):
    """While a call runs nothing new can be masked: what would show it is refused."""
    call = p.session("exec", "--detach", s, "sleep", "60").out.strip()
    same = p.exec(s, "cat .env.new; echo ran")
    p.write(f"{p.src}/.env.later")
    refused = p.exec(s, "cat .env.later")
    read = json.loads(p.exec(s, "true", "--json", "--read", ".env.later").out)
    p.session("stop", s, call)
    wait_for(lambda: p.show(s)["calls"] == 0, 10)
    after = p.exec(s, "cat .env.later; echo ran")
    masked = {m["path"] for m in p.show(s)["masked"]}
    tap.ok(same.out == "ran\n" and (refused.status, code(refused)) == (125, "BUSY") and
           ".env.later" in refused.err and p.canary not in refused.out and
           ".env.later" not in {m["path"] for m in read["sandbox"]["masked"]} and
           after.out == "ran\n" and {".env.new", ".env.later"} <= masked,
           f"a secret that comes while a call runs is refused or masked, {p.who.name}", same,
           refused, read["error"], after, masked)


def near(p, s):
    """A warning comes before a limit; all sessions together have one, too."""
    # A keeper on a busy machine looks seldom: what is to be seen is waited for.
    warned = until(lambda: p.exec(s, "dd if=/dev/zero of=w bs=1M count=17 2>/dev/null; sleep 2"),
                   lambda r: r.err)
    told = until(lambda: json.loads(p.exec(s, "seq 260 | xargs touch; sleep 2", "--json").out),
                 lambda r: len(r["limits_near"]) == 2)
    p.exec(s, "ls | xargs rm -f")
    calm = until(lambda: json.loads(p.exec(s, "sleep 0.5", "--json").out),
                 lambda r: r["limits_near"] == [])
    tap.ok("sandglass: warning: the session has" in warned.err and warned.status == 0 and
           told["limits_near"] == ["disk", "inodes"] and told["ok"] and calm["limits_near"] == [],
           f"R9: near a limit there is a warning, {p.who.name}", warned, told, calm)
    other = f"{p.state}/sessions/00000000-0000-4000-8000-000000000000"
    os.mkdir(other)
    p.own(other)

    def with_others(size, script, good):
        p.write(f"{other}/usage", f"{size:020}", 0o600)
        return until(lambda: p.exec(s, script, timeout=40), good)

    near_all = with_others((20 << 30) - (1 << 20), "sleep 0.5; echo went",
                           lambda r: "warning: all sessions" in r.err)
    over_all = with_others((20 << 30) + 1, "sleep 20; echo went", lambda r: r.status)
    below = with_others(1 << 20, "sleep 0.5; echo went", lambda r: r.status == 0)
    subprocess.run(["rm", "-rf", other], check=True)
    tap.ok(code(near_all) is None and "warning: all sessions" in near_all.err and
           near_all.out == "went\n" and code(over_all) == "DISK_LIMIT" and
           "all sessions" in over_all.err and over_all.out == "" and
           code(below) is None and below.out == "went\n",
           f"R9: all sessions together have a limit, too, {p.who.name}", near_all, over_all, below)


def until(make, good, times=10):
    """The first of so many results that is good, else the last one."""
    for _ in range(times):
        made = make()
        if good(made):
            break
    return made


def quota(who):
    """R9: bytes and inodes are bounded, unlinked files included; the session stays for review."""
    p = Sessions(who)
    try:
        s = p.new("--disk", "20MiB", "--inodes", "300")
        fits = p.exec(s, "dd if=/dev/zero of=fits bs=1M count=8 2>&1; rm fits; seq 100 | xargs touch; "
                      "sleep 0.5; seq 100 | xargs rm")
        tap.ok(fits.status == 0, f"below the limits nothing happens, {who.name}", fits)
        rows = (("bytes", "DISK_LIMIT", "dd if=/dev/zero of=big bs=1M count=64; sleep 20"),
                ("bytes in tmp", "DISK_LIMIT",
                 'dd if=/dev/zero of="$TMPDIR/big" bs=1M count=64; sleep 20'),
                ("unlinked files", "DISK_LIMIT",
                 "exec 9>big; rm big; dd if=/dev/zero bs=1M count=64 >&9; sleep 20"),
                ("inodes", "INODE_LIMIT", 'mkdir m; cd m; seq 2000 | xargs touch; sleep 20'))
        near(p, s)
        for name, wanted, script in rows:
            done = p.exec(s, script + "; echo sur''vived", "--json", timeout=40)
            result = json.loads(done.out or "{}")
            over = p.exec(s, "true")
            clean = p.session("reset", s)
            again = p.exec(s, "echo again")
            blocked = code(over) == wanted if "unlinked" not in name else over.status == 0
            tap.ok((result.get("error") or {}).get("code") == wanted and done.seconds < 15 and
                   "survived" not in done.out and blocked and clean.status == 0 and
                   again.out == "again\n",
                   f"R9: too many {name} are {wanted}, reset helps, {who.name}", done, over, clean,
                   again)
    finally:
        p.close()


def together(who):
    """Calls at once: each has its own answer, all see the same files."""
    p = Sessions(who)
    try:
        s = p.new()
        results = [None] * 8

        def one(i):
            results[i] = p.exec(s, f"echo {i} >f{i}; sleep 0.3; echo done {i}")

        threads = [threading.Thread(target=one, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        said = [r.out for r in results]
        seen = p.exec(s, "cat f?")
        tap.ok(said == [f"done {i}\n" for i in range(8)] and
               seen.out == "".join(f"{i}\n" for i in range(8)) and
               len({c["call"] for c in p.calls(s)}) == 9,
               f"eight calls at once, {who.name}", *results, seen)
    finally:
        p.close()


def others(who):
    """A session is its caller's own."""
    if os.geteuid() or not who.uid:
        return
    p = Sessions(who)
    try:
        s = p.new()
        other = ["setpriv", "--reuid=20002", "--regid=20002", "--clear-groups", "--"]
        env = p.env()
        own, p.who.prefix = p.who.prefix, other
        try:
            tried = p.run([SANDGLASS, "session", "exec", s, "true"], env=env)
        finally:
            p.who.prefix = own
        tap.ok(tried.status == 125 and p.exec(s, "true").status == 0,
               "another user's session cannot be used", tried)
    finally:
        p.close()


def copied(who):
    """--copy: holes, modes, links and what cannot be copied; and no more than is allowed."""
    p = Sessions(who)
    try:
        with open(f"{p.src}/sparse", "wb") as handle:
            handle.truncate(1 << 34)
            handle.seek(1 << 33)
            handle.write(b"x" * 4096)
        for name, mode in (("setgid", 0o2755), ("sticky", 0o1777), ("deep/a/b", 0o755)):
            os.makedirs(f"{p.src}/{name}")
            os.chmod(f"{p.src}/{name}", mode)
        os.mkfifo(f"{p.src}/pipe")
        os.symlink("/etc/passwd", f"{p.src}/link")
        p.write(f"{p.src}/deep/a/b/file", "f" * 3000000, 0o4755)
        for at in ("sparse", "setgid", "sticky", "deep", "deep/a", "deep/a/b", "pipe"):
            p.own(f"{p.src}/{at}")
            os.chmod(f"{p.src}/{at}", {"setgid": 0o2755, "sticky": 0o1777}.get(at, 0o755))
        made = p.session("new", "--copy", timeout=100)
        s = made.out.strip()
        at = f"{p.dir(s)}/copy"
        sparse = os.stat(f"{at}/sparse")
        shown = p.show(s)
        seen = p.exec(s, "readlink link; stat -c %a setgid sticky deep/a/b/file; test -e pipe; echo $?;"
                      " od -An -c -j 8589934592 -N 2 sparse; stat -c %s sparse")
        tap.ok(seen.out == "/etc/passwd\n2755\n1777\n755\n1\n   x   x\n17179869184\n" and
               sparse.st_blocks < 4096, f"a copy: holes, modes, links, {who.name}", seen,
               sparse.st_blocks)
        tap.ok("not copied: pipe\n" in made.err and shown["not_copied"] == ["pipe"] and
               shown["why_copy"] is None, f"a copy: what is left out is named, {who.name}", made, shown)
        same = p.run([SANDGLASS, "diff", s])
        tap.ok(same.out == "", f"a copy: nothing in it is a change, {who.name}", same)
        p.session("destroy", "--discard", s)
        wrong = [p.session("new", "--copy", "--disk", "2MiB"), p.session("new", "--copy",
                                                                        "--inodes", "5")]
        tap.ok([code(w) for w in wrong] == ["DISK_LIMIT", "INODE_LIMIT"] and not p.remains(),
               f"a copy: no more than the session may hold, nothing stays, {who.name}", *wrong,
               *p.remains())
    finally:
        p.close()


def left_out(who):
    """What apply left out is an artifact when the session ends, commits too; or dropped, and said so."""
    p = Sessions(who)
    try:
        p.sh("git init -q -b main .; echo a >a; echo b >b; git add -A; git commit -qm start")
        for options in ((), ("--copy",)) if not who.uid else ((),):
            how = "copy" if options else "overlay"
            s = p.new(*options)
            p.exec(s, "echo alpha >a; git commit -qam alpha; git switch -qc side; echo s >s; git add s;"
                   " git commit -qm side; git switch -q main; echo beta >b")
            part = p.run([SANDGLASS, "apply", s, "b"])
            ended = p.session("destroy", "--json", s)
            at = json.loads(ended.out)["artifacts"]
            patch = p.sh(f"cat {at}/diff.patch").out
            p.own(f"{p.out}")
            got = p.sh(f"rm -rf {p.out}/x; git clone -q {p.src} {p.out}/x && cd {p.out}/x && "
                       f"git fetch -q {at}/commits.bundle 'refs/heads/*:refs/heads/session/*' && "
                       "git show session/main:a && git show session/side:s")
            tap.ok(part.status == 0 and "+alpha" in patch and "+beta" not in patch and
                   got.out == "alpha\ns\n" and not p.remains(s),
                   f"after a partial apply the rest is an artifact, commits too, {how}, {who.name}",
                   part, ended, got, *p.remains(s))
            s = p.new(*options)
            p.exec(s, "git checkout -q --detach; echo lost >l; git add l; git commit -qm lost")
            told = p.session("destroy", s)
            at = f"{p.state}/artifacts/{s}"
            names = os.listdir(at) if os.path.isdir(at) else []
            s = p.new(*options)
            p.exec(s, "echo x >x")
            dropped = p.session("destroy", "--discard", s)
            tap.ok(at in told.err and "objects.tar" in names and "dropped" in dropped.err and
                   not os.path.exists(f"{p.state}/artifacts/{s}"),
                   f"destroy says what became of it, {how}, {who.name}", told, names, dropped)
            p.sh("git checkout -q -- .")
    finally:
        p.close()


def told(who):
    """What the audit log has of a session, its head when the session ends, and how long logs are kept."""
    try:
        import jsonschema
    except ImportError:
        tap.skip(f"{who.name}: the audit log of a session", "python3-jsonschema")
        return
    p = Sessions(who)
    try:
        s = p.new("--name", "told")
        p.exec(s, "echo x >x; echo said")
        p.session("renew", s)
        p.session("destroy", s)
        empty = p.new("--name", "n" * 63)
        rows = p.session("list").out.split("\n")
        tap.ok(len(rows) == 3 and rows[0].index("STATE") == rows[1].index("active") == 10 + 63 + 2 and
               rows[0].index("SOURCE") == rows[1].index(p.src),
               f"list: columns stand below each other whatever the name, {who.name}", *rows)
        p.session("destroy", empty)
        log = f"{p.state}/audit"
        lines = [json.loads(line) for name in sorted(os.listdir(log)) if name.endswith(".jsonl")
                 for line in p.sh(f"cat {log}/{name}").out.splitlines()]
        events = [line["event"] for line in lines if line["session"] == s]
        schema = json.loads(p.run([SANDGLASS, "schema", "audit"]).out)
        wrong = [f"{line['event']}: {e.message}" for line in lines
                 for e in jsonschema.Draft202012Validator(schema).iter_errors(line)]
        start = [line["data"] for line in lines if line["event"] == "call.start"]
        tap.ok(events == ["session.create", "call.start", "call.end", "session.renew",
                          "session.destroy"] and
               not wrong and start[0]["writes"] == "overlay",
               f"a session's events, as `schema audit` has them, {who.name}", events, *wrong[:5])
        head = p.sh(f"tail -n 1 {p.state}/artifacts/audit-head").out.split()
        good = p.run([SANDGLASS, "audit", "verify", "--heads"])
        newest = sorted(n for n in os.listdir(log) if n.endswith(".jsonl"))[-1]
        cut = p.sh(f"cp -r {log} {p.state}/keep && sed -i '$d' {log}/{newest} && rm -f {log}/head")
        bad = p.run([SANDGLASS, "audit", "verify", "--heads"])
        p.sh(f"rm -rf {log}; mv {p.state}/keep {log}")
        tap.ok(head == [str(lines[-1]["seq"]), lines[-1]["hash"]] and good.status == 0 and
               cut.status == 0 and bad.status == 1,
               f"the head is noted when a session ends, {who.name}", head, lines[-1], good, cut, bad)
        at = f"{p.state}/artifacts/{s}"
        kept = p.sh(f"ls {at}/logs | wc -l").out
        os.utime(at, (time.time() - 40 * 86400,) * 2)
        gone = p.run([SANDGLASS, "gc"])
        sums = p.sh(f"cd {at} && sha256sum --quiet -c MANIFEST.sha256; ls")
        os.utime(at, (time.time() - 100 * 86400,) * 2)
        p.run([SANDGLASS, "gc"])
        tap.ok(kept.strip() == "2" and "logs of 1 artifacts  removed" in gone.out and
               sums.status == 0 and "diff.patch" in sums.out and "logs" not in sums.out and
               not os.path.exists(at),
               f"gc: logs go after 30 days, artifacts after 90, {who.name}", kept, gone, sums)
    finally:
        p.close()


def unreadable(who):
    """A record of another version, or a damaged one: named by list, and destroyed when asked by id."""
    p = Sessions(who)
    try:
        s = p.new()
        for pid in p.living():
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not p.living(), 5, 0.05)
        with open(f"{p.dir(s)}/record", "r+b") as handle:
            handle.write(b"version=99")
        seen = p.session("list")
        tap.ok(seen.status == 0 and f"destroy --discard {s}" in seen.err,
               f"a session whose record cannot be read is named by list, {who.name}", seen)
        kept = p.session("destroy", s)
        tap.ok(kept.status == 2 and os.path.isdir(p.dir(s)),
               f"it is not destroyed without --discard, {who.name}", kept)
        gone = p.session("destroy", "--discard", s)
        tap.ok(gone.status == 0 and not p.remains(s) and not p.session("list").err,
               f"and with it nothing is left, {who.name}", gone, p.remains(s))
    finally:
        p.close()


ROWS = {"told": told, "copied": copied, "left out": left_out, "names": names, "Session start": start, "A1": prefix, "A2": prefix, "A5": source,
        "files": files, "detached": detached, "logs": logs, "lease": lease, "paused": paused,
        "edits": edits, "secrets": secrets, "R9": quota, "together": together, "others": others,
        "unreadable": unreadable}


def main():
    wanted = sys.argv[1:]
    for who in identities_once():
        for function in dict.fromkeys(ROWS[n] for n in ROWS if not wanted or n in wanted):
            begin = time.monotonic()
            tap.attempt(f"{function.__name__}, {who.name}", function, who)
            if wanted:
                tap.note(f"{function.__name__}: {time.monotonic() - begin:.1f} s")
    return tap.done()


sys.exit(main())
