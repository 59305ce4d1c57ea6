#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A person edits protected files while a call runs.

Whatever an editor does (a new file renamed over the old one, in place, removed
and made again, a backup), what the person wrote is there afterwards byte for
byte, or comes back with the command that was printed. A file that was replaced
is read-only inside again; how long that took is measured from inside and
printed. The control of each is a bare program in the place of the sandbox,
which can write all the time.
"""

import json
import os
import re
import signal
import statistics
import sys
import textwrap
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import Place, identities_once, wait_for  # noqa: E402

EDITS = 30

# Opens a file for writing over and over until told to stop; prints for how long it could.
WATCH = r"""
import errno, json, os, sys, time
name, stop = sys.argv[1], sys.argv[2]
windows, since, opened, refused, longest = [], None, 0, 0, 0
open(stop + ".ready", "w").close()
while not os.path.lexists(stop):
    now = time.monotonic()
    try:
        os.close(os.open(name, os.O_WRONLY | os.O_APPEND))
        opened += 1
        since = now if since is None else since
    except OSError as e:
        refused += e.errno == errno.EROFS
        if since is not None:
            windows.append(now - since)
            since = None
    time.sleep(0.0001)
print("watched " + json.dumps({"windows": windows, "opened": opened, "refused": refused,
                               "still": since is not None}), flush=True)
