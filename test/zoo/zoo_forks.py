"""Processes made by fork in a node, most of them ended by terminate().

Each round is one pool of two processes: it works, then it is left in order, or its processes are
terminated while they work.
"""

import concurrent.futures
import gc
import multiprocessing
import os
import threading
import time

try:
    import torch
    from torch.utils.data import DataLoader, Dataset
except ImportError:
    torch, Dataset = None, object

FORK = multiprocessing.get_context("fork")
FORKED = [0]
PROCESSES = 2
PATIENCE = 30


def _count():
    FORKED[0] += 1


os.register_at_fork(after_in_parent=_count)


def rounds(first, last):
    """Runs these rounds; gives how many processes were made."""
    before = FORKED[0]
    ways = [_pool, _executor] + ([_loader] if torch else [])
    for number in range(first, last + 1):
        way, terminate = number % len(ways), number // len(ways) % 4 != 0
        ways[way](terminate)
    return FORKED[0] - before


def square(number):
    return number * number


def _pool(terminate):
    pool = FORK.Pool(PROCESSES)
    assert pool.map(square, range(10)) == [n * n for n in range(10)]
    processes = list(pool._pool)
    if terminate:
        pool.map_async(time.sleep, [60] * 4, chunksize=1)
        pool.terminate()
    else:
        pool.close()
    pool.join()
    _ended(processes, terminate)


def _executor(terminate):
    with concurrent.futures.ProcessPoolExecutor(PROCESSES, mp_context=FORK) as executor:
        assert list(executor.map(square, range(10))) == [n * n for n in range(10)]
        processes = list(executor._processes.values())
        if terminate:
            asleep = [executor.submit(time.sleep, 60) for _ in range(4)]
            for process in processes:
                process.terminate()
            for future in asleep:
                error = future.exception(timeout=PATIENCE)
                assert isinstance(error, concurrent.futures.process.BrokenProcessPool), error
    _ended(processes, terminate)


class Numbers(Dataset):
    def __init__(self, delay):
        self.delay = delay

    def __len__(self):
        return 16

    def __getitem__(self, number):
        # The first batches come at once, the others when the processes are long gone.
        time.sleep(self.delay if number > 3 else 0)
        return torch.full((4,), number)


def _loader(terminate):
    loader = DataLoader(Numbers(60 if terminate else 0), batch_size=2, num_workers=PROCESSES)
    batches = iter(loader)
    processes = list(batches._workers)
    if terminate:
        assert next(batches).tolist() == [[0] * 4, [1] * 4]
        for process in processes:
            process.terminate()
            process.join(PATIENCE)
        # Otherwise it looks after its processes every five seconds only.
        batches._timeout = 0.1
        try:
            for _ in batches:
                pass
        except RuntimeError as error:
            told = str(error)
        else:
            told = "the loader has outlived its processes"
        assert "exited unexpectedly" in told or "killed by signal" in told, told
    else:
        assert sum(int(batch.sum()) for batch in batches) == 4 * sum(range(16))
    del batches
    _ended(processes, terminate)


def _ended(processes, terminate):
    assert len(processes) == PROCESSES, processes
    for process in processes:
        process.join(PATIENCE)
    codes = {process.exitcode for process in processes}
    # One that had no work yet may have ended by itself.
    assert codes <= ({0, -15} if terminate else {0}), codes


def here():
    """What this process has: descriptors, threads, children with their states."""
    gc.collect()
    open_files = []
    for number in os.listdir("/proc/self/fd"):
        try:
            open_files.append(f"{number} {os.readlink(f'/proc/self/fd/{number}')}")
        except OSError:
            continue
    return {
        "descriptors": sorted(open_files),
        "threads": sorted(
            # The others stand for threads of the node, from the first time that one asks who it
            # is; those are among the tasks.
            thread.name
            for thread in threading.enumerate()
            if not isinstance(thread, threading._DummyThread)
        ),
        "tasks": len(os.listdir("/proc/self/task")),
        "children": sorted(_children()),
    }


def _children():
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children") as listed:
                numbers = listed.read().split()
        except OSError:
            continue
        for number in numbers:
            try:
                with open(f"/proc/{number}/stat") as stat:
                    yield f"{number} {stat.read().rpartition(')')[2].split()[0]}"
            except OSError:
                continue


def torch_version():
    return torch.__version__ if torch else "none"
