"""psycopg: its C part, without a server."""

import psycopg


def work():
    try:
        psycopg.connect("host=127.0.0.1 port=1 connect_timeout=2")
    except psycopg.OperationalError:
        return psycopg.pq.__impl__
