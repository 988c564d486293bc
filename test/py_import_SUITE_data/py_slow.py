"""A module that takes its time."""

import py_imports

py_imports.imported()


def answer():
    return 42


async def answer_later():
    return 42
