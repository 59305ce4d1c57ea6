#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The ends of sessions: killed processes, gc, destroy, many at once. Nothing is left.

Each of a session's processes is killed with SIGKILL while a call runs; then no
process of it may be there, no mount in the host's table, and the next call finds
all changes.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import SANDGLASS, SANITIZED, descendants, identities_once, wait_for  # noqa: E402
from session import Sessions, code, has_export, tree  # noqa: E402

MANY = 50 if not SANITIZED else 8
DEEP = 60000 if not SANITIZED else 5000


def begin_call(p, s, *options):
    """A call that has said that it runs, with a child of a child."""
    call = p.start([SANDGLASS, "session", "exec", *options, s, "sh", "-c",
                    "echo by a call >>changed; echo here >\"$TMPDIR/t\"; "
                    "sh -c 'sleep 1234.5; :' & echo ready; sleep 1234.5; :"], text=True)
    if not call.stdout.readline():
        raise AssertionError(f"no call: {call.stderr.read()}")
    wait_for(lambda: len(p.named("sleep")) == 2, 10)
    return call


def who_is(p, call):
    """pids by role while one call runs."""
    init = [d for d in descendants(call.pid) if d in p.living()]
    keeper, holder = p.named("sandglass-keep"), p.named("sandglass-hold")
    return {"keeper": keeper[0], "holder": holder[0], "front": front_of(call), "init": init[0]}


def front_of(call):
    """What setpriv has become is the front itself: exec keeps the pid."""
    return call.pid


def killed(who):
    """SIGKILL of each: the tree ends, no mount is left, and the next call works."""
    for role in ("keeper", "holder", "front", "init"):
        for options in ((), ("--copy",), ("--no-source",)):
            if options and role in ("front", "init"):
                continue
            p = Sessions(who)
            name = f"{role}, {options[0][2:] if options else 'overlay'}, {who.name}"
            try:
                p.sh("git init -q .; echo a >a; git add a; git commit -qm a")
                before = tree(p.src)
                s = p.new(*options)
                if options == ("--no-source",):
                    p.exec(s, "true")
                call = begin_call(p, s)
                there = who_is(p, call)
                os.kill(there[role], signal.SIGKILL)
                call.wait(30)
                gone = wait_for(lambda: not [n for n in p.living().values()
                                             if n in ("sleep", "sh")], 10)
                keeping = {n for n in p.living().values()}
                mounts = [m for m in p.remains(s) if m.startswith("mount")]
                tap.ok(gone and not mounts and
                       (keeping <= {"sandglass-keep", "sandglass-hold"}) and
                       (role in ("front", "init") or not keeping),
                       f"killed: nothing runs, nothing is mounted: {name}", p.living(), *mounts)
                if role not in ("front", "init"):
                    state = p.show(s).get("state")
                    tap.ok(state == "unclean", f"killed: the state says so: {name}", state)
                again = p.exec(s, 'cat changed "$TMPDIR/t"; echo again >>changed; cat changed')
                tap.ok(again.out == "by a call\nhere\nby a call\nagain\n" and tree(p.src) == before,
                       f"killed: the next call finds all changes: {name}", again)
                end = p.session("destroy", "--discard", s)
                left = p.remains(s)
                tap.ok(end.status == 0 and not left, f"killed: and it can be destroyed: {name}",
                       end, *left)
            finally:
                p.close()


def detached_front(who):
    """So for a detached call, whose front nobody waits for."""
    p = Sessions(who)
    try:
        s = p.new()
        for role in ("keeper", "holder", "front"):
            call = p.session("exec", "--detach", s, "sleep", "1234.5").out.strip()
            wait_for(lambda: p.named("sleep"), 10)
            pids = [pid for pid, n in p.living().items() if n not in ("sleep",)]
            fronts = [pid for pid in pids if descends(pid, p.named("sleep")[0])]
            target = fronts[0] if role == "front" else p.named(f"sandglass-{role[:4]}")[0]
            os.kill(target, signal.SIGKILL)
            gone = wait_for(lambda: not p.named("sleep"), 10)
            again = p.exec(s, "echo again")
            mine = [c for c in p.calls(s) if c["call"] == call]
            tap.ok(gone and again.out == "again\n" and mine,
                   f"killed: {role} of a detached call, {who.name}", p.living(), again, mine)
    finally:
        p.close()


def descends(pid, what):
    return what in descendants(pid)


