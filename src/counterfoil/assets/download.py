"""Downloads that are resumed, tried again and verified, with their progress on standard error."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

import httpx2

from counterfoil.assets.asset_catalogue import Distribution
from counterfoil.assets.package_index import ADVICE, PackageIndex, pause
from counterfoil.errors import UserError
from counterfoil.progress import Extent, count_progress, open_meter

_MEGABYTE = 1e6  # bytes
Update: TypeAlias = Callable[[int], None]


class _Interrupted(Exception):
    """A network failure after which another try may succeed."""


class _PartialFile:
    """The bytes that have arrived so far, on the disk, with their hash."""

    def __init__(self, path: Path, expected_size: int) -> None:
        self._path = path
        self._file = path.open("a+b")
        self._file.seek(0)
        self._digest = hashlib.sha256()
        self.size = 0
        self.expected_size = expected_size
        while chunk := self._file.read(1 << 20):
            self._count(chunk)

    def __enter__(self) -> _PartialFile:
        return self

    def __exit__(self, *problem: object) -> None:
        self._file.close()
        if self.size == 0:
            self._path.unlink()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def append(self, chunk: bytes) -> None:
        self._file.write(chunk)
        self._count(chunk)

    def restart(self) -> None:
        self._file.truncate(0)
        self._digest = hashlib.sha256()
        self.size = 0

    def _count(self, chunk: bytes) -> None:
        self._digest.update(chunk)
        self.size += len(chunk)


def download(index: PackageIndex, distribution: Distribution, path: Path, update: Update) -> None:
    """Download and verify the distribution; after a network failure the partial file stays for the next try."""
    try:
        with _PartialFile(path, distribution.size) as part:
            _download_rest(index, distribution, part, update)
            got = part.sha256
    except OSError:
        path.unlink(missing_ok=True)
        raise
    except httpx2.HTTPStatusError as problem:
        path.unlink(missing_ok=True)
        answer = f"{problem.response.status_code} {problem.response.reason_phrase}"
        raise UserError(f"{distribution.file}: the server answered {answer}; {ADVICE}") from problem
    if got != distribution.sha256:
        path.unlink(missing_ok=True)
        raise UserError(
            f"{distribution.file}: expected sha256 {distribution.sha256}, got {got}; try again, and if that does not "
            "help, see `pip config list`: the index, or a proxy on the way, delivers another file"
        )


def _download_rest(index: PackageIndex, distribution: Distribution, part: _PartialFile, update: Update) -> None:
    if part.size == part.expected_size:
        return
    url = index.find(distribution)
    failures, furthest = 0, part.size
    while True:
        try:
            return _receive(index, url, part, update)
        except _Interrupted as problem:
            # Only tries without progress count, so a connection that breaks often still finishes.
            failures = 0 if part.size > furthest else failures + 1
            furthest = max(furthest, part.size)
            if failures > index.settings.retries:
                raise UserError(f"{distribution.file}: the download broke off: {problem}; {ADVICE}") from problem
            pause(failures)


def _receive(index: PackageIndex, url: str, part: _PartialFile, update: Update) -> None:
    # Raw bytes, without content encoding: some servers send a .tar.gz as a gzip-encoded .tar.
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={part.size}-"} if part.size else {})}
    try:
        with index.session.get_stream(url, headers=headers) as response:
            _check_response(response, part)
            for chunk in response.iter_raw():
                part.append(chunk)
                update(part.size)
                if part.size > part.expected_size:
                    return  # too long, perhaps endless; the hash check will refuse it
    except httpx2.TransportError as problem:
        raise _Interrupted(str(problem) or type(problem).__name__) from problem
    if part.size < part.expected_size and "content-length" not in response.headers:
        raise _Interrupted(f"{part.size} of {part.expected_size} bytes came")


def _check_response(response: httpx2.Response, part: _PartialFile) -> None:
    """Check the response; restart the partial file where the server does not continue it."""
    if response.is_server_error:
        raise _Interrupted(f"the server answered {response.status_code} {response.reason_phrase}")
    response.raise_for_status()
    if response.status_code != httpx2.codes.PARTIAL_CONTENT:
        part.restart()
    elif not response.headers.get("content-range", "").startswith(f"bytes {part.size}-"):
        part.restart()
        raise _Interrupted("the server sent other bytes than were asked for")


# Called with a download's name and its size in bytes; yields a callback for the bytes received so far.
Progress: TypeAlias = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


@contextmanager
def show_download_progress(what: str, size: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; elsewhere lines with the megabytes received and the time left."""
    extent = Extent(stage=f"fetching {what}", unit="MB", total=max(1, round(size / _MEGABYTE)))
    with open_meter(count_progress(extent)) as meter:

        def update(present: int) -> None:
            meter.add(extent.total * min(1.0, present / size) - meter.counter.read())

        yield update
        update(size)
