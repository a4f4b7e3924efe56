"""What stands before every request: the right host and origin, a small body, and headers that browsers obey."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from counterfoil.verify.address import Address

LARGEST_BODY = 64 * 1024
_LARGEST_READ = 1024 * 1024  # of a body that is refused

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the invitation link is part of the address
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


@dataclass(frozen=True)
class Guard:
    """ASGI middleware around the page."""

    app: ASGIApp
    address: Address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse what cannot be this page's own traffic, pass the rest on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        fault = self._fault(scope["method"], Headers(scope=scope))
        body = await _small_body(receive)
        if fault is not None:
            await _refuse(self._dressed(send), *fault)
        elif body is None:
            await _refuse(self._dressed(send), 413, "the request is too large")
        else:
            await self.app(scope, _replayed(body, receive), self._dressed(send))

    def _fault(self, method: str, headers: Headers) -> tuple[int, str] | None:
        if headers.get("host", "") not in self.address.hosts:
            return 421, "this server is not known by that name"
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            return 413, "the request is too large"
        if method not in ("GET", "HEAD"):
            origin = headers.get("origin")
            if origin is not None and origin not in self.address.origins:
                return 403, "the request comes from another page"
            if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
                return 403, "the request comes from another page"
        return None

    def _dressed(self, send: Send) -> Send:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
                if self.address.is_encrypted:
                    headers["Strict-Transport-Security"] = "max-age=31536000"
            await send(message)

        return with_headers


@dataclass
class Tries:
    """Failed tries of one address within a minute: past the limit it waits, however good the next token is."""

    clock: Callable[[], float]
    limit: int = 10
    within_seconds: float = 60.0
    _failed: dict[str, deque[float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def are_used_up(self, who: str) -> bool:
        """Whether this address has to wait."""
        with self._lock:
            return len(self._recent(who)) >= self.limit

    def failed(self, who: str) -> None:
        """Note a failed try."""
        with self._lock:
            self._recent(who).append(self.clock())

    def _recent(self, who: str) -> deque[float]:
        """This address' failures that still count; addresses without any are forgotten, so the table stays small."""
        oldest = self.clock() - self.within_seconds
        for name in [name for name, times in self._failed.items() if not times or times[-1] < oldest]:
            del self._failed[name]
        times = self._failed.setdefault(who, deque())
        while times and times[0] < oldest:
            times.popleft()
        return times


async def _small_body(receive: Receive) -> bytes | None:
    """The whole body; None where it goes on past the limit, whatever its headers said."""
    body, length = b"", 0
    # Read on past the limit: a connection that is closed on unread bytes is reset, and the refusal may be lost with it.
    while length <= _LARGEST_READ:
        message = await receive()
        part = message.get("body", b"")
        length += len(part)
        body = body + part if length <= LARGEST_BODY else b""
        if not message.get("more_body", False):
            return body if length <= LARGEST_BODY else None
    return None


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A receiver that gives the body first, and then what comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


async def _refuse(send: Send, status: int, reason: str) -> None:
    body = json.dumps({"error": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
