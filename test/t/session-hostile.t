#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions that attack who looks at them.

Each way (lib/ways.py) is tried inside; then a person on the host runs every verb that
looks at sessions, and git in the source. No program that a way names may run on the host
(it would leave a canary; the control shows that it does when git meets the same bare),
nothing outside may change, and each verb ends soon, with what it was asked for or an
error that has a code.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
import ways  # noqa: E402
from place import SANDGLASS, SANITIZED, Terminal, identities_once, wait_for  # noqa: E402
from session import Sessions, code, differences, tree  # noqa: E402

SOON = 30 if not SANITIZED else 120
SOURCE = """
git init -q -b main .
mkdir d d2 d3 enc n1 n1/n2 mv1; echo a >a; echo b >b; echo b >b2; echo f >f1; echo s >s1; echo h >h1
echo good >same; echo x >d/x; echo y >d/y; echo k >d2/k; echo k >d3/k; echo e >enc/e
echo x >n1/n2/x; echo x >mv1/x
for t in f t c i a; do echo 1 >tracked.$t; done
git add .; git commit -qm one; git branch other
"""
OUTSIDE = """
git init -q -b main evil; cd evil; echo secret-canary >secret; git add .; git commit -qm secret
cd ..; mv evil/.git evil.git; rm -rf evil; git -C evil.git config core.bare false
git -C evil.git config core.worktree "$PWD"; git -C evil.git config core.fsmonitor @PAY@
echo victim-canary >victim; echo open >open; mkdir below; echo x >x
"""


class Case:
    """A source, an outside, a session, and what verbs have said of it."""

    def __init__(self, who, *options):
        self.who, self.p = who, Sessions(who)
        p = self.p
        for name in ("pay", "ran", "control"):
            os.mkdir(f"{p.top}/{name}")
            os.chmod(f"{p.top}/{name}", 0o1777)
        self.out, self.ran = p.out, f"{p.top}/ran"
        os.remove(p.probe)
        self.fill(p.sh(SOURCE))
        self.fill(p.sh(OUTSIDE.replace("@PAY@", self.pay("outside")), cwd=p.out))
        self.secret = p.sh(f"git --git-dir={p.out}/evil.git rev-parse HEAD").out.strip()
        self.verbs, self.terminal, self.doc, self.exported, self.patch = [], {}, {}, {}, ""
        self.s = p.new(*options)
        self.layer = f"{p.dir(self.s)}/upper"
        self.refs_before = self.refs = self.heads()

    @staticmethod
    def fill(done):
        if done.status:
            raise AssertionError(done)

    def pay(self, word):
        """A program of the host's that leaves a canary if anybody runs it."""
        path = f"{self.p.top}/pay/{word}"
        if not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as handle:
                handle.write(f"#!/bin/sh\ntouch {self.ran}/{word}\n")
            os.chmod(path, 0o755)
        return path

    def script(self, way, src):
        return (way.inside.replace("@PAY@", self.pay(way.word)).replace("@OUT@", self.out)
                .replace("@SRC@", src).replace("@SECRETCOMMIT@", self.secret))

    def heads(self):
        return self.p.sh("git for-each-ref refs/heads").out

    def give(self, name):
        st = os.lstat(self.layer)
        os.lchown(f"{self.layer}/{name}", st.st_uid, st.st_gid)

    def read(self, name):
        try:
            with open(f"{self.p.src}/{name}", encoding="utf-8", errors="replace") as handle:
                return handle.read()
        except OSError:
            return ""

    def same_file(self, name):
        """Whether what came is a file of its own, and the one outside is as it was."""
        with open(f"{self.out}/open", encoding="utf-8") as handle:
            return handle.read() == "open\n" and not (
                os.path.exists(f"{self.p.src}/{name}") and
                os.path.samefile(f"{self.p.src}/{name}", f"{self.out}/open"))

    def patch_parts(self):
        return [("diff", self.patch)]

    # A person's steps.

    def verb(self, *argv, seconds=SOON):
        said = self.p.run([SANDGLASS, *argv], timeout=seconds)
        self.verbs.append((argv, said))
        return said

    def look(self):
        for argv in (("session", "list"), ("session", "show", self.s), ("session", "calls", self.s),
                     ("session", "logs", self.s), ("diff", "--stat", self.s)):
            self.verb(*argv)
        self.patch = self.verb("diff", self.s).out
        told = self.verb("diff", "--json", self.s)
        self.doc = json.loads(told.out) if told.out.startswith("{") else {}
        done = self.verb("export", "--json", self.s)
        if done.status == 0:
            top = json.loads(done.out)["path"]
            for folder, _, files in os.walk(os.fsencode(top)):
                for name in files:
                    path = os.path.join(folder, name)
                    if not os.path.islink(path) and os.path.getsize(path) < 1 << 20:
                        with open(path, "rb") as handle:
                            self.exported[os.fsdecode(path)[len(top) + 1:]] = \
                                handle.read().decode("utf-8", "replace")

    def look_at_terminal(self):
        for argv in (("session", "list"), ("session", "show", self.s), ("session", "calls", self.s),
                     ("diff", "--stat", self.s), ("diff", self.s)):
            t = Terminal(self.p)
            try:
                status, self.terminal[argv] = t.run([SANDGLASS, *argv], env={"NO_COLOR": "1"})
                if status not in (0, 1, 2):
                    self.terminal[argv] += f"\x1b status {status}"
            finally:
                t.close()

    def bring(self):
        """Apply: one path, then everything; and what a person does next."""
        self.verb("apply", self.s, "b")
        self.verb("apply", "--json", self.s)
        self.refs = self.heads()
        for words in ("status", "diff --stat", "log -1 -p --stat", "stash list"):
            self.p.run(["git", *words.split()], timeout=SOON)

    def end(self):
        for argv in (("discard", self.s), ("gc",), ("session", "reset", self.s), ("diff", self.s),
                     ("session", "destroy", "--discard", self.s)):
            self.verb(*argv)

    def ends_badly(self):
        """Verbs that hung, died, or failed without saying why."""
        return [f"{' '.join(argv)}: {said}" for argv, said in self.verbs
                if said.status not in (0, 1, 2) or "Sanitizer" in said.err or
                (said.status == 2 and not code(said))]


