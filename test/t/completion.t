#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The shells complete what the program takes, and nothing else.

What is expected comes from the program itself: its verbs from `help`, options
and their texts from `VERB --help`, choices from the error that names them. What
is offered comes from real shells: bash with and without the bash-completion
package, zsh at a terminal, fish.
"""

import fcntl
import os
import pty
import re
import select
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import SANDGLASS, SANITIZED  # noqa: E402

PACKAGE = "/usr/share/bash-completion/bash_completion"
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb",
       "DEMO_VARIABLE": "x"}
BREAKS = "=:"


def files():
    """Where the completions of this build are, by shell."""
    top = os.path.dirname(SANDGLASS)
    made = f"{top}/tools/completion"
    if os.path.isdir(made):
        return {"bash": f"{made}/sandglass.bash", "zsh": f"{made}/_sandglass",
                "fish": f"{made}/sandglass.fish"}
    share = os.path.join(os.path.dirname(top), "share")
    return {"bash": f"{share}/bash-completion/completions/sandglass.bash",
            "zsh": f"{share}/zsh/site-functions/_sandglass",
            "fish": f"{share}/fish/vendor_completions.d/sandglass.fish"}


# What the program says.

def say(*args):
    done = subprocess.run([SANDGLASS, *args], capture_output=True, text=True, env=ENV, check=False,
                          stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr


class Option:
    def __init__(self, short, name, arg, text):
        self.spellings = [s for s in (short, name) if s]
        self.name, self.arg, self.text = self.spellings[-1], arg, text


def options_of(text):
    found = []
    for line in text.split("\n"):
        new = re.match(r"^  (?:(-\w)(?:, )?|    )(--[a-z-]+)?(?: ([A-Z][A-Z=\[\]]*))?(?:\s+(.*))?$",
                       line)
        if new and (new.group(1) or new.group(2)):
            found.append(Option(*new.groups()))
        elif found and line.startswith("       "):
            found[-1].text = f"{found[-1].text or ''} {line.strip()}".strip()
    return found


class Verb:
    """A verb as `help` tells it; path is the words that lead to it."""

    def __init__(self, path):
        self.path = path
        text = say("help", *path)
        self.options = options_of(text) if path else []
        self.subs = dict(re.findall(r"^  ([a-z]+) +(.*)$", text.split("\nexamples:")[0], re.M))
        later = text.find("not in this version:")
        if later >= 0:
            for word in text[later:].split("\n\n")[0].split():
                self.subs.pop(word, None)
        self.below = [Verb(path + [name]) for name in self.subs]

    def walk(self):
        yield self
        for sub in self.below:
            yield from sub.walk()

    def choices(self, option):
        """The words that the program takes here, from its complaint about none of them."""
        said = say(*self.path, option.name, "")
        list_ = re.search(re.escape(option.name) + r': "": must be ([a-z-]+(?:, [a-z-]+)*'
                          r"(?: or [a-z-]+)?)$", said, re.M)
        return re.split(r", | or ", list_.group(1)) if list_ else []


# The shells. Each offers(line) gives {word: description}, and what was said on stderr.

def split(line):
    """As bash does: words, of which = and : are some of their own."""
    words = [""]
    for part in re.findall(r"'[^']*'?|\s+|[=:]+|[^\s=:']+", line):
        if part.isspace():
            words.append("")
        elif part[0] in BREAKS and words[-1]:
            words.append(part)
        elif words[-1] and words[-1][0] in BREAKS:
            words.append(part)
        else:
            words[-1] += part
    return words


class Bash:
    def __init__(self, name, package, file, demo):
        self.name = name
        # compopt works only in a completion that readline asked for
        self.setup = ("compopt() { :; }\n" + (f". {PACKAGE}\n" if package else "")
                      + f". {shlex.quote(file)}\n" + demo["bash"])

    def offers(self, line, cwd):
        words = split(line)
        script = self.setup + f"""
COMP_WORDS=({' '.join(shlex.quote(w) for w in words)})
COMP_CWORD={len(words) - 1} COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)} COMP_TYPE=9
_sandglass sandglass {shlex.quote(words[-1])} {shlex.quote(words[-2])}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
        done = subprocess.run(["bash", "--noprofile", "--norc", "-c", script], env=ENV, cwd=cwd,
                              capture_output=True, text=True, check=False, timeout=60)
        return {w: None for w in done.stdout.split("\n") if w}, done.stderr


