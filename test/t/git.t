#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Everyday git inside, in direct mode, against the same git outside.

Each row takes a prepared project, runs its steps bare, looks at everything that
is there afterwards, puts the project back as it was at the same path, and runs
the same steps in calls of sandglass. Dates and names are fixed, so that not only
work tree, refs and status must be equal but every file of every git directory,
but for the index, which `git ls-files` compares, and the objects, which `git
fsck` does. A step is a call: what one leaves, the next finds.

Commands that write a repository's configuration are held against a third run:
outside, with that one file mounted read-only by util-linux.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import SANDGLASS, Place, identities_once  # noqa: E402

SOMEBODY = 20002
FIXED = """
export LC_ALL=C TZ=UTC GIT_PAGER=cat GIT_EDITOR=true GIT_MERGE_AUTOEDIT=no
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.com GIT_AUTHOR_DATE='1767323045 +0000'
export GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.com GIT_COMMITTER_DATE='1767323045 +0000'
"""
USES_REMOTE = re.compile(r"origin|remote\.git|\bsub\b|\btx\b|checkout x")
TEMPLATE = ("hooks/pre-commit.sample", "hooks/pre-push.sample", "info/exclude", "description")
GITCONFIG = "[user]\n\tname = Caller\n\temail = caller@example.com\n[init]\n\tdefaultBranch = main\n"

PROJECT = """
git init -q FORMAT -b main .
printf '/remote.git/\\n/lib.git/\\n*.ign\\n' > .gitignore
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "line $i"; done > a
mkdir dir; echo c > dir/c; echo b > b
git add -A; git commit -qm c0
for i in 1 2 3 4 5 6; do echo $i > n; git add n; git commit -qm "n$i"; done
git switch -qc topic HEAD~3
for i in 1 2 3; do echo $i > t$i; git add t$i; git commit -qm "t$i"; done
git switch -qc clash main~3
sed -i 's/^line 1$/line one/' a; git commit -qam one
echo k > k; git add k; git commit -qm k
git switch -q main
sed -i 's/^line 1$/line uno/' a; git commit -qam uno
git tag v1
git branch gone
"""
REMOTE = """
git init -q FORMAT --bare -b main remote.git
git remote add origin "$PWD/remote.git"
git push -q origin main topic main:x
git branch -q tx origin/x
git clone -q remote.git ../other.clone
(cd ../other.clone; git switch -q x; echo x > x; git add x; git commit -qm x; git tag r1
 git push -q origin x r1)
rm -rf ../other.clone
git init -q FORMAT --bare -b main lib.git
git clone -q lib.git ../other.clone 2> /dev/null
(cd ../other.clone; echo 1 > f; git add f; git commit -qm l1; echo 2 > f; git commit -qam l2
 git push -q origin main)
rm -rf ../other.clone
git -c protocol.file.allow=always submodule --quiet add "$PWD/lib.git" sub
git commit -qm sub
"""
PACK = """
test -d .git || exit 0
for d in . sub; do test ! -e $d || git -C $d repack -adq; done
for d in *.git; do test ! -e $d || git --git-dir=$d repack -adq; done
git prune-packed
"""
SEQUENCE = "GIT_SEQUENCE_EDITOR={} git rebase -q -i {}"


def edit(script, base="HEAD~3"):
    return SEQUENCE.format(shlex.quote(f"sed -i {shlex.quote(script)}"), base)


