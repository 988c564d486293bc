#: guides: 001

import erlang_asyncio

# Exceptions
erlang_asyncio.TimeoutError
erlang_asyncio.CancelledError

# Constants for wait()
erlang_asyncio.ALL_COMPLETED
erlang_asyncio.FIRST_COMPLETED
erlang_asyncio.FIRST_EXCEPTION
