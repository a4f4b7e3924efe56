"""Address of the page: links and cookies.

Host, origin, body size, headers, rate limit; secret, signed invitations and tokens.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from itsdangerous import BadSignature, URLSafeSerializer
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from counterfoil.errors import UserError

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Address:
    """The socket that the server listens on, and the URL that people use, which a proxy may stand behind."""

    host: str
    port: int
    url: str

    @property
    def is_public(self) -> bool:
        """Whether other machines reach the socket."""
        return self.host not in _LOOPBACK

    @property
    def is_encrypted(self) -> bool:
        """Whether people come by TLS: cookies are then sent over nothing else."""
        return self.url.startswith("https://")

    @property
    def is_behind_proxy(self) -> bool:
        """Whether a proxy stands between, whose word on the client's address counts."""
        return self.is_encrypted

    @property
    def hosts(self) -> frozenset[str]:
        """The Host headers that are answered; others come from a page that pretends to be this one."""
        return frozenset({*(_netloc(name, self.port) for name in _LOOPBACK), urlsplit(self.url).netloc})

    @property
    def origins(self) -> frozenset[str]:
        """The Origin headers of this page's own requests."""
        url = urlsplit(self.url)
        return frozenset({*(f"http://{host}" for host in self.hosts), f"{url.scheme}://{url.netloc}"})


def address_at(host: str, port: int, url: str | None) -> Address:
    """The address of a server; whoever lets other machines in has to say by which URL they come."""
    if url is None:
        if host not in _LOOPBACK:
            raise UserError(
                f"expected --url with --host {host}: the address that annotators type, such as"
                f" https://verify.example.org behind a TLS proxy, or http://this-machine:{port} in a network you trust"
            )
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    return Address(host, port, _as_browsers_say(url))


def _as_browsers_say(url: str) -> str:
    """The address as it comes in Host and Origin: small letters, and no port where it is the scheme's own."""
    try:
        parts = urlsplit(url)
        name = (parts.hostname or "").encode("idna").decode()
        rest = (parts.path.strip("/"), parts.query, parts.fragment, parts.username)
        if parts.scheme not in _PORTS or not name or any(rest):
            raise ValueError("more or less than an address")
        return f"{parts.scheme}://{_netloc(name, parts.port or _PORTS[parts.scheme], parts.scheme)}"
    except ValueError as error:  # also a port or a name that is none
        raise UserError(f"expected a URL such as https://verify.example.org without a path, got '{url}'") from error


def _netloc(name: str, port: int, scheme: str = "http") -> str:
    shown = f"[{name}]" if ":" in name else name
    return shown if port == _PORTS[scheme] else f"{shown}:{port}"


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
class SecurityMiddleware:
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
class RateLimit:
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


@dataclass(frozen=True)
class Invitation:
    """What a link says once its signature holds."""

    person_id: int
    nonce: str


@dataclass(frozen=True)
class Signer:
    """Signs and checks with the secret of one workspace."""

    secret: str = field(repr=False)

    def token(self, invitation: Invitation) -> str:
        """The last part of an invitation link."""
        return self._links.dumps([invitation.person_id, invitation.nonce])

    def invitation(self, token: str) -> Invitation | None:
        """What a link's last part says; None where it was not made here."""
        try:
            person_id, nonce = self._links.loads(token)
        except BadSignature:
            return None
        return Invitation(int(person_id), str(nonce))

    def csrf(self, session: str) -> str:
        """What a page must send back with every change, known only to pages of this session."""
        return hmac.new(self.secret.encode(), b"csrf" + session.encode(), hashlib.sha256).hexdigest()

    @property
    def _links(self) -> URLSafeSerializer:
        return URLSafeSerializer(self.secret, salt="invitation", signer_kwargs={"digest_method": hashlib.sha256})


def signer_at(folder: Path) -> Signer:
    """The signer of a workspace's folder; its secret is made once and only its owner may read it."""
    path = folder / "secret"
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return Signer(_read(path))
    with os.fdopen(made, "w", encoding="utf-8") as file:
        file.write(secrets.token_hex(32))
    return Signer(_read(path))


def _read(path: Path) -> str:
    if path.stat().st_mode & 0o077:
        raise UserError(f"expected {path} to be readable by its owner alone; run: chmod 600 '{path}'")
    secret = path.read_text(encoding="ascii", errors="replace").strip()
    if len(secret) < 64:
        raise UserError(f"expected a secret of 64 characters in {path}, which is damaged; remove it and invite again")
    return secret
