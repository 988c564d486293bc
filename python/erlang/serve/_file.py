"""Sends the file of ``http.response.pathsend``, whose length was announced."""

from __future__ import annotations

import asyncio
import errno
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import io

#: Bytes that are read at a time.
PIECE = 256 * 1024


async def send_pieces(request: Any, file: io.FileIO, size: int) -> None:
    """As a body, whose rules hold for it: its length, and clients that do not read."""
    more = True
    while more:
        piece = file.read(min(PIECE, size))
        size -= len(piece)
        more = bool(piece) and size > 0
        await request.send({"type": "http.response.body", "body": piece, "more_body": more})


async def send_whole(transport: Any, file: io.FileIO, size: int, patience: float) -> None:
    """By the system. A client that takes nothing of it for `patience` seconds is left."""
    try:
        if await _sent(transport, file, size, patience) < size:
            raise RuntimeError("the file became shorter while it was sent")
    except BaseException:
        # What was announced will not come: nothing else may take its place.
        transport.abort()
        raise


async def _sent(transport: Any, file: io.FileIO, size: int, patience: float) -> int:
    loop = asyncio.get_running_loop()
    sent = 0
    while sent < size:
        try:
            async with asyncio.timeout(None if math.isinf(patience) else patience):
                return sent + await loop.sendfile(transport, file, sent, size - sent)
        except TimeoutError:
            before, sent = sent, file.tell()
            if sent == before:
                text = f"the client has read nothing for {patience} s"
                raise ConnectionAbortedError(errno.ECONNABORTED, text) from None
    return sent
