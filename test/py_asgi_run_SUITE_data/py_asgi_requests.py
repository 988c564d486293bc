"""Applications that answer single requests."""

import asyncio
import functools

import erlang


async def answer(send, body, status=200, headers=()):
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})


async def hello(scope, receive, send):
    await answer(send, b"hello", headers=[(b"content-type", b"text/plain")])


async def show(scope, receive, send):
    """The scope, as Python shows it."""
    await answer(send, repr({key: scope[key] for key in sorted(scope)}).encode())


async def about(scope, receive, send):
    """What it knows of its caller, as Python shows it."""
    await answer(send, repr(erlang.current().metadata).encode())


async def echo(scope, receive, send):
    body = b""
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise ConnectionResetError("the body ended too early")
        body += event["body"]
        if not event["more_body"]:
            break
    await answer(send, body)


async def cookies(scope, receive, send):
    pairs = [(b"Set-Cookie", b"a=1"), (b"set-cookie", b"b=2")]
    await answer(send, b"", status=204, headers=pairs)


async def raises(scope, receive, send):
    raise LookupError("no such thing")


async def silent(scope, receive, send):
    return


async def body_first(scope, receive, send):
    await send({"type": "http.response.body", "body": b""})


async def twice(scope, receive, send):
    await answer(send, b"")
    await answer(send, b"")


async def unknown(scope, receive, send):
    await send({"type": "http.response.trailers", "headers": []})


async def then_disconnect(scope, receive, send):
    """Waits for the end as Django and Starlette do, while it answers."""
    await receive()
    waits = asyncio.ensure_future(receive())
    await asyncio.sleep(0)
    early = waits.done()
    await answer(send, repr(early).encode())
    erlang.send("py_asgi_run_test", (await waits)["type"])


async def background(scope, receive, send):
    """Goes on after its response, until it is told something."""
    await answer(send, b"answered")
    box = erlang.receive()
    erlang.send("py_asgi_run_test", ("goes on", box.pid))
    erlang.send("py_asgi_run_test", await box.areceive())


async def hangs(scope, receive, send):
    erlang.send("py_asgi_run_test", "hangs")
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        erlang.send("py_asgi_run_test", "over")


async def counts(scope, receive, send):
    """A hundred pieces; it tells after each."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for number in range(100):
        event = {"type": "http.response.body", "body": b"%d " % number, "more_body": True}
        try:
            await send(event)
        except OSError:
            erlang.send("py_asgi_run_test", "noticed")
            raise
        erlang.send("py_asgi_run_test", number)
    await send({"type": "http.response.body", "body": b""})


class Endpoint:
    """An application as Starlette's endpoints are: its instances are awaited."""

    def __init__(self, scope, receive, send):
        self.send = send

    def __await__(self):
        return answer(self.send, b"endpoint").__await__()


def endpoint(scope, receive, send):
    return Endpoint(scope, receive, send)


partly = functools.partial(endpoint)


class Old:
    """An application of the form of ASGI 2."""

    def __init__(self, scope):
        self.scope = scope

    async def __call__(self, receive, send):
        await answer(send, b"old")


def wsgi(environ, start_response):
    body = environ["wsgi.input"].read()
    start_response("201 Created", [("X-Length", str(len(body))), ("X-Length", "twice")])
    return [environ["REQUEST_METHOD"].encode(), b" ", environ["PATH_INFO"].encode(), b" ", body]


def wsgi_raises(environ, start_response):
    raise LookupError("no such thing")


def wsgi_silent(environ, start_response):
    return []
