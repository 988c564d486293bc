"""One group of rows on one loop, in a process of its own: ``child.py GROUP LOOP SCALE``."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys

from erlang.bench import asgi, core, loops, network

GROUPS = {**core.GROUPS, **network.GROUPS, **asgi.GROUPS}


def main() -> None:
    """Prints the figures as JSON, then ends without waiting for anything."""
    group, name, scale = sys.argv[1:]
    loop = loops.factory(name)()
    asyncio.set_event_loop(loop)
    # What the modules have left behind is not the loop's.
    gc.collect()
    gc.freeze()
    figures = GROUPS[group](loop, float(scale))
    print(json.dumps(figures), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
