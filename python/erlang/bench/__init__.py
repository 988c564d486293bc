"""Measures event loops against each other: ``python -m erlang.bench``.

Each figure is what one operation costs in one process with one loop, mostly in CPU time; so less is
better everywhere. Loops take turns, and a ratio is one of the same round.
"""
