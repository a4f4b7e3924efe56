"""The package index as pip's settings describe it: which address holds a file, and a session to get it with."""

from __future__ import annotations

import logging
import os
import ssl
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import httpx2
from unearth import Link, PackageFinder
from unearth.auth import MultiDomainBasicAuth
from unearth.fetchers import Fetcher, PyPIClient

from counterfoil.embedded.fetch.catalogue import Distribution
from counterfoil.embedded.fetch.pip_settings import PipSettings
from counterfoil.errors import UserError

FIRST_PAUSE_SECONDS = 0.1  # doubled after each try
ADVICE = (
    "check the network and `pip config list`, whose settings are used here, or get that file by hand, put it into a "
    "folder and set COUNTERFOIL_WHEELS to the folder"
)


class PackageIndex:
    """Every place that may hold distributions: folders first, they cost nothing to ask."""

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
        """One finder per place, so that one which is down does not hide the others."""
        for place in (*_folder_by_hand(), *self.settings.find_links):
            yield self._finder(find_links=[place])
        if not self.settings.no_index:
            # Without any place the finder asks the public index.
            yield self._finder(index_urls=[self.settings.index_url] if self.settings.index_url else [])
            for url in self.settings.extra_index_urls:
                yield self._finder(index_urls=[url])

    def _finder(self, index_urls: Sequence[str] = (), find_links: Sequence[str] = ()) -> PackageFinder:
        session = cast(Fetcher, self.session)  # the client accepts more than the protocol asks, which mypy takes amiss
        # Nothing will be installed: a wheel for any platform does.
        return PackageFinder(session, index_urls=index_urls, find_links=find_links, ignore_compatibility=True)

    def _links(self, finder: PackageFinder, distribution: Distribution) -> list[str]:
        for attempt in range(self.settings.retries):
            try:
                return _matching_links(finder, distribution)
            except httpx2.TransportError:
                pause(attempt)
        return _matching_links(finder, distribution)


def pause(attempt: int) -> None:
    """Wait before the next try, longer each time."""
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
    """Keep what the finder would print: an index without the file is no news unless all are without it."""

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
    session = PyPIClient(
        trusted_hosts=settings.trusted_hosts,
        verify=_tls(settings, verify=True),
        proxy=settings.proxy,
        timeout=settings.timeout_seconds,
        follow_redirects=True,
        mounts=_ways_to_trusted_hosts(settings),
    )
    indexes = [url for url in (settings.index_url, *settings.extra_index_urls) if url]
    session.auth = MultiDomainBasicAuth(prompting=False, index_urls=indexes)
    return session


def _ways_to_trusted_hosts(settings: PipSettings) -> dict[str, httpx2.HTTPTransport]:
    """Unverified connections; the client has its own for trusted hosts, but without proxy and client certificate."""
    ways = {}
    for host in settings.trusted_hosts:
        proxies = {} if urllib.request.proxy_bypass(host) else urllib.request.getproxies()
        for scheme in ("http", "https"):
            proxy = settings.proxy or proxies.get(scheme)
            ways[f"{scheme}://{host}"] = httpx2.HTTPTransport(verify=_tls(settings, verify=False), proxy=proxy)
    return ways


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
