"""Groups of processes: messages between Erlang processes and Python tasks, on all nodes.

A group is any term; it is there as long as it has members. Erlang's side is ``py_pg``, or ``pg``
itself with the scope ``erlang_python``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from erlang import call
from erlang import self as _self
from erlang._channel import Mailbox, receive

if TYPE_CHECKING:
    from types import TracebackType

    from erlang import Pid

__all__ = ["Subscription", "broadcast", "join", "leave", "members", "subscribe"]


def join(group: object, pid: Pid | None = None, *, scope: str | None = None) -> None:
    """A process joins: by default that of the current task's mailbox (``erlang.receive()``), and in
    code that is no task the process that has called Python. Joined twice, it is in it twice."""
    call("$pg_join", scope, group, pid or _own_pid())


def leave(group: object, pid: Pid | None = None, *, scope: str | None = None) -> bool:
    """Whether it was in the group."""
    return bool(call("$pg_leave", scope, group, pid or _own_pid()))


def members(group: object, *, scope: str | None = None) -> list[Pid]:
    """The processes of the group, on all nodes."""
    found: list[Pid] = call("$pg_members", scope, group)
    return found


def broadcast(group: object, message: object, *, scope: str | None = None) -> int:
    """Sends to every process of the group, and says to how many."""
    count: int = call("$pg_broadcast", scope, group, message)
    return count


def _own_pid() -> Pid:
    if asyncio._get_running_loop() is not None and asyncio.current_task() is not None:
        return receive().pid
    return _self()


class Subscription(Mailbox):
    """What is sent to a group from now on: ``async for message in erlang.pg.subscribe(group)``.

    It ends with ``close``, with its ``async with``, or with the task that has made it.
    """

    __module__ = "erlang.pg"

    def __init__(self, group: object, *, scope: str | None = None) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("erlang.pg.subscribe() is for a task: use erlang.pg.join()")
        super().__init__()
        self.group = group
        task.add_done_callback(self._stop)
        join(group, self.pid, scope=scope)

    def __repr__(self) -> str:
        return f"<erlang.pg.Subscription {self.group!r} {self.pid!r}>"

    def close(self) -> None:
        """Nothing comes any more; who waits hears the end."""
        self._stop(None)

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def subscribe(group: object, *, scope: str | None = None) -> Subscription:
    """A mailbox of its own in the group."""
    return Subscription(group, scope=scope)
