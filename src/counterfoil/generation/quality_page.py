"""The page of quality control: removed pictures, and the nearest pictures of a reference folder."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError
from counterfoil.generation.embedding import Embedding
from counterfoil.generation.near_duplicates import find_nearest_pictures
from counterfoil.generation.quality_control import QualityBounds, QualityResult, Removal
from counterfoil.painters.painter_protocol import display_name
from counterfoil.report.page import create_environment
from counterfoil.store.files import write_atomically
from counterfoil.store.picture_collection import WorkspaceCollection
from counterfoil.store.workspace import Workspace
from counterfoil.study.thumbnails import small_jpeg
from counterfoil.types import StoredVariant

_SIDE = 160  # pixels of the longer side of a thumbnail


@dataclass(frozen=True)
class QualityPicture:
    """One picture with its names."""

    name: str  # of its class
    about: str  # the edit
    file: str
    picture: str  # data address; empty where it cannot be read


@dataclass(frozen=True)
class PicturePair:
    """A picture, its caption, and the picture it is compared with, where there is one."""

    caption: str
    picture: QualityPicture
    other: QualityPicture | None = None


@dataclass(frozen=True, kw_only=True)
class QualityPage:
    """Everything that the page shows."""

    title: str
    looked_at: int
    counts: Mapping[str, int]
    removed: bool  # whether the pictures were removed from the manifest, or only checked
    pairs: Sequence[PicturePair]
    nearest: Sequence[PicturePair]
    reference: str
    embedding: str


def render_quality_page(content: QualityPage) -> str:
    """Render the page; it loads nothing from a network."""
    return (
        create_environment(templates=Path(__file__).parent / "templates")
        .get_template("quality.html")
        .render(content=content)
    )


def encode_thumbnail(image: NDArray[np.uint8]) -> str:
    """Return a picture as the data address of a small JPEG."""
    return f"data:image/jpeg;base64,{base64.b64encode(small_jpeg(image, _SIDE, quality=80)).decode('ascii')}"


_SHOWN = 60  # pictures in a section of the page; all are in the JSON files
_SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp"}


@dataclass(frozen=True)
class ReferenceFolder:
    """A folder of reference pictures, all of them read."""

    folder: Path
    files: Sequence[Path]
    embedding: Embedding
    points: NDArray[np.float32]  # (len(files), width)


@dataclass(frozen=True)
class Neighbour:
    """A picture and its most similar reference picture."""

    variant_id: str
    file: str  # under the workspace
    reference: str  # under the reference folder
    cosine: float
    path: Path  # of the reference picture


@dataclass(frozen=True)
class ReferenceComparison:
    """The results for a reference folder, where one was given."""

    folder: Path | None = None
    neighbours: Sequence[Neighbour] = ()


def read_reference(folder: Path, embedding: Embedding) -> ReferenceFolder:
    """Embed every picture of a reference folder; raises `UserError` where there is none or one cannot be read."""
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES)
    if not files:
        raise UserError(f"expected pictures in the reference folder '{folder}', found none")
    return ReferenceFolder(folder, files, embedding, embedding.embed_all(files, _read))


def find_neighbours(folder: Path, reference: ReferenceFolder, unreadable: Collection[str] = ()) -> list[Neighbour]:
    """Return the nearest reference picture of each picture of a workspace, the most similar first."""
    workspace = Workspace(folder)
    edited = [stored for stored in workspace.pictures if stored.variant.attribute not in ("original", "control")]
    edited = [stored for stored in edited if stored.variant.id not in unreadable]
    nearest = []
    if edited:
        points = reference.embedding.embed_all(edited, workspace.read)
        nearest = find_nearest_pictures(points, reference.points)
    neighbours = [
        _make_neighbour(stored, reference.files[place], reference.folder, cosine)
        for stored, (place, cosine) in zip(edited, nearest, strict=True)
    ]
    neighbours.sort(key=lambda neighbour: (-neighbour.cosine, neighbour.variant_id))
    rows = [{name: value for name, value in asdict(row).items() if name != "path"} for row in neighbours]
    write_atomically(folder / "quality" / "nearest.json", json.dumps(rows, indent=1))
    return neighbours


def _make_neighbour(stored: StoredVariant, path: Path, folder: Path, cosine: float) -> Neighbour:
    name = path.relative_to(folder).as_posix()
    return Neighbour(stored.variant.id, stored.file, name, round(cosine, 6), path)


def write_quality_page(
    folder: Path, result: QualityResult, bounds: QualityBounds, comparison: ReferenceComparison | None = None
) -> Path:
    """Write quality/index.html."""
    pairs = _PairBuilder(Workspace(folder), result)
    known = comparison or ReferenceComparison()
    content = QualityPage(
        title=folder.resolve().name, looked_at=len(result.pictures), counts=result.counts, removed=not bounds.keep_all,
        pairs=[pairs.pair_removed(removal) for removal in result.removals[:_SHOWN]],
        nearest=[pairs.pair_nearest(row) for row in known.neighbours[:_SHOWN]],
        reference=str(known.folder or ""), embedding=Embedding().name,
    )  # fmt: skip
    return write_atomically(folder / "quality" / "index.html", render_quality_page(content))


@dataclass(frozen=True)
class _PairBuilder:
    """The pictures of a workspace, with readable names."""

    workspace: Workspace
    result: QualityResult

    @cached_property
    def _stored(self) -> dict[str, StoredVariant]:
        return {stored.variant.id: stored for stored in self.result.pictures}

    @cached_property
    def _names(self) -> dict[str, str]:
        """Readable names by class."""
        try:
            space = WorkspaceCollection(self.workspace).space
        except UserError:  # the file of classes is gone: use the labels
            space = None
        labels = {stored.variant.label for stored in self.result.pictures}
        return {label: display_name(space.name_of(label) if space and label in space else label) for label in labels}

    def pair_removed(self, removal: Removal) -> PicturePair:
        """Pair a removed picture with the one that it repeats."""
        caption = "near-duplicate of the picture beside it" if removal.like else f"{removal.kind}: {removal.reason}"
        repeated = self._describe_picture(removal.like) if removal.like else None
        return PicturePair(caption, self._describe_picture(removal.variant_id), repeated)

    def pair_nearest(self, row: Neighbour) -> PicturePair:
        """Pair a picture with its nearest reference picture."""
        known = QualityPicture("reference", "", row.reference, _try_thumbnail(lambda: _read(row.path)))
        return PicturePair(f"cosine {row.cosine:.3f}", self._describe_picture(row.variant_id), known)

    def _describe_picture(self, name: str) -> QualityPicture:
        stored = self._stored[name]
        variant = stored.variant
        about = variant.edit if variant.level in ("none", variant.edit) else f"{variant.edit}: {variant.level}"
        picture = _try_thumbnail(lambda: self.workspace.read(stored))
        return QualityPicture(self._names[variant.label], about, stored.file, picture)


def _try_thumbnail(read: Callable[[], NDArray[np.uint8]]) -> str:
    try:
        return encode_thumbnail(read())
    except Unusable:
        return ""


def _read(path: Path) -> NDArray[np.uint8]:
    image = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR) if path.stat().st_size else None
    if image is None:
        raise UserError(f"expected pictures in the reference folder, got {path}, which cannot be read; remove it")
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), np.uint8)
