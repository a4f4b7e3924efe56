"""From words to a workspace: pictures, their manifest, and what the painter refused; a killed run goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from counterfoil.errors import Unusable
from counterfoil.paint.painter import Painted, Refusal
from counterfoil.pipeline.building import png
from counterfoil.pipeline.claiming import MAY_DIFFER, claim
from counterfoil.pipeline.job import environment
from counterfoil.pipeline.painting_job import PaintJob, ReadyPainting, prepared_painting
from counterfoil.pipeline.painting_plan import Order
from counterfoil.pipeline.progress import Extent, shown
from counterfoil.pipeline.quality import removed_before
from counterfoil.pipeline.work import pixel_digest
from counterfoil.report import skipped_csv
from counterfoil.store import Journal, Made, ResultTables, picture_file, write_atomically
from counterfoil.types import Run, Skipped, Variant

__all__ = ["PaintJob", "PaintResult", "paint_job"]


@dataclass(frozen=True)
class PaintResult:
    """What a workspace holds after painting."""

    pictures: int
    skipped: tuple[Skipped, ...]


def paint_job(job: PaintJob, out: Path) -> PaintResult:
    """Paint what is not painted yet, and write the manifest of everything that was asked for."""
    ready = prepared_painting(job)
    _claim(ready, out)
    with Journal(out / "work" / "journal.jsonl") as journal:
        missing = [order for order in ready.orders if not _is_done(order, journal, out)]
        _check_time(ready, missing)
        done, total = len(ready.orders) - len(missing), len(ready.orders)
        for name, entry in shown(_painted(ready, missing, out), Extent(done, total, " pictures")):
            journal.add(name, entry)
        entries = {order.variant.id: journal.entry(order.variant.id) for order in ready.orders}
    skipped = _tables(ready, entries, out)
    write_atomically(out / "skipped.csv", skipped_csv([*ready.skipped, *skipped]))
    return PaintResult(total - len(skipped), (*ready.skipped, *skipped))


def _claim(ready: ReadyPainting, out: Path) -> None:
    """Mark the folder as this job's; another painter's or another seed's pictures do not mix with these."""
    job = ready.job
    run = Run(
        job.command, str(job.images or ""), str(job.masks) if job.masks else None, job.recipe, ready.painting.digest,
        job.seed, len({order.sample.id for order in ready.orders}), (), {}, {},
        {**environment(), **ready.painter.environment},
    )  # fmt: skip
    asked = {**asdict(run), "painter": dict(ready.painter.settings), "classes": ready.painting.classes}
    claim(out, {**asked, "selection": asdict(job.selection)}, MAY_DIFFER | {"selection"})


def _is_done(order: Order, journal: Journal, out: Path) -> bool:
    if order.variant.id not in journal:
        return False
    return "refused" in journal.entry(order.variant.id) or _file(order.variant, out).is_file()


def _check_time(ready: ReadyPainting, missing: Sequence[Order]) -> None:
    """A large model on a CPU would take days: that is said before it begins."""
    asked = [order for order in missing if order.prompt is not None]
    wish = next((wish for order in asked if (wish := ready.wish(order)) is not None), None)
    if wish is not None:
        ready.painter.check_time(wish, len(asked))


def _painted(ready: ReadyPainting, orders: Sequence[Order], out: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Paint batch by batch; pictures lie in their files before the journal says so."""
    size = ready.job.options.batch_size
    with ThreadPoolExecutor() as writers:
        for start in range(0, len(orders), size):
            batch = orders[start : start + size]
            entries = writers.map(partial(_kept, ready, out), batch, ready.painted(batch))
            yield from zip((order.variant.id for order in batch), entries, strict=True)


def _kept(ready: ReadyPainting, out: Path, order: Order, image: Painted) -> dict[str, Any]:
    """Write a picture; gives back its entry of the journal."""
    if isinstance(image, Refusal):
        return {"refused": image.reason}
    try:
        picture = ready.with_object(order, image)
    except Unusable as error:
        return {"refused": str(error)}
    made_with = ready.painter.environment if order.prompt is not None else {}
    settings = json.dumps({**json.loads(order.variant.settings), **made_with}, sort_keys=True)
    variant = replace(order.variant, settings=settings)
    write_atomically(_file(variant, out), png(picture))
    share = float("nan") if ready.studio is None else 100 * float((picture.alpha >= 128).mean())
    return {"variant": asdict(variant), "sha256": pixel_digest(picture), "object_share": share}


def _file(variant: Variant, out: Path) -> Path:
    return out / "pictures" / picture_file(variant)


def _tables(ready: ReadyPainting, entries: Mapping[str, dict[str, Any]], out: Path) -> list[Skipped]:
    """Write the manifest; gives back what is not in it: refused, without counterpart, removed by quality control."""
    skipped: list[Skipped] = []
    removed, lost = removed_before(out), _lost(ready.orders, entries)
    with ResultTables(out, (), ready.painting.working_size) as tables:
        for order in ready.orders:
            entry = entries[order.variant.id]
            reason = entry.get("refused") or lost.get(order.sample.id) or removed.get(order.variant.id)
            if reason:
                skipped.append(Skipped(order.sample.id, "edit", order.variant.edit, reason))
                continue
            tables.add_variant(order.sample, Made(Variant(**entry["variant"]), entry["sha256"], entry["object_share"]))
    return skipped


def _lost(orders: Sequence[Order], entries: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """The samples whose original is missing, with the reason: their pictures have nothing to be compared with."""
    originals = (order for order in orders if order.variant.attribute == "original")
    refused = {order.sample.id: entries[order.variant.id].get("refused") for order in originals}
    return {name: f"its counterpart is missing: {reason}" for name, reason in refused.items() if reason}
