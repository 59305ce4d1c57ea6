#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""push: what reaches the remote is what was applied, shown and confirmed, and nothing of the
repository runs on the way."""

import json
import os
import shutil
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import shim  # pylint: disable=wrong-import-position
import tap  # pylint: disable=wrong-import-position
from handmade import Session, git  # pylint: disable=wrong-import-position
from place import Place, SANDGLASS, identities_once, wait_for  # pylint: disable=wrong-import-position
from term import Missing, Term  # pylint: disable=wrong-import-position

ASK = r"Type yes to go on: "


class World:
    """A project with a commit, and a bare repository beside it as its remote."""

    def __init__(self, who, **more):
        self.place = Place(who)
        place = self.place
        os.unlink(f"{place.src}/probe")
        place.write(f"{place.home}/.gitconfig", "[user]\n\tname = Pat Person\n"
                    "\temail = pat@example.com\n[init]\n\tdefaultBranch = main")
        self.remote = f"{place.top}/remote.git"
        git(place, "init", "-q", "--bare", self.remote, cwd=place.home) if False else None
        os.mkdir(self.remote)
        place.own(self.remote)
        git(place, "init", "-q", "--bare", self.remote)
        git(place, "init", "-q", "-b", "main")
        for path, text in (("a.txt", "one"), ("gone.txt", "old"), ("sub/b.txt", "two")):
            os.makedirs(os.path.dirname(f"{place.src}/{path}"), exist_ok=True)
            place.own(os.path.dirname(f"{place.src}/{path}"))
            place.write(f"{place.src}/{path}", text, 0o644)
        place.write(f"{place.src}/.gitignore", "ignored/", 0o644)
        git(place, "add", "-A")
        git(place, "commit", "-q", "-m", "first")
        self.url = more.get("url", self.remote)
        git(place, "remote", "add", "origin", self.url)
        git(place, "push", "-q", self.remote, "main")
        self.head = git(place, "rev-parse", "HEAD")
        self.session = Session(place, more.get("name", ""), head=self.head, branch="main",
                               remote="origin", remote_url=self.url)

    def refs(self):
        out = git(self.place, "for-each-ref", "--format=%(refname) %(objectname)",
                  cwd=self.remote)
        return dict(line.split() for line in out.split("\n"))

    def branch(self):
        return f"refs/heads/sandglass/{self.session.id}"

    def files(self, ref):
        """What the remote's commit has: path to mode and content."""
        found = {}
        for line in git(self.place, "ls-tree", "-r", "-z", ref, cwd=self.remote).split("\0"):
            if line:
                head, path = line.split("\t")
                mode, _, oid = head.split()
                found[path] = (mode, git(self.place, "cat-file", "blob", oid, cwd=self.remote))
        return found

    def events(self):
        """The lines of the log about pushes."""
        top = f"{self.place.state}/audit"
        lines = []
        for name in sorted(n for n in os.listdir(top) if n.endswith(".jsonl")):
            with open(f"{top}/{name}", encoding="utf-8") as handle:
                lines += [json.loads(line) for line in handle]
        return [line for line in lines if line["event"] == "push"]

    def policy(self, text):
        os.makedirs(f"{self.place.home}/.config/sandglass", exist_ok=True)
        for path in (f"{self.place.home}/.config", f"{self.place.home}/.config/sandglass"):
            self.place.own(path)
        self.place.write(f"{self.place.home}/.config/sandglass/policy.yaml",
                         "version: 1\n" + text)

    def push(self, *words, answer="yes", env=None):
        """At a terminal: the status, what was seen there, and stdout."""
        out = f"{self.place.out}/stdout"
        line = " ".join(f"'{w}'" for w in (SANDGLASS, "push", *words))
        with Term(self.place, ["sh", "-c", f"exec {line} >{out}"], rows=100, cols=200,
                  env=env) as term:
            asked = False
            try:
                while answer is not None:
                    term.until(lambda: ASK.encode() in term.said or ended(term), "asked", 60)
                    asked = ASK.encode() in term.said
                    if asked:
                        term.line(answer)
                    break
                status = term.ended(60)
            except Missing as why:
                return -1, str(why), "", asked
            with open(out, encoding="utf-8") as f:
                return status, term.said.decode(errors="replace"), f.read(), asked


