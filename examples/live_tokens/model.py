"""Stands for a language model: one token after another, for as long as somebody wants them."""

import random
import time
from collections.abc import Iterator

# How many answers are being written at this moment.
writing = 0


def answer(prompt: str, pause: float = 0.02) -> Iterator[str]:
    global writing
    writing += 1
    try:
        yield f"{prompt}?"
        words = random.Random(prompt)
        while True:
            time.sleep(pause)
            yield words.choice([" perhaps", " and", " then", " nobody", " knows", " why"])
            if words.random() < 0.002:
                return
    finally:
        writing -= 1