def private(top):
    """What of a git directory is never applied."""
    return {k: v for k, v in tree(f"{top}/.git").items()
            if re.search(r"/\.git/(config|hooks|info|HEAD)(/|$)", k)}


def shown_bare(who):
    """What git does bare is shown once: by an ordinary user."""
    return who.uid == identities_once()[-1].uid


def control(c, way):
    """The same bare, in a copy: the canary comes."""
    where = f"{c.p.top}/control/{way.word}"
    c.p.run(["cp", "-a", c.p.src, where])
    made = c.p.sh(c.script(way, where), cwd=where, timeout=20)
    c.p.sh(way.control + " || :", cwd=where, timeout=20)
    seen = [n for n in (way.word, "outside") if os.path.exists(f"{c.ran}/{n}")]
    for name in seen:
        os.remove(f"{c.ran}/{name}")
    subprocess.run(["rm", "-rf", where], check=False)
    return seen, made


def attempt(c, table):
    """Each way inside, in a shell of its own; the words of those that came to their end."""
    script = ""
    for way in table:
        if way.inside:
            script += f"(set -e\n{c.script(way, c.p.src)}\n) 2>&1 && echo 'made {way.word}'\n"
    done = c.p.exec(c.s, script + "true", timeout=SOON * 2) if script else None
    for way in table:
        if way.planted:
            way.planted(c)
    return done


def judge(c, way, made, before, ran):
    """What is wrong with one way; nothing if all is well."""
    wrong = []
    if way.inside and (f"made {way.word}\n" in made.out) == way.refused:
        wrong.append(("it was not refused" if way.refused else "it did not come to its end", str(made)))
    if way.word in ran:
        wrong.append("it ran on the host")
    flagged = {f"{f['kind']}:{f['path']}" for f in c.doc.get("changes", {}).get("flagged", [])}
    wrong += [f"not flagged: {t}" for t in way.told if t not in flagged]
    if wrong and way.told:
        wrong.append(sorted(flagged)[:40])
    came = way.check(c) if way.check else None
    if came:
        wrong.append(came)
    return wrong


