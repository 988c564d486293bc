"""Objects that stay in Python, and converters."""

import asyncio
import weakref

import erlang

_watched: list[weakref.ref] = []


class Account:
    kind = "account"

    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance
        _watched.append(weakref.ref(self))

    def deposit(self, amount, *, fee=0):
        self.balance += amount - fee
        return self.balance

    def other(self):
        return Account(self.owner)

    def fail(self):
        raise ValueError(self.owner)


def transfer(source, target, amount):
    source.balance -= amount
    target.balance += amount
    return (source.balance, target.balance)


def same(a, b):
    return a is b


async def take_late():
    """Takes an answer of Erlang from the loop when the process that gave it has forgotten it."""
    made = asyncio.ensure_future(erlang.async_call("obj_made"))
    await asyncio.sleep(0)
    erlang.call("obj_forgotten")
    return (await made).owner


def alive():
    return sum(ref() is not None for ref in _watched)


def forget():
    _watched.clear()


def balances(accounts):
    return [account.balance for account in accounts]


class Money:
    def __init__(self, amount, currency):
        self.amount, self.currency = amount, currency


class Coin(Money):
    pass


def make_money(amount, currency):
    return Money(amount, currency)


def money_term(money):
    return ("money", money.amount, money.currency)


def describe_money(money):
    return f"{type(money).__name__} {money.amount} {money.currency}"


def give_money(amount):
    return [Money(amount, "EUR")]


def give_coin(amount):
    return Coin(amount, "EUR")


class Loop:
    pass


def loop_term(value):
    return value


def give_loop():
    return Loop()


class Broken:
    pass


def broken_term(value):
    raise ValueError("this converter is broken")


def give_broken():
    return Broken()
