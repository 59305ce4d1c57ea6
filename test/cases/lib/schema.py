# SPDX-License-Identifier: Apache-2.0
"""The case format: reading, checking, merging, expanding. README.md beside this describes it."""

import json
import os
import re

ROW_KEYS = {
    "id", "from", "title", "kind", "why", "refuse", "as", "needs", "serial", "reveals", "base",
    "prepare", "setup", "launch", "cmd", "argv", "args", "steps", "options", "env_host", "env",
    "cwd", "timeout", "grace", "stdin", "stdout", "parallel", "kill", "during", "json",
    "deadline", "expect", "control", "root", "user", "static",
}
EXPECT_KEYS = {
    "rc", "out", "notout", "stdout", "bytes", "code", "message", "maxs", "mins", "host", "noproc",
    "result", "net", "ran", "held",
}
STEP_KEYS = {"cmd", "argv", "args", "options", "stdin", "json", "setup", "stays", "expect"}
CONTROL_KEYS = {"how", "cmd", "argv", "options", "bwrap", "launch", "setup", "why", "as", "kill",
                "during"} | EXPECT_KEYS
LINES = ("prepare", "setup", "launch", "cmd", "host")
KINDS = {
    "path", "symlink", "view", "env", "network", "timeout", "zombie", "output", "compat",
    "pkg-manager", "perf", "limit", "process", "life", "syscall", "fd", "tty", "git", "badinput",
    "hole", "config",
}
HOWS = ("bare", "bwrap", "userns")
POSITIVE = ("rc", "out", "stdout", "bytes", "host", "net", "result", "held")
NAME = re.compile(r"\$(?:\{([A-Z_]+)\}|([A-Z_]+))")


class BadRow(Exception):
    """A case file breaks the format."""


def _join(table):
    """Scripts may be written as lists of lines."""
    for key in LINES:
        if isinstance(table.get(key), list):
            table[key] = "\n".join(table[key])


def _check_expect(where, expect):
    unknown = set(expect) - EXPECT_KEYS
    if unknown:
        raise BadRow(f"{where}: unknown keys in expect: {sorted(unknown)}")
    for key in ("out", "notout"):
        for pattern in listed(expect.get(key)):
            re.compile(NAME.sub("x", pattern))


def _check_control(where, control):
    unknown = set(control) - CONTROL_KEYS
    if unknown:
        raise BadRow(f"{where}: unknown keys in control: {sorted(unknown)}")
    how = control.get("how", "")
    if how not in HOWS and not how.startswith("off:"):
        raise BadRow(f"{where}: control.how is {how!r}")
    if not any(key in control for key in POSITIVE):
        raise BadRow(f"{where}: the control asserts nothing")


def _is_refusal(row):
    """A row that says 'this cannot be done' must show that it can be done elsewhere."""
    for expect in [row.get("expect", {})] + [s.get("expect", {}) for s in row.get("steps", [])]:
        if any("CANARY" in p for p in listed(expect.get("notout"))) or "net" in expect:
            return True
    return bool(row.get("refuse"))


def check(row, where):
    unknown = set(row) - ROW_KEYS
    if unknown:
        raise BadRow(f"{where}: unknown keys {sorted(unknown)}")
    for key in ("id", "title", "kind"):
        if not isinstance(row.get(key), str) or not row[key]:
            raise BadRow(f"{where}: {key} is missing")
    where = f"{where}: {row['id']}"
    if row["kind"] not in KINDS:
        raise BadRow(f"{where}: unknown kind {row['kind']!r}")
    if sum(key in row for key in ("cmd", "argv", "args", "steps")) != 1:
        raise BadRow(f"{where}: exactly one of cmd, argv, args, steps")
    _join(row)
    for expect in [row.get("expect", {})] + [row.get(i, {}).get("expect", {}) for i in
                                             ("root", "user")]:
        _join(expect)
        _check_expect(where, expect)
    for step in row.get("steps", []):
        if set(step) - STEP_KEYS:
            raise BadRow(f"{where}: unknown keys in a step: {sorted(set(step) - STEP_KEYS)}")
        _join(step)
        _join(step.setdefault("expect", {}))
        _check_expect(where, step["expect"])
    if not row.get("expect") and not row.get("steps"):
        raise BadRow(f"{where}: nothing is expected")
    if "control" in row:
        _join(row["control"])
        _check_control(where, row["control"])
    elif _is_refusal(row):
        raise BadRow(f"{where}: a refusal without a control proves nothing")
    for text in (row.get("cmd", ""), *[s.get("cmd", "") for s in row.get("steps", [])]):
        if "$CANARY" in text or "${CANARY" in text:
            raise BadRow(f"{where}: a script that holds the canary would leak it itself")
    row["_refusal"] = _is_refusal(row)


AFTER_START = {
    "TOOL_TIMEOUT", "MEMORY_LIMIT", "PIDS_LIMIT", "CPU_LIMIT", "DISK_LIMIT", "INODE_LIMIT",
    "OUTPUT_LIMIT", "CANCELLED",
}


def runs(expect):
    """Whether the command must have run: it must not when the run is refused."""
    codes = set(listed(expect.get("code")))
    return not codes or bool(codes & AFTER_START)


def load(folder):
    """Every row of every case file, in the order of the files' names."""
    rows, seen = [], {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".jsonl"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as handle:
            for number, line in enumerate(handle, 1):
                if not line.strip():
                    continue
                where = f"{name}:{number}"
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise BadRow(f"{where}: {error}") from None
                check(row, where)
                if row["id"] in seen:
                    raise BadRow(f"{where}: {row['id']} is also in {seen[row['id']]}")
                seen[row["id"]] = where
                row["_file"] = name
                rows.append(row)
    return rows


def listed(value):
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def merged(row, identity):
    """The row as one identity sees it."""
    out = dict(row)
    for key, value in row.get(identity, {}).items():
        out[key] = value
    if isinstance(out.get("control"), dict):
        _join(out["control"])
    return out


def expand(text, names, quote=None):
    """Replace the $NAMES that the runner knows; everything else stays as it is."""
    def one(match):
        name = match.group(1) or match.group(2)
        if name not in names:
            return match.group(0)
        value = names[name]
        return quote(value) if quote else value
    return NAME.sub(one, text)


def mentioned(text, names):
    """Which of the known names a script mentions, so that only those are told to it."""
    found = {m.group(1) or m.group(2) for m in NAME.finditer(text)}
    found |= {n for n in re.findall(r"environ\[[\"']([A-Z_]+)[\"']\]", text)}
    return sorted(found & set(names))
