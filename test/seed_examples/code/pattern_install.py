#: guides: 000
#: adds: async def main(): return "ran"

import asyncio
import erlang

erlang.install()  # Deprecated in 3.12+, use erlang.run() instead
asyncio.run(main())
