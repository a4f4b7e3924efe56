"""The address of the page: the socket that the server listens on and the URL that people use."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from counterfoil.errors import UserError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Address:
    """The socket that the server listens on, and the URL that people use, which may be a proxy's."""

    host: str
    port: int
    url: str

    @property
    def is_public(self) -> bool:
        """Whether other machines can reach the socket."""
        return self.host not in LOOPBACK

    @property
    def is_encrypted(self) -> bool:
        """Whether people use TLS: cookies are then sent over TLS only."""
        return self.url.startswith("https://")

    @property
    def is_behind_proxy(self) -> bool:
        """Whether there is a proxy: its header then names the client's address."""
        return self.is_encrypted

    @property
    def hosts(self) -> frozenset[str]:
        """The accepted Host headers; any other means that another site poses as this one."""
        return frozenset({*(_format_netloc(name, self.port) for name in LOOPBACK), urlsplit(self.url).netloc})

    @property
    def origins(self) -> frozenset[str]:
        """The Origin headers of this page's own requests."""
        url = urlsplit(self.url)
        return frozenset({*(f"http://{host}" for host in self.hosts), f"{url.scheme}://{url.netloc}"})


def resolve_address(host: str, port: int, url: str | None) -> Address:
    """Return the address of a server; raises `UserError` where other machines reach it and no URL is given."""
    if url is None:
        if host not in LOOPBACK:
            raise UserError(
                f"expected --url with --host {host}: the address that annotators type, such as"
                f" https://verify.example.org behind a TLS proxy, or http://this-machine:{port} in a network you trust"
            )
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    return Address(host, port, _normalize_url(url))


def open_listener(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 takes a free port."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(128)  # connections are queued until the page is up
    except OSError as error:
        bound.close()
        busy = error.errno == errno.EADDRINUSE
        reason = "is taken by another program; choose another --port" if busy else f"cannot be used: {error.strerror}"
        raise UserError(f"expected {host}:{port} to listen on, which {reason}") from error
    return bound


def _normalize_url(url: str) -> str:
    """The URL as browsers send it in Host and Origin: lower case, without the scheme's default port."""
    try:
        parts = urlsplit(url)
        name = (parts.hostname or "").encode("idna").decode()
        rest = (parts.path.strip("/"), parts.query, parts.fragment, parts.username)
        if parts.scheme not in _PORTS or not name or any(rest):
            raise ValueError("not a bare address")
        return f"{parts.scheme}://{_format_netloc(name, parts.port or _PORTS[parts.scheme], parts.scheme)}"
    except ValueError as error:  # also an invalid port or host name
        raise UserError(f"expected a URL such as https://verify.example.org without a path, got '{url}'") from error


def _format_netloc(name: str, port: int, scheme: str = "http") -> str:
    shown = f"[{name}]" if ":" in name else name
    return shown if port == _PORTS[scheme] else f"{shown}:{port}"
