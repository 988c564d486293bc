"""Python calls Erlang in every way there is."""

import logging
import threading

import erlang
from erlang import cb_add


def by_call(a, b):
    return erlang.call("cb_add", a, b)


def by_name(name):
    return erlang.call(name)


def by_attribute(a, b):
    return erlang.cb_add(a, b)


def by_import(a, b):
    return cb_add(a, b)


def failure(*args):
    """Kind, reason and stacktrace of what Erlang raised."""
    try:
        erlang.call("cb_fail", *args)
    except erlang.ErlangError as error:
        return (error.kind, error.reason, error.stacktrace, str(error))
    return "no error"


def unknown():
    erlang.there_is_no_such_function()


def in_thread(function, *args):
    """Runs it in a thread of Python's own and gives its result or the name of its exception."""
    result = []

    def body():
        try:
            result.append(globals()[function](*args))
        except Exception as error:
            result.append(type(error).__name__)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    return result[0]


def many_threads(count, each):
    totals = []

    def body(number):
        totals.append(sum(cb_add(number, n) for n in range(each)))

    threads = [threading.Thread(target=body, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(totals)


def send(dest, term):
    erlang.send(dest, term)


def send_wide(dest, keys):
    erlang.send(dest, {n: n for n in range(keys)})


def wide(keys):
    return {n: n for n in range(keys)}


def ordered(pid, keys):
    """Messages of both kinds, then the reply."""
    for number in range(20):
        erlang.send(pid, dict.fromkeys(range(keys), number) if number % 3 == 0 else number)
    return "reply"


def whoami():
    return erlang.self()


def atoms(prefix, count):
    made = 0
    try:
        for number in range(count):
            erlang.atom(f"{prefix}{number}")
            made += 1
    except ValueError as error:
        return (made, str(error))
    return (made, None)


def atom(name):
    return erlang.atom(name)


def compare(pid, same, other):
    return (pid == same, pid == other, hash(pid) == hash(same), {pid: 1}[same])


def log_all():
    logger = logging.getLogger("cb.log")
    logger.debug("d")
    logger.info("i %d", 1)
    logger.warning("w")
    logger.error("e")
    logger.critical("c")
    try:
        raise KeyError("lost")
    except KeyError:
        logger.exception("x")


def die_in_thread():
    thread = threading.Thread(target=lambda: 1 / 0, name="doomed")
    thread.start()
    thread.join()


class Unraisable:
    def __del__(self):
        raise ValueError("in __del__")


def die_in_del():
    Unraisable()


def print_all():
    import sys

    print("one")
    print("two", "words", sep="-")
    print("no newline", end="")
    sys.stderr.write("to stderr\n")


def convert_badly():
    return erlang.call("cb_add", object(), 1)


def bytes_of(name):
    return erlang.call(name)
