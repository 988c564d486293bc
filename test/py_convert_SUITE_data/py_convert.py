"""Python values for every row of the conversion table."""

import collections
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import fractions
import pathlib
import types
import uuid

import erlang

kept = []


def keep(value):
    kept[:] = [value]
    return value


def give_kept():
    return kept[0]


def send_kept(term):
    erlang.send(kept[0], term)


def kind(value):
    return type(value).__name__


def kinds(values):
    return [type(value).__name__ for value in values]


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Order:
    number: int
    lines: list[str]


@dataclasses.dataclass(slots=True)
class Slotted:
    a: int


class Colour(enum.IntEnum):
    RED = 3


class Text(str):
    pass


class Number(int):
    pass


VALUES = {
    "namedtuple": Point(1, 2),
    "set": {1},
    "frozenset": frozenset([1]),
    "empty set": set(),
    "bytearray": bytearray(b"\xff\x00"),
    "memoryview": memoryview(b"\xff\x00"),
    "strided memoryview": memoryview(b"abcdef")[::2],
    "infinity": float("inf"),
    "negative infinity": float("-inf"),
    "nan": float("nan"),
    "nested nan": [float("nan")],
    "ordered dict": collections.OrderedDict(a=1),
    "default dict": collections.defaultdict(list, a=1),
    "mapping proxy": types.MappingProxyType({"a": 1}),
    "chain map": collections.ChainMap({"a": 1}),
    "counter": collections.Counter("aa"),
    "dataclass": Order(1, ["a"]),
    "slotted": Slotted(1),
    "datetime": datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.UTC),
    "date": datetime.date(2024, 2, 29),
    "time": datetime.time(12, 30),
    "decimal": decimal.Decimal("1.10"),
    "uuid": uuid.UUID(int=1),
    "path": pathlib.PurePosixPath("/a/b"),
    "int enum": Colour.RED,
    "str subclass": Text("t"),
    "int subclass": Number(5),
    "atom": erlang.Atom("ok"),
    "none": None,
    "bool": True,
    "empty": ((), [], {}, "", b""),
}


def value(name):
    return VALUES[name]


def names():
    return list(VALUES)


def not_convertible(name):
    return {
        "object": object(),
        "function": value,
        "class": Order,
        "module": decimal,
        "generator": (x for x in []),
        "complex": 1j,
        "range": range(3),
        "fraction": fractions.Fraction(1, 2),
        "exception": ValueError("v"),
        "nested": [1, {"k": object()}],
        "key": {object(): 1},
    }[name]


def surrogate(where):
    return {"str": "a\ud800b", "list": ["\udfff"], "key": {"\ud800": 1}}[where]


def colliding(name):
    return {
        "text and bytes": {"a": 1, b"a": 2},
        "atom and None": {None: 1, erlang.Atom("none"): 2},
        "tuple and list": {(1, "a"): 1, (1, b"a"): 2},
    }[name]


def atom_forms():
    return [erlang.Atom("ok") == "ok", isinstance(erlang.Atom("ok"), str), repr(erlang.Atom("ok"))]


def big(bits):
    return [2**bits, -(2**bits), 2**bits - 1]


def check_big(value, bits):
    return value == 2**bits


def unpickle(value):
    import pickle

    return pickle.loads(pickle.dumps(value))


def make_pid():
    return erlang.Pid(b"\x83X")
