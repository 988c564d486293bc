"""Prints more than some group leaders read."""

from __future__ import annotations

import asyncio
import logging
import threading

import erlang


def lines(count: int) -> int:
    for number in range(count):
        print(number)
    return count


async def lines_beside(count: int) -> int:
    """Prints in one task, and counts the turns of another."""
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(turn())
    for number in range(count):
        print(number)
        if number % 1000 == 0:
            await asyncio.sleep(0)
    other.cancel()
    return turns


def long_lines(count: int, size: int) -> int:
    for _ in range(count):
        print("x" * size)
    return count


def records(count: int) -> int:
    logger = logging.getLogger("flood")
    for number in range(count):
        logger.warning("%d", number)
    return count


def named_records(count: int, size: int) -> int:
    """Records of a logger with a long name; the message is short."""
    logger = logging.Logger("n" * size)
    logger.addHandler(logging.getLogger().handlers[-1])
    for number in range(count):
        logger.warning("%d", number)
    return count


def nested() -> None:
    erlang.call("print_nested")


def nested_for_nobody() -> None:
    """From a thread that runs for no process."""
    thread = threading.Thread(target=erlang.call, args=("print_nested",))
    thread.start()
    thread.join()
