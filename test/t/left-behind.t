#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a command inside leaves behind starts nothing on the host.

Each entry is a small project, a way to plant a program in it, and something
that a person does later. Bare, the program starts; that is the control. Then
the same through sandglass: a name that was there at the start must not lead to
the program during the call or after it, everything else not after it. How
often a new name in a git directory wins against a person who looks without
pause is measured and printed.

Most entries share one source: each has a directory of its own in it.
"""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import SANITIZED, Place, identities_once, snapshot, wait_for  # noqa: E402

NEVER, AFTER, STAYS = "never", "after", "stays"
ATTEMPTS = 1000 if not SANITIZED else 100
LIMIT = 240

PRELUDE = r"""
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
repo() { git init -q "$1" && git -C "$1" commit -q --allow-empty -m start; }
evil_repo() { git init -q "$1"; git -C "$1" config core.fsmonitor "$EVIL"; }
evil_key() { printf '[core]\n\tfsmonitor = %s\n' "$EVIL"; }
program() { printf '#!/bin/sh\n%s\n' "$EVIL" >"$1"; chmod 755 "$1"; }
layout() { # layout DIR [WORKTREE]: what git takes for a repository
	mkdir -p "$1/objects" "$1/refs"
	echo 'ref: refs/heads/main' >"$1/HEAD"
	printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = %s\n\tfsmonitor = %s\n' \
		"${2:-.}" "$EVIL" >"$1/config"
}
gitlink() { # gitlink DIR: an index entry for a repository, and nothing else
	git update-index --add --cacheinfo "160000,$(git rev-parse HEAD),$1"
}
two_commits() { # a rebase of b on main stops at the first of two
	repo . && echo 1 >f && git add f && git commit -qm one && git switch -qc b
	echo b >f && git commit -qam b1 && echo b >g && git add g && git commit -qm b2
	git switch -q main && echo m >f && git commit -qam m && git switch -q b
}
resolve() { echo r >f; git add f; }
stopped() { # a rebase that somebody stopped, with this left to do
	repo . && git switch -qc b && git commit -q --allow-empty -m b1
	LEFT=$1 GIT_SEQUENCE_EDITOR='sh -c '\''printf "break\n%s\n" "$LEFT" >"$1"'\'' sh' \
		git rebase -q -i --keep-empty HEAD~1
}
"""

# System calls that no command line tool makes: each way is tried, whatever became of the others.
TRICKS = r"""
import ctypes, mmap, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
what, path, text = sys.argv[1], sys.argv[2], sys.argv[3].encode() if len(sys.argv) > 3 else b""
AT_FDCWD, EMPTY, FOLLOW = -100, 0x1000, 0x400

def attempt(f):
    try:
        f()
    except (OSError, ValueError):
        pass

def write(name):
    def f():
        fd = os.open(name, os.O_WRONLY | os.O_APPEND)
        os.write(fd, text)
        os.close(fd)
    attempt(f)

def exchange(a, b):
    libc.renameat2(AT_FDCWD, a.encode(), AT_FDCWD, b.encode(), 2)

def names(listed, way, below, evil):
    # Each of the names below a directory: a file, a link and so on.
    program = f"#!/bin/sh\n{evil}\n"
    os.makedirs(".keep", exist_ok=True)
    with open(".keep/p", "w") as f:
        f.write(program)
    for name in listed:
        name = os.path.join(below, name)
        os.makedirs(os.path.dirname(name), exist_ok=True)
        if way == "file":
            with open(name, "w") as f:
                f.write(program)
        elif way == "link":
            os.symlink(os.path.abspath(".keep/p"), name)
        elif way == "hard":
            os.link(".keep/p", name)
        elif way == "fifo":
            os.mkfifo(name)
        elif way == "socket":
            socket.socket(socket.AF_UNIX).bind(name)

if what == "names":
    with open(path) as f:
        names(f.read().split("\n")[:-1], *sys.argv[3:6])
elif what == "exchange":
    exchange(path, sys.argv[3])
elif what == "reopen":
    for flags in (os.O_RDONLY, os.O_PATH):
        fd = os.open(path, flags)
        write(f"/proc/self/fd/{fd}")
        write(f"/proc/thread-self/fd/{fd}")
    top = os.path.abspath(path)
    for root in ("/proc/self/root", "/proc/1/root", f"/proc/{os.getppid()}/root"):
        write(root + top)
    os.chdir(os.path.dirname(top))
    write("/proc/self/cwd/" + os.path.basename(top))
    if not os.path.isdir(os.environ["OUT"]):  # bare these would be anybody's processes
        for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
            write(f"/proc/{pid}/cwd/" + os.path.basename(top))
elif what == "map":
    def mapped(flags):
        fd = os.open(path, flags)
        size = os.fstat(fd).st_size
        os.ftruncate(fd, size + len(text)) if flags & os.O_RDWR else None
        m = mmap.mmap(fd, size + len(text), mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        m[size:size + len(text)] = text
        m.flush()
    attempt(lambda: mapped(os.O_RDWR))
    attempt(lambda: mapped(os.O_RDONLY))
    attempt(lambda: os.truncate(path, 0))
elif what == "link":
    whole = open(path, "rb").read() + text
    folder = os.path.dirname(path)
    fd = os.open(path, os.O_RDONLY)
    for n, args in enumerate(((AT_FDCWD, path, 0), (fd, "", EMPTY),
                              (AT_FDCWD, f"/proc/self/fd/{fd}", FOLLOW))):
        other = f"{folder}/link{n}"
        if libc.linkat(args[0], args[1].encode(), AT_FDCWD, other.encode(), args[2]) == 0:
            write(other)
            break
    def tmpfile():
        fd = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o644)
        os.write(fd, whole)
        attempt(lambda: os.unlink(path))
        libc.linkat(AT_FDCWD, f"/proc/self/fd/{fd}".encode(), AT_FDCWD, path.encode(), FOLLOW)
    attempt(tmpfile)
elif what == "handle":
    # A handle of the file, opened through a descriptor of the writable mount.
    class Handle(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("f", ctypes.c_ubyte * 128)]
    def by_handle():
        h, mount = Handle(128), ctypes.c_int()
        if libc.name_to_handle_at(AT_FDCWD, path.encode(), ctypes.byref(h), ctypes.byref(mount), 0):
            return
        base = os.open(sys.argv[4], os.O_RDONLY | os.O_DIRECTORY)
        fd = libc.open_by_handle_at(base, ctypes.byref(h), os.O_WRONLY | os.O_APPEND)
        if fd >= 0:
            os.write(fd, text)
    by_handle()
    if os.fork() == 0:
        libc.unshare(0x10000000)
        by_handle()
        libc.unshare(0x00020000)
        by_handle()
        os._exit(0)
    os.wait()
