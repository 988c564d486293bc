"""numba: a compiled loop."""

import numba


@numba.njit
def _total(count):
    total = 0
    for number in range(count):
        total += number
    return total


def work():
    return _total(1000)
