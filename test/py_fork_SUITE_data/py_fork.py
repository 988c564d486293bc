"""Processes made by fork, from every kind of code that runs in a node."""

import asyncio
import concurrent.futures
import ctypes
import faulthandler
import multiprocessing
import os
import signal
import tempfile
import threading
import time

import erlang

FORK = multiprocessing.get_context("fork")


class Child:
    """One fork. In the child its standard error goes into a pipe; `ended` in the parent gives what
    it said there, and its exit code."""

    def __init__(self):
        self.reads, writes = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.dup2(writes, 2)
        os.close(writes)

    def ended(self):
        with open(self.reads, "rb") as said:
            text = said.read()
        _, status = os.waitpid(self.pid, 0)
        return text, os.waitstatus_to_exitcode(status)


def comes_back():
    child = Child()
    return "the child" if child.pid == 0 else child.ended()


def raises():
    child = Child()
    if child.pid == 0:
        raise SystemExit(0)
    return child.ended()


async def comes_back_async():
    return comes_back()


async def comes_back_later():
    child = Child()
    await asyncio.sleep(0)
    return "the child" if child.pid == 0 else child.ended()


def comes_back_items():
    child = Child()
    yield 1
    yield "the child" if child.pid == 0 else child.ended()


def in_callback():
    """Python calls Erlang, which calls `comes_back` on this very thread."""
    return erlang.call("fork_here")


def child_says(function):
    """What `function` gives in a child."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = function()
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writes, text.encode())
        os._exit(0)
    os.close(writes)
    with open(reads, "rb") as said:
        text = said.read()
    _, status = os.waitpid(pid, 0)
    return text, os.waitstatus_to_exitcode(status)


def calls():
    return child_says(lambda: erlang.call("fork_here"))


def sends(pid):
    return child_says(lambda: erlang.send(pid, "from the child"))


def logs():
    import logging

    child = Child()
    if child.pid == 0:
        logging.getLogger("forked").warning("a record")
        print("a line", file=__import__("sys").stderr)
        os._exit(0)
    return child.ended()


def descriptors():
    """What a child has open: numbers, and what they are."""

    def listed():
        found = []
        for number in os.listdir("/proc/self/fd"):
            try:
                found.append(f"{number} {os.readlink(f'/proc/self/fd/{number}')}")
            except OSError:
                continue
        return "\n".join(found)

    with open(os.devnull) as own:
        text, code = child_says(listed)
        found = [line.split(" ", 1) for line in text.decode().split("\n")]
        assert [str(own.fileno()), os.devnull] in found, found
    assert code == 0
    return [(int(number), what) for number, what in found]


def dumps():
    """A handler of faulthandler is no handler of the emulator's: it stays."""
    with tempfile.TemporaryFile() as file:
        faulthandler.register(signal.SIGUSR2, file)
        try:
            child_says(lambda: os.kill(os.getpid(), signal.SIGUSR2) or "")
        finally:
            faulthandler.unregister(signal.SIGUSR2)
        file.seek(0)
        return file.read()


def forked_by_c(name):
    """A child that C code has made: Python hears nothing of it."""
    pid = ctypes.PyDLL(None).fork()
    if pid == 0:
        while True:
            signal.pause()
    os.kill(pid, getattr(signal, name))
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def handlers():
    def handled():
        before = signal.getsignal(signal.SIGTERM)
        heard = []
        signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
        os.kill(os.getpid(), signal.SIGTERM)
        while not heard:
            time.sleep(0.001)
        return f"{before.name} {heard}"

    return child_says(handled)


def signalled(name, times):
    """Children that wait, each ended by a signal as soon as it is made."""
    codes = []
    for _ in range(times):
        process = FORK.Process(target=time.sleep, args=(60,))
        process.start()
        os.kill(process.pid, getattr(signal, name))
        process.join()
        codes.append(process.exitcode)
    return codes


def square(number):
    return number * number


def pools(times):
    for _ in range(times):
        with FORK.Pool(2) as pool:
            assert pool.map(square, range(10)) == [n * n for n in range(10)]
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=FORK) as executor:
            assert list(executor.map(square, range(10))) == [n * n for n in range(10)]
            processes = list(executor._processes.values())
        assert [process.exitcode for process in processes] == [0] * len(processes)
    return "done"


def exit_codes():
    """Of children that end as they should, made by a worker and by a thread of Python's own."""
    codes = []

    def make():
        threading.current_thread()
        process = FORK.Process(target=square, args=(2,))
        process.start()
        process.join()
        codes.append(process.exitcode)

    make()
    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    return codes


def children():
    """The processes that this one has, by number."""
    found = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children") as listed:
                found += listed.read().split()
        except OSError:
            continue
    return sorted(found)
