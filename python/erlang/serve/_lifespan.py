"""The lifespan of an application: a task that hears when the server starts and stops."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

logger = logging.getLogger("erlang.serve")


class LifespanFailed(Exception):
    """The application said that it could not start or stop, or raised."""

    __module__ = "erlang.serve"


class Lifespan:
    """Calls the application with a lifespan scope, and talks with it."""

    def __init__(self, app: Any, mode: str) -> None:
        self._app = app
        self._mode = mode
        self._state: dict[str, Any] = {}
        self._events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._answer: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._waits_for = ""
        self._heard = False
        self.supported = False

    @property
    def state(self) -> dict[str, Any] | None:
        """What requests get a copy of; `None` if the application has no lifespan."""
        return self._state if self.supported else None

    async def startup(self) -> None:
        if self._mode == "off":
            return
        self._task = asyncio.create_task(self._run(), name="lifespan")
        try:
            self.supported = await self._ask("startup")
        except LifespanFailed:
            await asyncio.wait([self._task])
            raise

    async def shutdown(self, timeout: float | None = None) -> None:
        """Within `timeout` seconds, if it is given; what takes longer is cancelled."""
        if not self.supported or self._task is None or self._task.done():
            return
        try:
            async with asyncio.timeout(timeout):
                await self._ask("shutdown")
                await asyncio.wait([self._task])
        except TimeoutError:
            text = "the application did not end its lifespan within %s s: it is cancelled"
            logger.warning(text, timeout)
            self._task.cancel()
            # One that does not let itself be cancelled can't hold up the end.
            await asyncio.wait([self._task], timeout=1.0)

    async def _ask(self, what: str) -> bool:
        """Whether the application has answered; it has not if it knows no lifespan."""
        self._waits_for = what
        self._answer = asyncio.get_running_loop().create_future()
        self._events.put_nowait({"type": f"lifespan.{what}"})
        assert self._task is not None
        await asyncio.wait([self._answer, self._task], return_when=asyncio.FIRST_COMPLETED)
        if self._answer.done():
            self._answer.result()
            return True
        error = self._task.exception()
        if what == "startup" and self._mode == "auto":
            if self._heard and error is not None:
                text = "the application raised at its start, and is served without a lifespan"
                logger.warning(text, exc_info=error)
            else:
                logger.debug("the application has no lifespan", exc_info=error)
            return False
        if error is None:
            raise LifespanFailed(f"the application returned without an answer to {what}")
        raise LifespanFailed(f"the application raised at {what}: {error!r}") from error

    async def _run(self) -> None:
        scope = {
            "type": "lifespan",
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "state": self._state,
        }
        await self._app(scope, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        # Whoever wants to hear of it has a lifespan.
        self._heard = True
        return await self._events.get()

    async def _send(self, message: dict[str, Any]) -> None:
        kind, answer = message["type"], self._answer
        if answer is None or answer.done():
            raise RuntimeError(f"{kind} was not asked for")
        if kind == f"lifespan.{self._waits_for}.complete":
            answer.set_result(None)
        elif kind == f"lifespan.{self._waits_for}.failed":
            text = message.get("message") or f"the application failed at {self._waits_for}"
            answer.set_exception(LifespanFailed(text))
        else:
            raise RuntimeError(f"{kind} is no answer to lifespan.{self._waits_for}")
