"""What differs by the settings, and a class with converters."""

import asyncio


async def _name():
    return type(asyncio.get_running_loop()).__name__


def loop_of_asyncio_run():
    return asyncio.run(_name())


class Money:
    def __init__(self, amount, currency):
        self.amount, self.currency = amount, currency


def money_term(money):
    return ("money", money.amount, money.currency)


def money_text(money):
    return f"{money.amount} {money.currency}"


def more(money):
    return Money(money.amount + 1, money.currency)