class Fish:
    name = "fish"

    def __init__(self, file, demo):
        self.setup = f"source {shlex.quote(file)}\n" + demo["fish"]
        self.home = tempfile.mkdtemp(prefix="sgc.")

    def offers(self, line, cwd):
        script = self.setup + f"\ncomplete -C {shlex.quote(line)}"
        done = subprocess.run(["fish", "--no-config", "-c", script],
                              env={**ENV, "HOME": self.home}, cwd=cwd,
                              capture_output=True, text=True, check=False, timeout=60)
        found = {}
        for row in done.stdout.split("\n"):
            if row:
                word, _, text = row.partition("\t")
                found[word.rstrip("/") if word.endswith("/") else word] = text
        return found, done.stderr

    def close(self):
        shutil.rmtree(self.home)


ZSH = r"""
fpath=(%(folder)s $fpath)
autoload -Uz compinit && compinit -u -d $ZDOTDIR/dump
zstyle ':completion:*' list-colors ''
zstyle ':completion:*' menu no
zstyle ':completion:*' list-grouped no
setopt no_list_beep no_auto_list no_auto_menu
unset PS1; PS1=; PS2=; PROMPT_EOL_MARK=
%(demo)s
# What is added is noted, with its description; queries (-O -A -D) pass.
compadd() {
	local -a hits texts
	local i at=${@[(i)(-|--)]}
	if [[ " ${@[1,at]}" == *' -'[a-zA-Z12]#[OAD]* ]]; then
		builtin compadd "$@"
		return
	fi
	local d=${@[1,at][(i)-[a-zA-Z]#d]}
	(( d < at )) && texts=("${(@P)@[d+1]}")
	builtin compadd -A hits -D texts "$@"
	for i in {1..$#hits}; do
		(( $#hits )) && print -r -- "$hits[i]"$'\t'"${texts[i]-}" >>$OUT
	done
	builtin compadd "$@"
}
finished() { print END >>$OUT }
noted() { comppostfuncs=(finished) }
precmd() { print READY >>$OUT }
compprefuncs=(noted)
"""


class Zsh:
    """At a terminal of its own, since completion needs the line editor."""
    name = "zsh"

    def __init__(self, file, demo):
        self.home = tempfile.mkdtemp(prefix="sgc.")
        self.out = f"{self.home}/out"
        with open(f"{self.home}/.zshrc", "w", encoding="utf-8") as f:
            f.write(ZSH % {"folder": shlex.quote(os.path.dirname(file)), "demo": demo["zsh"]})

    def offers(self, line, cwd):
        with open(self.out, "w", encoding="utf-8"):
            pass
        pid, master = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 400, 0, 0))
            os.chdir(cwd)
            os.execvpe("zsh", ["zsh", "-d", "-i"],
                       {**ENV, "ZDOTDIR": self.home, "HOME": self.home, "OUT": self.out})
        said = self._until(master, "READY\n", b"")
        os.write(master, line.encode() + b"\t")
        said = self._until(master, "END\n", said)
        os.close(master)
        os.waitpid(pid, 0)
        with open(self.out, encoding="utf-8") as f:
            text = f.read()
        found = {}
        for row in text.split("\n"):
            word, tab, about = row.partition("\t")
            word = re.sub(r"\\(.)", r"\1", word)
            if tab:
                found[word] = re.sub(r"^\S+ +-- ", "", about)
        wrong = "" if "END\n" in text else f"no end: {said!r}"
        wrong += "".join(re.findall(r"[^\r\n]*(?:_arguments|command not found|parse error|"
                                    r"bad |comparguments)[^\r\n]*",
                                    said.decode("utf-8", "replace")))
        return found, wrong

    def _until(self, master, mark, said):
        until = time.monotonic() + 30
        while time.monotonic() < until:
            if select.select([master], [], [], 0.02)[0]:
                try:
                    said += os.read(master, 65536)
                except OSError:
                    break
            with open(self.out, encoding="utf-8") as f:
                if mark in f.read():
                    break
        return said

    def close(self):
        shutil.rmtree(self.home)


DEMO = {
    "bash": "_demo() { COMPREPLY=(of-demo \"word:$2\"); }\ncomplete -F _demo demo\n",
    "zsh": "_demo() { compadd of-demo; compadd -U word:$PREFIX }\ncompdef _demo demo\n",
    "fish": "complete -c demo -f -a 'of-demo word:(commandline -ct)'\n",
}


