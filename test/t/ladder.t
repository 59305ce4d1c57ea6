#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Each system call of the boundary taken away: a refusal, or the loss is named.

A filter gives ENOSYS (an older kernel) or EPERM (a container, a security module)
for one call at a time, and sandglass runs below it, in both isolations. Either
nothing runs, with code and mend, or it runs and holds as ever, or it runs and
`not_enforced` names what is lost: never a weaker sandbox that says nothing. The
same where user namespaces are switched off.
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import SANDGLASS, SANITIZED, USER, Identity, Place, identities_once  # noqa: E402

SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "shim.py")
HOLDS = {"namespace": ["unshare", "clone3,clone-ns", "landlock_add_rule", "landlock_restrict_self",
                       "openat2", "mount", "umount2", "fsopen", "fsconfig", "fsmount", "open_tree",
                       "move_mount", "mount_setattr", "pivot_root", "capset", "sethostname",
                       "seccomp", "close_range"],
         "landlock": ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self",
                      "capset", "seccomp", "close_range", "pidfd_open", "pidfd_send_signal"]}
NAMED = {"namespace": {"landlock_create_ruleset": "landlock"}, "landlock": {}}
# Not used there: taken away, nothing changes.
UNUSED = {"namespace": [],
          "landlock": ["unshare", "clone3", "clone-ns", "setns", "mount", "umount2", "fsopen",
                       "fsconfig", "fsmount", "open_tree", "move_mount", "mount_setattr",
                       "pivot_root", "openat2", "sethostname"]}

# One of the two makes the namespaces: clone3 where the child is born in a cgroup.
EITHER = {"namespace": ["clone3", "clone-ns"], "landlock": []}

# What must hold whenever the command runs; each line says that it does not.
TRY = r"""
: >"$PWD/ran"
cat OUT/canary 2>/dev/null && echo READ
(: >OUT/made) 2>/dev/null && echo MADE
python3 -I -c 'import socket; s = socket.socket(); s.settimeout(1)
try: s.connect(("127.0.0.1", PORT)); print("CONNECTED")
except OSError: pass' 2>/dev/null
mount -t tmpfs none "$PWD" 2>/dev/null && echo MOUNTED
unshare -U true 2>/dev/null && echo NESTED
chmod 4755 ran 2>/dev/null && echo SETID
grep -q 'NoNewPrivs:.0' /proc/self/status 2>/dev/null && echo PRIVS
kill -0 HELPER 2>/dev/null && echo SIGNALLED
echo end
"""


def listener():
    import socket
    sock = socket.create_server(("127.0.0.1", 0))
    return sock, sock.getsockname()[1]


def run_one(place, script, isolation, call=None, error=None):
    argv = [SANDGLASS, "run", "--isolation", isolation, "--json", "-c", script]
    if call:
        argv = ["python3", "-I", SHIM, error, call, "--", *argv]
    ran = f"{place.src}/ran"
    if os.path.exists(ran):
        os.unlink(ran)
    done = place.run(argv)
    try:
        result = json.loads(done.out)
    except ValueError:
        result = {}
    return done, result, os.path.exists(ran)


def doctor(place, call, error):
    return json.loads(place.run(["python3", "-I", SHIM, error, call, "--", SANDGLASS, "doctor",
                                 "--json"]).out)


def is_refused(done, result, ran):
    error = result.get("error") or {}
    return (done.status == 125 and not ran and error.get("code") == "SANDBOX_UNAVAILABLE" and
            error.get("kind") == "terminal" and bool(error.get("hint")) and
            not result["sandbox"]["enforced"])


def holds(result, ran):
    return ran and result.get("stdout", {}).get("text", "").strip() == "end"