def tried(who, name, table, options=(), terminal=False, planted=False):
    """One session with all ways of a table."""
    c = Case(who, *options)
    p = c.p
    try:
        seen = {w.word: control(c, w) for w in table if w.control and shown_bare(who)}
        made = attempt(c, table)
        before = (tree(p.out), tree(p.home), tree(f"{p.top}/pay"), tree(p.src))
        c.look()
        if terminal:
            c.look_at_terminal()
        still = differences(before[3], tree(p.src))
        tap.ok(not still, f"{name}: looking changes nothing in the source, {who.name}", *still)
        secret = private(p.src)
        c.bring()
        outside = [differences(a, tree(b)) for a, b in
                   zip(before, (p.out, p.home, f"{p.top}/pay"))]
        ran = set(os.listdir(c.ran))
        for way in table:
            wrong = judge(c, way, made, before, ran)
            shows = way.word not in seen or seen[way.word][0]
            tap.ok(shows and not wrong, f"{name}: {way.name}, {who.name}",
                   *([] if shows else ["inconclusive: bare it runs nothing", seen[way.word][1]]), *wrong)
        odd = [k for k in tree(p.src) if os.lstat(k).st_mode & 0o170000 not in
               (0o100000, 0o040000, 0o120000)] + differences(secret, private(p.src))
        owners = {os.lstat(k).st_uid for k in tree(p.src)}
        tap.ok(not odd and owners == {p.owner.uid},
               f"{name}: what came is files, links and directories of the owner, "
               f"and not of git's configuration, {who.name}", *odd, owners)
        c.end()
        outside += [differences(a, tree(b)) for a, b in
                    zip(before, (p.out, p.home, f"{p.top}/pay"))]
        # The layer's link to it went with the session, or with a discard.
        outside = [[d for d in ds if d != f"{p.out}/open"] for ds in outside]
        bad = c.ends_badly()
        for argv, said in c.verbs:
            if said.status == 2 or said.seconds > 3:
                tap.note(f"{' '.join(argv)}: {said.seconds:.1f} s, {said.status}, {said.err[:300]}")
        tap.ok(not any(outside) and not os.listdir(c.ran),
               f"{name}: nothing outside has changed, nothing ran, {who.name}", *outside,
               os.listdir(c.ran))
        tap.ok(not bad, f"{name}: every verb ended soon and said how, {who.name}", *bad)
        left = p.remains()
        tap.ok(not left, f"{name}: nothing is left, {who.name}", *left)
    finally:
        p.close()


def configuration(who):
    tried(who, "configuration", ways.CONFIG, terminal=True)


def files(who):
    tried(who, "files", ways.FILES, terminal=True)


def planted(who):
    tried(who, "planted", ways.PLANTED + (ways.ROOT_NODES if who.uid == 0 else []))


def repositories(who):
    """Each in a session of its own, and as many verbs as show something."""
    table = ways.GIT + ways.ALONE
    if who.uid != identities_once()[0].uid and not os.environ.get("ALL"):
        table = table[::5]  # git in a box is the same for both
    for way in table if not SANITIZED else table[:6]:
        tap.attempt(f"git: {way.name}, {who.name}", repository, who, way)


