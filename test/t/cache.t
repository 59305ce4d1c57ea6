#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What is kept between calls never shows: each input of a view is changed once under a kept view,
and each way in which the cache can be broken is tried. Always the command works, and sees what it
would see without a cache. The control of each: with nothing changed the kept view is used.

Whether it was used is seen by its file below $SANDGLASS_HOME/cache: a view that was worked out anew
is a new file, once what it was found by is older than two seconds. As root in mounts of our own, with
a copy of /etc and an empty /opt; what needs those is left out as an ordinary user.
"""

import os
import shutil
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import LIBC, PATH, SANDGLASS, Place, beside, identities_once, wait_for  # noqa: E402

CLONE_NEWNS = 0x20000
ROOT = os.geteuid() == 0
NAME = ["git", "config", "user.name"]
AGE = 2.3  # seconds until a file is not young any more


def own_mounts():
    if LIBC.unshare(CLONE_NEWNS) != 0:
        raise OSError("unshare(CLONE_NEWNS)")
    for command in ("mount --make-rprivate /", "mount -t tmpfs -o mode=755 cache.t /opt",
                    "mkdir /opt/etc", "cp -a /etc/. /opt/etc", "mount --bind /opt/etc /etc"):
        subprocess.run(command.split(), check=True)


class Kept:
    """A place with a view that is kept, and how to see whether it is used."""

    def __init__(self, who):
        self.place, self.who = Place(who), who.name
        self.name("one")

    def name(self, name, path=None):
        path = path or f"{self.place.home}/.gitconfig"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.place.write(path, f"[user]\n\tname = {name}", 0o644)
        os.chmod(self.place.home, 0o711)

    def run(self, argv, *options, program=SANDGLASS, **more):
        return self.place.run([program, "run", "--quiet", *options, "--", *argv], **more)

    def entries(self, state=None):
        top = f"{state or self.place.state}/cache"
        found = {}
        for name in os.listdir(top) if os.path.isdir(top) else ():
            st = os.lstat(f"{top}/{name}")
            if name.startswith("view-"):
                found[name] = (st.st_ino, st.st_mtime_ns, st.st_size)
        return found

    def warm(self, **more):
        """Runs until a view is kept, then shows that it is used: the control of every row."""
        time.sleep(AGE)
        first = self.run(NAME, **more)
        before = self.entries()
        second = self.run(NAME, **more)
        if not before or self.entries() != before or first.status or second.status:
            raise RuntimeError(f"control: nothing is kept\n{first}\n{second}\n{before}")
        return before

    def file(self):
        (name,) = self.entries()
        return f"{self.place.state}/cache/{name}"


def says(kept, what, want, argv, *options, **more):
    """The command works and prints that."""
    result = kept.run(argv, *options, **more)
    return tap.ok(result.status == 0 and result.out.strip() == want, f"{what}, {kept.who}",
                  f"wanted {want!r}", result)


def anew(kept, what, before, want, argv, *options, **more):
    """At once, and, when it may be kept, under a file of its own that is used from then on."""
    says(kept, f"{what}: seen at once", want, argv, *options, **more)
    time.sleep(AGE)
    good = says(kept, f"{what}: seen later", want, argv, *options, **more)
    after = kept.entries()
    again = kept.run(argv, *options, **more)
    tap.ok(good and after != before and kept.entries() == after and again.out.strip() == want,
           f"{what}: kept anew, {kept.who}", before, after, kept.entries(), again)
    return after


def git_rows(kept):
    place = kept.place
    before = kept.warm()
    kept.name("two")
    before = anew(kept, "~/.gitconfig", before, "two", NAME)
    place.write(f"{place.home}/.gitconfig", "[include]\n\tpath = more\n", 0o644)
    kept.name("three", f"{place.home}/more")
    before = anew(kept, "an included file that came", before, "three", NAME)
    kept.name("four", f"{place.home}/more")
    before = anew(kept, "an included file", before, "four", NAME)
    kept.name("fiv5", f"{place.home}/new")
    st = os.stat(f"{place.home}/more")
    os.utime(f"{place.home}/new", ns=(st.st_atime_ns, st.st_mtime_ns))
    os.rename(f"{place.home}/new", f"{place.home}/more")
    before = anew(kept, "an included file, replaced with times as before", before, "fiv5", NAME)
    kept.name("six", f"{place.home}/.config/git/config")
    place.write(f"{place.home}/.gitconfig", "", 0o644)
    anew(kept, "a second file that came", before, "six", NAME)


def environment_rows(kept):
    place = kept.place
    before = kept.warm()
    kept.name("seven", f"{place.top}/grant/git/config")
    os.unlink(f"{place.home}/.gitconfig")
    anew(kept, "XDG_CONFIG_HOME", before, "seven", NAME, env={"XDG_CONFIG_HOME": place.grant})
    kept.name("eight", f"{place.out}/.gitconfig")
    says(kept, "HOME", "eight", NAME, env={"HOME": place.out})
    home = kept.run(["true"], "--source", place.out, env={"HOME": place.out})
    tap.ok(home.status == 125 and "home directory" in home.err, f"HOME is no source, {kept.who}",
           home)
    other = f"{place.top}/other"
    os.mkdir(other, 0o700)
    place.own(other)
    kept.name("one")
    says(kept, "SANDGLASS_HOME", "one", NAME, env={"SANDGLASS_HOME": other})
    time.sleep(AGE)
    says(kept, "SANDGLASS_HOME, later", "one", NAME, env={"SANDGLASS_HOME": other})
    tap.ok(len(kept.entries(other)) == 1, f"SANDGLASS_HOME: kept there, {kept.who}",
           kept.entries(other))
    home = kept.run(["true"], "--source", other, env={"SANDGLASS_HOME": other})
    tap.ok(home.status == 125 and "own state" in home.err,
           f"SANDGLASS_HOME is no source, {kept.who}", home)
    says(kept, "a PATH of 100 kB", "one", NAME,
         env={"PATH": PATH + ":/nowhere/at/all" * 6000})


def source_rows(kept):
    place = kept.place
    safe = ["git", "config", "safe.directory"]
    kept.warm()
    deep = f"{place.src}/a/b"
    os.makedirs(deep)
    for path in (f"{place.src}/a", deep):
        place.own(path)
    says(kept, "the first source", place.src, safe)
    says(kept, "another source", deep, safe, cwd=deep)
    before = kept.entries()
    os.mkdir(f"{place.src}/a/.git")
    place.own(f"{place.src}/a/.git")
    says(kept, "`.git` above", f"{place.src}/a", safe, cwd=deep)
    os.rmdir(f"{place.src}/a/.git")
    says(kept, "`.git` above, gone", deep, safe, cwd=deep)
    tap.ok(set(before) < set(kept.entries()), f"each source has its own, {kept.who}", before,
           kept.entries())
    none = kept.run(safe, "--no-source")
    tap.ok(none.status == 1 and not none.out, f"no source, {kept.who}", none)


def program_rows(kept):
    place = kept.place
    folder = f"{place.top}/bin"
    os.mkdir(folder, 0o755)
    for name in ("sandglass", "sandglass-core", "sandglass-main"):
        shutil.copy(SANDGLASS if name == "sandglass" else beside(name), f"{folder}/{name}")
    mine = f"{folder}/sandglass"
    before = kept.warm(program=mine)
    shutil.copy(mine, f"{folder}/new")
    os.rename(f"{folder}/new", mine)
    anew(kept, "another program in its place", before, "one", NAME, program=mine)


def policy_rows(kept):
    place = kept.place
    kept.warm()
    touch = ["touch", "made"]
    free = kept.run(touch)
    tap.ok(free.status == 0 and os.path.exists(f"{place.src}/made"),
           f"control: the source is writable, {kept.who}", free)
    os.unlink(f"{place.src}/made")
    path = f"{place.home}/.config/sandglass/policy.yaml"
    os.makedirs(os.path.dirname(path))
    for part in (f"{place.home}/.config", os.path.dirname(path)):
        place.own(part)
    for age in (0, AGE):
        place.write(path, "version: 1\nmode: read-only\n", 0o644)
        time.sleep(age)
        for _ in range(2):
            held = kept.run(touch)
            tap.ok(held.status == 1 and not os.path.exists(f"{place.src}/made"),
                   f"a policy of {age} s, {kept.who}", held)
        place.write(path, "version: 1\n", 0o644)
        free = kept.run(touch)
        tap.ok(free.status == 0 and os.path.exists(f"{place.src}/made"),
               f"and changed again, {kept.who}", free)
        os.unlink(f"{place.src}/made")
    os.unlink(path)
    store = f"{place.home}/.npm/_cacache"
    os.makedirs(store)
    for part in (f"{place.home}/.npm", store):
        place.own(part)
    shown = kept.run(["ls", "-d", store], "--profile", "node")
    hidden = kept.run(["ls", "-d", store])
    tap.ok(shown.out.strip() == store and hidden.status == 2, f"a profile, {kept.who}", shown,
           hidden)


def damage(path, how):
    with open(path, "rb") as handle:
        data = handle.read()
    if how == "cut off":
        data = data[:len(data) // 2]
    elif how == "with one bit turned":
        data = data[:-40] + bytes([data[-40] ^ 4]) + data[-39:]
    elif how == "with one bit of its head turned":
        data = data[:44] + bytes([data[44] ^ 1]) + data[45:]
    elif how == "longer":
        data += b"\0" * 8
    elif how == "of noise":
        data = os.urandom(len(data))
    else:
        data = b""
    with open(path, "r+b") as handle:
        handle.truncate(0)
        handle.write(data)


def broken_rows(kept):
    place = kept.place
    whole = list(kept.warm().values())[0][2]
    path = kept.file()

    def mended(what, plain=True):
        before = os.lstat(path).st_ino if os.path.lexists(path) else None
        says(kept, f"the file is {what}", "one", NAME)
        after = os.lstat(path)
        tap.ok(not plain or (stat.S_ISREG(after.st_mode) and after.st_size == whole and
                             after.st_ino != before and after.st_mode & 0o7777 == 0o600),
               f"the file is {what}: written anew, {kept.who}", before, after)

    for how in ("cut off", "with one bit turned", "with one bit of its head turned", "longer",
                "of noise", "empty"):
        damage(path, how)
        mended(how)
    if ROOT:
        os.chown(path, 20009, 20009)
        mended("another's")
    os.chmod(path, 0o620)
    mended("writable by its group")
    os.rename(path, f"{place.out}/kept")
    mended("gone")
    os.unlink(path)
    os.symlink(f"{place.out}/kept", path)
    mended("a link to a whole one")
    os.unlink(path)
    os.mkfifo(path)
    mended("a fifo")
    os.unlink(path)
    os.mkdir(path)
    mended("a directory", plain=False)
    os.rmdir(path)
    with open(path, "wb") as huge:
        huge.truncate(1 << 33)
    place.own(path)
    mended("of 8 GiB")


def directory_rows(kept):
    place = kept.place
    kept.warm()
    top = f"{place.state}/cache"
    os.chmod(top, 0o500)
    says(kept, "a cache that cannot be written, used", "one", NAME)
    os.chmod(top, 0o700)
    os.unlink(kept.file())
    os.chmod(top, 0o500)
    says(kept, "a cache that cannot be written", "one", NAME)
    os.chmod(top, 0o770)
    before = kept.entries()
    says(kept, "a cache that others may write", "one", NAME)
    tap.ok(kept.entries() == before, f"nothing is put there, {kept.who}", kept.entries())
    shutil.rmtree(top)
    says(kept, "no cache", "one", NAME)
    tap.ok(kept.entries(), f"no cache: made, {kept.who}")
    shutil.rmtree(top)
    os.symlink(place.out, top)
    says(kept, "the cache is a link", "one", NAME)
    tap.ok(not [n for n in os.listdir(place.out) if "view-" in n],
           f"the cache is a link: not followed, {kept.who}", os.listdir(place.out))
    os.unlink(top)
    place.write(top, "a file")
    says(kept, "the cache is a file", "one", NAME)
    os.unlink(top)
    shutil.rmtree(place.state)
    says(kept, "no state at all", "one", NAME)


def many_rows(kept):
    place = kept.place
    time.sleep(AGE)
    argv = [SANDGLASS, "run", "--quiet", *NAME]
    started = [place.start(argv) for _ in range(20)]
    said = [process.communicate(timeout=120) for process in started]
    wrong = [one for one, process in zip(said, started)
             if process.returncode or one[0] != b"one\n"]
    left = [n for n in os.listdir(f"{place.state}/cache") if n.startswith(".")]
    tap.ok(not wrong and not left and len(kept.entries()) == 1,
           f"20 starts at once with a cold cache, {kept.who}", wrong, left, kept.entries())
    before = kept.entries()
    says(kept, "and the next", "one", NAME)
    tap.ok(kept.entries() == before, f"uses what they kept, {kept.who}", before, kept.entries())
    talk = place.start([SANDGLASS, "run", "--quiet", "sh", "-c",
                        "touch ready; while [ ! -e go ]; do sleep 0.05; done; git config user.name"])
    wait_for(lambda: os.path.exists(f"{place.src}/ready"), 30)
    shutil.rmtree(f"{place.state}/cache")
    place.write(f"{place.src}/go", "")
    out, err = talk.communicate(timeout=60)
    tap.ok(talk.returncode == 0 and out == b"one\n",
           f"the cache is removed while a command runs, {kept.who}", out, err)


def host_rows(kept):
    """With /opt and /etc of our own."""
    place = kept.place
    tool = f"/opt/tool-{kept.who}"
    shutil.rmtree(tool, ignore_errors=True)
    os.makedirs(f"{tool}/bin")
    path = f"{PATH}:{tool}/bin"

    def put(top, text):
        with open(f"{top}/bin/which-one", "w", encoding="ascii") as handle:
            handle.write(f"#!/bin/sh\necho {text}\n")
        os.chmod(f"{top}/bin/which-one", 0o755)

    put(tool, "first")
    before = kept.warm()
    absent = kept.run(["which-one"])
    tap.ok(absent.status == 127, f"control: it is not on PATH, {kept.who}", absent)
    before = anew(kept, "PATH gains a directory", before, "first", ["which-one"],
                  env={"PATH": path})
    put(tool, "changed")
    says(kept, "a program of a toolchain changes", "changed", ["which-one"], env={"PATH": path})
    tap.ok(kept.entries() == before, f"and what is kept still stands, {kept.who}", before,
           kept.entries())
    os.makedirs(f"{tool}.new/bin")
    put(f"{tool}.new", "second")
    os.rename(tool, f"{tool}.old")
    os.rename(f"{tool}.new", tool)
    before = anew(kept, "a toolchain is replaced", before, "second", ["which-one"],
                  env={"PATH": path})
    shutil.rmtree(tool)
    gone = kept.run(["which-one"], env={"PATH": path})
    tap.ok(gone.status == 127, f"a toolchain is removed, {kept.who}", gone)
    kept.warm()
    for text in ("/* one */", "/* two */"):
        with open("/etc/npmrc", "w", encoding="ascii") as handle:
            handle.write(text + "\n")
        anew(kept, "a copied file of /etc", kept.entries(), text, ["cat", "/etc/npmrc"])
    os.unlink("/etc/npmrc")
    gone = kept.run(["cat", "/etc/npmrc"])
    tap.ok(gone.status == 1, f"a file of /etc is removed, {kept.who}", gone)
    kept.warm()
    says(kept, "control: a source that is nobody's home", "one", NAME)
    with open("/etc/passwd", "r+", encoding="utf-8") as handle:
        passwd = handle.read()
        handle.write(f"cachet:x:4321:4321::{place.src}:/bin/sh\n")
    for age in (0, AGE):
        time.sleep(age)
        home = kept.run(NAME)
        tap.ok(home.status == 125 and "home directory" in home.err and not home.out,
               f"the source has become a home {age} s ago, {kept.who}", home)
    with open("/etc/passwd", "w", encoding="utf-8") as handle:
        handle.write(passwd)
    says(kept, "and is none again", "one", NAME)


def read_only_rows(kept):
    place = kept.place
    kept.warm()
    subprocess.run(["mount", "--bind", place.state, place.state], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", place.state], check=True)
    try:
        says(kept, "the state is read-only", "one", NAME)
        kept.name("two")
        says(kept, "the state is read-only and a view out of date", "two", NAME)
    finally:
        subprocess.run(["umount", place.state], check=True)


def main():
    rows = [git_rows, environment_rows, source_rows, program_rows, policy_rows, broken_rows,
            directory_rows, many_rows]
    if ROOT:
        own_mounts()
        rows += [host_rows, read_only_rows]
    for who in identities_once():
        for row in rows:
            if row.__name__ not in (sys.argv[1:] or [row.__name__]):
                continue
            kept = Kept(who)
            try:
                tap.attempt(f"{row.__name__}, {who.name}", row, kept)
            finally:
                kept.place.close()
    sys.exit(tap.done())


main()
