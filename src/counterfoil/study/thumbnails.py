"""Thumbnails of a report: kept while the pixels are available, read from a folder, or made again from the photos.

The report's pictures are known only when every answer is in, but they come from a pool of known size: for each
attribute, the flips and the held pictures with the lowest ranks. So the lowest ranks seen so far are kept, a bounded
number. This only saves work: a missing picture, made by another process or an earlier session, is made again with the
same bytes.
"""

from __future__ import annotations

import hashlib
import heapq
import os
import threading
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.registry import reference_of
from counterfoil.sources.pixels import hash_pixels
from counterfoil.statistics.answers import NO_FAILURE
from counterfoil.store.files import write_atomically
from counterfoil.store.prediction_tables import RenderedVariant
from counterfoil.store.result_cache import NO_CACHE, ResultCache, Stored, name_result
from counterfoil.study.examples import POOL, example_rank, flips_per_model, picture_key
from counterfoil.types import TOOL_CHECKS, EditLevel, Picture, Prediction, Variant

PictureLoader: TypeAlias = Callable[[Variant], "Picture | None"]
Image: TypeAlias = NDArray[np.uint8]  # (height, width, 3), RGB
Observer: TypeAlias = Callable[[Sequence[RenderedVariant], Sequence[Image], Mapping[str, Sequence[Prediction]]], None]

_SIDE = 320  # pixels of the longer side
_CUT_OUT_SIDE = 260
_QUALITY = 78
_MOST_BYTES = 64 << 20  # of JPEGs; a thumbnail has about 14 KB
_MOST_PIXEL_BYTES = 32 << 20  # of originals and references whose thumbnails nothing has asked for
_PHOTOS_IN_MEMORY = 128  # whose originals and references are kept: those in progress, and some before
_HASH_BYTES, _JPEG_END = 32, b"\xff\xd9"
# Edits whose pictures others are compared with.
_REFERENCE_EDITS = {"size", "painted-complexity", "scene-swap", "scene-size"}


def small_jpeg(image: Image, side: int, quality: int) -> bytes:
    """Return the picture as a JPEG whose longer side has at most this many pixels."""
    scale = min(1.0, side / max(image.shape[:2]))
    size = (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale)))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    _, jpeg = cv2.imencode(".jpg", cv2.cvtColor(small, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])
    return jpeg.tobytes()


def thumbnail_jpeg(image: Image) -> bytes:
    """Return a picture at the size and quality of the page."""
    return small_jpeg(image, _SIDE, _QUALITY)


@dataclass(frozen=True)
class ThumbnailCache:
    """Reads the thumbnails of a report; newly made ones are written to `keep`, for the next report."""

    folders: tuple[Path, ...]
    load: PictureLoader
    keep: Path | None = None
    ready: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # JPEGs made before, by hash of the pixels
    results: ResultCache = NO_CACHE  # of earlier runs, in which a picture may have had the same pixels

    def read(self, variant: Variant, pixels: str) -> bytes | None:
        """Return a JPEG of the variant whose pixels have this hash; None where neither it nor its photo is at hand."""
        for folder in self.folders:
            if kept := _read_whole(_path(folder, pixels)):
                return kept
        jpeg = self.ready.get(pixels) or self._recall(pixels) or self._make(variant, pixels)
        if jpeg is not None and self.keep is not None:
            _write_whole(_path(self.keep, pixels), jpeg)
            self.results.keep(name_result("thumbnail", pixels), Stored(None, (np.frombuffer(jpeg, np.uint8),)))
        return jpeg

    def _recall(self, pixels: str) -> bytes | None:
        stored = self.results.recall(name_result("thumbnail", pixels))
        return None if stored is None else stored.planes[0].tobytes()

    def cut_out(self, variant: Variant) -> bytes | None:
        """Return a JPEG of the object alone, on stripes; None where the photo is not at hand."""
        for folder in self.folders:
            if kept := _read_whole(_cut_out_path(folder, variant)):
                return kept
        picture = self.load(variant)
        if picture is None:
            return None
        jpeg = small_jpeg(_on_stripes(picture), _CUT_OUT_SIDE, _QUALITY)
        if self.keep is not None:
            _write_whole(_cut_out_path(self.keep, variant), jpeg)
        return jpeg

    def _make(self, variant: Variant, pixels: str) -> bytes | None:
        picture = self.load(variant)
        return None if picture is None or hash_pixels(picture.image) != pixels else thumbnail_jpeg(picture.image)


