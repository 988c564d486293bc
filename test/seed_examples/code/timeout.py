#: guides: 000
#: adds: async def slow_operation(): await asyncio.sleep(3600)
#: ends: by its own timeout

import erlang
import asyncio

async def main():
    async with asyncio.timeout(1.0):
        await slow_operation()  # Raises TimeoutError if > 1s

erlang.run(main())
