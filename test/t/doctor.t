#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""doctor: what it says is so, for whom it says it, and it leaves nothing behind.

What is missing is tried in ladder.t, where system calls are taken away. Here:
the form of the document, what a source's file system and the state directory
change, and that AppArmor's parser takes the profile that is named.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import ROOT, SANDGLASS, Place, identities  # noqa: E402

PROFILE = os.path.join(ROOT, "share", "apparmor", "sandglass")
PARSER = "/sbin/apparmor_parser"


def doctor(place, **more):
    done = place.run([SANDGLASS, "doctor", "--json"], **more)
    return done, json.loads(done.out)


def probes():
    return {n for n in os.listdir("/tmp") if n.startswith("sandglass-doctor-")}


def stays(names):
    """Those of the names that are still there later; others' doctors take theirs away."""
    until = time.monotonic() + 20
    while names & probes() and time.monotonic() < until:
        time.sleep(0.1)
    return names & probes()


def form(who):
    place = Place(who)
    try:
        before = probes()
        done, found = doctor(place)
        left = stays(probes() - before)
        tap.ok(not left and not os.listdir(place.state) and
               not os.path.exists(f"{place.home}/.local"), f"{who.name}: nothing is left behind",
               left, os.listdir(place.state))
        bad = [n for n, f in found["features"].items()
               if not isinstance(f.get("available"), bool) or
               not isinstance(f.get("needed"), bool) or
               "detail" not in f or (n != "sandbox" and "mend" not in f)]
        tap.ok(not bad and len(found["features"]) >= 18, f"{who.name}: each feature in one form",
               bad, done)
        silent = [n for n, f in found["features"].items()
                  if not f["available"] and (not f["detail"] or
                                             not (f["mend"] or n == "idmapped_mounts"))]
        tap.ok(not silent, f"{who.name}: what is missing has a reason and a mend", silent, done)
        mended = [n for n, f in found["features"].items() if f["available"] and f.get("mend")]
        tap.ok(not mended, f"{who.name}: what is there has nothing to mend", mended)
        needed = all(f["available"] for f in found["features"].values() if f["needed"])
        tap.ok(found["able"] == needed == (done.status == 0),
               f"{who.name}: able, needed features and status agree", done)
        words = place.run([SANDGLASS, "doctor"])
        missing = [n for n in found["features"] if n != "sandbox" and
                   not re.search(rf"^(yes|no|MISSING) +{n}\b", words.out, re.M)]
        tap.ok(not missing and words.status == done.status,
               f"{who.name}: in words the same", missing, words)
        for kind in ("namespace", "landlock"):
            ran = place.run([SANDGLASS, "run", "--isolation", kind, "--no-source", "true"])
            tap.ok((ran.status == 0) == found["isolation"][kind]["available"] or who.uid == 0,
                   f"{who.name}: isolation {kind} as it says", ran, found["isolation"])
    finally:
        place.close()


def places(who):
    """What depends on where one stands."""
    place = Place(who)
    try:
        done, found = doctor(place, env={"SANDGLASS_HOME": "/dev/null/state"})
        state = found["features"]["state_directory"]
        tap.ok(not state["available"] and state["path"] == "/dev/null/state" and
               "SANDGLASS_HOME" in state["mend"], f"{who.name}: a state directory that cannot be",
               state)
        done, found = doctor(place)
        state = found["features"]["state_directory"]
        tap.ok(state["available"] and state["path"] == place.state and state["filesystem"] != "?",
               f"{who.name}: one that can", state)
        idmap = found["features"]["idmapped_mounts"]
        if who.uid:
            tap.ok(not idmap["available"] and "root" in idmap["detail"],
                   f"{who.name}: id-mapped mounts are root's", idmap)
            return
        tap.ok(idmap["available"], "root: id-mapped mounts on this file system", idmap)
        done, found = doctor(place, cwd="/proc")
        idmap = found["features"]["idmapped_mounts"]
        tap.ok(not idmap["available"] and "--mode read-only" in idmap["mend"],
               "root: and not on one that has none", idmap)
    finally:
        place.close()


def mistakes(who):
    """A mistake in a policy file is no fault of the host."""
    place = Place(who)
    try:
        os.makedirs(f"{place.home}/.config/sandglass")
        name = f"{place.home}/.config/sandglass/policy.yaml"
        with open(name, "w", encoding="utf-8") as handle:
            handle.write("version: 1\nlimits: {wal: 1m}\n")
        done, found = doctor(place)
        item = found["features"]["policy_files"]
        tap.ok(found["able"] == found["features"]["sandbox"]["available"] and done.status == (not found["able"]) and not item["available"] and
               f"{name}:2:10: limits.wal: unknown key" in item["detail"] and "`wall`" in item["mend"] and
               "\n" not in item["detail"] + item["mend"],
               f"{who.name}: a mistake in a policy file has an item of its own", done)
        os.unlink(name)
        tap.ok(doctor(place)[1]["features"]["policy_files"]["available"],
               f"{who.name}: control: without the file it is fine")
    finally:
        place.close()


def apparmor():
    """The profile is what AppArmor reads; a parser before 4.0 knows all of it but `userns,`."""
    with open(PROFILE, encoding="utf-8") as handle:
        text = handle.read()
    tap.ok(re.findall(r"^  userns,$", text, re.M) == ["  userns,"] and "abi <abi/4.0>," in text,
           "the profile allows user namespaces, and says so once", text)
    tap.ok(re.search(r"^profile sandglass /\S*\{bin/sandglass,libexec/sandglass/sandglass-core\} ",
                     text, re.M), "the profile is for the program that makes them", text)
    if not os.access(PARSER, os.X_OK):
        tap.skip("apparmor_parser takes the profile", "apparmor_parser")
        return
    version = subprocess.run([PARSER, "--version"], capture_output=True, text=True, check=False)
    major = int(re.search(r"version (\d+)", version.stdout + version.stderr).group(1))
    if major < 4:
        text = text.replace("  userns,\n", "").replace("abi <abi/4.0>,", "abi <abi/3.0>,")
    for name, body, good in (("the profile", text, True),
                             ("a broken one is refused", text.replace("flags", "flogs"), False)):
        with tempfile.NamedTemporaryFile("w", suffix=".aa") as handle:
            handle.write(body)
            handle.flush()
            done = subprocess.run([PARSER, "-QK", handle.name], capture_output=True, text=True,
                                  check=False)
        tap.ok((done.returncode == 0) == good, f"apparmor_parser: {name}", done.stderr)


for someone in identities():
    for part in (form, places, mistakes):
        tap.attempt(f"{someone.name}: {part.__name__}", part, someone)
tap.attempt("apparmor", apparmor)
sys.exit(tap.done())
