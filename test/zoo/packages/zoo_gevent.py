"""gevent: greenlets and a hub per thread."""

import gevent


def work():
    greenlets = [gevent.spawn(lambda n=n: (gevent.sleep(0.01), n)[1]) for n in range(10)]
    gevent.joinall(greenlets)
    return [greenlet.value for greenlet in greenlets]
