#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""export: what is kept of a session, and that nothing of a hostile one comes along with it."""

import json
import os
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import shim  # pylint: disable=wrong-import-position
import tap  # pylint: disable=wrong-import-position
from handmade import Session, git  # pylint: disable=wrong-import-position
from place import Place, SANDGLASS, beside, identities_once  # pylint: disable=wrong-import-position


def world(who, **more):
    place = Place(who)
    os.unlink(f"{place.src}/probe")
    place.write(f"{place.home}/.gitconfig", "[user]\n\tname = P\n\temail = p@x")
    git(place, "init", "-q", "-b", "main")
    place.write(f"{place.src}/a.txt", "one", 0o644)
    place.write(f"{place.src}/junit-old.xml", "old", 0o644)
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "first")
    return place, Session(place, head=git(place, "rev-parse", "HEAD"), branch="main", **more)


def export(place, *words):
    return place.run([SANDGLASS, "export", *words])


def files(top):
    found = {}
    for at, _, names in os.walk(os.fsencode(top)):
        for name in names:
            path = os.path.join(at, name)
            found[os.path.relpath(path, os.fsencode(top))] = os.lstat(path)
    return found


def read(path):
    with open(path, "rb") as f:
        return f.read()


def sums_agree(place, top):
    return place.run(["sha256sum", "--quiet", "-c", "MANIFEST.sha256"], cwd=top)


RESULT = ('{"version":1,"session":"s","call":"c","tool":null,"argv":["make","`x`\\n# y"],'
          '"agent_root":"/sand","ok":false,"exit":{"status":2,"code":2,"signal":null},'
          '"error":{"code":"X"}}\n')
CALL = "44444444-4444-4444-8444-444444444444"
OTHER = "55555555-5555-4555-8555-555555555555"


def works(who):
    name = who.name
    place, s = world(who, name="<b>`n`</b>")
    s.put("a.txt", "one and more\n")
    s.put("sub/junit-1.xml", "<new/>\n")
    s.put("coverage/deep/er/index.html", "<p/>\n")
    s.put("coverage/odd\nname\\.txt", "odd\n")
    s.put("notcoverage/x", "no\n")
    s.log(f"{CALL}.out", "said\n")
    place.write(f"{s.dir}/results/{CALL}.json", RESULT.rstrip("\n"))
    done = export(place)
    top = f"{place.state}/artifacts/{s.id}"
    tap.ok(done.status == 0 and done.out == top + "\n" and s.id in done.err,
           f"{name}: the session of this source is written to artifacts", done)
    have = set(files(top))
    want = {b"diff.patch", b"summary.md", b"MANIFEST.sha256", b"audit-head",
            f"results/{CALL}.json".encode(), f"logs/{CALL}.out".encode(),
            b"files/sub/junit-1.xml", b"files/coverage/deep/er/index.html",
            b"files/coverage/odd\nname\\.txt"}
    tap.ok(have == want, f"{name}: diff, results, logs, reports, summary, checksums",
           have ^ want)
    sums = sums_agree(place, top)
    tap.ok(sums.status == 0, f"{name}: sha256sum -c accepts the manifest", sums)
    lines = read(f"{top}/MANIFEST.sha256").count(b"\n")
    tap.ok(lines == len(want) - 2, f"{name}: which has each file but itself and the heads", lines)
    place.write(f"{top}/logs/{CALL}.out", "other")
    tap.ok(sums_agree(place, top).status != 0, f"{name}: control: not one that was changed")
    os.mkdir(f"{place.out}/check")
    place.own(f"{place.out}/check")
    git(place, "clone", "-q", place.src, f"{place.out}/check")
    git(place, "apply", f"{top}/diff.patch", cwd=f"{place.out}/check")
    tap.ok(read(f"{place.out}/check/a.txt") == b"one and more\n",
           f"{name}: git apply takes the diff")
    summary = read(f"{top}/summary.md").decode()
    for what, text in (("the id", s.id), ("the source", place.src), ("what ran", '["make"'),
                       ("how it ended", '"status":2'), ("what changed", "a.txt")):
        tap.ok(text in summary, f"{name}: the summary has {what}", summary)
    loose = [line for line in summary.split("\n") if line and not line.startswith("    ") and
             any(c in line for c in "<>[*_\x1b")]
    tap.ok(not loose and "\n# y" not in summary,
           f"{name}: foreign text in it is in code blocks only", loose)
    modes = {stat.S_IMODE(st.st_mode) for st in files(top).values()}
    tap.ok(modes == {0o600} and stat.S_IMODE(os.stat(top).st_mode) == 0o700,
           f"{name}: files are their owner's alone", modes)
    before = read(f"{top}/audit-head")
    s.put("b.txt", "b\n")
    done = export(place, "--json", s.id[:8])
    doc = json.loads(done.out) if done.out.startswith("{") else {}
    tap.ok(done.status == 0 and doc.get("path") == top and doc.get("changes", 0) >= 5 and
           b"b.txt" in read(f"{top}/diff.patch"), f"{name}: again, the new one takes its place",
           done)
    tap.ok(read(f"{top}/audit-head").startswith(before), f"{name}: and the heads stay")
    tap.ok(os.listdir(f"{place.state}/artifacts") == [s.id], f"{name}: nothing is left beside it",
           os.listdir(f"{place.state}/artifacts"))


