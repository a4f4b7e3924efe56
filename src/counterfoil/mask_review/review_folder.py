"""The photos under review, their masks, and the decisions on them, in a folder that `run --masks` takes.

    MASKS/<label>/<name>.png      an accepted mask
    MASKS/review.csv              file and verdict of each photo that was decided on
    MASKS/.review/draft/...       strokes that are not decided on yet, so that nothing is lost when a program is killed
    MASKS/.review/before/...      masks that were in the folder before the review replaced them

A rejected photo has a row in review.csv, and `run` leaves it out for that reason, whether or not a mask lies there.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.cache import fetch_asset
from counterfoil.errors import Unusable, UserError
from counterfoil.mask_quality import find_mask_fault
from counterfoil.object_mask import Bytes, hard_object
from counterfoil.segmentation import DEFAULT_SEGMENTER, SalienceNetwork, Segmenter
from counterfoil.sources.folder import REVIEW, REVIEW_COLUMNS, FolderSource, read_review
from counterfoil.sources.pixels import check_mask_size, read_mask
from counterfoil.store.files import format_csv, write_atomically
from counterfoil.store.mask_table import read_masks
from counterfoil.store.parquet import read_table
from counterfoil.store.prediction_tables import read_run_record, read_skipped
from counterfoil.types import Sample

ReviewVerdict: TypeAlias = Literal["accepted", "rejected"]
EDIT_SIDE = 1024  # pixels of the longer side at which masks are shown and drawn on


@dataclass(frozen=True)
class MaskState:
    """A mask as the page shows it."""

    values: Bytes  # (height, width), at the photo's size
    note: str = ""  # where it comes from, or what is wrong with it
    is_doubtful: bool = False
    is_draft: bool = False


@dataclass(frozen=True)
class MaskReview:
    """One review: photos, masks to start from, and the folder that decisions are written to."""

    source: FolderSource
    out: Path
    photos: tuple[Sample, ...]  # in the order of the review
    start: Path | None = None  # folder of masks to begin with; else a network finds the objects
    doubts: Mapping[str, str] = field(default_factory=dict)  # by photo, what a run said of its mask
    segmenter: str = DEFAULT_SEGMENTER  # the network that finds objects where there is no mask
    find_object: Segmenter | None = None  # a segmenter in place of that network
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def verdicts(self) -> dict[str, ReviewVerdict]:
        """The photos that were decided on."""
        return {name: "rejected" if verdict == "rejected" else "accepted" for name, verdict in self._verdicts.items()}

    @cached_property
    def _verdicts(self) -> dict[str, str]:
        return read_review(self.out)

    def read_photo(self, sample: Sample) -> NDArray[np.uint8]:
        """The photo's pixels, upright."""
        return self.source.read(sample)[0]

    def read_mask(self, sample: Sample, *, draft: bool = True) -> MaskState:
        """The mask to show: a draft, the folder's own, the one to start from, else what the network finds."""
        image = self.read_photo(sample)
        note = self.doubts.get(sample.id, "")
        for path in (self._draft(sample) if draft else None, self._mask(sample), self._start(sample)):
            if path is None or not path.is_file():
                continue
            try:
                values = read_mask(path)
                check_mask_size(values, image)
            except Unusable as error:
                note = f"{path.name} cannot be used: {error}"
                continue
            if path == self._draft(sample):
                return MaskState(values, "changed, not decided on yet", is_draft=True)
            return MaskState(values, note, is_doubtful=bool(note))
        values = (self.find_object or self._network)(image).mask.values
        doubt = note or find_mask_fault(values)
        return MaskState(values, doubt or "found by the network", is_doubtful=bool(doubt))

    @cached_property
    def _network(self) -> Segmenter:
        return SalienceNetwork(fetch_asset(self.segmenter))

    def accept(self, sample: Sample, drawn: Bytes | None) -> None:
        """Write a photo's mask and its verdict; `drawn` is the mask as the page drew it, None where it is unchanged."""
        values = self.read_mask(sample, draft=drawn is None).values
        merged = values if drawn is None else merge_drawing(values, drawn)
        if not hard_object(merged).any():
            raise UserError("expected a mask with an object; an empty one cannot be used: paint the object, or reject")
        with self._lock:
            self._keep_before(sample)
            write_atomically(self._mask(sample), encode_mask(merged))
            self._decide(sample, "accepted")

    def reject(self, sample: Sample) -> None:
        """Record that the photo is not to be used."""
        with self._lock:
            self._decide(sample, "rejected")

    def reopen(self, sample: Sample) -> None:
        """Take a decision back: the accepted mask becomes a draft, and the folder's own mask comes back."""
        with self._lock:
            path, before = self._mask(sample), self._before(sample)
            if self._verdicts.pop(sample.id, "") == "accepted" and path.is_file():
                write_atomically(self._draft(sample), path.read_bytes())
                if before.is_file():
                    write_atomically(path, before.read_bytes())
                else:
                    path.unlink()
            self._write_verdicts()

    def keep_draft(self, sample: Sample, drawn: Bytes) -> None:
        """Keep strokes that are not decided on yet."""
        merged = merge_drawing(self.read_mask(sample, draft=False).values, drawn)
        with self._lock:
            write_atomically(self._draft(sample), encode_mask(merged))

    def drop_draft(self, sample: Sample) -> None:
        """Forget the strokes that are not decided on."""
        with self._lock:
            self._draft(sample).unlink(missing_ok=True)

    def _decide(self, sample: Sample, verdict: ReviewVerdict) -> None:
        self._verdicts[sample.id] = verdict
        self._write_verdicts()
        self._draft(sample).unlink(missing_ok=True)

    def _write_verdicts(self) -> None:
        write_atomically(self.out / REVIEW, format_csv([REVIEW_COLUMNS, *sorted(self._verdicts.items())]))

    def _keep_before(self, sample: Sample) -> None:
        """Keep a copy of a mask that the review is about to replace."""
        path, before = self._mask(sample), self._before(sample)
        if path.is_file() and not before.is_file() and self._verdicts.get(sample.id) != "accepted":
            write_atomically(before, path.read_bytes())

    def _mask(self, sample: Sample) -> Path:
        return self.out / _mask_name(sample)

    def _start(self, sample: Sample) -> Path | None:
        return self.start / _mask_name(sample) if self.start else None

    def _draft(self, sample: Sample) -> Path:
        return self.out / ".review" / "draft" / _mask_name(sample)

    def _before(self, sample: Sample) -> Path:
        return self.out / ".review" / "before" / _mask_name(sample)


