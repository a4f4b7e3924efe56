"""Checks on every request (Host, Origin, size of the body) and security headers on every reply."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from counterfoil.verification.server_address import Address

_LARGEST_BODY = 64 * 1024
_LARGEST_READ = 1024 * 1024  # bytes read of a body that is refused
_BODY_SECONDS = 20.0  # for the whole body of a request, 64 KiB at most
_REPLY_SECONDS = 300.0  # for the work on a request and the sending of its reply

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
class SecurityMiddleware:
    """ASGI middleware around the page."""

    app: ASGIApp
    address: Address
    largest_body: int = _LARGEST_BODY
    body_seconds: float = _BODY_SECONDS
    reply_seconds: float = _REPLY_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse requests that cannot be the page's own, and pass the rest on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        fault = self._find_fault(scope["method"], Headers(scope=scope))
        send = self._add_headers(send)
        try:
            body = await asyncio.wait_for(_read_body(receive, self.largest_body), self.body_seconds)
        except asyncio.TimeoutError:
            await _refuse(send, 408, "the request took too long to arrive")
            return
        if fault is not None:
            await _refuse(send, *fault)
        elif body is None:
            await _refuse(send, 413, "the request is too large")
        else:
            with suppress(asyncio.TimeoutError):  # a client that does not read its reply: the connection is closed
                await asyncio.wait_for(self.app(scope, _replay_body(body, receive), send), self.reply_seconds)

    def _find_fault(self, method: str, headers: Headers) -> tuple[int, str] | None:
        if headers.get("host", "") not in self.address.hosts:
            return 421, "this server is not known by that name"
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self.largest_body:
            return 413, "the request is too large"
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
        foreign = (origin is not None and origin not in self.address.origins) or site not in ("same-origin", "none")
        if method not in ("GET", "HEAD") and foreign:
            return 403, "the request comes from another page"
        return None

    def _add_headers(self, send: Send) -> Send:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("Cache-Control", "no-store")
                if self.address.is_encrypted:
                    headers["Strict-Transport-Security"] = "max-age=31536000"
            await send(message)

        return send_with_headers


async def _read_body(receive: Receive, largest: int) -> bytes | None:
    """The whole body; None where it is longer than the limit, whatever its headers say."""
    body, length = b"", 0
    # Read on past the limit: closing a connection with unread bytes resets it, and the refusal may be lost.
    while length <= max(largest, _LARGEST_READ):
        message = await receive()
        part = message.get("body", b"")
        length += len(part)
        body = body + part if length <= largest else b""
        if not message.get("more_body", False):
            return body if length <= largest else None
    return None


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """A receiver that gives the body first, then the messages that follow."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


async def _refuse(send: Send, status: int, reason: str) -> None:
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"error": reason}).encode()})