def output(who):
    name = who.name
    place, s = world(who)
    s.put("a.txt", "two\n")
    done = export(place, "--output", f"{place.out}/new", s.id)
    tap.ok(done.status == 0 and sums_agree(place, f"{place.out}/new").status == 0,
           f"{name}: --output makes a directory", done)
    done = export(place, "--output", f"{place.out}/new", s.id)
    tap.ok(done.status == 2 and "not empty" in done.err, f"{name}: and wants it empty", done)
    done = export(place, s.id, s.id)
    tap.ok(done.status == 2 and "CONFIG_INVALID" in done.err, f"{name}: one session at a time",
           done)
    done = export(place, "no-such")
    tap.ok(done.status == 2 and "NOT_FOUND" in done.err, f"{name}: which has to be there", done)


def policy(who):
    name = who.name
    place, s = world(who)
    s.put("report/x.html", "x\n")
    s.put("coverage/x", "x\n")
    os.makedirs(f"{place.src}/.sandglass", exist_ok=True)
    place.own(f"{place.src}/.sandglass")
    place.write(f"{place.src}/.sandglass/policy.yaml", 'version: 1\nartifacts: ["report/**"]',
                0o644)
    top = f"{place.state}/artifacts/{s.id}"
    export(place, s.id)
    have = {f for f in files(top) if f.startswith(b"files/")}
    tap.ok(have == {b"files/coverage/x"}, f"{name}: an untrusted file names no artifacts", have)
    place.run([SANDGLASS, "policy", "trust", f"{place.src}/.sandglass/policy.yaml"])
    export(place, s.id)
    have = {f for f in files(top) if f.startswith(b"files/")}
    tap.ok(have == {b"files/report/x.html"}, f"{name}: a trusted one does", have)


def hostile(who):
    name = who.name
    place, s = world(who)
    secret = place.write(f"{place.top}/secret", None)
    s.link("junit-link.xml", secret)
    s.put("junit-setid.xml", "#!/bin/sh\n", 0o6755)
    s.put("coverage/\x1b[31m\u202e.txt", "x\n")
    os.link(f"{s.layer}/junit-setid.xml", f"{s.layer}/junit-hard.xml")
    s.dirs("junit-fifo.xml/x")
    os.rmdir(f"{s.layer}/junit-fifo.xml")
    os.mkfifo(f"{s.layer}/junit-fifo.xml")
    big = f"{s.layer}/junit-big.xml"
    with open(big, "wb") as f:
        f.truncate((256 << 20) + 1)
    os.setxattr(f"{s.layer}/junit-setid.xml", "user.mark", b"x")
    for path in (big, f"{s.layer}/junit-fifo.xml"):
        os.chown(path, s.uid, s.uid)
    os.chmod(f"{s.layer}/junit-setid.xml", 0o6755)
    logs = f"{s.dir}/root/logs"
    os.symlink(secret, f"{logs}/{CALL}.out")
    os.mkfifo(f"{logs}/{CALL}.err")
    os.symlink("/dev/zero", f"{logs}/zero")
    os.mkdir(f"{logs}/dir")
    s.log(f"{OTHER}.out", "\x1b]0;x\x07\n")
    s.log(".git", f"gitdir: {s.dir}/root/home/evil.git\n")  # what git would look for there
    s.log("HEAD", "ref: refs/heads/main\n")
    done = export(place, s.id)
    top = f"{place.state}/artifacts/{s.id}"
    tap.ok(done.status == 0 and done.seconds < 50, f"{name}: a hostile session is exported", done)
    have = files(top)
    tap.ok(b"logs/" + OTHER.encode() + b".out" in have and b"files/junit-setid.xml" in have and
           b"files/junit-hard.xml" in have, f"{name}: control: with what is good of it",
           set(have))
    odd = [p for p, st in have.items() if not stat.S_ISREG(st.st_mode) or st.st_mode & 0o7177 or
           st.st_nlink != 1]
    tap.ok(not odd, f"{name}: only regular files, without set-id bits, links of nothing", odd)
    leaked = [p for p in have if place.canary.encode() in read(os.path.join(os.fsencode(top), p))]
    tap.ok(not leaked, f"{name}: nothing that a link leads to", leaked)
    tap.ok(b"files/junit-big.xml" not in have and b"files/junit-link.xml" not in have and
           b"logs/" + CALL.encode() + b".out" not in have, f"{name}: no link, nothing too large",
           set(have))
    tap.ok({p for p in have if p.startswith(b"logs/")} == {b"logs/" + OTHER.encode() + b".out"},
           f"{name}: of logs only what has the name of a call", set(have))
    tap.ok(not os.listxattr(f"{top}/files/junit-setid.xml"), f"{name}: no extended attributes")
    summary = read(f"{top}/summary.md").decode()
    tap.ok("junit-big.xml: too large" in summary and "Left out: " in summary,
           f"{name}: the summary says what was left out", summary)
    tap.ok("\x1b" not in summary and "\u202e" not in summary,
           f"{name}: and is safe on a terminal")
    tap.ok(sums_agree(place, top).status == 0, f"{name}: the manifest holds")
    for at in (f"{s.dir}/root/logs",):
        subprocess.run(["rm", "-rf", at], check=True)
        os.symlink(place.top, at)
    done = export(place, s.id)
    tap.ok(done.status == 0 and not any(p.startswith(b"logs/") for p in files(top)),
           f"{name}: logs that are a link now are not followed", done, files(top))


