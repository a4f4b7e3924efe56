"""The package index as pip would use it: pip's settings, the address of a file, the HTTP client."""

from __future__ import annotations

import ast
import importlib.util
import logging
import os
import re
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast
from urllib.parse import urlsplit

import httpx2
from unearth import Link, PackageFinder
from unearth.auth import MultiDomainBasicAuth
from unearth.fetchers import Fetcher, PyPIClient

from counterfoil.assets.asset_catalogue import Distribution
from counterfoil.errors import UserError

Number = TypeVar("Number", int, float)

# Later sections win. pip reads [install] only when installing, but mirrors are often set there.
SECTIONS = ("global", "install", "download", ":env:")
OTHER_NAMES = {"default-timeout": "timeout", "pypi-url": "index-url"}
LINE = re.compile(r"(?P<section>[^.=]+)\.(?P<key>[^=]+)=(?P<value>['\"].*['\"])")


@dataclass(frozen=True, kw_only=True)
class PipSettings:
    """The part of pip's settings that decides where a distribution comes from."""

    index_url: str | None = None  # None: the public index
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    trusted_hosts: tuple[str, ...] = ()
    proxy: str | None = None
    certificates: str | None = None
    client_certificate: str | None = None
    timeout_seconds: float = 15.0
    retries: int = 5


def read_pip_settings() -> PipSettings:
    """Ask pip for its settings (files and environment); without pip, read the PIP_* environment."""
    values = _asked_from_pip() if importlib.util.find_spec("pip") else _from_environment()
    proxy = values.get("proxy")
    return PipSettings(
        index_url=_address(values["index-url"]) if "index-url" in values else None,
        extra_index_urls=tuple(map(_address, values.get("extra-index-url", "").split())),
        find_links=tuple(map(_address, values.get("find-links", "").split())),
        no_index=values.get("no-index", "no").lower() in {"y", "yes", "t", "true", "on", "1"},
        trusted_hosts=tuple(values.get("trusted-host", "").split()),
        proxy=f"http://{proxy}" if proxy and "://" not in proxy else proxy,
        certificates=values.get("cert") or os.environ.get("REQUESTS_CA_BUNDLE") or None,
        client_certificate=values.get("client-cert"),
        timeout_seconds=_number(values, "timeout", float, PipSettings.timeout_seconds),
        retries=_number(values, "retries", int, PipSettings.retries),
    )


