"""An application whose every request asks Erlang, too."""

import erlang


async def app(scope, receive, send):
    assert scope["type"] == "http"
    count = await erlang.async_call("asgi_life_count", "one", "two")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(count).encode()})
