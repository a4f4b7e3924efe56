"""The photos that the benchmarks work on: a folder of class folders, or the demo photos as one."""

from __future__ import annotations

import shutil
from pathlib import Path

from PIL import Image

from counterfoil.assets.cache import fetch_asset
from counterfoil.errors import Unusable
from counterfoil.segmentation import SalienceNetwork
from counterfoil.sources.demo_photos import DemoSource
from counterfoil.sources.pixels import read_photo

JPEG_QUALITY = 92


def demo_folder(folder: Path) -> tuple[Path, Path]:
    """The demo photos under `folder` as JPEG files in class folders, and their masks."""
    source = DemoSource()
    images, masks = folder / "images", folder / "masks"
    for sample in source.samples()[0]:
        place = Path(sample.id).with_suffix("")
        for parent in (images, masks):
            (parent / place).parent.mkdir(parents=True, exist_ok=True)
        _as_jpeg(Path(sample.image), images / f"{place}.jpg")
        mask = source.read(sample)[1]
        if mask is not None:
            Image.fromarray(mask).save(masks / f"{place}.png")
    return images, masks


def _as_jpeg(photo: Path, place: Path) -> None:
    if photo.suffix == ".jpg":
        shutil.copyfile(photo, place)
    else:
        Image.open(photo).convert("RGB").save(place, quality=JPEG_QUALITY)


def segmented_folder(images: Path, folder: Path) -> tuple[Path, Path]:
    """Those photos of a folder whose object U2-Netp finds, and the masks, both as copies under `folder`."""
    segment = SalienceNetwork(fetch_asset("u2netp"))
    for photo in jpeg_files(images):
        copy = folder / "images" / photo.parent.name / photo.name
        mask = folder / "masks" / photo.parent.name / f"{photo.stem}.png"
        try:
            alpha = segment(read_photo(photo)).mask.values
        except Unusable:
            continue
        for place in (copy, mask):
            place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(photo, copy)
        Image.fromarray(alpha).save(mask)
    return folder / "images", folder / "masks"


def first_photos(images: Path, folder: Path, limit: int) -> Path:
    """A copy of the first photos, one of each class folder as long as there are enough."""
    by_class: dict[str, list[Path]] = {}
    for photo in jpeg_files(images):
        by_class.setdefault(photo.parent.name, []).append(photo)
    turns = sorted((place, photo) for photos in by_class.values() for place, photo in enumerate(photos))
    for _, photo in turns[:limit]:
        (folder / photo.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(photo, folder / photo.parent.name / photo.name)
    return folder


def jpeg_files(folder: Path) -> list[Path]:
    """Every JPEG file in the class folders."""
    return sorted(path for path in folder.glob("*/*") if path.suffix.lower() in (".jpg", ".jpeg"))
