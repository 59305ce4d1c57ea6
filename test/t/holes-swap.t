#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A granted path that a sandbox may swap leads to nothing else.

One call replaces a directory on the way to a later call's grant by a link to a
place of the host; the later call must be refused, or must at least not reach
that place. A tool that follows links at set-up (bubblewrap here, as the
control) writes there. Then the same as a race: one sandbox swaps without end
while others start.
"""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import Place, identities, wait_for  # noqa: E402

RACE_RUNS = 60
REFUSED = ("POLICY_DENIED", "CONFIG_INVALID", "NOT_FOUND", "SANDBOX_UNAVAILABLE")

# Name, what the first call does below the source, what the second is granted there and does.
SWAPS = [
    ("the last component", "mv a a.old; ln -s OUT a", "--write", "a", "echo pwn > GRANT/pwn"),
    ("a component on the way", "mv a a.old; ln -s TOP a", "--write", "a/out",
     "echo pwn > GRANT/pwn"),
    ("a relative link", "mv a a.old; ln -s ../out a", "--write", "a", "echo pwn > GRANT/pwn"),
    ("a chain of links", "mv a a.old; ln -s OUT b; ln -s b a", "--write", "a",
     "echo pwn > GRANT/pwn"),
    ("a link through /proc", "mv a a.old; ln -s /proc/self/root/OUT a", "--write", "a",
     "echo pwn > GRANT/pwn"),
    ("a file for reading", "rm f; ln -s OUT/secret f", "--read", "f", "cat GRANT; cat f"),
    ("a directory for reading", "mv a a.old; ln -s OUT a", "--read", "a", "cat GRANT/secret"),
]


def setup(place):
    for name in ("a", "a/out"):
        os.mkdir(f"{place.src}/{name}", 0o755)
        place.own(f"{place.src}/{name}")
    place.write(f"{place.src}/f", "harmless")
    place.write(f"{place.out}/secret")


def fill(script, place, grant=""):
    return script.replace("OUT", place.out).replace("TOP", place.top).replace("GRANT", grant)


def reached(place, result):
    return os.path.exists(f"{place.out}/pwn") or place.canary in result.out


def swap(who, name, first, option, granted, second):
    seen = []
    for inside in (False, True):
        place = Place(who)
        try:
            setup(place)
            grant = f"{place.src}/{granted}"
            script = ["sh", "-c", "echo started; " + fill(second, place, grant)]
            planted = place.run((place.inside() if inside else []) +
                                ["sh", "-c", fill(first, place)])
            if inside:
                result = place.run(place.inside(option, grant) + script)
            else:
                bind = "--bind" if option == "--write" else "--ro-bind"
                result = place.run(["bwrap", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin",
                                    "/bin", "--symlink", "usr/lib", "/lib", "--symlink",
                                    "usr/lib64", "/lib64", "--proc", "/proc", "--bind", place.src,
                                    place.src, bind,
                                    os.path.realpath(grant), os.path.realpath(grant), "--chdir",
                                    place.src, "--"] + script)
            seen.append((planted, result, reached(place, result)))
        finally:
            place.close()
    (_, bare, out), (planted, result, out_in) = seen
    refused = result.status == 125 and any(f"sandglass: {c}:" in result.err for c in REFUSED)
    tap.ok(out and planted.status == 0 and not out_in and (refused or "started" in result.out),
           f"{name}, {who.name}", "control", bare, "inside", planted, result)


SWAPPER = "while :; do mv a d; ln -s OUT a; rm a; mv d a; done 2>/dev/null"

def race(who):
    """While one sandbox swaps, each start with the grant either refuses or gets the directory."""
    place = Place(who)
    try:
        setup(place)
        before = sorted(os.listdir(place.out))
        swapper = place.start(place.inside("--timeout", "50s") +
                              ["sh", "-c", fill(SWAPPER, place)])
        if not wait_for(lambda: os.path.islink(f"{place.src}/a"), 5, 0):
            tap.ok(False, f"race, {who.name}", "the swapper does not swap")
            return
        naive, began = 0, time.monotonic()
        while not naive and time.monotonic() - began < 5:
            # The control opens by path, as a tool does that resolves its grants by name.
            try:
                with open(f"{place.src}/a/naive", "w", encoding="ascii"):
                    pass
            except OSError:
                continue
            naive = os.path.exists(f"{place.out}/naive")
        outcomes = {"granted": 0, "refused": 0}
        strange = []
        for _ in range(RACE_RUNS):
            result = place.run(place.inside("--write", f"{place.src}/a", "--read",
                                            f"{place.src}/f") +
                               ["sh", "-c", f"echo started; echo pwn > {place.src}/a/pwn"])
            if result.status == 125 and "sandglass: " in result.err:
                outcomes["refused"] += 1
            elif "started" in result.out:
                outcomes["granted"] += 1
            else:
                strange.append(result)
        still = swapper.poll() is None
        after = sorted(n for n in os.listdir(place.out) if n != "naive")
        tap.note(f"race, {who.name}: {outcomes}")
        tap.ok(naive and still and after == before and not strange
               and sum(outcomes.values()) == RACE_RUNS, f"race, {who.name}",
               f"control {naive}, swapper alive {still}", f"before {before}", f"after {after}",
               *strange[:2])
    finally:
        place.close()


def path_entry(who):
    """A PATH entry inside the source adds nothing to the view, whatever it links to."""
    seen = []
    for inside in (False, True):
        place = Place(who)
        try:
            setup(place)
            os.symlink(place.out, f"{place.src}/bin")
            more = {"PATH": f"{place.src}/bin:{place.env()['PATH']}"}
            result = place.run((place.inside() if inside else []) +
                               ["sh", "-c", f"echo started; cat {place.out}/secret"], env=more)
            seen.append((result, place.canary in result.out))
        finally:
            place.close()
    (bare, out), (result, out_in) = seen
    tap.ok(out and "started" in result.out and not out_in, f"PATH through the source, {who.name}",
           bare, result)


def main():
    for who in identities():
        for row in SWAPS:
            tap.attempt(f"{row[0]}, {who.name}", swap, who, *row)
        tap.attempt(f"PATH, {who.name}", path_entry, who)
        tap.attempt(f"race, {who.name}", race, who)
    return tap.done()


sys.exit(main())
