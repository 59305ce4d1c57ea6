# SPDX-License-Identifier: Apache-2.0
"""Ways in which what runs in a session attacks who looks at it.

A Way is a script that runs inside, or by hand in the session's own layer (`planted`, as
if a boundary had let it through). In a script @PAY@ is a program of the host's that leaves a
canary, @OUT@ a directory of the host's beside the source, @SRC@ the source. `control`
runs bare, after the same script in a copy of the source: the canary must appear, so that its
absence later says something. `told` are flags that `diff --json` must have, as kind:path;
`check` looks at what came of it and returns what is wrong.
"""

import os
import stat
import textwrap

COMMIT = "git -c user.name=x -c user.email=x@x commit -q --allow-empty "


class Way:
    def __init__(self, name, inside="", control="", told=(), check=None, planted=None, refused=False,
                 left=None):
        self.name, self.inside, self.control = name, textwrap.dedent(inside), control
        self.told, self.check, self.planted, self.refused = told, check, planted, refused
        self.left = left

    @property
    def word(self):
        return "".join(c if c.isalnum() else "-" for c in self.name)


def python(script):
    return "python3 - <<'END'\n" + textwrap.dedent(script) + "\nEND\n"


# The repository's own configuration: nothing of it may count where somebody looks.

CONFIG = [
    Way("core.fsmonitor", "git config core.fsmonitor @PAY@", "git status",
        told=["git-hook-or-config:.git/config"]),
    Way("core.hooksPath with hooks of the tree",
        "mkdir -p hk; printf '#!/bin/sh\\n@PAY@\\n' >hk/pre-commit; chmod +x hk/pre-commit\n"
        "git config core.hooksPath @SRC@/hk", COMMIT + "-m x"),
    Way("every hook of .git/hooks", """
        for h in applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout \\
            post-commit post-index-change post-merge post-receive post-rewrite post-update \\
            pre-applypatch pre-auto-gc pre-commit pre-merge-commit pre-push pre-rebase \\
            pre-receive prepare-commit-msg push-to-checkout reference-transaction \\
            sendemail-validate update; do
            printf '#!/bin/sh\\n@PAY@\\n' >.git/hooks/$h; chmod +x .git/hooks/$h
        done""", COMMIT + "-m x", told=["git-hook-or-config:.git/hooks/post-checkout"]),
    Way("filter clean, smudge", """
        git config filter.f.clean '@PAY@; cat'; git config filter.f.smudge '@PAY@; cat'
        git config filter.f.required true; echo '*.f filter=f' >>.gitattributes; echo 1 >n.f
        echo 2 >>tracked.f""", "git add .; git status", told=["git-attributes:.gitattributes"]),
    Way("filter process", "git config filter.p.process @PAY@; echo '*.p filter=p' >>.gitattributes\n"
        "echo 1 >n.p", "git add ."),
    Way("textconv", "git config diff.t.textconv @PAY@; echo '*.t diff=t' >>.gitattributes\n"
        "echo 2 >tracked.t", "git diff"),
    Way("diff driver", "git config diff.c.command @PAY@; echo '*.c diff=c' >>.gitattributes\n"
        "echo 2 >tracked.c", "git diff"),
    Way("attributes of .git/info", "git config diff.i.command @PAY@\n"
        "mkdir -p .git/info; echo 'tracked.i diff=i' >.git/info/attributes; echo 2 >tracked.i",
        "git diff"),
    Way("attributes of a file that the configuration names", """
        git config diff.a.command @PAY@; echo 'tracked.a diff=a' >attr
        git config core.attributesFile @SRC@/attr; echo 2 >tracked.a""", "git diff"),
    Way("diff.external", "git config diff.external @PAY@; echo 2 >b", "git diff"),
    Way("core.pager", "git config core.pager @PAY@", "script -qec 'git log' /dev/null"),
    Way("core.sshCommand", "git config core.sshCommand @PAY@; git remote add s ssh://h.invalid/x",
        "git fetch s"),
    Way("a remote helper's command", "git config protocol.ext.allow always\n"
        "git config remote.e.url 'ext::@PAY@'", "git fetch e"),
    Way("upload-pack", "git config remote.u.url @SRC@; git config remote.u.uploadpack @PAY@",
        "git fetch u"),
    Way("include.path", "printf '[core]\\n\\tfsmonitor = @PAY@\\n' >inc; git config include.path "
        "@SRC@/inc", "git status"),
    Way("includeIf", "printf '[core]\\n\\tfsmonitor = @PAY@\\n' >inc2\n"
        "git config 'includeIf.gitdir:**.path' @SRC@/inc2", "git status"),
    Way("gpg.program", "git config commit.gpgSign true; git config gpg.program @PAY@\n"
        "git config log.showSignature true", COMMIT + "-m x"),
    Way("credential.helper", "git config credential.helper '!@PAY@'",
        "printf 'protocol=https\\nhost=h\\n' | git credential fill"),
    Way("trailer command", "git config trailer.t.command @PAY@; git config trailer.t.ifmissing add\n"
        "git config trailer.t.key T", "echo x | git interpret-trailers --trailer t"),
    Way("alias of a verb that does not exist", "git config alias.st '!@PAY@'", "git st"),
    Way("a submodule whose update is a command", """
        printf '[submodule "s"]\\n\\tpath = s\\n\\turl = ext::@PAY@\\n' \\
            >.gitmodules
        git config submodule.s.update '!@PAY@'; git config submodule.s.url ext::@PAY@
        git config submodule.s.active true; mkdir -p s
        git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),s""",
        "git -c protocol.ext.allow=always submodule update --init",
        told=["git-attributes:.gitmodules"]),
    Way("a ref whose name is shell", """
        h=$(git rev-parse HEAD)
        for n in 'a;@PAY@' '$(@PAY@)' '`@PAY@`' 'x|@PAY@' '&@PAY@' "'@PAY@" '-rf' '--exec=x'; do
            git update-ref "refs/heads/$n" $h || :
        done; git for-each-ref | grep -q PAY || :"""),
    Way("a commit's message and author are escapes", """
        git -c user.name="$(printf '\\033]0;title\\007\\342\\200\\256x')" -c user.email=x@x \\
            -c commit.gpgSign=false -c core.hooksPath=/dev/null -c core.fsmonitor= commit -q \\
            --allow-empty -m "$(printf '\\033[2Jgone\\342\\200\\213')" """),
]


