"""dask: delayed functions on threads."""

import dask


@dask.delayed
def _square(number):
    return number * number


def work():
    return dask.compute(sum(_square(number) for number in range(10)))[0]
