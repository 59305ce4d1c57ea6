#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Many runs: 100 at once in one directory disturb neither each other nor the tree, and 1,000
one after the other leave nothing on the host.

The tree is listed before, at least 50 times during, and after; every list must
be the same. The control is a bare program that makes a file and removes it:
the same listing must see it. What the host has (processes, mounts, cgroups,
keys, files of every place where we may write) is listed before and after the
1,000 runs, a first one having made what stays for good.
"""

import os
import secrets
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import LIBC, SANITIZED, Place, descendants, identities, wait_for  # noqa: E402

PR_SET_CHILD_SUBREAPER = 36
PARALLEL, SAMPLES = 100, 50
RUNS = 1000 if not SANITIZED else 100
FORMAT = "%p %i %m %T@ %s\\n"


def listing(top):
    found = subprocess.run(["find", top, "-printf", FORMAT], capture_output=True, check=False)
    return b"\n".join(sorted(found.stdout.split(b"\n"))) + found.stderr


def make_tree(place):
    """A repository with 50 directories, git's own and names that peers make placeholders for."""
    top = f"{place.src}/tree"
    for number in range(50):
        os.makedirs(f"{top}/d{number % 7}/e{number}", 0o755)
        place.write(f"{top}/d{number % 7}/e{number}/file", str(number), 0o644)
    subprocess.run(["git", "init", "-q", top], check=True, env=place.env())
    for path, folders, files in os.walk(top):
        for name in [path] + [f"{path}/{n}" for n in folders + files]:
            place.own(name)
    return top


class Sampler:
    """Lists the tree over and over until it is told to stop; remembers each different list."""

    def __init__(self, top):
        self.top, self.count, self.seen, self.stop = top, 0, set(), threading.Event()
        self.thread = threading.Thread(target=self._loop)
        self.thread.start()

    def _loop(self):
        while not self.stop.is_set():
            self.seen.add(listing(self.top))
            self.count += 1

    def end(self):
        self.stop.set()
        self.thread.join()


def sees_a_change(top):
    """The control: a file that is there for a moment, many times."""
    sampler = Sampler(top)
    until = time.monotonic() + 10
    while len(sampler.seen) < 2 and time.monotonic() < until:
        subprocess.run(["sh", "-c", f"touch {top}/d1/moment; sleep 0.02; rm {top}/d1/moment"],
                       check=True)
    sampler.end()
    return len(sampler.seen) >= 2


def parallel(who):
    place = Place(who)
    try:
        top = make_tree(place)
        control = sees_a_change(top)
        token = secrets.token_hex(8)
        place.write(f"{top}/d0/word", token, 0o644)
        place.run(place.inside() + ["true"], cwd=top)  # the first run of a project says so once
        before = listing(top)
        sampler = Sampler(top)
        # A barrier that all see: they are in there at once, and end when the list is long enough.
        argv = place.inside() + ["sh", "-c", "cat d0/word; until [ -e /tmp/never ]; do "
                                 "read -r line || exit 0; done"]
        running = [place.start(argv, cwd=top, stdin=subprocess.PIPE) for _ in range(PARALLEL)]
        outs = [p.stdout.readline().decode().strip() for p in running]
        while sampler.count < SAMPLES + 5:
            time.sleep(0.01)
        at_once = sum(1 for p in running if p.poll() is None)
        for process in running:
            process.stdin.close()
        statuses = [p.wait(30) for p in running]
        errors = {p.stderr.read().decode() for p in running}
        sampler.end()
        after = listing(top)
        good = sum(1 for s, o in zip(statuses, outs) if s == 0 and o == token)
        tap.ok(good == PARALLEL and at_once == PARALLEL, f"100 at once in one directory, {who.name}",
               f"{good} succeeded, {at_once} at once", errors)
        tap.ok(control and sampler.count >= SAMPLES and sampler.seen == {before}
               and after == before, f"the tree stands still before, during and after, {who.name}",
               f"control {control}, {sampler.count} samples, {len(sampler.seen)} different",
               *difference(before, after, *sampler.seen))
    finally:
        place.close()