class Rows:
    def __init__(self, shell, top, cwd):
        self.shell, self.top, self.cwd = shell, top, cwd

    def offers(self, line):
        return self.shell.offers(line, self.cwd)

    def same(self, line, expected, name, also=()):
        """Exactly these are offered, but for what is in also."""
        got, wrong = self.offers(line)
        got = set(got) - set(also)
        tap.ok(got == set(expected) and not wrong and expected, f"{self.shell.name}: {name}", line,
               f"not offered: {sorted(set(expected) - got)}",
               f"not expected: {sorted(got - set(expected))}", wrong)

    def some(self, line, there, absent, name):
        got, wrong = self.offers(line)
        tap.ok(set(there) <= set(got) and not set(absent) & set(got) and not wrong,
               f"{self.shell.name}: {name}", line,
               f"not offered: {sorted(set(there) - set(got))}",
               f"offered: {sorted(set(absent) & set(got))}", f"all: {sorted(got)[:20]}", wrong)

    def verbs(self):
        for verb in self.top.walk():
            if verb.subs:
                line = " ".join(["sandglass", *verb.path, ""])
                self.same(line, verb.subs, f"verbs of `{line.strip()}`")
        self.same("sandglass d", [v for v in self.top.subs if v.startswith("d")],
                  "verbs that begin with d")
        self.same("sandglass help ", self.top.subs, "verbs behind help")

    def options(self):
        for verb in self.top.walk():
            if not verb.path:
                continue
            line = " ".join(["sandglass", *verb.path, "-"])
            wanted = [s for o in verb.options for s in o.spellings]
            if self.shell.name == "fish":  # a lone dash offers long ones only where there are both
                got, _ = self.offers(line)
                tap.ok({o.name for o in verb.options} <= set(got) <= set(wanted),
                       f"fish: options of `{' '.join(verb.path)}`", sorted(got), wanted)
            else:
                self.same(line, wanted, f"options of `{' '.join(verb.path)}`")

    def texts(self):
        """Descriptions are the texts of the help, option by option."""
        for verb in self.top.walk():
            if not verb.path:
                continue
            got, _ = self.offers(" ".join(["sandglass", *verb.path, "--"]))
            want = {o.name: o.text for o in verb.options if o.name.startswith("--")}
            wrong = {n: got.get(n) for n, t in want.items()
                     if " ".join((got.get(n) or "").split()) != t}
            tap.ok(want and not wrong,
                   f"{self.shell.name}: descriptions of `{' '.join(verb.path)}`", wrong)
        got, _ = self.offers("sandglass ")
        tap.ok(got == self.top.subs, f"{self.shell.name}: descriptions of the verbs", got)

    def choices(self):
        count = 0
        for verb in self.top.walk():
            for option in verb.options:
                words = verb.choices(option) if option.arg else []
                if not words:
                    continue
                count += 1
                line = " ".join(["sandglass", *verb.path, option.name])
                self.same(line + " ", words, f"choices of `{line}`")
                fish = self.shell.name == "fish"
                glued = [f"{option.name}={w}" for w in words] if fish else words
                self.same(line + "=", glued, f"choices of `{line}=`")
        tap.ok(count >= 4, f"{self.shell.name}: options with choices were found", count)

    def values(self):
        self.some("sandglass run --read ", ["a-file", "a-folder", "with space"], ["--json"],
                  "files and directories of --read")
        self.some("sandglass run --read a-fi", ["a-file"], ["a-folder"], "files that begin so")
        self.some("sandglass run --source ", ["a-folder"], ["a-file", "with space"],
                  "directories of --source")
        self.some("sandglass run --env DEMO_", ["DEMO_VARIABLE"], ["a-file"],
                  "variables of the caller for --env")
        for option in ("--timeout", "--memory", "-c"):
            self.some(f"sandglass run {option} ", [], ["--json", "a-file", "run"],
                      f"nothing for the value of {option}")
        self.some("sandglass run --json --read x --", ["--read", "--quiet"], ["--json"],
                  "an option is offered once, a repeatable one again")

    def commands(self):
        for line in ("sandglass run tru", "sandglass run --json --mode read-only tru",
                     "sandglass run --mode=read-only -- tru", "sandglass run --env A=b:c tru"):
            self.some(line, ["true"], ["--json", "a-file"], f"commands: {line}")
        for line in ("sandglass run demo ", "sandglass run --timeout 5s -- demo a b ",
                     "sandglass run --env=A=b:c --read x demo --mode "):
            self.some(line, ["of-demo"], ["--json", "read-only"], f"the command's own: {line}")
        self.some("sandglass run demo --m", ["word:--m"], ["--mode", "--memory"],
                  "options behind the command are the command's")
        self.some("sandglass run -c true a-", ["a-file", "a-folder"], [],
                  "behind -c SCRIPT files")

    def oddities(self):
        for line in ("sandglass nothing ", "sandglass run --no-such --", "sandglass shell x ",
                     "sandglass version x ", "sandglass run --mode=x=y", "sandglass run 'a b",
                     "sandglass doctor --json x", "sandglass help run x y ", "sandglass run ü\\ "):
            _, wrong = self.offers(line)
            tap.ok(not wrong, f"{self.shell.name}: no complaint: {line}", wrong)