# What a git directory is made of: each in a session of its own, since it breaks the next.

def commits_stayed(c):
    return None if c.refs == c.refs_before else f"refs of the source: {c.refs_before} {c.refs}"


def raw_tree(entries):
    """A commit on main with a tree that git would not write: entries are python, of (mode, name)."""
    return python(f"""
        import subprocess
        def git(*a, data=b''):
            return subprocess.run(['git', *a], input=data, check=True,
                                  stdout=subprocess.PIPE).stdout.decode().strip()
        blob = git('hash-object', '-w', '--stdin', data=b'#!/bin/sh\\n@PAY@\\n')
        inner = git('hash-object', '-t', 'tree', '-w', '--literally', '--stdin',
                    data=b'100755 post-checkout\\0' + bytes.fromhex(blob))
        raw = b''
        for mode, name in {entries}:
            raw += mode + b' ' + name + b'\\0' + bytes.fromhex(inner if mode == b'40000' else blob)
        tree = git('hash-object', '-t', 'tree', '-w', '--literally', '--stdin', data=raw)
        git('update-ref', 'refs/heads/main', git('commit-tree', tree, '-m', 'x', '-p', 'HEAD'))
        """)


def crafted_index(paths):
    return python(f"""
        import hashlib, struct, subprocess
        blob = bytes.fromhex(subprocess.run(['git', 'hash-object', '-w', '--stdin'], input=b'x',
                             stdout=subprocess.PIPE, check=True).stdout.decode().strip())
        body = b''
        for path in {paths}:
            entry = struct.pack('>10I', 0, 0, 0, 0, 0, 0, 0o100755, 0, 0, 1) + blob
            entry += struct.pack('>H', len(path)) + path
            body += entry + b'\\0' * (8 - len(entry) % 8)
        data = b'DIRC' + struct.pack('>II', 2, len({paths})) + body
        open('.git/index', 'wb').write(data + hashlib.sha1(data).digest())
        """)


