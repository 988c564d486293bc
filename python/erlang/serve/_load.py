"""The application behind a name like ``main:app``."""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import Any


class AppNotFound(Exception):
    """No application has this name."""

    __module__ = "erlang.serve"


def load(name: str, *, factory: bool = False, wsgi: bool = False) -> Any:
    """The object ``app`` of the module ``main`` for ``main:app``; with `factory`, its result."""
    found = find(name)
    if factory:
        found = found()
    if not callable(found):
        raise AppNotFound(f"{name} is a {type(found).__name__}, and can't be called")
    return found if wsgi else as_asgi3(found)


def find(name: str) -> Any:
    """What the name stands for; imports its module."""
    module_name, colon, path = name.partition(":")
    if not (module_name and colon and path):
        raise AppNotFound(f"{name!r} is not of the form module:attribute")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # What the module itself imports in vain is its own error.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise AppNotFound(f"there is no module {module_name!r}") from None
    for attribute in path.split("."):
        try:
            found = getattr(found, attribute)
        except AttributeError:
            raise AppNotFound(f"{module_name!r} has no attribute {path!r}") from None
    return found


def as_asgi3(app: Any) -> Any:
    """The application itself, or around one of the form of ASGI 2 one of ASGI 3."""
    if inspect.isclass(app):
        single = hasattr(app, "__await__")
    else:
        plain = inspect.isroutine(app) or isinstance(app, functools.partial)
        call = app if plain else getattr(app, "__call__", app)  # noqa: B004
        single = inspect.iscoroutinefunction(call) or _takes_three(call)
    if single:
        return app

    async def asgi2(scope: Any, receive: Any, send: Any) -> None:
        await app(scope)(receive, send)

    return asgi2


async def awaited(given: Any) -> Any:
    """A coroutine of what an application returned that is none, as the classes of Starlette do."""
    if not inspect.isawaitable(given):
        raise TypeError(f"the application returned {given!r}, which can't be awaited")
    return await given


def _takes_three(call: Any) -> bool:
    try:
        inspect.signature(call).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:
        return True
    return True
