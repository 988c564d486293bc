#: guides: 001
#: ends: its last line raises, as it says

import erlang_asyncio

# Get the current event loop (creates ErlangEventLoop if needed)
loop = erlang_asyncio.get_event_loop()

# Create a new event loop
loop = erlang_asyncio.new_event_loop()

# Set the current event loop
erlang_asyncio.set_event_loop(loop)

# Get the running loop (raises RuntimeError if none)
loop = erlang_asyncio.get_running_loop()
