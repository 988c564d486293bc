"""ray: a cluster of its own on this machine."""

import threading

import ray

_lock = threading.Lock()


@ray.remote
def square(number):
    return number * number


def work():
    with _lock:
        if not ray.is_initialized():
            ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    return ray.get([square.remote(number) for number in range(4)])
