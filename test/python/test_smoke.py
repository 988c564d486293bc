"""The small set that runs on every Python: the package as a wheel has it, outside a node."""

import ast
import asyncio
import math
import pathlib
import subprocess
import sys
import tomllib
from collections.abc import Callable

import pytest

import erlang
from erlang import _native

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize(
    "use",
    [
        lambda: erlang.call("f", 1),
        lambda: erlang.send("name", 1),
        lambda: erlang.self(),
        lambda: erlang.whereis("name"),
        lambda: erlang.current(),
        lambda: erlang.state_get("key"),
        lambda: erlang.state_set("key", 1),
        lambda: erlang.state_delete("key"),
        lambda: erlang.state_keys(),
        lambda: erlang.state_clear(),
        lambda: erlang.state_incr("key"),
        lambda: erlang.state_decr("key"),
        lambda: erlang.SharedDict("name"),
        lambda: erlang.pg.join("group"),
    ],
)
def test_what_needs_a_node_says_so(use: Callable[[], object]) -> None:
    with pytest.raises(erlang.NotInNode, match="py:call"):
        use()


def test_what_is_awaited_and_needs_a_node_says_so() -> None:
    async def main() -> None:
        with pytest.raises(erlang.NotInNode, match="py:call"):
            await erlang.async_call("f", 1)

    erlang.run(main())


@pytest.mark.parametrize(
    "value", [0, -1, 2**70, 1.5, "text", [1, [2]], (1, "a"), {"a": 1, 2: None}, True, None]
)
def test_a_value_survives_both_conversions(value: object) -> None:
    assert _native.bytes_to_term(_native.term_to_bytes(value)) == value


def test_bytes_that_are_no_text_stay_bytes() -> None:
    assert _native.bytes_to_term(_native.term_to_bytes(b"\xff\x00")) == b"\xff\x00"


def test_what_erlang_has_no_float_for_becomes_an_atom() -> None:
    assert _native.bytes_to_term(_native.term_to_bytes(math.inf)) == "infinity"


def test_a_coroutine_runs_on_our_loop() -> None:
    async def main() -> str:
        await asyncio.sleep(0.001)
        return type(asyncio.get_running_loop()).__name__

    assert erlang.run(main()) == "ErlangEventLoop"


def test_the_package_lists_no_trio_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trio", None)
    assert "run_trio" not in dir(erlang)


NESTED = """
import sys, threading
from erlang import _native

deep = []
for _ in range(900):
    deep = [deep]
data = b"\\x83" + b"l\\0\\0\\0\\1" * 1000 + b"j" * 1001
said = []

def convert():
    for function, value in (_native.term_to_bytes, deep), (_native.bytes_to_term, data):
        try:
            function(value)
        except RecursionError as error:
            said.append(str(error))
    said.append(_native.bytes_to_term(_native.term_to_bytes([1, [2]])))

threading.stack_size(int(sys.argv[1]) << 10)
thread = threading.Thread(target=convert)
thread.start()
thread.join()
print(said)
"""


@pytest.mark.parametrize("kilobytes", [64, 128, 256])
def test_nesting_does_not_overflow_the_stack_of_a_small_thread(kilobytes: int) -> None:
    command = [sys.executable, "-P", "-c", NESTED, str(kilobytes)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    deep, deeper, rest = ast.literal_eval(ended.stdout)
    assert (deep, deeper, rest) == ("nested too deeply", "nested too deeply", [1, [2]])


def test_the_package_lists_what_it_has() -> None:
    names = dir(erlang)
    for name in ("call", "run", "new_event_loop", "ErlangEventLoop", "dag", "serve", "Atom"):
        assert name in names
    assert all(hasattr(erlang, name) for name in names)
    project = tomllib.loads((pathlib.Path(__file__).parents[2] / "Cargo.toml").read_text())
    assert erlang.__version__ == project["workspace"]["package"]["version"]


def test_a_name_that_is_not_there_is_no_attribute_and_a_typo_is_told() -> None:
    assert not hasattr(erlang, "anything")
    with pytest.raises(AttributeError, match=r"did you mean 'new_event_loop'\?"):
        _ = erlang.new_event_lop
    with pytest.raises(AttributeError, match="inside an Erlang node only"):
        _ = erlang.anything
    with pytest.raises(AttributeError, match=r"has no attribute '_anything'$"):
        _ = erlang._anything
