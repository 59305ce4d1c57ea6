#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Policy files: what is wrong is named with its place and runs nothing; a project's file only
narrows; what was compiled is used only as long as it is true.

Each of the broken files is put where a user's file lies, where a project's lies, or is named by
--policy. `run` must end with 125 and the code, the file, line, column and key, and the command must
not have run (it would have made a file); `policy check` must say the same. The control is the same
command with a file that is right.
"""

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import SANDGLASS, SANITIZED, Place, identities  # noqa: E402

C, U = "CONFIG_INVALID", "UNSUPPORTED"
V = "version: 1\n"

# Text, line, column, key, code.
TEXTS = [
    ("", 1, 1, None, C),
    ("# nothing but words\n", 1, 1, None, C),
    ("{", 2, 1, None, C),
    ("{}", 1, 1, "version", C),
    ("[]", 1, 1, None, C),
    ("version", 1, 1, None, C),
    ("mode: read-only\n", 1, 1, "version", C),
    ("version: 3\n", 1, 10, "version", U),
    ("version: '1'\n", 1, 10, "version", C),
    ("version: true\n", 1, 10, "version", C),
    ("version: [1]\n", 1, 10, "version", C),
    (V + "vresion: 1\n", 2, 1, "vresion", C),
    (V + "Mode: read-only\n", 2, 1, "Mode", C),
    (V + "filesystem:\n  denyReads: [/x]\n", 3, 3, "filesystem.denyReads", C),
    (V + "filesystem:\n  hidee:\n  - /x\n", 3, 3, "filesystem.hidee", C),
    (V + "environment: {passs: [A]}\n", 2, 15, "environment.passs", C),
    (V + "limits:\n  wall: 5m\n  memmory: 1G\n", 4, 3, "limits.memmory", C),
    (V + "mode: readonly\n", 2, 7, "mode", C),
    (V + "mode: 1\n", 2, 7, "mode", C),
    (V + "mode:\n", 2, 1, "mode", C),
    (V + "mode: [read-only]\n", 2, 7, "mode", C),
    (V + "writes: none\n", 2, 9, "writes", C),
    (V + "extends: node\n", 2, 10, "extends", C),
    (V + "extends: [nodee]\n", 2, 11, "extends[0]", C),
    (V + "mode: read-only\nmode: workspace-write\n", 3, 1, "mode", C),
    ('{"version": 1, "limits": {"pids": 4, "pids": 5}}', 1, 38, "pids", C),
    (V + "limits: &l {pids: 5}\n", 2, 12, None, C),
    (V + "environment: {set: {A: &a x, B: *a}}\n", 2, 27, None, C),
    (V + "mode: *m\n", 2, 7, None, C),
    (V + "mode: !!str read-only\n", 2, 13, None, C),
    (V + "mode: !<tag:yaml.org,2002:js/function> x\n", 2, 40, None, C),
    (V + "---\n" + V, 2, 1, None, C),
    (V + "limits:\n\twall: 5m\n", 3, 1, None, C),
    (V + "filesystem:\n  read:\n\t- /x\n", 4, 1, None, C),
    (V + "limits: {wall: 5}\n", 2, 16, "limits.wall", C),
    (V + "limits: {wall: 5 m}\n", 2, 16, "limits.wall", C),
    (V + "limits: {wall: 99999999999999999999d}\n", 2, 16, "limits.wall", C),
    (V + "limits: {wall: 0s}\n", 2, 16, "limits.wall", C),
    (V + "limits: {memory: 5MB}\n", 2, 18, "limits.memory", C),
    (V + "limits: {memory: -1}\n", 2, 18, "limits.memory", C),
    (V + "limits: {pids: '9'}\n", 2, 16, "limits.pids", C),
    (V + "limits: {pids: 0x10}\n", 2, 16, "limits.pids", C),
    (V + "limits: {pids: 0}\n", 2, 16, "limits.pids", C),
    (V + "limits: {cpus: two}\n", 2, 16, "limits.cpus", C),
    (V + "limits: [wall, 5m]\n", 2, 9, "limits", C),
    (V + "limits: {idle: 5m}\n", 2, 10, "limits.idle", U),
    (V + "network: {allow: ['*']}\n", 2, 19, "network.allow[0]", C),
    (V + "network: {allow: [a.b, 'https://a.b/x']}\n", 2, 24, "network.allow[1]", C),
    (V + "network: {allow: [10.1.2.3/24]}\n", 2, 19, "network.allow[0]", C),
    (V + "network: {allow: [user@example.com]}\n", 2, 19, "network.allow[0]", C),
    (V + "network: {deny: ['a.b:0']}\n", 2, 18, "network.deny[0]", C),
    (V + "network: {local: [70000]}\n", 2, 19, "network.local[0]", C),
    (V + "network: {allow: [{host: a.b, methods: [get]}]}\n", 2, 41,
     "network.allow[0].methods[0]", C),
    (V + "network: {allow: [{host: a.b, paths: [x]}]}\n", 2, 39, "network.allow[0].paths[0]", C),
    (V + "network: {inspect: a.b}\n", 2, 20, "network.inspect", C),
    (V + "network: {push: [a.b]}\n", 2, 18, "network.push[0]", C),
    (V + "network: {bytes_up: 1MB}\n", 2, 21, "network.bytes_up", C),
    (V + "network: {bytes_down: none}\n", 2, 23, "network.bytes_down", C),
    (V + "network: {rate: 1000}\n", 2, 17, "network.rate", C),
    (V + "network: {connections: 0}\n", 2, 24, "network.connections", C),
    (V + "network: {connectoins: 1}\n", 2, 11, "network.connectoins", C),
    (V + "network: {mirror: {npm: 'a.b'}}\n", 2, 25, "network.mirror.npm", C),
    (V + "network: {mirror: {nmp: 'http://a.b'}}\n", 2, 20, "network.mirror.nmp", C),
    (V + "network: {mirror: {go: 'http://*.a.b'}}\n", 2, 24, "network.mirror.go", C),
    (V + "network: {alow: [a.b]}\n", 2, 11, "network.alow", C),
    (V + "secrets: [{name: x}]\n", 2, 11, "secrets[0]", C),
    (V + "secrets: [{name: x, form: 'env:A'}]\n", 2, 21, "secrets[0].form", C),
    (V + "secrets: [{name: x, from: 'env:A', hosts: [a.b], header: 'A: {value}', ttl: 1h}]\n",
     2, 72, "secrets[0].ttl", U),
    (V + "rules: [{match: {tool: x}, decision: deny}]\n", 2, 1, "rules", U),
    (V + "filesystem: {read: /etc/passwd}\n", 2, 20, "filesystem.read", C),
    (V + "filesystem: {write: ['**/x']}\n", 2, 22, "filesystem.write[0]", C),
    (V + "filesystem: {hide: ['*.pem']}\n", 2, 21, "filesystem.hide[0]", C),
    (V + "filesystem: {hide: [a, {b: c}]}\n", 2, 24, "filesystem.hide[1]", C),
    (V + "filesystem: {read: [~other/x]}\n", 2, 21, "filesystem.read[0]", C),
    (V + "environment: {set: {HOME: /x}}\n", 2, 21, "environment.set.HOME", C),
    (V + "environment: {pass: ['A=b']}\n", 2, 22, "environment.pass[0]", C),
    (V + "mode: \udcff\n", 2, 7, None, C),
    (V + "# \udcc0\udc80\n", 2, 3, None, C),
    (V + "mode: read-only\0\n", 2, 16, None, C),
    (V + "mode: \u202eylno-daer\n", 2, 7, None, C),
    (V + "extends: " + "[" * 40 + "]" * 40 + "\n", 2, 25, None, C),
]


def put(place, path, text, mode=0o644, own=True):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if own:
        place.own(os.path.dirname(path))
    with open(path, "wb") as handle:
        handle.write(text.encode("utf-8", "surrogateescape"))
    os.chmod(path, mode)
    return place.own(path)


def user_file(place):
    return f"{place.home}/.config/sandglass/policy.yaml"


def project_file(place):
    return f"{place.src}/.sandglass/policy.yaml"


class Bench:
    """One place, whose policy files come and go."""

    def __init__(self, who):
        self.who, self.place = who, Place(who)
        place = self.place
        os.makedirs(os.path.dirname(user_file(place)))
        for path in (f"{place.home}/.config", os.path.dirname(user_file(place))):
            place.own(path)
        self.made = f"{place.src}/made"

    def clear(self):
        for path in (user_file(self.place), project_file(self.place), self.made):
            if os.path.isdir(path) and not os.path.islink(path):
                os.rmdir(path)
            elif os.path.lexists(path):
                os.unlink(path)

    def run(self, *options, script="touch made; echo ran", env=None):
        """The result, and whether the command ran."""
        if os.path.exists(self.made):
            os.unlink(self.made)
        done = self.place.run([SANDGLASS, "run", "--json", *options, "-c", script], env=env)
        try:
            result = json.loads(done.out)
        except ValueError:
            result = {"error": {"code": None, "message": f"no JSON: {done}"}}
        return done.status, result, os.path.exists(self.made)

    def check(self, *args):
        done = self.place.run([SANDGLASS, "policy", "check", "--json", *args])
        try:
            return done.status, json.loads(done.out)["findings"]
        except (ValueError, KeyError):
            return done.status, [{"message": f"no JSON: {done}"}]

    def show(self, *args):
        return json.loads(self.place.run([SANDGLASS, "policy", "show", "--json", *args]).out)

    def close(self):
        self.place.close()


def refused(bench, name, path, where, code, line=None, column=None, key=None, options=(),
            checks=(1,)):
    """run and policy check say the same of a file, and nothing ran."""
    status, result, ran = bench.run(*options)
    error = result.get("error") or {}
    head = path + (f":{line}:{column}" if line else "") + ": " + (f"{key}: " if key else "")
    good = (status == 125 and not ran and error.get("code") == code
            and error.get("message", "").startswith(head))
    known = status, ran, error
    status, found = bench.check(*([path] if where == "file" else []))
    first = found[0] if found else {}
    good = (good and status in checks and first.get("code") == code and first.get("file") == path
            and (first.get("line"), first.get("column"), first.get("key")) == (line, column, key))
    return tap.ok(good, f"{bench.who.name}: {where}: {name}", known, (status, first),
                  f"wanted {head}")


def broken_texts(bench):
    place = bench.place
    files = {"user": user_file(place), "project": project_file(place),
             "file": f"{place.home}/named.yaml"}
    for number, (text, line, column, key, code) in enumerate(TEXTS):
        where = ("user", "project", "file")[number % 3]
        bench.clear()
        path = put(place, files[where], text)
        name = repr(text if len(text) < 60 else text[:57] + "...")
        refused(bench, name, path, where, code, line, column, key,
                ["--policy", path] if where == "file" else [])
    bench.clear()


def special_files(bench):
    """What is no plain file of the right owner is not read at all."""
    place, path = bench.place, user_file(bench.place)

    def large():
        put(place, path, V)
        os.truncate(path, 1 << 30)

    def device():
        if os.geteuid() == 0:
            os.mknod(path, 0o644 | stat.S_IFCHR, os.makedev(1, 5))
            place.own(path)
        else:
            os.mkfifo(path)

    def foreign():
        put(place, path, V)
        if os.geteuid() == 0:
            os.chown(path, 20009, 20009)

    kinds = [
        ("1 GB", large),
        ("a fifo", lambda: os.mkfifo(path)),
        ("a device (/dev/zero)", device),
        ("a directory", lambda: os.mkdir(path)),
        ("a link", lambda: os.symlink(put(place, f"{place.home}/other.yaml", V), path)),
        ("a link to itself", lambda: os.symlink("policy.yaml", path)),
        ("a link that leads nowhere", lambda: os.symlink("/nonexistent/x", path)),
        ("another owner", foreign),
        ("group may write", lambda: put(place, path, V, 0o664)),
        ("all may write", lambda: put(place, path, V, 0o666)),
    ]
    for name, make in kinds:
        bench.clear()
        if name == "another owner" and os.geteuid() != 0:
            tap.skip(f"{bench.who.name}: user: {name}", "root to make it")
            continue
        make()
        begin = time.monotonic()
        refused(bench, name, path, "user", C)
        if time.monotonic() - begin > 10:
            tap.ok(False, f"{bench.who.name}: {name} is read without end")
    bench.clear()
    # Not to be read at all: no answer, rather than the answer no. (Root reads everything.)
    if bench.who.uid != 0:
        put(place, path, V, 0o000)
        refused(bench, "unreadable", path, "user", C, checks=(2,))
    bench.clear()
    path = project_file(place)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(put(place, f"{place.home}/other.yaml", V), path)
    refused(bench, "a link", path, "project", C)
    bench.clear()
    shutil.rmtree(os.path.dirname(path))
    os.symlink(os.path.dirname(put(place, f"{place.out}/policy.yaml", V)), f"{place.src}/.sandglass")
    refused(bench, "a link on the way", path, "project", C)
    os.unlink(f"{place.src}/.sandglass")
    gone = f"{place.home}/gone.yaml"
    refused(bench, "is not there", gone, "file", C, options=["--policy", gone], checks=(2,))
    # Links in the home's own path are the user's business: a control that links are no taboo.
    os.rename(f"{place.home}/.config", f"{place.home}/real")
    os.symlink("real", f"{place.home}/.config")
    put(place, user_file(place), V + "environment: {set: {FROM: file}}\n", own=False)
    _, result, ran = bench.run(script="touch made; echo $FROM")
    tap.ok(ran and "file" in result["stdout"]["text"],
           f"{bench.who.name}: control: a link to the whole directory is followed", result)
    os.unlink(f"{place.home}/.config")
    os.rename(f"{place.home}/real", f"{place.home}/.config")
    bench.clear()


def control(bench):
    bench.clear()
    status, result, ran = bench.run()
    tap.ok(status == 0 and ran and result["sandbox"]["policy"] == [],
           f"{bench.who.name}: control: without any policy the command runs", status, result)
    put(bench.place, user_file(bench.place), V)
    put(bench.place, project_file(bench.place), V)
    status, result, ran = bench.run()
    tap.ok(status == 0 and ran and len(result["sandbox"]["policy"]) == 2,
           f"{bench.who.name}: control: with files that are right too", status, result)
    bench.clear()


def layers(bench):
    """The higher layer counts, for each kind of value."""
    place, who = bench.place, bench.who.name
    put(place, user_file(place), V + "limits: {wall: 100s, pids: 90}\nmode: read-only\n"
        "environment: {set: {A: user, B: user}, pass: [GIVEN]}\n"
        f"filesystem: {{read: [{place.grant}, ~/absent], write: [{place.out}]}}\n")
    named = put(place, f"{place.home}/named.yaml",
                V + "limits: {wall: 50s}\nmode: workspace-write\nenvironment: {set: {B: file}}\n")
    status, result, ran = bench.run(env={"GIVEN": "given"}, script=(
        f"echo $A $B $GIVEN $OTHER; touch {place.out}/w; touch {place.grant}/w; touch made"))
    tap.ok(not ran and "user user given" in result["stdout"]["text"]
           and os.path.exists(f"{place.out}/w") and not os.path.exists(f"{place.grant}/w")
           and "Read-only" in result["stderr"]["text"]
           and result["sandbox"]["mode"] == "read-only"
           and result["sandbox"]["limits"]["wall"]["value"] == 100000,
           f"{who}: the user's file holds: mode, limits, environment, paths", status, result)
    status, result, ran = bench.run("--policy", named, "--timeout", "20s", "--env", "C=option",
                                    script="echo $A $B $C; touch made")
    tap.ok(ran and "user file option" in result["stdout"]["text"]
           and result["sandbox"]["limits"]["wall"]["value"] == 20000
           and result["sandbox"]["limits"]["pids"]["value"] == 90
           and [f["layer"] for f in result["sandbox"]["policy"]] == ["user", "file"],
           f"{who}: --policy is above it, and options above that", status, result)
    shown = bench.show("--policy", named)
    states = {f["written"]: f["state"] for f in shown["filesystem"]}
    tap.ok(shown["mode"] == {"value": "workspace-write", "origin": f"file {named}:3"}
           and shown["limits"]["pids"] == {"value": "90", "origin": f"user {user_file(place)}:2"}
           and shown["limits"]["disk"]["origin"] == "built-in"
           and states["~/absent"] == "does not exist" and states[place.out] == "used",
           f"{who}: policy show says where each value is from", shown)
    text = place.run([SANDGLASS, "policy", "show", "--origin"])
    again = put(place, f"{place.home}/again.yaml", text.out)
    status, found = bench.check(again)
    absent = put(place, f"{place.home}/absent.yaml", place.run(
        [SANDGLASS, "policy", "show", "--profile", "browser"]).out)
    status, found = status or bench.check(absent)[0], found + bench.check(absent)[1]
    own = {"audit.identity", "retention.audit", "retention.logs", "retention.artifacts"}
    others = [f for f in found if f["severity"] != "warning" or f["key"] not in own]
    tap.ok(text.status == 0 and "# built-in" in text.out and status == 0 and not others and
           {f["key"] for f in found} == own,  # which count in the user's file alone
           f"{who}: what policy show prints is a policy", text, found)
    bench.clear()


def narrowing(bench):
    """A project's file takes rights away and gives none, until it is trusted."""
    place, who, path = bench.place, bench.who.name, project_file(bench.place)
    secret = place.write(f"{place.grant}/secret")
    wide = (V + "mode: workspace-write\nextends: [node]\n"
            f"filesystem: {{read: [{place.grant}], write: [{place.out}]}}\n"
            "environment: {pass: [TOKEN], set: {LD_LIBRARY_PATH: /x}}\n"
            "limits: {pids: 100000, wall: none}\n")
    script = f"cat {secret}; echo $TOKEN; echo $LD_LIBRARY_PATH; echo x >{place.out}/w; touch made"
    put(place, path, wide)
    if os.path.exists(f"{place.out}/w"):
        os.unlink(f"{place.out}/w")
    status, result, ran = bench.run(env={"TOKEN": place.canary + "-token"}, script=script)
    ignored = " ".join(result["sandbox"]["ignored"])
    tap.ok(ran and place.canary not in json.dumps(result) and not os.path.exists(f"{place.out}/w")
           and result["sandbox"]["limits"]["pids"]["value"] == 8192
           and result["sandbox"]["limits"]["wall"]["value"] == 3600000
           and all(word in ignored for word in ("extends", "filesystem.read", "filesystem.write",
                                                "environment.pass", "environment.set",
                                                "limits.wall", "policy trust " + path))
           and result["sandbox"]["policy"][0]["trusted"] is False,
           f"{who}: an untrusted project's file widens nothing, and it is said", status, result)
    done = place.run([SANDGLASS, "run", "-c", "true"])
    lines = [line for line in done.err.split("\n") if "not trusted" in line]
    tap.ok(len(lines) == 1 and "policy trust" in lines[0],
           f"{who}: on stderr it is one line", done)
    done = place.run([SANDGLASS, "policy", "trust", ".sandglass/policy.yaml"])
    digest = hashlib.sha256(wide.encode()).hexdigest()
    tap.ok(done.status == 0 and digest in done.out, f"{who}: policy trust names what it trusts",
           done)
    status, result, ran = bench.run(env={"TOKEN": place.canary + "-token"}, script=script)
    out = result["stdout"]["text"]
    tap.ok(ran and place.canary in out and place.canary + "-token" in out
           and os.path.exists(f"{place.out}/w") and result["sandbox"]["ignored"] == []
           and "wall" not in result["sandbox"]["limits"],
           f"{who}: control: trusted, all of it counts", status, result)
    os.unlink(f"{place.out}/w")
    put(place, path, wide + "\n")
    _, result, ran = bench.run(script=script)
    tap.ok(ran and place.canary not in json.dumps(result) and not os.path.exists(f"{place.out}/w"),
           f"{who}: one byte more, and it is not trusted", result)
    put(place, path, wide)
    other = Place(bench.who)
    try:
        put(other, project_file(other), wide)
        done = other.run([SANDGLASS, "run", "--json", "-c", script],
                         env={"HOME": place.home, "SANDGLASS_HOME": place.state})
        tap.ok(place.canary not in done.out and json.loads(done.out)["sandbox"]["ignored"],
               f"{who}: the same text in another project is not trusted", done)
    finally:
        other.close()
    first = place.run([SANDGLASS, "policy", "untrust", path])
    again = place.run([SANDGLASS, "policy", "untrust", path])
    _, result, ran = bench.run(script=script)
    tap.ok(first.status == 0 and again.status == 1 and ran
           and place.canary not in json.dumps(result),
           f"{who}: policy untrust takes it back", first, again, result)
    put(place, path, V + "mode: read-only\nlimits: {wall: 7s, pids: 50}\n")
    status, result, ran = bench.run()
    tap.ok(not ran and status == 0 and result["sandbox"]["mode"] == "read-only"
           and result["sandbox"]["limits"]["wall"]["value"] == 7000
           and result["sandbox"]["ignored"] == [],
           f"{who}: what narrows counts without trust", status, result)
    put(place, path, V + "filesystem: {read: [kept]}\n")
    put(place, f"{place.src}/kept", "as it was")
    _, result, ran = bench.run(script="echo pwn >kept; touch made")
    with open(f"{place.src}/kept", encoding="utf-8") as handle:
        tap.ok(ran and handle.read() == "as it was", f"{who}: read: in the source protects", result)
    bench.clear()


