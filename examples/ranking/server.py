"""A redis-server of one's own, on a Unix socket in a new folder."""

import os
import shutil
import socket
import subprocess
import tempfile
import time

_started = {}


def start(*options):
    """The path of its socket; None where there is no redis-server."""
    program = shutil.which("redis-server")
    if program is None:
        return None
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "redis.sock")
    place = ["--port", "0", "--save", "", "--dir", folder, "--unixsocket", path]
    _run(path, [program, *place, *options])
    return path


def _run(path, command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not _answers(path):
        if process.poll() is not None:
            raise RuntimeError("redis-server does not start")
        time.sleep(0.01)
    _started[path] = process


def _answers(path):
    with socket.socket(socket.AF_UNIX) as attempt:
        return attempt.connect_ex(path) == 0


def _end(path):
    process = _started.pop(path)
    process.kill()
    process.wait()
    return process


def restart(path):
    """Kills it, and starts it again in the same place."""
    _run(path, _end(path).args)


def stop(path):
    _end(path)
    shutil.rmtree(os.path.dirname(path))


def free_port():
    with socket.socket() as attempt:
        attempt.bind(("localhost", 0))
        return attempt.getsockname()[1]
