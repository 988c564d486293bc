#: guides: 000
#: adds: async def main(): return "ran"

import erlang

# Preferred way to run async code
erlang.run(main())
