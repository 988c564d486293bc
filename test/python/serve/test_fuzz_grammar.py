"""`./dev fuzz http`: requests by a grammar, read by our server, by h11 and by llhttp.

Whether each takes a request, and what it understands of it, is the same, or the difference is
listed in `http_fuzz.differences`. The kept inputs, `test/corpus/http`, are read first.
`FUZZ_SEED=7` repeats a run; `FUZZ_CASES=100000` or `FUZZ_SECONDS=60` makes it longer.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import secrets
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import erlang
from http_fuzz import differences, grammar
from http_fuzz.ours import Ours
from http_fuzz.readers import READERS

if TYPE_CHECKING:
    from collections.abc import Iterator

KEPT = Path(__file__).parents[2] / "corpus" / "http"
#: Seconds for one input.
PATIENCE = 60.0


def inputs(chance: random.Random) -> Iterator[bytes]:
    seconds = float(os.environ.get("FUZZ_SECONDS", 0))
    cases = int(os.environ.get("FUZZ_CASES", 0 if seconds else 1000))
    start, count = time.monotonic(), 0
    while count < cases or (not cases and time.monotonic() < start + seconds):
        yield grammar.case(chance)
        count += 1


async def check(ours: Ours, data: bytes, parts: list[bytes]) -> list[str]:
    """The known differences of an input; another one is a failure, and the input is kept."""
    async with asyncio.timeout(PATIENCE):
        mine = await ours.read(parts)
    found = []
    for name, read in READERS.items():
        case = differences.compare(name, data, mine, read(data))
        if case is None:
            continue
        known = differences.explained(case)
        if known is None:
            KEPT.mkdir(exist_ok=True)
            (KEPT / f"failed-{hashlib.sha256(data).hexdigest()[:16]}").write_bytes(data)
            pytest.fail(f"not in the list of differences: {case}")
        found.append(f"{name}: {known}")
    return found


def run(main: object) -> None:
    with closing(erlang.new_event_loop()) as loop:
        loop.run_until_complete(main)


def test_kept_requests_are_read_as_others_read_them():
    async def main():
        ours = Ours()
        paths = sorted(KEPT.iterdir())
        assert paths
        for path in paths:
            data = path.read_bytes()
            for size in (1, 7, max(1, len(data))):
                parts = [data[at : at + size] for at in range(0, len(data), size)]
                await check(ours, data, parts)

    run(main())


def test_requests_of_a_grammar_are_read_as_others_read_them():
    seed = int(os.environ.get("FUZZ_SEED", secrets.randbelow(1 << 32)))
    print(f"fuzz http: FUZZ_SEED={seed}", flush=True)
    chance, count, found = random.Random(seed), 0, Counter()

    async def main():
        nonlocal count
        ours = Ours()
        for data in inputs(chance):
            found.update(await check(ours, data, grammar.pieces(chance, data)))
            count += 1

    run(main())
    print(f"fuzz http: {count} inputs, {found.total()} known differences of {len(found)} kinds")
    for known, times in found.most_common():
        print(f"{times:8} {known}")
