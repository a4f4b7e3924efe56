"""Variants as files: a folder of pictures with its manifest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np

from counterfoil.pipeline.job import Job, Prepared, prepare
from counterfoil.pipeline.way import work_through
from counterfoil.pipeline.work import Keep
from counterfoil.report import skipped_csv
from counterfoil.store import picture_file, read_table, read_variants, write_atomically
from counterfoil.types import Picture, Variant


def build_job(job: Job, out: Path, before: Callable[[Prepared], None] | None = None) -> int:
    """Write every variant of a job as PNG beside `variants.parquet`; gives back how many were skipped."""
    prepared = prepare(job)
    if before is not None:
        before(prepared)

    def keep(variant: Variant, picture: Picture) -> None:
        write_atomically(out / "pictures" / picture_file(variant), png(picture))

    skipped = work_through(prepared, out, keep)
    _settle_files(prepared, out, keep)
    write_atomically(out / "skipped.csv", skipped_csv(skipped))
    return len(skipped)


def _settle_files(prepared: Prepared, out: Path, keep: Keep) -> None:
    """What the manifest names is there, and nothing else: lost pictures are made again, stale ones removed."""
    variants = {
        out / "pictures" / picture_file(row): row for row in read_variants(read_table(out / "variants.parquet"))
    }
    for path in (out / "pictures").rglob("*.png"):
        if path not in variants:
            path.unlink()
    for path, variant in variants.items():
        if not path.is_file():
            keep(variant, prepared.studio.make(variant))


def png(picture: Picture) -> bytes:
    """The picture, lossless."""
    bgr = cv2.cvtColor(np.ascontiguousarray(picture.image), cv2.COLOR_RGB2BGR)
    _, data = cv2.imencode(".png", bgr, [cv2.IMWRITE_PNG_COMPRESSION, 3])
    return data.tobytes()