# Name, then the steps; a step is a script, or (directory below the project, script). The second
# value: whether lines that begin with error: or fatal: may be there (as many as bare).
SOLVE = "printf 'solved\\n' > a; git add a"
ORDINARY = [
    ("commit", ["echo x >> a; echo new > new; git add -A; git commit -qm one; "
                "git commit -q --allow-empty -m two; git commit -q --amend -m 'two again'; git log"]),
    ("commit by the caller's name", ["unset GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME "
                                     "GIT_COMMITTER_EMAIL; git commit -q --allow-empty -m mine; "
                                     "git log -1 --format='%an %ae %cn %ce'"]),
    ("commit -a, -p, rm and mv", ["git mv b b2; git rm -q n; echo y >> dir/c; "
                                  "printf 'y\\n' | git add -p > /dev/null; git commit -qam all",
                                  "git show --stat -M"]),
    ("switch", ["git switch -q topic; git switch -q -; git switch -q -c fresh; "
                "git switch -q --orphan bare; git switch -q main; git checkout -q topic -- t1"]),
    ("detached HEAD", ["git switch -q --detach HEAD~2; echo d > d; git add d; git commit -qm d",
                       "git commit -q --allow-empty -m d2; git branch kept; git switch -q main"]),
    ("stash and pop", ["echo x >> a; echo n > new; git stash push -q -u; git stash list; "
                       "git stash pop -q; git stash push -q -m again", "git stash show; git stash pop -q",
                       "git stash push -q; git stash drop -q"]),
    ("rebase", ["git switch -q topic; git rebase -q main; git log --oneline"]),
    ("rebase --onto, autosquash", ["git switch -q topic; echo z >> t1; git commit -qa --fixup HEAD~2; "
                                   "git rebase -q -i --autosquash HEAD~4; "
                                   "git rebase -q --onto main HEAD~2"]),
    ("rebase by apply", ["git switch -q topic; git rebase -q --apply main"]),
    ("rebase in conflict, continued", ["git switch -q clash; git rebase -q main; git status",
                                       f"{SOLVE}; git rebase --continue"], True),
    ("rebase by apply in conflict, continued",
     ["git switch -q clash; git rebase -q --apply main > /dev/null",
      f"{SOLVE}; git rebase --continue > /dev/null"], True),
    ("rebase in conflict, skipped", ["git switch -q clash; git rebase -q main",
                                     "git rebase --skip"], True),
    ("rebase in conflict, aborted", ["git switch -q clash; git rebase -q main",
                                     "git rebase --abort"], True),
    ("rebase -i with edit", ["git switch -q topic; " + edit("1s/^pick/edit/"),
                             "echo more >> t1; git commit -q --amend -am 't1 edited'; git status",
                             "git rebase --continue"]),
    ("rebase -i with break", ["git switch -q topic; " + edit("1a break"),
                              "git commit -q --allow-empty -m between", "git rebase --continue"]),
    ("rebase -i, the list edited in a later call",
     ["git switch -q topic; " + edit("1a break"),
      "GIT_SEQUENCE_EDITOR=\"sed -i '1s/^pick/drop/'\" git rebase --edit-todo",
      "git rebase --continue"]),
    ("rebase -i with reword, squash, drop",
     ["git switch -q topic; " + edit("1s/^pick/reword/;2s/^pick/squash/;3s/^pick/drop/")]),
    ("rebase -i --rebase-merges", ["git switch -q topic; git merge -q --no-ff -m m clash~1 -X ours; "
                                   "git rebase -q -i --rebase-merges HEAD~3"]),
    ("merge", ["git switch -q -c ff HEAD~2; git merge -q --ff-only main; git switch -q topic; "
               "git merge -q --no-ff -m both main~1; git log --graph --oneline"]),
    ("merge in conflict, resolved", ["git merge -q clash; git status --porcelain",
                                     f"{SOLVE}; git commit -q -m merged"], True),
    ("merge in conflict, continued", ["git merge clash", f"{SOLVE}; git merge --continue"], True),
    ("merge in conflict, aborted", ["git merge -q clash", "git merge --abort"], True),
    ("merge of two at once", ["git switch -q --detach main~4; git merge -q -m octopus topic main"]),
    ("cherry-pick", ["git cherry-pick topic~1; git cherry-pick -x topic~2 topic"]),
    ("cherry-pick in conflict, continued", ["git cherry-pick clash~1 clash", f"{SOLVE}; "
                                            "git cherry-pick --continue"], True),
    ("revert", ["git revert --no-edit HEAD; git revert --no-edit HEAD"]),
    ("revert in conflict, continued", ["git revert --no-edit HEAD~3", "git checkout -q HEAD -- n; "
                                       "echo r > n; git add n; git revert --continue"], True),
    ("tag", ["git tag light; git tag -a -m annotated heavy; git tag -f light HEAD~1; "
             "git tag -d v1; git tag -n; git describe --tags"]),
    ("gc", ["git gc -q; git gc -q --prune=now --aggressive; git count-objects -v"]),
    ("gc of what a call before made", ["git commit -q --allow-empty -m x", "git gc -q; git log -1",
                                       "git commit -q --allow-empty -m y; git count-objects"]),
    ("repack, prune, maintenance", ["git repack -qad; git prune; git prune-packed; "
                                    "git commit-graph write --reachable; "
                                    "git maintenance run --quiet --task=loose-objects; git fsck"]),
    ("pack-refs", ["git pack-refs --all; git tag after; git pack-refs --all --prune",
                   "git update-ref -d refs/tags/after; git update-ref refs/tags/u HEAD"]),
    ("push to a bare repository inside", ["git push -q origin main; git push -q origin v1 clash:c2; "
                                          "git push -q -f origin topic~1:topic",
                                          "git push -q origin --delete c2; git push -q --all origin"]),
    ("fetch from it", ["git fetch -q; git log -1 origin/x", "git fetch -q --prune --tags origin; "
                       "git fetch -q origin x:fetched; git ls-remote origin"]),
    ("pull", ["git switch -q tx; git pull -q --ff-only", "git pull -q --rebase"]),
    ("submodule status", ["git submodule status; git submodule foreach git log -1 --oneline",
                          "git submodule summary; git diff --submodule"]),
    ("commit in a submodule", ["cd sub; echo 3 > f; git commit -qam l3",
                               "git add sub; git commit -qm bump; git submodule status",
                               "cd sub; git push -q origin HEAD:main"]),
    ("init in a new directory", ["git init -q new; cd new; echo 1 > f; git add f; git commit -qm 1",
                                 "cd new; echo 2 > f; git commit -qam 2; git log --oneline",
                                 ("new", "git commit -q --allow-empty -m 3")]),
    ("init --bare, and a push to it", ["git init -q --bare new.git; git push -q new.git main",
                                       "git push -q new.git topic; git --git-dir=new.git log -1"]),
    ("clone", ["git clone -q remote.git cl; cd cl; git status",
               "cd cl; echo m > m; git add m; git commit -qm m; git push -q origin main",
               ("cl", "git commit -q --allow-empty -m again; git log -1")]),
    ("clone of the project itself", ["git clone -q . cl; git -C cl log -1",
                                     "git -C cl commit -q --allow-empty -m x; "
                                     "git -C cl pull -q --no-rebase"]),
    ("clone --shared, --bare, --depth", ["git clone -q --shared remote.git cl",
                                         "git -C cl commit -q --allow-empty -m x; git -C cl fsck",
                                         "git clone -q --bare . b.git; "
                                         "git clone -q --depth 1 \"file://$PWD/remote.git\" sh",
                                         "git -C sh log --oneline; git -C b.git log -1"]),
    ("worktree add", ["git worktree add -q wt -b wtb; cd wt; echo w > w; git add w; git commit -qm w",
                      "cd wt; git commit -q --allow-empty -m w2; git status",
                      ("wt", "git commit -q --allow-empty -m w3; git log --oneline -3"),
                      "git worktree list; git log --oneline -1 wtb"]),
    ("worktree add, lock, remove, prune", ["git worktree add -q wt topic; git worktree lock wt; "
                                           "git worktree unlock wt; git worktree remove wt; "
                                           "git worktree prune -v; git worktree list"]),
    ("reset", ["git reset -q --soft HEAD~1; git reset -q; git reset -q --hard HEAD~2",
               "echo x > b; git add b; git reset -q --merge HEAD~1; git reset -q --keep ORIG_HEAD; "
               "git reset -q --hard HEAD~1"]),
    ("restore", ["echo x > a; echo y > b; git restore a; git add b; git restore --staged b; "
                 "git restore --source HEAD~3 n"]),
    ("clean", ["mkdir -p junk/deep; echo j > junk/deep/j; echo j > j; echo i > x.ign; "
               "git clean -qfd; git clean -qfX -e '!/*.git/'"]),
    ("bisect", ["git bisect start main main~6 > /dev/null; git bisect log",
                "test $(cat n) -lt 4 && git bisect good || git bisect bad",
                "git bisect run sh -c 'test $(cat n) -lt 4' > /dev/null; git bisect reset 2> /dev/null"]),
    ("notes", ["git notes add -m n1; git notes append -m n2; git notes add -m o HEAD~1; "
               "git notes remove HEAD~1; git notes show; git log -1 --notes"]),
    ("skip-worktree, assume-unchanged", ["git update-index --skip-worktree a; echo x >> a; "
                                         "git update-index --assume-unchanged b; git ls-files -v; "
                                         "git status --porcelain",
                                         "git update-index --no-skip-worktree a"]),
    ("format-patch, am, apply", ["git format-patch -q -3 topic -o out; git am -q out/*.patch; "
                                 "git show > p; git apply -R p; git stash -q; rm -r out p"]),
    ("am in conflict, continued", ["git format-patch -q -1 clash~1 -o out; git am -q -3 out/*.patch "
                                   "> /dev/null", f"{SOLVE}; git am -q --continue"], True),
    ("plumbing", ["git hash-object -w a; git write-tree; git mktree < /dev/null; "
                  "c=$(git commit-tree -m plumbed HEAD^{tree}); git update-ref refs/heads/pl $c; "
                  "git symbolic-ref refs/heads/sym refs/heads/pl; git replace HEAD~1 HEAD~2; "
                  "git replace -d HEAD~1; git archive HEAD | tar t; git bundle create -q b.bundle main; "
                  "git fetch -q b.bundle main:frombundle; rm b.bundle"]),
    ("reading", ["git log -p -2; git blame a; git grep -n line; git diff HEAD~1; git show v1; "
                 "git shortlog -s HEAD; git rev-list --count --all; git ls-tree -r HEAD; "
                 "git check-ignore x.ign; git cat-file -p HEAD; git config --list --local | sort"]),
    ("reflog", ["git reset -q --hard HEAD~1; git reset -q --hard HEAD@{1}; git reflog; "
                "git reflog expire --expire=now --all"]),
    ("rerere, fast-export", ["git -c rerere.enabled=true merge clash",
                             f"{SOLVE}; git -c rerere.enabled=true commit -qm m; "
                             "git reset -q --hard HEAD~1; "
                             "git -c rerere.enabled=true merge clash; git reset -q --hard",
                             "git fast-export --all | sha256sum"],
     True),
]

