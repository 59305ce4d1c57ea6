#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A session stands still while it is reviewed: diff, apply, discard, export and calls keep out of each other's way."""

import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import SANDGLASS, beside, identities_once, wait_for  # noqa: E402
from session import Sessions, code  # noqa: E402

WRITER = "i=0; while :; do i=$((i+1)); echo $i >a; echo $i >b; done"


def running(who):
    """What a call writes is not read while it writes, and never applied."""
    p = Sessions(who)
    try:
        s = p.new()
        begun = p.session("exec", "--detach", s, "sh", "-c", WRITER)
        call = begun.out.strip()
        wait_for(lambda: os.path.exists(f"{p.dir(s)}/upper/b"), 5)
        for verb in ("apply", "discard"):
            done = p.run([SANDGLASS, verb, s])
            tap.ok(done.status == 2 and code(done) == "BUSY" and f"session stop {s[:8]} {call[:8]}" in done.err and
                   not os.path.exists(f"{p.src}/a"), f"{verb} while a call runs: BUSY, which one, and what ends it, {who.name}", begun, done)
        done = p.run([SANDGLASS, "diff", s])
        freezer = any(s in name for _, names, _ in os.walk("/sys/fs/cgroup") for name in names)
        still = done.status == 0 and done.out.count("\n+") >= 2
        tap.ok(still if freezer else code(done) == "BUSY" and call[:8] in done.err,
               f"diff while a call writes: it stands still (freezer: {freezer}), or BUSY, {who.name}", done)
        if freezer:
            first = os.stat(f"{p.dir(s)}/upper/a").st_ctime_ns
            tap.ok(wait_for(lambda: os.stat(f"{p.dir(s)}/upper/a").st_ctime_ns != first, 5),
                   f"afterwards it goes on, {who.name}")
        p.session("stop", s, call)
        wait_for(lambda: p.run([SANDGLASS, "diff", "--stat", s]).status == 0 and not p.show(s).get("calls"), 8)
        done = p.run([SANDGLASS, "diff", s])
        applied = p.run([SANDGLASS, "apply", s])
        tap.ok(done.status == 0 and applied.status == 0 and os.path.exists(f"{p.src}/a"),
               f"control: with the call ended both work, {who.name}", done, applied)
    finally:
        p.close()


def together(who):
    """An apply that takes its time: nobody else is let at the session, and a call waits for its end."""
    p = Sessions(who)
    try:
        s = p.new()
        p.exec(s, "echo one >a; echo two >b")
        for kept in (True, False):
            if not kept:
                for pid in p.named("sandglass-keep"):
                    os.kill(pid, 9)
                wait_for(lambda: not p.living(), 5)
            began = time.monotonic()
            slow = p.start(["strace", "-qq", "-o", "/dev/null", "-e", "trace=write", "-e",
                            "inject=write:delay_enter=5000000:when=1", beside("sandglass-main"), "apply", s])
            wait_for(lambda: os.path.isdir(f"{p.dir(s)}/journal") and os.path.exists(f"{p.dir(s)}/journal/plan.new"), 5)
            others = [p.start([SANDGLASS, verb, s], text=True) for verb in ("apply", "discard", "diff", "export")]
            call = p.start([SANDGLASS, "session", "exec", s, "cat", "a"], text=True) if kept else None
            said = [(other.communicate(timeout=30)[1], other.returncode) for other in others]
            tap.ok(all(status == 2 and "BUSY" in err for err, status in said) and slow.poll() is None,
                   f"apply, discard, diff and export while an apply is at work: BUSY (keeper: {kept}), {who.name}", *said)
            if call:
                out, err = call.communicate(timeout=30)
                took = time.monotonic() - began
                tap.ok(call.returncode == 0 and out == "one\n" and took > 4.5 and os.path.exists(f"{p.src}/a"),
                       f"a call waits for the end of it, {who.name}", call.returncode, out, err, took)
                p.exec(s, "echo three >a")
            tap.ok(slow.wait(30) == 0 and subprocess.run(["cat", f"{p.src}/a"], capture_output=True, check=False).stdout ==
                   (b"one\n" if kept else b"three\n"), f"which it comes to (keeper: {kept}), {who.name}", slow.stderr.read())
        done = p.exec(s, "echo four >a")
        tap.ok(done.status == 0, f"control: calls begin again afterwards, {who.name}", done)
    finally:
        p.close()


def unclean(who):
    """A session of another boot: its layers were never on the disk for sure, and everybody says so."""
    p = Sessions(who)
    try:
        s = p.new()
        p.exec(s, "echo one >a")
        said = [p.run([SANDGLASS, "diff", "--json", s]), p.run([SANDGLASS, "diff", s])]
        tap.ok(not json.loads(said[0].out)["changes"]["unclean"] and "unclean" not in said[1].out, f"control: it is not said of another one, {who.name}", *said)
        for pid in p.named("sandglass-keep"):
            os.kill(pid, 9)
        wait_for(lambda: not p.living(), 5)
        with open(f"{p.dir(s)}/state", encoding="ascii") as handle:
            words = handle.read().split()
        with open(f"{p.dir(s)}/state", "w", encoding="ascii") as handle:
            handle.write(" ".join([*words[:-1], "00000000-0000-4000-8000-000000000000"]) + "\n")
        said = {verb: p.run([SANDGLASS, *verb.split(), s]) for verb in ("diff", "diff --stat", "diff --json", "export", "export --json", "apply --json")}
        tap.ok(said["diff"].out.startswith("# unclean: ") and said["diff --stat"].out.startswith("# unclean: ") and "unclean: " in said["export"].err and
               json.loads(said["diff --json"].out)["changes"]["unclean"] and json.loads(said["export --json"].out)["unclean"] and
               json.loads(said["apply --json"].out)["unclean"], f"unclean is said by diff, export and apply, {who.name}", *said.values())
        with open(f"{p.state}/artifacts/{s}/summary.md", encoding="utf-8") as handle:
            tap.ok("unclean" in handle.read(), f"and stands in the summary, {who.name}")
    finally:
        p.close()


def main():
    for who in identities_once():
        for part in (running, together, unclean):
            tap.attempt(f"{who.name}: {part.__name__}", part, who)
    return tap.done()


sys.exit(main())
