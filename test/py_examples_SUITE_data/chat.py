"""Two tabs of a browser in the chat of examples/chat: what one says, the other shows."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import browser

if TYPE_CHECKING:
    from browser import Page


def says(page: Page, text: str) -> None:
    page.run(f"document.querySelector('input').value = {text!r}")
    page.run("document.querySelector('form').requestSubmit()")


def shows(page: Page, text: str) -> None:
    page.until(
        f"[...document.querySelectorAll('li')].some(at => at.textContent.includes({text!r}))"
    )


def counts(page: Page, number: int) -> None:
    page.until(f"document.getElementById('here').textContent === '{number}'")


def main(url: str) -> None:
    program = browser.find()
    if program is None:
        print("left out: there is no Chromium")
        return
    with browser.Browser(program) as chromium:
        ann = chromium.open(url + "?name=ann")
        ann.until("document.body.dataset.state === 'open'")
        counts(ann, 1)
        bob = chromium.open(url + "?name=bob")
        shows(ann, "python: bob is here")
        counts(ann, 2)
        counts(bob, 2)
        says(ann, "hello, Bob")
        shows(bob, "ann: hello, Bob")
        says(bob, "erlang, are you there?")
        shows(ann, "bob: erlang, are you there?")
        shows(ann, "erlang: yes, I am <0.")
        shows(bob, "erlang: yes, I am <0.")
        bob.close()
        shows(ann, "python: bob has left")
        counts(ann, 1)
    print("both saw all")


if __name__ == "__main__":
    main(sys.argv[1])
