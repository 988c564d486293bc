"""call_soon, call_later, handles, contexts, stop and close: the same on asyncio's loop and ours."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import ctypes
import gc
import math
import random
import subprocess
import sys
import weakref

import pytest

import erlang

Loop = asyncio.AbstractEventLoop
INFINITY = math.inf


def turn(loop: Loop) -> None:
    loop.call_soon(loop.stop)
    loop.run_forever()


def test_callbacks_run_in_the_order_they_came(loop: Loop) -> None:
    ran: list[int] = []
    for number in range(100):
        loop.call_soon(ran.append, number)
    turn(loop)
    assert ran == list(range(100))


def test_a_callback_cancelled_in_its_own_batch_does_not_run(loop: Loop) -> None:
    ran: list[int] = []
    loop.call_soon(lambda: second.cancel())
    second = loop.call_soon(ran.append, 1)
    turn(loop)
    assert ran == []
    assert second.cancelled()


def test_a_callback_may_cancel_its_own_handle(loop: Loop) -> None:
    ran: list[object] = []

    def cancel_me(argument: object) -> None:
        handle.cancel()
        gc.collect()
        ran.append(argument)

    handle = loop.call_soon(cancel_me, ["made for this call only"])
    turn(loop)
    assert ran == [["made for this call only"]]


@pytest.mark.parametrize("count", [0, 1, 2, 6, 7, 50])
def test_any_number_of_arguments_arrives(loop: Loop, count: int) -> None:
    ran: list[tuple[int, ...]] = []

    def take(*args: int) -> None:
        ran.append(args)

    held = loop.call_soon(take, *range(count))
    loop.call_soon(take, *range(count))
    turn(loop)
    assert ran == [tuple(range(count))] * 2
    assert not held.cancelled()


def test_handles_are_asyncios_to_isinstance(loop: Loop) -> None:
    soon, later = loop.call_soon(print), loop.call_later(5, print)
    assert isinstance(soon, asyncio.Handle)
    assert not isinstance(soon, asyncio.TimerHandle)
    assert isinstance(later, asyncio.TimerHandle)
    assert "print" in repr(soon)
    assert "when=" in repr(later)
    for handle in soon, later:
        handle.cancel()
        handle.cancel()
        assert handle.cancelled()
        assert "cancelled" in repr(handle)


def test_a_handle_that_was_given_out_is_never_used_for_another_call(loop: Loop) -> None:
    ran: list[int] = []
    handles = [loop.call_soon(ran.append, number) for number in range(100)]
    turn(loop)
    more = [loop.call_soon(ran.append, number) for number in range(100, 200)]
    for handle in handles:
        handle.cancel()
    turn(loop)
    assert ran == list(range(200))
    assert len(more) == 100


def test_timers_fire_in_the_order_of_their_times_and_never_early(loop: Loop) -> None:
    fired: list[tuple[float, float]] = []

    def note(when: float) -> None:
        fired.append((when, loop.time()))

    now = loop.time()
    for delay in (0.03, 0.01, 0.02, 0.0, 0.00025):
        loop.call_at(now + delay, note, now + delay)
    loop.call_later(0.05, loop.stop)
    loop.run_forever()
    assert [when for when, _ in fired] == sorted(when for when, _ in fired)
    assert len(fired) == 5
    assert all(at >= when for when, at in fired)


# All of them are over on any machine, however short it has been up.
PAST = [-INFINITY, -1e300, -3e9, -2.5, -2.0, -1e-9, -1e-300, 0.0, 1e-300, 1e-10, 2e-10, 1e-9]
NEVER = [1e12, 1e19, 1e300, INFINITY]


@pytest.mark.parametrize("debug", [False, True], ids=["plain", "debug"])
@pytest.mark.parametrize("later", [False, True], ids=["call_at", "call_later"])
def test_timers_fire_in_the_order_of_their_times_also_before_the_clock_began(
    loop: Loop, later: bool, debug: bool
) -> None:
    loop.set_debug(debug)
    ran: list[float] = []
    call, due = (loop.call_later, PAST[:5]) if later else (loop.call_at, PAST)
    for time in NEVER:
        call(time, pytest.fail, f"{time} has come")
    for time in random.Random(7).sample(due, len(due)):
        call(time, ran.append, time)
    loop.stop()
    loop.run_forever()
    assert ran == due
    # Those that never come do not keep the loop from sleeping for the others.
    loop.call_later(0.001, loop.stop)
    loop.run_forever()


@pytest.mark.parametrize("way", ["call_at", "call_later"])
def test_a_timer_at_no_number_fires_at_once(loop: Loop, way: str) -> None:
    ran: list[str] = []
    handle = getattr(loop, way)(math.nan, ran.append, way)
    assert math.isnan(handle.when())
    # Told to stop: to sleep until then is what asyncio can't.
    loop.stop()
    loop.run_forever()
    assert ran == [way]


def test_a_cancelled_timer_does_not_fire_and_lets_go_of_its_arguments(loop: Loop) -> None:
    class Argument:
        pass

    argument = Argument()
    alive = weakref.ref(argument)
    timer = loop.call_later(0.001, lambda _: pytest.fail("it was cancelled"), argument)
    del argument
    timer.cancel()
    gc.collect()
    assert alive() is None
    loop.call_later(0.01, loop.stop)
    loop.run_forever()


def test_timers_cancelled_in_debug_mode_are_let_go_of(loop: Loop) -> None:
    loop.set_debug(True)
    alive = []
    for _ in range(1000):
        timer = loop.call_later(3600, print)
        alive.append(weakref.ref(timer))
        timer.cancel()
    del timer
    # asyncio removes them at a turn, when they are many.
    turn(loop)
    gc.collect()
    assert sum(ref() is not None for ref in alive) == 0


def test_timer_handles_compare_by_time(loop: Loop) -> None:
    first, second = loop.call_at(1e9, print), loop.call_at(2e9, print)
    assert first < second
    assert second > first
    assert first <= second
    assert first != second
    assert first == first
    assert (first.when(), second.when()) == (1e9, 2e9)
    first.cancel()
    second.cancel()


def test_a_delay_or_a_time_of_none_is_refused(loop: Loop) -> None:
    with pytest.raises(TypeError, match="None"):
        loop.call_later(None, print)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="None"):
        loop.call_at(None, print)  # type: ignore[arg-type]


def test_an_exception_in_a_callback_reaches_the_handler_and_the_loop_goes_on(loop: Loop) -> None:
    heard: list[tuple[Loop, dict[str, object]]] = []
    ran: list[str] = []
    loop.set_exception_handler(lambda loop, context: heard.append((loop, context)))

    def fail() -> None:
        raise ValueError("on purpose")

    loop.call_soon(fail)
    loop.call_soon(ran.append, "next")
    turn(loop)
    assert ran == ["next"]
    [(where, context)] = heard
    assert where is loop
    assert isinstance(context["exception"], ValueError)
    assert "fail" in str(context["message"])
    assert isinstance(context["handle"], asyncio.Handle)


def test_keyboard_interrupt_in_a_callback_ends_run_forever_and_the_rest_stays(loop: Loop) -> None:
    ran: list[str] = []

    def interrupt() -> None:
        raise KeyboardInterrupt

    loop.call_soon(loop.call_soon, ran.append, "made by this turn")
    loop.call_soon(interrupt)
    loop.call_soon(ran.append, "later")
    loop.call_at(loop.time() - 1, ran.append, "due")
    with pytest.raises(KeyboardInterrupt):
        loop.run_forever()
    assert ran == []
    assert not loop.is_running()
    turn(loop)
    assert sorted(ran) == ["due", "later", "made by this turn"]
    assert ran[0] == "later"


def test_stop_before_run_ends_the_first_turn(loop: Loop) -> None:
    ran: list[int] = []
    loop.stop()
    loop.call_soon(ran.append, 1)
    loop.run_forever()
    assert ran == [1]
    loop.call_later(3600, ran.append, 2)
    loop.stop()
    loop.run_forever()
    assert ran == [1]


def test_a_closed_loop_refuses_everything(loop: Loop) -> None:
    loop.close()
    assert loop.is_closed()
    coroutine = asyncio.sleep(0)
    for call in (
        lambda: loop.call_soon(print),
        lambda: loop.call_soon_threadsafe(print),
        lambda: loop.call_later(0, print),
        lambda: loop.call_at(0, print),
        lambda: loop.run_forever(),
        lambda: loop.run_until_complete(coroutine),
        lambda: loop.create_task(coroutine),
    ):
        with pytest.raises(RuntimeError, match="closed"):
            call()
    coroutine.close()


def test_what_waits_in_a_loop_is_dropped_when_it_is_closed(loop: Loop) -> None:
    class Argument:
        pass

    alive = []
    for call in (lambda a: loop.call_soon(print, a), lambda a: loop.call_later(9, print, a)):
        argument = Argument()
        alive.append(weakref.ref(argument))
        call(argument)
    del argument
    loop.close()
    gc.collect()
    assert [ref() for ref in alive] == [None, None]


def test_a_running_loop_can_not_be_closed(loop: Loop) -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="running"):
            loop.close()

    loop.run_until_complete(main())


def test_debug_mode_names_slow_callbacks_and_wrong_threads(
    loop: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    loop.set_debug(True)
    loop.slow_callback_duration = 0.0
    failures: list[BaseException] = []

    def elsewhere() -> None:
        try:
            loop.call_soon(print)
        except RuntimeError as error:
            failures.append(error)

    async def main() -> None:
        await loop.run_in_executor(None, elsewhere)

    loop.run_until_complete(main())
    assert "Non-thread-safe" in str(failures[0])
    assert any("Executing" in record.getMessage() for record in caplog.records)
    with pytest.raises(TypeError):
        loop.call_soon(main)  # type: ignore[arg-type]


def test_tasks_have_names_contexts_and_factories(loop: Loop) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")

    async def main() -> str:
        return variable.get()

    context = contextvars.copy_context()
    context.run(variable.set, "given")
    task = loop.create_task(main(), context=context, name="a name")
    assert task.get_name() == "a name"
    assert loop.run_until_complete(task) == "given"
    assert loop.run_until_complete(loop.create_task(main(), context=context)) == "given"
    made: list[object] = []

    def factory(loop: Loop, coro: object, **options: object) -> asyncio.Task[str]:
        made.append(coro)
        return asyncio.Task(coro, loop=loop, **options)  # type: ignore[arg-type]

    loop.set_task_factory(factory)
    assert loop.run_until_complete(loop.create_task(main())) == "none"
    assert len(made) == 1
    assert loop.get_task_factory() is factory


def test_a_loop_that_nobody_holds_is_collected(loop: Loop) -> None:
    other = type(loop)()
    other.call_later(1, print)
    other.close()
    alive = weakref.ref(other)
    del other
    gc.collect()
    assert alive() is None


def test_one_turn_at_a_time_by_run_once() -> None:
    loop = erlang.new_event_loop()
    ran: list[int] = []
    loop.call_soon(ran.append, 1)
    loop._run_once()
    loop.call_soon(loop._run_once)
    heard: list[object] = []
    loop.set_exception_handler(lambda _, context: heard.append(context["exception"]))
    loop._run_once()
    assert ran == [1]
    assert isinstance(heard[0], RuntimeError)
    loop.close()


def test_importing_erlang_does_not_import_asyncio() -> None:
    code = (
        "import sys, erlang; assert 'asyncio' not in sys.modules; erlang.new_event_loop().close()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_loop_makes_the_tasks_and_futures_that_asyncio_has(
    monkeypatch: pytest.MonkeyPatch, loop: Loop
) -> None:
    class Task(asyncio.tasks._PyTask):  # type: ignore[name-defined,misc]
        pass

    class Future(asyncio.futures._PyFuture):  # type: ignore[name-defined,misc]
        pass

    for module in (asyncio, asyncio.tasks):
        monkeypatch.setattr(module, "Task", Task)
    for module in (asyncio, asyncio.futures):
        monkeypatch.setattr(module, "Future", Future)

    async def main() -> int:
        return 7

    # The one of the fixture knew others, if it is ours.
    with contextlib.closing(type(loop)()) as new:
        assert type(new.create_future()) is Future
        task = new.create_task(main())
        assert type(task) is Task
        assert new.run_until_complete(task) == 7


@pytest.mark.parametrize("when", [0, 3, -7, 2**53, 3.0, 2.5, INFINITY])
def test_a_timer_tells_its_time_as_it_was_given(loop: Loop, when: float) -> None:
    timer = loop.call_at(when, print)
    timer.cancel()
    assert (timer.when(), type(timer.when())) == (when, float if isinstance(when, float) else int)
    assert f"when={timer.when()}" in repr(timer)


# Each handle has the one before it.
CHAIN = """
import asyncio, functools, sys
import erlang