BASICS = [
    "echo x >> a; echo new > new; git add -A; git commit -qm one; git branch side; "
    "git switch -q side; echo s > s; git add s; git commit -qm s; git switch -q main",
    "git merge -q --no-ff -m both side; echo z >> a; git stash push -q; git stash pop -q; git status",
    "git commit -qam z; git switch -q topic; git rebase -q main; git tag -a -m t t1tag",
    "git switch -q clash; git rebase -q main", f"{SOLVE}; git rebase --continue > /dev/null",
    "git gc -q; git switch -q main; git log --oneline --graph --all",
]

# What writes configuration. Steps that are git's own to get through, and whether the refs must
# be those of the bare run.
HAMPERED = [
    ("branch -c", "git branch -c topic copy", True),
    ("branch -d", "git branch -d gone", True),
    ("branch -D of a tracking branch", "git branch -q -D tx", True),
    ("branch -m", "git branch -m topic renamed", True),
    ("branch -m of the current one", "git branch -m trunk", True),
    ("switch -c x origin/x", "git switch -c x origin/x", False),
    ("checkout of a remote branch", "git checkout x", False),
    ("branch --track", "git branch --track follow origin/topic", False),
    ("push -u", "git push -u origin clash", True),
    ("remote add", "git remote add upstream /nowhere", True),
    ("remote set-url", "git remote set-url origin /nowhere", True),
    ("config", "git config a.b c", True),
    ("config --unset", "git config --unset remote.origin.url", True),
    ("config --worktree", "git config --worktree a.b c", True),
    ("submodule update", "git -C sub checkout -q HEAD~1; "
     "git -c protocol.file.allow=always submodule --quiet update", True, ".git/modules/sub/config"),
]


class Project:
    """One prepared project of one identity, that can be put back at its paths."""

    def __init__(self, place, name, scripts, dirs=None, cwd="", pack=False):
        self.place, self.saved = place, f"{place.top}/saved.{len(os.listdir(place.top))}"
        self.dir = os.path.join(place.src, name)
        self.dirs = [self.dir] + (dirs or [])
        self.cwd = os.path.join(self.dir, cwd)
        os.makedirs(self.dir)
        place.own(self.dir)
        for script in [*scripts, *([PACK] if pack else [])]:
            done = self.bare(script, check=True, cwd=self.dir)
            if done.status:
                raise RuntimeError(f"a project cannot be made: {done}")
        os.mkdir(self.saved)
        for number, path in enumerate(self.dirs):
            os.rename(path, f"{self.saved}/{number}")

    def restore(self):
        for number, path in enumerate(self.dirs):
            if os.path.lexists(path):
                shutil.rmtree(path)
            subprocess.run(["cp", "-a", f"{self.saved}/{number}", path], check=True)
        self.bare("for d in . sub one/two; do test ! -e $d/.git || git -C $d update-index -q "
                  "--refresh; done", cwd=self.dir)  # the copies are files of their own

    def bare(self, script, check=False, cwd=None, way=()):
        """Outside; with check it is about making the project, which stops at a failure."""
        if check:
            script = f"export GIT_TEMPLATE_DIR={self.place.grant}\n{script}"
        script = ("set -e\n" if check else "") + FIXED + script
        argv = [*way, "bash", "--noprofile", "--norc", "-c", script]
        return self.place.run(argv, cwd=cwd or self.cwd)

    def inside(self, script, options=(), cwd=None):
        return self.place.run([SANDGLASS, "run", *options, "-c", FIXED + script],
                              cwd=cwd or self.cwd)

    def readonly(self, script, paths):
        """Outside, with some files mounted read-only over themselves."""
        mounts = "".join(f"mount --bind {q} {q}; mount -o remount,ro,bind {q}; "
                         for q in map(shlex.quote, paths))
        way = ["unshare", *(["-m"] if os.geteuid() == 0 and not self.place.who.prefix
                            else ["-U", "-r", "-m"]), "bash", "-c", f"set -e; {mounts}set +e; \"$@\"",
               "bash"]
        return self.bare(script, way=way)

    def look(self):
        """Everything that is there, as far as it must be the same."""
        seen = {}
        for top in self.dirs:
            for folder, folders, files in os.walk(top):
                name = os.path.relpath(folder, self.place.top)
                if os.path.basename(folder) == "objects" and "HEAD" in os.listdir(
                        os.path.dirname(folder)):
                    folders[:] = []
                    continue
                for one in files + [d for d in folders if os.path.islink(f"{folder}/{d}")]:
                    if one != "index":
                        seen[f"{name}/{one}"] = self._file(f"{folder}/{one}")
                seen[name + "/"] = os.stat(folder).st_uid
        said = self.bare("git for-each-ref; git symbolic-ref -q HEAD || git rev-parse HEAD; "
                         "git status --porcelain; git ls-files -s; git stash list; "
                         "git submodule status; git fsck --no-dangling --no-progress 2>&1")
        seen["git"] = said.out + said.err
        return seen

    @staticmethod
    def _file(path):
        if os.path.islink(path):
            return os.readlink(path)
        st = os.lstat(path)
        with open(path, "rb") as handle:
            return (stat.filemode(st.st_mode), st.st_uid, hashlib.sha256(handle.read()).hexdigest())

    def quarantined(self):
        found = []
        for folder, _, files in os.walk(f"{self.place.state}/quarantine"):
            found += [f"{folder}/{n}" for n in files]
        return found

    def close(self):
        for path in self.dirs:
            shutil.rmtree(path, ignore_errors=True)
        shutil.rmtree(self.saved, ignore_errors=True)


