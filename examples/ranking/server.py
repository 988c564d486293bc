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
    process = subprocess.Popen([program, *place, *options], stdout=subprocess.DEVNULL)
    while not _answers(path):
        if process.poll() is not None:
            raise RuntimeError("redis-server does not start")
        time.sleep(0.01)
    _started[path] = process
    return path


def _answers(path):
    with socket.socket(socket.AF_UNIX) as attempt:
        return attempt.connect_ex(path) == 0


def stop(path):
    process = _started.pop(path)
    process.terminate()
    process.wait()
    shutil.rmtree(os.path.dirname(path))
