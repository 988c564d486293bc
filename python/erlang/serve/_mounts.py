"""Several applications behind one server, by path."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from erlang.serve._load import as_asgi3

if TYPE_CHECKING:
    from collections.abc import Mapping


class Mounts:
    """An application that calls others: ``Mounts({"/api": api, "/": site})``.

    The longest prefix that fits wins. It is added to ``root_path``; ``path`` stays whole, as the
    specification has it. The lifespans of all run together, each with a state of its own.
    """

    def __init__(self, apps: Mapping[str, Any]) -> None:
        found = {}
        for prefix, app in apps.items():
            if not prefix.startswith("/"):
                raise ValueError(f"the prefix {prefix!r} does not begin with a slash")
            found[prefix.rstrip("/")] = as_asgi3(app)
        self._apps = dict(sorted(found.items(), key=lambda item: -len(item[0])))
        self._states: dict[str, dict[str, Any]] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
            return
        root = scope.get("root_path", "")
        path = scope["path"][len(root) :] if scope["path"].startswith(root) else scope["path"]
        for prefix, app in self._apps.items():
            if path == prefix or path.startswith(prefix + "/"):
                scope["root_path"] = root + prefix
                if prefix in self._states:
                    scope["state"] = dict(self._states[prefix])
                await app(scope, receive, send)
                return
        await _not_found(scope, receive, send)

    async def _lifespan(self, scope: Any, receive: Any, send: Any) -> None:
        from erlang.serve._lifespan import Lifespan, LifespanFailed

        lives = {prefix: Lifespan(app, "auto") for prefix, app in self._apps.items()}
        await receive()
        started = []
        try:
            for prefix, life in lives.items():
                await life.startup()
                started.append(life)
                if life.state is not None:
                    self._states[prefix] = life.state
        except LifespanFailed as error:
            await asyncio.gather(*(life.shutdown() for life in started), return_exceptions=True)
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        ends = (life.shutdown() for life in reversed(started))
        results = await asyncio.gather(*ends, return_exceptions=True)
        failures = [str(result) for result in results if result is not None]
        if failures:
            await send({"type": "lifespan.shutdown.failed", "message": "; ".join(failures)})
        else:
            await send({"type": "lifespan.shutdown.complete"})


async def _not_found(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close"})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": 404, "headers": headers})
    await send({"type": "http.response.body", "body": b"Not Found"})
