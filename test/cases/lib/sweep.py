# SPDX-License-Identifier: Apache-2.0
"""Canaries: made at random, looked for raw, base64, URL- and hex-encoded."""

import base64
import os
import secrets
import urllib.parse

LARGEST = 8 << 20


def lead():
    """What all canaries of one run begin with. The + makes the URL form differ from the raw one."""
    return f"cN{secrets.token_hex(6)}+"


def make(beginning):
    return beginning + secrets.token_hex(12)


def forms(canary):
    """Every shape in which a canary, or the beginning of one, is recognised."""
    raw = canary.encode()
    out = {raw, urllib.parse.quote(canary, safe="").encode(), raw.hex().encode(),
           raw.hex().upper().encode()}
    for before in range(3):
        # The middle of the encoding is the same whatever stands before and behind.
        text = base64.b64encode(b"\0" * before + raw).rstrip(b"=")
        piece = text[(before * 8 + 5) // 6:-1]
        out.add(piece)
        out.add(piece.replace(b"+", b"-").replace(b"/", b"_"))
    return out


def holds(data, shapes):
    return any(shape in data for shape in shapes)


def walk(top, skip=()):
    """Regular files below top; nothing is followed, nothing that vanishes is an error."""
    stack = [top]
    while stack:
        here = stack.pop()
        try:
            entries = list(os.scandir(here))
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.path in skip:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield entry.path, entry.stat(follow_symlinks=False)
            except OSError:
                continue


def files_with(top, shapes, newer=0.0, skip=()):
    found = set()
    for path, info in walk(top, skip):
        if info.st_size == 0 or info.st_size > LARGEST or info.st_mtime < newer:
            continue
        try:
            with open(path, "rb") as handle:
                data = handle.read(LARGEST)
        except OSError:
            continue
        if holds(data, shapes) or holds(os.fsencode(path), shapes):
            found.add(path)
    return found


def parents():
    """pid -> ppid of every process that can be seen."""
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as handle:
                fields = handle.read().rpartition(b")")[2].split()
            table[int(name)] = int(fields[1])
        except (OSError, IndexError, ValueError):
            continue
    return table


def below(pid):
    """Every descendant of a process."""
    table, out, stack = parents(), [], [pid]
    while stack:
        here = stack.pop()
        for child, parent in table.items():
            if parent == here:
                out.append(child)
                stack.append(child)
    return out


def process_text(pid):
    text = b""
    for name in ("cmdline", "environ"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as handle:
                text += handle.read() + b"\0"
        except OSError:
            continue
    return text


def processes_with(pids, shapes):
    return [pid for pid in pids if holds(process_text(pid), shapes)]


def argv_pids(argv):
    """Processes of the host whose arguments, joined by blanks, are exactly these."""
    want, out = argv.encode(), []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as handle:
                text = handle.read().rstrip(b"\0").replace(b"\0", b" ")
        except OSError:
            continue
        if text == want:
            out.append(int(name))
    return out