"""

BIND = r"""
{ umount .git/config; umount -l .git/config; umount -l .git; umount -l "$SRC"
umount -R "$SRC"; mkdir -p "$SRC/m$TAG"; mount --bind "$SRC" "$SRC/m$TAG"
mount --rbind "$SRC" "$SRC/m$TAG"; mount -o remount,rw,bind .git/config
mount -o remount,rw .git/config; mount --move .git/config "$SRC/m$TAG"
mount --make-rprivate /; umount -l .git/config; } 2>/dev/null
evil_key >>.git/config; evil_key >>"m/${D#"$SRC"/}/.git/config"
evil_key >>"$SRC/m$TAG/${D#"$SRC"/}/.git/config"
"""

STATUS = "git status"
COMMIT = "git commit -q --allow-empty -m x"
CRATE = r"""mkdir src; : >src/lib.rs; printf '[package]\nname="a"\nversion="0.1.0"\n' >Cargo.toml"""
# In a copy, so that it can be tried again.
CONTINUE = 'rm -rf "$OUT/c.$TAG"; cp -a . "$OUT/c.$TAG"; cd "$OUT/c.$TAG"; git rebase --continue'


class Entry:
    """What is there, what the command does (several calls: a list), what a person does."""

    def __init__(self, kind, name, prepare, attack, trigger=STATUS):
        self.kind, self.name, self.prepare, self.trigger = kind, name, prepare, trigger
        self.attacks = attack if isinstance(attack, list) else [attack]
        self.tag = ""


def never(*args):
    return Entry(NEVER, *args)


def after(*args):
    return Entry(AFTER, *args)


def stays(*args):
    return Entry(STAYS, *args)


# Names that were there when the call began.

EXISTING = [
    never("config written to", "repo .", r"""
        evil_key >>.git/config; git config core.fsmonitor "$EVIL"
        cp .git/config c; evil_key >>c; cat c >.git/config; dd if=c of=.git/config
        truncate -s 0 .git/config; chmod 666 .git/config; cp -f c .git/config"""),
    never("config renamed over", "repo .", r"""
        cp .git/config .git/n; evil_key >>.git/n; mv -f .git/n .git/config"""),
    never("config removed and made again", "repo .", r"""
        cp .git/config c; evil_key >>c; rm -f .git/config; cp c .git/config"""),
    never("config exchanged", "repo .", r"""
        cp .git/config .git/n; evil_key >>.git/n
        python3 "$SRC/bin/tricks" exchange .git/n .git/config"""),
    never("config by a hard link, by O_TMPFILE", "repo .", r"""
        ln .git/config x && evil_key >>x
        python3 "$SRC/bin/tricks" link .git/config "$(evil_key)" """),
    never("config reopened through /proc", "repo .", r"""
        python3 "$SRC/bin/tricks" reopen .git/config "
        $(evil_key)
        " """),
    never("config mapped and truncated", "repo .", r"""
        python3 "$SRC/bin/tricks" map .git/config "
        $(evil_key)
        "
        [ -s .git/config ] || evil_key >.git/config"""),
    never("config by its handle", "repo .; mkdir w", r"""
        python3 "$SRC/bin/tricks" handle .git/config "
        $(evil_key)
        " w; evil_key >>.git/config"""),
    never("mounts undone in namespaces of its own", "repo .; mkdir m", r"""
        export SRC TAG D EVIL
        { cat "$SRC/bin/prelude"; cat <<'END'
""" + BIND + r"""
END
        } >b.sh
        [ -d "$OUT" ] || sh b.sh # never in the mounts of the host
        unshare -Urm sh b.sh; unshare -Ur unshare -m sh b.sh"""),
    never(".git moved away, another put there", "repo .", "mv .git g; evil_repo ."),
    never(".git exchanged", "repo .", r"""
        evil_repo o; python3 "$SRC/bin/tricks" exchange o/.git .git"""),
    never(".git replaced by a link", "repo .", "evil_repo o; mv .git g; ln -s o/.git .git"),
    never("the directory above .git moved away", "repo a", "mv a b; evil_repo a", "git -C a status"),
    never("the directory above .git exchanged", "repo a", r"""
        evil_repo b; python3 "$SRC/bin/tricks" exchange a b""", "git -C a status"),
    never("two directories above .git moved away", "mkdir -p a/b; repo a/b/c", r"""
        mv a o; mkdir -p a/b; evil_repo a/b/c""", "git -C a/b/c status"),
    never("a disabled hook made executable", "repo .; program .git/hooks/pre-commit; "
          "chmod 644 .git/hooks/pre-commit", "chmod 755 .git/hooks/pre-commit", COMMIT),
    never("a hook added", "repo .", r"""
        program .git/hooks/pre-commit; program h; ln h .git/hooks/pre-commit
        mv h .git/hooks/pre-commit""", COMMIT),
    never("a sample hook renamed", "repo .", r"""
        program .git/hooks/pre-commit.sample; mv .git/hooks/pre-commit.sample .git/hooks/pre-commit
        [ -e .git/hooks/pre-commit ] || program .git/hooks/pre-commit""", COMMIT),
    never("hooks moved away", "repo .", r"""
        mv .git/hooks .git/h; mkdir .git/hooks; program .git/hooks/pre-commit""", COMMIT),
    never("what a hook is a link to", "repo .; mkdir s; printf '#!/bin/sh\n' >s/check; "
          "chmod 755 s/check; ln -s ../../s/check .git/hooks/pre-commit",
          "program s/n; mv -f s/n s/check; program s/check", COMMIT),
    never("the directory of what a hook is a link to", "repo .; mkdir s; "
          "printf '#!/bin/sh\n' >s/check; chmod 755 s/check; "
          "ln -s ../../s/check .git/hooks/pre-commit", "mv s o; mkdir s; program s/check", COMMIT),
    never("what core.hooksPath names", "repo .; mkdir githooks; git config core.hooksPath githooks",
          "program githooks/pre-commit", COMMIT),
    never("what an include names", r"repo .; printf '[core]\n' >shared; "
          "git config include.path ../shared", "evil_key >>shared"),
    never("info/attributes", "repo .; mkdir -p .git/info; echo '* text' >.git/info/attributes", r"""
        echo planted >>.git/info/attributes; echo planted >.git/info/n
        mv -f .git/info/n .git/info/attributes""",
          'grep -q planted .git/info/attributes && "$EVIL"'),
    never("objects/info/alternates", "repo .; repo o; "
          'echo "$D/o/.git/objects" >.git/objects/info/alternates', r"""
        echo planted >>.git/objects/info/alternates""",
          'grep -q planted .git/objects/info/alternates && "$EVIL"'),
    never("config.worktree", "repo .; git config extensions.worktreeConfig true; "
          "git config --worktree a.b c", "evil_key >>.git/config.worktree; "
          "cp .git/config .git/n; evil_key >>.git/n; mv -f .git/n .git/config.worktree"),
    never("a submodule's config", "repo o; repo .; git submodule -q add ./o mod; git commit -qm m",
          "evil_key >>.git/modules/mod/config; git -C mod config core.fsmonitor \"$EVIL\""),
    never("a submodule's git directory moved away",
          "repo o; repo .; git submodule -q add ./o mod; git commit -qm m", r"""
        mv .git/modules/mod .git/modules/n; cp -r .git/modules/n .git/modules/mod
        evil_key >>.git/modules/mod/config"""),
    never(".git/modules moved away",
          "repo o; repo .; git submodule -q add ./o mod; git commit -qm m", r"""
        mv .git/modules .git/n; cp -r .git/n .git/modules; evil_key >>.git/modules/mod/config"""),
    never("a submodule's .git file", "repo o; repo .; git submodule -q add ./o mod; "
          "git commit -qm m", r"""
        evil_repo e; echo 'gitdir: ../e/.git' >n; cat n >mod/.git; mv -f n mod/.git
        rm -f mod/.git; evil_repo mod"""),
    never("a submodule's work tree moved away", "repo o; repo .; git submodule -q add ./o mod; "
          "git commit -qm m", "mv mod n; evil_repo mod"),
    never("a submodule called node_modules", "repo o; repo .; "
          "git submodule -q add --name node_modules ./o mod; git commit -qm m",
          "evil_key >>.git/modules/node_modules/config"),
    never("a worktree's commondir", "repo .; git worktree add -q wt", r"""
        evil_repo e; git -C e commit -q --allow-empty -m e
        echo "$D/e/.git" >.git/worktrees/wt/commondir""", "git -C wt status"),
    never("a worktree's directory in .git moved away", "repo .; git worktree add -q wt", r"""
        evil_repo e; git -C e commit -q --allow-empty -m e; mv .git/worktrees/wt .git/worktrees/n
        cp -r .git/worktrees/n .git/worktrees/wt; echo "$D/e/.git" >.git/worktrees/wt/commondir""",
          "git -C wt status"),
    never("a worktree's .git file", "repo .; git worktree add -q wt", r"""
        evil_repo e; echo "gitdir: $D/e/.git" >n; cat n >wt/.git; mv -f n wt/.git""",
          "git -C wt status"),
    never("a bare repository's config and hooks", "git init -q --bare b.git; repo .", r"""
        printf '[receive]\n\tx = y\n' >>b.git/config; program b.git/hooks/pre-receive""",
          'git push -q ./b.git "HEAD:refs/heads/$$"'),
    never("a bare repository moved away", "git init -q --bare b.git; repo .", r"""
        mv b.git n; cp -r n b.git; program b.git/hooks/pre-receive""",
          'git push -q ./b.git "HEAD:refs/heads/$$"'),
    never("a todo list that has exec", "stopped 'exec true'", r"""
        printf 'exec %s\n' "$EVIL" >.git/rebase-merge/git-rebase-todo""", CONTINUE),
    never("the directory of such a todo list moved away", "stopped 'exec true'", r"""
        mv .git/rebase-merge .git/n; cp -r .git/n .git/rebase-merge
        printf 'exec %s\n' "$EVIL" >.git/rebase-merge/git-rebase-todo""", CONTINUE),
    never("config below vendor", "mkdir vendor; repo vendor/x", "evil_key >>vendor/x/.git/config",
          "git -C vendor/x status"),
    never(".envrc written to, renamed over, removed", "echo : >.envrc", r"""
        program .envrc; program n; mv -f n .envrc; rm -f .envrc; program .envrc""", "sh .envrc"),
    never("the directory above .envrc moved away", "mkdir a; echo : >a/.envrc", r"""
        mv a b; mkdir a; program a/.envrc""", "sh a/.envrc"),
    never(".envrc exchanged", "echo : >.envrc", r"""
        program n; python3 "$SRC/bin/tricks" exchange n .envrc""", "sh .envrc"),
    never("a file of .vscode", "mkdir .vscode; echo : >.vscode/tasks.json", r"""
        program .vscode/tasks.json; mv .vscode v; mkdir .vscode; program .vscode/tasks.json""",
          "sh .vscode/tasks.json"),
    never("a file added to .VSCode", "mkdir .VSCode", "program .VSCode/tasks.json",
          "sh .VSCode/tasks.json"),
    never(".cargo/config.toml, .cargo moved away",
          CRATE + "; mkdir .cargo; : >.cargo/config.toml", r"""
        printf '[build]\nrustc = "%s"\n' "$EVIL" >.cargo/config.toml
        mv .cargo c; mkdir .cargo; printf '[build]\nrustc = "%s"\n' "$EVIL" >.cargo/config.toml""",
          "CARGO_HOME=$OUT/cargo cargo build --offline"),
    never(".yarn/releases, .yarn moved away", "mkdir -p .yarn/releases; echo : >.yarn/releases/y.cjs",
          r"""
        program .yarn/releases/y.cjs; mv .yarn y; mkdir -p .yarn/releases
        program .yarn/releases/y.cjs""", "sh .yarn/releases/y.cjs"),
    never("what .claude is a link to", "mkdir -p conf/claude; echo : >conf/claude/s; "
          "ln -s conf/claude .claude", "program conf/claude/s; program n; mv -f n conf/claude/s",
          "sh .claude/s"),
    never("the link .claude itself", "mkdir -p conf/claude; echo : >conf/claude/s; "
          "ln -s conf/claude .claude", "mkdir o; program o/s; ln -sfn o .claude; "
          "rm -f .claude; mkdir .claude; program .claude/s", "sh .claude/s"),
    never("the directory above what .claude is a link to", "mkdir -p conf/claude; "
          "echo : >conf/claude/s; ln -s conf/claude .claude",
          "mv conf o; mkdir -p conf/claude; program conf/claude/s", "sh .claude/s"),
    never("a link on the way to what .envrc is a link to", "echo : >real; ln -s real way; "
          "ln -s way .envrc", "program n; ln -sf n way", "sh .envrc"),
    never("what a file of .vscode is a link to", "mkdir .vscode; echo : >tasks; "
          "ln -s ../tasks .vscode/tasks.json", "program tasks", "sh .vscode/tasks.json"),
    never("what .git/config is a link to", "repo .; mv .git/config shared; "
          "ln -s ../shared .git/config", "evil_key >>shared; cp shared n; evil_key >>n; "
          "mv -f n shared"),
]

# Names that were not there.

