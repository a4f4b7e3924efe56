"""The content of recorded files that is compared: without times, secrets and paths."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import platform
import re
import sqlite3
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from PIL import Image

VOLATILE_KEYS = {"command", "environment", "time", "created_at", "updated_at", "issued_at", "expires_at", "signature"}
VOLATILE_COLUMNS = {"nonce", "token_hash", "task", "picture_handle", "original_handle", "key"}  # and those in _at
TEXTS = (".html", ".txt", ".md", ".tex", ".svg", ".xml", ".yaml", ".yml", ".js", ".css", ".toml", ".cff", ".bib")
SECRETS = ("secret",)  # files whose content is random
PICTURES = (".png", ".jpg", ".jpeg", ".webp")
PATTERNS = (
    (re.compile(r'"(signature|task)": "[^"]+"'), r'"\1": "<secret>"'),
    (re.compile(r"\b[0-9a-f]{24}\.png"), "<handle>.png"),  # pictures of an offline package
    (re.compile(r"https?://\S+/join/[^\s\"<]+"), "<link>"),
    (re.compile(r"^speed: .*$", re.MULTILINE), "speed: <number>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*(?:Z|[+-]\d\d:\d\d)"), "<time>"),
)


@dataclass(frozen=True)
class Reader:
    """Reads files as lines that two equal recordings have in common."""

    hidden: Sequence[tuple[str, str]]  # text of this machine, and what stands for it

    @classmethod
    def of(cls, checkout: str, out: Path) -> Reader:
        """A reader of the recording in a folder."""
        cache = os.environ.get("COUNTERFOIL_CACHE") or str(Path.home() / ".cache" / "counterfoil")
        return cls([
            (str(out), "<out>"), (checkout, "<checkout>"), (cache, "<cache>"), (platform.platform(), "<platform>"),
            (sys.executable, "<python>"),
        ])  # fmt: skip

    def lines(self, name: str, data: bytes) -> list[str] | None:
        """The content of a file as lines; None where its bytes count: of other kinds, and where it is damaged."""
        try:
            return self._lines(name, data)
        except (ValueError, OSError, sqlite3.Error, zipfile.BadZipFile, tarfile.TarError):
            return None

    def _lines(self, name: str, data: bytes) -> list[str] | None:
        ending = Path(name).suffix.lower()
        if Path(name).name in SECRETS:
            return []
        if ending in TEXTS or (not ending and _is_text(data)):
            return self._hide(data.decode("utf-8", "replace")).split("\n")
        readers = {
            ".json": self._json, ".jsonl": self._json_lines, ".csv": self._csv, ".parquet": self._parquet,
            ".sqlite": self._sqlite, ".zip": self._zip, ".tar": self._tar, **dict.fromkeys(PICTURES, self._picture),
        }  # fmt: skip
        return readers[ending](data) if ending in readers else None

    def _hide(self, text: str) -> str:
        for secret, stand_in in self.hidden:
            text = text.replace(secret, stand_in)
        for pattern, stand_in in PATTERNS:
            text = pattern.sub(stand_in, text)
        return text

    def _json(self, data: bytes) -> list[str]:
        return self._hide(json.dumps(_stable(json.loads(data)), indent=1, ensure_ascii=False)).split("\n")

    def _json_lines(self, data: bytes) -> list[str]:
        """Lines in order of their text: the order of lines is no content."""
        rows = [json.loads(line) for line in data.decode().splitlines() if line]
        return sorted(self._hide(json.dumps(_stable(row), ensure_ascii=False)) for row in rows)

    def _csv(self, data: bytes) -> list[str]:
        rows = list(csv.reader(io.StringIO(data.decode("utf-8"), newline="")))
        kept = [place for place, name in enumerate(rows[0] if rows else []) if not _is_volatile(name)]
        return [self._hide(repr([row[place] for place in kept if place < len(row)])) for row in rows]

    def _parquet(self, data: bytes) -> list[str]:
        table = pq.read_table(io.BytesIO(data))
        columns = [[_plain(value) for value in table[name].to_pylist()] for name in table.column_names]
        rows = zip(*columns, strict=True) if columns else ()
        return [repr(table.column_names), *(self._hide(repr(row)) for row in rows)]

    def _sqlite(self, data: bytes) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "file.sqlite"
            file.write_bytes(data)
            with contextlib.closing(sqlite3.connect(file)) as connection:
                return [self._hide(line) for line in _dump(connection)]

    def _picture(self, data: bytes) -> list[str]:
        with Image.open(io.BytesIO(data)) as image:
            pixels = np.asarray(image)
        return [f"{pixels.shape} {pixels.dtype} {hashlib.sha256(pixels.tobytes()).hexdigest()}"]

    def _zip(self, data: bytes) -> list[str]:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return self._members({name: archive.read(name) for name in archive.namelist()})

    def _tar(self, data: bytes) -> list[str]:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            files = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
            return self._members({name: file.read() for name, file in files.items() if file})

    def _members(self, members: Mapping[str, bytes]) -> list[str]:
        contents = {name: content_digest(self.lines(name, data), data) for name, data in members.items()}
        return sorted(self._hide(f"{name} {content}") for name, content in contents.items())


def _is_text(data: bytes) -> bool:
    with contextlib.suppress(UnicodeDecodeError):
        return "\0" not in data.decode()
    return False


def _is_volatile(name: str) -> bool:
    return name in VOLATILE_KEYS


def _stable(value: Any) -> Any:
    """JSON without the keys whose values differ from time to time and from machine to machine."""
    if isinstance(value, dict):
        return {name: _stable(inner) for name, inner in value.items() if not _is_volatile(name)}
    return [_stable(inner) for inner in value] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """A value of a table, with bytes as their hash."""
    if isinstance(value, bytes):
        return f"bytes {hashlib.sha256(value).hexdigest()}"
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def _dump(connection: sqlite3.Connection) -> Iterator[str]:
    """The definitions and rows of a database, sorted, without times and secrets."""
    tables = list(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name"))
    for _, definition in tables:
        yield re.sub(r"\s+", " ", definition)
    listed = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    names = [name for (name,) in listed]
    for name in names:
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')]
        kept = [column for column in columns if column not in VOLATILE_COLUMNS and not column.endswith("_at")]
        chosen = ", ".join(f'"{column}"' for column in kept)
        yield from sorted(f"{name} {row!r}" for row in connection.execute(f'SELECT {chosen} FROM "{name}"'))


def content_digest(lines: Sequence[str] | None, data: bytes) -> str:
    """The hash of a file's lines, or of its bytes where it has none."""
    content = data if lines is None else "\n".join(lines).encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).hexdigest()
