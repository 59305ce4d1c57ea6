# SPDX-License-Identifier: Apache-2.0
"""TAP rows on stdout. A row is printed when it is known, the plan at the end."""

import sys
import time
import traceback

_count, _failed, _begin = 0, 0, time.monotonic()


def ok(good, name, *why):
    """One row; why is shown when it failed."""
    global _count, _failed
    _count += 1
    if not good:
        _failed += 1
    print(f"{'ok' if good else 'not ok'} {_count} - {name}")
    if not good:
        for text in why:
            for line in str(text).rstrip("\n").split("\n"):
                print(f"#   {line[:1000]}")
    sys.stdout.flush()
    return bool(good)


def skip(name, needs):
    """A row that this machine or user cannot run: needs begins with a word of the doctor."""
    global _count
    _count += 1
    print(f"ok {_count} - {name} # SKIP needs {needs}")
    sys.stdout.flush()


def note(text):
    for line in str(text).rstrip("\n").split("\n"):
        print(f"# {line[:1000]}")
    sys.stdout.flush()


def attempt(name, function, *args):
    """Runs function; an exception is a failed row and not the end of the file."""
    try:
        return function(*args)
    except Exception:  # whatever went wrong, the rows after it are still worth running
        ok(False, f"{name}: the test itself", traceback.format_exc())
        return None


def done():
    print(f"# {time.monotonic() - _begin:.1f} s")
    print(f"1..{_count}")
    sys.stdout.flush()
    return 1 if _failed or not _count else 0
