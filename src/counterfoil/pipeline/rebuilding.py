"""One line of a manifest becomes its picture again, to the bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from counterfoil.errors import UserError
from counterfoil.pipeline.job import segmenter_for, source_at
from counterfoil.pipeline.studio import Studio
from counterfoil.pipeline.work import pixel_digest
from counterfoil.store import read_table, read_variants
from counterfoil.store.results import read_record
from counterfoil.types import Picture, Sample, Variant


def rebuild(folder: str | Path, variant_id: str) -> Picture:
    """Make a variant of the run in `folder` again from its photo; a photo that changed since is an error."""
    path = Path(folder)
    if not (path / "variants.parquet").is_file():
        raise UserError(f"expected the folder of a finished run, got '{folder}', which holds no variants.parquet")
    table = read_table(path / "variants.parquet")
    variant, row = _variant(table, variant_id, folder)
    about = read_record(path)
    if about.get("collection"):
        raise UserError(
            f"expected a run that edited photos, got '{folder}', which is over the collection {about['collection']}:"
            " its pictures are not made again, they lie there as they are"
        )
    if about.get("painter"):
        raise UserError(
            f"expected a workspace of edited photos, got '{folder}', which was painted: a diffusion model's picture is"
            " not made again to the bit, its hash in the manifest is the truth"
        )
    source = source_at(about["images"], about["masks"])
    there = {sample.id: sample for sample in source.samples()[0]}
    wanted = [str(variant.sample_id), *([variant.donor_id] if variant.donor_id else [])]
    samples = {name: _unchanged(there, _sample(table, name)) for name in wanted}
    studio = Studio(source, samples, int(table["working_size"][row]) or None, segmenter_for(list(samples.values())))
    picture = studio.make(variant)
    if pixel_digest(picture) != table["sha256"][row]:
        raise UserError(
            f"expected the pixels that the manifest names for {variant_id}, got others: a file that the edit reads has"
            " changed, or another version of OpenCV or Counterfoil is at work"
        )
    return picture


def _variant(table: dict[str, Any], variant_id: str, folder: str | Path) -> tuple[Variant, int]:
    for row, variant in enumerate(read_variants(table)):
        if variant.id == variant_id:
            return variant, row
    raise UserError(f"expected a variant of the run in '{folder}', got '{variant_id}'; variants.parquet lists them")


def _sample(table: dict[str, Any], sample_id: str) -> Sample:
    row = int((table["sample_id"] == sample_id).nonzero()[0][0])
    image, mask, label, digest = (table[name][row] for name in ("image", "mask", "label", "sample_digest"))
    return Sample(sample_id, label, image, mask or None, digest)


def _unchanged(there: dict[str, Sample], sample: Sample) -> Sample:
    found = there.get(sample.id)
    if found is None:
        raise UserError(f"expected the photo {sample.id} of the run, but it is no longer there")
    if found.digest != sample.digest:
        raise UserError(f"expected the photo {sample.id} as it was in the run, but photo or mask have changed")
    return replace(sample, image=found.image, mask=found.mask)