KEYS = [line.split(" ", 1) for line in textwrap.dedent(r"""
    core.fsmonitor EVIL
    core.hooksPath h
    core.pager EVIL
    core.editor EVIL
    core.sshCommand EVIL
    core.gitProxy EVIL
    core.askPass EVIL
    core.attributesFile a
    core.alternateRefsCommand EVIL
    core.worktree /
    sequence.editor EVIL
    pager.log EVIL
    alias.st !EVIL
    alias.lo log
    credential.helper !EVIL
    credential.https://example.com.helper !EVIL
    diff.external EVIL
    diff.x.command EVIL
    diff.x.textconv EVIL
    merge.x.driver EVIL
    filter.x.clean EVIL
    filter.x.smudge EVIL
    filter.x.process EVIL
    difftool.x.cmd EVIL
    mergetool.x.cmd EVIL
    mergetool.x.path EVIL
    diff.tool x
    merge.tool x
    gpg.program EVIL
    gpg.ssh.program EVIL
    gpg.ssh.defaultKeyCommand EVIL
    gpg.x509.program EVIL
    interactive.diffFilter EVIL
    include.path ../x
    includeIf.onbranch:main.path ../x
    init.templateDir t
    remote.o.uploadpack EVIL
    remote.o.receivepack EVIL
    remote.o.vcs x/evil
    remote.o.proxy EVIL
    remote.ext.url ext::EVIL
    remote.ext.pushurl ext::EVIL
    url.ext::EVIL.insteadOf https://
    url.x.pushInsteadOf https://
    protocol.ext.allow always
    protocol.allow always
    sendemail.smtpServer EVIL
    sendemail.toCmd EVIL
    imap.tunnel EVIL
    trailer.x.command EVIL
    trailer.x.cmd EVIL
    tar.x.command EVIL
    man.x.cmd EVIL
    browser.x.cmd EVIL
    web.browser x
    instaweb.httpd EVIL
    guitool.x.cmd EVIL
    submodule.x.update !EVIL
    submodule.x.url ext::EVIL
    uploadpack.packObjectsHook EVIL
    branch.main.mergeOptions -s x/evil
    pull.twohead x/evil
    lfs.customtransfer.x.path EVIL
    gitflow.path.hooks h
    completion.commands x
    extensions.worktreeConfig true
    http.proxy http://127.0.0.1
    http.sslVerify false
    something.unknown EVIL
""").strip().split("\n")]
HARMLESS = {"extensions.worktreeConfig"}  # a key that need not go: what it lets in must

SYNTAX = [
    ("plain", r"[core]\n\tfsmonitor = EVIL\n"),
    ("on the line of its section", r"[core] fsmonitor = EVIL\n"),
    ("in capitals", r"[CORE]\n\tFSMonitor = EVIL\n"),
    ("with carriage returns", r"[core]\r\n\tfsmonitor = EVIL\r\n"),
    ("after a lone carriage return", r"[core]\rfsmonitor = EVIL\n"),
    ("quoted in pieces", r"[core]\nfsmonitor = \"\"\"EVIL\"\n"),
    ("after a comment that seems to go on", r"; x \\\\\n[core]\nfsmonitor = EVIL\n"),
    ("after a value's comment that seems to go on", r"[core]\nx = a ; \\\\\nfsmonitor = EVIL\n"),
    ("after an escaped backslash", r"[core]\nx = a \\\\\\\\\nfsmonitor = EVIL\n"),
    ("continued in the middle of the value", r"[core]\nfsmonitor = \\\\\nEVIL\n"),
    ("after a quoted value that goes on", r"[core]\nx = \"a # \\\\\n\"\nfsmonitor = EVIL\n"),
    ("after a NUL", r"# x\000\n[core]\nfsmonitor = EVIL\n"),
    ("after a key without a value", r"[core]\nx\nfsmonitor = EVIL\n"),
    ("without a newline at the end", r"[core]\nfsmonitor = EVIL"),
    ("with other spaces", r"[core]\v\f\nfsmonitor\t=\tEVIL\n"),
    ("after a section with an odd name", r"[x \"]\\\\\"[\"]\n[core]\nfsmonitor = EVIL\n"),
    ("after 3 MiB of comments", None),
    ("in an include", r"[include]\n\tpath = ../inc\n"),
    ("in an include of a home-like path", r"[include] path=\"../inc\"\n"),
    ("in a conditional include", r"[includeIf \"gitdir:**\"]\n\tpath = ../inc\n"),
    ("in an include of an include", r"[INCLUDE]\npath = ../inc2\n"),
]


def syntax(name, text):
    if text is None:
        plant = r"""head -c 3145728 /dev/zero | tr '\0' '\n' | sed 's/^/#/' >>.git/config
            evil_key >>.git/config"""
    else:
        plant = f"""printf "{text.replace('EVIL', '$EVIL')}" >>.git/config"""
    if name.startswith("with other spaces"):
        plant = r"""printf '[core]\n\tfsmonitor\t=\t%s\n' "$EVIL" >>.git/config"""
    return after(f"a key in a new config {name}", "", f"""git init -q .; evil_key >inc
        printf '[include]\\npath=%s\\n' "$D/inc" >inc2
        {plant}""")


def byte_order_mark():
    return after("a key in a new config after a byte order mark", "", r"""
        git init -q .; { printf '\357\273\277'; evil_key; cat .git/config; } >c; mv c .git/config""")


NAMES = """.claude/settings.json .codex/config.toml .agents/x .gemini/settings.json .cursor/mcp.json
    .opencode/x .mcp.json .vscode/tasks.json .idea/workspace.xml .zed/tasks.json
    .devcontainer/devcontainer.json .envrc .husky/pre-commit .pre-commit-config.yaml lefthook.yml
    .cargo/config.toml .cargo/config .npmrc .yarnrc.yml .yarnrc .yarn/releases/y.cjs
    .yarn/plugins/p.cjs .pnpmfile.cjs mise.toml .mise.toml .nvim.lua .nvimrc .exrc
    .sandglass/policy.yaml sandglass.tools.yaml .aws/config .gitconfig .ripgreprc .windsurf/x .kiro/x
    .roo/x .continue/x .aider.conf.yml .bashrc .bash_profile .bash_login .bash_logout .profile .zshrc
    .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login""".split()


def each_name(name, way, names=None, below="."):
    """Every name, made in some way. Names that are left are written down, and one is enough."""
    listed = "\n".join(names or NAMES)
    return after(name, "", f"""
        cat >names <<'END'
{listed}
END
        python3 "$SRC/bin/tricks" names names {way} {below} "$EVIL" """, """
        mv names .keep.names
        while read -r N; do
            find . -path "*/$N" ! -path './.keep/*' | grep . && "$EVIL" && echo "$N is left"
        done <.keep.names""")


def changed(names, how):
    return [how(n) for n in names]


ZERO_WIDTH = ("\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u202e", "\u2066", "\u00ad")
INVISIBLE = [f".vs{c}code/tasks.json" for c in ZERO_WIDTH[:-1]] + \
    [f"{c}.envrc" for c in ZERO_WIDTH[:-1]] + ["mise.to\u200dml", ".GIT\u200c/hooks/pre-commit"]

SWITCH = r"""
    git switch -qc other && mkdir .vscode && program .vscode/tasks.json && git add .vscode &&
    git commit -qm tasks && git switch -q main"""
# Plumbing: a commit that has .vscode/tasks.json, without the name in the work tree.
COMMITTED = r"""
    planted() { # planted REF: its tree and the file
        program t; blob=$(git hash-object -w t); rm t
        export GIT_INDEX_FILE=.git/index.planted
        git read-tree "$1"; git update-index --add --cacheinfo "100755,$blob,.vscode/tasks.json"
        tree=$(git write-tree); rm -f "$GIT_INDEX_FILE"; unset GIT_INDEX_FILE
    }"""
TASKS = "[ -e .vscode/tasks.json ] && sh .vscode/tasks.json"

