"""Which files of a program have changed, for ``--reload``."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Seconds between two looks.
PAUSE = 0.3


class Watch:
    """Looks at the Python files below some folders, and remembers when each was written."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = list(folders)
        self._seen = dict(self._look())

    async def changed(self) -> str:
        """Waits until a file is written, comes or goes; its path."""
        while True:
            await asyncio.sleep(PAUSE)
            now = dict(self._look())
            before, self._seen = self._seen, now
            for path in before.keys() | now.keys():
                if before.get(path) != now.get(path):
                    return path

    def _look(self) -> Iterator[tuple[str, int]]:
        for folder in self._folders:
            for place, folders, names in os.walk(folder):
                folders[:] = [name for name in folders if _is_source(os.path.join(place, name))]
                for name in names:
                    if name.endswith(".py"):
                        path = os.path.join(place, name)
                        try:
                            yield path, os.stat(path).st_mtime_ns
                        except FileNotFoundError:
                            continue


def _is_source(folder: str) -> bool:
    name = os.path.basename(folder)
    if name.startswith(".") or name in ("__pycache__", "node_modules"):
        return False
    return not os.path.exists(os.path.join(folder, "pyvenv.cfg"))
