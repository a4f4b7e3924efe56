"""The integrity check of a frozen benchmark: every file, table and picture against the hashes in its record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from counterfoil.benchmark.benchmark_json import BenchmarkRecord, FileNote, digest_content, read_benchmark_record
from counterfoil.benchmark.croissant import CROISSANT, format_size
from counterfoil.benchmark.manifest import FileLocation, Manifest, read_manifest
from counterfoil.errors import Unusable
from counterfoil.progress import Extent, show_progress
from counterfoil.sources.pixels import decode_picture, hash_pixels
from counterfoil.store.files import MANIFEST, RECORD
from counterfoil.store.parquet import open_parquet

THREADS = 8
_TABLE = ".parquet"


def add_content_hashes(folder: Path, notes: Mapping[str, FileNote]) -> dict[str, FileNote]:
    """Add the content hash of each file that has one to the notes; computed in threads."""
    with ThreadPoolExecutor(THREADS) as pool:
        contents = pool.map(lambda name: hash_content(folder, name, notes), notes)
        return {
            name: note.model_copy(update={"content": content})
            for (name, note), content in zip(notes.items(), contents, strict=True)
        }


def hash_content(folder: Path, name: str, notes: Mapping[str, FileNote]) -> str:
    """Hash over the content of a table or of croissant.json; empty for every other file."""
    if name.endswith(_TABLE):
        return _hash_table(folder / name)
    return _hash_croissant(folder / name, notes) if name == CROISSANT else ""


def _hash_table(path: Path) -> str:
    """Hash over the values of each column in row order, independent of the row groups.

    Offsets are left out: where a picture begins in its shard depends on the writer of the shard.
    """
    with open_parquet(path) as file:
        columns = {name: hashlib.sha256() for name in file.schema_arrow.names if name != "offset"}
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            for name, digest in columns.items():
                digest.update(_canonical_json(table[name].to_pylist())[1:-1] + b",")
    return hashlib.sha256(_canonical_json({name: digest.hexdigest() for name, digest in columns.items()})).hexdigest()


def _hash_croissant(path: Path, notes: Mapping[str, FileNote]) -> str:
    """Hash over croissant.json without the hash and size of each table, where they match the table's note."""
    try:
        content = json.loads(path.read_bytes())
        for part in content["distribution"]:
            name = part["@id"]
            if name.endswith(_TABLE) and name in notes:
                note = notes[name]
                if (part["sha256"], part["contentSize"]) == (note.sha256, format_size(note)):
                    del part["sha256"], part["contentSize"]
        return hashlib.sha256(_canonical_json(content)).hexdigest()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ""  # not in the form that we write, so no record can name its content


def _canonical_json(content: Any) -> bytes:
    """JSON that does not depend on the order of keys."""
    return json.dumps(
        content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_encode_other
    ).encode()  # fmt: skip


def _encode_other(value: object) -> str:
    """Encode a picture as the hash of its bytes, any other type as its text."""
    return hashlib.sha256(value).hexdigest() if isinstance(value, bytes) else str(value)


_CHUNK = 1 << 20


@dataclass(frozen=True)
class Difference:
    """One difference from the frozen benchmark."""

    kind: Literal["changed", "missing", "extra", "renamed"]
    file: str
    about: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.file}{f' ({self.about})' if self.about else ''}"


def hash_file(path: Path) -> FileNote:
    """Hash and size of a file, read in pieces; both are empty for anything that is not a file."""
    digest, size = hashlib.sha256(), 0
    if not path.is_file():
        return FileNote(sha256="", size=0)
    with path.open("rb") as file:
        while piece := file.read(_CHUNK):
            digest.update(piece)
            size += len(piece)
    return FileNote(sha256=digest.hexdigest(), size=size)


def hash_files(folder: Path, files: Iterable[str]) -> dict[str, FileNote]:
    """Hash and size of many files, computed in threads."""
    names = list(files)
    with ThreadPoolExecutor(THREADS) as pool:
        extent = Extent(stage="hashing files", unit="files", total=len(names), brief=True)
        notes = show_progress(pool.map(lambda name: hash_file(folder / name), names), extent)
        return dict(zip(names, notes, strict=True))