def full_access(bench):
    """Never from a project, and from a user's file only with a person at a terminal."""
    place, who = bench.place, bench.who.name
    path = put(place, project_file(place), V + "mode: danger-full-access\n")
    for trusted in (False, True):
        if trusted:
            place.run([SANDGLASS, "policy", "trust", path])
        _, result, ran = bench.run(script=f"cat {place.home}/.profile; touch made")
        tap.ok(ran and place.canary not in result["stdout"]["text"]
               and result["sandbox"]["mode"] == "workspace-write"
               and "full access" in " ".join(result["sandbox"]["ignored"]),
               f"{who}: a project cannot ask for full access (trusted: {trusted})", result)
    bench.clear()
    put(place, user_file(place), V + "mode: danger-full-access\n")
    status, result, ran = bench.run()
    tap.ok(status == 125 and not ran and result["error"]["code"] == "POLICY_DENIED",
           f"{who}: a user's file needs a person who confirms it", status, result)
    bench.clear()
    # Variables of the workspace lead nowhere.
    for name in (".env", ".sandglass.env", ".envrc"):
        put(place, f"{place.src}/{name}", f"SANDGLASS_HOME={place.src}/evil\n"
            f"XDG_CONFIG_HOME={place.src}/evil\n")
    put(place, f"{place.src}/evil/sandglass/policy.yaml", V + f"filesystem: {{read: [{place.grant}]}}\n")
    place.write(f"{place.grant}/secret")
    _, result, ran = bench.run(script=f"cat {place.grant}/secret; touch made")
    tap.ok(ran and place.canary not in result["stdout"]["text"]
           and result["sandbox"]["policy"] == [],
           f"{who}: a .env of the workspace redirects no configuration", result)
    for name in (".env", ".sandglass.env", ".envrc"):
        os.unlink(f"{place.src}/{name}")
    shutil.rmtree(f"{place.src}/evil")