def repository(who, way):
    c = Case(who)
    p = c.p
    try:
        shows = not (way.control and shown_bare(who)) or control(c, way)
        made = attempt(c, [way])
        before, mine = (tree(p.out), tree(p.home)), private(p.src)
        told = c.verb("diff", "--json", c.s)
        c.doc = json.loads(told.out) if told.out.startswith("{") else {}
        if "SECRET" in way.inside or "fifo" in way.inside:
            c.verb("export", c.s)
        c.verb("apply", c.s)
        c.refs = c.heads()
        p.sh("git status; git log -1 -p", timeout=SOON)
        again = p.exec(c.s, "echo again")
        c.verb("session", "destroy", "--discard", c.s)
        wrong = judge(c, way, made, before, set(os.listdir(c.ran)))
        wrong += [d for d in (differences(a, tree(b)) for a, b in zip(before, (p.out, p.home))) if d]
        wrong += differences(mine, private(p.src)) + os.listdir(c.ran) + c.ends_badly()
        if again.out != "again\n" and not code(again):
            wrong.append(again)
        found = subprocess.run(["grep", "-rl", "secret-canary", p.src, f"{p.state}/artifacts"],
                               capture_output=True, text=True, check=False).stdout
        if found:
            wrong.append(f"what is outside is in {found}")
        wrong += p.remains()
        slow = [f"{' '.join(a)} {r.seconds:.1f} s" for a, r in c.verbs if r.seconds > 5]
        if slow:
            tap.note(f"{way.name}: {', '.join(slow)}")
        tap.ok((shows is True or shows[0]) and not wrong, f"git: {way.name}, {who.name}", *wrong, shows)
    finally:
        p.close()


def running(who):
    """All at once, while verbs look again and again."""
    c = Case(who)
    p = c.p
    try:
        calls = {}
        for way in ways.RUNNING:
            more = ("--pids", "60") if way.name.startswith("processes") else ()
            done = p.session("exec", "--detach", *more, c.s, "sh", "-c", c.script(way, p.src))
            calls[way.word] = done
        wait_for(lambda: os.path.exists(f"{c.layer}/stopped"), 10)
        time.sleep(0.3)
        before = (tree(p.out), tree(p.home))
        for _ in range(2):
            c.look()
            c.verb("apply", c.s)
            p.sh("git status", timeout=SOON)
        alive = {x["call"]: x for x in p.calls(c.s)}
        again = p.exec(c.s, "echo again")
        ended = c.verb("session", "destroy", "--discard", c.s)
        outside = [differences(a, tree(b)) for a, b in zip(before, (p.out, p.home))]
        for way in ways.RUNNING:
            done = calls[way.word]
            wrong = way.check(c) if way.check else None
            tap.ok(done.status == 0 and done.out.strip() in alive and not wrong,
                   f"running: {way.name}, {who.name}", done, wrong)
        tap.ok(again.out == "again\n", f"running: the next call works, {who.name}", again)
        bad, left = c.ends_badly(), p.remains()
        tap.ok(not any(outside) and not os.listdir(c.ran) and not bad and not left and
               ended.status == 0, f"running: all ended, nothing outside changed, {who.name}",
               *outside, *bad, *left)
    finally:
        p.close()


def bad_commits(who):
    """R8: a sandbox does not stop bad commits: they are flagged, held, kept, and not pushed."""
    c = Case(who)
    p = c.p
    try:
        p.sh(f"git init -q --bare {p.top}/tmp/remote.git; git remote add origin {p.top}/tmp/remote.git")
        token = "ghp_" + "".join("0123456789abcdefghijABCDEFGHIJ"[(i * 7) % 30] for i in range(36))
        done = p.exec(c.s, "mkdir -p .github/workflows; echo 'on: push' >.github/workflows/x.yml; "
                      "echo '#!/bin/sh' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; "
                      f"echo key={token} >config.ini; ln -s /etc/passwd out; git add -A . 2>/dev/null; "
                      "git commit -qnm bad && echo made")
        before = tree(p.src)
        told = c.verb("diff", "--json", c.s)
        doc = json.loads(told.out) if told.out.startswith("{") else {"changes": {"flagged": []}}
        flagged = {f"{f['kind']}:{f['path']}" for f in doc["changes"]["flagged"] if f["level"] == "high"}
        want = {"ci-workflow:.github/workflows/x.yml", "secret:config.ini",
                "git-hook-or-config:.git/hooks/pre-commit"}
        tap.ok("made" in done.out and want <= flagged and token not in told.out,
               f"R8: what runs by itself and secrets are flagged high, {who.name}", done, flagged)
        tap.ok(not differences(before, tree(p.src)),
               f"R8: nothing comes into the source without a person, {who.name}")
        applied = c.verb("apply", c.s)
        tap.ok(applied.status == 0 and not os.path.exists(f"{p.src}/.git/hooks/pre-commit"),
               f"R8: apply brings no hook, {who.name}", applied)
        pushed = c.verb("push", c.s)
        there = p.sh(f"git --git-dir={p.top}/tmp/remote.git for-each-ref").out
        tap.ok(pushed.status == 2 and code(pushed) == "UNSUPPORTED" and not there,
               f"R8: nothing is pushed without a person at a terminal, {who.name}", pushed, there)
        p.exec(c.s, "echo later >later")
        ended = c.verb("session", "destroy", c.s)
        kept = p.sh(f"cat {p.state}/artifacts/{c.s}/diff.patch").out
        tap.ok(ended.status == 0 and "+later" in kept,
               f"R8: what was not reviewed is an artifact when it ends, {who.name}", ended, kept)
    finally:
        p.close()


