"""What a server can be told, checked by the table of options."""

import dataclasses
import math
from typing import Literal, get_type_hints

import pytest

from erlang._native import server_options
from erlang.serve import BadOption, Options


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"port": 65536}, "port must be from 0 to 65535, got 65536"),
        ({"max_headers": 0}, "max_headers must be from 1 to 256, got 0"),
        ({"max_body_size": -1}, "max_body_size must be from 0 to 9223372036854775807, got -1"),
        ({"uds_mode": 0o1000}, "uds_mode must be from 0 to 0o777, got 512"),
        ({"idle_timeout": 0}, "idle_timeout must be a positive number of seconds, got 0"),
        ({"idle_timeout": math.nan}, "idle_timeout must be a positive number of seconds, got nan"),
        ({"stop_timeout": -1}, "stop_timeout must be a positive number of seconds or 0, got -1"),
        ({"lifespan": "maybe"}, "lifespan must be auto, on or off, got maybe"),
        ({"root_path": "api/"}, "root_path must begin with a slash and not end with one, got api/"),
        ({"access_log_file": ""}, "access_log_file must be a path, stdout or stderr, got "),
        ({"private_key": "key.pem"}, "private_key needs a certificate"),
    ],
)
def test_a_value_out_of_range_is_told_in_a_sentence(given, said):
    with pytest.raises(BadOption) as caught:
        Options(**given)
    assert str(caught.value) == said


def test_times_are_seconds_and_may_be_fractions_or_have_no_end():
    options = Options(idle_timeout=0.0001, stop_timeout=0, header_timeout=math.inf)
    assert (options.header_timeout, options.ws_ping_timeout) == (math.inf, 20.0)
    assert dataclasses.replace(options, stop_timeout=1).idle_timeout == 0.0001


def test_only_options_of_the_wheel_are_taken():
    names = [field.name for field in dataclasses.fields(Options)]
    assert names == [row["name"] for row in server_options() if row["program"]]
    for name in ("start_timeout", "workers", "prot"):
        assert name not in names
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            Options(**{name: 1})


def test_options_are_one_value_with_typed_fields():
    assert Options(port=1) == Options(port=1) != Options()
    assert repr(Options(port=1)).startswith("Options(host='127.0.0.1', port=1, uds=None, ")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Options().port = 2
    hints = get_type_hints(Options)
    assert (hints["port"], hints["uds"]) == (int, str | None)
    assert hints["lifespan"] == Literal["auto", "on", "off"]
