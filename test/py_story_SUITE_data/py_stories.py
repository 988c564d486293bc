"""Exceptions with a story."""

import asyncio


def deep(levels):
    return bottom() if levels == 0 else deep_too(levels - 1)


def deep_too(levels):
    return bottom() if levels == 0 else deep(levels - 1)


def bottom():
    raise ValueError("at the bottom")


async def group():
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(first_task())
        tasks.create_task(second_task())


async def first_task():
    raise ValueError("first")


async def second_task():
    raise LookupError("second") from ValueError("its cause")


def wide_group(count):
    raise ExceptionGroup("wide", [ValueError(number) for number in range(count)])


def hidden():
    try:
        raise KeyError("not to be seen")
    except KeyError:
        raise ValueError("all there is") from None


def handled():
    try:
        raise KeyError("first")
    except KeyError:
        error = ValueError("second")
        error.add_note("a note")
        error.add_note("another note")
        raise error  # noqa: B904


def chain(links):
    if links == 0:
        raise ValueError("the first cause")
    try:
        chain(links - 1)
    except ValueError as error:
        raise ValueError(f"link {links}") from error


def long():
    raise ValueError("x" * 1_000_000 + "the end")


def fails():
    raise ValueError("why")


def fails_later():
    yield 1
    raise ValueError("why")


async def fails_async():
    raise ValueError("why")