def shown(value):
    return ascii(value)[:900]


def differences(one, other):
    return [f"{key!a}: bare {shown(one.get(key))}, inside {shown(other.get(key))}"
            for key in sorted(set(one) | set(other)) if one.get(key) != other.get(key)]


def errors(*results):
    return sorted(line for result in results for line in (result.out + result.err).split("\n")
                  if re.match(r"(error|fatal|BUG):", line))


def ours(result):
    """What sandglass itself said, but for the line about direct writes."""
    return [line for line in result.err.split("\n") if line.startswith(("sandglass: ", "hint: --"))
            and not line.startswith("sandglass: writes: direct")]


def step(project, one):
    if isinstance(one, str):
        return project.cwd, one
    return os.path.join(project.dir, one[0]), one[1]


def same(project, name, steps, may_fail=False, options=()):
    """The steps bare and inside leave the same behind, and say the same."""
    runs = []
    for inside in (False, True):
        project.restore()
        results = []
        for one in steps:
            cwd, script = step(project, one)
            results.append(project.inside(script, options, cwd) if inside
                           else project.bare(script, cwd=cwd))
        runs.append((results, project.look()))
    (bare, out), (inside, seen) = runs
    wrong = differences(out, seen)
    for number, (mine, theirs) in enumerate(zip(inside, bare), 1):
        if mine.status != theirs.status:
            wrong.append(f"call {number}: status {mine.status}, bare {theirs.status}")
        if mine.out != theirs.out:
            wrong.append(f"call {number}: stdout {shown(mine.out)}, bare {shown(theirs.out)}")
        wrong += [f"call {number} says {line!a}" for line in ours(mine)]
    if errors(*inside) != errors(*bare) or (errors(*bare) and not may_fail):
        wrong.append(f"errors {errors(*inside)}, bare {errors(*bare)}")
    if any(r.status < 0 for r in bare):
        wrong.append("the control did not run")
    wrong += [f"in quarantine: {path!a}" for path in project.quarantined()]
    tap.ok(not wrong, name, *wrong, *([shown(r.err) for r in inside] if wrong else []))
    if project.quarantined():
        shutil.rmtree(f"{project.place.state}/quarantine")


def denial(result, target):
    """What is wrong with the denials of a --json result that must name one target."""
    try:
        document = json.loads(result.out)
    except ValueError:
        return [f"no result: {result}"]
    found = [d for d in document.get("denials", []) if d.get("target") == target]
    if len(found) != 1:
        return [f"denials {document.get('denials')}, expected one of {target}"]
    one = found[0]
    wrong = []
    if (one.get("op"), one.get("rule"), one.get("kind")) != ("write", "protected", "terminal"):
        wrong.append(f"denial {one}")
    if not isinstance(one.get("count"), int) or one["count"] < 1:
        wrong.append(f"count {one.get('count')}")
    if "--review" not in str(one.get("hint")):
        wrong.append(f"hint {one.get('hint')}")
    if document["changes"].get("flagged"):
        wrong.append(f"flagged {document['changes']['flagged']}")
    return wrong


def hinted(result, *words):
    lines = [line for line in ours(result) if line.startswith("sandglass: hint: ")]
    if len(lines) != 1 or any(word not in lines[0] for word in words):
        return [f"hints {lines}, expected one that names {words}"]
    return []


def hampered(project, name, script, all_refs, config=".git/config"):
    """Configuration cannot be written: git does what it can, and the caller is told how to."""
    path = os.path.normpath(f"{project.cwd}/{config}")
    target = path if config.startswith("..") else config
    project.restore()
    before = content(path)
    bare = project.bare(script)
    full = project.look()
    project.restore()
    mock = project.readonly(script, [path])
    part = project.look()
    project.restore()
    inside = project.inside(script)
    seen = project.look()
    wrong = differences(part, seen)
    if bare.status or "could not write config file" not in mock.err:
        wrong.append(f"control: bare {bare}, read-only: {mock}")
    if content(path) != before:
        wrong.append("config has changed")
    if all_refs:
        refs = [[line for line in look["git"].split("\n") if "\trefs/" in line or
                 line.startswith("refs/")] for look in (full, seen)]
        if refs[0] != refs[1]:
            wrong.append(f"refs {refs[1]}, bare {refs[0]}")
    if inside.status != mock.status:
        wrong.append(f"status {inside.status}, with a read-only file {mock.status}")
    wrong += hinted(inside, "--review", f"--write {target}")
    tap.ok(not wrong, name, *wrong, *([f"inside: {inside}"] if wrong else []))

    project.restore()
    wrong = denial(project.inside(script, ["--json"]), target)
    tap.ok(not wrong, f"{name}, the denial", *wrong)

    project.restore()
    free = project.inside(script, ["--write", target])
    wrong = differences(full, project.look())
    wrong += [f"says {line!a}" for line in ours(free)]
    if free.status != bare.status or free.out != bare.out or errors(free) != errors(bare):
        wrong.append(f"inside {free}, bare {bare}")
    tap.ok(not wrong and bare.status == 0, f"{name} with --write of it", *wrong)


