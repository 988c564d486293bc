"""Loop behaviour is proved against the standard library: each test runs on both loops."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import erlang

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=[asyncio.new_event_loop, erlang.new_event_loop], ids=["asyncio", "erlang"])
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    with closing(request.param()) as loop:
        yield loop
        if not loop.is_closed():
            loop.run_until_complete(loop.shutdown_default_executor())
