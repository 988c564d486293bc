"""asyncpg: its C part, without a server."""

import asyncio

import asyncpg


async def work_async():
    try:
        await asyncpg.connect(host="127.0.0.1", port=1, timeout=2, ssl=False)
    except OSError:
        return "refused"


def work():
    return asyncio.run(work_async())
