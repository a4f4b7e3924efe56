"""Photos in WebDataset shards, read without unpacking, and shards written."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from counterfoil.errors import Unusable, UserError
from counterfoil.sources.annotations import AnnotatedPhoto, AnnotationSource, read_lines
from counterfoil.sources.archive_index import NO_BYTES, ArchiveFile, list_packed_files
from counterfoil.sources.bounded_reads import MOST_BYTES, MOST_LABEL_BYTES, read_span, refuse_oversized
from counterfoil.sources.folder_entries import list_entries
from counterfoil.sources.pixels import decode_mask
from counterfoil.store.files import open_atomically
from counterfoil.types import Skipped

_PHOTOS = ("jpg", "jpeg", "png", "webp")
_MASKS = ("mask.png", "seg.png", "mask")
_LABELS = ("cls", "cls.txt", "txt", "label", "json")
_COMPRESSED = (".tar.gz", ".tgz", ".tar.zst", ".tar.bz2", ".tar.xz")
_DIGITS = 9  # most digits of a class number


@dataclass(frozen=True)
class _Part:
    """The position of one file of a sample in its shard."""

    shard: Path
    entry: ArchiveFile

    def read(self, most: int = MOST_BYTES) -> bytes:
        if self.entry.packing == NO_BYTES:
            raise Unusable("the shard holds a link or a file with holes in its place")
        refuse_oversized(self.entry.size, most)
        return read_span(self.shard, self.entry.start, self.entry.size, f"the shard {self.shard.name}")


def open_webdataset(path: Path) -> AnnotationSource:
    """The photos of one shard or of all shards of a folder, read without unpacking."""
    shards = _list_shards(path) if path.is_dir() else [path]
    if not shards or not all(shard.is_file() for shard in shards):
        raise UserError(f"expected a .tar shard or a folder of them, got '{path}'; check the path")
    names = _read_class_names(path if path.is_dir() else path.parent)
    listed = [entry for shard in shards for entry in _list_shard(shard, names)]
    return AnnotationSource(f"webdataset:{path}", tuple(listed))


def _list_shards(folder: Path) -> list[Path]:
    """The shards of a folder; raises `UserError` for one that cannot be read, since its photos would be missing."""
    entries = [entry for entry in list_entries(folder) if entry.path.name.lower().endswith((".tar", *_COMPRESSED))]
    for entry in entries:
        if entry.fault or entry.path.suffix.lower() != ".tar":
            reason = entry.fault or "it is compressed: unpack it to a plain .tar"
            raise UserError(f"expected plain tar shards in '{folder}', got {entry.path.name}: {reason}")
    return [entry.path for entry in entries]


def _list_shard(shard: Path, names: list[str]) -> Iterator[AnnotatedPhoto | Skipped]:
    """The samples of a shard, then files that stand twice under one name; nothing is unpacked."""
    samples: dict[str, dict[str, _Part]] = {}
    again: list[Skipped] = []
    try:
        for path, entry in list_packed_files(shard):
            name = PurePosixPath(path)
            stem, _, ending = name.name.partition(".")
            sample = f"{name.parent}/{stem}".removeprefix("./")
            parts = samples.setdefault(sample, {}) if stem else {}
            if ending.lower() in parts:
                again.append(Skipped(path, "source", "", f"the shard {shard.name} has two files of this name"))
            parts.setdefault(ending.lower(), _Part(shard, entry))
    except OSError as error:
        raise UserError(f"expected an uncompressed tar shard, got '{shard}': {error}") from error
    yield from (_list_sample(name, parts, names) for name, parts in samples.items())
    yield from again


def _read_class_names(folder: Path) -> list[str]:
    """The class names of classes.txt, one per line, for labels that are numbers."""
    file = folder / "classes.txt"
    return read_lines(file) if file.is_file() else []


def _list_sample(name: str, parts: Mapping[str, _Part], names: list[str]) -> AnnotatedPhoto | Skipped:
    photo = next((parts[ending] for ending in _PHOTOS if ending in parts), None)
    if photo is None:
        return Skipped(name, "source", "", "the sample holds no picture")
    try:
        label = _read_label(parts, names)
    except Unusable as error:
        return Skipped(name, "source", "", str(error))
    drawn = next((parts[ending] for ending in _MASKS if ending in parts), None)
    entry = AnnotatedPhoto(f"{label}/{PurePosixPath(name).name}", label, f"{photo.shard.name}:{name}", photo.read, None)
    if drawn is None:
        return entry
    try:
        annotation = hashlib.sha256(drawn.read()).hexdigest()
    except Unusable as error:
        return Skipped(name, "source", "", f"the mask cannot be used: {error}")
    return replace(entry, mask=lambda size: decode_mask(drawn.read()), annotation=annotation)


def _read_label(parts: Mapping[str, _Part], names: list[str]) -> str:
    """The class name: the first label that is a name, or a number listed in classes.txt."""
    labels = (_parse_label(parts[ending].read(MOST_LABEL_BYTES), ending) for ending in _LABELS if ending in parts)
    last: str | int | None = None
    for last in labels:
        if isinstance(last, str):
            return last
        if 0 <= last < len(names):
            return names[last]
    if last is None:
        raise Unusable(f"the sample holds no label: expected one of .{', .'.join(_LABELS)}")
    raise Unusable(f"the label is the number {last}, and classes.txt beside the shards does not name it")


def _parse_label(content: bytes, ending: str) -> str | int:
    """A name or a number."""
    text = content.decode("utf-8", "replace").strip()
    if ending == "json":
        return _parse_json_label(text)
    if not text.isdecimal():
        return text
    return int(text) if len(text) <= _DIGITS else 10**_DIGITS  # no class number is that large


def _parse_json_label(text: str) -> str | int:
    try:
        annotation = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"the label's JSON cannot be read: {error}") from error
    label = next(
        (annotation[key] for key in ("label", "class", "cls") if isinstance(annotation, dict) and key in annotation),
        None,
    )
    if label is None:
        raise Unusable("the label's JSON has neither label, class nor cls")
    return label if isinstance(label, int) else str(label)


def write_shard(path: Path, samples: Iterable[tuple[str, Mapping[str, bytes]]]) -> Path:
    """Write one shard of samples, each as its files by suffix; the same samples give the same bytes."""
    with open_atomically(path) as file, tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, parts in samples:
            for ending in sorted(parts):
                member = tarfile.TarInfo(f"{name}.{ending}")
                member.size = len(parts[ending])
                archive.addfile(member, io.BytesIO(parts[ending]))
    return path
