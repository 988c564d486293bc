"""Types lines at an Erlang shell in a pseudo-terminal, each at its prompt, and prints what the
shell wrote.

python at_terminal.py FILE_OF_LINES COMMAND...
"""

import os
import pty
import select
import sys
import time

PATIENCE = 60.0


class Terminal:
    def __init__(self, command: list[str]) -> None:
        self.seen = b""
        self.searched = 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "dumb"
            os.execvp(command[0], command)

    def wait_for(self, text: bytes) -> None:
        """Reads until the text comes after all that was waited for before."""
        end = time.monotonic() + PATIENCE
        while (found := self.seen.find(text, self.searched)) < 0:
            if not self.read(end - time.monotonic()):
                raise SystemExit(f"{text!r} did not come")
        self.searched = found + len(text)

    def read(self, patience: float) -> bool:
        """False when the program has ended, or nothing came in time."""
        ready, _, _ = select.select([self.fd], [], [], max(patience, 0))
        try:
            data = os.read(self.fd, 65536) if ready else b""
        except OSError:  # the other side is closed
            return False
        self.seen += data
        return bool(data)

    def type(self, line: str) -> None:
        os.write(self.fd, line.encode() + b"\n")

    def rest(self) -> int:
        while self.read(PATIENCE):
            pass
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)


def main(lines: str, command: list[str]) -> int:
    terminal = Terminal(command)
    try:
        with open(lines, encoding="utf-8") as file:
            for number, line in enumerate(file.read().splitlines(), 1):
                terminal.wait_for(b"%d> " % number)
                terminal.type(line)
        return terminal.rest()
    finally:
        os.write(1, terminal.seen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
