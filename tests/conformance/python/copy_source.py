"""A host that copies can read from: the test decides what it serves, and how slowly."""

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class CopySource:
    """Paths and what they answer. `etag` can change between two requests."""

    def __init__(self):
        self.contents = {}
        self.headers = {}
        self.etags = {}
        # Redirections by path.
        self.redirects = {}
        self.asked = []
        self.go_on = threading.Event()
        self.go_on.set()

    def serve(self, path, content, etag='"v1"', **headers):
        self.contents[path], self.etags[path] = content, etag
        self.headers[path] = {name.replace("_", "-"): value for name, value in headers.items()}

    def handler(self):
        source = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.answer(with_body=False)

            def do_GET(self):
                self.answer(with_body=True)

            def answer(self, with_body):
                path = self.path.split("?")[0]
                source.asked.append((self.command, dict(self.headers)))
                if path in source.redirects:
                    self.send_response(302)
                    self.send_header("Location", source.redirects[path])
                    self.send_header("Content-Length", "0")
                    return self.end_headers()
                if path not in source.contents:
                    return self.refuse(404, "BlobNotFound")
                if self.headers.get("If-Match", source.etags[path]) != source.etags[path]:
                    return self.refuse(412, "ConditionNotMet")
                content, status = source.contents[path], 200
                if asked := self.headers.get("Range"):
                    first, last = asked.removeprefix("bytes=").split("-")
                    whole, status = len(content), 206
                    content = content[int(first) : int(last) + 1 if last else None]
                self.send_response(status)
                if status == 206:
                    last = int(first) + len(content) - 1
                    self.send_header("Content-Range", f"bytes {first}-{last}/{whole}")
                self.send_header("Content-Length", str(len(content)))
                self.send_header("ETag", source.etags[path])
                for name, value in source.headers[path].items():
                    self.send_header(name, value)
                self.end_headers()
                if with_body:
                    half = len(content) // 2
                    self.wfile.write(content[:half])
                    self.wfile.flush()
                    source.go_on.wait(30)
                    self.wfile.write(content[half:])

            def refuse(self, status, code):
                self.send_response(status)
                self.send_header("x-ms-error-code", code)
                self.send_header("Content-Length", "0")
                self.end_headers()

        return Handler


@contextlib.contextmanager
def copy_source():
    """A source and the `host:port` where it listens."""
    source = CopySource()
    server = ThreadingHTTPServer(("127.0.0.1", 0), source.handler())
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield source, f"127.0.0.1:{server.server_port}"
    finally:
        source.go_on.set()
        server.shutdown()
        thread.join()
        server.server_close()