def ended(term):
    got, status = os.waitpid(term.pid, os.WNOHANG)
    if got:
        term.status = os.waitstatus_to_exitcode(status)
    return term.status is not None


def leftovers(world):
    return [n for n in os.listdir(world.place.tmp) if n.startswith("sandglass-push")]


def changed(world):
    s = world.session
    s.applies("a.txt", "one, and more\n")
    s.applies("gone.txt")
    s.applies("new/run.sh", "#!/bin/sh\n", 0o755)
    s.applies("new/q\"uo\nte \\ é.txt", "odd\n")
    s.applies("new/empty", "")
    s.applies("new/link", link="../a.txt")
    s.applies("ignored/x", "never\n")


def works(who):
    name = who.name
    w = World(who, name="fix")
    changed(w)
    w.place.write(f"{w.place.src}/not-applied", "mine", 0o644)
    w.session.applies(".github/workflows/ci.yml", "on: push\n")
    status, seen, out, asked = w.push("--message", "Fix it\n\nAll of it.", "fix")
    tap.ok(status == 0 and asked, f"{name}: a person says yes and it is pushed", seen, out)
    for what, text in (("the remote", w.remote), ("the branch", f"sandglass/{w.session.id}"),
                       ("the parent", w.head), ("the message", "Fix it"),
                       ("what changed", "new/run.sh"), ("flags", "look at\r\n  high "), ("what was left out", "ignores them: 1")):
        tap.ok(text in seen, f"{name}: the question shows {what}", seen)
    refs = w.refs()
    if not tap.ok(w.branch() in refs, f"{name}: the branch is there", refs):
        return
    commit = refs[w.branch()]
    tap.ok(commit in seen and commit in out, f"{name}: it is the commit that was shown", seen, out)
    files = w.files(commit)
    want = {".gitignore": ("100644", "ignored/"), "a.txt": ("100644", "one, and more"),
            "sub/b.txt": ("100644", "two"), "new/run.sh": ("100755", "#!/bin/sh"),
            "new/q\"uo\nte \\ é.txt": ("100644", "odd"), "new/empty": ("100644", ""),
            "new/link": ("120000", "../a.txt"),
            ".github/workflows/ci.yml": ("100644", "on: push")}
    tap.ok(files == want, f"{name}: the tree is the parent's with what was applied", files, want)
    text = git(w.place, "cat-file", "commit", commit, cwd=w.remote)
    tap.ok(f"parent {w.head}\n" in text and "author Pat Person <pat@example.com>" in text,
           f"{name}: on top of the commit of then, by the person", text)
    tap.ok(text.endswith(f"Fix it\n\nAll of it.\n\nSandglass-Session: {w.session.id}\n"
                         "Sandglass-Policy: none\nApproved-by: Pat Person <pat@example.com>"),
           f"{name}: the message ends with the trailers", text)
    tap.ok(git(w.place, "rev-parse", "HEAD") == w.head and
           "ignored" not in git(w.place, "log", "--all", "--format=%s"),
           f"{name}: the source's repository is as before")
    tap.ok(not leftovers(w), f"{name}: nothing is left over", leftovers(w))
    status, seen, _, asked = w.push("fix")
    tap.ok(status == 1 and not asked and "CONFLICT" in seen,
           f"{name}: the same branch is not pushed to twice", status, seen)
    status, seen, out, _ = w.push("--json", "--branch", "again/x", w.session.id)
    doc = json.loads(out) if out.startswith("{") else {}
    tap.ok(status == 0 and doc.get("pushed") is True and doc.get("branch") == "again/x" and
           w.refs().get("refs/heads/again/x") == doc.get("commit"),
           f"{name}: --json says what was pushed", status, seen, out)


