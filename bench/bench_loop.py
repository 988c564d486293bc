"""The event loop against asyncio and its peers: each row ends in `reached` or `short`.

The goal of a row is a ratio to asyncio in the same run: that of the best loop there was for it on
a quiet machine. zuvloop needs Python 3.14, so it is not run here: what it had is a constant.
"""

from __future__ import annotations

import platform
from typing import NamedTuple

from erlang.bench import figures, loops, measure, report
from erlang.bench.__main__ import chosen, parser


class Goal(NamedTuple):
    """In times asyncio; of zuvloop what it had."""

    reach: float
    zuvloop: float | None


# zuvloop 0.0.17 against asyncio of Python 3.14.7: two cores of an AMD EPYC, Linux 6.18, a client in
# C; each ratio is the median of three rounds, of CPU time per operation.
GOALS = {
    "call_soon, one at a time": Goal(5.7, 5.72),
    "call_soon, in bulk": Goal(3.0, 1.83),
    "timers, set": Goal(4.4, 4.41),
    "timers, cancelled": Goal(8.0, 4.48),
    "task, created and awaited": Goal(4.1, 4.09),
    "gather": Goal(1.9, 1.91),
    "call_soon_threadsafe, a flood": Goal(34.0, 34.42),
    "TCP, protocol, 1k": Goal(5.3, 5.27),
    "TCP, protocol, 10k": Goal(6.0, 6.03),
    "TCP, protocol, 100k": Goal(4.0, 1.66),
    "TCP, streams, 1k": Goal(3.1, 3.13),
    "TCP, streams, 10k": Goal(3.3, 3.02),
    "TCP, streams, 100k": Goal(2.3, 2.34),
    "TCP, buffered protocol, 10k": Goal(1.4, 1.43),
    "TCP, sock_*, 1k": Goal(2.0, 1.04),
    "TCP, sock_*, 100k": Goal(2.0, 0.96),
    "UDP, 1k": Goal(7.6, 6.66),
    "Unix, protocol, 1k": Goal(8.0, 8.02),
    "TLS, protocol, 1k": Goal(2.5, 1.70),
    "TLS, protocol, 100k": Goal(1.5, 1.18),
    "TLS, streams, 10k": Goal(1.5, 1.16),
    "connection, made, used and closed": Goal(1.5, 1.32),
    "subprocess, run and waited for": Goal(1.2, 0.73),
    "memory per idle connection": Goal(3.4, 1.26),
    "uvicorn, httptools, a request": Goal(1.9, 1.91),
}
# Figures that have to be below something by themselves, not a ratio.
LIMITS = {"sleep(0.25 ms), off by": 200.0, "idle, 1000 connections, wakes": 0.0}
# Over all rows of CPU time, in times uvloop.
MEAN_DONE, MEAN_GOAL = 1.6, 2.0


def verdict(row: measure.Row) -> list[str]:
    """What zuvloop had, the goal, and whether it is reached."""
    if row.name in LIMITS:
        figure = row.figure(loops.OURS)
        assert figure is not None
        limit = LIMITS[row.name]
        return [f"goal {report.shown(row, limit)}", "reached" if figure <= limit else "short"]
    goal, better = GOALS[row.name], row.times_better(loops.OURS, loops.BASE)
    assert better is not None
    said = []
    if goal.zuvloop is not None:
        where = "ahead of" if better >= goal.zuvloop else "behind"
        said.append(f"{where} zuvloop's anchor {goal.zuvloop}x")
    return [*said, f"goal {goal.reach}x", "reached" if better >= goal.reach else "short"]


def main() -> None:
    options = parser().parse_args()
    groups, names = chosen(options), loops.installed()
    print(f"Python {platform.python_version()}, {', '.join(names)}")
    if options.figures:
        figures.show()
        return
    rounds, scale = (1, 0.3) if options.quick else (options.rounds, 1.0)
    print(report.head(names))
    done = []
    for row in measure.rows(names, groups, rounds, scale):
        done.append(row)
        print(report.line(row, names, verdict(row)), flush=True)
    print(report.means(done, names))
    against_uvloop = [row.times_better(loops.OURS, "uvloop") for row in done if row.is_cpu]
    known = [ratio for ratio in against_uvloop if ratio is not None]
    if known and not options.only:
        mean = measure.mean(known)
        print(
            f"mean against uvloop {mean:.2f}x, done at {MEAN_DONE}x, goal {MEAN_GOAL}x: "
            + ("reached" if mean >= MEAN_GOAL else "done" if mean >= MEAN_DONE else "short")
        )


if __name__ == "__main__":
    main()
