"""matplotlib: a figure without a display."""

import io

from matplotlib.figure import Figure


def work():
    figure = Figure()
    figure.subplots().plot([1, 2, 3])
    file = io.BytesIO()
    figure.savefig(file, format="svg")
    return file.getvalue().startswith(b"<?xml")
