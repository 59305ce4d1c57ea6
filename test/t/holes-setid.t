#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""No set-id bit and no file capability appears in a source, whatever program makes it.

A file made inside keeps the owner of the source on the host, so a set-id bit
on it would be that owner's. Archives and trees with such bits lie in the
source; programs that keep modes copy them. Bare, the copies have the bits;
inside they have none, and what was there before is untouched.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import USER, Identity, Place, identities, set_id_files  # noqa: E402

MODES = (0o4755, 0o2755, 0o6711)

# Name, what it needs, what it does with the tree `from` (and from.tar) into `to`.
COPIES = [
    ("cp -p", "cp", "cp -rp from/. to/"),
    ("cp -a", "cp", "cp -a from/. to/"),
    ("tar -xp", "tar", "tar -xpf from.tar -C to"),
    ("tar pipe", "tar", "tar -C from -cpf - . | tar -C to -xpf -"),
    ("rsync -a", "rsync", "rsync -a from/ to/"),
    ("rsync -aX", "rsync", "rsync -aX --perms from/ to/"),
    ("install -m", "install", "install -m 4755 from/4755 to/4755"),
    ("chmod u+s", "chmod", "cp from/4755 to/x; chmod u+s to/x; chmod g+s to/x; chmod 6755 to/x"),
    ("chmod --reference", "chmod", "cp from/4755 to/x; chmod --reference=from/4755 to/x"),
    ("python copystat", "python3",
     "cp from/4755 to/x; python3 -c 'import shutil; shutil.copystat(\"from/4755\", \"to/x\")'"),
    ("perl chmod", "perl", "cp from/4755 to/x; perl -e 'chmod 06755, \"to/x\"'"),
    ("open 4777", "python3", "umask 0; python3 -c 'import os; "
     "os.close(os.open(\"to/x\", os.O_CREAT | os.O_WRONLY, 0o4777))'"),
    ("mkdir g+s", "mkdir", "mkdir -m 2755 to/d; install -d -m 6755 to/e"),
    ("cpio -p", "cpio", "(cd from && find . | cpio -pdm ../to)"),
    ("bsdtar", "bsdtar", "bsdtar -xpf from.tar -C to"),
]


def prepare(place):
    """A tree, and an archive of it, that only who may make set-id files can have made."""
    os.mkdir(f"{place.src}/from", 0o755)
    place.own(f"{place.src}/from")
    for mode in MODES:
        path = place.write(f"{place.src}/from/{mode:o}", mode=0o755)
        os.chmod(path, mode)
    os.mkdir(f"{place.src}/from/dir", 0o755)
    place.own(f"{place.src}/from/dir")
    os.chmod(f"{place.src}/from/dir", 0o2755)
    subprocess.run(["tar", "-C", f"{place.src}/from", "-cpf", f"{place.src}/from.tar", "."],
                   check=True)
    place.own(f"{place.src}/from.tar")
    os.mkdir(f"{place.src}/to", 0o755)
    place.own(f"{place.src}/to")


def one(who, owner, script, inside):
    place = Place(who, owner)
    try:
        prepare(place)
        argv = place.inside() if inside else []
        result = place.run(argv + ["sh", "-c", f"echo started; {script}"])
        before = sorted(set_id_files(f"{place.src}/from"))
        found = [p[len(place.src) + 1:] for p in set_id_files(place.src)
                 if not p.startswith(f"{place.src}/from/")]
        return result, found, len(before) == len(MODES) + 1
    finally:
        place.close()


def copies(who, owner, over):
    for name, program, script in COPIES:
        title = f"{name}, {who.name}{over}"
        if subprocess.run(["sh", "-c", f"command -v {program}"], stdout=subprocess.DEVNULL,
                          check=False).returncode:
            tap.note(f"{name}: {program} is not installed here")
            continue
        bare, bits, _ = one(who, owner, script, False)
        inside, bits_in, kept = one(who, owner, script, True)
        ran = "started" in bare.out and "started" in inside.out
        tap.ok(bits and ran and not bits_in and kept, title,
               f"control made {bits}", bare, f"inside made {bits_in}, source kept {kept}", inside)


def every_call(who, owner, over):
    """The probe's rows leave everything that they made; find looks at it from outside."""
    for rows in (["set-id"], ["file-caps"]):
        seen = []
        for inside in (False, True):
            place = Place(who, owner)
            try:
                way = place.inside() if inside else []
                result = place.run(way + [place.probe, "--set", "keep=1", *rows])
                capable = [n for n in os.listdir(place.src)
                           if "security.capability" in os.listxattr(f"{place.src}/{n}")]
                made = [n for n in os.listdir(place.src) if n.startswith("sandglass-probe.")]
                seen.append((result, set_id_files(place.src) + capable, len(made)))
            finally:
                place.close()
        (bare, bits, made), (result, bits_in, made_in) = seen
        title = f"{rows[0]} left behind, {who.name}{over}"
        if rows == ["file-caps"] and who.uid:
            # On the host's own files these are root's to make, for everybody else refused.
            tap.ok(bare.row("file-caps")[0] == "safe" and not bits_in and made_in, title, result)
            continue
        tap.ok(bits and made and not bits_in and made_in, title, f"control {len(bits)} of {made}",
               bare, f"inside {bits_in} of {made_in}", result)


def main():
    people = [(who, who, "") for who in identities()]
    if os.geteuid() == 0:
        people = [(p[0], p[1], " in its own source") for p in people]
        people.insert(1, (people[0][0], Identity("user", USER), " in a user's source"))
    for who, owner, over in people:
        tap.attempt(f"copies, {who.name}{over}", copies, who, owner, over)
        tap.attempt(f"every call, {who.name}{over}", every_call, who, owner, over)
    return tap.done()


sys.exit(main())