NEW = [
    # git directories
    after("hooksPath in a new repository", "", r"""
        git init -q n; git -C n config core.hooksPath h; mkdir n/h; program n/h/pre-commit""",
          f"cd n; {COMMIT}"),
    after("a hook in a new repository", "", "git init -q n; program n/.git/hooks/pre-commit",
          f"cd n; {COMMIT}"),
    after("an alias in a new repository", "", 'git init -q n; git -C n config alias.st "!$EVIL"',
          "git -C n st"),
    after("a pager in a new repository", "", r"""
        repo n; git -C n config core.pager "$EVIL" """, "script -qc 'git -C n log' /dev/null"),
    after("an ssh command in a new repository", "", r"""
        git init -q n; git -C n config core.sshCommand "$EVIL"
        git -C n remote add origin ssh://nowhere.invalid/x""", "git -C n fetch"),
    after("a filter in a new repository", "", r"""
        git init -q n; git -C n config filter.x.clean "$EVIL"; echo '* filter=x' >n/.gitattributes
        echo 1 >n/f""", "git -C n add f"),
    after("a remote's vcs in a new repository", "", r"""
        git init -q n; git -C n config remote.origin.vcs x/evil; git -C n config remote.origin.url u
        mkdir n/git-remote-x; program n/git-remote-x/evil""", "cd n; git fetch"),
    after("a remote's uploadpack in a new repository", "", r"""
        git init -q n; git -C n config remote.origin.uploadpack "$EVIL"
        git -C n config remote.origin.url .""", "git -C n fetch"),
    after("every key in a new repository that can run something", "", "\n".join(
        f"""git init -q k{i}; git -C k{i} config '{key}' '{value}'"""
        for i, (key, value) in enumerate(KEYS)), "\n".join(
            f"""git -C k{i} config --local --get '{key}' && {{ echo '{key} is left'; "$EVIL"; }}"""
            for i, (key, _) in enumerate(KEYS) if key not in HARMLESS)),
    *[syntax(*s) for s in SYNTAX], byte_order_mark(),
    after("config.worktree in a new repository", "", r"""
        git init -q n; git -C n config extensions.worktreeConfig true
        evil_key >n/.git/config.worktree""", "git -C n status"),
    after("commondir in a new repository", "", r"""
        repo n; mkdir node_modules; cp -r n/.git node_modules/c; evil_key >>node_modules/c/config
        echo ../../node_modules/c >n/.git/commondir""", "git -C n status"),
    after("commondir in an old repository", "repo .", r"""
        mkdir node_modules; cp -r .git node_modules/c; evil_key >>node_modules/c/config
        echo ../node_modules/c >.git/commondir"""),
    after("a layout without .git", "", "layout n", "cd n; git status"),
    after("a layout whose HEAD is a link to nothing", "", r"""
        layout n; rm n/HEAD; ln -s refs/heads/main n/HEAD""", "cd n; git status"),
    after("a layout whose HEAD is a commit", "", r"""
        layout n; echo 0123456789012345678901234567890123456789 >n/HEAD""", "cd n; git status"),
    after("a layout of executable files", "", r"""
        layout n; rmdir n/objects n/refs; : >n/objects; : >n/refs; chmod 755 n/objects n/refs""",
          "cd n; git status"),
    after("a layout of links", "mkdir o", r"""
        layout n; rmdir n/objects n/refs; ln -s ../o n/objects; ln -s ../o n/refs""",
          "cd n; git status"),
    after("a layout completed by HEAD", "mkdir -p n/objects n/refs; printf x >n/config",
          "layout n", "cd n; git status"),
    after("a layout completed by refs", "mkdir -p n/objects; echo 'ref: refs/heads/main' >n/HEAD",
          "layout n", "cd n; git status"),
    after("a layout with HEAD and commondir", "", r"""
        mkdir node_modules; layout node_modules/c; mkdir n; cp node_modules/c/HEAD n
        printf '[alias]\n\tst = !%s\n' "$EVIL" >>node_modules/c/config
        echo ../node_modules/c >n/commondir""", "cd n; git st"),
    after("a layout below vendor, dist and build", "", r"""
        for N in vendor dist build; do layout "$N/n"; done""",
          "for N in vendor dist build; do (cd $N/n; git status); done"),
    after("a layout below a directory called target", "", "mkdir target; layout target.git",
          "cd target.git; git status"),
    after("a .git file to a directory of the source", "", r"""
        layout g "$D/n"; mkdir n; echo 'gitdir: ../g' >n/.git""", "git -C n status"),
    after("a .git file to one that is not looked into", "", r"""
        mkdir node_modules; layout node_modules/g "$D/n"; mkdir n
        echo 'gitdir: ../node_modules/g' >n/.git""", "git -C n status"),
    after("a .git link", "", r"""
        mkdir node_modules; layout node_modules/g "$D/n"; mkdir n; ln -s ../node_modules/g n/.git""",
          "git -C n status"),
    after("a .git link by way of another", "", r"""
        mkdir node_modules; layout node_modules/g "$D/n"; mkdir n; ln -s node_modules/g way
        ln -s ../way n/.git""", "git -C n status"),
    after("a new config that is a link", "", r"""
        git init -q n; mkdir node_modules; mv n/.git/config node_modules/c; evil_key >>node_modules/c
        ln -s ../../node_modules/c n/.git/config""", "git -C n status"),
    after("modules/*/config", "repo .", r"""
        git init -q m; evil_key >>m/.git/config; mkdir .git/modules; mv m/.git .git/modules/m
        git -C .git/modules/m config core.worktree ../../../m; echo 'gitdir: ../.git/modules/m' >m/.git
        gitlink m"""),
    after("modules/*/config of one called target", "repo .", r"""
        git init -q m; evil_key >>m/.git/config; mkdir .git/modules; mv m/.git .git/modules/target
        git -C .git/modules/target config core.worktree ../../../m
        echo 'gitdir: ../.git/modules/target' >m/.git; gitlink m"""),
    after("modules without names", "repo .", r"""
        git init -q m; evil_key >>m/.git/config; mkdir -p .git/x/y; mv m/.git .git/x/y/z
        echo 'gitdir: ../.git/x/y/z' >m/.git; gitlink m"""),
    after("worktrees/*/config.worktree", "repo .; git config extensions.worktreeConfig true", r"""
        git worktree add -q wt; evil_key >.git/worktrees/wt/config.worktree""", "git -C wt status"),
    after("worktrees/*/commondir", "repo .", r"""
        git worktree add -q wt; mkdir node_modules; cp -r .git node_modules/c
        evil_key >>node_modules/c/config; echo "$D/node_modules/c" >.git/worktrees/wt/commondir""",
          "git -C wt status"),
    after("an index entry and a repository", "repo .", "evil_repo m; gitlink m"),
    after("an index entry and a repository below node_modules", "repo .", r"""
        evil_repo node_modules/m; gitlink node_modules/m"""),
    after("an index entry and a repository below .venv", "repo .", r"""
        evil_repo .venv/m; gitlink .venv/m"""),
    after("an index entry and a repository below target", "repo .", r"""
        evil_repo target/m; gitlink target/m"""),
    after("an index entry and a .git file below target", "repo .", r"""
        mkdir -p target/m; layout target/g "$D/target/m"; echo 'gitdir: ../g' >target/m/.git
        gitlink target/m"""),
    after("alternates in a new repository", "", r"""
        repo n; mkdir node_modules; repo node_modules/a
        echo "$D/node_modules/a/.git/objects" >n/.git/objects/info/alternates""",
          '[ -e n/.git/objects/info/alternates ] && "$EVIL"'),
    after("info/attributes in a new repository", "", "repo n; mkdir -p n/.git/info; "
          "echo '* filter=x' >n/.git/info/attributes",
          '[ -e n/.git/info/attributes ] && "$EVIL"'),
    # what git goes on with
    after("exec in a todo list that was harmless", "stopped noop", r"""
        printf 'exec %s\n' "$EVIL" >.git/rebase-merge/git-rebase-todo""", "git rebase --continue"),
    after("exec in a rebase of its own", "repo .; git commit -q --allow-empty -m b", r"""
        GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i --keep-empty HEAD~1
        printf 'exec %s\n' "$EVIL" >>.git/rebase-merge/git-rebase-todo""", "git rebase --continue"),
    after("x and a tab in a todo list", "stopped noop", r"""
        printf '\t x\t%s\r\n' "$EVIL" >.git/rebase-merge/git-rebase-todo""", "git rebase --continue"),
    after("exec in a made-up rebase", "repo .; git commit -q --allow-empty -m b", r"""
        r=.git/rebase-merge; mkdir $r; : >$r/interactive; echo refs/heads/main >$r/head-name
        git rev-parse HEAD | tee $r/onto >$r/orig-head; echo 1 >$r/msgnum; echo 1 >$r/end; : >$r/done
        printf 'exec %s\n' "$EVIL" >$r/git-rebase-todo""", "git rebase --continue"),
    after("exec in a rebase of a worktree", "repo .; git commit -q --allow-empty -m b", r"""
        git worktree add -q wt; cd wt
        GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i --keep-empty HEAD~1
        printf 'exec %s\n' "$EVIL" >>"$(git rev-parse --git-dir)/rebase-merge/git-rebase-todo" """,
          "cd wt; git rebase --continue"),
    after("the strategy of a stopped rebase", "two_commits; git rebase main >f.log 2>&1", r"""
        mkdir git-merge-x; program git-merge-x/evil; echo x/evil >.git/rebase-merge/strategy""",
          "resolve; GIT_EDITOR=true git rebase --continue"),
    after("the strategy of a rebase of its own", "two_commits", r"""
        git rebase main; mkdir git-merge-x; program git-merge-x/evil
        echo x/evil >.git/rebase-merge/strategy""",
          "resolve; GIT_EDITOR=true git rebase --continue"),
    after("the strategy of a stopped cherry-pick",
          "two_commits; git switch -q main; git cherry-pick main..b >f.log 2>&1", r"""
        mkdir git-merge-x; program git-merge-x/evil
        printf '[options]\n\tstrategy = x/evil\n' >>.git/sequencer/opts""",
          "resolve; GIT_EDITOR=true git cherry-pick --continue"),
    # what git writes through
    after("COMMIT_EDITMSG leads to the home", "repo .; echo 1 >f; git add f; git commit -qm f", r"""
        echo 2 >f; git commit -qam "$EVIL"
        ln -sf "HOME_OF_THE_CALLER/.zprofile.$TAG" .git/COMMIT_EDITMSG""",
          'git commit -q --amend --no-edit; sh "$HOME/.zprofile.$TAG"'),
    after("COMMIT_EDITMSG leads to config", "repo .; echo 1 >f; git add f; git commit -qm f", r"""
        echo 2 >f; git commit -qam "[core]
        repositoryformatversion = 0
        fsmonitor = $EVIL"; ln -sf config .git/COMMIT_EDITMSG""",
          "git commit -q --amend --no-edit; git status"),
    after("logs/HEAD leads to the home", "repo .", r"""
        git switch -qc "a;sh\${IFS}$EVIL;a" 2>/dev/null || git switch -qc "a;sh\${IFS}$EVIL;a"
        rm -f .git/logs/HEAD; ln -s "HOME_OF_THE_CALLER/.zlogin.$TAG" .git/logs/HEAD""",
          'git switch -q main; sh "$HOME/.zlogin.$TAG"'),
    # names in the work tree
    each_name("every name", "file"),
    each_name("every name in capitals", "file", changed(NAMES, str.upper)),
    each_name("every name at depth 30", "file", below="/".join("d" * 30)),
    each_name("every name below vendor's neighbour", "file", below="vendored/node_modules.d"),
    each_name("names with invisible characters", "file", INVISIBLE),
    after("every name in a directory moved in", "", """
        python3 "$SRC/bin/tricks" names "$SRC/bin/names" file node_modules/x "$EVIL"
        mv node_modules/x in""", """
        while read -r N; do find in -path "*/$N" | grep . && "$EVIL"; done <"$SRC/bin/names" """),
    each_name("every name as a link", "link"),
    each_name("every name as a hard link", "hard"),
    each_name("names as fifo", "fifo"),
    each_name("names as socket", "socket", [".envrc", ".npmrc", ".mcp.json"]),
    after("names in a directory with 10,000 entries", "", r"""
        mkdir -p big/.vscode; cd big; seq 10000 | xargs touch; : >.envrc; : >.vscode/tasks.json""",
          '[ -e big/.envrc ] && "$EVIL"; [ -e big/.vscode ] && "$EVIL"'),
    after("a name in a directory that nobody can read", "", r"""
        mkdir -p a/b; program a/b/.envrc; chmod 000 a""", "chmod 755 a; sh a/b/.envrc"),
    after("a name in a directory that nobody can list", "", r"""
        mkdir -p a/b; program a/b/.envrc; chmod 111 a""", "sh a/b/.envrc"),
    after("a name in a directory that nobody can write", "", r"""
        mkdir -p a/b; program a/b/.envrc; chmod 555 a/b a""", "sh a/b/.envrc"),
    after("a protected directory that nobody can read", "", r"""
        mkdir -p .vscode; program .vscode/tasks.json; chmod 000 .vscode""",
          "chmod 755 .vscode; sh .vscode/tasks.json"),
    after("a new .git that nobody can read", "", "evil_repo n; chmod 000 n/.git n",
          "chmod 755 n n/.git; git -C n status"),
    after("an old .git that nobody can read", "repo .", r"""
        mkdir node_modules; cp -r .git node_modules/c; evil_key >>node_modules/c/config
        cp node_modules/c/HEAD .git/t; echo ../node_modules/c >.git/t; chmod 755 .git
        mv .git/t .git/commondir; chmod 000 .git""", "chmod 755 .git; git status"),
    after("a name below 60 directories of 200 characters", "", r"""
        python3 -c '
import os
for _ in range(60):
    os.mkdir("d" * 200); os.chdir("d" * 200)
open(".envrc", "w").close()'""", 'find . -name .envrc | grep -q . && "$EVIL"'),
    after("names in 1,000 directories", "", r"""
        python3 -c '
import os
for i in range(1000):
    os.makedirs(f"d{i % 50}/e{i}"); open(f"d{i % 50}/e{i}/.envrc", "w").close()'""",
          'find . -name .envrc | grep -q . && "$EVIL"'),
    after("hooks/*.sample as a link, and renamed", "", r"""
        git init -q n; cd n/.git/hooks; program "$D/p"; ln -sf "$D/p" pre-commit.sample
        ln -f "$D/p" pre-push.sample; mkdir x.sample; cp "$D/p" x.sample/pre-commit""",
          'cd n/.git/hooks; for f in pre-commit.sample pre-push.sample x.sample; do '
          '[ -L $f ] || [ -d $f ] || [ "$(stat -c %h $f)" -gt 1 ] && "$EVIL"; done'),
    after("hooks that is a link", "", r"""
        git init -q n; rm -rf n/.git/hooks; mkdir h; program h/pre-commit; ln -s ../../h n/.git/hooks""",
          f"cd n; {COMMIT}"),
    after("npm's script-shell", 'echo \'{"scripts":{"t":"true"}}\' >package.json',
          'echo "script-shell=$EVIL" >.npmrc', "npm --offline run t"),
    after("cargo's rustc-wrapper", CRATE, r"""
        mkdir .cargo; printf '[build]\nrustc-wrapper = "%s"\n' "$EVIL" >.cargo/config.toml""",
          "CARGO_HOME=$OUT/cargo cargo build --offline"),
    after("a shell's rc file", "", "program .bashrc", "HOME=$D bash -ic true"),
    # what a commit vouches for
    after("a name in a commit of the same call", "repo .", COMMITTED + r"""
        planted HEAD; git update-ref refs/heads/x "$(git commit-tree -p HEAD -m x "$tree")"
        git checkout -q x -- .vscode""", TASKS),
    after("a name in an object that is not what it is called", "repo .; echo 1 >f; git add f; "
          "git commit -qm f; git unpack-objects </dev/null", COMMITTED + r"""
        planted HEAD; old=$(git rev-parse 'HEAD^{tree}')
        o=.git/objects/$(echo "$old" | cut -c1-2)/$(echo "$old" | cut -c3-)
        n=.git/objects/$(echo "$tree" | cut -c1-2)/$(echo "$tree" | cut -c3-)
        chmod u+w "$o"; cp -f "$n" "$o"; git show "$blob" >p; mkdir .vscode; cp p .vscode/tasks.json
        chmod 755 .vscode/tasks.json""", TASKS),
    after("a name in a parent by info/grafts", "repo .", COMMITTED + r"""
        planted HEAD; c=$(git commit-tree -m x "$tree"); mkdir -p .git/info
        echo "$(git rev-parse HEAD) $c" >.git/info/grafts; git checkout -q "$c" -- .vscode""", TASKS),
    after("a name in a replaced commit", "repo .", COMMITTED + r"""
        planted HEAD; c=$(git commit-tree -m x "$tree"); git replace -f HEAD "$c"
        git --no-replace-objects checkout -q "$c" -- .vscode""", TASKS),
    after("a name in a commit of a ref that was moved", "repo .; git branch old", COMMITTED + r"""
        planted HEAD; git update-ref refs/heads/old "$(git commit-tree -p HEAD -m x "$tree")"
        git checkout -q old -- .vscode""", TASKS),
    after("a name in a commit, its mode changed", "repo .; git switch -qc other; mkdir .husky; "
          "echo \"$EVIL\" >.husky/pre-push; git add .; git commit -qm h; git switch -q main",
          "git checkout -q other -- .husky; chmod 755 .husky/pre-push",
          "[ -x .husky/pre-push ] && .husky/pre-push"),
    after("a name in a commit, at another place", "repo .; git switch -qc other; mkdir .husky; "
          "program .husky/pre-push; git add .; git commit -qm h; git switch -q main",
          "git checkout -q other -- .husky; mkdir lib; mv .husky lib/.husky",
          "[ -e lib/.husky/pre-push ] && lib/.husky/pre-push"),
    after("a link in a commit, and what it leads to", "repo .; mkdir s; echo : >s/env; "
          "git add s; git commit -qm s; git switch -qc other; ln -s s/env .envrc; git add .envrc; "
          "git commit -qm e; git switch -q main", "git checkout -q other -- .envrc; program s/env",
          "[ -e .envrc ] && sh .envrc"),
    after("info that is a link", "repo .; rm -rf .git/info", r"""
        mkdir i; echo '* filter=x' >i/attributes; ln -s ../i .git/info""",
          '[ -e .git/info/attributes ] && "$EVIL"'),
    after("repositories in directories with odd names", "", r"""
        for N in "$(printf '\377\376')" "$(printf 'new\nline')" ' ' "a'b" -n; do
            mkdir -- "./$N"; evil_repo "./$N"; done""",
          'for N in ./*; do (cd "$N" && git status); done'),
    # work that must not be disturbed
    stays("a branch of the person's that has .vscode", f"repo .; {SWITCH}", "git switch -q other",
          TASKS),
    stays("sample hooks and a harmless config", "", "git init -q n; git -C n commit -q --allow-empty "
          "-m x", '[ -s n/.git/hooks/pre-commit.sample ] && git -C n log -1 && '
          '[ -s n/.git/config ] && "$EVIL"'),
    stays("a clone of a repository of the source", "repo o", "git clone -q o m",
          '[ -s m/.git/config ] && git -C m fetch && "$EVIL"'),
    stays("a worktree made inside", "repo .", "git worktree add -q wt; cd wt; echo 1 >f; git add f; "
          "git commit -qm f", 'cd wt && git log -1 && [ -z "$(git status --porcelain)" ] && "$EVIL"'),
    stays("a harmless rebase made inside", "two_commits", "git rebase main",
          'resolve; GIT_EDITOR=true git rebase --continue && "$EVIL"'),
    stays("names below node_modules", "", "mkdir -p node_modules/x; cd node_modules/x; "
          "program .npmrc; program .envrc; mkdir .vscode; program .vscode/t",
          'cd node_modules/x && [ -e .npmrc ] && [ -e .envrc ] && [ -e .vscode/t ] && "$EVIL"'),
]