loop = erlang.new_event_loop()
link = {
    "argument": lambda handle: loop.call_soon(print, handle),
    "several": lambda handle: loop.call_soon(print, 1, handle, handle, 2),
    "timer": lambda handle: loop.call_later(100, print, handle),
    "partial": lambda handle: loop.call_soon(functools.partial(print, handle)),
    "callback": lambda handle: loop.call_soon(handle or print),
}[sys.argv[1]]
handle = None
for _ in range(300_000):
    handle = link(handle)
loop.close()
del handle
"""


@pytest.mark.parametrize("link", ["argument", "several", "timer", "partial", "callback"])
def test_a_long_chain_of_handles_is_freed(link: str) -> None:
    subprocess.run([sys.executable, "-c", CHAIN, link], check=True)


IN_ANOTHER = """
import sys
import _interpreters
import erlang

other = _interpreters.create()
code = f'''
import sys
sys.path[:] = {sys.path!r}
import erlang
loop = erlang.new_event_loop()
for _ in range(200):
    loop.call_soon(print, bytearray(100))
loop.close()
'''

class Last:
    def __del__(self):
        assert _interpreters.exec(other, code) is None
        _interpreters.destroy(other)
        print("freed")

loop = erlang.new_event_loop()
handle = Last()
for _ in range(60):
    handle = loop.call_soon(print, handle)
loop.close()
del handle
"""


def test_a_chain_of_handles_whose_end_runs_another_interpreter_is_freed() -> None:
    pytest.importorskip("_interpreters")
    ended = subprocess.run([sys.executable, "-c", IN_ANOTHER], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "freed\n", "")


def test_a_handle_that_is_cancelled_while_it_runs_keeps_its_arguments() -> None:
    # Python 3.14 calls methods of a local variable without a reference of the call's own. The
    # count is 1 then, and others know the handle all the same.
    loop = erlang.new_event_loop()
    asked: list[int] = []

    class Number:
        def __index__(self) -> int:
            handles[0].cancel()
            asked.append(1)
            return 6

    # A function that takes its arguments one after another, from where they lie.
    handles = [loop.call_soon(math.gcd, Number(), Number(), Number())]
    loop.close()
    call = ctypes.pythonapi.PyObject_CallMethodObjArgs
    call.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    call.restype = ctypes.py_object
    count = sys.getrefcount(handles[0])
    assert count <= 2
    call(id(handles[0]), "_run", None)
    assert len(asked) == 3
    assert handles[0].cancelled()
