"""Photos in Parquet and Arrow files of Hugging Face datasets, read and written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterfoil.errors import Unusable, UserError
from counterfoil.sources.annotations import AnnotatedPhoto, AnnotationSource, find_photo, make_file_reader
from counterfoil.sources.folder_entries import FolderEntry, walk_files
from counterfoil.sources.pixels import decode_mask
from counterfoil.store.parquet import open_parquet
from counterfoil.types import Skipped

_PICTURES = ("image", "img", "picture", "jpg", "png")
_LABELS = ("label", "labels", "class", "class_name", "fine_label")
_MASKS = ("mask", "annotation", "segmentation")


def open_parquet_dataset(path: Path) -> AnnotationSource:
    """The photos of a .parquet file or of a folder of .parquet or .arrow files; pictures are decoded on demand."""
    entries = [FolderEntry(path)] if path.is_file() else walk_files(path, [".parquet", ".arrow"])
    if not entries:
        raise UserError(f"expected a .parquet file or a folder with .parquet or .arrow files, got '{path}'")
    faulty = next((entry for entry in entries if entry.fault), None)
    if faulty is not None:  # how many photos it holds is not known
        raise UserError(f"expected files of photos in '{path}', but {faulty.path} cannot be used: {faulty.fault}")
    files = [entry.path for entry in entries]
    folder = path if path.is_dir() else path.parent
    listed = [entry for file in files for entry in _list_photos(file, folder)]
    return AnnotationSource(f"parquet:{path}", tuple(listed))


def _read_table(file: Path) -> Any:
    """The file's table, mapped into memory where the format allows it."""
    import pyarrow as pa

    try:
        if file.suffix == ".parquet":
            with open_parquet(file) as parquet:
                return parquet.read()
        with pa.memory_map(str(file)) as mapped:
            return pa.ipc.open_stream(mapped).read_all()
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"expected a Parquet or Arrow file, got '{file}': {' '.join(str(error).split())}") from error


def _list_photos(file: Path, folder: Path) -> Iterator[AnnotatedPhoto | Skipped]:
    table = _read_table(file)
    picture, label = _find_column(table, _PICTURES), _find_column(table, _LABELS)
    if picture is None or label is None:
        raise UserError(
            f"expected a column {' or '.join(_PICTURES[:2])} and a column {' or '.join(_LABELS[:3])} in '{file}',"
            f" got {', '.join(table.column_names)}"
        )
    names = _read_class_names(table, label)
    drawn = _find_column(table, [name for name in _MASKS if _holds_pictures(table, name)])
    for row in range(table.num_rows):
        photo = _Cell(table, picture, row, folder)
        mask = _Cell(table, drawn, row, folder) if drawn and table[drawn][row].is_valid else None
        name = f"{file.stem}-{row:06d}"
        try:
            yield _list_photo(name, _name_label(_read_cell(table, label, row), names), photo, mask)
        except Unusable as error:
            yield Skipped(name, "source", "", str(error))


def _read_cell(table: Any, column: str, row: int) -> Any:
    """One value of the table; Arrow checks texts when they are read, not when the file is."""
    try:
        return table[column][row].as_py()
    except UnicodeDecodeError as error:
        raise Unusable(f"the row holds a text that is not UTF-8: {error.reason}") from error


def _find_column(table: Any, names: Sequence[str]) -> str | None:
    return next((name for name in names if name in table.column_names), None)


def _holds_pictures(table: Any, name: str) -> bool:
    """Whether a column holds pictures as bytes."""
    from pyarrow import types

    kind = table.schema.field(name).type if name in table.column_names else None
    return kind is not None and any(is_it(kind) for is_it in (types.is_struct, types.is_binary, types.is_large_binary))


def _read_class_names(table: Any, label: str) -> list[str]:
    """The class names that `datasets` keeps in the file's metadata."""
    try:
        metadata = json.loads((table.schema.metadata or {}).get(b"huggingface", b"{}"))
        return list(metadata.get("info", {}).get("features", {}).get(label, {}).get("names", []))
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise UserError(f"expected metadata as Hugging Face's datasets writes it, got damaged one: {error}") from error


def _name_label(value: Any, names: list[str]) -> str | None:
    if isinstance(value, int):
        return names[value] if 0 <= value < len(names) else None
    return value if isinstance(value, str) else None  # a list names several classes


@dataclass(frozen=True)
class _Cell:
    """A picture of the table: a struct of bytes and path, or bytes alone."""

    table: Any
    column: str
    row: int
    folder: Path  # where files given by path may lie

    def read(self) -> bytes:
        """The picture's bytes."""
        value = _read_cell(self.table, self.column, self.row)
        content, name = (value.get("bytes"), value.get("path")) if isinstance(value, Mapping) else (value, None)
        if content is None and name:
            return self._named_file(str(name))
        if not isinstance(content, bytes):
            raise Unusable("the row holds no bytes of a picture")
        return content

    def _named_file(self, name: str) -> bytes:
        path = find_photo([self.folder], name)
        if path is None:
            raise Unusable(f"the row holds no picture but names the file {name}, which is not below the folder given")
        return make_file_reader(path)()


def _list_photo(name: str, label: str | None, photo: _Cell, mask: _Cell | None) -> AnnotatedPhoto | Skipped:
    if label is None:
        return Skipped(name, "source", "", "the row's label is empty, a list, or a number without a name")
    if mask is None:
        return AnnotatedPhoto(f"{label}/{name}", label, name, photo.read, None)
    try:
        digest = hashlib.sha256(mask.read()).hexdigest()
    except Unusable as error:
        return Skipped(name, "source", "", f"the mask cannot be used: {error}")
    return AnnotatedPhoto(f"{label}/{name}", label, name, photo.read, lambda size: decode_mask(mask.read()), digest)


def write_parquet_dataset(path: Path, rows: list[tuple[bytes, str, bytes | None]], labels: Sequence[str]) -> Path:
    """Photo, label and mask as a Parquet file that `datasets` opens as pictures with class names.

    All files of a set need the same `labels`: `datasets` uses the names of the first file for all of them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = list(labels)
    picture = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    columns = {
        "image": pa.array([{"bytes": photo, "path": None} for photo, _, _ in rows], picture),
        "label": pa.array([names.index(label) for _, label, _ in rows], pa.int64()),
        "mask": pa.array([{"bytes": mask, "path": None} if mask else None for *_, mask in rows], picture),
    }
    features = {
        "image": {"_type": "Image"},
        "label": {"names": names, "_type": "ClassLabel"},
        "mask": {"_type": "Image"},
    }
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path)
    return path
