"""The table: a line per row, with what the row is against each of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from erlang.bench.loops import BASE, OURS
from erlang.bench.measure import Row, mean

if TYPE_CHECKING:
    from collections.abc import Sequence


def shown(row: Row, figure: float | None) -> str:
    """A figure with its unit."""
    if figure is None:
        return "-"
    if row.name.startswith("memory"):
        return f"{figure:,.0f} B"
    if row.name.startswith("idle"):
        return f"{figure:,.0f}"
    digits = 3 if figure < 1 else 2 if figure < 10 else 1 if figure < 1000 else 0
    return f"{figure:,.{digits}f} µs"


def against(row: Row, loop: str) -> str:
    """`1.21x faster than uvloop`, or that it can't."""
    better = row.times_better(OURS, loop)
    if better is None:
        return f"{loop} can't"
    fast, slow = ("faster", "slower") if row.is_cpu else ("less", "more")
    # Even, as it is shown, is not slower.
    if round(better, 2) >= 1:
        return f"{times(better)} {fast} than {loop}"
    return f"{times(1 / better)} {slow} than {loop}"


def times(ratio: float) -> str:
    """`7.3x`, `1.21x`"""
    return f"{ratio:.2f}x" if ratio < 2 else f"{ratio:.1f}x"


def head(loops: Sequence[str]) -> str:
    others = ", ".join(loop for loop in loops if loop != OURS)
    return (
        f"{'what one costs':34} {'ours':>10} {'asyncio':>10}   "
        f"how much faster or slower than {others}, in this run"
    )


def line(row: Row, loops: Sequence[str], more: Sequence[str] = ()) -> str:
    """One row of the table; `more` is what the caller has to say of it."""
    costs = f"{row.name:34} {shown(row, row.figure(OURS)):>10} {shown(row, row.figure(BASE)):>10}"
    parts = [f"{against(row, loop):26}" for loop in loops if loop != OURS]
    return "   ".join([costs, *parts, *more]).rstrip()


def means(rows: Sequence[Row], loops: Sequence[str]) -> str:
    """The geometric means over the rows of CPU time."""
    texts = []
    for loop in loops:
        ratios = [row.times_better(OURS, loop) for row in rows if row.is_cpu]
        known = [ratio for ratio in ratios if ratio is not None]
        if loop != OURS and known:
            texts.append(f"{mean(known):.2f}x {loop} ({len(known)} rows)")
    return "geometric mean of the CPU rows: " + ", ".join(texts)