INSIDE = [
    ("kills everything it can", "kill -9 -1; kill -9 1; sleep 0.1; echo alive", "alive"),
    ("init cannot be traced or read", "python3 -c 'import ctypes; l = ctypes.CDLL(None, use_errno=True)\n"
     "print(l.ptrace(16, 1, 0, 0), l.ptrace(0x4206, 1, 0, 0))'; cat /proc/1/environ /proc/1/mem "
     "/proc/1/maps 2>&1 | head -c 200; ls -l /proc/1/fd /proc/1/root /proc/1/cwd 2>&1 | "
     "grep -c enied", r"^-1 -1\n"),
    ("no other process is there", "ls /proc | grep -c '^[0-9]'", r"^[0-9]\n"),
    ("no state is there", "ls -d @STATE@ @STATE@/sessions @STATE@/state.db @DIR@ @DIR@/record 2>&1 | "
     "grep -vc 'No such file'; find / -xdev -name record -o -xdev -name state.db 2>/dev/null | "
     "grep -v '^/usr' | head -3; echo end", r"^0\nend\n"),
    ("no socket of a keeper is there", "cat /proc/net/unix | tail -n +2 | wc -l; "
     "find / -xdev -type s 2>/dev/null | head -3; echo end", r"^0\nend\n"),
    ("no descriptor leads out", "for f in /proc/self/fd/*; do readlink $f; done | grep -e @STATE@ -e "
     "'^/proc/[0-9]*/ns' -e overlay; ls /proc/self/fd | wc -l", r"^[0-9]\n"),
    ("the overlay's layers are not named", "grep -c @STATE@ /proc/self/mountinfo /proc/mounts "
     "/proc/self/mountstats; echo end", r"end\n"),
    ("namespaces of others cannot be entered", "for n in /proc/[0-9]*/ns/*; do nsenter --net=$n true && "
     "echo entered; unshare -r true && echo own; break; done 2>/dev/null; echo end", r"^end\n"),
]


def inside(who):
    """What can be reached of the supervisor from inside."""
    p = Sessions(who)
    try:
        s = p.new()
        helper = p.session("exec", "--detach", s, "sleep", "100").out.strip()
        for name, script, want in INSIDE:
            script = script.replace("@STATE@", p.state).replace("@DIR@", p.dir(s))
            done = p.exec(s, script)
            tap.ok(re.search(want, done.out), f"inside: {name}, {who.name}", done)
        runs = [c for c in p.calls(s) if c["call"] == helper]
        state = p.show(s).get("state")
        tap.ok(state == "active" and runs and p.named("sandglass-keep"),
               f"inside: session, keeper and other calls are as they were, {who.name}", state, runs)
    finally:
        p.close()


