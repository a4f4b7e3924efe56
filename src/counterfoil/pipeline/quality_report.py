"""What quality control shows: removed pictures beside what they repeat, generated ones beside a reference's nearest."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError
from counterfoil.paint.quality import nearest
from counterfoil.pipeline.embedding import Embedding
from counterfoil.pipeline.quality import Bounds, Looked, Removal
from counterfoil.report.quality_page import Pair, QualityPage, quality_page, thumbnail
from counterfoil.store import Workspace, write_atomically
from counterfoil.types import Exhibit

_SHOWN = 60  # pictures of a section of the page; everything is in the JSON files
_SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp"}


@dataclass(frozen=True)
class Neighbour:
    """A picture and the reference picture that it is most like."""

    variant_id: str
    reference: str
    cosine: float


def neighbours(
    folder: Path, reference: Path, embedding: Embedding, unreadable: Collection[str] = ()
) -> list[Neighbour]:
    """Of each picture of a workspace the nearest of a reference folder, the most alike first."""
    files = sorted(path for path in reference.rglob("*") if path.suffix.lower() in _SUFFIXES)
    if not files:
        raise UserError(f"expected pictures in the reference folder '{reference}', found none")
    workspace = Workspace(folder)
    made = [exhibit for exhibit in workspace.exhibits if exhibit.variant.attribute not in ("original", "control")]
    made = [exhibit for exhibit in made if exhibit.variant.id not in unreadable]
    rows = nearest(embedding.of_all(made, workspace.read), embedding.of_all(files, _read)) if made else []
    found = [
        Neighbour(exhibit.variant.id, files[place].relative_to(reference).as_posix(), round(cosine, 6))
        for exhibit, (place, cosine) in zip(made, rows, strict=True)
    ]
    found.sort(key=lambda neighbour: (-neighbour.cosine, neighbour.variant_id))
    write_atomically(folder / "quality" / "nearest.json", json.dumps([asdict(row) for row in found], indent=1))
    return found


def write_quality_page(
    folder: Path, looked: Looked, bounds: Bounds, near: Sequence[Neighbour] = (), reference: Path | None = None
) -> Path:
    """Write quality/index.html."""
    workspace = Workspace(folder)
    exhibits = {exhibit.variant.id: exhibit for exhibit in looked.exhibits}

    def picture(name: str) -> str:
        return _thumbnail(lambda: workspace.read(exhibits[name]))

    removed = [_removed(removal, exhibits, picture) for removal in looked.removals[:_SHOWN]]
    beside = [_beside(row, exhibits, picture, reference) for row in near[:_SHOWN] if reference is not None]
    content = QualityPage(
        folder.resolve().name, len(looked.exhibits), looked.counts, not bounds.keep_all, removed, beside,
        reference.name if reference else "", Embedding().name,
    )  # fmt: skip
    return write_atomically(folder / "quality" / "index.html", quality_page(content))


def _removed(removal: Removal, exhibits: dict[str, Exhibit], picture: Callable[[str], str]) -> Pair:
    caption = f"{_told(exhibits[removal.variant_id])}: {removal.reason}"
    if not removal.like:
        return Pair(caption, picture(removal.variant_id))
    return Pair(caption, picture(removal.variant_id), picture(removal.like), _told(exhibits[removal.like]))


def _beside(
    row: Neighbour, exhibits: dict[str, Exhibit], picture: Callable[[str], str], reference: Path | None
) -> Pair:
    assert reference is not None
    file = reference / row.reference
    caption = f"{_told(exhibits[row.variant_id])}: cosine {row.cosine:.3f}"
    return Pair(caption, picture(row.variant_id), _thumbnail(lambda: _read(file)), row.reference)


def _told(exhibit: Exhibit) -> str:
    variant = exhibit.variant
    return f"{variant.label}, {variant.edit} {variant.level} ({variant.id})"


def _thumbnail(read: Callable[[], NDArray[np.uint8]]) -> str:
    try:
        return thumbnail(read())
    except Unusable:
        return "data:,"


def _read(path: Path) -> NDArray[np.uint8]:
    image = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR) if path.stat().st_size else None
    if image is None:
        raise UserError(f"expected pictures in the reference folder, got {path}, which cannot be read; remove it")
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), np.uint8)