# Tracked files with protected names, which differ between main, `other` and `without`.
TRACKED = """
git init -q -b main .
mkdir -p .vscode src deep/down
echo 1 > .npmrc; echo '{"v": 1}' > .vscode/settings.json; echo 1 > src/f; echo 1 > deep/down/.envrc
git add -A; git commit -qm 1
git switch -qc other
echo 2 > .npmrc; echo '{"v": 2}' > .vscode/settings.json; echo 2 > src/f; echo 2 > deep/down/.envrc
echo 2 > extra
git add -A; git commit -qm 2
git switch -qc without main
git rm -q .npmrc; git commit -qm 3
git switch -q main
"""
# Only the branch `with` has them; `made` is what a call would make.
LACKING = """
git init -q -b main .
echo 1 > f; git add f; git commit -qm 1
git switch -qc with
mkdir -p .vscode sub/.idea .husky
echo '{"v": 1}' > .vscode/settings.json; echo r > .npmrc; echo i > sub/.idea/i
printf '#!/bin/sh\\n' > .husky/pre-commit; chmod +x .husky/pre-commit; echo registry 1 > .yarnrc
git add -A; git commit -qm with
git switch -q main
"""


def linked(project_dir, main, other):
    """The same as a linked worktree: scripts that move the repository's work tree elsewhere."""
    return f"""
git switch -q --detach; git branch -f parked main
git clone -q . {shlex.quote(main)}
for b in $(git for-each-ref --format='%(refname:short)' refs/heads); do
    git -C {shlex.quote(main)} fetch -q {shlex.quote(project_dir)} "+$b:refs/heads/$b" 2> /dev/null ||
    git -C {shlex.quote(main)} reset -q --hard
done
git -C {shlex.quote(main)} switch -q parked
git -C {shlex.quote(main)} for-each-ref --format='%(refname:short)' refs/heads
cd {shlex.quote(main)}; rm -rf {shlex.quote(project_dir)}/.git {shlex.quote(project_dir)}/*
find {shlex.quote(project_dir)} -mindepth 1 -delete
git worktree add -q {shlex.quote(project_dir)} main
git worktree add -q -b otherb {shlex.quote(other)}
"""


def content(path):
    with open(path, "rb") as handle:
        return handle.read()


def tracked(project, name, script, files, prepare="", told=True):
    """A file that cannot change stays as it was; all else does what git does. It is said where
    git gets as far as to write the index."""
    def ready():
        project.restore()
        return project.bare(prepare, check=True) if prepare else None
    ready()
    paths = [f"{project.dir}/{f}" for f in files]
    before = [content(p) for p in paths]
    project.bare(script)
    after = [content(p) if os.path.exists(p) else None for p in paths]
    ready()
    # What is mounted inside is a directory of such a name, or the file.
    mounts = sorted({f"{project.dir}/{f.split('/')[0] if f.startswith('.vscode') else f}"
                     for f in files})
    mock = project.readonly(script, mounts)
    part = project.look()
    ready()
    inside = project.inside(script)
    seen = project.look()
    wrong = differences(part, seen)
    if any(b == a for b, a in zip(before, after)):
        wrong.append("control: bare, the files do not change")
    if any(not os.path.exists(p) or content(p) != b for p, b in zip(paths, before)):
        wrong.append("a protected file has changed")
    for one in files if told else ():
        if not any(one in line and "--review" in line for line in ours(inside)
                   if line.startswith("sandglass: hint: ")):
            wrong.append(f"no hint names {one}: {ours(inside)}")
    if inside.status != mock.status:
        wrong.append(f"status {inside.status}, with a read-only file {mock.status}")
    tap.ok(not wrong, name, *wrong, *([f"inside: {inside}", f"read-only: {mock}"] if wrong else []))
    if not told:
        return
    ready()
    result = project.inside(script, ["--json"])
    wrong = [w for one in files for w in denial(result, one)]
    tap.ok(not wrong, f"{name}, the denials", *wrong)


def unwritable(project, name, targets, absent=()):
    """None of these files and folders can be written, made in, moved or removed inside."""
    tries = "\n".join(
        f"if test -e {q}; then echo FOUND; (: >> {q}) 2> /dev/null && echo WROTE {q}; "
        f"(mkdir {q}/new.d) 2> /dev/null && echo MADE {q}; (echo x > {q}/new.f) 2> /dev/null && "
        f"echo MADE {q}; mv {q} {q}.moved 2> /dev/null && echo MOVED {q}; "
        f"rm -rf {q} 2> /dev/null; test -e {q} || echo REMOVED {q}; "
        f"else (echo x > {q}) 2> /dev/null; fi"
        for q in map(shlex.quote, targets))
    news = "".join(f"(echo x > {q}) 2> /dev/null && echo NEW {q}; " for q in map(shlex.quote, absent))
    seen = []
    for inside in (False, True):
        project.restore()
        start = project.look()
        run = project.inside if inside else project.bare
        seen.append((run(f"echo began; {news}{tries}\necho ended"), start, project.look(),
                     [p for p in absent if os.path.exists(p)]))
    (bare, _, _, made), (result, start, after, left) = seen
    wrong = differences(start, after)
    for target in targets:
        if not re.search(f"(WROTE|MOVED|REMOVED) {re.escape(target)}", bare.out):
            wrong.append(f"control: {target} is not written bare")
        if re.search(f"(WROTE|MADE|MOVED|REMOVED) {re.escape(target)}$", result.out, re.M):
            wrong.append(f"inside: {[w for w in result.out.split(chr(10)) if w.endswith(target)]}")
    if len(made) != len(absent):
        wrong.append(f"control: of {absent} only {made} can be made bare")
    if left:
        wrong.append(f"still there: {left}")
    if "began" not in result.out or "ended" not in result.out:
        wrong.append("it did not run")
    tap.ok(not wrong, name, *wrong, *([str(result)] if wrong else []))
    shutil.rmtree(f"{project.place.state}/quarantine", ignore_errors=True)


