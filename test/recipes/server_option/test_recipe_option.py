"""The made-up option of a server, in the wheel."""

import asyncio
import dataclasses
import subprocess
import sys
import urllib.request

import pytest

import erlang
from erlang.serve import BadOption, Options, Server


async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": b"ok"})


async def header(options: Options) -> str | None:
    server = Server(app, options)
    await server.start()
    try:
        address = f"http://127.0.0.1:{server.port}"
        with await asyncio.to_thread(urllib.request.urlopen, address) as response:
            return response.headers["made-up"]
    finally:
        await server.stop()


def test_the_option_reaches_the_place_of_its_use():
    options = Options(port=0, lifespan="off")
    assert erlang.run(header(options)) == "3"
    assert erlang.run(header(dataclasses.replace(options, made_up=0.5))) == "0.5"


def test_a_bad_value_is_refused_in_a_sentence():
    with pytest.raises(BadOption, match=r"^made_up must be a positive number of seconds, got 0$"):
        Options(made_up=0)


def test_the_command_line_has_it():
    command = [sys.executable, "-P", "-m", "erlang.serve", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "--made-up SECONDS     time that a header tells (default: 3.0)" in done.stdout