def found_alone(where):
    """Each shell finds the file where it is installed, without being told."""
    share = os.path.join(os.path.dirname(os.path.dirname(SANDGLASS)), "share")
    if not where["bash"].startswith(share):
        share = tempfile.mkdtemp(prefix="sgc.")
        for shell, folder in (("bash", "bash-completion/completions"),
                              ("fish", "fish/vendor_completions.d")):
            os.makedirs(f"{share}/{folder}")
            shutil.copy(where[shell], f"{share}/{folder}")
    env = {**ENV, "XDG_DATA_DIRS": f"{share}:/usr/share", "HOME": "/nonexistent",
           "PATH": f"{os.path.dirname(SANDGLASS)}:{ENV['PATH']}"}  # fish asks for what is there only
    bash = subprocess.run(["bash", "--noprofile", "--norc", "-c",
                           f". {PACKAGE}; _completion_loader sandglass; complete -p sandglass"],
                          env=env, capture_output=True, text=True, check=False)
    tap.ok("-F _sandglass sandglass" in bash.stdout, "bash finds the file of share",
           bash.stdout, bash.stderr)
    fish = subprocess.run(["fish", "-c", "complete -C 'sandglass doct'"], env=env,
                          capture_output=True, text=True, check=False)
    tap.ok(fish.stdout.startswith("doctor\t"), "fish finds the file of share", fish.stdout,
           fish.stderr)
    if share.startswith(tempfile.gettempdir() + "/sgc."):
        shutil.rmtree(share)


def at_a_terminal(file, cwd):
    """bash itself, with its line editor: what TAB makes of the line."""
    with tempfile.NamedTemporaryFile("w", suffix=".rc", encoding="utf-8") as rc:
        rc.write(f"PS1='> '\nsandglass() {{ printf '<%s>' \"$@\"; }}\n. {shlex.quote(file)}\n")
        rc.flush()
        for line, want in (("sandglass run --mode=rea\t\n", "<run><--mode=read-only>"),
                           ("sandglass run --mod\tdang\t\n", "<run><--mode><danger-full-access>"),
                           ("sandglass run --read=a-fo\t\n", "<run><--read=a-folder/>"),
                           ("sandglass run --read with\t\n", "<run><--read><with space>")):
            pid, master = pty.fork()
            if pid == 0:
                os.chdir(cwd)
                os.execvpe("bash", ["bash", "--noprofile", "--rcfile", rc.name, "-i"],
                           {**ENV, "HOME": "/nonexistent"})
            said, until, sent = b"", time.monotonic() + 20, False
            while time.monotonic() < until and want.encode() not in said:
                if select.select([master], [], [], 0.1)[0]:
                    try:
                        said += os.read(master, 65536)
                    except OSError:
                        break
                if not sent and b"> " in said:
                    os.write(master, line.encode())
                    sent = True
            os.close(master)
            os.waitpid(pid, 0)
            tap.ok(want.encode() in said, f"bash at a terminal: {line.strip()!r}", said)


def main():
    where = files()
    for shell, file in where.items():
        tap.ok(os.path.isfile(file), f"{shell}: completions are there", file)
    top = Verb([])
    tap.ok(set(top.subs) >= {"run", "shell", "doctor", "help", "version"}, "verbs of help", top.subs)
    cwd = tempfile.mkdtemp(prefix="sgc.")
    os.mkdir(f"{cwd}/a-folder")
    for name in ("a-file", "with space"):
        with open(f"{cwd}/{name}", "w", encoding="utf-8"):
            pass
    shells = [Bash("bash", False, where["bash"], DEMO),
              Bash("bash with bash-completion", True, where["bash"], DEMO),
              Fish(where["fish"], DEMO), Zsh(where["zsh"], DEMO)]
    try:
        # What a sanitized build adds is the program that is asked; one shell asks all of it.
        for shell in shells[:1] if SANITIZED else shells:
            rows = Rows(shell, top, cwd)
            kinds = [rows.verbs, rows.options, rows.choices, rows.values, rows.commands,
                     rows.oddities]
            if shell.name in ("fish", "zsh"):
                kinds.append(rows.texts)
            for kind in kinds:
                tap.attempt(f"{shell.name} {kind.__name__}", kind)
        tap.attempt("installed", found_alone, where)
        tap.attempt("terminal", at_a_terminal, where["bash"], cwd)
    finally:
        shutil.rmtree(cwd)
        for shell in shells:
            if hasattr(shell, "close"):
                shell.close()
    return tap.done()


sys.exit(main())
