"""The other side of the network rows: plain blocking sockets, in a process of its own.

    client.py KIND ADDRESS CONNECTIONS SIZE SECONDS [tls]

Says `ready`, waits for a line, works for that long and says how many answers came.
"""

from __future__ import annotations

import socket
import ssl
import sys
import time
from typing import Any


def connect(kind: str, address: str) -> socket.socket:
    if address.startswith("/"):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(address)
        return sock
    host, port = address.split(":")
    if kind == "udp":
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.connect((host, int(port)))
        sock.settimeout(5)
        return sock
    sock = socket.create_connection((host, int(port)))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def secured(sock: socket.socket) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(sock)


def exchange(socks: list[Any], message: bytes, buffer: bytearray) -> None:
    """One message on each, then one answer from each, which fills the buffer."""
    size = len(buffer)
    for sock in socks:
        sock.sendall(message)
    for sock in socks:
        left = size
        while left:
            got = sock.recv_into(buffer, left)
            if not got:
                raise SystemExit("the server closed the connection")
            left -= got


def echo(kind: str, address: str, connections: int, size: int, tls: bool) -> Any:
    socks: list[Any] = [connect(kind, address) for _ in range(connections)]
    if tls:
        socks = [secured(sock) for sock in socks]
    # Large ones would wait for each other in the buffers of the system.
    step = connections if size <= 16_384 else 2
    groups = [socks[first : first + step] for first in range(0, connections, step)]
    message, buffer = b"x" * size, bytearray(size)

    def round_of_all() -> int:
        for group in groups:
            exchange(group, message, buffer)
        return connections

    return round_of_all


def received(sock: Any) -> int:
    """How long an answer is that tells the length of its body."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += sock.recv(65_536)
    head, _, body = got.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split()[0])
    while len(body) < length:
        body += sock.recv(65_536)
    return len(head) + 4 + length


def http(address: str, connections: int) -> Any:
    """The same request again and again; all answers to it have one length."""
    socks: list[Any] = [connect("tcp", address) for _ in range(connections)]
    request = b"GET / HTTP/1.1\r\nHost: bench\r\nAccept: */*\r\n\r\n"
    socks[0].sendall(request)
    size = received(socks[0])
    buffer = bytearray(size)

    def round_of_all() -> int:
        exchange(socks, request, buffer)
        return connections

    return round_of_all


def churn(address: str, connections: int, size: int) -> Any:
    message, buffer = b"x" * size, bytearray(size)

    def round_of_all() -> int:
        socks = [connect("tcp", address) for _ in range(connections)]
        exchange(socks, message, buffer)
        for sock in socks:
            sock.close()
        return connections

    return round_of_all


def main() -> None:
    kind, address = sys.argv[1:3]
    connections, size, seconds = int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
    if kind == "idle":
        held = [connect("tcp", address) for _ in range(connections)]
        print("ready", flush=True)
        sys.stdin.readline()
        print(len(held), flush=True)
        return
    if kind == "http":
        work = http(address, connections)
    elif kind == "churn":
        work = churn(address, connections, size)
    else:
        work = echo(kind, address, connections, size, sys.argv[6:] == ["tls"])
    warm = time.monotonic() + seconds / 4
    while time.monotonic() < warm:
        work()
    print("ready", flush=True)
    sys.stdin.readline()
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        count += work()
    print(count, flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