def refused(who):
    name = who.name
    w = World(who)
    changed(w)
    before = w.refs()
    status, seen, _, asked = w.push(answer="n")
    tap.ok(status == 1 and asked and "not confirmed" in seen, f"{name}: n is no", status, seen)
    logged = w.events()[-1]
    tap.ok((logged["decision"], logged["data"]["outcome"], logged["data"]["approved_by"]) ==
           ("deny", "refused", None), f"{name}: and the log says that nobody approved it", logged)
    for branch in ("main", "MASTER", "release/1", "release/a/b"):
        status, seen, _, asked = w.push("--branch", branch)
        tap.ok(status == 2 and not asked and "POLICY_DENIED" in seen and "protected" in seen,
               f"{name}: {branch} is protected", status, seen)
    w.policy('promotion: {protected: ["stable-*"]}')
    status, seen, _, asked = w.push("--branch", "stable-2")
    tap.ok(status == 2 and not asked and "policy.yaml:2" in seen,
           f"{name}: so is what a policy names, with the line", status, seen)
    git(w.place, "branch", "trunk", "main", cwd=w.remote)
    git(w.place, "symbolic-ref", "HEAD", "refs/heads/trunk", cwd=w.remote)
    status, seen, _, asked = w.push("--branch", "trunk")
    tap.ok(status == 2 and not asked and "HEAD names it" in seen,
           f"{name}: and the remote's HEAD", status, seen)
    git(w.place, "symbolic-ref", "HEAD", "refs/heads/main", cwd=w.remote)
    git(w.place, "branch", "-D", "-q", "trunk", cwd=w.remote)
    for branch in ("-x", "a..b", "refs/heads/x", "a b", "x.lock", "HEAD", ""):
        status, seen, _, asked = w.push(f"--branch={branch}")
        tap.ok(status == 2 and not asked and "CONFIG_INVALID" in seen,
               f"{name}: `{branch}` is no branch", status, seen)
    git(w.place, "remote", "set-url", "origin", f"{w.place.top}/other.git")
    status, seen, _, asked = w.push()
    tap.ok(status == 1 and not asked and "CONFLICT" in seen and "other.git" in seen,
           f"{name}: another remote than then is not pushed to", status, seen)
    git(w.place, "remote", "set-url", "origin", w.url)
    done = w.place.run([SANDGLASS, "push"])
    tap.ok(done.status == 2 and "UNSUPPORTED" in done.err and "signed approvals" in done.err,
           f"{name}: without a terminal it is UNSUPPORTED", done)
    tap.ok(w.refs() == before, f"{name}: nothing of all that was pushed", w.refs())
    status, seen, _, _ = w.push()
    tap.ok(status == 0 and w.branch() in w.refs(), f"{name}: control: with yes it is", seen)


def checks(who):
    name = who.name
    w = World(who)
    changed(w)
    w.place.write(f"{w.place.src}/not-applied", "mine", 0o644)
    good = ("test ! -e not-applied && test -x new/run.sh && test ! -e gone.txt && "
            "test ! -e ignored && test ! -e .git && touch mark && ! test -e /etc/shadow")
    w.policy(f"promotion: {{checks: [{{name: first, run: [sh, -c, '{good}']}},"
             " {name: second, run: [sh, -c, 'test ! -e mark']}]}")
    status, seen, _, asked = w.push("--branch", "checked")
    tap.ok(status == 0 and asked and "first: passed" in seen and "second: passed" in seen,
           f"{name}: checks run over exactly that tree, each over a fresh one", status, seen)
    w.policy("promotion: {checks: [{name: bad, run: [sh, -c, 'echo of-no-use >&2; exit 7']}]}")
    status, seen, _, asked = w.push()
    tap.ok(status == 1 and not asked and "of-no-use" in seen and "status 7" in seen,
           f"{name}: one that fails ends it, with what it said", status, seen)
    w.policy("promotion: {checks: [{name: slow, run: [sleep, 60], timeout: 1s}]}")
    status, seen, _, asked = w.push()
    tap.ok(status == 1 and not asked and "TOOL_TIMEOUT" in seen,
           f"{name}: so does one that takes too long", status, seen)
    tap.ok(w.branch() not in w.refs() and not leftovers(w),
           f"{name}: nothing was pushed, nothing is left", w.refs(), leftovers(w))