GIT = [
    Way("the gitdir file leads elsewhere", "rm -rf .git; echo 'gitdir: @OUT@/evil.git' >.git",
        "git status", check=commits_stayed),
    Way(".git is a link to elsewhere", "rm -rf .git; ln -s @OUT@/evil.git .git", "git status",
        check=commits_stayed),
    Way("core.worktree is elsewhere", "git config core.worktree @OUT@", check=commits_stayed),
    Way("commondir leads elsewhere", "echo @OUT@/evil.git >.git/commondir", "git status",
        check=commits_stayed),
    Way("alternates name another repository", """
        echo @OUT@/evil.git/objects >.git/objects/info/alternates
        echo @SECRETCOMMIT@ >.git/refs/heads/stolen""", check=commits_stayed),
    Way("objects are a link to another repository's", """
        rm -rf .git/objects; ln -s @OUT@/evil.git/objects .git/objects
        echo @SECRETCOMMIT@ >.git/refs/heads/stolen""", check=commits_stayed),
    Way("HEAD is a fifo", "rm .git/HEAD; mkfifo .git/HEAD"),
    Way("config, index and refs are fifos", "for f in config index packed-refs refs/heads/f "
        "objects/info/alternates info/attributes; do mkdir -p .git/${f%/*}; rm -f .git/$f; "
        "mkfifo .git/$f; done 2>/dev/null; test -p .git/config"),
    Way("HEAD and refs point out of refs", r"""
        h=$(git rev-parse HEAD); echo 'ref: ../../out/evil.git/HEAD' >.git/HEAD
        echo 'ref: refs/heads/../../hooks/post-checkout' >.git/refs/heads/up
        printf '%s refs/heads/../../../canary\n%s refs/heads/a..b\n' $h $h >>.git/packed-refs"""),
    Way("a commit whose tree has .git", raw_tree("[(b'40000', b'.git')]"), check=commits_stayed),
    Way("a commit whose tree has ..", raw_tree("[(b'40000', b'..')]"), check=commits_stayed),
    Way("a commit whose tree has a name with slashes",
        raw_tree("[(b'100755', b'../canary/x'), (b'100755', b'.git/hooks/post-checkout')]"),
        check=commits_stayed),
    Way("a commit with a hostile .gitmodules", """
        printf '[submodule "s"]\\n\\tpath = -s\\n\\turl = -u@PAY@\\n' >.gitmodules
        git add .gitmodules; git commit -qm x""", check=commits_stayed),
    Way("a commit where .gitmodules is a link", "h=$(printf @OUT@/victim | git hash-object -w --stdin)\n"
        "t=$(printf '120000 blob %s\\t.gitmodules\\n' $h | git mktree)\n"
        "git update-ref refs/heads/main $(git commit-tree $t -p HEAD -m x)", check=commits_stayed),
    Way("an index of crafted paths", crafted_index(
        "[b'../canary/x', b'.git/hooks/post-checkout', b'/etc/x', b'a', b'd/../../x']")),
    Way("a tree of 10^12 files", r"""
        t=$(echo x | git hash-object -w --stdin); kind='100644 blob'
        for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
            t=$(for n in 0 1 2 3 4 5 6 7 8 9; do printf '%s %s\t%s\n' "$kind" $t $n; done | git mktree)
            kind='040000 tree'
        done
        git update-ref refs/heads/bomb $(git commit-tree $t -p HEAD -m bomb)"""),
    Way("an object that is 100 MB of zeros", "h=$(head -c 100M /dev/zero | git -c core.compression=1 "
        "hash-object -w --stdin)\nt=$(printf '100644 blob %s\\tz\\n' $h | git mktree)\n"
        "git update-ref refs/heads/zeros $(git commit-tree $t -p HEAD -m zeros)"),
    Way("3,000 refs", "h=$(git rev-parse HEAD); seq 3000 | sed \"s|.*|create refs/heads/r& $h|\" | "
        "git update-ref --stdin"),
    Way("replaced objects", "echo evil >evil; git add evil; git commit -qm evil\n"
        "git replace -f HEAD HEAD~1; git update-ref refs/replace/junk $(git rev-parse HEAD)"),
    Way("gitfile inside: a nested repository with hooks", """
        git init -q nest; git -C nest config core.fsmonitor @PAY@; echo 1 >nest/f
        git -c core.fsmonitor= -C nest add f; git -c core.fsmonitor= -C nest commit -qm x
        h=$(git -c core.fsmonitor= -C nest rev-parse HEAD)
        git update-index --add --cacheinfo 160000,$h,nest""", "git status",
        told=["git-hook-or-config:nest/.git/config"]),
]