def ladder(who, isolation):
    place = Place(who, Identity("user", USER) if who.uid == 0 else who)
    sock, port = listener()
    helper = place.start(["sleep", "600"] if who.uid else
                         ["setpriv", f"--reuid={USER}", "--clear-groups", "sleep", "600"])
    try:
        place.write(f"{place.out}/canary")
        os.chmod(f"{place.out}/canary", 0o644)
        script = TRY.replace("OUT", place.out).replace("PORT", str(port)).replace(
            "HELPER", str(helper.pid))
        done, base, ran = run_one(place, script, isolation)
        tap.ok(holds(base, ran), f"{who.name}: {isolation}: with all of them it holds", done)
        as_owner = ["setpriv", f"--reuid={place.owner.uid}", f"--regid={place.owner.uid}",
                    "--clear-groups", "--"] if who.uid == 0 else []
        bare = place.run([*as_owner, "sh", "-c", script])
        tap.ok({"READ", "CONNECTED", "SIGNALLED"} <= set(bare.out.split()),
               f"{who.name}: {isolation}: bare it does not", bare)
        for error in ("ENOSYS", "EPERM"):
            for call in HOLDS[isolation]:
                if error == "ENOSYS":
                    found = doctor(place, call, error)["isolation"][isolation]
                    tap.ok(not found["available"] and found["detail"],
                           f"{who.name}: {isolation} without {call}: doctor says no", found)
                done, result, ran = run_one(place, script, isolation, call, error)
                tap.ok(is_refused(done, result, ran),
                       f"{who.name}: {isolation} without {call} ({error}): refused, with the mend",
                       done, ran)
            for call, name in NAMED[isolation].items():
                done, result, ran = run_one(place, script, isolation, call, error)
                box = result.get("sandbox", {"enforced": [], "not_enforced": []})
                tap.ok(holds(result, ran) and name in box["not_enforced"] and
                       name not in box["enforced"] and box["landlock"] == 0,
                       f"{who.name}: {isolation} without {call} ({error}): {name} is named", done)
                found = doctor(place, call, error)
                tap.ok(found["isolation"][isolation]["available"] and found["able"] and
                       not found["features"][name]["available"] and
                       found["features"][name]["mend"],
                       f"{who.name}: {isolation} without {call} ({error}): doctor says it", found)
                loud = place.run(["python3", "-I", SHIM, error, call, "--", SANDGLASS, "run",
                                  "true"])
                tap.ok(f"not enforced: {name}" in loud.err,
                       f"{who.name}: {isolation} without {call} ({error}): stderr says it", loud)
            for call in UNUSED[isolation] + EITHER[isolation]:
                done, result, ran = run_one(place, script, isolation, call, error)
                if call in EITHER[isolation] and is_refused(done, result, ran):
                    tap.ok(True, f"{who.name}: {isolation} without {call} ({error}): refused")
                    continue
                if (SANITIZED and isolation == "landlock" and (call, error) == ("clone3", "EPERM")
                        and done.status == 125 and not ran):
                    # The libc of that build starts every program by it, and has no other way.
                    tap.ok(True, f"{who.name}: {isolation} without {call} ({error}): nothing ran")
                    continue
                same = [result.get("sandbox", {}).get(k) == base["sandbox"][k]
                        for k in ("enforced", "not_enforced", "isolation")]
                tap.ok(holds(result, ran) and all(same),
                       f"{who.name}: {isolation} without {call} ({error}): as ever", done, same)
    finally:
        sock.close()
        place.close()


OFF = ["unshare", "-Ur", "sh", "-c", 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"',
       "sh"]


def switched_off(who):
    """No user namespace to be had: the caller is root of one that allows no other."""
    place = Place(who)
    try:
        done = place.run([*OFF, SANDGLASS, "run", "--json", "-c", ": >ran"])
        result = json.loads(done.out)
        hint = (result["error"] or {}).get("hint", "")
        # Root of a namespace that stands for the host's root is told that first.
        words = ["user.max_user_namespaces", "--isolation landlock", "keeps less"]
        tap.ok(done.status == 125 and result["error"]["code"] == "SANDBOX_UNAVAILABLE" and
               (who.uid == 0 or all(w in hint for w in words)) and
               not os.path.exists(f"{place.src}/ran"),
               f"{who.name}: without user namespaces: refused, with both mends", done)
        done = place.run([*OFF, SANDGLASS, "doctor", "--json"])
        found = json.loads(done.out)
        user = found["features"]["user_namespaces"]
        tap.ok(done.status == 1 and not found["able"] and not user["available"] and
               user["mend"].startswith("sysctl -w user.max_user_namespaces=") and
               not found["isolation"]["namespace"]["available"] and
               found["isolation"]["landlock"]["available"] == (who.uid != 0),
               f"{who.name}: without user namespaces: doctor says what can be had", done)
        done = place.run([*OFF, SANDGLASS, "doctor"])
        tap.ok(done.status == 1 and "MISSING  user_namespaces" in done.out and
               "to mend: sysctl -w" in done.out and
               ("--isolation landlock works here" in done.out) == (who.uid != 0),
               f"{who.name}: and says it in words", done)
        done = place.run([*OFF, SANDGLASS, "run", "--isolation", "landlock", "--quiet", "-c",
                          f"cat {place.home}/.profile; head -c1 /dev/zero | wc -c; echo x >f; "
                          "cat f"])
        if who.uid == 0:
            tap.ok(done.status == 125 and "uid 0" in done.err and not done.out,
                   f"{who.name}: nor the rung, where it would be the host's root", done)
        else:
            tap.ok(done.out == "1\nx\n", f"{who.name}: the rung is to be had there", done)
    finally:
        place.close()


for someone in identities_once():
    for kind in ("namespace", "landlock"):
        tap.attempt(f"{someone.name}: {kind}", ladder, someone, kind)
    if not SANITIZED:
        tap.attempt(f"{someone.name}: switched off", switched_off, someone)
sys.exit(tap.done())