"""


class Talk:
    """A call that runs until it is told to stop, and what came of it."""

    def __init__(self, place, script, inside, options=("--json",)):
        self.place, self.stop = place, f"{place.src}/stop"
        self.process = place.start((place.inside(*options) if inside else []) +
                                   ["sh", "-c", textwrap.dedent(script)])

    def ready(self):
        return wait_for(lambda: os.path.exists(self.stop + ".ready") or
                        self.process.poll() is not None, 20, 0.002)

    def end(self):
        self.place.write(self.stop, "", 0o644)
        out, self.err = self.process.communicate(timeout=60)
        self.out = out.decode("utf-8", "surrogateescape")
        try:
            self.result = json.loads(self.out)
        except ValueError:
            self.result = {}
        said = (self.result.get("stdout") or {}).get("text") or self.out
        line = [w for w in said.split("\n") if w.startswith("watched ")]
        self.watched = json.loads(line[0][8:]) if line else {}
        self.said = said
        return self

    def flagged(self):
        return (self.result.get("changes") or {}).get("flagged") or []

    def __str__(self):
        return f"status {self.process.returncode}\n{self.said[:500]}\n" \
            f"{self.err.decode('utf-8', 'replace')[:1500]}\nflagged {self.flagged()[:8]}"


def prepared(who):
    place = Place(who)
    put(place, f"{place.home}/.gitconfig", b"[user]\n\tname = P\n\temail = p@example.com\n")
    put(place, f"{place.src}/watch", WATCH.encode())
    for name, text in ((".npmrc", b"a=1\n"), (".envrc", b"export A=1\n"), (".mcp.json", b"{}\n")):
        put(place, f"{place.src}/{name}", text)
    place.run(["sh", "-c", "git init -q . && git commit -q --allow-empty -m x && mkdir .vscode && "
               "echo 1 >.vscode/tasks.json"])
    return place


def put(place, path, content):
    with open(path, "wb") as handle:
        handle.write(content)
    place.own(path)


def get(path):
    try:
        with open(path, "rb") as handle:
            return handle.read()
    except OSError:
        return None


def saved_by_rename(place, path, content):
    folder, name = os.path.split(path)
    put(place, f"{folder}/.{name}.tmp", content)
    os.rename(f"{folder}/.{name}.tmp", path)


def saved_in_place(place, path, content):
    put(place, path, content)


def made_again(place, path, content):
    os.unlink(path)
    time.sleep(0.02)
    put(place, path, content)


def with_backup(place, path, content):
    os.rename(path, path + "~")
    put(place, path, content)
    os.unlink(path + "~")


def comes_back(place, talk, name, content):
    """It is there, or the command that was printed brings it. Any content if none is given."""
    path = f"{place.src}/{name}"

    def back():
        return get(path) == content if content is not None else get(path) is not None
    if back():
        return True, "there"
    tops = [f for f in talk.flagged() if f.get("restore") and
            (name == f["path"] or name.startswith(f["path"] + "/"))]
    for entry in reversed(tops):
        done = place.run(["sh", "-c", entry["restore"]], cwd="/")
        if back():
            return True, "brought back"
        if done.status != 0:
            return False, f"{entry['restore']}: {done}"
    return False, f"now {get(path)}, flagged {tops}"


def measured(title, who, watched):
    windows = [w * 1000 for w in watched.get("windows", [])]
    if windows:
        tap.note(f"{title}, {who.name}: writable again {len(windows)} times, ms median "
                 f"{statistics.median(windows):.2f} max {max(windows):.2f}")
    else:
        tap.note(f"{title}, {who.name}: never seen writable")


# What an editor does with a file that was there: name, how, whether the name is a mount of its own.
SAVES = [
    (".git/config", saved_by_rename, True),
    (".git/config", with_backup, True),
    (".npmrc", saved_by_rename, True),
    (".npmrc", saved_in_place, False),
    (".envrc", made_again, True),
    (".mcp.json", with_backup, True),
    (".vscode/tasks.json", with_backup, False),
    (".vscode/tasks.json", saved_by_rename, False),
]


def saves(who, name, how, replaced):
    title = f"{name} {how.__name__.replace('_', ' ')}"
    bare = None
    for inside in (False, True):
        place = prepared(who)
        try:
            first = get(f"{place.src}/{name}")
            talk = Talk(place, f"exec python3 watch {name} stop", inside)
            ready = talk.ready()
            content = b""
            for number in range(EDITS):
                content = first + b"# edit %d of the person, \xe2\x82\xac\n" % number
                how(place, f"{place.src}/{name}", content)
                time.sleep(0.01)
            time.sleep(0.3)
            talk.end()
            if not inside:
                bare = talk.watched
                continue
            watched = talk.watched
            kept, why = comes_back(place, talk, name, content)
            told = any(f["path"] == name and f["level"] == "high" for f in talk.flagged())
            measured(title, who, watched)
            tap.ok(ready and bare.get("opened", 0) > 0 and kept and talk.process.returncode == 0,
                   f"what the person wrote is kept: {title}, {who.name}", f"control {bare}", why, talk)
            tap.ok(watched.get("refused", 0) > 0 and not watched.get("still", True),
                   f"read-only again: {title}, {who.name}", watched, talk)
            if replaced:
                tap.ok(told, f"reported: {title}, {who.name}", talk)
        finally:
            place.close()


def made(who):
    """Things that a person makes during a call."""
    def idea(place):
        place.run(["sh", "-c", "mkdir .idea && echo 1 >.idea/a.xml && mkdir .idea/b && "
                   "printf '\\001\\002' >.idea/b/c"])
        return {".idea/a.xml": b"1\n", ".idea/b/c": b"\x01\x02"}

    def nested(place):
        place.run(["sh", "-c", "mkdir -p 'a b' && echo 2 >'a b/.envrc'"])
        return {"a b/.envrc": b"2\n"}

    def directory(place):
        place.run(["sh", "-c", "mkdir v && echo 3 >v/tasks.json && mv .vscode .vscode.old && "
                   "mv v .vscode"])
        return {".vscode/tasks.json": b"3\n"}

    def hook(place):
        place.run(["sh", "-c", "printf '#!/bin/sh\\n' >.git/hooks/pre-push && "
                   "chmod 755 .git/hooks/pre-push"])
        return {".git/hooks/pre-push": b"#!/bin/sh\n"}

    def config(place):
        for number in range(5):
            place.run(["git", "config", "user.name", f"Person {number}"])
        place.run(["git", "remote", "add", "o", "https://example.com/x.git"])
        return {".git/config": get(f"{place.src}/.git/config")}

    for name, make in (("a new .idea", idea), ("a new .envrc in a new directory", nested),
                       ("another .vscode", directory), ("a hook", hook), ("git config", config)):
        place = prepared(who)
        try:
            talk = Talk(place, ": >stop.ready; while [ ! -e stop ]; do sleep 0.01; done", True)
            talk.ready()
            wanted = make(place)
            time.sleep(0.2)
            talk.end()
            found = [(n, comes_back(place, talk, n, c)) for n, c in wanted.items()]
            tap.ok(talk.process.returncode == 0 and all(f[0] for _, f in found),
                   f"what the person made is kept: {name}, {who.name}", found, talk)
            tap.note(f"{name}, {who.name}: {[(f['path'], f['action']) for f in talk.flagged()]}")
        finally:
            place.close()


# Ways to use the moment in which a saved file is not yet read-only: argv has the name and a text.
MOMENT = r"""
import os, sys, time
name, text, how = sys.argv[1], sys.argv[2].encode(), sys.argv[3]
open("stop.ready", "w").close()
n, kept, seen = 0, [], set()
while not os.path.lexists("stop"):
    try:
        if how == "link":
            ino = os.lstat(name).st_ino
            if ino not in seen:
                os.link(name, os.path.join(os.path.dirname(name), f"second{n}"))
                seen.add(ino)
                n += 1
            continue
        fd = os.open(name, os.O_WRONLY | os.O_APPEND)
        if how == "append":
            os.write(fd, text)
            os.close(fd)
            n += 1
        elif os.fstat(fd).st_ino in seen:
            os.close(fd)
        else:
            seen.add(os.fstat(fd).st_ino)
            kept.append(fd)
            n += 1
    except OSError:
        pass
