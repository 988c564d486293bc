"""polars: a lazy query in its own threads."""

import polars


def work():
    frame = polars.DataFrame({"key": [1, 2, 1, 2] * 100, "value": list(range(400))})
    summed = frame.lazy().group_by("key").agg(polars.col("value").sum()).sort("key").collect()
    return summed["value"].to_list()