def list_files(folder: Path) -> set[str]:
    """List every file of a benchmark and every link; hidden entries at the top (.git and the like) are ignored.

    A link to a folder counts as one entry: the pictures behind it are not part of the benchmark.
    """
    names = (path.relative_to(folder) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return {name.as_posix() for name in names if not name.parts[0].startswith(".")}


def find_differences(folder: Path) -> list[Difference]:
    """Return the files that were changed, added, renamed or are missing; empty where the benchmark is intact."""
    record = read_benchmark_record(folder)
    differences = _check_record(record)
    there = list_files(folder)
    differences += _check_files(folder, record.files, there)
    differences += _check_contents(folder, record.files, {one.file for one in differences})
    if any(difference.file == MANIFEST for difference in differences):
        return [_blocking(one) if one.file == MANIFEST else one for one in differences]
    manifest = read_manifest(folder)
    if digest_content(manifest) != record.content_digest:
        differences.append(Difference("changed", RECORD, "its digest of the pictures does not match the manifest"))
    pictures = {place.file: FileNote(sha256=place.file_sha256, size=place.size) for place in _single(manifest)}
    differences += _check_files(folder, pictures, there)
    differences += _check_shards(folder, manifest, {one.file for one in differences if one.kind == "changed"})
    extra = sorted(there - set(record.files) - set(pictures) - {RECORD})
    return _join_renamed(folder, differences, extra, {**record.files, **pictures})


def _check_record(record: BenchmarkRecord) -> list[Difference]:
    if record.computed_digest() == record.digest:
        return []
    return [Difference("changed", RECORD, "its digest does not match its contents")]


def _blocking(manifest: Difference) -> Difference:
    reason = f"{manifest.about}; " if manifest.about else ""
    return replace(manifest, about=f"{reason}without it the pictures could not be checked")


def _single(manifest: Manifest) -> list[FileLocation]:
    """The pictures that are single files."""
    return [place for place in manifest.places if not place.member]


def _check_files(folder: Path, expected: Mapping[str, FileNote], there: set[str]) -> list[Difference]:
    lost = {name for name in expected if name in there and not (folder / name).exists()}
    missing = [Difference("missing", name) for name in expected if name not in there]
    missing += [Difference("missing", name, "a broken link") for name in sorted(lost)]
    notes = hash_files(folder, [name for name in expected if name in there and name not in lost])
    changed = [Difference("changed", name, _describe_bytes(expected[name], note)) for name, note in notes.items()]
    return missing + [difference for difference in changed if difference.about]


def _check_contents(folder: Path, expected: Mapping[str, FileNote], differing: set[str]) -> list[Difference]:
    """Files whose bytes match the record but whose content does not match what its digest covers."""
    names = [name for name, note in expected.items() if note.content and name not in differing]
    with ThreadPoolExecutor(THREADS) as pool:
        contents = list(pool.map(lambda name: hash_content(folder, name, expected), names))
    return [
        Difference("changed", name, "its content does not match the digest")
        for name, content in zip(names, contents, strict=True)
        if content != expected[name].content
    ]


def is_unchanged(folder: Path, name: str, record: BenchmarkRecord) -> bool:
    """Whether a file of the record has the bytes and the content that the record names."""
    expected = {name: record.files[name]} if name in record.files else {}
    there = {name} if (folder / name).is_file() else set()
    return bool(expected) and not _check_files(folder, expected, there) and not _check_contents(folder, expected, set())


def _describe_bytes(expected: FileNote, found: FileNote) -> str:
    """Say how the bytes of a file differ; empty where they do not."""
    if (expected.sha256, expected.size) == (found.sha256, found.size):
        return ""
    if expected.size != found.size:
        return f"{found.size:,} bytes instead of {expected.size:,}"
    return "its SHA-256 differs"


def _check_shards(folder: Path, manifest: Manifest, changed: set[str]) -> list[Difference]:
    """The changed pictures within changed shards."""
    return [
        Difference("changed", f"{place.file}/{place.member}", "a picture in a changed shard")
        for place in manifest.places
        if place.member and place.file in changed and (folder / place.file).is_file()
        if hashlib.sha256(read_bytes(folder, place)).hexdigest() != place.file_sha256
    ]


def _join_renamed(
    folder: Path, differences: Sequence[Difference], extra: Sequence[str], expected: Mapping[str, FileNote]
) -> list[Difference]:
    """Report a missing file that is found elsewhere with the same hash as one difference, not two."""
    lost = {expected[one.file].sha256: one.file for one in differences if one.kind == "missing"}
    notes = hash_files(folder, extra) if lost else {}
    moved = {lost[note.sha256]: name for name, note in notes.items() if note.sha256 in lost}
    rest = [one for one in differences if one.kind != "missing" or one.file not in moved]
    rest += [Difference("renamed", old, f"lies at {new}") for old, new in moved.items()]
    rest += [Difference("extra", name) for name in extra if name not in moved.values()]
    return sorted(rest, key=lambda one: (one.file, one.kind))


def find_pixel_differences(folder: Path) -> list[Difference]:
    """Pictures that no longer decode to the frozen pixels; only a different decoder can be the cause."""
    manifest = read_manifest(folder)

    def check(row: tuple[FileLocation, str]) -> Difference | None:
        place, expected = row
        name = f"{place.file}/{place.member}".rstrip("/")
        try:
            pixels = decode_picture(read_bytes(folder, place), name)
        except (Unusable, OSError, ValueError) as error:
            return Difference("changed", name, str(error))
        return None if hash_pixels(pixels) == expected else Difference("changed", name, "other pixels when decoded")

    with ThreadPoolExecutor(THREADS) as pool:
        rows = zip(manifest.places, map(str, manifest.table["pixel_sha256"]), strict=True)
        extent = Extent(stage="decoding pictures", unit="pictures", total=len(manifest.places), brief=True)
        return [difference for difference in show_progress(pool.map(check, rows), extent) if difference is not None]


def read_bytes(folder: Path, place: FileLocation) -> bytes:
    """Read the bytes of one picture, from its shard where it is in one."""
    with (folder / place.file).open("rb") as file:
        file.seek(place.offset)
        return file.read(place.size)
