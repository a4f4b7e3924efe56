"""Files at an address such as s3://bucket/folder, behind fsspec: each call is tried again with growing pauses.

What a service refuses for good (no such bucket, no permission, no credentials) is one line at once. Addresses are those
of fsspec; credentials and endpoints come from the environment, as the service's own tools take them.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from counterfoil.errors import UserError, how_to_install
from counterfoil.plugins import import_extra

_ATTEMPTS = 7
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0  # seconds; each pause is about twice the one before
_SYSTEMS: dict[tuple[str, int], Any] = {}  # by protocol and process: a connection must not be used after a fork
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
        self.address = address.rstrip("/")
        self._protocol, _, self._root = self.address.partition("://")

    def __repr__(self) -> str:
        return f"ObjectStorage({self.address!r})"

    def list_files(self, folder: str = "") -> list[StoredFile]:
        """The files below a folder, sorted by name; none where there is no such folder in the bucket."""
        root = self._place(folder)
        try:
            entries = self._call("list", lambda system: system.find(root, detail=True))
        except FileNotFoundError as error:
            if "bucket" in str(error).lower():
                raise self._missing_bucket() from error
            return []
        prefix = f"{self._place('')}/"
        rows = [(self._strip(name), int(about.get("size") or 0)) for name, about in entries.items()]
        return sorted(StoredFile(name.removeprefix(prefix), size) for name, size in rows if name.startswith(prefix))

    def read(self, name: str) -> bytes:
        """The bytes of a file; raises `FileNotFoundError` where it is not there."""
        content: bytes = self._call("read", lambda system: system.cat_file(self._place(name)))
        return content

    def exists(self, name: str) -> bool:
        """Whether a file is there."""
        return bool(self._call("read", lambda system: system.isfile(self._place(name))))

    def write(self, name: str, content: bytes) -> None:
        """Put a file; one of the same name is replaced."""
        try:
            self._call("write", lambda system: system.pipe_file(self._place(name), content))
        except FileNotFoundError as error:
            raise self._missing_bucket() from error

    def write_new(self, name: str, content: bytes) -> bool:
        """Put a file where none of this name is; returns whether none was."""
        try:
            self._call("write", lambda system: system.pipe_file(self._place(name), content, mode="create"))
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
        bucket = self._root.strip("/").split("/")[0]
        return UserError(
            f"expected a bucket at '{self.address}', but '{bucket}' is not there; make it, or check the address"
        )

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
    refusals: tuple[type[BaseException], ...] = (
        PermissionError,
        *_named_errors("botocore.exceptions", "NoCredentialsError"),
    )
    failures: tuple[type[BaseException], ...] = (
        OSError,
        asyncio.TimeoutError,
        *_named_errors("botocore.exceptions", "BotoCoreError", "ClientError"),
        *_named_errors("aiohttp", "ClientError"),
    )
    try:
        yield
    except (FileNotFoundError, FileExistsError):
        raise
    except refusals as error:
        raise UserError(
            f"expected to be allowed to {what} at '{address}', but it refuses: {_first_line(error)};"
            " check the credentials in the environment and the rights of the bucket"
        ) from error
    except failures as error:
        line = _first_line(error)
        if "PreconditionFailed" in line or "pre-conditions" in line:  # something is there already
            raise FileExistsError(line) from error
        raise _Transient(line) from error


def _named_errors(module: str, *names: str) -> tuple[type[Exception], ...]:
    """Errors of a client's packages, where they are installed: not all of them are made into `OSError`."""
    if importlib.util.find_spec(module.split(".")[0]) is None:
        return ()
    errors = vars(importlib.import_module(module))
    return tuple(errors[name] for name in names)


def _first_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:160] or type(error).__name__


def _open_system(protocol: str) -> Any:
    """The file system of fsspec for a protocol; listings are never kept, since other machines write too."""
    key = protocol, os.getpid()
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
