"""asyncpg: a pool, or its C part alone without a server (ZOO_POSTGRES has its address)."""

import asyncio
import os

import asyncpg

SERVER = os.environ.get("ZOO_POSTGRES", "")


async def work_async():
    if not SERVER:
        return await _refused()
    async with asyncpg.create_pool(SERVER, min_size=1, max_size=2) as pool:
        asked = [pool.fetchval("select $1::int * 2", number) for number in range(10)]
        rows = await asyncio.gather(*asked)
        async with pool.acquire() as connection, connection.transaction():
            cursor = connection.cursor("select generate_series(1, 100) n")
            records = [record["n"] async for record in cursor]
    return [sum(rows), len(records)]


async def _refused():
    try:
        await asyncpg.connect(host="127.0.0.1", port=1, timeout=2, ssl=False)
    except OSError:
        return "refused"


def work():
    return asyncio.run(work_async())