def layouts(who, place):
    """The basics in projects of unusual shape."""
    def tried(name, folder, scripts, cwd="", steps=BASICS, may_fail=True, dirs=None):
        project = Project(place, folder, scripts, dirs, cwd, pack=True)
        try:
            same(project, f"{name}, {who.name}", steps, may_fail)
        finally:
            project.close()
    plain = PROJECT.replace("FORMAT", "")
    tried("sha256", "sha", [PROJECT.replace("FORMAT", "--object-format=sha256"),
                            REMOVED_FETCH.replace("FORMAT", "--object-format=sha256")],
          steps=BASICS + ["git push -q origin main; git fetch -q origin; git clone -q remote.git cl",
                          "git -C cl commit -q --allow-empty -m x; git worktree add -q wt -b wtb",
                          ("wt", "git commit -q --allow-empty -m w")])
    tried("a project two levels below the source", "outer", [
        "git init -q .; echo o > o; git add o; git commit -qm outer; mkdir -p one/two; cd one/two\n" +
        plain], steps=["cd one/two; " + s for s in BASICS] + ["echo p >> o; git commit -qam outer2"])
    tried("from a directory of the project", "sd", [plain], cwd="dir",
          steps=["echo d >> c; git commit -qam d; git switch -q topic", "git status; git log -1"],
          may_fail=False)
    tried("a working directory reached by a link", "lk", [plain + "\nln -s dir ldir"],
          cwd="ldir", may_fail=False,
          steps=["echo d >> c; git add -A; git commit -qm d", "git status; git log -1; pwd -P"])
    os.symlink(f"{place.src}/real", f"{place.src}/alias")
    project = Project(place, "real", [plain], pack=True)
    try:
        project.cwd = f"{place.src}/alias"
        same(project, f"a project reached by a link, {who.name}", BASICS[:2])
    finally:
        project.close()
        os.unlink(f"{place.src}/alias")
    tried("a project whose name has spaces and newlines", "we ird\n 'na\"me", [plain],
          steps=BASICS[:2], may_fail=False)
    tried("a project whose name is not UTF-8", os.fsdecode(b"caf\xe9 \xff"), [plain],
          steps=BASICS[:2], may_fail=False)
    tried("file names with spaces, newlines and not UTF-8", "names", [plain + r"""
mkdir $'d ir\nnew' $'b\xe4d'; echo 1 > $'d ir\nnew/f ile'; echo 2 > $'b\xe4d/\xff'; echo 3 > '-n'
git add -A; git commit -qm names"""], steps=BASICS + [
        r"""git mv $'b\xe4d' $'b\xc3\xa4d'; echo x >> $'d ir\nnew/f ile'; git add -A; git commit -qm moved
mkdir $'n\xe9w r\nepo'; git init -q $'n\xe9w r\nepo'
git -C $'n\xe9w r\nepo' commit -q --allow-empty -m n""",
        r"""git -C $'n\xe9w r\nepo' commit -q --allow-empty -m n2; git ls-files -z | tr '\0' '\n'"""])
    tried("CRLF", "crlf", [plain + r"""
git config core.autocrlf true; printf '*.bat text eol=crlf\n*.sh text eol=lf\n' > .gitattributes
printf 'x\r\ny\r\n' > w.bat; printf 'x\n' > w.sh; printf 'l\r\n' > plain.txt
git add -A 2> /dev/null; git commit -qm crlf
git ls-files -z | xargs -0 rm; git checkout -q .; sleep 1.1; git status"""], steps=[
        "printf 'z\\r\\n' >> plain.txt; git add -A; git commit -qm z; git switch -q topic; "
        "git switch -q main; git status --porcelain",
        "rm plain.txt w.bat; git checkout -q -- plain.txt w.bat; "
        "git ls-files --eol"], may_fail=False)
    tried("300 loose refs", "refs", [plain + """
h=$(git rev-parse HEAD); mkdir -p .git/refs/heads/many
for i in $(seq 300); do echo $h > .git/refs/heads/many/r$i; done"""],
          steps=["git for-each-ref | wc -l; git branch many/r301; git update-ref -d refs/heads/many/r7; "
                 "git switch -q many/r8; git commit -q --allow-empty -m x", "git pack-refs --all; "
                 "git branch --list 'many/*' | wc -l", "git update-ref -d refs/heads/many/r9"],
          may_fail=False)
    tried("a sparse checkout", "sparse", [plain + """
git switch -q topic; mkdir other; echo o > other/o; git add other; git commit -qm o
git sparse-checkout set dir"""], steps=[
        "git sparse-checkout list; git status; git commit -q --allow-empty -m x; git switch -q main; "
        "git switch -q topic", "git sparse-checkout reapply; git sparse-checkout add other; ls"],
          may_fail=False)
    tried("a detached HEAD at start", "det", [plain + "\ngit switch -q --detach HEAD~1"], steps=[
        "git commit -q --allow-empty -m d; git status", "git switch -q -c named; git switch -q main"],
          may_fail=False)
    tried("a bare repository as the source", "bare.git", [
        "git init -q -b main ../bt; cd ../bt; echo 1 > f; git add f; git commit -qm 1\n"
        "git clone -q --bare . ../bare.git; rm -rf ../bt"], steps=[
            "git log -1; git branch y; git worktree add -q wt y; cd wt; git commit -q --allow-empty -m z",
            "git log -1 y; git gc -q"], may_fail=False)
    tried("no repository at all", "none", ["echo f > f"], steps=[
        "git init -q .; git add f; git commit -qm f; git status", "git commit -q --allow-empty -m g"],
          may_fail=False)


REMOVED_FETCH = """
git init -q FORMAT --bare -b main remote.git
git remote add origin "$PWD/remote.git"
git push -q origin main topic
"""


