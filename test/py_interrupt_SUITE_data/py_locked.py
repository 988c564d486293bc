"""The Python side of py_interrupt_SUITE: code that takes locks, or waits in short steps."""

import concurrent.futures
import contextlib
import io
import logging
import queue
import threading
import time

lock = threading.Lock()
rlock = threading.RLock()
condition = threading.Condition()
semaphore = threading.Semaphore()
event = threading.Event()
items = queue.Queue()
future = concurrent.futures.Future()

logger = logging.getLogger("py_locked")
logger.propagate = False
handler = logging.StreamHandler(io.StringIO())
logger.addHandler(handler)


@contextlib.contextmanager
def managed():
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


class Manager:
    def __enter__(self):
        lock.acquire()
        return self

    def __exit__(self, *raised):
        for _ in raised:
            pass
        lock.release()


def plain():
    while True:
        with lock:
            pass


def reentrant():
    while True:
        with rlock, rlock:
            pass


def conditional():
    while True:
        with condition:
            condition.notify_all()


def counted():
    while True:
        with semaphore:
            pass


def signalled():
    while True:
        event.set()
        event.wait()
        event.clear()


def queued():
    while True:
        items.put(1)
        with contextlib.suppress(queue.Empty):
            items.get_nowait()


def logged():
    while True:
        logger.warning("taken")
        handler.stream.seek(0)


def acquired():
    while True:
        lock.acquire()
        try:
            pass
        finally:
            lock.release()


def generated():
    while True:
        with managed():
            pass


def classic():
    while True:
        with Manager():
            pass


def awaited():
    while True:
        future.add_done_callback(id)
        future.done()
        future._done_callbacks.clear()


# The lock behind each.
_LOCKS = {
    "plain": lock,
    "reentrant": rlock,
    "conditional": condition._lock,
    "counted": semaphore._cond._lock,
    "signalled": event._cond._lock,
    "queued": items.mutex,
    "logged": handler.lock,
    "acquired": lock,
    "generated": lock,
    "classic": lock,
    "awaited": future._condition._lock,
}


def is_free(kind):
    """Whether its lock can be had, also by a thread that has had it before."""
    taken = []

    def take():
        if _LOCKS[kind].acquire(timeout=5):
            taken.append(kind)
            _LOCKS[kind].release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return taken == [kind]


def spin():
    while True:
        pass


# Code that mostly waits, a moment each time, and looks for nothing else.


def wait_for_items():
    while True:
        with contextlib.suppress(queue.Empty):
            items.get(timeout=0.05)


def wait_for_an_event():
    while not event.wait(0.05):
        pass


def wait_for_a_permit():
    empty = threading.Semaphore(0)
    while not empty.acquire(timeout=0.05):
        pass


def wait_for_a_thread():
    thread = threading.Thread(target=time.sleep, args=(20,), daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)


def wait_with_a_lock():
    while True:
        with lock:
            time.sleep(0.05)


def wait_with_a_condition():
    while True:
        with condition:
            condition.wait(0.05)


def wait_for_files():
    log = logging.getLogger("py_locked.file")
    log.propagate = False
    with open("/dev/null", "w") as file:
        log.addHandler(logging.StreamHandler(file))
        while True:
            log.warning("written")


def retry():
    while True:
        try:
            raise OSError
        except OSError:
            time.sleep(0.05)


def run(kind, began, ended):
    """Runs a function of this module until it is stopped."""
    import erlang

    # In the `try`: before Python 3.13 the exception may be raised as soon as `send` returns.
    try:
        erlang.send(began, "began")
        globals()[kind]()
    finally:
        erlang.send(ended, "ended")
