"""Photos with masks in the formats that annotation tools and data sets use; each by its address, `coco:PATH`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from counterfoil.source.formats.coco import coco_source
from counterfoil.source.formats.fiftyone import fiftyone_source
from counterfoil.source.formats.labelme import labelme_source
from counterfoil.source.formats.listed import ListedSource
from counterfoil.source.formats.parquet import parquet_source
from counterfoil.source.formats.voc import voc_source
from counterfoil.source.formats.webdataset import webdataset_source

FORMATS: dict[str, Callable[[Path], ListedSource]] = {
    "coco": coco_source,
    "labelme": labelme_source,
    "voc": voc_source,
    "webdataset": webdataset_source,
    "parquet": parquet_source,
    "fiftyone": fiftyone_source,
}

__all__ = ["FORMATS", "ListedSource"]