def protected_names(who, place):
    for layout in ("", " in a linked worktree"):
        main, other = f"{place.out}/main", f"{place.out}/other"
        more = [main, other] if layout else None

        def project(name, script):
            scripts = [script] + ([linked(f"{place.src}/{name}", main, other)] if layout else [])
            return Project(place, name, scripts, more)
        one = project("tracked", TRACKED)
        try:
            all3 = [".npmrc", ".vscode/settings.json", "deep/down/.envrc"]
            for words, script, files, prepare, told in (
                    ("git switch", "git switch other", all3, "", True),
                    ("git checkout of one file", "git checkout -q other -- .npmrc src/f", [".npmrc"], "",
                     True),
                    ("git switch to where it is not", "git switch without", [".npmrc"], "", True),
                    ("git reset --hard", "git reset -q --hard other", all3, "", False),
                    ("git stash", "git stash push -q", [".npmrc"], "echo mine > .npmrc; echo x > src/f",
                     False),
                    ("git merge", "git merge -q other", all3, "", False)):
                tap.attempt(words, tracked, one, f"{words}{layout}: a tracked protected file stays, "
                            f"{who.name}", script, files, prepare, told)
                if layout:
                    break
            same(one, f"git switch{layout} with the files granted, {who.name}", ["git switch -q other"],
                 options=["--write", ".npmrc", "--write", ".vscode", "--write", "deep/down/.envrc"])
            same(one, f"commits{layout} where nothing of them changes, {who.name}",
                 ["echo 3 > src/f; git commit -qam 3; git switch -qc br; git stash list; "
                  "git switch -q main",
                  "git log -1; git status"])
        finally:
            one.close()
        one = project("lacking", LACKING)
        try:
            same(one, f"git switch{layout} to a branch that has protected names, {who.name}",
                 ["git switch -q with; ls -A", "git status; ls -A"])
            same(one, f"git checkout{layout} of them into another branch, {who.name}",
                 ["git checkout -q with -- .; git commit -qm taken", "git status"])
            made(one, f"a branch made by the call itself{layout} brings none, {who.name}")
        finally:
            one.close()


def made(project, name):
    """A blob that only a ref made by a call reaches is no reason to stay."""
    script = ("git switch -q -c evil; mkdir -p .vscode; echo evil > .vscode/tasks.json; echo r > .npmrc\n"
              "git add -A; git commit -qm evil; git switch -q main; git switch -q evil")
    project.restore()
    project.bare(script)
    control = os.path.exists(f"{project.dir}/.vscode/tasks.json")
    project.restore()
    inside = [project.inside(script)]
    left = [os.path.exists(f"{project.dir}/.vscode/tasks.json")]
    inside.append(project.inside("git switch -q main; git reset -q --hard; git switch -q evil; "
                                 "git reset -q --hard evil; ls -A"))
    left.append(os.path.exists(f"{project.dir}/.vscode/tasks.json"))
    said = ["quarantined" in r.err and ".vscode" in r.err for r in inside]
    again = "tasks.json" in project.bare("git ls-tree -r --name-only evil").out
    tap.ok(control and left == [False, False] and all(said) and again, name,
           f"control {control}, left {left}, said {said}, in the ref {again}", *inside)
    shutil.rmtree(f"{project.place.state}/quarantine", ignore_errors=True)


def worktree_source(who, place):
    """A linked worktree whose repository lies elsewhere."""
    main, other = f"{place.out}/main", f"{place.out}/other"
    name = f"{place.src}/wt"
    project = Project(place, "wt", [PROJECT.replace("FORMAT", "") + f"""
for h in pre-commit post-checkout; do printf '#!/bin/sh\\n' > .git/hooks/$h; done
""" + linked(name, main, other) + f"""
cd {main}
git init -q --bare .git/modules/x
git config extensions.worktreeConfig true; git config --worktree wt.a b
echo '* text' > .git/info/attributes
git -C {other} switch -q --detach gone
printf '#!/bin/sh\\n' > .git/hooks/pre-commit
"""], [main, other])
    git = f"{main}/.git"
    try:
        for words, steps, may_fail in (
                ("commit, log, status", ["echo x >> a; git add -A; git commit -qm one; "
                                         "git log --oneline -2; "
                                         "git status", "git commit -q --allow-empty -m two; git log -1"],
                 False),
                ("branch and switch", ["git branch new; git switch -q new; "
                                       "git commit -q --allow-empty -m n",
                                       "git switch -q topic; git switch -q -; git tag -a -m x x"], False),
                ("stash", ["echo x >> a; git stash push -q; git stash list", "git stash pop -q"], False),
                ("rebase and merge, continued", ["git switch -q clash; git rebase -q main",
                                                 f"{SOLVE}; git rebase --continue > /dev/null; "
                                                 "git merge -q topic"], True),
                ("pack-refs, repack", ["git pack-refs --all; git repack -qad; "
                                       "git commit -q --allow-empty -m p",
                                       "git log --oneline -2; git fsck"], False),
                ("bisect, notes", ["git bisect start main main~5 > /dev/null; "
                                   "git bisect reset 2> /dev/null; "
                                   "git notes add -m n"], False),
                ("from a directory of it", [("dir", "echo d >> c; git commit -qam d; git log -1")],
                 False)):
            tap.attempt(words, same, project, f"a linked worktree as the source: {words}, {who.name}",
                        steps, may_fail)
        absent = [f"{git}/objects/info/alternates", f"{git}/worktrees/wt/config.worktree"]
        unwritable(project, f"its repository's own parts cannot be written, {who.name}",
                   [f"{git}/hooks/pre-commit", f"{git}/config", f"{git}/config.worktree", f"{git}/HEAD",
                    f"{git}/index", f"{git}/info/attributes", f"{git}/modules/x/config",
                    f"{git}/modules", f"{git}/worktrees/other/HEAD", f"{git}/worktrees/other/gitdir",
                    f"{git}/worktrees/other/index", f"{git}/worktrees/wt/gitdir",
                    f"{git}/worktrees/wt/commondir", f"{git}/hooks", f"{name}/.git"], absent)
        unwritable(project, f"its other work trees are not there, {who.name}",
                   [f"{main}/a", f"{other}/a"])
        hidden(project, f"nor to be read, {who.name}", [f"{main}/a", f"{other}/a", f"{main}"])
        for row in (("branch -c", "git branch -c topic copy", True),
                    ("config", "git config a.b c", True)):
            hampered(project, f"{row[0]} in a linked worktree, {who.name}", *row[1:],
                     config="../../out/main/.git/config")
    finally:
        project.close()
    project = Project(place, "wt", [PROJECT.replace("FORMAT", "") + linked(name, main, other) +
                                    f"git worktree remove --force {other}\n"], [main])
    try:
        same(project, f"gc in the only linked worktree, {who.name}",
             ["git gc -q", "git log -1; git fsck"])
    finally:
        project.close()
    project = Project(place, "super", [(PROJECT + REMOTE).replace("FORMAT", "")], cwd="sub", pack=True)
    try:
        same(project, f"a submodule as the source: commit, branch, status, {who.name}",
             ["echo 3 > f; git commit -qam l3; git branch b; git switch -q b; git status; "
              "git log --oneline",
              "git commit -q --allow-empty -m l4; git stash list; git gc -q",
              ("", "git add sub; git commit -qm bump; git submodule status")])
        top = project.dir
        unwritable(project, f"its configuration and the project above cannot be written, {who.name}",
                   [f"{top}/.git/modules/sub/config", f"{top}/.git/modules/sub/hooks",
                    f"{top}/.git/config",
                    f"{top}/.git/HEAD", f"{top}/sub/.git", f"{top}/a"])
    finally:
        project.close()