# Files that are not what they seem.

def link_as_text(path, target):
    def check(c):
        full = f"{c.p.src}/{path}"
        if not os.path.islink(full) or os.readlink(full) != target.replace("@OUT@", c.out):
            return f"{path} is not a link with that text"
        return None
    return check


def absent(*paths):
    return lambda c: [p for p in paths if os.path.lexists(f"{c.p.src}/{p}")]


def has(path, text):
    def check(c):
        try:
            with open(os.path.join(os.fsencode(c.p.src), os.fsencode(path)), "rb") as handle:
                got = handle.read()
        except OSError as failed:
            return str(failed)
        return None if got == text else f"{path}: {got[:80]!r}"
    return check


def no_set_id(c):
    found = []
    for folder, folders, files in os.walk(c.p.src):
        found += [n for n in folders + files
                  if os.lstat(os.path.join(folder, n)).st_mode & 0o6000]
    return found


def names_came(c):
    have = set(os.listdir(os.fsencode(f"{c.p.src}/names")))
    return {n for n in NAMES if n not in have} or None


def safe_terminal(c):
    """What verbs have shown at a terminal has no byte that moves anything."""
    bad = [(verb, repr(said[:2000])) for verb, said in c.terminal.items()
           if any(ord(ch) < 32 and ch not in "\n\r\t" for ch in said) or
           any(ch in said for ch in "\x7f\u202e\u2066\u200b\u200d\ufeff\x9b")]
    return bad or (None if len(c.terminal) > 3 else "nothing was shown")


NAMES = [b"new\nline", b"-rf", b"--exec=touch x", b"...", b"..a", b"a..", b"..\n", b".. ", b"\\..",
         b"esc\x1b]0;t\x07", b"\xe2\x80\xaebidi", b"zero\xe2\x80\x8bwidth", b"bad\xff\xfe", b"*", b"?",
         b":(top)a", b":!x", b'quote"\\', b"$(id)", b"`id`", b"a;b", b"n" * 255, b".sandglass-0-0",
         b".sandglass-x", b".gone-1", b".wh.a", b".wh..wh..opq", b" ", b"\t", b"a -> b", b"~",
         b"# mode 0600 x", b"diff --git x y", b"GIT binary patch", b"%s%n", b"nul.txt", b"CON"]