# Two calls: the first prepares, the second acts.

TWICE = [
    never("HEAD moved away, then config", "repo .", ["mv .git/HEAD .git/h", r"""
        evil_key >>.git/config; mv .git/h .git/HEAD"""]),
    after("a bare repository's HEAD moved away, then hooks", "git init -q --bare b.git; repo .", [
        "mv b.git/HEAD b.git/h", "program b.git/hooks/pre-receive; mv b.git/h b.git/HEAD"],
          'git push -q ./b.git "HEAD:refs/heads/$$"'),
    after("a new config with a second name", "", [
        "git init -q n; ln n/.git/config c", "evil_key >>c"], "git -C n status"),
    after("a new config that is a link", "", [
        "git init -q n; mv n/.git/config c; ln -s ../../c n/.git/config", "evil_key >>c"],
          "git -C n status"),
    after("a new config that is a link by way of a directory", "", [
        "git init -q n; mkdir d; mv n/.git/config d/c; ln -s ../../d/c n/.git/config",
        "mv d e; mkdir d; cp e/c d/c; evil_key >>d/c"], "git -C n status"),
    after("a new .git file whose directory changes", "", [
        "git init -q g; mkdir n; echo 'gitdir: ../g/.git' >n/.git",
        "mv g o; mkdir g; layout g/.git \"$D/n\""], "git -C n status"),
    after("a sample hook, then its name", "", [
        "git init -q n; program n/.git/hooks/pre-commit.sample",
        "mv n/.git/hooks/pre-commit.sample n/.git/hooks/pre-commit"], f"cd n; {COMMIT}"),
    after("planted below node_modules, then moved", "", [
        "mkdir -p node_modules; evil_repo node_modules/n; program node_modules/n/.envrc",
        "mv node_modules/n n"], "[ -e n/.envrc ] && sh n/.envrc; git -C n status"),
    after("node_modules itself moved", "", [
        "mkdir -p node_modules; evil_repo node_modules/n", "mv node_modules lib"],
          "git -C lib/n status"),
    after("a commit, then the file", "repo .", [COMMITTED + r"""
        planted HEAD; git update-ref refs/heads/x "$(git commit-tree -p HEAD -m x "$tree")" """,
          "git checkout -q x -- .vscode"], TASKS),
    after("a commit and its revert, then the file", "repo .", [COMMITTED + r"""
        planted HEAD; git update-ref HEAD "$(git commit-tree -p HEAD -m x "$tree")"
        git read-tree HEAD~1; git commit -qm 'Revert it'""",
          "git checkout -q HEAD~2 -- .vscode"], TASKS),
    after("names in a directory that nobody can read, then opened", "", [
        "mkdir a; program a/.envrc; evil_repo a/n; chmod 000 a", "chmod 755 a"],
          "chmod 755 a; [ -e a/.envrc ] && sh a/.envrc; git -C a/n status"),
    after("a todo list that stays, then exec", "repo .; git commit -q --allow-empty -m b", [
        "GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i --keep-empty HEAD~1",
        "printf 'exec %s\\n' \"$EVIL\" >>.git/rebase-merge/git-rebase-todo"],
          "git rebase --continue"),
    after("what a new hook's directory is called", "repo .; rm -rf .git/hooks", [
        "mkdir .git/h; program .git/h/pre-commit", "mv .git/h .git/hooks"], COMMIT),
]
# The person goes on working between the two calls.
BETWEEN = {"a commit and its revert, then the file": "git commit -q --allow-empty -m more",
           "a commit, then the file": "git branch mine x; git commit -q --allow-empty -m more"}


