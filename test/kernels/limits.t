#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Limits that a cgroup of v2 holds: for root, and for a user to whom one is delegated.

Needs root and the controllers memory, pids and cpu in the v2 hierarchy, so it
runs in the guest of tools/kernels. The callers stand in a leaf of a group that
is theirs, as a systemd session has it; what holds a sandbox is looked at from
outside, in the leaf beside that one.
"""

import json
import os
import secrets
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "t", "lib"))
import tap  # noqa: E402
from place import Place, identities, wait_for  # noqa: E402

TOP = "/sys/fs/cgroup"
CONTROLLERS = "+memory +pids +cpu"
MIB = 1 << 20
HOG = ["/usr/bin/python3", "-S", "-c", "x = bytearray(200 << 20); print('got it')"]
FORKS = ["/usr/bin/python3", "-S", "-c", """
import os, time
n = 0
try:
    while n < 60:
        if os.fork() == 0:
            time.sleep(2)
            os._exit(0)
        n += 1
except OSError:
    pass
print("forks", n)
raise SystemExit(n < 60)
"""]
BURN = ["/usr/bin/python3", "-S", "-c", """
import time
begin, until = time.monotonic(), time.process_time() + 0.5
while time.process_time() < until:
    pass
print("share", 0.5 / (time.monotonic() - begin))
"""]


def put(path, text):
    with open(path, "w", encoding="ascii") as handle:
        handle.write(text)


def get(path):
    with open(path, encoding="ascii") as handle:
        return handle.read().strip()


class Group:
    """A cgroup with controllers for its children, owned by who, and the leaf for callers."""

    def __init__(self, who, delegated=True):
        self.path = f"{TOP}/limits-{secrets.token_hex(4)}"
        self.callers = f"{self.path}/callers"
        os.mkdir(self.path)
        os.mkdir(self.callers)
        if delegated:
            names = ["cgroup.procs", "cgroup.subtree_control", "cgroup.threads"]
            for path in (self.path, self.callers):
                for name in [path] + [f"{path}/{n}" for n in names]:
                    os.chown(name, who.uid, who.uid)
        put(f"{self.path}/cgroup.subtree_control", CONTROLLERS)

    def enter(self):
        put(f"{self.callers}/cgroup.procs", str(os.getpid()))

    def leaves(self):
        return [f"{self.path}/{n}" for n in os.listdir(self.path) if n.startswith("sandglass-")]

    def close(self):
        for path in [*self.leaves(), self.callers, self.path]:
            wait_for(lambda p=path: not get(f"{p}/cgroup.procs"), 5)
            os.rmdir(path)


class Caller:
    """Runs sandglass as one identity from within a group."""

    def __init__(self, who, delegated=True):
        self.place, self.group, self.name = Place(who), Group(who, delegated), who.name

    def run(self, *argv):
        """The result of a run, or what there was instead of one."""
        done = self.place.run(self.place.inside("--json", *argv[:-1]) + argv[-1], timeout=120,
                              before=self.group.enter)
        try:
            return json.loads(done.out)
        except ValueError:
            return {"instead": str(done)}

    def close(self):
        self.place.close()
        self.group.close()


def code(result):
    return (result.get("error") or {}).get("code")


def grade(result, limit):
    return result.get("sandbox", {}).get("limits", {}).get(limit, {}).get("grade")


def said(result):
    return (result.get("stdout") or {}).get("text", "")


def memory(caller):
    free = caller.run(HOG)
    held = caller.run("--memory", "64MiB", HOG)
    peak = held.get("usage", {}).get("peak_memory_bytes", 0)
    tap.ok("got it" in said(free) and held["exit"]["status"] == 137 and "got it" not in said(held)
           and code(held) == "MEMORY_LIMIT" and grade(held, "memory") == "kernel"
           and 32 * MIB < peak <= 64 * MIB and held["limits_hit"] == ["memory"],
           f"memory.max ends what takes more, and is told as MEMORY_LIMIT, {caller.name}",
           f"control: {free}", held)
    below = caller.run("--memory", "64MiB", ["sh", "-c", '"$@"; exit 3', "sh", *HOG])
    tap.ok(code(below) == "MEMORY_LIMIT" and "got it" not in said(below),
           f"also when it is a child that takes more, {caller.name}", below)
    files = ["sh", "-c", "head -c 200M /dev/zero > /tmp/x && echo got it"]
    free, held = caller.run(files), caller.run("--memory", "64MiB", files)
    tap.ok("got it" in said(free) and code(held) == "MEMORY_LIMIT" and "got it" not in said(held),
           f"files of the session's own count as memory, {caller.name}", f"control: {free}", held)


def pids(caller):
    free, held = caller.run(FORKS), caller.run("--pids", "20", FORKS)
    tap.ok("forks 60" in said(free) and "forks 19" in said(held) and code(held) == "PIDS_LIMIT"
           and grade(held, "pids") == "kernel" and held["limits_hit"] == ["pids"],
           f"pids.max holds forks, and is told as PIDS_LIMIT, {caller.name}",
           f"control: {free}", held)


def cpus(caller):
    free, held = caller.run(BURN), caller.run("--cpus", "0.25", BURN)
    share = [float(said(r).split()[1]) if said(r) else -1 for r in (free, held)]
    tap.ok(share[0] > 0.5 and 0.05 < share[1] < 0.35 and grade(held, "cpus") == "kernel",
           f"cpu.max gives a quarter of a processor where a quarter was asked for, {caller.name}",
           f"control: {share[0]:.2f}, held: {share[1]:.2f}", held)


def knobs(caller):
    """What stands in the leaf while the command runs, and what the command sees of it."""
    process = caller.place.start(
        caller.place.inside("--memory", "64MiB", "--pids", "33", "--cpus", "0.5") +
        ["sh", "-c", "cat /proc/self/cgroup; ls /sys/fs/cgroup; touch here; sleep 600"],
        preexec_fn=caller.group.enter, text=True)
    here = f"{caller.place.src}/here"
    if wait_for(lambda: os.path.exists(here), 30):
        leaf = caller.group.leaves()[0]
        names = ("memory.max", "memory.swap.max", "pids.max", "cpu.max")
        found = {n: get(f"{leaf}/{n}") for n in names if os.path.exists(f"{leaf}/{n}")}
        inside = len(get(f"{leaf}/cgroup.procs").split())
        beside = len(caller.group.leaves())
    else:
        found, inside, beside = {}, 0, 0
    process.send_signal(signal.SIGTERM)
    out = process.communicate(timeout=30)
    want = {"memory.max": str(64 * MIB), "pids.max": "34", "cpu.max": "50000 100000"}
    tap.ok({k: found.get(k) for k in want} == want and found.get("memory.swap.max", "0") == "0"
           and inside >= 2 and beside == 1,
           f"the leaf has what was asked for, and init's place in pids, {caller.name}", found,
           f"{inside} processes in it, {beside} leaves", out)
    tap.ok(out[0].startswith("0::/\n"), f"inside, the cgroup is the root of all, {caller.name}",
           out)
    tap.ok(not caller.group.leaves(), f"the leaf is gone after a signal, {caller.name}",
           caller.group.leaves())


def killed(caller):
    """Killed where nothing can be done any more: the next call clears up."""
    process = caller.place.start(caller.place.inside("--memory", "64MiB") +
                                 ["sh", "-c", "touch there; sleep 600"],
                                 preexec_fn=caller.group.enter)
    wait_for(lambda: os.path.exists(f"{caller.place.src}/there"), 30)
    leaf = (caller.group.leaves() + [""])[0]
    process.kill()
    process.wait()
    empty = leaf and wait_for(lambda: not os.path.exists(leaf) or
                              get(f"{leaf}/cgroup.events").startswith("populated 0"), 10)
    after = caller.run(["/bin/true"])
    tap.ok(empty and after.get("ok") is True and not caller.group.leaves(),
           f"the tree of a killed sandglass ends, and the next call removes its leaf, "
           f"{caller.name}", leaf, after, caller.group.leaves())


def ceiling(caller):
    """A leaf beside the caller's group would be a way out of what holds the caller."""
    free = caller.run(HOG)
    put(f"{caller.group.callers}/memory.max", str(100 * MIB))
    try:
        held = caller.run(HOG)
    finally:
        put(f"{caller.group.callers}/memory.max", "max")
    tap.ok("got it" in said(free) and "got it" not in said(held) and code(held) == "MEMORY_LIMIT",
           f"what holds the caller holds the sandbox, {caller.name}", f"control: {free}", held)