def caches(place):
    top = f"{place.state}/cache"
    names = sorted(os.listdir(top)) if os.path.isdir(top) else []
    return [f"{top}/{name}" for name in names if name.startswith("policy-")]


def started_main(bench, *options):
    """Whether a run starts sandglass-main: seen by execve, whatever the run says of itself."""
    trace = f"{bench.place.tmp}/trace"
    done = bench.place.run(["strace", "-f", "-qq", "-e", "trace=execve", "-o", trace, SANDGLASS,
                            "run", *options, "true"])
    with open(trace, encoding="utf-8", errors="replace") as handle:
        return done.status, "sandglass-main" in handle.read()


def settle(*paths):
    """Older than what is taken for just written: the clock of files is coarse."""
    newest = max(os.lstat(p).st_ctime for p in paths if os.path.lexists(p))
    wait = newest + 2.2 - time.time()
    if wait > 0:
        time.sleep(wait)


def cache(bench):
    """Used only as long as it is true, and only if it is ours."""
    place, who, path = bench.place, bench.who.name, user_file(bench.place)
    shutil.rmtree(f"{place.state}/cache", ignore_errors=True)
    tap.ok(started_main(bench) == (0, False), f"{who}: without a policy nothing is compiled")
    put(place, path, V + "limits: {wall: 60s}\n")
    tap.ok(started_main(bench) == (0, True) and not caches(place),
           f"{who}: a file just written is compiled and not kept", caches(place))
    settle(path)
    first, second = started_main(bench), started_main(bench)
    kept = caches(place)
    tap.ok(first == (0, True) and second == (0, False) and len(kept) == 1,
           f"{who}: a settled one is compiled once", first, second, kept)
    if not kept:
        return
    one = kept[0]
    with open(one, "rb") as handle:
        good = handle.read()
    st = os.stat(one)
    tap.ok(stat.S_IMODE(st.st_mode) == 0o600 and st.st_uid == bench.who.uid,
           f"{who}: the cache is its owner's alone")

    def spoil(name, make):
        put(place, one, "")
        os.chmod(one, 0o600)
        os.unlink(one)
        make()
        status, result, ran = bench.run()
        tap.ok(status == 0 and ran and result["sandbox"]["limits"]["wall"]["value"] == 60000
               and started_main(bench) == (0, False),
               f"{who}: a cache that is {name} is not used, and made again", status, result)

    def write(data, mode=0o600, owner=None):
        with open(one, "wb") as handle:
            handle.write(data)
        os.chmod(one, mode)
        if os.geteuid() == 0:
            os.chown(one, owner if owner is not None else bench.who.uid, -1)

    # What a forged one would say: less time than anybody asked for.
    forged = good.replace((60000).to_bytes(8, "little"), (59000).to_bytes(8, "little"))
    body = forged[48:]
    forged = forged[:16] + hashlib.sha256(body).digest() + body
    write(forged)
    _, result, _ = bench.run()
    tap.ok(result["sandbox"]["limits"]["wall"]["value"] == 59000,
           f"{who}: control: one of the right owner and mode is believed", result)
    spoil("cut off", lambda: write(good[:-1]))
    spoil("empty", lambda: write(b""))
    spoil("altered", lambda: write(good[:60] + bytes([good[60] ^ 1]) + good[61:]))
    spoil("of another version", lambda: write(good[:4] + b"\x63" + good[5:]))
    spoil("writable by a group", lambda: write(forged, 0o620))
    spoil("writable by others", lambda: write(forged, 0o602))
    if os.geteuid() == 0:
        spoil("another user's", lambda: write(forged, 0o600, 20009))

    def link():
        other = f"{place.tmp}/forged"
        with open(other, "wb") as handle:
            handle.write(forged)
        os.chmod(place.own(other), 0o600)
        os.symlink(other, one)

    spoil("a link", link)

    def fifo():
        os.mkfifo(one, 0o600)
        place.own(one)

    spoil("a fifo", fifo)
    bench.clear()