def told_to_end(who):
    """TERM in the middle of a check: it ends by it, and nothing is left."""
    name = who.name
    w = World(who)
    changed(w)
    w.policy("promotion: {checks: [{name: long, run: [sleep, 987]}]}")
    with Term(w.place, [SANDGLASS, "push"], rows=100, cols=200) as term:
        term.until(lambda: "987" in commands(), "checking", 60)
        os.kill(term.pid, signal.SIGTERM)
        status = term.ended(60)
    tap.ok(status == -signal.SIGTERM, f"{name}: told to end it ends by that signal", status)
    gone = wait_for(lambda: "987" not in commands(), 20)
    tap.ok(gone and not leftovers(w), f"{name}: and cleans up",
           leftovers(w))
    tap.ok(w.branch() not in w.refs(), f"{name}: without a push")


def commands():
    """All arguments of all processes."""
    found = set()
    for pid in os.listdir("/proc"):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
                found.update(f.read().split("\0"))
        except OSError:
            pass
    return found


HOSTILE = {
    "core.fsmonitor": "touch {mark}; false",
    "core.hooksPath": "{hooks}",
    "core.pager": "touch {mark}",
    "core.editor": "touch {mark}",
    "core.sshCommand": "touch {mark}",
    "core.gitProxy": "touch {mark}",
    "core.alternateRefsCommand": "touch {mark}",
    "core.attributesFile": "{hooks}/attributes",
    "filter.evil.clean": "touch {mark}; cat",
    "filter.evil.smudge": "touch {mark}; cat",
    "filter.evil.process": "touch {mark}",
    "filter.evil.required": "true",
    "diff.evil.textconv": "touch {mark}; cat",
    "diff.evil.command": "touch {mark}",
    "diff.external": "touch {mark}",
    "gpg.program": "{hooks}/pre-push",
    "commit.gpgSign": "true",
    "push.gpgSign": "true",
    "credential.helper": "!touch {mark}",
    "protocol.ext.allow": "always",
    "uploadpack.packObjectsHook": "touch {mark}",
    "remote.origin.receivepack": "touch {mark}; git-receive-pack",
    "remote.origin.pushurl": "ext::sh -c touch% {mark}",
    "remote.origin.vcs": "ext",
    "alias.push": "!touch {mark}",
    "alias.ls-remote": "!touch {mark}",
}


def arm(w, at):
    """A repository of which each part would run something."""
    hooks = f"{w.place.src}/{at}"
    os.makedirs(hooks, exist_ok=True)
    w.place.own(hooks)
    mark = f"{w.place.out}/ran"
    for hook in ("pre-push", "reference-transaction", "post-index-change", "pre-commit",
                 "post-checkout", "fsmonitor-watchman", "commit-msg", "update", "push-to-checkout"):
        w.place.write(f"{hooks}/{hook}", f"#!/bin/sh\ntouch {mark}", 0o755)
    w.place.write(f"{hooks}/attributes", "* filter=evil diff=evil")
    for key, value in HOSTILE.items():
        git(w.place, "config", key, value.format(mark=mark, hooks=hooks))
    git(w.place, "config", f"url.ext::sh -c touch% {mark} .insteadOf", w.url)
    git(w.place, "config", f"url.ext::sh -c touch% {mark} .pushInsteadOf", w.url)
    shutil.copytree(hooks, f"{w.place.src}/.git/hooks", dirs_exist_ok=True)
    with open(f"{w.place.src}/.git/info/attributes", "w", encoding="utf-8") as f:
        f.write("* filter=evil diff=evil\n")
    return mark


