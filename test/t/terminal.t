#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A terminal, as a person uses it all day.

A shell with job control sits on a pty, and a command runs inside from it: keys
reach the command and the command alone, the outer shell gets its terminal back
as it was at every end and stop, sizes are passed on, the host's terminal is out
of reach, and where only some of the three descriptors are terminals nobody takes
the keys of another program. Bare runs are the controls.
"""

import hashlib
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import SANDGLASS, Place, alive, descendants, identities_once, wait_for  # noqa: E402
from term import END, INTERRUPT, QUIT, SUSPEND, Shell, Term  # noqa: E402

RUN = "$SG run --quiet"
INNER = r"\x1b\[\?2004hinner> "  # and not the echo of the line that sets it


def shell(place, **more):
    env = dict(more.pop("env", {}), SG=SANDGLASS)
    return Shell(place, env=env, **more)


def state(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as handle:
            return handle.read().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return ""


def named(top, word):
    """Those of the descendants of `top` that have the word among their arguments."""
    found = []
    for pid in descendants(top):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as handle:
                argv = handle.read().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if word.encode() in argv:
            found.append(pid)
    return found


def ready(t, *after):
    """Until keys go to the command."""
    t.until(t.is_raw, "raw")
    for pattern in after:
        t.expect(pattern)
    if not after:
        time.sleep(0.1)  # raw is a moment before the command is there to be stopped


# What is where: a script that looks from inside.
LOOK = r"""
import ctypes, glob, os, sys
dev, ino = int(sys.argv[1]), int(sys.argv[2])
host = []
for path in glob.glob("/proc/*/fd/*") + glob.glob("/dev/pts/*") + glob.glob("/dev/tty*"):
    try:
        st = os.stat(path)
    except OSError:
        continue
    if (st.st_dev, st.st_ino) == (dev, ino):
        host.append(path)
print("names", *[os.ttyname(fd) for fd in (0, 1, 2)])
print("host", *host)
libc = ctypes.CDLL(None, use_errno=True)
if len(sys.argv) > 3:
    sys.exit(0)
for name, request in (("sti", 0x5412), ("linux", 0x541c)):
    done = []
    for fd in (0, 1, 2, os.open("/dev/tty", os.O_RDWR)):
        if libc.ioctl(fd, ctypes.c_ulong(request), b"#") == 0:
            done.append(fd)
        elif ctypes.get_errno() != 1:
            done.append(f"{fd}:errno{ctypes.get_errno()}")
    print(name, *done)