def flips(bench):
    """Each input changed once: a new policy is seen at once."""
    place, who, path = bench.place, bench.who.name, user_file(bench.place)
    project, named = project_file(place), f"{place.home}/named.yaml"
    shutil.rmtree(f"{place.state}/cache", ignore_errors=True)
    put(place, path, V + "environment: {set: {A: one}}\n")
    put(place, project, V + "environment: {set: {B: one}}\n")
    put(place, named, V + "environment: {set: {C: one}}\n")
    for extra in ("rust", "more"):
        os.makedirs(f"{place.home}/.{extra}", exist_ok=True)
    settle(path, project, named)

    def state(*options, home=None):
        env = {"HOME": home} if home else None
        _, result, _ = bench.run(*options, script="echo $A-$B-$C", env=env)
        return (result.get("stdout") or {}).get("text", "").strip() or result["error"]

    def warm(*options):
        state(*options)
        return started_main(bench, *options) == (0, False)

    def flip(name, change, want, *options, back=None):
        before = warm(*options)
        change()
        got = state(*options)
        tap.ok(before and got == want, f"{who}: flip: {name}", f"warm {before}", got, want)
        if back:
            back()
        settle(path, project, named, f"{place.state}/trust")

    flip("content, same size", lambda: put(place, path, V + "environment: {set: {A: two}}\n"),
         "two--")

    def keep_times():
        st = os.stat(path)
        put(place, path, V + "environment: {set: {A: six}}\n")
        os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))

    flip("content, size and times set back", keep_times, "six--")

    def replace():
        put(place, path + ".new", V + "environment: {set: {A: ten}}\n")
        os.utime(path + ".new", ns=(os.stat(path).st_atime_ns, os.stat(path).st_mtime_ns))
        os.rename(path + ".new", path)

    flip("another file renamed over it", replace, "ten--")
    flip("a named file", lambda: None, "ten--one", "--policy", named)
    flip("the named file's content",
         lambda: put(place, named, V + "environment: {set: {C: two}}\n"), "ten--two",
         "--policy", named)
    flip("trust given", lambda: place.run([SANDGLASS, "policy", "trust", project]), "ten-one-")
    flip("trust taken", lambda: place.run([SANDGLASS, "policy", "untrust", project]), "ten--")
    flip("the user's file gone", lambda: os.rename(path, path + ".gone"), "--",
         back=lambda: os.rename(path + ".gone", path))
    flip("the mode: others may write",  # an error is no cached one
         lambda: os.chmod(path, 0o666), state_error(bench, path),
         back=lambda: os.chmod(path, 0o644))
    tap.ok(state(home=place.out) == "--", f"{who}: flip: another home has another file")
    tap.note(f"caches after all flips: {len(caches(place))}")
    bench.clear()


