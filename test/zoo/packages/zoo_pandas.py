"""pandas: a group by."""

import pandas


def work():
    frame = pandas.DataFrame({"key": [1, 2, 1, 2] * 100, "value": range(400)})
    return frame.groupby("key")["value"].sum().tolist()
