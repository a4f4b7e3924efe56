"""Parquet and Arrow files as Hugging Face `datasets` writes them: columns of pictures, labels, maybe masks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from counterfoil.errors import Unusable, UserError, how_to_install
from counterfoil.source.formats.listed import Listed, ListedSource, Mask
from counterfoil.source.reading import mask_of
from counterfoil.types import Skipped

_PICTURES = ("image", "img", "picture", "jpg", "png")
_LABELS = ("label", "labels", "class", "class_name", "fine_label")
_MASKS = ("mask", "annotation", "segmentation")


def parquet_source(path: Path) -> ListedSource:
    """The photos of a .parquet file or of a folder of .parquet or .arrow files; pictures are decoded when asked for."""
    files = [path] if path.is_file() else sorted([*path.rglob("*.parquet"), *path.rglob("*.arrow")])
    if not files:
        raise UserError(f"expected a .parquet file or a folder with .parquet or .arrow files, got '{path}'")
    found = [entry for file in files for entry in _entries(file)]
    listed = tuple(entry for entry in found if isinstance(entry, Listed))
    return ListedSource(f"parquet:{path}", listed, tuple(entry for entry in found if isinstance(entry, Skipped)))


def _arrow() -> Any:
    try:
        import pyarrow  # the extra is asked for only by who reads or writes such files
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise UserError(f"Parquet pictures need pyarrow, to read and to write: {how_to_install('parquet')}") from error
    return pyarrow


def _table(file: Path) -> Any:
    """The file's table, mapped into memory where the format allows it."""
    arrow = _arrow()
    try:
        if file.suffix == ".parquet":
            return arrow.parquet.read_table(file)
        with arrow.memory_map(str(file)) as mapped:
            return arrow.ipc.open_stream(mapped).read_all()
    except (arrow.ArrowInvalid, OSError) as error:
        raise UserError(f"expected a Parquet or Arrow file, got '{file}': {' '.join(str(error).split())}") from error


def _entries(file: Path) -> Iterator[Listed | Skipped]:
    table = _table(file)
    picture, label = _column(table, _PICTURES), _column(table, _LABELS)
    if picture is None or label is None:
        raise UserError(
            f"expected a column {' or '.join(_PICTURES[:2])} and a column {' or '.join(_LABELS[:3])} in '{file}',"
            f" got {', '.join(table.column_names)}"
        )
    names = _class_names(table, label)
    drawn = _column(table, _MASKS)
    for row in range(table.num_rows):
        told = table[label][row].as_py()
        mask = table[drawn][row].as_py() if drawn else None
        yield _entry(file, row, _named(told, names), _cell(table, picture, row), mask)


def _column(table: Any, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in table.column_names), None)


def _class_names(table: Any, label: str) -> list[str]:
    """The names behind numbers, which `datasets` keeps in the file's metadata."""
    try:
        said = json.loads((table.schema.metadata or {}).get(b"huggingface", b"{}"))
        return list(said.get("info", {}).get("features", {}).get(label, {}).get("names", []))
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise UserError(f"expected metadata as Hugging Face's datasets writes it, got damaged one: {error}") from error


def _named(told: Any, names: list[str]) -> str | None:
    if isinstance(told, int):
        return names[told] if 0 <= told < len(names) else None
    return str(told) if told is not None else None


def _cell(table: Any, column: str, row: int) -> Callable[[], bytes]:
    """The picture's bytes when asked for: a struct of bytes and path, or bytes alone."""

    def read() -> bytes:
        value = table[column][row].as_py()
        return _bytes_of(value)

    return read


def _bytes_of(value: Any) -> bytes:
    data = value.get("bytes") if isinstance(value, Mapping) else value
    if not isinstance(data, bytes):
        raise Unusable("the row holds no bytes of a picture")
    return data


def _entry(file: Path, row: int, label: str | None, photo: Callable[[], bytes], mask: Any) -> Listed | Skipped:
    name = f"{file.stem}-{row:06d}"
    if label is None:
        return Skipped(name, "source", "", "the row's label is empty or a number without a name")
    if mask is None:
        return Listed(f"{label}/{name}", label, f"{file.name}:{row}", photo, None)
    try:
        data = _bytes_of(mask)
    except Unusable as error:
        return Skipped(name, "source", "", f"the mask cannot be used: {error}")
    digest = hashlib.sha256(data).hexdigest()
    return Listed(f"{label}/{name}", label, f"{file.name}:{row}", photo, partial(_mask, data), digest)


def _mask(data: bytes, size: tuple[int, int]) -> Mask:
    return mask_of(data)


def write_pictures(path: Path, rows: list[tuple[bytes, str, bytes | None]]) -> Path:
    """Photo, label and mask as a Parquet file that `datasets` opens as pictures with class names."""
    arrow = _arrow()
    names = sorted({label for _, label, _ in rows})
    picture = arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
    columns = {
        "image": arrow.array([{"bytes": photo, "path": None} for photo, _, _ in rows], picture),
        "label": arrow.array([names.index(label) for _, label, _ in rows], arrow.int64()),
        "mask": arrow.array([{"bytes": mask, "path": None} if mask else None for *_, mask in rows], picture),
    }
    features = {
        "image": {"_type": "Image"},
        "label": {"names": names, "_type": "ClassLabel"},
        "mask": {"_type": "Image"},
    }
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    arrow.parquet.write_table(arrow.table(columns).replace_schema_metadata(metadata), path)
    return path