def state_error(bench, path):
    """What run says of a file that others may write; it is put back as it was."""
    mode = stat.S_IMODE(os.stat(path).st_mode)
    os.chmod(path, 0o666)
    _, result, _ = bench.run()
    os.chmod(path, mode)
    settle(path)
    return result["error"]


def racing(bench):
    """A file that is rewritten without end while runs begin: each run has one of its texts."""
    place, who, path = bench.place, bench.who.name, user_file(bench.place)
    put(place, path, V + "limits: {wall: 100s}\n")
    stop = f"{place.tmp}/stop"
    script = ("import os,sys\np,s=sys.argv[1:]\ni=0\n"
              "while not os.path.exists(s):\n"
              " i+=1\n open(p+'.n','w').write('version: 1\\nlimits: {wall: %ds}\\n'%(100+i%2))\n"
              " os.chmod(p+'.n',0o644)\n os.rename(p+'.n',p)\n"
              " f=open(p,'r+')\n f.write('version: 1\\nlimits: {wall: %ds}\\n'%(100+i%2))\n f.close()\n")
    writer = place.start([sys.executable, "-c", script, path, stop], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    seen = {}
    for _ in range(12 if SANITIZED else 40):
        _, result, ran = bench.run()
        error = (result.get("error") or {}).get("code")
        value = result["sandbox"]["limits"]["wall"]["value"] if ran else None
        key = error or value
        seen[key] = seen.get(key, 0) + 1
        if (ran and value not in (100000, 101000)) or (not ran and error != "CONFLICT"):
            tap.ok(False, f"{who}: a policy that changes while it is read", result)
            break
    else:
        tap.ok(True, f"{who}: a policy that changes while it is read: one of its texts, or CONFLICT")
    tap.note(f"what the runs had: {seen}")
    with open(stop, "w", encoding="utf-8"):
        pass
    writer.wait(10)
    bench.clear()


def profiles(bench):
    """A failure that a profile would mend names it; with the profile the thing is there."""
    place, who = bench.place, bench.who.name
    cached = f"{place.home}/.cargo/registry/cached"
    put(place, cached, "a crate", own=False)
    for path in (f"{place.home}/.cargo", f"{place.home}/.cargo/registry"):
        place.own(path)
    token = place.write(f"{place.home}/.cargo/credentials.toml")
    script = f"cargo() {{ cat {cached}; }}; cat {token} 2>/dev/null; cargo build && touch made"
    status, result, ran = bench.run(script=script)
    hints = [d for d in result["denials"] if d["rule"] == "view.home"]
    tap.ok(status != 0 and not ran and len(hints) == 1 and "--profile rust" in hints[0]["hint"]
           and hints[0]["target"] == f"{place.home}/.cargo/registry" and result["error"] is None,
           f"{who}: a failure that a profile would mend names it in denials", result)
    done = place.run([SANDGLASS, "run", "-c", script])
    tap.ok("hint: --profile rust" in done.err, f"{who}: and on stderr", done)
    status, result, ran = bench.run("--profile", "rust", script=script + "; echo $CARGO_HOME")
    out = result["stdout"]["text"]
    tap.ok(status == 0 and ran and "a crate" in out and f"{place.home}/.cargo" in out
           and place.canary not in out and not result["denials"],
           f"{who}: with the profile it succeeds, and the token beside it stays outside", result)
    status, result, _ = bench.run("--profile", "rust",
                                  script=f"echo pwn >{cached}; echo pwn >{place.home}/.cargo/new")
    tap.ok(not os.path.exists(f"{place.home}/.cargo/new") and "pwn" not in open(cached).read(),
           f"{who}: what a profile shows is read-only", status, result)
    done = place.run([SANDGLASS, "run", "--json", "cargo-that-is-not-there"])
    tap.ok("--profile" not in done.out, f"{who}: a program of no profile gets no such hint", done)
    status, result, ran = bench.run("--profile", "rsut")
    tap.ok(status == 125 and not ran and "rust" in result["error"]["hint"],
           f"{who}: an unknown profile is named with the nearest one", result)


def schemas(bench):
    """What is printed is as the published schemas say, and they refuse what the program refuses."""
    place, who = bench.place, bench.who.name
    try:
        import jsonschema
        import yaml
    except ImportError:
        tap.skip(f"{who}: schemas", "python3-jsonschema and python3-yaml")
        return
    of = {}
    for name in ("policy", "result"):
        done = place.run([SANDGLASS, "schema", name])
        of[name] = jsonschema.Draft202012Validator(json.loads(done.out))
        jsonschema.Draft202012Validator.check_schema(of[name].schema)
    results = [bench.run(*options, script=script)[1] for options, script in (
        ((), "true"), ((), "exit 3"), ((), "kill -9 $$"), (("--timeout", "100ms"), "sleep 5"),
        (("--mode", "read-only"), "echo x >made"), (("--policy", "/nonexistent"), "true"),
        (("--profile", "node"), "head -c 3000000 /dev/zero"), (("--frobnicate",), "true"))]
    put(place, project_file(place), V + "extends: [node]\nlimits: {pids: 50}\n")
    results.append(bench.run()[1])
    bench.clear()
    bad = [[e.message for e in of["result"].iter_errors(one)] for one in results]
    tap.ok(not any(bad), f"{who}: results are as `schema result` says ({len(results)})", bad)
    tap.ok(not of["result"].is_valid({**results[0], "ok": "yes"}),
           f"{who}: control: a result that is not is seen")
    # A schema cannot say everything; whatever it accepts here, the program must know why not.
    accepted = []
    for text, line, _, key, code in TEXTS:
        try:
            value = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, UnicodeError):
            continue
        if of["policy"].is_valid(json.loads(json.dumps(value))):
            accepted.append((text, line, key, code))
    tap.ok(len(accepted) <= 10, f"{who}: `schema policy` refuses the broken files", accepted)
    tap.note(f"broken files that only the program refuses: {len(accepted)}")
    good = place.run([SANDGLASS, "policy", "show", "--profile", "node", "--profile", "go"]).out
    value = yaml.safe_load(good)
    tap.ok(of["policy"].is_valid(value), f"{who}: and accepts what policy show prints",
           [e.message for e in of["policy"].iter_errors(value)], good)


