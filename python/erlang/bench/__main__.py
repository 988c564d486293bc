"""``python -m erlang.bench``: the short figures, then every row on every loop that is installed."""

from __future__ import annotations

import argparse
import platform

from erlang.bench import figures, loops, measure, report


def parser() -> argparse.ArgumentParser:
    """The options, also of ``./dev bench loop``."""
    made = argparse.ArgumentParser(
        prog="python -m erlang.bench",
        description="What asyncio's operations cost on this loop, on asyncio's own and on peers.",
    )
    made.add_argument("--figures", action="store_true", help="only the short figures")
    made.add_argument("--quick", action="store_true", help="one short round")
    made.add_argument("--rounds", type=int, default=3, metavar="N")
    made.add_argument("--only", default="", metavar="GROUP,…", help=", ".join(measure.GROUPS))
    return made


def chosen(options: argparse.Namespace) -> list[str]:
    """The groups that were asked for."""
    wanted: list[str] = [name for name in options.only.split(",") if name]
    unknown = set(wanted) - set(measure.GROUPS)
    if unknown:
        known = ", ".join(measure.GROUPS)
        raise SystemExit(f"there is no group {', '.join(sorted(unknown))}; there are {known}")
    return wanted or measure.GROUPS


def main() -> None:
    """Prints each row when it is there."""
    options = parser().parse_args()
    groups = chosen(options)
    print(f"Python {platform.python_version()}, {', '.join(loops.installed())}")
    if not options.only:
        figures.show()
    if options.figures:
        return
    rounds, scale = (1, 0.3) if options.quick else (options.rounds, 1.0)
    names, done = loops.installed(), []
    print(f"\n{report.head(names)}")
    for row in measure.rows(names, groups, rounds, scale):
        done.append(row)
        print(report.line(row, names), flush=True)
    print(report.means(done, names))


if __name__ == "__main__":
    main()
