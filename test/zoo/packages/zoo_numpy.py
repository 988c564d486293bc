"""numpy: linear algebra in its own threads."""

import numpy


def work():
    matrix = numpy.arange(10_000.0).reshape(100, 100) + numpy.eye(100) * 1000
    return round(float(numpy.linalg.norm(matrix @ numpy.linalg.inv(matrix))), 6)
