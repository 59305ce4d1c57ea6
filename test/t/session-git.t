#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Git in a session, as outside.

Each row takes a prepared project and runs its steps bare in a copy of it, then in
calls of a session over the project itself at another path. What git says of work
tree, refs, configuration and objects must be the same, no line may begin with
`error:` or `warning:` that bare does not, and the project must be as it was.

An ordinary user's overlay cannot rename a directory of the source: EXDEV; with
--copy and as root it can.
"""

import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import identities_once  # noqa: E402
from session import Sessions, differences, tree  # noqa: E402

FIXED = """
export LC_ALL=C TZ=UTC GIT_PAGER=cat GIT_EDITOR=true GIT_MERGE_AUTOEDIT=no
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.com GIT_AUTHOR_DATE='1767323045 +0000'
export GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.com GIT_COMMITTER_DATE='1767323045 +0000'
"""
PROJECT = """
git init -q -b main .
printf '/remote.git/\\n/lib.git/\\n/probe\\n' >.gitignore
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "line $i"; done >a
mkdir dir; echo c >dir/c; echo b >b; git add -A; git commit -qm c0
for i in 1 2 3; do echo $i >n; git add n; git commit -qm "n$i"; done
git switch -qc topic HEAD~2
for i in 1 2; do echo $i >t$i; git add t$i; git commit -qm "t$i"; done
git switch -qc clash main~2; sed -i 's/^line 1$/line one/' a; git commit -qam one
git switch -q main; sed -i 's/^line 1$/line uno/' a; git commit -qam uno
git tag v1; git branch gone
git init -q --bare -b main remote.git; git remote add origin ./remote.git
git push -q origin main topic; git fetch -q origin
git clone -q remote.git other; (cd other; git switch -qc fresh; echo f >f; git add f
git commit -qm fresh; git push -q origin fresh); rm -rf other
git init -q --bare -b main lib.git; git clone -q lib.git other 2>/dev/null
(cd other; echo 1 >l; git add l; git commit -qm l1; git push -q origin main); rm -rf other
"""
LOOK = """
git status --porcelain -b; git for-each-ref --format='%(refname) %(objectname) %(upstream)'
git log --all --oneline --decorate; git ls-files -s; git stash list; git worktree list | wc -l
git config --local --list | sort; git fsck --no-dangling 2>&1; git submodule status 2>&1
find . -path ./.git -prune -o -path '*/.git' -prune -o -type f -print | sort | xargs sha256sum
"""
ALLOW = "git -c protocol.file.allow=always "
SOLVE = "printf 'solved\\n' >a; git add a; "

# Name, steps; each step is a call.
ROWS = [
    ("commit", ["echo x >>a; echo new >new; git add -A; git commit -qm one; git commit -q --amend "
                "-m two; git rm -q b; git mv n n2; git commit -qam three", "git show --stat -M"]),
    ("branch, branch -m", ["git branch x; git branch -m x y; git branch -m main trunk; "
                           "git branch -d gone", "git branch -vv"]),
    ("switch", ["git switch -q topic; git switch -q -; git switch -qc more; git switch -q --detach "
                "HEAD~1; git switch -q main"]),
    ("checkout of paths, restore", ["git checkout -q topic -- t1; git restore --staged t1; rm t1; "
                                    "echo x >a; git restore a"]),
    ("merge", ["git merge -q --no-ff -m both topic; git log --graph --oneline"]),
    ("merge in conflict", ["git merge clash; git status --short", SOLVE + "git commit -qm merged"]),
    ("rebase", ["git switch -q topic; git rebase -q main"]),
    ("rebase in conflict", ["git switch -q clash; git rebase main", SOLVE + "git rebase --continue"]),
    ("rebase -i", ["git switch -q topic; GIT_SEQUENCE_EDITOR=\"sed -i '1s/^pick/reword/;"
                   "2s/^pick/squash/'\" git rebase -q -i HEAD~2"]),
    ("cherry-pick and revert", ["git cherry-pick topic~1 topic; git revert --no-edit HEAD"]),
    ("stash", ["echo x >>a; echo n >n2; git stash push -qu", "git stash list; git stash pop -q"]),
    ("worktree add and remove", ["git worktree add -q ../wt 2>&1 || git worktree add -q wt topic; "
                                 "rm -rf ../wt; git worktree prune",
                                 "git worktree add -q inner -b w; cd inner; echo w >w; git add w; "
                                 "git commit -qm w", "git worktree remove inner; git branch -vv"]),
    ("gc", ["git gc -q; git gc -q --prune=now --aggressive; git count-objects -v",
            "git commit -q --allow-empty -m y; git repack -adq; git pack-refs --all"]),
    ("tag and reset", ["git tag -a -m t heavy; git tag -d v1; git reset -q --hard HEAD~1",
                       "git reset -q --soft HEAD~1; git commit -qm soft"]),
    ("clean", ["mkdir junk; echo j >junk/j; echo j >j; git clean -fdxq -e /remote.git -e /lib.git "
               "-e /probe"]),
    ("remote add, fetch, push, pull", ["git remote add second ./remote.git; git fetch -q second; "
                                       "git remote set-url second ./lib.git; git remote rename "
                                       "second third; git remote -v; git remote remove third",
                                       "git commit -q --allow-empty -m p; git push -q origin main; "
                                       "git pull -q --ff-only origin main"]),
    ("config", ["git config x.y z; git config --add x.y w; git config --unset-all x.y; "
                "git config user.name Other; git config core.autocrlf false",
                "git config --edit; git config --list --local"]),
    ("checkout of a new remote branch, tracked", ["git fetch -q; git checkout fresh",
                                                  "git status -sb; git push -q; git pull -q"]),
    ("submodule add, update --init", [f"{ALLOW}submodule add -q ./lib.git sub 2>&1; git commit -qm s",
                                      "git submodule status",
                                      "git submodule deinit -q -f sub; rm -rf sub; "
                                      f"git checkout -q -- sub; {ALLOW}submodule update --init -q"]),
    ("clone and init inside", ["git clone -q . copy; git -C copy log --oneline; git init -q -b main "
                               "fresh-one; cd fresh-one; echo a >a; git add a; git commit -qm a",
                               "rm -rf copy"]),
    ("clone --no-hardlinks", ["git clone -q --no-hardlinks . copy; git -C copy log --oneline",
                              "rm -rf copy"]),
    ("apply, am, format-patch, bundle", ["git format-patch -q -o ../p topic~2..topic 2>/dev/null || "
                                         "git format-patch -q -o p topic~2..topic; cat p/* >m; "
                                         "git am -q m; git bundle create -q b.bundle main; rm -rf p m "
                                         "b.bundle"]),
    ("bisect and notes", ["git bisect start -q HEAD HEAD~3 >/dev/null; git bisect run true >/dev/null; "
                          "git bisect reset -q 2>&1; git notes add -m n; git notes show"]),
]
# In a copy nothing lies between git and its files: some rows are enough.
COPIED = {"commit", "rebase in conflict", "worktree add and remove", "clone and init inside",
          "submodule add, update --init"}
SANITIZED = os.environ.get("SANDGLASS_SANITIZED")
BARE = {}  # what each row gives outside: names and times are fixed, so whoever does it
LINE = re.compile(r"^(?:error|warning|fatal):.*", re.M)


def steps_bare(p, steps, at):
    return [p.sh(FIXED + s, cwd=at) for s in steps]


def told(results, top):
    said = []
    for r in results:
        said += [line.replace(top, "TOP") for line in LINE.findall(r.out + "\n" + r.err)]
    return sorted(said)


def ordinary(who):
    for options in ((), ("--copy",)):
        p = Sessions(who)
        how = "copy" if options else "overlay"
        try:
            made = p.sh(FIXED + PROJECT + f"cp -a . {p.out}/first")
            if made.status:
                raise AssertionError(made)
            before = tree(p.src)
            s = p.new(*options)
            for name, steps in ROWS:
                if (options or SANITIZED) and name not in COPIED:
                    continue
                if name.startswith("clone and init") and who.uid and not options:
                    cloned(p, s)
                    p.session("reset", s)
                    continue
                if name not in BARE:
                    bare = f"{p.out}/bare"
                    p.sh(f"rm -rf {bare}; cp -a {p.out}/first {bare}", cwd=p.out)
                    outside = steps_bare(p, steps, bare)
                    BARE[name] = (p.sh(FIXED + LOOK, cwd=bare).out.replace(bare, "TOP"),
                                  told(outside, bare), [r.status for r in outside])
                inside = [p.exec(s, FIXED + step) for step in steps]
                got = p.exec(s, FIXED + LOOK).out.replace(p.src, "TOP")
                here = got, told(inside, p.src), [r.status for r in inside]
                tap.ok(here == BARE[name], f"git {name}: as outside, {how}, {who.name}",
                       f"bare {BARE[name][1:]}, here {here[1:]}", *different(BARE[name][0], got),
                       *inside)
                p.session("reset", s)
            now = tree(p.src)
            tap.ok(before == now, f"git: the project is as it was, {how}, {who.name}",
                   *differences(before, now))
        finally:
            p.close()


def cloned(p, s):
    """What a user's overlay cannot do, and what is said then."""
    done = p.exec(s, "git clone -q . copy")
    told_json = json.loads(p.exec(s, "git clone -q . copy", "--json").out)
    tap.ok(done.status and "--no-hardlinks" in done.err and "--copy" in done.err and
           [d["op"] for d in told_json["denials"]] == ["rename"] and
           "--copy" in told_json["denials"][0]["hint"],
           f"git clone of the source in a user's overlay: the hint names --copy, {p.who.name}",
           done, told_json["denials"])