def sand(who):
    """/sand is the session's own; what the host puts there must not follow its links."""
    c = Case(who)
    p = c.p
    try:
        before = (tree(p.out), tree(p.home))
        call = p.session("exec", "--detach", c.s, "sh", "-c",
                         "printf 'said \\033]0;t\\007\\033[2J\\342\\200\\256\\n'; sleep 100").out.strip()
        wait_for(lambda: "said" in p.session("logs", c.s, call).out, 5)
        t = Terminal(p)
        status, said = t.run([SANDGLASS, "session", "logs", c.s, call])
        t.close()
        tap.ok(status == 0 and "said" in said and not any(ch in said for ch in "\x1b\x07\u202e"),
               f"sand: a log is shown escaped at a terminal, {who.name}", repr(said))
        done = p.exec(c.s, f"rm -f /sand/logs/{call}.out; ln -sf {p.out}/victim /sand/logs/{call}.out; "
                           "echo x >>/sand/logs/x; mv /sand/logs /sand/l; rmdir /sand/logs; ls /sand/logs | wc -l")
        tap.ok(re.fullmatch("[2-9]\n", done.out) and "Read-only" in done.err,
               f"sand: logs cannot be changed inside, {who.name}", done)
        log = f"{p.dir(c.s)}/root/logs/{call}.out"
        for what, plant in (("a link", lambda: os.symlink(f"{p.out}/victim", log)),
                            ("a fifo", lambda: os.mkfifo(log)), ("a directory", lambda: os.mkdir(log))):
            subprocess.run(["rm", "-rf", log], check=True)
            plant()
            said = [c.verb("session", "logs", *o, c.s, call) for o in ((), ("--err",))]
            c.verb("export", c.s)
            tap.ok(not any("canary" in r.out for r in said) and all(r.seconds < 5 for r in said),
                   f"sand: a log is {what} nevertheless, {who.name}", *said)
        subprocess.run(["rm", "-rf", log], check=True)
        for name in ("logs", "tmp", "cache", "home", "workspace"):
            done = p.exec(c.s, f"cd /sand && rm -rf {name}/* {name}/.[a-z]*; rmdir {name} && "
                               f"ln -sT {p.out} {name} && echo linked")
            if "linked" not in done.out:
                mine = f"{p.dir(c.s)}/root/{name}"
                st = os.lstat(mine)
                os.rename(mine, mine + ".was")
                os.symlink(p.out, mine)
                os.lchown(mine, st.st_uid, st.st_gid)
            later = p.session("exec", "--detach", c.s, "sh", "-c",
                              "echo x >/tmp/x; echo y >$HOME/y; echo z; sleep 100")
            then = p.exec(c.s, "ls /tmp/ $HOME/ $XDG_CACHE_HOME/; echo w >/tmp/w; echo here")
            said = [c.verb("session", "logs", c.s, later.out.strip() or call), c.verb("export", c.s)]
            told = [r for r in (later, then) if r.status not in (0, 1, 2, 125) or
                    (r.status > 1 and not code(r))]
            outside = [differences(a, tree(b)) for a, b in zip(before, (p.out, p.home))]
            seen = [w for w in ("victim", "evil.git") if w in then.out] + \
                [r for r in said if "canary" in r.out]
            tap.ok(not any(outside) and not seen and not told,
                   f"sand: {name} is a link to outside, {who.name}", done, later, then, *outside,
                   *seen)
            p.session("reset", c.s)
        reset = c.verb("session", "reset", c.s)
        works = p.exec(c.s, "echo x >/tmp/x; cat /tmp/x")
        end = c.verb("session", "destroy", "--discard", c.s)
        outside = [differences(a, tree(b)) for a, b in zip(before, (p.out, p.home))]
        tap.ok(reset.status == 0 and works.out == "x\n" and end.status == 0 and not any(outside) and
               not p.remains() and not c.ends_badly(),
               f"sand: reset brings it back, and destroy removes it, {who.name}", reset, works, end,
               *outside, *c.ends_badly(), *p.remains())
    finally:
        p.close()


BIG = [
    ("a sparse file of 2 GiB", "truncate -s 2G sparse; echo x | dd of=sparse bs=1 seek=300M "
     "conv=notrunc 2>/dev/null"),
    ("a million lines", "seq 1000000 >lines"),
    ("a line of 5 MB", "head -c 5M /dev/zero | tr '\\0' x >line"),
    ("20,000 files", "mkdir many; cd many; seq 20000 | xargs touch"),
    ("400 directories in one another", "i=0; while [ $i -lt 400 ]; do mkdir q; cd q; i=$((i+1)); "
     "done; touch deepest"),
    ("30 sparse files of 900 GiB", "mkdir holes; cd holes; for i in $(seq 30); do truncate -s 900G h$i; done; "
     "truncate -s 600M i1; truncate -s 600M i2"),
]