def collect(who):
    """gc: what is over goes, what lives stays; --dry-run says how much it is and touches nothing."""
    p = Sessions(who)
    try:
        lives, lost, over = p.new(), p.new(), p.new("--ttl", "2s")
        for s in (lives, lost, over):
            p.exec(s, "dd if=/dev/zero of=big bs=1M count=4 2>/dev/null; seq 20 | xargs touch")
        for pid in p.named("sandglass-keep"):
            with open(f"/proc/{pid}/mountinfo", encoding="utf-8"):
                links = [os.readlink(f"/proc/{pid}/fd/{f}") for f in os.listdir(f"/proc/{pid}/fd")]
            if any(over in link or lost in link for link in links):
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: len(p.named("sandglass-keep")) == 1, 5)
        time.sleep(2.2)
        before = tree(f"{p.state}/sessions")
        dry = p.run([SANDGLASS, "gc", "--dry-run", "--json"])
        text = p.run([SANDGLASS, "gc", "--dry-run"])
        told = {row["id"]: row for row in json.loads(dry.out)}
        tap.ok(dry.status == 0 and set(told) == {lives, lost, over} and
               all(4 << 20 <= row["bytes"] < 8 << 20 and 22 <= row["inodes"] < 80
                   for row in told.values()) and tree(f"{p.state}/sessions") == before and
               [told[s]["what"] for s in (lives, lost, over)] == ["kept", "unclean", "would go"] and
               "bytes" in text.out and text.out.count("\n") == 3,
               f"R9: gc --dry-run shows bytes and inodes of each session, {who.name}", dry, text)
        swept = p.run([SANDGLASS, "gc", "--json"])
        stays = os.path.isdir(p.dir(over))
        kept = os.path.isdir(f"{p.state}/artifacts/{over}")
        tap.ok((not stays and kept and swept.status == 0) if has_export() else
               (stays and swept.status == 1),
               f"R9: gc ends an expired one whose keeper was killed, {who.name}",
               "removed" if not stays else "stays", kept, swept)
        works = [p.exec(s, "ls big").out for s in (lives, lost)]
        tap.ok(works == ["big\n", "big\n"], f"gc leaves what lives alone, {who.name}", works)
        for s in (lives, lost, over):
            p.session("destroy", "--discard", s)
        tap.ok(not p.remains(), f"and nothing is left, {who.name}", *p.remains())
    finally:
        p.close()


DIG = r"""
import os, sys
top, n, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
os.chdir(top)
for i in range(n):
    os.mkdir(name)
    os.chdir(name)
open("deepest", "w").close()
print("dug")
"""


