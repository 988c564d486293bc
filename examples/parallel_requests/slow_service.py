"""A service that takes its time, and a client for it."""

import http.server
import threading
import time
import urllib.request

_server: http.server.ThreadingHTTPServer | None = None


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


def start(delay: float) -> int:
    global _server

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(delay)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"fine")

        def log_message(self, *args: object) -> None:
            pass

    _server = _Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=_server.serve_forever, daemon=True).start()
    return _server.server_port


def stop() -> None:
    if _server is not None:
        _server.shutdown()


def ask(port: int) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
        return answer.read()