for fd in kept:
    os.write(fd, text)
if how == "link":
    for i in range(n):
        with open(os.path.join(os.path.dirname(name), f"second{i}"), "ab") as f:
            f.write(text)
print(f"used {n}", flush=True)
"""
WORDS = {"append": "appending without end", "keep": "by a descriptor that is kept",
         "link": "by a second name"}


def moment_once(who, name, text, trigger, how, inside):
    place = prepared(who)
    try:
        evil = place.write(f"{place.src}/evil", f'#!/bin/sh\n[ -d "{place.out}" ] && '
                           f'echo x >>"{place.out}/hit"\nexit 0', 0o755)
        put(place, f"{place.src}/moment", MOMENT.encode())
        first = get(f"{place.src}/{name}")
        text = text.replace("EVIL", evil)
        talk = Talk(place, f"exec python3 moment {name} '{text}' {how}", inside)
        talk.ready()
        for number in range(10):
            saved_by_rename(place, f"{place.src}/{name}", first + b"# %d\n" % number)
            time.sleep(0.01)
        time.sleep(0.1)
        talk.end()
        place.run(["sh", "-c", trigger])
        used = re.findall(r"used (\d+)", talk.said)
        kept, why = comes_back(place, talk, name, first + b"# 9\n")
        return os.path.exists(f"{place.out}/hit"), int(used[0]) if used else None, kept, why, talk
    finally:
        place.close()


def moment(who, name, text, trigger, how):
    """What a command does in the moment between a save and the new mount is told."""
    control = any(moment_once(who, name, text, trigger, how, False)[0] for _ in range(3))
    tries = [moment_once(who, name, text, trigger, how, True) for _ in range(4)]
    tap.note(f"{who.name}: {name}, {WORDS[how]}: used {[t[1] for t in tries]} times in 10 saves "
             "each")
    # The gap that the kernel leaves is measured, named in SECURITY.md, and reported.
    tap.ok(control and all(t[1] is not None for t in tries) and
           all(any(f["path"] == name for f in t[4].flagged()) for t in tries),
           f"while a person saves {name}, {WORDS[how]}: it is told, {who.name}",
           f"control {control}; started in {sum(t[0] for t in tries)} of {len(tries)}",
           *[str(t[4]) for t in tries][:1])


MOMENTS = [(name, text, trigger, how)
           for name, text, trigger in ((".git/config", "[core]\n\tfsmonitor = EVIL\n", "git status"),
                                       (".envrc", "EVIL\n", "sh .envrc"))
           for how in WORDS]


def removed(who):
    """A name that the person removes is new when a command makes it."""
    for name, remove, script in (
            (".npmrc", "rm .npmrc", "echo 'script-shell=evil' >.npmrc"),
            (".vscode", "rm -r .vscode", "mkdir .vscode; echo evil >.vscode/tasks.json"),
            (".git/config", "rm .git/config", "printf '[core]\\n\\tfsmonitor = evil\\n' >.git/config"),
            (".git/hooks", "rm -r .git/hooks", "mkdir .git/hooks; echo evil >.git/hooks/pre-commit")):
        bad, silent, said = [], 0, []
        for _ in range(4):  # it depends on the moment
            place = prepared(who)
            try:
                talk = Talk(place, f"""
                    : >stop.ready; while [ -e {name} ]; do sleep 0.005; done; sleep 0.1
                    {script} && echo ma""de; while [ ! -e stop ]; do sleep 0.01; done""", True)
                talk.ready()
                place.run(["sh", "-c", remove])
                time.sleep(0.4)
                talk.end()
                bad += place.run(["grep", "-rl", "evil", name]).out.split()
                silent += "made" in talk.said and not any(
                    f["path"].startswith(name) and f["action"] == "quarantined"
                    for f in talk.flagged())
                said.append(str(talk)[:400])
            finally:
                place.close()
        tap.ok(len(said) == 4 and not bad, f"made where the person removed {name} does not stay, "
               f"{who.name}", f"{len(bad)} of 4", *said)
        tap.ok(len(said) == 4 and not silent, f"and that is reported, {name}, {who.name}",
               f"{silent} of 4 silent", *said)


# Names that a shell, a terminal or JSON could take for something else.
ODD = [b"sp ace", b"qu'ote", b'dou"ble', b"new\nline", b"end\n", b"\xff\xfe\x80", b"-n", b"--",
       b"$(touch x)", b"`touch x`", b"*", b"a\\b", b"\x1b[31m", b"\xe2\x80\xae", b"tab\t", b"#x", b"~",
       b"!!", b"a;b", b"%s", b"\xc3\xa4", b"''", b"\r", b"\x7f\x01"]


def plant_odd(place, front):
    """The directories are the person's, the names in them the command's."""
    top = place.src.encode()
    for name in ODD:
        os.mkdir(top + b"/" + name)
        place.own(top + b"/" + name)
    put(place, f"{place.src}/plant", b"""
