"""Photos and masks converted from one dataset format to another."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.errors import Unusable, UserError
from counterfoil.progress import Extent, show_progress
from counterfoil.sources.coco import format_coco
from counterfoil.sources.coco_masks import Mask
from counterfoil.sources.fiftyone import format_fiftyone_labels
from counterfoil.sources.labelme import format_labelme
from counterfoil.sources.parquet_dataset import write_parquet_dataset
from counterfoil.sources.voc import encode_voc_mask, list_voc_classes
from counterfoil.sources.webdataset import write_shard
from counterfoil.store.files import make_folder_name
from counterfoil.types import Sample, Skipped, Source

_SAMPLES_PER_SHARD = 1000
_ENDINGS = {".jpg", ".jpeg", ".png", ".webp"}


class Photo(NamedTuple):
    """A sample with its pixels, to be written."""

    label: str
    name: str  # a file name without suffix, unique where the format keeps it
    image: NDArray[np.uint8]  # (height, width, 3), RGB
    mask: Mask | None


def _encode_png(pixels: NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", compress_level=3)
    return file.getvalue()


def _write(path: Path, content: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def _write_folder(photos: Iterable[Photo], labels: Sequence[str], out: Path) -> None:
    for photo in photos:
        label = make_folder_name(photo.label)
        _write(out / "images" / label / f"{photo.name}.png", _encode_png(photo.image))
        if photo.mask is not None:
            _write(out / "masks" / label / f"{photo.name}.png", _encode_png(photo.mask))


def _write_coco(photos: Iterable[Photo], labels: Sequence[str], out: Path) -> None:
    rows = []
    for photo in photos:
        _write(out / "data" / f"{photo.name}.png", _encode_png(photo.image))
        if photo.mask is not None:
            rows.append((f"{photo.name}.png", photo.label, photo.mask))
    _write(out / "labels.json", format_coco(rows, labels))


def _write_labelme(photos: Iterable[Photo], labels: Sequence[str], out: Path) -> None:
    for photo in photos:
        _write(out / f"{photo.name}.png", _encode_png(photo.image))
        if photo.mask is not None:
            _write(out / f"{photo.name}.json", format_labelme(f"{photo.name}.png", photo.label, photo.mask))


def _write_voc(photos: Iterable[Photo], labels: Sequence[str], out: Path) -> None:
    names = list_voc_classes(labels)
    _write(out / "classes.txt", "\n".join(names) + "\n")
    for photo in photos:
        _write(out / "JPEGImages" / f"{photo.name}.png", _encode_png(photo.image))
        if photo.mask is not None:
            _write(
                out / "SegmentationClass" / f"{photo.name}.png", encode_voc_mask(photo.mask, names.index(photo.label))
            )


def _write_webdataset(photos: Iterable[Photo], labels: Sequence[str], out: Path) -> None:
    for number, batch in enumerate(_split_shards(photos)):
        parts = ((photo.name, _encode_files(photo)) for photo in batch)
        write_shard(out / f"shard-{number:06d}.tar", parts)


def _encode_files(photo: Photo) -> dict[str, bytes]:
    mask = {} if photo.mask is None else {"mask.png": _encode_png(photo.mask)}
    label = json.dumps({"label": photo.label}, ensure_ascii=False).encode()  # in a text, 7 would be a number
    return {"png": _encode_png(photo.image), "json": label, **mask}


def _write_parquet(photos: Iterable[Photo], labels: Sequence[str], out: Path) -> None:
    for number, batch in enumerate(_split_shards(photos)):
        rows = [
            (_encode_png(row.image), row.label, None if row.mask is None else _encode_png(row.mask)) for row in batch
        ]
        write_parquet_dataset(out / f"part-{number:06d}.parquet", rows, labels)


def _write_fiftyone(photos: Iterable[Photo], labels: Sequence[str], out: Path) -> None:
    of_photos = {}
    for photo in photos:
        _write(out / "data" / f"{photo.name}.png", _encode_png(photo.image))
        if photo.mask is not None:
            _write(out / "labels" / f"{photo.name}.png", _encode_png(photo.mask))
        of_photos[photo.name] = photo.label
    _write(out / "labels.json", format_fiftyone_labels(of_photos, labels))


def _split_shards(photos: Iterable[Photo]) -> Iterator[list[Photo]]:
    batch: list[Photo] = []
    for photo in photos:
        batch.append(photo)
        if len(batch) == _SAMPLES_PER_SHARD:
            yield batch
            batch = []
    if batch:
        yield batch


WRITERS: dict[str, Callable[[Iterable[Photo], Sequence[str], Path], None]] = {  # photos, all labels, target folder
    "folder": _write_folder, "coco": _write_coco, "labelme": _write_labelme, "voc": _write_voc,
    "webdataset": _write_webdataset, "parquet": _write_parquet, "fiftyone": _write_fiftyone,
}  # fmt: skip
NEED_MASKS = ("coco", "labelme", "voc")  # formats in which a photo without a mask cannot have a label


def choose_file_name(sample: Sample, used: set[str], form: str) -> str:
    """A unique file name: the photo's own in class folders; with its label as a prefix in one shared folder."""
    path = PurePosixPath(sample.id)
    in_folders = form == "folder"
    folder = f"{make_folder_name(sample.label)}/" if in_folders else ""
    plain = make_folder_name(_stem(path)) if in_folders else _join_label(path)
    name, number = plain, 2
    while f"{folder}{name}".lower() in used:
        name, number = f"{plain}-{number}", number + 1
    used.add(f"{folder}{name}".lower())
    return name


