"""Falcon."""

import falcon.asgi


class Hello:
    async def on_get(self, request, response):
        response.text = f"hello {request.get_param('name')}"


class Echo:
    async def on_post(self, request, response):
        response.data = await request.stream.read()


class Socket:
    async def on_websocket(self, _request, socket):
        await socket.accept()
        await socket.send_text(await socket.receive_text())
        await socket.close()


app = falcon.asgi.App()
app.add_route("/hello", Hello())
app.add_route("/echo", Echo())
app.add_route("/ws", Socket())