FILES = [
    Way("a file becomes a link to outside", "rm a; ln -s @OUT@/victim a",
        told=["symlink-leaves:a"], check=link_as_text("a", "@OUT@/victim")),
    Way("a directory becomes a link to outside", "rm -rf d; ln -s @OUT@ d", told=["symlink-leaves:d"],
        check=link_as_text("d", "@OUT@")),
    Way("a link to /proc and to a device", "ln -s /proc/self/fd/0 pl; ln -s /dev/zero dz"),
    Way("a file becomes a fifo", "rm f1; mkfifo f1; mkfifo f2", told=["special-file:f2"],
        check=lambda c: None if stat.S_ISREG(os.lstat(f"{c.p.src}/f1").st_mode) or
        not os.path.exists(f"{c.p.src}/f1") else "a fifo came"),
    Way("a file becomes a socket", python("""
        import os, socket
        os.remove('s1'); socket.socket(socket.AF_UNIX).bind('s1')
        socket.socket(socket.AF_UNIX).bind('s2')"""), told=["special-file:s2"], check=absent("s2")),
    Way("a device node is made", "mknod dev c 1 3", refused=True, check=absent("dev")),
    Way("a block device is made", "mknod blk b 8 0", refused=True, check=absent("blk")),
    Way("a whiteout is made by hand", "mknod b2 c 0 0", refused=True),
    Way("an overlay is mounted inside", "mkdir l u w m; mount -t overlay o -o lowerdir=l,upperdir=u,"
        "workdir=w m", refused=True),
    Way("overlay attributes are set", python("""
        import os
        done = 0
        os.makedirs('x1/y', exist_ok=True); open('x2', 'w').write('x')
        for space in ('user.overlay.', 'trusted.overlay.', 'user.overlay.overlay.'):
            for key, value in (('redirect', b'/../../../etc'), ('opaque', b'y'), ('metacopy', b''),
                               ('whiteout', b'y'), ('origin', b'\\0' * 20), ('upper', b'x'),
                               ('opaque', b'x')):
                for path in ('x1', 'x2', 'd2', 'b'):
                    try:
                        os.setxattr(path, space + key, value)
                        done += 1
                    except OSError:
                        pass
        print('set', done)""")),
    Way("a set-id file is made", "cp /bin/true suid; chmod 4755 suid; test -u suid", refused=True,
        check=no_set_id),
    Way("a set-gid directory is made", "mkdir sgid; chmod 2775 sgid; test -g sgid", refused=True,
        check=no_set_id),
    Way("a file gets a capability", python("""
        import os
        open('cap', 'w').close()
        os.setxattr('cap', 'security.capability', bytes.fromhex('0100000200200000000000000000000000000000'))
        """), refused=True),
    Way("hard links to a file of the source", "ln h1 h2; echo more >>h2",
        check=lambda c: [has("h1", b"h\nmore\n")(c), has("h2", b"h\nmore\n")(c)]
        if has("h1", b"h\nmore\n")(c) or has("h2", b"h\nmore\n")(c) else None),
    Way("a change that keeps size and time", python("""
        import os
        st = os.stat('same'); f = open('same', 'r+b'); f.write(b'evil'); f.close()
        os.utime('same', ns=(st.st_atime_ns, st.st_mtime_ns))"""), check=has("same", b"evil\n")),
    Way("names that are commands, escapes, magic", python(f"""
        import os
        os.mkdir('names'); os.chdir('names')
        for name in {NAMES}:
            open(name, 'w').write('x')"""), check=names_came),
    Way("a path of 20,000 bytes", python("""
        import os
        for i in range(80):
            os.mkdir('p' * 250); os.chdir('p' * 250)
        open('deepest', 'w').close()""")),
    Way("contents are escapes", r"""printf '\033]0;t\007\033[2J\342\200\256\342\200\213\233x\n' >esc.txt
        mkdir "$(printf 'dir\033[31m')"; echo x >"$(printf 'dir\033[31m')/x" """, check=safe_terminal),
    Way("a link's text is an escape", r"""ln -s "$(printf '\033]0;t\007\342\200\256')" escl"""),
    Way("hooks, editor and agent files that come with apply", """
        mkdir -p .githooks .husky .vscode .claude .devcontainer .github/workflows
        for f in .githooks/pre-commit .husky/pre-commit .envrc; do
            printf '#!/bin/sh\\n@PAY@\\n' >$f; chmod +x $f; done
        echo '{"tasks":[{"runOptions":{"runOn":"folderOpen"},"command":"@PAY@"}]}' >.vscode/tasks.json
        echo '{"hooks":{}}' >.claude/settings.json; echo '{}' >.devcontainer/devcontainer.json
        echo 'on: push' >.github/workflows/x.yml
        echo '{"scripts":{"postinstall":"@PAY@"}}' >package.json""",
        told=["startup-file:.husky/pre-commit", "startup-file:.envrc",
              "startup-file:.vscode/tasks.json", "startup-file:.claude/settings.json",
              "ci-workflow:.github/workflows/x.yml", "package-script:package.json"]),
    Way("a policy of its own", "mkdir -p .sandglass; printf 'version: 1\\nwrites: direct\\nartifacts: "
        "[\"**\"]\\n' >.sandglass/policy.yaml", told=["startup-file:.sandglass/policy.yaml"]),
    Way("reports that are links and fifos", "mkdir coverage; ln -s @OUT@/victim coverage/l; mkfifo "
        "coverage/f; ln -s @OUT@ test-results; ln -s @OUT@/victim junit.xml; echo ok >junit-ok.xml",
        check=lambda c: [n for n in c.exported if "canary" in c.exported[n]] or
        (None if any(n.endswith("junit-ok.xml") for n in c.exported) else "no report was kept")),
    Way("attributes and ignores without end", "yes '[attr]m text diff=x filter=y merge=z' | "
        "head -n 100000 >.gitattributes; yes '*' | head -n 100000 >.gitignore; mkdir ga; "
        "mkfifo ga/.gitattributes; ln -s @OUT@/victim d2/.gitattributes"),
    Way("encodings and keywords", "printf '*.u working-tree-encoding=UTF-16 ident\\n*.v eol=crlf "
        "export-subst\\n' >enc/.gitattributes; printf 'a\\r\\n' >enc/x.v; printf '$Id$\\n' >enc/x.u",
        check=lambda c: has("enc/x.v", b"a\r\n")(c) or has("enc/x.u", b"$Id$\n")(c)),
]