class World:
    """A place whose source holds the directories of entries, or is the directory of one."""

    def __init__(self, who, entries, top=False, below="src"):
        self.place, self.entries, self.top = Place(who), entries, top
        place = self.place
        self.source = f"{place.top}/{below}"
        if below != "src":
            place.run(["mkdir", "-p", self.source])
        with open(f"{place.home}/.gitconfig", "w", encoding="utf-8") as handle:
            handle.write("[user]\n\tname = P\n\temail = p@example.com\n[init]\n\tdefaultBranch = main\n"
                         "[protocol \"file\"]\n\tallow = always\n[advice]\n\tdetachedHead = false\n")
        place.own(f"{place.home}/.gitconfig")
        self.bin = f"{self.source}/bin"
        place.run(["mkdir", self.bin])
        place.write(f"{self.bin}/prelude", PRELUDE, 0o644)
        place.write(f"{self.bin}/tricks", TRICKS, 0o644)
        place.write(f"{self.bin}/names", "\n".join(NAMES), 0o644)
        for number, entry in enumerate(entries):
            entry.tag = f"t{number:03}"
            place.write(f"{self.bin}/{entry.tag}",
                        f'#!/bin/sh\n[ -d "{place.out}" ] && echo start >>"{place.out}/{entry.tag}"\n'
                        "exit 0", 0o755)

    def directory(self, entry):
        return self.source if self.top else f"{self.source}/{entry.tag}"

    def script(self, name, parts):
        """A file with a part for each (entry, text): each in a shell of its own."""
        lines = [f'OUT={self.place.out}; SRC={self.source}; export OUT SRC']
        for entry, body in parts:
            path = f"{self.bin}/{entry.tag}.{name}"
            body = textwrap.dedent(body).replace("HOME_OF_THE_CALLER", self.place.home)
            self.place.write(path, f"TAG={entry.tag}; D={self.directory(entry)}; "
                             f"EVIL={self.bin}/{entry.tag}\n. {self.bin}/prelude\n"
                             f'cd "$D" || exit\n{body}', 0o644)
            lines += [f"timeout 60 sh {path} </dev/null >{path}.log 2>&1", f"echo ran-{entry.tag}"]
        self.place.write(f"{self.bin}/{name}", "\n".join(lines), 0o644)
        return ["sh", f"{self.bin}/{name}"]

    def on_host(self, name, parts):
        return self.place.run(self.script(name, parts), cwd=self.source, timeout=LIMIT)

    def prepare(self):
        if not self.top:
            self.place.run(["mkdir", *(self.directory(e) for e in self.entries)])
        return self.on_host("prepare", [(e, e.prepare) for e in self.entries])

    def started(self):
        """The entries whose program has started on the host since the last time."""
        found = set()
        for name in os.listdir(self.place.out):
            if name[0] == "t" and os.path.isfile(f"{self.place.out}/{name}"):
                found.add(name)
                os.unlink(f"{self.place.out}/{name}")
        return found

    def log(self, entry, name):
        try:
            with open(f"{self.bin}/{entry.tag}.{name}.log", encoding="utf-8",
                      errors="replace") as handle:
                return handle.read()[-600:]
        except OSError:
            return ""

    def close(self):
        clear(self.place)


def clear(place):
    """Also what is too deep for Python."""
    place.run(["sh", "-c", "chmod -R u+rwX src out tmp state; rm -rf src out tmp state"],
              cwd=place.top)
    place.close()
    subprocess.run(["rm", "-rf", place.top], check=False)


class Call:
    """What one call came to: its result object and what it wrote."""

    def __init__(self, status, out, err):
        self.status, self.err, self.result = status, err, {}
        try:
            self.result = json.loads(out)
        except ValueError:
            self.err += f"\nno JSON on stdout: {out[:200]}"
        self.out = (self.result.get("stdout") or {}).get("text") or out

    def flagged(self):
        return ((self.result.get("changes") or {}).get("flagged")) or []

    def __str__(self):
        return f"status {self.status}\n{self.err[-1500:]}\nflagged: {self.flagged()[:5]}"


WAIT = r"""
: >@.now
n=0
while [ ! -e @.go ] && [ $n -lt 1200 ]; do sleep 0.05; n=$((n+1)); done
"""


def play(who, entries, inside, options=(), cwd=None, top=False, below="src"):
    """Prepares, makes the calls, does what a person does. Returns what happened."""
    world = World(who, entries, top, below)
    place, during, calls = world.place, set(), []
    try:
        prepared = world.prepare()
        meets = [e for e in entries if e.kind == NEVER]
        for number in range(max(len(e.attacks) for e in entries)):
            parts = [(e, e.attacks[number]) for e in entries if number < len(e.attacks)]
            script = world.script(f"attack{number}", parts)
            mark = f"{world.bin}/call{number}"
            with open(script[1], "a", encoding="utf-8") as handle:
                handle.write(WAIT.replace("@", mark))
            given = [o.replace("@SRC@", world.source).replace("@GRANT@", place.grant)
                     for o in options]
            front = place.inside("--json", *given) if inside else []
            process = place.start(front + script, cwd=(cwd or "@").replace("@", world.source))
            wait_for(lambda p=process, m=mark: os.path.exists(f"{m}.now") or p.poll() is not None,
                     LIMIT, 0.02)
            world.started()  # what the attack itself started, bare
            if number + 1 == max(len(e.attacks) for e in entries):
                world.on_host("during", [(e, e.trigger) for e in meets])
                during = world.started()
            place.write(f"{mark}.go", "", 0o644)
            out, err = process.communicate(timeout=LIMIT)
            calls.append(Call(process.returncode, out.decode("utf-8", "replace"),
                              err.decode("utf-8", "replace")))
            world.on_host("between", [(e, BETWEEN[e.name]) for e in entries
                                      if e.name in BETWEEN and number == 0])
        world.started()
        world.on_host("after", [(e, e.trigger) for e in entries])
        logs = {e.tag: "\n".join(f"{name}: {world.log(e, name)}" for name in
                                 ("prepare", "attack0", "attack1", "after")) for e in entries}
        return during, world.started(), calls, logs, prepared
    finally:
        world.close()


