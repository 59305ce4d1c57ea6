#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`run --review` and `run --keep`: a command in a session of its own, and what becomes of it.
And what diff says of commits whose content the files do not show.
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import SANDGLASS, identities_once  # noqa: E402
from session import UUID, Sessions, differences, tree  # noqa: E402
from term import END, Missing, Term  # noqa: E402

GRACE = 5  # seconds that calls have to end; an end without calls waits for nothing
QUESTION = r"\[a l p k d \?\] "


def run(p, *words, **more):
    return p.run([SANDGLASS, "run", *words], **more)


def listed(p):
    return json.loads(p.session("list", "--json").out)


def gone(p, ids):
    for one in ids:
        p.session("destroy", "--discard", one)


def not_asked(who):
    """Without a terminal nothing is asked: changes are held, nothing is left of what has none."""
    p = Sessions(who)
    try:
        p.write(f"{p.src}/a", "one", 0o644)
        before = tree(p.src)
        plain = run(p, "true")
        none = run(p, "--review", "true")
        tap.ok(none.status == 0 and not none.err and listed(p) == [] and not p.remains(),
               f"--review of a command that changes nothing leaves no session, {who.name}", none,
               listed(p), p.remains())
        tap.ok(none.seconds < plain.seconds + GRACE - 1,
               f"and its end waits for nothing, {who.name}", none.seconds, plain.seconds)

        held = run(p, "--review", "sh", "-c", "echo two >a; echo new >b; exit 7")
        ids = UUID.findall(held.err)
        now = listed(p)
        tap.ok(held.status == 7 and [s["id"] for s in now] == ids[:1] and
               "sandglass diff" in held.err and "sandglass apply" in held.err,
               f"what it changes is held, the status is its own, {who.name}", held, now)
        tap.ok(tree(p.src) == before, f"the source is as it was, {who.name}",
               *differences(before, tree(p.src)))
        diff = p.run([SANDGLASS, "diff"])
        tap.ok(diff.status == 0 and "-one\n+two\n" in diff.out and "+new\n" in diff.out,
               f"diff shows it, {who.name}", diff)
        done = p.run([SANDGLASS, "apply"])
        with open(f"{p.src}/a", encoding="utf-8") as handle:
            tap.ok(done.status == 0 and handle.read() == "two\n" and os.path.exists(f"{p.src}/b"),
                   f"apply brings it, {who.name}", done)
        gone(p, ids[:1])

        kept = run(p, "--keep", "true")
        now = listed(p)
        tap.ok(kept.status == 0 and len(now) == 1 and now[0]["id"] in kept.err,
               f"--keep keeps the session whatever was changed, {who.name}", kept, now)
        gone(p, [s["id"] for s in now])

        said = run(p, "--review", "--json", "sh", "-c", "echo three >a; echo out")
        result = json.loads(said.out) if said.out.startswith("{") else {}
        now = listed(p)
        tap.ok(result.get("ok") and result["stdout"]["text"] == "out\n" and len(now) == 1 and
               result["session"] == now[0]["id"],
               f"--json names the session, {who.name}", said, now)
        gone(p, [s["id"] for s in now])

        over = run(p, "--review", "--timeout", "300ms", "sh", "-c", "echo x >late; sleep 9")
        now = listed(p)
        tap.ok(over.status == 124 and len(now) == 1, f"what ran into its timeout is held, {who.name}",
               over, now)
        gone(p, [s["id"] for s in now])
        missing = run(p, "--review", "no-such-program")
        tap.ok(missing.status == 127 and listed(p) == [],
               f"a program that is not there leaves no session, {who.name}", missing, listed(p))

        p.write(f"{p.top}/policy.yaml", "version: 1\nwrites: overlay\n", 0o644)
        by_policy = run(p, "--policy", f"{p.top}/policy.yaml", "sh", "-c", "echo four >a")
        now = listed(p)
        with open(f"{p.src}/a", encoding="utf-8") as handle:
            tap.ok(by_policy.status == 0 and len(now) == 1 and handle.read() == "two\n",
                   f"`writes: overlay` of a policy is the same, {who.name}", by_policy, now)
    finally:
        p.close()


