#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Each verb of sessions, killed at the system calls that change what is stored.

A run under ptrace counts them; then, run by run, SIGKILL comes before the n-th of them in
each process of the verb. Afterwards the source is as it was, the session is the old one, a
new one or none, the next verb works, and after `gc` nothing is left and the audit log
verifies. apply and discard have their own rows in apply.t, a loss of power is here.

All points for one identity, or as many as the time allows (KILL_SECONDS for each verb),
drawn by SEED.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import SANDGLASS, Result, identities_once, wait_for  # noqa: E402
from session import Sessions, code, differences, tree  # noqa: E402

SEED = int(os.environ.get("SEED", "0")) or int(time.time())
SECONDS = float(os.environ.get("KILL_SECONDS", "3"))
CALLS = ("openat openat2 mkdirat mkdir unlinkat unlink rmdir renameat renameat2 rename linkat symlinkat symlink "
         "write pwrite64 writev ftruncate fchmod chmod fchmodat fchown fchownat lchown chown "
         "copy_file_range sendfile fsync fdatasync syncfs mount umount2 clone clone3 fork vfork").split()
LINE = re.compile(r"^(\d+) +(?:<\.\.\. )?(\w+)\(?(.*)$")


def changes(name, rest):
    """Whether a call can change what is stored: an open for reading does not."""
    if name in ("openat", "openat2"):
        return "O_CREAT" in rest or "O_WRONLY" in rest or "O_RDWR" in rest
    return True


