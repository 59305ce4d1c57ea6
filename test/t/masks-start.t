#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A start over a project costs by its directories, not by its files. It measures time, so it has
the machine to itself.
"""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import tap  # noqa: E402
from place import SANITIZED, Place, identities_once  # noqa: E402


def starts():
    """Starts over 100 and over 30,000 files in the same number of directories."""
    who = identities_once()[0]
    places = []
    for files in (100, 30000):
        place = Place(who)
        for d in range(20):
            os.mkdir(f"{place.src}/d{d}")
            place.own(f"{place.src}/d{d}")
            for i in range(files // 20):
                os.close(os.open(f"{place.src}/d{d}/file{i}", os.O_CREAT | os.O_WRONLY, 0o644))
        places.append((place, []))
    time.sleep(2.2)  # what was changed just now is read again
    for _ in range(3):  # the best of more, where others had the machine
        for turn in range(43):
            for place, times in places if turn % 2 else places[::-1]:
                begin = time.monotonic()
                done = place.run(place.inside() + ["true"])
                if turn > 2 and done.status == 0:
                    times.append(time.monotonic() - begin)
        few, many = (min(times) for _, times in places)
        ratio = many / few
        if ratio < 1.3:
            break
    tap.note(f"start over 100 files {few * 1000:.2f} ms, over 30,000 {many * 1000:.2f} ms (the best "
             "of 40 or more each, in turns)")
    tap.ok(ratio < 1.3, f"a start does not depend on the number of files ({ratio:.2f})")
    for place, _ in places:
        place.close()


def main():
    if SANITIZED:
        tap.ok(True, "a sanitized build has no speed to speak of")
    else:
        tap.attempt("starts", starts)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
