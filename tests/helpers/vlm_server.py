"""A fake OpenAI-compatible endpoint whose faults are set for each picture."""

from __future__ import annotations

import base64
import io
import json
import re
import socket
import struct
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.types import Variant

Act = Callable[["Exchange"], None]
STEP = 8  # grey levels between two pictures: JPEG does not move one that far


def picture(number: int) -> NDArray[np.uint8]:
    """A picture that encodes its number."""
    return np.full((24, 40, 3), STEP * number, np.uint8)


def variant(number: int, label: str = "pen", sample: str | None = None) -> Variant:
    """The variant that goes with a picture."""
    return Variant(
        id=f"v{number}",
        sample_id=sample or f"{label}/{number}",
        label=label,
        attribute="original",
        edit="original",
        level="none",
        settings="{}",
        seed=number,
    )


class Exchange:
    """One request, and the means to answer it."""

    def __init__(self, handler: BaseHTTPRequestHandler, endpoint: FakeEndpoint) -> None:
        self.handler, self.endpoint = handler, endpoint
        self.body: dict[str, Any] = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        parts = {part["type"]: part for part in self.body["messages"][0]["content"]}
        self.question: str = parts["text"]["text"]
        self.url: str = parts["image_url"]["image_url"]["url"]
        self.image = Image.open(io.BytesIO(base64.b64decode(self.url.partition(",")[2])))
        self.number = round(float(np.asarray(self.image.convert("L")).mean()) / STEP)

    @property
    def choices(self) -> list[str]:
        """The names on offer, in the order of the question."""
        found = re.fullmatch(r".*following list: (.*)\.", self.question)
        assert found is not None
        return found[1].split(", ")

    def send(self, status: int, content: bytes, headers: Mapping[str, str] | None = None, length: int = -1) -> None:
        self.handler.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.handler.send_header(name, value)
        self.handler.send_header("Content-Length", str(len(content) if length < 0 else length))
        self.handler.end_headers()
        self.handler.wfile.write(content)


class FakeEndpoint:
    """The requests it received, and the replies it will give."""

    def __init__(self) -> None:
        self.acts: dict[int, Sequence[Act]] = {}  # by picture; the last act is repeated
        self.otherwise: Act = say("pen")
        self.exchanges: list[Exchange] = []
        self.keys: set[str | None] = set()
        self.released = threading.Event()  # ends whatever hangs
        self.url = ""
        self._seen: dict[int, int] = defaultdict(int)
        self._lock = threading.Lock()

    def requests(self) -> dict[int, int]:
        """Requests by picture."""
        return dict(self._seen)

    def forget(self) -> None:
        self._seen.clear()
        self.exchanges.clear()

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        exchange = Exchange(handler, self)
        with self._lock:
            self.exchanges.append(exchange)
            self.keys.add(handler.headers.get("Authorization"))
            acts = self.acts.get(exchange.number, (self.otherwise,))
            act = acts[min(self._seen[exchange.number], len(acts) - 1)]
            self._seen[exchange.number] += 1
        act(exchange)


def completion(text: Any, **changes: Any) -> dict[str, Any]:
    """The body of a chat completion."""
    message = {"role": "assistant", "content": text, "refusal": changes.pop("refusal", None)}
    choice = {"index": 0, "message": message, "finish_reason": changes.pop("finish_reason", "stop")}
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}
    return {"id": "1", "object": "chat.completion", "model": "served-1", "choices": [choice], "usage": usage, **changes}


def say(text: Any, **changes: Any) -> Act:
    return lambda exchange: exchange.send(200, json.dumps(completion(text, **changes)).encode())


def choose(pick: Callable[[Exchange], str]) -> Act:
    return lambda exchange: say(pick(exchange))(exchange)


def fail(status: int, error: Any = None, **headers: str) -> Act:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.send(status, json.dumps({"error": error}).encode(), named)


def raw(content: bytes, status: int = 200) -> Act:
    return lambda exchange: exchange.send(status, content)


def break_off(exchange: Exchange) -> None:
    """Send half of the announced bytes."""
    content = json.dumps(completion("pen")).encode()
    exchange.send(200, content[: len(content) // 2], length=len(content))
    exchange.handler.close_connection = True


def reset(exchange: Exchange) -> None:
    """Reset the connection without a reply."""
    connection = exchange.handler.connection
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    exchange.handler.close_connection = True
    connection.close()


def hang(exchange: Exchange) -> None:
    exchange.endpoint.released.wait(30)
    exchange.handler.close_connection = True


def dribble(exchange: Exchange) -> None:
    """Send a byte at a time, so that no single read times out; the answer is complete only far too late."""
    content = b" " * 200 + json.dumps(completion("pen")).encode()
    exchange.send(200, b"", length=len(content))
    for byte in content[:200]:
        exchange.endpoint.released.wait(0.02)
        exchange.handler.wfile.write(bytes([byte]))
    exchange.handler.wfile.write(content[200:])


@contextmanager
def serving() -> Iterator[FakeEndpoint]:
    endpoint = FakeEndpoint()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # headers and body are two writes: do not wait between them

        def do_POST(self) -> None:
            assert self.path == "/v1/chat/completions"
            if endpoint.released.is_set():  # shut down: connections that were kept alive end too
                self.close_connection = True
                return
            try:
                endpoint.handle(self)
            except OSError:  # the client went away
                self.close_connection = True

        def handle(self) -> None:
            with suppress(ConnectionError):  # the client went away between two requests
                super().handle()

        def finish(self) -> None:
            with suppress(OSError, ValueError):  # an act may have closed the connection itself
                super().finish()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    endpoint.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield endpoint
    finally:
        endpoint.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