def hostile(who):
    name = who.name
    w = World(who)
    changed(w)
    w.session.applies(".gitattributes", "* filter=evil diff=evil export-ignore ident\n")
    mark = arm(w, "evil")
    git(w.place, "add", "a.txt", check=False)
    tap.ok(os.path.exists(mark), f"{name}: control: git in the source runs such things")
    if os.path.exists(mark):
        os.unlink(mark)
    w.place.write(f"{w.place.src}/evil/git", f"#!/bin/sh\ntouch {mark}", 0o755)
    w.policy("promotion: {checks: [{name: all, run: [test, -e, new/empty]}]}")
    status, seen, _, _ = w.push("--branch", "safe", env={
        "PATH": f"{w.place.src}/evil:{w.place.env()['PATH']}", "GIT_DIR": f"{w.place.src}/.git"})
    tap.ok(status == 0 and not os.path.exists(mark),
           f"{name}: with all of that set, push runs none of it", status, seen,
           os.path.exists(mark))
    files = w.files("refs/heads/safe") if "refs/heads/safe" in w.refs() else {}
    tap.ok(files.get("a.txt") == ("100644", "one, and more") and "new/empty" in files,
           f"{name}: and what is pushed is what was applied", files)
    for url in (f"ext::sh -c touch% {mark}", "http://example.com/x", "git://example.com/x",
                "fd::17", "-u/x", "--upload-pack=x"):
        git(w.place, "config", "remote.origin.url", url)
        w.session.values["remote_url"] = url
        w.session.record()
        status, seen, _, asked = w.push()
        tap.ok(status == 2 and not asked and not os.path.exists(mark),
               f"{name}: {url.split(' ')[0]} is not spoken to", status, seen)
    inside = f"{w.place.src}/sub/r.git"
    git(w.place, "config", "remote.origin.url", inside)
    w.session.values["remote_url"] = inside
    w.session.record()
    status, seen, _, asked = w.push()
    tap.ok(status == 2 and not asked and "lies in the source" in seen,
           f"{name}: nor a remote that a session can write", status, seen)


def escapes(who):
    name = who.name
    w = World(who)
    w.session.applies("new/\x1b[31mred\u202e", "x\n")
    status, seen, _, asked = w.push("--message", "a \x1b]0;title\x07 b", answer="n")
    tap.ok(asked and "\x1b[31m" not in seen and "\x1b]0" not in seen and "\u202e" not in seen,
           f"{name}: what is shown is safe on a terminal", status, repr(seen))


def nothing(who):
    name = who.name
    w = World(who)
    status, seen, _, asked = w.push()
    tap.ok(status == 1 and not asked and "sandglass apply" in seen,
           f"{name}: nothing applied, nothing to push", status, seen)
    w.session.applies("a.txt", "one\n")
    status, seen, _, asked = w.push()
    tap.ok(status == 1 and not asked and "already" in seen,
           f"{name}: nor if it is what the parent has", status, seen)
    w.session.applies("a.txt", "changed\n")
    for url, text in (("", "no remote"),):
        w.session.values["remote_url"] = url
        w.session.record()
        status, seen, _, asked = w.push()
        tap.ok(status == 2 and not asked and text in seen, f"{name}: {text}", status, seen)
    w.session.values.update(remote_url=w.url, head="")
    w.session.record()
    status, seen, _, asked = w.push()
    tap.ok(status == 2 and not asked and "no commit" in seen, f"{name}: no commit", status, seen)
    w.session.values.update(head=w.head, writes=0)
    w.session.record()
    status, seen, _, asked = w.push()
    tap.ok(status == 2 and not asked and "UNSUPPORTED" in seen, f"{name}: writes direct", seen)


def main():
    shim.without_sync()
    tests = (works, refused, checks, told_to_end, hostile, escapes, nothing)
    wanted = sys.argv[1:]
    for who in identities_once():
        for test in tests:
            if not wanted or test.__name__ in wanted:
                tap.attempt(f"{who.name}: {test.__name__}", test, who)
    return tap.done()


sys.exit(main())
