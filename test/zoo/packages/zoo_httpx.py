"""httpx: a client of a server in the same process."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, *_args):
        pass


def _served(ask):
    with HTTPServer(("127.0.0.1", 0), _Answers) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        try:
            return ask(f"http://127.0.0.1:{server.server_port}/path")
        finally:
            thread.join()


def work():
    return _served(lambda url: httpx.get(url, trust_env=False).text)
