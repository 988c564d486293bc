"""grpc: a call to a server in the same process."""

from concurrent import futures

import grpc


class _Echo(grpc.GenericRpcHandler):
    def service(self, _details):
        return grpc.unary_unary_rpc_method_handler(lambda request, _context: request)


def work():
    server = grpc.server(futures.ThreadPoolExecutor(2), handlers=[_Echo()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            return channel.unary_unary("/echo/Echo")(b"text", timeout=20)
    finally:
        server.stop(None).wait()
