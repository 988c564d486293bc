"""A thread forks while another one starts a process."""

import multiprocessing
import multiprocessing.connection
import os
import subprocess
import threading
from unittest import mock

FORK = multiprocessing.get_context("fork")


class Forker(threading.Thread):
    """Forks a child that lives until it is told to end."""

    def __init__(self):
        super().__init__()
        self.forked = threading.Event()

    def run(self):
        held, self.end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.end)
            os.read(held, 1)
            os._exit(0)
        os.close(held)
        self.forked.set()

    def begin(self):
        """Comes back when the child is there, or when it does not come."""
        self.start()
        self.forked.wait(1)

    def finish(self):
        self.join()
        os.close(self.end)
        os.waitpid(self.pid, 0)


def output():
    """What a process says that starts meanwhile, to the end."""
    forker = Forker()

    class Popen(subprocess.Popen):
        def _execute_child(self, *args, **kwargs):
            forker.begin()
            super()._execute_child(*args, **kwargs)

    try:
        return Popen(["echo", "said"], stdout=subprocess.PIPE).communicate(timeout=20)[0]
    finally:
        forker.finish()


def end_of_process():
    """How a process ended that starts meanwhile, as multiprocessing hears of it."""
    forker, pipe, made = Forker(), os.pipe, []

    def counted():
        pair = pipe()
        if threading.current_thread() is not forker:
            made.append(pair)
            if len(made) == 2:
                forker.begin()
        return pair

    process = FORK.Process(target=threading.Event().wait)
    with mock.patch("os.pipe", counted):
        process.start()
    try:
        process.kill()
        heard = multiprocessing.connection.wait([process.sentinel], 20)
        process.join()
        return process.exitcode if heard else "not heard"
    finally:
        forker.finish()


def said(*_):
    return subprocess.run(["echo", "said"], capture_output=True).stdout


def in_thread_of_child():
    """The child has not what its parent's thread had when it forked."""
    reads, writes = FORK.Pipe(False)

    def child():
        thread = threading.Thread(target=lambda: writes.send(said()))
        thread.start()
        thread.join()

    process = FORK.Process(target=child)
    process.start()
    try:
        return reads.recv() if reads.poll(4) else "nothing"
    finally:
        process.kill()
        process.join()


def beside_a_start_that_hangs():
    """Another thread's start waits for something: this one's does not wait for ever."""
    begun, end = threading.Event(), threading.Event()

    class Popen(subprocess.Popen):
        def _execute_child(self, *args, **kwargs):
            begun.set()
            end.wait()
            super()._execute_child(*args, **kwargs)

    thread = threading.Thread(target=lambda: Popen(["true"]).wait())
    thread.start()
    begun.wait()
    try:
        return said()
    finally:
        end.set()
        thread.join()
