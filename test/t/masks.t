#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Masks in direct mode: a person saves `.env` while a call reads it, and a call that tries to get
at a masked file by every other way.

A save by rename drops the mask in every namespace; how often a reader that does nothing else saw
the new content, and for how long, is measured from inside and printed. The control of each is a
bare program, which reads it all the time. Then what usual programs do with an empty `.env`, and git
with a tracked one.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import SANITIZED, Place, identities_once, wait_for  # noqa: E402

SAVES = 200 if SANITIZED else 1000

# Reads a file over and over until told to stop; prints when it saw a value, and for how long.
READER = r"""
import json, os, sys, time
name, stop, mark = sys.argv[1], sys.argv[2], sys.argv[3].encode()
windows, since, last, reads, seen = [], None, None, 0, 0
open(stop + ".ready", "w").close()
while not os.path.lexists(stop):
    reads += 1
    try:
        fd = os.open(name, os.O_RDONLY)
        text = os.read(fd, 200)
        os.close(fd)
    except OSError:
        text = b""
    now = time.monotonic()
    if mark in text:
        since = now if since is None else since
        seen += 1
    elif since is not None:
        windows.append(now - since)
        since = None
print("read " + json.dumps({"windows": windows, "reads": reads, "seen": seen,
                            "still": since is not None}), flush=True)
"""

# Every other way to a file that is masked, from inside.
WAYS = r"""
import ctypes, errno, os, shutil, struct, sys
path = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
def show(how, text):
    print("got", how, repr(text), flush=True)
def attempt(how, function):
    try:
        show(how, function())
    except OSError as e:
        print("no", how, errno.errorcode.get(e.errno, e.errno), flush=True)
def read(p):
    with open(p, "rb") as f:
        return f.read(200)
top, name = os.path.split(path)
def after(change, then):
    def both():
        change()
        return read(then)
    return both
attempt("open", lambda: read(path))
attempt("path-fd", lambda: read("/proc/self/fd/%d" % os.open(path, os.O_PATH)))
attempt("root", lambda: read("/proc/self/root" + os.path.abspath(path)))
attempt("cwd", lambda: read("/proc/self/cwd/" + path))
attempt("init-root", lambda: read("/proc/1/root" + os.path.abspath(path)))
attempt("dir-fd", lambda: os.read(os.open(name, os.O_RDONLY, dir_fd=os.open(top, os.O_RDONLY)), 200))
attempt("hard-link", after(lambda: os.link(path, "link1"), "link1"))
attempt("rename", after(lambda: os.rename(path, "name1"), "name1"))
attempt("copy", after(lambda: shutil.copyfile(path, "copy1"), "copy1"))
attempt("symlink", after(lambda: os.symlink(path, "sym1"), "sym1"))
attempt("over", after(lambda: (open("own", "w").close(), os.rename("own", path)), path))
attempt("unlink", after(lambda: os.unlink(path), path))
attempt("tree", lambda: shutil.copytree(top, "tree1") and read("tree1/" + name))
def handle():
    buf = ctypes.create_string_buffer(struct.pack("II", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    if libc.name_to_handle_at(-100, top.encode(), buf, ctypes.byref(mount), 0) < 0:
        raise OSError(ctypes.get_errno(), "name_to_handle_at")
    fd = libc.open_by_handle_at(os.open(".", os.O_RDONLY), buf, os.O_RDONLY)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "open_by_handle_at")
    return os.read(os.open(name, os.O_RDONLY, dir_fd=fd), 200)
attempt("handle", handle)
def call(what, *args):
    if getattr(libc, what)(*args) < 0:
        raise OSError(ctypes.get_errno(), what)
attempt("umount", after(lambda: call("umount2", path.encode(), 2), path))
attempt("mount-over", after(lambda: call("mount", top.encode(), b"home-made", None, 4096, None), path))
def unshared():
    call("unshare", 0x10020000)
    call("umount2", path.encode(), 2)
attempt("namespace", after(unshared, path))
def open_tree():
    fd = libc.syscall(428, -100, top.encode(), 1)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "open_tree")
    return os.read(os.open(name, os.O_RDONLY, dir_fd=fd), 200)
attempt("open_tree", open_tree)
attempt("exchange", after(lambda: (open("own2", "w").close(),
        call("renameat2", -100, b"own2", -100, path.encode(), 2)), "own2"))
attempt("parent", after(lambda: os.rename(top, "moved"), "moved/" + name))
attempt("parent-again", after(lambda: (os.mkdir("deep"), os.rename("moved", "deep/er")),
                              "deep/er/" + name))
"""