def hidden(project, name, paths):
    project.restore()
    script = "\n".join(f"ls -d {q} 2> /dev/null && cat {q} 2> /dev/null" for q in map(shlex.quote, paths))
    bare = project.bare(script)
    inside = project.inside(f"echo began; {script}")
    seen = [p for p in paths if os.path.isfile(p) and content(p).decode() in inside.out]
    control = [p for p in paths if p not in bare.out.split("\n")]
    tap.ok(not seen and not control and "began" in inside.out, name, f"seen {seen}, control {control}",
           bare, inside)


FOREIGN = """
mkdir -p {out}; cd {out}; git init -q .; echo CANARY > kept; git add kept; git commit -qm CANARY
echo CANARY > .git/canary
"""


def foreign(who, place):
    """A .git that leads to a repository that does not know of this source, or is not ours."""
    out = f"{place.out}/foreign"
    base = FOREIGN.format(out=shlex.quote(out)).replace("CANARY", place.canary)
    reads = f"cat {out}/.git/canary {out}/kept; git log --format=%s; git cat-file -p HEAD:kept"
    cases = [
        ("a repository", base, f"echo 'gitdir: {out}/.git' > .git"),
        ("a repository, by a link", base, f"ln -s {out}/.git .git"),
        ("a worktree's entry of another", base + "git worktree add -q ../elsewhere\n",
         f"echo 'gitdir: {out}/.git/worktrees/elsewhere' > .git"),
        ("a made directory with a commondir", base,
         f"mkdir g; echo {out}/.git > g/commondir; echo ref: refs/heads/main > g/HEAD; "
         f"echo \"$PWD/.git\" > g/gitdir; echo 'gitdir: g' > .git"),
    ]
    for number, (name, prepare, link) in enumerate(cases):
        project = Project(place, "f", [prepare, link + "; echo s > s"], [out])
        try:
            stranger(project, f"a .git that leads to {name} is not followed, {who.name}", reads,
                     "fatal: (not a git repository|Invalid path)", number in (0, 2))
        finally:
            project.close()
            shutil.rmtree(f"{place.out}/elsewhere", ignore_errors=True)
    name = f"a .git that leads to somebody else's repository is not followed, {who.name}"
    if os.geteuid() != 0:
        tap.skip(name, "root")
        return
    project = Project(place, "f", [base + "git worktree add -q -f ../../src/f\n"], [out])
    try:
        subprocess.run(["chown", "-R", f"{SOMEBODY}:{SOMEBODY}", f"{project.saved}/1"], check=True)
        stranger(project, name, reads.replace("git ", "git -c safe.directory=* "), "not a git repository",
                 True)
    finally:
        project.close()


def stranger(project, name, reads, says, hint):
    project.restore()
    bare = project.bare(reads)
    project.restore()
    before = project.look()
    inside = project.inside(f"echo began; {reads}; echo x > new")
    after = project.look()
    canary = project.place.canary
    told = [line for line in ours(inside) if ".git" in line]
    changed = [d for d in differences(before, after)
               if "src/f/new" not in d and not d.startswith("'git'")]
    good = (bare.out.count(canary) >= 3 and canary not in inside.out + inside.err and not changed
            and "began" in inside.out and re.search(says, inside.err) and (told or not hint))
    tap.ok(good, name, f"told {told}, changed {changed}", f"bare: {bare}", f"inside: {inside}")


def rows(who):
    place = Place(who)
    try:
        place.write(f"{place.home}/.gitconfig", GITCONFIG)
        os.unlink(place.probe)
        for name in TEMPLATE:
            folder = os.path.dirname(f"{place.grant}/{name}")
            os.makedirs(folder, exist_ok=True)
            place.own(folder)
            place.write(f"{place.grant}/{name}", "#!/bin/sh", 0o755)
        small = Project(place, "p", [PROJECT.replace("FORMAT", "")], pack=True)
        large = Project(place, "q", [(PROJECT + REMOTE).replace("FORMAT", "")], pack=True)
        for trial, table in ((same, ORDINARY), (hampered, HAMPERED)):
            for row in table:
                project = large if USES_REMOTE.search(repr(row)) else small
                tap.attempt(row[0], trial, project, f"{row[0]}, {who.name}", *row[1:])
        small.close()
        large.close()
        for part in (layouts, protected_names, worktree_source, foreign):
            tap.attempt(f"{part.__name__}, {who.name}", part, who, place)
    finally:
        place.close()
    return tap.done()


def retold(lines):
    """The rows of one identity, under our numbers."""
    name, good, why = None, True, []
    for line in lines + ["ok 0 - end"]:
        row = re.match(r"(not )?ok \d+ - (.*?)( # SKIP needs (.*))?$", line)
        if not row:
            why.append(line[4:] if line.startswith("#   ") else line)
            continue
        if name:
            tap.ok(good, name, *why)
        name, good, why = row[2], not row[1], []
        if row[3]:
            tap.skip(name, row[4])
            name = None


def main():
    """Each identity in a process of its own, at the same time."""
    who = {one.name: one for one in identities_once()}
    if len(sys.argv) > 1:
        return rows(who[sys.argv[1]])
    children = [subprocess.Popen([sys.executable, os.path.abspath(__file__), name],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT) for name in who]
    for name, child in zip(who, children):
        said = child.communicate()[0].decode("utf-8", "replace").rstrip("\n").split("\n")
        retold([line for line in said if not line.startswith("1..")])
        tap.ok(said[-1].startswith("1.."), f"all rows of {name} were tried", *said[-20:])
    return tap.done()


sys.exit(main())
