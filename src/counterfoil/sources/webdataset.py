"""Photos in WebDataset shards, read without unpacking, and shards written."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from counterfoil.errors import Unusable, UserError
from counterfoil.sources.annotations import AnnotatedPhoto, AnnotationSource, read_lines
from counterfoil.sources.pixels import decode_mask
from counterfoil.store.files import open_atomically
from counterfoil.types import Skipped

_PHOTOS = ("jpg", "jpeg", "png", "webp")
_MASKS = ("mask.png", "seg.png", "mask")
_LABELS = ("cls", "cls.txt", "txt", "label", "json")
_DIGITS = 9  # most digits of a class number


@dataclass(frozen=True)
class _Part:
    """The position of one file of a sample in its shard."""

    shard: Path
    start: int
    size: int

    def read(self) -> bytes:
        with self.shard.open("rb") as file:
            file.seek(self.start)
            content = file.read(self.size)
        if len(content) < self.size:
            raise Unusable(f"the shard {self.shard.name} ends in the middle of the file")
        return content


def open_webdataset(path: Path) -> AnnotationSource:
    """The photos of one shard or of all shards of a folder, read without unpacking."""
    shards = sorted(path.glob("*.tar")) if path.is_dir() else [path]
    if not shards or not all(shard.is_file() for shard in shards):
        raise UserError(f"expected a .tar shard or a folder of them, got '{path}'; check the path")
    names = _read_class_names(path if path.is_dir() else path.parent)
    listed = [_list_sample(name, parts, names) for shard in shards for name, parts in _index_shard(shard).items()]
    return AnnotationSource(f"webdataset:{path}", tuple(listed))


def _index_shard(shard: Path) -> dict[str, dict[str, _Part]]:
    """The files of each sample of a shard, by suffix; nothing is unpacked."""
    samples: dict[str, dict[str, _Part]] = {}
    try:
        with tarfile.open(shard, "r:") as archive:
            for member in archive:
                if member.size < 0:  # it would be an endless loop
                    raise tarfile.ReadError(f"a size below zero at byte {member.offset:,}")
                name = PurePosixPath(member.name)
                stem, _, ending = name.name.partition(".")
                if member.isfile() and stem:
                    part = _Part(shard, member.offset_data, member.size)
                    samples.setdefault(f"{name.parent}/{stem}".removeprefix("./"), {})[ending.lower()] = part
            _refuse_early_end(shard, archive.offset)
    except (tarfile.TarError, OSError) as error:
        raise UserError(f"expected an uncompressed tar shard, got '{shard}': {error}; is it whole?") from error
    return samples


def _refuse_early_end(shard: Path, end: int) -> None:
    """Raises where a broken header ends the shard early, which tarfile takes for its end."""
    with shard.open("rb") as file:
        file.seek(end)
        if file.read(tarfile.BLOCKSIZE).strip(b"\0"):
            raise tarfile.ReadError(f"no header at byte {end:,}")


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
    return replace(
        entry, mask=lambda size: decode_mask(drawn.read()), annotation=hashlib.sha256(drawn.read()).hexdigest()
    )


def _read_label(parts: Mapping[str, _Part], names: list[str]) -> str:
    """The class name: the first label that is a name, or a number listed in classes.txt."""
    labels = (_parse_label(parts[ending].read(), ending) for ending in _LABELS if ending in parts)
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
