"""Context variables of processes, and tracing."""

import contextvars
import decimal
import sys
import threading

word = contextvars.ContextVar("word", default="none")


def set_word(value):
    word.set(value)
    return value


def get_word():
    return word.get()


async def set_word_later(value):
    seen = word.get()
    word.set(value)
    return seen


def words(value):
    for _ in range(3):
        yield word.get()
        word.set(value)


def set_precision(digits):
    decimal.getcontext().prec = digits


def third():
    return str(decimal.Decimal(1) / 3)


def set_and_undo():
    token = word.set("undone")
    word.reset(token)


def nest(value):
    """A call of Erlang that calls Python again for the same process."""
    import erlang

    word.set(value)
    return [erlang.call("vars_nested"), word.get()]


def trace():
    sys.settrace(lambda *_: None)
    sys.setprofile(lambda *_: None)


def traced():
    return [sys.gettrace() is not None, sys.getprofile() is not None]


def debugger(*_):
    return None


def trace_all_threads(on):
    threading.settrace(debugger if on else None)


def traced_by_debugger():
    return sys.gettrace() is debugger


def untrace():
    sys.settrace(None)
