#: guides: 000
#: adds: import asyncio
#: adds: import signal
#: adds: loop = asyncio.get_running_loop()
#: adds: def handler(): pass

# These will raise NotImplementedError:
loop.add_signal_handler(signal.SIGTERM, handler)
loop.remove_signal_handler(signal.SIGTERM)
