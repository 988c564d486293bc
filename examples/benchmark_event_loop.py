"""What the event loop does per second, beside asyncio's own and the peers that are installed.

Run: pip install .
     python examples/benchmark_event_loop.py
"""

from erlang.bench import figures

if __name__ == "__main__":
    figures.show()