def difference(first, *others):
    base, lines = set(first.split(b"\n")), []
    for other in others:
        lines += [line.decode("utf-8", "replace") for line in set(other.split(b"\n")) ^ base]
    return lines[:20]


# What is there. Other programs of this machine come and go meanwhile, so processes are looked for
# where the kernel must bring what lost its parents: below this one. As root cgroups are made
# below the caller's own: this process gets groups of its own first.

def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as handle:
        return {" ".join(line.split()[3:6]) for line in handle}


class Groups:
    """A cgroup of our own in each hierarchy."""

    def __init__(self):
        self.made, name = [], "sgt." + secrets.token_hex(6)
        if os.geteuid() != 0:
            return
        with open("/proc/self/cgroup", encoding="utf-8") as handle:
            lines = [line.rstrip("\n").split(":", 2) for line in handle]
        for _, controllers, path in lines:
            for top in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup") if not controllers else \
                    [f"/sys/fs/cgroup/{controllers.removeprefix('name=')}"]:
                if not os.path.exists(f"{top}{path}/cgroup.procs"):
                    continue
                home = f"{top}{path}".rstrip("/")
                if controllers == "cpuset":
                    continue  # empty until somebody fills in its processors
                os.mkdir(f"{home}/{name}")
                self.made.append((home, f"{home}/{name}"))
                self.move(f"{home}/{name}")
                break

    @staticmethod
    def move(path):
        with open(f"{path}/cgroup.procs", "w", encoding="ascii") as handle:
            handle.write("0")

    def below(self):
        tops = [path for _, path in self.made]
        if not tops:
            return set()
        found = subprocess.run(["find", *tops, "-mindepth", "1", "-type", "d"],
                               capture_output=True, text=True, check=False).stdout
        return set(found.split("\n"))

    def close(self):
        for home, path in self.made:
            self.move(home)
            for left in sorted(self.below(), key=len, reverse=True):
                if left.startswith(path):
                    try_rmdir(left)
            wait_for(lambda p=path: try_rmdir(p), 2)


def try_rmdir(path):
    try:
        os.rmdir(path)
    except OSError:
        return False
    return True


def processes():
    """Everything below this process, the dead that nobody waited for too."""
    found = set()
    for pid in descendants(os.getpid()):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as handle:
                found.add(" ".join(handle.read().split()[:4]))
        except OSError:
            continue
    return found


def reap():
    """The dead that the kernel brought us."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def files(place):
    """All of our own places; of those that others use too, what has our name or a session's uid."""
    own = subprocess.run(["find", place.top, "/var/lib/sandglass", "-xdev"], capture_output=True,
                         text=True, check=False).stdout
    shared = subprocess.run(
        ["find", "/tmp", "/var/tmp", "/dev/shm", "/run", "-xdev", "-maxdepth", "2", "(", "-name",
         "*sandglass*", "-o", "-uid", "+1879099999", ")"], capture_output=True, text=True,
        check=False).stdout
    return set(own.split("\n")) | set(shared.split("\n"))


def objects():
    """Keys and System V objects."""
    found = set()
    for path in ("/proc/keys", "/proc/sysvipc/shm", "/proc/sysvipc/msg", "/proc/sysvipc/sem"):
        try:
            with open(path, encoding="utf-8", errors="replace") as handle:
                # Usage counts and ages move; numbers and descriptions stay.
                found |= {f"{path} {l.split()[0]} {l.split()[-1]}" for l in handle if l.split()}
        except OSError:
            continue
    return found


GROUPS = Groups()
KINDS = [("process", lambda p: processes()), ("mount", lambda p: mounts()),
         ("cgroup", lambda p: GROUPS.below()), ("file or directory", files),
         ("key or System V object", lambda p: objects())]


def with_cgroups(place):
    """Options that need cgroups where this user has any; asking for them elsewhere is refused."""
    if place.who.uid != 0 or not GROUPS.made:
        return []
    return ["--memory", "512MiB", "--pids", "500", "--cpus", "1"]


