"""multiprocessing in all its ways, and concurrent.futures."""

import concurrent.futures
import multiprocessing


def square(number):
    return number * number


def work():
    results = []
    for method in ("fork", "forkserver", "spawn"):
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            results.append(sum(pool.map(square, range(10))))
        queue = context.SimpleQueue()
        process = context.Process(target=queue.put, args=(1,))
        process.start()
        results.append(queue.get())
        process.join()
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
            results.append(sum(executor.map(square, range(10))))
    return results
