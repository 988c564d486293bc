"""pyarrow: a table, and Parquet in memory."""

import io

import pyarrow
import pyarrow.compute
import pyarrow.parquet


def work():
    table = pyarrow.table({"number": list(range(1000))})
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file)
    return pyarrow.compute.sum(pyarrow.parquet.read_table(file)["number"]).as_py()
