"""What the test servers of object stores share: files by name, a share of calls that fails, a thread that serves."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ServedFiles:
    """The files of a store by name, and the share of calls that fail, in percent."""

    def __init__(self) -> None:
        self.address = ""
        self.files: dict[str, bytes] = {}
        self.failing, self.failed = 0.0, 0
        self.lock, self.random = threading.Lock(), random.Random(0)

    def fails(self) -> bool:
        """Whether the next call fails; counted."""
        with self.lock:
            fails = self.random.uniform(0, 100) < self.failing
            self.failed += fails
            return fails


@contextmanager
def serve(store: ServedFiles, handler: type[BaseHTTPRequestHandler]) -> Iterator[None]:
    """Answer on a free port of this machine, inside the block; the store learns its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    store.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
