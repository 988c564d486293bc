"""A headless Chromium, told what to do over its DevTools protocol."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any

from websockets.sync.client import connect

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
]
LIMIT = 60.0

# Resolves when the condition holds; looks again at each change of the page.
UNTIL = """new Promise(resolve => {
    const watch = new MutationObserver(look);
    function look() {
        const found = (%s);
        if (found) { watch.disconnect(); resolve(found); }
    }
    const all = {subtree: true, childList: true, attributes: true, characterData: true};
    watch.observe(document, all);
    look();
})"""


def find() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser(AbstractContextManager["Browser"]):
    """One process with a profile of its own."""

    def __init__(self, program: str) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={self._folder.name}", "about:blank"],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            # Programs of distributions are scripts that wait for the browser: all of them must end.
            start_new_session=True,
        )
        self._numbers = itertools.count(1)
        self._events: list[dict[str, Any]] = []
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            said.append(line)
            if found := re.search(r"DevTools listening on (ws://\S+)", line):
                self._wire = connect(found[1], max_size=None, proxy=None)
                return
        self._end()
        raise RuntimeError("the browser did not start: " + "".join(said))

    def __exit__(self, *_: object) -> None:
        self._wire.close()
        self._end()

    def _end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._folder.cleanup()

    def ask(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        number = next(self._numbers)
        order = {"id": number, "method": method, "params": parameters}
        self._wire.send(json.dumps(order | ({"sessionId": session} if session else {})))
        answer = self._next(lambda said: said.get("id") == number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _next(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        for at, said in enumerate(self._events):
            if wanted(said):
                return self._events.pop(at)
        while True:
            said = json.loads(self._wire.recv(LIMIT))
            if wanted(said):
                return said
            self._events.append(said)

    def open(self, url: str) -> Page:
        """A tab that has loaded the page."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        session = attached["sessionId"]
        self.ask("Page.enable", session)
        self._events.clear()
        self.ask("Page.navigate", session, url=url)
        loaded = {"method": "Page.loadEventFired", "sessionId": session}
        self._next(lambda said: loaded.items() <= said.items())
        return Page(self, session, target)


class Page:
    """A tab."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target

    def run(self, script: str) -> Any:
        """The value of an expression; a promise is awaited."""
        answer = self._browser.ask(
            "Runtime.evaluate",
            self._session,
            expression=script,
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def until(self, condition: str) -> Any:
        """Waits until an expression is true; its value."""
        return self.run(UNTIL % condition)

    def close(self) -> None:
        self._browser.ask("Target.closeTarget", targetId=self._target)
