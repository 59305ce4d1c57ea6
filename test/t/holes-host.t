#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a sandbox holds while it runs takes nothing from the host.

The probe takes a lease, or all that it can get of something that the kernel
counts for the user, and keeps it until it is told to go on; meanwhile the host
does its own work as the same user. Bare, that work blocks or fails.
"""

import os
import resource
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import USER, Identity, Place, identities, wait_for  # noqa: E402

CONTROL_TRIES = 3  # others of the same user may hold some of it for a moment

# What the host does: each prints how much of it went well, 0 for nothing.
OPEN = """
import os, sys
try:
    os.open(sys.argv[1], os.O_WRONLY | os.O_NONBLOCK)  # without waiting: EWOULDBLOCK
    print(1)
except BlockingIOError:
    print(0)
"""
INSTANCES = """
import ctypes, os
l, n = ctypes.CDLL(None), 0
while n < 16 and l.inotify_init1(os.O_CLOEXEC) >= 0:
    n += 1
print(n if n == 16 else 0)
"""
SIGNALS = """
import ctypes, os, signal
l, n = ctypes.CDLL(None), 0
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMAX])
while n < 64 and l.sigqueue(os.getpid(), signal.SIGRTMAX, None) == 0:
    n += 1
print(n if n == 64 else 0)
"""
QUEUE = """
import ctypes, os
l = ctypes.CDLL(None)
name = b"/sgt.%d" % os.getpid()
fd = l.mq_open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, None)
l.mq_unlink(name)
print(int(fd >= 0))
"""


def limit(kind):
    def sets(_place):
        value = resource.getrlimit(kind)[1]
        # Where root has no limit the test brings the usual one: ours must stay below it too.
        return [f"limit={value if value != resource.RLIM_INFINITY else 65536}"]
    return sets


def leased_file(place):
    return [f"file={place.write(f'{place.src}/file', mode=0o644)}"]


ROWS = [
    ("a host write is not blocked by a lease", "lease", leased_file, OPEN),
    ("the user's inotify instances are not used up", "inotify", lambda place: [], INSTANCES),
    ("the user's waiting signals are not used up", "queued-signals",
     limit(resource.RLIMIT_SIGPENDING), SIGNALS),
    ("the user's bytes of queues are not used up", "queue-bytes",
     limit(resource.RLIMIT_MSGQUEUE), QUEUE),
]


def held(who, owner, row, fixture, work, inside):
    """What the host's work says while the row holds what it got; the row's verdict and words."""
    place = Place(who, owner)
    try:
        mark = f"{place.src}/mark"
        sets = fixture(place) + [f"mark={mark}", "hold=8000"]
        argv = [place.probe, *(w for s in sets for w in ("--set", s)), row]
        process = place.start((place.inside() if inside else []) + argv, text=True)
        host = None
        if wait_for(lambda: os.path.exists(mark), 10):
            done = place.run(["/usr/bin/python3", "-c", work, f"{place.src}/file"])
            host = int(done.out) if done.status == 0 else str(done)
        place.write(f"{mark}.done", "", 0o644)
        out, err = process.communicate(timeout=20)
        verdict = [line.split(" ")[1] for line in out.split("\n") if line.startswith(row + " ")]
        return host, verdict[0] if verdict else None, out + err
    finally:
        place.close()


def try_row(name, row, fixture, work, who, owner):
    for _ in range(CONTROL_TRIES):
        host, verdict, said = held(who, owner, row, fixture, work, False)
        if verdict == "ESCAPED" and host == 0:
            break
    host_in, inside, said_in = held(who, owner, row, fixture, work, True)
    tap.ok(verdict == "ESCAPED" and host == 0 and inside == "safe" and host_in and
           isinstance(host_in, int), name, f"control: the host's work gives {host}", said,
           f"inside: {host_in}", said_in)


def main():
    people = [(who, who, "") for who in identities()]
    if os.geteuid() == 0:
        people.insert(1, (people[0][0], Identity("user", USER), " over a user's source"))
    for who, owner, over in people:
        for name, *row in ROWS:
            title = f"{name}, {who.name}{over}"
            tap.attempt(title, try_row, title, *row, who, owner)
    return tap.done()


sys.exit(main())