def _mask_name(sample: Sample) -> PurePosixPath:
    return PurePosixPath(sample.image).with_suffix(".png")


def open_review(target: Path, out: Path | None = None, start: Path | None = None) -> MaskReview:
    """The review of a folder of photos, or of the photos of a run.

    Args:
        target: A folder of class folders, or the folder of a run over one.
        out: Where masks are written; beside the photos where none is given.
        start: Masks to begin with; those of the run, or a network's, where none is given.

    Returns:
        The review, photos with doubtful masks first.

    Raises:
        UserError: There are no photos, or they are not in class folders.

    Example:
        >>> review = open_review(Path("photos"))  # doctest: +SKIP
        >>> review.accept(review.photos[0], None)  # doctest: +SKIP
    """
    if not (target / "run.json").is_file():
        source, doubts, segmenter = FolderSource(target.absolute()), dict[str, str](), DEFAULT_SEGMENTER
        photos = list(source.samples()[0])
    else:
        about = read_run_record(target)
        source, start = _open_run_source(target, about), start or (Path(about["masks"]) if about["masks"] else None)
        there, doubts = _list_run(target)
        segmenter = about.get("segmenter") or DEFAULT_SEGMENTER
        photos = [sample for sample in source.samples()[0] if sample.id in there]
    if not photos:
        raise UserError(f"expected photos to review in '{target}', found none")
    folder = out or source.images.with_name(f"{source.images.name}-masks")
    ordered = sorted(photos, key=lambda sample: (sample.id not in doubts, sample.id))
    return MaskReview(source, folder.absolute(), tuple(ordered), start, doubts, segmenter)


def _open_run_source(target: Path, about: Mapping[str, str]) -> FolderSource:
    images = about["images"]
    if about.get("scoring") == "imported":
        raise UserError(f"expected a run with photos, got '{target}': its answers were imported from a table")
    if not Path(images).is_dir():
        raise UserError(
            f"expected a run over a folder of class folders, got '{target}', which is over {images};"
            f" write its photos as one first: counterfoil photos convert --images {images} --to folder --out PHOTOS"
        )
    return FolderSource(Path(images).absolute())


def _list_run(target: Path) -> tuple[set[str], dict[str, str]]:
    """The photos of a run, and what it said of doubtful masks."""
    used = set(map(str, read_table(target / "variants.parquet")["sample_id"]))
    doubts = {row.sample_id: row.reason for row in read_skipped(target) if row.stage == "segment"}
    doubts |= {row.sample: "; ".join(row.reasons) for row in read_masks(target) if row.verdict == "doubtful"}
    return used | set(doubts), doubts


def merge_drawing(values: Bytes, drawn: Bytes) -> Bytes:
    """The mask with what was drawn on a smaller copy of it; everything else keeps its values, soft edges included."""
    height, width = values.shape
    before = reduce_mask(values, drawn.shape[1::-1])
    changed = hard_object(before) != hard_object(drawn)
    if not changed.any():
        return values
    size = (width, height)
    spread = cv2.dilate(changed.astype(np.uint8), np.ones((3, 3), np.uint8))  # the edge of a change is drawn too
    where = cv2.resize(spread, size, interpolation=cv2.INTER_NEAREST) == 1
    smooth = cv2.resize(np.where(hard_object(drawn), 255, 0).astype(np.uint8), size, interpolation=cv2.INTER_LINEAR)
    return np.where(where, np.where(smooth >= 128, 255, 0), values).astype(np.uint8)


def reduce_mask(values: Bytes, size: Sequence[int]) -> Bytes:
    """The hard mask at the size of the page, width and height."""
    hard = np.where(hard_object(values), 255, 0).astype(np.uint8)
    if tuple(size) == values.shape[::-1]:
        return hard
    small = cv2.resize(hard, (int(size[0]), int(size[1])), interpolation=cv2.INTER_AREA)
    return np.where(np.asarray(small) >= 128, 255, 0).astype(np.uint8)


def page_size(image: NDArray[np.uint8]) -> tuple[int, int]:
    """Width and height at which a photo is shown and drawn on."""
    height, width = image.shape[:2]
    scale = min(1.0, EDIT_SIDE / max(height, width))
    return max(1, round(width * scale)), max(1, round(height * scale))


def encode_mask(values: Bytes) -> bytes:
    """A mask as a PNG file of one channel."""
    _, data = cv2.imencode(".png", np.ascontiguousarray(values))
    return data.tobytes()
