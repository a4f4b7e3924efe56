"""Files at an address such as s3://bucket/folder, behind fsspec: each call is tried again with growing pauses.

What a service refuses for good (no such bucket, no permission, no credentials) is one line at once. Addresses are those
of fsspec; credentials and endpoints come from the environment, as the service's own tools take them.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from counterfoil.errors import UserError, how_to_install
from counterfoil.plugins import import_extra

_ATTEMPTS = 7
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0  # seconds; each pause is about twice the one before
_SYSTEMS: dict[tuple[str, int, int], Any] = {}  # by protocol, process (a connection does not survive a fork), thread
_KEEPS_LISTINGS = ("hf",)  # protocols whose client keeps listings whatever it is told, in a file system per thread
_REFUSED = (401, 403)  # HTTP status
_Result = TypeVar("_Result")


class StoredFile(NamedTuple):
    """A file below an address."""

    name: str  # relative to the address
    size: int


def is_address(place: object) -> bool:
    """Whether a place is an address of object storage; a `Path` never is, since it makes one slash of two."""
    return isinstance(place, str) and "://" in place


class ObjectStorage:
    """The files below one address."""

    def __init__(self, address: str) -> None:
        self._protocol, _, root = address.partition("://")
        self._root = root.rstrip("/")
        self.address = f"{self._protocol}://{self._root}"

    def __repr__(self) -> str:
        return f"ObjectStorage({self.address!r})"

    def list_files(self, folder: str = "") -> list[StoredFile]:
        """The files below a folder, sorted by name; none where there is no such folder in the bucket."""
        root = self._place(folder)
        try:
            entries = self._call("list", lambda system: _forget_listings(system).find(root, detail=True))
        except FileNotFoundError as error:
            if any(word in str(error).lower() for word in ("bucket", "repository not found", "revision not found")):
                raise self._missing_bucket() from error
            return []
        prefix = f"{self._place('')}/"
        rows = [(self._strip(name), int(about.get("size") or 0)) for name, about in entries.items()]
        return sorted(StoredFile(name.removeprefix(prefix), size) for name, size in rows if name.startswith(prefix))

    def read(self, name: str) -> bytes:
        """The bytes of a file; raises `FileNotFoundError` where it is not there."""
        place = self._place(name)
        try:
            content: bytes = self._call("read", lambda system: system.cat_file(place))
        except FileNotFoundError:
            if self._protocol not in _KEEPS_LISTINGS:
                raise
            content = self._call("read", lambda system: _forget_listings(system).cat_file(place))
        return content

    def exists(self, name: str) -> bool:
        """Whether a file is there."""
        try:  # `isfile` would take a call that fails for an answer
            about = self._call("read", lambda system: _forget_listings(system).info(self._place(name)))
        except FileNotFoundError:
            return False
        return bool(about["type"] == "file")

    def write(self, name: str, content: bytes) -> None:
        """Put a file; one of the same name is replaced."""
        try:
            self._call("write", lambda system: system.pipe_file(self._place(name), content))
        except FileNotFoundError as error:
            raise self._missing_bucket() from error

    def write_new(self, name: str, content: bytes) -> bool:
        """Put a file where none of this name is; returns whether none was."""
        try:
            self._call(
                "write", lambda system: _forget_listings(system).pipe_file(self._place(name), content, mode="create")
            )
        except FileExistsError:
            return False
        except FileNotFoundError as error:
            raise self._missing_bucket() from error
        return True

    def remove(self, name: str) -> None:
        """Remove a file; one that is not there is no error."""
        try:
            self._call("write", lambda system: system.rm_file(self._place(name)))
        except FileNotFoundError:
            return

    def _missing_bucket(self) -> UserError:
        parts = self._root.strip("/").split("/")
        if self._protocol == "hf":
            kind, name = "repository", "/".join(parts[: 3 if parts[0] in ("datasets", "spaces", "buckets") else 2])
            remedy = "; make it, check the address, or set HF_TOKEN where it is private"
        else:
            kind, name, remedy = "bucket", parts[0], "; make it, or check the address"
        return UserError(f"expected a {kind} at '{self.address}', but '{name}' is not there{remedy}")

    def _place(self, name: str) -> str:
        return f"{self._root}/{name}".rstrip("/")

    def _strip(self, name: str) -> str:
        """A name as the service lists it, in the form of the root: some put a slash before it."""
        return name if self._root.startswith("/") else name.lstrip("/")

    def _call(self, what: str, ask: Callable[[Any], _Result]) -> _Result:
        """The result of a call, tried again where the service or the network failed."""
        system = _open_system(self._protocol)
        for attempt in range(_ATTEMPTS):
            try:
                with _translated(self.address, what):
                    return ask(system)
            except _Transient as error:
                if attempt == _ATTEMPTS - 1:
                    raise UserError(
                        f"expected to {what} at '{self.address}', but {_ATTEMPTS} attempts failed, the last with:"
                        f" {error}; run the same command again when it answers"
                    ) from error
            time.sleep(min(_FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE) * random.uniform(0.7, 1.3))
        raise AssertionError("the last attempt returns or raises")


class _Transient(Exception):
    """A failure that another attempt may not meet."""


@contextmanager
def _translated(address: str, what: str) -> Iterator[None]:
    """Failures of a service: refusals as `UserError`, names that are there or not as they are, others as transient."""
    try:
        yield
    except (FileNotFoundError, FileExistsError):
        raise
    except _named_errors(_ABSENCES) as error:
        raise FileNotFoundError(_first_line(error)) from error
    except _named_errors(_FAILURES, OSError, asyncio.TimeoutError) as error:
        line = _first_line(error)
        if _is_refusal(error):
            raise UserError(
                f"expected to be allowed to {what} at '{address}', but it refuses: {line};"
                " check the credentials in the environment and the rights of the bucket"
            ) from error
        if "PreconditionFailed" in line or "pre-conditions" in line:  # something is there already
            raise FileExistsError(line) from error
        raise _Transient(line) from error
    except (ValueError, NotImplementedError) as error:  # a client that cannot read the address
        raise UserError(
            f"expected an address that can be used to {what}, got '{address}': {_first_line(error)}"
        ) from error


_ABSENCES = {"huggingface_hub.errors": ("EntryNotFoundError",)}
_REFUSALS = {
    "botocore.exceptions": ("NoCredentialsError",),
    "google.auth.exceptions": ("DefaultCredentialsError", "RefreshError"),
}
_FAILURES = {
    "botocore.exceptions": ("BotoCoreError", "ClientError"),
    "aiohttp": ("ClientError",),
    "gcsfs.retry": ("HttpError", "ChecksumError"),
    "google.auth.exceptions": ("GoogleAuthError",),
    "huggingface_hub.errors": ("HTTPError",),
}


def _is_refusal(error: BaseException) -> bool:
    """Whether a service said no for good, in whatever way its client says it."""
    answer = getattr(error, "response", None)
    status = getattr(error, "code", None) or getattr(answer, "status_code", None)
    return (
        isinstance(error, _named_errors(_REFUSALS, PermissionError))
        or status in _REFUSED
        or str(error).startswith("Forbidden: ")  # gcsfs
    )


def _named_errors(names: Mapping[str, Sequence[str]], *more: type[Exception]) -> tuple[type[Exception], ...]:
    """Errors of the clients' packages, as far as these are loaded: not all of them are made into `OSError`."""
    loaded = [(vars(sys.modules[module]), own) for module, own in names.items() if module in sys.modules]
    return *more, *(errors[name] for errors, own in loaded for name in own)


def _forget_listings(system: Any) -> Any:
    """The file system without what it may know from before: other machines write too."""
    system.invalidate_cache()
    return system


def _first_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:160] or type(error).__name__


def _open_system(protocol: str) -> Any:
    """The file system of fsspec for a protocol; listings are never kept, since other machines write too."""
    key = protocol, os.getpid(), threading.get_ident() if protocol in _KEEPS_LISTINGS else 0
    if key not in _SYSTEMS:
        fsspec = import_extra("fsspec", "remote")
        try:
            _SYSTEMS[key] = fsspec.filesystem(protocol, use_listings_cache=False, skip_instance_cache=True)
        except ImportError as error:
            raise UserError(
                f"expected the package that opens {protocol}:// addresses, which is not installed: {error}; s3:// comes"
                f" with: {how_to_install('remote')}"
            ) from error
        except ValueError as error:
            raise UserError(
                f"expected an address that fsspec knows, such as s3://bucket/folder, got {protocol}://: {error}"
            ) from error
    return _SYSTEMS[key]
