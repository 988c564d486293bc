"""The same reads the old way: eight threads, each blocked on one call at a time."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

_local = threading.local()


def _connection(path):
    if not hasattr(_local, "file"):
        _local.socket = socket.socket(socket.AF_UNIX)
        _local.socket.connect(path)
        _local.file = _local.socket.makefile("rb")
    return _local.socket, _local.file


def _answer(file):
    line = file.readline()[:-2]
    kind, rest = line[:1], line[1:]
    if kind == b"$":
        return None if rest == b"-1" else file.read(int(rest) + 2)[:-2]
    if kind == b"*":
        return [_answer(file) for _ in range(int(rest))]
    if kind == b"-":
        raise RuntimeError(rest.decode())
    return int(rest) if kind == b":" else rest


def ask(path, words):
    connection, file = _connection(path)
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    connection.sendall(b"".join(parts))
    return _answer(file)


def fetch(path, commands):
    with ThreadPoolExecutor(8) as threads:
        return list(threads.map(lambda words: ask(path, words), commands))