# What no command can make, put into the layer by hand.

def node(name, kind, device):
    return lambda c: (os.mknod(f"{c.layer}/{name}", kind | 0o666, device), c.give(name))


def attribute(name, key, value, folder=False):
    def plant(c):
        full = f"{c.layer}/{name}"
        if folder:
            os.makedirs(full, exist_ok=True)
        elif not os.path.lexists(full):
            with open(full, "w", encoding="utf-8") as handle:
                handle.write("planted\n")
        c.give(name)
        space = "trusted" if c.who.uid == 0 else "user"
        os.setxattr(full, f"{space}.overlay.{key}", value)
    return plant


def set_id(c):
    full = f"{c.layer}/suid"
    with open(full, "w", encoding="utf-8") as handle:
        handle.write("#!/bin/sh\n")
    if c.who.uid:
        c.give("suid")
    os.chmod(full, 0o6777)
    if c.who.uid == 0:
        os.setxattr(full, "security.capability", bytes.fromhex("01000002" + "ff" * 8 + "00" * 8))


def fake_parent(c):
    """A directory of the source is a link in the layer, with a change to be looked for below."""
    os.symlink(c.out, f"{c.layer}/d")
    c.give("d")


def linked_in(c):
    """A file that is elsewhere, too, under a name of the layer."""
    os.link(f"{c.out}/open", f"{c.layer}/linked")


def git_is_a_link(c):
    os.symlink(f"{c.out}/evil.git", f"{c.layer}/.git")
    c.give(".git")


