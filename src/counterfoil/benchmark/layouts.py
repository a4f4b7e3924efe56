"""The layouts of a benchmark folder: pictures as files, in Parquet shards, or in WebDataset tar shards.

Nothing is compressed, since PNG already is, and nothing is dictionary-encoded: each picture's bytes are contiguous,
so that they are read by offset and size without a Parquet reader.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from counterfoil.benchmark.manifest import SHOWN_COLUMNS, FileLocation, ManifestRow, Split
from counterfoil.errors import UserError

DATA = "data"


class Layout(Protocol):
    """A way to write pictures into the folder of a benchmark."""

    def add(self, entry: ManifestRow, data: bytes) -> None:
        """Add one picture's bytes."""

    def finish(self) -> list[FileLocation]:
        """Write the rest and return where each picture lies, in the order they were added."""


@dataclass(frozen=True)
class LayoutFolder:
    """Where a layout writes: the folder, the labels in the order of their numbers, the size of shards."""

    folder: Path
    labels: Sequence[str]
    shard_bytes: int


METADATA, FIFTYONE = "metadata.jsonl", "labels.json"


class FolderLayout:
    """One file per picture."""

    def __init__(self, site: LayoutFolder) -> None:
        self._site = site
        self._placed: dict[str, tuple[ManifestRow, FileLocation]] = {}  # by path, in the order they were added

    def add(self, entry: ManifestRow, data: bytes) -> None:
        """Write one picture."""
        file = f"{DATA}/{entry.split}/{entry.stored.file}"
        if file in self._placed:
            raise UserError(f"expected each picture under a path of its own, got {file} twice; build it again")
        path = self._site.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self._placed[file] = entry, FileLocation(file, "", 0, len(data), hashlib.sha256(data).hexdigest())

    def finish(self) -> list[FileLocation]:
        """Write the metadata files that readers of image folders expect beside the pictures."""
        for split in dict.fromkeys(entry.split for entry, _ in self._placed.values()):
            start = f"{DATA}/{split}/"
            lines = [
                json.dumps({"file_name": file.removeprefix(start), **entry.shown}, ensure_ascii=False) + "\n"
                for file, (entry, _) in self._placed.items()
                if entry.split == split
            ]
            (self._site.folder / DATA / split / METADATA).write_text("".join(lines), encoding="utf-8")
        self._write_fiftyone()
        return [place for _, place in self._placed.values()]

    def _write_fiftyone(self) -> None:
        numbers = {label: number for number, label in enumerate(self._site.labels)}
        labels = {
            file.removeprefix(f"{DATA}/").removesuffix(".png"): numbers[entry.variant.label]
            for file, (entry, _) in self._placed.items()
        }
        content = {"classes": list(self._site.labels), "labels": labels}
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (self._site.folder / FIFTYONE).write_text(text, encoding="utf-8")


class Shard(Protocol):
    """One open file that pictures are added to."""

    taken: int  # bytes of pictures

    def add(self, entry: ManifestRow, data: bytes) -> None:
        """Add one picture's bytes."""

    def close(self) -> list[FileLocation]:
        """Finish the file and return where each of its pictures lies."""


class ShardedLayout:
    """Shards of one kind, separate for each split."""

    def __init__(self, site: LayoutFolder, ending: str, open_shard: Callable[[Path, str], Shard]) -> None:
        self._site, self._ending, self._open_shard = site, ending, open_shard
        self._open: dict[Split, Shard] = {}
        self._places: dict[Split, list[FileLocation]] = {}
        self._numbers: dict[Split, int] = {}
        self._came: list[Split] = []
        (site.folder / DATA).mkdir()

    def add(self, entry: ManifestRow, data: bytes) -> None:
        """Add one picture to the open shard of its split."""
        split = entry.split
        if split not in self._open:
            number = self._numbers[split] = self._numbers.get(split, -1) + 1
            name = f"{DATA}/{split}-{number:05d}.{self._ending}"
            self._open[split] = self._open_shard(self._site.folder / name, name)
        self._open[split].add(entry, data)
        self._came.append(split)
        if self._open[split].taken >= self._site.shard_bytes:
            self._close(split)

    def finish(self) -> list[FileLocation]:
        """Close the open shards."""
        for split in list(self._open):
            self._close(split)
        following = {split: iter(places) for split, places in self._places.items()}
        return [next(following[split]) for split in self._came]

    def _close(self, split: Split) -> None:
        self._places.setdefault(split, []).extend(self._open.pop(split).close())


_GROUP_ROWS, _GROUP_BYTES = 100, 32 << 20  # readers hold a row group in memory


