# SPDX-License-Identifier: Apache-2.0
"""A terminal with somebody at it: a pty whose other end types, reads and looks.

A Term runs a command, usually a shell with job control, as the leader of a
session of its own on that pty. What the command writes is kept as bytes and
drawn on a screen. The settings and the foreground job of the terminal are
looked at from our side.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import pyte

INTERRUPT, END, QUIT, SUSPEND = b"\x03", b"\x04", b"\x1c", b"\x1a"
PROMPT = "OUTER> "


class Missing(Exception):
    """What was waited for did not come."""


class Screen(pyte.Screen):
    def select_graphic_rendition(self, *attributes, private=False):
        """With a `>` it sets how keys are sent, which is nothing to draw."""
        if not private:
            super().select_graphic_rendition(*attributes)


class Term:
    def __init__(self, place, argv, rows=24, cols=80, env=None, drop=(), slow=False, drawn=False):
        self.place, self.said, self.mark, self.slow = place, b"", 0, slow
        self.screen = Screen(cols, rows) if drawn else None
        self.stream = pyte.ByteStream(self.screen) if drawn else None
        self.master, self.slave = pty.openpty()
        self.resize(rows, cols, tell=False)
        place.own(os.ttyname(self.slave))
        self.name = os.ttyname(self.slave)
        have = place.env(TERM="xterm-256color", **(env or {}))
        for name in drop:
            have.pop(name, None)
        argv = place.who.prefix + argv
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
                for fd in (0, 1, 2):
                    os.dup2(self.slave, fd)
                os.closerange(3, 256)
                os.chdir(place.src)
                os.execvpe(argv[0], argv, have)
            finally:
                os._exit(127)
        os.set_blocking(self.master, False)
        self.status = None

    # typing

    def send(self, what):
        """Types; takes what comes meanwhile, as a person's terminal does."""
        left = what.encode() if isinstance(what, str) else what
        until = time.monotonic() + 60
        while left:
            _, can, _ = select.select([], [self.master], [], 0.05)
            if can:
                try:
                    left = left[os.write(self.master, left[:4096]):]
                except BlockingIOError:
                    pass
            self.listen(0)
            if time.monotonic() > until:
                raise Missing(f"{len(left)} bytes could not be typed in 60 s")

    def line(self, text):
        self.mark = len(self.said)
        self.send(text + "\r")

    # looking

    def listen(self, wait):
        """Takes what is there, waiting for something at most `wait` seconds. False: nothing came."""
        came = False
        while self.master is not None and select.select([self.master], [], [], wait)[0]:
            try:
                got = os.read(self.master, 4096)
            except OSError:
                break
            if not got:
                break
            self.said += got
            if self.stream:
                self.stream.feed(got)
            came, wait = True, 0
            if self.slow:
                time.sleep(self.slow)
                break
        return came

    def expect(self, pattern, seconds=15):
        """Waits for a pattern in what comes after the last one. Returns the match."""
        find = re.compile(pattern.encode(), re.S | re.M)
        until = time.monotonic() + seconds
        while True:
            found = find.search(self.said, self.mark)
            if found:
                self.mark = found.end()
                return found
            if time.monotonic() > until:
                raise Missing(f"no {pattern!r} within {seconds} s, but {self.rest()!r}")
            self.listen(0.05)

    def rest(self):
        return self.said[self.mark:][-1500:]

    def quiet(self, seconds=0.3):
        """Waits until nothing has come for so long."""
        while self.listen(seconds):
            pass

    def until(self, condition, what, seconds=15):
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                raise Missing(f"not {what} within {seconds} s; {self.rest()!r}")
            self.listen(0.02)

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def see(self, pattern, seconds=15):
        """Waits until a line of the screen has the pattern."""
        find = re.compile(pattern)
        self.until(lambda: any(find.search(line) for line in self.lines()), f"on the screen: "
                   f"{pattern!r} in {self.lines() if self.screen else ''}", seconds)

    # the terminal

    def resize(self, rows, cols, tell=True):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        if self.screen and tell:
            self.screen.resize(rows, cols)

    def settings(self):
        return termios.tcgetattr(self.slave)

    def is_raw(self):
        return not self.settings()[3] & termios.ICANON

    def job(self):
        """The foreground process group."""
        return struct.unpack("i", fcntl.ioctl(self.master, termios.TIOCGPGRP, b"\0" * 4))[0]

    # the end

    def ended(self, seconds=15):
        """Waits for the command itself. Its status, negative: by that signal."""
        until = time.monotonic() + seconds
        while self.status is None:
            got, status = os.waitpid(self.pid, os.WNOHANG)
            if got:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > until:
                raise Missing(f"still running after {seconds} s; {self.rest()!r}")
            else:
                self.listen(0.02)
        self.listen(0)
        return self.status

    def vanish(self):
        """The window is closed: the kernel hangs the terminal up."""
        for fd in (self.slave, self.master):
            if fd is not None:
                os.close(fd)
        self.slave = self.master = None

    def close(self):
        if self.status is None:
            for sig in (signal.SIGHUP, signal.SIGKILL):
                try:
                    os.kill(self.pid, sig)
                    self.ended(3)
                    break
                except Missing:
                    pass
        self.vanish()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Shell(Term):
    """A person's shell: job control, no line editor, a prompt that is known."""

    def __init__(self, place, **more):
        env = dict(more.pop("env", {}), PS1=PROMPT, PS2="", HISTFILE="")
        super().__init__(place, ["bash", "--norc", "--noprofile", "--noediting", "-i"], env=env,
                         **more)
        self.expect(re.escape(PROMPT))
        self.at_rest = self.settings()

    def prompt(self, seconds=15):
        self.expect(re.escape(PROMPT), seconds)

    def does(self, command, seconds=15):
        """One command to its end: what it wrote, and its status."""
        self.line(command)
        begin = self.expect(r"\r?\n").end()
        self.prompt(seconds)
        text = self.said[begin:self.mark - len(PROMPT)]
        return self.last(), re.sub(r"\r+\n", "\n", text.decode("utf-8", "replace"))

    def last(self):
        self.line("echo st''atus $?")
        status = int(self.expect(r"status (\d+)\r").group(1))
        self.prompt()
        return status