print("group", os.tcgetpgrp(0) == os.getpgrp())
"""


def own_terminal(place, who):
    place.write(f"{place.src}/look.py", LOOK, 0o644)
    with shell(place) as t:
        st = os.stat(t.name)
        look = f"/usr/bin/python3 look.py {st.st_dev} {st.st_ino}"
        bare = t.does(look + " only")[1]
        inside = t.does(f"{RUN} {look}")[1]
        tap.ok("host /" in bare, f"{who}: control: a bare command has the host's terminal", bare)
        tap.ok("names /dev/pts/0 /dev/pts/0 /dev/pts/0" in inside and
               re.search(r"^host ?$", inside, re.M) is not None,
               f"{who}: the terminal inside is its own, the host's is nowhere", inside)
        tap.ok(re.search(r"^sti ?$", inside, re.M) and re.search(r"^linux ?$", inside, re.M),
               f"{who}: no key can be pushed into any terminal", inside)
        tap.ok("group True" in inside, f"{who}: the command is the foreground job", inside)
        status, text = t.does(f"{RUN} sh -c 'exec </dev/null >/dev/null 2>&1; sleep 0.3; "
                              "echo late >/dev/tty'")
        tap.ok(status == 0 and text == "late\n",
               f"{who}: the terminal stays when the command lets go of it", text)


def settings_inside(place, who):
    with shell(place) as t:
        t.does("stty iutf8 erase ^H intr ^G -echoctl")
        bare = t.does("stty -g")[1]
        inside = t.does(f"{RUN} stty -g")[1]
        tap.ok(bare == inside, f"{who}: the settings are the caller's", bare, inside)
        t.does("stty sane")
        for term in ("unset TERM", "export TERM=dumb", "export TERM=no-such-terminal"):
            status, text = t.does(f"{term}; {RUN} sh -c 'echo \"<${{TERM-unset}}>\"; exit 4'")
            want = {"unset TERM": "<unset>"}.get(term, f"<{term.split('=')[-1]}>")
            tap.ok(status == 4 and want in text, f"{who}: {term}", text)


def keys(place, who):
    with shell(place) as t:
        for key, status, name in ((INTERRUPT, 130, "Ctrl-C"), (QUIT, 131, "Ctrl-\\"),
                                  (END, 0, "Ctrl-D")):
            t.line(f"{RUN} cat")
            ready(t)
            t.send("text\r")
            t.expect("text\r\ntext\r\n")
            t.send(key)
            t.prompt()
            tap.ok(t.last() == status and t.settings() == t.at_rest,
                   f"{who}: {name} ends the command, status {status}", t.rest())
        t.line(f"{RUN} sh -c 'trap \"echo caught\" INT; echo up; while :; do sleep 0.05; done'")
        ready(t, r"\nup\r")
        t.send(INTERRUPT)
        t.expect("caught")
        t.send(INTERRUPT)
        t.expect("caught")
        t.send(QUIT)
        t.prompt()
        tap.ok(t.last() == 131, f"{who}: a command that handles Ctrl-C keeps it")


def inner_shell(place, who):
    with shell(place) as t:
        t.line("$SG shell --quiet --env PS1='inner> '")
        t.expect(INNER)
        t.line("sleep 777")
        t.until(lambda: named(t.pid, "777"), "started")
        time.sleep(0.1)
        t.send(INTERRUPT)
        t.expect(INNER)
        t.line("echo in''side $?")
        t.expect("inside 130\r")
        tap.ok(True, f"{who}: Ctrl-C in an inner shell ends its child only")
        t.expect(INNER)
        t.line("sleep 778")
        t.until(lambda: named(t.pid, "778"), "started")
        time.sleep(0.1)
        t.send(SUSPEND)
        t.expect(r"Stopped.*inner> ")
        t.line("jobs; echo go''ing")
        t.expect(r"Stopped +sleep 778\r\n.*going\r\n.*inner> ")
        t.line("fg")
        t.expect(r"sleep 778\r\n")
        time.sleep(0.1)
        t.send(INTERRUPT)
        t.expect(INNER)
        tap.ok(True, f"{who}: an inner shell has job control")
        t.line("exit 9")
        t.prompt()
        tap.ok(t.last() == 9 and t.settings() == t.at_rest, f"{who}: its status is shell's")
        t.line("$SG shell --quiet --env PS1='inner> '")
        t.expect(INNER)
        t.send(END)
        t.prompt()
        tap.ok(t.last() == 0, f"{who}: Ctrl-D ends it")


def stops(place, who):
    with shell(place) as t:
        t.line(f"{RUN} sh -c 'sleep 779 & cat'")
        ready(t)
        t.send("one\r")
        t.expect("one\r\none\r\n")
        t.send(SUSPEND)
        t.expect("Stopped")
        t.prompt()
        there = named(t.pid, "779") + named(t.pid, "cat")
        tap.ok(len(there) == 2 and all(state(pid) == "T" for pid in there),
               f"{who}: Ctrl-Z stops the whole tree", [(p, state(p)) for p in there])
        tap.ok(t.settings() == t.at_rest, f"{who}: the shell has its terminal meanwhile")
        t.resize(41, 113)
        t.line("fg")
        ready(t)
        t.send("two\r")
        t.expect("two\r\ntwo\r\n")
        t.send(END)
        t.prompt()
        tap.ok(t.last() == 0 and t.settings() == t.at_rest, f"{who}: fg goes on with it")

        t.line(f"{RUN} sh -c 'read x; stty size'")
        ready(t)
        t.send(SUSPEND)
        t.prompt()
        t.resize(42, 114)
        t.line("fg")
        ready(t)
        t.send("\r")
        t.expect("42 114")
        t.prompt()
        tap.ok(True, f"{who}: a size that changed while it was stopped")

        t.line(f"{RUN} sh -c 'sleep 0.7; echo BACK''GROUND'")
        ready(t)
        t.send(SUSPEND)
        t.prompt()
        t.line("bg")
        t.prompt()
        t.expect("BACKGROUND")
        t.line("wait %1; echo st''atus $?")
        t.expect(r"status 0\r")
        tap.ok(t.settings() == t.at_rest, f"{who}: bg goes on in the background")
        t.prompt()

        t.line(f"{RUN} cat")
        ready(t)
        for _ in range(3):
            t.send(SUSPEND)
            t.prompt()
            t.line("bg")
            t.prompt()
            t.line("fg")
            ready(t)
            t.send("again\r")
            t.expect("again\r\nagain\r\n")
        t.send(END)
        t.prompt()
        tap.ok(t.last() == 0, f"{who}: stopped, in the background, in the foreground, three times")

        t.line("sh -c '$SG run --quiet cat; echo af''ter $?'")
        ready(t)
        t.send(SUSPEND)
        t.prompt()
        t.line("fg")
        ready(t)
        t.send(END)
        t.expect("after 0")
        t.prompt()
        tap.ok(True, f"{who}: Ctrl-Z stops the script around it too")

        # No shell that could go on with it: the key has no effect, as bare.
    with Term(place, [SANDGLASS, "run", "--quiet", "cat"]) as t:
        ready(t)
        t.send(SUSPEND)
        t.send("three\r")
        t.expect("three\r\nthree\r\n")
        t.send(END)
        tap.ok(t.ended() == 0, f"{who}: Ctrl-Z without a shell around is no trap")


def signals(place, who):
    with shell(place) as t:
        for way in ("cat", "--no-tty cat"):
            t.line(f"{RUN} {way}")
            t.until(lambda: len(named(t.pid, "cat")) == 2, "started")  # sandglass names it too
            t.quiet(0.1)
            front = t.job()
            os.kill(front, signal.SIGTSTP)
            t.prompt()
            there = [pid for pid in named(t.pid, "cat") if pid != front]
            stopped = wait_for(lambda: all(state(pid) == "T" for pid in there), 2)
            tap.ok(stopped and there and t.settings() == t.at_rest,
                   f"{who}: TSTP to sandglass stops both, {way}", [state(p) for p in there])
            t.line("fg")
            t.expect(r"\n")
            t.until(lambda: t.job() == front, "in the foreground")
            time.sleep(0.3)
            t.send("four\r")
            t.expect("four\r\nfour\r\n")
            t.send(END)
            t.prompt()
            tap.ok(t.last() == 0, f"{who}: and fg goes on, {way}")
        t.line(f"{RUN} cat")
        ready(t)
        front = t.job()
        os.kill(front, signal.SIGSTOP)
        t.prompt()
        t.does("stty sane")  # a shell that keeps no settings for its jobs
        t.at_rest = t.settings()
        t.line("fg")
        ready(t)
        t.send("five\r")
        t.expect("five\r\nfive\r\n")
        t.send(END)
        t.prompt()
        tap.ok(t.last() == 0 and not t.is_raw(), f"{who}: STOP and fg")
        for sig in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            t.line(f"{RUN} sh -c 'echo up; exec sleep 780'")
            ready(t, r"\nup\r")
            os.kill(t.job(), sig)
            t.prompt()
            tap.ok(t.last() == 128 + sig and t.settings() == t.at_rest and
                   not named(t.pid, "780"), f"{who}: {sig.name} ends both, the terminal is as before")


WINCH = r"""
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})
print("up", flush=True)
while True:
    signal.sigwait({signal.SIGWINCH})
    print(*os.get_terminal_size()[::-1], flush=True)
