"""Small things of every kind."""

import erlang


def greet(name, *, greeting="hello", mark="!"):
    return f"{greeting} {name}{mark}"


def numbers(limit):
    yield from range(limit)


class Refused(Exception):
    pass


def refuse(why):
    raise Refused(why)


def twice(value):
    return erlang.call("smoke_add", value, value)


class Counter:
    def __init__(self):
        self.value = 0

    def add(self, by):
        self.value += by
        return self.value