def both(who, entries, **more):
    """The same bare and inside, at the same time; the entries' tags are the same."""
    found = {}

    def one(inside):
        try:
            found[inside] = play(who, entries, inside, **more)
        except Exception as e:  # shown with the rows
            found[inside] = (set(), set(), [], {}, repr(e))
    threads = [threading.Thread(target=one, args=(way,)) for way in (False, True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found[False], found[True]


def judge(who, title, entries, **more):
    bare, inside = both(who, entries, **more)
    calls = inside[2]
    tap.ok(bool(calls) and all(c.status == 0 for c in calls),
           f"{title}: the command's status is its own, {who.name}", *calls, inside[4])
    for entry in entries:
        tag = entry.tag
        ran = bool(calls) and all(f"ran-{tag}" in c.out for c, _ in zip(calls, entry.attacks))
        control = tag in bare[1]
        if entry.kind == STAYS:
            good, word = tag in inside[1], "stays"
        elif entry.kind == NEVER:
            good, word = tag not in inside[0] and tag not in inside[1], "never"
        else:
            good, word = tag not in inside[1], "not after"
        about = [f for c in calls for f in c.flagged() if tag in str(f.get("path"))][:3]
        tap.ok(control and ran and good, f"{word}: {entry.name}, {who.name}",
               f"control started: {control}; ran inside: {ran}; started during: "
               f"{tag in inside[0]}, after: {tag in inside[1]}", f"flagged: {about}",
               "inside: " + inside[3].get(tag, ""),
               "bare: " + bare[3].get(tag, "") if not control else "")


# Sources of their own.

def special(who):
    judge(who, "the source's own repository", [never("the top's config, hooks and .git", "repo .", r"""
        evil_key >>.git/config; cp .git/config .git/n; evil_key >>.git/n; mv -f .git/n .git/config
        program .git/hooks/post-index-change; mv .git g; evil_repo .""")], top=True)
    judge(who, "a source without a repository", [after(
        "a layout at the top", "", "layout .")], top=True)
    judge(who, "a source whose .git is made void", [after(
        "a layout at the top", "repo .", "rm -f .git/HEAD; layout .")], top=True)
    judge(who, "from a directory of the source", [never(
        "the top's config", "repo .; mkdir lib", "cd ..; cd \"$D\"; evil_key >>.git/config")],
          top=True, cwd="@/lib")
    judge(who, "a source below node_modules", [
        never("config and .envrc", "repo .; echo : >.envrc",
              "evil_key >>.git/config; program .envrc", "sh .envrc; git status"),
        after("new names", "", "evil_repo n; program .mcp.json", "sh .mcp.json; git -C n status")],
          below="src/node_modules/target/src")
    judge(who, "with a grant of a directory of the source", [never(
        "config below it", "repo lib/n", "evil_key >>lib/n/.git/config", "git -C lib/n status"),
        ], top=True, options=("--write", "@SRC@/lib"))
    judge(who, "with a grant of one name", [
        never("another name", "echo : >.envrc; echo : >.npmrc", "program .envrc; program .npmrc",
              "sh .npmrc"),
        ], top=True, options=("--write", "@SRC@/.envrc"))
    judge(who, "with a grant of a name that a link leads to", [never(
        "config by the other name", r'repo .; ln -s "$D" "$OUT/../grant/alias"', r"""
        evil_key >>"$OUT/../grant/alias/.git/config"; evil_key >>.git/config""")],
          top=True, options=("--write", "@GRANT@"))


# In a git directory known at the start: how long, and how often somebody else was faster.

MEASURE = r"""
import json, os, sys, time
top, mode, count, evil = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
git, found = f"{top}/.git", {}
key = f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {evil}-"

def lies(path):
    return os.path.lexists(path)

def put(name, text, mode=0o644):
    with open(f"{git}/planted.new", "w") as f:
        f.write(text)
    os.chmod(f"{git}/planted.new", mode)
    os.rename(f"{git}/planted.new", f"{git}/{name}")

def hook():
    try:
        os.mkdir(f"{git}/hooks")
    except FileExistsError:
        pass
    put("hooks/pre-commit", f"#!/bin/sh\n{evil}-hooks\n", 0o755)

os.system(f"cp -r {git} {top}/common; printf '{key}commondir\n' >>{top}/common/config")
KINDS = [("commondir", "commondir", lambda: put("commondir", "../common\n")),
         ("config.worktree", "config.worktree",
          lambda: put("config.worktree", key + "config.worktree\n")),
         ("hooks", "hooks/pre-commit", hook),
         ("info/attributes", "info/attributes",
          lambda: put("info/attributes", "* filter=x\n"))]
for kind, name, plant in KINDS:
    times, late, failed = [], 0, 0
    for _ in range(count):
        begin = time.monotonic_ns()
        try:
            plant()
        except OSError:
            failed += 1
            if failed > 50:
                break
            time.sleep(0.001)
            continue
        stay = 0.010 if mode == "bare" else 0.5
        while lies(f"{git}/{name}"):
            if time.monotonic_ns() - begin > stay * 1e9:
                late += 1
                os.unlink(f"{git}/{name}")
                break
            time.sleep(0.0002)
        else:
            times.append((time.monotonic_ns() - begin) // 1000)
        if mode != "bare" and late > 10:
            break
    found[kind] = {"times": sorted(times), "late": late, "failed": failed}
for kind, name, plant in reversed(KINDS):
    plant()
print("measured " + json.dumps(found))
"""
LOOK = "while [ ! -e \"$1\" ]; do git status; git hook run --ignore-missing pre-commit; done"
KINDS = ("commondir", "config.worktree", "hooks", "info/attributes")


def measure_once(who, inside, count):
    place = Place(who)
    try:
        evil, stop = f"{place.src}/evil", f"{place.out}/stop"
        for kind in KINDS[:3]:
            place.write(f"{evil}-{kind}", f'#!/bin/sh\n[ -d "{place.out}" ] && '
                        f'echo start >>"{place.out}/{kind}"\nexit 0', 0o755)
        place.write(f"{place.src}/measure", MEASURE, 0o644)
        place.write(f"{place.home}/.gitconfig", "[user]\n\tname = P\n\temail = p@example.com", 0o644)
        place.run(["sh", "-c", "git init -q . && git commit -q --allow-empty -m x && "
                   "rm -rf .git/hooks .git/info/attributes && mkdir -p .git/info && "
                   "git config extensions.worktreeConfig true"])
        looking = place.start(["sh", "-c", LOOK, "sh", stop], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
        front = place.inside("--json") if inside else []
        done = place.run(front + ["python3", f"{place.src}/measure", place.src,
                                  "inside" if inside else "bare", str(count), evil], timeout=LIMIT)
        left = [name for name in ("commondir", "config.worktree", "hooks/pre-commit",
                                  "info/attributes") if os.path.lexists(f"{place.src}/.git/{name}")]
        place.write(stop, "")
        looking.wait(30)
        call = Call(done.status, done.out, done.err)
        line = [w for w in call.out.split("\n") if w.startswith("measured ")]
        found = json.loads(line[0][9:]) if line else {}
        starts = {}
        for kind in KINDS[:3]:
            if os.path.exists(f"{place.out}/{kind}"):
                with open(f"{place.out}/{kind}", encoding="utf-8") as handle:
                    starts[kind] = len(handle.read().split())
        return found, starts, left, call
    finally:
        clear(place)


def measure(who):
    count = ATTEMPTS // len(KINDS)
    bare, bare_starts, bare_left, _ = measure_once(who, False, 60)
    found, starts, left, call = measure_once(who, True, count)
    total = 0
    for kind in KINDS:
        got = found.get(kind, {"times": [], "late": 0, "failed": 0})
        times = got["times"]
        tried = len(times) + got["late"]
        total += len(times)
        spread = " ".join(f"{word} {times[min(len(times) - 1, int(len(times) * q))]}" for word, q in (
            ("min", 0), ("median", 0.5), ("p99", 0.99), ("max", 1))) if times else "never gone"
        tap.note(f"{who.name}, {kind}: {starts.get(kind, 0)} starts in {tried} attempts; gone after "
                 f"us {spread}; {got['late']} stayed, {got['failed']} could not be made")
    tap.note(f"{who.name}, bare, 10 ms each: {bare_starts} starts in 60 attempts each")
    stayed = sum(g["late"] for g in found.values())
    tap.ok(all(bare_starts.get(k, 0) > 0 for k in KINDS[:3]) and len(bare_left) == 4 and
           total >= ATTEMPTS * 9 // 10 and not stayed and not left,
           f"new names in a git directory are gone, {who.name}",
           f"control: {bare_starts}, left {bare_left}", f"{total} gone, {stayed} stayed; left {left}",
           {k: (len(v["times"]), v["late"], v["failed"]) for k, v in found.items()}, call)


# How a call ends.

def planted(place):
    """What is left of what PLANTS makes."""
    found = place.run(["find", place.src, "-name", ".envrc", "-o", "-name", ".vscode", "-o",
                       "-path", "*/n*/.git/hooks/pre-commit"])
    return found.out.split()


PLANTS = ("mkdir -p d$i; : >d$i/.envrc; mkdir -p d$i/.vscode n$i; git init -q n$i; "
          ": >n$i/.git/hooks/pre-commit")

ENDS = [
    ("planted by 200 processes", (), "i=0; while [ $i -lt 200 ]; do (mkdir d$i; : >d$i/.envrc; "
     "mkdir d$i/.vscode) & i=$((i+1)); done; wait", 0),
    ("planted by what goes on at the end", (), "python3 -c '" + textwrap.dedent("""
        import os, time
        for k in range(4):
            if os.fork() == 0:
                os.setsid()
                os.close(0), os.close(1), os.close(2)
                i = 0
                while i < 20000:
                    os.makedirs(f"p{k}/d{i % 100}/.vscode", exist_ok=True)
                    open(f"p{k}/d{i % 100}/.envrc", "w").close()
                    i += 1
                os._exit(0)
        while not os.path.exists("p3/d20/.envrc"):
            time.sleep(0.001)
        """) + "'", 0),
    ("planted by the last command", (), "i=1; " + PLANTS + "; exit 7", 7),
    ("planted before a timeout", ("--timeout", "1s", "--grace", "100ms"),
     "trap '' TERM; i=1; " + PLANTS + "; while :; do : >.envrc; done", 124),
    ("planted before the command's death by a signal", (), "i=1; " + PLANTS + "; kill -9 $$", 137),
]


def ending(who, name, options, script, status):
    rows = []
    for front in ([], None):
        place = Place(who)
        try:
            argv = (place.inside("--json", *options) if front is None else
                    ["timeout", "-k", "0.1", "1"] if options else [])
            done = place.run(argv + ["sh", "-c", script], timeout=LIMIT)
            time.sleep(0.05)
            rows.append((planted(place), done))
        finally:
            clear(place)
    (bare, _), (left, done) = rows
    tap.ok(len(bare) >= 2 and not left and done.status == status, f"nothing left {name}, {who.name}",
           f"control: {len(bare)} left", f"left: {len(left)} {left[:5]}", str(done)[-1500:])


def killed(who):
    """KILL of the process that the caller knows, in the middle; then the next start."""
    place = Place(who)
    try:
        script = "i=1; " + PLANTS + "; : >planted; sleep 60"
        place.run(["sh", "-c", "git init -q old"])
        process = place.start(place.inside() + ["sh", "-c", script])
        ran = wait_for(lambda: os.path.exists(f"{place.src}/planted"), 20)
        process.kill()
        process.wait()
        wait_for(lambda: not planted(place), 1)
        before = planted(place)
        done = place.run(place.inside("--json") + ["true"], timeout=LIMIT)
        left = planted(place)
        call = Call(done.status, done.out, done.err)
        tap.ok(ran and done.status == 0 and not left and (not before or call.flagged()),
               f"what a killed call left is gone at the next start, {who.name}",
               f"ran {ran}, before {before}, left {left}", call)
    finally:
        clear(place)


def told_to_stop(who):
    """Ended by a signal from outside, it still looks before it goes."""
    left, ends = [], []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        place = Place(who)
        try:
            process = place.start(place.inside("--grace", "100ms") + [
                "sh", "-c", "trap '' TERM INT HUP QUIT; i=1; " + PLANTS + "; : >planted; sleep 60"])
            ran = wait_for(lambda p=place: os.path.exists(f"{p.src}/planted"), 20)
            before = planted(place)
            process.send_signal(number)
            time.sleep(0.05)
            process.send_signal(number)  # impatient
            ends.append((bool(ran) and len(before) > 1, process.wait(30) == -number))
            left += planted(place)
        finally:
            clear(place)
    tap.ok(all(a and b for a, b in ends) and not left,
           f"nothing left when it is told to stop, {who.name}", ends, left)


def two_at_once(who):
    """One plants; another, which began later, hides that while the first one ends."""
    found = []
    for inside in (False, True):
        place = Place(who)
        try:
            place.run(["mkdir", "-p", "node_modules"])
            front = place.inside() if inside else []
            until = "while [ ! -e $F ]; do sleep 0.01; done; "
            first = place.start(front + ["sh", "-c", "mkdir x; echo : >x/.envrc; git init -q x; "
                                         ": >x/.git/hooks/pre-commit; : >planted; F=hidden; " + until])
            wait_for(lambda: os.path.exists(f"{place.src}/planted"), 20)
            second = place.start(front + ["sh", "-c", "mv x node_modules/x; : >hidden; F=over; " +
                                          until + "mv node_modules/x x; mkdir y; : >y/.envrc"])
            wait_for(lambda: os.path.exists(f"{place.src}/hidden"), 20)
            first.wait(30)
            place.write(f"{place.src}/over", "", 0o644)
            second.wait(30)
            found.append([n for n in ("x/.envrc", "x/.git/hooks/pre-commit", "y/.envrc")
                          if os.path.lexists(f"{place.src}/{n}")])
        finally:
            clear(place)
    tap.ok(len(found[0]) == 3 and not found[1],
           f"two at once do not hide for each other, {who.name}", *found)


# Sandglass itself as the tool: it moves what it finds, and reads what it checks.

def deputy(who):
    """Links that lead out: nothing outside is moved."""
    script = r"""
        V=VICTIM
        rm -rf .git/hooks; ln -s $V .git/hooks; rm -rf .git/info; ln -s $V .git/info
        i=0; while [ $i -lt 300 ]; do
            rm -rf .git/info; mkdir .git/info; true >.git/info/attributes; rm -rf .git/info
            ln -s $V .git/info; i=$((i+1)); done
        ln -s $V lib; readlink lib
        git init -q n; rm -rf n/.git/hooks n/.git/config; ln -s $V n/.git/hooks
        ln -s $V/config n/.git/config
        mkdir m; ln -s $V m/.git; ln -s $V .vscode; ln -s $V/.envrc .envrc
        mkdir k; ln -s $V/HEAD k/HEAD; mkdir k/objects k/refs; ln -s $V/config k/config
        ln -s $V .git/rebase-merge; ln -s $V .git/modules; ln -s $V .git/worktrees"""
    found = []
    for inside in (False, True):
        place = Place(who)
        try:
            victim = f"{place.out}/victim"
            place.run(["sh", "-c", "git init -q .; rm -rf .git/hooks .git/info; "
                       f"git init -q --bare {victim}; cd {victim}; mkdir -p .vscode; "
                       "for f in attributes .envrc pre-commit git-rebase-todo commondir.x .vscode/t; "
                       "do echo mine >$f; done; git config core.fsmonitor true"])
            files = [f"{d}/{f}" for d, _, names in os.walk(victim) for f in names]
            before = {f: snapshot(f) for f in files}
            done = place.run((place.inside() if inside else []) +
                             ["sh", "-c", script.replace("VICTIM", victim)], timeout=LIMIT)
            same = all(os.path.lexists(f) and snapshot(f) == s for f, s in before.items())
            more = {f"{d}/{f}" for d, _, names in os.walk(victim) for f in names} - set(files)
            found.append((victim in done.out, same and not more, len(files), more, done))
        finally:
            clear(place)
    tap.ok(found[0][0] and found[1][0] and found[1][1],
           f"nothing outside is moved by way of a link, {who.name}",
           *[str(f) for one in found for f in one])


HEAVY = [
    ("fifos in place of what is read", r"""
        for f in .git/index .git/packed-refs .git/HEAD .git/refs/heads/main .git/refs/heads/x \
            .git/ORIG_HEAD .git/FETCH_HEAD .git/shallow .git/info/grafts; do
            mkdir -p $(dirname $f); rm -f $f; mkfifo $f; done
        mkfifo .git/objects/pack/pack-1.idx .git/objects/pack/pack-1.pack; git init -q n
        for f in config HEAD commondir config.worktree; do rm -f n/.git/$f; mkfifo n/.git/$f; done
        mkdir m k; mkfifo m/.git k/HEAD k/objects k/refs .envrc .npmrc
        mkdir .git/rebase-merge; mkfifo .git/rebase-merge/git-rebase-todo"""),
    ("files of 1 TiB in place of what is read", r"""
        git init -q n; mkdir m .vscode
        for f in .git/index .git/packed-refs .git/refs/heads/x n/.git/config n/.git/HEAD m/.git \
            .envrc .vscode/tasks.json; do rm -f $f; truncate -s 1T $f; done
        mkdir .git/rebase-merge; truncate -s 1T .git/rebase-merge/git-rebase-todo"""),
    ("links in circles", r"""
        ln -s .envrc .envrc; ln -s .git/a .vscode; ln -s b .git/refs/heads/a; ln -s a .git/refs/heads/b
        echo 'ref: refs/heads/d' >.git/refs/heads/c; echo 'ref: refs/heads/c' >.git/refs/heads/d
        mkdir m; echo 'gitdir: ../m' >m/.git; 
        mkdir k; echo 'gitdir: ../k/.git' >k/.git; ln -s . loop"""),
    ("2,000 directories in one that is moved", r"""
        mkdir -p .vscode; cd .vscode; seq 2000 | xargs mkdir"""),
]


def heavy(who, name, script, home=None):
    """It ends in time, and what it cannot read does not stay."""
    place = Place(who)
    extra = {}
    try:
        if home:
            place.own(home)
            extra = {"SANDGLASS_HOME": home}
        place.run(["sh", "-c", "git init -q .; git -c user.name=a -c user.email=a@b commit -q "
                   "--allow-empty -m x"])
        done = place.run(place.inside("--json") + ["sh", "-c", textwrap.dedent(script) +
                                                   "\necho ran-$((1+1))"], env=extra, timeout=100)
        left = [n for n in (".envrc", ".vscode", ".npmrc", "m/.git", "k/.git",
                            ".git/rebase-merge/git-rebase-todo")
                if os.path.lexists(f"{place.src}/{n}")]
        tap.ok("ran-2" in done.out and done.status == 0 and not left and done.seconds < 60,
               f"in time: {name}, {who.name}", f"left {left}", str(done)[-1500:])
    finally:
        clear(place)
        if home:
            subprocess.run(["rm", "-rf", home], check=False)


def elsewhere(who):
    """Quarantine on another file system, of what cannot simply be copied there."""
    if os.stat("/dev/shm").st_dev == os.stat(os.environ.get("TMPDIR", "/tmp")).st_dev:
        tap.skip(f"in time: another file system, {who.name}", "two-file-systems")
        return
    home = f"/dev/shm/sgt.{os.getpid()}.{who.name}"
    os.mkdir(home, 0o700)
    heavy(who, "to another file system", r"""
        mkdir -p .vscode/a .vscode/z; truncate -s 1T .vscode/big; mkfifo .vscode/f; : >.vscode/z/x
        ln -s /nowhere .vscode/l; : >.vscode/a/h; ln .vscode/a/h .vscode/a/i; chmod 000 .vscode/z
        : >.vscode/a/h; chmod 000 .vscode/a/h; chmod 555 .vscode/a; : >.envrc""", home)


# A linked worktree as the source: its common directory is elsewhere.

def linked(who):
    """From a worktree, nothing in the common directory starts anything in the main work tree."""
    place = Place(who)
    try:
        main, other, out = f"{place.top}/tmp/main", place.src, place.out
        place.write(f"{place.home}/.gitconfig", "[user]\n\tname = P\n\temail = p@example.com", 0o644)
        evil = place.write(f"{main}.evil", f'#!/bin/sh\necho start >>"{out}/hit"', 0o755)
        place.run(["sh", "-c", f"git init -q -b main {main}; cd {main}; git commit -q --allow-empty "
                   f"-m a; git commit -q --allow-empty -m b; rm -rf .git/info; "
                   f"git config extensions.worktreeConfig true; git worktree add -q {other}/wt; "
                   f"git worktree add -q {other}/second"])
        attack = f"""
            G={main}/.git; E={evil}; K=$(printf '[core]\\n\\tfsmonitor = %s\\n' $E)
            git commit -q --allow-empty -m inside && echo committed
            echo "$K" >>$G/config; echo "$K" >$G/config.worktree
            echo "$K" >>$G/worktrees/second/config.worktree
            printf '#!/bin/sh\\n$E\\n' >$G/hooks/pre-commit; chmod 755 $G/hooks/pre-commit
            mv $G/hooks $G/h; mkdir $G/hooks; printf '#!/bin/sh\\n%s\\n' $E >$G/hooks/pre-commit
            chmod 755 $G/hooks/pre-commit; mv $G/config $G/c; cp $G/c $G/config
            cp -r $G $G/common; echo "$K" >>$G/common/config; echo common >$G/commondir
            mkdir -p $G/rebase-merge; cd $G/rebase-merge; : >interactive; : >done
            echo refs/heads/main >head-name; git rev-parse main | tee onto >orig-head
            echo 1 >msgnum; echo 1 >end; echo "exec $E" >git-rebase-todo
            cat {main}/../../home/.profile && echo read-the-home"""
        done = place.run(place.inside("--json") + ["sh", "-c", attack], cwd=f"{other}/wt")
        place.run(["sh", "-c", f"cd {main}; git status; git commit -q --allow-empty -m x; "
                   f"git rebase --continue; git -C {other}/second status; git -C {other}/wt status"])
        hit = os.path.exists(f"{out}/hit")
        log = place.run(["git", "-C", main, "log", "--all", "--format=%s"])
        place.run(["sh", "-c", f"{evil}; cd {main}; git config core.fsmonitor {evil}; git status"])
        control = os.path.exists(f"{out}/hit")
        tap.ok(control and "committed" in done.out and "inside" in log.out and not hit,
               f"a worktree as the source starts nothing in the main one, {who.name}",
               f"control {control}, started {hit}", log, str(done)[-2500:])
    finally:
        clear(place)


def stranger(who):
    """A .git file that leads to somebody else's repository gives no way into it."""
    place = Place(who)
    try:
        victim, src = f"{place.top}/tmp/victim", place.src
        place.write(f"{place.home}/.gitconfig", "[user]\n\tname = P\n\temail = p@example.com", 0o644)
        place.run(["sh", "-c", f"git init -q -b main {victim}; cd {victim}; git commit -q "
                   "--allow-empty -m a"])
        rows = []
        for name, build in (
                ("a .git file", f"echo 'gitdir: {victim}/.git' >wt/.git"),
                ("a worktree directory of its own making", f"mkdir admin; echo {src}/wt/.git "
                 f">admin/gitdir; echo {victim}/.git >admin/commondir; echo 'ref: refs/heads/x' "
                 f">admin/HEAD; echo 'gitdir: {src}/admin' >wt/.git"),
                ("a submodule directory of its own making", f"git init -q --bare admin; "
                 f"git -C admin config core.bare false; git -C admin config core.worktree {src}/wt; "
                 f"echo {victim}/.git >admin/commondir; echo 'gitdir: {src}/admin' >wt/.git"),
                ("a link", f"ln -s {victim}/.git wt/.git")):
            place.run(["sh", "-c", "chmod -R u+rwX wt admin 2>/dev/null; rm -rf wt admin; mkdir wt; " +
                       build])
            done = place.run(place.inside() + [
                "sh", "-c", f"echo ran; echo x >{victim}/.git/planted; ls {victim}/.git"],
                cwd=f"{src}/wt")
            there = os.path.lexists(f"{victim}/.git/planted")
            if there:
                os.unlink(f"{victim}/.git/planted")
            rows.append((name, "ran" in done.out or done.status == 125, there, done))
        control = place.run(["sh", "-c", f"echo x >{victim}/.git/planted"]).status == 0
        tap.ok(control and all(ran and not there for _, ran, there, _ in rows),
               f"a .git file leads into no other repository, {who.name}",
               *[f"{n}: ran {r}, written {t}\n{str(d)[:600]}" for n, r, t, d in rows if t or not r])
    finally:
        clear(place)


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    rows = [("existing", judge, "existing names", EXISTING), ("new", judge, "new names", NEW),
            ("twice", judge, "two calls", TWICE), ("special", special), ("measured", measure),
            *(("end", ending, *row) for row in ENDS), ("killed", killed),
            ("stop", told_to_stop), ("two", two_at_once),
            ("deputy", deputy), *(("heavy", heavy, *row) for row in HEAVY),
            ("elsewhere", elsewhere), ("linked", linked), ("stranger", stranger)]
    wanted = sys.argv[1:]
    for who in identities_once():
        for name, function, *more in rows:
            if not wanted or name in wanted:
                begin = time.monotonic()
                tap.attempt(f"{name}, {who.name}", function, who, *more)
                if wanted:
                    tap.note(f"{name}, {who.name}: {time.monotonic() - begin:.1f} s")
    return tap.done()


sys.exit(main())
