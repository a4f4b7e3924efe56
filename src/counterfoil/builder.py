"""Every variant of a run written as a file with a manifest, and one variant rendered again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Container
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from counterfoil.edits.registry import EDITS, edit_named
from counterfoil.edits.subject import Tools
from counterfoil.errors import Unusable, UserError, expect_kind, expect_path
from counterfoil.report.csv_tables import manifest_to_csv, skipped_to_csv
from counterfoil.run_config import RunConfig, RunPlan, prepare
from counterfoil.run_result import Result
from counterfoil.runner import PhotoWork, PictureWriter, process_photos, process_shard
from counterfoil.segmentation import DEFAULT_SEGMENTER, make_segmenter
from counterfoil.sources.pixels import hash_pixels
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.files import sync_disk, write_atomically
from counterfoil.store.folder_lock import MIGAN_REMEDY
from counterfoil.store.folder_mirror import is_mirrored, list_folder, put_file, remove_file
from counterfoil.store.parquet import read_table
from counterfoil.store.prediction_tables import read_run, read_run_record, read_variants
from counterfoil.store.run_checksums import record_checksums
from counterfoil.store.workspace import Workspace, locate_picture
from counterfoil.types import Picture, Run, Sample, Variant
from counterfoil.variant_renderer import Renderer, load_same_tools

# runs of the rows' differences: 2.4 times as fast as level 3 of zlib's own strategy, files 4 to 9 % larger
_PNG = [cv2.IMWRITE_PNG_COMPRESSION, 1, cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_RLE]
if hasattr(cv2, "IMWRITE_PNG_FILTER"):  # older versions of OpenCV write larger files
    _PNG += [cv2.IMWRITE_PNG_FILTER, cv2.IMWRITE_PNG_FAST_FILTERS]
_PNG_END = b"IEND\xaeB`\x82"


def build_pictures(config: RunConfig, out: Path, on_prepared: Callable[[RunPlan], None] | None = None) -> int:
    """Write every variant as a PNG file beside the manifest `variants.parquet`; returns how many were skipped."""
    plan = prepare(config)
    if on_prepared is not None:
        on_prepared(plan)

    write = partial(write_picture, out)
    skipped = process_photos(PhotoWork(plan, write), out).skipped
    _match_manifest(plan, out, write)
    sync_disk()  # the pictures, of which power loss before this may leave empty ones
    _write_manifest_csv(out)
    write_atomically(out / "skipped.csv", skipped_to_csv(skipped))
    record_checksums(out)
    return len(skipped)


def write_picture(out: Path, variant: Variant, picture: Picture) -> None:
    """Write a picture into a workspace; not synced, since a sync would take as long as the picture."""
    put_file(write_atomically(out / "pictures" / locate_picture(variant), encode_png(picture), durable=False))


def complete_workspace(out: Path) -> None:
    """Finish a workspace whose shards are done: no picture more or less than its manifest names."""
    named = {out / "pictures" / locate_picture(row) for row in read_variants(read_table(out / "variants.parquet"))}
    missing = sorted(named - _remove_others(out, named))
    if missing:
        raise UserError(
            f"expected every picture of the manifest, {len(missing)} are missing, the first {missing[0]}; build the"
            " workspace again with the same command without --shard"
        )
    _write_manifest_csv(out)


def _write_manifest_csv(out: Path) -> None:
    write_atomically(out / "variants.csv", manifest_to_csv(read_table(out / "variants.parquet")))


def build_shard(config: RunConfig, out: Path) -> None:
    """Write the pictures of one shard; `counterfoil shards merge` writes the manifest when all shards are done."""
    process_shard(config, out, lambda plan: PhotoWork(plan, partial(write_picture, out)))
    sync_disk()


def _match_manifest(plan: RunPlan, out: Path, write: PictureWriter) -> None:
    """Render pictures of the manifest that are missing; remove pictures that it does not name."""
    variants = {
        out / "pictures" / locate_picture(row): row for row in read_variants(read_table(out / "variants.parquet"))
    }
    there, is_put_whole = _remove_others(out, variants), is_mirrored(out)
    for path, variant in variants.items():
        if path not in there or not (is_put_whole or _is_whole(path)):
            write(variant, plan.renderer.render(variant))


def _remove_others(out: Path, named: Container[Path]) -> set[Path]:
    """Remove the pictures of a workspace that are not named; returns the others."""
    there = {out / "pictures" / name for name in list_folder(out / "pictures") if name.endswith(".png")}
    others = {path for path in there if path not in named}
    for path in others:
        remove_file(path)
    return there - others


def _is_whole(path: Path) -> bool:
    """Whether a picture is there to its end; after a loss of power a file may be empty."""
    try:
        with path.open("rb") as file:
            file.seek(-len(_PNG_END), os.SEEK_END)
            return file.read() == _PNG_END
    except OSError:
        return False


def encode_png(picture: Picture) -> bytes:
    """The picture as a PNG file."""
    bgr = cv2.cvtColor(np.ascontiguousarray(picture.image), cv2.COLOR_RGB2BGR)
    _, data = cv2.imencode(".png", bgr, _PNG)
    return data.tobytes()


def rebuild(folder: Result | Workspace | str | Path, variant_id: str) -> Picture:
    """Render a variant of a run again from its photo, to the bit.

    Args:
        folder: A result, a workspace, or the folder of one.
        variant_id: The variant's id, as variants.parquet lists it.

    Returns:
        The picture that the models saw.

    Raises:
        UserError: There is no such variant, or its photo, mask or edit has changed since.

    Examples:
        >>> rebuild("out", "0a1b2c3d").image.shape  # doctest: +SKIP
        (384, 512, 3)
    """
    if isinstance(folder, Result | Workspace):
        folder = folder.folder
    path = expect_path(folder, "the folder of a run or workspace")
    expect_kind(variant_id, str, "the id of a variant as a text")
    if not (path / "variants.parquet").is_file():
        raise UserError(f"expected the folder of a finished run, got '{folder}', which holds no variants.parquet")
    table = read_table(path / "variants.parquet")
    variant, row = _variant(table, variant_id, folder)
    about = read_run_record(path)
    if about.get("collection"):
        raise UserError(
            f"expected a run that edited photos, got '{folder}', which is over the collection {about['collection']}:"
            " its pictures were not made from photos; they lie there as files"
        )
    if about.get("painter"):
        raise UserError(
            f"expected a workspace of edited photos, got '{folder}', which was painted: a diffusion model's picture is"
            " not made again to the bit, its hash in the manifest is the truth"
        )
    source = open_source(about["images"], about["masks"])
    there = {sample.id: sample for sample in source.samples()[0]}
    wanted = [str(variant.sample_id), *([variant.donor_id] if variant.donor_id else [])]
    samples = {name: _unchanged(there, _sample(table, name)) for name in wanted}
    run = read_run(path)
    tools = load_same_tools(run)
    renderer = Renderer(
        source=source,
        samples=samples,
        working_size=int(table["working_size"][row]) or None,
        segmenter=make_segmenter(list(samples.values()), about.get("segmenter") or DEFAULT_SEGMENTER),
        tools=tools,
    )
    try:
        picture = renderer.render(variant)
    except Unusable as error:
        reason = f"{error}; {_explain_difference(variant, run, tools)}"
        raise UserError(f"expected a picture for {variant_id}, as the run made one, got none: {reason}") from error
    if hash_pixels(picture.image) != table["sha256"][row]:
        reason = _explain_difference(variant, run, tools)
        raise UserError(f"expected the pixels that the manifest names for {variant_id}, got others: {reason}")
    return picture


def _explain_difference(variant: Variant, run: Run, tools: Tools) -> str:
    """Why a variant may have other pixels than when it was made, or none."""
    edit = edit_named(variant.edit, json.loads(variant.settings)) if variant.edit in EDITS else None
    version = 1 if edit is None else edit.picture_version
    if version != variant.version:
        return (
            f"they were made by version {variant.version} of the edit '{variant.edit}', and this Counterfoil has"
            f" version {version}, whose pictures differ; `counterfoil build` makes them all again"
        )
    if edit is not None and edit.shows_fill and "MI-GAN" in run.fills and tools.fills.network is None:
        return f"the run filled holes with the network MI-GAN where it did best, which is not there now; {MIGAN_REMEDY}"
    return "a file that the edit reads has changed, or another version of OpenCV or Counterfoil is at work"


def _variant(table: dict[str, Any], variant_id: str, folder: str | Path) -> tuple[Variant, int]:
    for row, variant in enumerate(read_variants(table)):
        if variant.id == variant_id:
            return variant, row
    raise UserError(f"expected a variant of the run in '{folder}', got '{variant_id}'; variants.parquet lists them")


def _sample(table: dict[str, Any], sample_id: str) -> Sample:
    row = int((table["sample_id"] == sample_id).nonzero()[0][0])
    image, mask, label, digest = (table[name][row] for name in ("image", "mask", "label", "sample_digest"))
    return Sample(id=sample_id, label=label, image=image, mask=mask or None, digest=digest)


def _unchanged(there: dict[str, Sample], sample: Sample) -> Sample:
    current = there.get(sample.id)
    if current is None:
        raise UserError(f"expected the photo {sample.id} of the run, but it is no longer there")
    if current.digest != sample.digest:
        raise UserError(f"expected the photo {sample.id} as it was in the run, but photo or mask have changed")
    return replace(sample, image=current.image, mask=current.mask)
