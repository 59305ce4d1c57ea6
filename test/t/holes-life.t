#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A tree of 200 processes that do what they can to stay ends when it must.

They ignore TERM, have sessions of their own, lost their parents, are stopped or
hang in the open of a fifo. The tree is gone at most 100 ms after the grace of a
timeout and after KILL of each process of ours in turn, the one that a caller
knows included: bubblewrap's tree outlives that one. Told to stop by a signal,
sandglass ends by that signal.

Processes are found from outside by a word in their command lines. The machine
may have other work: of three times the best counts, and where 100 ms are too
little for anybody, twice what the kernel takes at that moment to end the same
tree in a plain pid namespace.
"""

import os
import secrets
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import (SANITIZED, Place, alive, bubblewrap, children_of, descendants,  # noqa: E402
                   identities, namespaces, wait_for)

WITHIN = 0.1 if not SANITIZED else 0.5
TRIES = 3
WANTED = 200

# Eight processes a turn, TERM and its like ignored by all.
TREE = r"""
trap '' TERM HUP INT QUIT
mkfifo f.WORD
i=0
while [ $i -lt 25 ]; do
	sleep 600.WORD &
	setsid sleep 600.WORD &
	(sleep 600.WORD &)
	sh -c 'kill -STOP $$; : WORD' &
	cat f.WORD &
	setsid sh -c '(sleep 600.WORD &); setsid sleep 600.WORD' WORD &
	i=$((i+1))
done
echo ready
while :; do sleep 600.WORD; done
"""


def word():
    """Digits, so that sleep takes it as a fraction of a second."""
    return str(secrets.randbelow(10**15) + 10**15)


def with_word(token):
    raw, found = token.encode(), []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as handle:
                if raw not in handle.read():
                    continue
            with open(f"/proc/{name}/stat", "rb") as handle:
                if handle.read().rsplit(b")", 1)[1].split()[0] in (b"Z", b"X"):
                    continue
        except OSError:
            continue
        found.append(int(name))
    return found


def sweep(token):
    """Ends what a control left behind: only processes with our own word."""
    for _ in range(50):
        left = with_word(token)
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)


class Tree:
    """A started tree: its word, its first process, when it was complete."""

    def __init__(self, place, front):
        self.token = word()
        self.began = time.monotonic()
        self.process = place.start(front + ["sh", "-c", TREE.replace("WORD", self.token)])
        self.complete = wait_for(lambda: self.count() >= WANTED, 15, 0.02)

    def count(self):
        return len(with_word(self.token))

    def gone_after(self, known, since, limit=3.0):
        """Seconds from `since` until none of the known ones is left, and no other. Or None."""
        while known:
            known = [pid for pid in known if alive(pid)]
            now = time.monotonic()
            if now - since > limit:
                return None
            time.sleep(0.001)
        return None if with_word(self.token) else max(0.0, now - since)

    def ours(self):
        """Our own processes in it, the one that was started first."""
        tree, todo, found = children_of(), [self.process.pid], []
        while todo:
            pid = todo.pop(0)
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8") as handle:
                    name = handle.read().strip()
            except OSError:
                continue
            if not name.startswith("sandglass"):
                continue
            found.append((pid, name))
            todo += tree.get(pid, [])
        return found

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        sweep(self.token)


def best_of(tries, function):
    """The first good result, else the last one."""
    result = None
    for _ in range(tries):
        result = function()
        if result[0]:
            return result
    return result


def plain_kill(who):
    """Seconds until the tree is gone when the first process of a plain pid namespace is killed."""
    place = Place(who)
    tree = None
    try:
        tree = Tree(place, namespaces(place))
        first = [pid for pid in descendants(tree.process.pid) if in_other_namespace(pid)][:1]
        known = with_word(tree.token)
        since = time.monotonic()
        for pid in first:
            os.kill(pid, signal.SIGKILL)
        return tree.gone_after(known, since)
    finally:
        if tree:
            tree.end()
        place.close()


def in_other_namespace(pid):
    """Its number in the innermost of several pid namespaces is 1."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as handle:
            numbers = [line.split()[1:] for line in handle if line.startswith("NSpid:")]
    except OSError:
        return False
    return bool(numbers) and len(numbers[0]) > 1 and numbers[0][-1] == "1"


def in_time(who, late):
    if late is None or late <= WITHIN:
        return late is not None, f"{late} s"
    usual = plain_kill(who)
    return usual is not None and late <= 2 * usual, f"{late} s, the kernel alone {usual} s"