class ParquetShard:
    """One Parquet file, written row group by row group."""

    def __init__(self, path: Path, name: str, labels: Sequence[str]) -> None:
        import pyarrow.parquet as pq

        self._file = path.open("w+b")
        self._schema, self._numbers = _schema(labels), {label: number for number, label in enumerate(labels)}
        self._writer = pq.ParquetWriter(
            self._file, self._schema, compression="NONE", use_dictionary=False, write_statistics=False
        )
        self._name = name
        self._waiting: list[tuple[ManifestRow, bytes]] = []
        self._waiting_bytes = 0
        self._places: list[FileLocation] = []
        self.taken = 0

    def add(self, entry: ManifestRow, data: bytes) -> None:
        """Add one picture; a full row group is written."""
        self._waiting.append((entry, data))
        self._waiting_bytes += len(data)
        self.taken += len(data)
        if len(self._waiting) >= _GROUP_ROWS or self._waiting_bytes >= _GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        import pyarrow as pa

        start = self._file.tell()
        rows = [
            {
                "image": {"bytes": data, "path": entry.stored.file},
                **entry.shown,
                "label": self._numbers[entry.variant.label],
                LABEL_NAME: entry.variant.label,
            }
            for entry, data in self._waiting
        ]
        self._writer.write_table(pa.Table.from_pylist(rows, self._schema))
        self._locate(start)
        self._waiting, self._waiting_bytes = [], 0

    def _locate(self, start: int) -> None:
        """Find the pictures in the row group that begins at `start`: in order, each after its length."""
        self._file.seek(start)
        group, position = self._file.read(), 0
        for entry, data in self._waiting:
            position = group.index(struct.pack("<I", len(data)) + data, position) + 4
            digest = hashlib.sha256(data).hexdigest()
            self._places.append(FileLocation(self._name, entry.stored.file, start + position, len(data), digest))
            position += len(data)

    def close(self) -> list[FileLocation]:
        """Write the last row group and the footer."""
        if self._waiting:
            self._write_group()
        self._writer.close()
        self._file.close()
        return self._places


LABEL_NAME = "label_name"  # beside the number, for readers that know no `ClassLabel`


def _schema(labels: Sequence[str]) -> Any:
    """The columns, with the metadata that tells `datasets` what is a picture and what the label's numbers mean.

    No value is missing, yet all are optional: `datasets` accepts a struct as a picture only then.
    """
    import pyarrow as pa

    names = [*SHOWN_COLUMNS, LABEL_NAME]
    texts: dict[str, object] = {name: {"dtype": "string", "_type": "Value"} for name in names}
    texts["label"] = {"names": list(labels), "_type": "ClassLabel"}
    features = {"info": {"features": {"image": {"_type": "Image"}, **texts}}}
    picture = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    columns = [("image", picture), *((name, pa.int64() if name == "label" else pa.string()) for name in names)]
    return pa.schema(columns, metadata={"huggingface": json.dumps(features)})


def parquet_layout(site: LayoutFolder) -> ShardedLayout:
    """Parquet shards."""
    return ShardedLayout(site, "parquet", lambda path, name: ParquetShard(path, name, site.labels))


_BLOCK = 512
_RECORD = 20 * _BLOCK  # tar files end on a whole record


class TarShard:
    """One tar file; its members have no owner and no time, so that its bytes depend on the pictures alone."""

    def __init__(self, path: Path, name: str, numbers: Mapping[str, int]) -> None:
        self._file = path.open("wb")
        self._name, self._numbers = name, numbers
        self._places: list[FileLocation] = []
        self.taken = 0

    def add(self, entry: ManifestRow, data: bytes) -> None:
        """Add the picture, its metadata, and the number of its label."""
        key = re.sub(r"[^\w-]+", "_", entry.variant.id)  # a dot would end the key
        offset = self._member(f"{key}.png", data)
        self._member(f"{key}.json", json.dumps(entry.shown, ensure_ascii=False, sort_keys=True).encode())
        self._member(f"{key}.cls", str(self._numbers[entry.variant.label]).encode())
        self._places.append(FileLocation(self._name, f"{key}.png", offset, len(data), hashlib.sha256(data).hexdigest()))
        self.taken += len(data)

    def _member(self, name: str, data: bytes) -> int:
        """Write one member and return where its bytes begin."""
        about = tarfile.TarInfo(name)
        about.size = len(data)
        self._file.write(about.tobuf(tarfile.USTAR_FORMAT))
        offset = self._file.tell()
        self._file.write(data + bytes(-len(data) % _BLOCK))
        return offset

    def close(self) -> list[FileLocation]:
        """Write the end of the tar file."""
        self._file.write(bytes(2 * _BLOCK))
        self._file.write(bytes(-self._file.tell() % _RECORD))
        self._file.close()
        return self._places


def tar_layout(site: LayoutFolder) -> ShardedLayout:
    """Tar shards."""
    numbers = {label: number for number, label in enumerate(site.labels)}
    return ShardedLayout(site, "tar", lambda path, name: TarShard(path, name, numbers))


LayoutName: TypeAlias = Literal["folder", "parquet", "webdataset"]
LAYOUTS: dict[LayoutName, Callable[[LayoutFolder], Layout]] = {
    "folder": FolderLayout,
    "parquet": parquet_layout,
    "webdataset": tar_layout,
}
