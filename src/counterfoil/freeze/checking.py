"""Whether a benchmark is what was frozen: every file against its hash, and nothing besides."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable
from counterfoil.freeze.entries import MANIFEST, Manifest, Place, read_manifest
from counterfoil.freeze.file_content import THREADS, file_content
from counterfoil.freeze.record import RECORD, FileNote, Record, content_digest, read_record

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Difference:
    """One thing that is not as it was frozen."""

    kind: Literal["changed", "missing", "extra", "renamed"]
    file: str
    about: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.file}{f' ({self.about})' if self.about else ''}"


def file_note(path: Path) -> FileNote:
    """Hash and size of a file, read in pieces; what is no file has neither."""
    digest, size = hashlib.sha256(), 0
    if not path.is_file():
        return FileNote(sha256="", size=0)
    with path.open("rb") as file:
        while piece := file.read(_CHUNK):
            digest.update(piece)
            size += len(piece)
    return FileNote(sha256=digest.hexdigest(), size=size)


def file_notes(folder: Path, files: Iterable[str]) -> dict[str, FileNote]:
    """The same of many files, in threads."""
    names = list(files)
    with ThreadPoolExecutor(THREADS) as pool:
        return dict(zip(names, pool.map(lambda name: file_note(folder / name), names), strict=True))


def files_below(folder: Path) -> set[str]:
    """Every file of a benchmark, and what only passes for one; what is hidden at its top belongs to git and the like.

    A link to a folder counts as one thing: the pictures behind it would be read by others, and are no part of it.
    """
    names = (path.relative_to(folder) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return {name.as_posix() for name in names if not name.parts[0].startswith(".")}


def differences(folder: Path) -> list[Difference]:
    """What is changed, missing, extra or renamed; nothing where the benchmark is whole."""
    record = read_record(folder)
    found = _of_record(record)
    there = files_below(folder)
    found += _of_files(folder, record.files, there)
    found += _of_contents(folder, record.files, {one.file for one in found})
    if any(difference.file == MANIFEST for difference in found):
        return [_blocking(one) if one.file == MANIFEST else one for one in found]
    manifest = read_manifest(folder)
    if content_digest(manifest) != record.content_digest:
        found.append(Difference("changed", RECORD, "its content digest is not that of the manifest"))
    pictures = {place.file: FileNote(sha256=place.file_sha256, size=place.size) for place in _single(manifest)}
    found += _of_files(folder, pictures, there)
    found += _inside_shards(folder, manifest, {one.file for one in found if one.kind == "changed"})
    extra = sorted(there - set(record.files) - set(pictures) - {RECORD})
    return _with_renamed(folder, found, extra, {**record.files, **pictures})


def _of_record(record: Record) -> list[Difference]:
    if record.computed_digest() == record.digest:
        return []
    return [Difference("changed", RECORD, "its contents do not give the digest that it names")]


def _blocking(manifest: Difference) -> Difference:
    told = f"{manifest.about}; " if manifest.about else ""
    return replace(manifest, about=f"{told}without it the pictures could not be checked")


def _single(manifest: Manifest) -> list[Place]:
    """The pictures that are files by themselves."""
    return [place for place in manifest.places if not place.member]


def _of_files(folder: Path, expected: Mapping[str, FileNote], there: set[str]) -> list[Difference]:
    lost = {name for name in expected if name in there and not (folder / name).exists()}
    missing = [Difference("missing", name) for name in expected if name not in there]
    missing += [Difference("missing", name, "a link that leads nowhere") for name in sorted(lost)]
    notes = file_notes(folder, [name for name in expected if name in there and name not in lost])
    changed = [Difference("changed", name, _how(expected[name], note)) for name, note in notes.items()]
    return missing + [difference for difference in changed if difference.about]


def _of_contents(folder: Path, expected: Mapping[str, FileNote], differing: set[str]) -> list[Difference]:
    """Files with the bytes that the record names, yet not with the content that its digest covers."""
    names = [name for name, note in expected.items() if note.content and name not in differing]
    with ThreadPoolExecutor(THREADS) as pool:
        contents = list(pool.map(lambda name: file_content(folder, name, expected), names))
    return [
        Difference("changed", name, "its content is not that which the digest covers")
        for name, content in zip(names, contents, strict=True)
        if content != expected[name].content
    ]


def is_as_frozen(folder: Path, name: str, record: Record) -> bool:
    """Whether one file of the record has the bytes, and the content, that the record names."""
    expected = {name: record.files[name]} if name in record.files else {}
    there = {name} if (folder / name).is_file() else set()
    return bool(expected) and not _of_files(folder, expected, there) and not _of_contents(folder, expected, set())


def _how(expected: FileNote, found: FileNote) -> str:
    """In which way the bytes of a file differ; empty where they do not."""
    if (expected.sha256, expected.size) == (found.sha256, found.size):
        return ""
    if expected.size != found.size:
        return f"{found.size:,} bytes instead of {expected.size:,}"
    return "its SHA-256 differs"


def _inside_shards(folder: Path, manifest: Manifest, changed: set[str]) -> list[Difference]:
    """Of shards that changed, the pictures that did."""
    return [
        Difference("changed", f"{place.file}/{place.member}", "a picture in a changed shard")
        for place in manifest.places
        if place.member and place.file in changed and (folder / place.file).is_file()
        if hashlib.sha256(read_bytes(folder, place)).hexdigest() != place.file_sha256
    ]


def _with_renamed(
    folder: Path, found: Sequence[Difference], extra: Sequence[str], expected: Mapping[str, FileNote]
) -> list[Difference]:
    """A missing file that lies elsewhere under its own hash is one difference, not two."""
    lost = {expected[one.file].sha256: one.file for one in found if one.kind == "missing"}
    notes = file_notes(folder, extra) if lost else {}
    moved = {lost[note.sha256]: name for name, note in notes.items() if note.sha256 in lost}
    rest = [one for one in found if one.kind != "missing" or one.file not in moved]
    rest += [Difference("renamed", old, f"lies at {new}") for old, new in moved.items()]
    rest += [Difference("extra", name) for name in extra if name not in moved.values()]
    return sorted(rest, key=lambda one: (one.file, one.kind))


def pixel_differences(folder: Path) -> list[Difference]:
    """The pictures that no longer decode to the pixels that were frozen; only a decoder can be the cause."""
    manifest = read_manifest(folder)

    def check(row: tuple[Place, str]) -> Difference | None:
        place, expected = row
        name = f"{place.file}/{place.member}".rstrip("/")
        try:
            pixels = decoded(read_bytes(folder, place), name)
        except (Unusable, OSError, ValueError) as error:
            return Difference("changed", name, str(error))
        return None if pixel_hash(pixels) == expected else Difference("changed", name, "other pixels when decoded")

    with ThreadPoolExecutor(THREADS) as pool:
        rows = zip(manifest.places, map(str, manifest.table["pixel_sha256"]), strict=True)
        return [difference for difference in pool.map(check, rows) if difference is not None]


def read_bytes(folder: Path, place: Place) -> bytes:
    """The bytes of one picture, out of its shard where it is in one."""
    with (folder / place.file).open("rb") as file:
        file.seek(place.offset)
        return file.read(place.size)


def decoded(data: bytes, name: str) -> NDArray[np.uint8]:
    """The pixels of a picture, (height, width, 3), RGB."""
    try:
        image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR) if data else None
    except cv2.error:  # more pixels than OpenCV takes
        image = None
    if image is None:
        raise Unusable(f"{name} is no picture")
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), np.uint8)


def pixel_hash(image: NDArray[np.uint8]) -> str:
    """Hash of the pixels, row by row, as the workspace has it."""
    return hashlib.sha256(np.ascontiguousarray(image).data).hexdigest()
