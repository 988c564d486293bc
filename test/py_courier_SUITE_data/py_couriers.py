"""Sends faster than anybody reads."""

import erlang

WIDE = {number: number for number in range(40)}


def flood(dest, count, size):
    """Gives how many messages were sent, and why no more."""
    data = bytes(size)
    for sent in range(count):
        try:
            erlang.send(dest, (sent, data))
        except OverflowError as error:
            return sent, str(error)
    return count, None


async def flood_from_loop(dest, count, size):
    return flood(dest, count, size)


def flood_wide(dest, count):
    """By way of the courier, since our threads may not build such maps."""
    for sent in range(count):
        try:
            erlang.send(dest, (sent, WIDE))
        except OverflowError as error:
            erlang.state_set("refused", sent)
            return sent, str(error)
    return count, None


def flood_name(name, node, count, size):
    return flood((erlang.atom(name), erlang.atom(node)), count, size)


def send(dest, term):
    erlang.send(dest, term)


def wide():
    return WIDE


def wide_items(count):
    for number in range(count):
        yield number, WIDE


def sends_wide_then(dest, value):
    erlang.send(dest, WIDE)
    return value
