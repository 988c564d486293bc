"""Asks a server what every program of the zoo answers, and prints `ok` or what was wrong.

python zoo_client.py PORT PROGRAM

A program has `/hello?name=` and `/echo`; `/ws` if it says so by having `ws` in its source; and more
paths, which must be found, in `paths`. A framework with a protocol of its own has a client in
`clients/`, under the same name: its `ask(base)` is awaited last.
"""

import asyncio
import importlib.util
import pathlib
import re
import sys

import httpx
import websockets

PATIENCE = 30.0
BODY = "0123456789" * 10_000


async def up(client: httpx.AsyncClient) -> None:
    """Waits until the server answers."""
    end = asyncio.get_running_loop().time() + PATIENCE
    while True:
        try:
            await client.get("/hello", params={"name": "up"})
            return
        except httpx.TransportError:
            if asyncio.get_running_loop().time() > end:
                raise
            await asyncio.sleep(0.1)


async def requests(client: httpx.AsyncClient) -> None:
    names = [f"n{number}" for number in range(20)]
    asked = [client.get("/hello", params={"name": name}) for name in names]
    for name, answer in zip(names, await asyncio.gather(*asked), strict=True):
        assert (answer.status_code, answer.text) == (200, f"hello {name}"), answer
    answer = await client.post("/echo", content=BODY, headers={"content-type": "text/plain"})
    assert answer.status_code == 200, answer
    assert answer.text == BODY, len(answer.content)
    answer = await client.get("/nothing/here")
    assert answer.status_code == 404, answer


async def own_client(base: str, program: pathlib.Path) -> None:
    file = pathlib.Path(__file__).parent / "clients" / program.name
    if file.exists():
        spec = importlib.util.spec_from_file_location("own_client", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        await module.ask(base)


async def main(port: int, program: pathlib.Path) -> None:
    source = program.read_text()
    base = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(base_url=base, timeout=PATIENCE, trust_env=False) as client:
        await up(client)
        await requests(client)
        for path in re.findall(r'"(/[^"]*)"', "".join(re.findall(r"^paths = (.*)", source, re.M))):
            answer = await client.get(path)
            assert answer.status_code == 200, (path, answer)
    if '/ws"' in source or 'path("ws"' in source:
        async with websockets.connect(f"ws://127.0.0.1:{port}/ws", proxy=None) as socket:
            await socket.send("hello")
            assert await socket.recv() == "hello"
    await own_client(base, program)


if __name__ == "__main__":
    try:
        asyncio.run(main(int(sys.argv[1]), pathlib.Path(sys.argv[2])))
    except Exception as error:
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        print(f"failed: {type(error).__name__}: {error}".replace("\n", " ")[:300])
        sys.exit(1)
    print("ok")