def _asked_from_pip() -> dict[str, str]:
    # PIP_QUIET would hide the settings, and a file named pip.py in the working folder must not run.
    environment = {**os.environ, "PIP_QUIET": "0", "PIP_VERBOSE": "0", "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        reason = " ".join(answer.stderr.split()) or f"exit code {answer.returncode}"
        raise UserError(f"pip's settings cannot be read: {reason}; repair them until `pip config list` works")
    return _merged(answer.stdout)


def _merged(listing: str) -> dict[str, str]:
    by_section: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listing.splitlines():
        found = LINE.fullmatch(line.strip())
        if found and found["section"] in by_section:
            _note(by_section[found["section"]], found["key"], ast.literal_eval(found["value"]))
    return {key: value for section in SECTIONS for key, value in by_section[section].items()}


def _from_environment() -> dict[str, str]:
    values: dict[str, str] = {}
    for variable, value in os.environ.items():
        if variable.startswith("PIP_"):
            _note(values, variable[len("PIP_") :].lower().replace("_", "-"), value)
    return values


def _note(values: dict[str, str], key: str, value: str) -> None:
    if value:  # pip also treats an empty setting as none
        values[OTHER_NAMES.get(key, key)] = value


def _address(place: str) -> str:
    """A URL; the paths of folders, which pip also accepts, become file URLs."""
    if "://" not in place:
        return Path(place).expanduser().absolute().as_uri()
    try:
        _ = urlsplit(place).port
    except ValueError as problem:
        raise UserError(f"pip's settings name an address that is none: {problem}; see `pip config list`") from None
    return place


def _number(values: Mapping[str, str], key: str, kind: Callable[[str], Number], default: Number) -> Number:
    try:
        return kind(values[key]) if key in values else default
    except ValueError:
        raise UserError(f"pip's setting {key} must be a number, got {values[key]!r}; see `pip config list`") from None


FIRST_PAUSE_SECONDS = 0.1  # doubled after each try
ADVICE = (
    "check the network and `pip config list`, whose settings are used here, or get that file by hand, put it into a "
    "folder and set COUNTERFOIL_WHEELS to the folder"
)


class PackageIndex:
    """Every place that may hold distributions: local folders first, because they are fast."""

    def __init__(self, settings: PipSettings) -> None:
        self.settings = settings
        self.session = _open_session(settings)

    def __enter__(self) -> PackageIndex:
        return self

    def __exit__(self, *problem: object) -> None:
        self.session.close()

    def find(self, distribution: Distribution) -> str:
        """The address of the distribution's file."""
        reasons: list[str] = []
        for finder in self._finders():
            try:
                with _warnings_into(reasons):
                    links = self._links(finder, distribution)
            except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as problem:  # ValueError: a page that is no index
                reasons.append(f"{Link(finder.sources[0]['url']).redacted}: {problem}")
                continue
            if links:
                return links[0]
        said = "; ".join(dict.fromkeys(reasons)) or "no place that pip's settings name has it"
        wanted = f"{distribution.file} of {distribution.name} {distribution.version}"
        raise UserError(f"{wanted} not found: {said}; {ADVICE}")

    def _finders(self) -> Iterator[PackageFinder]:
        """One finder per place, so that a place that is down does not hide the others."""
        for place in (*_folder_by_hand(), *self.settings.find_links):
            yield self._finder(find_links=[place])
        if not self.settings.no_index:
            # With no places given, the finder asks the public index.
            yield self._finder(index_urls=[self.settings.index_url] if self.settings.index_url else [])
            for url in self.settings.extra_index_urls:
                yield self._finder(index_urls=[url])

    def _finder(self, index_urls: Sequence[str] = (), find_links: Sequence[str] = ()) -> PackageFinder:
        session = cast(Fetcher, self.session)  # mypy: the client's signature is wider than the protocol's
        # Nothing is installed, so a wheel for any platform will do.
        return PackageFinder(session, index_urls=index_urls, find_links=find_links, ignore_compatibility=True)

    def _links(self, finder: PackageFinder, distribution: Distribution) -> list[str]:
        for attempt in range(self.settings.retries):
            try:
                return _matching_links(finder, distribution)
            except httpx2.TransportError:
                pause(attempt)
        return _matching_links(finder, distribution)


def pause(attempt: int) -> None:
    """Wait before the next try, twice as long each time."""
    time.sleep(FIRST_PAUSE_SECONDS * 2**attempt)


def _matching_links(finder: PackageFinder, distribution: Distribution) -> list[str]:
    # A yanked file is still the file that the catalogue's hash names.
    packages = finder.find_all_packages(distribution.name, allow_yanked=True)
    return [package.link.normalized for package in packages if package.link.filename == distribution.file]


def _folder_by_hand() -> list[str]:
    folder = os.environ.get("COUNTERFOIL_WHEELS")
    if not folder:
        return []
    if not Path(folder).is_dir():
        raise UserError(f"COUNTERFOIL_WHEELS must name a folder, got {folder!r}; correct it or unset it")
    return [Path(folder).absolute().as_uri()]


@contextmanager
def _warnings_into(reasons: list[str]) -> Iterator[None]:
    """Collect the finder's warnings, to be shown only where no index has the file."""

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            reasons.append(" ".join(record.getMessage().split()))

    logger, listener = logging.getLogger("unearth"), Listener(logging.WARNING)
    logger.addHandler(listener)
    try:
        yield
    finally:
        logger.removeHandler(listener)


def _open_session(settings: PipSettings) -> PyPIClient:
    client = PyPIClient(
        trusted_hosts=settings.trusted_hosts,
        verify=_tls(settings, verify=True),
        proxy=settings.proxy,
        timeout=settings.timeout_seconds,
        follow_redirects=True,
        mounts=_unverified_transports(settings),
    )
    indexes = [url for url in (settings.index_url, *settings.extra_index_urls) if url]
    client.auth = MultiDomainBasicAuth(prompting=False, index_urls=indexes)
    return client


def _unverified_transports(settings: PipSettings) -> dict[str, httpx2.HTTPTransport]:
    """Unverified connections to trusted hosts; the client's own lack proxy and client certificate."""
    transports = {}
    for host in settings.trusted_hosts:
        proxies = {} if urllib.request.proxy_bypass(host) else urllib.request.getproxies()
        for scheme in ("http", "https"):
            proxy = settings.proxy or proxies.get(scheme)
            transports[f"{scheme}://{host}"] = httpx2.HTTPTransport(verify=_tls(settings, verify=False), proxy=proxy)
    return transports


def _tls(settings: PipSettings, *, verify: bool) -> ssl.SSLContext:
    try:
        context = _authorities(settings.certificates) if verify else httpx2.create_ssl_context(verify=False)
        if settings.client_certificate:
            context.load_cert_chain(settings.client_certificate)
    except OSError as problem:
        named = " and ".join(filter(None, (settings.certificates, settings.client_certificate)))
        raise UserError(f"pip's certificates {named} cannot be used: {problem}; see `pip config list`") from problem
    return context


def _authorities(certificates: str | None) -> ssl.SSLContext:
    if certificates is None:
        return httpx2.create_ssl_context()
    if Path(certificates).is_dir():
        return ssl.create_default_context(capath=certificates)
    return ssl.create_default_context(cafile=certificates)