def big(who):
    """What there is much of: looked at, applied and removed in bounded time."""
    if SANITIZED or who.uid != identities_once()[0].uid:
        return
    c = Case(who)
    p = c.p
    try:
        for name, script in BIG:
            done = p.exec(c.s, "set -e; " + script)
            tap.ok(done.status == 0, f"big: {name} is made, {who.name}", done)
        before = (tree(p.out), tree(p.home))
        for argv in (("diff", "--stat", c.s), ("diff", c.s), ("apply", c.s)):
            said = c.verb(*argv, seconds=2 * SOON)
            tap.ok(said.status == 0, f"big: {argv[0]} ends, {who.name}", f"{said.seconds:.1f}", said.err)
            tap.note(f"{' '.join(argv[:2])}: {said.seconds:.1f} s, {len(said.out)} bytes")
            hashed = re.findall("^# too large, .* bytes, sha256 .*holes", said.out, re.M)
            if argv == ("diff", c.s):
                tap.ok(len(hashed) == 1, f"big: what is only named is hashed up to a GiB in sum, {who.name}",
                       *hashed)
        blocks = os.lstat(f"{p.src}/sparse").st_blocks if os.path.exists(f"{p.src}/sparse") else 1 << 60
        tap.ok(blocks * 512 < 64 << 20, f"big: holes stay holes, {who.name}", blocks)
        tap.ok(c.read("lines").count("\n") == 1000000 and len(os.listdir(f"{p.src}/many")) == 20000,
               f"big: what came is whole, {who.name}")
        c.verb("session", "destroy", "--discard", c.s)
        bad, left = c.ends_badly(), p.remains()
        tap.ok([tree(p.out), tree(p.home)] == list(before) and not bad and not left,
               f"big: nothing outside has changed, nothing is left, {who.name}", *bad, *left)
    finally:
        p.close()


def full(who):
    """Bytes and inodes to their limits, files without names included; then it is reviewed."""
    if who.uid != identities_once()[0].uid:
        return
    for what, options, script, want in (
            ("bytes", ("--disk", "40M"), "head -c 100M /dev/zero >fill; sleep 5", "DISK_LIMIT"),
            ("bytes without a name", ("--disk", "40M"), "exec 3>gone; rm gone; head -c 100M /dev/zero >&3; "
             "sleep 5", "DISK_LIMIT"),
            ("inodes", ("--inodes", "2000"), "mkdir i; cd i; seq 9000 | xargs touch; sleep 5",
             "INODE_LIMIT")):
        c = Case(who, *options)
        p = c.p
        try:
            done = p.exec(c.s, script)
            said = [c.verb(*a) for a in (("diff", "--stat", c.s), ("apply", c.s, "b"),
                                         ("export", c.s), ("discard", c.s), ("session", "reset", c.s))]
            works = p.exec(c.s, "echo works")
            c.verb("session", "destroy", "--discard", c.s)
            tap.ok(want in done.err and works.out == "works\n" and not c.ends_badly() and
                   not p.remains(), f"full: {what}, {who.name}", done, works, *said,
                   *c.ends_badly(), *p.remains())
        finally:
            p.close()


ROWS = {"R8": bad_commits, "configuration": configuration, "files": files, "planted": planted,
        "repositories": repositories, "running": running, "inside": inside, "sand": sand, "big": big,
        "full": full}


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    wanted = sys.argv[1:]
    for who in identities_once():
        for name, function in ROWS.items():
            if wanted and name not in wanted:
                continue
            begin = time.monotonic()
            tap.attempt(f"{name}, {who.name}", function, who)
            tap.note(f"{name}, {who.name}: {time.monotonic() - begin:.1f} s")
    return tap.done()


sys.exit(main())
