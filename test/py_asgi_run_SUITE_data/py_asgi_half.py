"""An application that is there, but not whole, while its module is imported."""

import erlang

routes = {}


async def app(scope, receive, send):
    status, body = routes.get(scope["path"], (404, b"half"))
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": body})


erlang.call("py_asgi_half")
routes["/"] = 200, b"whole"
