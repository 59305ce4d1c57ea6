# SPDX-License-Identifier: Apache-2.0
"""Which rows another sandbox (--runner) can be asked, and why not the others.

A row is not applicable to anything but sandglass, whatever the outcome would be, if

- it uses the command line of `sandglass run` (`args`, `options`, `env`, `timeout`, or an
  `argv` that begins with an option), or a grace whose length it measures (`grace` with `mins`);
- it is about our answers: `json`, and in `expect` `code`, `result`, `message`;
- it signals our own processes by name (`kill.who`), or `needs` sandglass itself (`own:`);
- it speaks of names that only sandglass makes (WORDS; in what is expected also /sand);
- it stands in FILES, without being made from the outside corpus, or in OURS below: it asks for
  something that the corpus did not, so that another sandbox that does what people wanted would
  fail only because of our own choice.

The rule is applied to each step too: a row with one such step is not applicable as a whole.
"""

import json
import re

from . import schema

KEYS = ("args", "options", "env", "timeout")
ANSWERS = ("code", "result", "message")
WORDS = re.compile(r"SANDGLASS|AGENT_ROOT|SESSION_ID|XDG_CACHE_HOME|\$\{?STATE\b|\$\{?BIN(DIR)?\b")
FOLDER = re.compile(r"/sand\b|\^sand\$")

SOURCE = "which folder is the workspace is a rule of sandglass; others are told"
DESCRIPTORS = "a plain start hands on closed descriptors as well; opening them is an extra"
TERMINAL = "asks about a terminal that the command makes itself; the corpus about the caller's"
VIEW = "which files of the system and of a home are shown is a rule of sandglass"
DENIAL = "wants one way of refusing; a socket that cannot even be made ends its script"
REFUSAL = "the corpus takes a refusal to run as well; ours wants the command to run"
CONTRACT = "nested namespaces are refused by our choice; the corpus would have them work"
FILES = {"protected.jsonl": "which names are protected, and how, is a rule of sandglass"}
OURS = {
    "bad-fd-dir-out": "125 is our status for a refusal",
    "bad-source-cwd-deep": SOURCE, "view-git-top": SOURCE, "view-git-none": SOURCE,
    "bad-fd-stdin": DESCRIPTORS, "bad-fd-all": DESCRIPTORS,
    "tty-005": TERMINAL, "tty-02": TERMINAL, "tty-03": TERMINAL,
    "cmp-003": CONTRACT, "cmp-020": CONTRACT,
    "CX-NET-16": "binds low ports, which the corpus did not ask for; net-004 and net-005 do not",
    "view-ports": "low ports for an ordinary user are an extra, not to be had without a sandbox",
    "view-tmp": "reads the folders below /sand by their names",
    "view-etc": VIEW, "view-machine-id": VIEW, "view-toolchain": VIEW,
    "bad-name-utf8": "counts files of the workspace; git-004 and srt-064 are about placeholders",
    "net-14": "its listener needs a Unix socket as well; net-016 is about those",
    "net-006": DENIAL, "srt-094": DENIAL,
    "res-11-many": REFUSAL, "CX-META-11": REFUSAL,
    "git-010": "wants git's words about the key, which a read-only .git comes before",
}


def _texts(row):
    for key in ("prepare", "setup", "launch", "cmd", "stdout", "cwd"):
        yield row.get(key) or ""
    yield from row.get("argv", [])
    yield json.dumps([row.get("env_host", {}), row.get("stdin") or "", row.get("during") or {},
                      row.get("expect", {})])


def _part(row):
    for key in KEYS:
        if key in row:
            return f"`{key}`: an option of sandglass"
    if row.get("argv", [""])[0].startswith("-"):
        return "`argv`: an option of sandglass"
    if row.get("json"):
        return "`json`: a result of sandglass"
    expect = row.get("expect", {})
    for key in ANSWERS:
        if key in expect:
            return f"`expect.{key}`: an answer of sandglass"
    if "grace" in row and "mins" in expect:
        return "`grace`: an option of sandglass"
    if any(kill.get("who", "front") != "front" for kill in schema.listed(row.get("kill"))):
        return "`kill.who`: processes of sandglass"
    if any(need.startswith("own:") for need in row.get("needs", [])):
        return "`needs`: sandglass itself"
    if any(WORDS.search(text) for text in _texts(row)) or FOLDER.search(json.dumps(expect)):
        return "names that only sandglass makes"
    return None


def reason(row):
    """Why a row, merged for its identity, cannot be asked of another sandbox, or None."""
    if row["id"] in OURS:
        return OURS[row["id"]]
    if row.get("_file") in FILES and not row.get("from"):
        return FILES[row["_file"]]
    for part in [row, *row.get("steps", [])]:
        found = _part(part)
        if found:
            return found
    return None
