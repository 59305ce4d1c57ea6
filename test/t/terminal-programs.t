#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that fill the screen, used inside as outside.

The same keys are typed into the same program, bare and inside, on terminals that
are drawn. Where the program shows nothing of time or machine the two screens
must be equal, line by line; else the lines that matter must be there. What they
wrote to files is compared too.
"""

import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import SANDGLASS, Place, identities_once  # noqa: E402
from term import END, INTERRUPT, SUSPEND, Term  # noqa: E402

ESC = b"\x1b"


def start(place, inside, argv, rows=24, cols=80, env=None):
    before = [SANDGLASS, "run", "--quiet"] if inside else []
    t = Term(place, before + argv, rows=rows, cols=cols, drawn=True, env=env)
    if inside:
        t.until(t.is_raw, "raw")
    return t


def git(place, *args):
    return subprocess.run(place.who.prefix + ["git", *args], cwd=place.src, env=place.env(),
                          capture_output=True, text=True, check=True).stdout


def edit(place, inside):
    """vim: types, leaves the insert mode, saves, ends."""
    name = f"{place.src}/edited"
    if os.path.exists(name):
        os.unlink(name)
    with start(place, inside, ["vim", "-u", "NONE", "-N", "-i", "NONE", "edited"]) as t:
        t.see(r"^~")
        t.see("edited")
        t.send("ifirst line\rsecond line with \xe4\xf6\xfc")
        t.see("second line with")
        t.send(ESC)
        t.quiet()
        t.send("yyp:set number\r")
        t.see("3 second")
        t.send(":1,2s/line/LINE/\r")
        t.see("second LINE")
        t.quiet()
        screen = t.lines()
        t.send(":wq\r")
        status = t.ended()
        with open(name, encoding="utf-8") as handle:
            return status, screen, handle.read()


def suspend(place, inside):
    """vim is stopped by its key, the shell around has its screen, fg draws it again."""
    before = "\"$SG\" run --quiet " if inside else ""
    with Term(place, ["bash", "--norc", "--noprofile", "--noediting", "-i"], drawn=True,
              env={"PS1": "OUTER> ", "SG": SANDGLASS}) as t:
        t.see("OUTER>")
        t.line(f"{before}vim -u NONE -N -i NONE stopped")
        t.see("stopped.*New")
        t.send("isome text" + "\x1b")
        t.see("some text")
        t.quiet()
        t.send(SUSPEND)
        t.see(r"Stopped")
        t.quiet()
        t.line("echo between")
        t.see("^between")
        t.line("fg")
        t.see("^some text")
        t.quiet()
        screen = [line for line in t.lines() if line != "~"]
        t.send(":q!\r")
        t.quiet()
        t.line("echo aft''er $?")
        t.see("^after 0")
        return 0, screen, ""


def page(place, inside):
    """less: forward, a search, the end, a smaller window."""
    place.write(f"{place.src}/long", "\n".join(f"line {i} of many" for i in range(1, 501)), 0o644)
    with start(place, inside, ["less", "long"], env={"LESSHISTFILE": "-"}) as t:
        t.see("line 23 of many")
        t.send(" ")
        t.see("line 46 of many")
        t.send("/line 333\r")
        t.see("line 333 of many")
        t.quiet()
        t.resize(12, 60)
        t.see("line 343 of many")
        t.quiet()
        screen = t.lines()
        t.send("G")
        t.see("line 500 of many")
        t.send("q")
        return t.ended(), screen, ""


def panes(place, inside):
    """tmux: a session, a split, both sides, detached; the server ends with it or is ended."""
    sock = "/tmp/tmux-test" if inside else f"{place.tmp}/tmux-test"
    shell = "tmux -f /dev/null -S " + sock
    with start(place, inside, ["sh", "-c", f"{shell} new-session -x 80 -y 24 'PS1=one:; export PS1; "
                               f"exec sh'; echo status $?; {shell} ls | cut -d: -f1; {shell} kill-server"]) as t:
        t.see(r"^one:")
        t.send("echo le''ft\r")
        t.see("^left")
        t.send("\x02%")
        t.see("\u2502|\\|")
        time.sleep(0.3)
        t.send("PS1=two:; clear\r")
        t.see("two:")
        t.send("stty size; echo ri''ght\r")
        t.see("right")
        t.quiet()
        screen = [re.sub(r"[0-9]+:[0-9]+ [0-9]+-.*", "", line) for line in t.lines()]
        size = [line for line in screen if "24 " in line or "23 " in line]
        t.send("\x02d")
        t.see("status 0")
        return t.ended(), ["left" in "".join(screen), bool(size)], ""


def processes(place, inside):
    """htop and top: they draw, answer a key, end."""
    lines = []
    for argv, sign in ((["htop", "-d", "50"], "F10Quit|Quit"), (["top"], r"PID.*USER")):
        with start(place, inside, argv, rows=30, cols=100) as t:
            t.see(sign)
            t.quiet()
            t.send("q")
            lines.append((argv[0], t.ended()))
    return 0, lines, ""


def numbers(place, inside):
    """A python prompt: a line is edited, recalled, interrupted."""
    with start(place, inside, ["/usr/bin/python3", "-q"]) as t:
        t.see("^>>>")
        t.send("6*7\r")
        t.see("^42")
        t.quiet()
        t.send("\x1b[A\x7f8\r")  # up, delete the 7
        t.see("^48")
        t.send("while True: pass\r\r")
        time.sleep(0.3)
        t.send(INTERRUPT)
        t.see("^KeyboardInterrupt")
        t.quiet()
        screen = t.lines()
        t.send(END)
        return t.ended(), screen, ""


def nano(place, inside):
    with start(place, inside, ["nano", "-I", "noted"]) as t:
        t.see("GNU nano")
        t.send("a note")
        t.see("a note")
        t.quiet()
        screen = t.lines()
        t.send("\x0f\r")
        t.see("Wrote 1 line")
        t.send("\x18")
        status = t.ended()
    with open(f"{place.src}/noted", encoding="utf-8") as handle:
        text = handle.read()
    os.unlink(f"{place.src}/noted")
    return status, screen, text


def hunks(place, inside):
    """git add -p takes one of two hunks; git commit opens vim for its message."""
    body = [f"{i}\n" for i in range(1, 41)]
    git(place, "init", "-q")
    git(place, "config", "user.name", "Somebody")
    git(place, "config", "user.email", "somebody@example.com")
    place.write(f"{place.src}/hunks", "".join(body), 0o644)
    git(place, "add", "hunks")
    git(place, "commit", "-qm", "base")
    body[2], body[35] = "three\n", "thirty-six\n"
    place.write(f"{place.src}/hunks", "".join(body), 0o644)
    with start(place, inside, ["git", "add", "-p"]) as t:
        t.see(r"Stage this hunk \[y,n")
        t.send("n\r")
        t.see(r"\(2/2\) Stage this hunk")
        t.quiet()
        screen = t.lines()
        t.send("y\r")
        status = t.ended()
    staged = git(place, "diff", "--cached", "--unified=0")
    editor = {"GIT_EDITOR": "vim -u NONE -N -i NONE"}
    argv = ["env", *[f"{k}={v}" for k, v in editor.items()], "git", "commit"]
    with start(place, inside, argv) as t:
        t.see("Please enter the commit message")
        t.send("ione of two" + "\x1b")
        t.see("^one of two")
        t.quiet()
        t.send(":wq\r")
        status += t.ended()
    said = git(place, "log", "-1", "--format=%s", "--stat")
    git(place, "checkout", "-q", "-f", "HEAD", "--", ".")
    subprocess.run(["rm", "-rf", f"{place.src}/.git", f"{place.src}/hunks"], check=True)
    return status, screen, re.sub(r"index .*", "", staged) + said


def recorded(place, inside):
    """script makes a pty in the pty, and a shell in it has job control."""
    with start(place, inside, ["script", "-q", "-c", "bash --norc --noprofile -i", "/dev/null"],
               env={"PS1": "deep> "}) as t:
        t.see(r"^\S*[>$#]$")
        t.send("PS1=deep:\r")
        t.see("^deep:")
        t.send("sleep 788\r")
        time.sleep(0.3)
        t.send(SUSPEND)
        t.see("Stopped")
        t.send("kill -9 %1; sleep 0.5; echo d''one\r")
        t.see("^done")
        t.send("exit\r")
        return t.ended(), [], ""


def once(place, who, program):
    bare = program(place, False)
    inside = program(place, True)
    name = f"{who}: {program.__name__}: {(program.__doc__ or '').split(':')[0].split('.')[0]}"
    want = 128 - bare[0] if bare[0] < 0 else bare[0]
    tap.ok(inside[0] == want, f"{name}: status", bare[0], inside[0])
    tap.ok(bare[1] == inside[1], f"{name}: the screen", *[
        f"{a!r} but inside {b!r}" for a, b in zip(bare[1], inside[1]) if a != b])
    if bare[2] or inside[2]:
        tap.ok(bare[2] == inside[2], f"{name}: what it wrote", bare[2], inside[2])


def main():
    for identity in identities_once():
        for program in (edit, suspend, page, panes, processes, numbers, nano, hunks, recorded):
            if len(sys.argv) > 1 and program.__name__ not in sys.argv[1:]:
                continue
            place = Place(identity)
            try:
                tap.attempt(f"{identity.name}: {program.__name__}", once, place, identity.name,
                            program)
            finally:
                place.close()
    return tap.done()


sys.exit(main())