def at_end(who):
    name = who.name
    place, s = world(who)
    top = f"{place.state}/artifacts/{s.id}"
    done = export(place, "--at-end", s.id)
    tap.ok(done.status == 0 and not os.path.exists(top) and done.out == "",
           f"{name}: at the end nothing is kept where nothing is held", done)
    s.put("a.txt", "two\n")
    done = export(place, "--at-end", s.id)
    tap.ok(done.status == 0 and b"two" in read(f"{top}/diff.patch"),
           f"{name}: what was not reviewed is", done)
    s.applies("a.txt", "two\n")
    subprocess.run(["rm", "-rf", top], check=True)
    done = export(place, "--at-end", s.id)
    tap.ok(done.status == 0 and not os.path.exists(top), f"{name}: what was applied is not", done)
    place.write(f"{place.src}/b.txt", "b", 0o644)
    s.put("c.txt", "c\n")
    os.makedirs(f"{place.home}/.config/sandglass")
    for path in (f"{place.home}/.config", f"{place.home}/.config/sandglass"):
        place.own(path)
    place.write(f"{place.home}/.config/sandglass/policy.yaml", "version: 9")
    done = export(place, s.id)
    tap.ok(done.status == 2, f"{name}: a broken policy file stops an export", done)


def direct(who):
    name = who.name
    place, s = world(who, writes=0)
    s.log(f"{OTHER}.out", "said\n")
    done = export(place, s.id)
    top = f"{place.state}/artifacts/{s.id}"
    tap.ok(done.status == 0 and set(files(top)) == {b"logs/" + OTHER.encode() + b".out", b"summary.md", b"audit-head",
                                                    b"MANIFEST.sha256"},
           f"{name}: a session that wrote at once has no diff", done)


def killed(who):
    """At each moment the name has a complete export, and what is left beside it is swept."""
    name = who.name
    place, s = world(who)
    s.put("a.txt", "one and more\n")
    top = f"{place.state}/artifacts/{s.id}"
    export(place, s.id)
    before = read(f"{top}/diff.patch")
    s.put("a.txt", "two\n")
    log = f"{place.out}/log"
    place.run(["strace", "-qq", "-o", log, "-e", "trace=unlinkat,renameat2", beside("sandglass-main"), "export", s.id])
    with open(log, encoding="utf-8", errors="replace") as lines:
        calls = [line.split("(")[0] for line in lines if "(" in line]
    removes = calls[:calls.index("renameat2")].count("unlinkat") + 1  # the first of the old one
    s.put("a.txt", "2nd\n")
    for call, number, want in (("unlinkat", removes, b"2nd"), ("renameat2", 1, b"2nd")):
        done = place.run(["strace", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                          f"inject={call}:signal=KILL:when={number}", beside("sandglass-main"), "export", s.id])
        whole = sums_agree(place, top)
        there = sorted(n for n in os.listdir(f"{place.state}/artifacts") if n != s.id)
        tap.ok(done.status in (-9, 137) and whole.status == 0 and there == [f".{s.id}.new"] and
               want in read(f"{top}/diff.patch"), f"{name}: killed before {call}: old or new, complete",
               done, whole, there, before)
        s.put("a.txt", "three\n")
    swept = place.run([SANDGLASS, "gc"])
    left = set(os.listdir(f"{place.state}/artifacts")) - {"audit-head"}
    tap.ok(left == {s.id}, f"{name}: gc sweeps what it left", swept, left)


def main():
    shim.without_sync()
    tests = (works, output, policy, hostile, at_end, killed, direct)
    wanted = sys.argv[1:]
    for who in identities_once():
        for test in tests:
            if not wanted or test.__name__ in wanted:
                tap.attempt(f"{who.name}: {test.__name__}", test, who)
    return tap.done()


sys.exit(main())
