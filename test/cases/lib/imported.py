# SPDX-License-Identifier: Apache-2.0
"""IMPORTED: every id of the outside corpus with its hash and what became of it."""

import hashlib
import json
import os

FILES = ("field", "codex", "srt", "escape")
MAX_EXCLUDED = 0.03


def read(folder):
    """file, id, hash, status of each line; '#' begins a comment."""
    table = {}
    with open(os.path.join(folder, "IMPORTED"), encoding="utf-8") as handle:
        for number, line in enumerate(handle, 1):
            if not line.strip() or line.startswith("#"):
                continue
            parts = line.rstrip("\n").split("\t")
            if len(parts) != 4:
                raise ValueError(f"IMPORTED:{number}: four columns, split by tabs")
            name, ident, digest, status = parts
            if (name, ident) in table:
                raise ValueError(f"IMPORTED:{number}: {name} {ident} is there twice")
            table[name, ident] = (digest, status)
    return table


def outside(folder):
    """The corpus itself, where the checkout has it beside it."""
    source = os.path.normpath(os.path.join(folder, "..", "..", "..", "shared", "cases"))
    if not os.path.isdir(source):
        return None
    table = {}
    for name in FILES:
        with open(os.path.join(source, f"{name}.jsonl"), "rb") as handle:
            for line in handle:
                line = line.rstrip(b"\n")
                if line:
                    table[name, json.loads(line)["id"]] = hashlib.sha256(line).hexdigest()
    return table


def _problems(table, rows, corpus):
    have = {i for row in rows for i in row.get("from", [])}
    problems = []
    for (name, ident), (_, status) in table.items():
        word = status.split(":")[0]
        if word not in ("pass", "later", "excluded") or (word != "pass" and ": " not in status):
            problems.append(f"{name} {ident}: bad status {status!r}")
        if word == "pass" and f"{name}/{ident}" not in have:
            problems.append(f"{name} {ident}: said to pass, but no row is from it")
        if word != "pass" and f"{name}/{ident}" in have:
            problems.append(f"{name} {ident}: {status}, but a row is from it")
    for one in have - {f"{n}/{i}" for n, i in table}:
        problems.append(f"{one}: a row is from it, but it is not listed")
    if corpus is not None:
        for key, digest in corpus.items():
            if key not in table:
                problems.append(f"{key[0]} {key[1]}: not listed")
            elif table[key][0] != digest:
                problems.append(f"{key[0]} {key[1]}: altered")
        for key in set(table) - set(corpus):
            problems.append(f"{key[0]} {key[1]}: listed, but the corpus has it not")
    return problems


def compare(folder, rows):
    try:
        table = read(folder)
    except (OSError, ValueError) as error:
        print(f"Bail out! {error}")
        return 2
    corpus = outside(folder)
    problems = _problems(table, rows, corpus)
    counts = {}
    for (name, _), (_, status) in table.items():
        for key in (name, "all"):
            counts.setdefault(key, {}).setdefault(status.split(":")[0], 0)
            counts[key][status.split(":")[0]] += 1
    for key in (*FILES, "all"):
        words = ", ".join(f"{n} {word}" for word, n in sorted(counts.get(key, {}).items()))
        print(f"{key}: {words}")
    later = {}
    for _, status in table.values():
        if status.startswith("later: "):
            later[status[7:]] = later.get(status[7:], 0) + 1
    for what, number in sorted(later.items()):
        print(f"later, {what}: {number}")
    excluded = counts.get("all", {}).get("excluded", 0)
    if excluded > MAX_EXCLUDED * len(table):
        problems.append(f"{excluded} of {len(table)} excluded: more than {MAX_EXCLUDED:.0%}")
    print("corpus: " + ("compared" if corpus is not None else "not here, not compared"))
    for text in problems:
        print(f"not ok - {text}")
    print(f"{len(table)} listed, {len(problems)} problems")
    return 1 if problems else 0