def run_many(place, count):
    """Two at a time, of all sorts: short, failing, killed, not found, leaving others, limited."""
    sorts = [["true"], ["false"], ["sh", "-c", "kill -9 $$"], ["/nonexistent"],
             ["sh", "-c", "sleep 30 & exit 0"], ["sh", "-c", "echo x > /tmp/x; mkdir -p $HOME/a/b"]]
    expected = [0, 1, 137, 127, 0, 0]
    limited = with_cgroups(place)
    wrong, todo, lock = [], list(range(count)), threading.Lock()

    def work():
        while True:
            with lock:
                if not todo:
                    return
                number = todo.pop()
            # The slow sort (its background process has time to drain) is one of fifty.
            sort = 4 if number % 50 == 0 else number % 6 if number % 3 == 0 and number % 6 != 4 \
                else 0
            options = limited if number % 10 == 1 else []
            result = place.run(place.inside(*options) + sorts[sort])
            if result.status != expected[sort]:
                with lock:
                    wrong.append(f"{sorts[sort]}: {result}")
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def leftovers(place, before):
    """What is new and stays; others on this machine come and go meanwhile."""
    new = {}
    until = time.monotonic() + 3
    while True:
        now = {kind: look(place) - before[kind] for kind, look in KINDS}
        new = {k: (now[k] & new[k]) if new else now[k] for k in now}
        if not any(new.values()) or time.monotonic() > until:
            return new
        time.sleep(0.2)


def planted(place):
    """The control: what a list does not see although it is there, by kind."""
    before = {kind: look(place) for kind, look in KINDS}
    want, target = {"process", "file or directory"}, f"{place.top}/tmp"
    process = place.start(place.inside(*with_cgroups(place)) + ["sh", "-c", "echo up; sleep 600"])
    process.stdout.readline()
    place.write(f"{place.state}/left", "")
    if os.geteuid() == 0:
        subprocess.run(["mount", "-t", "tmpfs", "none", target], check=True)
        want |= {"mount", "cgroup"} if GROUPS.made and place.who.uid == 0 else {"mount"}
    seen = {kind for kind, look in KINDS if look(place) - before[kind]}
    if os.geteuid() == 0:
        subprocess.run(["umount", target], check=True)
    os.unlink(f"{place.state}/left")
    process.terminate()
    process.wait()
    return want - seen


def thousand(who):
    place = Place(who)
    try:
        unseen = planted(place)
        place.run(place.inside() + ["true"])
        before = {kind: look(place) for kind, look in KINDS}
        began = time.monotonic()
        wrong = run_many(place, RUNS)
        dead = processes()  # at once: by now nothing may be left, dead or alive
        tap.note(f"{RUNS} runs, {who.name}: {time.monotonic() - began:.1f} s")
        new = leftovers(place, before)
        tap.ok(not wrong, f"{RUNS} runs end as they should, {who.name}", *wrong[:3])
        tap.ok(not dead, f"the last of {RUNS} runs leaves no dead process, {who.name}", dead)
        for kind, left in new.items():
            tap.ok(not unseen and not left, f"{RUNS} runs leave no {kind}, {who.name}",
                   f"control does not see {unseen}" if unseen else "", *sorted(left)[:10])
    finally:
        place.close()


def after_kills(who):
    """What KILL of our first process leaves for a moment, the next run takes away."""
    place = Place(who)
    try:
        place.run(place.inside() + ["true"])
        before = {kind: look(place) for kind, look in KINDS}
        for number in range(20):
            process = place.start(place.inside(*with_cgroups(place)) +
                                  ["sh", "-c", "echo up; sleep 30"])
            if number % 2:
                process.stdout.readline()
            else:
                time.sleep(number / 2000)
            process.kill()
            process.wait()
        time.sleep(0.3)
        reap()
        result = place.run(place.inside(*with_cgroups(place)) + ["true"])
        new = leftovers(place, before)
        tap.ok(result.status == 0 and not any(new.values()),
               f"20 starts that were killed leave nothing after the next run, {who.name}", result,
               *(f"{kind}: {sorted(left)[:5]}" for kind, left in new.items() if left))
    finally:
        place.close()


def main():
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for who in identities():
        tap.attempt(f"parallel, {who.name}", parallel, who)
        tap.attempt(f"thousand, {who.name}", thousand, who)
        tap.attempt(f"after kills, {who.name}", after_kills, who)
    GROUPS.close()
    return tap.done()


sys.exit(main())