def _join_label(path: PurePosixPath) -> str:
    """Label and name joined; a name that already begins with the label, as from a conversion, is unchanged."""
    label, name = (text.replace(" ", "_").replace(".", "_") for text in (path.parent.name, _stem(path)))
    return make_folder_name(name if name.startswith(f"{label}-") else f"{label}-{name}".strip("-"))


def _stem(path: PurePosixPath) -> str:
    """The name without a picture's suffix; names listed without a suffix may contain dots."""
    return path.stem if path.suffix.lower() in _ENDINGS else path.name


def convert(source: Source, out: Path, form: str) -> tuple[int, list[Skipped]]:
    """Write every photo of a source in another format; returns how many, and what was skipped."""
    if form not in WRITERS:
        raise UserError(f"expected a format ({', '.join(WRITERS)}), got '{form}'")
    if out.is_file() or (out.exists() and any(out.iterdir())):
        raise UserError(f"expected an empty folder or a new one, got '{out}', which holds files; choose another --out")
    out = out.resolve()  # "." has no name; a link to a folder stays a link
    samples, left_out = source.samples()
    skipped = list(left_out)
    temporary = out.with_name(f".{out.name}.{os.getpid()}")
    temporary.mkdir(parents=True)
    try:
        labels = sorted({sample.label for sample in samples})
        WRITERS[form](_read_photos(source, samples, form, skipped), labels, temporary)
        if out.exists():
            out.rmdir()
        os.replace(temporary, out)
    except OSError as error:
        if error.filename is not None:  # the error of a full disk has no file name
            raise
        raise UserError(f"'{out}' cannot be written: {error.strerror}; nothing of it was kept") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return len(samples) + len(left_out) - len(skipped), skipped


def _read_photos(source: Source, samples: Sequence[Sample], form: str, skipped: list[Skipped]) -> Iterator[Photo]:
    used: set[str] = set()
    for sample in show_progress(samples, Extent(stage="converting", unit="photos", total=len(samples), brief=True)):
        try:
            image, mask = source.read(sample)
        except Unusable as error:
            skipped.append(Skipped(sample.id, "source", "", str(error)))
            continue
        if mask is None and form in NEED_MASKS:
            skipped.append(Skipped(sample.id, "source", "", f"the photo has no mask, which {form} needs"))
            continue
        yield Photo(sample.label, choose_file_name(sample, used, form), image, mask)
