"""multiprocessing in all its ways, and concurrent.futures."""

import concurrent.futures
import multiprocessing
import threading
from multiprocessing import shared_memory

# In turn: in a plain Python 3.13 too, 20 threads that do all of this at once lose exit codes or
# hang.
_lock = threading.Lock()


def square(number):
    return number * number


def fill(name, number):
    memory = shared_memory.SharedMemory(name)
    memory.buf[0] = number
    memory.close()


def add(numbers, lock):
    with lock:
        numbers["total"] = numbers.get("total", 0) + 1


def work():
    with _lock:
        methods = ("fork", "forkserver", "spawn")
        return [_by(multiprocessing.get_context(method)) for method in methods]


def _by(context):
    with context.Pool(2) as pool:
        mapped = sum(pool.map(square, range(10)))
    queue = context.SimpleQueue()
    _run(context, queue.put, 1)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        executed = sum(executor.map(square, range(10)))
    return [mapped, queue.get(), executed, _shared(context), _managed(context)]


def _run(context, function, *args):
    process = context.Process(target=function, args=args)
    process.start()
    process.join()
    assert process.exitcode == 0, process.exitcode


def _shared(context):
    memory = shared_memory.SharedMemory(create=True, size=16)
    try:
        _run(context, fill, memory.name, 7)
        return memory.buf[0]
    finally:
        memory.close()
        memory.unlink()


def _managed(context):
    with context.Manager() as manager:
        numbers, lock = manager.dict(), manager.Lock()
        _run(context, add, numbers, lock)
        _run(context, add, numbers, lock)
        return numbers["total"]