def timeout_once(who):
    wall, grace = 3.0, 0.4
    place = Place(who)
    tree = None
    try:
        tree = Tree(place, place.inside("--timeout", f"{int(wall * 1000)}ms", "--grace",
                                        f"{int(grace * 1000)}ms"))
        if not tree.complete or time.monotonic() - tree.began > wall - 0.2:
            return False, f"{tree.count()} processes after {time.monotonic() - tree.began:.1f} s"
        time.sleep(max(0.0, tree.began + wall + grace / 2 - time.monotonic()))
        during = with_word(tree.token)
        late = tree.gone_after(during, tree.began + wall + grace)
        status = tree.process.wait(5)
        early, said = in_time(who, late)
        good = len(during) >= WANTED - 30 and early and status == 124
        return good, f"{len(during)} in the grace, gone after {said}, status {status}"
    finally:
        if tree:
            tree.end()
        place.close()


def timeout_row(who):
    place = Place(who)
    tree = None
    try:
        tree = Tree(place, ["timeout", "-k", "0.2", "3"])
        status = tree.process.wait(20)
        left = tree.count()
    finally:
        if tree:
            tree.end()
        place.close()
    good, said = best_of(TRIES, lambda: timeout_once(who))
    tap.ok(left > 50 and good, f"gone within {WITHIN * 1000:.0f} ms after the grace, {who.name}",
           f"control: timeout(1) leaves {left} of {WANTED}, status {status}", said)


def kill_once(who, number):
    """KILL of the number-th process of ours. False, text or True, text, and how many there are."""
    place = Place(who)
    tree = None
    try:
        tree = Tree(place, place.inside())
        ours = tree.ours()
        if not tree.complete or number >= len(ours):
            return False, f"{tree.count()} processes, ours {ours}", len(ours)
        pid, name = ours[number]
        known = with_word(tree.token)
        since = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        late = tree.gone_after(known, since)
        status = tree.process.wait(5)
        ended = wait_for(lambda: not [p for p, _ in ours if alive(p)], 1)
        early, said = in_time(who, late)
        good = early and status != 0 and ended
        return (good, f"{name} (number {number} of {[n for _, n in ours]}): gone after {said}, "
                f"status {status}, ours ended {bool(ended)}", len(ours))
    finally:
        if tree:
            tree.end()
        place.close()


def kill_control(who):
    """bubblewrap as agents start it without --die-with-parent outlives its own first process."""
    place = Place(who)
    tree = None
    try:
        way = [w for w in bubblewrap()(place) if w != "--die-with-parent"]
        tree = Tree(place, way)
        tree.process.kill()
        tree.process.wait()
        time.sleep(0.3)
        return tree.count()
    finally:
        if tree:
            tree.end()
        place.close()


def kills(who):
    left = kill_control(who)
    tap.ok(left > 50, f"control: bubblewrap's tree outlives KILL of its parent, {who.name}", left)
    number, count = 0, 1
    while number < count:
        good, said, count = best_of(TRIES, lambda n=number: kill_once(who, n))
        tap.ok(left > 50 and good, f"KILL of our process {number}, {who.name}", said)
        number += 1
    tap.ok(count >= 2, f"every process of ours was killed once, {who.name}", f"{count} of them")


def signals(who):
    """Told to stop, it ends by that signal, whether the command ignores it, obeys or exits 0."""
    commands = (("ignores it", "trap '' TERM INT HUP QUIT; echo ready; sleep 600.WORD; exit 0"),
                ("exits 0 on it", "trap 'exit 0' TERM INT HUP QUIT; echo ready; "
                 "sleep 600.WORD & wait"),
                ("dies of it", "echo ready; exec sleep 600.WORD"))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        for what, script in commands:
            place, token = Place(who), word()
            try:
                front = place.inside("--grace", "200ms")
                process = place.start(front + ["sh", "-c", script.replace("WORD", token)])
                ready = process.stdout.readline() == b"ready\n"
                os.kill(process.pid, number)
                status = process.wait(10)
                left = with_word(token)
                tap.ok(ready and status == -number and not left,
                       f"ends by {number.name} when the command {what}, {who.name}",
                       f"ready {ready}, status {status}, left {left}")
            finally:
                sweep(token)
                place.close()


def main():
    for who in identities():
        tap.attempt(f"timeout, {who.name}", timeout_row, who)
        tap.attempt(f"kills, {who.name}", kills, who)
        tap.attempt(f"signals, {who.name}", signals, who)
    return tap.done()


sys.exit(main())
