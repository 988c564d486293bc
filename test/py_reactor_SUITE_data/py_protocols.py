"""Protocols of py_reactor_SUITE."""

import erlang
from erlang import reactor


class Echo(reactor.Protocol):
    def connection_made(self, peer):
        erlang.send("py_reactor_test", ["made", peer is not None])

    def write_ready(self):
        self.write(b"hello\n")

    def data_received(self, data):
        if data == b"bye\n":
            self.close()
        elif data == b"fail\n":
            raise ValueError("as asked")
        else:
            self.write(data)

    def connection_lost(self, error):
        erlang.send("py_reactor_test", ["lost", error is None])


class Broken(reactor.Protocol):
    def __init__(self):
        raise RuntimeError("never made")


class Flood(reactor.Protocol):
    """Writes whenever there is room."""

    left = 40
    waits = 0

    def write_ready(self):
        while self.left > 0:
            self.left -= 1
            if not self.write(bytes(1 << 20)):
                self.waits += 1
                return
        self.close()

    def connection_lost(self, error):
        erlang.send("py_reactor_test", self.waits > 0)
