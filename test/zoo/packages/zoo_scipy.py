"""scipy: an integral and a minimum."""

from scipy import integrate, optimize


def work():
    area, _ = integrate.quad(lambda x: x * x, 0, 3)
    lowest = optimize.minimize_scalar(lambda x: (x - 2) ** 2)
    return [round(area, 6), round(float(lowest.x), 3)]
