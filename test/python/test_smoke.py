"""The small set that runs on every Python: the package as a wheel has it, outside a node."""

import asyncio
import math
import pathlib
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