ROOT_NODES = [
    Way("a device node in the layer", planted=node("dev", stat.S_IFCHR, os.makedev(1, 3)),
        check=absent("dev")),
    Way("a block device in the layer", planted=node("blk", stat.S_IFBLK, os.makedev(8, 0)),
        check=absent("blk")),
]
PLANTED = [
    Way("a whiteout of nothing", planted=node("nothing", stat.S_IFCHR, 0), check=absent("nothing")),
    Way("a redirect to elsewhere", planted=attribute("r1", "redirect", b"/../../../../etc", True),
        check=lambda c: [n for n in os.listdir(f"{c.p.src}/r1")]
        if os.path.isdir(f"{c.p.src}/r1") else None),
    Way("a redirect to a parent", planted=attribute("r2", "redirect", b"..", True)),
    Way("a redirect into the git directory", planted=attribute("r3", "redirect", b"/.git/hooks", True)),
    Way("a redirect of a file", planted=attribute("r4", "redirect", b"/../out/victim"),
        check=lambda c: "canary" if "canary" in c.read("r4") else None),
    Way("a metacopy of a file elsewhere", planted=attribute("r5", "metacopy", b""),
        check=lambda c: "canary" if "canary" in c.read("r5") else None),
    Way("an opaque mark of no meaning", planted=attribute("d2", "opaque", b"zzz", True),
        check=lambda c: None if os.path.exists(f"{c.p.src}/d2/k") else "d2/k is gone"),
    Way("whiteouts as attributes", planted=lambda c: (attribute("w1", "whiteout", b"y")(c),
        attribute("d3", "opaque", b"x", True)(c))),
    Way("set-id and capabilities in the layer", planted=set_id, check=no_set_id),
    Way("a directory of the layer is a link", planted=fake_parent,
        check=link_as_text("d", "@OUT@")),
    Way("a file that is linked elsewhere", planted=linked_in,
        check=lambda c: None if os.stat(f"{c.out}/open").st_nlink < 3 and
        c.same_file("linked") else "another link"),
    Way("the layer's .git is a link", planted=git_is_a_link, check=commits_stayed),
]
# Alone, since nothing is applied while there is a conflict.
ALONE = [Way("an origin of garbage", planted=attribute("r6", "origin", b"\0\xfb" + b"\xff" * 90))]


# What still runs while somebody looks.

def loop(script):
    return python("import os, time, ctypes\nlibc = ctypes.CDLL(None)\nwhile True:\n" +
                  textwrap.indent(textwrap.dedent(script).strip(), "    ") + "\n    time.sleep(0.002)\n")


def nothing_of_outside(c):
    """Nobody followed a link while it was there for a moment."""
    return [n for n in c.exported if "canary" in c.exported[n]] or \
        [n for n, text in c.patch_parts() if "canary" in text] or \
        [n for n in ("sw", "race/x", "race/k") if "canary" in c.read(n)]


RUNNING = [
    Way("directories are renamed", loop("""
        for a, b in (('mv1', 'mv2'), ('mv2', 'mv1'), ('n1/n2', 'n3'), ('n3', 'n1/n2')):
            try: os.rename(a, b)
            except OSError: pass""")),
    Way("a file and a link to outside change places", loop("""
        for _ in range(50):
            open('sw.f', 'w').write('inside'); os.rename('sw.f', 'sw')
            try: os.symlink('@OUT@/victim', 'sw.l')
            except OSError: pass
            os.rename('sw.l', 'sw')"""), check=nothing_of_outside),
    Way("a directory and a link to outside change places", """
        mkdir race; echo x >race/x; ln -s @OUT@ race.l; cp race/x race/k
        """ + loop("libc.renameat2(-100, b'race', -100, b'race.l', 2)"), check=nothing_of_outside),
    Way("a file grows while it is read", "while :; do echo more; done | head -c 1M >grows; "
        "while sleep 0.02; do echo more >>grows; done"),
    Way("a fifo comes and goes", loop("""
        try: os.mkfifo('pf')
        except OSError: pass
        open('pt', 'w').write('x'); os.rename('pt', 'pf')""")),
    Way("files come and go", loop("""
        for i in range(60):
            open(f'come{i}', 'w').close()
        for i in range(60):
            os.remove(f'come{i}')""")),
    Way("refs move all the time", "while :; do git -c core.hooksPath=/dev/null -c user.name=x -c "
        "user.email=x commit -q --allow-empty -m x; sleep 0.05; done"),
    Way("the tree has stopped itself", "sh -c 'kill -STOP $$' & echo stop >stopped; kill -STOP $$"),
    Way("signals are ignored", "trap '' HUP INT TERM QUIT USR1 USR2 PIPE; while :; do sleep 1; done"),
    Way("processes as many as there can be", "while :; do sleep 1000 & done 2>/dev/null; wait"),
    Way("a big file that has no name", python("""
        import os, time
        f = open('big', 'wb'); os.remove('big')
        for _ in range(20): f.write(b'x' * (1 << 20))
        time.sleep(1000)""")),
]
