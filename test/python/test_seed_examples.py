"""The examples of the guides (`test/seed_examples`), without a node."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import erlang

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent.parent / "seed_examples"
sys.path.append(str(FOLDER))

import scenarios  # noqa: E402
import seed_examples  # noqa: E402

# They say themselves what is deprecated, and leave loops open.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _own_policy() -> Iterator[None]:
    yield
    asyncio.set_event_loop_policy(None)


@pytest.mark.parametrize("name", scenarios.names())
def test_an_example_runs(name: str) -> None:
    scenarios.run(name)


@pytest.mark.parametrize("name", scenarios.SERVERS)
def test_a_server_answers_until_it_is_interrupted(name: str, tmp_path: Path) -> None:
    host = scenarios.new_host()
    port = scenarios.free_port(host, socket.SOCK_DGRAM)
    script = tmp_path / f"{name}.py"
    script.write_text(seed_examples.example(name).text(HOST=host, PORT=port))
    command = [sys.executable, "-P", "-u", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        try:
            line: Any = server.stdout.readline()  # type: ignore[union-attr]
            assert line.startswith(b"UDP Echo Server listening on"), line
            with closing(scenarios.bound_socket(scenarios.new_host())) as client:
                client.settimeout(60)
                client.sendto(b"hello", (host, port))
                assert client.recv(100) == b"hello"
            server.send_signal(signal.SIGINT)
            _, complaint = server.communicate(timeout=60)
        finally:
            server.kill()
    assert complaint.endswith(b"KeyboardInterrupt\n")


def test_every_difference_is_in_the_code_and_in_the_table() -> None:
    for one in seed_examples.examples(".py") + seed_examples.examples(".shell"):
        assert one.head["guides"], one.name
        for old in one.replaced:
            assert old in one.code, (one.name, old)
    table = (FOLDER / "README.md").read_text().partition("<!-- table -->\n")[2]
    assert table == seed_examples.table()


def test_nothing_but_what_the_head_names_is_changed() -> None:
    one = seed_examples.example("udp_unconnected")
    text = one.text(HOST="h", PORT=1, PEER_1="a", PEER_2="b", PEER_PORT=2)
    before, after = one.code.splitlines(), text.splitlines()[len(one.head["adds"]) :]
    assert [line for line, new in zip(before, after, strict=True) if line != new] == [
        "    local_addr=('0.0.0.0', 9999)",
        "transport.sendto(b'Hello', ('192.168.1.100', 5000))",
        "transport.sendto(b'World', ('192.168.1.101', 5000))",
    ]


@pytest.mark.parametrize("name", ["overview", "pattern_install"])
def test_they_run_on_our_loop(name: str) -> None:
    loops: list[type] = []

    async def main() -> None:
        loops.append(type(asyncio.get_running_loop()))

    one = seed_examples.example(name)
    # Without the line that is added before it: the function is this one.
    exec(compile(one.code, one.path, "exec"), {"__name__": name, "main": main})
    assert loops == [erlang.ErlangEventLoop]