"""


def sizes(place, who):
    with shell(place) as t:
        for rows, cols in ((37, 101), (1, 1), (0, 0), (65535, 65535), (24, 80)):
            t.resize(rows, cols)
            text = t.does(f"{RUN} stty size")[1]
            tap.ok(text == f"{rows} {cols}\n", f"{who}: {rows} rows, {cols} columns", text)
        place.write(f"{place.src}/winch.py", WINCH, 0o644)
        t.line(f"{RUN} /usr/bin/python3 winch.py")
        ready(t, r"\nup\r")
        for rows, cols in ((30, 90), (1, 1), (50, 200)):
            t.resize(rows, cols)
            t.expect(f"{rows} {cols}\r")
        tap.ok(True, f"{who}: a change of the size reaches the command")
        t.send(QUIT)
        t.prompt()


def some_terminals(place, who):
    with shell(place) as t:
        tty = ("for i in 0 1 2; do test -t $i && printf T || printf -; done; echo")
        rows = (("", "", "TTT"), ("", " | cat", "--- "), ("true | ", "", "---"),
                ("", " 2>/dev/null", "---"), ("true | ", " | cat", "---"))
        for before, after, want in rows:
            for option, shown in (("", want), ("--tty", "TTT"), ("--no-tty", "---")):
                status, text = t.does(f"{before}{RUN} {option} -c '{tty}'{after}")
                tap.ok(status == 0 and text == shown.strip() + "\n" and t.settings() == t.at_rest,
                       f"{who}: {before}run {option}{after}", status, repr(text))
        status, text = t.does(f"(sleep 0.3; yes | head -n 100000) | {RUN} --tty "
                              "sh -c 'stty -echo; cat' | sha256sum")
        tap.ok(status == 0 and hashlib.sha256(b"y\r\n" * 100000).hexdigest() in text,
               f"{who}: lines from a pipe into a pty, and their end", text)
        status, text = t.does(f"printf 'a\\nb' | {RUN} --tty sh -c 'stty -echo; cat; echo; echo end'")
        tap.ok(status == 0 and text.endswith("end\n"), f"{who}: so does a line without an end", text)
        status, text = t.does(f"{RUN} --tty ls /proc/self/fd | cat >/dev/null; echo ok")
        tap.ok(text == "ok\n" and t.settings() == t.at_rest, f"{who}: --tty into a pipe", text)

        t.line(f"{RUN} seq 1 100000 | less")
        t.expect(r"\n:")
        t.until(t.is_raw, "less has the keys")
        time.sleep(0.5)
        for _ in range(10):
            t.send(" ")
            t.expect(":")
        t.send(" " * 20)  # faster than it draws: some wait to be read
        t.expect(r"\n713\r?\n:")
        t.send("G")
        t.expect("100000")
        t.send("q")
        t.prompt(5)
        t.line(f"{RUN} seq 1 3000000 | less")
        t.expect(r"\n:")
        t.send("G")
        time.sleep(0.2)
        t.send("q")  # while it reads lines and no keys
        t.prompt()
        tap.ok(t.settings() == t.at_rest, f"{who}: a pager behind a pipe gets each of its keys",
               t.rest())
        t.line("(sleep 0.3; exec $SG run --quiet seq 1 3000000) | less")
        t.until(t.is_raw, "less has the keys first")
        t.expect(r"\n:")
        t.send("G")
        time.sleep(0.2)
        t.send("q")
        t.prompt()
        tap.ok(t.settings() == t.at_rest, f"{who}: also of one that was there first")
        t.line(f"{RUN} cat | tr a-z A-Z")
        t.until(lambda: len(named(t.pid, "cat")) >= 2, "started")
        t.send("lower\r")
        t.send(END)
        t.expect("LOWER")
        t.prompt()
        tap.ok(t.last() == 0, f"{who}: lines are read where only stdout is a pipe")
        t.line(f"stty -icanon min 1; {RUN} head -c 3 > keys; stty sane")
        t.until(t.is_raw, "by keys")
        t.until(lambda: named(t.pid, "head"), "started")
        t.send("xyz")
        t.prompt()
        with open(f"{place.src}/keys", encoding="utf-8") as handle:
            tap.ok(handle.read() == "xyz", f"{who}: a terminal that gave keys before gives keys")
        t.does("stty sane")
        t.at_rest = t.settings()
        t.line(f"{RUN} cat | cat")
        t.until(lambda: len(named(t.pid, "cat")) >= 2, "started")
        t.quiet(0.2)
        t.send(INTERRUPT)
        t.prompt()
        tap.ok(t.last() == 130 and t.settings() == t.at_rest, f"{who}: Ctrl-C with a pipeline")


def bytes_through(place, who):
    raw = os.urandom(1 << 20) * 10 + bytes(range(256)) * 4096
    digest = hashlib.sha256(raw).hexdigest()
    with open(f"{place.src}/raw", "wb") as handle:
        handle.write(raw)
    os.chmod(f"{place.src}/raw", 0o644)
    with shell(place) as t:
        for name, command in (
                ("a pipe", f"cat raw | {RUN} sha256sum"), ("a file", f"{RUN} sha256sum < raw"),
                ("a pipe, out through a pipe", f"cat raw | {RUN} cat | sha256sum")):
            text = t.does(command, 60)[1]
            tap.ok(digest in text, f"{who}: 11 MiB of all bytes through {name}", text)
    # The same through two ptys in raw mode, ours and the caller's.
    with Term(place, ["sh", "-c", f"stty raw -echo; exec \"$0\" run --quiet sh -c '"
                      f"echo up; head -c {len(raw)} | sha256sum'", SANDGLASS]) as t:
        t.expect(r"up\r?\n")
        t.send(raw)
        t.expect(digest, 60)
        tap.ok(t.ended() == 0, f"{who}: 11 MiB of all bytes through a raw terminal")


def much(place, who):
    paste = "".join(f"{i:07} a line of text that somebody has copied\r" for i in range(1400))
    want = hashlib.sha256(paste.replace("\r", "\n").encode()).hexdigest()
    with shell(place) as t:
        t.line(f"{RUN} sh -c 'cat | sha256sum'")
        ready(t)
        t.send(paste)
        t.send(END)
        t.expect(want, 30)
        t.prompt()
        tap.ok(t.last() == 0, f"{who}: {len(paste)} bytes pasted, none lost")
        t.line(f"{RUN} sh -c 'stty -echo; echo up; while read -r a b; do echo \"$a\"; done | sha256sum'")
        ready(t, r"\nup\r")
        t.send(paste)
        t.send(END)
        names = "".join(f"{i:07}\n" for i in range(1400))
        t.expect(hashlib.sha256(names.encode()).hexdigest(), 30)
        t.prompt()
        tap.ok(True, f"{who}: the same into a slow reader")
    with shell(place, slow=0.003) as t:
        t.line(f"{RUN} seq 1 60000")
        t.expect("60000\r\n", 60)
        t.prompt()
        text = t.said.decode()
        tap.ok(all(f"\n{i}\r" in text for i in range(1, 60001, 37)),
               f"{who}: a slow terminal gets all of it")
        t.slow = False
        t.line(f"{RUN} yes")
        ready(t)
        time.sleep(1)  # nobody reads: everything is full
        os.write(t.master, INTERRUPT)
        t.prompt(15)
        tap.ok(t.last() == 130, f"{who}: Ctrl-C while the output stands still")
        t.line(f"{RUN} yes")
        ready(t)
        front = t.job()
        time.sleep(0.7)
        os.kill(front, signal.SIGTERM)
        gone = wait_for(lambda: not alive(front), 8)
        tap.ok(gone, f"{who}: TERM ends it while the output stands still")
        t.prompt()


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as handle:
        fields = handle.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def vanishes(place, who):
    for name, script in (("a quiet command", "sleep 781"), ("one that writes", "yes 781"),
                         ("one that ignores it", "trap '' HUP TERM; while :; do sleep 781; done")):
        with shell(place) as t:
            t.line(f"{RUN} --grace 300ms bash -c \"{script}\"")
            ready(t)
            t.until(lambda: named(t.pid, "781"), "started")
            there = descendants(t.pid)
            t.vanish()
            gone = wait_for(lambda: not any(alive(pid) for pid in there), 5)
            tap.ok(gone and len(there) >= 3, f"{who}: the window is closed: {name} ends", there)
    # Without a shell that passes HUP on, and with a terminal that is nobody's.
    with Term(place, [SANDGLASS, "run", "--quiet", "--grace", "300ms", "sleep", "782"]) as t:
        ready(t)
        t.until(lambda: named(t.pid, "782"), "started")
        there = [t.pid] + descendants(t.pid)
        t.vanish()
        gone = wait_for(lambda: not any(alive(pid) for pid in there[1:]), 5)
        tap.ok(gone and t.ended() == -signal.SIGHUP, f"{who}: and as the leader of its session")
    with Term(place, ["sh", "-c", "trap '' HUP; exec setsid -w \"$0\" run --quiet sleep 783",
                      SANDGLASS]) as t:
        t.until(t.is_raw, "raw")
        t.until(lambda: named(t.pid, "783"), "started")
        there = descendants(t.pid)
        t.vanish()
        gone = wait_for(lambda: not any(alive(pid) for pid in there), 5)
        tap.ok(gone, f"{who}: and where it is no job's terminal")
    with shell(place) as t:
        for command, want in (("run --quiet yes | head -n 1", "y"),
                              ("run --quiet --tty yes | head -n 1", "y"),
                              ("run --quiet --no-tty sh -c 'yes >&2' 2>&1 >/dev/null | head -n 1",
                               "y")):
            status, text = t.does(f"$SG {command}; echo ${{PIPESTATUS[0]}}")
            lines = text.split("\n")
            tap.ok(lines[0] == want and lines[1] in ("141", "129", "1") and len(lines) == 3,
                   f"{who}: {command}: ends without a word", text)
        tap.ok(not named(t.pid, "yes"), f"{who}: and nothing is left of it")
        status, text = t.does("$SG run --quiet sh -c 'echo x; exit 5' >&-")
        tap.ok(status == 5, f"{who}: a closed stdout", text)
        status, text = t.does("$SG run --quiet sh -c 'cat; exit 6' <&-")
        tap.ok(status == 6, f"{who}: a closed stdin", text)
        t.line(f"{RUN} sh -c 'echo up; exec sleep 785'")
        ready(t, r"\nup\r")
        front = t.job()
        before = cpu_ticks(front)
        time.sleep(1)
        tap.ok(cpu_ticks(front) - before <= 1, f"{who}: waiting costs no processor time")
        there = descendants(front)
        os.kill(front, signal.SIGKILL)
        t.prompt()
        gone = wait_for(lambda: not any(alive(pid) for pid in there), 2)
        tap.ok(gone and there, f"{who}: KILL of sandglass takes the tree along")
        t.send("\nstty sane\n")  # and leaves a raw terminal, which nobody can mend but the shell
        t.prompt()


def restored(place, who):
    with shell(place) as t:
        place.write(f"{place.src}/notes", "text", 0o644)
        for name, command, want in (
                ("a command that is not there", "no-such-command", 127),
                ("a file that is no program", "./notes", 126),
                ("a status", "sh -c 'exit 7'", 7),
                ("a signal", "sh -c 'kill -SEGV $$'", 139),
                ("a timeout", "--timeout 200ms sleep 786", 124),
                ("raw inside", "sh -c 'stty raw -echo; exit 8'", 8),
                ("no such option", "--no-such-option true", 125),
                ("a source that is refused", "--source / true", 125)):
            status, text = t.does(f"{RUN} {command}")
            tap.ok(status == want and t.settings() == t.at_rest,
                   f"{who}: the terminal is as before after {name}", status, text)
        status, text = t.does("$SG run sudo -k true")
        tap.ok(status != 0 and "sandglass: hint: sudo cannot work inside" in text and
               "password" not in text, f"{who}: sudo at a terminal asks nothing", status, text)
        front = f"{RUN} sh -c 'echo up; exec sleep 787'"
        t.line(front)
        ready(t, r"\nup\r")
        inner = named(t.pid, "787")
        init = [pid for pid in descendants(t.job()) if pid not in inner][-1]
        os.kill(init, signal.SIGKILL)
        t.prompt()
        t.last()
        tap.ok(t.settings() == t.at_rest, f"{who}: and when the sandbox is killed")


def background(place, who):
    with shell(place) as t:
        for way in ("", "--no-tty"):
            t.line(f"{RUN} {way} cat &")
            t.prompt()
            t.until(lambda: len(named(t.pid, "cat")) >= 2, "started")
            time.sleep(0.3)
            status, text = t.does("echo still he''re")
            tap.ok("still here" in text and t.settings() == t.at_rest,
                   f"{who}: in the background it takes neither keys nor settings {way}", text)
            t.line("fg")
            t.expect(r"\n")
            time.sleep(0.6)
            if not way:
                ready(t)
            t.send("six\r")
            t.expect("six\r\nsix\r\n")
            t.send(END)
            t.prompt()
            tap.ok(t.last() == 0, f"{who}: fg gives it the keys {way}")
        t.line(f"{RUN} sh -c 'echo out; exit 3' & wait $!; echo st''atus $?")
        t.expect("status 3")
        tap.ok(t.settings() == t.at_rest, f"{who}: a command without input ends in the background")
        t.prompt()


def main():
    for identity in identities_once():
        for rows in (own_terminal, settings_inside, keys, inner_shell, stops, signals, sizes,
                     some_terminals, bytes_through, much, vanishes, restored, background):
            if len(sys.argv) > 1 and rows.__name__ not in sys.argv[1:]:
                continue
            place = Place(identity)
            try:
                tap.attempt(f"{identity.name}: {rows.__name__}", rows, place, identity.name)
            finally:
                place.close()
    return tap.done()


sys.exit(main())
