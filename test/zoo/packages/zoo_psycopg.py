"""psycopg: a query and a COPY; without a server (ZOO_POSTGRES has its address) its C part alone."""

import os

import psycopg

SERVER = os.environ.get("ZOO_POSTGRES", "")


def work():
    if not SERVER:
        return _refused()
    with psycopg.connect(SERVER) as connection, connection.cursor() as cursor:
        cursor.execute("create temporary table numbers (number int)")
        with cursor.copy("copy numbers from stdin") as copy:
            for number in range(100):
                copy.write_row((number,))
        summed = cursor.execute("select sum(number) from numbers").fetchone()[0]
        return [psycopg.pq.__impl__, summed]


def _refused():
    try:
        psycopg.connect("host=127.0.0.1 port=1 connect_timeout=2")
    except psycopg.OperationalError:
        return psycopg.pq.__impl__


async def work_async():
    if not SERVER:
        return work()
    async with await psycopg.AsyncConnection.connect(SERVER) as connection:
        cursor = await connection.execute("select 6 * 7")
        return (await cursor.fetchone())[0]