def not_delegated(who):
    caller = Caller(who, delegated=False)
    try:
        held = caller.run("--cpus", "0.5", ["/bin/true"])
        watched = caller.run("--memory", "64MiB", [*HOG[:-1], HOG[-1] + "; import time; "
                                                   "time.sleep(2); print('stayed')"])
        tap.ok(code(held) == "LIMIT_UNAVAILABLE" and code(watched) == "MEMORY_LIMIT"
               and grade(watched, "memory") == "watched" and "stayed" not in said(watched)
               and not caller.group.leaves(),
               f"in a group of somebody else memory is watched, and cpus are refused, {who.name}",
               held, watched)
    finally:
        caller.close()


def usable():
    """Whether this is the guest: elsewhere the groups of the machine are not ours to arrange."""
    control = f"{TOP}/cgroup.subtree_control"
    return os.geteuid() == 0 and os.path.exists(control) and {
        name.lstrip("+") for name in CONTROLLERS.split()} <= set(get(control).split())


def main():
    if not usable():
        sys.exit(f"Bail out! needs root, and {CONTROLLERS} in {TOP}: see tools/kernels")
    for who in identities():
        caller = Caller(who)
        try:
            for part in (memory, pids, cpus, knobs, killed, ceiling):
                tap.attempt(f"{part.__name__}, {who.name}", part, caller)
            tap.ok(not caller.group.leaves(), f"no leaf is left after a run, {who.name}",
                   caller.group.leaves())
        finally:
            caller.close()
    tap.attempt("not delegated", not_delegated, identities()[-1])
    return tap.done()


sys.exit(main())
