#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The audit log: what calls leave in it, that it is one chain whatever happens to its writers, and
that `audit verify` names what was done to it. Each change is made to a copy of a log that verifies:
that is its control. The oracle of the chain is hashlib, and once sha256sum by hand as in the manual.
"""

import base64
import csv
import datetime
import hashlib
import io
import json
import os
import random
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import SANDGLASS, SANITIZED, Place, identities_once  # noqa: E402
from term import Term  # noqa: E402

ZEROS = "0" * 64
DAYS = [(datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=n)).strftime("%Y-%m-%d")
        for n in (9, 8)]  # younger than any retention here
KEYS = ["seq", "time", "event", "session", "call", "tool", "actor", "agent", "policy_sha256", "decision",
        "rule", "data", "prev", "hash"]


class Log:
    """A place whose calls leave lines, and its log as it lies on the disk."""

    def __init__(self, who):
        self.place, self.who = Place(who), who.name
        self.dir = f"{self.place.state}/audit"

    def run(self, *argv, options=(), **more):
        return self.place.run([SANDGLASS, "run", "--quiet", *options, "--", *argv], **more)

    def audit(self, *argv, state=None, **more):
        env = {"SANDGLASS_HOME": state} if state else {}
        return self.place.run([SANDGLASS, "audit", *argv], env=env, **more)

    def files(self, top=None):
        top = top or self.dir
        return [f"{top}/{name}" for name in sorted(os.listdir(top)) if name.endswith(".jsonl")]

    def raw(self, top=None):
        lines = []
        for name in self.files(top):
            with open(name, "rb") as handle:
                lines += handle.read().split(b"\n")[:-1]
        return lines

    def lines(self, top=None):
        return [json.loads(line) for line in self.raw(top)]

    def age(self, day):
        """What was written today was written on that day."""
        os.rename(self.files()[-1], f"{self.dir}/{day}.jsonl")

    def copy(self):
        state = self.place.own_dir(f"copy-{secrets.token_hex(4)}")
        top = f"{state}/audit"
        shutil.copytree(self.dir, top)
        for path in [top, *(f"{top}/{name}" for name in os.listdir(top))]:
            self.place.own(path)
        return state, top

    def change(self, name, function):
        """The copy of the log, one file of it (an index) changed as lines."""
        state, top = self.copy()
        path = self.files(top)[name]
        with open(path, "rb") as handle:
            lines = handle.read().split(b"\n")[:-1]
        lines = function(lines)
        with open(path, "wb") as handle:
            handle.write(b"".join(line + b"\n" for line in lines))
        return state, os.path.basename(path)


def own_dir(self, name):
    os.mkdir(f"{self.top}/{name}", 0o711)
    return self.own(f"{self.top}/{name}")


Place.own_dir = own_dir


def hashed(line):
    return re.sub(rb',"hash":"[0-9a-f]{64}"}$', b"", line)


def sealed(body):
    """A line of that content with the hash that fits."""
    return body + b',"hash":"' + hashlib.sha256(body).hexdigest().encode() + b'"}'


def is_chain(raw):
    """By hashlib and json alone: the first thing that is wrong, or None."""
    prev, seq = ZEROS, 0
    for line in raw:
        one = json.loads(line)
        seq += 1
        if (one["seq"], one["prev"]) != (seq, prev):
            return f"seq {seq}: {line[:200]}"
        if one["hash"] != hashlib.sha256(hashed(line)).hexdigest():
            return f"hash of seq {seq}"
        prev = one["hash"]
    return None


def contents(log):
    out = log.run("sh", "-c", "exit 7")
    lines = log.lines()
    start, end = lines[-2:]
    tap.ok([line["event"] for line in (start, end)] == ["call.start", "call.end"] and
           list(start) == KEYS and list(end) == KEYS and start["call"] == end["call"] and
           start["data"]["argv"] == ["sh", "-c", "exit 7"] and end["data"]["status"] == 7,
           f"a call leaves its start and its end, {log.who}", out, start, end)
    wanted = {"source": log.place.src, "mode": "workspace-write", "writes": "direct",
              "isolation": "namespace", "approval": None, "grant": None}
    tap.ok(start["decision"] == "allow" and start["rule"] == "default" and
           re.fullmatch("[0-9a-f]{64}", start["policy_sha256"] or "") and
           all(start["data"].get(key, "?") == value for key, value in wanted.items()),
           f"aud-003: which policy and rule decided, and how it was enforced, {log.who}", start)
    denied = log.run("true", options=["--read", log.place.home])
    last = log.lines()[-1]
    tap.ok(denied.status == 125 and last["decision"] == "deny" and
           last["data"]["error"] == "POLICY_DENIED", f"what was refused is there, {log.who}", denied, last)
    modes = [os.stat(path).st_mode & 0o7777 for path in (log.dir, log.files()[-1])]
    tap.ok(modes == [0o700, 0o600], f"nobody else can read it, {log.who}", modes)
    log.run("echo", "\x1b[31mred\u202e")
    with open(log.files()[-1], "rb") as handle:
        text = handle.read()
    tap.ok(b"\x1b" not in text and "\u202e".encode() not in text and b"\\u001b[31mred" in text,
           f"no byte that a terminal would obey, {log.who}", text[-500:])


def full_access(log):
    """R1: what runs without a boundary is in the log, and says so."""
    if log.place.who.uid == 0:
        refused = log.run("true", options=["--dangerously-full-access"])
        tap.ok(refused.status == 125 and log.lines()[-1]["decision"] == "deny",
               f"R1: full access without a person is refused, and in the log, {log.who}", refused)
    with Term(log.place, [SANDGLASS, "run", "--dangerously-full-access", "true"]) as term:
        term.expect("Type yes")
        term.send("yes\r")
        status = term.ended()
    start = [line for line in log.lines() if line["event"] == "call.start"][-1]
    tap.ok(status == 0 and start["data"]["mode"] == "danger-full-access",
           f"R1: a run with full access is in the log as such, {log.who}", status, term.said, start)


def by_hand(log):
    path = log.files()[-1]
    made = subprocess.run(
        ["sh", "-c", """sed -n 5p "$1" | sed 's/,"hash":"[0-9a-f]*"}$//' | tr -d '\\n' | sha256sum""",
         "sh", path], capture_output=True, text=True, check=True).stdout[:64]
    tap.ok(made == log.lines()[4]["hash"], f"the manual's sha256sum gives the hash, {log.who}", made)


def several_days(log):
    log.age(DAYS[0])
    log.run("true")
    log.run("true")
    log.age(DAYS[1])
    log.run("true")
    log.run("true")
    wrong = is_chain(log.raw())
    seen = log.audit("verify")
    tap.ok(not wrong and len(log.files()) == 3 and seen.status == 0 and
           seen.out.startswith(f"intact: {len(log.raw())} lines in 3 files, seq 1 to "),
           f"one chain over three files, {log.who}", wrong, seen)


def names(log, what, state, want, *why):
    """verify of that copy says 1 and begins with that."""
    seen = log.audit("verify", state=state)
    return tap.ok(seen.status == 1 and seen.out.startswith(f"not intact: {want}: "),
                  f"verify: {what}, {log.who}", f"wanted {want}", seen, *why)


def broken(log):
    first = len(log.raw()) - 8  # lines of the first day
    state, _ = log.copy()
    tap.ok(log.audit("verify", state=state).status == 0, f"control: a copy verifies, {log.who}")

    def five(lines):
        lines[4] = re.sub(rb'"event":"call\.', b'"event":"cell.', lines[4])
        return lines
    state, name = log.change(0, five)
    names(log, "aud-001: one changed byte of line 5 is named", state, f"{name}:5: seq 5")

    def resealed(lines):
        lines[4] = sealed(hashed(lines[4]).replace(b'"event":"call.', b'"event":"cell.'))
        return lines
    state, name = log.change(0, resealed)
    names(log, "a changed line with a hash that fits breaks the next", state, f"{name}:6: seq 6")
    state, name = log.change(0, lambda lines: lines[:3] + lines[4:])
    names(log, "a removed line", state, f"{name}:4: seq 5")
    state, name = log.change(0, lambda lines: lines[1:])
    names(log, "the removed first line", state, f"{name}:1: seq 2")

    def forged(lines):
        before = json.loads(lines[2])
        body = hashed(lines[3]).replace(before["hash"].encode(), before["hash"].encode())
        return lines[:3] + [sealed(body.replace(b"call.", b"cull."))] + lines[3:]
    state, name = log.change(0, forged)
    names(log, "an inserted line whose hashes fit: the next one does not", state, f"{name}:5: seq 4")
    state, name = log.change(0, lambda lines: lines[:3] + [b'{"hello":1}'] + lines[3:])
    names(log, "an inserted line of somebody else", state, f"{name}:4: seq 4")
    state, name = log.change(0, lambda lines: lines[:2] + [lines[3], lines[2]] + lines[4:])
    names(log, "two swapped lines", state, f"{name}:3: seq 4")
    state, name = log.change(0, lambda lines: lines[:5] + lines[4:])
    names(log, "a doubled line", state, f"{name}:6: seq 5")
    state, name = log.change(1, lambda lines: lines[:2] + lines[:2])
    names(log, "a replaced file", state, f"{name}:3: seq {first + 1}")
    other = Log(log.place.who)
    other.run("true")
    state, top = log.copy()
    shutil.copy(other.files()[0], log.files(top)[1])
    names(log, "a file of another log", state, f"{DAYS[1]}.jsonl:1: seq 1")
    other.place.close()
    state, top = log.copy()
    last = os.path.basename(log.files(top)[2])
    os.unlink(log.files(top)[1])
    names(log, "a file in between that is missing", state, f"{last}:1: seq {first + 5}")
    state, top = log.copy()
    os.unlink(log.files(top)[0])
    names(log, "the first file that is missing, and no sweep that tells", state,
          f"{DAYS[1]}.jsonl:1: seq {first + 1}")
    state, name = log.change(0, lambda lines: lines[:-1] + [lines[-1][:-30]])
    names(log, "a line cut short", state, f"{name}:{first}: seq {first}")
    for what, line in (("too deep", b'{"seq":1,"x":' + b"[" * 5000 + b"]" * 5000 + b"}"),
                       ("too long", b"x" * 3000000), ("an escape", b'{"seq":1,"x":"\x1b]0;x\x07"}'),
                       ("a key twice", None)):
        def put(lines, line=line):
            twice = lines[1].replace(b'"rule":', b'"rule":null,"rule":', 1)
            return lines[:1] + [line or twice] + lines[2:]
        state, name = log.change(0, put)
        seen = log.audit("verify", "--json", state=state)
        said = json.loads(seen.out) if seen.status == 1 else {}
        tap.ok(said.get("intact") is False and said["bad"]["line"] == 2 and "\x1b" not in seen.out,
               f"verify: hostile line, {what}, {log.who}", seen)


def heads(log):
    lines = log.lines()
    kept = log.place.write(f"{log.place.top}/heads", f"{lines[5]['seq']} {lines[5]['hash']}\n"
                           f"{lines[-1]['seq']} {lines[-1]['hash']}")
    seen = log.audit("verify", "--heads", kept)
    tap.ok(seen.status == 0 and "heads: 2 are in it" in seen.out, f"control: the heads fit, {log.who}", seen)
    state, top = log.copy()
    path = log.files(top)[-1]
    os.truncate(path, os.path.getsize(path) - 500)
    alone, with_heads = (log.audit("verify", *more, state=state) for more in ((), ("--heads", kept)))
    tap.ok(alone.status == 0 and with_heads.status == 1 and
           f"seq {lines[-1]['seq']}: the log ends with" in with_heads.out,
           f"aud-002: a cut tail passes verify and fails with heads, {log.who}", alone, with_heads)
    state, top = log.copy()
    os.unlink(log.files(top)[-1])
    alone, with_heads = (log.audit("verify", *more, state=state) for more in ((), ("--heads", kept)))
    tap.ok(alone.status == 0 and with_heads.status == 1, f"the last file gone: the same, {log.who}",
           alone, with_heads)
    state, top = log.copy()
    prev = ZEROS
    for path in log.files(top):
        with open(path, "rb") as handle:
            old = handle.read().split(b"\n")[:-1]
        made = []
        for line in old:
            body = re.sub(rb'"prev":"[0-9a-f]{64}"$', b'"prev":"' + prev.encode() + b'"', hashed(line))
            made.append(sealed(body.replace(b'"exit 7"', b'"exit 0"')))
            prev = json.loads(made[-1])["hash"]
        with open(path, "wb") as handle:
            handle.write(b"".join(line + b"\n" for line in made))
    alone, with_heads = (log.audit("verify", *more, state=state) for more in ((), ("--heads", kept)))
    tap.ok(alone.status == 0 and with_heads.status == 1 and "made anew" in with_heads.out,
           f"a chain made anew passes verify and fails with heads, {log.who}", alone, with_heads)
    none = log.audit("verify", "--heads")
    art = log.place.state
    for part in ("artifacts", "artifacts/0f3a4c52-7f2e-4a53-9c9b-2d1c7d0b6a11"):
        os.mkdir(f"{art}/{part}", 0o700)
        log.place.own(f"{art}/{part}")
    shutil.copy(kept, f"{art}/{part}/audit-head")
    log.place.own(f"{art}/{part}/audit-head")
    found = log.audit("verify", "--heads")
    tap.ok(none.status == 2 and found.status == 0 and "heads: 2 are in it" in found.out,
           f"heads without a file are those of artifacts, {log.who}", none, found)
    wrong = log.place.write(f"{log.place.top}/wrong", "1 xyz")
    seen = log.audit("verify", "--heads", wrong)
    tap.ok(seen.status == 2 and "CONFIG_INVALID" in seen.err, f"heads that are none, {log.who}", seen)


def torn(log):
    """What a killed writer leaves is mended by the next one, which tells."""
    path = log.files()[-1]
    with open(path, "ab") as handle:
        handle.write(b'{"seq":99,"ti')
    before = log.audit("verify")
    log.run("true")
    after = log.audit("verify")
    tap.ok(before.status == 0 and "13 bytes at its end" in before.out and after.status == 0 and
           [line["event"] for line in log.lines()[-3:]] == ["audit.torn", "call.start", "call.end"],
           f"a torn line is mended and told, {log.who}", before, after)


def many(log):
    n = 20 if SANITIZED else 100
    before = len(log.raw())
    started = [log.place.start([SANDGLASS, "run", "--quiet", "--", "true"]) for _ in range(n)]
    good = sum(process.wait(timeout=300) == 0 for process in started)
    wrong = is_chain(log.raw())
    seen = log.audit("verify")
    tap.ok(good == n and not wrong and len(log.raw()) == before + 2 * n and seen.status == 0,
           f"{n} writers at once keep one chain, {log.who}", good, wrong, seen)


def killed(log):
    seed = int(os.environ.get("SEED", time.time()))
    tap.note(f"SEED={seed}")
    chance = random.Random(seed)
    for _ in range(10 if SANITIZED else 30):
        process = log.place.start([SANDGLASS, "run", "--quiet", "--", "true"])
        time.sleep(chance.uniform(0, 0.08))
        process.send_signal(signal.SIGKILL)
        process.wait()
    log.run("true")
    seen = log.audit("verify")
    tap.ok(not is_chain(log.raw()) and seen.status == 0, f"killed calls leave a chain, {log.who}", seen)


def canaries(log):
    secret = "Zq" + secrets.token_hex(14)
    calls = [
        ["sh", "-c", f"true --token={secret}"], ["true", "--api-key", secret], ["true", f"PASSWORD={secret}"],
        ["env", f"a={secret}", "true"], ["true", f"https://me:{secret}@example.com/x"],
        ["true", "-u", f"me:{secret}"], ["sh", "-c", f"X={secret} true"], ["true", "ghp_" + secret],
        ["true", "-H", f"Authorization: Bearer {secret}"], ["true", f"sk-{secret}"],
        ["sh", "-c", f"true; curl -d password={secret}; true"],
    ]
    for argv in calls:
        log.run(*argv)
    log.run("true", secret, env={"MY_TOKEN": secret})
    log.run("true", options=["--env", f"OTHER={secret}"])
    log.run("printenv", "OTHER", options=["--env", f"OTHER={secret}"])
    log.run("true", "plain-" + secret[2:])  # the control: what is no secret by its look is written
    found = b"".join(open(f"{log.dir}/{name}", "rb").read() for name in os.listdir(log.dir))
    forms = [secret.encode(), base64.b64encode(secret.encode())[:-4], secret.encode().hex().encode()]
    tap.ok(b"plain-" + secret[2:].encode() in found and not any(form in found for form in forms) and
           found.count(b"[redacted]") >= len(calls),
           f"no canary is in the log, {log.who}", [form for form in forms if form in found])


def unwritable(log):
    where = f"{log.place.top}/file"
    log.place.write(where, "")
    said = log.place.run([SANDGLASS, "run", "--", "echo", "ran"], env={"SANDGLASS_HOME": f"{where}/x"})
    quiet = log.run("echo", "ran", env={"SANDGLASS_HOME": f"{where}/x"})
    result = log.place.run([SANDGLASS, "run", "--json", "--", "true"], env={"SANDGLASS_HOME": f"{where}/x"})
    good = log.place.run([SANDGLASS, "run", "--json", "--", "true"])
    tap.ok(said.status == 0 and said.out == "ran\n" and
           len(re.findall("^sandglass: not enforced: audit", said.err, re.M)) == 1 and
           quiet.status == 0 and quiet.out == "ran\n",
           f"a log that cannot be written is said and keeps nobody, {log.who}", said, quiet)
    tap.ok("audit" in json.loads(result.out)["sandbox"]["not_enforced"] and
           "audit" not in json.loads(good.out)["sandbox"]["not_enforced"],
           f"and is in the result, {log.who}", result, good)
    if log.who != "root":
        os.chmod(log.dir, 0o500)
        os.chmod(log.files()[-1], 0o400)
        said = log.place.run([SANDGLASS, "run", "--", "echo", "ran"])
        os.chmod(log.files()[-1], 0o600)
        os.chmod(log.dir, 0o700)
        tap.ok(said.status == 0 and said.out == "ran\n" and "not enforced: audit" in said.err,
               f"a read-only log, {log.who}", said)
    os.chmod(log.dir, 0o777)
    said = log.place.run([SANDGLASS, "run", "--", "echo", "ran"])
    os.chmod(log.dir, 0o700)
    tap.ok(said.status == 0 and "not yours alone" in said.err, f"a log that others can write, {log.who}", said)


def query(log):
    log.run("sh", "-c", "exit 3")
    lines = log.lines()
    call = lines[-1]

    def found(*options):
        result = log.audit("query", "--json", *options)
        return json.loads(result.out)["events"] if result.status == 0 else result
    tap.ok(found() == lines, f"query: all of it, {log.who}")
    rows = [
        (["--event", "call.end"], lambda line: line["event"] == "call.end"),
        (["--event", "call"], lambda line: line["event"].startswith("call.")),
        (["--session", call["session"][:8]], lambda line: line["session"] == call["session"]),
        (["--decision", "deny"], lambda line: line["decision"] == "deny"),
        (["--actor", call["actor"]], lambda line: True),
        (["--actor", "nobody-else"], lambda line: False),
        (["--tool", "x"], lambda line: False),
        (["--path", log.place.src], lambda line: "source" in line["data"] and
         line["data"]["source"] is not None),
        (["--path", log.place.src[:-1]], lambda line: False),
        (["--host", "example.com"], lambda line: False),
        (["--since", call["time"][:23]], lambda line: line["time"] >= call["time"][:23]),
        (["--until", "2001-01-01"], lambda line: False),
        (["--since", "1h"], lambda line: True),
        (["--until", call["time"][:10]], lambda line: line["time"][:10] <= call["time"][:10]),
    ]
    for options, want in rows:
        got, wanted = found(*options), [line for line in lines if want(line)]
        if options[0] == "--actor" and wanted:
            wanted = [line for line in lines if line["actor"] == call["actor"]]
        tap.ok(got == wanted, f"query {options[0]} {options[1][:12]}: {len(wanted)}, {log.who}",
               got if not isinstance(got, list) else len(got))
    bad = log.audit("query", "--since", "yesterday")
    tap.ok(bad.status == 2 and "CONFIG_INVALID" in bad.err, f"query: no such time, {log.who}", bad)
    bad = log.audit("query", "--event", "call.edn")
    tap.ok(bad.status == 2 and "`call.end`" in bad.err, f"query: no such event, the nearest one, {log.who}", bad)
    bad = [log.audit("query", "--session", name) for name in ("@last", "no-such")]
    tap.ok(all(b.status == 2 and "NOT_FOUND" in b.err for b in bad), f"query: no such session, {log.who}", *bad)
    bad = log.audit("query", "--decision", "maybe")
    tap.ok(bad.status == 2 and "allow, ask or deny" in bad.err, f"query: no such decision, {log.who}", bad)
    shown = log.audit("query", "--event", "call.end")
    tap.ok(shown.status == 0 and len(shown.out.splitlines()) == sum(l["event"] == "call.end" for l in lines),
           f"query for people: a line each, {log.who}", shown)


def exported(log):
    as_lines = log.audit("export")
    as_csv = log.audit("export", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(as_csv.out)))
    lines = log.lines()
    tap.ok(as_lines.out.encode() == b"".join(line + b"\n" for line in log.raw()),
           f"export: the log's own bytes, {log.who}", as_lines.status)
    tap.ok(len(rows) == len(lines) and list(rows[0]) == KEYS and
           all(row["hash"] == line["hash"] and json.loads(row["data"]) == line["data"]
               for row, line in zip(rows, lines)), f"export: CSV, {log.who}", as_csv)


def tail(log):
    lines = log.lines()
    last = log.audit("tail", "-n", "3")
    none = log.audit("tail", "-n", "0")
    every = log.audit("tail", "-n", "100000")
    numbers = [int(line.split()[0]) for line in last.out.splitlines()]
    tap.ok(numbers == [line["seq"] for line in lines[-3:]] and none.out == "" and none.status == 0 and
           len(every.out.splitlines()) == len(lines), f"tail, {log.who}", last, none)
    process = log.place.start([SANDGLASS, "audit", "tail", "-f", "-n", "1"], text=True, bufsize=1)
    first = process.stdout.readline()
    log.run("true")
    more = [process.stdout.readline() for _ in range(2)]
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=20)
    got = [int(line.split()[0]) for line in [first, *more]]
    tap.ok(got == [lines[-1]["seq"] + i for i in range(3)], f"tail -f, {log.who}", got)


def policy(log, text):
    top = f"{log.place.home}/.config/sandglass"
    os.makedirs(top, mode=0o700, exist_ok=True)
    for path in (os.path.dirname(top), top):
        log.place.own(path)
    return log.place.write(f"{top}/policy.yaml", text)


def retention(log):
    log.age(DAYS[0])
    log.run("true")
    log.age(DAYS[1])
    log.run("true")
    before = len(log.files())
    policy(log, "version: 1\nretention: {audit: 3d}")
    shown = log.place.run([SANDGLASS, "policy", "show", "--origin"])
    dry = log.place.run([SANDGLASS, "gc", "--dry-run"])
    kept = len(log.files())
    done = log.place.run([SANDGLASS, "gc"])
    seen = log.audit("verify")
    sweep = [line for line in log.lines() if line["event"] == "retention.sweep"]
    tap.ok(before == 3 and kept == 3 and "2 files" in dry.out and done.status == 0 and
           len(log.files()) == 1 and seen.status == 0 and "deleted by retention" in seen.out and
           [row["file"] for row in sweep[0]["data"]["files"]] == [f"{day}.jsonl" for day in DAYS],
           f"retention deletes whole days, tells, and verifies, {log.who}", dry, done, seen, sweep)
    tap.ok(re.search(r"audit: 3d +# user .*policy.yaml:2", shown.out) and
           re.search(r"artifacts: 90d +# built-in", shown.out) and
           re.search(r"identity: plain +# built-in", shown.out),
           f"policy show --origin names what is kept, {log.who}", shown)
    state, name = log.change(0, lambda lines: [line for line in lines if b"retention.sweep" not in line])
    names(log, "control: without the sweep's line", state, f"{name}:1: seq {log.lines()[0]['seq']}")
    source = f"{log.place.src}/.sandglass"
    os.mkdir(source)
    log.place.own(source)
    project = log.place.write(f"{source}/policy.yaml", "version: 1\nretention: {audit: 1d}", 0o644)
    shown = log.place.run([SANDGLASS, "policy", "show"])
    trusted = log.place.run([SANDGLASS, "policy", "trust", project])
    again = log.place.run([SANDGLASS, "policy", "show"])
    tap.ok(all("audit: 3d\n" in one.out and "not taken: retention.audit" in one.out for one in (shown, again)) and
           trusted.status == 0, f"a project cannot shorten it, trusted or not, {log.who}", shown, trusted, again)
    trust = [line for line in log.lines() if line["event"] == "policy.trust"]
    log.run("true")
    load = [line for line in log.lines() if line["event"] == "policy.load"]
    with open(project, "rb") as handle:
        digest = hashlib.sha256(handle.read()).hexdigest()
    tap.ok(len(trust) == 1 and trust[0]["data"] == {"path": project, "sha256": digest} and
           {"layer": "project", "path": project, "sha256": digest, "trusted": True} in load[-1]["data"]["files"],
           f"policy.trust and policy.load are there, {log.who}", trust, load)
    shutil.rmtree(source)
    for text, says in (("version: 1\naudit: {ship: syslog}", "UNSUPPORTED"),
                       ("version: 1\naudit: {identty: plain}", "identity"),
                       ("version: 1\nretention: {audit: 1h}", "at least 1d"),
                       ("version: 1\nretention: {audit: 400}", "400s?")):
        policy(log, text)
        check = log.place.run([SANDGLASS, "policy", "check"])
        tap.ok(check.status == 1 and says in check.out + check.err and ":2:" in check.out + check.err,
               f"a wrong value has its place: {text[11:]}, {log.who}", check)
    os.unlink(policy(log, ""))


def pseudonyms(log):
    before = len(log.raw())
    actor = log.lines()[-1]["actor"]
    name = "zq" + secrets.token_hex(6)
    argv = ["true", f"/home/{name}/x", f"https://{name}.example.com/{name}/app", f"{name}@host.example",
            f"{log.place.home}/file", "198.51.100.7", f"{name}.internal"]
    log.run(*argv)
    with open(log.files()[-1], "rb") as handle:
        plain = handle.read().count(name.encode())
    policy(log, "version: 1\naudit: {identity: pseudonym}")
    log.run(*argv)
    hidden = [line for line in log.raw()[before + 2:] if b'"call.' in line]
    start = json.loads(hidden[0])
    one = json.loads(hidden[0])["data"]["argv"]
    log.run(*argv)
    again = [json.loads(line) for line in log.raw() if b'"call.start"' in line][-1]
    tap.ok(plain >= 5 and not any(name.encode() in line or log.place.home.encode() in line or
                                  b"198.51" in line for line in hidden) and
           re.fullmatch("p-[0-9a-f]{16}", start["actor"]) and
           re.fullmatch("/home/p-[0-9a-f]{16}/x", one[1]) and one == again["data"]["argv"],
           f"pseudonyms take the place of names, the same each time, {log.who}", plain, hidden)
    key = os.stat(f"{log.dir}/key")
    found = log.audit("query", "--json", "--actor", actor)
    tap.ok((key.st_mode & 0o7777, key.st_size) == (0o600, 32) and
           json.loads(found.out)["events"] == log.lines(), f"query finds both names, {log.who}", found.status)
    os.unlink(f"{log.place.home}/.config/sandglass/policy.yaml")
    log.run("true")
    tap.ok(log.lines()[-1]["actor"] == actor and log.audit("verify").status == 0,
           f"without the key of the policy names are names again, {log.who}")


def main():
    for who in identities_once():
        log = Log(who)
        for row in (contents, full_access, by_hand, several_days, broken, heads, torn, many, killed, canaries, unwritable,
                    query, exported, tail,
                    pseudonyms, retention):
            tap.attempt(row.__name__, row, log)
        log.place.close()
    return tap.done()


sys.exit(main())
