"""Forks, and frames of threads, in a node that may have sub-interpreters."""

import multiprocessing
import os
import subprocess
import sys
import threading


def square(number):
    return number * number


def _ended(pid):
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(3)
    return _ended(pid)


def forks():
    while True:
        fork()


def forkpty():
    pid, fd = os.forkpty()
    if pid == 0:
        os._exit(3)
    code = _ended(pid)
    os.close(fd)
    return code


def preexec_fn():
    return subprocess.run(["sh", "-c", "exit 3"], preexec_fn=lambda: None).returncode


def plain():
    return subprocess.run(["sh", "-c", "exit 3"]).returncode


def pool(method):
    with multiprocessing.get_context(method).Pool(2) as workers:
        return workers.map(square, [1, 2, 3])


def frames(times):
    """Whether the frames of a thread that waits, and of this one, are told; and the numbers of all
    threads that were told of."""
    stop = threading.Event()

    def waits_here():
        stop.wait()

    thread = threading.Thread(target=waits_here)
    thread.start()
    seen = set()
    try:
        for _ in range(times):
            told = sys._current_frames()
            seen |= set(told)
        names = []
        frame = told[thread.ident]
        while frame is not None:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        own = told[threading.get_ident()].f_code.co_name
        return ["waits_here" in names, own, list(seen)]
    finally:
        stop.set()
        thread.join()


def busy(seconds):
    """Frames come and go; the number of the thread."""
    import time

    def down(depth):
        return depth if depth == 0 else down(depth - 1)

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        down(20)
    return threading.get_ident()


def load_torch():
    """Something of that name."""
    sys.modules["torch"] = type(sys)("torch")
