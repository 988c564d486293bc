"""The words of a file, one after another: the file is never in memory as a whole."""

import re
from collections.abc import Iterator


def read(path: str) -> Iterator[str]:
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            yield from re.findall(r"\w+", line.lower())
