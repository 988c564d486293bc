#: guides: 000
#: adds: async def main(): return "ran"

import asyncio
import erlang

with asyncio.Runner(loop_factory=erlang.new_event_loop) as runner:
    runner.run(main())