def different(wanted, got):
    a, b = wanted.split("\n"), got.split("\n")
    return [f"bare: {x}" for x in a if x not in b] + [f"here: {x}" for x in b if x not in a]


def renamed(who):
    """A directory of the source renamed: EXDEV for a user's overlay, else it works."""
    p = Sessions(who)
    try:
        p.sh(FIXED + "git init -q -b main .; mkdir -p dir/sub; echo c >dir/sub/c; git add -A; "
             "git commit -qm c0")
        script = FIXED + ("python3 -c 'import os; os.rename(\"dir\", \"dir2\"); "
                          "os.rename(\"dir2\", \"dir\")'; git mv dir dir3 && git commit -qm moved && "
                          "git log --oneline --name-status -1 -M; ls -d dir*")
        for options in ((), ("--copy",)):
            how = "copy" if options else "overlay"
            s = p.new(*options)
            done = p.exec(s, script)
            mv = p.exec(s, "mkdir -p d1/x; mv d1 d2; ls d2; mv d2 d4; ls -d d4")
            if who.uid and not options:
                good = "EXDEV" in done.err or "cross-device" in done.err
            else:
                good = done.status == 0 and "dir3" in done.out.split("\n")[-2]
            tap.ok(good and mv.out == "x\nd4\n",
                   f"git: a directory is renamed, {how}, {who.name}", done, mv)
            if who.uid and not options:
                hint = p.exec(s, "git mv dir dir9")
                tap.ok("--copy" in hint.err, f"git: the hint names --copy, {how}, {who.name}", hint)
            by_mv = p.exec(s, "test -d dir && mv dir dir7 || mv dir3 dir7; cat dir7/sub/c")
            tap.ok(by_mv.out == "c\n", f"mv renames by copying, {how}, {who.name}", by_mv)
    finally:
        p.close()


