#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What `diff` prints is what the session changed, and git takes it.

The oracle is the session's own view: the patch, applied by `git apply` to a copy of
the source, must give it. Sessions are made by hand (lib/sessions.py).
"""

import json
import os
import random
import shutil
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import shim  # noqa: E402
import tap  # noqa: E402
from place import SANDGLASS, SANITIZED, USER, Identity, Place, Terminal, beside, identities_once  # noqa: E402
from sessions import Session, asks, difference, tree  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "300" if not SANITIZED else "30"))
SEED = int(os.environ.get("SEED", "0")) or int(time.time())
KINDS = ("files edits deletions directories removed renames renamed-directories executables symlinks "
         "binaries empty newlines bad-utf8 many types opaque").split()
LEAST = 20
MANY_EVERY = ROUNDS // (LEAST + 5) if ROUNDS >= 40 else 40  # a few find no place

# A random source, and random changes of the kinds asked for, made by a program inside.
MAKE = r"""
import os, random, shutil, subprocess
r = random.Random({seed})
kinds = {kinds!r}
done = set()
def walk():
    files, dirs = [], []
    for top, ds, fs in os.walk(b'.'):
        dirs += [os.path.join(top, d) for d in ds if not os.path.islink(os.path.join(top, d))]
        files += [os.path.join(top, f) for f in fs + [d for d in ds if os.path.islink(os.path.join(top, d))]]
    return sorted(files), sorted(dirs)
count = 0
def fresh(name=None):
    global count
    count += 1
    dirs = [b'.'] + [d for d in walk()[1] if len(d) < 600]
    name = name or r.choice([b'f%d', b'n %d.c', b'-%d', b'.h%d', b'\xc3\xa4%d', b'q"\\%d', b'L' * 120 + b'%d'])
    return os.path.join(r.choice(dirs), name % count)
def text():
    return b''.join(b'line %d\n' % r.randrange(50) for _ in range(r.randrange(1, 60)))
def put(path, data=None):
    with open(path, 'wb') as f:
        f.write(text() if data is None else data)
def pick(which=0, regular=False):
    found = walk()[which]
    if regular:
        found = [f for f in found if os.path.isfile(f) and not os.path.islink(f)]
    return r.choice(found)
def move(a, b):
    if subprocess.run([b'mv', b'-T', b'--', a, b]).returncode: raise OSError
def files(): put(fresh())
def edits():
    f = pick(0, True)
    lines = open(f, 'rb').read().split(b'\n')
    lines.insert(r.randrange(len(lines)), b'inserted %d' % r.randrange(1000))
    put(f, b'\n'.join(lines) + r.choice([b'', b'end']))
def deletions(): os.unlink(pick())
def directories():
    d = fresh()
    os.makedirs(os.path.join(d, b'in'))
    if r.random() < 0.7: put(os.path.join(d, b'in', b'file'))
def removed(): shutil.rmtree(pick(1))
def renames():
    f, to = pick(0, True), fresh()
    os.rename(f, to)
    if r.random() < 0.5: open(to, 'ab').write(b'more\n')
def renamed_directories():
    d, to = pick(1), fresh()
    if not to.startswith(d + b'/'):
        move(d, to)
        if r.random() < 0.5: put(os.path.join(to, b'added'))
        inner = [x for x in walk()[1] if x.startswith(to + b'/')]
        if inner and r.random() < 0.5: move(r.choice(inner), fresh())
def executables():
    f = pick(0, True)
    os.chmod(f, 0o755 if os.stat(f).st_mode & 0o100 == 0 else 0o644)
def symlinks():
    if r.random() < 0.3:
        links = [f for f in walk()[0] if os.path.islink(f)]
        if links: os.unlink(links[0])
    os.symlink(r.choice([b'a', b'../up', b'/etc/passwd', b'no\nsuch', b'\xff', b'dir/file']), fresh())
def binaries():
    if r.random() < 0.5: put(fresh(), r.randbytes(r.randrange(1, 9000)))
    else:
        f = pick(0, True)
        put(f, open(f, 'rb').read() + b'\0' + r.randbytes(50))
def empty():
    if r.random() < 0.5: put(fresh(), b'')
    else: put(pick(0, True), b'')