def network(bench):
    """Rules about hosts: shown, explained by what decides, and a project's file only denies."""
    place, who = bench.place, bench.who.name
    put(place, user_file(place), V + "network:\n  allow: [a.example, '*.github.io',\n"
        "    'git.example:22', github.com, storage.googleapis.com]\n"
        "  deny: [t.a.example]\n  local: [5432]\n")
    put(place, project_file(place), V + "network: {allow: [evil.example], deny: ['*:23'], "
        "local: [22]}\n")
    shown = bench.show()["network"]
    tap.ok([v["value"] for v in shown["allow"]] ==
           ["a.example", "*.github.io", "git.example:22", "github.com", "storage.googleapis.com"]
           and [v["value"] for v in shown["deny"]] == ["t.a.example", "*:23"]
           and [v["value"] for v in shown["local"]] == ["5432"],
           f"{who}: policy show has the rules that count", shown)
    text = place.run([SANDGLASS, "policy", "show", "--origin"]).out
    tap.ok("network.allow (project" in text and f"user {user_file(place)}:3" in text,
           f"{who}: with their origins, and what did not count", text)

    def explain(host, *options):
        done = place.run([SANDGLASS, "policy", "explain", "--host", host, "--json", *options])
        try:
            return done.status, json.loads(done.out)
        except ValueError:
            return done.status, {"rule": str(done), "reason": "", "notes": []}

    both = ("bytes_up: 2MiB, connections: 7", "bytes_up: 1MiB, bytes_down: 9GiB, connections: 7")
    for users, projects, up, connections in ((*both, "1MiB", "user"), (*both[::-1], "1MiB", "user")):
        put(place, user_file(place), V + f"network: {{allow: [a.example], {users}}}\n")
        put(place, project_file(place), V + f"network: {{{projects}}}\n")
        shown = place.run([SANDGLASS, "policy", "show", "--origin"]).out
        lines = [line.strip() for line in shown.splitlines()]
        tap.ok(sum(line.startswith(f"bytes_up: {up}") for line in lines) == 1 and
               any(line.startswith("# bytes_up: 2MiB") for line in lines) and
               any(line.startswith("bytes_down: 9GiB") for line in lines) and
               any(line.startswith("connections: 7") and connections in line for line in lines),
               f"{who}: of the layers' limits the smallest holds", shown)
    put(place, user_file(place), V + "network:\n  allow: [a.example, '*.github.io',\n"
        "    'git.example:22', github.com, storage.googleapis.com]\n"
        "  deny: [t.a.example]\n  local: [5432]\n")
    put(place, project_file(place), V + "network: {allow: [evil.example], deny: ['*:23'], "
        "local: [22]}\n")
    for host, status, reason, rule, options in (
            ("a.example", 0, "rule", "network.allow[0] a.example", ()),
            ("A.Example.:443", 0, "rule", "network.allow[0] a.example", ()),
            ("a.example:80", 1, "port", "network.default", ()),
            ("evil.example", 1, "default", "network.default", ()),
            ("evil.example", 0, "rule", "network.allow[5] evil.example",
             ("--allow-host", "evil.example")),
            ("a.example", 1, "denied", "network.deny[2] **.example",
             ("--deny-host", "**.example")),
            ("a.example:23", 1, "denied", "network.deny[1] *:23",
             ("--allow-host", "a.example:*")),
            ("0x7f.1:5432", 0, "rule", "network.local[0] 5432", ()),
            ("localhost:22", 1, "local", "network.local", ()),
            ("2852039166:80", 1, "address", "network.address cloud metadata", ())):
        got, answer = explain(host, *options)
        tap.ok((got, answer["reason"], answer["rule"]) == (status, reason, rule),
               f"{who}: explain --host {host} {' '.join(options)}", got, answer)
    tap.ok(any("push possible" in note for note in explain("git.example:22")[1]["notes"])
           and not explain("a.example")[1]["notes"][1:],
           f"{who}: explain says where git can push", explain("git.example:22"))
    done = place.run([SANDGLASS, "policy", "explain", "--host", "a..b"])
    tap.ok(done.status == 2 and "CONFIG_INVALID: --host: an empty part" in done.err,
           f"{who}: explain refuses what is no host", done)
    found = {f["key"]: f["message"] for f in bench.check()[1] if f["severity"] == "warning"}
    tap.ok("shared hosting" in found.get("network.allow[1]", "")
           and "port 22" in found.get("network.allow[2]", "")
           and "github.com" in found.get("network.allow[3]", "")
           and "anybody can put" in found.get("network.allow[4]", "")
           and "network.allow[0]" not in found and "network.deny[0]" not in found,
           f"{who}: policy check names broad patterns and ways to push", found)
    secret = "{name: %s, from: 'env:A', hosts: [%s], header: 'X: {value}'}"
    put(place, user_file(place), V + "network: {allow: ['a.example:8443', '*.b.example']}\nsecrets: ["
        + secret % ("one", "a.example") + ", " + secret % ("two", "'a.example:8443', x.b.example")
        + "]\n")
    found = [f["message"] for f in bench.check()[1] if f["key"] == "secrets"]
    tap.ok(found == ["`a.example` of `one`: nothing opens this host at port 443"],
           f"{who}: policy check names a secret's host that nothing opens", found)
    put(place, user_file(place), V)
    for option, value, says in (("--allow-host", "*", "would open every name"),
                                ("--allow-host", "127.1:80", "127.0.0.1:80"),
                                ("--deny-host", "https://a.b/x", "a path"),
                                ("--allow-local", "0", "a port is one number")):
        status, result, ran = bench.run(option, value)
        error = result["error"] or {}
        tap.ok(status == 125 and not ran and error["code"] == C and option in error["message"]
               and says in error["message"] + str(error["hint"]),
               f"{who}: {option} {value} is refused", result)
    for options in (("--mode", "danger-full-access"), ("--isolation", "landlock")):
        status, result, ran = bench.run(*options, "--deny-host", "a.b")
        tap.ok(status == 125 and not ran and "exclude each other" in result["error"]["message"],
               f"{who}: no rules about the network with {options[1]}", result)
    bench.clear()


def quick(bench):
    """Without any policy file: how many more system calls, and none of them opens anything."""
    place, who = bench.place, bench.who.name
    trace = f"{place.tmp}/calls"
    place.run(["strace", "-qq", "-o", trace, SANDGLASS, "run", "true"])
    with open(trace, encoding="utf-8", errors="replace") as handle:
        calls = [line for line in handle
                 if "policy.yaml" in line or '"/etc/sandglass"' in line or "/policy-" in line]
    # The state directory and /etc/sandglass are also looked at for what may be no source.
    mine = [c for c in calls if "policy.yaml" in c]
    tap.ok(len(mine) == 2 and len(calls) <= 4 and all("lstat" in c or "fstatat" in c
                                                      for c in calls),
           f"{who}: without a policy three stats look for one", *calls)


def main():
    for who in identities():
        bench = Bench(who)
        try:
            for test in (control, broken_texts, special_files, layers, narrowing, full_access,
                         network, profiles, schemas, cache, flips, racing, quick):
                if SANITIZED and test is quick:
                    continue
                tap.attempt(f"{who.name}: {test.__name__}", test, bench)
        finally:
            bench.close()
    sys.exit(tap.done())


main()
