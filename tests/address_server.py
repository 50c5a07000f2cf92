"""An HTTP address server, as clients of RocketMQ look for one when nobody told them the NameServers."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def address_server(answer: str) -> Iterator[str]:
    """Its host:port. It answers whoever asks for the unit "center" with `answer`, and everybody else with 404."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path == "/rocketmq/nsaddr-center?nofix=1"
            self.send_response(200 if found else 404)
            self.end_headers()
            self.wfile.write(answer.encode() if found else b"")

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