def asked(who):
    """At a terminal each answer does what it says; none keeps."""
    p = Sessions(who)

    def talk(*answers):
        """The screen's text; each answer after the question."""
        with Term(p, [SANDGLASS, "run", "--review", "sh", "-c", "echo new >>f"]) as t:
            for answer in answers:
                t.expect(QUESTION)
                t.send(answer)
            t.ended(30)
            return t.said.decode(errors="replace")

    def content():
        path = f"{p.src}/f"
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8") as handle:
            return handle.read()

    try:
        said = talk("d\r")
        tap.ok(content() is None and listed(p) == [] and "1 added" in said,
               f"drop: the source is as it was, the session gone, {who.name}", said)
        said = talk("k\r")
        now = listed(p)
        tap.ok(content() is None and len(now) == 1 and "sandglass apply" in said,
               f"keep: held, {who.name}", said, now)
        gone(p, [s["id"] for s in now])
        said = talk(END)
        now = listed(p)
        tap.ok(content() is None and len(now) == 1, f"no answer: held, {who.name}", said, now)
        gone(p, [s["id"] for s in now])
        said = talk("x\r", "\r", "look\r", "apply\r")
        tap.ok(content() == "new\n" and listed(p) == [] and "+new" in said and
               "dropped" not in said and "kept in" not in said and "k, keep" in said,
               f"asked again and explained after nonsense, look, apply: it is there, {who.name}", said, content())
    except Missing as e:
        tap.ok(False, f"asked, {who.name}", e)
    finally:
        p.close()


COMMITS = """git config user.name A; git config user.email a@b.example
echo two >>a; git rm -q d/gone; ln -s a link; git add -A; git commit -qm honest
HIDE
git status --short"""
HIDDEN = """git switch -qc side; mkdir .husky; echo evil >.husky/pre-commit; git add .
git commit -qm side; git switch -q main
blob=$(echo hidden | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$blob,d/b
git commit -qm more"""


def in_commits(who):
    """A commit's content that the work tree does not have is told, path and branch."""
    p = Sessions(who)
    try:
        p.sh("git init -q -b main .; mkdir d; echo one >a; echo b >d/b; echo g >d/gone; git add .; "
             "git commit -qm start")
        for how, wanted in (("honest", []), ("hidden", [
                {"ref": "refs/heads/main", "path": "d/b"},
                {"ref": "refs/heads/side", "path": ".husky/pre-commit"}])):
            s = p.new()
            made = p.exec(s, COMMITS.replace("HIDE", HIDDEN if wanted else ""))
            told = p.run([SANDGLASS, "diff", "--json", s])
            found = json.loads(told.out)["changes"] if told.status == 0 else {}
            tap.ok(found.get("commit_only") == wanted and found["commits_unread"] is None and
                   any(r["ref"] == "refs/heads/main" for r in found["refs"]),
                   f"{how} commits: what they alone hold, {who.name}", made, found.get("commit_only"))
            text = p.run([SANDGLASS, "diff", s]).out + p.run([SANDGLASS, "diff", "--stat", s]).out
            tap.ok(text.count("in a commit only: d/b  (refs/heads/main)") == (2 if wanted else 0) and
                   text.count("in a commit only") == 2 * len(wanted),
                   f"{how} commits: in words, {who.name}", text)
            p.session("destroy", "--discard", s)
    finally:
        p.close()


def main():
    for who in identities_once():
        tap.attempt(f"not asked, {who.name}", not_asked, who)
        tap.attempt(f"asked, {who.name}", asked, who)
        tap.attempt(f"in commits, {who.name}", in_commits, who)
    return tap.done()


sys.exit(main())
