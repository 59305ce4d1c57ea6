#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Foreign bytes in what sandglass itself says are shown, never sent.

Names of commands, options, files, directories and variables, and the output of
commands, are drawn from what terminals obey: control sequences that set titles
and clipboards, C1 controls, characters without width or that turn the direction
of writing, bytes that are no UTF-8. Whatever sandglass prints about them, as text
or as JSON, must be UTF-8 without any of that. What the command writes itself must
pass unchanged.

The judge is Python's table of Unicode, which shares nothing with the program.
SEED=N repeats a run.
"""

import json
import os
import random
import subprocess
import sys
import unicodedata

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import SANDGLASS, Place, identities_once  # noqa: E402
from term import END, Term  # noqa: E402

SEED = int(os.environ.get("SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
ROUNDS = 8

BAD = [b"\x1b]52;c;aGk=\x07", b"\x1b]0;title\x1b\\", b"\x1b[2J", b"\x1b[31m", b"\x1bP$q\"p\x1b\\",
       b"\x1b[>c", b"\x07", b"\x08", b"\r", b"\t", b"\x7f", b"\x0e", b"\x9b31m", b"\xc2\x9b31m",
       b"\xc2\x9d0;x\xc2\x9c", b"\xe2\x80\xae", b"\xe2\x80\x8b", b"\xe2\x81\xa6", b"\xef\xbb\xbf",
       b"\xe2\x80\xa8", b"\xd8\x9c", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
       b"\xe2\x80", b"\n", b"\xf3\xa0\x80\x81"]
GOOD = [b"a", b"name", b"\xc3\xa9", b"\xe4\xb8\xad", b" ", b"-", b"x" * 40, b"%s%n", b"'", b"\"", b"\\"]


def draw(rng, without=b"/\0"):
    """At least one bad piece among good ones."""
    parts = [rng.choice(BAD)] + [rng.choice(rng.choice((BAD, GOOD))) for _ in range(4)]
    rng.shuffle(parts)
    whole = b"".join(parts)
    return bytes(c for c in whole if c not in without) or b"\x1b"


def sent(raw):
    """What a terminal would obey; None if there is nothing."""
    try:
        said = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"no UTF-8 at {error.start}: {raw[max(0, error.start - 20):error.start + 20]!r}"
    for i, c in enumerate(said):
        if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs", "Co"):
            return f"U+{ord(c):04x} in {said[max(0, i - 20):i + 20]!r}"
    return None


def call(place, args, cwd=None, env=None, stdin=b""):
    whole = dict((k.encode(), v.encode()) for k, v in place.env().items())
    whole.update(env or {})
    return subprocess.run([a.encode() if isinstance(a, str) else a
                           for a in place.who.prefix + [SANDGLASS]] +
                          [a.encode() if isinstance(a, str) else a for a in args],
                          env=whole, cwd=cwd or place.src, input=stdin, capture_output=True,
                          timeout=60, check=False)


class Judge:
    """One row for each way: all its calls must be silent, and show something."""

    def __init__(self, who, name):
        self.who, self.name, self.calls, self.shown, self.why = who, name, 0, 0, []

    def take(self, done, args):
        self.calls += 1
        for raw in (done.stdout, done.stderr):
            bad = sent(raw)
            if bad:
                self.why.append(f"{args!r}: {bad}")
        if b"\\x" in done.stderr + done.stdout or b"\\u" in done.stderr + done.stdout:
            self.shown += 1

    def row(self, shows=True):
        good = not self.why and self.calls and (self.shown or not shows)
        tap.ok(good, f"{self.who}: {self.name}: {self.calls} calls, {self.shown} with something "
               "that is shown", *self.why[:5])


def usage(place, who, rng):
    """What is asked for wrongly."""
    ways = {
        "a verb": lambda x: [x],
        "an option": lambda x: ["run", b"--" + x, "true"],
        "a short option": lambda x: ["run", b"-" + x, "true"],
        "a duration": lambda x: ["run", "--timeout", x, "true"],
        "a size": lambda x: ["run", "--memory", x, "true"],
        "a mode": lambda x: ["run", "--mode", x, "true"],
        "a number": lambda x: ["run", "--pids", x, "true"],
        "a path to read": lambda x: ["run", "--read", x, "true"],
        "a path to write": lambda x: ["run", b"--write=" + x, "true"],
        "a source": lambda x: ["run", "--source", x, "true"],
        "a variable": lambda x: ["run", "--env", x + b"=1", "true"],
        "a policy": lambda x: ["run", "--policy", x, "true"],
        "a profile": lambda x: ["run", "--profile", x, "true"],
        "a host": lambda x: ["run", "--allow-host", x, "true"],
        "a path to hide": lambda x: ["run", "--hide", x, "true"],
        "isolation": lambda x: ["run", "--isolation", x, "true"],
        "an argument of doctor": lambda x: ["doctor", x],
        "an argument of help": lambda x: ["help", x],
        "an argument of shell": lambda x: ["shell", x],
        "a policy to check": lambda x: ["policy", "check", x],
    }
    for name, make in ways.items():
        judge = Judge(who, name)
        for _ in range(3):
            for more in ([], ["--json"]):
                args = make(draw(rng))
                args = args[:1] + more + args[1:] if args[0] in ("run", "doctor") else args
                judge.take(call(place, args), args)
        judge.row(shows=False)


def commands(place, who, rng):
    """Programs that are not there, or are none."""
    missing, broken, script = (Judge(who, n) for n in (
        "a command that is not there", "an interpreter that is not there",
        "a file that is no program"))
    for i in range(ROUNDS):
        for more in ([], ["--json"]):
            name = draw(rng)
            missing.take(call(place, ["run", *more, "--", name]), name)
            body, path = draw(rng, b"\0\n"), place.src.encode() + b"/" + draw(rng) + b"%d" % i
            with open(path, "wb") as handle:
                handle.write(b"#!/no/" + body + b"\n")
            os.chmod(path, 0o755)
            broken.take(call(place, ["run", *more, "--", path]), path)
            os.chmod(path, 0o644)
            script.take(call(place, ["run", *more, "--", path]), path)
            os.unlink(path)
    for judge in (missing, broken, script):
        judge.row()


def places(place, who, rng):
    """Sources, working directories, state, files that are flagged."""
    source, flagged, granted, refused = (Judge(who, n) for n in (
        "the name of the source", "files that are flagged and put away", "a grant",
        "a grant beside the source"))
    for i in range(ROUNDS):
        top = place.out.encode() + b"/" + draw(rng) + b"%d" % i
        os.mkdir(top)
        place.own(top)
        for more in ([], ["--json"]):
            source.take(call(place, ["run", *more, "true"], cwd=top), top)
            name = draw(rng)
            args = ["run", *more, "--", "sh", "-c",
                    "mkdir -p \"$1\" && echo 'echo x' > \"$1/.envrc\" && mkdir \"$1/.vscode\" && "
                    "echo '{}' > \"$1/.vscode/tasks.json\"", "sh", b"./" + name]
            flagged.take(call(place, args, cwd=top), name)
            granted.take(call(place, ["run", *more, "--read", top + b"/none" + draw(rng), "true"],
                              cwd=top), top)
        refused.take(call(place, ["run", "--write", top + b"/../" + draw(rng), "true"], cwd=top), top)
    for judge in (source, flagged, granted, refused):
        judge.row()
    judge = Judge(who, "the place of the state")
    for _ in range(ROUNDS // 2):
        home = {b"SANDGLASS_HOME": place.out.encode() + b"/none/" + draw(rng),
                b"HOME": b"/" + draw(rng), b"PATH": b"/bin:/usr/bin:/" + draw(rng),
                b"TERM": draw(rng), b"SESSION_ID": draw(rng)}
        judge.take(call(place, ["run", "true"], env=home), home)
        judge.take(call(place, ["doctor"], env=home), home)
    judge.row(shows=False)


def policies(place, who, rng):
    """Keys and values of policy files, which a project brings along."""
    bodies = {
        "a key of a policy": lambda x: b"version: 1\n" + x + b": 1\n",
        "a quoted key": lambda x: b"version: 1\n\"" + x + b"\": 1\n",
        "a value": lambda x: b"version: 1\nmode: \"" + x + b"\"\n",
        "a path": lambda x: b"version: 1\nfilesystem: {read: [\"" + x + b"\"]}\n",
        "what is no policy": lambda x: x,
    }
    os.makedirs(f"{place.src}/.sandglass", exist_ok=True)
    place.own(f"{place.src}/.sandglass")
    project = f"{place.src}/.sandglass/policy.yaml"
    for name, make in bodies.items():
        judge = Judge(who, name)
        for i in range(ROUNDS):
            path = place.out.encode() + b"/" + draw(rng) + b"%d.yaml" % i
            for where in (path, project.encode()):
                with open(where, "wb") as handle:
                    handle.write(make(draw(rng, b"")))
                os.chmod(where, 0o644)
                place.own(where)
            judge.take(call(place, ["policy", "check", path]), path)
            judge.take(call(place, ["policy", "show"]), project)
            os.unlink(project)
            judge.take(call(place, ["run", "--policy", path, "true"]), path)
            judge.take(call(place, ["run", "--json", "--policy", path, "true"]), path)
        judge.row()


def results(place, who, rng):
    """The output of a command: written out in a result, unchanged without one."""
    judge, passed, decoded, texts = Judge(who, "the output in a result"), [], [], 0
    for i in range(ROUNDS * 2):
        raw = draw(rng, b"") + b"\0" * (i % 7 == 0)
        if i % 2:
            raw = raw.decode("utf-8", "ignore").encode()
        args = ["run", "--json", "--", "sh", "-c", "cat; cat in >&2", draw(rng)]
        with open(f"{place.src}/in", "wb") as handle:
            handle.write(raw)
        done = call(place, args, stdin=raw)
        judge.take(done, raw)
        result = json.loads(done.stdout)
        for stream in ("stdout", "stderr"):
            text = result[stream]["text"]
            texts += result[stream]["encoding"] == "utf-8"
            bad = sent(text.replace("\t", "").replace("\r", "").encode())
            if bad:
                decoded.append(bad)
        done = call(place, ["run", "--quiet", "--", "sh", "-c", "cat; cat in >&2"], stdin=raw)
        if done.stdout != raw or done.stderr != raw:
            passed.append((raw, done.stdout, done.stderr))
    judge.row()
    tap.ok(not decoded and texts >= ROUNDS * 4 * 0.3,
           f"{who}: nor is it after the JSON was read; {texts} were text", *decoded[:5])
    tap.ok(not passed, f"{who}: without --json a command's bytes pass as they are", *passed[:3])


def at_a_terminal(place, who, rng):
    """What is said at a terminal, and what the command says there."""
    raw = b"".join(piece for piece in BAD if b"\n" not in piece and piece != b"\r")
    with open(f"{place.src}/in", "wb") as handle:
        handle.write(raw)
    with Term(place, [SANDGLASS, "run", "--quiet", "cat", "in"]) as t:
        t.ended()
        tap.ok(raw in t.said, f"{who}: at a terminal a command's bytes pass as they are", t.said)
    top = place.out.encode() + b"/" + draw(rng)
    os.mkdir(top)
    place.own(top)
    src, place.src = place.src, top
    try:
        with Term(place, [SANDGLASS, "run", "--dangerously-full-access", "true"]) as t:
            t.expect("Type yes")
            t.send("no\r")
            t.ended()
            bad = sent(t.said.replace(b"\r", b""))
            tap.ok(bad is None, f"{who}: the question before full access", bad, t.said)
        with Term(place, [SANDGLASS, "run", "cat"]) as t:
            t.until(t.is_raw, "raw")
            t.send(END)
            t.ended()
            bad = sent(t.said.replace(b"\r", b"").replace(b"^D\x08\x08", b""))
            tap.ok(bad is None and b"changes land" in t.said, f"{who}: the notice at a terminal",
                   bad, t.said)
    finally:
        place.src = src


def main():
    tap.note(f"SEED={SEED}")
    tap.ok(all(sent(piece) for piece in BAD if piece != b"\n") and
           not any(sent(piece) for piece in GOOD), "control: the judge knows bad from good")
    for identity in identities_once():
        rng = random.Random(SEED)
        for rows in (usage, commands, places, policies, results, at_a_terminal):
            if len(sys.argv) > 1 and rows.__name__ not in sys.argv[1:]:
                continue
            place = Place(identity)
            try:
                tap.attempt(f"{identity.name}: {rows.__name__}", rows, place, identity.name, rng)
            finally:
                place.close()
    return tap.done()


sys.exit(main())
