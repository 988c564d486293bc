#: guides: 001
#: adds: async def slow_operation(): await erlang_asyncio.sleep(3600)
#: ends: by its own timeout

import erlang_asyncio

async def main():
    async with erlang_asyncio.timeout(1.0):
        await slow_operation()  # Raises TimeoutError if > 1s
