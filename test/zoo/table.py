"""Writes the page of what was tried from the results.

python table.py DIRECTORY_OF_THE_RESULTS PAGE
"""

import pathlib
import sys

HEAD = """# Packages that were tried

Packages and web frameworks that others write, tried by `./dev zoo packages`,
`./dev zoo frameworks` and `./dev zoo forks`. Only what was run is listed, with its version, the
Python and the date. The programs are in `test/zoo`: small ones, which show that a package works in
a node, not that all of it does.

"""
PACKAGES = """## Packages

Each ran in a node of its own: one call, 20 callers at once, a context, an event loop, two restarts
of the application, a sub-interpreter, and the stop of the node. *Sub-interpreter* says where it
ran: `own`, in the sub-interpreter; `main`, the call failed there and ran in the main one with
`fallback => main`. [Threading](threading.md) says what does not go together with sub-interpreters.

"""
FRAMEWORKS = """## Web frameworks

Each was served by uvicorn, by the wheel (`python -m erlang.serve`) and by a node
(`py_asgi:serve/2`), and asked the same by httpx and websockets: 20 requests at once, a body of
100 KB, a path that is not there, and a WebSocket where the program has one. Socket.IO, MCP, Gradio
and Strawberry were asked by clients of their own too (`test/zoo/clients`).

"""
FORKS = """## Processes made by fork

`./dev zoo forks` makes pools of two processes in one node, beside other calls: by
`multiprocessing.Pool`, `ProcessPoolExecutor` and torch's `DataLoader(num_workers=2)` in turn. In
three of four rounds the processes are ended by `terminate()` while they work. At the end there may
be no more processes, zombies, descriptors and threads than before, and no signal may have reached
the node.

"""
STEPS = {
    "packages": ["call", "callers", "context", "async", "restarts", "subinterpreter", "stop"],
    "frameworks": ["uvicorn", "wheel", "node"],
}
# What a row does not show.
NOTES = {
    "mcp": "1 of 98 runs in a node did not end, for a reason not found",
    "multiprocessing": "one caller after the other",
    "ray": "`ray.shutdown()` before the application stops",
}
NAMES = {"subinterpreter": "sub-interpreter", "callers": "20 callers", "async": "event loop"}


def read(file):
    """The lines of a result by their first words."""
    told = {"versions": [], "steps": {}, "notes": []}
    for line in file.read_text().splitlines():
        word, _, rest = line.partition(" ")
        if word == "version":
            told["versions"].append(rest)
        elif word == "note":
            told["notes"].append(rest)
        elif word == "zoo":
            step, _, result = rest.partition(" ")
            told["steps"][step] = result
        else:
            told[word] = rest
    return told


def table(kind, results):
    steps = STEPS[kind]
    lines = [
        "| tried | " + " | ".join(NAMES.get(step, step) for step in steps) + " | Python | date |",
        "|---" * (len(steps) + 3) + "|",
    ]
    for name, told in results:
        notes = [*told["notes"], NOTES.get(name, "")]
        title = ", ".join(filter(None, [*(told["versions"] or [name]), *notes]))
        if "missing" in told:
            cells = [f"not installed: {told['missing']}", *[""] * (len(steps) - 1)]
        else:
            cells = [told["steps"].get(step, "not run") for step in steps]
        cells = [cell.replace("|", "/") for cell in cells]
        lines.append(f"| {title} | {' | '.join(cells)} | {told['python']} | {told['date']} |")
    return "\n".join(lines) + "\n"


def forks_table(told):
    counts = [told.get("rounds", ""), told.get("processes", "")]
    result = told["steps"].get("forks", "not run")
    cells = [*counts, result, told.get("torch", ""), told["python"], told["date"]]
    lines = [
        "| rounds | processes | result | torch | Python | date |",
        "|---" * 6 + "|",
        "| " + " | ".join(cells) + " |",
    ]
    return "\n".join(lines) + "\n"


def main(directory, page):
    parts = [HEAD]
    for kind, head in (("packages", PACKAGES), ("frameworks", FRAMEWORKS)):
        files = sorted(pathlib.Path(directory, kind).glob("*.txt"))
        if files:
            parts += [head, table(kind, [(file.stem, read(file)) for file in files]), "\n"]
    forks = pathlib.Path(directory, "forks", "forks.txt")
    if forks.exists():
        parts += [FORKS, forks_table(read(forks))]
    pathlib.Path(page).write_text("".join(parts).rstrip("\n") + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
