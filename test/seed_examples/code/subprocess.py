#: guides: 000
#: adds: import asyncio
#: adds: loop = asyncio.get_running_loop()
#: replaces: loop.subprocess_shell(...) -> shell = await loop.subprocess_shell(asyncio.SubprocessProtocol, "exit 3")
#: replaces: loop.subprocess_exec(...) -> program = await loop.subprocess_exec(asyncio.SubprocessProtocol, "true")
#: replaces: await asyncio.create_subprocess_shell(...) -> shell_2 = await asyncio.create_subprocess_shell("exit 4")
#: replaces: await asyncio.create_subprocess_exec(...) -> program_2 = await asyncio.create_subprocess_exec("true")

# These will raise NotImplementedError:
loop.subprocess_shell(...)
loop.subprocess_exec(...)

# asyncio.create_subprocess_* will also fail
await asyncio.create_subprocess_shell(...)
await asyncio.create_subprocess_exec(...)
