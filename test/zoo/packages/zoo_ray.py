"""ray: a cluster of its own on this machine."""

import os
import threading

# No token in the home directory.
os.environ["RAY_AUTH_MODE"] = "disabled"

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


def leave():
    """Ray's processes end with the thread that started them; its client then ends this process."""
    ray.shutdown()
