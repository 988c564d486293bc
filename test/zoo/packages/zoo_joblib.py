"""joblib: on threads, and on loky's processes."""

import operator

import joblib


def work():
    calls = [joblib.delayed(operator.mul)(number, number) for number in range(10)]
    threads = sum(joblib.Parallel(2, prefer="threads")(calls))
    return [threads, sum(joblib.Parallel(2)(calls))]
