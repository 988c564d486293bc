"""Adds up prices that only Erlang knows."""

import erlang


def total(items: list[str]) -> int:
    amount = 0
    for number, item in enumerate(items, start=1):
        amount += erlang.price(item)
        erlang.send(erlang.self(), ("counted", number, len(items)))
    return amount


def describe(item: str) -> str:
    try:
        return f"{item} costs {erlang.price(item)}"
    except erlang.ErlangError as error:
        return f"{item} has no price ({error.reason})"
