"""Objects that do their worst while they are converted or told of."""

import collections.abc
import dataclasses

import erlang

views = []


def raise_long_name():
    raise type("E" * 300, (Exception,), {})("long")


def raise_text(text):
    raise ValueError(text)


def raise_nul():
    raise ValueError("a\0b")


def raise_surrogate():
    raise ValueError("a\ud800b")


def raise_new(number):
    raise type(f"Never{number}", (Exception,), {"__module__": f"made.up{number}"})(number)


def new_strings(count):
    return {f"never_seen_{n}": [f"neither_{n}"] for n in range(count)}


def deep_list(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def deep_dict(depth):
    value = {}
    for _ in range(depth):
        value = {"k": value}
    return value


def deep_tuple(depth):
    value = ()
    for _ in range(depth):
        value = (value,)
    return value


def circular():
    value = []
    value.append(value)
    return value


class Endless(collections.abc.Mapping):
    """Every value is another one of its kind."""

    def __getitem__(self, key):
        return Endless()

    def __iter__(self):
        return iter(["again"])

    def __len__(self):
        return 1


def endless():
    return Endless()


class BadRepr:
    def __repr__(self):
        return repr(self)

    __str__ = __repr__


def bad_repr():
    return BadRepr()


class BadError(Exception):
    def __str__(self):
        return str(self)


def raise_bad_error():
    raise BadError


def raise_unprintable():
    raise BadError from ValueError(BadRepr())


def down(depth):
    """Erlang and Python in turn."""
    return erlang.call("hostile_down", depth)


class BadIter:
    def __iter__(self):
        return iter(self)


def bad_iter():
    return BadIter()


class Grows(collections.abc.Mapping):
    """Changes the dictionary or list that it is part of."""

    def __init__(self, change):
        self.change = change

    def __getitem__(self, key):
        return 1

    def __iter__(self):
        self.change()
        return iter(["x"])

    def __len__(self):
        return 1


def growing_dict():
    whole = {}
    whole.update({n: Grows(lambda: whole.update({object(): 1})) for n in range(100)})
    return whole


def shrinking_dict():
    whole = {}
    whole.update({n: Grows(whole.clear) for n in range(100)})
    return whole


def replaced_dict():
    """As large as before, with other keys."""
    whole = {}

    def change():
        whole.clear()
        whole.update({n + 1000: Grows(change) for n in range(100)})

    whole.update({n: Grows(change) for n in range(100)})
    return whole


def shrinking_list():
    whole = []
    whole.extend(Grows(whole.clear) for _ in range(100))
    return whole


class Talks(collections.abc.Mapping):
    """Calls Erlang, which calls Python, while it is converted."""

    def __getitem__(self, key):
        return erlang.call("hostile_add", 1, 2)

    def __iter__(self):
        return iter(["sum"])

    def __len__(self):
        return 1


def talks():
    return Talks()


@dataclasses.dataclass
class Point:
    x: int
    y: object


def forged_atom():
    return str.__new__(erlang.Atom, "an_atom_that_was_never_made")


def term_bytes(name):
    """External Term Format of an atom."""
    return b"\x83w" + bytes([len(name)]) + name.encode()


def keep(view):
    views.append(view)
    return (type(view).__name__, len(view), getattr(view, "readonly", None))


def kept():
    return [bytes(view) for view in views]


def kept_is(start, length):
    return all(bytes(view) == bytes(start)[:length] for view in views)


owned: list[bytearray] = []


def own(how):
    """A megabyte that Python may change later: as it is, by a view, or both within a list."""
    data = bytearray(b"x" * 1_000_000)
    owned.append(data)
    return {"array": data, "view": memoryview(data), "both": [data, memoryview(data)]}[how]


def change_owned():
    for data in owned:
        data[:] = b"y" * len(data)
        data.extend(b"z" * 5_000_000)
    owned.clear()


def forget():
    views.clear()


def write_to(view):
    view[0] = 1


def growing_is_refused():
    data = bytearray(b"x" * 100)
    view = memoryview(data)
    try:
        data.extend(b"y")
    except BufferError:
        return bytes(view) == b"x" * 100
    return False
