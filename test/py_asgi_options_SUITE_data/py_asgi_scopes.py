"""Applications that tell of their scope."""

import erlang


async def app(scope, receive, send):
    shown = [scope["scheme"], scope["root_path"], scope["path"], scope["client"]]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": repr(shown).encode()})


async def waits(scope, receive, send):
    box = erlang.receive()
    erlang.send("py_asgi_options_test", box.pid)
    await box.areceive()
    await app(scope, receive, send)


async def extensions(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": repr(scope["extensions"]).encode()})