import os
for name in sorted(os.listdir(b".")):
    if os.path.isdir(name) and not name.startswith(b"."):
        with open(name + b"/.envrc", "wb") as f:
            f.write(b"in " + name)
        os.mkdir(name + b"/.vscode")
        with open(name + b"/.vscode/" + name, "wb") as f:
            f.write(b"of " + name)
print("planted")
""")
    return place.start(front + ["python3", "plant"]).communicate(timeout=60)


def restores(who):
    """The printed commands, of the JSON and of stderr, run by sh."""
    for how in ("JSON", "stderr"):
        place = Place(who)
        try:
            top = place.src.encode()
            out, err = plant_odd(place, place.inside("--json") if how == "JSON" else place.inside())
            if how == "JSON":
                flagged = json.loads(out)["changes"]["flagged"]
                commands = [f["restore"].encode("utf-8", "surrogateescape") for f in flagged]
            else:
                commands = re.findall(rb"to put it back: (.*)\n", err)
                raw = [c for c in err if c < 32 and c not in b"\n\t" or c == 127]
                tap.ok(commands and not raw and b"\xe2\x80\xae" not in err,
                       f"no raw control character on stderr, {who.name}", raw, err[:600])
            gone = [n for n in ODD if not os.path.lexists(top + b"/" + n + b"/.envrc") and
                    not os.path.lexists(top + b"/" + n + b"/.vscode")]
            for command in commands:
                os.makedirs(f"{place.out}/cwd", exist_ok=True)
                place.run(["sh", "-c", command], cwd=place.out)
            wrong = [n for n in ODD if get(top + b"/" + n + b"/.envrc") != b"in " + n or
                     get(top + b"/" + n + b"/.vscode/" + n) != b"of " + n]
            touched = place.run(["find", place.top, "-name", "x", "-type", "f"]).out
            tap.ok(b"planted" in out and len(gone) == len(ODD) and not wrong and not touched,
                   f"every command of {how} brings back what it says, {who.name}",
                   f"{len(commands)} commands, gone {len(gone)} of {len(ODD)}", f"wrong: {wrong}",
                   touched, *[c for c in commands if any(w in c for w in wrong)][:4], err[:800])
        finally:
            place.close()


def occupied(who):
    """Where something is already, the command replaces nothing."""
    place = prepared(who)
    try:
        done = place.run(place.inside("--json") + ["sh", "-c", "mkdir .idea; echo new >.idea/x; "
                                                   "mkdir d; echo new >d/.envrc"])
        flagged = json.loads(done.out)["changes"]["flagged"]
        place.run(["sh", "-c", "mkdir .idea; echo mine >.idea/x; echo mine >d/.envrc"])
        for entry in flagged:
            place.run(["sh", "-c", entry["restore"]])
        tap.ok(len(flagged) == 2 and get(f"{place.src}/d/.envrc") == b"mine\n" and
               get(f"{place.src}/.idea/x") == b"mine\n" and
               all(os.path.lexists(f["moved_to"]) for f in flagged) and
               not os.path.lexists(f"{place.src}/.idea/.idea"),
               f"a command that brings back replaces nothing, {who.name}", flagged,
               os.listdir(f"{place.src}/.idea"))
    finally:
        place.close()


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    rows = [*(("saves", saves, *row) for row in SAVES), ("made", made),
            *(("moment", moment, *row) for row in MOMENTS),
            ("removed", removed), ("restores", restores), ("occupied", occupied)]
    wanted = sys.argv[1:]
    for who in identities_once():
        for name, function, *more in rows:
            if not wanted or name in wanted:
                tap.attempt(f"{name}, {who.name}", function, who, *more)
    return tap.done()


sys.exit(main())
