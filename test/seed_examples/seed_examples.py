"""The examples of the guides: their code as it stands there, and the few differences each names at
its head (`README.md` has the table of them).

    #: guides: where it comes from
    #: adds: a line before the code: an import, or a name, that the guide leaves to the reader
    #: replaces: OLD -> NEW; a word in capitals is given by the test
    #: ends: how a wait without an end is ended
"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

Names = dict[str, Any]

FOLDER = Path(__file__).parent
HEAD = re.compile(r"(?:#|%): (guides|adds|replaces|ends): (.*)\n")


class Example:
    def __init__(self, path: Path) -> None:
        text = path.read_text()
        self.path = path
        self.name = path.stem
        self.head: dict[str, list[str]] = {"guides": [], "adds": [], "replaces": [], "ends": []}
        while match := HEAD.match(text):
            self.head[match[1]].append(match[2])
            text = text[match.end() :]
        self.code = text.lstrip("\n")

    @property
    def replaced(self) -> dict[str, str]:
        pairs = (line.split(" -> ") for line in self.head["replaces"])
        return dict(pairs)

    def text(self, **values: object) -> str:
        """The code with its differences."""
        replaced, code = self.replaced, self.code

        def given(new: str) -> str:
            return str(values.get(new, new))

        if replaced:
            found = "|".join(map(re.escape, replaced))
            # All at once: what is put in is not looked at again.
            code = re.sub(found, lambda match: given(replaced[match[0]]), code)
        # In Erlang it is one expression after another.
        end = ".\n" if self.path.suffix == ".shell" else "\n"
        return "".join(line + end for line in self.head["adds"]) + code

    def run(
        self, printed: list[str] | None = None, names: Names | None = None, **values: object
    ) -> Names:
        """Runs it as a script; its names."""
        names = self._names(printed, {} if names is None else names)
        exec(compile(self.text(**values), self.path, "exec"), names)
        return names

    async def await_it(self, **values: object) -> Names:
        """The same for one that awaits at its top level."""
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        names = self._names(None, {})
        made = eval(compile(self.text(**values), self.path, "exec", flags), names)
        if inspect.iscoroutine(made):
            await made
        return names

    def _names(self, printed: list[str] | None, names: Names) -> Names:
        names["__name__"] = self.name
        if printed is not None:
            names["print"] = lambda *words: printed.append(" ".join(map(str, words)))
        return names


def examples(suffix: str) -> list[Example]:
    return [Example(path) for path in sorted((FOLDER / "code").glob(f"*{suffix}"))]


def example(name: str, suffix: str = ".py") -> Example:
    return Example(FOLDER / "code" / f"{name}{suffix}")


def expressions(name: str) -> str:
    """The code of an example in Erlang, with its differences."""
    return example(name, ".shell").text()


def table() -> str:
    """What differs, as a table of Markdown."""
    rows = ["| example | guide | added before it | replaced | ends |", "|---|---|---|---|---|"]
    for one in examples(".py") + examples(".shell"):
        cells = [f"[{one.name}](code/{one.path.name})", ", ".join(one.head["guides"])]
        cells += [
            "<br>".join(f"`{line}`" for line in one.head[key]) for key in ("adds", "replaces")
        ]
        cells.append(", ".join(one.head["ends"]))
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    readme = FOLDER / "README.md"
    before, mark, _ = readme.read_text().partition("<!-- table -->\n")
    readme.write_text(before + mark + table())