def write(place, path, text):
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(text)
    return place.own(path)


def saved(place, path, text):
    folder, name = os.path.split(path)
    os.rename(write(place, f"{folder}/.{name}.tmp", text), path)


def read_while_saved(place, inside, pause=0.003):
    """A reader, a thousand saves by rename, one after each pause (seconds), and what it saw."""
    stop = f"{place.src}/stop"
    for name in (stop, stop + ".ready"):
        if os.path.exists(name):
            os.unlink(name)
    env = f"{place.src}/.env"
    write(place, env, "")
    argv = (place.inside("--json") if inside else []) + ["python3", "-c", READER, ".env", stop,
                                                         place.canary]
    process = place.start(argv)
    wait_for(lambda: os.path.exists(stop + ".ready") or process.poll() is not None, 20, 0.002)
    for i in range(SAVES):
        saved(place, env, f"{place.canary} {i}\n")
        time.sleep(pause)
    last = time.monotonic()
    time.sleep(0.5)
    write(place, stop, "")
    out, err = process.communicate(timeout=60)
    out = out.decode("utf-8", "replace")
    result = json.loads(out) if inside else {}
    said = result["stdout"]["text"] if inside else out
    line = [w for w in said.split("\n") if w.startswith("read ")]
    seen = json.loads(line[0][5:]) if line else {}
    return result, seen, err.decode("utf-8", "replace"), last


def saves(who):
    place = Place(who)
    result, seen, err, _ = read_while_saved(place, True)
    gaps = seen.get("windows") or [0]
    if seen.get("seen", 0) >= seen.get("reads", 0) / 2:
        # A gap is longer here than the time between two saves: then four of them lie between.
        result, seen, err, _ = read_while_saved(place, True,
                                                min(4 * statistics.median(gaps), 0.1))
    windows = sorted(w * 1000 for w in seen.get("windows", []))
    flagged = (result.get("changes") or {}).get("flagged") or []
    why = (result, seen, err[-800:])
    if windows:
        tap.note(f"{who.name}: {SAVES} saves by rename, {seen['reads']} reads: the value was seen in "
                 f"{len(windows)} gaps, median {statistics.median(windows):.2f} ms, longest "
                 f"{windows[-1]:.2f} ms")
    else:
        tap.note(f"{who.name}: {SAVES} saves by rename, {seen.get('reads')} reads: no value was seen")
    tap.ok(seen.get("reads", 0) > SAVES and seen.get("seen") < seen["reads"] / 2,
           f"{who.name}: saved by rename {SAVES} times, the value is seen only in gaps", *why)
    tap.ok(seen.get("still") is False, f"{who.name}: after the last save it is masked", *why)
    tap.ok(len(windows) <= SAVES and (not windows or statistics.median(windows) < 100),
           f"{who.name}: a gap is a matter of milliseconds", *why)
    again = [f for f in flagged if f["path"] == ".env" and f["action"] == "mask.reapplied"]
    tap.ok(len(again) == 1 and str(SAVES)[:1] and "times" in again[0]["reason"],
           f"{who.name}: the result says that it was masked again", *why)
    inside = place.run(place.inside() + ["cat", ".env"])
    tap.ok(inside.status == 0 and place.canary not in inside.out,
           f"{who.name}: it is masked in the next call", inside)
    _, bare, _, _ = read_while_saved(place, False)
    tap.ok(bare.get("seen", 0) > bare.get("reads", 1) / 2,
           f"{who.name}: a bare program reads it all the time", bare)
    place.close()


def ways(who):
    place = Place(who)
    place.run(["sh", "-c", "mkdir -p cfg/sub sec && cp -r cfg c2"])
    for name in ("cfg/sub/.env", "sec/id_rsa", "c2/sub/.env"):
        write(place, f"{place.src}/{name}", place.canary)
    for name in ("cfg/sub/.env", "sec/id_rsa"):
        done = place.run(place.inside() + ["python3", "-c", WAYS, name])
        tap.ok(done.out.count("\n") >= 20 and place.canary not in done.out,
               f"{who.name}: {name} shows nothing by any other way", done)
    done = place.run(["grep", "-rl", place.canary, place.src])
    tap.ok(sorted(os.path.basename(p) for p in done.out.split()) == [".env", ".env", "id_rsa"],
           f"{who.name}: no copy of it is anywhere", done)
    done = place.run(place.inside() + ["grep", "-rs", place.canary, "."])
    tap.ok(place.canary not in done.out, f"{who.name}: nor is it seen in the next call", done)
    bare = place.run(["python3", "-c", WAYS, "c2/sub/.env"])
    tap.ok(bare.out.count(place.canary) >= 6, f"{who.name}: a bare program gets it", bare)
    place.close()