def linked(who):
    """A linked worktree as the source: nothing outside of it changes, whatever git does."""
    p = Sessions(who)
    try:
        main = f"{p.out}/main"
        p.sh(FIXED + f"mkdir {main}; cd {main}; git init -q -b main .; echo a >a; git add a; "
             f"git commit -qm a; git worktree add -q {p.src}/wt -b w; echo 1 >{p.src}/wt/dirty")
        at = f"{p.src}/wt"
        before = tree(main), tree(at)
        for options in ((), ("--copy",)):
            how = "copy" if options else "overlay"
            s = p.new(*options, cwd=at)
            done = p.exec(s, FIXED + "echo b >a; cat dirty; git status --short; git diff --stat; "
                          f"git log --oneline; echo x >{main}/.git/planted; git add -A && "
                          "git commit -qm inside", cwd=at)
            now = tree(main), tree(at)
            said = done.out.split("\n")
            tap.ok(before == now and said[:3] == ["1", " M a", "?? dirty"] and
                   any(line.endswith(" a") for line in said),
                   f"a linked worktree: looked at, nothing outside changes, {how}, {who.name}", done,
                   *differences(before[0], now[0]), *differences(before[1], now[1]))
            tap.ok(done.status and "main work tree" in done.err,
                   f"a linked worktree: why nothing is committed is said, {how}, {who.name}", done)
    finally:
        p.close()


def main():
    rows = {"ordinary": ordinary, "renamed": renamed, "linked": linked}
    wanted = sys.argv[1:]
    for who in list(identities_once())[-1:] if SANITIZED else identities_once():
        for name, function in rows.items():
            if not wanted or name in wanted:
                begin = time.monotonic()
                tap.attempt(f"{name}, {who.name}", function, who)
                if wanted:
                    tap.note(f"{name}: {time.monotonic() - begin:.1f} s")
    return tap.done()


sys.exit(main())
