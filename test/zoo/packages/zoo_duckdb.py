"""duckdb: a query, with a connection per call."""

import duckdb


def work():
    with duckdb.connect() as connection:
        return connection.execute("select sum(range) from range(1000)").fetchone()[0].__int__()