def gone(who):
    """What the host does to masked things otherwise."""
    place = Place(who)
    place.run(["sh", "-c", "mkdir -p cfg dir"])
    write(place, f"{place.src}/cfg/.env", place.canary)
    write(place, f"{place.src}/dir/x", place.canary)
    talk = place.start(place.inside("--hide", "dir") +
                       ["sh", "-c", "echo go; read x; cat cfg/.env dir/x; read x; cat cfg/.env dir/x; "
                        "ls dir; echo end"], stdin=subprocess.PIPE)
    talk.stdout.readline()
    shutil.rmtree(f"{place.src}/cfg")
    shutil.rmtree(f"{place.src}/dir")
    talk.stdin.write(b"\n")
    talk.stdin.flush()
    time.sleep(0.3)
    for name, leaf in (("cfg", ".env"), ("dir", "x")):
        os.mkdir(f"{place.src}/{name}.new")
        place.own(f"{place.src}/{name}.new")
        write(place, f"{place.src}/{name}.new/{leaf}", place.canary)
        os.rename(f"{place.src}/{name}.new", f"{place.src}/{name}")
    time.sleep(0.5)
    out, err = talk.communicate(b"\n", timeout=30)
    out, err = out.decode(), err.decode()
    tap.ok("end" in out and place.canary not in out and "Permission denied" in err,
           f"{who.name}: directories that the host removes and puts again are masked again", out, err)
    place.close()


def programs(who):
    """Programs that load a `.env` go on without it, and have it with --read."""
    place = Place(who)
    write(place, f"{place.src}/.env", f"SECRET={place.canary}\nOTHER=1\n")
    tries = {"sh": ["sh", "-c", 'set -a; . ./.env; echo "end ${SECRET:-none}"']}
    if shutil.which("node"):
        tries["node --env-file"] = ["node", "--env-file=.env", "-e",
                                    'console.log("end", process.env.SECRET || "none")']
        tries["a dotenv reader in node"] = [
            "node", "-e", 'const t = require("fs").readFileSync(".env", "utf8"); '
            'for (const l of t.split("\\n")) { const [k, v] = l.split("="); if (k) process.env[k] = v }'
            'console.log("end", process.env.SECRET || "none")']
    for name, argv in tries.items():
        masked, shown = place.run(place.inside() + argv), \
            place.run(place.inside("--read", ".env") + argv)
        tap.ok(masked.status == 0 and "end none" in masked.out and place.canary not in masked.out,
               f"{who.name}: {name} goes on without the value", masked)
        tap.ok(shown.status == 0 and f"end {place.canary}" in shown.out,
               f"{who.name}: {name} has it with --read .env", shown)
    place.close()


def git(who):
    """A tracked one is there as it is, and git works with it."""
    place = Place(who)
    write(place, f"{place.home}/.gitconfig", "[user]\n\tname = P\n\temail = p@example.com\n")
    write(place, f"{place.src}/.env", "A=1\n")
    place.run(["sh", "-c", "git init -q -b main . && git add .env && git commit -qm 1"])
    script = """set -e
test "$(cat .env)" = A=1
echo A=2 > .env; git diff --exit-code .env && exit 3
git commit -qam 2; git checkout -q HEAD~1 -- .env; test "$(cat .env)" = A=1
git reset -q --hard; git stash list; git switch -q -c b; git rm -q .env; git commit -qm 3
git switch -q main; test "$(cat .env)" = A=2; mv .env x; mv x .env
test -z "$(git status --porcelain .env)"; git worktree add -q ../src/w main~1
test "$(cat w/.env)" = A=1
echo end"""
    done = place.run(place.inside() + ["sh", "-c", script])
    tap.ok(done.status == 0 and "end" in done.out, f"{who.name}: a tracked .env breaks no git command",
           done)
    done = place.run(place.inside("--json") + ["true"])
    tap.ok(json.loads(done.out)["sandbox"]["masked"] == [], f"{who.name}: and is not masked", done)
    place.close()


def main():
    for who in identities_once():
        for part in (saves, ways, gone, programs, git):
            tap.attempt(part.__name__, part, who)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