def deep(who):
    """60,000 directories in one another go as anything else, wherever they are."""
    p = Sessions(who, "/dev/shm")  # a disk spends minutes on them, whoever makes them
    try:
        for options in ((), ("--copy",)):
            s = p.new(*options)
            p.write(f"{p.src}/dig.py", DIG, 0o644)
            if options:
                p.session("destroy", "--discard", s)
                s = p.new(*options)
            dug = [p.session("exec", s, "python3", "dig.py", where, "1000", "i")
                   for where in (".", "/sand/tmp")]
            # Inside each costs as many steps as it is deep; the rest is made from outside.
            dug += [p.run(["python3", f"{p.src}/dig.py", f"{p.dir(s)}/{where}", str(DEEP // 2), "o"])
                    for where in ("upper" if not options else "copy", "root/cache")]
            begin = time.monotonic()
            gone = p.session("destroy", "--discard", s, timeout=300)
            took = time.monotonic() - begin
            left = p.remains(s)
            tap.ok(all(d.out == "dug\n" for d in dug) and gone.status == 0 and not left,
                   f"{DEEP} nested directories are destroyed{' of a copy' if options else ''}, "
                   f"{who.name}", *dug, gone, *left)
            tap.note(f"{dug[2].seconds + dug[3].seconds:.1f} s to make, {took:.1f} s to go")
    finally:
        p.close()


def thread(p, failures, times):
    try:
        begin = time.monotonic()
        s = p.new()
        done = p.exec(s, "echo mine >file; cat file", timeout=280)
        gone = p.session("destroy", "--discard", s, timeout=280)
        times.append(time.monotonic() - begin)
        if done.out != "mine\n" or gone.status:
            failures.append(f"{s}: {done} {gone}")
    except AssertionError as failed:
        failures.append(str(failed))


def many(who):
    """Made, used and destroyed at once, on few processors."""
    p = Sessions(who)
    try:
        p.sh("git init -q .; echo a >file; git add file; git commit -qm a")
        failures, one, times = [], [], []
        for _ in range(3):
            thread(p, failures, one)
        begin = time.monotonic()
        threads = [threading.Thread(target=thread, args=(p, failures, times)) for _ in range(MANY)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        took = time.monotonic() - begin
        ratio = took / sorted(one)[1]
        left = p.remains()
        tap.note(f"{MANY} at once: {took:.1f} s, one: {sorted(one)[1]:.2f} s, ratio {ratio:.1f}")
        tap.ok(not failures and len(times) == MANY and ratio <= 1.2 * MANY,
               f"{MANY} at once are made, used and destroyed, {who.name}", *failures, ratio)
        tap.ok(not left, f"and nothing is left of them, {who.name}", *left)
        alone = p.exec(p.new(), "cat file")
        tap.ok(alone.out == "a\n", f"the next one works, {who.name}", alone)
    finally:
        p.close()


def sixty_four(who):
    """One user has at most 64; the next is told."""
    if SANITIZED:
        return
    p = Sessions(who)
    try:
        ids = [p.new("--no-source") for _ in range(64)]
        over = p.session("new", "--no-source")
        p.session("destroy", "--discard", ids[0])
        room = p.session("new", "--no-source")
        tap.ok((over.status, code(over)) == (2, "BUSY") and room.status == 0,
               f"at most 64 sessions of one user, {who.name}", over, room)
    finally:
        p.close()


def destroy_running(who):
    """destroy returns when all is gone, whatever runs and however it behaves."""
    p = Sessions(who)
    try:
        s = p.new()
        calls = [begin_stubborn(p, s) for _ in range(3)]
        begin = time.monotonic()
        gone = p.session("destroy", "--discard", s)
        took = time.monotonic() - begin
        at_once = [n for n in p.living().values() if n not in ("sandglass", "sandglass-keep")]
        there = os.path.isdir(p.dir(s))
        ends = [c.wait(20) for c in calls]
        left = p.remains(s)
        tap.ok(gone.status == 0 and not at_once and not there and not left and took < 12 and
               all(e != 0 for e in ends),
               f"destroy ends calls that ignore TERM, and then returns, {who.name}", gone, at_once,
               there, ends, f"{took:.1f} s", *left)
        after = p.exec(s, "true")
        tap.ok(code(after) == "NOT_FOUND", f"it is NOT_FOUND, {who.name}", after)
    finally:
        p.close()


def begin_stubborn(p, s):
    call = p.start([SANDGLASS, "session", "exec", s, "sh", "-c",
                    "trap '' TERM INT HUP; echo ready; while :; do sleep 0.1; done"], text=True)
    call.stdout.readline()
    return call


def unfinished(who):
    """What `new` has begun and a kill has cut off goes with gc, or is ended by hand."""
    p = Sessions(who)
    try:
        for wait in (0.005, 0.02, 0.05, 0.08, 0.12, 0.2):
            making = p.start([SANDGLASS, "session", "new"])
            time.sleep(wait)
            os.kill(making.pid, signal.SIGKILL)
            making.wait()
        wait_for(lambda: not p.named("sandglass-main"), 5)
        time.sleep(0.5)
        for s in json.loads(p.session("list", "--json").out):
            p.session("destroy", "--discard", s["id"])
        p.run([SANDGLASS, "gc"])
        left = p.remains()
        tap.ok(not left, f"a killed `session new` leaves nothing for long, {who.name}", *left)
        name = p.session("new", "--name", "free")
        tap.ok(name.status == 0, f"and the next one works, {who.name}", name)
    finally:
        p.close()


def apart(who):
    """A session keeps no other mount of the host busy, and ends though its source is gone."""
    p = Sessions(who)
    try:
        if not who.uid:
            stick = f"{p.top}/stick"
            os.mkdir(stick)
            p.run(["mount", "-t", "tmpfs", "stick", stick])
        for options in ((), ("--copy",)):
            how = "copy" if options else "overlay"
            s = p.new(*options)
            p.exec(s, "echo x >x")
            lists = [p.run(["cat", f"/proc/{pid}/mountinfo"], cwd="/").out
                     for pid in p.named("sandglass-hold")]
            seen = [line.split()[4] for text in lists if f"/sessions/{s}" in text
                    for line in text.splitlines()]
            tap.ok(seen and set(seen) <= {"/", "/mnt", "/mnt/lower", "/mnt/merged"},
                   f"a session holds no mount but its own, {how}, {who.name}", seen)
            p.session("destroy", "--discard", s)
        if not who.uid:
            p.run(["umount", stick])
        for how, ttl in (("at its end", "2s"), ("when it is destroyed", "1h")):
            os.makedirs(f"{p.top}/gone/sub")
            for at in ("gone", "gone/sub"):
                p.own(f"{p.top}/{at}")
            s = p.new("--ttl", ttl, cwd=f"{p.top}/gone")
            p.exec(s, "echo precious >kept", cwd=f"{p.top}/gone")
            subprocess.run(["rm", "-rf", f"{p.top}/gone"], check=True)
            ended = p.session("destroy", s) if ttl == "1h" else None
            wait_for(lambda: not os.path.isdir(p.dir(s)), 15)
            kept = p.sh(f"cat {p.state}/artifacts/{s}/layer/kept; cat {p.state}/artifacts/{s}/summary.md",
                        cwd=p.top)
            tap.ok(kept.out.startswith("precious\n") and "source is gone" in kept.out and
                   not p.remains(s), f"a session whose source is gone ends, {how}, {who.name}", ended,
                   kept, *p.remains(s))
    finally:
        p.close()


ROWS = {"apart": apart, "killed": killed, "detached": detached_front, "gc": collect, "R9": collect, "deep": deep,
        "many": many, "most": sixty_four, "destroy": destroy_running, "unfinished": unfinished}


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
