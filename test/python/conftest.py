"""Loop behaviour is proved against the standard library: each test runs on both loops."""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import erlang

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


# What asyncio of Debian 12, Python 3.11.2, gets wrong: pipes without is_reading, ends of TLS.
OLD_ASYNCIO = sys.version_info < (3, 11, 7)
NOT_ON_OLD_ASYNCIO = {
    "test_a_paused_reader_gets_nothing_until_it_resumes",
    "test_ten_thousand_connections_leave_no_descriptor_and_no_memory",
    "test_close_says_goodbye_and_both_ends_end",
    "test_a_connection_that_ended_leaves_nothing_behind",
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    name, _, parameters = item.name.partition("[")
    if OLD_ASYNCIO and name in NOT_ON_OLD_ASYNCIO and parameters.startswith("asyncio"):
        pytest.skip("asyncio of this release does not pass it")


@pytest.fixture(params=[asyncio.new_event_loop, erlang.new_event_loop], ids=["asyncio", "erlang"])
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    with closing(request.param()) as loop:
        yield loop
        if not loop.is_closed():
            loop.run_until_complete(loop.shutdown_default_executor())


@pytest.fixture
def hammer() -> Callable[..., list[BaseException]]:
    """Each work again and again, two threads for each, all at once: what they raised."""

    def run(*works: Callable[[], object], rounds: int = 1000) -> list[BaseException]:
        raised: list[BaseException] = []
        start = threading.Barrier(2 * len(works))

        def again(work: Callable[[], object]) -> None:
            start.wait()
            for _ in range(rounds):
                try:
                    work()
                except BaseException as error:
                    raised.append(error)

        threads = [threading.Thread(target=again, args=(work,)) for work in works * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return raised

    return run
