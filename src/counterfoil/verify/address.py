"""Where the page is reached, and what follows from it for links, cookies and checks."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

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