def newlines(): put(fresh(b'new\nline %d\n'))
def bad_utf8(): put(fresh(b'bad \xff\xfe\x80 %d'))
def many():
    d = fresh()
    os.mkdir(d)
    for i in range({many}):
        if i % 500 == 0: os.mkdir(os.path.join(d, b'%d' % (i // 500)))
        with open(os.path.join(d, b'%d' % (i // 500), b'%d' % i), 'wb') as f:
            f.write(b'%d\n' % i)
def types():
    files, dirs = walk()
    p = r.choice(files + dirs)
    shutil.rmtree(p) if os.path.isdir(p) and not os.path.islink(p) else os.unlink(p)
    what = r.randrange(3)
    if what == 0:
        os.mkdir(p); put(os.path.join(p, b'inside'))
    elif what == 1: put(p)
    else: os.symlink(b'elsewhere', p)
def opaque():
    d = pick(1)
    shutil.rmtree(d)
    os.mkdir(d)
    put(os.path.join(d, b'again'))
    put(os.path.join(d, b'a'), b'same name\n')
for kind in kinds:
    try:
        globals()[kind.replace('-', '_')]()
        done.add(kind)
    except (OSError, IndexError, shutil.Error):
        pass  # nothing of that kind is left
print(' '.join(sorted(done)))
"""
SOURCE = ["directories", "files", "files", "directories", "binaries", "symlinks", "newlines", "empty",
          "directories", "files", "files", "executables", "bad-utf8", "files", "directories"]


class Case:
    def __init__(self, who, copy=False, seed=None, files=None, **more):
        self.place = Place(who, Identity("owner", USER) if who.uid == 0 else who)
        os.remove(self.place.probe)
        for path, data in (files or {}).items():
            self.put(path, data)
        if seed is not None:
            self.outside(MAKE.format(seed=seed, kinds=SOURCE, many=0))
        self.s = Session(self.place, copy=copy, **more)

    def outside(self, script):
        who = self.place.owner if self.place.who.uid == 0 else self.place.who
        done = asks(who.prefix, self.place.src, script)
        if done.returncode:
            raise RuntimeError(f"outside: {done.stderr}")

    def put(self, path, data):
        at = self.place.src
        for part in os.path.dirname(path).split("/"):
            at += "/" + part
            if part and not os.path.isdir(at):
                os.mkdir(at)
                self.place.own(at)
        with open(f"{self.place.src}/{path}", "wb") as handle:
            handle.write(data if isinstance(data, bytes) else data.encode())
        self.place.own(f"{self.place.src}/{path}")

    def diff(self, *args, **more):
        return self.place.run([SANDGLASS, "diff", *args, self.s.id], **more)

    def patch(self):
        """The patch, byte for byte, in a file."""
        path = f"{self.place.top}/patch"
        with open(path, "wb") as out:
            done = self.place.run([SANDGLASS, "diff", self.s.id], stdout=out, timeout=300)
        return path, done

    def json(self):
        done = self.diff("--json")
        return json.loads(done.out) if done.status == 0 else {"failed": str(done)}

    def view(self):
        return tree(f"{self.s.dir}/copy") if self.s.copy else self.s.view()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.place.close()


def as_git_has_it(found):
    """Without what git cannot carry: other modes, directories without files."""
    kept = {}
    for path, (kind, mode, what) in found.items():
        if stat.S_ISREG(kind) or stat.S_ISLNK(kind):
            kept[path] = [kind, mode & 0o100, what]
    return kept


def git_apply(case, patch):
    """To a copy of the source, which is no repository."""
    copy = f"{case.place.top}/applied"
    subprocess.run(["cp", "-a", case.place.src, copy], check=True)
    # Git knows no directory without files; one in the way of a new file is not its to remove.
    subprocess.run(["find", copy, "-mindepth", "1", "-type", "d", "-empty", "-delete"], check=True)
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": case.place.top, "HOME": case.place.top,
           "GIT_CONFIG_NOSYSTEM": "1"}
    if os.path.getsize(patch) == 0 or b"\ndiff --git" not in b"\n" + open(patch, "rb").read():
        return copy, ""
    done = subprocess.run(["git", "apply", "--whitespace=nowarn", patch], cwd=copy, env=env,
                          capture_output=True, text=True, errors="replace", check=False)
    return copy, done.stderr if done.returncode else ""


def round_trip(who, copy, number, sums):
    """One change set. Returns what is wrong."""
    seed = SEED + number
    drawn = random.Random(seed)
    kinds = [drawn.choice([k for k in KINDS if k != "many"]) for _ in range(drawn.randrange(3, 14))]
    kinds.insert(0, min((k for k in KINDS if k != "many"), key=lambda k: sums.get(k, 0)))  # the rarest so far
    if number % MANY_EVERY == 0:
        kinds.append("many")
    with Case(who, copy, seed) as case:
        # Ten thousand files take as long as fifty other sets: twice, else two hundred.
        many = 10000 if number in (0, MANY_EVERY) else 200
        done = case.s.does(MAKE.format(seed=seed + 1, kinds=kinds, many=many))
        for kind in done.stdout.split():
            sums[kind] = sums.get(kind, 0) + 1
        view = case.view()
        patch, said = case.patch()
        if said.status:
            return seed, kinds, str(said)
        applied, error = git_apply(case, patch)
        want, got = as_git_has_it(view), as_git_has_it(tree(applied))
        if error or want != got:
            return seed, kinds, error, difference(want, got)
    return None


def round_trips(whos):
    ways = [(who, copy) for who in whos for copy in (False, True)]
    sums, bad = {}, []
    for number in range(ROUNDS):
        # The copy takes a quarter.
        who, copy = ways[number % len(ways)] if number % 2 else ways[(number // 2) % len(whos) * 2]
        wrong = round_trip(who, copy, number, sums)
        if wrong:
            bad.append((who.name, copy, *wrong))
            if len(bad) > 3:
                break
    tap.note(f"seed {SEED}, {ROUNDS} change sets, {sums}")
    tap.ok(not bad, "random change sets: the patch, applied by git, gives the session's view", *bad)
    if ROUNDS >= 300:
        few = {k: sums.get(k, 0) for k in KINDS if sums.get(k, 0) < LEAST}
        tap.ok(not few, f"each kind at least {LEAST} times", few)


def plain(who):
    with Case(who, files={"a": "one\ntwo\n", "old": "x\n" * 30, "gone": "g\n", "t": "t\n"}) as case:
        case.s.does("""
            import os
            open('a', 'a').write('three\\n'); os.rename('old', 'new'); os.remove('gone'); os.chmod('t', 0o600)
            os.mkdir('empty'); os.mkdir('d'); open('d/f', 'w').write('f\\n'); os.symlink('a', 'link')""")
        said = case.json()
        tap.ok([said["changes"][k] for k in ("added", "modified", "deleted", "renamed")] == [2, 2, 1, 1]
               and said["session"] == case.s.id and said["changes"]["conflicts"] == [],
               f"{who.name}: --json counts", said)
        names = {f["path"]: f["status"] for f in said["files"]}
        tap.ok(names == {"a": "modified", "new": "renamed", "gone": "deleted", "t": "modified",
                         "empty": "added", "d": "added", "d/f": "added", "link": "added"},
               f"{who.name}: --json names every entry", names)
        done = case.diff("--stat")
        tap.ok("R old -> new" in done.out and "M a  +1 -0" in done.out and "mode 0600" not in done.out
               and "mode 0644 to 0600" in done.out and "2 added, 2 modified, 1 deleted, 1 renamed" in done.out,
               f"{who.name}: --stat", done)
        patch, done = case.patch()
        head = open(patch, encoding="ascii").read().split("diff --git")[0]
        tap.ok('# directory added: "empty"' in head and '# mode 0644 to 0600: "t"' in head
               and '"d"' not in head and all(line[:2] == "# " for line in head.splitlines()),
               f"{who.name}: what git cannot carry stands in front", head)
        tap.ok(case.diff("--exit-code").status == 1 and case.diff().status == 0, f"{who.name}: --exit-code")
        done = case.place.run([SANDGLASS, "diff", "--stat"])
        tap.ok(done.status == 0 and f"session {case.s.id} (@last)" in done.err, f"{who.name}: @last, and which one it is", done)
        done = case.place.run([SANDGLASS, "diff", case.s.id[:8], "--stat"])
        tap.ok(done.status == 0 and not done.err, f"{who.name}: the beginning of an id, options behind it", done)
        done = case.place.run([SANDGLASS, "diff", "no-such"])
        tap.ok(done.status == 2 and "NOT_FOUND" in done.err, f"{who.name}: no such session", done)
    with Case(who, files={"a": "one\n"}) as case:
        case.s.does("open('a', 'w').write('one\\n'); import os; os.utime('a')")
        done = case.diff("--exit-code")
        tap.ok(done.status == 0 and done.out == "", f"{who.name}: touched but equal is no change", done)


def conflicts(who):
    with Case(who, files={"a": "one\n", "b": "two\n"}) as case:
        case.s.mask(".env")
        case.put(".env", "secret\n")
        case.s.does("open('a', 'w').write('mine\\n'); open('b', 'w').write('mine\\n'); import os; os.remove('.env'); open('.env', 'w').write('mine\\n')")
        case.put("a", "theirs\n")
        said = case.json()
        tap.ok(said["changes"]["conflicts"] == ["a"] or said["changes"]["conflicts"] == [".env", "a"],
               f"{who.name}: conflicts are named", said)
        patch, done = case.patch()
        text = open(patch, encoding="ascii").read()
        tap.ok('# conflict, the source changed there too: "a"' in text and '# masked, changed file: ".env"' in text
               and "secret" not in text and "+++ b/.env" not in text, f"{who.name}: masked paths are not in the patch", text)


    with Case(who, files={"a": "one\n", "d/b": "two\n"}) as case:
        case.s.does("""
            import os, shutil
            os.rename('a', 'moved'); open('a', 'w').write('one\\n')
            os.mkdir('e'); os.rename('d/b', 'e/b'); os.rmdir('d'); os.mkdir('d'); open('d/b', 'w').write('two\\n')""")
        said = case.json()
        tap.ok(said["changes"]["conflicts"] == [] and {f["path"] for f in said["files"]} == {"moved", "e", "e/b"},
               f"{who.name}: what was renamed away and has an equal one in its place is no conflict", said)


    with Case(who, files={"a": "one\n", "d/b": "two\n", "d/c": "three\n"}) as case:
        case.s.does("import shutil; shutil.rmtree('d'); open('a', 'a').write('more\\n'); open('new', 'w').write('n')")
        done = case.place.run(["strace", "-qq", "-o", "/dev/null", "-e", "trace=renameat2", "-e", "inject=renameat2:signal=KILL:when=2",
                               beside("sandglass-main"), "apply"])
        names = [n for _, _, found in os.walk(case.place.src) for n in found if n.startswith(".sandglass-")]
        patch, said = case.patch()
        listed = case.json()
        exported = case.place.run([SANDGLASS, "export", case.s.id])
        kept = subprocess.run(["grep", "-rl", ".sandglass-", f"{case.place.state}/artifacts"], capture_output=True, text=True, check=False).stdout
        tap.ok(done.status in (-9, 137) and names and said.status == 0 and b".sandglass-" not in open(patch, "rb").read() and listed["changes"]["interrupted"]
               and not [f for f in listed["files"] if ".sandglass-" in f["path"]] and exported.status == 0 and not kept,
               f"{who.name}: what an apply that was killed left in the source is neither shown nor exported", done, names, listed, exported, kept)


def flags(who):
    with Case(who, files={"package.json": '{"name": "x", "scripts": {"a": "b"}}', "x": "x\n",
                          "kept": "gh" "p_" + "k" * 36 + "\n", ".github/workflows/old.yml": "on: push\n", "CODEOWNERS": "* @x\n",
                          ".husky/pre-push": "x\n", "plain": "p\n"}) as case:
        token = "gh" "p_" + "aB3dE6" * 6
        case.s.does(f"""
            import os
            for d in ('.github/workflows', '.git/hooks', '.claude', 'd'): os.makedirs(d, exist_ok=True)
            for f in ('.github/workflows/old.yml', 'CODEOWNERS', '.husky/pre-push', 'plain'): os.remove(f)
            open('tool', 'wb').write(b'\\x7fELF\\0\\0' * 99 + b' {token} ' + b'\\0' * 99)
            open('.github/workflows/ci.yml', 'w').write('on: push')
            open('.git/hooks/pre-commit', 'w').write('x')
            open('.claude/settings.json', 'w').write('{{}}')
            open('package.json', 'w').write('{{"name": "y", "scripts": {{"a": "b", "postinstall": "c"}}}}')
            open('yarn.lock', 'w').write('x'); open('d/run', 'w').write('x'); os.chmod('d/run', 0o755)
            os.symlink('/etc/passwd', 'out'); os.symlink('../../up', 'd/up'); os.symlink('d/run', 'fine')
            open('conf', 'w').write('first\\nkey = {token}\\n'); open('kept', 'a').write('more\\n')
            open('big', 'wb').truncate(11 << 20); os.mkfifo('pipe')""")
        said = case.json()["changes"]["flagged"]
        found = {(f["path"], f["kind"], f["level"]) for f in said}
        want = {(".github/workflows/ci.yml", "ci-workflow", "high"), (".git/hooks/pre-commit", "git-hook-or-config", "high"),
                (".claude/settings.json", "startup-file", "high"), ("package.json", "package-script", "medium"),
                ("yarn.lock", "lockfile", "low"), ("d/run", "executable", "medium"), ("out", "symlink-leaves", "medium"),
                ("d/up", "symlink-leaves", "medium"), ("conf", "secret", "high"), ("big", "large-file", "low"),
                ("pipe", "special-file", "medium"), ("tool", "secret", "high"), (".github/workflows/old.yml", "ci-workflow", "high"),
                ("CODEOWNERS", "ci-workflow", "high"), (".husky/pre-push", "startup-file", "high"), ("big", "not-searched", "low")}
        tap.ok(found - {("big", "not-searched", "low")} == want - {("big", "not-searched", "low")},
               f"{who.name}: what to look at is flagged, with its level", found ^ want)
        shown = case.diff("--stat").out + json.dumps(said)
        tap.ok(token not in shown and token[:9] not in shown and "github-token, line 2: ghp_" in shown,
               f"{who.name}: a secret is named and not shown", shown)
        case.s.does("open('package.json', 'w').write('{ \"name\": \"z\",\\n \"scripts\": { \"a\": \"b\" } }')")
        said = case.json()["changes"]["flagged"]
        tap.ok(not [f for f in said if f["path"] == "package.json"], f"{who.name}: other parts of package.json are no scripts", said)


def refs(who):
    with Case(who, files={"a": "one\n"}) as case:
        git = "git -c user.name=a -c user.email=a@b"
        case.outside(f"import os\nfor c in ('git init -q -b main', '{git} add a', '{git} commit -qm one', "
                     "'git branch old', 'git pack-refs --all', 'git branch loose'): assert os.system(c) == 0")
        s = Session(case.place)
        s.does(f"import os\nfor c in ('git checkout -qb topic', '{git} commit -qm two --allow-empty', 'git branch -D old', "
               "'git pack-refs --all', 'git tag t'): assert os.system('HOME=/nonexistent GIT_CONFIG_COUNT=1 "
               "GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=* ' + c) == 0")
        done = case.place.run([SANDGLASS, "diff", "--json", s.id])
        said = {r["ref"]: (r["old"], r["new"]) for r in json.loads(done.out)["changes"]["refs"]} if not done.status else {}
        tap.ok(set(said) == {"HEAD", "refs/heads/old", "refs/heads/topic", "refs/tags/t"}
               and said["HEAD"] == ("ref: refs/heads/main", "ref: refs/heads/topic")
               and said["refs/heads/old"][1] is None and said["refs/heads/topic"][0] is None
               and len(said["refs/tags/t"][1]) == 40, f"{who.name}: moved refs, packed or not", said, done)
        done = case.place.run([SANDGLASS, "diff", s.id])
        tap.ok('# ref moved, from "ref: refs/heads/main" to "ref: refs/heads/topic": "HEAD"' in done.out
               and "diff --git" not in done.out, f"{who.name}: they stand before the patch", done)


ESCAPES = "\x1b[2J\x1b]0;evil\x07\u202e\u200b\x9b"


def terminal(who):
    with Case(who, files={"a": "one\n"}) as case:
        case.s.does(f"open('n' + {ESCAPES!r}, 'w').write({ESCAPES!r} + '\\ttab\\n'); open('raw', 'wb').write(b'\\xff\\x9b\\r\\n')")
        for options in ([], ["--stat"]):
            t = Terminal(case.place)
            status, said = t.run([SANDGLASS, "diff", *options, case.s.id], env={"TERM": "xterm"})
            t.close()
            bare = said.replace("\r\n", "\n")
            for color in ("0m", "1m", "31m", "32m", "33m", "36m"):
                bare = bare.replace(f"\x1b[{color}", "")
            bad = [hex(ord(c)) for c in bare if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or ord(c) in (0x202e, 0x200b)]
            tap.ok(status == 0 and not bad and ("u{202e}" in bare or "\\342\\200\\256" in bare),
                   f"{who.name}: at a terminal nothing moves it: {options}", bad, repr(said))
        patch, _ = case.patch()
        tap.ok(ESCAPES.encode() in open(patch, "rb").read(), f"{who.name}: in a file the bytes are as they were")
        done = case.diff("--json")
        tap.ok("\x1b" not in done.out and "\u202e" not in done.out and json.loads(done.out), f"{who.name}: JSON is safe", done)


def hostile(who):
    canary = "canary-" + os.urandom(8).hex()
    with Case(who, files={"a": "one\n", "d/f": "f\n", "swap": "s\n"}) as case:
        case.place.write(f"{case.place.out}/secret", canary, 0o644)
        case.s.does(f"""
            import os, socket
            os.mkfifo('fifo'); os.remove('swap'); os.mkfifo('swap'); socket.socket(socket.AF_UNIX).bind('sock')
            os.symlink('loop', 'loop'); os.symlink({case.place.out!r}, 'out'); os.symlink({case.place.out!r} + '/secret', 'leak')
            for n in ('...', '..x', '-rf', '# x', 'git~1', '.git ', 'a\\\\b'): open(n, 'w').write('x')
            open('diff --git a b', 'w').write('diff --git a/x b/x\\n--- a/x\\n+++ b/x\\n')
            for i in range(40): os.setxattr('a', 'user.x%d' % i, b'y' * 60)
            os.mkdir('shut'); open('shut/f', 'w').write('x'); os.chmod('shut/f', 0); os.chmod('shut', 0)
            import shutil; shutil.rmtree('d'); os.symlink({case.place.out!r}, 'd')""")
        if who.uid == 0:
            os.mknod(f"{case.s.dir}/upper/zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
            os.mknod(f"{case.s.dir}/upper/disk", stat.S_IFBLK | 0o666, os.makedev(7, 0))
        patch, done = case.patch()
        text = open(patch, "rb").read()
        applied, error = git_apply(case, patch)
        tap.ok(done.status == 0 and done.seconds < 30 and canary.encode() not in text and not error
               and os.path.islink(f"{applied}/d") and not os.path.exists(f"{applied}/git~1"),
               f"{who.name}: fifos, sockets, devices, loops, names: nothing hangs, nothing outside is read", done, error)
        kinds = [f'# special file added, fifo: "{n}"'.encode() for n in ("fifo", "swap")]
        tap.ok(all(k in text for k in kinds) and b'# a name that git refuses, added file: "git~1"' in text,
               f"{who.name}: they are named", text.split(b"diff --git")[0])
        tap.ok(case.json()["session"] == case.s.id and case.diff("--stat").status == 0, f"{who.name}: the other forms too")
    with Case(who, files={"a": "one\n"}) as case:
        os.mknod(f"{case.s.dir}/upper/never", stat.S_IFCHR, os.makedev(0, 0))
        case.place.own(f"{case.s.dir}/upper/never")
        writer = subprocess.Popen(["/usr/bin/python3", "-c", f"f = open('{case.s.dir}/upper/grows', 'ab')\n"
                                   "while 1: f.write(b'x' * 65536); f.seek(0, 2) < 1 << 24 or f.truncate(0)"])
        time.sleep(0.3)
        seen = [case.diff("--stat") for _ in range(3)]
        writer.kill()
        writer.wait()
        tap.ok(all(s.status == 0 and s.seconds < 60 and "never" not in s.out for s in seen),
               f"{who.name}: a file that grows, and a whiteout of nothing", *seen)


def deep(who):
    with Case(who, files={"a": "one\n"}) as case:
        case.s.does("""
            import os
            fd = os.open('.', os.O_RDONLY)
            for i in range(%d):
                os.mkdir('d', dir_fd=fd); new = os.open('d', os.O_RDONLY, dir_fd=fd); os.close(fd); fd = new""" % 3000)
        done = case.diff("--json")
        said = json.loads(done.out) if done.status == 0 else {}
        tap.ok(done.status == 0 and said["changes"]["too_deep"] == 1 and done.seconds < 60,
               f"{who.name}: deeper than a path can be", done.status, done.seconds, done.err)
        subprocess.run(["rm", "-rf", case.s.dir], check=False)


def main():
    """Words name the parts to run; none, all of them."""
    shim.without_sync()
    wanted = sys.argv[1:]
    for who in identities_once():
        for test in PARTS:
            if not wanted or test.__name__ in wanted:
                tap.attempt(f"{who.name}: {test.__name__}", test, who)
    if not wanted or "round_trips" in wanted:
        tap.attempt("round trips", round_trips, identities_once())
    return tap.done()


PARTS = (plain, conflicts, flags, refs, terminal, hostile, deep)

if __name__ == "__main__":
    sys.exit(main())