def traced(p, options, argv, seconds=60):
    """A verb under strace, which goes on with the keeper when the verb has ended."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        verb = subprocess.Popen([*p.who.prefix, "strace", "-DDD", "-f", "-qq", *options, *argv],
                                env=p.env(), cwd=p.src, stdin=subprocess.DEVNULL, stdout=out,
                                stderr=err)
        try:
            status = verb.wait(seconds)
        except subprocess.TimeoutExpired:
            verb.kill()
            verb.wait()
            status = -1
        out.seek(0)
        err.seek(0)
        return Result(status, out.read().decode("utf-8", "replace"),
                      err.read().decode("utf-8", "replace"), 0)


def count(p, argv):
    """(name, n): the n-th such call of a process changes something, as strace sees it."""
    out = f"{p.tmp}/trace"
    done = traced(p, ["-s", "0", "-e", "signal=none", "-o", out, "-e",
                      f"trace={','.join(CALLS)}"], argv)
    seen, points = {}, set()
    with open(out, encoding="utf-8", errors="replace") as handle:
        for line in handle:
            found = LINE.match(line)
            if not found or "resumed>" in line:
                continue
            pid, name, rest = found.groups()
            seen[pid, name] = seen.get((pid, name), 0) + 1
            if changes(name, rest):
                points.add((name, seen[pid, name]))
    return done, sorted(points)


class World(Sessions):
    """A source with a commit, and sessions of it that have changed something."""

    def __init__(self, who):
        super().__init__(who)
        made = self.sh("git init -q .; echo a >a; mkdir d; echo b >d/b; git add a d; git commit -qm a")
        if made.status:
            raise AssertionError(made)

    def changed(self, *options):
        s = self.new(*options)
        done = self.exec(s, "echo more >>a; rm d/b; echo n >n; echo t >$TMPDIR/t")
        if done.status:
            raise AssertionError(done)
        return s


# Verb: whether it needs a session, its words, and what has to work afterwards.

VERBS = {
    "new": (False, lambda s: ["session", "new", "--name", "killed"], lambda s: None),
    "exec": (True, lambda s: ["session", "exec", s, "sh", "-c", "echo x >>a; echo y >y"],
             lambda s: ["session", "exec", s, "cat", "a"]),
    "exec --detach": (True, lambda s: ["session", "exec", "--detach", s, "sleep", "0.01"],
                      lambda s: ["session", "exec", s, "cat", "a"]),
    "reset": (True, lambda s: ["session", "reset", s], lambda s: ["session", "reset", s]),
    "destroy": (True, lambda s: ["session", "destroy", s],
                lambda s: ["session", "destroy", "--discard", s]),
    "destroy --discard": (True, lambda s: ["session", "destroy", "--discard", s],
                          lambda s: ["session", "destroy", "--discard", s]),
    "renew": (True, lambda s: ["session", "renew", "--ttl", "1h", s],
              lambda s: ["session", "renew", "--ttl", "1h", s]),
    "export": (True, lambda s: ["export", s], lambda s: ["export", s]),
    "gc": (True, lambda s: ["gc"], lambda s: ["gc"]),
}


def once(p, verb, point, before):
    """One kill. None: it came to nothing; else what is wrong afterwards."""
    needs, words, again = VERBS[verb]
    s = p.changed() if needs else None
    bad = []
    if verb == "gc":
        end_keeper(p, s)
    name, number = point
    killed = traced(p, ["-o", "/dev/null", "-e", f"trace={name}", "-e",
                        f"inject={name}:signal=KILL:when={number}"], [SANDGLASS, *words(s)])
    if killed.status == -1:
        bad.append(f"it hung: {killed}")
    if differences(before, tree(p.src)):
        bad.append(differences(before, tree(p.src)))
    there = [x for x in os.listdir(f"{p.state}/sessions") if x != ".lock"]
    if s and s in there and verb not in ("destroy", "destroy --discard", "reset"):
        seen = p.run([SANDGLASS, "diff", s])
        until = time.monotonic() + 10
        while ": BUSY: " in seen.err and time.monotonic() < until:  # its call is just ending
            time.sleep(0.1)
            seen = p.run([SANDGLASS, "diff", s])
        if seen.status != 0 or "+more" not in seen.out:
            bad.append(f"what was held: {seen}")
    then = p.run([SANDGLASS, *(again(s) or ["session", "new"])])
    gone = code(then) in ("NOT_FOUND", "LEASE_EXPIRED") and verb.startswith("destroy")
    if then.status != 0 and not gone:
        bad.append(f"the next verb: {then}")
    wait_for(lambda: not p.named("sleep"), 2)
    for left in [x for x in os.listdir(f"{p.state}/sessions") if x != ".lock"]:
        ended = p.session("destroy", "--discard", left)
        if code(ended) == "INTERNAL":  # the kill came only now, to a keeper that ends
            ended = p.session("destroy", "--discard", left)
        if ended.status != 0 and code(ended) not in ("NOT_FOUND",):
            bad.append(f"destroy {left}: {ended}")
    swept = p.run([SANDGLASS, "gc"])
    if swept.status:
        bad.append(f"gc: {swept}")
    bad += p.remains()
    if verb == "new":
        free = p.session("new", "--name", "killed")
        if free.status:
            bad.append(f"its name is not free: {free}")
        else:
            p.session("destroy", "--discard", free.out.strip())
    sound = p.run([SANDGLASS, "audit", "verify"])
    if sound.status:
        bad.append(f"audit verify: {sound}")
    return bad or None


def end_keeper(p, s):
    for pid in p.named("sandglass-keep"):
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{f}") for f in os.listdir(f"/proc/{pid}/fd")]
            if any(s in link for link in links):
                os.kill(pid, signal.SIGKILL)
        except OSError:
            continue
    wait_for(lambda: not p.named("sandglass-keep"), 5)


def killed_verbs(who):
    drawn = random.Random(SEED)
    for verb, (needs, words, _) in VERBS.items():
        if os.environ.get("VERB", verb) != verb:
            continue
        p = World(who)
        try:
            s = p.changed() if needs else None
            if verb == "gc":
                end_keeper(p, s)
            done, points = count(p, [SANDGLASS, *words(s)])
            for left in [x for x in os.listdir(f"{p.state}/sessions") if x != ".lock"]:
                p.session("destroy", "--discard", left)
            before, wrong, tried, begin = tree(p.src), [], 0, time.monotonic()
            only = os.environ.get("POINT", "").split()
            for point in drawn.sample(points, len(points)) if not only else [(only[0], int(only[1]))]:
                if time.monotonic() - begin > SECONDS or len(wrong) > 2:
                    break
                tried += 1
                bad = once(p, verb, point, before)
                if bad:
                    wrong.append((point, bad))
            tap.ok(done.status == 0 and points and tried and not wrong,
                   f"killed: session {verb}, {who.name}", done, *wrong)
            tap.note(f"{verb}: {tried} of {len(points)} points, seed {SEED}")
        finally:
            p.close()


def power(who):
    """A loss of power: the boot is another, and the overlay's volatile mark is still there."""
    p = World(who)
    try:
        s = p.changed()
        end_keeper(p, s)
        where = p.dir(s)
        tap.ok(os.path.isdir(f"{where}/work/work/incompat/volatile") or
               os.path.isdir(f"{where}/work/incompat/volatile"),
               f"control: an overlay that was not unmounted has its mark, {who.name}",
               os.listdir(f"{where}/work"))
        sane = p.show(s).get("state")
        other_boot(where)
        shown = p.show(s)
        tap.ok(shown.get("state") == "unclean", f"power: show says unclean, {who.name}", sane, shown)
        seen = p.run([SANDGLASS, "diff", s])
        tap.ok(seen.status == 0 and "+more" in seen.out and "unclean" in seen.err,
               f"power: diff says unclean, and shows what there is, {who.name}", seen)
        told = p.exec(s, "cat a")
        tap.ok(told.status != 0 and "unclean" in told.err and code(told),
               f"power: exec does not go on, and says why, {who.name}", told)
        before = tree(p.src)
        applied = p.run([SANDGLASS, "apply", s])
        tap.ok(("unclean" in applied.err) and (applied.status == 0 or not differences(
            before, tree(p.src))), f"power: apply says unclean, {who.name}", applied)
        end = p.session("destroy", "--discard", s)
        tap.ok(end.status == 0 and not p.remains(), f"power: it can be destroyed, {who.name}", end,
               *p.remains())
    finally:
        p.close()


def other_boot(where):
    """The record as one of another boot: only the id of the boot is another."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as handle:
        boot = handle.read().strip()
    changed = 0
    for name in os.listdir(where):
        path = f"{where}/{name}"
        if not os.path.isfile(path):
            continue
        with open(path, "rb") as handle:
            raw = handle.read()
        for form in (boot, boot.replace("-", "")):
            if form.encode() in raw:
                other = form.translate(str.maketrans("0123456789abcdef", "123456789abcdef0"))
                with open(path, "r+b") as handle:
                    handle.write(raw.replace(form.encode(), other.encode()))
                changed += 1
    if not changed:
        raise AssertionError("nothing of the session names the boot")


ROWS = {"killed": killed_verbs, "power": power}


def main():
    wanted = sys.argv[1:]
    for who in identities_once():
        for name, function in ROWS.items():
            if not wanted or name in wanted:
                begin = time.monotonic()
                tap.attempt(f"{name}, {who.name}", function, who)
                tap.note(f"{name}, {who.name}: {time.monotonic() - begin:.1f} s")
    return tap.done()


sys.exit(main())