def _on_stripes(picture: Picture) -> Image:
    """The object on oblique stripes of two greys, whose width follows the picture's."""
    height, width = picture.alpha.shape
    down, across = np.mgrid[:height, :width]
    stripes = np.where((down + across) // max(1, max(height, width) // 40) % 2, 222, 205).astype(np.float32)
    opaque = (picture.alpha.astype(np.float32) / 255)[..., None]
    return np.asarray(np.rint(picture.image * opaque + stripes[..., None] * (1 - opaque)), np.uint8)


class _Group(NamedTuple):
    """Pictures that the report chooses from."""

    kind: str
    attribute: str
    model: str = ""


@dataclass(eq=False)
class _Before:
    """A picture that others are compared with, the original or an edit's reference; few of them are shown."""

    right: frozenset[str]  # models that are right on it
    sha256: str
    image: Image | None  # None once it was let go
    jpeg: bytes | None = None

    def thumbnail(self) -> bytes | None:
        """Its JPEG, made when it is first asked for; None where the pixels were let go before."""
        image = self.image
        if self.jpeg is None and image is not None:
            self.jpeg = thumbnail_jpeg(image)
        return self.jpeg


class _Kept(NamedTuple):
    order: int  # the rank, negated: the heap pops its smallest first
    jpegs: tuple[tuple[str, bytes], ...]  # by hash of the pixels: the picture, and its original


class ThumbnailCandidate(NamedTuple):
    """A thumbnail that was kept in a worker process, on its way to the process that writes the report."""

    group: _Group
    kept: _Kept


class ThumbnailCandidates:
    """Collects a bounded choice of thumbnails from all pictures and answers; thread-safe."""

    def __init__(self, models: Sequence[str]) -> None:
        self._models = tuple(models)
        self._groups: defaultdict[_Group, list[_Kept]] = defaultdict(list)
        self._before: OrderedDict[str, dict[EditLevel | None, _Before]] = OrderedDict()  # by photo
        self._pixels: deque[tuple[int, _Before]] = deque()  # those that hold theirs, oldest first, with their size
        self._pixel_bytes = self._bytes = 0
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._new: list[ThumbnailCandidate] | None = None  # since they were taken last, where they are passed on

    @property
    def jpegs(self) -> dict[str, bytes]:
        """The kept thumbnails, by hash of the pixels."""
        return {name: jpeg for kept in self._groups.values() for row in kept for name, jpeg in row.jpegs}

    def add(
        self, rows: Sequence[RenderedVariant], images: Sequence[Image], predictions: Mapping[str, Sequence[Prediction]]
    ) -> None:
        """Add pictures with every model's answers, in the same order; originals come before their variants."""
        if os.getpid() != self._process:
            return  # a forked process cannot pass its thumbnails back
        for place, (row, image) in enumerate(zip(rows, images, strict=True)):
            self._consider(row, image, {model: answers[place] for model, answers in predictions.items()})

    def pass_on(self, send: Callable[[list[ThumbnailCandidate]], None]) -> Observer:
        """An observer like `add` that sends what was kept each time, for another process to `merge`."""
        self._new = []

        def observe(
            rows: Sequence[RenderedVariant], images: Sequence[Image], predictions: Mapping[str, Sequence[Prediction]]
        ) -> None:
            self.add(rows, images, predictions)
            if self._new:
                send(self._new)
                self._new = []

        return observe

    def merge(self, candidates: Sequence[ThumbnailCandidate]) -> None:
        """Add thumbnails that another process kept."""
        for group, kept in candidates:
            if self._has_room(group, kept.order):
                self._keep(group, kept)

    def _consider(self, row: RenderedVariant, image: Image, answers: Mapping[str, Prediction]) -> None:
        variant = row.variant
        if variant.attribute in TOOL_CHECKS:
            return
        scored = {model for model, answer in answers.items() if answer.outcome == "scored"}
        right = frozenset(model for model in scored if answers[model].ranked[:1] == (variant.label,))
        shown = _Before(right, row.sha256, image)
        if variant.attribute == "original" or variant.edit in _REFERENCE_EDITS:
            self._remember(variant, shown)
        before = self._before_of(variant)
        groups = list(self._groups_of(variant.attribute, scored, right, before))
        order = -int.from_bytes(example_rank(picture_key(variant)), "big")
        groups = [group for group in groups if self._has_room(group, order)]
        if groups:
            thumbnails = [(picture.sha256, picture.thumbnail()) for picture in (shown, before) if picture is not None]
            jpegs = tuple((name, jpeg) for name, jpeg in thumbnails if jpeg is not None)
            for group in groups:
                self._keep(group, _Kept(order, jpegs))

    def _groups_of(
        self, attribute: str, scored: set[str], right: frozenset[str], before: _Before | None
    ) -> Iterator[_Group]:
        """The groups in which the report may look for a picture."""
        if before is None or attribute == "original":  # a collection may have no originals, or only originals
            if scored:
                yield _Group("right" if right == scored else "wrong", attribute)
            return
        if attribute in NO_FAILURE or attribute in TOOL_CHECKS:
            return
        flips = before.right & (scored - right)
        for model in flips:
            yield _Group("flipped", attribute, model)
        if not flips and before.right & right:
            yield _Group("held", attribute)

    def _limit(self, group: _Group) -> int:
        return flips_per_model(len(self._models)) if group.kind == "flipped" else POOL

    def _remember(self, variant: Variant, before: _Before) -> None:
        place = None if variant.attribute == "original" else EditLevel(variant.edit, variant.level)
        with self._lock:
            self._before.setdefault(str(variant.sample_id), {}).setdefault(place, before)
            if len(self._before) > _PHOTOS_IN_MEMORY:
                self._before.popitem(last=False)
            self._pixels.append((0 if before.image is None else before.image.nbytes, before))
            self._pixel_bytes += self._pixels[-1][0]
            while self._pixel_bytes > _MOST_PIXEL_BYTES and len(self._pixels) > 1:
                size, oldest = self._pixels.popleft()
                oldest.image = None
                self._pixel_bytes -= size

    def _before_of(self, variant: Variant) -> _Before | None:
        """What the variant is compared with: its edit's reference where that came before it, else the original."""
        known = self._before.get(str(variant.sample_id), {})
        return known.get(reference_of(variant.edit, variant.level), known.get(None))

    def _has_room(self, group: _Group, order: int) -> bool:
        with self._lock:
            kept = self._groups[group]
            if len(kept) < self._limit(group):
                return self._bytes < _MOST_BYTES
            return order > kept[0].order

    def _keep(self, group: _Group, kept: _Kept) -> None:
        with self._lock:
            self._bytes += _size(kept)
            heapq.heappush(self._groups[group], kept)
            if self._new is not None:
                self._new.append(ThumbnailCandidate(group, kept))
            if len(self._groups[group]) > self._limit(group):
                self._bytes -= _size(heapq.heappop(self._groups[group]))


def _write_whole(path: Path, jpeg: bytes) -> None:
    """Write a thumbnail with its hash behind it, which programs that show pictures do not read."""
    write_atomically(path, jpeg + hashlib.sha256(jpeg).digest(), durable=False)


def _read_whole(path: Path) -> bytes | None:
    """A thumbnail as it was written; None where it is not there or damaged, so that it is made again."""
    if not path.is_file():
        return None
    content = path.read_bytes()
    jpeg, digest = content[:-_HASH_BYTES], content[-_HASH_BYTES:]
    if hashlib.sha256(jpeg).digest() == digest:
        return jpeg
    is_earlier = content.endswith(_JPEG_END)  # earlier versions wrote no hash
    return (
        content if is_earlier and cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR) is not None else None
    )


def _path(folder: Path, pixels: str) -> Path:
    """The file of a thumbnail, named by the hash of the pixels, so that an older picture of the variant is not used."""
    return folder / "thumbnails" / f"{pixels[:20]}.jpg"


def _cut_out_path(folder: Path, variant: Variant) -> Path:
    return folder / "thumbnails" / f"cut-out-{variant.id}.jpg"


def _size(kept: _Kept) -> int:
    return sum(len(jpeg) for _, jpeg in kept.jpegs)
